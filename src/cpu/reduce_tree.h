/* reduce_tree.h - the canonical reduction tree of core/reduce_order.h, for any reduction of
 * ops.def. Template.
 *
 * The state of a reduction has `parts` numbers. FOLD rows have one, MOMENT rows four: a1, a2, a3 of
 * ops.def, and a0, which is set when a lane has taken its last element. PLACE rows
 * have the element, the low part and the high part of its index. REDUCE_LANES states, of lanes or
 * of outputs, are stored together: part k of all of them follows part k - 1 of all of them. */
#ifndef REDUCE_TREE_H
#define REDUCE_TREE_H

#include "reduce_order.h"
#include "vector.h"
#include <stdbool.h>

enum { MOST_PARTS = 4 };

typedef void update_function(V *p, V row, V x, V y);
typedef void close_function(V *p);
typedef void join_function(V *p, const V *q);

/* A reduction of ops.def. Always a constant, so that the compiler inlines its functions. */
typedef struct reduce_kind {
    update_function *update; /* adds an element */
    update_function *more;   /* the same for lanes that have an element. NULL: update does it as well */
    close_function *close;   /* of MOMENT rows, else NULL; for lanes of several elements */
    join_function *join;     /* joins two states */
    T start[MOST_PARTS];
    int parts;
    bool gives_index;
} reduce_kind;

