/* reduce_tree.cuh - a Fold, and how its partial results are joined in the order of core/reduction.h:
 *     lane               what has been taken of one lane of a block; open() is that of nothing
 *     take(a, x, y, k)   a with the lane's k-th element x, and y
 *     acc                a partial result; start() is that of nothing, close(lane, first) that of a lane that has taken something,
 *                        the first of it being element `first`
 *     join, epilogue       as in ops.def
 *     each(a, f)         the acc of f(each number of a)
 *     result             what epilogue makes: a T, or an int64_t
 *     see(x, with)       what is taken of an element, with the number that goes with the output
 *     pairs              whether there is a y
 *     resident           thread blocks of reduce_rows that should fit a multiprocessor at once: what registers it may use
 * The lanes of a block are held by a group of threads, some each: joining by halving is joining threads by halving, and the lanes of
 * each thread by halving, in the order of the lanes' numbers. */
#ifndef JOIN_CUH
#define JOIN_CUH

#include "device.cuh"

/* A row of ops.def as a Fold: over no elements, start + 0. */
template <class Row> struct plain {
    typedef T acc;
    typedef T lane;
    typedef T result;
    enum { pairs = 0, resident = 4 };
    static __device__ inline T start() { return Row::first(); }
    static __device__ inline T open() { return Row::first(); }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline T take(T a, T x, T y, int) { return Row::with(a, x, y); }
    static __device__ inline T close(T a, int64_t) { return a; }
    static __device__ inline T join(T a, T b) { return Row::both(a, b); }
    static __device__ inline T epilogue(T a, int64_t n) { return Row::result(n == 0 ? a + K(0) : a, n); }
    template <class F> static __device__ inline T each(T a, F f) { return f(a); }
};

/* Accs by halving: l with l + H, then with l + H / 2, ..., l + LAST. */
template <class Fold, int H, int LAST, int N>
static __device__ inline void join_own(typename Fold::acc (&v)[N])
{
    if constexpr (H >= LAST) {
#pragma unroll
        for (int j = 0; j < H; j++) v[j] = Fold::join(v[j], v[j + H]);
        join_own<Fold, H / 2, LAST>(v);
    }
}

/* The acc of the thread h further on in the warp, and of the one whose number differs in bit h. */
template <class Fold> static __device__ inline typename Fold::acc pass(typename Fold::acc a, int h)
{
    return Fold::each(a, [h](auto v) { return __shfl_down_sync(~0u, v, h); });
}
template <class Fold> static __device__ inline typename Fold::acc trade(typename Fold::acc a, int h)
{
    return Fold::each(a, [h](auto v) { return __shfl_xor_sync(~0u, v, h); });
}

/* Threads of a group by halving; the first one's result is the group's. */
template <class Fold, int G> static __device__ inline typename Fold::acc join_group(typename Fold::acc a)
{
#pragma unroll
    for (int h = G / 2; h > 0; h /= 2) a = Fold::join(a, pass<Fold>(a, h));
    return a;
}

/* ---- a block's lanes ---- */

/* Of a block's 128 lanes thread t of a warp holds four, its l-th being lane_of<W>(l, t): W are side by side. */
template <int W> static __device__ inline int lane_of(int l, int t)
{
    return l / W * (32 * W) + t * W + l % W;
}

/* N accs of each thread joined with those of the thread H apart, N / 2 by either, and so on until each thread has one: that of its lower
 * bits, and by its upper ones the first or a later one of the N. */
template <class Fold, int N, int H> static __device__ inline void join_halves(typename Fold::acc (&v)[4])
{
    if constexpr (N > 1) {
        const bool upper = threadIdx.x & H;
#pragma unroll
        for (int j = 0; j < N / 2; j++) {
            const typename Fold::acc low = v[j], high = v[j + N / 2],
                                     other = trade<Fold>(upper ? low : high, H);
            v[j] = Fold::join(upper ? other : low, upper ? high : other);
        }
        join_halves<Fold, N / 2, H / 2>(v);
    }
}

/* The four lanes of each thread, joined; thread 0 has the result. */
template <class Fold, int W> static __device__ inline typename Fold::acc join_warp(typename Fold::acc (&v)[4])
{
    join_own<Fold, 2, W>(v);
    join_halves<Fold, W, 16>(v);
#pragma unroll
    for (int h = 16 / W; h > 0; h /= 2) v[0] = Fold::join(v[0], pass<Fold>(v[0], h));
#pragma unroll
    for (int h = 16; h > 16 / W; h /= 2) v[0] = Fold::join(v[0], pass<Fold>(v[0], h));
    return v[0];
}

