/* winograd_2d.cu - the same convolutions as winograd_1d.cu, by F(2, 3) along columns and then along
 * rows: F(2x2, 3x3). A tile is 2 x 2 results of one output channel. It takes 16 products for each
 * channel instead of 36. The 4 x 4 factors of these products are called the elements of the tile.
 *
 * A warp computes 8 E outputs of 16 / E pairs of neighbouring tiles.
 *   - Each lane prefetches the patch of one pair in one channel. It transforms the patch and stores
 *     the elements of both tiles in shared memory.
 *   - Each lane multiplies one row of the elements of four tiles by the filters of 8 outputs. It
 *     loads 12 numbers from shared memory for 32 products.
 *   - The four lanes that have the four rows of the same tiles exchange their sums. Each of them
 *     stores the results of a quarter of the outputs.
 * Warps share only the filters, and no warp waits for another. With u = 2^-24, |error| <= (4 c +
 * 42) u sum (|w00| + ... + |w22|) (|x00| + ... + |x22|), where the sum is over channels. */
#include "winograd_1d.cuh"

namespace
{

enum { OUTPUTS = 8, TILES = 4, SIDE = 4 }; /* outputs and tiles of a lane; a tile has SIDE x SIDE elements */

/* The layout of shared memory for warps with E groups of eight outputs. PAIRS is the number of
 * pairs of tiles, DEPTH the number of channels at a time. All others are in bytes.
 *     ROW, COLUMN, CHANNEL   strides of the elements. CHANNEL is padded against bank conflicts
 *     HALF, TAP, FILTER      strides of the filters: between outputs 0 .. 3 and 4 .. 7 of the
 *                            groups, between columns, between channels
 *     ELEMENTS               size of the elements; the patches follow them
 *     BESIDE                 offset of the outer columns of the patches
 *     OWN                    size of all memory of one warp */
template <int E> struct square {
    static constexpr int PAIRS = 16 / E, DEPTH = 32 / PAIRS;
    static constexpr int ROW = 2 * PAIRS * EACH, COLUMN = SIDE * ROW,
                         CHANNEL = SIDE * COLUMN + 64 / DEPTH * EACH;
    static constexpr int HALF = SIDE * E * 4 * EACH, TAP = 2 * HALF, FILTER = SIDE * TAP;
    static constexpr int ELEMENTS = DEPTH * CHANNEL, BESIDE = ELEMENTS + 32 * SIDE * 16,
                         OWN = BESIDE + 32 * SIDE * 8;
    static_assert(OWN == WINOGRAD_2D_OWN && FILTER == E * WINOGRAD_2D_FILTER && ELEMENTS >= OUTPUTS * 32 * 16,
                  "");
};

typedef float sums[SIDE][TILES][OUTPUTS]; /* the sums of a lane for each column of the elements */

/* ---- addresses ---- */

static __device__ inline uint32_t thread_now()
{
    uint32_t thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}
static __device__ inline int lane_now() { return (int)(thread_now() % 32); }

/* Shared memory contains the filters, the bias, and for each warp its elements and its patches. The
 * sums that lanes exchange overwrite the elements. */
static __device__ inline int bias_place(const conv2d_args &a) { return a.c * SIDE * SIDE * a.width * EACH; }
template <int E> static __device__ inline int own_place(const conv2d_args &a)
{
    return bias_place(a) + CONV_WIDTH * EACH + (int)(thread_now() / 32) * square<E>::OWN;
}

/* The operands of a lane: a row of the elements, the first of its four tiles, and the first of its
 * eight outputs. */
template <int E> struct share {
    int row, output, tile;
};
template <int E> static __device__ inline share<E> share_now()
{
    const int lane = lane_now();
    return { lane / 8, lane / (8 / E) % E * OUTPUTS, lane % (8 / E) * TILES };
}

/* The first result of pair p before pooling, and whether the pair exists. */
struct position {
    place at;
    bool is;
};
static __device__ inline position position_of(const conv2d_args &a, uint32_t p)
{
    const uint32_t line = quotient(p, a.quads), image = quotient(line, a.rows);
    return { { image, (int32_t)((line - image * a.rows.by) * ROWS),
               (int32_t)((p - line * a.quads.by) * COLUMNS) },
             p < a.positions };
}

/* ---- filters ---- */

/* Transforms and stores the weights of one output and one channel. The layout of the filters is
 * [channel][column][o / 4 % 2][row][o / 8][o % 4]. Outputs that do not exist have zeros. */
template <int E> static __device__ inline void write_filter(const float g[3][3], int to)
{
    float down[3][SIDE];
#pragma unroll
    for (int j = 0; j < 3; j++) transform_weights(g[j], down[j]);
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
        const float across[3] = { down[0][i], down[1][i], down[2][i] };
        float u[SIDE];
        transform_weights(across, u);
#pragma unroll
        for (int j = 0; j < SIDE; j++) at_shared(to + j * square<E>::TAP + i * E * 4 * EACH) = u[j];
    }
}

