/* sort.cu - stable sorts of keys with their indices. Lines of up to SORT_KEPT elements are sorted by
 * one thread block each, where the index decides between equal keys. Longer lines are sorted by digits of 8
 * bits, from the lowest digit on. Each pass counts the digits of each tile, sums the counts, and
 * moves the elements. */
#include "gather_scatter.cuh"

namespace
{

enum { WARPS = INDEX_THREADS / 32 };

static __device__ inline int64_t first_of(const sort_args &a, uint64_t line)
{
    const uint64_t o = quotient(line, a.by_inner), c = line - o * a.by_inner.by;
    return element_offset(a.outer, o) + element_offset(a.inner, c);
}

/* i: the number of the element in its line. */
template <class Key> static __device__ inline Key key_of(const sort_args &a, int64_t at, int64_t i)
{
    if (a.places) {
        const int64_t k = checked_index(a.checks, index_at(a.x, (duet_dtype)a.type, at), i, a.places);
        return k < 0 ? (Key)a.places : (Key)k;
    }
    const Key key = (Key)order_key(a.x, (duet_dtype)a.type, at);
    return a.down ? (Key)~key : key;
}

/* Writes element `index` of a line to position `rank` of the sorted line. */
static __device__ inline void write_sorted(const sort_args &a, int64_t first, uint64_t line, int64_t rank,
                                           uint32_t index)
{
    const uint64_t inner = a.by_inner.by, o = quotient(line, a.by_inner), c = line - o * inner;
    const int64_t to = (int64_t)((o * a.k + rank) * inner + c), from = first + index * a.stride;
    if (a.indices) ((int64_t *)a.out)[to] = index;
    else if (a.each == 1) ((uint8_t *)a.out)[to] = ((const uint8_t *)a.x)[from];
    else if (a.each == 2) ((uint16_t *)a.out)[to] = ((const uint16_t *)a.x)[from];
    else if (a.each == 4) ((uint32_t *)a.out)[to] = ((const uint32_t *)a.x)[from];
    else ((uint64_t *)a.out)[to] = ((const uint64_t *)a.x)[from];
}

/* ---- lines of up to SORT_KEPT elements ---- */

/* Elements of a line with their indices, which decide between equal keys. A thread holds SORT_EACH
 * consecutive ones in registers. */
template <class Key> struct item;
template <> struct item<uint32_t> {
    uint64_t both;

    __device__ inline item() {}
    __device__ inline item(uint32_t key, uint32_t index) : both((uint64_t)key << 32 | index) {}
    __device__ inline uint32_t key() const { return (uint32_t)(both >> 32); }
    __device__ inline uint32_t index() const { return (uint32_t)both; }
    __device__ inline bool before(const item &b) const { return both < b.both; }
    __device__ inline item of_lane(int bits) const
    {
        item r;
        r.both = __shfl_xor_sync(~0u, both, bits);
        return r;
    }
};
template <> struct item<uint64_t> {
    uint64_t k;
    uint32_t i;

    __device__ inline item() {}
    __device__ inline item(uint64_t key, uint32_t index) : k(key), i(index) {}
    __device__ inline uint64_t key() const { return k; }
    __device__ inline uint32_t index() const { return i; }
    __device__ inline bool before(const item &b) const { return k < b.k || (k == b.k && i < b.i); }
    __device__ inline item of_lane(int bits) const
    {
        return { __shfl_xor_sync(~0u, k, bits), __shfl_xor_sync(~0u, i, bits) };
    }
};

/* Puts a and b in order, ascending if `up`. */
template <class Key> static __device__ inline void order(item<Key> &a, item<Key> &b, bool up)
{
    const bool swap = b.before(a) == up;
    const item<Key> first = swap ? b : a;
    b = swap ? a : b;
    a = first;
}

/* Compares each item with that of the thread whose number differs by `bits`: by shuffles within a warp,
 * otherwise through shared memory. Keeps the earlier ones if `early`. */
template <class Key> struct exchanged {
    item<Key> (&own)[SORT_EACH];
    bool early;

    __device__ inline void keep(int e, const item<Key> &other)
    {
        if (other.before(own[e]) == early) own[e] = other;
    }
    __device__ inline void in_warp(int bits)
    {
#pragma unroll
        for (int e = 0; e < SORT_EACH; e++) keep(e, own[e].of_lane(bits));
    }
    __device__ inline void in_block(int bits, uint64_t *shared)
    {
        const int t = threadIdx.x, all = SORT_EACH * blockDim.x;
        Key *key = (Key *)shared;
        uint32_t *index = (uint32_t *)(key + all);
        __syncthreads();
#pragma unroll
        for (int e = 0; e < SORT_EACH; e++) {
            key[e * blockDim.x + t] = own[e].key();
            index[e * blockDim.x + t] = own[e].index();
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < SORT_EACH; e++) {
            const int from = e * blockDim.x + (t ^ bits);
            keep(e, item<Key>(key[from], index[from]));
        }
    }
};

/* Merges bitonic runs of `run` items, 4 or more. */
template <class Key>
static __device__ inline void merge_runs(item<Key> (&x)[SORT_EACH], int run, uint64_t *shared)
{
    const int t = threadIdx.x;
    const bool up = (t * SORT_EACH & run) == 0;
#pragma unroll 1
    for (int bits = run / 2 / SORT_EACH; bits; bits /= 2) {
        exchanged<Key> pairs = { x, ((t & bits) == 0) == up };
        if (bits < 32) pairs.in_warp(bits);
        else pairs.in_block(bits, shared);
    }
    order(x[0], x[2], up);
    order(x[1], x[3], up);
    order(x[0], x[1], up);
    order(x[2], x[3], up);
}

/* Sorts one line by one thread block, with SORT_EACH items in each thread: a bitonic sort. */
template <class Key> KERNEL(SORT_KEPT / SORT_EACH) kept_line(const __grid_constant__ sort_args a)
{
    extern __shared__ uint64_t shared[];
    const int n = (int)a.n, t = threadIdx.x;
    const uint64_t line = blockIdx.x;
    const int64_t first = first_of(a, line);
    item<Key> x[SORT_EACH];
#pragma unroll
    for (int e = 0; e < SORT_EACH; e++) {
        const int i = t * SORT_EACH + e;
        x[e] = item<Key>(~(Key)0, (uint32_t)i);
        if (i >= n) continue;
        const int64_t at = first + (a.places ? element_offset(a.inner, i) : i * a.stride);
        x[e] = item<Key>(key_of<Key>(a, at, i), (uint32_t)i);
    }
    order(x[0], x[1], true);
    order(x[2], x[3], false);
#pragma unroll 1
    for (int run = 4; run <= (int)blockDim.x * SORT_EACH; run *= 2) merge_runs(x, run, shared);
#pragma unroll
    for (int e = 0; e < SORT_EACH; e++) {
        const int i = t * SORT_EACH + e;
        if (i >= a.k) continue;
        if (a.places) {
            ((uint32_t *)a.keys[0])[i] = (uint32_t)x[e].key();
            a.order[0][i] = x[e].index();
        } else write_sorted(a, first, line, i, x[e].index());
    }
}

/* ---- longer lines ---- */

template <class Key> KERNEL(INDEX_THREADS) make_keys(const __grid_constant__ sort_args a)
{
    const int64_t at = thread_index();
    if (at >= a.lines * a.n) return;
    const uint64_t line = quotient((uint64_t)at, a.by_n), i = at - line * a.by_n.by;
    const int64_t from = a.places ? element_offset(a.inner, i) : first_of(a, line) + (int64_t)i * a.stride;
    ((Key *)a.keys[0])[at] = key_of<Key>(a, from, (int64_t)i);
    a.order[0][at] = (uint32_t)i;
}

template <class Key> struct tile {
    enum { SIZE = SORT_TILE(sizeof(Key) == 8), EACH = SIZE / INDEX_THREADS };
    int64_t first, line, at; /* index of its first element; its line, and its number in the line */
    int left;

    __device__ inline tile(const sort_args &a)
    {
        line = (int64_t)quotient((uint64_t)blockIdx.x, a.by_tiles);
        at = blockIdx.x - line * a.tiles;
        first = line * a.n + at * SIZE;
        left = (int)min((int64_t)SIZE, a.n - at * SIZE);
    }
    __device__ inline uint32_t *count(const sort_args &a, int digit) const
    {
        return a.counts + (line * SORT_DIGITS + digit) * a.tiles + at;
    }
};

template <class Key> static __device__ inline int digit_of(const sort_args &a, Key key)
{
    return (int)(key >> a.shift & (SORT_DIGITS - 1));
}

template <class Key> KERNEL(INDEX_THREADS) count_digits(const __grid_constant__ sort_args a)
{
    __shared__ uint32_t own[SORT_DIGITS];
    const tile<Key> here(a);
    const Key *key = (const Key *)a.keys[0] + here.first;
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < here.left; i += INDEX_THREADS) atomicAdd(&own[digit_of(a, key[i])], 1u);
    __syncthreads();
    *here.count(a, threadIdx.x) = own[threadIdx.x];
}

