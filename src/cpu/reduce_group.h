/* reduce_group.h - reduces one block of up to LANES outputs at once. The elements of each output are
 * contiguous. Template, part of reduce_rows_tmpl.c and layer_norm_tmpl.c.
 *
 * Every output has its REDUCE_LANES lanes in LANE_VECTORS registers, which are joined to one. These
 * registers of all outputs are then joined together: each join exchanges halves of the registers of two
 * outputs, so that all lanes do useful work. The order is that of reduce_block. */
#ifndef REDUCE_GROUP_H
#define REDUCE_GROUP_H

#include "reduce_tree.h"
#include "transpose_registers.h"

enum { LANE_VECTORS = REDUCE_LANES * sizeof(T) / VECTOR_BYTES };

/* The registers of lanes of one output. */
typedef struct output_lanes {
    V part[LANE_VECTORS][MOST_PARTS];
} output_lanes;

/* How many of n elements the lanes of register i take. */
INLINE V count_of_lanes(int64_t n, int64_t i)
{
    const V rows = spread((T)(n / REDUCE_LANES)), more = spread((T)(n % REDUCE_LANES));
    return choose(iota() + spread((T)(i * LANES)) < more, rows + spread(1), rows);
}

/* Adds n < REDUCE_LANES elements of row r, to registers whose first lane is `first`. */
INLINE void update_incomplete(update_function *update, V p[8][MOST_PARTS], const int registers, const T *x,
                              const T *y, int64_t r, int64_t first, int64_t n)
{
#pragma GCC unroll 8
    for (int i = 0; i < registers; i++) {
        const int64_t at = first + i * LANES, count = SMALLER(LANES, n - at);
        if (count <= 0) break;
        const lanes present = iota() < spread((T)count);
        V q[MOST_PARTS];
        EACH_PART(k, MOST_PARTS) q[k] = p[i][k];
        update(q, spread((T)r), load_first(x + at, count), load_first(y + at, count));
        EACH_PART(k, MOST_PARTS) p[i][k] = choose(present, q[k], p[i][k]);
    }
}

INLINE void update_row(update_function *update, V p[8][MOST_PARTS], const int registers, const T *x,
                       const T *y, int64_t r)
{
#pragma GCC unroll 8
    for (int i = 0; i < registers; i++)
        update(p[i], spread((T)r), load_v(x + i * LANES), load_v(y + i * LANES));
}

/* Adds n elements to the lanes of one output. A few registers take all of their elements before the next
 * ones do. */
INLINE void update_output(const reduce_kind kind, output_lanes *o, const T *x, const T *y, int64_t n)
{
    const int registers = UPDATED_PARTS(kind) > (VECTOR_BYTES < 64 ? 1 : 3) ? 4 : 8;
    const int64_t rows = n / REDUCE_LANES, done = rows * REDUCE_LANES;
    update_function *more = kind.more ? kind.more : kind.update;
#pragma GCC unroll 2
    for (int64_t g = 0; g < REDUCE_LANES; g += registers * LANES) {
        V p[8][MOST_PARTS];
        int64_t r = 0;
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) EACH_PART(k, MOST_PARTS) p[i][k] = spread(kind.start[k]);
        if (kind.more && rows == 0) update_incomplete(kind.update, p, registers, x, y, 0, g, n);
        if (kind.more && rows > 0) update_row(kind.update, p, registers, x + g, y + g, r++);
        for (; r < rows; r++)
            update_row(more, p, registers, x + r * REDUCE_LANES + g, y + r * REDUCE_LANES + g, r);
        if (done < n && !(kind.more && rows == 0))
            update_incomplete(more, p, registers, x + done, y + done, rows, g, n - done);
#pragma GCC unroll 8
        for (int i = 0; i < registers; i++) memcpy(o->part[g / LANES + i], p[i], sizeof p[i]);
    }
}

