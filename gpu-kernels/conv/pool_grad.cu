/* pool_grad.cu - gradients of pooling, and upsampling: one thread for each element of the image,
 * which visits every window that contains it. */
#include "conv_kernels.h"
#include "device.cuh"

namespace
{

/* Windows from .. to - 1 contain element i of an axis. */
struct windows {
    int32_t from, to;
};

static __device__ inline windows windows_of(const pool_grad_args &a, int axis, int32_t i, int32_t count)
{
    const int32_t at = i + a.pad[axis], before = at - a.window[axis];
    const int32_t from = before < 0 ? 0 : before / a.step[axis] + 1, to = at / a.step[axis] + 1;
    return { from, to < count ? to : count };
}

/* Is element (i, j), whose value is x, the maximum of window (p, q)? Of equal elements the first
 * one counts, and a NaN exceeds every number. */
static __device__ inline bool wins(const pool_grad_args &a, const T *plane, T x, int32_t i, int32_t j,
                                   int32_t p, int32_t q)
{
    const int32_t top = p * a.step[0] - a.pad[0], left = q * a.step[1] - a.pad[1];
    const int32_t bottom = min(top + a.window[0], a.in_height), right = min(left + a.window[1], a.in_width);
    for (int32_t u = max(top, 0); u < bottom; u++)
        for (int32_t v = max(left, 0); v < right; v++) {
            const T y = plane[u * a.stride[2] + v * a.stride[3]];
            const bool before = u < i || (u == i && v < j);
            if (x != x ? before && y != y : y != y || y > x || (before && y == x)) return false;
        }
    return true;
}

struct row_max_pool2d_grad {
    static __device__ inline T at(const pool_grad_args &a, const T *plane, const T *grad, int32_t i,
                                  int32_t j)
    {
        const windows h = windows_of(a, 0, i, a.grad_height), w = windows_of(a, 1, j, a.grad_width);
        const T x = plane[i * a.stride[2] + j * a.stride[3]];
        T sum = K(0);
        for (int32_t p = h.from; p < h.to; p++)
            for (int32_t q = w.from; q < w.to; q++)
                if (wins(a, plane, x, i, j, p, q))
                    sum = sum + grad[p * a.grad_stride[2] + q * a.grad_stride[3]];
        return sum;
    }
};
struct row_avg_pool2d_grad {
    static __device__ inline T at(const pool_grad_args &a, const T *plane, const T *grad, int32_t i,
                                  int32_t j)
    {
        const windows h = windows_of(a, 0, i, a.grad_height), w = windows_of(a, 1, j, a.grad_width);
        T sum = K(0);
        for (int32_t p = h.from; p < h.to; p++)
            for (int32_t q = w.from; q < w.to; q++)
                sum = sum + grad[p * a.grad_stride[2] + q * a.grad_stride[3]];
        return sum / (T)((int64_t)a.window[0] * a.window[1]);
    }
};
struct row_upsample2d {
    static __device__ inline T at(const pool_grad_args &a, const T *plane, const T *grad, int32_t i,
                                  int32_t j)
    {
        return plane[i / a.window[0] * a.stride[2] + j / a.window[1] * a.stride[3]];
    }
};

template <class Row> KERNEL(POOL_THREADS) elements(const __grid_constant__ pool_grad_args a)
{
    const int64_t all = (int64_t)gridDim.x * POOL_THREADS;
    for (int64_t e = (int64_t)blockIdx.x * POOL_THREADS + threadIdx.x; e < a.count; e += all) {
        const uint64_t row = quotient((uint64_t)e, a.width), plane = quotient(row, a.height),
                       image = quotient(plane, a.channels);
        const int32_t j = (int32_t)(e - row * a.width.by), i = (int32_t)(row - plane * a.height.by);
        const int64_t c = (int64_t)(plane - image * a.channels.by), n = (int64_t)image;
        ((T *)a.out)[e] = Row::at(a, (const T *)a.in + n * a.stride[0] + c * a.stride[1],
                                  (const T *)a.grad + n * a.grad_stride[0] + c * a.grad_stride[1], i, j);
    }
}

} // namespace

const void *TYPED(pool_grad_kernel)(int row, int form)
{
    if (row == OP_max_pool2d_grad) return (const void *)elements<row_max_pool2d_grad>;
    if (row == OP_avg_pool2d_grad) return (const void *)elements<row_avg_pool2d_grad>;
    return (const void *)elements<row_upsample2d>;
}