/* Called by all threads of a thread block. Returns the sum of `own` over the threads before this one,
 * and in *all the sum over all threads. */
static __device__ inline uint32_t sum_before(uint32_t own, uint32_t *all)
{
    __shared__ uint32_t sum[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t up = own, lower = 0;
    for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, up, d);
        up += lane >= d ? other : 0;
    }
    __syncthreads();
    if (lane == 31) sum[warp] = up;
    __syncthreads();
    *all = 0;
    for (int w = 0; w < WARPS; w++) {
        lower += w < warp ? sum[w] : 0;
        *all += sum[w];
    }
    return lower + up - own;
}

/* For one digit of one line: replaces the counts of the tiles by their prefix sums, and stores their
 * total. */
KERNEL(INDEX_THREADS) count_before(const __grid_constant__ sort_args a)
{
    uint32_t *count = a.counts + blockIdx.x * a.tiles, before = 0, all;
    for (int64_t first = 0; first < a.tiles; first += INDEX_THREADS) {
        const int64_t i = first + threadIdx.x;
        const uint32_t own = i < a.tiles ? count[i] : 0, lower = sum_before(own, &all);
        if (i < a.tiles) count[i] = before + lower;
        before += all;
    }
    if (threadIdx.x == 0) a.totals[blockIdx.x] = before;
}

