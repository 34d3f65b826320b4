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
#define RUN_KERNEL TYPED(run_kernel_converts_heavy)
#elif defined CONVERTS
#define RUN_KERNEL TYPED(run_kernel_converts)
#elif defined HEAVY
#define RUN_KERNEL TYPED(run_kernel_heavy)
#else
#define RUN_KERNEL TYPED(run_kernel)
#endif

namespace
{

typedef FOR_TYPE(run_args) run_args;
enum { ANY_FORM = -1 };                      /* a kernel of all forms */
enum { RUN_ROW_RESULTS = REDUCE_WARPS * 3 }; /* doubles for an accumulator of each warp */

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

/* ---- addresses ---- */

/* Offset of the first element of operand k for output i. Operands are inputs, then outputs from
 * PROGRAM_INPUTS on. */
__device__ __forceinline__ int64_t begin_of(const run_axes &a, int k, int64_t i)
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
__device__ __forceinline__ int64_t offset_of(const run_axes &a, int k, int64_t j)
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
__device__ __forceinline__ void put_output(const run_args &args, int output, int64_t i, uint64_t bits)
{
    const run_axes &a = args.axes;
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
template <class Fold>
__device__ __forceinline__ uint64_t finish_block(const run_args &args, int output, int64_t i, int64_t part,
                                                 bool has_result, typename Fold::acc r)
{
    const run_axes &a = args.axes;
    const int64_t parts = (int64_t)a.by_parts.by;
    if (parts > 1 && has_result) ((typename Fold::acc *)a.part[output])[i * parts + part] = r;
    return bits_of(Fold::epilogue(r, a.n));
}

/* Combines partial results like `meet` of reduce.cuh, for tiles of `across` outputs. s: space for
 * PROGRAM_OUTPUTS times `each` doubles. */
__device__ __forceinline__ void meet_outputs(const run_args &args, uint32_t across, int64_t tile, double *s,
                                             int each)
{
    const run_axes &a = args.axes;
    const int outs = a.outs;
    const int64_t parts = (int64_t)a.by_parts.by;
    if (parts <= 1) return;
    const range due = arrive(a.meet, a.outputs, parts, (uint32_t)tile, across);
    if (due.begin == due.end) return;
    const joining j(due, parts);
#pragma unroll 1
    for (int o = 0; o < outs; o++)
#pragma unroll 1
        for (int64_t i = j.begin(); i < due.end; i += j.warps()) {
            uint64_t bits = 0;
            with_reduce(a.row[o], [&](auto f) {
                typedef REDUCE_OF(f) Fold;
                typedef typename Fold::acc acc;
                bits = bits_of(
                    Fold::epilogue(join_output<Fold>((acc *)a.part[o], j, i, (acc *)(s + o * each)), a.n));
            });
            if (j.has_result()) put_output(args, o, i, bits);
        }
}

/* ---- elements of other types ---- */

/* As in interpreter.cu: calls f with the type in which the elements of an input are loaded; stores
 * them to a row, as bits where the type is not T; converts them later. */
#ifdef CONVERTS
template <class F> __device__ __forceinline__ void with_input(const run_axes &a, int input, F f)
{
    with_size(a.types.in[input], f);
}
template <class E> __device__ __forceinline__ void put(const run_axes &a, int input, vec *to, const lot<E> &v)
{
    put_bits<E>(to, v, a.types.in[input]);
}
template <class E>
__device__ __forceinline__ void copy(const run_axes &a, int input, vec *to, const lot<E> *from)
{
    if constexpr (sizeof(E) <= sizeof(T)) copy_async(to, from);
    else put<E>(a, input, to, *from);
}
template <int V> __device__ __forceinline__ void convert_rows(const run_axes &a, vec *own, int inputs)
{
#pragma unroll 1
    for (int k = 0; k < inputs; k++) convert_row<V, 32>(own + k * V * 32, a.types.in[k]);
}
#else
template <class F> __device__ __forceinline__ void with_input(const run_axes &, int, F f) { f(T()); }
template <class E> __device__ __forceinline__ void put(const run_axes &, int, vec *to, const vec &v)
{
    *to = v;
}
template <class E> __device__ __forceinline__ void copy(const run_axes &, int, vec *to, const vec *from)
{
    copy_async(to, from);
}
template <int V> __device__ __forceinline__ void convert_rows(const run_axes &, vec *, int) {}
#endif

/* ---- the elements of a thread ---- */

/* Four lanes as rows of shared memory. */
template <class Fold> union kept {
    enum { VECTORS = 4 * sizeof(typename Fold::lane) / sizeof(vec) };
    typename Fold::lane lane[4];
    vec row[VECTORS];

    __device__ kept() {}
    __device__ __forceinline__ void load(const vec *own) { EACH(r, VECTORS) row[r] = own[r * 32]; }
    __device__ __forceinline__ void save(vec *own) const { EACH(r, VECTORS) own[r * 32] = row[r]; }
};

/* Which elements belong to a thread, for one form or any. In rows and columns a thread has four
 * lanes of a block. Its number t is counted within the warp for rows, and within the 32 groups of an
 * output for columns. In thin kernels a thread has all elements of an output. */
template <int FORM> struct share {
    int form_, t, n;        /* n: elements of the block */
    int64_t i, part, first; /* output; part of it; index of the first element of the block */
    bool has_result;        /* this thread gets the result of the output */
    const int64_t *begin;   /* offset of the first element of each input, `step` apart; not in thin kernels */
    int step;

    __device__ __forceinline__ int form() const { return FORM == ANY_FORM ? form_ : FORM; }
    __device__ __forceinline__ int lane(int l) const
    {
        return form() == FORM_ROWS ? lane_of<WIDTH>(l, t) : lane_of<1>(l, t);
    }
};

/* The elements of a thread, batch by batch. In rows and columns a batch has rows k and following of
 * the block, and its element p belongs to lane p % 4, in row p / 4 of the batch. */
template <int V, int FORM> struct batch {
    enum { ELEMENTS = V * WIDTH, ROWS = ELEMENTS / 4 };
    const run_args &args;
    const run_axes &a;
    const share<FORM> &s;
    vec *own;
    int k;

    __device__ __forceinline__ int index_of(int p) const
    {
        return s.form() == FORM_THIN ? p : (k + p / 4) * REDUCE_LANES + s.lane(p % 4);
    }
    __device__ __forceinline__ bool whole() const { return (k + ROWS) * REDUCE_LANES <= s.n; }

    /* Loads single elements. offset(i): the offset of element i. COUNT vectors are loaded together. */
    template <int COUNT
    , class E,
        class Offset > __device__ __forceinline__ void stage_each(int input, const E *from, Offset offset)
    {
#pragma unroll 1
        for (int start = 0; start < V; start += COUNT) {
            lot<E> v[COUNT];
            EACH(j, COUNT) EACH(u, WIDTH)
            {
                const int i = index_of((start + j) * WIDTH + u);
                v[j].e[u] = E(0);
                if (i < s.n) v[j].e[u] = from[offset(s.first + i)];
            }
            EACH(j, COUNT) put<E>(a, input, own + (input * V + start + j) * 32, v[j]);
        }
    }
    /* Conversions of large elements, and offsets along several axes, are too much code to repeat it
     * for each vector. */
    template <class E> __device__ __forceinline__ void stage(int input, const E *from)
    {
        enum { COUNT = sizeof(E) <= sizeof(T) ? V : 1 };
        const int64_t stride = a.stride[input][a.outer];
        const lot<E> *at = (const lot<E> *)(from + s.first + k * REDUCE_LANES) + s.t;
        const bool dense =
            s.form() == FORM_ROWS && a.inner == 1 && stride == 1 && (uintptr_t)at % alignof(lot<E>) == 0;
        if (dense && whole()) {
#pragma unroll(COUNT)
            for (int j = 0; j < V; j++) copy<E>(a, input, own + (input * V + j) * 32, at + j * 32);
        } else if (a.inner == 1) stage_each < COUNT
        > (input, from, [=](int64_t i) { return i * stride; });
        else stage_each<1>(input, from, [=](int64_t i) { return offset_of(a, input, i); }); }
    __device__ __forceinline__ int64_t begin(int input) const
    {
        return s.form() == FORM_THIN ? begin_of(a, input, min(s.i, a.outputs - 1)) : s.begin[input * s.step];
    }

    template <class Fold>
    __device__ __forceinline__ void take(int output, const values<V> &x, const values<V> &y)
    {
        kept<Fold> lanes;
        lanes.load(own + a.lanes[output] * 32);
        if (!HAS_FUNCTIONS && whole()) EACH(p, ELEMENTS) take_one<Fold>(lanes.lane[p % 4], x, y, p);
        else EACH(p, ELEMENTS) if (index_of(p) < s.n) take_one<Fold>(lanes.lane[p % 4], x, y, p);
        lanes.save(own + a.lanes[output] * 32);
    }
    template <class Fold>
    __device__ __forceinline__ void take_one(typename Fold::lane &lane, const values<V> &x,
                                             const values<V> &y, int p)
    {
        lane = Fold::take(lane, x.v[p / WIDTH].e[p % WIDTH], y.v[p / WIDTH].e[p % WIDTH], k + p / 4);
    }
    /* Reduces all elements of an output, one for each lane. */
    template <class Fold> __device__ __forceinline__ uint64_t take_all(const values<V> &x, const values<V> &y)
    {
        typename Fold::acc v[ELEMENTS];
        EACH(p, ELEMENTS)
        {
            v[p] = Fold::start();
            if (p < s.n)
                v[p] = Fold::close(Fold::take(Fold::open(), x.v[p / WIDTH].e[p % WIDTH],
                                              y.v[p / WIDTH].e[p % WIDTH], 0),
                                   p);
        }
        join_own<Fold, ELEMENTS / 2, 1>(v);
        return bits_of(Fold::epilogue(v[0], a.n));
    }
    /* The result of a thin kernel replaces the lanes. */
    __device__ __forceinline__ uint64_t &result(int output) const
    {
        return *(uint64_t *)(own + a.lanes[output] * 32);
    }
    __device__ __forceinline__ void reduction(const machine_code_T &i, const values<V> &x, const values<V> &y)
    {
        const int output = output_of(i);
        with_reduce(reduce_of(i), [&](auto f) {
            if (s.form() == FORM_THIN) result(output) = take_all<REDUCE_OF(f)>(x, y);
            else take<REDUCE_OF(f)>(output, x, y);
        });
    }
    __device__ __forceinline__ void store(int, const values<V> &) {}

    /* Returns the lanes of an output after the last batch. */
    template <class Fold> __device__ __forceinline__ void close(int output, typename Fold::acc (&r)[4]) const
    {
        kept<Fold> lanes;
        lanes.load(own + a.lanes[output] * 32);
        EACH(l, 4)
        r[l] = s.lane(l) < s.n ? Fold::close(lanes.lane[l], s.first + s.lane(l)) : Fold::start();
    }
    __device__ __forceinline__ void open()
    {
        const int outs = a.outs;
#pragma unroll 1
        for (int o = 0; o < outs; o++)
            with_reduce(a.row[o], [&](auto f) {
                kept<REDUCE_OF(f)> lanes;
                EACH(l, 4) lanes.lane[l] = decltype(f)::reduction::open();
                lanes.save(own + a.lanes[o] * 32);
            });
    }
    /* A thin kernel executes the program once, also for n = 0. */
    __device__ __forceinline__ void run()
    {
        values<V> x;
        const int inputs = args.head.inputs;
        open();
        splat(x, K(0));
        k = 0;
#pragma unroll 1
        for (bool more = s.form() == FORM_THIN || s.n > 0; more; more = k * REDUCE_LANES < s.n) {
#pragma unroll 1
            for (int input = 0; input < inputs; input++)
                with_input(a, input, [&](auto e) {
                    stage(input, (const decltype(e) *)args.head.in[input] + begin(input));
                });
            wait_for_copies();
            convert_rows<V>(a, own, inputs);
            interpret<V, 32, HAS_FUNCTIONS>(args.head, args.code, own, x, *this);
            k += ROWS;
        }
    }
};

/* ---- the forms of the kernel ---- */

/* Like reduce_rows: one warp for each block. */
template <int FORM>
__device__ __forceinline__ share<FORM> rows_share(const run_axes &a, int64_t *begin, int inputs)
{
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32, own = warp % a.warps;
    const int64_t slot = (int64_t)block_from_end() * (blockDim.x / 32 / a.warps) + warp / a.warps;
    const int64_t i = (int64_t)quotient((uint64_t)slot, a.by_parts), part = slot - i * (int64_t)a.by_parts.by,
                  b = part * a.warps + own;
    const bool works = i < a.outputs && b * REDUCE_BLOCK < a.n;
    const int64_t first = works ? b * REDUCE_BLOCK : 0;
    const int n = works ? (int)min((int64_t)REDUCE_BLOCK, a.n - first) : 0;
    begin += warp * PROGRAM_INPUTS;
    if (t < inputs) begin[t] = works ? begin_of(a, t, i) : 0;
    __syncwarp();
    return { FORM_ROWS, t, n, i, part, first, own == 0 && t == 0 && i < a.outputs, begin, 1 };
}

/* Like reduce_columns: RUN_ACROSS outputs by 32 threads. Thread g holds lanes g, g + 32, g + 64 and
 * g + 96. */
template <int FORM>
__device__ __forceinline__ share<FORM> columns_share(const run_axes &a, int64_t *begin, int inputs)
{
    const int c = threadIdx.x % RUN_ACROSS, g = threadIdx.x / RUN_ACROSS;
    const uint32_t tiles = gridDim.x / (uint32_t)a.by_parts.by, at = block_from_end(), tile = at % tiles;
    const int64_t b = at / tiles, i = (int64_t)tile * RUN_ACROSS + c, first = b * REDUCE_BLOCK;
    const int n = i < a.outputs ? (int)min((int64_t)REDUCE_BLOCK, a.n - first) : 0;
    begin += c;
    if (g < inputs) begin[g * RUN_ACROSS] = i < a.outputs ? begin_of(a, g, i) : 0;
    __syncthreads();
    return { FORM_COLUMNS, g, n, i, b, first, g == 0 && i < a.outputs, begin, RUN_ACROSS };
}

/* Few elements: one thread for each output. */
template <int FORM> __device__ __forceinline__ share<FORM> thin_share(const run_axes &a)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    return { FORM_THIN, 0, (int)a.n, i, 0, 0, i < a.outputs, NULL, 0 };
}

/* Joins the lanes of a warp, then those of the warps that share an output. The thread with
 * has_result gets the result. s: space for an accumulator of each warp. */
template <class Fold>
__device__ __forceinline__ typename Fold::acc join_rows(const run_axes &a, typename Fold::acc (&v)[4],
                                                        typename Fold::acc *s)
{
    const int warp = threadIdx.x / 32, t = threadIdx.x % 32;
    v[0] = join_warp<Fold, WIDTH>(v);
    if (a.warps > 1) {
        if (t == 0) s[warp] = v[0];
        __syncthreads();
        if (warp % a.warps == 0 && t == 0) v[0] = join_pairs<Fold>(s + warp, a.warps);
    }
    return v[0];
}

/* The same for the lanes of a column. s: space for an accumulator of each thread. */
template <class Fold>
__device__ __forceinline__ typename Fold::acc join_columns(int g, typename Fold::acc (&v)[4],
                                                           typename Fold::acc *s)
{
    join_own<Fold, 2, 1>(v);
    __syncthreads(); /* the previous output no longer uses s */
    s[threadIdx.x] = v[0];
    for (int h = 16; h > 0; h /= 2) {
        __syncthreads();
        if (g < h) s[threadIdx.x] = Fold::join(s[threadIdx.x], s[threadIdx.x + h * RUN_ACROSS]);
    }
    return s[threadIdx.x];
}

/* Threads of a thread block. Two thread blocks must fit on a multiprocessor with its 65536 registers,
 * except for thin kernels. */
template <int V, int FORM> struct bounds {
    enum { threads = V == 2 && (FORM == FORM_COLUMNS || FORM == ANY_FORM) ? RUN_THREADS : REDUCE_WARPS * 32 };
};

/* Shared memory: the rows and lanes of each warp, the offset of the first element of each input,
 * then space for accumulators of any type. Only kernels of two vectors have columns. */
template <int V, int FORM>
KERNEL(bounds<V, FORM>::threads, FORM == FORM_THIN ? 1 : 2)
reduce_program(const __grid_constant__ run_args args)
{
    extern __shared__ vec shared[];
    const run_axes &a = args.axes;
    const int form = FORM == ANY_FORM ? a.form : FORM;
    const bool columns = V == 2 && form == FORM_COLUMNS, thin = form == FORM_THIN;
    const int warp = threadIdx.x / 32, outs = a.outs, inputs = args.head.inputs;
    int64_t *begin = (int64_t *)(shared + blockDim.x / 32 * a.kept * 32);
    double *results = (double *)(begin + PROGRAM_INPUTS * (columns ? RUN_ACROSS : REDUCE_WARPS));
    const share<FORM> s = columns ? columns_share<FORM>(a, begin, inputs)
                          : thin  ? thin_share<FORM>(a)
                                  : rows_share<FORM>(a, begin, inputs);
    batch<V, FORM> block = { args, a, s, shared + warp * a.kept * 32 + threadIdx.x % 32, 0 };
    block.run();
#pragma unroll 1
    for (int o = 0; o < outs; o++) {
        uint64_t bits = thin ? block.result(o) : 0;
        if (!thin)
            with_reduce(a.row[o], [&](auto f) {
                typedef REDUCE_OF(f) Fold;
                typedef typename Fold::acc acc;
                acc v[4], *space = (acc *)(results + (columns ? 0 : o * RUN_ROW_RESULTS));
                block.template close<Fold>(o, v);
                v[0] = columns ? join_columns<Fold>(s.t, v, space) : join_rows<Fold>(a, v, space);
                bits = finish_block<Fold>(args, o, s.i, s.part, s.has_result, v[0]);
            });
        if (s.has_result && a.by_parts.by == 1) put_output(args, o, s.i, bits);
    }
    const int64_t tile = columns ? s.i / RUN_ACROSS : s.i;
    if (!thin)
        meet_outputs(args, columns ? RUN_ACROSS : 1, tile, results,
                     columns ? RUN_THREADS / 32 * 3 : RUN_ROW_RESULTS);
}

template <int FORM> const void *form_of(int vectors)
{
#if !defined HEAVY && !defined T_u64
    if (vectors == 4) return (const void *)reduce_program<4, FORM>;
#endif
    return vectors == 2 ? (const void *)reduce_program<2, FORM> : NULL;
}

} // namespace

/* Kernels of mathematical functions or conversions are so large that all forms share one. */
const void *RUN_KERNEL(int vectors, int form)
{
#if defined HEAVY || defined CONVERTS
    return form_of<ANY_FORM>(vectors);
#else
    if (form == FORM_COLUMNS) return (const void *)reduce_program<2, FORM_COLUMNS>;
    return form == FORM_THIN ? form_of<FORM_THIN>(vectors) : form_of<FORM_ROWS>(vectors);
#endif
}
