/* emulated_gemm_small.cu - matrix products out = a b with few rows on tensor cores
 * (DUET_MATH_SPLIT). Each number is the sum of two TF32 numbers of 11 bits. TF32 has the exponents
 * of f32, so operands need no scale and are not packed.
 *
 * The tensor cores compute the transpose, out' = b' a', because they need 64 rows: these are 64
 * columns of b, and the few rows of a are columns. b is loaded into registers and split there. a
 * stays in shared memory as f32, of which the tensor cores read the upper 11 bits. The remainder of
 * a is stored beside it. A unit is 32 inner elements, which the tensor memory accelerator loads. The
 * groups of four warps in all thread blocks of a cluster share the units of a tile. They then send
 * their sums to the thread block that stores these rows. */
#include "emulated.cuh"
#include "epilogue.cuh"

namespace
{

enum { UNIT = EMULATED_UNIT / 2, COLUMNS = EMULATED_FEW_COLUMNS, GROUP = 128, LINE = 128, SENT = 512 };

/* A message of SENT bytes contains the sums of two rows in all columns. */
template <int ROWS_, int GROUPS_, int STAGES_> struct tile {
    static constexpr int ROWS = ROWS_, GROUPS = GROUPS_, STAGES = STAGES_, SUMS = ROWS / 2;
    static constexpr int A_BYTES = ROWS * LINE, B_HALF = UNIT * LINE, B_BYTES = 2 * B_HALF,
                         STAGE = 2 * A_BYTES + B_BYTES;
    static constexpr int PAIRS = ROWS / 2,
                         RECEIVED =
                             GROUPS * ((PAIRS + EMULATED_PARTS - 1) / EMULATED_PARTS * EMULATED_PARTS) * SENT;
    /* 16-byte pieces of a: of all threads of a group, and of each */
    static constexpr int PIECES = ROWS * LINE / 16, EACH = (PIECES + GROUP - 1) / GROUP;
    static constexpr int BARRIERS = 2 * GROUPS * STAGES + 1;
    static constexpr int SHARED = GROUPS * STAGES * STAGE + RECEIVED + 8 * BARRIERS + 1024;
};

/* ---- products ---- */

/* Computes d = a b, or d + a b if is_sum is true, for 64 rows, N columns and an inner axis of 8. a
 * is in registers, b in shared memory with a descriptor. */
template <int N> struct tf32_products;
#define D4    "%0, %1, %2, %3"
#define D8    D4 ", %4, %5, %6, %7"
#define D16   D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R8(i) R4(i), R4(i + 4)
#ifdef HAS_WARPGROUPS
#define PRODUCTS_OF(n, names, a0, a1, a2, a3, b, onto, ...)                                                  \
    template <> struct tf32_products<n> {                                                                    \
        static __device__ inline void add(float (&d)[n / 2], const uint32_t (&a)[4], uint64_t at,            \
                                          bool is_sum)                                                       \
        {                                                                                                    \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #onto ", 0;\n"                                 \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" names "}, "             \
                         "{%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", p, 1, 1;\n}"                    \
                         : __VA_ARGS__                                                                       \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(at), "r"((int)is_sum));           \
        }                                                                                                    \
    };
#else
#define PRODUCTS_OF(n, ...)                                                                                  \
    template <> struct tf32_products<n> {                                                                    \
        static __device__ inline void add(float (&)[n / 2], const uint32_t (&)[4], uint64_t, bool) {}        \
    };
#endif
PRODUCTS_OF(8, D4, 4, 5, 6, 7, 8, 9, R4(0))
PRODUCTS_OF(16, D8, 8, 9, 10, 11, 12, 13, R8(0))
PRODUCTS_OF(32, D16, 16, 17, 18, 19, 20, 21, R8(0), R8(8))
#undef PRODUCTS_OF
#undef D4
#undef D8
#undef D16
#undef R4
#undef R8

/* ---- loading ---- */

static __device__ inline void meet_group(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/* The units of a tile that a group computes: first, first + step, ..., `count` of them. They go
 * through a ring of stages. Each stage has one barrier for a and one for b. */
template <class t> struct unit_source {
    const emulated_gemm_small_args &s;
    uint32_t stages, barriers;
    int top, left, first, step, count, group, thread;

    __device__ inline uint32_t a_at(int i) const { return stages + i % t::STAGES * t::STAGE; }
    __device__ inline uint32_t b_at(int i) const { return a_at(i) + 2 * t::A_BYTES; }
    __device__ inline uint32_t a_there(int i) const { return barriers + i % t::STAGES * 16; }
    __device__ inline uint32_t b_there(int i) const { return a_there(i) + 8; }
    __device__ inline int inner(int i) const { return (first + i * step) * UNIT; }

    /* Start the copy of a or b of unit i. Executed by one thread. */
    __device__ inline void copy_a(int i) const
    {
        barrier_expect(a_there(i), t::A_BYTES);
        copy_box(a_at(i), &s.a, inner(i), top, a_there(i));
    }
    __device__ inline void copy_b(int i) const
    {
        barrier_expect(b_there(i), t::B_BYTES);
#pragma unroll
        for (int h = 0; h < 2; h++)
            copy_box(b_at(i) + h * t::B_HALF, &s.b, left + h * 32, inner(i), b_there(i));
    }

    /* Stores the remainder of a, after its upper 11 bits, beside it. The tensor cores truncate the
     * remainder too, so it is rounded here. */
    __device__ inline void split_a(int i) const
    {
        barrier_wait(a_there(i), i / t::STAGES & 1);
        float4 *from = (float4 *)__cvta_shared_to_generic(a_at(i)) + thread, *to = from + t::A_BYTES / 16;
#pragma unroll
        for (int j = 0; j < t::EACH; j++) {
            if (t::PIECES % GROUP && thread + j * GROUP >= t::PIECES) break;
            float4 x = from[j * GROUP];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float &y = (&x.x)[e];
                const uint32_t rest = bits_of(y - __uint_as_float(bits_of(y) & 0xffffe000)) + 0x1000;
                y = __uint_as_float(y == y ? rest
                                           /* truncation could turn a NaN into an infinity */
                                           : 0x7fffe000u);
            }
            to[j * GROUP] = x;
        }
        fence_writes();
        meet_group(group);
    }
};

/* ---- multiplying ---- */

/* The fragments of b that a lane has in a unit. */
struct fragments {
    uint32_t high[4][4], low[4][4];
};

/* Splits x into the nearest number of 11 bits and the remainder. If the nearest one is infinite, x
 * is truncated instead. */
static __device__ inline void split_tf32(float x, uint32_t &high, uint32_t &low)
{
    const uint32_t near = (bits_of(x) + 0x1000) & 0xffffe000;
    high = (near & 0x7fffffff) == 0x7f800000 ? bits_of(x) & 0xffffe000 : near;
    low = bits_of(x - __uint_as_float(high));
}

/* Return which two columns of b a lane has: their 16-byte piece, and the number of the pair in all
 * columns. The columns of half a warp are in different banks. */
static __device__ inline int piece_of(int thread)
{
    return thread / 32 % 2 * 2 + thread % 32 / 16 + thread / 8 % 2 * 4;
}
static __device__ inline int two_of(int thread)
{
    return thread / 64 * 16 + piece_of(thread) * 2 + thread / 4 % 2;
}

template <class t> static __device__ inline void take(fragments &f, const unit_source<t> &in, int i)
{
    const int thread = in.thread, k = thread % 4, place = thread / 4 % 2 * 8;
    const uint32_t from = in.b_at(i) + thread / 64 * t::B_HALF;
    barrier_wait(in.b_there(i), i / t::STAGES & 1);
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int line = h * 4 + k;
            float x, y;
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                         : "=f"(x), "=f"(y)
                         : "r"(from + (q * 8 + line) * LINE + (piece_of(thread) ^ line) * 16 + place)
                         : "memory");
            split_tf32(x, f.high[q][2 * h], f.low[q][2 * h]);
            split_tf32(y, f.high[q][2 * h + 1], f.low[q][2 * h + 1]);
        }
}