template <int E> static __device__ inline void load_filters(const conv2d_args &a, int first)
{
    constexpr int outputs = E * OUTPUTS;
#pragma unroll 4
    for (int t = threadIdx.x; t < a.c * outputs; t += blockDim.x) {
        const int o = t % outputs, c = t / outputs;
        const float *at = (const float *)a.filters + (first + o) * a.filter[0] + c * a.filter[1];
        float g[3][3] = {}; /* g[column][row] */
        if (first + o < a.m)
#pragma unroll
            for (int k = 0; k < 9; k++) g[k % 3][k / 3] = at[k / 3 * a.filter[2] + k % 3 * a.filter[3]];
        write_filter<E>(g, c * square<E>::FILTER + o / 4 % 2 * square<E>::HALF + (o / 8 * 4 + o % 4) * EACH);
    }
    load_bias(a, bias_place(a), first);
}

/* ---- the elements of tiles ---- */

/* Copies rows i .. i + 3 and columns j .. j + 5 of an image, and zeros for those outside of it.
 * `from` is the address of the first element. */
template <int E, bool VECTORS>
static __device__ inline void copy_patch(const conv2d_args &a, const float *from, int i, int j, bool is)
{
    const int lane = lane_now(), own = own_place<E>(a), to = own + square<E>::ELEMENTS + lane * 16,
              beside = own + square<E>::BESIDE + lane * 8;
#pragma unroll(VECTORS ? PATCH_ROWS : 1)
    for (int r = 0; r < PATCH_ROWS; r++, from += a.row)
        copy_row<VECTORS>(a, to + r * 32 * 16, beside + r * 32 * 8, from, j,
                          is && (uint32_t)(i + r) < (uint32_t)a.h);
}

/* Starts the copies of the patches of strip s, for DEPTH channels from `channel` on. */
template <int E> static __device__ inline void prefetch(const conv2d_args &a, uint32_t s, int channel)
{
    constexpr int pairs = square<E>::PAIRS;
    const int lane = lane_now(), c = channel + lane / pairs;
    const position p = position_of(a, s * pairs + (uint32_t)(lane % pairs));
    const int i = p.at.row - a.pad[0], j = p.at.column - a.pad[1];
    const float *from =
        (const float *)a.in + p.at.image * a.image + (int64_t)c * a.channel + (int64_t)i * a.row + j;
    const bool is = p.is && c < a.c;
    if (a.vectors) copy_patch<E, true>(a, from, i, j, is);
    else copy_patch<E, false>(a, from, i, j, is);
    copies_are_issued();
}

/* Transforms the patch of this lane and stores the elements for all lanes of the warp. */
template <int E> static __device__ inline void transform_own(const conv2d_args &a)
{
    using S = square<E>;
    const int lane = lane_now(), own = own_place<E>(a),
              to = own + lane / S::PAIRS * S::CHANNEL + lane % S::PAIRS * 2 * EACH;
    patch p;
#pragma unroll
    for (int r = 0; r < PATCH_ROWS; r++)
        load_row(p[r], own + S::ELEMENTS + (r * 32 + lane) * 16, own + S::BESIDE + (r * 32 + lane) * 8);
    transform_patch(p);
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
        const float *x = p[i];
        const float2 of[SIDE] = { { x[0] - x[2], x[2] - x[4] },
                                  { x[1] + x[2], x[3] + x[4] },
                                  { x[2] - x[1], x[4] - x[3] },
                                  { x[1] - x[3], x[3] - x[5] } };
#pragma unroll
        for (int j = 0; j < SIDE; j++) at_shared<float2>(to + j * S::COLUMN + i * S::ROW) = of[j];
    }
}

