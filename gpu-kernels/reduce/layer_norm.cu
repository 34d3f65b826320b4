/* layer_norm.cu - layer_norm: u = (x - mean) * rsqrt(variance + r) along the last axis, then fma(u,
 * gain, bias), rounded once. Mean and variance are computed as in rows mean and var of ops.def, in
 * one pass over the row if the row is kept on chip. */
#include "reduce_ops.cuh"
#include "row_cache.cuh"

namespace
{

typedef folding<row_mean> mean_reduce;
typedef folding<row_var> var_reduce;

struct mean_and_var {
    T mean, var;
};

/* The reductions mean and var together. */
struct unit_reduce {
    struct lane {
        var_reduce::lane moments;
        T sum;
    };
    struct acc {
        moments m;
        T sum;
    };
    typedef mean_and_var result;
    enum { pairs = 0, resident = 2 };
    static __device__ inline acc start() { return { var_reduce::start(), mean_reduce::start() }; }
    static __device__ inline lane open() { return { var_reduce::open(), mean_reduce::open() }; }
    static __device__ inline T see(T x, T scale) { return x * scale; }
    static __device__ inline T down() { return TYPED(REDUCE_DOWN); }
    static __device__ inline bool is_finite(acc a)
    {
        return mean_reduce::is_finite(a.sum) & var_reduce::is_finite(a.m);
    }
    static __device__ inline lane take(lane a, T x, T y, int k)
    {
        return { var_reduce::take(a.moments, x, y, k), mean_reduce::take(a.sum, x, y, k) };
    }
    static __device__ inline acc close(lane a, int64_t first, int count)
    {
        return { var_reduce::close(a.moments, first, count), a.sum };
    }
    static __device__ inline acc join(acc a, acc b)
    {
        return { var_reduce::join(a.m, b.m), mean_reduce::join(a.sum, b.sum) };
    }
    template <class F> static __device__ inline acc each(acc a, F f)
    {
        return { var_reduce::each(a.m, f), f(a.sum) };
    }
};
template <> struct between_blocks<unit_reduce> {
    typedef between_blocks<var_reduce> var;
    typedef between_blocks<mean_reduce> mean;
    struct acc {
        var::acc m;
        mean::acc sum;
    };
    typedef mean_and_var result;
    enum { scales = 1 };
    static __device__ inline acc start() { return { var::start(), mean::start() }; }
    static __device__ inline acc as_is(unit_reduce::acc a) { return { var::as_is(a.m), mean::as_is(a.sum) }; }
    static __device__ inline acc again(acc r, unit_reduce::acc a)
    {
        return { var::again(r.m, a.m), mean::again(r.sum, a.sum) };
    }
    static __device__ inline acc join(acc a, acc b)
    {
        return { var::join(a.m, b.m), mean::join(a.sum, b.sum) };
    }
    static __device__ inline result epilogue(acc a, int64_t n)
    {
        return { mean::epilogue(a.sum, n), var::epilogue(a.m, n) };
    }
    template <class F> static __device__ inline acc each(acc a, F f)
    {
        return { var::each(a.m, f), mean::each(a.sum, f) };
    }
};
typedef between_blocks<unit_reduce> unit_blocks;

/* Reads W elements that no kernel writes while this one runs. */
template <int W> static __device__ __forceinline__ packed<W> read_only(const T *p)
{
    packed<W> r;
    if constexpr (W == 1) r.e[0] = __ldg(p);
    else {
        const double2 bits = __ldg((const double2 *)p);
        memcpy(&r, &bits, sizeof r);
    }
    return r;
}

/* Computes W elements of the output from element i of a row on. DENSE: gain and bias have the
 * layout of x. */
template <int W, bool DENSE> struct unit {
    const norm_args &a;
    const T *row[2];
    T number[2], mean, scale;

    __device__ __forceinline__ unit(const norm_args &args, int64_t at) : a(args)
    {
        for (int k = 0; k < 2; k++) {
            const norm_trim &t = a.with[k];
            row[k] = t.at ? (const T *)t.at + row_offset(a.row, t.outer_stride, at) : NULL;
            number[k] = (T)t.number;
        }
    }
    __device__ __forceinline__ void settle(mean_and_var r)
    {
        mean = r.mean;
        scale = FN(rsqrt)(r.var + (T)a.r);
    }
    __device__ __forceinline__ T element(int k, int64_t i) const
    {
        const norm_trim &t = a.with[k];
        if (!row[k]) return number[k];
        const int64_t at = t.run.by == 1 ? i : (int64_t)quotient((uint64_t)i, t.run);
        return __ldg(row[k] + at * t.stride);
    }
    __device__ __forceinline__ packed<W> trim(int k, int64_t i) const
    {
        if constexpr (DENSE) return read_only<W>(row[k] + i);
        else {
            packed<W> p;
            EACH_OF_PACK p.e[j] = element(k, i + j);
            return p;
        }
    }
    __device__ __forceinline__ packed<W> operator()(packed<W> p, int64_t i) const
    {
        EACH_OF_PACK p.e[j] = (p.e[j] - mean) * scale;
        if (!DENSE && !a.trims) return p;
        const packed<W> gain = trim(0, i), bias = trim(1, i);
        EACH_OF_PACK p.e[j] = FMA(p.e[j], gain.e[j], bias.e[j]);
        return p;
    }
};

/* Gives the result of the first thread to its whole group. */
template <int G> static __device__ inline mean_and_var shared_result(unit_blocks::acc s, int64_t n)
{
    const mean_and_var r = unit_blocks::epilogue(s, n);
    return { from_first<G>(r.mean), from_first<G>(r.var) };
}

/* Rows of at most 16 elements: a group of four threads for each row, one element for each lane. */
KERNEL(ROW_THREADS) short_norms(const __grid_constant__ norm_args a)
{
    enum { G = 4, OWN = REDUCE_FEW / G };
    const int64_t at = ((int64_t)blockIdx.x * ROW_THREADS + threadIdx.x) / G, row = at < a.row.rows ? at : 0;
    const int g = threadIdx.x % G, n = (int)a.row.n, mine = at < a.row.rows ? n : 0;
    const T *in = row_of(a.row, row);
    unit<1, false> u(a, row);
    T x[OWN];
#pragma unroll
    for (int j = 0; j < OWN; j++) x[j] = g + G * j < mine ? in[(g + G * j) * a.row.stride] : K(0);
    const auto reduce = [&](T by) {
        unit_reduce::acc s[OWN];
#pragma unroll
        for (int j = 0; j < OWN; j++)
            s[j] = g + G * j < mine
                       ? unit_reduce::close(unit_reduce::take(unit_reduce::open(), x[j] * by, K(0), 0), 0, 1)
                       : unit_reduce::start();
        join_own<unit_reduce, OWN / 2, 1>(s);
        return join_group<unit_reduce, G>(s[0]);
    };
    const unit_blocks::acc r =
        finish_in_warp<unit_reduce>(reduce(K(1)), g == 0, [&] { return reduce(unit_reduce::down()); });
    u.settle(shared_result<G>(r, n));
#pragma unroll
    for (int j = 0; j < OWN; j++)
        if (g + G * j < mine)
            ((T *)a.row.out)[row * n + g + G * j] = u(packed<1>{ { x[j] } }, g + G * j).e[0];
}

/* Reduces the row of a warp, times `by`. Thread 0 gets the result. */
template <int R, int W>
static __device__ __forceinline__ unit_reduce::acc reduce_row(const warp_row<R, W> &x, T by)
{
    unit_reduce::acc s[4];
    EACH_LANE
    {
        unit_reduce::lane v = unit_reduce::open();
        int count = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            if (r < R / 2 || x.has(r, l)) { /* otherwise half as many registers would hold the row */
                v = unit_reduce::take(v, x.x[r][l] * by, K(0), r);
                count = r + 1;
            }
        s[l] = unit_reduce::close(v, 0, count);
    }
    return join_warp<unit_reduce, W>(s);
}

template <int R, int W, bool DENSE> KERNEL(ROW_THREADS) warp_norms(const __grid_constant__ norm_args a)
{
    const int64_t row = (int64_t)blockIdx.x * (ROW_THREADS / 32) + threadIdx.x / 32;
    if (row >= a.row.rows) return;
    warp_row<R, W> x;
    x.n = (int)a.row.n;
    x.t = threadIdx.x % 32;
    x.load(row_of(a.row, row), a.row.stride, K(0));
    unit<W, DENSE> u(a, row);
    const unit_blocks::acc r = finish_in_warp<unit_reduce>(reduce_row(x, K(1)), x.t == 0, [&] {
        return reduce_row(x, unit_reduce::down());
    });
    u.settle(shared_result<32>(r, a.row.n));
    x.store_packs((T *)a.row.out + row * a.row.n, u);
}

/* The lanes of all blocks of a row in shared memory, times `by`; one thread for each lane. Returns the
 * number of blocks. */
template <int BLOCKS>
static __device__ inline int take_lanes(unit_reduce::acc (&lane)[BLOCKS][ROW_THREADS], const T *kept, int n,
                                        T by)
{
    const int t = threadIdx.x;
    int b = 0;
    for (int first = 0; first < n; first += REDUCE_BLOCK, b++) {
        const int end = min(first + REDUCE_BLOCK, n);
        unit_reduce::lane v = unit_reduce::open();
        int k = 0;
#pragma unroll 4
        for (int i = first + t; i < end; i += REDUCE_LANES, k++)
            v = unit_reduce::take(v, kept[i] * by, K(0), k);
        lane[b][t] = unit_reduce::close(v, 0, k);
    }
    return b;
}

/* One thread block for each row, which is in shared memory. */
template <int W, bool DENSE> KERNEL(ROW_THREADS) kept_norm(const __grid_constant__ norm_args a)
{
    enum { BLOCKS = NORM_BYTES / sizeof(T) / REDUCE_BLOCK };
    extern __shared__ double2 shared[]; /* aligned like vectors */
    __shared__ unit_reduce::acc lane[BLOCKS][ROW_THREADS];
    T *kept = (T *)shared, *out = (T *)a.row.out + blockIdx.x * a.row.n;
    const T *in = row_of(a.row, blockIdx.x);
    const int n = (int)a.row.n, t = threadIdx.x;
#pragma unroll 8
    for (int i = t * W; i < n; i += ROW_THREADS * W)
        *(packed<W> *)(kept + i) = *(const packed<W> *)(in + i * (W > 1 ? 1 : a.row.stride));
    __syncthreads();
    unit<W, DENSE> u(a, blockIdx.x);
    unit_blocks::acc r[BLOCKS];
    T by = K(1);
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        const int blocks = take_lanes(lane, kept, n, by);
        __syncthreads();
        bool finite = true;
        const unit_reduce::acc *s = join_lanes<unit_reduce>(lane, blocks);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            r[b] = pass ? unit_blocks::again(r[b], s[b]) : unit_blocks::as_is(s[b]);
            finite &= unit_reduce::is_finite(s[b]);
        }
        if (finite) break;
        by = unit_reduce::down();
    }
    u.settle(unit_blocks::epilogue(join_tree<unit_blocks>(r), n));
