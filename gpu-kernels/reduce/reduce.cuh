/* reduce.cuh - kernels that reduce elements in memory, for any Fold of reduce_tree.cuh. */
#ifndef REDUCE_CUH
#define REDUCE_CUH

#include "reduce_tree.cuh"

/* Offsets of the first element of an output and of the output itself. */
struct place {
    int64_t x, y, out;
};

static __device__ inline place locate(const reduce_args &a, int64_t i)
{
    place p = {};
    uint64_t left = (uint64_t)i;
#pragma unroll 1
    for (int axis = a.outer - 1; axis >= 0; axis--) {
        const uint64_t q = axis ? quotient(left, a.outer_size[axis]) : 0;
        const int64_t c = (int64_t)(left - q * a.outer_size[axis].by);
        p.x += c * a.outer_stride[0][axis];
        p.y += c * a.outer_stride[1][axis];
        p.out += c * a.outer_stride[2][axis];
        left = q;
    }
    return p;
}

/* The elements that a reduction takes in one step. Only dot uses y. */
struct taken {
    T x, y;
};

/* The elements of one output by index: along one axis, the usual case, or along several. */
template <class Fold> struct elements {
    const T *x, *y;
    int64_t x_stride, y_stride;
    T with;

    /* by: a factor of the elements, for Folds that scale them */
    __device__ elements(const reduce_args &a, int64_t i, const place &p, T by)
        : x((const T *)a.x + p.x), y(Fold::pairs ? (const T *)a.y + p.y : NULL),
          x_stride(a.inner_stride[0][0]), y_stride(a.inner_stride[1][0]),
          with(between_blocks<Fold>::scales ? by
               : a.with                     ? ((const T *)a.with)[i]
                                            : T(0))
    {
    }
    __device__ taken along(int64_t j) const
    {
        return { x[j * x_stride], Fold::pairs ? y[j * y_stride] : T(0) };
    }
    __device__ taken through(const reduce_args &a, int64_t j) const
    {
        int64_t at_x = 0, at_y = 0;
        uint64_t left = (uint64_t)j;
#pragma unroll 1
        for (int axis = a.inner - 1; axis >= 0; axis--) {
            const uint64_t q = axis ? quotient(left, a.inner_size[axis]) : 0;
            const int64_t c = (int64_t)(left - q * a.inner_size[axis].by);
            at_x += c * a.inner_stride[0][axis];
            at_y += c * a.inner_stride[1][axis];
            left = q;
        }
        return { x[at_x], Fold::pairs ? y[at_y] : T(0) };
    }
};

/* How many elements a lane takes, whose first one is followed by n - 1 others of all lanes. */
static __device__ inline int lane_count(int n) { return (int)((uint32_t)(n - 1) / REDUCE_LANES) + 1; }

/* ---- a block by a warp ---- */

/* Returns lanes that have taken the n elements of a block from `first` on. */
template <class Fold, int W>
static __device__ inline typename Fold::acc close_warp(const typename Fold::lane (&v)[4], int64_t first,
                                                       int n, int t)
{
    typename Fold::acc a[4];
#pragma unroll
    for (int l = 0; l < 4; l++)
        a[l] = lane_of<W>(l, t) < n
                   ? Fold::close(v[l], first + lane_of<W>(l, t), lane_count(n - lane_of<W>(l, t)))
                   : Fold::start();
    return join_warp<Fold, W>(a);
}

/* W elements as one access; the elements of all four lanes. */
template <int W> struct alignas(W * sizeof(T)) packed {
    T e[W];
};
template <int W> static __device__ inline void load_lanes(T (&v)[4], const T *row, int t)
{
#pragma unroll
    for (int h = 0; h < 4 / W; h++) {
        const packed<W> p = ((const packed<W> *)(row + h * 32 * W))[t];
#pragma unroll
        for (int j = 0; j < W; j++) v[h * W + j] = p.e[j];
    }
}

/* Takes contiguous elements, W of them aligned, in rows of REDUCE_LANES. The loads of BATCH rows
 * are issued together. */
