/* fold.cuh - reductions in the order of core/fold.h, over any Fold:
 *     acc                a partial result; start() is that of nothing
 *     see(x, with)       what is taken of an element, with the number that goes with the output
 *     take, join, finish as in ops.def; pass(a, h): the acc of the thread h further on in the warp
 *     pairs              whether there is a y
 *     resident           thread blocks of fold_rows that should fit a multiprocessor at once: what registers it may use
 * A group of G threads holds the 128 lanes of a block, thread g the lanes g, g + G, ...: joining lanes by
 * halving is joining those of each thread by halving, then threads by halving. */
#ifndef FOLD_CUH
#define FOLD_CUH

#include "device.cuh"

/* A row of ops.def as a Fold: over no elements, start + 0. */
template <class Row> struct plain {
    typedef T acc;
    enum { pairs = 0, resident = 4 };
    static __device__ inline T start() { return Row::first(); }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline T take(T a, T x, T y) { return Row::with(a, x, y); }
    static __device__ inline T join(T a, T b) { return Row::both(a, b); }
    static __device__ inline T finish(T a, int64_t n) { return Row::result(n == 0 ? a + K(0) : a, n); }
    static __device__ inline T pass(T a, int h) { return __shfl_down_sync(~0u, a, h); }
};

/* Where an output's elements begin, and where it goes. */
struct place {
    int64_t x, y, out;
};

static __device__ inline place locate(const fold_args &a, int64_t i)
{
    place p = {};
    uint64_t left = (uint64_t)i;
#pragma unroll 1
    for (int axis = a.outer - 1; axis >= 0; axis--) {
        const uint64_t q = axis ? quotient(left, a.outer_size[axis]) : 0;
        const int64_t c = (int64_t)(left - q * a.outer_size[axis].by);
        p.x += c * a.outer_stride[0][axis], p.y += c * a.outer_stride[1][axis], p.out += c * a.outer_stride[2][axis];
        left = q;
    }
    return p;
}

/* What a fold takes in one step; y of dot alone. */
struct taken {
    T x, y;
};

/* An output's elements, by their index: along one axis, the usual case, or through several. */
template <class Fold> struct elements {
    const T *x, *y;
    int64_t x_stride, y_stride;
    T with;

    __device__ elements(const fold_args &a, int64_t i, const place &p)
        : x((const T *)a.x + p.x), y(Fold::pairs ? (const T *)a.y + p.y : NULL), x_stride(a.inner_stride[0][0]),
          y_stride(a.inner_stride[1][0]), with(a.with ? ((const T *)a.with)[i] : T(0))
    {
    }
    __device__ taken along(int64_t j) const { return { x[j * x_stride], Fold::pairs ? y[j * y_stride] : T(0) }; }
    __device__ taken through(const fold_args &a, int64_t j) const
    {
        int64_t at_x = 0, at_y = 0;
        uint64_t left = (uint64_t)j;
#pragma unroll 1
        for (int axis = a.inner - 1; axis >= 0; axis--) {
            const uint64_t q = axis ? quotient(left, a.inner_size[axis]) : 0;
            const int64_t c = (int64_t)(left - q * a.inner_size[axis].by);
            at_x += c * a.inner_stride[0][axis], at_y += c * a.inner_stride[1][axis];
            left = q;
        }
        return { x[at_x], Fold::pairs ? y[at_y] : T(0) };
    }
};

