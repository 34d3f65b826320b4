/* emulated_gemm.cu - matrix products out = a b on tensor cores, with numbers as pairs of f16
 * (emulated.cuh).
 *
 * b has been packed (emulated_pack.cu). A thread block computes a tile of the result. One of its
 * threads copies a and b into a ring of stages in shared memory. Two groups of four warps read a
 * from there, convert it to pairs in registers, and multiply it by b. A unit is 64 inner elements.
 * Tensor cores truncate their sums, so the sums of each unit are computed separately and added in
 * f32. The groups find the scale of each row of a while they read it.
 *
 * With tiles of 128 rows, each group computes 64 rows. With tiles of 64 rows, the groups compute
 * alternate units of the same rows. Either a thread block computes several tiles one after the
 * other, or the thread blocks of a cluster share the inner axis of one tile. */
#include "emulated.cuh"
#include "epilogue.cuh"

namespace
{

enum { UNIT = EMULATED_UNIT, PART = EMULATED_PART, GROUP = 128, A_LINE = 128, STAGES_MOST = 8 };
enum { HEADROOM = 3 }; /* a scale allows later elements of a row to be 2^HEADROOM times as large */

template <int ROWS_, int COLUMNS_> struct tile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr int A_HALF = ROWS * A_LINE, A_BYTES = 2 * A_HALF, B_PART = COLUMNS / UNIT * PART,
                         B_BYTES = 2 * B_PART;
    static constexpr int STAGE = A_BYTES + B_BYTES, STORE_PITCH = 40,
                         STORE_BUFFER = 16 * STORE_PITCH * 4; /* bytes of the store buffer of a warp */
    static constexpr int AVAILABLE = 227 * 1024 - 1024 - 8 * STORE_BUFFER - 256; /* bytes for stages */
    static constexpr int STAGES = AVAILABLE / STAGE < STAGES_MOST ? AVAILABLE / STAGE : STAGES_MOST;
    static constexpr bool ALTERNATES = ROWS == 64; /* the groups compute alternate units */
    static constexpr int SHARED = STAGES * STAGE + 8 * STORE_BUFFER + 256 + 1024;
    static_assert(2 * 64 * COLUMNS * 4 <= STAGES * STAGE, "the sums of both groups fit into the stages");
};

/* Addresses in shared memory. full and empty are barriers, one for each stage. */
struct shared_map {
    uint32_t stages, store_buffers, full, empty;
};

template <class t> static __device__ inline shared_map shared_map_of(const void *shared)
{
    const uint32_t first = (shared_address(shared) + 1023) / 1024 * 1024,
                   buffers = first + t::STAGES * t::STAGE;
    return { first, buffers, buffers + 8 * t::STORE_BUFFER, buffers + 8 * t::STORE_BUFFER + 8 * STAGES_MOST };
}

static __device__ inline int units_of(const product_args &s) { return (s.k + UNIT - 1) / UNIT; }

/* The units of the inner axis that a thread block computes. Its tile depends on the round. */
struct work_share {
    int first, count;
};

static __device__ inline work_share work_share_of(const product_args &s)
{
    const int part = blockIdx.x % s.parts, units = units_of(s), first = units * part / s.parts;
    return { first, units * (part + 1) / s.parts - first };
}

/* The first row and column of a tile. */
struct corner {
    int top, left;
};

/* Sets c to the tile of this thread block in a round; returns false if there is none. */

template <class t> static __device__ inline bool corner_of(const emulated_args &s, int round, corner &c)
{
    const int across = (s.of.n + t::COLUMNS - 1) / t::COLUMNS, down = (s.of.m + t::ROWS - 1) / t::ROWS;
    const int field = blockIdx.x / s.of.parts + round * (gridDim.x / s.of.parts);
    c.top = field / across * t::ROWS;
    c.left = field % across * t::COLUMNS;
    return round < s.rounds && field < across * down;
}

/* ---- loading ---- */

template <class t>
static __device__ inline void copy_a(const emulated_args &s, const shared_map &r, corner c, int unit,
                                     int stage)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
        copy_box(r.stages + stage * t::STAGE + t::B_BYTES + h * t::A_HALF, &s.a, unit * UNIT + h * 32, c.top,
                 r.full + 8 * stage);
}

