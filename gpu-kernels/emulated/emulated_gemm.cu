/* emulated_gemm.cu - products by tensor cores, of operands as pairs of f16.
 *
 * b has been packed (emulated_pack.cu). A thread block has a tile of the result. One of its threads brings a, and b, into shared memory, as far
 * ahead as there is room. Two groups of four warps take a from there, as pairs in registers, and multiply: each row of a under a scale of its
 * own, so that nothing about a must be known. The tensor cores truncate their sums, so each unit of 64 inner elements is summed apart, and
 * added to what was before as f32 are.
 *
 * Of 128 rows each group takes 64; of 64 they take units in turn. Thread blocks go over tiles, or those of a cluster share the inner axis of
 * one. */
#include "emulated.cuh"
#include "epilogue.cuh"

namespace
{

enum { UNIT = PAIR_UNIT, PART = PAIR_PART, GROUP = 128, A_LINE = 128, STAGES_MOST = 8 };
enum { HEADROOM = 3 }; /* powers of two by which a row's elements may grow under its scale */

template <int ROWS_, int COLUMNS_> struct tile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr int A_HALF = ROWS * A_LINE, A_BYTES = 2 * A_HALF, B_PART = COLUMNS / UNIT * PART,
                         B_BYTES = 2 * B_PART;
    static constexpr int STAGE = A_BYTES + B_BYTES, DESK_PITCH = 40,
                         DESK = 16 * DESK_PITCH * 4; /* of a warp */
    static constexpr int ROOM = 227 * 1024 - 1024 - 8 * DESK - 256;
    static constexpr int STAGES = ROOM / STAGE < STAGES_MOST ? ROOM / STAGE : STAGES_MOST;
    static constexpr bool TAKES_TURNS = ROWS == 64; /* the groups */
    static constexpr int SHARED = STAGES * STAGE + 8 * DESK + 256 + 1024;
    static_assert(2 * 64 * COLUMNS * 4 <= STAGES * STAGE, "room for the results of both groups");
};

/* Where things are in shared memory. */
struct room {
    uint32_t stages, desks, full, empty;
};

template <class t> static __device__ inline room room_of(const void *shared)
{
    const uint32_t first = (place_of(shared) + 1023) / 1024 * 1024, desks = first + t::STAGES * t::STAGE;
    return { first, desks, desks + 8 * t::DESK, desks + 8 * t::DESK + 8 * STAGES_MOST };
}

static __device__ inline int units_of(const product_args &s) { return (s.k + UNIT - 1) / UNIT; }

/* A thread block's share: units of the inner axis, and in each round a tile. */
struct errand {
    int first, count;
};

static __device__ inline errand errand_of(const product_args &s)
{
    const int part = blockIdx.x % s.parts, units = units_of(s), first = units * part / s.parts;
    return { first, units * (part + 1) / s.parts - first };
}

struct corner {
    int top, left;
};

template <class t> static __device__ inline bool corner_of(const pair_args &s, int round, corner &c)
{
    const int across = (s.of.n + t::COLUMNS - 1) / t::COLUMNS, down = (s.of.m + t::ROWS - 1) / t::ROWS;
    const int field = blockIdx.x / s.of.parts + round * (gridDim.x / s.of.parts);
    c.top = field / across * t::ROWS, c.left = field % across * t::COLUMNS;
    return round < s.rounds && field < across * down;
}

/* ---- bringing ---- */

template <class t>
static __device__ inline void bring_a(const pair_args &s, const room &r, corner c, int unit, int stage)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
        copy_box(r.stages + stage * t::STAGE + t::B_BYTES + h * t::A_HALF, &s.a, unit * UNIT + h * 32, c.top,
                 r.full + 8 * stage);
}

/* Columns that there are not get those before, and are not written. */
template <class t>
static __device__ inline void bring_b(const pair_args &s, const room &r, corner c, int unit, int stage)
{
    const int units = units_of(s.of), last = (s.of.n - 1) / UNIT;
    barrier_expect(r.full + 8 * stage, t::STAGE);
#pragma unroll
    for (int u = 0; u < t::COLUMNS / UNIT; u++)
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int64_t from = ((int64_t)min(c.left / UNIT + u, last) * units + unit) * 2 + part;
            copy_bulk(r.stages + stage * t::STAGE + part * t::B_PART + u * PART,
                      (const char *)s.packed + PAIR_HEAD + from * PART, PART, r.full + 8 * stage);
        }
}

