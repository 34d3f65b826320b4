/* dispatch.c - launches a step by its row of kernels.def. */
#include "emulated.h"
#include "interpreter_kernels.h"
#include "joined.h"
#include "reduce_kernels.h"

int kernels_oldest(void) { return OLDEST_CARD; }

/* A program either has reductions, or is element-wise. */
size_t program_workspace(const step *s) { return s->program->reductions ? reduce_workspace(s) : 0; }

cudaError_t program_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    return s->program->reductions ? reduce_launch(s, f, w, q) : interp_launch(s, f, w, q);
}

static const struct {
    workspace_size *workspace;
    launcher *launch;
} launchers[KERNELS_ALL] = {
#define GPU_KERNEL(number, unsupported, cost, launch)                      [number] = { NULL, launch },
#define GPU_KERNEL_WORKSPACE(number, unsupported, cost, workspace, launch) [number] = { workspace, launch },
#include "kernels.def"
};

size_t kernels_scratch(const step *s)
{
    workspace_size *const bytes = launchers[s->kernel].workspace;
    return bytes ? bytes(s) : 0;
}

cudaError_t launch_step(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    if (w->packed) return emulated_launch(s, f, w, q);
    launcher *const by = launchers[s->kernel].launch;
    return by ? by(s, f, w, q) : cudaErrorNotSupported;
}

cudaError_t launch_joined(const step *s, const step *then, const frame *f, const workspace *w, cudaStream_t q,
                          bool *done)
{
    const bool first = s->kernel == KERNEL_PROGRAM;
    joined j = { .program = first ? s : then, .first = first, .given = s->joins - 1, .f = f, .w = w };
    cudaError_t e = cudaSuccess;
    if (first) e = product_join(then, &j, f, w, q);
    else if (w->packed) e = emulated_join(s, &j, f, w, q);
    else if (s->kernel == OP_matmul) e = product_join(s, &j, f, w, q);
    else if (s->kernel == OP_conv2d) e = conv2d_join(s, &j, f, w, q);
    *done = j.done;
    return e;
}