/* Starts the products of a unit, the small ones first: the tensor cores truncate their sums, so the
 * small ones would otherwise lose more bits. */
template <class t> static __device__ inline void begin(float (&d)[t::SUMS], const fragments &f, uint32_t a)
{
    products_begin();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        tf32_products<t::ROWS>::add(d, f.low[q], described(a + q * 32), q > 0);
        tf32_products<t::ROWS>::add(d, f.high[q], described(a + t::A_BYTES + q * 32), true);
    }
#pragma unroll
    for (int q = 0; q < 4; q++) tf32_products<t::ROWS>::add(d, f.high[q], described(a + q * 32), true);
    products_end();
}

/* Multiplies unit i. While the tensor cores work, it prepares the next unit. `start` has already
 * loaded b of the first two units. */
template <class t>
static __device__ inline void turn(float (&sum)[t::SUMS], const unit_source<t> &in, const fragments &now,
                                   fragments &next, int i)
{
    float d[t::SUMS];
    begin<t>(d, now, in.a_at(i));
    if (i > 0 && i + 1 < in.count) take(next, in, i + 1);
    if (i + 1 < in.count) in.split_a(i + 1);
    products_wait<0>();
    keep_after_wait(d);
    if (i + t::STAGES < in.count) {
        meet_group(in.group);
        if (in.thread == 0) {
            in.copy_b(i + t::STAGES);
            in.copy_a(i + t::STAGES);
        }
        __syncwarp();
    }
#pragma unroll
    for (int k = 0; k < t::SUMS; k++) sum[k] += d[k];
}

