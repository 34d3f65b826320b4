/* scan.cu - cumsum and cumprod in the order of docs/semantics.md: runs of 16 elements for each
 * thread, groups of 16 runs, blocks of 16 groups, then blocks in order. A tile is one block. A tile
 * finds the sum of all tiles before it by looking back to the nearest tile that has published its
 * prefix and adding from there in order, so the bits do not depend on timing. For few long lines a
 * separate launch computes the sums of all tiles instead. */
#include "gather_scatter.cuh"

namespace
{

template <class E> struct sums {
    typedef E element;
    static __device__ inline E none();
    static __device__ inline E both(E a, E b) { return a + b; }
};
template <> __device__ inline float sums<float>::none() { return -0.0f; }
template <> __device__ inline double sums<double>::none() { return -0.0; }
template <> __device__ inline uint64_t sums<uint64_t>::none() { return 0; }

template <class E> struct products {
    typedef E element;
    static __device__ inline E none() { return (E)1; }
    static __device__ inline E both(E a, E b) { return a * b; }
};

struct line {
    int64_t x, out, step; /* offsets of the first elements of x and out; distance between elements of out */
};

static __device__ inline line line_of(const scan_args &a, int64_t l)
{
    const int64_t inner = (int64_t)a.by_inner.by, o = (int64_t)quotient((uint64_t)l, a.by_inner),
                  c = l - o * inner;
    return { element_offset(a.outer, o) + element_offset(a.inner, c), o * a.n * inner + c, inner };
}

template <class Op> KERNEL(INDEX_THREADS) scan_lines(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    if (thread_index() >= a.lines) return;
    const line l = line_of(a, thread_index());
    const E *x = (const E *)a.x + l.x;
    E *out = (E *)a.out + l.out, run = Op::none(), group = run, block = run, all = run;
    for (int64_t i = 0; i < a.n; i++) {
        if (i % SCAN_RUN == 0) {
            group = Op::both(group, run);
            run = Op::none();
        }
        if (i % SCAN_GROUP == 0) {
            block = Op::both(block, group);
            group = Op::none();
        }
        if (i % SCAN_BLOCK == 0) {
            all = Op::both(all, block);
            block = Op::none();
        }
        run = Op::both(run, x[i * a.stride]);
        out[i * l.step] = Op::both(all, Op::both(block, Op::both(group, run)));
    }
}

/* Waits until tile t has published something. Returns what: 1 its own sum, 2 its prefix. */
static __device__ inline uint32_t state_of(const scan_args &a, int64_t t)
{
    uint32_t s;
    do s = ((const volatile uint32_t *)a.state)[t];
    while (!s);
    __threadfence();
    return s;
}

template <class E> static __device__ inline void publish(const scan_args &a, int64_t t, uint32_t state, E x)
{
    __stcg((E *)a.sums + 2 * t + (state - 1), x);
    __threadfence();
    ((volatile uint32_t *)a.state)[t] = state;
}

template <class E> static __device__ inline E published(const scan_args &a, int64_t t, uint32_t state)
{
    return __ldcg((const E *)a.sums + 2 * t + (state - 1));
}

/* Executed by one warp: the sum of all elements before tile t, which is not the first of its line. */
template <class Op>
static __device__ inline typename Op::element before_tile(const scan_args &a, int64_t first, int64_t t)
{
    typedef typename Op::element E;
    const int lane = threadIdx.x;
    int64_t at = t;
    uint32_t known = 0;
    while (!known) { /* tile `at` - 32 + lane; the first tile of a line has its prefix from the start */
        at -= 32;
        known = __ballot_sync(~0u,
                              at + lane >= first && state_of(a, at + lane >= first ? at + lane : first) == 2);
    }
    at += 31 - __clz(known);
    E sum = published<E>(a, at, 2);
    for (at++; at < t; at += 32) {
        const int many = (int)min((int64_t)32, t - at);
        E own = Op::none();
        if (lane < many) {
            (void)state_of(a, at + lane);
            own = published<E>(a, at + lane, 1);
        }
        for (int k = 0; k < many; k++) sum = Op::both(sum, __shfl_sync(~0u, own, k));
    }
    return sum;
}

/* ---- tiles: each thread has a run; reads and writes are vectors of 16 bytes, contiguous across
 * threads ---- */

template <class E> struct alignas(16) scan_vec {
    enum { MANY = 16 / sizeof(E), RUN = SCAN_RUN / MANY }; /* elements of a vector; vectors of a run */
    E e[MANY];
};

template <class E> struct tile {
    enum { MANY = scan_vec<E>::MANY };
    int64_t line, at, step_x, step;
    int left;
    const E *x;
    E *out;

    __device__ inline void find(const scan_args &a, int64_t id)
    {
        line = (int64_t)quotient((uint64_t)id, a.by_tiles);
        at = id - line * a.tiles;
        const struct line l = line_of(a, line);
        const int64_t first = at * SCAN_BLOCK;
        left = (int)min((int64_t)SCAN_BLOCK, a.n - first);
        step_x = a.stride;
        step = l.step;
        x = (const E *)a.x + l.x + first * a.stride;
        out = (E *)a.out + l.out + first * l.step;
    }
    __device__ inline bool is_plain(const void *p, int64_t by) const
    {
        return by == 1 && left == SCAN_BLOCK && (uintptr_t)p % 16 == 0;
    }
    /* The index of element k of those that a thread reads and writes. */
    static __device__ inline int of_thread(int k)
    {
        return (k / MANY * INDEX_THREADS + (int)threadIdx.x) * MANY + k % MANY;
    }

    __device__ inline void read(E own[SCAN_RUN], E none) const
    {
        if (is_plain(x, step_x))
#pragma unroll
            for (int k = 0; k < SCAN_RUN; k += MANY) {
                const scan_vec<E> v = *(const scan_vec<E> *)(x + of_thread(k));
#pragma unroll
                for (int u = 0; u < MANY; u++) own[k + u] = v.e[u];
            }
        else
#pragma unroll
            for (int k = 0; k < SCAN_RUN; k++) own[k] = of_thread(k) < left ? x[of_thread(k) * step_x] : none;
    }
    __device__ inline void write(const E own[SCAN_RUN]) const
    {
        if (is_plain(out, step))
#pragma unroll
            for (int k = 0; k < SCAN_RUN; k += MANY) {
                scan_vec<E> v;
#pragma unroll
                for (int u = 0; u < MANY; u++) v.e[u] = own[k + u];
                *(scan_vec<E> *)(out + of_thread(k)) = v;
            }
        else
#pragma unroll
            for (int k = 0; k < SCAN_RUN; k++)
                if (of_thread(k) < left) out[of_thread(k) * step] = own[k];
    }
};

/* Data of a tile that all threads of the block share. The vectors of each run are rotated so that
 * eight neighbouring threads access different banks, both when vectors are loaded and when runs are
 * read. */
template <class Op> struct shared_tile {
    typedef typename Op::element E;
    typedef scan_vec<E> vec;
    enum { MANY = vec::MANY, RUN = vec::RUN };
    vec kept[INDEX_THREADS * RUN];
    E run[INDEX_THREADS], group[SCAN_RUN], all_runs, before;

    __device__ inline vec *vec_of(int run, int k) { return kept + run * RUN + (k + run * RUN / 8) % RUN; }
    __device__ inline vec *read_by(int k) /* vector k of those that this thread loads */
    {
        const int i = k * INDEX_THREADS + threadIdx.x;
        return vec_of(i / RUN, i % RUN);
    }
    static __device__ inline void copy(vec *to, const E *from)
    {
#pragma unroll
        for (int u = 0; u < MANY; u++) to->e[u] = from[u];
    }
    static __device__ inline void copy(E *to, const vec *from)
    {
        const vec v = *from;
#pragma unroll
        for (int u = 0; u < MANY; u++) to[u] = v.e[u];
    }
    /* Rearranges the loaded vectors into one run for each thread. */
    __device__ inline void turn(E own[SCAN_RUN])
    {
#pragma unroll
        for (int k = 0; k < RUN; k++) copy(read_by(k), own + k * MANY);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < RUN; k++) copy(own + k * MANY, vec_of(threadIdx.x, k));
    }
    /* The inverse. Each thread accesses only its own run. */
    __device__ inline void turn_back(E own[SCAN_RUN])
    {
#pragma unroll
        for (int k = 0; k < RUN; k++) copy(vec_of(threadIdx.x, k), own + k * MANY);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < RUN; k++) copy(own + k * MANY, read_by(k));
    }
    /* Computes prefix sums within the run, the sum of earlier runs in the group and of earlier
     * groups; `all_runs` receives the sum of all. */
    __device__ inline void add_up(E own[SCAN_RUN], E *runs, E *groups)
    {
        const int t = threadIdx.x, g = t / SCAN_RUN;
        E sum = Op::none();
        *runs = *groups = Op::none();
#pragma unroll
        for (int k = 0; k < SCAN_RUN; k++) own[k] = sum = Op::both(sum, own[k]);
        run[t] = sum;
        __syncthreads();
        for (int k = g * SCAN_RUN; k < t; k++) *runs = Op::both(*runs, run[k]);
        if (t % SCAN_RUN == SCAN_RUN - 1) group[g] = Op::both(*runs, sum);
        __syncthreads();
        for (int k = 0; k < g; k++) *groups = Op::both(*groups, group[k]);
        if (t == INDEX_THREADS - 1) all_runs = Op::both(*groups, group[g]);
    }
    __device__ inline void epilogue(E own[SCAN_RUN], E all, E groups, E runs)
    {
#pragma unroll
        for (int k = 0; k < SCAN_RUN; k++) own[k] = Op::both(all, Op::both(groups, Op::both(runs, own[k])));
        turn_back(own);
    }
};