#define REDUCE_KIND(name, start)                                                                             \
    ((reduce_kind){ vec_##name, NULL, NULL, vec_join_##name, { start }, 1, false })
#define MOMENT_KIND(name)                                                                                    \
    ((reduce_kind){                                                                                          \
        vec_##name, vec_more_##name, vec_close_##name, vec_join_##name, { K(NAN) }, MOST_PARTS, false })
#define PLACE_KIND(name)    ((reduce_kind){ vec_##name, NULL, NULL, vec_join_##name, { 0, K(-1) }, 3, true })
#define EACH_PART(k, parts) for (int k = 0; k < (parts); k++)
/* parts that change while elements are added */
#define UPDATED_PARTS(kind) ((kind).gives_index ? 2 : (kind).close ? MOST_PARTS - 1 : (kind).parts)

INLINE V load_v(const T *p) { return *(const V_unaligned *)p; }
INLINE void store_v(T *p, V v) { *(V_unaligned *)p = v; }

INLINE V iota(void)
{
    V v;
    for (int i = 0; i < LANES; i++) v[i] = (T)i;
    return v;
}

/* The first n elements, then zeros. */
INLINE V load_first(const T *p, int64_t n) { return n == LANES ? load_v(p) : load_some(p, first_lanes(n)); }

INLINE void fill(T *to, T value, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) store_v(to + i, spread(value));
}

INLINE void load_state(V v[MOST_PARTS], const T *state, int parts)
{
    EACH_PART(k, parts) v[k] = load_v(state + k * REDUCE_LANES);
}
INLINE void store_state(T *state, const V v[MOST_PARTS], int parts)
{
    EACH_PART(k, parts) store_v(state + k * REDUCE_LANES, v[k]);
}

INLINE void start_states(T *state, const T start[MOST_PARTS], int parts, int64_t n)
{
    EACH_PART(k, parts) fill(state + k * REDUCE_LANES, start[k], n);
}

/* Joins a[i] with b[i] for n states, rounded up to whole registers. */
INLINE void join_states(const reduce_kind kind, T *a, const T *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        V p[MOST_PARTS] = { { 0 } }, q[MOST_PARTS] = { { 0 } };
        load_state(p, a + i, kind.parts);
        load_state(q, b + i, kind.parts);
        kind.join(p, q);
        store_state(a + i, p, kind.parts);
    }
}

/* How many of n elements lane l takes. */
INLINE int64_t lane_count(int64_t n, int64_t l) { return (n - l + REDUCE_LANES - 1) / REDUCE_LANES; }

/* Prepares a register of lanes for the joins. Each has taken `count` elements. */
INLINE void close_register(const reduce_kind kind, T *lane, V count)
{
    V p[MOST_PARTS] = { { 0 } };
    load_state(p, lane, MOST_PARTS - 1);
    p[MOST_PARTS - 1] = count;
    kind.close(p);
    store_state(lane, p, MOST_PARTS - 1);
}

/* Prepares n lanes, rounded up to whole registers, that have taken `count` elements each. They do not
 * get their count. */
INLINE void close_equal_lanes(const reduce_kind kind, T *lane, int64_t n, int64_t count)
{
    for (int64_t i = 0; i < n && count > 1 && kind.close; i += LANES)
        close_register(kind, lane + i, spread((T)count));
}

/* The same as join_states, for states with the counts a_count and b_count, which are not in memory. */
INLINE void join_equal_states(const reduce_kind kind, T *a, const T *b, int64_t n, T a_count, T b_count)
{
    const int parts = kind.close ? MOST_PARTS - 1 : kind.parts;
    for (int64_t i = 0; i < n; i += LANES) {
        V p[MOST_PARTS] = { { 0 } }, q[MOST_PARTS] = { { 0 } };
        load_state(p, a + i, parts);
        load_state(q, b + i, parts);
        if (kind.close) {
            p[MOST_PARTS - 1] = spread(a_count);
            q[MOST_PARTS - 1] = spread(b_count);
        }
        kind.join(p, q);
        store_state(a + i, p, parts);
    }
}

/* Prepares all lanes of a block of n elements. */
INLINE void close_lanes(const reduce_kind kind, T *lane, int64_t n)
{
    const int64_t rows = n / REDUCE_LANES;
    const V more = spread((T)(n % REDUCE_LANES)), count = spread((T)rows);
    for (int64_t l = 0; l < REDUCE_LANES && kind.close; l += LANES) {
        const V own = choose(iota() + spread((T)l) < more, count + spread(1), count);
        store_v(lane + (MOST_PARTS - 1) * REDUCE_LANES + l, own);
        if (n > REDUCE_LANES) close_register(kind, lane + l, own);
    }
}

/* ---- one block of one output ---- */

#define COUNT_2(n)   (n) % (2 * VECTOR_LANES), ((n) + 1) % (2 * VECTOR_LANES)
#define COUNT_4(n)   COUNT_2(n), COUNT_2((n) + 2)
#define COUNT_8(n)   COUNT_4(n), COUNT_4((n) + 4)
#define COUNT_16(n)  COUNT_8(n), COUNT_8((n) + 8)
#define COUNTED_(n)  COUNT_##n
#define COUNTED(n)   COUNTED_(n)
#define ROTATE(v, h) __builtin_shufflevector(v, v, COUNTED(VECTOR_LANES)(h)) /* rotates lane h to lane 0 */
#define HALVE(p, h)                                                                                          \
    if (h < LANES)                                                                                           \
    kind.join(p, (const V[MOST_PARTS]){ ROTATE(p[0], h), ROTATE(p[1], h), ROTATE(p[2], h), ROTATE(p[3], h) })

/* Joins the lanes of one register by halving. Lane 0 has the result. */
INLINE void halve_register(const reduce_kind kind, V p[MOST_PARTS])
{
    HALVE(p, 8);
    HALVE(p, 4);
    HALVE(p, 2);
    HALVE(p, 1);
}

/* Joins all lanes by halving, the last of them in registers. Lane 0 of root has the result; the
 * other lanes have unspecified but valid values. */
INLINE void halve_lanes(const reduce_kind kind, T *lane, T *root)
{
    enum { LAST = REDUCE_LANES / LANES < 8 ? REDUCE_LANES / LANES : 8 };
    V v[LAST][MOST_PARTS] = { { { 0 } } };
    for (int64_t h = REDUCE_LANES / 2; h >= LAST * LANES; h /= 2) join_states(kind, lane, lane + h, h);
#pragma GCC unroll 8
    for (int i = 0; i < LAST; i++) load_state(v[i], lane + i * LANES, kind.parts);
#pragma GCC unroll 3
    for (int h = LAST / 2; h > 0; h /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < h; i++) kind.join(v[i], v[i + h]);
    halve_register(kind, v[0]);
    store_state(root, v[0], kind.parts);
}

/* Converts the number of a row of lanes to the index of an element in its block. */
INLINE void index_lanes(T *lane)
{
    for (int64_t l = 0; l < REDUCE_LANES; l += LANES) {
        const V row = load_v(lane + REDUCE_LANES + l),
                at = row * spread(REDUCE_LANES) + (iota() + spread((T)l));
        store_v(lane + REDUCE_LANES + l, choose(is_absent(row), row, at));
    }
}

/* Adds `rows` rows of REDUCE_LANES elements to the lanes. A few registers of lanes take all of
 * their rows before the next ones do. */
INLINE void update_rows(const reduce_kind kind, T *lane, const T *x, const T *y, int64_t rows)
{
    enum { VECTORS = REDUCE_LANES / LANES };
    const int parts = UPDATED_PARTS(kind), registers = parts > 1 || VECTORS < 8 ? 4 : 8;
    for (int64_t l = 0; l < REDUCE_LANES; l += registers * LANES) {
        V p[8][MOST_PARTS] = { { { 0 } } };
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) load_state(p[i], lane + l + i * LANES, parts);
        for (int64_t r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                const int64_t at = r * REDUCE_LANES + l + i * LANES;
                kind.update(p[i], spread((T)r), load_v(x + at), load_v(y + at));
            }
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) store_state(lane + l + i * LANES, p[i], parts);
    }
}

