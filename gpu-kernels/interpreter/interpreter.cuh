/* interpreter.cuh - the interpreter loop. A thread keeps its elements in registers and operands in
 * rows of shared memory; one dispatch serves all its elements.
 *
 * A thread has V vectors in its accumulator. Its vector j of row r is own[(r * V + j) * STRIDE] in
 * shared memory. No other thread accesses it, so no barrier is needed. The caller loads the rows.
 * All threads of a warp take the same branch, because no branch depends on data. A Sink receives
 * the results of the program: store(output, values) and reduction(instruction, values, others). */
#ifndef INTERPRETER_CUH
#define INTERPRETER_CUH

#include "device.cuh"
#include "interpreter_kernels.h"

/* Do the programs of this compilation use mathematical functions (exp and the like)? */
#ifdef HEAVY
#define HAS_FUNCTIONS true
#else
#define HAS_FUNCTIONS false
#endif

typedef FOR_TYPE(interp_code) interp_code_T;

static __device__ __forceinline__ uint32_t code_of(const interp_code_T &i) { return i.what & INTERP_CODE; }
static __device__ __forceinline__ uint32_t row_x(const interp_code_T &i) { return i.rows & 0xffff; }
static __device__ __forceinline__ uint32_t row_y(const interp_code_T &i) { return i.rows >> 16; }
static __device__ __forceinline__ int output_of(const interp_code_T &i) { return i.what >> 16 & 0xff; }
static __device__ __forceinline__ uint32_t saved_row(const interp_code_T &i) { return i.what >> 16 & 0xff; }
static __device__ __forceinline__ bool is_linear(const interp_code_T &i)
{
    return code_of(i) - CODE_LINEAR < CODE_ROWS - CODE_LINEAR; /* unsigned: one comparison for both ends */
}
static __device__ __forceinline__ int run_of(const interp_code_T &i) { return i.what >> 24; }
static __device__ __forceinline__ int reduce_of(const interp_code_T &i) { return i.what >> 24; }

#define EACH(j, n) _Pragma("unroll") for (int j = 0; j < (n); j++)

template <int V> struct values {
    vec v[V];
};

static __device__ __forceinline__ T number_of(BITS bits) { return AS_T(bits); }

/* Returns s through an empty assembly statement. Otherwise the compiler moves its computation out
 * of the branch and executes it before every dispatch. */
static __device__ __forceinline__ T here(T s)
{
#if defined T_f32
    asm volatile("mov.f32 %0, %1;" : "=f"(s) : "f"(s));
#elif defined T_f64
    asm volatile("mov.f64 %0, %1;" : "=d"(s) : "d"(s));
#elif defined T_i32
    asm volatile("mov.b32 %0, %1;" : "=r"(s) : "r"(s));
#elif !defined MOVES
    asm volatile("mov.b64 %0, %1;" : "=l"(s) : "l"(s));
#endif
    return s;
}

template <int V> static __device__ __forceinline__ void splat(values<V> &x, T s)
{
    EACH(j, V) EACH(k, WIDTH) x.v[j].e[k] = here(s);
}

/* Address of the first row of a thread in shared memory, in bytes. With mathematical functions, or
 * with one vector, the value is hidden from the compiler, which would otherwise recompute it at
 * every dispatch. */
template <int V, int GROUP> static __device__ __forceinline__ uint32_t address_of(const vec *own)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(own);
    if (V == 1 || GROUP > 0) asm volatile("" : "+r"(at));
    return at;
}
static __device__ __forceinline__ uint32_t row_at(uint32_t own, uint32_t row)
{
    return own + row * (uint32_t)sizeof(vec);
}
static __device__ __forceinline__ vec &shared_at(uint32_t at) { return *(vec *)__cvta_shared_to_generic(at); }

template <int V, int STRIDE> static __device__ __forceinline__ void load_row(values<V> &x, uint32_t row)
{
    EACH(j, V) x.v[j] = shared_at(row_at(row, j * STRIDE));
}

template <int V, int STRIDE> static __device__ __forceinline__ void save_row(uint32_t row, const values<V> &a)
{
    EACH(j, V) shared_at(row_at(row, j * STRIDE)) = a.v[j];
}

/* Starts all copies asynchronously and waits for them together. Elements of fewer than 4 bytes
 * cannot be copied asynchronously. */
template <class Lot> static __device__ __forceinline__ void copy_async(vec *to, const Lot *from)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if constexpr (sizeof *from < 4) *(Lot *)to = *from;
    else if constexpr (sizeof *from == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(sizeof *from)
                     : "memory");
