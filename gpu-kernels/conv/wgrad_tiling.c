/* wgrad_tiling.c - which gradients of filters the kernels support, and how the work is divided
 * (wgrad.h describes the parts). The division determines the order of the sums. It depends on the
 * shape alone, so that the same step has the same bits on every GPU. This file does not need CUDA:
 * a test (tests/conformance/test_wgrad.c) and the fake CUDA of the tests use it too. */
#include "min_max.h"
#include "wgrad.h"
#include <math.h>
#include <stdlib.h>

/* The cost model counts instructions of one thread. */
#define MULTIPROCESSORS 132  /* of a large GPU */
#define GROUP           340  /* for a group of four pixels */
#define UNIT            20   /* for loading four elements at once */
#define UNIT_APART      48   /* for loading four elements one by one */
#define STRIP           150  /* for a strip, in addition to its groups and units */
#define BEGIN           1500 /* before and after the strips of a part */
#define SUM             0.12 /* for storing the sums of one task; all thread blocks count */
/* a thread block that is alone on its multiprocessor takes longer by this factor, because no other
 * one runs while it waits */
#define ALONE 1.25

/* Returns log2 of the size of a tile along one axis of `count` elements: the smallest power of two
 * that is at least `count`, but at most 2^most. If 2^most is reached and tiles of half that size
 * leave fewer elements unused, it returns most - 1. */
static uint32_t bits_of(int64_t count, uint32_t most)
{
    uint32_t b = 0;
    while (b < most && (int64_t)1 << b < count) b++;
    const int64_t all = (int64_t)1 << b, half = all / 2;
    return b == most && quotient_up(count, half) * half < quotient_up(count, all) * all ? b - 1 : b;
}

/* The distance between planes is an odd multiple of four elements, so that lanes that read
 * different planes cause few bank conflicts. */
static int64_t plane_of(int64_t elements) { return elements / 4 % 2 ? elements : elements + 4; }
static int64_t pitch_of(const filter_grad_args *a, int k, int64_t columns)
{
    return columns + (k ? 0 : 4 + 4 * a->pad[1]);
}
static int64_t plane(const filter_grad_args *a, int k, int64_t rows, int64_t columns)
{
    return plane_of((rows + (k ? 0 : 2)) * pitch_of(a, k, columns));
}

static int64_t stage_of(const filter_grad_args *a, int64_t rows, int64_t columns)
{
    return (int64_t)a->channels[0] * plane(a, 0, rows, columns) +
           (int64_t)a->channels[1] * plane(a, 1, rows, columns);
}

/* Returns the number of columns of a strip: the columns of the results, divided evenly into as few
 * strips as possible. A strip of one row then fits into a stage. */
static int64_t columns_of(const filter_grad_args *a)
{
    const int64_t c = a->channels[0], m = a->channels[1];
    const int64_t most = (FILTER_STAGE - c * (3 * pitch_of(a, 0, 0) + 4) - m * 4) / (3 * c + m) / 4 * 4;
    return quotient_up(quotient_up(a->out_w, quotient_up(a->out_w, most)), 4) * 4;
}

/* A division of the pixels into strips and parts, and its cost. */
typedef struct tiling {
    int64_t rows, columns, strips, each, parts;
    double cost;
} tiling;

/* The cost of one strip. It does not depend on addresses, because the same bits must result for
 * every address. */
static double strip_cost(const filter_grad_args *a, int64_t rows, int64_t columns)
{
    double cost = STRIP + GROUP * (double)quotient_up(rows * columns / 4, a->splits);
    for (int k = 0; k < 2; k++) {
        const int64_t units = a->channels[k] * (rows + (k ? 0 : 2)) * pitch_of(a, k, columns) / 4;
        const bool in_fours = (k ? a->out_w : a->w) % 4 == 0;
        cost += (double)quotient_up(units, FILTER_THREADS) * (in_fours ? UNIT : UNIT_APART);
    }
    return cost;
}

/* Returns the division for `blocks` thread blocks per multiprocessor, or for fewer if there are too
 * few strips. */
static tiling tiling_for(const filter_grad_args *a, int64_t tiles, int64_t rows, int64_t columns,
                         int64_t blocks)
{
    tiling c = { .rows = rows, .columns = columns };
    const int64_t wanted = MULTIPROCESSORS * blocks / tiles;
    c.strips = a->n * quotient_up(a->out_h, rows) * quotient_up(a->out_w, columns);
    c.each = quotient_up(c.strips, larger(wanted, 1));
    c.parts = quotient_up(c.strips, c.each);
    const double turns = (double)quotient_up(c.parts * tiles, MULTIPROCESSORS);
    c.cost = BEGIN + (turns > 1 ? turns : ALONE) * (double)c.each * strip_cost(a, rows, columns) +
             SUM * (double)(c.parts * tiles * a->tasks);
    return c;
}

static tiling cheapest(const filter_grad_args *a, int64_t tiles)
{
    const int64_t columns = columns_of(a);
    tiling best = { .cost = INFINITY };
    for (int64_t r = 1, rows = 0; rows < a->out_h; r += 1 + r / 4) {
        rows = quotient_up(a->out_h, quotient_up(a->out_h, r));
        if (stage_of(a, rows, columns) > FILTER_STAGE) break;
        for (int64_t blocks = 1; blocks <= 2; blocks++) {
            const tiling c = tiling_for(a, tiles, rows, columns, blocks);
            if (c.cost < best.cost) best = c;
        }
    }
    return best;
}

