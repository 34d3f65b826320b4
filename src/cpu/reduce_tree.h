/* reduce_tree.h - the canonical tree of core/reduction.h, for any row that reduces. A template.
 *
 * What a reduction has gathered is its state: `parts` numbers (one; of MOMENT rows three; of PLACE rows the element and its index, low
 * and high part). States stand side by side, of REDUCE_LANES lanes or outputs: part k of each REDUCE_LANES after part k - 1. */
#ifndef TREE_H
#define TREE_H

#include "reduce_order.h"
#include "vector.h"
#include <stdbool.h>

typedef void take_function(V *p, V *p1, V *p2, V row, V x, V y);
typedef void join_function(V *p, V *p1, V *p2, V b, V b1, V b2);

/* A row of ops.def, as the functions below see it. */
typedef struct reduce_kind {
    take_function *take;
    join_function *join;
    T start[3];
    int parts;
    bool place;
} reduce_kind;

#define REDUCE_KIND(name, start) ((reduce_kind){ vec_##name, vec_join_##name, { start }, 1, false })
#define MOMENT_KIND(name)        ((reduce_kind){ vec_##name, vec_join_##name, { 0 }, 3, false })
#define PLACE_KIND(name)         ((reduce_kind){ vec_##name, vec_join_##name, { 0, K(-1) }, 3, true })
#define EACH_PART(k, parts)      for (int k = 0; k < (parts); k++)
#define SMALLEST_PARTS(kind)     ((kind).place ? 2 : (kind).parts) /* that change while elements are taken */

INLINE V get(const T *p) { return *(const V_anywhere *)p; }
INLINE void set(T *p, V v) { *(V_anywhere *)p = v; }

INLINE V iota(void)
{
    V v;
    for (int i = 0; i < LANES; i++) v[i] = (T)i;
    return v;
}

/* The first n elements, and zeros. */
INLINE V get_some(const T *p, int64_t n) { return n == LANES ? get(p) : load_some(p, first_lanes(n)); }

INLINE void fill(T *to, T value, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) set(to + i, spread(value));
}

INLINE void get_state(V v[3], const T *state, int parts)
{
    EACH_PART(k, parts) v[k] = get(state + k * REDUCE_LANES);
}
INLINE void set_state(T *state, const V v[3], int parts)
{
    EACH_PART(k, parts) set(state + k * REDUCE_LANES, v[k]);
}

INLINE void start_states(T *state, const T start[3], int parts, int64_t n)
{
    EACH_PART(k, parts) fill(state + k * REDUCE_LANES, start[k], n);
}

/* a[i] joined with b[i], for n states side by side, and up to a whole register. */
INLINE void join_states(const reduce_kind kind, T *a, const T *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        V p[3] = { { 0 } }, q[3] = { { 0 } };
        get_state(p, a + i, kind.parts), get_state(q, b + i, kind.parts);
        kind.join(&p[0], &p[1], &p[2], q[0], q[1], q[2]);
        set_state(a + i, p, kind.parts);
    }
}

/* ---- one block, along the lanes ---- */

#define COUNT_2(n)  (n) % (2 * VECTOR_LANES), ((n) + 1) % (2 * VECTOR_LANES)
#define COUNT_4(n)  COUNT_2(n), COUNT_2((n) + 2)
#define COUNT_8(n)  COUNT_4(n), COUNT_4((n) + 4)
#define COUNT_16(n) COUNT_8(n), COUNT_8((n) + 8)
#define COUNTED_(n) COUNT_##n
#define COUNTED(n)  COUNTED_(n)
#define FROM(v, h)  __builtin_shufflevector(v, v, COUNTED(VECTOR_LANES)(h)) /* lane h comes first */
#define HALVE(p, h)                                                                                          \
    if (h < LANES) kind.join(&p[0], &p[1], &p[2], FROM(p[0], h), FROM(p[1], h), FROM(p[2], h))