/* By one thread. */
template <class t> static __device__ inline void bring(const pair_args &s, const room &r, const errand &e)
{
    int stage = 0, turn = 0;
    corner c;
    asm volatile("prefetch.tensormap [%0];" ::"l"(&s.a) : "memory");
    const int early = s.packed_is_there && corner_of<t>(s, 0, c) ? min((int)t::STAGES, e.count) : 0;
    for (int i = 0; i < early; i++) bring_b<t>(s, r, c, e.first + i, i);
    take_turn();
    for (int round = 0; corner_of<t>(s, round, c); round++)
#pragma unroll 1
        for (int i = 0; i < e.count; i++) {
            if (turn) barrier_wait(r.empty + 8 * stage, turn - 1 & 1);
            if (round || turn || i >= early) bring_b<t>(s, r, c, e.first + i, stage);
            bring_a<t>(s, r, c, e.first + i, stage);
            if (++stage == t::STAGES) stage = 0, turn++;
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

/* Which of 8 rows a lane has: two that are read at once lie 4 apart, so that all their pieces lie in different banks. */
static __device__ inline int row_of_lane() { return threadIdx.x % 32 / 8 + threadIdx.x / 4 % 2 * 4; }

/* Of a unit: of 16 inner elements at a time rows r and r + 8, four each (emulated_pack.cu orders b's likewise). Each row is scaled by a power of
 * two, biased. */
struct fragments {
    uint32_t high[4][4], low[4][4];
    int scale[2];
};

/* A lane's elements of a unit: of row r, then of row r + 8, of 16 inner elements at a time. */
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

/* Is an element too large for its scale? */
static __device__ inline bool is_too_large(const fragments &f)
{
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) most = larger_halves(most, f.high[i / 4][i % 4]);
    return has_half_from(most, HALF_TOP);
}

/* Four lanes have a row together. Where an element is infinite no result of the row is finite: any scale will do. */
static __device__ inline int scale_of_row(const float4 (&x)[4])
{
    float most = 0;
#pragma unroll
    for (int q = 0; q < 4; q++)
        most = fmaxf(fmaxf(fmaxf(most, fabsf(x[q].x)), fmaxf(fabsf(x[q].y), fabsf(x[q].z))), fabsf(x[q].w));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    return max(scale_exponent(fmaxf(most, __shfl_xor_sync(~0u, most, 2))) - HEADROOM, 1);
}

/* A row's scale is that of the unit before, which leaves some room above the largest element so far: only when an element goes beyond
 * that, as those of the first unit do, another one is looked for. Elements are then brought again: it leaves registers to all else. */
template <class t>
static __device__ inline void split(fragments &f, elements &x, const int (&before)[2], uint32_t a)
{
    f.scale[0] = before[0], f.scale[1] = before[1];
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

/* Sums of a unit, to those of all before: at the size of the operands again. That power of two is one number, nearly always. */
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

/* The stages as a group of warps meets them. */
template <class t> struct conveyor {
    static constexpr int STEP = t::TAKES_TURNS ? 2 : 1;
    room r;
    int of_b;      /* the scale of b, biased */
    int group, at; /* unit, counted through all rounds */

    __device__ inline uint32_t stage(int i) const { return r.stages + (at + i) % t::STAGES * t::STAGE; }
    __device__ inline uint32_t a_of(int i) const
    {
        return stage(i) + t::B_BYTES + (t::TAKES_TURNS ? 0 : group * 64 * A_LINE);
    }

    /* When unit i is there. */
    __device__ inline void take(fragments &f, const int (&before)[2], int i) const
    {
        elements x;
        barrier_wait(r.full + 8 * ((at + i) % t::STAGES), (at + i) / t::STAGES & 1);
        fetch<t>(x, a_of(i));
        split<t>(f, x, before, a_of(i));
    }

    /* Unit i, and meanwhile the fragments of the next one. */
    __device__ inline void turn(float (&sum)[t::COLUMNS / 2], const fragments &now, fragments &next, int i,
                                int count) const
    {
        const bool more = i + STEP < count;
        float d[t::COLUMNS / 2];
        begin<t>(d, now, stage(i));
        const unscaling u[2] = { unscaling_of(now.scale[0], of_b), unscaling_of(now.scale[1], of_b) };
        if (more) take(next, now.scale, i + STEP);
        products_wait<0>();
        settle(d);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(r.empty + 8 * ((at + i) % t::STAGES));
        promote(sum, d, u);
    }

    __device__ inline void take_all(float (&sum)[t::COLUMNS / 2], int count)
    {
        fragments even, odd;
        int i = t::TAKES_TURNS ? group : 0;
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

/* N results of ACT at once. */
template <int N> static __device__ inline void finish_all(float (&x)[N], int act)
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

/* Sums of four columns of EACH rows, `step` apart, to results. */
template <int EACH>
static __device__ inline void write(const pair_args &p, float (&x)[EACH * 4], int row, int step, int column)
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
        finish_all(x, s.act);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        float *out = (float *)s.out + (int64_t)(row + i * step) * s.out_row + column;
        if (row + i * step >= s.m || column >= s.n) continue;
        if (p.out_in_fours) {
            *(float4 *)out = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
        } else {
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (column + c < s.n) out[c] = x[4 * i + c];
        }
    }
}

/* A warp's 16 rows: 32 columns at a time by way of its desk, so that it writes whole lines. The sums move up each time: what is done with
 * them is there once. */
template <class t>
static __device__ inline void write_own(const pair_args &s, float (&sum)[t::COLUMNS / 2], const room &r,
                                        corner c)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = row_of_lane();
    const uint32_t desk = r.desks + warp * t::DESK;
#pragma unroll 1
    for (int from = 0; from < t::COLUMNS; from += 32) {
        float x[16];
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                                 desk + ((row + 8 * h) * t::DESK_PITCH + j * 8 + lane % 4 * 2) * 4),
                             "f"(sum[4 * j + 2 * h]), "f"(sum[4 * j + 2 * h + 1])
                             : "memory");
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 y = loaded(desk + ((lane / 8 + 4 * i) * t::DESK_PITCH + lane % 8 * 4) * 4);
            x[4 * i] = y.x, x[4 * i + 1] = y.y, x[4 * i + 2] = y.z, x[4 * i + 3] = y.w;
        }
        write<4>(s, x, c.top + warp * 16 + lane / 8, 4, c.left + from + lane % 8 * 4);
        __syncwarp();