/* Moves the elements of a tile to their positions for one digit. A warp ranks 32 elements at a time,
 * in order: lanes find the lanes with the same digit, and had[warp] counts those of earlier rounds.
 * The tile is first sorted in shared memory, so that stores to global memory are contiguous. */
template <class Key> KERNEL(INDEX_THREADS) move_tile(const __grid_constant__ sort_args a)
{
    enum { EACH = tile<Key>::EACH };
    __shared__ Key keys[tile<Key>::SIZE];
    __shared__ uint32_t order[tile<Key>::SIZE], had[WARPS][SORT_DIGITS], start[SORT_DIGITS], to[SORT_DIGITS];
    const tile<Key> here(a);
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    Key key[EACH];
    uint32_t index[EACH], rank[EACH], all;
    for (int w = 0; w < WARPS; w++) had[w][t] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = (warp * EACH + k) * 32 + lane;
        const bool is = i < here.left;
        key[k] = is ? ((const Key *)a.keys[0])[here.first + i] : 0;
        index[k] = is ? a.order[0][here.first + i] : 0;
        const int digit = is ? digit_of(a, key[k]) : SORT_DIGITS;
        const uint32_t alike = __match_any_sync(~0u, digit), lower = alike & ((1u << lane) - 1);
        const uint32_t before = is ? had[warp][digit] : 0;
        __syncwarp();
        if (is && !lower) had[warp][digit] = before + __popc(alike);
        __syncwarp();
        rank[k] = before + __popc(lower);
    }
    __syncthreads();
    uint32_t own = 0;
    for (int w = 0; w < WARPS; w++) {
        const uint32_t some = had[w][t];
        had[w][t] = own;
        own += some;
    }
    start[t] = sum_before(own, &all);
    const uint32_t below = sum_before(a.totals[here.line * SORT_DIGITS + t], &all);
    to[t] = below + *here.count(a, t) - start[t];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = (warp * EACH + k) * 32 + lane, digit = digit_of(a, key[k]);
        if (i >= here.left) continue;
        const uint32_t at = start[digit] + had[warp][digit] + rank[k];
        keys[at] = key[k];
        order[at] = index[k];
    }
    __syncthreads();
    for (int i = t; i < here.left; i += INDEX_THREADS) {
        const int64_t at = here.line * a.n + (uint32_t)(to[digit_of(a, keys[i])] + (uint32_t)i);
        ((Key *)a.keys[1])[at] = keys[i];
        a.order[1][at] = order[i];
    }
}

KERNEL(INDEX_THREADS) write_lines(const __grid_constant__ sort_args a)
{
    const int64_t at = thread_index();
    if (at >= a.lines * a.k) return;
    const uint64_t line = quotient((uint64_t)at, a.by_k);
    const int64_t i = at - (int64_t)(line * a.by_k.by);
    write_sorted(a, first_of(a, line), line, i, a.order[0][line * a.n + i]);
}

/* ---- one long line: before and after the passes of radix_sort.cu ---- */

/* The key of an index of a scatter. Indices out of bounds come last. */
static __device__ inline uint32_t place_key(const radix_args &a, int64_t i)
{
    const int64_t k =
        checked_index(a.checks, index_at(a.x, (duet_dtype)a.type, element_offset(a.at, (uint64_t)i)), i,
                      a.places);
    return k < 0 ? a.places : (uint32_t)k;
}

template <class Key>
static __device__ inline void put_key(const radix_args &a, int64_t i, Key key, Key bits, uint32_t *counts)
{
    const Key up = key << a.up;
    const Key below = a.below == BELOW_INDEX ? (Key)i : bits;
    ((Key *)a.keys[0])[i] = a.below == BELOW_NOTHING ? up : up | below;
    if (a.order[0]) a.order[0][i] = (uint32_t)i;
    for (int p = 0; p < a.passes; p++)
        atomicAdd(counts + p * SORT_DIGITS + (int)(up >> (a.up + p * SORT_DIGIT) & (SORT_DIGITS - 1)), 1u);
}

