/* csr.cu - kernels of sparse matrices, and their launches. A thread computes one element of the result,
 * and adds its terms in the order of the pattern. Only transposed products add atomically, in any order.
 * Row offsets are limited to the number of elements, and elements whose column is out of bounds are
 * skipped and reported. */
#include "gather_scatter.cuh"

#define THREADS 256

namespace
{

struct csr_args {
    const void *values, *pattern, *x, *y;
    void *out; /* dense */
    int64_t rows, columns, count, width, threads;
    int64_t value_stride, pattern_stride, x_stride[2], y_stride[2];
    bool transposed;
    index_checks checks;
};

template <class P> struct complex_of {
    P re, im;
};

template <class P> __device__ inline P plus(P a, P b) { return a + b; }
template <class P> __device__ inline P times(P a, P b) { return a * b; }
template <class P> __device__ inline complex_of<P> plus(complex_of<P> a, complex_of<P> b)
{
    return { a.re + b.re, a.im + b.im };
}
template <class P> __device__ inline complex_of<P> times(complex_of<P> a, complex_of<P> b)
{
    return { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}
__device__ inline void add_to(float *to, float x) { atomicAdd(to, x); }
__device__ inline void add_to(double *to, double x) { atomicAdd(to, x); }
template <class P> __device__ inline void add_to(complex_of<P> *to, complex_of<P> x)
{
    atomicAdd(&to->re, x.re);
    atomicAdd(&to->im, x.im);
}

template <class I> __device__ inline int64_t offset_of(const csr_args &a, int64_t row)
{
    const int64_t k = ((const I *)a.pattern)[row * a.pattern_stride];
    return k < 0 ? 0 : k > a.count ? a.count : k;
}

/* -1: out of bounds */
template <class I> __device__ inline int64_t column_of(const csr_args &a, int64_t k)
{
    const int64_t column = ((const I *)a.pattern)[(a.rows + 1 + k) * a.pattern_stride];
    if (a.rows && column >= 0 && column < a.columns) return column;
    report_index(a.checks, column, a.rows + 1 + k, a.columns);
    return -1;
}

/* The last row whose offset is at most k. */
template <class I> __device__ inline int64_t row_of(const csr_args &a, int64_t k)
{
    int64_t low = 0, high = a.rows - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (offset_of<I>(a, middle) <= k) low = middle;
        else high = middle - 1;
    }
    return low;
}

template <class E, class I> KERNEL(THREADS) csr_matmul(const __grid_constant__ csr_args a)
{
    const int64_t i = thread_index();
    if (i >= a.threads) return;
    const int64_t row = i / a.width, j = i - row * a.width, end = offset_of<I>(a, row + 1);
    const E *v = (const E *)a.values, *x = (const E *)a.x + j * a.x_stride[1];
    E sum = {};
    for (int64_t k = offset_of<I>(a, row); k < end; k++) {
        const int64_t column = column_of<I>(a, k);
        if (column >= 0) sum = plus(sum, times(v[k * a.value_stride], x[column * a.x_stride[0]]));
    }
    ((E *)a.out)[i] = sum;
}

template <class E, class I> KERNEL(THREADS) csr_matmul_transposed(const __grid_constant__ csr_args a)
{
    const int64_t i = thread_index();
    if (i >= a.threads) return;
    const int64_t k = i / a.width, j = i - k * a.width, row = row_of<I>(a, k), column = column_of<I>(a, k);
    if (column < 0) return;
    const E v = ((const E *)a.values)[k * a.value_stride],
            x = ((const E *)a.x)[row * a.x_stride[0] + j * a.x_stride[1]];
    add_to((E *)a.out + column * a.width + j, times(v, x));
}

template <class E, class I> KERNEL(THREADS) csr_sddmm(const __grid_constant__ csr_args a)
{
    const int64_t k = thread_index();
    if (k >= a.threads) return;
    const int64_t row = row_of<I>(a, k), column = column_of<I>(a, k);
    const E *x = (const E *)a.x + row * a.x_stride[0], *y = (const E *)a.y + column * a.y_stride[0];
    E sum = {};
    for (int64_t j = 0; j < a.width && column >= 0; j++)
        sum = plus(sum, times(x[j * a.x_stride[1]], y[j * a.y_stride[1]]));
    ((E *)a.out)[k] = sum;
}

template <class E, class I> KERNEL(THREADS) csr_dense(const __grid_constant__ csr_args a)
{
    const int64_t k = thread_index();
    if (k >= a.threads) return;
    const int64_t row = row_of<I>(a, k), column = column_of<I>(a, k);
    if (column < 0) return;
    const int64_t at = a.transposed ? column * a.rows + row : row * a.columns + column;
    ((E *)a.out)[at] = ((const E *)a.values)[k * a.value_stride];
}

template <class E, class I> KERNEL(THREADS) csr_take(const __grid_constant__ csr_args a)
{
    const int64_t k = thread_index();
    if (k >= a.threads) return;
    const int64_t row = row_of<I>(a, k), column = column_of<I>(a, k);
    E e = {};
    if (column >= 0) e = ((const E *)a.x)[row * a.x_stride[0] + column * a.x_stride[1]];
    ((E *)a.out)[k] = e;
}

template <class E, class I> const void *kernel_of(const step *s)
{
    switch (s->kernel) {
    case OP_csr_matmul:
        return s->attr.csr.transposed ? (const void *)csr_matmul_transposed<E, I>
                                      : (const void *)csr_matmul<E, I>;
    case OP_csr_sddmm: return (const void *)csr_sddmm<E, I>;
    case OP_csr_dense: return (const void *)csr_dense<E, I>;
    default: return (const void *)csr_take<E, I>;
    }
}

template <class E> const void *kernel_for(const step *s)
{
    return s->in[1].at.type == DUET_I64 ? kernel_of<E, int64_t>(s) : kernel_of<E, int32_t>(s);
}

const void *kernel_with(const step *s)
{
    switch (s->out[0].at.type) {
    case DUET_F32: return kernel_for<float>(s);
    case DUET_F64: return kernel_for<double>(s);
    case DUET_C64: return kernel_for<complex_of<float>>(s);
    default: return kernel_for<complex_of<double>>(s);
    }
}

int64_t width_of(const layout *l) { return l->rank > 1 ? l->size[1] : 1; }

void strides_of(const layout *l, int64_t to[2])
{
    to[0] = l->stride[0];
    to[1] = l->rank > 1 ? l->stride[1] : 0;
}

/* The sizes, and which operand is which. */
void set_operands(const step *s, const frame *f, csr_args *a)
{
    const layout *first = &s->in[0].at, *last = &s->in[s->ins - 1].at;
    const void *p = f->data[s->in[0].slot], *q = f->data[s->in[s->ins - 1].slot];
    const int64_t length = layout_count(&s->in[1].at);
    const bool has_values = s->kernel == OP_csr_matmul || s->kernel == OP_csr_dense;
    a->count = has_values ? layout_count(first) : length - 1 - first->size[0];
    a->rows = length - 1 - a->count;
    a->columns = s->attr.csr.columns;
    a->width = 1;
    if (has_values) {
        a->values = p;
        a->value_stride = first->stride[0];
        a->x = q;
        if (s->ins > 2) strides_of(last, a->x_stride);
        if (s->ins > 2) a->width = width_of(last);
        return;
    }
    a->x = p;
    a->y = q;
    strides_of(first, a->x_stride);
    if (s->ins > 2) strides_of(last, a->y_stride);
    if (s->ins > 2) a->width = width_of(first);
    a->columns = s->ins > 2 ? last->size[0] : first->size[1];
}

} // namespace

cudaError_t csr_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    const layout *out = &s->out[0].at;
    csr_args a = {};
    if (!layout_count(out)) return cudaSuccess;
    set_operands(s, f, &a);
    a.pattern = f->data[s->in[1].slot];
    a.pattern_stride = s->in[1].at.stride[0];
    a.out = f->data[s->out[0].slot];
    a.transposed = s->attr.csr.transposed;
    a.checks.report = w->indices;
    a.checks.kernel = s->kernel;
    const bool adds = s->kernel == OP_csr_matmul && a.transposed, clears = adds || s->kernel == OP_csr_dense;
    a.threads = s->kernel == OP_csr_matmul ? (adds ? a.count : a.rows) * a.width : a.count;
    if (clears) {
        const size_t each = out->type == DUET_F32 ? 4 : out->type == DUET_C128 ? 16 : 8;
        const cudaError_t e = cudaMemsetAsync(a.out, 0, (size_t)layout_count(out) * each, q);
        if (e != cudaSuccess) return e;
    }
    return launch(kernel_with(s), quotient_up(a.threads, THREADS), THREADS, 0, &a, q);
}