/* ---- parts ---- */

/* The accs of a warp's threads, in adjacent pairs; thread 0 has the result. */
template <class Fold> static __device__ inline typename Fold::acc join_neighbours(typename Fold::acc v)
{
#pragma unroll
    for (int h = 1; h < 32; h *= 2) v = Fold::join(v, pass<Fold>(v, h));
    return v;
}

/* Adjacent pairs of the accs of `count` warps, this one's first; all of them lie in shared memory. */
template <class Fold> static __device__ inline typename Fold::acc join_pairs(typename Fold::acc *s, int count)
{
    for (int h = 1; h < count; h *= 2)
        for (int w = 0; w < count; w += 2 * h) s[w] = Fold::join(s[w], s[w + h]);
    return s[0];
}

/* N parts, or those that there are, by a thread. */
template <class Fold, int N>
static __device__ inline typename Fold::acc join_run(const typename Fold::acc *p, int64_t count)
{
    if constexpr (N == 1) return count > 0 ? *p : Fold::start();
    else return Fold::join(join_run<Fold, N / 2>(p, count), join_run<Fold, N / 2>(p + N / 2, count - N / 2));
}

/* Any number of parts by a warp; thread 0 has the result. Joined runs are whole sub-trees, and go where parts have been read already. */
template <class Fold>
static __device__ inline typename Fold::acc join_by_warp(typename Fold::acc *p, int64_t count, int t)
{
    enum { OWN = sizeof(typename Fold::acc) <= 8 ? 16 : 8, RUN = 32 * OWN };
    typename Fold::acc r = Fold::start();
    for (;; count = (count + RUN - 1) / RUN) {
        for (int64_t at = 0; at * RUN < count; at++) {
            r = join_neighbours<Fold>(
                join_run<Fold, OWN>(p + at * RUN + t * OWN, count - at * RUN - t * OWN));
            if (t == 0 && count > RUN) p[at] = r;
        }
        if (count <= RUN) return r;
        __syncwarp();
    }
}

/* By a thread block, some of whose warps have a run each; s: room for an acc a warp. */
template <class Fold>
static __device__ inline typename Fold::acc join_by_block(typename Fold::acc *p, int64_t count,
                                                          typename Fold::acc *s)
{
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, warps = blockDim.x / 32;
    int64_t run = 1;
    while (run * warps < count) run *= 2;
    const typename Fold::acc r = join_by_warp<Fold>(p + warp * run, min(run, count - warp * run), t);
    if (t == 0) s[warp] = r;
    __syncthreads();
    return threadIdx.x == 0 ? join_pairs<Fold>(s, warps) : r;
}

struct range {
    int64_t begin, end;
};

/* The parts of some outputs, and give(output, acc). */
template <class Fold, class Give>
static __device__ inline void join_parts(typename Fold::acc *part, int64_t parts, range outputs,
                                         typename Fold::acc *s, Give give)
{
    const int t = threadIdx.x % 32;
    if (outputs.end - outputs.begin == 1) {
        const typename Fold::acc r = join_by_block<Fold>(part + outputs.begin * parts, parts, s);
        if (threadIdx.x == 0) give(outputs.begin, r);
        return;
    }
    for (int64_t i = outputs.begin + threadIdx.x / 32; i < outputs.end; i += blockDim.x / 32) {
        const typename Fold::acc r = join_by_warp<Fold>(part + i * parts, parts, t);
        if (t == 0) give(i, r);
    }
}

/* A thread block has written its parts, of a tile of `across` outputs. The outputs that it has to join: those of its counter if it is the
 * last one there, else none. */
template <int across>
static __device__ inline range arrive(const meeting &m, int64_t outputs, int64_t parts, uint32_t tile)
{
    __shared__ bool last;
    const uint32_t counter = tile / m.tiles, each = m.tiles * across;
    const int64_t begin = (int64_t)counter * each, end = min(begin + each, outputs);
    __syncthreads();
    if (threadIdx.x == 0) {
        const uint32_t most = ((uint32_t)(end - begin) + across - 1) / across * (uint32_t)parts - 1;
        __threadfence();
        last = atomicInc(m.counters + counter, most) == most; /* which makes it 0 */
        __threadfence();
    }
    __syncthreads();
    return { begin, last ? end : begin };
}

/* Thread blocks go from the end to the beginning: there they leave in the cache what a pass over the same elements reads first. */
static __device__ inline uint32_t block_from_end() { return gridDim.x - 1 - blockIdx.x; }

#endif