template <class Fold, int W> struct dense_rows {
    enum { BATCH = 32 / sizeof(T) / (Fold::pairs ? 2 : 1) }; /* 128 bytes for each thread */
    const T *x, *y;
    T with;
    int t;
    typename Fold::lane v[4];

    __device__ dense_rows(const elements<Fold> &e, int64_t first, int thread)
        : x(e.x + first), y(Fold::pairs ? e.y + first : NULL), with(e.with), t(thread)
    {
#pragma unroll
        for (int l = 0; l < 4; l++) v[l] = Fold::open();
    }
    __device__ void take_row(const T (&p)[4], const T (&q)[4], int k)
    {
#pragma unroll
        for (int l = 0; l < 4; l++) v[l] = Fold::take(v[l], Fold::see(p[l], with), q[l], k);
    }
    /* Takes rows k and following; SOME: only those below `rows`. */
    template <bool SOME> __device__ void take_batch(int k, int rows)
    {
        T p[BATCH][4], q[BATCH][4] = {};
#pragma unroll
        for (int u = 0; u < BATCH; u++)
            if (!SOME || k + u < rows) {
                load_lanes<W>(p[u], x + (k + u) * REDUCE_LANES, t);
                if (Fold::pairs) load_lanes<W>(q[u], y + (k + u) * REDUCE_LANES, t);
            }
#pragma unroll
        for (int u = 0; u < BATCH; u++)
            if (!SOME || k + u < rows) take_row(p[u], q[u], k + u);
    }
    /* Loads an incomplete row. */
    __device__ void load_end(taken (&p)[4], int k, int n) const
    {
#pragma unroll
        for (int l = 0; l < 4; l++) {
            const int i = k * REDUCE_LANES + lane_of<W>(l, t);
            p[l] = taken{};
            if (i < n) p[l] = { x[i], Fold::pairs ? y[i] : K(0) };
        }
    }
    __device__ void take_end(const taken (&p)[4], int k, int n)
    {
#pragma unroll
        for (int l = 0; l < 4; l++)
            if (k * REDUCE_LANES + lane_of<W>(l, t) < n)
                v[l] = Fold::take(v[l], Fold::see(p[l].x, with), p[l].y, k);
    }
};

/* The n elements of a block from `first` on. */
template <class Fold, int W>
static __device__ inline typename Fold::acc reduce_dense(const elements<Fold> &e, int64_t first, int n, int t)
{
    dense_rows<Fold, W> r(e, first, t);
    const int rows = n / REDUCE_LANES;
    taken end[4];
    int k = 0;
#pragma unroll 1
    for (; k + r.BATCH <= rows; k += r.BATCH) r.template take_batch<false>(k, rows);
    r.load_end(end, rows, n);
    if (k < rows) r.template take_batch<true>(k, rows);
    r.take_end(end, rows, n);
    return close_warp<Fold, W>(r.v, first, n, t);
}

/* The same for elements with any strides. */
template <class Fold, bool THROUGH>
static __device__ inline typename Fold::acc reduce_strided(const reduce_args &a, const elements<Fold> &e,
                                                           int64_t first, int n, int t)
{
    enum { BATCH = THROUGH ? 1 : 16 / sizeof(T) };
    typename Fold::lane v[4];
#pragma unroll
    for (int l = 0; l < 4; l++) v[l] = Fold::open();
#pragma unroll(BATCH)
    for (int k = 0; k * REDUCE_LANES < n; k++) {
        taken p[4];
#pragma unroll
        for (int l = 0; l < 4; l++) {
            const int i = k * REDUCE_LANES + lane_of<1>(l, t);
            p[l] = taken{};
            if (i < n) p[l] = THROUGH ? e.through(a, first + i) : e.along(first + i);
        }
#pragma unroll
        for (int l = 0; l < 4; l++)
            if (k * REDUCE_LANES + lane_of<1>(l, t) < n)
                v[l] = Fold::take(v[l], Fold::see(p[l].x, e.with), p[l].y, k);
    }
    return close_warp<Fold, 1>(v, first, n, t);
}

/* Reduces block b of output i. */
template <class Fold>
static __device__ inline typename Fold::acc reduce_block(const reduce_args &a, int64_t i, int64_t b, int t,
                                                         T by)
{
    const elements<Fold> e(a, i, locate(a, i), by);
    const int64_t first = b * REDUCE_BLOCK;
    const int n = (int)min((int64_t)REDUCE_BLOCK, a.n - first);
    const bool dense = a.inner == 1 && e.x_stride == 1 && (!Fold::pairs || e.y_stride == 1);
    const uintptr_t bits = (uintptr_t)e.x | (Fold::pairs ? (uintptr_t)e.y : 0);
    if (dense && bits % 16 == 0) return reduce_dense<Fold, WIDTH>(e, first, n, t);
    if (dense) return reduce_dense<Fold, 1>(e, first, n, t);
    if (a.inner == 1) return reduce_strided<Fold, false>(a, e, first, n, t);
    return reduce_strided<Fold, true>(a, e, first, n, t);
}

