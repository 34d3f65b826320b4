/* scan.cu - cumsum and cumprod in the order of docs/semantics.md: runs of 16 a thread, groups of 16 runs, blocks of 16 groups, and blocks in
 * order. A tile is a block; what comes before it is found by looking back as far as a tile that knows, and is then added up from there on in
 * order, so that the bits do not hang on who was first. */
#include "places.cuh"

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
    int64_t x, out, step; /* first elements; between those of out */
};

static __device__ inline line line_of(const scan_args &a, int64_t l)
{
    const int64_t inner = (int64_t)a.by_inner.by, o = (int64_t)quotient((uint64_t)l, a.by_inner), c = l - o * inner;
    return { place_of(a.outer, o) + place_of(a.inner, c), o * a.n * inner + c, inner };
}

template <class Op> KERNEL(ORDER_THREADS) scan_lines(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    if (thread_index() >= a.lines) return;
    const line l = line_of(a, thread_index());
    const E *x = (const E *)a.x + l.x;
    E *out = (E *)a.out + l.out, run = Op::none(), group = run, block = run, all = run;
    for (int64_t i = 0; i < a.n; i++) {
        if (i % SCAN_RUN == 0) group = Op::both(group, run), run = Op::none();
        if (i % SCAN_GROUP == 0) block = Op::both(block, group), group = Op::none();
        if (i % SCAN_BLOCK == 0) all = Op::both(all, block), block = Op::none();
        run = Op::both(run, x[i * a.stride]);
        out[i * l.step] = Op::both(all, Op::both(block, Op::both(group, run)));
    }
}

/* Waits until tile t has published; what it has: 1 or 2. */
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

/* By a warp: all that comes before tile t, which is not the first of its line. */
template <class Op> static __device__ inline typename Op::element before_tile(const scan_args &a, int64_t first, int64_t t)
{
    typedef typename Op::element E;
    const int lane = threadIdx.x;
    int64_t at = t;
    uint32_t known = 0;
    while (!known) { /* tile `at` - 32 + lane; the first of the line knows from the beginning */
        at -= 32;
        known = __ballot_sync(~0u, at + lane >= first && state_of(a, at + lane >= first ? at + lane : first) == 2);
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

enum { PITCH = SCAN_RUN + 1 };

template <class Op> KERNEL(ORDER_THREADS) scan_tiles(const __grid_constant__ scan_args a)
{
    typedef typename Op::element E;
    __shared__ E kept[ORDER_THREADS * PITCH], run[ORDER_THREADS], group[SCAN_RUN], whole, before;
    __shared__ uint32_t ticket;
    const int t = threadIdx.x, g = t / SCAN_RUN;
    if (t == 0) ticket = a.tiles > 1 ? atomicAdd(a.ticket, 1u) : blockIdx.x;
    __syncthreads();
    const int64_t id = ticket, of = (int64_t)quotient((uint64_t)id, a.by_tiles), tile = id - of * a.tiles;
    const line l = line_of(a, of);
    const int64_t first = tile * SCAN_BLOCK;
    const int left = (int)min((int64_t)SCAN_BLOCK, a.n - first);
    const E *x = (const E *)a.x + l.x + first * a.stride;
    E *out = (E *)a.out + l.out + first * l.step;
#pragma unroll
    for (int k = 0; k < SCAN_RUN; k++) {
        const int i = k * ORDER_THREADS + t;
        kept[i / SCAN_RUN * PITCH + i % SCAN_RUN] = i < left ? x[i * a.stride] : Op::none();
    }
    __syncthreads();
    E sum = Op::none(), runs = sum, groups = sum;
#pragma unroll
    for (int k = 0; k < SCAN_RUN; k++) kept[t * PITCH + k] = sum = Op::both(sum, kept[t * PITCH + k]);
    run[t] = sum;
    __syncthreads();
    for (int k = g * SCAN_RUN; k < t; k++) runs = Op::both(runs, run[k]);
    if (t % SCAN_RUN == SCAN_RUN - 1) group[g] = Op::both(runs, sum);
    __syncthreads();
    for (int k = 0; k < g; k++) groups = Op::both(groups, group[k]);
    if (t == ORDER_THREADS - 1) whole = Op::both(groups, group[g]);
    __syncthreads();
    if (t < 32) {
        const bool lasts = tile == a.tiles - 1;
        if (t == 0 && tile && !lasts) publish(a, id, 1, whole);
        const E all = tile ? before_tile<Op>(a, id - tile, id) : Op::none();
        if (t == 0 && !lasts) publish(a, id, 2, Op::both(all, whole));
        if (t == 0) before = all;
    }
    __syncthreads();
    const E all = before;
#pragma unroll
    for (int k = 0; k < SCAN_RUN; k++) kept[t * PITCH + k] = Op::both(all, Op::both(groups, Op::both(runs, kept[t * PITCH + k])));
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SCAN_RUN; k++) {
        const int i = k * ORDER_THREADS + t;
        if (i < left) out[i * l.step] = kept[i / SCAN_RUN * PITCH + i % SCAN_RUN];
    }
}

template <class Op> static const void *form_of(enum scan_form form)
{
    return form == SCAN_LINES ? (const void *)scan_lines<Op> : (const void *)scan_tiles<Op>;
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