#else
    *(Lot *)to = *from;
#endif
}

static __device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#ifndef MOVES
/* An operand of an instruction that is not a step. */
template <int V, int STRIDE>
static __device__ __forceinline__ void fetch(values<V> &x, uint32_t own, uint32_t row, bool number, T s)
{
    if (number) splat(x, s);
    else load_row<V, STRIDE>(x, row_at(own, row));
}

#ifdef T_INTEGER
#define WRAPPING(x) AS_BITS(x)
#else
#define WRAPPING(x) (x)
#endif
template <int STEP> static __device__ __forceinline__ T step_of(T a, T x, T s)
{
    switch (STEP) {
    case STEP_LOAD: return x;
    case STEP_ADD: return WRAPPING(a) + x;
    case STEP_SUB: return WRAPPING(a) - x;
    case STEP_RSUB: return WRAPPING(x) - a;
    case STEP_MUL: return WRAPPING(a) * x;
    case STEP_AXPY: return FMA(s, x, a);
    case STEP_SCALE: return FMA(a, s, x);
    case STEP_HORNER: return FMA(a, x, s);
    case STEP_ADDS: return WRAPPING(a) + s;
    case STEP_MULS: return WRAPPING(a) * s;
    case STEP_RSUBS: return WRAPPING(s) - a;
    default: return a;
    }
}
template <int STEP> struct reads_row {
    enum { value = STEP >= STEP_LOAD && STEP <= STEP_HORNER };
};

/* Executes two steps over all elements. */
template <int A, int B, int V, int STRIDE>
static __device__ __forceinline__ void pair(values<V> &a, uint32_t x, uint32_t y, T s, T r)
{
    EACH(j, V)
    {
        vec p = {}, q = {};
        if (reads_row<A>::value) p = shared_at(row_at(x, j * STRIDE));
        if (reads_row<B>::value) q = shared_at(row_at(y, j * STRIDE));
        EACH(k, WIDTH) a.v[j].e[k] = step_of<B>(step_of<A>(a.v[j].e[k], p.e[k], s), q.e[k], r);
    }
}

/* The element of a row, or the number whose bits are not 0. Loads both before choosing, so that the
 * load is not delayed by a branch. */
static __device__ __forceinline__ T either(bool row, T x, T number)
{
    return AS_T(AS_BITS(row ? x : K(0)) | AS_BITS(number));
}

/* Executes any linear step on a vector. Operations that do not depend on a come first. */
static __device__ __forceinline__ void linear(uint32_t form, vec &a, const vec &x, const vec &y, T s, T r)
{
    EACH(k, WIDTH)
    {
        const T p = either(form & LINEAR_P_IS_X, x.e[k], s), t = either(form & LINEAR_T_IS_Y, y.e[k], r),
                a_ = a.e[k];
        a.e[k] = FMA(p, SEL(form & LINEAR_Q_IS_Y, y.e[k], a_), SEL(form & LINEAR_T_IS_A, a_, t));
    }
}

/* fn(x, y, z) is the formula of the row. */
#define FN_OF(name, FORMULA, oracle, domain, ulp, ...)                                                       \
    static __device__ __forceinline__ T fn_##name(T x, T y, T z) { return FORMULA; }                         \
    enum { heavy_##name = (ulp) > 0.5 };
#ifdef T_INTEGER
#define DUET_ANY1(name, FORMULA, ...) FN_OF(name, FORMULA, , , 0)
#define DUET_ANY2                     DUET_ANY1
#define DUET_ANY3                     DUET_ANY1
#define DUET_INT1                     DUET_ANY1
#define DUET_INT2                     DUET_ANY1
#else
#define DUET_MAP1 FN_OF
#define DUET_MAP2 FN_OF
#define DUET_MAP3 FN_OF
#endif
#include <duet/ops.def>

#define PAIR(A, B)                                                                                           \
    case CODE_PAIR(A, B):                                                                                    \
        pair<A, B, V, STRIDE>(a, row_at(own, row_x(i)), row_at(own, row_y(i)), s, r);                        \
        break;
#define PAIRS(A)                                                                                             \
    PAIR(A, STEP_NONE)                                                                                       \
    PAIR(A, STEP_LOAD)                                                                                       \
    PAIR(A, STEP_ADD)                                                                                        \
    PAIR(A, STEP_SUB)                                                                                        \
    PAIR(A, STEP_RSUB)                                                                                       \
    PAIR(A, STEP_MUL)                                                                                        \
    PAIR(A, STEP_AXPY)                                                                                       \
    PAIR(A, STEP_SCALE) PAIR(A, STEP_HORNER) PAIR(A, STEP_ADDS) PAIR(A, STEP_MULS) PAIR(A, STEP_RSUBS)

/* A row without a mathematical function, in all vectors at once. OTHERS: number of operands beside
 * the accumulator. */
#define LIGHT_ROW(name, OTHERS, X, Y, Z)                                                                     \
    if (OTHERS > 0) fetch<V, STRIDE>(x, own, row_x(i), i.what & INTERP_X_NUMBER, s);                         \
    if (OTHERS > 1) fetch<V, STRIDE>(y, own, row_y(i), i.what & INTERP_Y_NUMBER, r);                         \
    EACH(j, V) EACH(k, WIDTH)                                                                                \
    {                                                                                                        \
        const T a_ = a.v[j].e[k], x_ = x.v[j].e[k], y_ = y.v[j].e[k];                                        \
        (void)x_, (void)y_;                                                                                  \
        a.v[j].e[k] = fn_##name(X, Y, Z);                                                                    \
    }
#define LIGHT_CASE(name, p, OTHERS, X, Y, Z)                                                                 \
    case CODE_ROWS + 3 * OP_##name + p: {                                                                    \
        LIGHT_ROW(name, OTHERS, X, Y, Z)                                                                     \
    } break;