static void set_strips(filter_grad_args *a, const tiling *c)
{
    a->rows = (int32_t)c->rows;
    a->columns = (int32_t)c->columns;
    a->strips = (uint32_t)c->strips;
    a->each = (uint32_t)c->each;
    a->parts = divide_by32(c->parts);
    a->down = divide_by32(quotient_up(a->out_h, c->rows));
    a->across = divide_by32(quotient_up(a->out_w, c->columns));
    for (int k = 0; k < 2; k++) {
        a->pitch[k] = (int32_t)pitch_of(a, k, c->columns);
        a->plane[k] = (int32_t)plane(a, k, c->rows, c->columns);
        a->fours[k] = divide_by32(a->pitch[k] / 4);
        a->lines[k] = divide_by32(c->rows + (k ? 0 : 2));
    }
    a->second = (int32_t)a->channels[0] * a->plane[0];
    a->apart = a->plane[1] << a->eight_bits;
    a->stage = a->second + (int32_t)a->channels[1] * a->plane[1];
}

/* Can all rows of an operand be read 16 bytes at a time? */
static bool in_vectors(const layout *l, const void *p)
{
    bool is = l->size[3] % 4 == 0 && l->stride[3] == 1 && (uintptr_t)p % 16 == 0;
    for (int i = 0; i < 3; i++) is &= l->size[i] == 1 || l->stride[i] % 4 == 0;
    return is;
}

static filter_grad_args of_operands(const step *s, const void *x, const void *dy)
{
    const layout *l[] = { &s->in[0].at, &s->in[1].at };
    filter_grad_args a = {
        .x = x, .dy = dy, .n = l[0]->size[0], .c = (int32_t)l[0]->size[1], .m = (int32_t)l[1]->size[1]
    };
    a.h = (int32_t)l[0]->size[2];
    a.w = (int32_t)l[0]->size[3];
    a.out_h = (int32_t)l[1]->size[2];
    a.out_w = (int32_t)l[1]->size[3];
    for (int i = 0; i < 2; i++) a.pad[i] = s->attr.conv.pad[i];
    for (int k = 0; k < 2; k++) {
        a.image[k] = l[k]->stride[0];
        a.vectors[k] = in_vectors(l[k], k ? dy : x);
        for (int i = 0; i < 3; i++) a.stride[k][i] = (int32_t)l[k]->stride[1 + i];
    }
    return a;
}

static void set_tile(filter_grad_args *a)
{
    a->channel_bits = bits_of(a->c, FILTER_CHANNEL_BITS);
    a->eight_bits = bits_of(quotient_up(a->m, 8), FILTER_EIGHT_BITS);
    a->channels[0] = 1u << a->channel_bits;
    a->channels[1] = 8u << a->eight_bits;
    a->tasks = 1u << (a->channel_bits + a->eight_bits);
    a->splits = FILTER_THREADS / a->tasks;
    a->tiles = divide_by32(quotient_up(a->c, a->channels[0]));
    a->filters = a->tiles.by * (uint32_t)quotient_up(a->m, a->channels[1]);
    a->sums = divide_by32(FILTER_SUMS * a->tasks);
}

/* If the images have no pixels, the result has no strips and no parts. */
filter_grad_args filter_grad_tiling(const step *s, const void *x, const void *dy)
{
    filter_grad_args a = of_operands(s, x, dy);
    set_tile(&a);
    if (a.n == 0 || a.filters == 0) return a;
    const tiling c = cheapest(&a, a.filters);
    set_strips(&a, &c);
    return a;
}

/* Returns 0 for steps that run on cuDNN instead. */
size_t filter_grad_workspace(const step *s)
{
    if (filter_grad_unsupported(s)) return 0;
    const filter_grad_args a = filter_grad_tiling(s, NULL, NULL);
    return (size_t)a.filters * a.parts.by * a.sums.by * sizeof(float);
}

/* ---- supported steps ---- */

/* Do 32-bit integers suffice for the strides of rows, columns and channels, for the number of pixels
 * and for the number of sums? */
static bool filter_grad_is_small(const layout *x, const layout *dy)
{
    const layout *all[] = { x, dy };
    const int64_t most = INT32_MAX / 4;
    for (int k = 0; k < 2; k++)
        for (int a = 1; a < 4; a++)
            if (all[k]->size[a] > most / 4 || llabs(all[k]->stride[a]) > most) return false;
    return x->size[1] + 32 < most / 9 / (dy->size[1] + 64) &&
           x->size[0] <= most / ((dy->size[2] + 1) * (dy->size[3] + 1));
}

#define FILTER_STRICT 1e9 /* with fewer products than this, tensor cores are not faster */

/* Does the math mode allow cuDNN to use tensor cores, and is there enough work for them? */
static bool may_be_rounded(const step *s)
{
    const bool is_permitted = s->math == DUET_MATH_TF32 || s->math == DUET_MATH_BF16;
    return is_permitted &&
           (double)layout_count(&s->in[1].at) * (double)s->in[0].at.size[1] * 9 > FILTER_STRICT;
}

const char *filter_grad_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    const layout *x = &s->in[0].at, *filters = &s->out[0].at;
    REJECT(x->type != DUET_F32, "the elements must be f32");
    REJECT(x->rank != 4, "the images must have 2 spatial axes");
    REJECT(filters->size[2] != 3 || filters->size[3] != 3, "the filters must be 3 x 3");
    REJECT(conv_has_strides(s) || !conv_is_plain(s),
           "the convolution must have no strides, dilation or groups");
    for (int a = 0; a < 2; a++)
        REJECT(s->attr.conv.pad[a] < 0 || s->attr.conv.pad[a] > 1, "the padding must be at most 1");
    REJECT(may_be_rounded(s), "the math mode lets cuDNN compute this faster in reduced precision");
    REJECT(!filter_grad_is_small(x, &s->in[1].at), "the images are too large for 32-bit indices");
    return NULL;
}
