/* program_reduce.h - between reduce.c, program_reduce.c and program_reduce.cu: reductions of what a program computes. */
#ifndef RUN_H
#define RUN_H

#include "launch.h"
#include <assert.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUN_VECTORS 4  /* of a thread, at most; with functions, or few elements, 2 */
#define RUN_ACROSS  16 /* columns: a thread block is so many outputs by 32 lane groups */
#define RUN_THREADS (32 * RUN_ACROSS)
#define RUN_BYTES   45056 /* of dynamic shared memory: with the rest, what any kernel may have */
#define RUN_MOST    81920 /* ... in columns: with the rest, what any card has */

/* Operands are inputs, then outputs from PROGRAM_INPUTS on; axes are outer ones, then inner ones. An output is found and its parts lie
 * as in reduce_args. A thread has four lanes of each reduction, in shared memory behind the program's rows: `kept` vectors in all. */
typedef struct run_axes {
    int64_t n, outputs;
    divider64 by_parts, size[DUET_RANK_MAX];
    meeting meet;
    int64_t stride[PROGRAM_INPUTS + PROGRAM_OUTPUTS][DUET_RANK_MAX];
    void *part[PROGRAM_OUTPUTS];
    int32_t warps, kept;
    uint16_t lanes[PROGRAM_OUTPUTS]; /* the first vector of an output's */
    uint8_t row[PROGRAM_OUTPUTS];    /* the reduction of an output */
    uint8_t outs, outer, inner;
    machine_types types;
} run_axes;
#define RUN_ARGS(type)                                                                                       \
    typedef struct run_args_##type {                                                                         \
        machine_head head;                                                                                   \
        machine_code_##type code[MACHINE_LENGTH];                                                            \
        run_axes axes;                                                                                       \
    } run_args_##type;
RUN_ARGS(f32)
RUN_ARGS(f64)
static_assert(sizeof(run_args_f64) <= 4096, "all that a kernel may be sent");

typedef const void *run_kernels(int vectors, int form);
run_kernels run_kernel_f32, run_kernel_f64, run_kernel_heavy_f32, run_kernel_heavy_f64;
/* Of operands and results of any type; i64 and u64 take run_args_f64. */
run_kernels run_kernel_converts_f32, run_kernel_converts_f64, run_kernel_converts_heavy_f32,
    run_kernel_converts_heavy_f64, run_kernel_converts_i64, run_kernel_converts_u64;

/* Of reduce.c: what an acc takes. */
size_t reduce_acc_bytes(int row, bool wide);

size_t run_scratch(const step *s);
cudaError_t run_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
