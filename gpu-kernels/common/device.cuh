/* device.cuh - definitions that every kernel uses. A .cu file is compiled once for each element
 * type, with T_f32 or T_f64 defined. Files of the interpreter are also compiled with T_i64, T_u64
 * or T_i32, and with T_u8 or T_u16 for programs that only move elements. */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <duet/duet.h>
extern "C" {
#include "fast_divide.h"
#include "launch.h"
}
#include "reduce_order.h"
#define FN_DECL static __device__ inline
#if defined T_f32 || defined T_f64
#include "scalar_ops.h"
#else
#include "integer.cuh"
#endif

/* minimum and maximum of IEEE 754-2019 in one instruction; equal to those of scalar_ops.h. */
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
/* With TEMPLATE defined, the file is compiled to templates of PTX (formula.cuh). KERNEL then declares an
 * inlined function, which TEMPLATE_OF calls. */
#ifdef TEMPLATE
#define KERNEL(...)    static __device__ __forceinline__ void
#define ARGUMENT(type) const type &
#else
#define KERNEL(...)    static __global__ void __launch_bounds__(__VA_ARGS__)
#define ARGUMENT(type) const __grid_constant__ type
#endif

/* Elements in 16 bytes, loaded and stored in one access. SMALL: one element, for arrays so small
 * that there are more threads than work. */
#ifdef SMALL
enum { WIDTH = 1 };
#else
enum { WIDTH = 16 / sizeof(T) };
#endif
struct alignas(WIDTH * sizeof(T)) vec {
    T e[WIDTH];
};

/* Allows the next kernel to start before this one ends (programmatic dependent launch). It waits in
 * take_turn. */
static __device__ inline void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Waits until the previous kernel has ended. A kernel that was launched early calls it before it
 * accesses memory. */
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
