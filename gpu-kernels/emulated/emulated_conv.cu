/* emulated_conv.cu - convolutions with 3 x 3 windows on tensor cores, with bias, relu and 2 x 2
 * pooling in one pass. Numbers are pairs of f16, a high and a low part (emulated.cuh).
 *
 * A thread block computes regions of the results. It loads the elements of a region into shared
 * memory as pairs, with a scale that depends on the largest of them. A block of a region is ROWS x 8
 * results. It is a sum of matrix products of filters and pixels, one for each position in the
 * window. A position only changes the address of the right operand, so no element is copied twice.
 *
 * SLOTS, the layout of the right operand. Shared memory has planes with 16 bytes for each pixel,
 * which are 8 f16.
 *     4    up to 4 channels: one plane has the high and the low parts, and one product covers two
 *          positions of the window
 *     8    up to 8 channels: one plane has the high parts, one the low parts
 *     16   up to 16 channels: two planes for each
 *
 * The left operand is the filters, in registers. Of each 16 rows, the first eight are the high parts
 * of eight outputs, the other eight are their low parts. So one thread has both sums of an output,
 * and the four results that are pooled.
 *
 * SHIFTS is 2 if results are pooled and there are few outputs. The filters are then stored twice in
 * a window of 4 x 3, the second time one line further down. A product then has both lines that are
 * pooled. Without pooling this would be wrong: a NaN or an infinity times a zero of that window
 * would change results whose window does not contain it. */
#include "emulated.cuh"
#include "formula.cuh"

