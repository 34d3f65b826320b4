/* compiled_kernels.h - kernels that the driver compiles for one program (codegen/ptx_write.h). They are the
 * interpreter's second tier: the same results, without a dispatch for each instruction.
 *
 * A kernel is made in the background when its program has run often, or when it is captured into a graph.
 * Until then, and where the driver cannot make it, the interpreter runs. The driver keeps compiled kernels
 * on disk. DUET_JIT=0 turns this off; with DUET_JIT=1 the first launch waits for the kernel. */
#ifndef COMPILED_KERNELS_H
#define COMPILED_KERNELS_H

#include "kernels.h"
#include "ptx_write.h"

/* A program, and the kernel to make for it. form.list is not used. */
typedef struct compiled_source {
    const program *program;
    ptx_request form;
    int64_t blocks;
    double bytes; /* that a launch reads and writes, which decides when the program has run often enough */
} compiled_source;

#define COMPILED_SMALL (1 << 16) /* at most this many elements: one element per thread */

typedef struct compiled_kernel compiled_kernel;

/* Returns the kernel of a program for the current device; NULL if there is none and none is being made. If
 * `graph` is not NULL, the kernel lives at least as long as the graph. *ready: it can be launched. */
compiled_kernel *compiled_kernel_for(const compiled_source *s, kernels_used *graph, bool *ready);

/* Launches a kernel: exactly once for each call of compiled_kernel_for that set *ready. Returns false if the
 * driver refuses; then the interpreter runs, which also reports what is wrong with the card. */
bool compiled_kernel_launch(compiled_kernel *k, const compiled_source *s, void *args, cudaStream_t q);

/* In place of a launch. */
void compiled_kernel_let(compiled_kernel *k);

/* alone = p without the other reductions. */
void compiled_reduce_alone(const program *p, int output, program *alone);

/* The texts from which the kernels of reductions are made. Sets `name` to that of the kernel for a form and the
 * reduction of p. */
ptx_skeleton compiled_reduce_skeleton(duet_dtype type, int form, const program *p, char name[64]);

#endif
