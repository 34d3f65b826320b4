/* interpreter.cu - kernels of element-wise programs. Compiled several times for each type. HEAVY:
 * kernels for programs with mathematical functions. SMALL: kernels for small arrays. CONVERTS:
 * kernels whose operands have types other than T; integers have only these. T_u8 and T_u16: kernels
 * that only move elements. */
#include "convert.cuh"
#include "interpreter.cuh"

#if defined CONVERTS && defined HEAVY
#define INTERP_KERNEL TYPED(interp_kernel_converts_heavy)
#elif defined CONVERTS
#define INTERP_KERNEL TYPED(interp_kernel_converts)
#elif defined HEAVY && defined SMALL
#define INTERP_KERNEL TYPED(interp_kernel_small_heavy)
#elif defined HEAVY
#define INTERP_KERNEL TYPED(interp_kernel_heavy)
#elif defined SMALL
#define INTERP_KERNEL TYPED(interp_kernel_small)
#else
#define INTERP_KERNEL TYPED(interp_kernel)
#endif

namespace
{

/* Offset of element e of the domain in an operand with any strides. */
__device__ __forceinline__ int32_t walk(const interp_paths &p, const int32_t *stride, uint32_t e)
{
    int32_t at = 0;
#pragma unroll 1
    for (int axis = p.rank - 1; axis > 0; axis--) {
        const uint32_t q = quotient(e, p.size[axis]);
        at += (int32_t)(e - q * p.size[axis].by) * stride[axis];
        e = q;
    }
    return at + (int32_t)e * stride[0];
}

__device__ __forceinline__ uint32_t rest(const divider32 &by, uint32_t e)
{
    return e - quotient(e, by) * by.by;
}

__device__ __forceinline__ int64_t element_offset(const interp_paths &p, int k, int64_t e)
{
    const interp_path &o = p.in[k];
    if (o.how == HOW_WALK) return walk(p, p.in_stride[k], (uint32_t)e);
    if (o.how <= HOW_SCALARS) return e;
    const uint32_t run = quotient((uint32_t)e, o.run);
    return (int32_t)rest(o.size, run) * o.stride;
}

/* Without paths, all outputs are dense. */
#ifndef CONVERTS
__device__ __forceinline__ int64_t place_out(const FOR_TYPE(interp_short) &, int, int64_t e) { return e; }
#endif
__device__ __forceinline__ int64_t place_out(const FOR_TYPE(interp_long) & a, int k, int64_t e)
{
    return a.head.out_dense ? e : walk(a.paths, a.paths.out_stride[k], (uint32_t)e);
}

/* The position of this thread: its first vector is at element e, the others follow at distances of
 * THREADS vectors. */
struct spot {
    int64_t e;
    bool inside; /* all elements of the thread block are in the domain */
};

/* A thread with one element does not check the whole thread block. */
template <int V> __device__ __forceinline__ spot spot_of(const interp_head &h)
{
    const int tile = V * INTERP_THREADS(V) * WIDTH;
    if constexpr (V * WIDTH == 1) return { (int64_t)(blockIdx.x * tile + threadIdx.x), true };
    const int64_t first = (int64_t)blockIdx.x * tile - h.lead;
    return { first + threadIdx.x * WIDTH, first >= 0 && first + tile <= h.n };
}

/* Reads an operand of one element, or one that repeats along the domain, for the elements from e
 * on. They cross at most one end of a cycle or run, so one division serves them all. */
template <class E>
__device__ __forceinline__ void repeat(lot<E> &v, const E *from, const interp_path &o, int64_t e)
{
    const uint32_t run = quotient((uint32_t)e, o.run), left = o.run.by - ((uint32_t)e - run * o.run.by);
    uint32_t i = rest(o.size, run);
    if (o.how == HOW_CYCLE) {
        EACH(u, WIDTH)
        {
            v.e[u] = from[(int32_t)i * o.stride];
            i = i + 1 < o.size.by ? i + 1 : 0;
        }
    } else {
        const E here = from[(int32_t)i * o.stride],
                there = from[(int32_t)(i + 1 < o.size.by ? i + 1 : 0) * o.stride];
        EACH(u, WIDTH) v.e[u] = u < (int)left ? here : there;
    }
}

/* Write elements of type E to a row: a T as a value, other types as bits that are converted later. */
#ifdef CONVERTS
template <class E, class Args>
__device__ __forceinline__ void put(const Args &a, int k, vec *to, const lot<E> &v)
{
    put_bits<E>(to, v, a.paths.types.in[k]);
}
template <class E, class Args>
__device__ __forceinline__ void copy(const Args &a, int k, vec *to, const E *from)
{
    if constexpr (sizeof(E) <= sizeof(T)) copy_async(to, (const lot<E> *)from);
    else put<E>(a, k, to, *(const lot<E> *)from);
}
#else
template <class E, class Args>
__device__ __forceinline__ void put(const Args &, int, vec *to, const lot<E> &v)
{
    *to = v;
}
template <class E, class Args> __device__ __forceinline__ void copy(const Args &, int, vec *to, const E *from)
{
    copy_async(to, (const vec *)from);
}
#endif

/* Loads the vectors of one input by the access mode of the input. */
template <class E, int V, class Args>
__device__ __forceinline__ void stage_other(const Args &a, int k, vec *to, const spot &at)
{
    enum { THREADS = INTERP_THREADS(V) };
    const interp_path &o = a.paths.in[k];
    const E *from = (const E *)a.head.in[k];
    if (o.how == HOW_SINGLE) {
        lot<E> v;
        EACH(u, WIDTH) v.e[u] = *from;
        EACH(j, V) put<E>(a, k, to + j * THREADS, v);
        return;
    }
    if (o.how == HOW_ROUND && at.inside) {
        EACH(j, V) copy(a, k, to + j * THREADS, from + rest(o.size, (uint32_t)(at.e + j * THREADS * WIDTH)));
        return;
    }
#pragma unroll 1
    for (int j = 0; j < V; j++) {
        const int64_t e = at.e + j * THREADS * WIDTH;
        lot<E> v;
        if (at.inside && (o.how == HOW_CYCLE || o.how == HOW_RUNS)) repeat(v, from, o, e);
        else EACH(u, WIDTH)
        v.e[u] = e + u >= 0 && e + u < a.head.n ? from[element_offset(a.paths, k, e + u)] : E(0);
        put<E>(a, k, to + j * THREADS, v);
    }
}

/* Loads an input with the layout of the output at the ends of the domain. */
template <class E, int V, class Args>
__device__ __forceinline__ void stage_edge(const Args &a, int k, vec *to, const spot &at)
{
    const E *from = (const E *)a.head.in[k];
    EACH(j, V)
    {
        const int64_t e = at.e + j * INTERP_THREADS(V) * WIDTH;
        lot<E> v;
        EACH(u, WIDTH) v.e[u] = e + u >= 0 && e + u < a.head.n ? from[e + u] : E(0);
        put<E>(a, k, to + j * INTERP_THREADS(V), v);
    }
}

template <class E, int V, bool PLAIN, class Args>
__device__ __forceinline__ void stage_input(const Args &a, int k, vec *to, const spot &at)
{
    enum { THREADS = INTERP_THREADS(V) };
    const E *from = (const E *)a.head.in[k] + at.e;
    if constexpr (!PLAIN) {
        if (a.paths.in[k].how != HOW_VECTORS) {
            stage_other<E, V>(a, k, to, at);
            return;
        }
    }
    if (at.inside) EACH(j, V) copy(a, k, to + j * THREADS, from + j * THREADS * WIDTH);
    else stage_edge<E, V>(a, k, to, at);
}

/* Inputs with the layout of the output are copied asynchronously, all at once. Other inputs are
 * read element by element. */
template <int V, bool PLAIN, class Args>
__device__ __forceinline__ void stage(const Args &a, vec *own, const spot &at)
{
    enum { THREADS = INTERP_THREADS(V) };
    const int inputs = a.head.inputs;
#pragma unroll 1
    for (int k = 0; k < inputs; k++) {
        vec *to = own + k * V * THREADS;
#ifdef CONVERTS
        with_size(a.paths.types.in[k], [&](auto e) { stage_input<decltype(e), V, PLAIN>(a, k, to, at); });
#else
        stage_input<T, V, PLAIN>(a, k, to, at);
#endif
    }
    wait_for_copies();
#ifdef CONVERTS
#pragma unroll 1
    for (int k = 0; k < inputs; k++) convert_row<V, THREADS>(own + k * V * THREADS, a.paths.types.in[k]);
#endif
}

#if defined CONVERTS || defined MOVES
/* Element-wise copies are not unrolled: the code would become too large. */
template <int V, bool PLAIN, class Args> struct stores {
    enum { THREADS = INTERP_THREADS(V) };
    const Args &a;
    const spot &at;

    __device__ __forceinline__ void store(int output, const values<V> &x)
    {
        if (at.inside && (PLAIN || a.head.out_dense)) store_vectors(output, a.head.out[output], x);
        else store_each(output, a.head.out[output], x);
    }
    __device__ __forceinline__ void store_each(int output, void *out, const values<V> &x)
    {
        const values<V> kept = x;
#pragma unroll 1
        for (int p = 0; p < V * WIDTH; p++) {
            const int64_t e = at.e + p / WIDTH * THREADS * WIDTH + p % WIDTH;
            if (e >= 0 && e < a.head.n)
                store_one(output, out, place_out(a, output, e), kept.v[p / WIDTH].e[p % WIDTH]);
        }
    }
#ifdef MOVES
    __device__ __forceinline__ void store_one(int, void *out, int64_t i, T x) { ((T *)out)[i] = x; }
    __device__ __forceinline__ void store_vectors(int, void *out, const values<V> &x)
    {
        vec *to = (vec *)((T *)out + at.e);
        EACH(j, V) to[j * THREADS] = x.v[j];
    }
#else
    __device__ __forceinline__ void store_one(int output, void *out, int64_t i, T x)
    {
        put_element(out, a.paths.types.out[output], i, x);
    }
    __device__ __forceinline__ void store_vectors(int output, void *out, const values<V> &x)
    {
        with_type(a.paths.types.out[output], [&](auto e) {
            typedef typename decltype(e)::stored stored;
            EACH(j, V)
            {
                lot<stored> v;
                EACH(u, WIDTH) v.e[u] = decltype(e)::write(x.v[j].e[u]);
                *(lot<stored> *)((stored *)out + at.e + j * THREADS * WIDTH) = v;
            }
        });
    }
#endif
    __device__ __forceinline__ void reduction(const interp_code_T &, const values<V> &, const values<V> &) {}
};
#else
template <int V, bool PLAIN, class Args> struct stores {
    const Args &a;
    const spot &at;

    __device__ __forceinline__ void store(int output, const values<V> &x)
    {
        enum { THREADS = INTERP_THREADS(V) };
        T *out = (T *)a.head.out[output];
        const bool vectors = at.inside && (PLAIN || a.head.out_dense);
        EACH(j, V)
        {
            const int64_t e = at.e + j * THREADS * WIDTH;
            if (vectors) *(vec *)(out + e) = x.v[j];
            else EACH(u, WIDTH)
            if (e + u >= 0 && e + u < a.head.n)
                out[PLAIN ? e + u : place_out(a, output, e + u)] = x.v[j].e[u];
        }
    }
    __device__ __forceinline__ void reduction(const interp_code_T &, const values<V> &, const values<V> &) {}
};
#endif

/* Thread blocks resident on a multiprocessor at once. This bounds the registers of a thread. */
template <int V> struct resident {
    enum {
        fewer = HAS_FUNCTIONS + (HAS_FUNCTIONS && sizeof(T) == 8),
        of_two = V == 2 ? 6 - fewer : 16,
        value = V == 4 ? 4 - fewer / 2 : of_two
    };
};

template <int V, bool PLAIN, class Args>
KERNEL(INTERP_THREADS(V), resident<V>::value)
elementwise(const __grid_constant__ Args a)
{
    extern __shared__ vec rows[];
    enum { THREADS = INTERP_THREADS(V) };
    const spot at = spot_of<V>(a.head);
    take_turn();
    if (at.e >= a.head.n) return; /* no barrier follows */
    vec *own = rows + threadIdx.x;
    stores<V, PLAIN, Args> sink = { a, at };
    values<V> x;
    stage<V, PLAIN>(a, own, at);
    interpret<V, THREADS, HAS_FUNCTIONS ? V : 0>(a.head, a.code, own, x, sink);
    let_next_begin();
    sink.store(a.head.last, x);
}

template <int V> const void *kernel_of(bool plain)
{
#ifdef CONVERTS
    return plain ? NULL : (const void *)elementwise<V, false, FOR_TYPE(interp_long)>;
#else
    return plain ? (const void *)elementwise<V, true, FOR_TYPE(interp_short)>
                 : (const void *)elementwise<V, false, FOR_TYPE(interp_long)>;
#endif
}

} // namespace

const void *INTERP_KERNEL(int vectors, bool plain)
{
    switch (vectors) {
    case 1: return kernel_of<1>(plain);
#ifndef SMALL
    case 2: return kernel_of<2>(plain);
    case 4: return kernel_of<4>(plain);
#endif
    default: return NULL;
    }
}