/* If a tile extends beyond the last column, its last units are copied again; their results are not
 * stored. */
template <class t>
static __device__ inline void copy_b(const emulated_args &s, const shared_map &r, corner c, int unit,
                                     int stage)
{
    const int units = units_of(s.of), last = (s.of.n - 1) / UNIT;
    barrier_expect(r.full + 8 * stage, t::STAGE);
#pragma unroll
    for (int u = 0; u < t::COLUMNS / UNIT; u++)
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int64_t from = ((int64_t)min(c.left / UNIT + u, last) * units + unit) * 2 + part;
            copy_bulk(r.stages + stage * t::STAGE + part * t::B_PART + u * PART,
                      (const char *)s.packed + EMULATED_HEAD + from * PART, PART, r.full + 8 * stage);
        }
}

/* Executed by one thread. Copies all units of all rounds, each as soon as its stage is empty. */
template <class t>
static __device__ inline void copy_units(const emulated_args &s, const shared_map &r, const work_share &e)
{
    int stage = 0, turn = 0;
    corner c;
    asm volatile("prefetch.tensormap [%0];" ::"l"(&s.a) : "memory");
    const int early = s.packed_is_there && corner_of<t>(s, 0, c) ? min((int)t::STAGES, e.count) : 0;
    for (int i = 0; i < early; i++) copy_b<t>(s, r, c, e.first + i, i);
    take_turn();
    for (int round = 0; corner_of<t>(s, round, c); round++)
#pragma unroll 1
        for (int i = 0; i < e.count; i++) {
            if (turn) barrier_wait(r.empty + 8 * stage, turn - 1 & 1);
            if (round || turn || i >= early) copy_b<t>(s, r, c, e.first + i, stage);
            copy_a<t>(s, r, c, e.first + i, stage);
            if (++stage == t::STAGES) {
                stage = 0;
                turn++;
            }
        }
}

/* ---- multiplying ---- */

static __device__ inline float4 loaded(uint32_t at)
{
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at));
    return x;
}

/* Returns the row of a lane among 8. Rows that are read at the same time are 4 apart, which avoids
 * bank conflicts. */
static __device__ inline int row_of_lane() { return threadIdx.x % 32 / 8 + threadIdx.x / 4 % 2 * 4; }

/* The fragments of a that a lane has in a unit: for each 16 inner elements, four elements of row r
 * and four of row r + 8. `scale` is the scale of both rows, as a biased exponent. */
struct fragments {
    uint32_t high[4][4], low[4][4];
    int scale[2];
};

/* The same elements before they are split. */
struct elements {
    float4 of[2][4];
};

template <class t> static __device__ inline void fetch(elements &x, uint32_t a)
{
    const int row = row_of_lane();
    const uint32_t from = a + (threadIdx.x % GROUP / 32 * 16 + row) * A_LINE;
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            x.of[h][q] = loaded(from + q / 2 * t::A_HALF + ((q % 2 * 4 + threadIdx.x % 4) ^ row) * 16 +
                                h * 8 * A_LINE);
}

static __device__ inline void split_rows(fragments &f, const elements &x)
{
    const float scale[2] = { power_of_two(f.scale[0]), power_of_two(f.scale[1]) };
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float4 e = x.of[h][q];
            split_pair(e.x * scale[h], e.y * scale[h], f.high[q][h], f.low[q][h]);
            split_pair(e.z * scale[h], e.w * scale[h], f.high[q][h + 2], f.low[q][h + 2]);
        }
}

/* Is an element at least 2^15 after scaling? */
static __device__ inline bool is_too_large(const fragments &f)
{
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) most = larger_halves(most, f.high[i / 4][i % 4]);
    return has_half_from(most, HALF_TOP);
}

/* Returns the scale for the elements of a row, which four lanes share. If an element is infinite, no
 * result of the row is finite, and the scale does not matter. */
static __device__ inline int scale_of_row(const float4 (&x)[4])
{
    float most = 0;
#pragma unroll
    for (int q = 0; q < 4; q++)
        most = fmaxf(fmaxf(fmaxf(most, fabsf(x[q].x)), fmaxf(fabsf(x[q].y), fabsf(x[q].z))), fabsf(x[q].w));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    return max(scale_exponent(fmaxf(most, __shfl_xor_sync(~0u, most, 2))) - HEADROOM, 1);
}

