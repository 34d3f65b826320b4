/* program_reduce.h - reductions of the results of programs: declarations that reduce.c,
 * program_reduce.c and program_reduce.cu share. */
#ifndef PROGRAM_REDUCE_H
#define PROGRAM_REDUCE_H

#include "interpreter_kernels.h"
#include "reduce_kernels.h"
#include <assert.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROGRAM_REDUCE_VECTORS                                                                               \
    4 /* vectors of a thread at most; 2 with mathematical functions or few elements */
#define PROGRAM_REDUCE_ACROSS  16 /* columns: a thread block has this many outputs by 32 groups of lanes */
#define PROGRAM_REDUCE_THREADS (32 * PROGRAM_REDUCE_ACROSS)
/* dynamic shared memory; with the static part, the limit without opting in to more */
#define PROGRAM_REDUCE_BYTES 45056
#define PROGRAM_REDUCE_MOST                                                                                  \
    81920 /* the same for columns; with the static part, the limit of every supported card */

/* Operands are inputs, then outputs from PROGRAM_INPUTS on. Outer axes come before inner ones.
 * Outputs and their parts are found as in reduce_args. A thread has four lanes of each reduction in
 * shared memory after the rows of the program: `kept` vectors in all. */
typedef struct program_reduce_axes {
    int64_t n, outputs;
    divider64 by_parts, size[DUET_RANK_MAX];
    meeting meet;
    int64_t stride[PROGRAM_INPUTS + PROGRAM_OUTPUTS][DUET_RANK_MAX];
    void *part[PROGRAM_OUTPUTS];
    int32_t warps, kept;
    uint16_t lanes[PROGRAM_OUTPUTS]; /* the first vector of the lanes of an output */
    uint8_t row[PROGRAM_OUTPUTS];    /* the reduction of an output */
    uint8_t outs, outer, inner;
    interp_types types;
} program_reduce_axes;
#define PROGRAM_REDUCE_ARGS(type)                                                                            \
    typedef struct program_reduce_args_##type {                                                              \
        interp_head head;                                                                                    \
        interp_code_##type code[INTERP_LENGTH];                                                              \
        program_reduce_axes axes;                                                                            \
    } program_reduce_args_##type;
PROGRAM_REDUCE_ARGS(f32)
PROGRAM_REDUCE_ARGS(f64)
static_assert(sizeof(program_reduce_args_f64) <= 4096, "all that a kernel may be sent");

typedef const void *program_reduce_kernels(int vectors, int form);
program_reduce_kernels program_reduce_kernel_f32, program_reduce_kernel_f64, program_reduce_kernel_heavy_f32,
    program_reduce_kernel_heavy_f64;
/* For operands and results of any type. i64 and u64 use program_reduce_args_f64. */
program_reduce_kernels program_reduce_kernel_converts_f32, program_reduce_kernel_converts_f64,
    program_reduce_kernel_converts_heavy_f32, program_reduce_kernel_converts_heavy_f64,
    program_reduce_kernel_converts_i64, program_reduce_kernel_converts_u64;

size_t program_reduce_workspace(const step *s);
cudaError_t program_reduce_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
