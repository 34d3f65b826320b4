/* wgrad.h - index computations of the gradient with respect to 3 x 3 filters. wgrad.cu and a test
 * on the host (tests/conformance/test_wgrad.c) share them. Operand 0 is the images, operand 1 the
 * gradient of the results.
 *
 * A thread block has a tile of the filters (some channels and some groups of eight outputs) and a
 * part of the pixels of the results. A part consists of strips: rows and columns of one image. The
 * thread block loads the strips of both operands into shared memory, four columns at a time. A
 * thread has one channel and eight outputs at all nine positions of the window, and sums over every
 * n-th group of four pixels. */
#ifndef FILTER_GRAD_H
#define FILTER_GRAD_H

#include "launch.h"
#ifndef FN_DECL
#define FN_DECL          static inline
#define QUOTIENT32(n, d) ((n) / (d).by)
#else
#define QUOTIENT32(n, d) quotient(n, d)
#endif

/* ---- the work of a thread block ---- */

typedef struct filter_errand {
    uint32_t first, end;     /* strips */
    int32_t channel, output; /* first channel and output of the tile */
} filter_errand;

FN_DECL filter_errand filter_errand_of(const filter_grad_args *a, uint32_t block)
{
    const uint32_t tile = QUOTIENT32(block, a->parts), down = QUOTIENT32(tile, a->tiles),
                   first = (block - tile * a->parts.by) * a->each;
    const filter_errand e = { first, first + a->each < a->strips ? first + a->each : a->strips,
                              (int32_t)((tile - down * a->tiles.by) << a->channel_bits),
                              (int32_t)(down << (a->eight_bits + 3)) };
    return e;
}

/* A strip, and its numbers of rows and columns of results. */
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

/* The number of groups of four columns in the part of a strip of operand k. */
FN_DECL uint32_t filter_units(const filter_grad_args *a, int k)
{
    return a->channels[k] * a->lines[k].by * a->fours[k].by;
}

/* One group: its position in the stage, in elements; its first element in the image; and whether
 * its channel and row exist. */
typedef struct filter_unit {
    int32_t place, column;
    int64_t from;
    bool is;
} filter_unit;

FN_DECL filter_unit filter_unit_of(const filter_grad_args *a, int k, const filter_errand *e,
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
    /* channel and group of outputs in the tile; number of the thread among those that share both */
    uint32_t channel, eight, split;
} filter_share;

FN_DECL filter_share filter_share_of(const filter_grad_args *a, uint32_t thread)
{
    const filter_share s = { thread & ((1u << a->channel_bits) - 1),
                             thread >> a->channel_bits & ((1u << a->eight_bits) - 1),
                             thread >> (a->channel_bits + a->eight_bits) };
    return s;
}

/* Offsets of the channel of a thread and of its first output in a stage. Its next output is `apart`
 * elements further; neighbouring groups of eight interleave. */
typedef struct filter_place {
    int32_t x, dy;
} filter_place;

FN_DECL filter_place filter_place_of(const filter_grad_args *a, const filter_share *t)
{
    const filter_place p = { (int32_t)t->channel * a->plane[0] + 4 * a->pad[1],
                             a->second + (int32_t)t->eight * a->plane[1] };
    return p;
}

/* A group of pixels of a strip: its offset, and its number of pixels, at most 4; 0 or less: none.
 * For the images, the offset is that of the four columns which contain the first pixel. */
typedef struct filter_group {
    int32_t x, dy, pixels;
} filter_group;

FN_DECL uint32_t filter_groups(const filter_grad_args *a, const filter_strip *s)
{
    return (uint32_t)s->rows * a->fours[1].by;
}

/* Lines of the gradient are contiguous; lines of the images also contain the neighbouring columns. */
FN_DECL filter_group filter_group_of(const filter_grad_args *a, const filter_strip *s, uint32_t g)
{
    const int32_t row = (int32_t)QUOTIENT32(g, a->fours[1]),
                  rest = s->columns - 4 * ((int32_t)g - row * (int32_t)a->fours[1].by);
    const filter_group group = { 4 * (int32_t)g + row * (a->pitch[0] - a->pitch[1]), 4 * (int32_t)g,
                                 rest < 4 ? rest : 4 };
    return group;
}

/* ---- results ---- */

/* The element of the filters that sum i of a tile belongs to, or -1. Sum i is number i / tasks of
 * the thread with task i % tasks. */
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