/* The second pass is rare; it must not take registers from the first one. */
template <class Fold>
static __device__ __noinline__ typename Fold::acc reduce_block_again(const reduce_args &a, int64_t i,
                                                                     int64_t b, int t)
{
    return reduce_block<Fold>(a, i, b, t, scale_of<Fold>(true));
}

/* ---- partial results ---- */

template <class Fold>
static __device__ inline void give(const reduce_args &a, int64_t i, typename Fold::acc r)
{
    ((typename Fold::result *)a.out)[locate(a, i).out] = Fold::epilogue(r, a.n);
}

/* Writes the output if it has one part; otherwise writes the part. */
template <class Fold>
static __device__ inline void deliver(const reduce_args &a, int64_t i, int64_t part, typename Fold::acc r)
{
    if (a.parts > 1) ((typename Fold::acc *)a.part)[i * a.parts + part] = r;
    else give<Fold>(a, i, r);
}

/* Called by all threads of a block after it has written its part. */
template <class Fold, int across>
static __device__ inline void meet(const reduce_args &a, int64_t tile, typename Fold::acc *s)
{
    if (a.parts > 1)
        join_parts<Fold>((typename Fold::acc *)a.part, a.parts,
                         arrive<across>(a.meet, a.outputs, a.parts, (uint32_t)tile), s,
                         [&](int64_t i, typename Fold::acc r) { give<Fold>(a, i, r); });
}

/* One warp for each block. The blocks of one part are joined here. */
template <class Fold>
KERNEL(REDUCE_WARPS * 32, Fold::resident)
reduce_rows(const __grid_constant__ reduce_args a)
{
    typedef between_blocks<Fold> Blocks;
    __shared__ typename Blocks::acc s[REDUCE_WARPS];
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, own = warp % a.warps;
    const int64_t slot = (int64_t)block_from_end() * (REDUCE_WARPS / a.warps) + warp / a.warps;
    const int64_t i = (int64_t)quotient((uint64_t)slot, a.by_parts), part = slot - i * a.parts,
                  b = part * a.warps + own;
    typename Blocks::acc r = Blocks::start();
    if (i < a.outputs && b < a.blocks)
        r = finish_in_warp<Fold>(reduce_block<Fold>(a, i, b, t, T(1)), t == 0,
                                 [&] { return reduce_block_again<Fold>(a, i, b, t); });
    let_next_begin();
    if (a.warps > 1) {
        if (t == 0) s[warp] = r;
        __syncthreads();
        if (own == 0 && t == 0) r = join_pairs<Blocks>(s + warp, a.warps);
    }
    if (own == 0 && t == 0 && i < a.outputs) deliver<Blocks>(a, i, part, r);
    meet<Blocks, 1>(a, i, s);
}

/* ---- several threads for each output, neighbouring outputs in neighbouring threads; few elements
 * ---- */

template <class Fold, int N>
static __device__ inline void load_step(taken (&p)[N], const elements<Fold> &e, int64_t at, int step)
{
#pragma unroll
    for (int j = 0; j < N; j++) p[j] = e.along(at + j * step);
}

/* N lanes of one thread. Lane j takes the elements at + j * step and every REDUCE_LANES further on,
 * below end. Loads are issued before the first take. */
template <class Fold, int N> struct lanes {
    typename Fold::lane v[N];

    __device__ lanes()
    {
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = Fold::open();
    }
    __device__ void take(const taken (&p)[N], T with, int k)
    {
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = Fold::take(v[j], Fold::see(p[j].x, with), p[j].y, k);
    }
    __device__ void take_some(const elements<Fold> &e, int64_t at, int step, int k, int64_t end)
    {
        taken p[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            p[j] = taken{};
            if (at + j * step < end) p[j] = e.along(at + j * step);
        }
#pragma unroll
        for (int j = 0; j < N; j++)
            if (at + j * step < end) v[j] = Fold::take(v[j], Fold::see(p[j].x, e.with), p[j].y, k);
    }
    __device__ typename Fold::acc close(int64_t first, int step, int64_t end)
    {
        typename Fold::acc a[N];
#pragma unroll
        for (int j = 0; j < N; j++)
            a[j] = first + j * step < end
                       ? Fold::close(v[j], first + j * step, lane_count((int)(end - first) - j * step))
                       : Fold::start();
        join_own<Fold, N / 2, 1>(a);
        return a[0];
    }
    /* if no lane has taken more than one element */
    __device__ typename Fold::acc close_one(int64_t first, int step, int64_t end)
    {
        typename Fold::acc a[N];
#pragma unroll
        for (int j = 0; j < N; j++)
            a[j] = first + j * step < end ? Fold::close(v[j], first + j * step, 1) : Fold::start();
        join_own<Fold, N / 2, 1>(a);
        return a[0];
    }
};

