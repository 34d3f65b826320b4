/* gemm_few_columns.cuh - code that the kernels for products with few columns share: sums over
 * lanes, and rows of results. */
#ifndef GEMM_FEW_COLUMNS_CUH
#define GEMM_FEW_COLUMNS_CUH

#include "epilogue.cuh"

namespace
{

/* Sums COUNT values over the lanes of a warp. Each level halves the values of a lane: lanes whose
 * number has the bit OFF keep the upper half. On return `first` is the index of v[0], and `valid`
 * the number of entries of v that are values. */
template <int COUNT
, int OFF > static __device__ inline void join(T *v, int lane, int &first, int &valid)
{
    constexpr int half = (COUNT + 1) / 2;
    const bool up = lane & OFF;
#pragma unroll
    for (int i = 0; i < half; i++) {
        const T high = i + half < COUNT
        ? v[i + half] : K(0);
        const T give = up ? v[i] : high, keep = up ? high : v[i];
        v[i] = keep + __shfl_xor_sync(~0u, give, OFF);
    }
    first += up ? half : 0;
    valid = up ? max(valid - half, 0) : min(valid, half);
    if constexpr (OFF > 1) join<half, OFF / 2>(v, lane, first, valid);
}

/* Stores the sums to to[0 .. COUNT - 1]. */
template <int COUNT
> static __device__ inline void sum_over_warp(T *v, int lane, T *to)
{
    constexpr int LEFT = (COUNT + 31) / 32 + 1; /* values in a lane at the end */
    int first = 0, valid = COUNT;
    join < COUNT
    , 16 > (v, lane, first, valid);
#pragma unroll
    for (int i = 0; i < LEFT; i++)
        if (i < valid) to[first + i] = v[i];
}

/* Element j of the softmax of a row. Every element recomputes all exponentials of the row, because
 * rows are short. */
static __device__ inline T soft(const T *row, int n, int j)
{
    T most = row[0], sum = K(0), own = K(0);
    for (int i = 1; i < n; i++) most = MAXIMUM(most, row[i]);
    for (int i = 0; i < n; i++) {
        const T e = FN(exp)(row[i] - most);
        sum += e;
        if (i == j) own = e;
    }
    return own / sum;
}

/* Applies the epilogue to rows of N sums, s.n of which are columns, and stores them. `threads`
 * threads take part and synchronise by sync. The sums are overwritten. */
template <int N, class SYNC>
static __device__ inline void write_rows(const product_args &s, T *sums, int64_t top, int rows, int thread,
                                         int threads, SYNC sync)
{
    for (int i = thread; i < rows * N; i += threads)
        if (i % N < s.n && top + i / N < s.m) sums[i] = result_of(s, sums[i], top + i / N, i % N);
    if (s.act == OP_softmax) sync();
    for (int i = thread; i < rows * N; i += threads) {
        const int r = i / N, j = i % N;
        if (j >= s.n || top + r >= s.m) continue;
        ((T *)s.out)[(top + r) * s.out_row + j] = s.act == OP_softmax ? soft(sums + r * N, s.n, j) : sums[i];
    }
}

} // namespace

#endif
