/* wgrad.c - launches the gradient with respect to 3 x 3 filters: the first launch computes partial
 * sums, and the second one adds them. */
#include "wgrad.h"

/* Bytes of shared memory. The kernel first uses it for the loaded operands, then for the sums of
 * threads that share a task. */
static size_t shared_of(const filter_grad_args *a)
{
    const size_t stages = (size_t)a->stage * sizeof(float) * (a->each > 1 ? 2 : 1),
                 sums = a->splits > 1 ? FILTER_SUMS * FILTER_THREADS * sizeof(float) : 0;
    return stages > sums ? stages : sums;
}

static cudaError_t add_up(filter_grad_args *a, cudaStream_t q)
{
    const void *kernel = filter_grad_kernel_f32(a->pad[1]);
    const cudaError_t e = with_shared(kernel, shared_of(a), 2 * FILTER_STAGE * sizeof(float));
    if (e != cudaSuccess || !a->strips) return e;
    return launch_early(kernel, (int64_t)a->filters * a->parts.by, FILTER_THREADS, shared_of(a), a, q);
}

/* If the images have no pixels, only the second launch runs, and it writes zeros. */
cudaError_t filter_grad_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    filter_grad_args a = filter_grad_tiling(s, f->data[s->in[0].slot], f->data[s->in[1].slot]);
    a.out = f->data[s->out[0].slot];
    a.part = w->scratch;
    const cudaError_t e = add_up(&a, q);
    if (e != cudaSuccess) return e;
    return launch_early(filter_join_kernel_f32(), quotient_up((int64_t)a.filters * a.sums.by, FILTER_ACROSS),
                        FILTER_THREADS, 0, &a, q);
}
