/* places.cu - take, take_along_axis, one_hot, by the size of elements; put, scatter_add, scatter_max from sorted places; histogram. */
#include "places.cuh"

namespace
{

struct alignas(16) sixteen {
    uint64_t half[2];
};

template <class E> KERNEL(ORDER_THREADS) take(const __grid_constant__ take_args a)
{
    const int64_t i = thread_index();
    if (i >= a.count) return;
    const uint64_t row = quotient((uint64_t)i, a.by_inner), c = i - row * a.by_inner.by;
    const uint64_t o = quotient(row, a.by_indices), j = row - o * a.by_indices.by;
    const int64_t k = index_among(index_at(a.index, (duet_dtype)a.type, place_of(a.at, a.each ? (uint64_t)i : j)), a.n);
    E e = {};
    if (k >= 0) e = ((const E *)a.x)[place_of(a.outer, o) + k * a.stride + place_of(a.inner, c)];
    ((E *)a.out)[i] = e;
}

template <class E> KERNEL(ORDER_THREADS) one_hot(const __grid_constant__ take_args a)
{
    const int64_t i = thread_index();
    if (i >= a.count) return;
    const uint64_t row = quotient((uint64_t)i, a.by_inner);
    const int64_t k = index_among(index_at(a.index, (duet_dtype)a.type, place_of(a.at, row)), a.n);
    E e = {};
    if (k == i - (int64_t)(row * a.by_inner.by)) e = *(const E *)a.one;
    ((E *)a.out)[i] = e;
}

/* ---- scatter ---- */

struct put {
    template <class E> static __device__ inline E onto(E, E z) { return z; }
};
struct add {
    template <class E> static __device__ inline E onto(E x, E z) { return x + z; }
};
static __device__ inline bool is_minus(int64_t) { return false; }
static __device__ inline bool is_minus(float x) { return signbit(x); }
static __device__ inline bool is_minus(double x) { return signbit(x); }
struct greatest {
    template <class E> static __device__ inline E onto(E x, E z)
    {
        if (x != x) return x;
        return z != z || z > x || (z == x && is_minus(x)) ? z : x;
    }
};

/* The first of m sorted keys that is not below `key`. */
static __device__ inline int64_t first_not_below(const uint32_t *keys, int64_t m, uint32_t key)
{
    int64_t low = 0;
    while (m > 0) {
        const int64_t half = m / 2;
        if (keys[low + half] < key) low += half + 1, m -= half + 1;
        else m = half;
    }
    return low;
}

template <class Op, class E> KERNEL(ORDER_THREADS) scatter(const __grid_constant__ scatter_args a)
{
    const int64_t i = thread_index();
    if (i >= a.count) return;
    const uint64_t row = quotient((uint64_t)i, a.by_inner), c = i - row * a.by_inner.by;
    const uint64_t o = quotient(row, a.by_n), d = row - o * a.by_n.by;
    E e = ((const E *)a.x)[place_of(a.x_outer, o) + (int64_t)d * a.stride + place_of(a.x_inner, c)];
    const E *z = (const E *)a.z + place_of(a.z_outer, o) + place_of(a.z_inner, c);
    for (int64_t k = first_not_below(a.keys, a.m, (uint32_t)d); k < a.m && a.keys[k] == d; k++)
        e = Op::template onto<E>(e, z[place_of(a.z_along, a.order[k])]);
    ((E *)a.out)[i] = e;
}

template <class Op> static const void *scatter_of(duet_dtype type)
{
    if (type == DUET_F32) return (const void *)scatter<Op, float>;
    if (type == DUET_F64) return (const void *)scatter<Op, double>;
    return (const void *)scatter<Op, int64_t>;
}

/* ---- histogram ---- */

KERNEL(ORDER_THREADS) count(const __grid_constant__ count_args a)
{
    extern __shared__ uint32_t own[];
    for (int64_t k = threadIdx.x; a.kept && k < a.of.count; k += ORDER_THREADS) own[k] = 0;
    __syncthreads();
    for (int64_t i = thread_index(); i < a.n; i += (int64_t)gridDim.x * ORDER_THREADS) {
        const int64_t k = bin_of(&a.of, order_number(a.x, (duet_dtype)a.type, place_of(a.at, i)));
        if (k < 0) continue;
        if (a.kept) atomicAdd(own + k, 1u);
        else atomicAdd(a.out + k, 1ull);
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; a.kept && k < a.of.count; k += ORDER_THREADS)
        if (own[k]) atomicAdd(a.out + k, (unsigned long long)own[k]);
}

} // namespace

#define BY_SIZE(kernel)                                                                                                          \
    bytes == 1   ? (const void *)kernel(uint8_t)                                                                                 \
    : bytes == 2 ? (const void *)kernel(uint16_t)                                                                                \
    : bytes == 4 ? (const void *)kernel(uint32_t)                                                                                \
    : bytes == 8 ? (const void *)kernel(uint64_t)                                                                                \
                 : (const void *)kernel(sixteen)
#define TAKE(E) take<E>
#define HOT(E)  one_hot<E>
#define PUT(E)  scatter<put, E>

const void *take_kernel(size_t bytes, bool hot) { return hot ? BY_SIZE(HOT) : BY_SIZE(TAKE); }

const void *scatter_kernel(int kernel, duet_dtype type, size_t bytes)
{
    if (kernel == OP_put) return BY_SIZE(PUT);
    return kernel == OP_scatter_add ? scatter_of<add>(type) : scatter_of<greatest>(type);
}

const void *count_kernel(void) { return (const void *)count; }