/* Splits a unit, with the scale of the previous unit (`before`) if it fits. Otherwise, as in the
 * first unit, it computes a new scale. It then loads the elements again, because that takes fewer
 * registers than to keep them. */
template <class t>
static __device__ inline void split(fragments &f, elements &x, const int (&before)[2], uint32_t a)
{
    f.scale[0] = before[0];
    f.scale[1] = before[1];
    split_rows(f, x);
    if (!__any_sync(~0u, is_too_large(f))) return;
    fetch<t>(x, a);
#pragma unroll
    for (int h = 0; h < 2; h++) f.scale[h] = min(before[h], scale_of_row(x.of[h]));
    split_rows(f, x);
}

template <class t>
static __device__ inline void begin(float (&d)[t::COLUMNS / 2], const fragments &f, uint32_t b)
{
    products_begin();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const uint64_t b_high = described(b + q * 32), b_low = described(b + t::B_PART + q * 32);
        products<t::COLUMNS>::add(d, f.high[q], b_high, q > 0);
        products<t::COLUMNS>::add(d, f.low[q], b_high, true);
        products<t::COLUMNS>::add(d, f.high[q], b_low, true);
    }
    products_end();
}

/* Undoes the scales of the sums of a unit and adds them to the total. The product of both factors is
 * nearly always in the range of f32, and one multiplication then suffices. */
template <int N>
static __device__ inline void promote(float (&sum)[N], const float (&d)[N], const unscaling (&u)[2])
{
    const float one[2] = { u[0].first * u[0].then, u[1].first * u[1].then };
    if (__all_sync(~0u, fminf(one[0], one[1]) > 0 && fmaxf(one[0], one[1]) < INF)) {
#pragma unroll
        for (int k = 0; k < N; k++) sum[k] = FMA(d[k], one[k / 2 % 2], sum[k]);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) sum[k] += unscaled(d[k], u[k / 2 % 2]);
    }
}

/* The ring of stages, as one group of warps reads it. */
template <class t> struct pipeline {
    static constexpr int STEP = t::ALTERNATES ? 2 : 1;
    shared_map r;
    int of_b; /* the scale of b, as a biased exponent */
    int group;
    int at; /* number of units in all rounds before this one */

    __device__ inline uint32_t stage(int i) const { return r.stages + (at + i) % t::STAGES * t::STAGE; }
    __device__ inline uint32_t a_of(int i) const
    {
        return stage(i) + t::B_BYTES + (t::ALTERNATES ? 0 : group * 64 * A_LINE);
    }

    /* Waits for unit i, loads and splits it. */
    __device__ inline void take(fragments &f, const int (&before)[2], int i) const
    {
        elements x;
        barrier_wait(r.full + 8 * ((at + i) % t::STAGES), (at + i) / t::STAGES & 1);
        fetch<t>(x, a_of(i));
        split<t>(f, x, before, a_of(i));
    }

    /* Multiplies unit i. While the tensor cores work, it prepares the fragments of the next unit. */
    __device__ inline void turn(float (&sum)[t::COLUMNS / 2], const fragments &now, fragments &next, int i,
                                int count) const
    {
        const bool more = i + STEP < count;
        float d[t::COLUMNS / 2];
        begin<t>(d, now, stage(i));
        const unscaling u[2] = { unscaling_of(now.scale[0], of_b), unscaling_of(now.scale[1], of_b) };
        if (more) take(next, now.scale, i + STEP);
        products_wait<0>();
        keep_after_wait(d);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(r.empty + 8 * ((at + i) % t::STAGES));
        promote(sum, d, u);
    }

    __device__ inline void take_all(float (&sum)[t::COLUMNS / 2], int count)
    {
        fragments even, odd;
        int i = t::ALTERNATES ? group : 0;
        if (i < count) take(even, { SCALE_MOST, SCALE_MOST }, i);
#pragma unroll 1
        for (; i < count; i += 2 * STEP) {
            turn(sum, even, odd, i, count);
            if (i + STEP < count) turn(sum, odd, even, i + STEP, count);
        }
        at += count;
    }
};

/* ---- results ---- */