/* A thread block is REDUCE_ACROSS outputs by REDUCE_DOWN groups. Group g of an output holds lanes
 * g, g + 16, ..., g + 112. The next elements are loaded while the present ones are taken, if there are
 * registers for them. */
template <class Fold>
static __device__ inline typename Fold::acc reduce_column(const elements<Fold> &e, int64_t first, int64_t end,
                                                          int g)
{
    enum {
        N = REDUCE_LANES / REDUCE_DOWN,
        AHEAD = !between_blocks<Fold>::scales || sizeof(typename Fold::lane) == sizeof(T)
    };
    const int steps = (int)((end - first) / REDUCE_LANES);
    lanes<Fold, N> v;
    taken now[N], next[N];
    int64_t at = first + g;
    if (AHEAD && steps) load_step<Fold>(now, e, at, REDUCE_DOWN);
#pragma unroll 2
    for (int k = 0; k < steps; k++) {
        if (!AHEAD) load_step<Fold>(now, e, at, REDUCE_DOWN);
        at += REDUCE_LANES;
        if (AHEAD && k + 1 < steps) load_step<Fold>(next, e, at, REDUCE_DOWN);
        v.take(now, e.with, k);
        if constexpr (AHEAD) {
#pragma unroll
            for (int j = 0; j < N; j++) now[j] = next[j];
        }
    }
    if (at < end) v.take_some(e, at, REDUCE_DOWN, steps, end);
    return v.close(first + g, REDUCE_DOWN, end);
}

/* Thread blocks per multiprocessor: as many as its registers allow. */
template <class Fold> constexpr int column_blocks()
{
    return sizeof(typename Fold::lane) + (Fold::pairs ? 4 : 2) * sizeof(T) <= 20 ? 2 : 1;
}

/* Group g of output c holds r, one of G results. The first thread gets the result of the output. */
template <class Fold, int G>
static __device__ inline typename Fold::acc join_down(typename Fold::acc (&s)[G][REDUCE_ACROSS], int c, int g,
                                                      typename Fold::acc r)
{
    s[g][c] = r;
#pragma unroll
    for (int h = G / 2; h > 0; h /= 2) {
        __syncthreads();
        if (g < h) s[g][c] = Fold::join(s[g][c], s[g + h][c]);
    }
    return s[g][c];
}

/* Block b of output i, and of the other outputs of the thread block. */
template <class Fold>
static __device__ inline typename Fold::acc reduce_tile(const reduce_args &a, int64_t i, int64_t b, T by,
                                                        typename Fold::acc (&s)[REDUCE_DOWN][REDUCE_ACROSS])
{
    const int c = threadIdx.x % REDUCE_ACROSS, g = threadIdx.x / REDUCE_ACROSS;
    const int64_t first = b * REDUCE_BLOCK;
    typename Fold::acc r = Fold::start();
    if (i < a.outputs)
        r = reduce_column<Fold>(elements<Fold>(a, i, locate(a, i), by), first, min(first + REDUCE_BLOCK, a.n),
                                g);
    return join_down<Fold>(s, c, g, r);
}
template <class Fold>
static __device__ __noinline__ typename Fold::acc
reduce_tile_again(const reduce_args &a, int64_t i, int64_t b,
                  typename Fold::acc (&s)[REDUCE_DOWN][REDUCE_ACROSS])
{
    return reduce_tile<Fold>(a, i, b, scale_of<Fold>(true), s);
}

template <class Fold>
KERNEL(REDUCE_ACROSS *REDUCE_DOWN, column_blocks<Fold>())
reduce_columns(const __grid_constant__ reduce_args a)
{
    __shared__ typename Fold::acc s[REDUCE_DOWN][REDUCE_ACROSS];
    const int c = threadIdx.x % REDUCE_ACROSS, g = threadIdx.x / REDUCE_ACROSS;
    const uint32_t tiles = gridDim.x / (uint32_t)a.blocks, block = block_from_end(), tile = block % tiles;
    const int64_t b = block / tiles, i = (int64_t)tile * REDUCE_ACROSS + c;
    typedef between_blocks<Fold> Blocks;
    const typename Blocks::acc r =
        finish_in_block<Fold>(reduce_tile<Fold>(a, i, b, T(1), s), g == 0 && i < a.outputs,
                              [&] { return reduce_tile_again<Fold>(a, i, b, s); });
    if (g == 0 && i < a.outputs) deliver<Blocks>(a, i, b, r);
    meet<Blocks, REDUCE_ACROSS>(a, tile, (typename Blocks::acc *)s);
}

