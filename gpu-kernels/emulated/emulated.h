/* emulated.h - products and convolutions of pairs of f16 (DUET_MATH_SPLIT): what launchers and kernels share. */
#ifndef PAIR_H
#define PAIR_H

#include "launch.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Packed operands: the largest magnitude, then units [columns / 64][inner / 64], each high parts, then low parts, in rows of 128 bytes. */
#define PAIR_UNIT    64
#define PAIR_PART    8192
#define PAIR_HEAD    256
#define PAIR_PARTS   8 /* thread blocks that share a tile, at most */
#define PAIR_THREADS 384

typedef struct pair_args {
    CUtensorMap a;   /* in boxes of half a unit's inner elements, a tile's rows */
    product_args of; /* its a and b are not read */
    const void *packed;
    int32_t rounds;       /* tiles that a thread block makes one after the other */
    bool packed_is_there; /* no kernel that may still run writes it */
    bool out_in_fours;    /* columns of out, at addresses of 16 bytes */
} pair_args;

typedef struct pair_kernel {
    int rows, columns, shared;
    bool persists; /* may make several tiles, the next one's operands coming meanwhile */
    double start,
        cost; /* by measurement, microseconds: of a thread block, and of each unit of the inner axis */
    const void *kernel;
} pair_kernel;
const pair_kernel *pair_kernels(int *count);

/* Of few rows (emulated_gemm_small.cu): a and b in boxes of half a unit's inner elements, and of as many columns. */
#define PAIR_FEW_COLUMNS 64 /* of a tile */
typedef struct pair_few_args {
    CUtensorMap a, b;
    product_args of; /* its a and b are not read */
} pair_few_args;

/* Boxes of f32 for the tensor copy engine; sizes and strides from the last axis on, strides in elements and without that of the last axis. */
cudaError_t pair_describe_boxes(const void *at, int rank, const int64_t *size, const int64_t *stride,
                                const int *box, CUtensorMapSwizzle swizzle, CUtensorMap *map);
/* Boxes of 32 columns and so many rows of a matrix, from 16 bytes on, of lines of a number of 16 bytes. */
cudaError_t pair_describe(const void *p, int64_t rows, int64_t columns, int64_t line, int box_rows,
                          CUtensorMap *map);

/* May nothing before this launch still write what was packed? */
bool pair_is_packed(const step *s, const workspace *w);

#define PACK_THREADS 256
typedef struct pack_args {
    const void *b;
    void *packed;
    int64_t row, column;
    int32_t k, n;
} pack_args;
const void *pack_kernel(void);

/* most is 0 before. */
#define MAGNITUDE_THREADS 256
typedef struct magnitude_args {
    const void *at;
    float *most;
    int64_t n;
    bool flat; /* without gaps, from an address of 16 bytes on */
    int32_t rank;
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
} magnitude_args;
const void *magnitude_kernel(void);

#define PAIR_CONV_THREADS     128
#define PAIR_CONV_HELD(slots) ((slots) == 4 ? 5 : 6) /* pixels that a thread has, at most */
#define PAIR_CONV_HEAD        128                    /* bytes of shared memory before all else */
#define PAIR_CONV_ROWS        32 /* outputs of a thread block, times the lines of results that a product has */

/* A convolution by windows of 3 x 3, finished (emulated_conv.cu). A region of results, before pooling, is `blocks_down` x `blocks_across`
 * blocks, for which lines of `pitch` pixels are needed. */
typedef struct pair_conv_args {
    CUtensorMap boxes;                /* of in: a region's elements, all channels */
    int32_t stage;                    /* bytes of such a box; 0: boxes are not described */
    int32_t stage_pitch, stage_plane; /* elements of its lines, and of its channels */
    int32_t
        lead; /* of those of a line, how many come before the region: boxes begin at addresses of 16 bytes */
    const void *in, *filters, *bias; /* bias may be NULL */
    const float *largest;            /* of the filters */
    void *out;
    int64_t image, filter[4], bias_stride; /* strides of in, of filters, of bias */
    int32_t channel, row;                  /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* relu's 0, or nothing is less */
    int32_t blocks_down, blocks_across, pitch;
    int32_t region_h, region_w, result_pitch; /* of results after pooling; of an output's, in shared memory */
    uint32_t regions, walkers, pixels;
    divider32 by_pitch, down, across, groups;
    divider32 by_line,
        by_region; /* what is written at a time, of a region's line and of its results of an output */
    bool filters_are_there; /* no kernel that may still run writes them */
    bool
        fours; /* lines of out are so many numbers, at addresses of 16 bytes: that is what is written at a time */
} pair_conv_args;
bool pair_conv_takes(const step *s); /* of those that are conv2d in DUET_MATH_SPLIT */
cudaError_t pair_conv_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q);
const void *pair_conv_kernel(int slots, int shifts, int lines,
                             bool pooled); /* 2 shifts: of 4 slots, pooled */

#ifdef __cplusplus
}
#endif
#endif