/* The lanes of one register join by halving: lane 0 has all. */
INLINE void halve_register(const reduce_kind kind, V p[3])
{
    HALVE(p, 8);
    HALVE(p, 4);
    HALVE(p, 2);
    HALVE(p, 1);
}

/* The lanes join by halving, the last of them in registers. Lane 0 of root is the block's; others hold what does no harm. */
INLINE void halve_lanes(const reduce_kind kind, T *lane, T *root)
{
    enum { LAST = REDUCE_LANES / LANES < 8 ? REDUCE_LANES / LANES : 8 };
    V v[LAST][3] = { { { 0 } } };
    for (int64_t h = REDUCE_LANES / 2; h >= LAST * LANES; h /= 2) join_states(kind, lane, lane + h, h);
#pragma GCC unroll 8
    for (int i = 0; i < LAST; i++) get_state(v[i], lane + i * LANES, kind.parts);
#pragma GCC unroll 3
    for (int h = LAST / 2; h > 0; h /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < h; i++)
            kind.join(&v[i][0], &v[i][1], &v[i][2], v[i + h][0], v[i + h][1], v[i + h][2]);
    halve_register(kind, v[0]);
    set_state(root, v[0], kind.parts);
}

/* The number of a row of lanes, made the index of an element in its block. */
INLINE void index_lanes(T *lane)
{
    for (int64_t l = 0; l < REDUCE_LANES; l += LANES) {
        const V row = get(lane + REDUCE_LANES + l), at = row * spread(REDUCE_LANES) + (iota() + spread((T)l));
        set(lane + REDUCE_LANES + l, choose(is_absent(row), row, at));
    }
}

/* Some registers of lanes take all of their elements, then the next ones. */
INLINE void take_rows(const reduce_kind kind, T *lane, const T *x, const T *y, int64_t rows)
{
    enum { VECTORS = REDUCE_LANES / LANES };
    const int parts = SMALLEST_PARTS(kind), some = parts > 1 || VECTORS < 8 ? 4 : 8;
    for (int64_t l = 0; l < REDUCE_LANES; l += some * LANES) {
        V p[8][3] = { { { 0 } } };
#pragma GCC unroll 8
        for (int i = 0; i < some; i++) get_state(p[i], lane + l + i * LANES, parts);
        for (int64_t r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int i = 0; i < some; i++) {
                const int64_t at = r * REDUCE_LANES + l + i * LANES;
                kind.take(&p[i][0], &p[i][1], &p[i][2], spread((T)r), get(x + at), get(y + at));
            }
#pragma GCC unroll 8
        for (int i = 0; i < some; i++) set_state(lane + l + i * LANES, p[i], parts);
    }
}

/* Row r, of which there are but n elements. */
INLINE void take_some(const reduce_kind kind, T *lane, const T *x, const T *y, int64_t n, int64_t r)
{
    for (int64_t l = 0; l < n; l += LANES) {
        const int64_t some = SMALLER(LANES, n - l);
        const lanes there = iota() < spread((T)some);
        V p[3] = { { 0 } }, q[3];
        get_state(p, lane + l, kind.parts);
        memcpy(q, p, sizeof q);
        kind.take(&q[0], &q[1], &q[2], spread((T)r), get_some(x + l, some), get_some(y + l, some));
        EACH_PART(k, 3) q[k] = choose(there, q[k], p[k]);
        set_state(lane + l, q, kind.parts);
    }
}

/* One block of n elements, one after the other, into a state. Lanes that see nothing stay as they start, the identity of join. */
INLINE void reduce_block(const reduce_kind kind, T *root, const T *x, const T *y, int64_t n)
{
    T lane[3 * REDUCE_LANES] __attribute__((aligned(64)));
    const int64_t rows = n / REDUCE_LANES, done = rows * REDUCE_LANES;
    start_states(lane, kind.start, kind.parts, REDUCE_LANES);
    take_rows(kind, lane, x, y, rows);
    if (done < n) take_some(kind, lane, x + done, y + done, n - done, rows);
    if (kind.place) index_lanes(lane);
    halve_lanes(kind, lane, root);
}

