/* conv2d.cu - convolutions with windows of 3 x 3, what is added to them, relu and pooling by 2 in one pass.
 *
 * A thread block goes over strips: some images, rows and columns of the results. It brings the images there, some channels at a time, into
 * shared memory, the next ones while it computes with these. A thread has 2 x 4 results of O channels of the output, which are summed, and
 * pooled, in registers; its warp has 32 such places, and reads each filter as one broadcast.
 *
 * Down the columns it goes by Winograd's F(2, 3): two results of three products each take four products, of differences of the four
 * elements with sums of the three weights. A result depends on its own nine elements a channel alone, but its error is relative to all
 * products of a column's weights and elements, not only to those that it is the sum of: with u = 2^-24,
 * |error| <= (6 c + 14) u sum (|w0| + |w1| + |w2|) (|x0| + |x1| + |x2|), over channels and columns.
 * A result that is infinite or NaN may be so by the differences alone: it is computed again as it is defined. */
#include "device.cuh"

namespace
{

enum { PATCH_ROWS = 4, PATCH_COLUMNS = 6, ROWS = 2, COLUMNS = 4 };
typedef float patch[PATCH_ROWS][PATCH_COLUMNS];

/* ---- what becomes of a column of a filter, of the elements, and of the sums ---- */

static __device__ inline void transform_filter(const float g[3], float u[PATCH_ROWS])
{
    const float outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1];
    u[0] = g[0], u[1] = outer + inner, u[2] = outer - inner, u[3] = g[2];
}

static __device__ inline void transform_patch(patch p)
{
#pragma unroll
    for (int j = 0; j < PATCH_COLUMNS; j++) {
        const float a = p[0][j] - p[2][j], b = p[1][j] + p[2][j], c = p[2][j] - p[1][j], d = p[1][j] - p[3][j];
        p[0][j] = a, p[1][j] = b, p[2][j] = c, p[3][j] = d;
    }
}

template <int O> using sums = float[PATCH_ROWS][COLUMNS][O];

template <int O> static __device__ inline void results_of(const sums<O> &s, int o, float y[ROWS][COLUMNS])
{
#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
        y[0][j] = (s[0][j][o] + s[1][j][o]) + s[2][j][o], y[1][j] = (s[1][j][o] - s[2][j][o]) - s[3][j][o];
}

/* ---- what is in shared memory ---- */

/* The filters, the bias, and two stages. Places in there are counted in bytes. A line of a stage is the columns in fours, then for each
 * four the elements left and right of it. */
extern __shared__ float4 shared[];
enum { EACH = sizeof(float) };
template <class A = float> static __device__ inline A &at_shared(int place) { return *(A *)((char *)shared + place); }

static __device__ inline int bias_place(const conv2d_args &a) { return a.c * PATCH_ROWS * 3 * a.width * EACH; }
static __device__ inline int stage_place(const conv2d_args &a, int turn)
{
    return bias_place(a) + (CONV_WIDTH + turn * a.stage) * EACH;
}

/* filters[o / O][channel][row][column][o % O]: those of outputs that there are not are zeros. */
template <int O> static __device__ inline void load_filters(const conv2d_args &a, int first)
{
    const int columns = a.c * 3 * a.width;
#pragma unroll 4
    for (int t = threadIdx.x; t < columns; t += CONV_THREADS) {
        const int column = t / a.width, o = t - column * a.width, c = column / 3, k = column - 3 * c;
        const float *at = (const float *)a.filters + (first + o) * a.filter[0] + c * a.filter[1] + k * a.filter[3];
        float g[3] = {}, u[PATCH_ROWS];
        if (first + o < a.m) g[0] = at[0], g[1] = at[a.filter[2]], g[2] = at[2 * a.filter[2]];
        transform_filter(g, u);
#pragma unroll
        for (int r = 0; r < PATCH_ROWS; r++)
            at_shared(((((o / O * a.c + c) * PATCH_ROWS + r) * 3 + k) * O + o % O) * EACH) = u[r];
    }
    for (int o = threadIdx.x; o < a.width; o += CONV_THREADS) /* -0 changes no sum */
        at_shared(bias_place(a) + o * EACH) =
            a.bias && first + o < a.m ? ((const float *)a.bias)[(first + o) * a.bias_stride] : -0.0f;
}

