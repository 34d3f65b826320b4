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
    int cluster;        /* thread blocks of a cluster; 0 or 1: no clusters */
    size_t shared;      /* bytes of dynamic shared memory, */
    size_t shared_most; /* and the most that any launch of this kernel needs */
    double bytes; /* that a launch reads and writes, which decides when the program has run often enough */
} compiled_source;

#define COMPILED_SMALL (1 << 16) /* at most this many elements: one element per thread */

typedef struct compiled_kernel compiled_kernel;

/* Returns the kernel of a program for the current device; NULL if there is none and none is being made. If
 * `graph` is not NULL, the kernel lives at least as long as the graph. *ready: it can be launched. */
compiled_kernel *compiled_kernel_for(const compiled_source *s, kernels_used *graph, bool *ready);

/* Launches a kernel. After each call of compiled_kernel_for that set *ready, call either this function or
 * compiled_kernel_release, once. Returns false if the driver refuses the launch. Then the interpreter runs,
 * which also reports the device's error. */
bool compiled_kernel_launch(compiled_kernel *k, const compiled_source *s, void *args, cudaStream_t q);

/* Gives back, without a launch, a kernel that compiled_kernel_for returned with *ready set. */
void compiled_kernel_release(compiled_kernel *k);

/* Reductions of so many outputs are compiled. */
#define COMPILED_REDUCE_OUTPUTS 2

/* Sets *alone to the part of p that computes one output. */
void compiled_reduce_alone(const program *p, int output, program *alone);

/* compiled_reduce_template returns the template that reduces, for r->form, r->type and the reduction of p.
 * joined_template returns the one for r->kernel (joined.h). Both write the kernel's name to `name`, which
 * must live as long as the result. The caller calls kernel_text_free. Errors: text is NULL if there is no
 * memory. */
ptx_template compiled_reduce_template(const ptx_request *r, const program *p, char name[64]);
ptx_template joined_template(const ptx_request *r, char name[64]);

#endif
