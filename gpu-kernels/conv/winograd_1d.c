/* winograd_1d.c - launches convolutions with 3 x 3 windows by Winograd's method, along columns
 * (winograd_1d.cu) or along both axes (winograd_2d.cu). It divides the results into strips and
 * distributes these over thread blocks (conv_kernels.h). */
#include "conv_kernels.h"
#include "dgrad_as_conv.h"
#include "joined.h"
#include "min_max.h"
#include <math.h>

#define WARPS   (CONV_THREADS / 32)
#define QUADS   8     /* groups of four columns in a strip, at most */
#define STAGE   16384 /* bytes of a stage, or one channel of one image */
#define FILTERS 61440 /* bytes of filters; with two stages less than the 99 KiB that every GPU has */
#define SHARED  (FILTERS + 2 * STAGE + 4096)
/* thread blocks: enough to occupy a GPU evenly, but few enough that each uses its filters for
 * several strips */
#define BLOCKS 792
/* warps that occupy a GPU; with fewer warps, each thread computes fewer outputs */
#define BUSY         (132 * WARPS * 2)
#define FILTER_BYTES (12 * sizeof(float)) /* bytes of one transformed window */

/* winograd_2d.cu is used if at least this many warps fit on a multiprocessor in addition to the
 * filters, and if there are strips for half of them */
#define WINOGRAD_2D_LEAST_WARPS 8

/* The size of the results before pooling, in pairs of rows and groups of four columns. Results that
 * pooling ignores do not count. */
typedef struct extent {
    int64_t rows, quads;
} extent;

static extent extent_of(const step *s)
{
    const int64_t *out = s->out[0].at.size, by = epilogue_infos[s->epilogue].pooled ? 2 : 1;
    return (extent){ quotient_up(out[2] * by, 2), quotient_up(out[3] * by, 4) };
}

/* Returns the number of outputs of a thread. More outputs mean fewer loads; fewer outputs mean more
 * warps. */
static int outputs_of(const step *s, extent e)
{
    const int64_t m = s->in[1].at.size[0], warps = quotient_up(s->in[0].at.size[0] * e.rows * e.quads, 32);
    if (m > 4 && warps * quotient_up(m, 8) >= BUSY) return 8;
    return m > 2 && warps * quotient_up(m, 4) >= BUSY / 2 ? 4 : 2;
}

/* Distributes the warps of a thread block over strips and outputs. As many warps as possible have
 * different outputs; the number of outputs and the space for their filters limit that. */
static void share_out(conv2d_args *a, int outputs)
{
    int64_t apart = WARPS;
    while (apart > 1 &&
           (apart / 2 * outputs >= a->m || apart * outputs * a->c * (int64_t)FILTER_BYTES > FILTERS))
        apart /= 2;
    a->along = (uint32_t)(WARPS / apart);
    a->width = (int32_t)apart * outputs;
    a->groups = divide_by32(quotient_up(a->m, a->width));
}

/* Returns a pitch with few bank conflicts: neighbouring pairs of rows are half of all banks apart. */
static int32_t pitch_of(int64_t quads)
{
    int64_t pitch = quotient_up(6 * quads, 4) * 4;
    while (pitch % 16 != (quads >= 4 ? 8 : 12)) pitch += 4;
    return (int32_t)pitch;
}

/* Chooses the area of a strip, then the numbers of images and channels in a stage. */
static void cut(conv2d_args *a, extent e)
{
    const int64_t lanes = 32 * (int64_t)a->along, across = quotient_up(e.quads, QUADS),
                  quads = quotient_up(e.quads, across);
    const int64_t down = quotient_up(e.rows, smaller(e.rows, lanes / quads)),
                  rows = quotient_up(e.rows, down), lines = 2 * rows + 2;
    a->pitch = pitch_of(quads);
    const int64_t plane = lines * a->pitch * (int64_t)sizeof(float), fitting = larger(STAGE / plane, 1);
    a->images =
        across == 1 && down == 1 ? (uint32_t)smaller(smaller(lanes / (rows * quads), fitting), a->n) : 1;
    const int64_t most = larger(fitting / a->images, 1), depth = quotient_up(a->c, quotient_up(a->c, most));
    a->rows = divide_by32(rows);
    a->quads = divide_by32(quads);
    a->lines = divide_by32(lines);
    a->depth = divide_by32(depth);
    a->across = divide_by32(across);
    a->down = divide_by32(down);
    a->positions = (uint32_t)(a->images * rows * quads);
    a->units = (uint32_t)(a->images * depth * lines * quads);
    a->stage = (int32_t)(a->images * depth * lines * a->pitch);
    a->strips = (uint32_t)(quotient_up(a->n, a->images) * down * across);
    a->walkers = (uint32_t)smaller(a->strips, larger(BLOCKS / a->groups.by, 1));
}