/* ---- one block of many outputs, side by side ---- */

/* Elements of input x that belong to some outputs: row r of them is at x + r * down. */
typedef struct strip {
    const T *x;
    int64_t down;
} strip;

/* The lanes in the order in which their joins follow each other: 0, 64, 32, 96, ... of 128. */
INLINE int64_t lane_after(int64_t c, int bits)
{
    const int64_t all =
        (c & 1) << 6 | (c & 2) << 4 | (c & 4) << 2 | (c & 8) | (c & 16) >> 2 | (c & 32) >> 4 | (c & 64) >> 6;
    return all >> (7 - bits);
}

/* Some registers of outputs from `at` on, of which there are `width` in all. */
INLINE V get_beside(const strip *b, int64_t row, int64_t at, int64_t width, bool whole)
{
    const T *p = b->x + row * b->down + at;
    if (whole) return get(p);
    return at < width ? load_some(p, first_lanes(SMALLER(LANES, width - at))) : spread(0);
}

/* `some` registers of outputs, under masks unless they are whole. The joins of lanes are those of a tree that is gone through depth
 * first: level k holds one of 2^k lanes, or nothing. */
INLINE void reduce_registers(const reduce_kind kind, T *root, const strip in[2], int64_t n, int64_t at,
                             int64_t width, const int some, bool whole)
{
    V p[8][3] = { { { 0 } } }, level[8][8][3];
    bool there[8];
    int bits = 0;
    while (bits < 7 && n > (int64_t)1 << bits) bits++;
    for (int64_t c = 0; c < (int64_t)1 << bits; c++) {
        const int64_t lane = lane_after(c, bits);
        bool seen = lane < n;
        int k = 0;
#pragma GCC unroll 8
        for (int i = 0; i < some; i++)
            for (int q = 0; q < 3; q++) p[i][q] = spread(kind.start[q]);
        const int64_t ahead = lane_after(c + 1, bits) - lane; /* where the next lane's elements are */
        for (int64_t r = lane; r < n; r += REDUCE_LANES)
#pragma GCC unroll 8
            for (int i = 0; i < some; i++) {
                if (n > REDUCE_LANES / 2)
                    __builtin_prefetch(in[0].x + (r + ahead) * in[0].down + at + i * LANES);
                kind.take(&p[i][0], &p[i][1], &p[i][2], spread((T)r),
                          get_beside(&in[0], r, at + i * LANES, width, whole),
                          get_beside(&in[1], r, at + i * LANES, width, whole));
            }
        for (; c >> k & 1; k++) {
#pragma GCC unroll 8
            for (int i = 0; i < some; i++) {
                V *l = level[k][i];
                if (seen) kind.join(&l[0], &l[1], &l[2], p[i][0], p[i][1], p[i][2]);
                EACH_PART(q, kind.parts) p[i][q] = l[q];
            }
            seen = there[k];
        }
        there[k] = seen;
#pragma GCC unroll 8
        for (int i = 0; i < some; i++) EACH_PART(q, kind.parts) level[k][i][q] = p[i][q];
    }
#pragma GCC unroll 8
    for (int i = 0; i < some; i++) set_state(root + at + i * LANES, p[i], kind.parts);
}

/* One block of n rows of elements, for `width` outputs. An index is a row's number. */
INLINE void reduce_outputs(const reduce_kind kind, T *root, const strip in[2], int64_t n, int64_t width)
{
    enum { SOME = 2 };
    const int most = kind.parts > 1 ? 4 : 8;
    int64_t w = 0;
    for (; w + most * LANES <= width; w += most * LANES)
        reduce_registers(kind, root, in, n, w, width, most, true);
    if (width - w > most / 2 * LANES) {
        reduce_registers(kind, root, in, n, w, width, most, false);
        return;
    }
    for (; w + SOME * LANES <= width; w += SOME * LANES)
        reduce_registers(kind, root, in, n, w, width, SOME, true);
    for (; w < width; w += LANES) reduce_registers(kind, root, in, n, w, width, 1, false);
}

#endif
