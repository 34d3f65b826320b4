/* pair.h - products of pairs of f16 (DUET_MATH_SPLIT): what launcher and kernels share. */
#ifndef PAIR_H
#define PAIR_H

#include "launch.h"
#include <cuda.h>

#define PAIR_UNIT    64  /* columns, and inner elements, of a unit of packed operands */
#define PAIR_PART    8192
#define PAIR_HEAD    256 /* bytes before the units: the largest magnitude */
#define PAIR_PARTS   8   /* thread blocks that share a tile, at most */
#define PAIR_THREADS 384

typedef struct pair_args {
    CUtensorMap a;           /* boxes of 32 inner elements, rows / across rows */
    product_args of;         /* a and b are not read */
    const void *packed;      /* units [columns / 64][inner / 64], each high parts, low parts */
    const float *magnitude;  /* of a; NULL: bound */
    float bound;
    bool packed_is_there, out_in_fours; /* columns of out, at aligned addresses */
    int32_t rounds; /* of tiles that a cluster makes, at most */
} pair_args;

#define PAIR_CONV_THREADS 128
#define PAIR_CONV_HELD    6 /* pixels that a thread brings, at most */

/* A convolution by windows of 3 x 3, finished (pair_conv.cu). A region of results, before pooling, is `blocks_down` x `blocks_across`
 * blocks, for which lines of `pitch` pixels are needed. */
typedef struct pair_conv_args {
    const void *in, *filters, *bias; /* bias may be NULL */
    void *out;
    int64_t image, filter[4], bias_stride; /* strides of in, of filters, of bias */
    int32_t channel, row;                  /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* relu's 0, or nothing is less */
    int32_t blocks_down, blocks_across, pitch, region_h, region_w, result_pitch; /* region_: of results after pooling */
    uint32_t regions, walkers, pixels;
    divider32 by_pitch, down, across, groups, by_region_w, by_region;
    bool filters_are_there, whole; /* a region's rows are whole, and its results of an output 16 bytes each: by_region counts these */
} pair_conv_args;
#define PAIR_CONV_OUTPUTS 32 /* of a thread block */

typedef struct pack_args {
    const void *b;
    void *packed;
    int64_t row, column;
    int32_t k, n;
} pack_args;

typedef struct magnitude_args {
    const void *at;
    float *most;
    int64_t rows, columns, row, column;
} magnitude_args;

typedef struct pair_kernel {
    int rows, columns, down, across, shared; /* tile; thread blocks of a cluster */
    double start, cost; /* microseconds: of a thread block, and of each unit of the inner axis */
    const void *kernel;
} pair_kernel;
#ifdef __cplusplus
extern "C" {
#endif
const pair_kernel *pair_kernels(int *count);
const void *pair_conv_kernel(int slots, int rows, bool pooled);
const void *pack_kernel(void);
const void *magnitude_kernel(void);
#ifdef __cplusplus
}
#endif
#endif