/* Applies an activation to N results. */
template <int N> static __device__ inline void apply_epilogue(float (&x)[N], int act)
{
    if (act == OP_relu) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = finished(x[i], OP_relu);
    } else if (act == OP_sigmoid) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = finished(x[i], OP_sigmoid);
    } else if (act == OP_tanh) {
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = finished(x[i], OP_tanh);
    }
}

/* Applies the epilogue to sums and stores them: four columns of EACH rows, which are `step` apart. */
template <int EACH>
static __device__ inline void write(const emulated_args &p, float (&x)[EACH * 4], int row, int step,
                                    int column)
{
    const product_args &s = p.of;
#pragma unroll
    for (int i = 0; i < EACH * 4; i++) x[i] *= (T)s.alpha;
    if (s.bias) {
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const float b = column + c < s.n ? bias_at(s, column + c) : 0;
#pragma unroll
            for (int i = 0; i < EACH; i++) x[4 * i + c] += b;
        }
        apply_epilogue(x, s.act);
    }
    if (column >= s.n) return;
    if (p.out_in_fours) { /* the row is clamped, without a branch, so that the formula's reads overlap */
#pragma unroll
        for (int i = 0; i < EACH; i++)
            apply_formula<4>(x + 4 * i, min(row + i * step, s.m - 1) * (int64_t)s.n + column);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int64_t here = row + i * step, e = here * s.n + column;
        float *out = (float *)s.out + here * s.out_row + column;
        if (here >= s.m) continue;
        if (p.out_in_fours) {
            *(float4 *)out = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
        } else {
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (column + c < s.n) out[c] = formula_of(x[4 * i + c], e + c);
        }
    }
}

/* Stores the 16 rows of a warp, 32 columns at a time. They go through the store buffer of the warp,
 * so that each store writes complete lines. The remaining sums move to the front of `sum` after each
 * round; otherwise the loop would have to be unrolled. */
template <class t>
static __device__ inline void write_own(const emulated_args &s, float (&sum)[t::COLUMNS / 2],
                                        const shared_map &r, corner c)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = row_of_lane();
    const uint32_t store_buffer = r.store_buffers + warp * t::STORE_BUFFER;
#pragma unroll 1
    for (int from = 0; from < t::COLUMNS; from += 32) {
        float x[16];
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                                 store_buffer + ((row + 8 * h) * t::STORE_PITCH + j * 8 + lane % 4 * 2) * 4),
                             "f"(sum[4 * j + 2 * h]), "f"(sum[4 * j + 2 * h + 1])
                             : "memory");
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 y = loaded(store_buffer + ((lane / 8 + 4 * i) * t::STORE_PITCH + lane % 8 * 4) * 4);
            x[4 * i] = y.x;
            x[4 * i + 1] = y.y;
            x[4 * i + 2] = y.z;
            x[4 * i + 3] = y.w;
        }
        write<4>(s, x, c.top + warp * 16 + lane / 8, 4, c.left + from + lane % 8 * 4);
        __syncwarp();
#pragma unroll
        for (int i = 0; i + 16 < t::COLUMNS / 2; i++) sum[i] = sum[i + 16];
    }
}

/* A barrier for both multiplying groups. */
static __device__ inline void meet_groups() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

static __device__ inline void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ inline float4 of_neighbour(uint32_t at, int rank)
{
    float4 x;
    const uint32_t there = at_neighbour(at, rank);
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(there));
    return x;
}

/* Stores the sums of both groups in shared memory, in rows of COLUMNS. */
template <class t> static __device__ inline void keep(const float (&sum)[t::COLUMNS / 2], uint32_t at)
{
    const int row = threadIdx.x / 32 * 16 + row_of_lane();
#pragma unroll
    for (int j = 0; j < t::COLUMNS / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                             at + ((row + 8 * h) * t::COLUMNS + j * 8 + threadIdx.x % 4 * 2) * 4),
                         "f"(sum[4 * j + 2 * h]), "f"(sum[4 * j + 2 * h + 1])
                         : "memory");
}

/* Adds the sums of both groups and of all thread blocks of the cluster. Each thread block stores a
 * part of the tile. All loads are issued before the first addition, so that they overlap. */