#pragma unroll 4
    for (int i = t * W; i < n; i += ROW_THREADS * W) *(packed<W> *)(out + i) = u(*(packed<W> *)(kept + i), i);
}

/* The last pass over a long row, in runs of LAST_THREADS * LAST_EACH elements. */
KERNEL(LAST_THREADS) last_norms(const __grid_constant__ norm_args a)
{
    const int64_t run = LAST_THREADS * LAST_EACH, n = a.row.n, runs = (n + run - 1) / run;
    const int64_t row = blockIdx.x / runs, first = (blockIdx.x - row * runs) * run + threadIdx.x;
    const T *in = row_of(a.row, row);
    T *out = (T *)a.row.out + row * n;
    unit<1, false> u(a, row);
    u.settle(((const mean_and_var *)a.known)[row]);
    T x[LAST_EACH];
#pragma unroll
    for (int j = 0; j < LAST_EACH; j++)
        x[j] = first + j * LAST_THREADS < n ? in[first + j * LAST_THREADS] : K(0);
#pragma unroll
    for (int j = 0; j < LAST_EACH; j++) {
        const int64_t i = first + j * LAST_THREADS;
        if (i < n) out[i] = u(packed<1>{ { x[j] } }, i).e[0];
    }
}

/* held: how many times REDUCE_LANES elements a warp holds */
template <int W, bool DENSE> static const void *row_form(int held)
{
    switch (held) {
    case 0: return (const void *)kept_norm<W, DENSE>;
    case 1: return (const void *)warp_norms<1, W, DENSE>;
    case 2: return (const void *)warp_norms<2, W, DENSE>;
    case 4: return (const void *)warp_norms<4, W, DENSE>;
    case 8: return (const void *)warp_norms<8, W, DENSE>;
    default: return NULL;
    }
}

} // namespace

const void *TYPED(norm_row_kernel)(int held, bool vectors, bool dense)
{
    if (!vectors) return row_form<1, false>(held);
    return dense ? row_form<WIDTH, true>(held) : row_form<WIDTH, false>(held);
}

const void *TYPED(norm_kernel)(int, int form)
{
    switch (form) {
    case FORM_SHORT: return (const void *)short_norms;
    case FORM_LAST: return (const void *)last_norms;
    case FORM_ROWS: return (const void *)reduce_rows<unit_reduce>;
    default: return NULL;
    }
}
