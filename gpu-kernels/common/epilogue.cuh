/* epilogue.cuh - epilogues of products and convolutions: the rows DUET_FINISHED of fused.def, and any
 * formula of the result.
 *
 * Kernels are compiled twice: to machine code; and, with TEMPLATE defined, to PTX with a placeholder for the
 * formula (codegen/ptx_write.h). */
#ifndef EPILOGUE_CUH
#define EPILOGUE_CUH

#include "device.cuh"
#include "gemm_kernels.h"

/* act is the same for all threads. softmax needs its whole row; the caller ensures that. */
static __device__ inline T finished(T x, int act)
{
    switch (act) {
    case OP_relu: return MAP(relu, x);
    case OP_sigmoid: return MAP(sigmoid, x);
    case OP_tanh: return MAP(tanh, x);
    default: return x;
    }
}

/* bias is NULL if there is none. */
static __device__ inline T bias_at(const product_args &s, int column)
{
    return s.bias ? ((const T *)s.bias)[column * s.bias_stride] : K(0);
}

/* The formula of result x, which is element e of all results; and the same for four. */
#ifdef TEMPLATE
#ifdef T_f64
#define RESULT(x) "=d"(x)
#define GIVEN(x)  "d"(x)
#else
#define RESULT(x) "=f"(x)
#define GIVEN(x)  "f"(x)
#endif
static __device__ __forceinline__ T formula_of(T x, int64_t e)
{
    T y;
    asm volatile("// duet:1 %0 %1 %2" : RESULT(y) : GIVEN(x), "l"(e));
    return y;
}
static __device__ __forceinline__ void apply_formula(T *x, int64_t e)
{
    T y[4];
    asm volatile("// duet:4 %0 %1 %2 %3 %4 %5 %6 %7 %8"
                 : RESULT(y[0]), RESULT(y[1]), RESULT(y[2]), RESULT(y[3])
                 : GIVEN(x[0]), GIVEN(x[1]), GIVEN(x[2]), GIVEN(x[3]), "l"(e));
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = y[i];
}
#else
static __device__ __forceinline__ T formula_of(T x, int64_t e) { return x; }
static __device__ __forceinline__ void apply_formula(T *x, int64_t e) {}
#endif

/* The result must exist. */
static __device__ inline T result_of(const product_args &s, T sum, int64_t row, int column)
{
    const T scaled = (T)s.alpha * sum;
    return formula_of(s.bias ? finished(scaled + bias_at(s, column), s.act) : scaled, row * s.n + column);
}

/* A template: the kernel `name`, whose body is a function. */
#define TEMPLATE_OF(name, bounds, argument, ...)                                                             \
    extern "C" __global__ void __launch_bounds__ bounds name(const __grid_constant__ argument s)             \
    {                                                                                                        \
        __VA_ARGS__(s);                                                                                      \
    }

#endif