/* Can all rows of the images be read 16 bytes at a time? */
static bool in_vectors(const conv2d_args *a)
{
    return a->pad[1] == 1 && a->w % 4 == 0 && (uintptr_t)a->in % 16 == 0 &&
           (a->n == 1 || a->image % 4 == 0) && (a->c == 1 || a->channel % 4 == 0) &&
           (a->h == 1 || a->row % 4 == 0);
}

static conv2d_args args_of(const step *s, const joined *j, const frame *f, const workspace *w)
{
    const layout *in = &s->in[0].at, *filters = &s->in[1].at, *out = &s->out[0].at;
    const epilogue_info *epilogue = &epilogue_infos[s->epilogue];
    conv2d_args a = { .in = f->data[s->in[0].slot],
                      .filters = f->data[s->in[1].slot],
                      .out = joined_out(j, f->data[s->out[0].slot]) };
    a.n = in->size[0];
    a.c = (int32_t)in->size[1];
    a.h = (int32_t)in->size[2];
    a.w = (int32_t)in->size[3];
    a.image = in->stride[0];
    a.channel = (int32_t)in->stride[1];
    a.row = (int32_t)in->stride[2];
    a.m = (int32_t)out->size[1];
    a.out_h = (int32_t)out->size[2];
    a.out_w = (int32_t)out->size[3];
    for (int i = 0; i < 4; i++) a.filter[i] = filters->stride[i];
    for (int i = 0; i < 2; i++) a.pad[i] = s->attr.conv.pad[i];
    if (s->epilogue) {
        a.bias = f->data[s->in[2].slot];
        a.bias_stride = s->in[2].at.stride[0];
    }
    a.least = s->epilogue && epilogue->act == OP_relu ? 0 : -INFINITY;
    const int width = epilogue->pooled ? 2 : 4;
    a.wide = a.out_w % width == 0 && (uintptr_t)a.out % (sizeof(float) * (size_t)width) == 0;
    a.vectors = in_vectors(&a);
    a.filters_are_there =
        !may_be_written(w, a.filters, filters) && !(s->epilogue && may_be_written(w, a.bias, &s->in[2].at));
    return a;
}

/* The width of placeholders is that of complete groups of results. */
static product_launch_args launch_of(const step *s, conv2d_args *a)
{
    return (product_launch_args){
        .width = epilogue_infos[s->epilogue].pooled ? 2 : 4, .cluster = 1, .args = a, .bytes = sizeof *a
    };
}

static cudaError_t launch_columns(const step *s, joined *j, conv2d_args *a, cudaStream_t q)
{
    const extent e = extent_of(s);
    const int outputs = outputs_of(s, e), pooled = epilogue_infos[s->epilogue].pooled;
    product_launch_args l = launch_of(s, a);
    share_out(a, outputs);
    cut(a, e);
    l.kernel = conv2d_kernel_f32(outputs, pooled);
    l.file = JOINED_WINOGRAD_1D;
    l.number = (outputs == 2 ? 0 : outputs == 4 ? 1 : 2) + 3 * pooled;
    l.blocks = (int64_t)a->walkers * a->groups.by;
    l.threads = CONV_THREADS;
    l.shared =
        (size_t)a->c * (size_t)a->width * FILTER_BYTES + (size_t)(CONV_WIDTH + 2 * a->stage) * sizeof(float);
    l.shared_most = SHARED;
    return product_start(&l, j, q);
}

/* ---- along both axes (winograd_2d.cu) ---- */

