/* compiled_reduce.cu - templates of kernels that reduce the elements of a program. nvcc compiles them to PTX
 * with placeholders for the elements (ptx_write.h). They take elements in the order of reduce.cuh. */
#include "reduce.cuh"
#include "reduce_ops.cuh"

namespace
{

/* As compiled_reduce_args. ptx_template.c replaces the size of the parameter by what a program needs. */
struct args {
    reduce_args plain;
    uint64_t operands[1];
};

/* A placeholder of as many elements as p has, from element e on. PAIRS: the reduction has two operands. */
#if defined T_INTEGER
#define RESULT(x) "=l"(x)
#elif defined T_f64
#define RESULT(x) "=d"(x)
#else
#define RESULT(x) "=f"(x)
#endif
template <bool PAIRS> __device__ __forceinline__ void formula(taken (&p)[1], int64_t e)
{
    if constexpr (PAIRS) asm volatile("// duet:1 %0 %1 %2" : RESULT(p[0].x), RESULT(p[0].y) : "l"(e));
    else asm volatile("// duet:1 %0 %1" : RESULT(p[0].x) : "l"(e));
}
template <bool PAIRS> __device__ __forceinline__ void formula(taken (&p)[2], int64_t e)
{
    if constexpr (PAIRS)
        asm volatile("// duet:2 %0 %1 %2 %3 %4"
                     : RESULT(p[0].x), RESULT(p[1].x), RESULT(p[0].y), RESULT(p[1].y)
                     : "l"(e));
    else asm volatile("// duet:2 %0 %1 %2" : RESULT(p[0].x), RESULT(p[1].x) : "l"(e));
}
template <bool PAIRS> __device__ __forceinline__ void formula(taken (&p)[4], int64_t e)
{
    if constexpr (PAIRS)
        asm volatile("// duet:4 %0 %1 %2 %3 %4 %5 %6 %7 %8"
                     : RESULT(p[0].x), RESULT(p[1].x), RESULT(p[2].x), RESULT(p[3].x), RESULT(p[0].y),
                       RESULT(p[1].y), RESULT(p[2].y), RESULT(p[3].y)
                     : "l"(e));
    else
        asm volatile("// duet:4 %0 %1 %2 %3 %4"
                     : RESULT(p[0].x), RESULT(p[1].x), RESULT(p[2].x), RESULT(p[3].x)
                     : "l"(e));
}

/* ---- rows: a warp for each block ---- */

template <class Fold> struct row_block {
    typename Fold::lane v[4];
    T with;
    int t;

    __device__ __forceinline__ void take(int l, const taken &p, int k)
    {
        v[l] = Fold::take(v[l], Fold::see(p.x, with), p.y, k);
    }
    __device__ __forceinline__ void whole_row(int64_t e, int k)
    {
        taken p[4 / WIDTH][WIDTH] = {};
#pragma unroll
        for (int h = 0; h < 4 / WIDTH; h++) formula<Fold::pairs>(p[h], e + (h * 32 + t) * WIDTH);
#pragma unroll
        for (int l = 0; l < 4; l++) take(l, p[l / WIDTH][l % WIDTH], k);
    }
    __device__ __forceinline__ void last_row(int64_t e, int k, int n)
    {
#pragma unroll
        for (int l = 0; l < 4; l++) {
            taken p[1] = {};
            if (lane_of<WIDTH>(l, t) >= n) continue;
            formula<Fold::pairs>(p, e + lane_of<WIDTH>(l, t));
            take(l, p[0], k);
        }
    }
    __device__ __forceinline__ typename Fold::acc reduce(int64_t e, int64_t first, int n)
    {
        const int rows = n / REDUCE_LANES;
#pragma unroll
        for (int l = 0; l < 4; l++) v[l] = Fold::open();
#pragma unroll 2
        for (int k = 0; k < rows; k++) whole_row(e + k * REDUCE_LANES, k);
        last_row(e + rows * REDUCE_LANES, rows, n - rows * REDUCE_LANES);
        return close_warp<Fold, WIDTH>(v, first, n, t);
    }
};

template <class Fold>
__device__ __forceinline__ typename between_blocks<Fold>::acc row(const reduce_args &a, int64_t i, int64_t b)
{
    typedef between_blocks<Fold> Blocks;
    const int t = threadIdx.x % 32;
    const int64_t first = b * REDUCE_BLOCK;
    const int n = (int)min((int64_t)REDUCE_BLOCK, a.n - first);
    typename Blocks::acc r = Blocks::start();
#pragma unroll 1
    for (int pass = 0; pass < 1 + Blocks::scales; pass++) {
        row_block<Fold> block = { {}, scale_of<Fold>(pass), t };
        const typename Fold::acc v = block.reduce(i * a.n + first, first, n);
        if constexpr (Blocks::scales) {
            r = pass ? Blocks::again(r, v) : Blocks::as_is(v);
            if (!__any_sync(~0u, t == 0 && !Fold::is_finite(v))) break;
        } else r = v;
    }
    return r;
}

template <class Fold> __device__ __forceinline__ void reduce_rows_of(const args &all)
{
    const reduce_args &a = all.plain;
    typedef between_blocks<Fold> Blocks;
    __shared__ typename Blocks::acc s[REDUCE_WARPS];
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, own = warp % a.warps;
    const int64_t slot = (int64_t)block_from_end() * (REDUCE_WARPS / a.warps) + warp / a.warps;
    const int64_t i = (int64_t)quotient((uint64_t)slot, a.by_parts), part = slot - i * a.parts,
                  b = part * a.warps + own;
    typename Blocks::acc r = Blocks::start();
    if (i < a.outputs && b < a.blocks) r = row<Fold>(a, i, b);
    if (a.warps > 1) {
        if (t == 0) s[warp] = r;
        __syncthreads();
        if (own == 0 && t == 0) r = join_pairs<Blocks>(s + warp, a.warps);
    }
    if (own == 0 && t == 0 && i < a.outputs) deliver<Blocks>(a, i, part, r);
    meet<Blocks, 1>(a, i, s);
}

/* ---- columns: neighbouring outputs in neighbouring threads ---- */

/* Elements are numbered along the outputs first. Past the end of a block the last element is computed again,
 * and not taken, so that no load depends on a branch. */
template <class Fold>
__device__ __forceinline__ typename Fold::acc column(const reduce_args &a, int64_t i, int64_t first,
                                                     int64_t end, int g, T with)
{
    enum { N = REDUCE_LANES / REDUCE_DOWN };
    lanes<Fold, N> v;
    int k = 0;
#pragma unroll 1
    for (int64_t at = first + g; at < end; at += REDUCE_LANES, k++) {
        taken p[N][1] = {};
#pragma unroll
        for (int j = 0; j < N; j++)
            formula<Fold::pairs>(p[j], min(at + j * REDUCE_DOWN, end - 1) * a.outputs + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (at + j * REDUCE_DOWN < end)
                v.v[j] = Fold::take(v.v[j], Fold::see(p[j][0].x, with), p[j][0].y, k);
    }
    return v.close(first + g, REDUCE_DOWN, end);
}

template <class Fold> __device__ __forceinline__ void reduce_columns_of(const args &all)
{
    typedef between_blocks<Fold> Blocks;
    const reduce_args &a = all.plain;
    __shared__ typename Fold::acc s[REDUCE_DOWN][REDUCE_ACROSS];
    const int c = threadIdx.x % REDUCE_ACROSS, g = threadIdx.x / REDUCE_ACROSS;
    const uint32_t tiles = gridDim.x / (uint32_t)a.blocks, block = block_from_end(), tile = block % tiles;
    const int64_t b = block / tiles, i = (int64_t)tile * REDUCE_ACROSS + c, first = b * REDUCE_BLOCK,
                  end = i < a.outputs ? min(first + REDUCE_BLOCK, a.n) : first;
    const bool has_result = g == 0 && i < a.outputs;
    typename Blocks::acc r = Blocks::start();
#pragma unroll 1
    for (int pass = 0; pass < 1 + Blocks::scales; pass++) {
        const typename Fold::acc v =
            join_down<Fold>(s, c, g, column<Fold>(a, i, first, end, g, scale_of<Fold>(pass)));
        if constexpr (Blocks::scales) {
            r = pass ? Blocks::again(r, v) : Blocks::as_is(v);
            if (!__syncthreads_or(has_result && !Fold::is_finite(v))) break;
        } else r = v;
    }
    if (has_result) deliver<Blocks>(a, i, b, r);
    meet<Blocks, REDUCE_ACROSS>(a, tile, (typename Blocks::acc *)s);
}

/* ---- few elements: one thread for each output ---- */

/* All threads take the same branches. Elements are numbered along the outputs first if ALONG. */
template <class Fold, bool ALONG>
__device__ __forceinline__ typename Fold::acc few(const reduce_args &a, int64_t i, T with)
{
    typename Fold::acc v[REDUCE_FEW];
#pragma unroll
    for (int j = 0; j < REDUCE_FEW; j++) {
        v[j] = Fold::start();
        if (j >= a.n) continue;
        taken p[1] = {};
        formula<Fold::pairs>(p, ALONG ? j * a.outputs + i : i * a.n + j);
        v[j] = Fold::close(Fold::take(Fold::open(), Fold::see(p[0].x, with), p[0].y, 0), j, 1);
    }
    join_own<Fold, REDUCE_FEW / 2, 1>(v);
    return v[0];
}

template <class Fold, bool ALONG> __device__ __forceinline__ void reduce_few_of(const args &all)
{
    typedef between_blocks<Fold> Blocks;
    const reduce_args &a = all.plain;
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = min(at, a.outputs - 1);
    typename Blocks::acc r = Blocks::start();
#pragma unroll 1
    for (int pass = 0; pass < 1 + Blocks::scales; pass++) {
        const typename Fold::acc v = few<Fold, ALONG>(a, i, scale_of<Fold>(pass));
        if constexpr (Blocks::scales) {
            r = pass ? Blocks::again(r, v) : Blocks::as_is(v);
            if (!__any_sync(~0u, !Fold::is_finite(v))) break;
        } else r = v;
    }
    if (at < a.outputs) give<Blocks>(a, i, r);
}

} // namespace

/* The launch bounds allow 128 registers for each thread. */
#define TEXTS(name, ...)                                                                                     \
    extern "C" __global__ void __launch_bounds__(REDUCE_WARPS * 32, 2)                                       \
        rows_##name(const __grid_constant__ args a)                                                          \
    {                                                                                                        \
        reduce_rows_of<folding<row_##name>>(a);                                                              \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(REDUCE_ACROSS *REDUCE_DOWN, 1)                              \
        columns_##name(const __grid_constant__ args a)                                                       \
    {                                                                                                        \
        reduce_columns_of<folding<row_##name>>(a);                                                           \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(REDUCE_WARPS * 32, 2)                                       \
        few_##name(const __grid_constant__ args a)                                                           \
    {                                                                                                        \
        reduce_few_of<folding<row_##name>, false>(a);                                                        \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(REDUCE_WARPS * 32, 2)                                       \
        few_across_##name(const __grid_constant__ args a)                                                    \
    {                                                                                                        \
        reduce_few_of<folding<row_##name>, true>(a);                                                         \
    }
#ifdef T_INTEGER
#define DUET_ANY_FOLD1 TEXTS
#define DUET_ANY_FOLD2 TEXTS
#else
#define DUET_FOLD1   TEXTS
#define DUET_FOLD2   TEXTS
#define DUET_MOMENT1 TEXTS
#endif
#define DUET_PLACE1 TEXTS
#include <duet/ops.def>