/* ---- sums ---- */

struct factors {
    float4 x, w[2];
};
template <int E> static __device__ inline factors load_factors(int elements, int filters)
{
    return { at_shared<float4>(elements),
             { at_shared<float4>(filters), at_shared<float4>(filters + square<E>::HALF) } };
}

static __device__ inline void add_products(float sum[TILES][OUTPUTS], const factors &f)
{
    const float x[TILES] = { f.x.x, f.x.y, f.x.z, f.x.w }, w[OUTPUTS] = { f.w[0].x, f.w[0].y, f.w[0].z,
                                                                          f.w[0].w, f.w[1].x, f.w[1].y,
                                                                          f.w[1].z, f.w[1].w };
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) sum[t][o] = FMA(w[o], x[t], sum[t][o]);
}

/* The loop loads factors one channel ahead, also after the last channel. These factors are not
 * used, and their addresses are inside shared memory. */
template <int E> static __device__ inline void add_channels(const conv2d_args &a, int channel, sums sum)
{
    using S = square<E>;
    const share<E> s = share_now<E>();
    int x = own_place<E>(a) + s.row * S::ROW + s.tile * EACH,
        w = channel * S::FILTER + s.row * E * 4 * EACH + s.output / 2 * EACH;
    const int last = x + min(S::DEPTH, a.c - channel) * S::CHANNEL;
    factors next = load_factors<E>(x, w);
#pragma unroll 1
    for (; x < last; x += S::CHANNEL, w += S::FILTER)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const factors now = next;
            next = j + 1 < SIDE ? load_factors<E>(x + (j + 1) * S::COLUMN, w + (j + 1) * S::TAP)
                                : load_factors<E>(x + S::CHANNEL, w + S::FILTER);
            add_products(sum[j], now);
        }
}

/* ---- results ---- */

typedef float results[2][ROWS][2][TILES]; /* [output][row][column][tile] */

static __device__ inline float first_of(float a, float b, float c) { return (a + b) + c; }
static __device__ inline float second_of(float b, float c, float d) { return (b - c) - d; }

/* Stores the contribution of this lane's row of elements to one of the two columns of results. The
 * values of one output are contiguous over the lanes. */
static __device__ inline void give_row(const sums s, int column, int own)
{
    const int to = own + lane_now() * 16;
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        float y[TILES];
#pragma unroll
        for (int t = 0; t < TILES; t++)
            y[t] = column ? second_of(s[1][t][o], s[2][t][o], s[3][t][o])
                          : first_of(s[0][t][o], s[1][t][o], s[2][t][o]);
        at_shared<float4>(to + o * 32 * 16) = { y[0], y[1], y[2], y[3] };
    }
}

/* Loads the contributions of all four rows to the outputs of this lane, and adds them. */
static __device__ inline void take_rows(results r, int column, int own)
{
    const int lane = lane_now(), from = own + (lane / 8 * 2 * 32 + lane % 8) * 16;
#pragma unroll
    for (int o = 0; o < 2; o++) {
        float y[SIDE][TILES];
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            const float4 z = at_shared<float4>(from + (o * 32 + i * 8) * 16);
            y[i][0] = z.x;
            y[i][1] = z.y;
            y[i][2] = z.z;
            y[i][3] = z.w;
        }
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            r[o][0][column][t] = first_of(y[0][t], y[1][t], y[2][t]);
            r[o][1][column][t] = second_of(y[1][t], y[2][t], y[3][t]);
        }
    }
}

static __device__ inline void exchange(const sums s, results r, int own)
{
#pragma unroll
    for (int column = 0; column < 2; column++) {
        __syncwarp();
        give_row(s, column, own);
        __syncwarp();
        take_rows(r, column, own);
    }
}

