/* epilogue.cuh - epilogues of products: the rows DUET_FINISHED of fused.def, and a formula. */
#ifndef EPILOGUE_CUH
#define EPILOGUE_CUH

#include "formula.cuh"
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

/* row and column must be in bounds, because the formula reads its operands there. */
static __device__ inline T result_of(const product_args &s, T sum, int64_t row, int column)
{
    const T scaled = (T)s.alpha * sum;
    return formula_of(s.bias ? finished(scaled + bias_at(s, column), s.act) : scaled, row * s.n + column);
}

#endif
