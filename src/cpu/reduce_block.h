/* reduce_block.h - reduces one block of the canonical tree. Template, part of reduce_tmpl.c.
 *
 * A panel is a group of outputs that are reduced together. There are three kinds:
 *   one output        its elements are contiguous. The interpreter adds them to REDUCE_LANES lanes, one row
 *                     of REDUCE_LANES elements at a time.
 *   group             up to LANES outputs, each with contiguous elements that fit into a block. Only for
 *                     direct programs
 *   adjacent outputs  up to REDUCE_LANES outputs whose elements are adjacent, or which have few elements
 *                     each. A row is one element of each output. Every lane has a state for each output.
 * A program that reduces inputs without computing anything is called direct: it does not need the
 * interpreter. Inputs in other layouts or types are copied first, one block at a time. The states of all
 * reductions of a panel are stored one after the other. */
#ifndef REDUCE_BLOCK_H
#define REDUCE_BLOCK_H

#include "converters.h"
#include "dtype.h"
#include "interp.h"
#include "reduce_rows.h"
#include "row_iterator.h"
#include "transpose_registers.h"

#define COPIED_ROWS 32 /* rows of a panel of adjacent outputs that are copied at a time */

_Static_assert(REDUCE_LANES == INTERP_PART, "the interpreter has the same layout of states");
_Static_assert(COPIED_ROWS *REDUCE_LANES == REDUCE_BLOCK, "a copy fits into a block");

enum access { IN_PLACE, SCALAR, COPIED };

/* An output whose sums overflow or underflow is computed again with scaled elements. `front` stores
 * the elements, which are multiplied by the factor of their output. `reduction` reduces the products. */
typedef struct scaled_retry {
    interp_code front, reduction;
} scaled_retry;

/* A reduction step. Its layouts are split into the reduced axes, and the other ones with the axis
 * of a panel last. */
typedef struct reduce_work {
    const step *s;
    const reduce_row *row[STEP_OUTPUTS];
    int at[STEP_OUTPUTS], set_size; /* offset of the states of each reduction, and the size of all */
    bool adjacent, grouped;         /* adjacent outputs; a group */
    bool direct;                    /* no interpreter */
    enum access access[STEP_INPUTS];
    const char *in[STEP_INPUTS];
    char *out[STEP_OUTPUTS];
    T num[PROGRAM_NUMBERS];
    layout reduced[STEP_INPUTS], kept_axes[STEP_INPUTS + STEP_OUTPUTS];
    int64_t n, outputs, lanes; /* lanes: how many have states in memory */
    const interp_code *code;
    /* NULL in the first pass. scale: the factors of the elements. as_is: the same with factors of 1,
     * unless every block is computed from scaled elements */
    const scaled_retry *retry;
    const T *scale;
    const struct reduce_work *as_is;
} reduce_work;

typedef struct panel {
    const char *in[STEP_INPUTS];
    char *out[STEP_OUTPUTS];
    int64_t width;
} panel;

/* The memory of one thread. */
typedef struct thread_memory {
    T *lanes, *root, *level, *copy[STEP_INPUTS], *sub_roots;
    int64_t each; /* distance to that of the next thread, in elements */
} thread_memory;

static bool converts(const reduce_work *j, int k) { return j->reduced[k].type != OWN_TYPE; }

/* ---- states of all reductions ---- */

static void start_states_of_all(const reduce_work *j, T *states, int64_t width)
{
    for (int k = 0; k < j->s->outs; k++)
        start_states(states + j->at[k], j->row[k]->start, j->row[k]->parts - !!j->row[k]->close, width);
}

static void close_states_of_all(const reduce_work *j, T *states, int64_t width, int64_t count)
{
    for (int k = 0; k < j->s->outs; k++)
        if (j->row[k]->close) j->row[k]->close(states + j->at[k], width, count);
}

static void join_states_of_all(const reduce_work *j, T *a, const T *b, int64_t width)
{
    for (int k = 0; k < j->s->outs; k++) j->row[k]->join(a + j->at[k], b + j->at[k], width);
}

/* ---- rows of elements ---- */

static void scale_rows(T *x, const T *factor, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n)
        for (int64_t i = 0; i < n; i++) x[i] *= factor[i];
}