/* A strip: its first image, and its first row and column of the results before they are pooled. */
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

template <int BYTES> static __device__ inline void copy_early(float *to, const float *from, int valid)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(valid) : "memory");
}

static __device__ inline void copy_one(float *to, const float *from, bool inside) { copy_early<4>(to, from, inside ? 4 : 0); }

/* Columns j .. j + 5 of a row of an image: from is column j, to and beside where they go in a line. Absent ones are zeros. */
static __device__ inline void stage_quad(const conv2d_args &a, float *to, float *beside, const float *from, int j, bool inside)
{
    copy_one(beside, from, inside && (uint32_t)j < (uint32_t)a.w);
    copy_one(beside + 1, from + COLUMNS + 1, inside && j + COLUMNS + 1 < a.w);
    if (a.vectors) {
        copy_early<16>(to, from + 1, inside ? 4 * max(min(a.w - j - 1, COLUMNS), 0) : 0);
    } else {
#pragma unroll
        for (int x = 0; x < COLUMNS; x++) copy_one(to + x, from + 1 + x, inside && (uint32_t)(j + 1 + x) < (uint32_t)a.w);
    }
}

/* The channels from `channel` on of a strip, as many as depth is. */
static __device__ inline void stage(const conv2d_args &a, const strip &s, int channel, int to)
{
    for (uint32_t u = threadIdx.x; u < a.units; u += CONV_THREADS) {
        const uint32_t line = quotient(u, a.quads), plane = quotient(line, a.lines), image = quotient(plane, a.depth);
        const int q = (int)(u - line * a.quads.by), c = channel + (int)(plane - image * a.depth.by);
        const int i = s.row - a.pad[0] + (int)(line - plane * a.lines.by), j = s.column - a.pad[1] + q * COLUMNS;
        const bool inside = s.image + image < a.n && c < a.c && (uint32_t)i < (uint32_t)a.h;
        const float *from = (const float *)a.in + (s.image + image) * a.image + (int64_t)c * a.channel + (int64_t)i * a.row + j;
        float *at = &at_shared(to + (int)line * a.pitch * EACH);
        stage_quad(a, at + q * COLUMNS, at + a.quads.by * COLUMNS + 2 * q, from, j, inside);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* ---- a thread's sums ---- */

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
    for (int i = 0; i < PATCH_ROWS; i++) {
        const float4 m = at_shared<float4>(at + i * pitch);
        const float2 h = at_shared<float2>(at + i * pitch + beside);
        p[i][0] = h.x, p[i][1] = m.x, p[i][2] = m.y, p[i][3] = m.z, p[i][4] = m.w, p[i][5] = h.y;
    }
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

/* ---- what is written ---- */

/* A thread's place: where its 2 x 4 results are, before pooling. No image: it has none. */
struct place {
    int64_t image;
    int32_t row, column;
};

/* The maximum goes first: rounding keeps order. But infinities of both signs, where the bias has one of them, are NaN. */
static __device__ inline float pooled(const float y[ROWS][COLUMNS], int j, float bias, float least)
{
    const float most = MAXIMUM(MAXIMUM(y[0][j], y[0][j + 1]), MAXIMUM(y[1][j], y[1][j + 1]));
    float z = most + bias;
    if (ABS(bias) == INF) z = MAXIMUM(z, MINIMUM(MINIMUM(y[0][j], y[0][j + 1]), MINIMUM(y[1][j], y[1][j + 1])) + bias);
    return MAXIMUM(z, least);
}

template <int N> static __device__ inline void write(const conv2d_args &a, int64_t at, int column, const float z[N])
{
    struct alignas(N * sizeof(float)) some {
        float e[N];
    };
    float *out = (float *)a.out + at;
    if (a.wide) {
        some s;
#pragma unroll
        for (int x = 0; x < N; x++) s.e[x] = z[x];
        *(some *)out = s;
    } else {
#pragma unroll
        for (int x = 0; x < N; x++)
            if (column + x < a.out_w) out[x] = z[x];
    }
}

/* Results y of one channel, at a place that has some. */
template <bool POOLED>
static __device__ inline void deliver(const conv2d_args &a, const place &at, int o, const float y[ROWS][COLUMNS], float bias)
{
    constexpr int by = POOLED ? 2 : 1;
    const int row = at.row / by, column = at.column / by;
    const int64_t first = ((at.image * a.m + o) * a.out_h + row) * a.out_w + column;
    if (POOLED) {
        const float z[2] = { pooled(y, 0, bias, a.least), pooled(y, 2, bias, a.least) };
        write<2>(a, first, column, z);
    } else {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            float z[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) z[j] = MAXIMUM(y[i][j] + bias, a.least);
            if (row + i < a.out_h) write<COLUMNS>(a, first + i * (int64_t)a.out_w, column, z);
        }
    }
}

/* One result as it is defined: padding is zeros, which a filter multiplies too. */
static __device__ float defined(const conv2d_args &a, int64_t image, int o, int row, int column)
{
    const float *in = (const float *)a.in + image * a.image, *filter = (const float *)a.filters + o * a.filter[0];
    float sum = 0;
#pragma unroll 1
    for (int c = 0; c < a.c; c++)
#pragma unroll 1
        for (int t = 0; t < 9; t++) {
            const int i = row - a.pad[0] + t / 3, j = column - a.pad[1] + t % 3;
            const bool inside = (uint32_t)i < (uint32_t)a.h && (uint32_t)j < (uint32_t)a.w;
            const float x = inside ? in[(int64_t)c * a.channel + (int64_t)i * a.row + j] : 0;
            sum = FMA(filter[c * a.filter[1] + t / 3 * a.filter[2] + t % 3 * a.filter[3]], x, sum);
        }
    return sum;
}

/* Some channels of a place again, `which` from `first` on. */
template <bool POOLED>
static __device__ __noinline__ void mend(const conv2d_args &a, place at, int first, uint32_t which, int bias)
{
#pragma unroll 1
    for (; which; which &= which - 1) {
        const int o = __ffs((int)which) - 1;
        float y[ROWS][COLUMNS];
#pragma unroll 1
        for (int t = 0; t < ROWS * COLUMNS; t++)
            y[t / COLUMNS][t % COLUMNS] = defined(a, at.image, first + o, at.row + t / COLUMNS, at.column + t % COLUMNS);
        deliver<POOLED>(a, at, first + o, y, at_shared(bias + o * EACH));
    }
}

/* All channels of a place; bias: those of the channels from `first` on. */
template <int O, bool POOLED>
static __device__ inline void finish(const conv2d_args &a, const place &at, int first, int bias, const sums<O> &sum)
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
        if (!(size < INF)) wrong |= 1u << o;
        deliver<POOLED>(a, at, first + o, y, b[o]);
    }
    if (wrong) mend<POOLED>(a, at, first, wrong, bias);
}

