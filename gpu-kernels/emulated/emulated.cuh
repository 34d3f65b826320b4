/* emulated.cuh - f32 numbers as pairs of f16, and wrappers of the instructions of compute capability
 * 9: barriers, asynchronous copies, and products of tensor cores by groups of four warps.
 *
 * A power of two s scales a matrix so that its largest magnitude is in 2^14 .. 2^15. Each row of
 * operand a has its own s, which scales its largest magnitude to 2^11 .. 2^15. Then x s = high + low
 * + rest, where high and low are f16 and |rest| is at most the larger of 2^-22 |x s| and 2^-25. A
 * product is high high + low high + high low. The omitted terms are as small as the rests. */
#ifndef EMULATED_CUH
#define EMULATED_CUH

#include "device.cuh"
extern "C" {
#include "emulated.h"
}
#include <cuda_fp16.h>

/* ---- pairs ---- */

static __device__ inline uint32_t bits_of(float x) { return __float_as_uint(x); }

/* Returns the scale for numbers up to `most`, a power of two, as a biased exponent. */
enum { SCALE_MOST = 253 };
static __device__ inline int scale_exponent(float most)
{
    const int e = (int)(bits_of(most) >> 23 & 255);
    return e == 255 ? 127 : min(268 - e, (int)SCALE_MOST);
}
static __device__ inline float power_of_two(int biased) { return __uint_as_float((uint32_t)biased << 23); }

/* The factors that undo both scales. Their product may be out of the range of f32. Both are at least
 * 1 or both are at most 1, so an intermediate result overflows only if the result does. */
struct unscaling {
    float first, then;
};
static __device__ inline unscaling unscaling_of(int exponent_of_a, int exponent_of_b)
{
    const int e = 254 - exponent_of_a - exponent_of_b, half = e / 2;
    return { power_of_two(127 + half), power_of_two(127 + e - half) };
}
static __device__ inline float unscaled(float sum, unscaling u) { return sum * u.first * u.then; }

/* Rounds two numbers to f16, with x in the lower half of the result. */
static __device__ inline uint32_t rounded_pair(float x, float y)
{
    uint32_t h;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(y), "f"(x));
    return h;
}
static __device__ inline void split_pair(float x, float y, uint32_t &high, uint32_t &low)
{
    high = rounded_pair(x, y);
    const float2 back = __half22float2(*(const __half2 *)&high);
    low = rounded_pair(x - back.x, y - back.y);
}

/* Operations on two f16 at once. larger_halves: the larger of x and |y| in each half. has_half_from:
 * is one of the halves, as bits, at least `least`? */
enum { HALF_TOP = 0x7800 }; /* 2^15 in f16 */
static __device__ inline uint32_t larger_halves(uint32_t x, uint32_t y)
{
    uint32_t z;
    asm("{ .reg .b32 a; abs.f16x2 a, %2; max.f16x2 %0, %1, a; }" : "=r"(z) : "r"(x), "r"(y));
    return z;
}
static __device__ inline bool has_half_from(uint32_t x, uint32_t least)
{
    return x >= least << 16 || (x & 0xffff) >= least;
}

static __device__ inline float finite_magnitude(float x) { return fabsf(x) < INF ? fabsf(x) : 0; }

/* Returns the largest finite magnitude of N numbers. The second loop runs only if there is an
 * infinity. */
template <int N> static __device__ inline float magnitude_of(const float (&x)[N])
{
    float most = 0;
#pragma unroll
    for (int i = 0; i < N; i++) most = fmaxf(most, fabsf(x[i]));
    if (most < INF) return most;
    most = 0;
#pragma unroll
    for (int i = 0; i < N; i++) most = fmaxf(most, finite_magnitude(x[i]));
    return most;
}

/* Returns the largest value of all threads of a thread block. *slot is in shared memory and must be
 * 0 before the call. */
static __device__ inline float largest(float mine, uint32_t *slot)
{
    const uint32_t all = __reduce_max_sync(~0u, bits_of(mine));
    if (threadIdx.x % 32 == 0) atomicMax(slot, all);
    __syncthreads();
    return __uint_as_float(*(volatile uint32_t *)slot);
}