template <class t> static __device__ inline void join(const emulated_args &s, const shared_map &r, corner c)
{
    const int parts = s.of.parts, part = blockIdx.x % parts, all = t::ROWS * t::COLUMNS / 4,
              share = (all + parts - 1) / parts;
#pragma unroll 1
    for (int i = part * share + threadIdx.x; i < min((part + 1) * share, all); i += 2 * GROUP) {
        const int row = i / (t::COLUMNS / 4), column = i % (t::COLUMNS / 4) * 4;
        float4 x[EMULATED_PARTS][128 / t::ROWS];
        float sum[4] = {};
        if (c.top + row >= s.of.m || c.left + column >= s.of.n) continue;
#pragma unroll
        for (int p = 0; p < EMULATED_PARTS; p++)
#pragma unroll
            for (int g = 0; g < 128 / t::ROWS; g++)
                if (p < parts)
                    x[p][g] = of_neighbour(r.stages + ((g * 64 + row) * t::COLUMNS + column) * 4, p);
#pragma unroll
        for (int p = 0; p < EMULATED_PARTS; p++)
#pragma unroll
            for (int g = 0; g < 128 / t::ROWS; g++)
                if (p < parts) {
                    sum[0] += x[p][g].x;
                    sum[1] += x[p][g].y;
                    sum[2] += x[p][g].z;
                    sum[3] += x[p][g].w;
                }
        write<1>(s, sum, c.top + row, 1, c.left + column);
    }
}

/* The first two groups of four warps multiply. One thread of the third group copies operands; the
 * threads of this group then exit. They may, because the barriers of a cluster ignore threads that
 * have exited. */
template <int ROWS, int COLUMNS> KERNEL(EMULATED_THREADS, 1) emulated_gemm(ARGUMENT(emulated_args) s)
{
    typedef tile<ROWS, COLUMNS> t;
    extern __shared__ float4 shared[];
    const shared_map r = shared_map_of<t>(shared);
    const work_share e = work_share_of(s.of);
    const bool joins = t::ALTERNATES || s.of.parts > 1;
    if (threadIdx.x == 0) {
        for (int i = 0; i < t::STAGES; i++) {
            barrier_make(r.full + 8 * i, 1);
            barrier_make(r.empty + 8 * i, t::ALTERNATES ? 4 : 8);
        }
        barriers_made();
    }
    __syncthreads();
    if (threadIdx.x >= 2 * GROUP) {
        leave_registers<40>();
        if (threadIdx.x > 2 * GROUP) return;
        copy_units<t>(s, r, e);
        /* only this thread of its group has waited for the previous kernel */
        let_next_begin();
    } else {
        take_registers<232>();
        take_turn();
        pipeline<t> p = { r, scale_exponent(*(const float *)s.packed), (int)threadIdx.x / GROUP, 0 };
        corner c;
        for (int round = 0; corner_of<t>(s, round, c); round++) {
            float sum[COLUMNS / 2] = {};
            p.take_all(sum, e.count);
            if (!joins) {
                write_own<t>(s, sum, r, c);
            } else {
                meet_groups(); /* both groups must have read all stages */
                keep<t>(sum, r.stages);
                /* needed although the cluster barrier follows: the copying threads may have exited */
                meet_groups();
                meet_cluster();
                join<t>(s, r, c);
                meet_cluster(); /* no thread block may end while others read its memory */
            }
        }
    }
}

} // namespace

#ifdef TEMPLATE
#define TILE(number, rows, columns)                                                                          \
    TEMPLATE_OF(emulated_gemm_##number, (EMULATED_THREADS, 1), emulated_args, emulated_gemm<rows, columns>)
TILE(0, 128, 128)
TILE(1, 128, 64)
TILE(2, 64, 64)
#else
#define TILE_OF(rows, columns, start, cost)                                                                  \
    {                                                                                                        \
        rows, columns, tile<rows, columns>::SHARED, !tile<rows, columns>::ALTERNATES, start, cost,           \
            (const void *)emulated_gemm<rows, columns>                                                       \
    }
static const emulated_kernel kernels[] = {
    TILE_OF(128, 128, 4.5, 1.1),
    TILE_OF(128, 64, 3.5, 0.73),
    TILE_OF(64, 64, 3, 0.47),
};

const emulated_kernel *emulated_kernels(int *count)
{
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}
#endif
