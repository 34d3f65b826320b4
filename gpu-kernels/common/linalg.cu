/* linalg.cu - the kernels of linalg.h. */
#include "device.cuh"
#include "linalg.h"

enum { THREADS = 256, ACROSS = 32, ORDER_ROWS = 8192 };

namespace
{

/* A complex element; its address need only be aligned for its parts. Real elements have type T. */
struct pair {
    T re, im;
};

static __device__ inline T real_part(T x) { return x; }
static __device__ inline T real_part(pair x) { return x.re; }
static __device__ inline T imaginary_part(T) { return 0; }
static __device__ inline T imaginary_part(pair x) { return x.im; }
static __device__ inline void make(T *to, T re, T) { *to = re; }
static __device__ inline void make(pair *to, T re, T im)
{
    to->re = re;
    to->im = im;
}

/* Elements of a column are contiguous, as the solver needs them. */
#define EACH_ELEMENT(a, e)                                                                                   \
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < a.rows * a.cols;                       \
         e += (int64_t)gridDim.x * THREADS)

template <typename E> KERNEL(THREADS) check(const linear_args a)
{
    EACH_ELEMENT(a, e)
    {
        const int64_t i = e % a.rows, j = e / a.rows;
        if (!linear_has(a.part, i, j)) continue;
        const E x = ((const E *)a.in)[i * a.in_row + j * a.in_col];
        const T re = real_part(x), im = imaginary_part(x);
        if (!isfinite(re) || !isfinite(im)) a.flag[0] = 1;
        if (i == j && re == 0 && im == 0) atomicMax(&a.flag[1], (int)(a.rows - i));
    }
}

/* Called by all threads, which all get the result. */
static __device__ inline double total(double x)
{
    __shared__ double of[THREADS];
    __syncthreads();
    of[threadIdx.x] = x;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) of[threadIdx.x] += of[threadIdx.x + half];
        __syncthreads();
    }
    return of[0];
}

static __device__ inline double magnitude(T x) { return fabs((double)x); }
static __device__ inline double magnitude(pair x) { return hypot((double)x.re, (double)x.im); }

/* The sum of the absolute values of a column. */
template <typename E> static __device__ inline double column_size(const E *x, int64_t rows)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < rows; i += THREADS) sum += magnitude(x[i]);
    return total(sum);
}

/* The bits of non-negative numbers are ordered like the numbers, and those of NaN are greater. */
static __device__ inline void raise_to(void *to, double x)
{
    atomicMax((unsigned long long *)to, (unsigned long long)__double_as_longlong(fabs(x)));
}

static __device__ inline void take_size(const linear_args &a, double sum)
{
    raise_to(a.out, sum);
    if (a.more && sum > 0) raise_to(a.more, 1 / sum);
}

/* One thread block for each column, or, if the elements of a row are contiguous, for each 32. */
template <typename E> KERNEL(THREADS) size(const linear_args a)
{
    __shared__ double part[THREADS];
    const bool across = a.in_row != 1;
    const int64_t j = across ? (int64_t)blockIdx.x * ACROSS + threadIdx.x % ACROSS : blockIdx.x,
                  first = across ? threadIdx.x / ACROSS : threadIdx.x,
                  step = across ? THREADS / ACROSS : THREADS;
    double sum = 0;
    for (int64_t i = first; j < a.cols && i < a.rows; i += step)
        if (linear_has(a.part, i, j)) {
            const double x = magnitude(((const E *)a.in)[i * a.in_row + j * a.in_col]);
            sum += a.squares ? x * x : x;
        }
    if (!across) {
        sum = total(sum);
        if (threadIdx.x == 0) take_size(a, sum);
        return;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= ACROSS) return;
    for (int k = ACROSS; k < THREADS; k += ACROSS) sum += part[k + threadIdx.x];
    take_size(a, sum);
}

/* One thread block for each column. */
template <typename E> KERNEL(THREADS) rest(const linear_args a)
{
    const double left = column_size((const E *)a.in + blockIdx.x * a.in_col, a.rows);
    const double most =
        a.most * *(const double *)a.out * column_size((const E *)a.more + blockIdx.x * a.out_col, a.rows);
    if (threadIdx.x == 0 && !(left <= most && most < INFINITY)) a.flag[0] = 1;
}

template <typename E> KERNEL(THREADS) probes(const linear_args a)
{
    EACH_ELEMENT(a, e) make((E *)a.out + e, (T)linear_probe(2 * e), (T)linear_probe(2 * e + 1));
}

template <typename E> KERNEL(THREADS) triangle(const linear_args a)
{
    EACH_ELEMENT(a, e)
    {
        const int64_t i = e / a.cols, j = e % a.cols;
        const bool one = i == j && (a.part == PART_UNIT_LOWER || a.part == PART_UNIT_UPPER);
        E x;
        make(&x, (T)one, 0);
        if (a.in && linear_has(a.part, i, j)) x = ((const E *)a.in)[i * a.in_row + j * a.in_col];
        ((E *)a.out)[i * a.out_row + j * a.out_col] = x;
    }
}

