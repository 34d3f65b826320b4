/* kron.cu - the kernel of the Kronecker product, and its launch. Each thread multiplies one element
 * of x by one element of y. */
#include "gather_scatter.cuh"

#define THREADS 256

namespace
{

struct kron_args {
    const void *in[2];
    void *out; /* dense */
    int64_t count;
    int32_t rank;
    divider64 out_size[DUET_RANK_MAX], y_size[DUET_RANK_MAX];
    int64_t stride[2][DUET_RANK_MAX];
};

template <class E> KERNEL(THREADS) kron(const __grid_constant__ kron_args a)
{
    const int64_t i = thread_index();
    if (i >= a.count) return;
    uint64_t rest = (uint64_t)i;
    int64_t x = 0, y = 0;
#pragma unroll 1
    for (int axis = a.rank; axis-- > 0;) {
        const uint64_t q = quotient(rest, a.out_size[axis]), at = rest - q * a.out_size[axis].by;
        const uint64_t of_x = quotient(at, a.y_size[axis]), of_y = at - of_x * a.y_size[axis].by;
        x += (int64_t)of_x * a.stride[0][axis];
        y += (int64_t)of_y * a.stride[1][axis];
        rest = q;
    }
    ((E *)a.out)[i] = ((const E *)a.in[0])[x] * ((const E *)a.in[1])[y];
}

const void *kernel_of(duet_dtype type)
{
    if (type == DUET_F32) return (const void *)kron<float>;
    return type == DUET_F64 ? (const void *)kron<double> : (const void *)kron<uint64_t>;
}

kron_args args_of(const step *s, const frame *f)
{
    const layout *out = &s->out[0].at, *y = &s->in[1].at;
    kron_args a = {};
    a.out = f->data[s->out[0].slot];
    a.count = layout_count(out);
    a.rank = out->rank;
    for (int k = 0; k < 2; k++) {
        const layout *in = &s->in[k].at;
        const int missing = out->rank - in->rank; /* leading axes of one element */
        a.in[k] = f->data[s->in[k].slot];
        for (int axis = missing; axis < out->rank; axis++) a.stride[k][axis] = in->stride[axis - missing];
    }
    for (int axis = 0; axis < out->rank; axis++) {
        const int own = axis - (out->rank - y->rank);
        a.out_size[axis] = divide_by64(out->size[axis]);
        a.y_size[axis] = divide_by64(own < 0 ? 1 : y->size[own]);
    }
    return a;
}

} // namespace

cudaError_t kron_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    kron_args a = args_of(s, f);
    return launch(kernel_of(s->out[0].at.type), quotient_up(a.count, THREADS), THREADS, 0, &a, q);
}
