/* softmax.cu - softmax and log_softmax along the last axis. m is the row's maximum, t = x - m, e = exp(t), s the canonical sum of e:
 * softmax is e / s, log_softmax t - log(s). */
#include "fold.cuh"

namespace
{

struct row_softmax {
    static __device__ inline T keep(T t, T e) { return e; }
    static __device__ inline T scale(T s) { return s; }
    static __device__ inline T last(T kept, T scale) { return kept / scale; }
};
struct row_log_softmax {
    static __device__ inline T keep(T t, T e) { return t; }
    static __device__ inline T scale(T s) { return FN(log)(s); }
    static __device__ inline T last(T kept, T scale) { return kept - scale; }
};

/* Rows max and sum of ops.def. */
#define DUET_FOLD1(name, START, TAKE, JOIN, FINISH, ...)                                                                         \
    struct fold_##name {                                                                                                         \
        static __device__ inline T first() { return START; }                                                                     \
        static __device__ inline T with(T a, T x, T y) { return TAKE; }                                                          \
        static __device__ inline T both(T a, T b) { return JOIN; }                                                               \
        static __device__ inline T result(T a, int64_t n) { return FINISH; }                                                     \
    };
#include <duet/ops.def>
typedef plain<fold_max> most;
struct sum_exp : plain<fold_sum> {
    enum { resident = 2 };
    static __device__ inline T see(T x, T m) { return FN(exp)(x - m); }
};

static __device__ inline const T *row_of(const softmax_args &a, int64_t row)
{
    int64_t at = 0;
    uint64_t left = (uint64_t)row;
#pragma unroll 1
    for (int axis = a.outer - 1; axis >= 0; axis--) {
        const uint64_t q = axis ? quotient(left, a.outer_size[axis]) : 0;
        at += (int64_t)(left - q * a.outer_size[axis].by) * a.outer_stride[axis];
        left = q;
    }
    return (const T *)a.in + at;
}

/* What thread 0 of each group has, for all of it. */
template <int G> static __device__ inline T from_first(T x) { return __shfl_sync(~0u, x, 0, G); }

/* Rows of no more than 4 G elements, a group of G threads each, one element a lane. */
template <class Row, int G> KERNEL(ROW_THREADS) short_rows(const __grid_constant__ softmax_args a)
{
    const int64_t row = ((int64_t)blockIdx.x * ROW_THREADS + threadIdx.x) / G;
    const int g = threadIdx.x % G, mine = row < a.rows ? (int)a.n : 0;
    const T *in = row_of(a, row < a.rows ? row : 0);
    T x[4];
    lanes<most, 4> m;
    lanes<sum_exp, 4> e;
#pragma unroll
    for (int j = 0; j < 4; j++) x[j] = m.v[j] = g + G * j < mine ? in[(g + G * j) * a.stride] : most::start();
    const T top = from_first<G>(join_group<most, G>(m.join()));
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const T t = x[j] - top, exp_t = FN(exp)(t);
        x[j] = Row::keep(t, exp_t);
        e.v[j] = g + G * j < mine ? exp_t : sum_exp::start();
    }
    const T scale = Row::scale(from_first<G>(join_group<sum_exp, G>(e.join())));
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (g + G * j < mine) ((T *)a.out)[row * a.n + g + G * j] = Row::last(x[j], scale);
}

/* The maximum of m over the thread block, for all of it. */
static __device__ inline T block_max(T m)
{
    __shared__ T s[ROW_THREADS / 32];
    m = join_group<most, 32>(m);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = m;
    __syncthreads();
    m = s[0];
#pragma unroll
    for (int w = 1; w < ROW_THREADS / 32; w++) m = most::join(m, s[w]);
    return m;
}

