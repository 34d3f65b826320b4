/* winograd_1d.cuh - code that winograd_1d.cu and winograd_2d.cu share: Winograd's F(2, 3), copies
 * into shared memory, and output.
 *
 * F(2, 3) computes two neighbouring results of a filter with three weights. By the definition this
 * takes six products; F(2, 3) takes four, of differences of elements with sums of weights. The
 * error is relative to all products of the elements with the weights, not only to those that a
 * result sums. A difference may overflow, or be NaN if an element is infinite. A result that is
 * not finite is therefore computed again by the definition. */
#ifndef WINOGRAD_1D_CUH
#define WINOGRAD_1D_CUH

#include "async_copy.cuh"
#include "conv_kernels.h"
#include "formula.cuh"

namespace
{

enum { PATCH_ROWS = 4, PATCH_COLUMNS = 6, ROWS = 2, COLUMNS = 4 };
typedef float patch[PATCH_ROWS][PATCH_COLUMNS];

/* ---- the transforms of weights and of elements ---- */

static __device__ inline void transform_weights(const float g[3], float u[4])
{
    const float outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1];
    u[0] = g[0];
    u[1] = outer + inner;
    u[2] = outer - inner;
    u[3] = g[2];
}

static __device__ inline void transform_patch(patch p)
{
#pragma unroll
    for (int j = 0; j < PATCH_COLUMNS; j++) {
        const float a = p[0][j] - p[2][j], b = p[1][j] + p[2][j], c = p[2][j] - p[1][j],
                    d = p[1][j] - p[3][j];
        p[0][j] = a;
        p[1][j] = b;
        p[2][j] = c;
        p[3][j] = d;
    }
}

/* ---- shared memory ---- */

/* Copies columns j .. j + 5 of a row of an image. `from` is the address of column j. The middle four
 * columns go to `to`, the other two to `beside`. */
template <bool VECTORS>
static __device__ inline void copy_row(const conv2d_args &a, int to, int beside, const float *from, int j,
                                       bool inside)
{
    copy_early<4>(beside, from, inside && (uint32_t)j < (uint32_t)a.w);
    copy_early<4>(beside + EACH, from + COLUMNS + 1, inside && j + COLUMNS + 1 < a.w);
    if (VECTORS) {
        copy_early<16>(to, from + 1, inside && j + 1 < a.w);
    } else {
#pragma unroll
        for (int x = 0; x < COLUMNS; x++)
            copy_early<4>(to + x * EACH, from + 1 + x, inside && (uint32_t)(j + 1 + x) < (uint32_t)a.w);
    }
}

/* Loads what copy_row copied. */
static __device__ inline void load_row(float p[PATCH_COLUMNS], int at, int beside)
{
    const float4 m = at_shared<float4>(at);
    const float2 h = at_shared<float2>(beside);
    p[0] = h.x;
    p[1] = m.x;
    p[2] = m.y;
    p[3] = m.z;
    p[4] = m.w;
    p[5] = h.y;
}

static __device__ inline void load_bias(const conv2d_args &a, int place, int first)
{
    for (int o = threadIdx.x; o < a.width; o += blockDim.x) /* adding -0 changes no sum */
        at_shared(place + o * EACH) =
            a.bias && first + o < a.m ? ((const float *)a.bias)[(first + o) * a.bias_stride] : -0.0f;
}

/* ---- output ---- */

/* The first of the 2 x 4 results of a thread, before pooling. */
struct place {
    int64_t image;
    int32_t row, column;
};

/* Pools before it adds the bias: rounding is monotonic, so the result is the same. It is not if the
 * bias is infinite and the opposite infinity is among the elements: their sum is NaN. */
static __device__ inline float pooled(const float y[ROWS][COLUMNS], int j, float bias, float least)
{
    const float most = MAXIMUM(MAXIMUM(y[0][j], y[0][j + 1]), MAXIMUM(y[1][j], y[1][j + 1]));
    float z = most + bias;
    if (ABS(bias) == INF)
        z = MAXIMUM(z, MINIMUM(MINIMUM(y[0][j], y[0][j + 1]), MINIMUM(y[1][j], y[1][j + 1])) + bias);
    return MAXIMUM(z, least);
}

