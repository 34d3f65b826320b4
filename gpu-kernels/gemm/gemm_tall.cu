/* gemm_tall.cu - products with many rows and few columns. b stays in shared memory; a warp computes
 * some rows at a time, and its lanes divide the inner axis. */
#include "gemm_few_columns.cuh"

namespace
{

enum { WARPS = GEMM_TALL_THREADS / 32, REACH = 32 * WIDTH };

/* Stores the columns of b contiguously, with zeros beyond their ends. */
template <int N> static __device__ inline void keep(T *columns, const product_args &s, int pitch)
{
    const T *b = (const T *)s.b;
#pragma unroll 8
    for (int i = threadIdx.x; i < N * pitch; i += GEMM_TALL_THREADS) {
        const int k = i / N, j = i % N;
        columns[j * pitch + k] = k < s.k && j < s.n ? b[k * s.b_row + j * s.b_column] : K(0);
    }
}

/* Loads one vector of each row, from element k on. VECTORS: rows start at addresses aligned to 16
 * bytes and consist of whole vectors. */
template <bool VECTORS>
static __device__ inline void load(vec x[GEMM_TALL_ROWS], const product_args &s, int64_t top, int k)
{
#pragma unroll
    for (int r = 0; r < GEMM_TALL_ROWS; r++) {
        const int64_t at = min(top + r, (int64_t)s.m - 1) * s.a_row + k;
        if (VECTORS) x[r] = operand_at<vec>(s.a, at, k < s.k);
#pragma unroll
        for (int i = 0; i < WIDTH && !VECTORS; i++) x[r].e[i] = operand_at<T>(s.a, at + i, k + i < s.k);
    }
}

template <int N>
static __device__ inline void take(T acc[GEMM_TALL_ROWS * N], const vec x[GEMM_TALL_ROWS], const T *column,
                                   int pitch)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        const vec w = *(const vec *)(column + j * pitch);
#pragma unroll
        for (int r = 0; r < GEMM_TALL_ROWS; r++)
#pragma unroll
            for (int i = 0; i < WIDTH; i++) acc[r * N + j] = FMA(x[r].e[i], w.e[i], acc[r * N + j]);
    }
}

template <int N, bool VECTORS> KERNEL(GEMM_TALL_THREADS, 2) tall(ARGUMENT(product_args) s)
{
    extern __shared__ float4 shared[];
    __shared__ T sums[WARPS][GEMM_TALL_ROWS * N];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, reach = (s.k + REACH - 1) / REACH * REACH;
    const int pitch = reach + WIDTH; /* so that columns start in different banks */
    T *columns = (T *)shared;
    if (s.b_is_there) keep<N>(columns, s, pitch);
    take_turn();
    if (!s.b_is_there) keep<N>(columns, s, pitch);
    __syncthreads();
    for (int64_t top = (blockIdx.x * (int64_t)WARPS + warp) * GEMM_TALL_ROWS; top < s.m;
         top += (int64_t)gridDim.x * WARPS * GEMM_TALL_ROWS) {
        T acc[GEMM_TALL_ROWS * N] = {};
        vec x[GEMM_TALL_ROWS], next[GEMM_TALL_ROWS];
        load<VECTORS>(x, s, top, lane * WIDTH);
        for (int k = lane * WIDTH; k < reach; k += REACH) {
            load<VECTORS>(next, s, top, k + REACH);
            take<N>(acc, x, columns + k, pitch);
#pragma unroll
            for (int r = 0; r < GEMM_TALL_ROWS; r++) x[r] = next[r];
        }
        sum_over_warp<GEMM_TALL_ROWS * N>(acc, lane, sums[warp]);
        __syncwarp();
        write_rows<N>(s, sums[warp], top, GEMM_TALL_ROWS, lane, 32, [] { __syncwarp(); });
        __syncwarp();
    }
    let_next_begin();
}

#ifndef TEMPLATE
template <int N> const void *of(bool vectors)
{
    return vectors ? (const void *)tall<N, true> : (const void *)tall<N, false>;
}
#endif

} // namespace

#ifdef TEMPLATE
#define TALL(number, columns, vectors)                                                                       \
    TEMPLATE_OF(gemm_tall_##number, (GEMM_TALL_THREADS, 2), product_args, tall<columns, vectors>)
TALL(0, 2, false)
TALL(1, 4, false)
TALL(2, 6, false)
TALL(3, 8, false)
TALL(4, 10, false)
TALL(5, 12, false)
TALL(6, 14, false)
TALL(7, 16, false)
TALL(8, 2, true)
TALL(9, 4, true)
TALL(10, 6, true)
TALL(11, 8, true)
TALL(12, 10, true)
TALL(13, 12, true)
TALL(14, 14, true)
TALL(15, 16, true)
#else

/* row: the number of columns. form: FORM_FLAT if rows of a consist of aligned vectors. */
const void *TYPED(gemm_tall_kernel)(int row, int form)
{
    const bool vectors = form == FORM_FLAT;
    switch ((row + 1) / 2) {
    case 1: return of<2>(vectors);
    case 2: return of<4>(vectors);
    case 3: return of<6>(vectors);
    case 4: return of<8>(vectors);
    case 5: return of<10>(vectors);
    case 6: return of<12>(vectors);
    case 7: return of<14>(vectors);
    default: return of<16>(vectors);
    }
}
#endif
