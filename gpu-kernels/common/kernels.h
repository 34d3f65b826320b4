/* kernels.h - the interface of Duet's CUDA kernels, which src/gpu uses. Its functions launch a step
 * on a stream. They are asynchronous and allocate nothing. Steps and frames are those of
 * core/backend.h; addresses are in device memory. */
#ifndef KERNELS_H
#define KERNELS_H

#include "cost.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The least compute capability that kernels were compiled for, times ten. */
int kernels_oldest(void);

/* Returns NULL if a kernel here can run this step, else a text with the reason. */
const char *kernels_unsupported(const step *s);

/* Returns the seconds that a kernel here is expected to take for a step. */
double kernels_cost(const step *s, const costs *c);

/* Returns the bytes of scratch memory that launch_step needs for this step; often 0. */
size_t kernels_scratch(const step *s);

/* The device memory that a launch uses besides the operands.
 *     scratch    kernels_scratch(s) bytes, aligned to 256
 *     counters   KERNELS_COUNTERS arrival counters of the stream. They must be 0 before a launch; a
 *                launch that succeeds leaves them 0
 *     written    the addresses that the previous work on the stream writes. A kernel may read all
 *                other memory before that work has ended
 *     packed     operand 1, packed by kernels_pack. If it is NULL, a step that needs it is computed
 *                in f32
 *     indices    where kernels report an index that is out of bounds
 *     used       of a capture: which compiled kernels the graph contains, or could; otherwise NULL */
#define KERNELS_COUNTERS 1024
/* The first index out of bounds that a kernel of a stream found. `found` is in pinned host memory. If
 * found->kernel is not 0, its members are valid after the stream was synchronized. `claimed` is in device
 * memory: 0 until a thread of a kernel writes to `found`. */
typedef struct bad_index {
    int64_t kernel;               /* the operator plus 1 */
    int64_t index, element, size; /* the index, its number among the indices, the size of the axis */
} bad_index;
typedef struct index_report {
    bad_index *found;
    uint32_t *claimed;
} index_report;
typedef struct span {
    const char *first, *end;
} span;
static inline bool spans_meet(span a, span b) { return a.first < b.end && b.first < a.end; }
typedef struct workspace {
    void *scratch;
    uint32_t *counters;
    span written;
    const void *packed;
    index_report indices;
    struct kernels_used *used;
} workspace;

/* Launches a step that is supported here. If the launch is captured into a graph, the graph contains
 * the addresses of the workspace. A replay of the graph must then not run at the same time as other
 * work that uses this memory. */
cudaError_t launch_step(const step *s, const frame *f, const workspace *w, cudaStream_t q);

/* Can launch_joined launch anything, on this card and with this DUET_JIT? */
bool kernels_join(void);

/* May a program compute this operand of a product? The kernels for one or two rows, for few columns and
 * for one column read each element of it once. The others would run the program many times. */
bool product_takes_program(const step *s, int input);

/* Launches a step s and the next one, `then`, as one kernel (step.joins). Sets *done to
 * false if there is no such kernel or it is not ready; nothing is then launched. */
cudaError_t launch_joined(const step *s, const step *then, const frame *f, const workspace *w, cudaStream_t q,
                          bool *done);

/* Kernels that the driver compiles for one program, in the background (compiled_kernels.h).
 *     kernels_used_new          an empty list for a capture, or NULL without memory. It keeps the compiled
 *                               kernels of the graph, and is freed after the graph
 *     kernels_used_outdated     would another capture contain compiled kernels in place of the interpreter's?
 *                               Returns true once
 *     kernels_generated         is there a compiled kernel of a program?
 *     kernels_forget            forgets the kernels of a device whose context is about to be destroyed */
typedef struct kernels_used kernels_used;
kernels_used *kernels_used_new(void);
void kernels_used_free(kernels_used *u);
bool kernels_used_outdated(kernels_used *u);
bool kernels_generated(const program *p);
void kernels_forget(int device);

/* Products and convolutions of f32 that split numbers into parts of fewer bits (DUET_MATH_SPLIT).
 *     kernels_splits        does launch_step split the operands of this step? It does if the math
 *                           mode is DUET_MATH_SPLIT and splitting is faster
 *     kernels_splits_here   for such a step: are the addresses aligned as the kernel needs it?
 *     kernels_packs         does the kernel need operand 1 packed?
 *     kernels_packed_bytes  the size of a packed operand 1; its address is aligned to 256
 *     kernels_pack          packs operand 1, with its scale. The packed operand depends only on the
 *                           step's kernel, attributes and operand 1, so other steps may use it too.
 *                           The frame needs no other address */
bool kernels_splits(const step *s);
bool kernels_splits_here(const step *s, const frame *f);
bool kernels_packs(const step *s);
size_t kernels_packed_bytes(const step *s);
cudaError_t kernels_pack(const step *s, const frame *f, void *packed, const workspace *w, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