static __attribute__((noinline)) void update_scaled(const reduce_work *j, T *value[VALUES], int64_t rows,
                                                    int64_t n, int64_t row_step[VALUES])
{
    T scaled[REDUCE_BLOCK] __attribute__((aligned(64)));
    T *output_value[VALUES] = { [INPUTS] = scaled, [OUTPUTS] = value[OUTPUTS] };
    const int64_t output_step[VALUES] = { [INPUTS] = n, [OUTPUTS] = row_step[OUTPUTS] };
    value[OUTPUTS] = scaled;
    row_step[OUTPUTS] = n;
    interp_run(&j->retry->front, value, rows, n, row_step);
    scale_rows(scaled, j->scale, rows, n);
    interp_run(&j->retry->reduction, output_value, rows, n, output_step);
    value[OUTPUTS] = output_value[OUTPUTS];
    row_step[OUTPUTS] = output_step[OUTPUTS];
}

static void update_lanes(const reduce_work *j, T *value[VALUES], int64_t rows, int64_t n,
                         int64_t row_step[VALUES])
{
    if (j->retry) update_scaled(j, value, rows, n, row_step);
    else if (rows > 0) interp_run(j->code, value, rows, n, row_step);
}

static void set_numbers(const reduce_work *j, T *value[VALUES])
{
    for (int k = 0; k < j->s->nums; k++) value[NUMBERS + k] = (T *)&j->num[k];
}

/* ---- panels of one output ---- */

/* Reads elements first .. first + n - 1 of an input, in row-major order. */
static void read_elements(T *to, const char *from, const layout *l, int64_t first, int64_t n)
{
    const int64_t length = row_length(l), bytes = (int64_t)dtypes[l->type].bytes;
    if (l->type == OWN_TYPE) {
        gather_range(to, (const T *)from, l, first, n);
        return;
    }
    row_iterator w = row_iterator_at(l, first / length);
    for (int64_t col = first % length, count; n > 0;
         to += count, n -= count, col = 0, row_iterator_next(&w, l)) {
        count = SMALLER(length - col, n);
        converters[l->type].in(to, from + (w.offset + col * row_stride(l)) * bytes, row_stride(l), count);
    }
}

/* The size of the inputs that are read in place. Others are copied to buffers, block by block. */
static double bytes_in_place(const reduce_work *j)
{
    double bytes = 0;
    for (int k = 0; k < j->s->ins; k++)
        if (j->access[k] == IN_PLACE) bytes += (double)j->n * (double)j->outputs * sizeof(T);
    return bytes;
}

/* Elements first .. first + n - 1 of input k, in place or copied. */
static const T *input_elements(const reduce_work *j, const panel *p, const thread_memory *r, int k,
                               int64_t first, int64_t n)
{
    if (j->access[k] == IN_PLACE) return (const T *)p->in[k] + first;
    if (j->access[k] == SCALAR) return (const T *)p->in[k];
    read_elements(r->copy[k], p->in[k], &j->reduced[k], first, n);
    return r->copy[k];
}

/* Runs reduction k of a direct program. */
static void direct_block(const reduce_work *j, const T *const at[], int k, int64_t n, T *root)
{
    T scaled[REDUCE_BLOCK];
    const instruction *i = &j->s->program->code[k];
    const int output = i->arg[2].index;
    const T *x = at[i->arg[0].index], *y = op_infos[i->op].arity > 1 ? at[i->arg[1].index] : x;
    if (j->retry) {
        for (int64_t e = 0; e < n; e++) scaled[e] = x[e] * j->scale[0];
        x = scaled;
    }
    j->row[output]->block(root + j->at[output], x, y, n);
}

