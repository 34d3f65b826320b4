/* kron.cu - the Kronecker product: each thread multiplies one element of x by one of y. */
#include "gather_scatter.cuh"
#include "kron.h"

namespace
{

template <class E> KERNEL(KRON_THREADS) kron(const __grid_constant__ kron_args a)
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

} // namespace

const void *kron_kernel(duet_dtype type)
{
    if (type == DUET_F32) return (const void *)kron<float>;
    return type == DUET_F64 ? (const void *)kron<double> : (const void *)kron<uint64_t>;
}
