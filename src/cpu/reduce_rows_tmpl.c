/* reduce_rows_tmpl.c - instantiates reduce_rows.h for every reduction. Template. */
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
    static void name##_join(T *a, const T *b, int64_t n) { join_states(kind, a, b, n); }                     \
    static void name##_halve(T *lane, T *root)                                                               \
    {                                                                                                        \
        if ((kind).gives_index) index_lanes(lane);                                                           \
        halve_lanes(kind, lane, root);                                                                       \
    }
#define REDUCE_ROW1(name, start, take, join, result)                                                         \
    ROW_OF(name, REDUCE_KIND(name, start))                                                                   \
    static void name##_result(void *to, const T *state, int64_t n)                                           \
    {                                                                                                        \
        const T a __attribute__((unused)) = *state;                                                          \
        *(T *)to = result;                                                                                   \
    }
#define REDUCE_ROW2 REDUCE_ROW1
#define MOMENT_ROW1(name, take, join, result)                                                                \
    ROW_OF(name, MOMENT_KIND(name))                                                                          \
    static void name##_result(void *to, const T *state, int64_t n)                                           \
    {                                                                                                        \
        const T a0 __attribute__((unused)) = state[0], a1 __attribute__((unused)) = state[REDUCE_LANES];     \
        const T a2 __attribute__((unused)) = state[2 * REDUCE_LANES];                                        \
        *(T *)to = result;                                                                                   \
    }
#define PLACE_ROW1(name, better)                                                                             \
    ROW_OF(name, PLACE_KIND(name))                                                                           \
    static void name##_result(void *to, const T *state, int64_t n)                                           \
    {                                                                                                        \
        *(int64_t *)to = (int64_t)state[2 * REDUCE_LANES] * INDEX_HIGH + (int64_t)state[REDUCE_LANES];       \
    }
#include "typed_ops.def"

const reduce_row reduce_rows[OPS] = {
#define ENTRY(name, parts, gives_index, ...)                                                                 \
    [OP_##name] = { { __VA_ARGS__ }, parts,        gives_index, name##_block,                                \
                    name##_outputs,  name##_halve, name##_join, name##_result },
#define REDUCE_ROW1(name, start, ...) ENTRY(name, 1, false, start)
#define REDUCE_ROW2                   REDUCE_ROW1
#define MOMENT_ROW1(name, ...)        ENTRY(name, 3, false, 0)
#define PLACE_ROW1(name, ...)         ENTRY(name, 3, true, 0, K(-1))
#include "typed_ops.def"
};
