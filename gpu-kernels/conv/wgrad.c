/* wgrad.c - launches gradients with respect to 3 x 3 filters: one launch computes partial sums, a
 * second one joins them. */
#include "wgrad.h"

/* Shared memory for the stages, or for joining the sums of threads that share an element. */
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

/* Without pixels, the second launch writes zeros. */
cudaError_t filter_grad_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    filter_grad_args a = filter_grad_cut(s, f->data[s->in[0].slot], f->data[s->in[1].slot]);
    a.out = f->data[s->out[0].slot];
    a.part = w->scratch;
    const cudaError_t e = add_up(&a, q);
    if (e != cudaSuccess) return e;
    return launch_early(filter_join_kernel_f32(), quotient_up((int64_t)a.filters * a.sums.by, FILTER_ACROSS),
                        FILTER_THREADS, 0, &a, q);
}