/* Adds the n elements of the last, incomplete row r. */
INLINE void update_first(const reduce_kind kind, T *lane, const T *x, const T *y, int64_t n, int64_t r)
{
    const int parts = UPDATED_PARTS(kind);
    for (int64_t l = 0; l < n; l += LANES) {
        const int64_t count = SMALLER(LANES, n - l);
        const lanes present = iota() < spread((T)count);
        V p[MOST_PARTS] = { { 0 } }, q[MOST_PARTS];
        load_state(p, lane + l, parts);
        memcpy(q, p, sizeof q);
        kind.update(q, spread((T)r), load_first(x + l, count), load_first(y + l, count));
        EACH_PART(k, parts) q[k] = choose(present, q[k], p[k]);
        store_state(lane + l, q, parts);
    }
}

/* Reduces at most LANES contiguous elements, which are in one register of lanes, to a state. */
INLINE void reduce_few(const reduce_kind kind, T *root, const T *x, const T *y, int64_t n)
{
    const lanes present = iota() < spread((T)n);
    V p[MOST_PARTS], q[MOST_PARTS];
    EACH_PART(k, MOST_PARTS) p[k] = q[k] = spread(kind.start[k]);
    kind.update(q, spread(0), load_first(x, n), load_first(y, n));
    EACH_PART(k, MOST_PARTS) p[k] = choose(present, q[k], p[k]);
    if (kind.gives_index) p[1] = choose(is_absent(p[1]), p[1], iota());
    if (kind.close) p[MOST_PARTS - 1] = choose(present, spread(1), spread(0));
    halve_register(kind, p);
    store_state(root, p, kind.parts);
}

/* Reduces one block of n contiguous elements to a state. Lanes without elements keep the start
 * value, which is the identity of join. */
INLINE void reduce_block(const reduce_kind kind, T *root, const T *x, const T *y, int64_t n)
{
    T lane[MOST_PARTS * REDUCE_LANES] __attribute__((aligned(64)));
    const int64_t rows = n / REDUCE_LANES, done = rows * REDUCE_LANES;
    if (n <= LANES) {
        reduce_few(kind, root, x, y, n);
        return;
    }
    start_states(lane, kind.start, kind.close ? MOST_PARTS - 1 : kind.parts, REDUCE_LANES);
    update_rows(kind, lane, x, y, rows);
    if (done < n) update_first(kind, lane, x + done, y + done, n - done, rows);
    if (kind.gives_index) index_lanes(lane);
    close_lanes(kind, lane, n);
    halve_lanes(kind, lane, root);
}

/* ---- one block of many outputs ---- */

/* The elements of one input for adjacent outputs: row r starts at x + r * down. */
typedef struct rows_of_outputs {
    const T *x;
    int64_t down;
} rows_of_outputs;

/* The c-th lane in the order of the joins: 0, 64, 32, 96, ... for 128 lanes. */
INLINE int64_t lane_in_join_order(int64_t c, int bits)
{
    const int64_t all =
        (c & 1) << 6 | (c & 2) << 4 | (c & 4) << 2 | (c & 8) | (c & 16) >> 2 | (c & 32) >> 4 | (c & 64) >> 6;
    return all >> (7 - bits);
}

