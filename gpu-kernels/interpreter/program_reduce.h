/* program_reduce.h - reductions of the results of programs: what reduce.c, program_reduce.c and
 * program_reduce.cu share. */
#ifndef RUN_H
#define RUN_H

#include "launch.h"
#include <assert.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUN_VECTORS 4  /* vectors of a thread at most; 2 with mathematical functions or few elements */
#define RUN_ACROSS  16 /* columns: a thread block has this many outputs by 32 groups of lanes */
#define RUN_THREADS (32 * RUN_ACROSS)
/* dynamic shared memory; with the static part, the limit without opting in to more */
#define RUN_BYTES 45056
#define RUN_MOST  81920 /* the same for columns; with the static part, the limit of every supported card */

/* Operands are inputs, then outputs from PROGRAM_INPUTS on. Outer axes come before inner ones.
 * Outputs and their parts are found as in reduce_args. A thread has four lanes of each reduction in
 * shared memory after the rows of the program: `kept` vectors in all. */
typedef struct run_axes {
    int64_t n, outputs;
    divider64 by_parts, size[DUET_RANK_MAX];
    meeting meet;
    int64_t stride[PROGRAM_INPUTS + PROGRAM_OUTPUTS][DUET_RANK_MAX];
    void *part[PROGRAM_OUTPUTS];
    int32_t warps, kept;
    uint16_t lanes[PROGRAM_OUTPUTS]; /* the first vector of the lanes of an output */
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
/* For operands and results of any type. i64 and u64 use run_args_f64. */
run_kernels run_kernel_converts_f32, run_kernel_converts_f64, run_kernel_converts_heavy_f32,
    run_kernel_converts_heavy_f64, run_kernel_converts_i64, run_kernel_converts_u64;

/* Defined in reduce.c: bytes of an accumulator. */
size_t reduce_acc_bytes(int row, bool wide);

size_t run_scratch(const step *s);
cudaError_t run_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
