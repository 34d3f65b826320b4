/* conv_args.h - the arguments of pooling, convolutions and their gradients. */
#ifndef CONV_ARGS_H
#define CONV_ARGS_H

#include "fast_divide.h"
#include <stdbool.h>

#define POOL_THREADS 256
#define POOL_EACH    4

/* Planes of images with axes n, c, h, w. out is dense. Indices into out and into a plane have 32
 * bits. */
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

/* Gradients of pooling, and upsampling: all planes in order, one thread per element. Indices into a
 * plane's axes have 32 bits. */
typedef struct pool_back_args {
    const void *in, *grad;
    void *out;
    divider64 channels, height, width; /* of out */
    int64_t stride[4], grad_stride[4];
    int32_t in_height, in_width, grad_height, grad_width;
    int32_t window[2], step[2], pad[2];
    int64_t count;
} pool_back_args;

#define CONV_THREADS 128
#define CONV_WIDTH   32 /* outputs per thread block, at most */

#define CONV_SQUARE_WARPS  12   /* per thread block, at most */
#define CONV_SQUARE_OWN    7424 /* bytes of shared memory: per warp, */
#define CONV_SQUARE_FILTER 512  /* and for the filters of eight outputs and one channel */

/* A convolution with windows of 3 x 3 and its epilogue (winograd_1d.cu). A strip is `positions`
 * times 2 x 4 results before pooling: `images` images, pairs of rows, groups of four columns.
 * Channels of the images are copied to shared memory `depth` at a time, as lines of groups of four
 * elements, `pitch` apart; `stage` is the size of one copy. `along` warps of a thread block share a
 * strip; the other warps compute other outputs. A thread block computes `width` outputs, and
 * `groups` such blocks compute all of them. The blocks of a group share all strips; `walkers`
 * blocks run at a time. In winograd_2d.cu a strip is the pairs of tiles of a warp, and `positions`
 * is the number of all pairs. */
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
    bool vectors;           /* in and out are read and written as aligned groups of four columns */
    bool wide;              /* so are all rows of results of a thread */
    bool filters_are_there; /* no kernel that may still be running writes the filters or the bias */
} conv2d_args;

#define FILTER_THREADS 256
/* elements of one of two buffers in shared memory. One fits into the 99 KiB of any card, two
     * into the 227 KiB of H100 */
#define FILTER_STAGE        10240
#define FILTER_SUMS         72 /* per thread: the windows of eight outputs */
#define FILTER_CHANNEL_BITS 5  /* log2 of the channels of a thread block, at most */
#define FILTER_EIGHT_BITS   3  /* log2 of its groups of eight outputs, at most */
#define FILTER_ACROSS       32 /* sums that a thread block joins at once; its warps share the parts of each */

/* The gradient of 3 x 3 filters (wgrad.h describes the layout). In arrays of two, element 0 is for
 * the images, 1 for the gradient. The sums of a part are stored tile by tile, and within a tile
 * part by part. */
typedef struct filter_grad_args {
    const void *x, *dy;
    void *out, *part;
    int64_t n, image[2];  /* images; stride between images, */
    int32_t stride[2][3]; /* between channels, rows, columns */
    int32_t c, h, w, m, out_h, out_w, pad[2];
    int32_t rows, columns;             /* of a strip */
    int32_t pitch[2], plane[2];        /* in shared memory, elements: of a line, of a channel */
    int32_t second;                    /* offset of the gradient in shared memory */
    int32_t apart;                     /* distance between two outputs of a thread */
    int32_t stage;                     /* size of one copy */
    uint32_t channel_bits, eight_bits; /* log2 of a tile's channels, and of its groups of eight outputs */
    uint32_t channels[2];              /* of a tile, for each operand */
    /* tasks: a channel with eight outputs each; splits: threads that share a task */
    uint32_t tasks, splits;
    uint32_t strips, each, filters; /* all strips, strips of a part, tiles */
    divider32 tiles, parts;         /* tiles with all channels; parts of the pixels */
    divider32 across, down;         /* strips per image */
    /* per strip of an operand: groups of four columns, and lines of them */
    divider32 fours[2], lines[2];
    divider32 sums;  /* per tile */
    bool vectors[2]; /* groups of four are aligned */
} filter_grad_args;

#endif