/* At most REDUCE_LANES elements, one for each lane. */
template <class Fold, int G>
static __device__ inline typename Fold::acc reduce_few(const reduce_args &a, int64_t i, T by,
                                                       typename Fold::acc (&s)[G][REDUCE_ACROSS])
{
    const int c = threadIdx.x % REDUCE_ACROSS, g = threadIdx.x / REDUCE_ACROSS;
    const int64_t end = i < a.outputs ? a.n : 0;
    lanes<Fold, REDUCE_LANES / G> v;
    if (i < a.outputs) v.take_some(elements<Fold>(a, i, locate(a, i), by), g, G, 0, end);
    return join_down<Fold>(s, c, g, v.close_one(g, G, end));
}
template <class Fold, int G>
static __device__ __noinline__ typename Fold::acc reduce_few_again(const reduce_args &a, int64_t i,
                                                                   typename Fold::acc (&s)[G][REDUCE_ACROSS])
{
    return reduce_few<Fold, G>(a, i, scale_of<Fold>(true), s);
}
template <class Fold, int G> KERNEL(REDUCE_ACROSS *G) reduce_low(const __grid_constant__ reduce_args a)
{
    __shared__ typename Fold::acc s[G][REDUCE_ACROSS];
    const int c = threadIdx.x % REDUCE_ACROSS, g = threadIdx.x / REDUCE_ACROSS;
    const int64_t i = (int64_t)blockIdx.x * REDUCE_ACROSS + c;
    typedef between_blocks<Fold> Blocks;
    const typename Blocks::acc r =
        finish_in_block<Fold>(reduce_few<Fold, G>(a, i, T(1), s), g == 0 && i < a.outputs,
                              [&] { return reduce_few_again<Fold, G>(a, i, s); });
    if (g == 0 && i < a.outputs) give<Blocks>(a, i, r);
}

/* At most G * P elements, one for each lane; G threads for each output. */
template <class Fold, int G, int P>
static __device__ inline typename Fold::acc reduce_fewer(const reduce_args &a, int64_t i, T by)
{
    const int g = threadIdx.x % G;
    const int64_t end = i < a.outputs ? a.n : 0;
    lanes<Fold, P> v;
    if (i < a.outputs) v.take_some(elements<Fold>(a, i, locate(a, i), by), g, G, 0, end);
    return join_group<Fold, G>(v.close_one(g, G, end));
}
template <class Fold, int G, int P>
static __device__ __noinline__ typename Fold::acc reduce_fewer_again(const reduce_args &a, int64_t i)
{
    return reduce_fewer<Fold, G, P>(a, i, scale_of<Fold>(true));
}
template <class Fold, int G, int P>
KERNEL(REDUCE_WARPS * 32)
reduce_short(const __grid_constant__ reduce_args a)
{
    const int64_t i = ((int64_t)blockIdx.x * (REDUCE_WARPS * 32) + threadIdx.x) / G;
    const int g = threadIdx.x % G;
    typedef between_blocks<Fold> Blocks;
    const typename Blocks::acc r =
        finish_in_warp<Fold>(reduce_fewer<Fold, G, P>(a, i, T(1)), g == 0 && i < a.outputs,
                             [&] { return reduce_fewer_again<Fold, G, P>(a, i); });
    if (g == 0 && i < a.outputs) deliver<Blocks>(a, i, 0, r);
}

template <class Fold> static const void *reduce_form(int form)
{
    switch (form) {
    case FORM_ROWS: return (const void *)reduce_rows<Fold>;
    case FORM_COLUMNS: return (const void *)reduce_columns<Fold>;
    case FORM_SHORT: return (const void *)reduce_short<Fold, 4, REDUCE_FEW / 4>;
    case FORM_NARROW:
        return (const void *)reduce_short<Fold, REDUCE_FEW_DOWN, REDUCE_LANES / REDUCE_FEW_DOWN>;
    case FORM_LOW: return (const void *)reduce_low<Fold, REDUCE_FEW_DOWN>;
    case FORM_THIN: return (const void *)reduce_short<Fold, 1, REDUCE_FEW>;
    default: return NULL;
    }
}

#endif
