/* skinny.cu - products with few columns: a thread block takes some rows, its threads the inner axis; their sums join at last. */
#include "device.cuh"

namespace
{

struct alignas(2 * sizeof(T)) pair {
    T e[2];
};

/* One row of b. EXACT: it has N numbers side by side, in aligned pairs. */
template <int N, bool EXACT> static __device__ inline void load(T b[N], const T *at, const skinny_args &s)
{
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        if (EXACT) {
            const pair p = *(const pair *)(at + j);
            b[j] = p.e[0], b[j + 1] = p.e[1];
        } else {
            b[j] = j < s.n ? at[j * s.b_column] : K(0);
            b[j + 1] = j + 1 < s.n ? at[(j + 1) * s.b_column] : K(0);
        }
    }
}

/* Sums COUNT values over the lanes of a warp. Each level halves the values that a lane goes on with: lanes with the bit of OFF keep
 * the upper half. `first` is the index of v[0] at last, `valid` how many of v are values. */
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
    first += up ? half : 0, valid = up ? max(valid - half, 0) : min(valid, half);
    if constexpr (OFF > 1) join<half, OFF / 2>(v, lane, first, valid);
}

template <int N, int ROWS, bool EXACT> KERNEL(SKINNY_THREADS) product(const __grid_constant__ skinny_args s)
{
    constexpr int LEFT = (ROWS * N + 31) / 32 + 1; /* of the values, in a lane at last */
    __shared__ T part[SKINNY_THREADS / 32][ROWS * N];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t top = blockIdx.x * (int64_t)ROWS;
    const T *a = (const T *)s.a, *b = (const T *)s.b;
    T acc[ROWS * N] = {};
#pragma unroll 4
    for (int l = threadIdx.x; l < s.k; l += SKINNY_THREADS) {
        T x[N];
        load<N, EXACT>(x, b + l * s.b_row, s);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const T y = a[min(top + r, (int64_t)s.m - 1) * s.a_row + l];
#pragma unroll
            for (int j = 0; j < N; j++) acc[r * N + j] = FMA(y, x[j], acc[r * N + j]);
        }
    }
    int first = 0, valid = ROWS * N;
    join<ROWS * N, 16>(acc, lane, first, valid);
#pragma unroll
    for (int i = 0; i < LEFT; i++)
        if (i < valid) part[warp][first + i] = acc[i];
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * N; i += SKINNY_THREADS) {
        const int r = i / N, j = i % N;
        T sum = part[0][i];
        for (int w = 1; w < SKINNY_THREADS / 32; w++) sum += part[w][i];
        if (j < s.n && top + r < s.m) ((T *)s.out)[(top + r) * s.out_row + j] = (T)s.alpha * sum;
    }
}

template <int N> const void *exact(bool many)
{
    return many ? (const void *)product<N, SKINNY_MANY, true> : (const void *)product<N, SKINNY_FEW, true>;
}
template <int N> const void *any(bool many)
{
    return many ? (const void *)product<N, SKINNY_MANY, false> : (const void *)product<N, SKINNY_FEW, false>;
}

const void *exact_of(int columns, bool many)
{
    switch (columns) {
    case 2: return exact<2>(many);
    case 4: return exact<4>(many);
    case 6: return exact<6>(many);
    case 8: return exact<8>(many);
    case 10: return exact<10>(many);
    case 12: return exact<12>(many);
    case 14: return exact<14>(many);
    case 16: return exact<16>(many);
    default: return nullptr;
    }
}

} // namespace

/* row: the columns, times 2, and 1 when there are many rows. */
const void *TYPED(skinny_kernel)(int row, int form)
{
    const int columns = row / 2;
    const bool many = row % 2;
    if (form == FORM_FLAT) return exact_of(columns, many);
    return columns <= 4 ? any<4>(many) : columns <= 10 ? any<10>(many) : any<16>(many);
}
