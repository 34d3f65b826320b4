/* conv_kernels.h - the kernels of pooling, convolutions and their gradients. */
#ifndef CONV_KERNELS_H
#define CONV_KERNELS_H

#include "fast_divide.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define POOL_THREADS 256
#define POOL_EACH    4

/* Pooling of images with axes n, c, h, w. A plane is one channel of one image. `out` is dense.
 * Indices into `out` and into a plane have 32 bits. */
typedef struct pool2d_args {
    const void *in;
    void *out;
    uint32_t count;
    divider32 channels, height, width; /* of out */
    int64_t image, plane;              /* strides of in */
    int32_t row, column;
    int32_t in_height, in_width;
    int32_t window[2], stride[2], pad[2];
} pool2d_args;

/* Gradients of pooling, and upsampling. One launch covers all planes, with one thread for each
 * element of `out`. Indices along the height and the width have 32 bits. */
typedef struct pool_grad_args {
    const void *in, *grad;
    void *out;
    divider64 channels, height, width; /* of out */
    int64_t stride[4], grad_stride[4];
    int32_t in_height, in_width, grad_height, grad_width;
    int32_t window[2], step[2], pad[2];
    int64_t count;
} pool_grad_args;

#define CONV_THREADS 128
#define CONV_WIDTH   32 /* outputs per thread block, at most */

#define WINOGRAD_2D_WARPS  12   /* per thread block, at most */
#define WINOGRAD_2D_OWN    7424 /* bytes of shared memory of each warp */
#define WINOGRAD_2D_FILTER 512  /* bytes of shared memory for the filters of eight outputs and one channel */

/* A convolution with windows of 3 x 3 and its epilogue (winograd_1d.cu). An output is one output
 * channel. A position is a block of 2 x 4 results before pooling, which one thread computes. A
 * strip is `positions` of them, from `images` images. Positions are counted in `rows` pairs of
 * rows and `quads` groups of four columns.
 *     Shared memory   `depth` channels of the images are copied at a time. Lines are `pitch`
 *                     elements apart, and `stage` elements are one copy.
 *     Warps           `along` warps of a thread block share a strip. The other warps compute other
 *                     outputs of the same strip.
 *     Thread blocks   A thread block computes `width` outputs, and `groups` thread blocks together
 *                     compute all outputs. Each of them has `walkers` copies. Copy i computes the
 *                     strips i, i + walkers, i + 2 walkers, and so on.
 * In winograd_2d.cu a strip is the pairs of tiles that a warp computes at a time, and `positions`
 * is the number of pairs in the whole convolution. */
typedef struct conv2d_args {
    const void *in, *filters, *bias; /* bias may be NULL */
    void *out;
    int64_t n, image, filter[4], bias_stride; /* strides of in, of filters, of bias */
    int32_t channel, row;                     /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* 0 for relu, else -infinity */
    int32_t pitch, stage, width;
    uint32_t along, images, positions, units, strips, walkers;
    divider32 rows, quads, lines, depth, down, across, groups;
    bool vectors;           /* rows of `in` are read as aligned groups of four columns */
    bool wide;              /* a thread stores each of its rows of results with one instruction */
    bool filters_are_there; /* no kernel that may still be running writes the filters or the bias */
} conv2d_args;

#define FILTER_THREADS 256
/* elements of one of the two buffers in shared memory. A GPU with 99 KiB of shared memory holds
 * one thread block with both buffers, and an H100 with 227 KiB holds two thread blocks */
#define FILTER_STAGE        10240
#define FILTER_SUMS         72 /* per thread: the windows of eight outputs */
#define FILTER_CHANNEL_BITS 5  /* log2 of the channels of a thread block, at most */
#define FILTER_EIGHT_BITS   3  /* log2 of its groups of eight outputs, at most */
#define FILTER_ACROSS       32 /* elements that a thread block reduces; its warps share their partial sums */

/* The gradient with respect to 3 x 3 filters (wgrad.h describes how the work is divided). In arrays
 * of two, element 0 is for the images and element 1 for the gradient of the results. `part` holds
 * the partial sums: all parts of the first tile, then all parts of the second one, and so on. */
typedef struct filter_grad_args {
    const void *x, *dy;
    void *out, *part;
    int64_t n, image[2];  /* number of images; stride between images */
    int32_t stride[2][3]; /* strides between channels, rows and columns */
    int32_t c, h, w, m, out_h, out_w, pad[2];
    int32_t rows, columns;             /* size of a strip */
    int32_t pitch[2], plane[2];        /* distance of lines and of channels in shared memory, in elements */
    int32_t second;                    /* offset of the gradient in shared memory */
    int32_t apart;                     /* distance between two outputs of a thread */
    int32_t stage;                     /* size of one copy */
    uint32_t channel_bits, eight_bits; /* log2 of a tile's channels, and of its groups of eight outputs */
    uint32_t channels[2];              /* channels of a tile in each operand */
    /* a task is one channel with eight outputs; `splits` threads share each task */
    uint32_t tasks, splits;
    uint32_t strips, each, filters; /* number of strips, of strips in a part, of tiles */
    divider32 tiles, parts;         /* number of tiles along the channels; of parts of the pixels */
    divider32 across, down;         /* number of strips along the width and the height of an image */
    divider32 fours[2], lines[2];   /* groups of four columns and lines in a strip of each operand */
    divider32 sums;                 /* sums of a tile */
    bool vectors[2];                /* groups of four columns are aligned */
} filter_grad_args;

KERNEL_TABLE(pool2d)
KERNEL_TABLE(pool_grad)
const void *conv2d_kernel_f32(int outputs, bool pooled); /* outputs: per thread, 2, 4 or 8 */
/* eights: groups of eight outputs per warp, 2 or 4 */
const void *winograd_2d_kernel_f32(int eights, bool pooled);
const void *filter_grad_kernel_f32(int pad); /* pad: padding of the columns */
const void *filter_join_kernel_f32(void);

/* Fills in all but out and part, for a supported step. */
filter_grad_args filter_grad_tiling(const step *s, const void *x, const void *dy);

#ifdef __cplusplus
}
#endif

#endif
