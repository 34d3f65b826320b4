/* winograd_1d.cu - convolutions with 3 x 3 windows, with bias, relu and 2 x 2 pooling in one pass,
 * by Winograd's F(2, 3) along columns (Lavin and Gray, Fast algorithms for convolutional neural
 * networks, 2016).
 *
 * A thread block computes strips: some images, rows and columns of the results. It loads the images
 * into shared memory, some channels at a time, and loads the next ones while it computes. A thread
 * has 2 x 4 results of O output channels, which it sums and pools in registers. A warp has 32 such
 * positions and reads each filter as one broadcast. With u = 2^-24, |error| <= (6 c + 14) u sum
 * (|w0| + |w1| + |w2|) (|x0| + |x1| + |x2|), where the sum is over channels and columns. */
#include "winograd_1d.cuh"

namespace
{

template <int O> using sums = float[PATCH_ROWS][COLUMNS][O];

template <int O> static __device__ inline void results_of(const sums<O> &s, int o, float y[ROWS][COLUMNS])
{
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        y[0][j] = (s[0][j][o] + s[1][j][o]) + s[2][j][o];
        y[1][j] = (s[1][j][o] - s[2][j][o]) - s[3][j][o];
    }
}

/* ---- contents of shared memory ---- */

/* Shared memory contains the filters, the bias, and two stages. A line of a stage has the columns
 * in groups of four, followed by the elements left and right of each group. */
static __device__ inline int bias_place(const conv2d_args &a)
{
    return a.c * PATCH_ROWS * 3 * a.width * EACH;
}
static __device__ inline int stage_place(const conv2d_args &a, int turn)
{
    return bias_place(a) + (CONV_WIDTH + turn * a.stage) * EACH;
}

/* Loads and transforms the filters. The layout is [o / O][channel][row][column][o % O]. Outputs that
 * do not exist have zeros. */
template <int O> static __device__ inline void load_filters(const conv2d_args &a, int first)
{
    const int columns = a.c * 3 * a.width;
#pragma unroll 4
    for (int t = threadIdx.x; t < columns; t += CONV_THREADS) {
        const int column = t / a.width, o = t - column * a.width, c = column / 3, k = column - 3 * c;
        const float *at =
            (const float *)a.filters + (first + o) * a.filter[0] + c * a.filter[1] + k * a.filter[3];
        float g[3] = {}, u[PATCH_ROWS];
        if (first + o < a.m) {
            g[0] = at[0];
            g[1] = at[a.filter[2]];
            g[2] = at[2 * a.filter[2]];
        }
        transform_weights(g, u);
#pragma unroll
        for (int r = 0; r < PATCH_ROWS; r++)
            at_shared(((((o / O * a.c + c) * PATCH_ROWS + r) * 3 + k) * O + o % O) * EACH) = u[r];
    }
    load_bias(a, bias_place(a), first);
}

/* A strip: its first image, and its first row and column of the results before pooling. */
struct strip {
    int64_t image;
    int32_t row, column;
};

static __device__ inline strip strip_of(const conv2d_args &a, uint32_t s)
{
    const uint32_t line = quotient(s, a.across), image = quotient(line, a.down);
    return { (int64_t)image * a.images, (int32_t)((line - image * a.down.by) * a.rows.by * ROWS),
             (int32_t)((s - line * a.across.by) * a.quads.by * COLUMNS) };
}

