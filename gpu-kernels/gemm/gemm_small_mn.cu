/* gemm_small_mn.cu - products with few rows and few columns. A thread block computes two rows; its
 * threads divide the inner axis and join their sums at the end. */
#include "gemm_few_columns.cuh"

namespace
{

struct alignas(2 * sizeof(T)) pair {
    T e[2];
};

/* Loads one row of b. EXACT: the row has N contiguous numbers, in aligned pairs. */
template <int N, bool EXACT> static __device__ inline void load(T b[N], const T *at, const product_args &s)
{
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        if (EXACT) {
            const pair p = *(const pair *)(at + j);
            b[j] = p.e[0];
            b[j + 1] = p.e[1];
        } else {
            b[j] = j < s.n ? at[j * s.b_column] : K(0);
            b[j + 1] = j + 1 < s.n ? at[(j + 1) * s.b_column] : K(0);
        }
    }
}

enum { EACH = 16 / sizeof(T) };

/* Loads rows l, l + GEMM_MN_THREADS, ... of b, and zeros beyond its end. */
template <int N, bool EXACT>
static __device__ inline void load_some(T x[EACH][N], const product_args &s, int l)
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int k = l + i * GEMM_MN_THREADS;
        if (k < s.k) {
            load<N, EXACT>(x[i], (const T *)s.b + k * s.b_row, s);
        } else {
#pragma unroll
            for (int j = 0; j < N; j++) x[i][j] = K(0);
        }
    }
}

template <int N, bool EXACT> KERNEL(GEMM_MN_THREADS) product(ARGUMENT(product_args) s)
{
    enum { ROWS = GEMM_MN_ROWS, WARPS = GEMM_MN_THREADS / 32 };
    __shared__ T part[WARPS][ROWS * N];
    const int64_t top = blockIdx.x * (int64_t)ROWS;
    T acc[ROWS * N] = {}, x[EACH][N];
    if (s.b_is_there) load_some<N, EXACT>(x, s, threadIdx.x);
    take_turn();
    for (int l = threadIdx.x; l < s.k; l += EACH * GEMM_MN_THREADS) {
        if (l >= GEMM_MN_THREADS || !s.b_is_there) load_some<N, EXACT>(x, s, l);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int k = l + i * GEMM_MN_THREADS;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const T y = operand_at<T>(s.a, min(top + r, (int64_t)s.m - 1) * s.a_row + k, k < s.k);
#pragma unroll
                for (int j = 0; j < N; j++) acc[r * N + j] = FMA(y, x[i][j], acc[r * N + j]);
            }
        }
    }
    sum_over_warp<ROWS * N>(acc, threadIdx.x % 32, part[threadIdx.x / 32]);
    let_next_begin();
    __syncthreads();
    if (threadIdx.x < ROWS * N)
        for (int w = 1; w < WARPS; w++) part[0][threadIdx.x] += part[w][threadIdx.x];
    write_rows<N>(s, part[0], top, ROWS, threadIdx.x, GEMM_MN_THREADS, [] { __syncthreads(); });
}

#ifndef TEMPLATE
const void *exact_of(int columns)
{
    switch (columns) {
    case 2: return (const void *)product<2, true>;
    case 4: return (const void *)product<4, true>;
    case 6: return (const void *)product<6, true>;
    case 8: return (const void *)product<8, true>;
    case 10: return (const void *)product<10, true>;
    case 12: return (const void *)product<12, true>;
    case 14: return (const void *)product<14, true>;
    case 16: return (const void *)product<16, true>;
    default: return nullptr;
    }
}
#endif

} // namespace

#ifdef TEMPLATE
#define SMALL_MN(number, columns, exact)                                                                     \
    TEMPLATE_OF(gemm_small_mn_##number, (GEMM_MN_THREADS), product_args, product<columns, exact>)
SMALL_MN(0, 2, true)
SMALL_MN(1, 4, true)
SMALL_MN(2, 6, true)
SMALL_MN(3, 8, true)
SMALL_MN(4, 10, true)
SMALL_MN(5, 12, true)
SMALL_MN(6, 14, true)
SMALL_MN(7, 16, true)
SMALL_MN(8, 4, false)
SMALL_MN(9, 10, false)
SMALL_MN(10, 16, false)
#else

/* row: the number of columns. */
const void *TYPED(gemm_small_mn_kernel)(int row, int form)
{
    if (form == FORM_FLAT) return exact_of(row);
    if (row <= 4) return (const void *)product<4, false>;
    return row <= 10 ? (const void *)product<10, false> : (const void *)product<16, false>;
}
#endif
