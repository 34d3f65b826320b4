/* kron.c - launches the Kronecker product. */
#include "kron.h"

static kron_args args_of(const step *s, const frame *f)
{
    const layout *out = &s->out[0].at;
    kron_args a = { .out = f->data[s->out[0].slot], .count = layout_count(out), .rank = out->rank };
    for (int k = 0; k < 2; k++) {
        const layout *in = &s->in[k].at;
        const int missing = out->rank - in->rank; /* axes of one element in front */
        a.in[k] = f->data[s->in[k].slot];
        for (int axis = 0; axis < out->rank; axis++)
            a.stride[k][axis] = axis < missing ? 0 : in->stride[axis - missing];
    }
    const layout *y = &s->in[1].at;
    for (int axis = 0; axis < out->rank; axis++) {
        const int own = axis - (out->rank - y->rank);
        a.out_size[axis] = divide_by64(out->size[axis]);
        a.y_size[axis] = divide_by64(own < 0 ? 1 : y->size[own]);
    }
    return a;
}

cudaError_t kron_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    kron_args a = args_of(s, f);
    return launch(kron_kernel(s->out[0].at.type), quotient_up(a.count, KRON_THREADS), KRON_THREADS, 0, &a, q);
}
