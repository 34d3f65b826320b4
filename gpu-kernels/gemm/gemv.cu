/* gemv.cu - products with one or two rows: matrix times vector. The matrix is read once. If the
 * previous kernel did not write the matrix, its first part is loaded while that kernel ends. */
#include "epilogue.cuh"

namespace
{

enum { EACH = IS_OPERAND ? 4 : 8 }; /* fewer with a formula, whose operands need registers, too */
enum { COLUMNS = 4, ACROSS = 2, DOWN = GEMV_THREADS / ACROSS, WARPS = GEMV_THREADS / 32 };

struct alignas(COLUMNS * sizeof(T)) quad {
    T e[COLUMNS];
};

/* Loads rows k0 + i * DOWN of four columns of b, and zeros beyond its edges. WIDE: 16 bytes at
 * aligned addresses. */
template <bool WIDE>
static __device__ inline void load(quad w[EACH], const product_args &s, int k0, int column)
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int k = k0 + i * DOWN;
        const int64_t at = k * s.b_row + column;
        if (WIDE) w[i] = operand_at<quad>(s.b, at, k < s.k && column < s.n);
#pragma unroll
        for (int c = 0; c < COLUMNS && !WIDE; c++)
            w[i].e[c] = operand_at<T>(s.b, at + c, k < s.k && column + c < s.n);
    }
}

template <int ROWS>
static __device__ inline void take(quad sum[ROWS], const quad w[EACH], const product_args &s, int k0)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int k = k0 + i * DOWN;
            const T x = k < s.k ? ((const T *)s.a)[r * s.a_row + k] : K(0);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) sum[r].e[c] = FMA(x, w[i].e[c], sum[r].e[c]);
        }
}

/* Sums over the lanes with the same columns. */
static __device__ inline quad sum_over_lanes(quad x)
{
#pragma unroll
    for (int off = 16; off >= ACROSS; off /= 2)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) x.e[c] += __shfl_xor_sync(~0u, x.e[c], off);
    return x;
}

/* A thread block computes eight columns. A thread takes four of them, and every DOWN-th row of b. */
template <int ROWS, bool WIDE> KERNEL(GEMV_THREADS) gemv(ARGUMENT(product_args) s)
{
    __shared__ T part[WARPS][ROWS][ACROSS * COLUMNS];
    const int half = threadIdx.x % ACROSS, first = threadIdx.x / ACROSS,
              left = blockIdx.x * (ACROSS * COLUMNS);
    quad w[EACH], sum[ROWS] = {};
    const bool early = !IS_OPERAND && s.b_is_there; /* the previous kernel may write a formula's operands */
    if (early) load<WIDE>(w, s, first, left + half * COLUMNS);
    take_turn();
    let_next_begin();
    if (!early) load<WIDE>(w, s, first, left + half * COLUMNS);
    take<ROWS>(sum, w, s, first);
    for (int k0 = first + EACH * DOWN; k0 < s.k; k0 += EACH * DOWN) {
        load<WIDE>(w, s, k0, left + half * COLUMNS);
        take<ROWS>(sum, w, s, k0);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const quad all = sum_over_lanes(sum[r]);
        if (threadIdx.x % 32 < ACROSS) *(quad *)&part[threadIdx.x / 32][r][half * COLUMNS] = all;
    }
    __syncthreads();
    const int row = threadIdx.x / (ACROSS * COLUMNS), column = threadIdx.x % (ACROSS * COLUMNS);
    if (row >= ROWS || left + column >= s.n) return;
    T all = K(0);
#pragma unroll
    for (int i = 0; i < WARPS; i++) all += part[i][row][column];
    ((T *)s.out)[row * s.out_row + left + column] = result_of(s, all, row, left + column);
}

/* The columns of b are contiguous: one warp for each column. */
template <int ROWS, bool WIDE> KERNEL(GEMV_THREADS) dots(ARGUMENT(product_args) s)
{
    const int column = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t b = column * s.b_column; /* the first element of the column */
    const T *a = (const T *)s.a;
    T sum[ROWS] = {};
    take_turn();
    let_next_begin();
    if (column >= s.n) return;
    if (WIDE) {
#pragma unroll 4
        for (int k = lane * COLUMNS; k < s.k; k += 32 * COLUMNS) {
            const quad w = operand_at<quad>(s.b, b + k, true);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const quad x = *(const quad *)(a + r * s.a_row + k);
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) sum[r] = FMA(x.e[c], w.e[c], sum[r]);
            }
        }
    } else {
#pragma unroll 4
        for (int k = lane; k < s.k; k += 32) {
            const T w = operand_at<T>(s.b, b + k, true);
#pragma unroll
            for (int r = 0; r < ROWS; r++) sum[r] = FMA(a[r * s.a_row + k], w, sum[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int off = 16; off > 0; off /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], off);
        if (lane == r) ((T *)s.out)[r * s.out_row + column] = result_of(s, sum[r], r, column);
    }
}

} // namespace

#ifdef TEMPLATE
TEMPLATE_OF(gemv_0, (GEMV_THREADS), product_args, gemv<1, false>)
TEMPLATE_OF(gemv_1, (GEMV_THREADS), product_args, gemv<2, false>)
TEMPLATE_OF(gemv_2, (GEMV_THREADS), product_args, gemv<1, true>)
TEMPLATE_OF(gemv_3, (GEMV_THREADS), product_args, gemv<2, true>)
TEMPLATE_OF(gemv_4, (GEMV_THREADS), product_args, dots<1, false>)
TEMPLATE_OF(gemv_5, (GEMV_THREADS), product_args, dots<2, false>)
TEMPLATE_OF(gemv_6, (GEMV_THREADS), product_args, dots<1, true>)
TEMPLATE_OF(gemv_7, (GEMV_THREADS), product_args, dots<2, true>)
#else
/* rows: 1 or 2. form: FORM_ROWS if the rows of b are contiguous, FORM_COLUMNS if its columns are. */
const void *gemv_kernel(int rows, int form, bool wide)
{
    const void *const by_columns[2][2] = { { (const void *)dots<1, false>, (const void *)dots<1, true> },
                                           { (const void *)dots<2, false>, (const void *)dots<2, true> } };
    const void *const by_rows[2][2] = { { (const void *)gemv<1, false>, (const void *)gemv<1, true> },
                                        { (const void *)gemv<2, false>, (const void *)gemv<2, true> } };
    return (form == FORM_COLUMNS ? by_columns : by_rows)[rows != 1][wide];
}
#endif
