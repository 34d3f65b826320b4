/* pair_product.cu - products by tensor cores, of operands as pairs of f16.
 *
 * b has been packed (pair_pack.cu). A thread block has a tile of the result. One of its threads brings a, and b, into shared memory, as far
 * ahead as there is room. Two groups of four warps take a from there, as pairs in registers, and multiply. The tensor cores truncate their
 * sums, so each unit of 64 inner elements is summed apart, and added to what was before as f32 are.
 *
 * Of 128 rows each group takes 64; of 64 they take units in turn. Thread blocks go over tiles, or those of a cluster share the inner axis of
 * one. */
#include "finish.cuh"
#include "pair.cuh"

namespace
{

enum { UNIT = PAIR_UNIT, PART = PAIR_PART, GROUP = 128, A_LINE = 128, STAGES_MOST = 8 };

template <int ROWS_, int COLUMNS_> struct tile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr int A_HALF = ROWS * A_LINE, A_BYTES = 2 * A_HALF, B_PART = COLUMNS / UNIT * PART, B_BYTES = 2 * B_PART;
    static constexpr int STAGE = A_BYTES + B_BYTES, DESK_PITCH = 40, DESK = 16 * DESK_PITCH * 4; /* of a warp */
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

template <class t> static __device__ inline void bring_a(const pair_args &s, const room &r, corner c, int unit, int stage)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
        copy_box(r.stages + stage * t::STAGE + t::B_BYTES + h * t::A_HALF, &s.a, unit * UNIT + h * 32, c.top, r.full + 8 * stage);
}

/* Columns that there are not get those before, and are not written. */
template <class t> static __device__ inline void bring_b(const pair_args &s, const room &r, corner c, int unit, int stage)
{
    const int units = units_of(s.of), last = (s.of.n - 1) / UNIT;
    barrier_expect(r.full + 8 * stage, t::STAGE);
#pragma unroll
    for (int u = 0; u < t::COLUMNS / UNIT; u++)
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int64_t from = ((int64_t)min(c.left / UNIT + u, last) * units + unit) * 2 + part;
            copy_bulk(r.stages + stage * t::STAGE + part * t::B_PART + u * PART, (const char *)s.packed + PAIR_HEAD + from * PART,
                      PART, r.full + 8 * stage);
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
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at));
    return x;
}

/* Which of 8 rows a lane has: two that are read at once lie 4 apart, so that all their pieces lie in different banks. */
static __device__ inline int row_of_lane() { return threadIdx.x % 32 / 8 + threadIdx.x / 4 % 2 * 4; }

/* Fragments of 16 inner elements: of rows r and r + 8, four each (pair_pack.cu orders b's likewise). */
static __device__ inline void take_a(uint32_t at, float scale, uint32_t (&high)[4], uint32_t (&low)[4])
{
    const float4 x = loaded(at), y = loaded(at + 8 * A_LINE);
    split_pair(x.x * scale, x.y * scale, high[0], low[0]), split_pair(y.x * scale, y.y * scale, high[1], low[1]);
    split_pair(x.z * scale, x.w * scale, high[2], low[2]), split_pair(y.z * scale, y.w * scale, high[3], low[3]);
}

/* Of a unit. */
struct fragments {
    uint32_t high[4][4], low[4][4];
};

template <class t> static __device__ inline void take(fragments &f, uint32_t a, float scale)
{
    const int row = row_of_lane(), quarter = threadIdx.x % 4;
    const uint32_t from = a + (threadIdx.x % GROUP / 32 * 16 + row) * A_LINE;
#pragma unroll
    for (int q = 0; q < 4; q++) take_a(from + q / 2 * t::A_HALF + ((q % 2 * 4 + quarter) ^ row) * 16, scale, f.high[q], f.low[q]);
}

template <class t> static __device__ inline void begin(float (&d)[t::COLUMNS / 2], const fragments &f, uint32_t b)
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