static void interpreted_block(const reduce_work *j, const T *const at[], int64_t n, const thread_memory *r)
{
    T *value[VALUES], row = 0;
    int64_t row_step[VALUES] = { 0 }, rows = n / REDUCE_LANES;
    start_states_of_all(j, r->lanes, REDUCE_LANES);
    set_numbers(j, value);
    value[ROW] = &row;
    for (int k = 0; k < j->s->ins; k++) {
        value[INPUTS + k] = (T *)at[k];
        row_step[INPUTS + k] = j->access[k] == SCALAR ? 0 : REDUCE_LANES;
    }
    for (int k = 0; k < j->s->outs; k++) value[OUTPUTS + k] = r->lanes + j->at[k];
    update_lanes(j, value, rows, REDUCE_LANES, row_step);
    for (int k = 0; k < j->s->ins; k++) value[INPUTS + k] += rows * row_step[INPUTS + k];
    row = (T)rows;
    if (n % REDUCE_LANES) update_lanes(j, value, 1, n % REDUCE_LANES, row_step);
}

static void one_output_block(const reduce_work *j, const panel *p, const thread_memory *r, int64_t first,
                             int64_t n, T *root)
{
    const T *at[STEP_INPUTS];
    for (int k = 0; k < j->s->ins; k++) at[k] = input_elements(j, p, r, k, first, n);
    if (j->direct) {
        for (int k = 0; k < j->s->outs; k++) direct_block(j, at, k, n, root);
        return;
    }
    interpreted_block(j, at, n, r);
    for (int k = 0; k < j->s->outs; k++) j->row[k]->halve(r->lanes + j->at[k], root + j->at[k], n);
}

/* ---- groups ---- */

/* Can panels be groups? */
static bool is_grouped(const reduce_work *j)
{
    bool in_place = true;
    for (int k = 0; k < j->s->ins; k++) in_place &= j->access[k] == IN_PLACE;
    return in_place && j->direct && !j->adjacent && j->n > 0 && j->n <= REDUCE_BLOCK;
}

static void group_outputs(const reduce_work *j, const panel *p, int64_t n, T *root)
{
    for (int k = 0; k < j->s->outs; k++) {
        const instruction *i = &j->s->program->code[k];
        const int output = i->arg[2].index;
        rows_of_outputs in[2];
        for (int a = 0; a < 2; a++) {
            const int x = i->arg[op_infos[i->op].arity > 1 ? a : 0].index;
            in[a] = (rows_of_outputs){ (const T *)p->in[x], row_stride(&j->kept_axes[x]) };
        }
        j->row[output]->group(root + j->at[output], in, n, p->width);
    }
}

/* ---- panels of adjacent outputs ---- */

/* Loads min(n, LANES) elements that are `adjacent` apart. */
static inline V load_strided(const T *from, int64_t adjacent, int64_t n)
{
    V v = { 0 };
    if (n < LANES)
        for (int64_t i = 0; i < n; i++) v[i] = from[i * adjacent];
    else
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) v[i] = from[i * adjacent];
    return v;
}

/* Copies LANES columns of `rows` rows, if the elements of an output are contiguous. Returns how many rows it
 * copied. */
static int64_t copy_tiles(T *to, const T *from, int64_t adjacent, int64_t rows, int64_t width)
{
    int64_t r = 0;
    for (; r + LANES <= rows; r += LANES) {
        const T *output[VECTOR_LANES];
        for (int i = 0; i < LANES; i++) output[i] = from + i * adjacent + r;
        transpose_tile(to + r * width, width, output);
    }
    return r;
}

/* Copies `rows` rows, each with one element of every output. */
static void copy_adjacent_rows(T *to, const T *from, int64_t row_step, int64_t adjacent, int64_t rows,
                               int64_t width)
{
    for (int64_t w = 0; w < width; w += LANES) {
        int64_t r = 0;
        if (row_step == 1 && w + LANES <= width)
            r = copy_tiles(to + w, from + w * adjacent, adjacent, rows, width);
        for (; r < rows; r++) {
            const V v = load_strided(from + r * row_step + w * adjacent, adjacent, width - w);
            if (w + LANES <= width) store_v(to + r * width + w, v);
            else memcpy(to + r * width + w, &v, (size_t)(width - w) * sizeof(T));
        }
    }
}

/* Copies rows of input k, and converts its type. */
static void copy_adjacent(const reduce_work *j, const thread_memory *r, int k, const char *from, int64_t rows,
                          int64_t width)
{
    const layout *l = &j->reduced[k];
    const int64_t row_step = row_stride(l), adjacent = row_stride(&j->kept_axes[k]),
                  bytes = (int64_t)dtypes[l->type].bytes;
    if (l->type == OWN_TYPE) copy_adjacent_rows(r->copy[k], (const T *)from, row_step, adjacent, rows, width);
    else
        for (int64_t i = 0; i < rows; i++)
            converters[l->type].in(r->copy[k] + i * width, from + i * row_step * bytes, adjacent, width);
}

