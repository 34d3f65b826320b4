/* reduce_tree.cuh - Folds, and how their partial results are joined in the order of
 * core/reduce_order.h. A Fold has:
 *     lane               the partial result of one lane of a block; open() returns an empty lane
 *     take(a, x, y, k)   adds element k of the lane, x and y, to a
 *     acc                a partial result; start() is the empty one; close(lane, first, count)
 *                        converts a lane of `count` elements, not 0, the first of which has index
 *                        `first`
 *     join, epilogue     as in ops.def
 *     each(a, f)         the acc of f(each number of a)
 *     result             the type that epilogue returns: T or int64_t
 *     see(x, with)       the value taken for element x, given the number that belongs to the output
 *     pairs              whether there is a y
 *     resident           thread blocks of reduce_rows that should fit on a multiprocessor; this
 *                        bounds its registers
 * A group of threads holds the lanes of a block. Lanes are joined by halving: first between
 * threads, then between the lanes of each thread, in the order of the lane numbers. */
#ifndef REDUCE_TREE_CUH
#define REDUCE_TREE_CUH

#include "device.cuh"
#include "reduce_kernels.h"

/* The Fold that joins the results of blocks: the same one, except for Folds whose sums may overflow. It
 * has acc, start, join, epilogue, each and result. as_is(a) converts the acc of a block.
 * If it `scales`, a block for which the Fold's is_finite(a) is false is reduced again, over elements
 * times the Fold's down(). The Fold's see(x, with) is the element times `with`. again(r, a) replaces
 * what is not finite in r = as_is(first a); lost() is such an r. */
namespace
{
template <class Fold> struct between_blocks : Fold {
    enum { scales = 0 };
    static __device__ inline typename Fold::acc as_is(typename Fold::acc a) { return a; }
};
} // namespace

/* The result of a block for each group of threads of a warp. The first thread of a group has its acc a.
 * again(): a over scaled elements. */
template <class Fold, class Again>
static __device__ __forceinline__ typename between_blocks<Fold>::acc
finish_in_warp(typename Fold::acc a, bool has_result, Again again)
{
    typedef between_blocks<Fold> Blocks;
    typename Blocks::acc r = Blocks::as_is(a);
    if constexpr (Blocks::scales)
        if (__any_sync(~0u, has_result && !Fold::is_finite(a))) r = Blocks::again(r, again());
    return r;
}

/* The same for a block that a thread block reduces. */
template <class Fold, class Again>
static __device__ __forceinline__ typename between_blocks<Fold>::acc
finish_in_block(typename Fold::acc a, bool has_result, Again again)
{
    typedef between_blocks<Fold> Blocks;
    typename Blocks::acc r = Blocks::as_is(a);
    if constexpr (Blocks::scales)
        if (__syncthreads_or(has_result && !Fold::is_finite(a))) r = Blocks::again(r, again());
    return r;
}

/* The factor of a block's elements in the first pass, and in the second one. */
template <class Fold> static __device__ inline T scale_of(bool again)
{
    if constexpr (between_blocks<Fold>::scales) return again ? Fold::down() : T(1);
    else return T(1);
}

/* A row of ops.def as a Fold. The result for no elements is start + 0. */
template <class Row> struct plain {
    typedef T acc;
    typedef T lane;
    typedef T result;
    enum { pairs = 0, resident = 4 };
    static __device__ inline T start() { return Row::first(); }
    static __device__ inline T open() { return Row::first(); }
    static __device__ inline T see(T x, T) { return x; }
    static __device__ inline T take(T a, T x, T y, int) { return Row::with(a, x, y); }
    static __device__ inline T close(T a, int64_t, int) { return a; }
    static __device__ inline T join(T a, T b) { return Row::both(a, b); }
    static __device__ inline T epilogue(T a, int64_t n) { return Row::result(n == 0 ? a + K(0) : a, n); }
    template <class F> static __device__ inline T each(T a, F f) { return f(a); }
};

/* Joins accumulators by halving: l with l + H, then with l + H / 2, ..., l + LAST. */
template <class Fold, int H, int LAST, int N>
static __device__ inline void join_own(typename Fold::acc (&v)[N])
{
    if constexpr (H >= LAST) {
#pragma unroll
        for (int j = 0; j < H; j++) v[j] = Fold::join(v[j], v[j + H]);
        join_own<Fold, H / 2, LAST>(v);
    }
}

/* The accumulators of the thread h further on in the warp, and of the thread whose number differs
 * in bit h. */
template <class Fold> static __device__ inline typename Fold::acc pass(typename Fold::acc a, int h)
{
    return Fold::each(a, [h](auto v) { return __shfl_down_sync(~0u, v, h); });
}
template <class Fold> static __device__ inline typename Fold::acc trade(typename Fold::acc a, int h)
{
    return Fold::each(a, [h](auto v) { return __shfl_xor_sync(~0u, v, h); });
}

