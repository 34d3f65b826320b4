/* emulated_pack.cu - packs an operand as pairs of f16 in the order in which emulated_gemm.cu reads
 * it, and computes the largest magnitude of a matrix. */
#include "emulated.cuh"

namespace
{

enum { UNIT = EMULATED_UNIT };

/* Returns which of 16 inner elements is at a position of the packed operand. A thread of
 * emulated_gemm.cu reads four neighbouring elements of a, but a fragment has two neighbours and the
 * two that are 8 further. So b is permuted in the same way. */
static __device__ inline int inner_at(int place) { return place % 8 / 2 * 4 + place / 8 * 2 + place % 2; }

KERNEL(PACK_THREADS) pack(const __grid_constant__ pack_args s)
{
    __shared__ float x[UNIT][UNIT + 1]; /* [inner][column] */
    const int units = (s.k + UNIT - 1) / UNIT, left = blockIdx.x / units * UNIT,
              k0 = blockIdx.x % units * UNIT;
    const float most = *(const float *)s.packed, scale = power_of_two(scale_exponent(most));
    char *to = (char *)s.packed + EMULATED_HEAD + (int64_t)blockIdx.x * 2 * EMULATED_PART;
    for (int i = threadIdx.x; i < UNIT * UNIT; i += PACK_THREADS) {
        const int a = i / UNIT, b = i % UNIT, k = s.column == 1 ? a : b, c = s.column == 1 ? b : a;
        x[k][c] = k0 + k < s.k && left + c < s.n
                      ? ((const float *)s.b)[(k0 + k) * s.row + (left + c) * s.column] * scale
                      : 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < UNIT * UNIT / 2; i += PACK_THREADS) {
        const int c = i / (UNIT / 2), k = i % (UNIT / 2) * 2,
                  place = c * 128 + ((k / 8 ^ c % 8) * 16 + k % 8 * 2);
        uint32_t high, low;
        split_pair(x[k / 16 * 16 + inner_at(k % 16)][c], x[k / 16 * 16 + inner_at(k % 16 + 1)][c], high, low);
        *(uint32_t *)(to + place) = high;
        *(uint32_t *)(to + EMULATED_PART + place) = low;
    }
}

static __device__ inline float element(const magnitude_args &s, uint64_t i)
{
    int64_t at = 0;
    for (int a = s.rank - 1; a >= 0; a--) {
        const uint64_t rest = quotient(i, s.size[a]);
        at += (int64_t)(i - rest * s.size[a].by) * s.stride[a];
        i = rest;
    }
    return ((const float *)s.at)[at];
}

static __device__ inline float largest_flat(const magnitude_args &s, int64_t first, int64_t step)
{
    const float4 *from = (const float4 *)s.at;
    float most = 0;
#pragma unroll 4
    for (int64_t i = first; i < s.n / 4; i += step) {
        const float4 x = from[i];
        most = fmaxf(most, magnitude_of({ x.x, x.y, x.z, x.w }));
    }
    for (int64_t i = s.n / 4 * 4 + first; i < s.n; i += step)
        most = fmaxf(most, finite_magnitude(((const float *)s.at)[i]));
    return most;
}

static __device__ inline float largest_walked(const magnitude_args &s, int64_t first, int64_t step)
{
    float most = 0;
#pragma unroll 4
    for (int64_t i = first; i < s.n; i += step) most = fmaxf(most, finite_magnitude(element(s, (uint64_t)i)));
    return most;
}

KERNEL(MAGNITUDE_THREADS) magnitude(const __grid_constant__ magnitude_args s)
{
    const int64_t first = blockIdx.x * (int64_t)MAGNITUDE_THREADS + threadIdx.x,
                  step = (int64_t)gridDim.x * MAGNITUDE_THREADS;
    take_turn();
    const float most = s.flat ? largest_flat(s, first, step) : largest_walked(s, first, step);
    let_next_begin();
    const uint32_t all = __reduce_max_sync(~0u, bits_of(most));
    if (threadIdx.x % 32 == 0 && all) atomicMax((uint32_t *)s.most, all);
}

} // namespace

const void *pack_kernel(void) { return (const void *)pack; }
const void *magnitude_kernel(void) { return (const void *)magnitude; }
