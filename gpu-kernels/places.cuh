/* places.cuh - where elements are, for kernels of any element type. */
#ifndef PLACES_CUH
#define PLACES_CUH

#include "device.cuh"
extern "C" {
#include "orders.h"
}

static __device__ inline int64_t place_of(const axes &a, uint64_t i)
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

#endif
