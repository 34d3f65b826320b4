/* gather_scatter.cuh - offsets of elements, for kernels of any element type. */
#ifndef GATHER_SCATTER_CUH
#define GATHER_SCATTER_CUH

#include "device.cuh"
extern "C" {
#include "index_kernels.h"
}

/* Returns the offset of element i, in row-major order. */
static __device__ inline int64_t element_offset(const axes &a, uint64_t i)
{
    int64_t at = 0;
#pragma unroll 1
    for (int d = a.rank; d-- > 0;) {
        const uint64_t q = d ? quotient(i, a.size[d]) : 0;
        at += (int64_t)(i - q * a.size[d].by) * a.stride[d];
        i = q;
    }
    return at;
}

static __device__ inline int64_t thread_index() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }

/* The integer type that holds the bits of an element as a sort key, and order_key of these bits. */
template <class E> struct key_type {
    typedef uint32_t type;
};
template <> struct key_type<uint64_t> {
    typedef uint64_t type;
};

template <class Key> static __device__ inline Key key_by(const key_rule &rule, Key x)
{
    const Key sign = (Key)rule.sign, size = x & (sign - 1);
    if (!rule.infinity) return x ^ sign;
    if (size > (Key)rule.infinity) return sign | (sign - 1);
    if (!size) return sign;
    return x & sign ? sign - size : sign + size;
}

#endif
