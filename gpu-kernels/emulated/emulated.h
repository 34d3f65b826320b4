/* emulated.h - products and convolutions with pairs of f16 (DUET_MATH_SPLIT): definitions that
 * launchers and kernels share. */
#ifndef PAIR_H
#define PAIR_H

#include "launch.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Packed operands: the largest magnitude, then units [columns / 64][inner / 64]. Each unit has its
 * high parts, then its low parts, in rows of 128 bytes. */
#define PAIR_UNIT    64
#define PAIR_PART    8192
#define PAIR_HEAD    256
#define PAIR_PARTS   8 /* thread blocks that share a tile, at most */
#define PAIR_THREADS 384

typedef struct emulated_args {
    CUtensorMap a;   /* in boxes of half the inner elements of a unit and the rows of a tile */
    product_args of; /* fields a and b are not read */
    const void *packed;
    int32_t rounds;       /* tiles that a thread block computes one after the other */
    bool packed_is_there; /* no kernel that may still be running writes the packed operand */
    bool out_in_fours;    /* columns of out are contiguous in groups of four, aligned to 16 bytes */
} emulated_args;

typedef struct emulated_kernel {
    int rows, columns, shared;
    bool persists;      /* may compute several tiles and load the operands of the next one meanwhile */
    double start, cost; /* measured microseconds: of a thread block, and of each unit of the inner axis */
    const void *kernel;
} emulated_kernel;
const emulated_kernel *emulated_kernels(int *count);

/* Products with few rows (emulated_gemm_small.cu): a and b in boxes of half the inner elements of a
 * unit and as many columns. */
#define PAIR_FEW_COLUMNS 64 /* of a tile */
typedef struct emulated_gemm_small_args {
    CUtensorMap a, b;
    product_args of; /* fields a and b are not read */
} emulated_gemm_small_args;

/* Describes boxes of f32 for the tensor memory accelerator. Sizes and strides start with the last
 * axis; strides are in elements and omit that of the last axis. */
cudaError_t emulated_describe_boxes(const void *at, int rank, const int64_t *size, const int64_t *stride,
                                    const int *box, CUtensorMapSwizzle swizzle, CUtensorMap *map);
/* Describes boxes of 32 columns and `rows` rows of a matrix. Addresses and line lengths are
 * multiples of 16 bytes. */
cudaError_t emulated_describe(const void *p, int64_t rows, int64_t columns, int64_t line, int box_rows,
                              CUtensorMap *map);

/* Is it certain that no kernel before this launch still writes the packed operand? */
bool emulated_is_packed(const step *s, const workspace *w);

#define PACK_THREADS 256
typedef struct pack_args {
    const void *b;
    void *packed;
    int64_t row, column;
    int32_t k, n;
} pack_args;
const void *pack_kernel(void);

/* `most` is 0 before. */
#define MAGNITUDE_THREADS 256
typedef struct magnitude_args {
    const void *at;
    float *most;
    int64_t n;
    bool flat; /* contiguous, aligned to 16 bytes */
    int32_t rank;
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
} magnitude_args;
const void *magnitude_kernel(void);

#define PAIR_CONV_THREADS     128
#define PAIR_CONV_HELD(slots) ((slots) == 4 ? 5 : 6) /* pixels of a thread, at most */
#define PAIR_CONV_HEAD        128                    /* bytes of shared memory before all else */
#define PAIR_CONV_ROWS        32 /* outputs of a thread block times the lines of results of a product */

/* A convolution with 3 x 3 windows and its epilogue (emulated_conv.cu). A region of results, before
 * pooling, is `blocks_down` x `blocks_across` blocks, which need lines of `pitch` pixels. */
typedef struct emulated_conv_args {
    CUtensorMap boxes;                /* of in: the elements of a region in all channels */
    int32_t stage;                    /* bytes of a box; 0: boxes are not described */
    int32_t stage_pitch, stage_plane; /* pitch of its lines and of its channels, in elements */
    int32_t
        lead; /* how many elements of a line come before the region: boxes start at addresses of 16 bytes */
    const void *in, *filters, *bias; /* bias may be NULL */
    const float *largest;            /* of the filters */
    void *out;
    int64_t image, filter[4], bias_stride; /* strides of in, of the filters, of bias */
    int32_t channel, row;                  /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* 0 for relu, otherwise -INFINITY */
    int32_t blocks_down, blocks_across, pitch;
    /* size of a region of results after pooling; pitch of an output in shared memory */
    int32_t region_h, region_w, result_pitch;
    uint32_t regions, walkers, pixels;
    divider32 by_pitch, down, across, groups;
    divider32 by_line, by_region; /* stores of a line of a region, and of its results for an output */
    bool filters_are_there;       /* no kernel that may still be running writes them */
    bool fours; /* lines of out consist of groups of four aligned to 16 bytes, which are stored at once */
} emulated_conv_args;
bool emulated_conv_supports(const step *s); /* for conv2d in DUET_MATH_SPLIT */
cudaError_t emulated_conv_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q);
const void *emulated_conv_kernel(int slots, int shifts, int lines,
                                 bool pooled); /* 2 shifts: only with 4 slots and pooling */

#ifdef __cplusplus
}
#endif
#endif