template <class Op> KERNEL(INDEX_THREADS) scan_tiles(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    __shared__ shared_tile<Op> s;
    __shared__ uint32_t ticket;
    const int t = threadIdx.x;
    if (t == 0) ticket = a.tiles > 1 ? atomicAdd(a.ticket, 1u) : blockIdx.x;
    __syncthreads();
    const int64_t id = ticket;
    tile<E> here;
    here.find(a, id);
    E own[SCAN_RUN], runs, groups;
    here.read(own, Op::none());
    s.turn(own);
    s.add_up(own, &runs, &groups);
    __syncthreads();
    if (t < 32) {
        const bool lasts = here.at == a.tiles - 1;
        if (t == 0 && here.at && !lasts) publish(a, id, 1, s.all_runs);
        const E all = here.at ? before_tile<Op>(a, id - here.at, id) : Op::none();
        if (t == 0 && !lasts) publish(a, id, 2, Op::both(all, s.all_runs));
        if (t == 0) s.before = all;
    }
    __syncthreads();
    s.epilogue(own, s.before, groups, runs);
    here.write(own);
}

/* ---- few long lines: sums of all tiles, prefixes, then each tile ---- */

template <class Op> KERNEL(INDEX_THREADS) sum_tiles(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    __shared__ shared_tile<Op> s;
    let_next_begin();
    tile<E> here;
    here.find(a, blockIdx.x);
    E own[SCAN_RUN], runs, groups;
    here.read(own, Op::none());
    s.turn(own);
    s.add_up(own, &runs, &groups);
    if (threadIdx.x == INDEX_THREADS - 1) ((E *)a.sums)[blockIdx.x] = s.all_runs;
}

