/* softmax.cu - softmax and log_softmax along the last axis. With m the maximum of the row, t = x -
 * m, e = exp(t) and s the canonical sum of e, softmax is e / s and log_softmax is t - log(s). */
#include "row_cache.cuh"

namespace
{

/* What a thread keeps of an element, and the output computed from it once the sum of the row is
 * known. `swift` computes the same as `last` where its precondition holds. */
struct row_softmax {
    static __device__ inline T keep(T t, T e) { return e; }
    static __device__ inline T scale(T s) { return s; }
    static __device__ inline T last(T kept, T scale) { return kept / scale; }
    /* kept / scale for a normal quotient with exact remainders. The second correction, by the
     * reciprocal rounded to nearest, gives the correctly rounded quotient (Markstein, IBM J. Res.
     * Dev. 34, 1990). */
    static __device__ inline T swift(T kept, T scale, T inverse)
    {
        const T q = kept * inverse, p = FMA(FMA(-q, scale, kept), inverse, q);
        return FMA(FMA(-p, scale, kept), inverse, p);
    }
    static __device__ inline bool is_swift(T kept) { return kept >= LEAST; }
    static constexpr T LEAST = sizeof(T) == 4 ? K(0x1p-90) : K(0x1p-900); /* scale is between 1 and 2^31 */
};
struct row_log_softmax {
    static __device__ inline T keep(T t, T e) { return t; }
    static __device__ inline T scale(T s) { return FN(log)(s); }
    static __device__ inline T last(T kept, T scale) { return kept - scale; }
    static __device__ inline T swift(T kept, T scale, T) { return kept - scale; }
    static __device__ inline bool is_swift(T) { return true; }
};

/* Rows max and sum of ops.def. */
#define DUET_FOLD1(name, START, TAKE, JOIN, EPILOGUE, ...)                                                   \
    struct reduce_##name {                                                                                   \
        static __device__ inline T first() { return START; }                                                 \
        static __device__ inline T with(T a, T x, T y) { return TAKE; }                                      \
        static __device__ inline T both(T a, T b) { return JOIN; }                                           \
        static __device__ inline T result(T a, int64_t n) { return EPILOGUE; }                               \
    };
#include <duet/ops.def>
typedef plain<reduce_max> most;
struct sum_exp : plain<reduce_sum> {
    enum { resident = 2 };
    static __device__ inline T see(T x, T m) { return FN(exp)(x - m); }
};

/* Rows of at most 16 elements: a group of four threads for each row, one element for each lane. */
template <class Row> KERNEL(ROW_THREADS) short_rows(const __grid_constant__ row_args a)
{
    enum { G = 4, OWN = REDUCE_FEW / G };
    const int64_t row = ((int64_t)blockIdx.x * ROW_THREADS + threadIdx.x) / G;
    const int g = threadIdx.x % G, mine = row < a.rows ? (int)a.n : 0;
    const T *in = row_of(a, row < a.rows ? row : 0);
    T x[OWN], m[OWN], e[OWN];
#pragma unroll
    for (int j = 0; j < OWN; j++) x[j] = m[j] = g + G * j < mine ? in[(g + G * j) * a.stride] : most::start();
    join_own<most, OWN / 2, 1>(m);
    const T top = from_first<G>(join_group<most, G>(m[0]));
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        const T t = x[j] - top, exp_t = FN(exp)(t);
        x[j] = Row::keep(t, exp_t);
        e[j] = g + G * j < mine ? exp_t : sum_exp::start();
    }
    join_own<sum_exp, OWN / 2, 1>(e);
    const T scale = Row::scale(from_first<G>(join_group<sum_exp, G>(e[0])));
#pragma unroll
    for (int j = 0; j < OWN; j++)
        if (g + G * j < mine) ((T *)a.out)[row * a.n + g + G * j] = Row::last(x[j], scale);
}

/* Maximum and sum of exponentials of the row of a warp. An absent element is -INF, whose
 * exponential adds nothing. */
template <int R, int W> static __device__ __forceinline__ T top_of(const warp_row<R, W> &row)
{
    T m[4];
    EACH_LANE m[l] = row.x[0][l];
#pragma unroll
    for (int r = 1; r < R; r++) EACH_LANE m[l] = most::join(m[l], row.x[r][l]);
    return from_first<32>(join_warp<most, W>(m));
}
template <class Row, int R, int W> static __device__ __forceinline__ T sum_of(warp_row<R, W> &row, T m)
{
    T s[4];
    EACH_LANE s[l] = sum_exp::start();
#pragma unroll
    for (int r = 0; r < R; r++) EACH_LANE
        {
            const T t = row.x[r][l] - m, e = FN(exp)(t);
            row.x[r][l] = Row::keep(t, e), s[l] = sum_exp::join(s[l], e);
        }
    return from_first<32>(join_warp<sum_exp, W>(s));
}
template <class Row, int R, int W>
static __device__ __forceinline__ bool all_are_swift(const warp_row<R, W> &row)
{
    bool all = true;
#pragma unroll
    for (int r = 0; r < R; r++) EACH_LANE all &= Row::is_swift(row.x[r][l]) | !row.has(r, l);
    return all;
}

