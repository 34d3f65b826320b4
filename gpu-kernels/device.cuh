/* device.cuh - what every kernel stands on. A .cu file is compiled once for each element type, with T_f32 or T_f64 defined. */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <duet/duet.h>
extern "C" {
#include "launch.h"
}
#include "fold.h"
#define FN_DECL static __device__ inline
#include "formula.h"

#ifdef T_f32
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

static __device__ inline uint32_t quotient(uint32_t n, const divider32 &d) { return (__umulhi(n, d.magic) + n) >> d.shift; }

static __device__ inline uint64_t quotient(uint64_t n, const divider64 &d) { return (__umul64hi(n, d.magic) + n) >> d.shift; }

#endif