/* The elements of outputs `at` .. at + LANES - 1, of which there are `width`. */
INLINE V get_outputs(const rows_of_outputs *b, int64_t row, int64_t at, int64_t width, bool full)
{
    const T *p = b->x + row * b->down + at;
    if (full) return load_v(p);
    if (at < width) return load_some(p, first_lanes(SMALLER(LANES, width - at)));
    return spread(0);
}

/* Reduces n rows for `registers` registers of outputs, masked unless `full`. The joins of the
 * lanes are a tree in depth-first order: level k holds a joined state of 2^k lanes, or nothing. */
INLINE void reduce_registers(const reduce_kind kind, T *root, const rows_of_outputs in[2], int64_t n,
                             int64_t at, int64_t width, const int registers, bool full)
{
    V p[8][MOST_PARTS] = { { { 0 } } }, level[8][8][MOST_PARTS];
    T counts[8], count; /* of elements: MOMENT rows need them, but not in memory */
    bool there[8];
    int bits = 0;
    while (bits < 7 && n > (int64_t)1 << bits) bits++;
    for (int64_t c = 0; c < (int64_t)1 << bits; c++) {
        const int64_t lane = lane_in_join_order(c, bits);
        bool nonempty = lane < n;
        int k = 0;
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) {
            EACH_PART(q, MOST_PARTS) p[i][q] = spread(kind.start[q]);
            if (kind.close) { HIDE_VALUE(p[i][0]); }
        }
        /* offset of the rows of the next lane, for prefetching */
        const int64_t ahead = lane_in_join_order(c + 1, bits) - lane;
        for (int64_t r = lane; r < n; r += REDUCE_LANES)
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                if (n > REDUCE_LANES / 2)
                    __builtin_prefetch(in[0].x + (r + ahead) * in[0].down + at + i * LANES);
                kind.update(p[i], spread((T)r), get_outputs(&in[0], r, at + i * LANES, width, full),
                            get_outputs(&in[1], r, at + i * LANES, width, full));
            }
        count = nonempty ? (T)lane_count(n, lane) : 0;
        if (kind.close)
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                p[i][MOST_PARTS - 1] = spread(count);
                if (lane + REDUCE_LANES < n) kind.close(p[i]);
            }
        for (; c >> k & 1; k++) {
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                V l[MOST_PARTS] = { { 0 } };
                EACH_PART(q, kind.parts) l[q] = level[k][i][q];
                if (kind.close) l[MOST_PARTS - 1] = spread(counts[k]);
                if (nonempty) kind.join(l, p[i]);
                EACH_PART(q, kind.parts) p[i][q] = l[q];
            }
            nonempty = there[k];
            count = count + counts[k];
            if (kind.close)
#pragma GCC unroll 8
                for (int i = 0; i < registers; i++) p[i][MOST_PARTS - 1] = spread(count);
        }
        there[k] = nonempty;
        counts[k] = count;
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) EACH_PART(q, kind.parts) level[k][i][q] = p[i][q];
    }
#pragma GCC unroll 8
    for (int i = 0; i < registers; i++) store_state(root + at + i * LANES, p[i], kind.parts);
}

/* Reduces one block of n rows for `width` outputs. The index of an element is the number of its
 * row. */
INLINE void reduce_outputs(const reduce_kind kind, T *root, const rows_of_outputs in[2], int64_t n,
                           int64_t width)
{
    enum { FEW = 2 };
    const int most = kind.parts > 1 ? 4 : 8;
    /* with 16 registers, joins of more MOMENT states do not fit */
    const bool narrow = kind.close && VECTOR_BYTES < 64 && n <= REDUCE_LANES / 2;
    int64_t w = 0;
    for (; w + most * LANES <= width && !narrow; w += most * LANES)
        reduce_registers(kind, root, in, n, w, width, most, true);
    if (width - w > most / 2 * LANES && !narrow) {
        reduce_registers(kind, root, in, n, w, width, most, false);
        return;
    }
    for (; w + FEW * LANES <= width; w += FEW * LANES)
        reduce_registers(kind, root, in, n, w, width, FEW, true);
    for (; w < width; w += LANES) reduce_registers(kind, root, in, n, w, width, 1, false);
}

#endif
