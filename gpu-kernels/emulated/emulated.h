/* emulated.h - products and convolutions with pairs of f16 (DUET_MATH_SPLIT): definitions that
 * launchers and kernels share. */
#ifndef EMULATED_H
#define EMULATED_H

#include "fast_divide.h"
#include "gemm_kernels.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A packed operand contains its largest magnitude and then its units. A unit is 64 inner elements of
 * 64 columns: all high parts, then all low parts, in rows of 128 bytes. Units are in the order
 * [columns / 64][inner / 64]. */
#define EMULATED_UNIT    64
#define EMULATED_PART    8192 /* bytes of the high or the low parts of a unit */
#define EMULATED_HEAD    256  /* bytes before the first unit */
#define EMULATED_PARTS   8    /* thread blocks that share a tile, at most */
#define EMULATED_THREADS 384

typedef struct emulated_args {
    CUtensorMap a;   /* its boxes have half the inner elements of a unit, and the rows of a tile */
    product_args of; /* members a and b are not used */
    const void *packed;
    int32_t rounds;       /* tiles that a thread block computes one after the other */
    bool packed_is_there; /* no kernel that may still be running writes the packed operand */
    bool out_in_fours;    /* columns of out are contiguous in groups of four, aligned to 16 bytes */
} emulated_args;

typedef struct emulated_kernel {
    int rows, columns, shared;
    bool persists;      /* a thread block may compute several tiles, and loads the next operands meanwhile */
    double start, cost; /* measured microseconds of a thread block, and of each unit of the inner axis */
    const void *kernel;
} emulated_kernel;
const emulated_kernel *emulated_kernels(int *count);

/* Products with few rows (emulated_gemm_small.cu). The boxes of a have the rows of a tile and 32
 * inner elements; those of b have 32 inner elements and 32 columns. */
#define EMULATED_FEW_COLUMNS 64 /* of a tile */
typedef struct emulated_gemm_small_args {
    CUtensorMap a, b;
    product_args of; /* members a and b are not used */
} emulated_gemm_small_args;

/* Describes a tensor of f32 and the size of a box to the tensor memory accelerator, which copies one
 * box at a time. Sizes and strides start with the last axis. Strides are in elements; the first one
 * is that of the last axis but one. */
cudaError_t emulated_describe_boxes(const void *at, int rank, const int64_t *size, const int64_t *stride,
                                    const int *box, CUtensorMapSwizzle swizzle, CUtensorMap *map);
/* The same for a matrix with `line` elements between rows, and boxes of 32 columns and `box_rows`
 * rows. The address and the line length must be multiples of 16 bytes. */
cudaError_t emulated_describe(const void *p, int64_t rows, int64_t columns, int64_t line, int box_rows,
                              CUtensorMap *map);

/* Is the packed operand complete? It is not if the previous kernel, which may still be running,
 * writes it. */
bool emulated_is_packed(const step *s, const workspace *w);

#define PACK_THREADS 256
typedef struct pack_args {
    const void *b;
    void *packed;
    int64_t row, column;
    int32_t k, n;
} pack_args;
const void *pack_kernel(void);

/* *most must be 0 before the launch. */
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

#define EMULATED_CONV_THREADS     128
#define EMULATED_CONV_HELD(slots) ((slots) == 4 ? 5 : 6) /* pixels of a thread, at most */
#define EMULATED_CONV_HEAD        128 /* bytes at the start of shared memory, before the stage */
#define EMULATED_CONV_ROWS        32  /* outputs of a thread block times `shifts` */

/* A convolution with 3 x 3 windows and its epilogue (emulated_conv.cu). A region is a rectangle of
 * results of one image. Before pooling it has `blocks_down` x `blocks_across` blocks. Its elements
 * are lines of `pitch` pixels. */
typedef struct emulated_conv_args {
    CUtensorMap boxes;                /* of `in`: a box is the elements of a region in all channels */
    int32_t stage;                    /* bytes of a box; 0: threads load the elements instead */
    int32_t stage_pitch, stage_plane; /* distance between lines and between channels of a box, in elements */
    int32_t lead; /* elements of a line of a box before the region, because boxes are aligned to 16 bytes */
    const void *in, *filters, *bias; /* bias may be NULL */
    const float *largest;            /* of the filters */
    void *out;
    int64_t image, filter[4], bias_stride; /* strides of in, of the filters, of bias */
    int32_t channel, row;                  /* strides of in */
    int32_t c, h, w, m, pad[2], out_h, out_w;
    float least; /* 0 for relu, otherwise -INFINITY */
    int32_t blocks_down, blocks_across, pitch;
    int32_t region_h, region_w, result_pitch; /* size of a region after pooling; distance of outputs */
    uint32_t regions, walkers, pixels;        /* as in conv2d_args; pixels: of a region */
    divider32 by_pitch, down, across, groups; /* down, across: regions of an image */
    divider32 by_line, by_region;             /* number of stores of a line, and of a region of an output */
    bool filters_are_there;                   /* no kernel that may still be running writes them */
    bool fours; /* lines of `out` are groups of four elements, aligned to 16 bytes, and stored as such */
} emulated_conv_args;
bool emulated_conv_supports(const step *s); /* s is a conv2d in DUET_MATH_SPLIT */
/* 2 shifts need 4 slots and pooling. */
const void *emulated_conv_kernel(int slots, int shifts, int lines, bool pooled);

/* How a step runs in DUET_MATH_SPLIT: by kernels that need operand 1 packed, or by those for few
 * rows. */
enum parts { PARTS_UNKNOWN, PARTS_NONE, PARTS_PACKED, PARTS_FEW };
enum parts parts_of(const step *s);

/* Expected microseconds of emulated_gemm.cu; INFINITY: it does not support the step. */
double emulated_gemm_cost(const step *s);

cudaError_t emulated_launch(const step *s, const frame *f, const workspace *w,
                            cudaStream_t q); /* uses w->packed */

#ifdef __cplusplus
}
#endif
#endif
