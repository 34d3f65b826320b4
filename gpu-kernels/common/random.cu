/* random.cu - random numbers. A thread computes one block of Philox and writes the elements that
 * belong to it. If the output is a part of an array, it writes those that are in a run of this part.
 * Compiled a third time for i64, whose distributions are computed in f64. */
#include "device.cuh"
#include "random_kernels.h"
extern "C" {
#include "random_step.h"
}
#include "philox.h"

namespace
{

#ifdef OUT_i64
typedef int64_t element;
#else
typedef T element;
#endif

template <int N> struct elements {
    element e[N];
};
template <int N> struct alignas(sizeof(element) * N < 16 ? sizeof(element) * N : 16) packed {
    element e[N];
};

static __device__ inline int64_t element_offset(const random_args &a, int64_t i)
{
    int64_t at = 0;
    for (int d = a.rank; d-- > 0;) {
        const uint64_t q = quotient((uint64_t)i, a.size[d]);
        at += (i - (int64_t)(q * a.size[d].by)) * a.stride[d];
        i = (int64_t)q;
    }
    return at;
}

/* The block of Philox that a thread computes. Its first element has the number `at` in the output, and may be
 * outside the run. The thread writes the elements from `first` to `end` - 1. */
struct place {
    uint64_t block;
    int64_t at, first, end;
};

template <int N> static __device__ inline place place_of(const random_args &a, int64_t i)
{
    if (!a.draw.run) return { (uint64_t)i, i * N, 0, a.n };
    const int64_t r = (int64_t)quotient((uint64_t)i, a.run_blocks);
    const int64_t from = a.draw.first + r * a.draw.apart;
    const int64_t block = from / N + (i - r * (int64_t)a.run_blocks.by), first = r * a.draw.run;
    return { (uint64_t)block, first + block * N - from, first, first + a.draw.run };
}

template <int N>
static __device__ inline void write(const random_args &a, const place &p, const elements<N> &x)
{
    element *out = (element *)a.out;
    const int64_t first = p.at;
    if (a.vectors && first >= p.first && first + N <= p.end) {
        packed<N> p;
#pragma unroll
        for (int j = 0; j < N; j++) p.e[j] = x.e[j];
        *(packed<N> *)(out + first) = p;
        return;
    }
#pragma unroll
    for (int j = 0; j < N; j++)
        if (first + j >= p.first && first + j < p.end) out[element_offset(a, first + j)] = x.e[j];
}

/* ---- distributions: the values of block i ---- */

static __device__ inline philox_block drawn(const random_params &l, uint32_t distribution, uint64_t block,
                                            uint32_t stream)
{
    return philox_drawn(&l, distribution, (uint32_t)block, (uint32_t)(block >> 32), stream);
}

#ifndef OUT_i64
struct uniform {
    enum { EACH = PHILOX_EACH };
    static __device__ inline elements<EACH> draw(const random_params &l, uint64_t block)
    {
        const philox_block b = drawn(l, DISTRIBUTION_UNIFORM, block, 0);
        elements<EACH> x;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            x.e[j] = (element)FN(uniform)(FN(part)(b, j), (T)l.number[0], (T)l.number[1], (T)l.number[2]);
        return x;
    }
};

struct normal {
    enum { EACH = PHILOX_EACH };
    static __device__ inline elements<EACH> draw(const random_params &l, uint64_t block)
    {
        const philox_block b = drawn(l, DISTRIBUTION_NORMAL, block, 0);
        elements<EACH> x;
#pragma unroll
        for (int j = 0; j < EACH; j += 2) {
            const TYPED(pair) z = FN(box_muller)(FN(part)(b, j), FN(part)(b, j + 1));
            x.e[j] = (element)FMA(z.hi, (T)l.number[1], (T)l.number[0]);
            x.e[j + 1] = (element)FMA(z.lo, (T)l.number[1], (T)l.number[0]);
        }
        return x;
    }
};

template <int How> struct truncated_normal {
    enum { EACH = PHILOX_EACH };
    static __device__ inline elements<EACH> draw(const random_params &l, uint64_t block)
    {
        const truncation k = FN(truncation_of)(&l);
        T t[EACH];
        elements<EACH> x;
        bool left = true;
#pragma unroll
        for (int j = 0; j < EACH; j++) t[j] = K(NAN);
        for (uint32_t attempt = 0; left && attempt < RANDOM_ATTEMPTS; attempt++) {
            const philox_block b = drawn(l, DISTRIBUTION_TRUNCATED_NORMAL, block, 2 * attempt);
            const philox_block c = drawn(l, DISTRIBUTION_TRUNCATED_NORMAL, block, 2 * attempt + 1);
            left = false;
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const T again = FN(propose_part)(How, k, b, c, j);
                t[j] = t[j] != t[j] ? again : t[j];
                left |= t[j] != t[j];
            }
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) x.e[j] = (element)(t[j] != t[j] ? FN(truncation_last)(k) : t[j]);
        return x;
    }
};
#endif