/* Stores pair 0 or 1 of a lane, for two outputs. */
template <bool POOLED>
static __device__ inline void epilogue(const conv2d_args &a, const place &at, int first, int bias,
                                       const results r, int pair)
{
    uint32_t wrong = 0;
#pragma unroll
    for (int o = 0; o < 2; o++) {
        float y[ROWS][COLUMNS], size = 0;
#pragma unroll
        for (int t = 0; t < ROWS * COLUMNS; t++) {
            const int i = t / COLUMNS, j = t % COLUMNS;
            y[i][j] = r[o][i][j % 2][2 * pair + j / 2];
            size += ABS(y[i][j]);
        }
        if (first + o >= a.m) break;
        /* Each result is stored once: a formula may read the element that it overwrites. recompute() stores
         * those that are not finite. */
        if (!(size < INF)) wrong |= 1u << o;
        else store_results<POOLED>(a, at, first + o, y, at_shared(bias + o * EACH));
    }
    if (wrong) recompute<POOLED>(a, at, first, wrong, bias);
}

template <int E, bool POOLED>
static __device__ inline void store_strip(const conv2d_args &a, uint32_t s, const results r)
{
    constexpr int by = POOLED ? 2 : 1;
    const share<E> of = share_now<E>();
    const int o = of.output + of.row * 2;
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        const position p = position_of(a, s * square<E>::PAIRS + (uint32_t)(of.tile / 2 + pair));
        if (p.is && p.at.row / by < a.out_h && p.at.column / by < a.out_w)
            epilogue<POOLED>(a, p.at, (int)work_share_of(a).group * a.width + o, bias_place(a) + o * EACH, r,
                             pair);
    }
}

/* ---- the kernel ---- */

/* The strip that a warp computes in a round. The warps of a thread block have neighbouring strips.
 * The strips of the last round are distributed over as many thread blocks as possible instead. */
static __device__ inline uint32_t strip_of(const conv2d_args &a, uint32_t round)
{
    const uint32_t walker = work_share_of(a).walker, warps = blockDim.x / 32, warp = thread_now() / 32,
                   first = round * a.walkers * warps;
    return first +
           (first + a.walkers * warps <= a.strips ? walker * warps + warp : warp * a.walkers + walker);
}

template <int E, bool POOLED> KERNEL(WINOGRAD_2D_WARPS * 32, 1) convolution(ARGUMENT(conv2d_args) a)
{
    using S = square<E>;
    const int first = (int)work_share_of(a).group * a.width;
    if (a.filters_are_there) load_filters<E>(a, first);
    take_turn();
    if (strip_of(a, 0) < a.strips) prefetch<E>(a, strip_of(a, 0), 0);
    if (!a.filters_are_there) load_filters<E>(a, first);
    __syncthreads();
    for (uint32_t round = 0; strip_of(a, round) < a.strips; round++) {
        sums sum = {};
        for (int c = 0; c < a.c; c += S::DEPTH) {
            const bool more = c + S::DEPTH < a.c;
            wait_for_copies();
            __syncwarp();
            transform_own<E>(a);
            __syncwarp();
            const uint32_t next = strip_of(a, more ? round : round + 1);
            if (next < a.strips) prefetch<E>(a, next, more ? c + S::DEPTH : 0);
            add_channels<E>(a, c, sum);
        }
        if (strip_of(a, round + 1) >= a.strips) let_next_begin();
        results r;
        exchange(sum, r, own_place<E>(a));
        store_strip<E, POOLED>(a, strip_of(a, round), r);
    }
}

#ifndef TEMPLATE
template <int E> const void *pooled_or_not(bool pooled)
{
    return pooled ? (const void *)convolution<E, true> : (const void *)convolution<E, false>;
}
#endif

} // namespace

#ifdef TEMPLATE
#define WINOGRAD_2D(number, eights, pooled)                                                                  \
    TEMPLATE_OF(winograd_2d_##number, (WINOGRAD_2D_WARPS * 32, 1), conv2d_args, convolution<eights, pooled>)
WINOGRAD_2D(0, 2, false)
WINOGRAD_2D(1, 4, false)
WINOGRAD_2D(2, 2, true)
WINOGRAD_2D(3, 4, true)
#else

const void *winograd_2d_kernel_f32(int eights, bool pooled)
{
    return eights == 2 ? pooled_or_not<2>(pooled) : pooled_or_not<4>(pooled);
}
#endif