template <class E> static __device__ inline E bits_at(const radix_args &a, int64_t i)
{
    return a.places ? (E)place_key(a, i) : ((const E *)a.x)[i * a.stride];
}

/* Loads RADIX_EACH elements from element i on and stores their keys. E is the type of the bits of an
 * element, or of an index of a scatter. */
template <class E, class Key>
static __device__ inline void keys_from(const radix_args &a, int64_t i, uint32_t *counts)
{
    E bits[RADIX_EACH];
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++, i += INDEX_THREADS) bits[k] = i >= a.n ? 0 : bits_at<E>(a, i);
    i -= RADIX_EACH * INDEX_THREADS;
#pragma unroll
    for (int k = 0; k < RADIX_EACH; k++, i += INDEX_THREADS) {
        const E key = a.places ? bits[k] : (E)key_by(a.rule, (typename key_type<E>::type)bits[k]);
        if (i < a.n) put_key<Key>(a, i, (Key)(a.down ? (E)~key : key), (Key)bits[k], counts);
    }
}

template <class E, class Key> KERNEL(INDEX_THREADS) radix_keys(const __grid_constant__ radix_args a)
{
    enum { ALL = RADIX_EACH * INDEX_THREADS };
    __shared__ uint32_t counts[8 * SORT_DIGITS];
    for (int d = threadIdx.x; d < a.passes * SORT_DIGITS; d += INDEX_THREADS) counts[d] = 0;
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * ALL; first < a.n; first += (int64_t)gridDim.x * ALL)
        keys_from<E, Key>(a, first + threadIdx.x, counts);
    __syncthreads();
    for (int d = threadIdx.x; d < a.passes * SORT_DIGITS; d += INDEX_THREADS)
        if (counts[d]) atomicAdd(a.counts + d, counts[d]);
}

/* Computes for each pass and digit how many keys have lower digits. */
KERNEL(INDEX_THREADS) radix_starts(const __grid_constant__ radix_args a)
{
    uint32_t all, *count = a.counts + blockIdx.x * SORT_DIGITS + threadIdx.x;
    *count = sum_before(*count, &all);
}

/* Writes the sorted line. For a scatter, the sorted indices and their order are written to keys[1]. */
template <class E, class Key> KERNEL(INDEX_THREADS) radix_out(const __grid_constant__ radix_args a)
{
    const int64_t i = thread_index();
    if (i >= a.k) return;
    const Key key = ((const Key *)a.keys[0])[i];
    const uint32_t index = a.order[0] ? a.order[0][i] : (uint32_t)key;
    if (a.places) {
        ((uint32_t *)a.keys[1])[i] = (uint32_t)((uint64_t)key >> 32);
        ((uint32_t *)a.keys[1])[a.n + i] = index;
    } else if (a.indices) ((int64_t *)a.out)[i * a.step] = index;
    else if (a.order[0]) ((E *)a.out)[i * a.step] = ((const E *)a.x)[index * a.stride];
    else {
        const E value = (E)((a.down ? ~key : key) ^ (Key)a.rule.sign);
        ((E *)a.out)[i * a.step] = a.below == BELOW_BITS ? (E)key : value;
    }
}

template <class Key> static const void *form_of(enum sort_form form)
{
    switch (form) {
    case FORM_KEPT: return (const void *)kept_line<Key>;
    case FORM_KEYS: return (const void *)make_keys<Key>;
    case FORM_DIGITS: return (const void *)count_digits<Key>;
    case FORM_BEFORE: return (const void *)count_before;
    case FORM_MOVE: return (const void *)move_tile<Key>;
    default: return (const void *)write_lines;
    }
}

template <class E, class Key> static const void *radix_kernel_of(enum radix_form form)
{
    if (form == RADIX_STARTS) return (const void *)radix_starts;
    return form == RADIX_KEYS ? (const void *)radix_keys<E, Key> : (const void *)radix_out<E, Key>;
}

} // namespace

const void *sort_kernel(bool wide, enum sort_form form)
{
    return wide ? form_of<uint64_t>(form) : form_of<uint32_t>(form);
}

const void *radix_kernel(size_t each, bool wide, enum radix_form form)
{
    if (each == 8) return radix_kernel_of<uint64_t, uint64_t>(form);
    if (each == 4)
        return wide ? radix_kernel_of<uint32_t, uint64_t>(form) : radix_kernel_of<uint32_t, uint32_t>(form);
    if (each == 2)
        return wide ? radix_kernel_of<uint16_t, uint64_t>(form) : radix_kernel_of<uint16_t, uint32_t>(form);
    return wide ? radix_kernel_of<uint8_t, uint64_t>(form) : radix_kernel_of<uint8_t, uint32_t>(form);
}