struct bernoulli {
    enum { EACH = 4 };
    static __device__ inline elements<EACH> draw(const random_params &l, uint64_t block)
    {
        const philox_block b = drawn(l, DISTRIBUTION_BERNOULLI, block, 0);
        elements<EACH> x;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            x.e[j] =
                (element)(b.w[j] == l.integer[0] ? philox_coin(&l, block * EACH + j) : b.w[j] < l.integer[0]);
        return x;
    }
};

struct integers {
    enum { EACH = 2 };
    static __device__ inline elements<EACH> draw(const random_params &l, uint64_t block)
    {
        const philox_block b = drawn(l, DISTRIBUTION_INTEGERS, block, 0);
        elements<EACH> x;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            uint64_t lower;
            int64_t v = philox_scaled(&l, philox_half(b, j), &lower);
            if (lower < l.integer[2]) v = philox_integer(&l, block * EACH + j);
            x.e[j] = (element)v;
        }
        return x;
    }
};

#ifndef OUT_i64
struct sobol {
    enum { EACH = 1 };
    static __device__ inline elements<EACH> draw(const random_params &l, uint64_t i)
    {
        return { { FN(sobol)(&l, i) } };
    }
};
#endif

template <class Law> KERNEL(RANDOM_THREADS) draw(const __grid_constant__ random_args a)
{
    const place p = place_of<Law::EACH>(a, (int64_t)blockIdx.x * RANDOM_THREADS + threadIdx.x);
    if (p.at < p.end && p.first < a.n) write(a, p, Law::draw(a.draw, p.block));
}

/* ---- permutations ---- */

static __device__ inline uint32_t bucket_of(const random_args &a, uint64_t key)
{
    return a.bucket_bits ? (uint32_t)(key >> (64 - a.bucket_bits)) : 0;
}

KERNEL(RANDOM_THREADS) count(const __grid_constant__ random_args a)
{
    const int64_t block = (int64_t)blockIdx.x * RANDOM_THREADS + threadIdx.x;
    const philox_block b = drawn(a.draw, DISTRIBUTION_PERMUTATION, block, 0);
    if (2 * block < a.n) atomicAdd(&a.ends[bucket_of(a, philox_half(b, 0))], 1u);
    if (2 * block + 1 < a.n) atomicAdd(&a.ends[bucket_of(a, philox_half(b, 1))], 1u);
}

/* Executed by one thread block: replaces each entry by the sum of the entries before it. */
KERNEL(SCAN_THREADS) scan(const __grid_constant__ random_args a)
{
    __shared__ uint32_t sum[SCAN_THREADS / 32];
    const uint32_t buckets = 1u << a.bucket_bits, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t before = 0;
    for (uint32_t first = 0; first < buckets; first += SCAN_THREADS) {
        const uint32_t i = first + threadIdx.x, own = i < buckets ? a.ends[i] : 0;
        uint32_t up = own;
        for (uint32_t d = 1; d < 32; d *= 2) {
            const uint32_t other = __shfl_up_sync(0xffffffff, up, d);
            up += lane >= d ? other : 0;
        }
        if (lane == 31) sum[warp] = up;
        __syncthreads();
        uint32_t all = 0, lower = 0;
        for (uint32_t w = 0; w < SCAN_THREADS / 32; w++) {
            lower += w < warp ? sum[w] : 0;
            all += sum[w];
        }
        if (i < buckets) a.ends[i] = before + lower + up - own;
        before += all;
        __syncthreads();
    }
}