template <class Row, int R, int W> KERNEL(ROW_THREADS) warp_rows(const __grid_constant__ row_args a)
{
    const int64_t row = (int64_t)blockIdx.x * (ROW_THREADS / 32) + threadIdx.x / 32;
    if (row >= a.rows) return;
    T *out = (T *)a.out + row * a.n;
    warp_row<R, W> x;
    x.n = (int)a.n;
    x.t = threadIdx.x % 32;
    x.load(row_of(a, row), a.stride, most::start());
    const T scale = Row::scale(sum_of<Row>(x, top_of(x))), inverse = K(1) / scale;
    if (all_are_swift<Row>(x)) x.store(out, [=](T kept) { return Row::swift(kept, scale, inverse); });
    else x.store(out, [=](T kept) { return Row::last(kept, scale); });
}

/* Gives the maximum of m over the thread block to all its threads. */
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

/* One thread block for each row, one thread for each lane. Values that only one thread uses are in
 * shared memory. */
template <class Row> KERNEL(ROW_THREADS) kept_row(const __grid_constant__ row_args a)
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
    for (int first = 0; first < n; first += REDUCE_BLOCK, b++) {
        const int end = min(first + REDUCE_BLOCK, n);
        T sum = sum_exp::start();
#pragma unroll 4
        for (int i = first + l; i < end; i += REDUCE_LANES) {
            const T t = kept[i] - m, e = FN(exp)(t);
            kept[i] = Row::keep(t, e);
            sum = sum_exp::join(sum, e);
        }
        lane[b][l] = sum;
    }
    __syncthreads();
    const T scale = Row::scale(join_blocks<sum_exp>(lane, b));
#pragma unroll 4
    for (int i = l; i < n; i += ROW_THREADS) out[i] = Row::last(kept[i], scale);
}

/* The last pass over a long row, in runs of LAST_THREADS * LAST_EACH elements. */
template <class Row> KERNEL(LAST_THREADS) last_pass(const __grid_constant__ row_args a)
{
    const int64_t run = LAST_THREADS * LAST_EACH, runs = (a.n + run - 1) / run;
    const int64_t row = blockIdx.x / runs, first = (blockIdx.x - row * runs) * run + threadIdx.x;
    const T *in = row_of(a, row);
    T *out = (T *)a.out + row * a.n;
    const T m = ((const T *)a.most)[row], scale = Row::scale(((const T *)a.sum)[row]);
    T x[LAST_EACH];
#pragma unroll
    for (int j = 0; j < LAST_EACH; j++)
        x[j] = first + j * LAST_THREADS < a.n ? in[(first + j * LAST_THREADS) * a.stride] : K(0);
#pragma unroll
    for (int j = 0; j < LAST_EACH; j++) {
        const T t = x[j] - m;
        if (first + j * LAST_THREADS < a.n)
            out[first + j * LAST_THREADS] = Row::last(Row::keep(t, FN(exp)(t)), scale);
    }
}

/* rows: how many times REDUCE_LANES elements a warp holds */
template <class Row, int W> static const void *warp_form(int rows)
{
    switch (rows) {
    case 1: return (const void *)warp_rows<Row, 1, W>;
    case 2: return (const void *)warp_rows<Row, 2, W>;
    case 4: return (const void *)warp_rows<Row, 4, W>;
    case 8: return (const void *)warp_rows<Row, 8, W>;
    default: return NULL;
    }
}

template <class Row> static const void *softmax_form(int form)
{
    switch (form) {
    case FORM_SHORT: return (const void *)short_rows<Row>;
    case FORM_ROW: return (const void *)kept_row<Row>;
    case FORM_LAST: return (const void *)last_pass<Row>;
    default: return NULL;
    }
}

} // namespace

/* The kernel table of softmax also has the reductions for long rows. */
const void *TYPED(softmax_kernel)(int row, int form)
{
    if (form == FORM_ROWS) return (const void *)reduce_rows<sum_exp>;
    if (form == FORM_COLUMNS) return (const void *)reduce_columns<sum_exp>;
    return row == OP_softmax ? softmax_form<row_softmax>(form) : softmax_form<row_log_softmax>(form);
}

const void *TYPED(softmax_warp_kernel)(int row, int rows, bool vectors)
{
    if (row == OP_softmax)
        return vectors ? warp_form<row_softmax, WIDTH>(rows) : warp_form<row_softmax, 1>(rows);
    return vectors ? warp_form<row_log_softmax, WIDTH>(rows) : warp_form<row_log_softmax, 1>(rows);
}
