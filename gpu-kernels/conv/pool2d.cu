/* pool2d.cu - max_pool2d and avg_pool2d: one thread for each output, a warp along the width. */
#include "conv_kernels.h"
#include "device.cuh"

namespace
{

struct row_max_pool2d {
    static __device__ inline T start() { return -INF; }
    static __device__ inline T take(T a, T x) { return MAXIMUM(a, x); }
    static __device__ inline T epilogue(T a, int count) { return a; }
};
struct row_avg_pool2d {
    static __device__ inline T start() { return K(0); }
    static __device__ inline T take(T a, T x) { return a + x; }
    static __device__ inline T epilogue(T a, int count) { return a / (T)count; }
};

/* A window: its plane, and its first row and column. These may be in the padding. */
struct window {
    const T *plane;
    int32_t i, j;
};

static __device__ inline window window_of(const pool2d_args &a, uint32_t output)
{
    const uint32_t row = quotient(output, a.width), plane = quotient(row, a.height),
                   image = quotient(plane, a.channels);
    const int32_t w = (int32_t)(output - row * a.width.by), h = (int32_t)(row - plane * a.height.by);
    const T *at = (const T *)a.in + image * a.image + (plane - image * a.channels.by) * a.plane;
    return { at, h * a.stride[0] - a.pad[0], w * a.stride[1] - a.pad[1] };
}

template <class Row> KERNEL(POOL_THREADS) any_window(const __grid_constant__ pool2d_args a)
{
    const uint32_t output = blockIdx.x * POOL_THREADS + threadIdx.x;
    if (output >= a.count) return;
    const window w = window_of(a, output);
    T s = Row::start();
    for (int i = max(w.i, 0); i < min(w.i + a.window[0], a.in_height); i++)
#pragma unroll 4
        for (int j = max(w.j, 0); j < min(w.j + a.window[1], a.in_width); j++)
            s = Row::take(s, w.plane[i * a.row + j * a.column]);
    ((T *)a.out)[output] = Row::epilogue(s, a.window[0] * a.window[1]);
}

/* A thread loads the windows of all its outputs before it reduces the first one, so that the loads
 * overlap. */
template <class Row> KERNEL(POOL_THREADS) window_2x2(const __grid_constant__ pool2d_args a)
{
    const uint32_t first = blockIdx.x * (POOL_THREADS * POOL_EACH) + threadIdx.x;
    T x[POOL_EACH][4];
    bool in[POOL_EACH][4];
#pragma unroll
    for (int u = 0; u < POOL_EACH; u++) {
        const uint32_t output = first + u * POOL_THREADS;
        const window w = window_of(a, output);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int i = w.i + k / 2, j = w.j + k % 2;
            in[u][k] =
                output < a.count && (uint32_t)i < (uint32_t)a.in_height && (uint32_t)j < (uint32_t)a.in_width;
            x[u][k] = in[u][k] ? w.plane[i * a.row + j * a.column] : K(0);
        }
    }
#pragma unroll
    for (int u = 0; u < POOL_EACH; u++) {
        T s = Row::start();
#pragma unroll
        for (int k = 0; k < 4; k++) s = in[u][k] ? Row::take(s, x[u][k]) : s;
        if (first + u * POOL_THREADS < a.count) ((T *)a.out)[first + u * POOL_THREADS] = Row::epilogue(s, 4);
    }
}

} // namespace

const void *TYPED(pool2d_kernel)(int row, int form)
{
    const bool two = form == FORM_WINDOW2;
    if (row == OP_max_pool2d)
        return two ? (const void *)window_2x2<row_max_pool2d> : (const void *)any_window<row_max_pool2d>;
    return two ? (const void *)window_2x2<row_avg_pool2d> : (const void *)any_window<row_avg_pool2d>;
}