/* N lanes of one thread, lane j holding the elements at, at + step, ... of those below end. The loads go before the first take. */
template <class Fold, int N> struct lanes {
    typename Fold::acc v[N];

    __device__ lanes()
    {
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = Fold::start();
    }
    __device__ void take(const elements<Fold> &e, int64_t at, int step)
    {
        taken p[N];
#pragma unroll
        for (int j = 0; j < N; j++) p[j] = e.along(at + j * step);
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = Fold::take(v[j], Fold::see(p[j].x, e.with), p[j].y);
    }
    template <bool through>
    __device__ void take_some(const fold_args &a, const elements<Fold> &e, int64_t at, int step, int64_t end)
    {
        taken p[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            p[j] = taken{};
            if (at + j * step < end) p[j] = through ? e.through(a, at + j * step) : e.along(at + j * step);
        }
#pragma unroll
        for (int j = 0; j < N; j++)
            if (at + j * step < end) v[j] = Fold::take(v[j], Fold::see(p[j].x, e.with), p[j].y);
    }
    template <int H = N / 2> __device__ typename Fold::acc join() /* l with l + H, then H / 2, ... 1 */
    {
#pragma unroll
        for (int j = 0; j < H; j++) v[j] = Fold::join(v[j], v[j + H]);
        if constexpr (H > 1) return join<H / 2>();
        return v[0];
    }
};

/* Threads of a group by halving; the first one's result is the group's. */
template <class Fold, int G> static __device__ inline typename Fold::acc join_group(typename Fold::acc a)
{
#pragma unroll
    for (int h = G / 2; h > 0; h /= 2) a = Fold::join(a, Fold::pass(a, h));
    return a;
}

/* The elements first .. end - 1 of a block by a warp: thread t holds the lanes t, t + 32, t + 64, t + 96. */
template <class Fold>
static __device__ inline typename Fold::acc fold_lanes(const fold_args &a, const elements<Fold> &e, int64_t first, int64_t end,
                                                       int t)
{
    enum { BATCH = 16 / sizeof(T) };
    lanes<Fold, 4> v;
    int64_t at = first + t;
    if (a.inner == 1) {
#pragma unroll(BATCH)
        for (; at - t + FOLD_LANES <= end; at += FOLD_LANES) v.take(e, at, 32);
        if (at - t < end) v.template take_some<false>(a, e, at, 32, end);
    } else {
#pragma unroll 1
        for (; at - t < end; at += FOLD_LANES) v.template take_some<true>(a, e, at, 32, end);
    }
    return join_group<Fold, 32>(v.join());
}

/* The same for a whole block without gaps: thread t holds the lanes 2t, 2t + 1, 64 + 2t, 65 + 2t, and reads two at once. */
struct alignas(2 * sizeof(T)) two {
    T e[2];
};
template <class Fold> static __device__ inline typename Fold::acc fold_pairs(const elements<Fold> &e, int64_t first, int t)
{
    typedef typename Fold::acc acc;
    enum { BATCH = 32 / sizeof(T) / (Fold::pairs ? 2 : 1) }; /* steps whose loads are under way at once: 128 bytes a thread */
    const two *x = (const two *)(e.x + first) + t, *y = (const two *)(e.y + first) + t;
    acc v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = Fold::start();
#pragma unroll(BATCH)
    for (int k = 0; k < FOLD_BLOCK / FOLD_LANES; k++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const two p = x[k * FOLD_LANES / 2 + h * 32], q = Fold::pairs ? y[k * FOLD_LANES / 2 + h * 32] : two{};
            v[2 * h] = Fold::take(v[2 * h], Fold::see(p.e[0], e.with), q.e[0]);
            v[2 * h + 1] = Fold::take(v[2 * h + 1], Fold::see(p.e[1], e.with), q.e[1]);
        }
    const acc even = join_group<Fold, 32>(Fold::join(v[0], v[2])), odd = join_group<Fold, 32>(Fold::join(v[1], v[3]));
    return Fold::join(even, odd);
}

template <class Fold> static __device__ inline bool in_pairs(const elements<Fold> &e)
{
    const uintptr_t bits = (uintptr_t)e.x | (Fold::pairs ? (uintptr_t)e.y : 0);
    return e.x_stride == 1 && (!Fold::pairs || e.y_stride == 1) && bits % sizeof(two) == 0;
}