/* Stores N neighbouring results, from element `at` on. Stores them at once if rows consist of such groups. */
template <int N> static __device__ inline void write(const conv2d_args &a, int64_t at, int column, float z[N])
{
    struct alignas(N * sizeof(float)) some {
        float e[N];
    };
    float *out = (float *)a.out + at;
    if (a.wide) {
        some s;
        apply_formula<N>(z, at);
#pragma unroll
        for (int x = 0; x < N; x++) s.e[x] = z[x];
        *(some *)out = s;
    } else {
#pragma unroll
        for (int x = 0; x < N; x++)
            if (column + x < a.out_w) out[x] = formula_of(z[x], at + x);
    }
}

/* Adds the bias to the results y of one output, applies relu, pools and stores them. */
template <bool POOLED>
static __device__ inline void store_results(const conv2d_args &a, const place &at, int o,
                                            const float y[ROWS][COLUMNS], float bias)
{
    constexpr int by = POOLED ? 2 : 1;
    const int row = at.row / by, column = at.column / by;
    const int64_t first = ((at.image * a.m + o) * a.out_h + row) * a.out_w + column;
    if (POOLED) {
        float z[2] = { pooled(y, 0, bias, a.least), pooled(y, 2, bias, a.least) };
        write<2>(a, first, column, z);
    } else {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            float z[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) z[j] = MAXIMUM(y[i][j] + bias, a.least);
            if (row + i < a.out_h) write<COLUMNS>(a, first + i * (int64_t)a.out_w, column, z);
        }
    }
}

/* In a template these functions are inlined: a formula reads the kernel's argument, which a called function
 * cannot access. */
#ifdef TEMPLATE
#define RECOMPUTES static __device__ __forceinline__
#else
#define RECOMPUTES static __device__ __noinline__
#endif

/* Returns one result, computed by the definition. Padding is zeros, which are multiplied by the
 * weights too: an infinite weight then gives NaN. */
RECOMPUTES float defined(const conv2d_args &a, int64_t image, int o, int row, int column)
{
    const float *in = (const float *)a.in + image * a.image,
                *filter = (const float *)a.filters + o * a.filter[0];
    float sum = 0;
#pragma unroll 1
    for (int c = 0; c < a.c; c++) {
        float part = 0; /* one sum for each channel: the error is (c + 9) u of the absolute values */
#pragma unroll 1
        for (int t = 0; t < 9; t++) {
            const int i = row - a.pad[0] + t / 3, j = column - a.pad[1] + t % 3;
            const bool inside = (uint32_t)i < (uint32_t)a.h && (uint32_t)j < (uint32_t)a.w;
            const float x = inside ? in[(int64_t)c * a.channel + (int64_t)i * a.row + j] : 0;
            part = FMA(filter[c * a.filter[1] + t / 3 * a.filter[2] + t % 3 * a.filter[3]], x, part);
        }
        sum += part;
    }
    return sum;
}

/* Computes results of a position again by the definition. Bit o of `which` stands for output
 * `first` + o. */
template <bool POOLED>
RECOMPUTES void recompute(const conv2d_args &a, place at, int first, uint32_t which, int bias)
{
#pragma unroll 1
    for (; which; which &= which - 1) {
        const int o = __ffs((int)which) - 1;
        float y[ROWS][COLUMNS];
#pragma unroll 1
        for (int t = 0; t < ROWS * COLUMNS; t++)
            y[t / COLUMNS][t % COLUMNS] =
                defined(a, at.image, first + o, at.row + t / COLUMNS, at.column + t % COLUMNS);
        store_results<POOLED>(a, at, first + o, y, at_shared(bias + o * EACH));
    }
}

/* The group of outputs of a thread block, and its number among the thread blocks of this group. It
 * is computed again at each use, because the sums leave no registers for it. */
struct work_share {
    uint32_t walker, group;
};

static __device__ inline work_share work_share_of(const conv2d_args &a)
{
    uint32_t block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    const uint32_t walker = quotient(block, a.groups);
    return { walker, block - walker * a.groups.by };
}

} // namespace
#endif