/* Joins the threads of a group by halving. The first thread gets the result. */
template <class Fold, int G> static __device__ inline typename Fold::acc join_group(typename Fold::acc a)
{
#pragma unroll
    for (int h = G / 2; h > 0; h /= 2) a = Fold::join(a, pass<Fold>(a, h));
    return a;
}

/* ---- the lanes of a block ---- */

/* Each thread t of a warp holds four of the 128 lanes of a block. Number l of them is lane_of<W>(l,
 * t). W lanes are contiguous. */
template <int W> static __device__ inline int lane_of(int l, int t)
{
    return l / W * (32 * W) + t * W + l % W;
}

/* Joins N accumulators of each thread with those of the thread H apart, N / 2 in either thread, and
 * so on. In the end each thread has one accumulator: the lower bits of its number select the lanes,
 * the upper bits which of the N. */
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

/* Joins the four lanes of each thread of a warp. Thread 0 gets the result. */
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

/* ---- partial results ---- */

/* Joins the accumulators of the threads of a warp in adjacent pairs. Thread 0 gets the result. */
template <class Fold> static __device__ inline typename Fold::acc join_neighbours(typename Fold::acc v)
{
#pragma unroll
    for (int h = 1; h < 32; h *= 2) v = Fold::join(v, pass<Fold>(v, h));
    return v;
}

/* Joins the accumulators of `count` warps in adjacent pairs, starting with this one. All are in
 * shared memory. */
template <class Fold> static __device__ inline typename Fold::acc join_pairs(typename Fold::acc *s, int count)
{
    for (int h = 1; h < count; h *= 2)
        for (int w = 0; w < count; w += 2 * h) s[w] = Fold::join(s[w], s[w + h]);
    return s[0];
}

/* Joins up to N partial results in one thread. */
template <class Fold, int N>
static __device__ inline typename Fold::acc join_run(const typename Fold::acc *p, int64_t count)
{
    if constexpr (N == 1) return count > 0 ? *p : Fold::start();
    else return Fold::join(join_run<Fold, N / 2>(p, count), join_run<Fold, N / 2>(p + N / 2, count - N / 2));
}

/* Joins any number of partial results in one warp. Thread 0 gets the result. Joined runs are whole
 * sub-trees; they overwrite parts that were already read. */
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

struct range {
    int64_t begin, end;
};

/* How the warps of a thread block share the parts of the outputs that it joins. Each warp takes
 * outputs of its own. If there is only one output, each warp takes a run of its parts instead.
 * Both cases call join_by_warp in one place, since it is inlined and large. */
struct joining {
    range outputs;
    int64_t parts, run;
    bool alone;

    __device__ inline joining(range due, int64_t parts_each)
        : outputs(due), parts(parts_each), run(parts_each), alone(due.end - due.begin == 1)
    {
        if (alone)
            for (run = 1; run * warps() < parts;) run *= 2;
    }
    static __device__ inline int warps() { return blockDim.x / 32; }
    __device__ inline int64_t begin() const { return outputs.begin + (alone ? 0 : threadIdx.x / 32); }
    __device__ inline bool has_result() const { return (alone ? threadIdx.x : threadIdx.x % 32) == 0; }
};

/* Joins the parts of output i. The thread with has_result() gets the result. s: space for one
 * accumulator for each warp. */
template <class Fold>
static __device__ inline typename Fold::acc join_output(typename Fold::acc *part, const joining &j, int64_t i,
                                                        typename Fold::acc *s)
{
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32;
    const int64_t from = j.alone ? warp * j.run : 0;
    const typename Fold::acc r = join_by_warp<Fold>(part + i * j.parts + from, min(j.run, j.parts - from), t);
    if (!j.alone) return r;
    if (t == 0) s[warp] = r;
    __syncthreads();
    return threadIdx.x == 0 ? join_pairs<Fold>(s, j.warps()) : r;
}

/* The same by a thread block, some of whose warps take one run each. s: space for one accumulator
 * for each warp. */
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

/* Joins the parts of some outputs and calls give(output, acc). */
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

/* Called after a thread block has written its parts of a tile of `across` outputs. Returns the
 * outputs that this thread block must join: those of the counter if it is the last thread block to
 * arrive, otherwise none. */
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
        last = atomicInc(m.counters + counter, most) == most; /* wraps to 0 at the last one */
        __threadfence();
    }
    __syncthreads();
    return { begin, last ? end : begin };
}

/* Thread blocks run from the end of the array to its beginning. They leave in the cache what a
 * second pass over the same elements reads first. */
static __device__ inline uint32_t block_from_end() { return gridDim.x - 1 - blockIdx.x; }

#endif
