/* pair_conv.cu - convolutions with windows of 3 x 3 by tensor cores, of elements as pairs of f16, what is added to them, relu and pooling by 2
 * in one pass.
 *
 * A thread block goes over regions of the results. It brings the elements that a region needs into shared memory as pairs, scaled by the
 * largest of them: 8 slots of 2 bytes for each pixel, in planes. Any block of ROWS x 8 results is then a product whose right operand is found
 * in there, for each place in the window, by its address alone. SLOTS: of up to 4 channels high and low parts share a pixel's slots, and two
 * places in the window are taken at once; of up to 8 they lie in two planes; of up to 16 in four.
 * The left operand is the filters, in registers: of each eight rows of high parts, then of low parts of the same, so that a thread has both
 * sums of an output, and four results of it that are pooled. */
#include "pair.cuh"

namespace
{

enum { THREADS = PAIR_CONV_THREADS, OUTPUTS = PAIR_CONV_OUTPUTS, PIXEL = 16, TAPS = 9, ACROSS = 8 };

template <int SLOTS_, int ROWS_, bool POOLED_> struct form {
    static constexpr int SLOTS = SLOTS_, ROWS = ROWS_, RESULTS = ROWS * ACROSS; /* of a block */
    static constexpr bool POOLED = POOLED_;
    static constexpr int CHANNELS = SLOTS == 16 ? 8 : SLOTS; /* of a pixel that a thread brings */
    static constexpr int PLANES = SLOTS == 4 ? 1 : SLOTS / 4, STEPS = SLOTS == 4 ? 5 : TAPS;
    static constexpr int HELD = PAIR_CONV_HELD(SLOTS);
    static constexpr bool EARLY = SLOTS == 4; /* a region's elements come during the one before: there are registers for them */
};

extern __shared__ float4 shared[];

/* Planes, then results. */
static __device__ inline int plane_bytes(const pair_conv_args &a) { return (int)a.pixels * PIXEL; }
template <class f> static __device__ inline float *results_at(const pair_conv_args &a)
{
    return (float *)((char *)shared + f::PLANES * plane_bytes(a));
}

/* The largest of what the threads of a block have. */
static __device__ inline float largest(float mine, uint32_t *slot)
{
    const uint32_t all = __reduce_max_sync(~0u, bits_of(mine));
    if (threadIdx.x % 32 == 0) atomicMax(slot, all);
    __syncthreads();
    return __uint_as_float(*(volatile uint32_t *)slot);
}

/* ---- filters ---- */

/* A thread's fragments: rows g, g + 8 of a warp's 16 are output g; elements 2 t, 2 t + 1, and 8 more. */
template <class f> using fragments = uint32_t[f::STEPS][4];

template <class f> static __device__ inline float filter_at(const pair_conv_args &a, int o, int step, int k)
{
    const int c = f::SLOTS == 4 ? k % 4 : f::SLOTS == 8 ? k % 8 : k, tap = f::SLOTS == 4 ? 2 * step + k / 8 : step;
    if (o >= a.m || c >= a.c || tap >= TAPS) return 0;
    return ((const float *)a.filters)[o * a.filter[0] + c * a.filter[1] + tap / 3 * a.filter[2] + tap % 3 * a.filter[3]];
}

template <class f> static __device__ inline void load_filters(const pair_conv_args &a, int o, fragments<f> &w)
{
    const float scale = power_of_two(scale_exponent(*a.largest));
#pragma unroll
    for (int step = 0; step < f::STEPS; step++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int k = threadIdx.x % 4 * 2 + i * 8;
            split_pair(filter_at<f>(a, o, step, k) * scale, filter_at<f>(a, o, step, k + 1) * scale, w[step][2 * i],
                       w[step][2 * i + 1]);
        }
}

/* ---- elements ---- */

/* A region: its image, and its first row and column of the results before they are pooled. */
struct region {
    int64_t image;
    int32_t row, column;
};

template <class f> static __device__ inline region region_of(const pair_conv_args &a, uint32_t s)
{
    const uint32_t line = quotient(s, a.across), image = quotient(line, a.down);
    return { (int64_t)image, (int32_t)(line - image * a.down.by) * a.blocks_down * f::ROWS,
             (int32_t)(s - line * a.across.by) * a.blocks_across * ACROSS };
}

/* What a thread brings: CHANNELS of some pixels; of 16 channels the second eight are pixels of their own. */
template <class f> using held = float[f::HELD][f::CHANNELS];

template <class f> static __device__ inline void load(const pair_conv_args &a, const region &r, held<f> &x)
{
    const float *image = (const float *)a.in + r.image * a.image;
#pragma unroll
    for (int j = 0; j < f::HELD; j++) {
        const uint32_t i = threadIdx.x + j * THREADS, half = f::SLOTS == 16 && i >= a.pixels, p = i - half * a.pixels;
        const uint32_t line = quotient(p, a.by_pitch);
        const int y = r.row - a.pad[0] + (int)line, z = r.column - a.pad[1] + (int)(p - line * a.by_pitch.by);
        const bool inside = p < a.pixels && (uint32_t)y < (uint32_t)a.h && (uint32_t)z < (uint32_t)a.w;
        const float *from = image + (int64_t)y * a.row + z + (int64_t)(half * 8) * a.channel;
#pragma unroll
        for (int c = 0; c < f::CHANNELS; c++) {
            x[j][c] = inside && (int)half * 8 + c < a.c ? *from : 0;
            from += a.channel;
        }
    }
}

static __device__ inline void store_slots(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

template <class f> static __device__ inline void store(const pair_conv_args &a, const held<f> &x, float scale)
{
    const int plane = plane_bytes(a);
#pragma unroll
    for (int j = 0; j < f::HELD; j++) {
        const uint32_t i = threadIdx.x + j * THREADS, half = f::SLOTS == 16 && i >= a.pixels, p = i - half * a.pixels;
        uint32_t high[4], low[4];
        if (p >= a.pixels) continue;
#pragma unroll
        for (int c = 0; c < f::CHANNELS; c += 2) split_pair(x[j][c] * scale, x[j][c + 1] * scale, high[c / 2], low[c / 2]);
        const uint32_t at = place_of(shared) + half * plane + p * PIXEL;
        if (f::SLOTS == 4) {
            store_slots(at, high[0], high[1], low[0], low[1]);
        } else {
            store_slots(at, high[0], high[1], high[2], high[3]);
            store_slots(at + f::PLANES / 2 * plane, low[0], low[1], low[2], low[3]);
        }
    }
}

template <class f> static __device__ inline float magnitude_of(const held<f> &x)
{
    float most = 0;
#pragma unroll
    for (int j = 0; j < f::HELD; j++)
#pragma unroll
        for (int c = 0; c < f::CHANNELS; c++) most = fmaxf(most, finite_magnitude(x[j][c]));
    return most;
}

/* ---- products ---- */

/* from: the first element of a block's first result. */
template <class f>
static __device__ inline void multiply(const pair_conv_args &a, uint32_t from, const fragments<f> &w, float (&d)[f::RESULTS / 2])
{
    const int plane = plane_bytes(a), line = a.pitch * PIXEL;
    products_begin();
#pragma unroll
    for (int step = 0; step < f::STEPS; step++) {
        const int tap = f::SLOTS == 4 ? 2 * step : step, next = tap + 1 < TAPS ? tap + 1 : tap;
        const int at = tap / 3 * line + tap % 3 * PIXEL, along = f::SLOTS == 4 ? next / 3 * line + next % 3 * PIXEL - at : plane;
        products<f::RESULTS>::add(d, w[step], described_plain(from + at, along, line), step > 0);
        if (f::SLOTS == 16) products<f::RESULTS>::add(d, w[step], described_plain(from + at + 2 * plane, along, line), true);
    }
    products_end();
    products_wait<0>();
    settle(d);
}

/* ---- results ---- */

struct finishing {
    unscaling u;
    float bias, least;
    __device__ inline float operator()(float sum) const { return MAXIMUM(FMA(sum * u.first, u.then, bias), least); }
};

/* Those of a block, into the region's, which to is the first of: columns 2 t, 2 t + 1 of each row. */
template <class f>
static __device__ inline void keep(const pair_conv_args &a, float *to, const float (&d)[f::RESULTS / 2], const finishing &finish)
{
#pragma unroll
    for (int y = 0; y < f::ROWS; y += f::POOLED ? 2 : 1) {
        const float left = d[4 * y] + d[4 * y + 2], right = d[4 * y + 1] + d[4 * y + 3];
        if (f::POOLED) {
            const float below = MAXIMUM(d[4 * y + 4] + d[4 * y + 6], d[4 * y + 5] + d[4 * y + 7]);
            *to = finish(MAXIMUM(MAXIMUM(left, right), below));
        } else {
            to[0] = finish(left), to[1] = finish(right);
        }
        to += a.region_w;
    }
}

/* A region's results of an output, 16 bytes at a time, where they have no gaps. */
static __device__ inline void write_whole(const pair_conv_args &a, float *out, const float *from, int count, int outputs)
{
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < outputs * a.by_region.by; i += THREADS) {
        const uint32_t o = quotient(i, a.by_region), p = (i - o * a.by_region.by) * 4;
        if ((int)p < count)
            *(float4 *)(out + (int64_t)o * a.out_h * a.out_w + p) = *(const float4 *)(from + o * a.result_pitch + p);
    }
}

template <class f> static __device__ inline void write(const pair_conv_args &a, const region &r, int first)
{
    constexpr int by = f::POOLED ? 2 : 1;
    const float *from = results_at<f>(a);
    const int row = r.row / by, column = r.column / by, outputs = min(OUTPUTS, a.m - first),
              rows = min(a.region_h, a.out_h - row);
    float *out = (float *)a.out + ((r.image * a.m + first) * a.out_h + row) * a.out_w + column;
    if (a.whole) return write_whole(a, out, from, rows * a.out_w, outputs);
#pragma unroll 2
    for (uint32_t i = threadIdx.x; i < outputs * a.by_region.by; i += THREADS) {
        const uint32_t o = quotient(i, a.by_region), p = i - o * a.by_region.by, y = quotient(p, a.by_region_w),
                       x = p - y * a.by_region_w.by;
        if ((int)y < rows && column + (int)x < a.out_w)
            out[((int64_t)o * a.out_h + y) * a.out_w + x] = from[o * a.result_pitch + p];
    }
}

/* ---- the kernel ---- */

template <class f>
static __device__ inline void make_region(const pair_conv_args &a, const fragments<f> &w, const finishing &finish, bool is)
{
    constexpr int by = f::POOLED ? 2 : 1;
    const int o = threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4, x = threadIdx.x % 4 * 2 / by;
    float *to = results_at<f>(a) + o * a.result_pitch + x;
#pragma unroll 1
    for (int down = 0; down < a.blocks_down; down++)
#pragma unroll 1
        for (int across = 0; across < a.blocks_across; across++) {
            float d[f::RESULTS / 2];
            multiply<f>(a, place_of(shared) + (down * f::ROWS * a.pitch + across * ACROSS) * PIXEL, w, d);
            if (is) keep<f>(a, to + down * (f::ROWS / by) * a.region_w + across * (ACROSS / by), d, finish);
        }
}

template <class f> KERNEL(THREADS, 4) pair_conv(const __grid_constant__ pair_conv_args a)
{
    __shared__ uint32_t most[2];
    const uint32_t walker = quotient(blockIdx.x, a.groups);
    const int first = (int)(blockIdx.x - walker * a.groups.by) * OUTPUTS, o = first + threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4;
    fragments<f> w;
    int turn = 0;
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    if (a.filters_are_there) load_filters<f>(a, o, w);
    take_turn();
    if (!a.filters_are_there) load_filters<f>(a, o, w);
    const int of_filters = scale_exponent(*a.largest);
    const float bias = a.bias && o < a.m ? ((const float *)a.bias)[o * a.bias_stride] : -0.0f;
    held<f> x;
    if (f::EARLY) load<f>(a, region_of<f>(a, walker), x);
    for (uint32_t s = walker; s < a.regions; s += a.walkers, turn ^= 1) {
        if (!f::EARLY) load<f>(a, region_of<f>(a, s), x);
        const int exponent = scale_exponent(largest(magnitude_of<f>(x), most + turn));
        if (threadIdx.x == 0) most[turn ^ 1] = 0;
        store<f>(a, x, power_of_two(exponent));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const bool more = s + a.walkers < a.regions;
        if (!more) let_next_begin();
        if (f::EARLY && more) load<f>(a, region_of<f>(a, s + a.walkers), x);
        make_region<f>(a, w, { unscaling_of(exponent, of_filters), bias, a.least }, first + threadIdx.x / 32 * 8 < a.m);
        __syncthreads();
        write<f>(a, region_of<f>(a, s), first);
    }
}

template <int SLOTS> static const void *of_slots(int rows, bool pooled)
{
    if (rows == 8) return pooled ? (const void *)pair_conv<form<SLOTS, 8, true>> : (const void *)pair_conv<form<SLOTS, 8, false>>;
    return pooled ? (const void *)pair_conv<form<SLOTS, 16, true>> : (const void *)pair_conv<form<SLOTS, 16, false>>;
}

} // namespace

const void *pair_conv_kernel(int slots, int rows, bool pooled)
{
    return (slots == 4 ? of_slots<4> : slots == 8 ? of_slots<8> : of_slots<16>)(rows, pooled);
}
