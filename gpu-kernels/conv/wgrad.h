/* wgrad.h - index computations of the gradient with respect to 3 x 3 filters. wgrad.cu and a test
 * on the host (tests/conformance/test_wgrad.c) share them. Operand 0 is the images, operand 1 the
 * gradient of the results.
 *
 * A thread block computes a tile of the filters over a part of the pixels. A tile is some channels
 * and some groups of eight outputs. A part consists of strips; a strip is a rectangle of pixels of
 * one image. The thread block loads a strip of both operands into shared memory. A task is one
 * channel with eight outputs, at all nine positions of the window. `splits` threads share a task:
 * each sums over every splits-th group of four pixels. */
#ifndef WGRAD_H
#define WGRAD_H

#include "conv_kernels.h"
#ifndef FN_DECL
#define FN_DECL          static inline
#define QUOTIENT32(n, d) ((n) / (d).by)
#else
#define QUOTIENT32(n, d) quotient(n, d)
#endif

/* ---- the work of a thread block ---- */

typedef struct filter_work {
    uint32_t first, end;     /* strips first .. end - 1 */
    int32_t channel, output; /* first channel and first output of the tile */
} filter_work;

FN_DECL filter_work filter_work_of(const filter_grad_args *a, uint32_t block)
{
    const uint32_t tile = QUOTIENT32(block, a->parts), down = QUOTIENT32(tile, a->tiles),
                   first = (block - tile * a->parts.by) * a->each;
    const filter_work e = { first, first + a->each < a->strips ? first + a->each : a->strips,
                            (int32_t)((tile - down * a->tiles.by) << a->channel_bits),
                            (int32_t)(down << (a->eight_bits + 3)) };
    return e;
}

/* A strip: its image, its first row and column, and its numbers of rows and columns. All of them
 * count pixels of the results. */
typedef struct filter_strip {
    int64_t image;
    int32_t row, column, rows, columns;
} filter_strip;

FN_DECL filter_strip filter_strip_of(const filter_grad_args *a, uint32_t s)
{
    const uint32_t line = QUOTIENT32(s, a->across), image = QUOTIENT32(line, a->down);
    const int32_t row = (int32_t)(line - image * a->down.by) * a->rows,
                  column = (int32_t)(s - line * a->across.by) * a->columns;
    const filter_strip at = { (int64_t)image, row, column,
                              a->out_h - row < a->rows ? a->out_h - row : a->rows,
                              a->out_w - column < a->columns ? a->out_w - column : a->columns };
    return at;
}

/* ---- loading ---- */

/* The number of units of operand k in a strip. A unit is four neighbouring columns of one line of
 * one channel. */
FN_DECL uint32_t filter_units(const filter_grad_args *a, int k)
{
    return a->channels[k] * a->lines[k].by * a->fours[k].by;
}

typedef struct filter_unit {
    int32_t place;  /* offset in the stage, in elements */
    int32_t column; /* first column */
    int64_t from;   /* offset of the first element in the image */
    bool is;        /* do its channel and its row exist? */
} filter_unit;

FN_DECL filter_unit filter_unit_of(const filter_grad_args *a, int k, const filter_work *e,
                                   const filter_strip *s, uint32_t u)
{
    const uint32_t line = QUOTIENT32(u, a->fours[k]), channel = QUOTIENT32(line, a->lines[k]),
                   four = u - line * a->fours[k].by, down = line - channel * a->lines[k].by;
    const int32_t c = (k ? e->output : e->channel) + (int32_t)channel,
                  row = s->row + (int32_t)down - (k ? 0 : a->pad[0]),
                  column = s->column + 4 * ((int32_t)four - (k ? 0 : a->pad[1]));
    const filter_unit unit = { (k ? a->second : 0) + (int32_t)channel * a->plane[k] +
                                   (int32_t)down * a->pitch[k] + 4 * (int32_t)four,
                               column,
                               c * (int64_t)a->stride[k][0] + row * (int64_t)a->stride[k][1] +
                                   column * (int64_t)a->stride[k][2],
                               c < (k ? a->m : a->c) && (uint32_t)row < (uint32_t)(k ? a->out_h : a->h) };
    return unit;
}

/* ---- the work of a thread ---- */

typedef struct filter_share {
    uint32_t channel, eight; /* the task: a channel and a group of eight outputs of the tile */
    uint32_t split;          /* number of the thread among those that share the task */
} filter_share;

FN_DECL filter_share filter_share_of(const filter_grad_args *a, uint32_t thread)
{
    const filter_share s = { thread & ((1u << a->channel_bits) - 1),
                             thread >> a->channel_bits & ((1u << a->eight_bits) - 1),
                             thread >> (a->channel_bits + a->eight_bits) };
    return s;
}

/* Offsets in a stage: x is that of the channel of a thread, dy that of its first output. The next
 * output of the thread is `apart` elements further, because the outputs of neighbouring groups of
 * eight alternate. */
typedef struct filter_offsets {
    int32_t x, dy;
} filter_offsets;

FN_DECL filter_offsets filter_offsets_of(const filter_grad_args *a, const filter_share *t)
{
    const filter_offsets p = { (int32_t)t->channel * a->plane[0] + 4 * a->pad[1],
                               a->second + (int32_t)t->eight * a->plane[1] };
    return p;
}

/* A group of four neighbouring pixels of a strip. */
typedef struct filter_group {
    int32_t x, dy;  /* offsets of its first column in both operands */
    int32_t pixels; /* the number of its pixels that exist, at most 4; it may be negative */
} filter_group;

FN_DECL uint32_t filter_groups(const filter_grad_args *a, const filter_strip *s)
{
    return (uint32_t)s->rows * a->fours[1].by;
}

/* A line of the images is longer than one of the gradient, because it also contains the columns
 * next to the strip. */
FN_DECL filter_group filter_group_of(const filter_grad_args *a, const filter_strip *s, uint32_t g)
{
    const int32_t row = (int32_t)QUOTIENT32(g, a->fours[1]),
                  rest = s->columns - 4 * ((int32_t)g - row * (int32_t)a->fours[1].by);
    const filter_group group = { 4 * (int32_t)g + row * (a->pitch[0] - a->pitch[1]), 4 * (int32_t)g,
                                 rest < 4 ? rest : 4 };
    return group;
}

/* ---- results ---- */

/* Returns the index of the filter element to which sum i of a tile belongs, or -1 if this element
 * does not exist. Sum i is sum number i / tasks of task i % tasks. */
FN_DECL int64_t filter_element(const filter_grad_args *a, uint32_t tile, uint32_t i)
{
    const uint32_t bits = a->channel_bits + a->eight_bits, own = i >> bits, o = own / 9;
    const filter_share t = filter_share_of(a, i & ((1u << bits) - 1));
    const uint32_t down = QUOTIENT32(tile, a->tiles);
    const int32_t c = (int32_t)(((tile - down * a->tiles.by) << a->channel_bits) + t.channel),
                  m = (int32_t)((down << (a->eight_bits + 3)) + (o << a->eight_bits) + t.eight);
    return c < a->c && m < a->m ? ((int64_t)m * a->c + c) * 9 + own % 9 : -1;
}

#endif
