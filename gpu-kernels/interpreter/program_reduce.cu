/* program_reduce.cu - kernels that reduce the results of programs. The interpreter of
 * interpreter.cuh computes a batch of elements, and the reductions of the program add them to lanes
 * in shared memory. Compiled several times for each type, as interpreter.cu is. HEAVY: kernels of
 * programs with mathematical functions. CONVERTS: kernels whose operands and results have types
 * other than T, and all integer kernels. */
#include "convert.cuh"
#include "interpreter.cuh"
#include "reduce_ops.cuh"
extern "C" {
#include "program_reduce.h"
}

#if defined CONVERTS && defined HEAVY
#define PROGRAM_REDUCE_KERNEL TYPED(program_reduce_kernel_converts_heavy)
#elif defined CONVERTS
#define PROGRAM_REDUCE_KERNEL TYPED(program_reduce_kernel_converts)
#elif defined HEAVY
#define PROGRAM_REDUCE_KERNEL TYPED(program_reduce_kernel_heavy)
#else
#define PROGRAM_REDUCE_KERNEL TYPED(program_reduce_kernel)
#endif

namespace
{

typedef FOR_TYPE(program_reduce_args) program_reduce_args;

/* Calls f(kind<Fold>()) for the row of ops.def with number `op`. */
template <class Fold> struct kind {
    typedef Fold reduction;
};
template <class F> __device__ __forceinline__ void with_reduce(int op, F f)
{
    switch (op) {
#define REDUCE_CASE(name, ...)                                                                               \
    case OP_##name:                                                                                          \
        f(kind<folding<row_##name>>());                                                                      \
        break;
#ifdef T_INTEGER
#define DUET_ANY_FOLD1 REDUCE_CASE
#define DUET_ANY_FOLD2 REDUCE_CASE
#else
#define DUET_FOLD1   REDUCE_CASE
#define DUET_FOLD2   REDUCE_CASE
#define DUET_MOMENT1 REDUCE_CASE
#endif
#define DUET_PLACE1 REDUCE_CASE
#include <duet/ops.def>
    default: break;
    }
}
#define REDUCE_OF(k) typename decltype(k)::reduction

/* Space for the result of a block, and for that of lanes, of any reduction. */
enum { ACC_DOUBLES = sizeof(T) == 8 ? 6 : 3, LANES_DOUBLES = sizeof(T) == 8 ? 4 : 2 };

/* ---- addresses ---- */

/* Offset of the first element of operand k for output i. Operands are inputs, then outputs from
 * PROGRAM_INPUTS on. */
__device__ __forceinline__ int64_t begin_of(const program_reduce_axes &a, int k, int64_t i)
{
    int64_t at = 0;
    uint64_t left = (uint64_t)i;
#pragma unroll 1
    for (int axis = a.outer - 1; axis >= 0; axis--) {
        const uint64_t q = axis ? quotient(left, a.size[axis]) : 0;
        at += (int64_t)(left - q * a.size[axis].by) * a.stride[k][axis];
        left = q;
    }
    return at;
}

/* Offset of element j of an input from there. */
__device__ __forceinline__ int64_t offset_of(const program_reduce_axes &a, int k, int64_t j)
{
    const int last = a.outer + a.inner - 1;
    int64_t at = 0;
    uint64_t left = (uint64_t)j;
#pragma unroll 1
    for (int axis = last; axis > a.outer; axis--) {
        const uint64_t q = quotient(left, a.size[axis]);
        at += (int64_t)(left - q * a.size[axis].by) * a.stride[k][axis];
        left = q;
    }
    return at + (int64_t)left * a.stride[k][a.outer];
}

__device__ __forceinline__ bool gives_index(int op)
{
#define DUET_PLACE1(name, ...)                                                                               \
    if (op == OP_##name) return true;
#include <duet/ops.def>
    return false;
}

/* What Fold::epilogue returns, a T or an index, as bits. The code that stores it is then compiled
 * once, not once for each reduction. */
template <class Result> __device__ __forceinline__ uint64_t bits_of(Result r)
{
    uint64_t bits = 0;
    memcpy(&bits, &r, sizeof r);
    return bits;
}
__device__ __forceinline__ void put_output(const program_reduce_args &args, int output, int64_t i,
                                           uint64_t bits)
{
    const program_reduce_axes &a = args.axes;
    void *const out = args.head.out[output];
    const int64_t at = begin_of(a, PROGRAM_INPUTS + output, i);
    T x;
    memcpy(&x, &bits, sizeof x);
    if (gives_index(a.row[output])) ((uint64_t *)out)[at] = bits;
#ifdef CONVERTS
    else put_element(out, a.types.out[output], at, x);
#else
    else ((T *)out)[at] = x;
#endif
}

/* Store the result r of a thread block if it is a part of output i; return the bits of the output
 * if it is all of it. */
template <class Blocks>
__device__ __forceinline__ uint64_t finish_block(const program_reduce_args &args, int output, int64_t i,
                                                 int64_t part, bool has_result, typename Blocks::acc r)
{
    const program_reduce_axes &a = args.axes;
    const int64_t parts = (int64_t)a.by_parts.by;
    if (parts > 1 && has_result) ((typename Blocks::acc *)a.part[output])[i * parts + part] = r;
    return bits_of(Blocks::epilogue(r, a.n));
}

/* Must the block be reduced again, over scaled elements? */
template <class Fold> __device__ __forceinline__ bool is_lost(typename Fold::acc r)
{
    if constexpr (between_blocks<Fold>::scales) return !Fold::is_finite(r);
    else return false;
}
/* The result of a block after the first pass, or after the second one. */
template <class Fold>
__device__ __forceinline__ typename between_blocks<Fold>::acc block_result(typename Fold::acc r, bool again)
{
    typedef between_blocks<Fold> Blocks;
    if constexpr (Blocks::scales) return again ? Blocks::again(Blocks::lost(), r) : Blocks::as_is(r);
    else return r;
}

/* Combines partial results like `meet` of reduce.cuh. s: space for PROGRAM_OUTPUTS times `each`
 * doubles. */
template <int across>
__device__ __forceinline__ void meet_outputs(const program_reduce_args &args, int64_t tile, double *s,
                                             int each)
{
    const program_reduce_axes &a = args.axes;
    const int outs = a.outs;
    const int64_t parts = (int64_t)a.by_parts.by;
    if (parts <= 1) return;
    const range due = arrive<across>(a.meet, a.outputs, parts, (uint32_t)tile);
    if (due.begin == due.end) return;
    const joining j(due, parts);
#pragma unroll 1
    for (int o = 0; o < outs; o++)
#pragma unroll 1
        for (int64_t i = j.begin(); i < due.end; i += j.warps()) {
            uint64_t bits = 0;
            with_reduce(a.row[o], [&](auto f) {
                typedef between_blocks<REDUCE_OF(f)> Blocks;
                typedef typename Blocks::acc acc;
                bits = bits_of(
                    Blocks::epilogue(join_output<Blocks>((acc *)a.part[o], j, i, (acc *)(s + o * each)),
                                     a.n));
            });
            if (j.has_result()) put_output(args, o, i, bits);
        }
}

/* ---- elements of other types ---- */

/* As in interpreter.cu: calls f with the type in which the elements of an input are loaded; stores
 * them to a row, as bits where the type is not T; converts them later. */
#ifdef CONVERTS
template <class F> __device__ __forceinline__ void with_input(const program_reduce_axes &a, int input, F f)
{
    with_size(a.types.in[input], f);
}
template <class E>
__device__ __forceinline__ void put(const program_reduce_axes &a, int input, vec *to, const lot<E> &v)
{
    put_bits<E>(to, v, a.types.in[input]);
}
template <class E>
__device__ __forceinline__ void copy(const program_reduce_axes &a, int input, vec *to, const lot<E> *from)
{
    if constexpr (sizeof(E) <= sizeof(T)) copy_async(to, from);
    else put<E>(a, input, to, *from);
}
template <int V>
__device__ __forceinline__ void convert_rows(const program_reduce_axes &a, vec *own, int inputs)
{
#pragma unroll 1
    for (int k = 0; k < inputs; k++) convert_row<V, 32>(own + k * V * 32, a.types.in[k]);
}
#else
template <class F> __device__ __forceinline__ void with_input(const program_reduce_axes &, int, F f)
{
    f(T());
}
template <class E>
__device__ __forceinline__ void put(const program_reduce_axes &, int, vec *to, const vec &v)
{
    *to = v;
}
template <class E>
__device__ __forceinline__ void copy(const program_reduce_axes &, int, vec *to, const vec *from)
{
    copy_async(to, from);
}
template <int V> __device__ __forceinline__ void convert_rows(const program_reduce_axes &, vec *, int) {}
#endif

/* ---- a block, by threads with four lanes each ---- */

/* Four lanes as rows of shared memory. */
template <class Fold> union kept {
    enum { VECTORS = 4 * sizeof(typename Fold::lane) / sizeof(vec) };
    typename Fold::lane lane[4];
    vec row[VECTORS];

    __device__ kept() {}
    __device__ __forceinline__ void load(const vec *own) { EACH(r, VECTORS) row[r] = own[r * 32]; }
    __device__ __forceinline__ void save(vec *own) const { EACH(r, VECTORS) own[r * 32] = row[r]; }
};

/* The elements of a thread, batch by batch: rows k and following of a block. Element p of a batch
 * belongs to lane lane_of<W>(p % 4, t), in row p / 4 of the batch. */
template <int V, int W> struct batch {
    enum {
        ELEMENTS = V * WIDTH,
        ROWS = ELEMENTS / 4,
        /* In columns of f32, one vector at a time takes so few registers that twice as many threads run. */
        GROUP = HAS_FUNCTIONS * (W == 1 && sizeof(T) == 4 ? 1 : V)
    };
    const program_reduce_args &args;
    const program_reduce_axes &a;
    vec *own;
    int t;
    int64_t first; /* number of the element in the block */
    int n, k;
    bool again; /* the second pass, over scaled elements */

    __device__ __forceinline__ int index_of(int p) const
    {
        return (k + p / 4) * REDUCE_LANES + lane_of<W>(p % 4, t);
    }
    __device__ __forceinline__ bool whole() const { return (k + ROWS) * REDUCE_LANES <= n; }

    template <class E> __device__ __forceinline__ void stage_each(int input, const E *from)
    {
        lot<E> v[V];
        EACH(p, ELEMENTS)
        {
            v[p / WIDTH].e[p % WIDTH] = E(0);
            if (index_of(p) < n) v[p / WIDTH].e[p % WIDTH] = from[offset_of(a, input, first + index_of(p))];
        }
        EACH(j, V) put<E>(a, input, own + (input * V + j) * 32, v[j]);
    }
    template <class E> __device__ __forceinline__ void stage(int input, const E *from)
    {
        const lot<E> *at = (const lot<E> *)(from + first + k * REDUCE_LANES) + t;
        const bool dense =
            W > 1 && a.inner == 1 && a.stride[input][a.outer] == 1 && (uintptr_t)at % alignof(lot<E>) == 0;
        if (dense && whole()) EACH(j, V) copy<E>(a, input, own + (input * V + j) * 32, at + j * 32);
        else stage_each(input, from);
    }

    template <class Fold>
    __device__ __forceinline__ void take(int output, const values<V> &x, const values<V> &y)
    {
        kept<Fold> s;
        s.load(own + a.lanes[output] * 32);
        if (whole()) EACH(p, ELEMENTS) take_one<Fold>(s.lane[p % 4], x, y, p);
        else EACH(p, ELEMENTS) if (index_of(p) < n) take_one<Fold>(s.lane[p % 4], x, y, p);
        s.save(own + a.lanes[output] * 32);
    }
    template <class Fold>
    __device__ __forceinline__ void take_one(typename Fold::lane &lane, const values<V> &x,
                                             const values<V> &y, int p)
    {
        T e = x.v[p / WIDTH].e[p % WIDTH];
        if constexpr (between_blocks<Fold>::scales) e = Fold::see(e, again ? Fold::down() : T(1));
        lane = Fold::take(lane, e, y.v[p / WIDTH].e[p % WIDTH], k + p / 4);
    }
    __device__ __forceinline__ void reduction(const interp_code_T &i, const values<V> &x, const values<V> &y)
    {
        const int output = output_of(i);
        with_reduce(reduce_of(i), [&](auto f) { take<REDUCE_OF(f)>(output, x, y); });
    }
    __device__ __forceinline__ void store(int, const values<V> &) {}

    /* Combines the lanes of an output after the last batch. */
    template <class Fold> __device__ __forceinline__ void close(int output, typename Fold::acc (&r)[4]) const
    {
        kept<Fold> s;
        s.load(own + a.lanes[output] * 32);
        EACH(l, 4)
        r[l] = lane_of<W>(l, t) < n ? Fold::close(s.lane[l], first + lane_of<W>(l, t),
                                                  (n - lane_of<W>(l, t) - 1) / REDUCE_LANES + 1)
                                    : Fold::start();
    }
    __device__ __forceinline__ void open()
    {
        const int outs = a.outs;
#pragma unroll 1
        for (int o = 0; o < outs; o++)
            with_reduce(a.row[o], [&](auto f) {
                kept<REDUCE_OF(f)> s;
                EACH(l, 4) s.lane[l] = decltype(f)::reduction::open();
                s.save(own + a.lanes[o] * 32);
            });
    }
    /* begin(k): offset of the first element of input k for this output */
    template <class Begin> __device__ __forceinline__ void run(Begin begin)
    {
        values<V> x;
        const int inputs = args.head.inputs;
        open();
        splat(x, K(0));
#pragma unroll 1
        for (k = 0; k * REDUCE_LANES < n; k += ROWS) {
#pragma unroll 1
            for (int input = 0; input < inputs; input++)
                with_input(a, input, [&](auto e) {
                    stage(input, (const decltype(e) *)args.head.in[input] + begin(input));
                });
            wait_for_copies();
            convert_rows<V>(a, own, inputs);
            interpret<V, 32, GROUP>(args.head, args.code, own, x, *this);
        }
    }
};

/* Like reduce_rows: one warp for each block. */
template <int V>
KERNEL(REDUCE_WARPS * 32, V == 2 && sizeof(T) == 4 && !HAS_FUNCTIONS ? 3 : 2)
rows(const __grid_constant__ program_reduce_args args)
{
    extern __shared__ vec shared[];
    const program_reduce_axes &a = args.axes;
    __shared__ int64_t begin[REDUCE_WARPS][PROGRAM_INPUTS];
    __shared__ double results[PROGRAM_OUTPUTS][REDUCE_WARPS][ACC_DOUBLES];
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, own = warp % a.warps, outs = a.outs;
    const int64_t slot = (int64_t)block_from_end() * (blockDim.x / 32 / a.warps) + warp / a.warps;
    const int64_t i = (int64_t)quotient((uint64_t)slot, a.by_parts), part = slot - i * (int64_t)a.by_parts.by,
                  b = part * a.warps + own;
    const bool works = i < a.outputs && b * REDUCE_BLOCK < a.n;
    const int64_t first = works ? b * REDUCE_BLOCK : 0;
    const int n = works ? (int)min((int64_t)REDUCE_BLOCK, a.n - first) : 0;
    batch<V, WIDTH> block = { args, a, shared + warp * a.kept * 32 + t, t, first, n, 0, false };
    if (t < args.head.inputs) begin[warp][t] = works ? begin_of(a, t, i) : 0;
    __syncwarp();
    uint32_t todo = (1u << outs) - 1; /* outputs without a result */
#pragma unroll 1
    for (; todo; block.again = true) {
        block.run([&](int k) { return begin[warp][k]; });
#pragma unroll 1
        for (int o = 0; o < outs; o++) {
            if (!(todo >> o & 1)) continue;
            bool lost = false;
            with_reduce(a.row[o], [&](auto f) {
                typedef REDUCE_OF(f) Fold;
                typename Fold::acc v[4];
                block.template close<Fold>(o, v);
                v[0] = join_warp<Fold, WIDTH>(v);
                lost = t == 0 && is_lost<Fold>(v[0]) && !block.again;
                if (t == 0)
                    ((typename between_blocks<Fold>::acc *)results[o])[warp] =
                        block_result<Fold>(v[0], block.again);
            });
            if (!__any_sync(~0u, lost)) todo &= ~(1u << o);
        }
    }
    if (a.warps > 1) __syncthreads();
    const bool has_result = own == 0 && t == 0 && i < a.outputs;
#pragma unroll 1
    for (int o = 0; o < outs && has_result; o++) {
        uint64_t bits = 0;
        with_reduce(a.row[o], [&](auto f) {
            typedef between_blocks<REDUCE_OF(f)> Blocks;
            typename Blocks::acc *s = (typename Blocks::acc *)results[o];
            bits = finish_block<Blocks>(args, o, i, part, true, join_pairs<Blocks>(s + warp, a.warps));
        });
        if (a.by_parts.by == 1) put_output(args, o, i, bits);
    }
    meet_outputs<1>(args, i, results[0][0], REDUCE_WARPS * ACC_DOUBLES);
}

/* Like reduce_columns: PROGRAM_REDUCE_ACROSS outputs by 32 threads. Thread g holds lanes g, g + 32, g + 64 and
 * g + 96. Results are stored in the branch of each reduction: with one store after the branches, as
 * in rows, the loop over the elements has fewer registers and takes a fifth longer. */
template <int V>
KERNEL(PROGRAM_REDUCE_THREADS, sizeof(T) == 4 ? 2 : 1)
columns(const __grid_constant__ program_reduce_args args)
{
    extern __shared__ vec shared[];
    const program_reduce_axes &a = args.axes;
    __shared__ int64_t begin[PROGRAM_INPUTS][PROGRAM_REDUCE_ACROSS];
    __shared__ double results[32 * PROGRAM_REDUCE_ACROSS * LANES_DOUBLES];
    const int c = threadIdx.x % PROGRAM_REDUCE_ACROSS, g = threadIdx.x / PROGRAM_REDUCE_ACROSS,
              warp = threadIdx.x / 32, outs = a.outs;
    const uint32_t tiles = gridDim.x / (uint32_t)a.by_parts.by, at = block_from_end(), tile = at % tiles;
    const int64_t b = at / tiles, i = (int64_t)tile * PROGRAM_REDUCE_ACROSS + c, first = b * REDUCE_BLOCK;
    const int n = i < a.outputs ? (int)min((int64_t)REDUCE_BLOCK, a.n - first) : 0;
    batch<V, 1> block = { args, a, shared + warp * a.kept * 32 + threadIdx.x % 32, g, first, n, 0, false };
    if (g < args.head.inputs) begin[g][c] = i < a.outputs ? begin_of(a, g, i) : 0;
    __syncthreads();
    /* outputs that a thread, or any of the block, has not written */
    uint32_t own = g == 0 && i < a.outputs ? (1u << outs) - 1 : 0, todo = (1u << outs) - 1;
#pragma unroll 1
    for (; todo; block.again = true) {
        block.run([&](int k) { return begin[k][c]; });
#pragma unroll 1
        for (int o = 0; o < outs; o++) {
            if (!(todo >> o & 1)) continue;
            with_reduce(a.row[o], [&](auto f) {
                typedef REDUCE_OF(f) Fold;
                typedef between_blocks<Fold> Blocks;
                typename Fold::acc v[4], *s = (typename Fold::acc *)results;
                block.template close<Fold>(o, v);
                join_own<Fold, 2, 1>(v);
                __syncthreads(); /* the previous output no longer uses s */
                s[threadIdx.x] = v[0];
                for (int h = 16; h > 0; h /= 2) {
                    __syncthreads();
                    if (g < h)
                        s[threadIdx.x] =
                            Fold::join(s[threadIdx.x], s[threadIdx.x + h * PROGRAM_REDUCE_ACROSS]);
                }
                if (own >> o & 1 && (block.again || !is_lost<Fold>(s[c]))) {
                    const typename Blocks::acc r = block_result<Fold>(s[c], block.again);
                    if (a.by_parts.by > 1)
                        ((typename Blocks::acc *)a.part[o])[i * (int64_t)a.by_parts.by + b] = r;
                    else put_output(args, o, i, bits_of(Blocks::epilogue(r, a.n)));
                    own &= ~(1u << o);
                }
            });
            if (!__syncthreads_or(own >> o & 1)) todo &= ~(1u << o);
        }
    }
    meet_outputs<PROGRAM_REDUCE_ACROSS>(args, tile, results, PROGRAM_REDUCE_THREADS / 32 * ACC_DOUBLES);
}

/* ---- few elements: one thread for each output ---- */

template <int V> struct few {
    enum { ELEMENTS = V * WIDTH };
    const program_reduce_args &args;
    const program_reduce_axes &a;
    vec *own;
    int64_t i; /* number of the output */

    template <class E> __device__ __forceinline__ void stage(int input)
    {
        const E *from = (const E *)args.head.in[input] + begin_of(a, input, i);
        const int n = (int)a.n;
        lot<E> v[V];
        EACH(p, ELEMENTS)
        {
            v[p / WIDTH].e[p % WIDTH] = E(0);
            if (p < n) v[p / WIDTH].e[p % WIDTH] = from[offset_of(a, input, p)];
        }
        EACH(j, V) put<E>(a, input, own + (input * V + j) * 32, v[j]);
    }
    template <class Fold>
    __device__ __forceinline__ typename Fold::acc reduce(const values<V> &x, const values<V> &y, T by)
    {
        const int n = (int)a.n;
        typename Fold::acc v[ELEMENTS];
        EACH(p, ELEMENTS)
        {
            T e = x.v[p / WIDTH].e[p % WIDTH];
            if constexpr (between_blocks<Fold>::scales) e = Fold::see(e, by);
            v[p] = Fold::start();
            if (p < n) v[p] = Fold::close(Fold::take(Fold::open(), e, y.v[p / WIDTH].e[p % WIDTH], 0), p, 1);
        }
        join_own<Fold, ELEMENTS / 2, 1>(v);
        return v[0];
    }
    template <class Fold> __device__ __forceinline__ uint64_t take(const values<V> &x, const values<V> &y)
    {
        typedef between_blocks<Fold> Blocks;
        typename Blocks::acc r = Blocks::start();
        T by = T(1);
#pragma unroll 1
        for (int pass = 0; pass < 1 + Blocks::scales; pass++) {
            const typename Fold::acc v = reduce<Fold>(x, y, by);
            r = block_result<Fold>(v, pass);
            if (!is_lost<Fold>(v)) break;
            if constexpr (Blocks::scales) by = Fold::down();
        }
        return bits_of(Blocks::epilogue(r, a.n));
    }
    __device__ __forceinline__ void reduction(const interp_code_T &instruction, const values<V> &x,
                                              const values<V> &y)
    {
        uint64_t bits = 0;
        with_reduce(reduce_of(instruction), [&](auto f) { bits = take<REDUCE_OF(f)>(x, y); });
        if (i < a.outputs) put_output(args, output_of(instruction), i, bits);
    }
    __device__ __forceinline__ void store(int, const values<V> &) {}
};

/* One thread for each output. */
template <int V> KERNEL(REDUCE_WARPS * 32) thin(const __grid_constant__ program_reduce_args args)
{
    extern __shared__ vec shared[];
    const program_reduce_axes &a = args.axes;
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int inputs = args.head.inputs;
    few<V> all = { args, a, shared + threadIdx.x / 32 * a.kept * 32 + threadIdx.x % 32,
                   min(i, a.outputs - 1) };
    values<V> x;
    splat(x, K(0));
#pragma unroll 1
    for (int k = 0; k < inputs; k++) with_input(a, k, [&](auto e) { all.template stage<decltype(e)>(k); });
    convert_rows<V>(a, all.own, inputs);
    all.i = i;
    interpret<V, 32, HAS_FUNCTIONS ? V : 0>(args.head, args.code, all.own, x, all);
}

} // namespace

const void *PROGRAM_REDUCE_KERNEL(int vectors, int form)
{
    if (form == FORM_COLUMNS) return (const void *)columns<2>;
    if (form == FORM_THIN && vectors == 2) return (const void *)thin<2>;
    if (form == FORM_ROWS && vectors == 2) return (const void *)rows<2>;
#ifndef HEAVY
    if (form == FORM_THIN && vectors == 4) return (const void *)thin<4>;
    if (form == FORM_ROWS && vectors == 4) return (const void *)rows<4>;
#endif
    return NULL;
}
