/* async_copy.cuh - asynchronous copies into shared memory, which proceed while a thread computes. */
#ifndef ASYNC_COPY_CUH
#define ASYNC_COPY_CUH

#include "device.cuh"

namespace
{

/* Addresses in shared memory are counted in bytes. */
extern __shared__ float4 shared[];
enum { EACH = sizeof(float) };
template <class A = float> static __device__ inline A &at_shared(int place)
{
    return *(A *)((char *)shared + place);
}

/* Writes zeros if there is no source. */
template <int BYTES> static __device__ inline void copy_early(int to, const float *from, bool is)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared) + (uint32_t)to;
    asm volatile(
        "{.reg .pred not; setp.eq.u32 not, %3, 0; cp.async.ca.shared.global [%0], [%1], %2, not;}" ::"r"(at),
        "l"(from), "n"(BYTES), "r"((uint32_t)is)
        : "memory");
}

static __device__ inline void copies_are_issued() { asm volatile("cp.async.commit_group;" ::: "memory"); }
static __device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

} // namespace
#endif
