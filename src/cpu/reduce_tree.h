/* reduce_tree.h - the canonical reduction tree of core/reduce_order.h, for any reduction of
 * ops.def. Template.
 *
 * The state of a reduction has `parts` numbers. FOLD rows have one, MOMENT rows three. PLACE rows
 * have the element, the low part and the high part of its index. REDUCE_LANES states, of lanes or
 * of outputs, are stored together: part k of all of them follows part k - 1 of all of them. */
#ifndef REDUCE_TREE_H
#define REDUCE_TREE_H

#include "reduce_order.h"
#include "vector.h"
#include <stdbool.h>

typedef void update_function(V *p, V *p1, V *p2, V row, V x, V y);
typedef void join_function(V *p, V *p1, V *p2, V b, V b1, V b2);

/* A reduction of ops.def. Always a constant, so that the compiler inlines its functions. */
typedef struct reduce_kind {
    update_function *update; /* adds an element */
    join_function *join;     /* joins two states */
    T start[3];
    int parts;
    bool gives_index;
} reduce_kind;

#define REDUCE_KIND(name, start) ((reduce_kind){ vec_##name, vec_join_##name, { start }, 1, false })
#define MOMENT_KIND(name)        ((reduce_kind){ vec_##name, vec_join_##name, { 0 }, 3, false })
#define PLACE_KIND(name)         ((reduce_kind){ vec_##name, vec_join_##name, { 0, K(-1) }, 3, true })
#define EACH_PART(k, parts)      for (int k = 0; k < (parts); k++)
#define UPDATED_PARTS(kind)                                                                                  \
    ((kind).gives_index ? 2 : (kind).parts) /* parts that change while elements are added */

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

INLINE void load_state(V v[3], const T *state, int parts)
{
    EACH_PART(k, parts) v[k] = load_v(state + k * REDUCE_LANES);
}
INLINE void store_state(T *state, const V v[3], int parts)
{
    EACH_PART(k, parts) store_v(state + k * REDUCE_LANES, v[k]);
}

INLINE void start_states(T *state, const T start[3], int parts, int64_t n)
{
    EACH_PART(k, parts) fill(state + k * REDUCE_LANES, start[k], n);
}

/* Joins a[i] with b[i] for n states, rounded up to whole registers. */
INLINE void join_states(const reduce_kind kind, T *a, const T *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        V p[3] = { { 0 } }, q[3] = { { 0 } };
        load_state(p, a + i, kind.parts);
        load_state(q, b + i, kind.parts);
        kind.join(&p[0], &p[1], &p[2], q[0], q[1], q[2]);
        store_state(a + i, p, kind.parts);
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
    if (h < LANES) kind.join(&p[0], &p[1], &p[2], ROTATE(p[0], h), ROTATE(p[1], h), ROTATE(p[2], h))

/* Joins the lanes of one register by halving. Lane 0 has the result. */
INLINE void halve_register(const reduce_kind kind, V p[3])
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
    V v[LAST][3] = { { { 0 } } };
    for (int64_t h = REDUCE_LANES / 2; h >= LAST * LANES; h /= 2) join_states(kind, lane, lane + h, h);
#pragma GCC unroll 8
    for (int i = 0; i < LAST; i++) load_state(v[i], lane + i * LANES, kind.parts);
#pragma GCC unroll 3
    for (int h = LAST / 2; h > 0; h /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < h; i++)
            kind.join(&v[i][0], &v[i][1], &v[i][2], v[i + h][0], v[i + h][1], v[i + h][2]);
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
        V p[8][3] = { { { 0 } } };
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) load_state(p[i], lane + l + i * LANES, parts);
        for (int64_t r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                const int64_t at = r * REDUCE_LANES + l + i * LANES;
                kind.update(&p[i][0], &p[i][1], &p[i][2], spread((T)r), load_v(x + at), load_v(y + at));
            }
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) store_state(lane + l + i * LANES, p[i], parts);
    }
}

/* Adds the n elements of the last, incomplete row r. */
INLINE void update_first(const reduce_kind kind, T *lane, const T *x, const T *y, int64_t n, int64_t r)
{
    for (int64_t l = 0; l < n; l += LANES) {
        const int64_t count = SMALLER(LANES, n - l);
        const lanes present = iota() < spread((T)count);
        V p[3] = { { 0 } }, q[3];
        load_state(p, lane + l, kind.parts);
        memcpy(q, p, sizeof q);
        kind.update(&q[0], &q[1], &q[2], spread((T)r), load_first(x + l, count), load_first(y + l, count));
        EACH_PART(k, 3) q[k] = choose(present, q[k], p[k]);
        store_state(lane + l, q, kind.parts);
    }
}

/* Reduces one block of n contiguous elements to a state. Lanes without elements keep the start
 * value, which is the identity of join. */
INLINE void reduce_block(const reduce_kind kind, T *root, const T *x, const T *y, int64_t n)
{
    T lane[3 * REDUCE_LANES] __attribute__((aligned(64)));
    const int64_t rows = n / REDUCE_LANES, done = rows * REDUCE_LANES;
    start_states(lane, kind.start, kind.parts, REDUCE_LANES);
    update_rows(kind, lane, x, y, rows);
    if (done < n) update_first(kind, lane, x + done, y + done, n - done, rows);
    if (kind.gives_index) index_lanes(lane);
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
    V p[8][3] = { { { 0 } } }, level[8][8][3];
    bool there[8];
    int bits = 0;
    while (bits < 7 && n > (int64_t)1 << bits) bits++;
    for (int64_t c = 0; c < (int64_t)1 << bits; c++) {
        const int64_t lane = lane_in_join_order(c, bits);
        bool nonempty = lane < n;
        int k = 0;
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++)
            for (int q = 0; q < 3; q++) p[i][q] = spread(kind.start[q]);
        /* offset of the rows of the next lane, for prefetching */
        const int64_t ahead = lane_in_join_order(c + 1, bits) - lane;
        for (int64_t r = lane; r < n; r += REDUCE_LANES)
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                if (n > REDUCE_LANES / 2)
                    __builtin_prefetch(in[0].x + (r + ahead) * in[0].down + at + i * LANES);
                kind.update(&p[i][0], &p[i][1], &p[i][2], spread((T)r),
                            get_outputs(&in[0], r, at + i * LANES, width, full),
                            get_outputs(&in[1], r, at + i * LANES, width, full));
            }
        for (; c >> k & 1; k++) {
#pragma GCC unroll 8
            for (int i = 0; i < registers; i++) {
                V *l = level[k][i];
                if (nonempty) kind.join(&l[0], &l[1], &l[2], p[i][0], p[i][1], p[i][2]);
                EACH_PART(q, kind.parts) p[i][q] = l[q];
            }
            nonempty = there[k];
        }
        there[k] = nonempty;
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
    int64_t w = 0;
    for (; w + most * LANES <= width; w += most * LANES)
        reduce_registers(kind, root, in, n, w, width, most, true);
    if (width - w > most / 2 * LANES) {
        reduce_registers(kind, root, in, n, w, width, most, false);
        return;
    }
    for (; w + FEW * LANES <= width; w += FEW * LANES)
        reduce_registers(kind, root, in, n, w, width, FEW, true);
    for (; w < width; w += LANES) reduce_registers(kind, root, in, n, w, width, 1, false);
}

#endif
