/* reduce_kernels.h - the kernels of reductions, softmax and layer normalisation. */
#ifndef REDUCE_KERNELS_H
#define REDUCE_KERNELS_H

#include "fast_divide.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REDUCE_WARPS 8 /* per thread block, when a warp runs along the reduced axis */
/* along outputs: a thread block has REDUCE_ACROSS outputs times REDUCE_DOWN groups of lanes */
#define REDUCE_ACROSS   32
#define REDUCE_DOWN     16
#define REDUCE_FEW_DOWN 8  /* ... if there are at most as many elements as lanes */
#define REDUCE_FEW      16 /* the short kernels take at most this many elements */

/* Counters for outputs that several thread blocks compute in parts. A thread block computes a part
 * of one output, or along outputs of a tile of `across` outputs. The blocks of `tiles` tiles share
 * a counter; the last block to arrive joins the parts. Counters are 0 before and after. */
typedef struct meeting {
    uint32_t *counters;
    uint32_t tiles;
} meeting;

/* Reduces n elements for each output. Outputs are indexed over the outer axes, elements of an
 * output over the inner ones. `warps` blocks of REDUCE_BLOCK elements are joined at a time; the
 * results are the parts of an output. */
typedef struct reduce_args {
    const void *x, *y;
    const void *with; /* an additional operand of the reduction: a dense array, one number for each output */
    void *out, *part; /* part[output * parts + i] */
    int64_t n, outputs, blocks, parts;
    divider64 by_parts;
    meeting meet;
    int32_t warps; /* a power of two, at most REDUCE_WARPS */
    int32_t outer, inner;
    divider64 outer_size[DUET_RANK_MAX], inner_size[DUET_RANK_MAX];
    int64_t outer_stride[3][DUET_RANK_MAX]; /* x, y, out */
    int64_t inner_stride[2][DUET_RANK_MAX]; /* x, y */
} reduce_args;

#define ROW_THREADS 128 /* REDUCE_LANES: one thread per lane */
/* the longest row held in shared memory; with all else it is below the 99 KiB of any card */
#define ROW_BYTES    90112
#define ROW_BLOCKS   8
#define ROW_HELD     1024 /* a warp holds a row of at most this many elements in registers */
#define LAST_THREADS 256
#define LAST_EACH    8

/* Rows of n elements along the last axis, with stride `stride`. Rows are indexed over the outer
 * axes; out is dense. */
typedef struct row_args {
    const void *in, *most, *sum; /* most, sum: of each row, for FORM_LAST of softmax */
    void *out;
    int64_t n, rows, stride;
    int32_t outer;
    divider64 outer_size[DUET_RANK_MAX];
    int64_t outer_stride[DUET_RANK_MAX];
} row_args;

/* Gain or bias: element i of a row is at[i / run * stride], or `number` if at is NULL. */
typedef struct norm_trim {
    const void *at;
    double number;
    int64_t stride;
    divider64 run;
    int64_t outer_stride[DUET_RANK_MAX];
} norm_trim;
typedef struct norm_args {
    row_args row;
    norm_trim with[2];
    bool trims;        /* there are a gain and a bias */
    double r;          /* is added to the variance */
    const void *known; /* mean and variance of each row, for FORM_LAST */
} norm_args;

KERNEL_TABLE(reduce)
KERNEL_TABLE(softmax)
KERNEL_TABLE(norm)
/* held: number of elements of each thread */
const void *softmax_warp_kernel_f32(int row, int held, bool vectors);
const void *softmax_warp_kernel_f64(int row, int held, bool vectors);
/* held: as above, or 0 if a thread block holds a row. vectors: reads 16 bytes at a time. dense:
 * gain and bias are dense too. */
const void *norm_row_kernel_f32(int held, bool vectors, bool dense);
const void *norm_row_kernel_f64(int held, bool vectors, bool dense);

/* Reductions whose program only loads its inputs, or any program (program_reduce.h). */
workspace_size reduce_workspace;
launcher reduce_launch;

/* For the launchers of this folder and of program_reduce.c: the bytes of a block's result and of a lane; the
 * size of a.part;
 * the counters for `outputs` outputs, `across` of them in a tile. */
size_t reduce_acc_bytes(int row, bool wide);
size_t reduce_lane_bytes(int row, bool wide);
size_t reduce_part_bytes(const reduce_args *a, int row, bool wide);
meeting meet_at(uint32_t *counters, int64_t outputs, int64_t across);
/* fills in a reduction of the last axis of one input, except for addresses */
void reduce_rows_of(reduce_args *a, const layout *in, const layout *out);
cudaError_t reduce_run(const reduce_args *a, const void *(*kernel)(int row, int form), int row,
                       cudaStream_t q);

#ifdef __cplusplus
}
#endif

#endif