/* Executed by one thread: replaces each of `many` sums in shared memory (rounded up to BATCH) by
 * the sum of those before it; returns the total. The next BATCH sums are loaded during the
 * additions. */
template <class Op, int BATCH>
static __device__ inline typename Op::element chain(typename Op::element *sum, int many,
                                                    typename Op::element all)
{
    typedef typename Op::element E;
    E now[BATCH], next[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; u++) next[u] = sum[u];
#pragma unroll 1
    for (int k = 0; k < many; k += BATCH) {
#pragma unroll
        for (int u = 0; u < BATCH; u++) now[u] = next[u];
        if (k + BATCH < many)
#pragma unroll
            for (int u = 0; u < BATCH; u++) next[u] = sum[k + BATCH + u];
#pragma unroll
        for (int u = 0; u < BATCH; u++) {
            sum[k + u] = all;
            all = Op::both(all, now[u]);
        }
    }
    return all;
}

/* One thread block for each line: replaces the sum of each tile by its prefix. */
template <class Op> KERNEL(SCAN_CHAIN_THREADS) chain_tiles(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    enum { EACH = SCAN_CHAIN / SCAN_CHAIN_THREADS };
    __shared__ alignas(16) E kept[SCAN_CHAIN];
    __shared__ E before;
    E *sums = (E *)a.sums + blockIdx.x * a.tiles;
    if (threadIdx.x == 0) before = Op::none();
    let_next_begin();
    take_turn();
    for (int64_t first = 0; first < a.tiles; first += SCAN_CHAIN) {
        const int many = (int)min((int64_t)SCAN_CHAIN, a.tiles - first);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int i = k * SCAN_CHAIN_THREADS + threadIdx.x;
            kept[i] = i < many ? sums[first + i] : Op::none();
        }
        __syncthreads();
        if (threadIdx.x == 0) before = chain<Op, 16>(kept, many, before);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int i = k * SCAN_CHAIN_THREADS + threadIdx.x;
            if (i < many) sums[first + i] = kept[i];
        }
        __syncthreads();
    }
}

