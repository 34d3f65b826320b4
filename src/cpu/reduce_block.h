/* reduce_block.h - programs that reduction: one block of the canonical tree. A template, of reduce_tmpl.c alone.
 *
 * A panel is some outputs that are reduced together; a set is the states (reduce_tree.h) of all reductions for a panel. Where the elements of an
 * output stand one after the other, a panel is that output, and the tile machine fills its lanes, a row of REDUCE_LANES at a time; a
 * program that reductions its inputs as they are needs no machine. Where neighbouring outputs stand one after the other instead, or there
 * is little to reduce, a panel is up to REDUCE_LANES outputs side by side, and a row one element of each: lane l of all of them is a
 * set. Inputs that stand otherwise, or are of another type, are copied first, a block at a time. */
#ifndef REDUCE_BLOCK_H
#define REDUCE_BLOCK_H

#include "converters.h"
#include "dtype.h"
#include "interp.h"
#include "reduce_rows.h"
#include "row_iterator.h"

#define COPIED_ROWS 32 /* of a panel of many, at a time */

_Static_assert(REDUCE_LANES == TILE_PART, "a state of many parts is the same to the tile machine");
_Static_assert(COPIED_ROWS *REDUCE_LANES == REDUCE_BLOCK, "a copy has one size");

enum manner { IN_PLACE, SINGLE, COPIED };

/* norm, once more: `front` leaves what is squared, which is multiplied by a factor for each output, and `norm` reductions that. */
typedef struct again {
    code front, norm;
    T factor[REDUCE_LANES];
} again;

/* A reduction, its layouts parted: along the reduced elements, and over the outputs, the panel's axis last. */
typedef struct job {
    const step *s;
    const reduce_row *row[STEP_OUTPUTS];
    int at[STEP_OUTPUTS],
        set;          /* elements: where in a set each reduction's states are, and how many there are */
    bool side, plain; /* many outputs side by side; no machine */
    enum manner manner[STEP_INPUTS];
    const char *in[STEP_INPUTS];
    char *out[STEP_OUTPUTS];
    T num[PROGRAM_NUMBERS];
    layout along[STEP_INPUTS], over[STEP_INPUTS + STEP_OUTPUTS];
    int64_t n, outputs, lanes; /* lanes: sets of a block */
    const code *code;
    again *again; /* NULL the first time */
} job;

typedef struct panel {
    const char *in[STEP_INPUTS];
    char *out[STEP_OUTPUTS];
    int64_t width;
} panel;

/* A thread's memory. */
typedef struct room {
    T *lanes, *root, *level, *copy[STEP_INPUTS], *run;
    int64_t each; /* elements, to the next thread's */
} room;

static bool converts(const job *j, int k) { return j->along[k].type != OWN_TYPE; }

/* ---- sets ---- */

static void start_set(const job *j, T *set, int64_t width)
{
    for (int k = 0; k < j->s->outs; k++)
        start_states(set + j->at[k], j->row[k]->start, j->row[k]->parts, width);
}

static void join_sets(const job *j, T *a, const T *b, int64_t width)
{
    for (int k = 0; k < j->s->outs; k++) j->row[k]->join(a + j->at[k], b + j->at[k], width);
}

/* ---- rows of elements ---- */

static void scale_rows(T *x, const T *factor, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n)
        for (int64_t i = 0; i < n; i++) x[i] *= factor[i];
}

static __attribute__((noinline)) void take_again(const again *a, T *value[VALUES], int64_t rows, int64_t n,
                                                 int64_t down[VALUES])
{
    T squared[REDUCE_BLOCK] __attribute__((aligned(64)));
    T *into[VALUES] = { [INPUTS] = squared, [OUTPUTS] = value[OUTPUTS] };
    const int64_t by[VALUES] = { [INPUTS] = n, [OUTPUTS] = down[OUTPUTS] };
    value[OUTPUTS] = squared, down[OUTPUTS] = n;
    tile_run(&a->front, value, rows, n, down);
    scale_rows(squared, a->factor, rows, n);
    tile_run(&a->norm, into, rows, n, by);
    value[OUTPUTS] = into[OUTPUTS], down[OUTPUTS] = by[OUTPUTS];
}

static void take_elements(const job *j, T *value[VALUES], int64_t rows, int64_t n, int64_t down[VALUES])
{
    if (j->again) take_again(j->again, value, rows, n, down);
    else if (rows > 0) tile_run(j->code, value, rows, n, down);
}

static void give_numbers(const job *j, T *value[VALUES])
{
    for (int k = 0; k < j->s->nums; k++) value[NUMBERS + k] = (T *)&j->num[k];
}