/* Sets the addresses of the rows from element `first` on. Returns how many rows have one stride and
 * different lanes. */
static int64_t set_row_addresses(const reduce_work *j, const panel *p, const thread_memory *r, int64_t first,
                                 int64_t n, T *value[VALUES], int64_t row_step[VALUES])
{
    const int64_t length = row_length(&j->reduced[0]), column = first % length, lane = first % REDUCE_LANES;
    int64_t rows = SMALLER(SMALLER(n, length - column), REDUCE_LANES - lane);
    for (int k = 0; k < j->s->ins; k++)
        if (j->access[k] == COPIED || j->retry) rows = SMALLER(rows, COPIED_ROWS);
    for (int k = 0; k < j->s->ins; k++) {
        const int64_t distance = row_stride(&j->reduced[k]);
        const int64_t offset = row_iterator_at(&j->reduced[k], first / length).offset + column * distance;
        const char *from = p->in[k] + offset * (int64_t)dtypes[j->reduced[k].type].bytes;
        value[INPUTS + k] = (T *)from;
        row_step[INPUTS + k] = distance;
        if (j->access[k] != COPIED) continue;
        copy_adjacent(j, r, k, from, rows, p->width);
        value[INPUTS + k] = r->copy[k];
        row_step[INPUTS + k] = p->width;
    }
    for (int k = 0; k < j->s->outs; k++) {
        value[OUTPUTS + k] = r->lanes + lane * j->set_size + j->at[k];
        row_step[OUTPUTS + k] = j->set_size;
    }
    return rows;
}

/* Direct programs need no lanes in memory. */
static void direct_outputs(const reduce_work *j, const panel *p, const thread_memory *r, int64_t first,
                           int64_t n, T *root)
{
    rows_of_outputs at[STEP_INPUTS];
    for (int k = 0; k < j->s->ins; k++) {
        const int64_t distance = row_stride(&j->reduced[k]);
        const char *from = p->in[k] + first * distance * (int64_t)dtypes[j->reduced[k].type].bytes;
        at[k] = (rows_of_outputs){ (const T *)from, distance };
        if (j->access[k] == IN_PLACE) continue;
        copy_adjacent(j, r, k, from, n, p->width);
        at[k] = (rows_of_outputs){ r->copy[k], p->width };
    }
    for (int k = 0; k < j->s->outs; k++) {
        const instruction *i = &j->s->program->code[k];
        const int output = i->arg[2].index;
        const rows_of_outputs in[2] = { at[i->arg[0].index], at[i->arg[op_infos[i->op].arity - 1].index] };
        if (j->retry)
            j->row[output]->scaled_outputs(root, (rows_of_outputs[]){ in[0], { j->scale, 0 } }, n, p->width);
        else j->row[output]->outputs(root + j->at[output], in, n, p->width);
    }
}

/* Joins lanes by halving. MOMENT rows get their counts. */
static void join_lanes(const reduce_work *j, T *lane, int64_t n, int64_t width)
{
    int64_t used = SMALLER(n, REDUCE_LANES);
    T count[REDUCE_LANES];
    for (int64_t l = 0; l < used; l++) {
        count[l] = (T)lane_count(n, l);
        if (n > REDUCE_LANES) close_states_of_all(j, lane + l * j->set_size, width, lane_count(n, l));
    }
    for (int64_t h = REDUCE_LANES / 2; h > 0; used = SMALLER(used, h), h /= 2)
        for (int64_t l = 0; l < h && l + h < used; l++) {
            T *a = lane + l * j->set_size, *b = lane + (l + h) * j->set_size;
            for (int k = 0; k < j->s->outs; k++)
                j->row[k]->join_lanes(a + j->at[k], b + j->at[k], width, count[l], count[l + h]);
            count[l] += count[l + h];
        }
    for (int k = 0; k < j->s->outs; k++)
        if (j->row[k]->close) fill(lane + j->at[k] + (MOST_PARTS - 1) * REDUCE_LANES, (T)n, width);
}

