/* formula.cuh - a formula that a product or a convolution applies to its results before it stores them, or
 * that computes the elements of an operand. Kernels are compiled to machine code, without a formula; with
 * TEMPLATE defined, to PTX with a placeholder for a formula of the results (codegen/ptx_write.h); some also
 * with TEMPLATE and OPERAND defined, with a placeholder for a formula of an operand. */
#ifndef FORMULA_CUH
#define FORMULA_CUH

#include "device.cuh"

/* How many results a thread computes before it stores the first. With several, the formula's reads overlap;
 * otherwise each waits for the store before it. */
#if defined TEMPLATE && !defined OPERAND
enum { FORMULA_AHEAD = 4 };
#else
enum { FORMULA_AHEAD = 1 };
#endif

/* Does a formula compute an operand here? */
#ifdef OPERAND
enum { IS_OPERAND = true };
#else
enum { IS_OPERAND = false };
#endif

#ifdef T_f64
#define RESULT(x) "=d"(x)
#define GIVEN(x)  "d"(x)
#else
#define RESULT(x) "=f"(x)
#define GIVEN(x)  "f"(x)
#endif

/* Apply the formula to one result, or to N (2 or 4) neighbouring ones. e is the number of the first one in
 * the output. It must be in bounds, because the formula reads its operands there. */
#if defined TEMPLATE && !defined OPERAND
static __device__ __forceinline__ T formula_of(T x, int64_t e)
{
    T y;
    asm volatile("// duet:1 %0 %1 %2" : RESULT(y) : GIVEN(x), "l"(e));
    return y;
}
template <int N> static __device__ __forceinline__ void apply_formula(T *x, int64_t e)
{
    T y[N];
    static_assert(N == 2 || N == 4, "");
    if constexpr (N == 2)
        asm volatile("// duet:2 %0 %1 %2 %3 %4"
                     : RESULT(y[0]), RESULT(y[1])
                     : GIVEN(x[0]), GIVEN(x[1]), "l"(e));
    else
        asm volatile("// duet:4 %0 %1 %2 %3 %4 %5 %6 %7 %8"
                     : RESULT(y[0]), RESULT(y[1]), RESULT(y[2]), RESULT(y[3])
                     : GIVEN(x[0]), GIVEN(x[1]), GIVEN(x[2]), GIVEN(x[3]), "l"(e));
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = y[i];
}
#else
static __device__ __forceinline__ T formula_of(T x, int64_t e) { return x; }
template <int N> static __device__ __forceinline__ void apply_formula(T *x, int64_t e) {}
#endif

/* Reads element e of an operand that begins at p, or a vector of elements that begins with it; or
 * computes them by the formula. Returns zeros if they are not in bounds. The formula is then evaluated at
 * element 0, and its result discarded: without branches, the reads for several vectors overlap. The
 * operand is not empty. */
template <typename V> static __device__ __forceinline__ V operand_at(const void *p, int64_t e, bool in_bounds)
{
#ifdef OPERAND
    constexpr int N = sizeof(V) / sizeof(T);
    union {
        V v;
        T x[N];
    } to;
    const int64_t at = in_bounds ? e : 0;
    static_assert(N == 1 || N == 2 || N == 4, "");
    if constexpr (N == 1) asm volatile("// duet:1 %0 %1" : RESULT(to.x[0]) : "l"(at));
    else if constexpr (N == 2)
        asm volatile("// duet:2 %0 %1 %2" : RESULT(to.x[0]), RESULT(to.x[N - 1]) : "l"(at));
    else
        asm volatile("// duet:4 %0 %1 %2 %3 %4"
                     : RESULT(to.x[0]), RESULT(to.x[1]), RESULT(to.x[2]), RESULT(to.x[N - 1])
                     : "l"(at));
#pragma unroll
    for (int i = 0; i < N; i++) to.x[i] = in_bounds ? to.x[i] : K(0);
    return to.v;
#else
    if (in_bounds) return *(const V *)((const T *)p + e);
    return V{};
#endif
}

/* Defines the kernel `name` of a template. It calls the function in the last argument. */
#define TEMPLATE_OF(name, bounds, argument, ...)                                                             \
    extern "C" __global__ void __launch_bounds__ bounds name(const __grid_constant__ argument s)             \
    {                                                                                                        \
        __VA_ARGS__(s);                                                                                      \
    }

#endif