/* Converts the numbers of rows of lanes to indices in the block. */
INLINE void index_output(output_lanes *o)
{
#pragma GCC unroll 8
    for (int i = 0; i < LANE_VECTORS; i++) {
        const V row = o->part[i][1], at = row * spread(REDUCE_LANES) + (iota() + spread((T)(i * LANES)));
        o->part[i][1] = choose(is_absent(row), row, at);
    }
}

/* Joins the registers of an output. */
INLINE void join_output(const reduce_kind kind, const output_lanes *from, V state[MOST_PARTS], int64_t n)
{
    output_lanes o;
#pragma GCC unroll 8
    for (int i = 0; i < LANE_VECTORS; i++) {
        EACH_PART(k, UPDATED_PARTS(kind)) o.part[i][k] = from->part[i][k];
        if (kind.gives_index) o.part[i][2] = spread(0);
        if (kind.close) o.part[i][MOST_PARTS - 1] = count_of_lanes(n, i);
        if (kind.close) kind.close(o.part[i]);
    }
    if (kind.gives_index) index_output(&o);
#pragma GCC unroll 6
    for (int h = LANE_VECTORS / 2; h > 0; h /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < h; i++) kind.join(o.part[i], o.part[i + h]);
    EACH_PART(k, kind.parts) state[k] = o.part[0][k];
}

/* Exchanges the lanes of x and y as EXCHANGE_BIT does. */
#define EXCHANGE_PAIR(h, p, q, x, y)                                                                         \
    {                                                                                                        \
        const V a = x, b = y;                                                                                \
        p = EXCHANGE(FIRST_ROW, h);                                                                          \
        q = EXCHANGE(SECOND_ROW, h);                                                                         \
    }

/* Joins the lanes of the outputs i and i + h. `last` is the part that is the same for all outputs. */
#define JOIN_EXCHANGED(h)                                                                                    \
    if (h < LANES) {                                                                                         \
        V first, second;                                                                                     \
        EXCHANGE_PAIR(h, first, second, last, last)                                                          \
        _Pragma("GCC unroll 8") for (int i = 0; i < h; i++)                                                  \
        {                                                                                                    \
            V p[MOST_PARTS] = { { 0 } }, q[MOST_PARTS] = { { 0 } };                                          \
            EACH_PART(k, updated)                                                                            \
            EXCHANGE_PAIR(h, p[k], q[k], v[i][k], v[(i + h) % LANES][k])                                     \
            if (updated < kind.parts) p[updated] = first, q[updated] = second;                               \
            kind.join(p, q);                                                                                 \
            EACH_PART(k, kind.parts) v[i][k] = p[k];                                                         \
        }                                                                                                    \
        last = v[0][kind.parts - 1];                                                                         \
    }

/* v[i]: one register of lanes of output i. Lane i of root gets its state. */
INLINE void join_outputs(const reduce_kind kind, V v[VECTOR_LANES][MOST_PARTS], T *root)
{
    const int updated = UPDATED_PARTS(kind);
    V last = v[0][kind.parts - 1];
    JOIN_EXCHANGED(8)
    JOIN_EXCHANGED(4)
    JOIN_EXCHANGED(2)
    JOIN_EXCHANGED(1)
    store_state(root, v[0], kind.parts);
}

/* Starts the states of outputs that a group lacks. */
INLINE void start_outputs(const reduce_kind kind, V v[VECTOR_LANES][MOST_PARTS], int64_t width)
{
    for (int64_t w = width; w < LANES; w++) EACH_PART(k, kind.parts) v[w][k] = spread(kind.start[k]);
}

/* Reduces n elements of each of `width` <= LANES outputs. */
INLINE void reduce_group(const reduce_kind kind, T *root, const rows_of_outputs in[2], int64_t n,
                         int64_t width)
{
    V v[VECTOR_LANES][MOST_PARTS];
    start_outputs(kind, v, width);
    for (int64_t w = 0; w < width; w++) {
        output_lanes o;
        update_output(kind, &o, in[0].x + w * in[0].down, in[1].x + w * in[1].down, n);
        join_output(kind, &o, v[w], n);
    }
    join_outputs(kind, v, root);
}

#endif