/* Mathematical functions have kernels of their own, because they need more registers. GROUP vectors
 * are computed together; their code exists once for each vector. With fewer than V, a loop rotates
 * the vectors, because registers cannot be indexed. The accumulator is the first or second operand. */
template <T (*FORMULA)(T, T, T), int OTHERS, int GROUP, int V, int STRIDE>
static __device__ __forceinline__ void apply_function(const interp_code_T &i, uint32_t own, values<V> &a, T s,
                                                      bool a_is_second)
{
#pragma unroll 1
    for (int j = 0; j < V; j += GROUP) {
        values<GROUP> x;
        uint32_t second = a_is_second;
        if (OTHERS) {
            asm("" : "+r"(second)); /* otherwise the compiler makes two loops */
            fetch<GROUP, STRIDE>(x, row_at(own, j * STRIDE), row_x(i), i.what & INTERP_X_NUMBER, s);
        }
        EACH(g, GROUP) EACH(k, WIDTH)
        {
            const T a_ = a.v[g].e[k], x_ = OTHERS ? x.v[g].e[k] : a_;
            a.v[g].e[k] = FORMULA(second ? x_ : a_, second ? a_ : x_, x_);
        }
        const values<V> before = a;
        EACH(k, V) a.v[k] = before.v[(k + GROUP) % V];
    }
}
#define APPLY_FUNCTION(name, OTHERS, A_IS_SECOND)                                                            \
    if constexpr (GROUP > 0) apply_function<fn_##name, OTHERS, GROUP, V, STRIDE>(i, own, a, s, A_IS_SECOND);