/* Fills all stages with a or b. */
template <class t> static __device__ inline void fill_stages(const unit_source<t> &in, bool a, bool b)
{
    for (int i = 0; i < min(t::STAGES, in.count) && in.thread == 0; i++) {
        if (b) in.copy_b(i);
        if (a) in.copy_a(i);
    }
    __syncwarp();
}

/* Loads the first units. If the previous kernel does not write b, b is loaded before that kernel
 * ends. */
template <class t>
static __device__ inline void start(const unit_source<t> &in, fragments &even, fragments &odd)
{
    const bool early = in.s.of.b_is_there;
    if (!early) take_turn();
    fill_stages(in, !early, true);
    if (in.count > 0) take(even, in, 0);
    if (in.count > 1) take(odd, in, 1);
    if (early) {
        take_turn();
        fill_stages(in, true, false);
    }
    let_next_begin();
}

template <class t>
static __device__ inline void multiply(float (&sum)[t::SUMS], const unit_source<t> &in, fragments &even,
                                       fragments &odd)
{
    if (in.count == 0) return;
    in.split_a(0);
#pragma unroll 1
    for (int i = 0; i < in.count; i += 2) {
        turn(sum, in, even, odd, i);
        if (i + 1 < in.count) turn(sum, in, odd, even, i + 1);
    }
}

/* ---- results ---- */

static __device__ inline void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
static __device__ inline void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Sends four sums to a thread block of the cluster and signals its barrier. */
static __device__ inline void send(uint32_t to, const float *x, uint32_t barrier)
{
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            to),
        "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(barrier)
        : "memory");
}
static __device__ inline void keep(uint32_t at, const float *x)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(x[0]), "f"(x[1]), "f"(x[2]),
                 "f"(x[3])
                 : "memory");
}

/* The buffer for the sums that this thread block receives. Pairs of rows are distributed round-robin
 * over the `parts` thread blocks of a cluster. */
struct store_buffer {
    uint32_t received, arrived; /* addresses of the buffer and of its barrier */
    int parts, part;            /* part: the number of this thread block */
    int workers;                /* groups of warps that send sums */
    int each, own;              /* messages of each group, at most; pairs of rows of this thread block */
};

template <class t>
static __device__ inline store_buffer result_buffer(const product_args &s, uint32_t received,
                                                    uint32_t arrived)
{
    const int part = blockIdx.x % s.parts;
    return { received,
             arrived,
             s.parts,
             part,
             s.parts * t::GROUPS,
             (t::PAIRS + s.parts - 1) / s.parts,
             (t::PAIRS - part + s.parts - 1) / s.parts };
}

template <class t>
static __device__ inline void send_all(const float (&sum)[t::SUMS], const store_buffer &to, int worker,
                                       int thread)
{
#pragma unroll
    for (int j = 0; j < t::ROWS / 8; j++) {
        const int pair = 4 * j + thread % 4, rank = pair % to.parts;
        const uint32_t at = to.received + (worker * to.each + pair / to.parts) * SENT + two_of(thread) * 16;
        if (to.parts == 1) keep(at, sum + 4 * j);
        else send(at_neighbour(at, rank), sum + 4 * j, at_neighbour(to.arrived, rank));
    }
    if (to.parts == 1) __syncthreads();
    else barrier_wait_for_cluster(to.arrived, 0);
}

/* Applies the epilogue to two columns of a row and stores them. */
static __device__ inline void write(const product_args &s, float x, float y, int row, int column,
                                    const float (&bias)[2])
{
    float *out = (float *)s.out + row * s.out_row + column;
    x *= (T)s.alpha;
    y *= (T)s.alpha;
    if (s.bias) {
        x = finished(x + bias[0], s.act);
        y = finished(y + bias[1], s.act);
    }
    const int64_t e = (int64_t)row * s.n + column;
    if (row >= s.m || column >= s.n) return;
    out[0] = formula_of(x, e);
    if (column + 1 < s.n) out[1] = formula_of(y, e + 1);
}