/* Block b of output i, by a warp. */
template <class Fold> static __device__ inline typename Fold::acc fold_block(const fold_args &a, int64_t i, int64_t b, int t)
{
    const elements<Fold> e(a, i, locate(a, i));
    const int64_t first = b * FOLD_BLOCK, end = min(first + FOLD_BLOCK, a.n);
    if (end - first == FOLD_BLOCK && a.inner == 1 && in_pairs<Fold>(e)) return fold_pairs<Fold>(e, first, t);
    return fold_lanes<Fold>(a, e, first, end, t);
}

/* An output is done when it has one part. */
template <class Fold> static __device__ inline void deliver(const fold_args &a, int64_t i, int64_t part, typename Fold::acc r)
{
    if (a.parts > 1) ((typename Fold::acc *)a.part)[i * a.parts + part] = r;
    else ((T *)a.out)[locate(a, i).out] = Fold::finish(r, a.n);
}

/* A warp for each block; those of a part are joined here. */
template <class Fold> KERNEL(FOLD_WARPS * 32, Fold::resident) fold_rows(const __grid_constant__ fold_args a)
{
    __shared__ typename Fold::acc s[FOLD_WARPS];
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, own = warp % a.warps;
    const int64_t slot = (int64_t)blockIdx.x * (FOLD_WARPS / a.warps) + warp / a.warps;
    const int64_t i = (int64_t)quotient((uint64_t)slot, a.by_parts), part = slot - i * a.parts, b = part * a.warps + own;
    typename Fold::acc r = Fold::start();
    if (i < a.outputs && b < a.blocks) r = fold_block<Fold>(a, i, b, t);
    if (a.warps > 1) {
        if (t == 0) s[warp] = r;
        __syncthreads();
        if (own > 0 || t > 0) return;
        for (int h = 1; h < a.warps; h *= 2)
            for (int w = warp; w < warp + a.warps; w += 2 * h) s[w] = Fold::join(s[w], s[w + h]);
        r = s[warp];
    }
    if (t == 0 && i < a.outputs) deliver<Fold>(a, i, part, r);
}

/* A thread block is FOLD_ACROSS outputs by FOLD_DOWN groups: thread g of an output holds the lanes g, g + 16, ..., g + 112. */
template <class Fold>
static __device__ inline typename Fold::acc fold_column(const fold_args &a, const elements<Fold> &e, int64_t first, int64_t end,
                                                        int g)
{
    lanes<Fold, FOLD_LANES / FOLD_DOWN> v;
    int64_t at = first + g;
#pragma unroll 1
    for (; at - g + FOLD_LANES <= end; at += FOLD_LANES) v.take(e, at, FOLD_DOWN);
    if (at < end) v.template take_some<false>(a, e, at, FOLD_DOWN, end);
    return v.join();
}

template <class Fold> KERNEL(FOLD_ACROSS *FOLD_DOWN, Fold::resident / 2) fold_columns(const __grid_constant__ fold_args a)
{
    __shared__ typename Fold::acc s[FOLD_DOWN][FOLD_ACROSS];
    const int c = threadIdx.x % FOLD_ACROSS, g = threadIdx.x / FOLD_ACROSS;
    const uint32_t tiles = gridDim.x / (uint32_t)a.blocks;
    const int64_t b = blockIdx.x / tiles, i = (int64_t)(blockIdx.x % tiles) * FOLD_ACROSS + c, first = b * FOLD_BLOCK;
    s[g][c] = Fold::start();
    if (i < a.outputs) {
        const elements<Fold> e(a, i, locate(a, i));
        s[g][c] = fold_column<Fold>(a, e, first, min(first + FOLD_BLOCK, a.n), g);
    }
    for (int h = FOLD_DOWN / 2; h > 0; h /= 2) {
        __syncthreads();
        if (g < h) s[g][c] = Fold::join(s[g][c], s[g + h][c]);
    }
    if (g == 0 && i < a.outputs) deliver<Fold>(a, i, b, s[0][c]);
}