static __device__ __forceinline__ bool op_takes_two(int reduction)
{
#define DUET_FOLD2(name, ...)                                                                                \
    if (reduction == OP_##name) return true;
#include <duet/ops.def>
    return false;
}

#define ALL_PAIRS                                                                                            \
    PAIRS(STEP_LOAD)                                                                                         \
    PAIRS(STEP_ADD)                                                                                          \
    PAIRS(STEP_SUB)                                                                                          \
    PAIRS(STEP_RSUB)                                                                                         \
    PAIRS(STEP_MUL)                                                                                          \
    PAIRS(STEP_AXPY) PAIRS(STEP_SCALE) PAIRS(STEP_HORNER) PAIRS(STEP_ADDS) PAIRS(STEP_MULS) PAIRS(STEP_RSUBS)

template <int V, int STRIDE>
static __device__ __forceinline__ void execute_pair(const interp_code_T &i, uint32_t own, values<V> &a, T s,
                                                    T r)
{
    switch (code_of(i)) {
        ALL_PAIRS
    default: break;
    }
}

template <int V, int STRIDE, class Sink>
static __device__ __forceinline__ void execute_reduce(const interp_code_T &i, uint32_t own,
                                                      const values<V> &a, Sink &sink, T s)
{
    values<V> x;
    if (op_takes_two(reduce_of(i))) fetch<V, STRIDE>(x, own, row_x(i), i.what & INTERP_X_NUMBER, s);
    sink.reduction(i, a, x);
}

/* p q + t; one of the three is a. */
template <int V, int STRIDE>
static __device__ __forceinline__ void multiply_add(values<V> &a, uint32_t x, uint32_t y, bool a_is_addend)
{
    EACH(j, V)
    {
        const vec x_ = shared_at(row_at(x, j * STRIDE)), y_ = shared_at(row_at(y, j * STRIDE));
        EACH(k, WIDTH)
        {
            const T a_ = a.v[j].e[k];
            a.v[j].e[k] = a_is_addend ? FMA(x_.e[k], y_.e[k], a_) : FMA(a_, x_.e[k], y_.e[k]);
        }
    }
}

/* Instructions that are neither pairs nor rows of ops.def. */
template <int V, int STRIDE, class Sink>
static __device__ __forceinline__ void execute_plain(const interp_code_T &i, uint32_t own, values<V> &a,
                                                     Sink &sink, T s)
{
    switch (code_of(i)) {
    case CODE_LOADS: splat(a, s); break;
    case CODE_LOAD: load_row<V, STRIDE>(a, row_at(own, row_x(i))); break;
    case CODE_SAVE: save_row<V, STRIDE>(row_at(own, row_x(i)), a); break;
    case CODE_STORE: sink.store(output_of(i), a); break;
    case CODE_REDUCE: execute_reduce<V, STRIDE>(i, own, a, sink, s); break;
    case CODE_MULADD: multiply_add<V, STRIDE>(a, row_at(own, row_x(i)), row_at(own, row_y(i)), false); break;
    case CODE_ADDMUL: multiply_add<V, STRIDE>(a, row_at(own, row_x(i)), row_at(own, row_y(i)), true); break;
    default: break;
    }
}

#ifdef T_INTEGER
/* Wraps like convert.h for any integer type, by shifts. */
template <int V> static __device__ __forceinline__ void wrap(values<V> &a, uint32_t how)
{
    const uint32_t by = (how & WRAP_SHIFT) - (64 - 8 * sizeof(T));
    EACH(j, V) EACH(k, WIDTH)
    {
        const BITS up = AS_BITS(a.v[j].e[k]) << by;
        const T in = how & WRAP_SIGNED ? (T)((SIGNED)up >> by) : (T)(up >> by);
        a.v[j].e[k] = how & WRAP_BOOL ? (T)(in != 0) : in;
    }
}
#endif

template <int V, int STRIDE, int GROUP>
static __device__ __forceinline__ void execute_row(const interp_code_T &i, uint32_t own, values<V> &a, T s,
                                                   T r)
{
    values<V> x, y;
    switch (code_of(i)) {
#define ROW_1(name, ...)                                                                                     \
    case CODE_ROWS + 3 * OP_##name:                                                                          \
        if constexpr (heavy_##name) {                                                                        \
            APPLY_FUNCTION(name, 0, false)                                                                   \
        } else {                                                                                             \
            LIGHT_ROW(name, 0, a_, a_, a_)                                                                   \
        }                                                                                                    \
        break;
#define ROW_2(name, ...)                                                                                     \
    case CODE_ROWS + 3 * OP_##name:                                                                          \
        if constexpr (!heavy_##name) {                                                                       \
            LIGHT_ROW(name, 1, a_, x_, x_)                                                                   \
            break;                                                                                           \
        } /* fall through: both cases share the code of a function */                                        \
    case CODE_ROWS + 3 * OP_##name + 1:                                                                      \
        if constexpr (heavy_##name) {                                                                        \
            APPLY_FUNCTION(name, 1, code_of(i) != CODE_ROWS + 3 * OP_##name)                                 \
        } else {                                                                                             \
            LIGHT_ROW(name, 1, x_, a_, a_)                                                                   \
        }                                                                                                    \
        break;
#define ROW_3(name, ...)                                                                                     \
    LIGHT_CASE(name, 0, 2, a_, x_, y_) LIGHT_CASE(name, 1, 2, x_, a_, y_) LIGHT_CASE(name, 2, 2, x_, y_, a_)
#ifdef T_INTEGER
    case CODE_WRAP: wrap(a, (uint32_t)s); break;
#define DUET_ANY1 ROW_1
#define DUET_ANY2 ROW_2
#define DUET_ANY3 ROW_3
#define DUET_INT1 ROW_1
#define DUET_INT2 ROW_2
#else
#define DUET_MAP1 ROW_1
#define DUET_MAP2 ROW_2
#define DUET_MAP3 ROW_3
#endif
#include <duet/ops.def>
    default: break;
    }
}

template <int V, int STRIDE, int GROUP, class Sink>
static __device__ __forceinline__ void execute_other(const interp_code_T &i, uint32_t own, values<V> &a,
                                                     Sink &sink, T s, T r)
{
    if (code_of(i) < CODE_ROWS) execute_plain<V, STRIDE>(i, own, a, sink, s);
    else execute_row<V, STRIDE, GROUP>(i, own, a, s, r);
}

template <int V, int STRIDE>
static __device__ __forceinline__ void save_after(const interp_code_T &i, uint32_t own, const values<V> &a)
{
    if (i.what & INTERP_SAVES) save_row<V, STRIDE>(row_at(own, saved_row(i) * (V * STRIDE)), a);
}

/* Runs the program on the elements of this thread. On return a holds the accumulator. GROUP: vectors
 * of which a mathematical function is computed at once, or 0 for programs without functions. */
template <int V, int STRIDE, int GROUP, class Sink>
static __device__ __forceinline__ void interpret_pairs(const interp_head &m, const interp_code_T *code,
                                                       uint32_t own, values<V> &a, Sink &sink)
{
    if (m.begins) load_row<V, STRIDE>(a, row_at(own, m.first));
#pragma unroll 1
    for (int pc = 0; pc < m.length; pc++) {
        const interp_code_T i = code[pc];
        const T s = number_of(i.s), r = number_of(i.r);
        if (code_of(i) < CODE_LOADS) execute_pair<V, STRIDE>(i, own, a, s, r);
        else execute_other<V, STRIDE, GROUP>(i, own, a, sink, s, r);
        save_after<V, STRIDE>(i, own, a);
    }
}

/* Executes N linear steps. No row changes in between, so that all loads can be issued at once. */
template <int N>
static __device__ __forceinline__ void run_linear(const interp_code_T *code, uint32_t own, vec &a)
{
    interp_code_T i[N];
    vec x[N], y[N];
    EACH(j, N) i[j] = code[j];
    EACH(j, N)
    {
        x[j] = shared_at(row_at(own, row_x(i[j])));
        y[j] = shared_at(row_at(own, row_y(i[j])));
    }
    EACH(j, N) linear(code_of(i[j]) - CODE_LINEAR, a, x[j], y[j], number_of(i[j].s), number_of(i[j].r));
}

/* Executes up to four of the linear steps; returns how many. */
static __device__ __forceinline__ int run_some(const interp_code_T *code, int count, uint32_t own, vec &a)
{
    if (count >= 4) {
        run_linear<4>(code, own, a);
        return 4;
    }
    if (count >= 2) {
        run_linear<2>(code, own, a);
        return 2;
    }
    run_linear<1>(code, own, a);
    return 1;
}

/* With one vector per thread there is little work to hide latency. */
template <int STRIDE, int GROUP, class Sink>
static __device__ __forceinline__ void interpret_linear(const interp_head &m, const interp_code_T *code,
                                                        uint32_t own, values<1> &a, Sink &sink)
{
    if (m.begins) a.v[0] = shared_at(row_at(own, m.first));
#pragma unroll 1
    for (int pc = 0, run; pc < m.length; pc += run ? run : 1) {
        const interp_code_T i = code[pc];
        run = is_linear(i) ? run_some(code + pc, run_of(i), own, a.v[0]) : 0;
        if (!run) execute_other<1, STRIDE, GROUP>(i, own, a, sink, number_of(i.s), number_of(i.r));
        save_after<1, STRIDE>(run ? code[pc + run - 1] : i, own, a);
    }
}

template <int V, int STRIDE, int GROUP, class Sink>
static __device__ __forceinline__ void interpret(const interp_head &m, const interp_code_T *code, vec *own,
                                                 values<V> &a, Sink &sink)
{
    if constexpr (V == 1) interpret_linear<STRIDE, GROUP>(m, code, address_of<V, GROUP>(own), a, sink);
    else interpret_pairs<V, STRIDE, GROUP>(m, code, address_of<V, GROUP>(own), a, sink);
}

#else
/* Programs that only move elements. */
template <int V, int STRIDE, int GROUP, class Sink>
static __device__ __forceinline__ void interpret(const interp_head &m, const interp_code_T *code, vec *own,
                                                 values<V> &a, Sink &sink)
{
    const uint32_t at = address_of<V, GROUP>(own);
    if (m.begins) load_row<V, STRIDE>(a, row_at(at, m.first));
#pragma unroll 1
    for (int pc = 0; pc < m.length; pc++) {
        const interp_code_T i = code[pc];
        if (code_of(i) == CODE_LOAD) load_row<V, STRIDE>(a, row_at(at, row_x(i)));
        else sink.store(output_of(i), a);
    }
}
#endif

#endif
