/* device.cuh - what every kernel stands on. A .cu file is compiled once for each element type, with T_f32 or T_f64 defined; those of the
 * expression machine also with T_i64, T_u64 or T_i32, and, for what only moves, with T_u8 or T_u16. */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <duet/duet.h>
extern "C" {
#include "launch.h"
}
#include "reduce_order.h"
#define FN_DECL static __device__ inline
#if defined T_f32 || defined T_f64
#include "scalar_ops.h"
#else
#include "integer.cuh"
#endif

/* In one instruction: IEEE 754-2019's, as scalar_ops.h has them. */
#ifdef T_f32
#if __CUDA_ARCH__ >= 800
static __device__ inline float minimum_at_once(float a, float b)
{
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
static __device__ inline float maximum_at_once(float a, float b)
{
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#undef MINIMUM
#undef MAXIMUM
#define MINIMUM(a, b) minimum_at_once(a, b)
#define MAXIMUM(a, b) maximum_at_once(a, b)
#endif
#endif
#if defined T_f32 || defined T_i32
#define FOR_TYPE(macro) macro##_f32
#else
#define FOR_TYPE(macro) macro##_f64
#endif
#define KERNEL(...) static __global__ void __launch_bounds__(__VA_ARGS__)

/* Elements in 16 bytes, and those as one access. With SMALL defined, one element: for arrays so small that threads are plenty. */
#ifdef SMALL
enum { WIDTH = 1 };
#else
enum { WIDTH = 16 / sizeof(T) };
#endif
struct alignas(WIDTH * sizeof(T)) vec {
    T e[WIDTH];
};

/* The next kernel may begin where there is room; it waits in its turn. */
static __device__ inline void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Before a kernel that was launched early touches memory: until the one before it has ended. */
static __device__ inline void take_turn()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ inline uint32_t quotient(uint32_t n, const divider32 &d)
{
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

static __device__ inline uint64_t quotient(uint64_t n, const divider64 &d)
{
    return (__umul64hi(n, d.magic) + n) >> d.shift;
}

#endif