/* ---- barriers in shared memory ---- */

static __device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ inline void barrier_make(uint32_t at, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
/* Makes initialised barriers visible to copies, in this thread block and in the cluster. */
static __device__ inline void barriers_made()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ inline void barrier_arrive(uint32_t at)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(at) : "memory");
}
/* Arrives at the barrier, which then also waits until copies have written this number of bytes. */
static __device__ inline void barrier_expect(uint32_t at, int bytes)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(at),
                 "r"(bytes)
                 : "memory");
}
static __device__ inline void barrier_wait(uint32_t at, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], "
                 "%1;\n@!done bra again;\n}" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

/* Waits for data that other thread blocks send. */
static __device__ inline void barrier_wait_for_cluster(uint32_t at, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
                 "done, [%0], %1;\n@!done bra "
                 "again;\n}" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

/* The address in thread block `rank` of the cluster that corresponds to `at` in this one. */
static __device__ inline uint32_t at_neighbour(uint32_t at, int rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

/* Call it before tensor cores or copies access memory that this thread wrote. */
static __device__ inline void fence_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- copies by one thread, which signal a barrier ---- */

/* Copies contiguous bytes; both addresses are aligned to 16 bytes. */
static __device__ inline void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

/* Copies a box of a described matrix, with zeros where it has no elements. */
static __device__ inline void copy_box(uint32_t to, const void *map, int column, int row, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

static __device__ inline void copy_box_of_image(uint32_t to, const void *map, int column, int row,
                                                int64_t image, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%2, %3, 0, %4}], [%5];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"((int)image), "r"(barrier)
                 : "memory");
}

/* ---- products ---- */

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WARPGROUPS 1
#endif

/* Returns the descriptor of a matrix in shared memory with rows of 128 bytes, in the layout that
 * CUDA calls 128-byte swizzle. */
static __device__ inline uint64_t described(uint32_t at)
{
    return (uint64_t)(at >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

static __device__ inline void products_begin()
{
#ifdef HAS_WARPGROUPS
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
static __device__ inline void products_end()
{
#ifdef HAS_WARPGROUPS
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int LEFT> static __device__ inline void products_wait()
{
#ifdef HAS_WARPGROUPS
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#endif
}

template <int REGISTERS> static __device__ inline void take_registers()
{
#ifdef HAS_WARPGROUPS
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}
template <int REGISTERS> static __device__ inline void leave_registers()
{
#ifdef HAS_WARPGROUPS
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

/* Prevents the compiler from moving uses of the sums before the wait. */
template <int N> static __device__ inline void keep_after_wait(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define R4(a, i)  "+f"(a[i]), "+f"(a[i + 1]), "+f"(a[i + 2]), "+f"(a[i + 3])
#define R16(a, i) R4(a, i), R4(a, i + 4), R4(a, i + 8), R4(a, i + 12)
#define R32(a, i) R16(a, i), R16(a, i + 16)

/* Computes d = a b, or d + a b if `onto` is true, for 64 rows, COLUMNS columns and an inner axis of
 * 16. a is in registers, b in shared memory with a descriptor. */
template <int COLUMNS> struct products;
template <> struct products<128> {
    static __device__ inline void add(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool onto)
    {
#ifdef HAS_WARPGROUPS
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                     "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}"
                     : R32(d, 0), R32(d, 32)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)onto));
#endif
    }
};
template <> struct products<64> {
    static __device__ inline void add(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool onto)
    {
#ifdef HAS_WARPGROUPS
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                     "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
                     : R32(d, 0)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)onto));
#endif
    }
};
#undef R4
#undef R16
#undef R32

/* Returns the descriptor of a matrix without swizzle, which consists of blocks of 8 rows of 16 bytes.
 * `along` and `across` are the distances between blocks along the inner and the outer axis, in units
 * of 16 bytes. */
static __device__ inline uint64_t described_plain(uint32_t at, uint32_t along, uint32_t across)
{
    uint64_t d;
    asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(at + (along << 16)), "r"(across));
    return d;
}

#endif