/* ---- the kernel ---- */

/* A thread block's group of outputs, and its first strip. Indices are read again each time: a strip's sums leave no register for what
 * follows from them. */
struct errand {
    uint32_t walker, group;
};

static __device__ inline errand errand_of(const conv2d_args &a)
{
    uint32_t block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    const uint32_t walker = quotient(block, a.groups);
    return { walker, block - walker * a.groups.by };
}

/* A thread's position in a strip. */
struct position {
    uint32_t image, row, quad;
    int first; /* of its outputs, in the group */
    bool is;
};

template <int O> static __device__ inline position position_of(const conv2d_args &a)
{
    uint32_t thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    const uint32_t warp = thread / 32, share = warp / a.along, p = (warp - share * a.along) * 32 + thread % 32;
    const bool is = p < a.positions;
    const uint32_t line = quotient(is ? p : 0, a.quads), image = quotient(line, a.rows);
    return { image, line - image * a.rows.by, (is ? p : 0) - line * a.quads.by, (int)share * O, is };
}

template <int O, bool POOLED> static __device__ inline void give(const conv2d_args &a, const strip &s, const sums<O> &sum)
{
    constexpr int by = POOLED ? 2 : 1;
    const position p = position_of<O>(a);
    const place at = { s.image + p.image, s.row + (int32_t)p.row * ROWS, s.column + (int32_t)p.quad * COLUMNS };
    if (p.is && at.image < a.n && at.row / by < a.out_h && at.column / by < a.out_w)
        finish<O, POOLED>(a, at, (int)errand_of(a).group * a.width + p.first, bias_place(a) + p.first * EACH, sum);
}