/* Loads `depth` channels of a strip from `channel` on. */
static __device__ inline void stage(const conv2d_args &a, const strip &s, int channel, int to)
{
#pragma unroll 1
    for (uint32_t u = threadIdx.x; u < a.units; u += CONV_THREADS) {
        const uint32_t line = quotient(u, a.quads), plane = quotient(line, a.lines),
                       image = quotient(plane, a.depth);
        const int q = (int)(u - line * a.quads.by), c = channel + (int)(plane - image * a.depth.by);
        const int i = s.row - a.pad[0] + (int)(line - plane * a.lines.by),
                  j = s.column - a.pad[1] + q * COLUMNS;
        const bool inside = s.image + image < a.n && c < a.c && (uint32_t)i < (uint32_t)a.h;
        const float *from = (const float *)a.in + (s.image + image) * a.image + (int64_t)c * a.channel +
                            (int64_t)i * a.row + j;
        const int at = to + (int)line * a.pitch * EACH;
        const int beside = at + ((int)a.quads.by * COLUMNS + 2 * q) * EACH;
        if (a.vectors) copy_row<true>(a, at + q * COLUMNS * EACH, beside, from, j, inside);
        else copy_row<false>(a, at + q * COLUMNS * EACH, beside, from, j, inside);
    }
    copies_are_issued();
}

/* ---- the sums of a thread ---- */

template <int O> static __device__ inline void load_outputs(float w[O], int at)
{
    struct alignas(O >= 4 ? 16 : 8) some {
        float e[O >= 4 ? 4 : 2];
    };
    constexpr int each = sizeof(some) / sizeof(float);
#pragma unroll
    for (int o = 0; o < O; o += each) {
        const some s = at_shared<some>(at + o * EACH);
#pragma unroll
        for (int e = 0; e < each; e++) w[o + e] = s.e[e];
    }
}

static __device__ inline void load_patch(patch p, int at, int beside, int pitch)
{
#pragma unroll
    for (int i = 0; i < PATCH_ROWS; i++) load_row(p[i], at + i * pitch, at + i * pitch + beside);
}

template <int O> static __device__ inline void add_channel(sums<O> &sum, patch p, int filters)
{
    transform_patch(p);
#pragma unroll
    for (int r = 0; r < PATCH_ROWS; r++)
#pragma unroll
        for (int k = 0; k < 3; k++) {
            float w[O];
            load_outputs<O>(w, filters + (r * 3 + k) * O * EACH);
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int o = 0; o < O; o++) sum[r][j][o] = FMA(w[o], p[r][j + k], sum[r][j][o]);
        }
}

/* ---- output ---- */

/* Stores the results of a position for outputs `first` to `first` + O - 1. `bias` is the address of
 * their bias. */
template <int O, bool POOLED>
static __device__ inline void epilogue(const conv2d_args &a, const place &at, int first, int bias,
                                       const sums<O> &sum)
{
    uint32_t wrong = 0;
    float b[O];
    load_outputs<O>(b, bias);
#pragma unroll
    for (int o = 0; o < O; o++) {
        float y[ROWS][COLUMNS], size = 0;
        results_of<O>(sum, o, y);
#pragma unroll
        for (int t = 0; t < ROWS * COLUMNS; t++) size += ABS(y[t / COLUMNS][t % COLUMNS]);
        if (first + o >= a.m) break;
        /* Each result is stored once: a formula may read the element that it overwrites. recompute() stores
         * those that are not finite. */
        if (!(size < INF)) wrong |= 1u << o;
        else store_results<POOLED>(a, at, first + o, y, b[o]);
    }
    if (wrong) recompute<POOLED>(a, at, first, wrong, bias);
}

/* ---- the kernel ---- */

/* The position of a thread in a strip. */
struct position {
    uint32_t image, row, quad;
    int first; /* the first output of the thread in the group */
    bool is;
};

template <int O> static __device__ inline position position_of(const conv2d_args &a)
{
    uint32_t thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    const uint32_t warp = thread / 32, share = warp / a.along,
                   p = (warp - share * a.along) * 32 + thread % 32;
    const bool is = p < a.positions;
    const uint32_t line = quotient(is ? p : 0, a.quads), image = quotient(line, a.rows);
    return { image, line - image * a.rows.by, (is ? p : 0) - line * a.quads.by, (int)share * O, is };
}