/* The sum of the row from the lanes of its blocks: a warp joins those of a block, every thread the blocks. */
static __device__ inline T block_sums(const T (&lane)[ROW_BLOCKS][ROW_THREADS], int blocks)
{
    __shared__ T s[ROW_BLOCKS];
    const int t = threadIdx.x % 32;
    for (int b = threadIdx.x / 32; b < ROW_BLOCKS; b += ROW_THREADS / 32) {
        lanes<sum_exp, 4> e;
#pragma unroll
        for (int j = 0; j < 4; j++) e.v[j] = b < blocks ? lane[b][t + 32 * j] : sum_exp::start();
        const T sum = join_group<sum_exp, 32>(e.join());
        if (t == 0) s[b] = sum;
    }
    __syncthreads();
    T v[ROW_BLOCKS];
#pragma unroll
    for (int b = 0; b < ROW_BLOCKS; b++) v[b] = s[b];
#pragma unroll
    for (int h = 1; h < ROW_BLOCKS; h *= 2)
#pragma unroll
        for (int b = 0; b < ROW_BLOCKS; b += 2 * h) v[b] = sum_exp::join(v[b], v[b + h]);
    return v[0];
}

/* A thread block a row, a thread a lane; a thread keeps in shared memory what it alone uses. */
template <class Row> KERNEL(ROW_THREADS) kept_row(const __grid_constant__ softmax_args a)
{
    extern __shared__ double shared[];
    __shared__ T lane[ROW_BLOCKS][ROW_THREADS];
    T *kept = (T *)shared, *out = (T *)a.out + blockIdx.x * a.n, m = most::start();
    const T *in = row_of(a, blockIdx.x);
    const int n = (int)a.n, l = threadIdx.x;
#pragma unroll 8
    for (int i = l; i < n; i += ROW_THREADS) kept[i] = in[i * a.stride];
#pragma unroll 8
    for (int i = l; i < n; i += ROW_THREADS) m = most::join(m, kept[i]);
    m = block_max(m);
    int b = 0;
    for (int first = 0; first < n; first += FOLD_BLOCK, b++) {
        const int end = min(first + FOLD_BLOCK, n);
        T sum = sum_exp::start();
#pragma unroll 4
        for (int i = first + l; i < end; i += FOLD_LANES) {
            const T t = kept[i] - m, e = FN(exp)(t);
            kept[i] = Row::keep(t, e);
            sum = sum_exp::join(sum, e);
        }
        lane[b][l] = sum;
    }
    __syncthreads();
    const T scale = Row::scale(block_sums(lane, b));
#pragma unroll 4
    for (int i = l; i < n; i += ROW_THREADS) out[i] = Row::last(kept[i], scale);
}

/* A long row's end, in runs of LAST_THREADS * LAST_EACH elements. */
template <class Row> KERNEL(LAST_THREADS) last_pass(const __grid_constant__ softmax_args a)
{
    const int64_t run = LAST_THREADS * LAST_EACH, runs = (a.n + run - 1) / run;
    const int64_t row = blockIdx.x / runs, first = (blockIdx.x - row * runs) * run + threadIdx.x;
    const T *in = row_of(a, row);
    T *out = (T *)a.out + row * a.n;
    const T m = ((const T *)a.most)[row], scale = Row::scale(((const T *)a.sum)[row]);
    T x[LAST_EACH];
#pragma unroll
    for (int j = 0; j < LAST_EACH; j++) x[j] = first + j * LAST_THREADS < a.n ? in[(first + j * LAST_THREADS) * a.stride] : K(0);
#pragma unroll
    for (int j = 0; j < LAST_EACH; j++) {
        const T t = x[j] - m;
        if (first + j * LAST_THREADS < a.n) out[first + j * LAST_THREADS] = Row::last(Row::keep(t, FN(exp)(t)), scale);
    }
}

template <class Row> static const void *softmax_form(int form)
{
    switch (form) {
    case FORM_SHORT: return (const void *)short_rows<Row, 4>;
    case FORM_THIN: return (const void *)short_rows<Row, 32>;
    case FORM_ROW: return (const void *)kept_row<Row>;
    case FORM_LAST: return (const void *)last_pass<Row>;
    default: return NULL;
    }
}

} // namespace

/* Row softmax has the folds of long rows too. */
const void *TYPED(softmax_kernel)(int row, int form)
{
    if (form == FORM_ROWS) return (const void *)fold_rows<sum_exp>;
    if (form == FORM_COLUMNS) return (const void *)fold_columns<sum_exp>;
    if (form == FORM_JOIN) return (const void *)fold_join<sum_exp>;
    return row == OP_softmax ? softmax_form<row_softmax>(form) : softmax_form<row_log_softmax>(form);
}