#pragma unroll
        for (int i = 0; i + 16 < t::COLUMNS / 2; i++) sum[i] = sum[i + 16];
    }
}

/* Both groups of those who multiply. */
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

/* The sums of both groups in shared memory, rows of COLUMNS. */
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

/* Sums of groups and of the thread blocks that have parts, each of which writes its share: all are asked for before any is added. */
template <class t> static __device__ inline void join(const pair_args &s, const room &r, corner c)
{
    const int parts = s.of.parts, part = blockIdx.x % parts, all = t::ROWS * t::COLUMNS / 4,
              share = (all + parts - 1) / parts;
#pragma unroll 1
    for (int i = part * share + threadIdx.x; i < min((part + 1) * share, all); i += 2 * GROUP) {
        const int row = i / (t::COLUMNS / 4), column = i % (t::COLUMNS / 4) * 4;
        float4 x[PAIR_PARTS][128 / t::ROWS];
        float sum[4] = {};
        if (c.top + row >= s.of.m || c.left + column >= s.of.n) continue;
#pragma unroll
        for (int p = 0; p < PAIR_PARTS; p++)
#pragma unroll
            for (int g = 0; g < 128 / t::ROWS; g++)
                if (p < parts)
                    x[p][g] = of_neighbour(r.stages + ((g * 64 + row) * t::COLUMNS + column) * 4, p);
#pragma unroll
        for (int p = 0; p < PAIR_PARTS; p++)
#pragma unroll
            for (int g = 0; g < 128 / t::ROWS; g++)
                if (p < parts)
                    sum[0] += x[p][g].x, sum[1] += x[p][g].y, sum[2] += x[p][g].z, sum[3] += x[p][g].w;
        write<1>(s, sum, c.top + row, 1, c.left + column);
    }
}

/* The group that brings leaves when it is done: a cluster meets without threads that have left. */
template <int ROWS, int COLUMNS> KERNEL(PAIR_THREADS, 1) pair_product(const __grid_constant__ pair_args s)
{
    typedef tile<ROWS, COLUMNS> t;
    extern __shared__ float4 shared[];
    const room r = room_of<t>(shared);
    const errand e = errand_of(s.of);
    const bool joins = t::TAKES_TURNS || s.of.parts > 1;
    if (threadIdx.x == 0) {
        for (int i = 0; i < t::STAGES; i++)
            barrier_make(r.full + 8 * i, 1), barrier_make(r.empty + 8 * i, t::TAKES_TURNS ? 4 : 8);
        barriers_made();
    }
    __syncthreads();
    if (threadIdx.x >= 2 * GROUP) {
        leave_registers<40>();
        if (threadIdx.x > 2 * GROUP) return;
        bring<t>(s, r, e);
        let_next_begin(); /* by this thread alone: the others of its group have not waited for their turn */
    } else {
        take_registers<232>();
        take_turn();
        conveyor<t> belt = { r, scale_exponent(*(const float *)s.packed), (int)threadIdx.x / GROUP, 0 };
        corner c;
        for (int round = 0; corner_of<t>(s, round, c); round++) {
            float sum[COLUMNS / 2] = {};
            belt.take_all(sum, e.count);
            if (!joins) {
                write_own<t>(s, sum, r, c);
            } else {
                meet_groups(); /* both have read all stages */
                keep<t>(sum, r.stages);
                meet_groups(); /* here, where those who brought have left: the cluster's barrier alone is not plain to every reader */
                meet_cluster();
                join<t>(s, r, c);
                meet_cluster(); /* nobody leaves whose memory is read */
            }
        }
    }
}

} // namespace

#define TILE_OF(rows, columns, start, cost)                                                                  \
    {                                                                                                        \
        rows, columns, tile<rows, columns>::SHARED, !tile<rows, columns>::TAKES_TURNS, start, cost,          \
            (const void *)pair_product<rows, columns>                                                        \
    }
static const pair_kernel kernels[] = {
    TILE_OF(128, 128, 4.5, 1.1),
    TILE_OF(128, 64, 3.5, 0.73),
    TILE_OF(64, 64, 3, 0.47),
};

const pair_kernel *pair_kernels(int *count)
{
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}