/* The order within a bucket does not matter, because buckets are ranked later. */
KERNEL(RANDOM_THREADS) spread(const __grid_constant__ random_args a)
{
    const int64_t block = (int64_t)blockIdx.x * RANDOM_THREADS + threadIdx.x;
    const philox_block b = drawn(a.draw, DISTRIBUTION_PERMUTATION, block, 0);
    if (2 * block < a.n)
        a.indices[atomicAdd(&a.ends[bucket_of(a, philox_half(b, 0))], 1u)] = (uint32_t)(2 * block);
    if (2 * block + 1 < a.n)
        a.indices[atomicAdd(&a.ends[bucket_of(a, philox_half(b, 1))], 1u)] = (uint32_t)(2 * block + 1);
}

struct bucket {
    uint64_t key[BUCKET_KEPT];
    uint32_t index[BUCKET_KEPT];
};

/* How many elements of the bucket come before this one. Keys beyond the cache are drawn again; keys
 * are uniform, so this is rare. */
static __device__ inline uint32_t rank_of(const random_args &a, const bucket &s, const uint32_t *indices,
                                          uint32_t n, uint64_t key, uint32_t index)
{
    uint32_t rank = 0;
    const uint32_t kept = n < BUCKET_KEPT ? n : BUCKET_KEPT;
    for (uint32_t j = 0; j < kept; j++) rank += s.key[j] < key || (s.key[j] == key && s.index[j] < index);
    for (uint32_t j = kept; j < n; j++) {
        const uint64_t other = philox_sort_key(&a.draw, indices[j]);
        rank += other < key || (other == key && indices[j] < index);
    }
    return rank;
}

KERNEL(BUCKET_THREADS) rank(const __grid_constant__ random_args a)
{
    __shared__ bucket s;
    const uint32_t first = blockIdx.x ? a.ends[blockIdx.x - 1] : 0, n = a.ends[blockIdx.x] - first;
    const uint32_t *indices = a.indices + first;
    for (uint32_t i = threadIdx.x; i < n && i < BUCKET_KEPT; i += BUCKET_THREADS) {
        s.index[i] = indices[i];
        s.key[i] = philox_sort_key(&a.draw, indices[i]);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += BUCKET_THREADS) {
        const uint32_t index = indices[i];
        const uint64_t key = i < BUCKET_KEPT ? s.key[i] : philox_sort_key(&a.draw, index);
        ((element *)a.out)[(int64_t)(first + rank_of(a, s, indices, n, key, index)) * a.stride[0]] =
            (element)index;
    }
}

static const void *permutation(int form)
{
    switch (form) {
    case FORM_COUNT: return (const void *)count;
    case FORM_SCAN: return (const void *)scan;
    case FORM_SPREAD: return (const void *)spread;
    default: return (const void *)rank;
    }
}

static const void *integer_kernel(int distribution, int form)
{
    switch (distribution) {
    case DISTRIBUTION_BERNOULLI: return (const void *)draw<bernoulli>;
    case DISTRIBUTION_INTEGERS: return (const void *)draw<integers>;
    case DISTRIBUTION_PERMUTATION: return permutation(form);
    default: return NULL;
    }
}

} // namespace

#ifdef OUT_i64
const void *random_kernel_i64(int distribution, int form) { return integer_kernel(distribution, form); }
#else
const void *TYPED(random_kernel)(int distribution, int form)
{
    if (distribution == DISTRIBUTION_UNIFORM) return (const void *)draw<uniform>;
    if (distribution == DISTRIBUTION_NORMAL) return (const void *)draw<normal>;
    if (distribution == DISTRIBUTION_SOBOL) return (const void *)draw<sobol>;
    if (distribution != DISTRIBUTION_TRUNCATED_NORMAL) return integer_kernel(distribution, form);
    switch (form - FORM_DRAW) {
    case PROPOSE_NORMAL: return (const void *)draw<truncated_normal<PROPOSE_NORMAL>>;
    case PROPOSE_EXPONENTIAL: return (const void *)draw<truncated_normal<PROPOSE_EXPONENTIAL>>;
    default: return (const void *)draw<truncated_normal<PROPOSE_UNIFORM>>;
    }
}
#endif
