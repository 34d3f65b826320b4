/* pool2d.cu - max_pool2d and avg_pool2d: a thread an output, a warp along the width. */
#include "device.cuh"

namespace
{

struct row_max_pool2d {
    static __device__ inline T start() { return -INF; }
    static __device__ inline T take(T a, T x) { return MAXIMUM(a, x); }
    static __device__ inline T finish(T a, int count) { return a; }
};
struct row_avg_pool2d {
    static __device__ inline T start() { return K(0); }
    static __device__ inline T take(T a, T x) { return a + x; }
    static __device__ inline T finish(T a, int count) { return a / (T)count; }
};

/* A window: the image's first element, and the window's first row and column in it, which may lie outside. */
struct window {
    const T *image;
    int64_t i, j;
};

static __device__ inline window window_of(const pool2d_args &a, int64_t output)
{
    const uint64_t row = quotient((uint64_t)output, a.width), plane = quotient(row, a.height), n = quotient(plane, a.channels);
    const int64_t w = (int64_t)(output - row * a.width.by), h = (int64_t)(row - plane * a.height.by);
    const int64_t c = (int64_t)(plane - n * a.channels.by);
    return { (const T *)a.in + (int64_t)n * a.in_stride[0] + c * a.in_stride[1], h * a.stride[0] - a.pad[0],
             w * a.stride[1] - a.pad[1] };
}

static __device__ inline bool inside(const pool2d_args &a, int64_t i, int64_t j)
{
    return i >= 0 && i < a.in_height && j >= 0 && j < a.in_width;
}

template <class Row> KERNEL(POOL_THREADS) any_window(const __grid_constant__ pool2d_args a)
{
    const int64_t output = (int64_t)blockIdx.x * POOL_THREADS + threadIdx.x;
    if (output >= a.count) return;
    const window w = window_of(a, output);
    T s = Row::start();
    for (int64_t i = max(w.i, (int64_t)0); i < min(w.i + a.window[0], a.in_height); i++)
#pragma unroll 4
        for (int64_t j = max(w.j, (int64_t)0); j < min(w.j + a.window[1], a.in_width); j++)
            s = Row::take(s, w.image[i * a.in_stride[2] + j * a.in_stride[3]]);
    ((T *)a.out)[output] = Row::finish(s, a.window[0] * a.window[1]);
}

/* All loads of a thread's outputs are on their way before one is used. */
template <class Row> KERNEL(POOL_THREADS) window_2x2(const __grid_constant__ pool2d_args a)
{
    const int64_t first = (int64_t)blockIdx.x * (POOL_THREADS * POOL_EACH) + threadIdx.x;
    T x[POOL_EACH][4];
    bool in[POOL_EACH][4];
#pragma unroll
    for (int u = 0; u < POOL_EACH; u++) {
        const int64_t output = first + u * POOL_THREADS;
        const window w = window_of(a, output < a.count ? output : 0);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64_t i = w.i + k / 2, j = w.j + k % 2;
            in[u][k] = output < a.count && inside(a, i, j);
            x[u][k] = in[u][k] ? w.image[i * a.in_stride[2] + j * a.in_stride[3]] : K(0);
        }
    }
#pragma unroll
    for (int u = 0; u < POOL_EACH; u++) {
        T s = Row::start();
#pragma unroll
        for (int k = 0; k < 4; k++) s = in[u][k] ? Row::take(s, x[u][k]) : s;
        if (first + u * POOL_THREADS < a.count) ((T *)a.out)[first + u * POOL_THREADS] = Row::finish(s, 4);
    }
}

} // namespace

const void *TYPED(pool2d_kernel)(int row, int form)
{
    const bool two = form == FORM_WINDOW2;
    if (row == OP_max_pool2d) return two ? (const void *)window_2x2<row_max_pool2d> : (const void *)any_window<row_max_pool2d>;
    return two ? (const void *)window_2x2<row_avg_pool2d> : (const void *)any_window<row_avg_pool2d>;
}
