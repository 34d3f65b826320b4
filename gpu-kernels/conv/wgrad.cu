/* wgrad.cu - gradients with respect to 3 x 3 filters, with f32 products. Each thread block sums
 * over a part of the pixels and stores its partial sums. A second kernel adds these in an order
 * that depends on the shape alone. wgrad.h describes how the work is divided.
 *
 * For each group of four pixels, a thread loads the gradients of eight outputs and three rows of
 * six elements around the pixels. It then computes 288 products. Lanes of a warp have different
 * channels, so they load the same gradients, which is a broadcast. */
#include "async_copy.cuh"
#include "wgrad.h"

namespace
{

enum { OUTPUTS = 8, SIDE = 3, PIXELS = 4, SPAN = PIXELS + SIDE - 1 };
typedef float sums[OUTPUTS][SIDE][SIDE];
static_assert(sizeof(sums) == FILTER_SUMS * EACH && FILTER_THREADS % 32 == 0, "");

/* ---- contents of shared memory ---- */

template <int K, bool VECTORS>
static __device__ inline void load_operand(const filter_grad_args &a, const filter_work &e,
                                           const filter_strip &s, int stage)
{
    const float *image = (const float *)(K ? a.dy : a.x) + s.image * a.image[K];
    const int32_t width = K ? a.out_w : a.w;
#pragma unroll 1
    for (uint32_t u = threadIdx.x; u < filter_units(&a, K); u += FILTER_THREADS) {
        const filter_unit unit = filter_unit_of(&a, K, &e, &s, u);
        const int to = (stage + unit.place) * EACH;
        if (VECTORS)
            copy_early<16>(to, image + unit.from, unit.is && (uint32_t)unit.column < (uint32_t)width);
        else
#pragma unroll
            for (int i = 0; i < PIXELS; i++)
                copy_early<EACH>(to + i * EACH, image + unit.from + i * (int64_t)a.stride[K][2],
                                 unit.is && (uint32_t)(unit.column + i) < (uint32_t)width);
    }
}

static __device__ inline void load_strip(const filter_grad_args &a, const filter_work &e, uint32_t strip,
                                         int stage)
{
    const filter_strip s = filter_strip_of(&a, strip);
    if (a.vectors[0]) load_operand<0, true>(a, e, s, stage);
    else load_operand<0, false>(a, e, s, stage);
    if (a.vectors[1]) load_operand<1, true>(a, e, s, stage);
    else load_operand<1, false>(a, e, s, stage);
    copies_are_issued();
}

/* ---- the sums of a thread ---- */

/* The next three functions load by an address in shared memory, because the compiler would
 * recompute the address of a C++ access each time. The address comes from place_now, which keeps
 * the load behind the barrier that precedes place_now. */
static __device__ inline float fetch(uint32_t at)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at));
    return x;
}
static __device__ inline float2 fetch_two(uint32_t at)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at));
    return x;
}
static __device__ inline float4 fetch_four(uint32_t at)
{
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at));
    return x;
}

/* Loads the columns that the windows of four pixels cover. `at` is the address of the four elements
 * at the first pixel. */
template <int PAD> static __device__ inline void load_span(float x[SPAN], uint32_t at)
{
    const float4 own = fetch_four(at);
    if (PAD) {
        x[0] = fetch(at - EACH);
        x[5] = fetch(at + PIXELS * EACH);
        x[1] = own.x;
        x[2] = own.y;
        x[3] = own.z;
        x[4] = own.w;
    } else {
        const float2 next = fetch_two(at + PIXELS * EACH);
        x[0] = own.x;
        x[1] = own.y;
        x[2] = own.z;
        x[3] = own.w;
        x[4] = next.x;
        x[5] = next.y;
    }
}

template <int PAD>
static __device__ inline void add_four(const filter_grad_args &a, uint32_t x, uint32_t dy, sums &sum)
{
    const int apart = a.apart * EACH, pitch = a.pitch[0] * EACH;
    float w[SIDE][SPAN];
#pragma unroll
    for (int u = 0; u < SIDE; u++) load_span<PAD>(w[u], x + u * pitch);
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++, dy += apart) {
        const float4 d = fetch_four(dy);
        const float y[PIXELS] = { d.x, d.y, d.z, d.w };
#pragma unroll
        for (int p = 0; p < PIXELS; p++)
#pragma unroll
            for (int t = 0; t < SIDE * SIDE; t++)
                sum[o][t / SIDE][t % SIDE] = FMA(y[p], w[t / SIDE][p + t % SIDE], sum[o][t / SIDE][t % SIDE]);
    }
}

/* Adds the products of one pixel. The last group of a row may have fewer than four pixels. The
 * memory after them is undefined and may contain infinities, so add_four cannot process it. */
template <int PAD>
static __device__ inline void add_one(const filter_grad_args &a, uint32_t x, uint32_t dy, sums &sum)
{
    const int apart = a.apart * EACH, pitch = a.pitch[0] * EACH;
    float w[SIDE * SIDE];
#pragma unroll
    for (int t = 0; t < SIDE * SIDE; t++) w[t] = fetch(x + t / SIDE * pitch + (t % SIDE - PAD) * EACH);
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++, dy += apart) {
        const float y = fetch(dy);
#pragma unroll
        for (int t = 0; t < SIDE * SIDE; t++)
            sum[o][t / SIDE][t % SIDE] = FMA(y, w[t], sum[o][t / SIDE][t % SIDE]);
    }
}