/* The stages as a group of warps meets them. */
template <class t> struct conveyor {
    static constexpr int STEP = t::TAKES_TURNS ? 2 : 1;
    room r;
    float scale;
    int group, at; /* unit, counted through all rounds */

    __device__ inline uint32_t stage(int i) const { return r.stages + (at + i) % t::STAGES * t::STAGE; }

    /* When unit i is there. */
    __device__ inline void take(fragments &f, int i) const
    {
        barrier_wait(r.full + 8 * ((at + i) % t::STAGES), (at + i) / t::STAGES & 1);
        ::take<t>(f, stage(i) + t::B_BYTES + (t::TAKES_TURNS ? 0 : group * 64 * A_LINE), scale);
    }

    /* Unit i, and meanwhile the fragments of the next one. */
    __device__ inline void turn(float (&sum)[t::COLUMNS / 2], const fragments &now, fragments &next, int i, int count) const
    {
        float d[t::COLUMNS / 2];
        begin<t>(d, now, stage(i));
        if (i + STEP < count) take(next, i + STEP);
        products_wait<0>();
        settle(d);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(r.empty + 8 * ((at + i) % t::STAGES));
#pragma unroll
        for (int k = 0; k < t::COLUMNS / 2; k++) sum[k] += d[k];
    }

    __device__ inline void take_all(float (&sum)[t::COLUMNS / 2], int count)
    {
        fragments even, odd;
        int i = t::TAKES_TURNS ? group : 0;
        if (i < count) take(even, i);
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
static __device__ inline void write(const pair_args &p, float (&x)[EACH * 4], int row, int step, int column, unscaling u)
{
    const product_args &s = p.of;
#pragma unroll
    for (int i = 0; i < EACH * 4; i++) x[i] = (T)s.alpha * unscaled(x[i], u);
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
static __device__ inline void write_own(const pair_args &s, float (&sum)[t::COLUMNS / 2], const room &r, corner c, unscaling u)
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
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(desk +
                                                                      ((row + 8 * h) * t::DESK_PITCH + j * 8 + lane % 4 * 2) * 4),
                             "f"(sum[4 * j + 2 * h]), "f"(sum[4 * j + 2 * h + 1])
                             : "memory");
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 y = loaded(desk + ((lane / 8 + 4 * i) * t::DESK_PITCH + lane % 8 * 4) * 4);
            x[4 * i] = y.x, x[4 * i + 1] = y.y, x[4 * i + 2] = y.z, x[4 * i + 3] = y.w;
        }
        write<4>(s, x, c.top + warp * 16 + lane / 8, 4, c.left + from + lane % 8 * 4, u);
        __syncwarp();
#pragma unroll
        for (int i = 0; i + 16 < t::COLUMNS / 2; i++) sum[i] = sum[i + 16];
    }
}

/* Called at several places: by whom brings, and by whom multiplies. */
static __device__ inline void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ inline float4 of_neighbour(uint32_t at, int rank)
{
    float4 x;
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(there));
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
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at +
                                                                  ((row + 8 * h) * t::COLUMNS + j * 8 + threadIdx.x % 4 * 2) * 4),
                         "f"(sum[4 * j + 2 * h]), "f"(sum[4 * j + 2 * h + 1])
                         : "memory");
}

/* Sums of groups and of the thread blocks that have parts, each of which writes its share: all are asked for before any is added. */
template <class t> static __device__ inline void join(const pair_args &s, const room &r, corner c, unscaling u)
{
    const int parts = s.of.parts, part = blockIdx.x % parts, all = t::ROWS * t::COLUMNS / 4, share = (all + parts - 1) / parts;
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
                if (p < parts) x[p][g] = of_neighbour(r.stages + ((g * 64 + row) * t::COLUMNS + column) * 4, p);
#pragma unroll
        for (int p = 0; p < PAIR_PARTS; p++)
#pragma unroll
            for (int g = 0; g < 128 / t::ROWS; g++)
                if (p < parts) sum[0] += x[p][g].x, sum[1] += x[p][g].y, sum[2] += x[p][g].z, sum[3] += x[p][g].w;
        write<1>(s, sum, c.top + row, 1, c.left + column, u);
    }
}

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
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= 2 * GROUP) {
        leave_registers<40>();
        if (threadIdx.x == 2 * GROUP) {
            bring<t>(s, r, e);
            let_next_begin(); /* by this thread alone: the others of its group have not waited for their turn */
        }
        __syncwarp();
        if (joins) meet_cluster(), meet_cluster(); /* with the others, below */
    } else {
        take_registers<232>();
        take_turn();
        const int of_a = scale_exponent(s.magnitude ? *s.magnitude : s.bound), of_b = scale_exponent(*(const float *)s.packed);
        const unscaling u = unscaling_of(of_a, of_b);
        conveyor<t> belt = { r, power_of_two(of_a), (int)threadIdx.x / GROUP, 0 };
        corner c;
        for (int round = 0; corner_of<t>(s, round, c); round++) {
            float sum[COLUMNS / 2] = {};
            belt.take_all(sum, e.count);
            if (!joins) {
                write_own<t>(s, sum, r, c, u);
            } else {
                asm volatile("bar.sync 1, 256;" ::: "memory"); /* both groups have read all stages */
                keep<t>(sum, r.stages);
                meet_cluster();
                join<t>(s, r, c, u);
                meet_cluster(); /* nobody leaves whose memory is read */
            }
        }
    }
}

} // namespace

#define TILE_OF(rows, columns, start, cost)                                                                                      \
    {                                                                                                                            \
        rows, columns, tile<rows, columns>::SHARED, !tile<rows, columns>::TAKES_TURNS, start, cost,                              \
            (const void *)pair_product<rows, columns>                                                                            \
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
