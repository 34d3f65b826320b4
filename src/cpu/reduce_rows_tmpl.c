/* reduce_rows_tmpl.c - instantiates reduce_rows.h for every reduction. Template. */
#include "reduce_group.h"
#include "reduce_rows.h"

#define ROW_OF(name, kind)                                                                                   \
    static void name##_block(T *root, const T *x, const T *y, int64_t n)                                     \
    {                                                                                                        \
        reduce_block(kind, root, x, y, n);                                                                   \
    }                                                                                                        \
    static void name##_outputs(T *root, const rows_of_outputs in[2], int64_t n, int64_t width)               \
    {                                                                                                        \
        reduce_outputs(kind, root, in, n, width);                                                            \
    }                                                                                                        \
    static void name##_group(T *root, const rows_of_outputs in[2], int64_t n, int64_t width)                 \
    {                                                                                                        \
        reduce_group(kind, root, in, n, width);                                                              \
    }                                                                                                        \
    static void name##_join(T *a, const T *b, int64_t n) { join_states(kind, a, b, n); }                     \
    static void name##_halve(T *lane, T *root, int64_t n)                                                    \
    {                                                                                                        \
        if ((kind).gives_index) index_lanes(lane);                                                           \
        close_lanes(kind, lane, n);                                                                          \
        halve_lanes(kind, lane, root);                                                                       \
    }                                                                                                        \
    static void name##_close(T *lane, int64_t width, int64_t count)                                          \
    {                                                                                                        \
        close_equal_lanes(kind, lane, width, count);                                                         \
    }                                                                                                        \
    static void name##_join_lanes(T *a, const T *b, int64_t n, T a_count, T b_count)                         \
    {                                                                                                        \
        join_equal_states(kind, a, b, n, a_count, b_count);                                                  \
    }
#define REDUCE_ROW1(name, start, take, join, result)                                                         \
    ROW_OF(name, REDUCE_KIND(name, start))                                                                   \
    static void name##_results(void *to, const T *state, int64_t width, int64_t n)                           \
    {                                                                                                        \
        for (int64_t w = 0; w < width; w++) {                                                                \
            const T a = state[w];                                                                            \
            ((T *)to)[w] = result;                                                                           \
        }                                                                                                    \
    }
#define REDUCE_ROW2 REDUCE_ROW1
#define MOMENT_ROW1(name, take, close, join, result)                                                         \
    ROW_OF(name, MOMENT_KIND(name))                                                                          \
    static void name##_results(void *to, const T *state, int64_t width, int64_t n)                           \
    {                                                                                                        \
        for (int64_t w = 0; w < width; w++) {                                                                \
            const T a1 __attribute__((unused)) = state[w];                                                   \
            const T a2 __attribute__((unused)) = state[REDUCE_LANES + w];                                    \
            const T a3 __attribute__((unused)) = state[2 * REDUCE_LANES + w];                                \
            const T a0 __attribute__((unused)) = state[3 * REDUCE_LANES + w];                                \
            ((T *)to)[w] = result;                                                                           \
        }                                                                                                    \
    }
#define PLACE_ROW1(name, better)                                                                             \
    ROW_OF(name, PLACE_KIND(name))                                                                           \
    static void name##_results(void *to, const T *state, int64_t width, int64_t n)                           \
    {                                                                                                        \
        for (int64_t w = 0; w < width; w++)                                                                  \
            ((int64_t *)to)[w] =                                                                             \
                (int64_t)state[2 * REDUCE_LANES + w] * INDEX_HIGH + (int64_t)state[REDUCE_LANES + w];        \
    }
#include "typed_ops.def"

/* Rows whose elements may have to be scaled: y has the scales. */
#define SCALED_ROW(name, kind_of_row)                                                                        \
    INLINE void vec_scaled_##name(V *p, V row, V x, V y) { vec_##name(p, row, x *y, y); }                    \
    static void name##_scaled_outputs(T *root, const rows_of_outputs in[2], int64_t n, int64_t width)        \
    {                                                                                                        \
        reduce_kind kind = kind_of_row;                                                                      \
        kind.update = vec_scaled_##name;                                                                     \
        reduce_outputs(kind, root, in, n, width);                                                            \
    }
#ifndef FORMULA_INTEGERS
SCALED_ROW(norm, REDUCE_KIND(norm, -K(0)))
SCALED_ROW(mean, REDUCE_KIND(mean, -K(0)))
SCALED_ROW(var, MOMENT_KIND(var))
#endif

const reduce_row reduce_rows[OPS] = {
#define ENTRY(name, parts_, gives_index_, ...)                                                               \
    [OP_##name] = { .start = { __VA_ARGS__ },                                                                \
                    .parts = parts_,                                                                         \
                    .gives_index = gives_index_,                                                             \
                    .block = name##_block,                                                                   \
                    .outputs = name##_outputs,                                                               \
                    .group = name##_group,                                                                   \
                    .close = parts_ == MOST_PARTS ? name##_close : NULL,                                     \
                    .join_lanes = name##_join_lanes,                                                         \
                    .halve = name##_halve,                                                                   \
                    .join = name##_join,                                                                     \
                    .results = name##_results },
#define REDUCE_ROW1(name, start, ...) ENTRY(name, 1, false, start)
#define REDUCE_ROW2                   REDUCE_ROW1
#define MOMENT_ROW1(name, ...)        ENTRY(name, MOST_PARTS, false, K(NAN))
#define PLACE_ROW1(name, ...)         ENTRY(name, 3, true, 0, K(-1))
#include "typed_ops.def"
#ifndef FORMULA_INTEGERS
    [OP_norm].scaled_outputs = norm_scaled_outputs,
    [OP_mean].scaled_outputs = mean_scaled_outputs,
    [OP_var].scaled_outputs = var_scaled_outputs,
#endif
};