/* The addresses of a thread's operands in shared memory. The asm statement makes the compiler
 * compute them once; otherwise it would recompute them for every group. */
struct addresses {
    uint32_t x, dy;
};
static __device__ inline addresses place_now(const filter_grad_args &a, int stage)
{
    const filter_share t = filter_share_of(&a, threadIdx.x);
    const filter_offsets from = filter_offsets_of(&a, &t);
    const uint32_t begin = (uint32_t)__cvta_generic_to_shared(shared);
    addresses at = { begin + (uint32_t)(stage + from.x) * EACH, begin + (uint32_t)(stage + from.dy) * EACH };
    asm volatile("" : "+r"(at.x), "+r"(at.dy)::"memory");
    return at;
}

template <int PAD>
static __device__ inline void add_strip(const filter_grad_args &a, uint32_t strip, int stage, sums &sum)
{
    const addresses from = place_now(a, stage);
    const filter_strip s = filter_strip_of(&a, strip);
#pragma unroll 1
    for (uint32_t g = filter_share_of(&a, threadIdx.x).split; g < filter_groups(&a, &s); g += a.splits) {
        const filter_group of = filter_group_of(&a, &s, g);
        const uint32_t x = from.x + (uint32_t)of.x * EACH, dy = from.dy + (uint32_t)of.dy * EACH;
        if (of.pixels == PIXELS) add_four<PAD>(a, x, dy, sum);
        else
#pragma unroll 1
            for (int p = 0; p < of.pixels; p++) add_one<PAD>(a, x + p * EACH, dy + p * EACH, sum);
    }
}

/* ---- results ---- */

/* Stores the sums of the thread block. Threads that share a task first add their sums, in the order
 * of their numbers. */
static __device__ inline void store_sums(const filter_grad_args &a, const sums &sum)
{
    float *part = (float *)a.part + blockIdx.x * (int64_t)a.sums.by;
    if (a.splits == 1) {
#pragma unroll
        for (int i = 0; i < FILTER_SUMS; i++) part[i * FILTER_THREADS + threadIdx.x] = (&sum[0][0][0])[i];
        return;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < FILTER_SUMS; i++)
        at_shared((i * FILTER_THREADS + (int)threadIdx.x) * EACH) = (&sum[0][0][0])[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < a.sums.by; i += FILTER_THREADS) {
        const uint32_t own = i >> (a.channel_bits + a.eight_bits), first = own * FILTER_THREADS + i % a.tasks;
        float all = 0;
        for (uint32_t k = 0; k < a.splits; k++) all += at_shared((int)(first + k * a.tasks) * EACH);
        part[i] = all;
    }
}

template <int PAD> KERNEL(FILTER_THREADS, 2) add_products(const __grid_constant__ filter_grad_args a)
{
    const filter_work e = filter_work_of(&a, blockIdx.x);
    sums sum = {};
    int stage = 0;
    take_turn();
    load_strip(a, e, e.first, stage);
    for (uint32_t s = e.first; s < e.end; s++, stage = a.stage - stage) {
        wait_for_copies();
        __syncthreads();
        if (s + 1 < e.end) load_strip(a, e, s + 1, a.stage - stage);
        add_strip<PAD>(a, s, stage, sum);
    }
    let_next_begin();
    store_sums(a, sum);
}

/* Adds the partial sums. Neighbouring lanes have neighbouring elements. Each warp adds some of the
 * parts, and the first warp then adds the results of all warps. */
KERNEL(FILTER_THREADS) join(const __grid_constant__ filter_grad_args a)
{
    constexpr int WARPS = FILTER_THREADS / FILTER_ACROSS;
    __shared__ float of[WARPS][FILTER_ACROSS];
    const uint32_t lane = threadIdx.x % FILTER_ACROSS, warp = threadIdx.x / FILTER_ACROSS,
                   i = blockIdx.x * FILTER_ACROSS + lane, tile = quotient(i, a.sums);
    const int64_t element = tile < a.filters ? filter_element(&a, tile, i - tile * a.sums.by) : -1;
    const float *part =
        (const float *)a.part + tile * (int64_t)a.parts.by * a.sums.by + (i - tile * a.sums.by);
    float sum = 0;
    take_turn();
    let_next_begin();
    if (element >= 0)
#pragma unroll 8
        for (uint32_t p = warp; p < a.parts.by; p += WARPS) sum += part[p * (int64_t)a.sums.by];
    of[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || element < 0) return;
#pragma unroll
    for (int w = 1; w < WARPS; w++) sum += of[w][lane];
    ((float *)a.out)[element] = sum;
}

} // namespace

const void *filter_grad_kernel_f32(int pad)
{
    return pad ? (const void *)add_products<1> : (const void *)add_products<0>;
}

const void *filter_join_kernel_f32(void) { return (const void *)join; }