/* One thread exchanges rows, in shared memory if they fit. Pivots are loaded in batches. */
KERNEL(THREADS) order(const linear_args a)
{
    __shared__ int64_t pivot[THREADS];
    __shared__ int32_t near[ORDER_ROWS];
    int64_t *far = (int64_t *)a.out;
    const bool is_near = a.rows <= ORDER_ROWS;
    for (int64_t i = threadIdx.x; i < a.rows; i += THREADS)
        if (is_near) near[i] = (int32_t)i;
        else far[i * a.out_row] = i;
    for (int64_t first = 0; first < a.pivots; first += THREADS) {
        __syncthreads();
        if (first + threadIdx.x < a.pivots) pivot[threadIdx.x] = a.pivot[first + threadIdx.x] - 1;
        __syncthreads();
        for (int64_t i = first; threadIdx.x == 0 && i < a.pivots && i < first + THREADS; i++) {
            const int64_t p = pivot[i - first], x = is_near ? near[i] : far[i * a.out_row],
                          y = is_near ? near[p] : far[p * a.out_row];
            if (is_near) {
                near[i] = (int32_t)y;
                near[p] = (int32_t)x;
            } else {
                far[i * a.out_row] = y;
                far[p * a.out_row] = x;
            }
        }
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; is_near && i < a.rows; i += THREADS) far[i * a.out_row] = near[i];
}

/* A product as (re, im) 2^exponent, with the logarithm of its absolute value. */
struct product {
    double re, im, log;
    int64_t exponent;
};

/* Scales both parts below 1. For real numbers im is 0, even beside an infinity. */
template <typename E> static __device__ inline product joined(const product &x, const product &y)
{
    const bool real = sizeof(E) == sizeof(T);
    const double re = real ? x.re * y.re : x.re * y.re - x.im * y.im,
                 im = real ? 0 : x.re * y.im + x.im * y.re;
    int e;
    (void)frexp(fmax(fabs(re), fabs(im)), &e);
    return { ldexp(re, -e), ldexp(im, -e), x.log + y.log, x.exponent + y.exponent + e };
}

/* Absolute value. Real numbers avoid hypot, which may round. */
template <typename E> static __device__ inline double size_of(double re, double im)
{
    return sizeof(E) == sizeof(T) ? fabs(re) : hypot(re, im);
}

/* Scales the parts below 1 first: the absolute value may exceed the range of every type. */
template <typename E> static __device__ inline double log_size(double re, double im)
{
    int e = 0;
    (void)frexp(fmax(fabs(re), fabs(im)), &e);
    return ::log(size_of<E>(ldexp(re, -e), ldexp(im, -e))) + e * 0.6931471805599453;
}

template <typename E> static __device__ inline product factor(const linear_args &a, int64_t i)
{
    const E x = ((const E *)a.in)[i * (a.in_row + a.in_col)];
    const double by = a.pivot[i] != i + 1 ? -1 : 1, re = by * (double)real_part(x),
                 im = by * (double)imaginary_part(x);
    return joined<E>({ 1, 0, 0, 0 }, { re, im, log_size<E>(re, im), 0 });
}

/* Stores (re, im) 2^exponent. */
template <typename E> static __device__ inline void put(void *out, double re, double im, int64_t exponent)
{
    const int64_t most = 1 << 20, e = max(-most, min(exponent, most));
    make((E *)out, (T)ldexp(re, (int)e), (T)ldexp(im, (int)e));
}

template <typename E> KERNEL(THREADS) determinant(const linear_args a)
{
    __shared__ product part[THREADS];
    product r = { 1, 0, 0, 0 };
    for (int64_t i = threadIdx.x; i < a.rows; i += THREADS) r = joined<E>(r, factor<E>(a, i));
    part[threadIdx.x] = r;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            part[threadIdx.x] = joined<E>(part[threadIdx.x], part[threadIdx.x + half]);
    }
    if (threadIdx.x) return;
    r = part[0];
    const double size = size_of<E>(r.re, r.im), by = size > 0 ? size : 1;
    const T log = size == 0 ? -INF : (T)r.log;
    if (a.what == LINEAR_DET) put<E>(a.out, r.re, r.im, r.exponent);
    if (a.what == LINEAR_LOGDET) *(T *)a.out = log;
    if (a.what == LINEAR_SLOGDET) {
        put<E>(a.out, r.re / by, r.im / by, 0);
        *(T *)a.more = log;
    }
}

} // namespace

template <typename E> static const void *kernel_of(enum linear what)
{
    switch (what) {
    case LINEAR_CHECK: return (const void *)check<E>;
    case LINEAR_SIZE: return (const void *)size<E>;
    case LINEAR_REST: return (const void *)rest<E>;
    case LINEAR_PROBES: return (const void *)probes<E>;
    case LINEAR_TRIANGLE: return (const void *)triangle<E>;
    case LINEAR_ORDER: return (const void *)order;
    default: return (const void *)determinant<E>;
    }
}

extern "C" const void *TYPED(linear_kernel)(enum linear what, bool pairs)
{
    return pairs ? kernel_of<pair>(what) : kernel_of<T>(what);
}
