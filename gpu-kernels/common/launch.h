/* launch.h - declarations shared by the launchers (C) and the kernels (CUDA): the kernels'
 * arguments, and the functions that return kernels. Nothing here has an element type: addresses are
 * void, numbers double, and strides count elements. Each kernel takes one of these structs. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "conv_args.h"
#include "fast_divide.h"
#include "fused_args.h"
#include "gemm_args.h"
#include "interpreter_args.h"
#include "kernels.h"
#include "random_args.h"
#include "reduce_args.h"
#include "supported.h"
#include "transpose_args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The access patterns of kernels. A row of ops.def or fused.def has one kernel for each form of its
 * family. */
enum form {
    FORM_FLAT,    /* element-wise, out is contiguous */
    FORM_STRIDED, /* element-wise, any strides */
    FORM_ROWS,    /* reductions: a warp's threads run along the reduced axis */
    FORM_COLUMNS, /* ... or along the outputs */
    FORM_SHORT,   /* ... at most 16 elements, four threads an output */
    FORM_NARROW,  /* ... at most 128 elements, eight threads an output, which run along the reduced axis */
    FORM_LOW,     /* ... or along the outputs */
    FORM_THIN,    /* ... one thread an output */
    FORM_ROW,     /* softmax: a row is held in shared memory */
    FORM_LAST,    /* ... a longer row, after its maximum and sum were computed */
    FORM_WINDOW,  /* pooling, any window */
    FORM_WINDOW2, /* ... 2 x 2 */
};

/* The kernel of a row, or NULL. One pair of functions a .cu file. */
#define KERNEL_TABLE(family)                                                                                 \
    const void *family##_kernel_f32(int row, int form);                                                      \
    const void *family##_kernel_f64(int row, int form);
KERNEL_TABLE(fused)
KERNEL_TABLE(reduce)
KERNEL_TABLE(softmax)
KERNEL_TABLE(norm)
KERNEL_TABLE(pool2d)
KERNEL_TABLE(pool_back)
KERNEL_TABLE(gemm_small_mn)
KERNEL_TABLE(gemm_tall)
KERNEL_TABLE(random)
const void *random_kernel_i64(int row, int form);

cudaError_t interp_launch(const step *s, const frame *f, cudaStream_t q);

/* The functions of a family in kernels.def: the bytes of workspace that a launch needs, and the
 * launch. */
typedef size_t workspace_size(const step *s);
typedef cudaError_t launcher(const step *s, const frame *f, const workspace *w, cudaStream_t q);
#define KERNEL(number, unsupported, cost, launch) launcher launch;
#define KERNEL_WORKSPACE(number, unsupported, cost, workspace, launch)                                       \
    workspace_size workspace;                                                                                \
    launcher launch;
#include "kernels.def"

workspace_size reduce_workspace;
size_t reduce_part_bytes(const reduce_args *a, int row, bool wide); /* the size of a.part */
launcher reduce_launch;
meeting meet_at(uint32_t *counters, int64_t outputs, int64_t across);
/* fills in a reduction of the last axis of one input, except for addresses */
void reduce_rows_of(reduce_args *a, const layout *in, const layout *out);
cudaError_t reduce_run(const reduce_args *a, const void *(*kernel)(int row, int form), int row,
                       cudaStream_t q);
/* held: number of elements of each thread */
const void *softmax_warp_kernel_f32(int row, int held, bool vectors);
const void *softmax_warp_kernel_f64(int row, int held, bool vectors);
/* held: as above, or 0 if a thread block holds a row. vectors: reads 16 bytes at a time. dense:
 * gain and bias are dense too. */
const void *norm_row_kernel_f32(int held, bool vectors, bool dense);
const void *norm_row_kernel_f64(int held, bool vectors, bool dense);
product_args product_args_of(const step *s, const frame *f, const workspace *w);
/* How a step runs in DUET_MATH_SPLIT: by kernels that need operand 1 packed, or by those for few
 * rows. */
enum parts { PARTS_UNKNOWN, PARTS_NONE, PARTS_PACKED, PARTS_FEW };
enum parts parts_of(const step *s);
bool product_splits(const step *s); /* has few rows, and emulated_gemm_small.cu is the fastest */
double emulated_gemm_cost(
    const step *s); /* expected microseconds of emulated_gemm.cu; INFINITY: it does not support the step */
cudaError_t emulated_launch(const step *s, const frame *f, const workspace *w,
                            cudaStream_t q);             /* uses w->packed */
const void *conv2d_kernel_f32(int outputs, bool pooled); /* outputs: per thread, 2, 4 or 8 */
/* eights: groups of eight outputs per warp, 2 or 4 */
const void *conv2d_square_kernel_f32(int eights, bool pooled);
const void *filter_grad_kernel_f32(int pad); /* pad: padding of the columns */
const void *filter_join_kernel_f32(void);
filter_grad_args filter_grad_cut(const step *s, const void *x,
                                 const void *dy); /* fills in all but out and part, for a supported step */

/* Launches a kernel that has one argument. Does nothing for 0 blocks. */
cudaError_t launch(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                   cudaStream_t q);

/* The same for a kernel that waits for the previous one itself (take_turn in device.cuh), and may
 * start before that one ends. launch_clusters also groups thread blocks into clusters. */
cudaError_t launch_early(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                         cudaStream_t q);
cudaError_t launch_clusters(const void *kernel, int64_t blocks, int cluster, int threads, size_t shared,
                            void *args, cudaStream_t q);

/* Was the kernel compiled for compute capability 9 and later, which have this wait instruction and
 * clusters? */
bool can_wait(const void *kernel);

/* Properties of the current card, or values that hold for every card if the query fails. */
typedef struct card_facts {
    int blocks, shared; /* multiprocessors; bytes of shared memory per thread block */
    bool clusters;      /* card and kernels support clusters of thread blocks */
    bool pairs;         /* ... and the instructions of emulated.cuh */
} card_facts;
card_facts card(void);

/* Allows a kernel more shared memory than the default, if a launch needs it. `most` must be the
 * same for all launches of a kernel, because several threads may launch it at once. */
#define SHARED_ALWAYS (48 << 10)
#define SHARED_LEAST  (99 << 10) /* every card allows so much */
cudaError_t with_shared(const void *kernel, size_t bytes, size_t most);

/* May work queued before a launch still be writing an operand? */
bool may_be_written(const workspace *w, const void *p, const layout *at);

size_t round_256(size_t bytes); /* rounds up, for the next array in scratch memory */
static inline int64_t quotient_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

#ifdef __cplusplus
}
#endif
#endif