/* No more than G * P elements, so one a lane: G threads an output. */
template <class Fold, int G, int P> KERNEL(FOLD_WARPS * 32) fold_short(const __grid_constant__ fold_args a)
{
    const int64_t i = ((int64_t)blockIdx.x * (FOLD_WARPS * 32) + threadIdx.x) / G;
    const int g = threadIdx.x % G;
    lanes<Fold, P> v;
    if (i < a.outputs) v.template take_some<false>(a, elements<Fold>(a, i, locate(a, i)), g, G, a.n);
    const typename Fold::acc r = join_group<Fold, G>(v.join());
    if (g == 0 && i < a.outputs) deliver<Fold>(a, i, 0, r);
}

/* FOLD_JOINING parts, or those that there are, in adjacent pairs, by a thread block; thread 0 has the result. */
template <class Fold> static __device__ inline typename Fold::acc join_tile(const typename Fold::acc *p, int64_t count)
{
    enum { OWN = FOLD_JOINING / (FOLD_WARPS * 32) };
    __shared__ typename Fold::acc s[FOLD_WARPS];
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, first = threadIdx.x * OWN;
    typename Fold::acc v[OWN];
#pragma unroll
    for (int j = 0; j < OWN; j++) v[j] = first + j < count ? p[first + j] : Fold::start();
#pragma unroll
    for (int h = 1; h < OWN; h *= 2)
#pragma unroll
        for (int j = 0; j < OWN; j += 2 * h) v[j] = Fold::join(v[j], v[j + h]);
#pragma unroll
    for (int h = 1; h < 32; h *= 2) v[0] = Fold::join(v[0], Fold::pass(v[0], h));
    __syncthreads(); /* all have left s, and read their parts */
    if (t == 0) s[warp] = v[0];
    __syncthreads();
    for (int h = 1; threadIdx.x == 0 && h < FOLD_WARPS; h *= 2)
        for (int w = 0; w < FOLD_WARPS; w += 2 * h) s[w] = Fold::join(s[w], s[w + h]);
    return s[0];
}

/* Few parts: a warp an output. */
template <class Fold> static __device__ inline void join_few(const fold_args &a, int64_t i, int t)
{
    typename Fold::acc v = Fold::start();
    if (i < a.outputs && t < a.parts) v = ((const typename Fold::acc *)a.part)[i * a.parts + t];
#pragma unroll
    for (int h = 1; h < 32; h *= 2) v = Fold::join(v, Fold::pass(v, h));
    if (i < a.outputs && t == 0) ((T *)a.out)[locate(a, i).out] = Fold::finish(v, a.n);
}

/* Else a thread block an output. Joined runs are whole sub-trees, and go where parts have been read already. */
template <class Fold> KERNEL(FOLD_WARPS * 32) fold_join(const __grid_constant__ fold_args a)
{
    const int64_t i = blockIdx.x;
    if (a.parts <= FOLD_FEW_PARTS) return join_few<Fold>(a, i * FOLD_WARPS + threadIdx.x / 32, threadIdx.x % 32);
    typename Fold::acc *p = (typename Fold::acc *)a.part + i * a.parts;
    for (int64_t count = a.parts; count > 1; count = (count + FOLD_JOINING - 1) / FOLD_JOINING) {
        for (int64_t at = 0; at * FOLD_JOINING < count; at++) {
            const typename Fold::acc r = join_tile<Fold>(p + at * FOLD_JOINING, count - at * FOLD_JOINING);
            if (threadIdx.x == 0) p[at] = r;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) ((T *)a.out)[locate(a, i).out] = Fold::finish(p[0], a.n);
}

template <class Fold> static const void *fold_form(int form)
{
    switch (form) {
    case FORM_ROWS: return (const void *)fold_rows<Fold>;
    case FORM_COLUMNS: return (const void *)fold_columns<Fold>;
    case FORM_SHORT: return (const void *)fold_short<Fold, 4, FOLD_FEW / 4>;
    case FORM_THIN: return (const void *)fold_short<Fold, 1, FOLD_FEW>;
    case FORM_JOIN: return (const void *)fold_join<Fold>;
    default: return NULL;
    }
}

#endif