/* Runs after chain_tiles, or directly after sum_tiles if there are at most SCAN_CHAIN_SHORT tiles;
 * then each thread block adds the sums itself. The last tiles, which are still in the cache, come
 * first. x has not changed since sum_tiles, so reading it needs no wait. */
template <class Op>
KERNEL(INDEX_THREADS, sizeof(typename Op::element) == 4 ? 5 : 2)
scan_after(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    __shared__ shared_tile<Op> s;
    __shared__ alignas(16) E sums[SCAN_CHAIN_SHORT];
    const int t = threadIdx.x;
    const int64_t id = a.lines * a.tiles - 1 - blockIdx.x;
    tile<E> here;
    here.find(a, id);
    E own[SCAN_RUN], runs, groups;
    here.read(own, Op::none());
    s.turn(own);
    take_turn();
    const E *of_line = (const E *)a.sums + here.line * a.tiles;
    if (a.chained) {
        if (t == 0) s.before = of_line[here.at];
    } else
        for (int i = t; i < SCAN_CHAIN_SHORT; i += INDEX_THREADS)
            sums[i] = i < here.at ? of_line[i] : Op::none();
    __syncthreads();
    if (!a.chained && t == INDEX_THREADS - 32)
        s.before = chain<Op, 32 / sizeof(E)>(sums, (int)here.at, Op::none());
    s.add_up(own, &runs, &groups);
    __syncthreads();
    s.epilogue(own, s.before, groups, runs);
    here.write(own);
}

template <class Op> static const void *form_of(enum scan_form form)
{
    switch (form) {
    case SCAN_LINES: return (const void *)scan_lines<Op>;
    case SCAN_SUMS: return (const void *)sum_tiles<Op>;
    case SCAN_CHAINS: return (const void *)chain_tiles<Op>;
    case SCAN_AFTER: return (const void *)scan_after<Op>;
    default: return (const void *)scan_tiles<Op>;
    }
}

template <class E> static const void *kernel_of(bool product, enum scan_form form)
{
    return product ? form_of<products<E>>(form) : form_of<sums<E>>(form);
}

} // namespace

const void *scan_kernel(duet_dtype type, bool product, enum scan_form form)
{
    if (type == DUET_F32) return kernel_of<float>(product, form);
    if (type == DUET_F64) return kernel_of<double>(product, form);
    return kernel_of<uint64_t>(product, form);
}