/* ---- one output, along its elements ---- */

/* Elements first .. first + n - 1 of an input, in row-major order. */
static void elements_in(T *to, const char *from, const layout *l, int64_t first, int64_t n)
{
    const int64_t length = row_length(l), bytes = (int64_t)dtypes[l->type].bytes;
    if (l->type == OWN_TYPE) {
        run_in(to, (const T *)from, l, first, n);
        return;
    }
    walk w = walk_to(l, first / length);
    for (int64_t col = first % length, some; n > 0; to += some, n -= some, col = 0, walk_on(&w, l)) {
        some = SMALLER(length - col, n);
        converters[l->type].in(to, from + (w.offset + col * row_stride(l)) * bytes, row_stride(l), some);
    }
}

/* n elements of input k, from the first on: where they are, or their copy. */
static const T *elements(const job *j, const panel *p, const room *r, int k, int64_t first, int64_t n)
{
    if (j->manner[k] == IN_PLACE) return (const T *)p->in[k] + first;
    if (j->manner[k] == SINGLE) return (const T *)p->in[k];
    elements_in(r->copy[k], p->in[k], &j->along[k], first, n);
    return r->copy[k];
}

/* Fold k of inputs as they are. */
static void block_plain(const job *j, const T *const at[], int k, int64_t n, T *root)
{
    T scaled[REDUCE_BLOCK];
    const instruction *i = &j->s->program->code[k];
    const int output = i->arg[2].index;
    const T *x = at[i->arg[0].index], *y = op_infos[i->op].arity > 1 ? at[i->arg[1].index] : x;
    if (j->again) {
        for (int64_t e = 0; e < n; e++) scaled[e] = x[e] * j->again->factor[0];
        x = scaled;
    }
    j->row[output]->block(root + j->at[output], x, y, n);
}

static void block_rows(const job *j, const T *const at[], int64_t n, const room *r)
{
    T *value[VALUES], row = 0;
    int64_t down[VALUES] = { 0 }, rows = n / REDUCE_LANES;
    start_set(j, r->lanes, REDUCE_LANES);
    give_numbers(j, value);
    value[ROW] = &row;
    for (int k = 0; k < j->s->ins; k++)
        value[INPUTS + k] = (T *)at[k], down[INPUTS + k] = j->manner[k] == SINGLE ? 0 : REDUCE_LANES;
    for (int k = 0; k < j->s->outs; k++) value[OUTPUTS + k] = r->lanes + j->at[k];
    take_elements(j, value, rows, REDUCE_LANES, down);
    for (int k = 0; k < j->s->ins; k++) value[INPUTS + k] += rows * down[INPUTS + k];
    row = (T)rows;
    if (n % REDUCE_LANES) take_elements(j, value, 1, n % REDUCE_LANES, down);
}

static void block_along(const job *j, const panel *p, const room *r, int64_t first, int64_t n, T *root)
{
    const T *at[STEP_INPUTS];
    for (int k = 0; k < j->s->ins; k++) at[k] = elements(j, p, r, k, first, n);
    if (j->plain) {
        for (int k = 0; k < j->s->outs; k++) block_plain(j, at, k, n, root);
        return;
    }
    block_rows(j, at, n, r);
    for (int k = 0; k < j->s->outs; k++) j->row[k]->halve(r->lanes + j->at[k], root + j->at[k]);
}

/* ---- many outputs, side by side ---- */

/* LANES outputs' elements, `side` apart; or fewer. */
static inline V get_apart(const T *from, int64_t side, int64_t n)
{
    V v = { 0 };
    if (n < LANES)
        for (int64_t i = 0; i < n; i++) v[i] = from[i * side];
    else
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) v[i] = from[i * side];
    return v;
}

/* A copy of `rows` rows, each one element of every output. */
static void rows_beside(T *to, const T *from, int64_t down, int64_t side, int64_t rows, int64_t width)
{
    for (int64_t w = 0; w < width; w += LANES)
        for (int64_t r = 0; r < rows; r++) {
            const V v = get_apart(from + r * down + w * side, side, width - w);
            if (w + LANES <= width) set(to + r * width + w, v);
            else memcpy(to + r * width + w, &v, (size_t)(width - w) * sizeof(T));
        }
}

/* The same of input k, of any type. */
static void copy_beside(const job *j, const room *r, int k, const char *from, int64_t rows, int64_t width)
{
    const layout *l = &j->along[k];
    const int64_t down = row_stride(l), side = row_stride(&j->over[k]),
                  bytes = (int64_t)dtypes[l->type].bytes;
    if (l->type == OWN_TYPE) rows_beside(r->copy[k], (const T *)from, down, side, rows, width);
    else
        for (int64_t i = 0; i < rows; i++)
            converters[l->type].in(r->copy[k] + i * width, from + i * down * bytes, side, width);
}

