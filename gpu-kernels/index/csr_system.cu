/* csr_system.cu - checks of systems with sparse matrices. See csr_system.h. */
#include "device.cuh"
extern "C" {
#include "csr_system.h"
#include "launch.h"
}

#define THREADS 256
#define STRIDED 4096 /* threads that look for the largest magnitude of a column */

namespace
{

template <class P> struct pair {
    P re, im;
};
__device__ inline pair<double> wide(float x) { return { x, 0 }; }
__device__ inline pair<double> wide(double x) { return { x, 0 }; }
template <class P> __device__ inline pair<double> wide(pair<P> x) { return { x.re, x.im }; }
__device__ inline double magnitude(pair<double> x) { return fabs(x.re) + fabs(x.im); }

__device__ inline int64_t thread_number() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }

/* Returns the first i of from .. to for which list[i] >= x, or `to`. */
template <class I> __device__ inline int64_t lower_bound(const I *list, int64_t from, int64_t to, int64_t x)
{
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (list[middle] < x) from = middle + 1;
        else to = middle;
    }
    return from;
}

template <class E, class I> KERNEL(THREADS) csr_zero(const __grid_constant__ csr_system a)
{
    const int64_t r = thread_number();
    if (r >= a.n) return;
    const I *offset = (const I *)a.pattern, *column = offset + a.n + 1;
    const int64_t end = offset[r + 1], k = lower_bound(column, offset[r], end, r);
    const bool is_there = k < end && column[k] == r;
    const pair<double> x = is_there ? wide(((const E *)a.values)[k]) : pair<double>{ 0, 0 };
    if (x.re == 0 && x.im == 0) atomicMax(a.zero, (int)(a.n - r));
}

template <class E> KERNEL(THREADS) rest_begin(const __grid_constant__ csr_system a)
{
    const int64_t i = thread_number();
    if (i >= a.n * a.sides) return;
    const pair<double> b = wide(((const E *)a.b)[i]);
    a.rest[2 * i] = b.re;
    a.rest[2 * i + 1] = b.im;
    a.terms[i] = 0;
}

/* A thread multiplies one element with one element of x. */
template <class E, class I> KERNEL(THREADS) rest_add(const __grid_constant__ csr_system a)
{
    const int64_t i = thread_number();
    if (i >= a.count * a.sides) return;
    const int64_t side = i / a.count, k = i - side * a.count;
    const I *offset = (const I *)a.pattern;
    const int64_t row = lower_bound(offset, (int64_t)0, a.n, k + 1) - 1, column = offset[a.n + 1 + k];
    const int64_t to = side * a.n + (a.transposed ? column : row), from = a.transposed ? row : column;
    const pair<double> v = wide(((const E *)a.values)[k]), x = wide(((const E *)a.x)[side * a.n + from]);
    atomicAdd(&a.rest[2 * to], v.im * x.im - v.re * x.re);
    if (v.im != 0 || x.im != 0) atomicAdd(&a.rest[2 * to + 1], -(v.re * x.im + v.im * x.re));
    atomicAdd(&a.terms[to], magnitude(v) * magnitude(x));
}

/* The bits of magnitudes have the order of the magnitudes, and those of NaN are above all. */
__device__ inline unsigned long long bits_of(double x)
{
    return (unsigned long long)__double_as_longlong(fabs(x));
}

KERNEL(THREADS) rest_most(const __grid_constant__ csr_system a)
{
    const int64_t i = thread_number(), side = i / STRIDED;
    unsigned long long rest = 0, terms = 0;
    if (side >= a.sides) return;
    for (int64_t r = i - side * STRIDED; r < a.n; r += STRIDED) {
        const int64_t at = side * a.n + r;
        rest = max(rest, bits_of(magnitude(pair<double>{ a.rest[2 * at], a.rest[2 * at + 1] })));
        terms = max(terms, bits_of(a.terms[at]));
    }
    atomicMax((unsigned long long *)a.most + 2 * side, rest);
    atomicMax((unsigned long long *)a.most + 2 * side + 1, terms);
}

struct functions {
    const void *zero, *begin, *add;
};

template <class E> functions functions_for(bool is_wide)
{
    if (is_wide)
        return { (const void *)csr_zero<E, int64_t>, (const void *)rest_begin<E>,
                 (const void *)rest_add<E, int64_t> };
    return { (const void *)csr_zero<E, int32_t>, (const void *)rest_begin<E>,
             (const void *)rest_add<E, int32_t> };
}

functions functions_of(const csr_system *a)
{
    switch (a->type) {
    case DUET_F32: return functions_for<float>(a->wide);
    case DUET_F64: return functions_for<double>(a->wide);
    case DUET_C64: return functions_for<pair<float>>(a->wide);
    default: return functions_for<pair<double>>(a->wide);
    }
}

cudaError_t launch_for(const void *kernel, int64_t threads, const csr_system *a, cudaStream_t q)
{
    csr_system args = *a;
    return launch(kernel, quotient_up(threads, THREADS), THREADS, 0, &args, q);
}

} // namespace

cudaError_t csr_zero_launch(const csr_system *a, cudaStream_t q)
{
    return launch_for(functions_of(a).zero, a->n, a, q);
}

cudaError_t csr_rest_launch(const csr_system *a, cudaStream_t q)
{
    const functions of = functions_of(a);
    cudaError_t e = cudaMemsetAsync(a->most, 0, 2 * (size_t)a->sides * sizeof *a->most, q);
    if (e == cudaSuccess) e = launch_for(of.begin, a->n * a->sides, a, q);
    if (e == cudaSuccess && a->count) e = launch_for(of.add, a->count * a->sides, a, q);
    if (e == cudaSuccess) e = launch_for((const void *)rest_most, a->sides * STRIDED, a, q);
    return e;
}