namespace
{

enum { THREADS = EMULATED_CONV_THREADS, PIXEL = 16, ACROSS = 8 };

template <int SLOTS_, int LINES_, bool POOLED_, int SHIFTS_> struct form {
    static constexpr int SLOTS = SLOTS_, LINES = LINES_, SHIFTS = SHIFTS_,
                         SUMS = LINES * ACROSS; /* results of a block for each shift */
    static constexpr bool POOLED = POOLED_;
    static constexpr int OUTPUTS = EMULATED_CONV_ROWS / SHIFTS, ROWS = LINES * SHIFTS, BY = POOLED ? 2 : 1;
    static constexpr int CHANNELS = SLOTS == 16 ? 8 : SLOTS; /* channels of a pixel that a thread loads */
    static constexpr int HELD = EMULATED_CONV_HELD(SLOTS);
    static constexpr int PLANES = SLOTS == 4 ? 1 : SLOTS / 4, TAPS = (2 + SHIFTS) * 3,
                         STEPS = SLOTS == 4 ? (TAPS + 1) / 2 : TAPS;
};

extern __shared__ __align__(128) float4 shared[];

/* Shared memory contains the head (two maxima and a barrier), the stage (elements as loaded), the
 * planes, and the results. */
static __device__ inline uint32_t stage_address() { return shared_address(shared) + EMULATED_CONV_HEAD; }
static __device__ inline uint32_t planes_address(const emulated_conv_args &a)
{
    return stage_address() + a.stage;
}
static __device__ inline int plane_bytes(const emulated_conv_args &a) { return (int)a.pixels * PIXEL; }
template <class f> static __device__ inline float *results_at(const emulated_conv_args &a)
{
    return (float *)((char *)shared + (planes_address(a) - shared_address(shared)) +
                     f::PLANES * plane_bytes(a));
}

/* ---- filters ---- */

/* The filters that a thread has, for each product. Of the 16 rows of a warp, rows g and g + 8 are
 * the high and the low parts of output g. Thread t of a row has elements 2 t, 2 t + 1, 2 t + 8 and
 * 2 t + 9. */
template <class f> using fragments = uint32_t[f::STEPS][4];

/* The shift and the output to which the sums of this thread belong. */
static __device__ inline int row_of_thread() { return threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4; }
template <class f> static __device__ inline int shift_of_thread() { return row_of_thread() / f::OUTPUTS; }
template <class f> static __device__ inline int output_of_thread() { return row_of_thread() % f::OUTPUTS; }

template <class f>
static __device__ inline float filter_at(const emulated_conv_args &a, int o, int step, int k)
{
    const int c = k % f::SLOTS, tap = f::SLOTS == 4 ? 2 * step + k / 8 : step;
    const int line = tap / 3 - shift_of_thread<f>();
    if (o >= a.m || c >= a.c || (uint32_t)line >= 3) return 0;
    return ((const float *)
                a.filters)[o * a.filter[0] + c * a.filter[1] + line * a.filter[2] + tap % 3 * a.filter[3]];
}

template <class f>
static __device__ inline void load_filters(const emulated_conv_args &a, int o, fragments<f> &w)
{
    const float scale = power_of_two(scale_exponent(*a.largest));
#pragma unroll
    for (int step = 0; step < f::STEPS; step++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int k = threadIdx.x % 4 * 2 + i * 8;
            split_pair(filter_at<f>(a, o, step, k) * scale, filter_at<f>(a, o, step, k + 1) * scale,
                       w[step][2 * i], w[step][2 * i + 1]);
        }
}

/* ---- elements ---- */

/* A region: its image, and its first row and column of the results before pooling. */
struct region {
    int64_t image;
    int32_t row, column;
};

template <class f> static __device__ inline region region_of(const emulated_conv_args &a, uint32_t s)
{
    const uint32_t line = quotient(s, a.across), image = quotient(line, a.down);
    return { (int64_t)image, (int32_t)(line - image * a.down.by) * a.blocks_down * f::ROWS,
             (int32_t)(s - line * a.across.by) * a.blocks_across * ACROSS };
}

/* Executed by one thread. Starts the copy of the elements of a region to the stage. */
static __device__ inline void copy_region(const emulated_conv_args &a, const region &r, uint32_t arrival)
{
    barrier_expect(arrival, a.stage);
    copy_box_of_image(stage_address(), &a.boxes, r.column - a.pad[1] - a.lead, r.row - a.pad[0], r.image,
                      arrival);
}

/* The elements of a thread: CHANNELS channels of up to HELD pixels. With 16 channels, channels 8 to
 * 15 count as further pixels (`half` is 1). */
template <class f> using elements_held = float[f::HELD][f::CHANNELS];
struct pixel {
    uint32_t at, half;
};
template <class f> static __device__ inline pixel pixel_of(const emulated_conv_args &a, int j)
{
    const uint32_t i = threadIdx.x + j * THREADS, half = f::SLOTS == 16 && i >= a.pixels;
    return { i - half * a.pixels, half };
}

template <class f> static __device__ inline void take(const emulated_conv_args &a, elements_held<f> &x)
{
    const float *stage = (const float *)shared + EMULATED_CONV_HEAD / 4 + a.lead;
#pragma unroll
    for (int j = 0; j < f::HELD; j++) {
        const pixel p = pixel_of<f>(a, j);
        const uint32_t line = quotient(p.at, a.by_pitch);
        const float *from =
            stage + p.half * 8 * a.stage_plane + p.at + line * (a.stage_pitch - a.by_pitch.by);
        const int there = p.at < a.pixels ? a.c - (int)p.half * 8 : 0;
#pragma unroll
        for (int c = 0; c < f::CHANNELS; c++) x[j][c] = c < there ? from[c * a.stage_plane] : 0;
    }
}

/* Loads the elements of a thread from the image, if the tensor memory accelerator cannot copy it. */
template <class f>
static __device__ inline void load(const emulated_conv_args &a, const region &r, elements_held<f> &x)
{
    const float *image = (const float *)a.in + r.image * a.image;
#pragma unroll
    for (int j = 0; j < f::HELD; j++) {
        const pixel p = pixel_of<f>(a, j);
        const uint32_t line = quotient(p.at, a.by_pitch);
        const int y = r.row - a.pad[0] + (int)line,
                  z = r.column - a.pad[1] + (int)(p.at - line * a.by_pitch.by);
        const bool inside = p.at < a.pixels && (uint32_t)y < (uint32_t)a.h && (uint32_t)z < (uint32_t)a.w;
        const float *from = image + (y * a.row + z + (int)p.half * 8 * a.channel);
        const int there = inside ? a.c - (int)p.half * 8 : 0;
#pragma unroll
        for (int c = 0; c < f::CHANNELS; c++) x[j][c] = c < there ? from[c * a.channel] : 0;
    }
}

static __device__ inline void store_slots(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

template <class f>
static __device__ inline void store(const emulated_conv_args &a, const elements_held<f> &x, float scale)
{
    const int plane = plane_bytes(a);
#pragma unroll
    for (int j = 0; j < f::HELD; j++) {
        const pixel p = pixel_of<f>(a, j);
        uint32_t high[4], low[4];
        if (p.at >= a.pixels) continue;
#pragma unroll
        for (int c = 0; c < f::CHANNELS; c += 2)
            split_pair(x[j][c] * scale, x[j][c + 1] * scale, high[c / 2], low[c / 2]);
        const uint32_t at = planes_address(a) + p.half * plane + p.at * PIXEL;
        if (f::SLOTS == 4) {
            store_slots(at, high[0], high[1], low[0], low[1]);
        } else {
            store_slots(at, high[0], high[1], high[2], high[3]);
            store_slots(at + f::PLANES / 2 * plane, low[0], low[1], low[2], low[3]);
        }
    }
}

template <class f> static __device__ inline float most_of(const elements_held<f> &x)
{
    float most = 0;
#pragma unroll
    for (int j = 0; j < f::HELD; j++) most = fmaxf(most, magnitude_of(x[j]));
    return most;
}

/* ---- products ---- */

/* Computes the sums of a block. `from` is the address of the first element of its first window.
 * Addresses here count pixels, that is 16 bytes. */
template <class f>
static __device__ inline void multiply(const emulated_conv_args &a, uint32_t from, const fragments<f> &w,
                                       float (&d)[f::SUMS / 2])
{
    products_begin();
#pragma unroll
    for (int step = 0; step < f::STEPS; step++) {
        const int tap = f::SLOTS == 4 ? 2 * step : step, next = tap + 1 < f::TAPS ? tap + 1 : tap;
        const uint32_t at = tap / 3 * a.pitch + tap % 3,
                       along = f::SLOTS == 4 ? (next / 3 - tap / 3) * a.pitch + next % 3 - tap % 3 : a.pixels;
        products<f::SUMS>::add(d, w[step], described_plain(from + at, along, f::SHIFTS * a.pitch), step > 0);
        if (f::SLOTS == 16)
            products<f::SUMS>::add(d, w[step],
                                   described_plain(from + at + 2 * a.pixels, along, f::SHIFTS * a.pitch),
                                   true);
    }
    products_end();
    products_wait<0>();
    keep_after_wait(d);
}

/* ---- results ---- */

struct finishing {
    unscaling u;
    float bias, least;
    __device__ inline float operator()(float sum) const
    {
        return MAXIMUM(FMA(sum * u.first, u.then, bias), least);
    }
};

/* Returns the address in shared memory where a thread stores its results. Those of the two shifts
 * are stored separately. */
template <class f> static __device__ inline float *result_buffer(const emulated_conv_args &a)
{
    return results_at<f>(a) + row_of_thread() * a.result_pitch + threadIdx.x % 4 * 2 / f::BY;
}

/* Stores the results of a thread for a block: columns 2 t and 2 t + 1 of each line. */
template <class f>
static __device__ inline void keep(const emulated_conv_args &a, float *to, const float (&d)[f::SUMS / 2],
                                   const finishing &epilogue)
{
    constexpr int TOGETHER = f::POOLED ? 2 / f::SHIFTS : 1; /* lines that this thread pools */
#pragma unroll
    for (int y = 0; y < f::LINES; y += TOGETHER) {
        const float left = d[4 * y] + d[4 * y + 2], right = d[4 * y + 1] + d[4 * y + 3];
        if (!f::POOLED) {
            to[0] = epilogue(left);
            to[1] = epilogue(right);
        } else if (TOGETHER == 1) {
            *to = epilogue(MAXIMUM(left, right));
        } else {
            const float below = MAXIMUM(d[4 * y + 4] + d[4 * y + 6], d[4 * y + 5] + d[4 * y + 7]);
            *to = epilogue(MAXIMUM(MAXIMUM(left, right), below));
        }
        to += a.region_w;
    }
}

/* Returns N neighbouring results of a region. With two shifts it pools their lines. */
template <int N> struct alignas(N * sizeof(float)) some {
    float e[N];
};
template <class f, int N>
static __device__ inline some<N> results_from(const emulated_conv_args &a, const float *from)
{
    some<N> x = *(const some<N> *)from;
    if (f::SHIFTS == 1) return x;
    const some<N> below = *(const some<N> *)(from + f::OUTPUTS * a.result_pitch);
#pragma unroll
    for (int i = 0; i < N; i++) x.e[i] = MAXIMUM(x.e[i], below.e[i]);
    return x;
}

/* Copies the results of a region from shared memory to `out`, N at a time. by_region and by_line
 * count groups of N. */
template <class f, int N>
static __device__ inline void write(const emulated_conv_args &a, const region &r, int first)
{
    const float *from = results_at<f>(a);
    const int row = r.row / f::BY, column = r.column / f::BY, outputs = min(f::OUTPUTS, a.m - first),
              rows = min(a.region_h, a.out_h - row), columns = a.out_w - column, plane = a.out_h * a.out_w;
    const int64_t at = ((r.image * a.m + first) * a.out_h + row) * a.out_w + column;
    float *out = (float *)a.out + at;
    const uint32_t groups = outputs * a.by_region.by;
#pragma unroll 2
    for (uint32_t i = threadIdx.x; i < groups; i += THREADS * FORMULA_AHEAD) {
        some<N> z[FORMULA_AHEAD];
        int64_t e[FORMULA_AHEAD];
        bool is[FORMULA_AHEAD];
#pragma unroll
        for (int k = 0; k < FORMULA_AHEAD; k++) {
            const uint32_t g = k ? min(i + k * THREADS, groups - 1) : i, o = quotient(g, a.by_region),
                           p = g - o * a.by_region.by, y = quotient(p, a.by_line),
                           x = (p - y * a.by_line.by) * N;
            is[k] = i + k * THREADS < groups && (int)y < rows && (int)x < columns;
            if (FORMULA_AHEAD == 1 && !is[k]) continue;
            e[k] = is[k] ? (int64_t)o * plane + (y * a.out_w + x) : 0; /* where there is a result */
            z[k] = results_from<f, N>(a, from + o * a.result_pitch + p * N);
            if constexpr (N == 4) apply_formula<4>(z[k].e, at + e[k]);
            else z[k].e[0] = formula_of(z[k].e[0], at + e[k]);
        }
#pragma unroll
        for (int k = 0; k < FORMULA_AHEAD; k++)
            if (is[k]) *(some<N> *)(out + e[k]) = z[k];
    }
}

/* ---- the kernel ---- */

template <class f>
static __device__ inline void make_region(const emulated_conv_args &a, const fragments<f> &w,
                                          const finishing &epilogue, bool is)
{
    float *to = result_buffer<f>(a);
#pragma unroll 1
    for (int down = 0; down < a.blocks_down; down++)
#pragma unroll 1
        for (int across = 0; across < a.blocks_across; across++) {
            float d[f::SUMS / 2];
            multiply<f>(a, planes_address(a) / PIXEL + down * f::ROWS * a.pitch + across * ACROSS, w, d);
            if (is)
                keep<f>(a, to + down * (f::ROWS / f::BY) * a.region_w + across * (ACROSS / f::BY), d,
                        epilogue);
        }
}

template <class f> KERNEL(THREADS, 4) emulated_conv(ARGUMENT(emulated_conv_args) a)
{
    uint32_t *most = (uint32_t *)shared;
    const uint32_t walker = quotient(blockIdx.x, a.groups), arrival = shared_address(most + 2);
    const int first = (int)(blockIdx.x - walker * a.groups.by) * f::OUTPUTS,
              o = first + output_of_thread<f>();
    const bool is = first + (int)(threadIdx.x / 32 * 8 % f::OUTPUTS) < a.m,
               copies = a.stage && threadIdx.x == 0;
    fragments<f> w;
    int turn = 0;
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        barrier_make(arrival, 1);
        barriers_made();
    }
    __syncthreads();
    if (a.filters_are_there) load_filters<f>(a, o, w);
    take_turn();
    if (copies) copy_region(a, region_of<f>(a, walker), arrival);
    if (!a.filters_are_there) load_filters<f>(a, o, w);
    const int of_filters = scale_exponent(*a.largest);
    const float bias = a.bias && o < a.m ? ((const float *)a.bias)[o * a.bias_stride] : -0.0f;
    for (uint32_t s = walker; s < a.regions; s += a.walkers, turn ^= 1) {
        const bool more = s + a.walkers < a.regions;
        const region r = region_of<f>(a, s);
        elements_held<f> x;
        if (a.stage) {
            barrier_wait(arrival, turn);
            take<f>(a, x);
        } else load<f>(a, r, x);
        const int exponent = scale_exponent(largest(most_of<f>(x), most + turn));
        /* all threads have read their elements */
        if (copies && more) copy_region(a, region_of<f>(a, s + a.walkers), arrival);
        if (threadIdx.x == 0) most[turn ^ 1] = 0;
        store<f>(a, x, power_of_two(exponent));
        fence_writes();
        __syncthreads();
        if (!more) let_next_begin();
        make_region<f>(a, w, { unscaling_of(exponent, of_filters), bias, a.least }, is);
        __syncthreads();
        if (a.fours) write<f, 4>(a, r, first);
        else write<f, 1>(a, r, first);
    }
}

#ifdef TEMPLATE
/* launch.h has another `form`. */
template <int SLOTS, int LINES, bool POOLED, int SHIFTS>
static __device__ __forceinline__ void run_form(const emulated_conv_args &a)
{
    emulated_conv<form<SLOTS, LINES, POOLED, SHIFTS>>(a);
}
#else
template <int SLOTS> static const void *of_slots(int lines, bool pooled)
{
    if (lines == 8)
        return pooled ? (const void *)emulated_conv<form<SLOTS, 8, true, 1>>
                      : (const void *)emulated_conv<form<SLOTS, 8, false, 1>>;
    return pooled ? (const void *)emulated_conv<form<SLOTS, 16, true, 1>>
                  : (const void *)emulated_conv<form<SLOTS, 16, false, 1>>;
}

static const void *of_two_shifts(int lines)
{
    return lines == 8 ? (const void *)emulated_conv<form<4, 8, true, 2>>
                      : (const void *)emulated_conv<form<4, 16, true, 2>>;
}
#endif

} // namespace

#ifdef TEMPLATE
#define CONV(number, slots, lines, pooled, shifts)                                                           \
    TEMPLATE_OF(emulated_conv_##number, (THREADS, 4), emulated_conv_args,                                    \
                run_form<slots, lines, pooled, shifts>)
CONV(0, 4, 8, false, 1)
CONV(1, 4, 8, true, 1)
CONV(2, 4, 16, false, 1)
CONV(3, 4, 16, true, 1)
CONV(4, 8, 8, false, 1)
CONV(5, 8, 8, true, 1)
CONV(6, 8, 16, false, 1)
CONV(7, 8, 16, true, 1)
CONV(8, 16, 8, false, 1)
CONV(9, 16, 8, true, 1)
CONV(10, 16, 16, false, 1)
CONV(11, 16, 16, true, 1)
CONV(12, 4, 8, true, 2)
CONV(13, 4, 16, true, 2)
#else
const void *emulated_conv_kernel(int slots, int shifts, int lines, bool pooled)
{
    if (shifts == 2) return of_two_shifts(lines);
    if (slots == 4) return of_slots<4>(lines, pooled);
    if (slots == 8) return of_slots<8>(lines, pooled);
    return of_slots<16>(lines, pooled);
}
#endif