/* The index of an element in its block is the number of its row. */
static void interpreted_outputs(const reduce_work *j, const panel *p, const thread_memory *r, int64_t first,
                                int64_t n, T *root)
{
    T *value[VALUES], row;
    int64_t row_step[VALUES] = { 0 };
    for (int64_t l = 0; l < SMALLER(n, REDUCE_LANES); l++)
        start_states_of_all(j, r->lanes + l * j->set_size, p->width);
    set_numbers(j, value);
    value[ROW] = &row;
    for (int64_t i = 0, rows; i < n; i += rows) {
        rows = set_row_addresses(j, p, r, first + i, n - i, value, row_step);
        row = (T)i;
        update_lanes(j, value, rows, p->width, row_step);
    }
    join_lanes(j, r->lanes, n, p->width);
    memcpy(root, r->lanes, (size_t)j->set_size * sizeof(T));
}

/* ---- both kinds of panels ---- */

/* Converts indices in the block to indices in the reduction. */
static void offset_indices(const reduce_work *j, T *root, int64_t first, int64_t width)
{
    for (int k = 0; k < j->s->outs; k++) {
        T *low = root + j->at[k] + REDUCE_LANES, *high = low + REDUCE_LANES;
        for (int64_t w = 0; w < width && j->row[k]->gives_index; w++) {
            low[w] += (T)(first % INDEX_HIGH);
            high[w] = (T)(first / INDEX_HIGH);
        }
    }
}

static void reduce_elements_of_block(const reduce_work *j, const panel *p, const thread_memory *r,
                                     int64_t first, int64_t n, T *root)
{
    if (j->adjacent && j->direct) direct_outputs(j, p, r, first, n, root);
    else if (j->adjacent) interpreted_outputs(j, p, r, first, n, root);
    else if (p->width > 1) group_outputs(j, p, n, root);
    else one_output_block(j, p, r, first, n, root);
}

#ifndef FORMULA_INTEGERS
/* The number of a state of norm, mean or var that may overflow. */
static inline int sum_part(const reduce_row *row) { return row->parts == 1 ? 0 : 2; }

/* Multiplies a state of mean or var: the count stays, squares are multiplied twice. */
static inline void scale_state(T *state, int parts, T factor)
{
    state[0] = state[0] * factor;
    if (parts == 1) return;
    state[REDUCE_LANES] = state[REDUCE_LANES] * factor;
    state[2 * REDUCE_LANES] = state[2 * REDUCE_LANES] * factor * factor;
}

/* A block in the second pass: the elements of the outputs whose sum is not finite are scaled. */
static __attribute__((noinline)) void reduce_block_again(const reduce_work *j, const panel *p,
                                                         const thread_memory *r, int64_t first, int64_t n,
                                                         T *root)
{
    T scaled[MOST_PARTS * REDUCE_LANES];
    const int parts = j->row[0]->parts;
    const T *sum = root + sum_part(j->row[0]) * REDUCE_LANES;
    bool finite = true;
    reduce_elements_of_block(j->as_is, p, r, first, n, root);
    for (int64_t w = 0; w < p->width; w++) finite &= ABS(sum[w]) < INF;
    if (!finite) reduce_elements_of_block(j, p, r, first, n, scaled);
    for (int64_t w = 0; w < p->width; w++)
        if (ABS(sum[w]) < INF) scale_state(root + w, parts, j->scale[w]);
        else EACH_PART(k, parts) root[k * REDUCE_LANES + w] = scaled[k * REDUCE_LANES + w];
}
#endif

static void reduce_one_block(const reduce_work *j, const panel *p, const thread_memory *r, int64_t block,
                             T *root)
{
    const int64_t first = block * REDUCE_BLOCK, n = SMALLER(REDUCE_BLOCK, j->n - first);
#ifndef FORMULA_INTEGERS
    if (j->retry && j->as_is) {
        reduce_block_again(j, p, r, first, n, root);
        return;
    }
#endif
    reduce_elements_of_block(j, p, r, first, n, root);
    if (block > 0) offset_indices(j, root, first, p->width);
}

#endif