template <int O, bool POOLED>
static __device__ inline void store_strip(const conv2d_args &a, const strip &s, const sums<O> &sum)
{
    constexpr int by = POOLED ? 2 : 1;
    const position p = position_of<O>(a);
    const place at = { s.image + p.image, s.row + (int32_t)p.row * ROWS,
                       s.column + (int32_t)p.quad * COLUMNS };
    if (p.is && at.image < a.n && at.row / by < a.out_h && at.column / by < a.out_w)
        epilogue<O, POOLED>(a, at, (int)work_share_of(a).group * a.width + p.first,
                            bias_place(a) + p.first * EACH, sum);
}

/* Adds the products of the channels of a stage. `channel` is the first of them. */
template <int O>
static __device__ inline void add_stage(const conv2d_args &a, int turn, int channel, sums<O> &sum)
{
    constexpr int taps = PATCH_ROWS * 3 * O * EACH;
    const position p = position_of<O>(a);
    const int pitch = a.pitch * EACH, plane = (int)a.lines.by * pitch,
              beside = (int)(a.quads.by * COLUMNS - 2 * p.quad) * EACH;
    int from = stage_place(a, turn) + (int)(p.image * a.depth.by) * plane + (int)(p.row * ROWS) * pitch +
               (int)(p.quad * COLUMNS) * EACH;
    int filters = (p.first / O * a.c + channel) * taps;
    const int last = filters + min((int)a.depth.by, a.c - channel) * taps;
#pragma unroll 1
    for (; filters < last; from += plane, filters += taps) {
        patch x;
        load_patch(x, from, beside, pitch);
        add_channel<O>(sum, x, filters);
    }
}

template <int O, bool POOLED, int BLOCKS> KERNEL(CONV_THREADS, BLOCKS) convolution(ARGUMENT(conv2d_args) a)
{
    uint32_t s = work_share_of(a).walker;
    int turn = 0;
    const int first = (int)work_share_of(a).group * a.width;
    if (a.filters_are_there) load_filters<O>(a, first);
    take_turn();
    stage(a, strip_of(a, s), 0, stage_place(a, 0));
    if (!a.filters_are_there) load_filters<O>(a, first);
    for (; s < a.strips; s += a.walkers) {
        sums<O> sum = {};
        for (int c = 0; c < a.c; c += a.depth.by, turn ^= 1) {
            wait_for_copies();
            __syncthreads();
            const bool more = c + (int)a.depth.by < a.c;
            if (more || s + a.walkers < a.strips)
                stage(a, strip_of(a, more ? s : s + a.walkers), more ? c + a.depth.by : 0,
                      stage_place(a, turn ^ 1));
            add_stage<O>(a, turn, c, sum);
        }
        if (s + a.walkers >= a.strips) let_next_begin();
        store_strip<O, POOLED>(a, strip_of(a, s), sum);
    }
}

#ifndef TEMPLATE
template <int O, int BLOCKS> const void *pooled_or_not(bool pooled)
{
    return pooled ? (const void *)convolution<O, true, BLOCKS> : (const void *)convolution<O, false, BLOCKS>;
}
#endif

} // namespace

#ifdef TEMPLATE
#define WINOGRAD_1D(number, outputs, pooled, blocks)                                                         \
    TEMPLATE_OF(winograd_1d_##number, (CONV_THREADS, blocks), conv2d_args,                                   \
                convolution<outputs, pooled, blocks>)
WINOGRAD_1D(0, 2, false, 6)
WINOGRAD_1D(1, 4, false, 4)
WINOGRAD_1D(2, 8, false, 3)
WINOGRAD_1D(3, 2, true, 6)
WINOGRAD_1D(4, 4, true, 4)
WINOGRAD_1D(5, 8, true, 3)
#else
/* `outputs` is the number of outputs of a thread. */
const void *conv2d_kernel_f32(int outputs, bool pooled)
{
    switch (outputs) {
    case 2: return pooled_or_not<2, 6>(pooled);
    case 4: return pooled_or_not<4, 4>(pooled);
    default: return pooled_or_not<8, 3>(pooled);
    }
}
#endif