template <class t>
static __device__ inline void write_own(const product_args &s, const store_buffer &from, int top, int column,
                                        const float (&bias)[2])
{
    for (int e = threadIdx.x; e < from.own * 32; e += t::GROUPS * GROUP) {
        const int row = top + (e / 32 * from.parts + from.part) * 2;
        float x[4] = {};
#pragma unroll 8
        for (int w = 0; w < from.workers; w++) {
            const float4 y =
                *(const float4 *)__cvta_shared_to_generic(from.received + w * from.each * SENT + e * 16);
            x[0] += y.x;
            x[1] += y.y;
            x[2] += y.z;
            x[3] += y.w;
        }
        write(s, x[0], x[2], row, column, bias);
        write(s, x[1], x[3], row + 1, column, bias);
    }
}

/* Executed by one thread. */
template <class t> static __device__ inline void make_barriers(uint32_t first, const store_buffer &d)
{
    for (int i = 0; i < t::BARRIERS; i++) barrier_make(first + 8 * i, 1);
    barriers_made();
    barrier_expect(d.arrived, d.own * d.workers * SENT);
}

template <int ROWS, int GROUPS, int STAGES>
KERNEL(GROUPS *GROUP)
emulated_gemm_small(ARGUMENT(emulated_gemm_small_args) args)
{
    typedef tile<ROWS, GROUPS, STAGES> t;
    extern __shared__ float4 shared[];
    const product_args &s = args.of;
    const uint32_t stages = (shared_address(shared) + 1023) / 1024 * 1024,
                   received = stages + GROUPS * STAGES * t::STAGE, barriers = received + t::RECEIVED;
    const int group = __shfl_sync(~0u, threadIdx.x / GROUP, 0), thread = threadIdx.x % GROUP;
    const int across = (s.n + COLUMNS - 1) / COLUMNS, block = blockIdx.x / s.parts,
              units = (s.k + UNIT - 1) / UNIT;
    const store_buffer d = result_buffer<t>(s, received, barriers + 8 * (t::BARRIERS - 1));
    const int worker = d.part * GROUPS + group;
    const unit_source<t> in = { args,
                                stages + group * STAGES * t::STAGE,
                                barriers + group * STAGES * 16,
                                block / across * ROWS,
                                block % across * COLUMNS,
                                worker,
                                d.workers,
                                worker < units ? (units - worker + d.workers - 1) / d.workers : 0,
                                group,
                                thread };
    if (threadIdx.x == 0) make_barriers<t>(barriers, d);
    __syncthreads();
    if (s.parts > 1) cluster_arrive();
    fragments even, odd;
    start(in, even, odd);
    const int column = in.left + threadIdx.x % 32 * 2;
    const float bias[2] = { column < s.n ? bias_at(s, column) : 0,
                            column + 1 < s.n ? bias_at(s, column + 1) : 0 };
    float sum[t::SUMS] = {};
    multiply(sum, in, even, odd);
    if (s.parts > 1) cluster_wait(); /* the other thread blocks must have made their barriers */
    send_all<t>(sum, d, worker, thread);
    write_own<t>(s, d, in.top, column, bias);
}

} // namespace

#ifdef TEMPLATE
#define FEW(number, rows, groups, stages)                                                                    \
    TEMPLATE_OF(emulated_gemm_small_##number, (groups * GROUP), emulated_gemm_small_args,                    \
                emulated_gemm_small<rows, groups, stages>)
FEW(0, 8, 2, 2)
FEW(1, 16, 2, 2)
FEW(2, 32, 1, 4)
FEW(3, 32, 2, 2)
#else
#define FEW(rows, groups, stages, once, start, cost)                                                         \
    {                                                                                                        \
        rows, COLUMNS, groups *GROUP, tile<rows, groups, stages>::SHARED, once, start, cost,                 \
        {                                                                                                    \
            NULL, (const void *)emulated_gemm_small<rows, groups, stages>                                    \
        }                                                                                                    \
    }
static const split_kernel kernels[] = {
    FEW(8, 2, 2, 2.2, 0, 13.8),
    FEW(16, 2, 2, 2.4, 0, 14.7),
    FEW(32, 1, 4, 3.4, 0, 14),
    FEW(32, 2, 2, 3.6, 1, 9.3),
};

const split_kernel *emulated_gemm_small_kernels(int *count)
{
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}
#endif
