/* linalg_small.cu - the kernels of linalg_small.h. */
#include "device.cuh"
#include "linalg_small.h"

namespace
{

/* A complex element; its address need only be aligned for its parts. */
struct pair {
    T re, im;
};
static __device__ inline pair operator+(pair x, pair y) { return { x.re + y.re, x.im + y.im }; }
static __device__ inline pair operator-(pair x, pair y) { return { x.re - y.re, x.im - y.im }; }
static __device__ inline pair operator*(pair x, pair y)
{
    return { x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re };
}
/* Smith's method, which squares no element. */
static __device__ inline pair operator/(pair x, pair y)
{
    if (fabs(y.re) >= fabs(y.im)) {
        const T r = y.im / y.re, d = y.re + y.im * r;
        return { (x.re + x.im * r) / d, (x.im - x.re * r) / d };
    }
    const T r = y.re / y.im, d = y.re * r + y.im;
    return { (x.re * r + x.im) / d, (x.im * r - x.re) / d };
}

#define QUALIFIERS static __device__ inline
#define R          T
#ifdef T_f32
enum { LARGEST = 112, LEAST = -96 };
#else
enum { LARGEST = 1008, LEAST = -960 };
#endif

static __device__ inline pair make_pair_of(T re, T im) { return { re, im }; }

/* Matrices by warps. */
static __device__ inline void max_of_warp(T &x, int &i)
{
    for (int apart = 16; apart > 0; apart /= 2) {
        const T y = __shfl_xor_sync(~0u, x, apart);
        const int j = __shfl_xor_sync(~0u, i, apart);
        if (y > x || (y == x && j < i)) {
            x = y;
            i = j;
        }
    }
}
#define LANE               (threadIdx.x % 32)
#define LANES              32
#define SYNC()             __syncwarp()
#define MAX_OF_LANES(x, i) max_of_warp(x, i)
#define NAME(f)            f##_real_warp
#include "linalg_small_real.cuh"
#undef NAME
#define NAME(f) f##_pair_warp
#include "linalg_small_pair.cuh"
#undef NAME
#undef LANE
#undef LANES
#undef SYNC
#undef MAX_OF_LANES

/* Matrices by thread blocks. */
#define LANE    threadIdx.x
#define LANES   blockDim.x
#define SYNC()  __syncthreads()
#define NAME(f) f##_real_block
#include "linalg_small_real.cuh"
#undef NAME
#define NAME(f) f##_pair_block
#include "linalg_small_pair.cuh"
#undef NAME

extern __shared__ double memory[];

/* The part of the shared memory that a warp has, and its matrix. */
static __device__ inline void *of_warp(const small_args &a, int64_t *matrix)
{
    const int warp = (int)threadIdx.x / 32;
    *matrix = (int64_t)blockIdx.x * (blockDim.x / 32) + warp;
    return (char *)memory + warp * small_bytes_apart(&a);
}

#define KERNELS(name)                                                                                        \
    KERNEL(SMALL_LANES_MOST) name##_real(const small_args a)                                                 \
    {                                                                                                        \
        small_##name##_real_block(&a, blockIdx.x, memory);                                                   \
    }                                                                                                        \
    KERNEL(SMALL_LANES_MOST) name##_pair(const small_args a)                                                 \
    {                                                                                                        \
        small_##name##_pair_block(&a, blockIdx.x, memory);                                                   \
    }                                                                                                        \
    KERNEL(32 * SMALL_WARPS) name##_real_warps(const small_args a)                                           \
    {                                                                                                        \
        int64_t matrix;                                                                                      \
        void *const mine = of_warp(a, &matrix);                                                              \
        if (matrix < a.count) small_##name##_real_warp(&a, matrix, mine);                                    \
    }                                                                                                        \
    KERNEL(32 * SMALL_WARPS) name##_pair_warps(const small_args a)                                           \
    {                                                                                                        \
        int64_t matrix;                                                                                      \
        void *const mine = of_warp(a, &matrix);                                                              \
        if (matrix < a.count) small_##name##_pair_warp(&a, matrix, mine);                                    \
    }
KERNELS(system)
KERNELS(factors)

} // namespace

extern "C" const void *TYPED(small_kernel)(bool factors, bool pairs, bool warps)
{
    static const void *const kernel[2][2][2] = {
        { { (const void *)system_real, (const void *)system_real_warps },
          { (const void *)system_pair, (const void *)system_pair_warps } },
        { { (const void *)factors_real, (const void *)factors_real_warps },
          { (const void *)factors_pair, (const void *)factors_pair_warps } }
    };
    return kernel[factors][pairs][warps];
}
