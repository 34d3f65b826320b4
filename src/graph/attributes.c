/* attributes.c - reads the options of a node into the typed attributes of a value, by a table with a
 * function for each kind of options that ops.def names. A second table replaces operators that backends
 * implement as another operator with different attributes. */
#include "canonicalize.h"
#include <string.h>

typedef void reader(const node *n, attributes *a);

static void read_plain(const node *n, attributes *a) {}
static void read_reduce(const node *n, attributes *a) { a->reduce = n->attr.reduce; }
static void read_collective(const node *n, attributes *a) { a->collective = n->attr.collective; }
static void read_hole(const node *n, attributes *a) { a->hole = n->attr.hole; }
static void read_axis(const node *n, attributes *a) { a->index = n->attr.index; }
static void read_type(const node *n, attributes *a) { a->cast = n->attr.cast; }
static void read_classes(const node *n, attributes *a) { a->one_hot = n->attr.one_hot; }
static void read_top(const node *n, attributes *a)
{
    a->index = n->attr.index;
    a->index.smallest = n->op == OP_bottom_k || n->op == OP_bottom_k_indices;
}
static void read_solver(const node *n, attributes *a) { a->solver = n->attr.solver; }
static void read_triangle(const node *n, attributes *a) { a->triangle = n->attr.triangle; }
static void read_indices(const node *n, attributes *a) { a->einsum = n->attr.einsum; }

static void read_turned(const node *n, attributes *a) { a->csr.transposed = n->attr.turned; }

static void read_csr(const node *n, attributes *a)
{
    a->csr.columns = pair_of_words(n->attr.csr.columns);
    a->csr.transposed = n->attr.csr.transposed;
}

/* views.c reads these. */
#define read_sizes  read_plain
#define read_order  read_plain
#define read_range  read_plain
#define read_offset read_plain
#define read_window read_plain

static void read_bins(const node *n, attributes *a)
{
    const histogram_words *words = &n->attr.histogram;
    memcpy(&a->histogram.low, words->low, sizeof a->histogram.low);
    memcpy(&a->histogram.high, words->high, sizeof a->histogram.high);
    a->histogram.bins = words->bins;
}

static void read_overlap(const node *n, attributes *a)
{
    a->overlap.part = n->attr.overlap.part;
    a->overlap.reverse = n->op == OP_fftcorrelate;
}

static void read_fourier(const node *n, attributes *a)
{
    static const uint8_t kinds[OPS_ALL] = {
        [OP_fftn] = FOURIER_FORWARD,        [OP_ifftn] = FOURIER_INVERSE, [OP_rfftn] = FOURIER_REAL,
        [OP_irfftn] = FOURIER_REAL_INVERSE, [OP_ifftshift] = 1,
    };
    a->fourier = n->attr.fourier;
    a->fourier.kind = kinds[n->op];
}

/* Read an option for each of the last `axes` of depth, height and width. The other axes get `none`.
 * Returns the words that follow. */
static const int32_t *read_each(const int32_t *words, int axes, int32_t none, int32_t to[SPATIAL_AXES])
{
    for (int i = 0; i < SPATIAL_AXES; i++) to[i] = none;
    for (int i = 0; i < axes; i++) to[spatial_axis(i, axes)] = words[i];
    return words + axes;
}

/* sized: the options contain the size of the result, which is skipped: the value has it. */
static void read_convolution(const node *n, int axes, bool sized, attributes *a)
{
    conv_attributes *conv = &a->conv;
    const int32_t *words = read_each(n->attr.word, axes, 1, conv->stride);
    words = read_each(words, axes, 0, conv->pad);
    words = read_each(words, axes, 1, conv->dilation);
    conv->groups = *words++;
    read_each(sized ? words + axes : words, axes, 0, conv->pad_end);
    conv->flip = n->op == OP_convolve1d || n->op == OP_convolve2d || n->op == OP_convolve3d;
}

static void read_pooling(const node *n, int axes, attributes *a)
{
    const int32_t *words = read_each(n->attr.word, axes, 1, a->pool.window);
    words = read_each(words, axes, 1, a->pool.stride);
    read_each(words, axes, 0, a->pool.pad);
}

#define READ_AXES(n, axes)                                                                                   \
    static void read_conv##n(const node *x, attributes *a) { read_convolution(x, axes, false, a); }          \
    static void read_conv##n##_grad(const node *x, attributes *a) { read_convolution(x, axes, true, a); }    \
    static void read_conv##n##_transposed(const node *x, attributes *a)                                      \
    {                                                                                                        \
        read_convolution(x, axes, true, a);                                                                  \
    }                                                                                                        \
    static void read_pool##n(const node *x, attributes *a) { read_pooling(x, axes, a); }                     \
    static void read_pool##n##_grad(const node *x, attributes *a) { read_pooling(x, axes, a); }              \
    static void read_scale##n(const node *x, attributes *a)                                                  \
    {                                                                                                        \
        read_each(x->attr.word, axes, 1, a->pool.window);                                                    \
    }
READ_AXES(1, 1)
READ_AXES(, 2)
READ_AXES(3, 3)

static reader *const readers[OPS_ALL] = {
#define DUET_FOLD1(name, ...)         [OP_##name] = read_reduce,
#define DUET_FOLD2                    DUET_FOLD1
#define DUET_MOMENT1                  DUET_FOLD1
#define DUET_PLACE1                   DUET_FOLD1
#define DUET_DEF1(name, options, ...) [OP_##name] = read_##options,
#define DUET_DEF2                     DUET_DEF1
#define DUET_CALL1                    DUET_DEF1
#define DUET_CALL2                    DUET_DEF1
#define DUET_CALL3                    DUET_DEF1
#include <duet/ops.def>
    [OP_collective] = read_collective,
    [OP_HOLE] = read_hole,
    [OP_HOLE_NUMBER] = read_hole,
};

void read_attributes(const node *n, attributes *a)
{
    if (readers[n->op]) readers[n->op](n, a);
}

/* Operators that are replaced by another one. */
static const uint8_t same_kernel[OPS_ALL] = {
    [OP_conv_transpose2d] = OP_conv2d_input_grad,
    [OP_convolve2d] = OP_conv2d,
    [OP_ifftn] = OP_fftn,
    [OP_rfftn] = OP_fftn,
    [OP_irfftn] = OP_fftn,
    [OP_ifftshift] = OP_fftshift,
    [OP_fftcorrelate] = OP_fftconvolve,
    [OP_bottom_k] = OP_top_k,
    [OP_bottom_k_indices] = OP_top_k_indices,
};

enum op canonical_operator(enum op op) { return same_kernel[op] ? (enum op)same_kernel[op] : op; }