/* Bytes of shared memory for the filters and the bias, which all warps share. */
static int64_t winograd_2d_filters(int64_t channels, int eights)
{
    return channels * eights * WINOGRAD_2D_FILTER + CONV_WIDTH * (int64_t)sizeof(float);
}

static int eights_of(const step *s) { return s->in[1].at.size[0] > 16 ? 4 : 2; }

/* The number of strips, which are 16 / eights pairs of tiles each. */
static int64_t winograd_2d_strips(const step *s)
{
    const extent e = extent_of(s);
    return quotient_up(s->in[0].at.size[0] * e.rows * e.quads * eights_of(s), 16);
}

/* The number of warps of a thread block for which there is shared memory in addition to the
 * filters. */
static int64_t winograd_2d_warps(const step *s)
{
    const int64_t fitting =
        (card().shared - winograd_2d_filters(s->in[0].at.size[1], eights_of(s))) / WINOGRAD_2D_OWN;
    return smaller(fitting, WINOGRAD_2D_WARPS);
}

/* Is winograd_2d.cu faster? It is not with few channels, because of the exchange of sums; with few
 * outputs, because of the transforms of the images; or with few strips, because of the filters.
 * Results that are not pooled must come in complete groups of four. */
static bool is_winograd_2d(const step *s, const conv2d_args *a)
{
    return a->c >= WINOGRAD_2D_CHANNELS && a->m >= WINOGRAD_2D_OUTPUTS &&
           (epilogue_infos[s->epilogue].pooled || a->out_w % 4 == 0) &&
           winograd_2d_warps(s) >= WINOGRAD_2D_LEAST_WARPS &&
           winograd_2d_strips(s) >= WINOGRAD_2D_LEAST_WARPS / 2 * card().blocks;
}

/* Launches one thread block for each multiprocessor. With few strips, thread blocks have fewer
 * warps. */
static cudaError_t launch_winograd_2d(const step *s, joined *j, conv2d_args *a, cudaStream_t q)
{
    const extent e = extent_of(s);
    const int eights = eights_of(s), pooled = epilogue_infos[s->epilogue].pooled;
    product_launch_args l = launch_of(s, a);
    a->width = 8 * eights;
    a->groups = divide_by32(quotient_up(a->m, a->width));
    a->quads = divide_by32(e.quads);
    a->rows = divide_by32(e.rows);
    a->positions = (uint32_t)(a->n * e.rows * e.quads);
    a->strips = (uint32_t)winograd_2d_strips(s);
    const int64_t blocks = card().blocks > (int)a->groups.by ? card().blocks / a->groups.by : 1;
    const int64_t warps = smaller(winograd_2d_warps(s), quotient_up(a->strips, blocks));
    a->walkers = (uint32_t)smaller(blocks, quotient_up(a->strips, warps));
    l.kernel = winograd_2d_kernel_f32(eights, pooled);
    l.file = JOINED_WINOGRAD_2D;
    l.number = (eights != 2) + 2 * pooled;
    l.blocks = (int64_t)a->walkers * a->groups.by;
    l.threads = (int)warps * 32;
    l.shared = (size_t)(winograd_2d_filters(a->c, eights) + warps * WINOGRAD_2D_OWN);
    l.shared_most = (size_t)card().shared;
    return product_start(&l, j, q);
}

cudaError_t conv2d_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q)
{
    conv2d_args a = args_of(s, j, f, w);
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    if (is_winograd_2d(s, &a)) return launch_winograd_2d(s, j, &a, q);
    return launch_columns(s, j, &a, q);
}

cudaError_t conv2d_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    return conv2d_join(s, NULL, f, w, q);
}

/* Computes a gradient of images as a convolution (dgrad_as_conv.h). The kernel reads the rotated
 * filters in place, with negative strides. */
cudaError_t input_grad_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    int64_t last;
    step t = dgrad_as_conv(s, &last);
    void *data[] = { f->data[s->out[0].slot], f->data[s->in[0].slot],
                     (float *)f->data[s->in[1].slot] + last };
    t.out[0].slot = 0;
    t.in[0].slot = 1;
    t.in[1].slot = 2;
    return conv2d_launch(&t, &(frame){ .data = data, .queue = f->queue }, w, q);
}