/* The rows from element `first` on, as they stand in memory or in a copy, that have lanes of their own and one stride. */
static int64_t place_rows(const job *j, const panel *p, const room *r, int64_t first, int64_t n,
                          T *value[VALUES], int64_t down[VALUES])
{
    const int64_t length = row_length(&j->along[0]), column = first % length, lane = first % REDUCE_LANES;
    int64_t rows = SMALLER(SMALLER(n, length - column), REDUCE_LANES - lane);
    for (int k = 0; k < j->s->ins; k++)
        if (j->manner[k] == COPIED || j->again) rows = SMALLER(rows, COPIED_ROWS);
    for (int k = 0; k < j->s->ins; k++) {
        const int64_t apart = row_stride(&j->along[k]);
        const int64_t offset = walk_to(&j->along[k], first / length).offset + column * apart;
        const char *from = p->in[k] + offset * (int64_t)dtypes[j->along[k].type].bytes;
        value[INPUTS + k] = (T *)from, down[INPUTS + k] = apart;
        if (j->manner[k] != COPIED) continue;
        copy_beside(j, r, k, from, rows, p->width);
        value[INPUTS + k] = r->copy[k], down[INPUTS + k] = p->width;
    }
    for (int k = 0; k < j->s->outs; k++)
        value[OUTPUTS + k] = r->lanes + lane * j->set + j->at[k], down[OUTPUTS + k] = j->set;
    return rows;
}

/* Inputs as they are need no lanes in memory. */
static void plain_beside(const job *j, const panel *p, const room *r, int64_t first, int64_t n, T *root)
{
    strip at[STEP_INPUTS];
    for (int k = 0; k < j->s->ins; k++) {
        const int64_t apart = row_stride(&j->along[k]);
        const char *from = p->in[k] + first * apart * (int64_t)dtypes[j->along[k].type].bytes;
        at[k] = (strip){ (const T *)from, apart };
        if (j->manner[k] == IN_PLACE) continue;
        copy_beside(j, r, k, from, n, p->width);
        at[k] = (strip){ r->copy[k], p->width };
    }
    for (int k = 0; k < j->s->outs; k++) {
        const instruction *i = &j->s->program->code[k];
        const int output = i->arg[2].index;
        const strip in[2] = { at[i->arg[0].index], at[i->arg[op_infos[i->op].arity - 1].index] };
        j->row[output]->outputs(root + j->at[output], in, n, p->width);
    }
}

/* The index of an element in its block is the number of its row. */
static void block_beside(const job *j, const panel *p, const room *r, int64_t first, int64_t n, T *root)
{
    T *value[VALUES], row;
    int64_t down[VALUES] = { 0 }, seen = SMALLER(n, REDUCE_LANES);
    for (int64_t l = 0; l < seen; l++) start_set(j, r->lanes + l * j->set, p->width);
    give_numbers(j, value);
    value[ROW] = &row;
    for (int64_t i = 0, rows; i < n; i += rows) {
        rows = place_rows(j, p, r, first + i, n - i, value, down);
        row = (T)i;
        take_elements(j, value, rows, p->width, down);
    }
    for (int64_t h = REDUCE_LANES / 2; h > 0; h /= 2) {
        for (int64_t l = 0; l < h && l + h < seen; l++)
            join_sets(j, r->lanes + l * j->set, r->lanes + (l + h) * j->set, p->width);
        seen = SMALLER(seen, h);
    }
    memcpy(root, r->lanes, (size_t)j->set * sizeof(T));
}

/* ---- either way ---- */

/* An index in the block is made one in the whole. */
static void index_states(const job *j, T *root, int64_t first, int64_t width)
{
    for (int k = 0; k < j->s->outs; k++) {
        T *low = root + j->at[k] + REDUCE_LANES, *high = low + REDUCE_LANES;
        for (int64_t w = 0; w < width && j->row[k]->place; w++)
            low[w] += (T)(first % INDEX_HIGH), high[w] = (T)(first / INDEX_HIGH);
    }
}

static void block_set(const job *j, const panel *p, const room *r, int64_t block, T *root)
{
    const int64_t first = block * REDUCE_BLOCK, n = SMALLER(REDUCE_BLOCK, j->n - first);
    if (j->side && j->plain) plain_beside(j, p, r, first, n, root);
    else if (j->side) block_beside(j, p, r, first, n, root);
    else block_along(j, p, r, first, n, root);
    if (block > 0) index_states(j, root, first, p->width);
}

#endif