/* Takes the channels of a stage, from which `first` of the filters on. */
template <int O> static __device__ inline void add_stage(const conv2d_args &a, int turn, int channel, sums<O> &sum)
{
    constexpr int taps = PATCH_ROWS * 3 * O * EACH;
    const position p = position_of<O>(a);
    const int pitch = a.pitch * EACH, plane = (int)a.lines.by * pitch, beside = (int)(a.quads.by * COLUMNS - 2 * p.quad) * EACH;
    int from =
        stage_place(a, turn) + (int)(p.image * a.depth.by) * plane + (int)(p.row * ROWS) * pitch + (int)(p.quad * COLUMNS) * EACH;
    int filters = (p.first / O * a.c + channel) * taps;
    const int last = filters + min((int)a.depth.by, a.c - channel) * taps;
#pragma unroll 1
    for (; filters < last; from += plane, filters += taps) {
        patch x;
        load_patch(x, from, beside, pitch);
        add_channel<O>(sum, x, filters);
    }
}

template <int O, bool POOLED, int BLOCKS> KERNEL(CONV_THREADS, BLOCKS) convolution(const __grid_constant__ conv2d_args a)
{
    uint32_t s = errand_of(a).walker;
    int turn = 0;
    const int first = (int)errand_of(a).group * a.width;
    if (a.filters_are_there) load_filters<O>(a, first);
    take_turn();
    stage(a, strip_of(a, s), 0, stage_place(a, 0));
    if (!a.filters_are_there) load_filters<O>(a, first);
    for (; s < a.strips; s += a.walkers) {
        sums<O> sum = {};
        for (int c = 0; c < a.c; c += a.depth.by, turn ^= 1) {
            asm volatile("cp.async.wait_all;" ::: "memory");
            __syncthreads();
            const bool more = c + (int)a.depth.by < a.c;
            if (more || s + a.walkers < a.strips)
                stage(a, strip_of(a, more ? s : s + a.walkers), more ? c + a.depth.by : 0, stage_place(a, turn ^ 1));
            add_stage<O>(a, turn, c, sum);
        }
        if (s + a.walkers >= a.strips) let_next_begin();
        give<O, POOLED>(a, strip_of(a, s), sum);
    }
}

template <int O, int BLOCKS> const void *pooled_or_not(bool pooled)
{
    return pooled ? (const void *)convolution<O, true, BLOCKS> : (const void *)convolution<O, false, BLOCKS>;
}

} // namespace

/* outputs: a thread's. */
const void *conv2d_kernel_f32(int outputs, bool pooled)
{
    switch (outputs) {
    case 2: return pooled_or_not<2, 6>(pooled);
    case 4: return pooled_or_not<4, 4>(pooled);
    default: return pooled_or_not<8, 3>(pooled);
    }
}
