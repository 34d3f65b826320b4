/* gemm_split_k.cu - products with few rows. A thread block, or the thread blocks of a cluster,
 * compute one tile of the result. Each warp computes the whole tile from its own slices of the
 * inner axis, which it loads itself, so no thread waits for another until the end. There the tiles
 * of the warps are summed, then those of the thread blocks of the cluster. */
#include "epilogue.cuh"

namespace
{

enum {
    SLICE = 8,
    A_PITCH = SLICE + 4
}; /* elements of the inner axis; the pitch of rows of a avoids bank conflicts */

/* Copies 16 bytes, or one element, to shared memory asynchronously; zeros if there is no source. */
template <int BYTES> static __device__ inline void fetch(uint32_t to, const T *from, bool there)
{
    const int bytes = there ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                     : "memory");
}

static __device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> static __device__ inline void wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* The lanes form a grid of DOWN x ACROSS, so that the two halves of a warp read different rows of a
 * and the same columns of b. */
template <int DOWN, int ACROSS> static __device__ inline void place_lane(int lane, int &down, int &across)
{
    static_assert(DOWN * ACROSS == 32, "a warp");
    if (DOWN == 4) {
        down = (lane & 1) | (lane >> 3 & 1) << 1;
        across = (lane >> 1 & 3) | lane >> 4 << 2;
    } else if (DOWN == 8) {
        down = (lane & 1) | lane >> 3 << 1;
        across = lane >> 1 & 3;
    } else {
        down = lane / ACROSS;
        across = lane % ACROSS;
    }
}

/* A barrier for all threads of a cluster. It makes their writes to shared memory visible. */
static __device__ inline void meet_cluster()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}

/* Reads the value at the address of *p in the shared memory of thread block `rank` of the cluster. */
static __device__ inline T of_neighbour(const T *p, int rank)
{
    T x = *p;
#if __CUDA_ARCH__ >= 900
    uint32_t at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"((uint32_t)__cvta_generic_to_shared(p)), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
#endif
    return x;
}

/* Each lane computes EACH_DOWN x EACH_ACROSS results. */
template <int EACH_DOWN, int EACH_ACROSS, int DOWN, int ACROSS, int WARPS, int STAGES, bool WIDE>
struct tile {
    static constexpr int ROWS = EACH_DOWN * DOWN, COLUMNS = EACH_ACROSS * ACROSS, PIECE = WIDE ? 4 : 1;
    struct alignas(EACH_ACROSS * sizeof(T)) columns {
        T e[EACH_ACROSS];
    };
    static constexpr int STAGE = ROWS * A_PITCH + SLICE * COLUMNS; /* elements */
    static constexpr int SHARED = WARPS * (STAGES * STAGE > ROWS * COLUMNS ? STAGES * STAGE : ROWS * COLUMNS);

    /* What a lane loads from the lines of a slice: every STEP-th line, starting with line `first`. */
    template <int LENGTH> struct lines {
        static constexpr int PIECES = LENGTH / PIECE, STEP = PIECES > 32 ? 1 : 32 / PIECES,
                             PASSES = PIECES > 32 ? PIECES / 32 : 1;
        int first, along;
        __device__ inline explicit lines(int lane)
            : first(PIECES > 32 ? 0 : lane / PIECES), along(lane % PIECES * PIECE)
        {
        }
    };
    typedef lines<COLUMNS> of_b;
    typedef lines<SLICE> of_a;

    /* from: the first element that this lane loads of the slice at k0. */
    static __device__ inline void fetch_b(const product_args &s, uint32_t to, const T *from, const of_b &mine,
                                          int k0, int left)
    {
#pragma unroll
        for (int i = 0; i < SLICE; i += of_b::STEP)
#pragma unroll
            for (int p = 0; p < of_b::PASSES; p++) {
                const int k = mine.first + i, c = mine.along + p * 32 * PIECE;
                const bool there = k0 + k < s.k && left + c < s.n;
                fetch<PIECE * sizeof(T)>(to + (ROWS * A_PITCH + k * COLUMNS + c) * (int)sizeof(T),
                                         there ? from + i * s.b_row + p * 32 * PIECE : (const T *)s.b, there);
            }
    }

    static __device__ inline void fetch_a(const product_args &s, uint32_t to, const T *from, const of_a &mine,
                                          int k0, int top)
    {
        static_assert(of_a::PASSES == 1, "a slice is short");
#pragma unroll
        for (int i = 0; i < ROWS; i += of_a::STEP) {
            const int r = mine.first + i;
            const bool there = r < ROWS && top + r < s.m && k0 + mine.along < s.k;
            if (ROWS % of_a::STEP == 0 || r < ROWS)
                fetch<PIECE * sizeof(T)>(to + (r * A_PITCH + mine.along) * (int)sizeof(T),
                                         there ? from + i * s.a_row : (const T *)s.a, there);
        }
    }

    static __device__ inline void take(T acc[EACH_DOWN][EACH_ACROSS], const T *a, const T *b, int down,
                                       int across)
    {
#pragma unroll
        for (int half = 0; half < SLICE; half += 4) {
            float4 x[EACH_DOWN];
#pragma unroll
            for (int i = 0; i < EACH_DOWN; i++)
                x[i] = *(const float4 *)(a + (i * DOWN + down) * A_PITCH + half);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const columns y = *(const columns *)(b + (half + k) * COLUMNS + across * EACH_ACROSS);
#pragma unroll
                for (int i = 0; i < EACH_DOWN; i++)
#pragma unroll
                    for (int j = 0; j < EACH_ACROSS; j++) acc[i][j] = FMA((&x[i].x)[k], y.e[j], acc[i][j]);
            }
        }
    }

    static __device__ inline void make(T acc[EACH_DOWN][EACH_ACROSS], const product_args &s, T *shared_tile,
                                       int top, int left)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int slices = (s.k + SLICE - 1) / SLICE, step = WARPS * s.parts,
                  first = blockIdx.x % s.parts * WARPS + warp;
        const int mine = first < slices ? (slices - first + step - 1) / step : 0;
        T *own = shared_tile + warp * (STAGES * STAGE);
        const uint32_t to = (uint32_t)__cvta_generic_to_shared(own);
        const of_b b(lane);
        const of_a a(lane);
        const T *from_b = (const T *)s.b + (first * SLICE + b.first) * s.b_row + left + b.along;
        const T *from_a = (const T *)s.a + (top + a.first) * s.a_row + first * SLICE + a.along;
        const int64_t on_b = step * SLICE * s.b_row;
        int down, across;
        place_lane<DOWN, ACROSS>(lane, down, across);
        for (int i = 0; i < STAGES - 1 && s.b_is_there; i++, from_b += on_b)
            if (i < mine)
                fetch_b(s, to + i * STAGE * (int)sizeof(T), from_b, b, (first + i * step) * SLICE, left);
        take_turn();
        for (int i = 0; i < STAGES - 1; i++, from_a += step * SLICE) {
            const int k0 = (first + i * step) * SLICE;
            if (i < mine && !s.b_is_there)
                fetch_b(s, to + i * STAGE * (int)sizeof(T), from_b + i * on_b, b, k0, left);
            if (i < mine) fetch_a(s, to + i * STAGE * (int)sizeof(T), from_a, a, k0, top);
            end_group();
        }
        if (!s.b_is_there) from_b += (STAGES - 1) * on_b;
        int stage = STAGES - 1; /* the stage to load next */
        for (int i = 0; i < mine; i++) {
            wait_groups<STAGES - 2>();
            __syncwarp();
            if (i + STAGES - 1 < mine) {
                const int k0 = (first + (i + STAGES - 1) * step) * SLICE;
                fetch_a(s, to + stage * STAGE * (int)sizeof(T), from_a, a, k0, top);
                fetch_b(s, to + stage * STAGE * (int)sizeof(T), from_b, b, k0, left);
                from_a += step * SLICE;
                from_b += on_b;
            }
            end_group();
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            const T *from = own + stage * STAGE;
            take(acc, from, from + ROWS * A_PITCH, down, across);
            __syncwarp();
        }
        wait_groups<0>();
        let_next_begin();
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH_DOWN; i++)
#pragma unroll
            for (int j = 0; j < EACH_ACROSS; j++)
                shared_tile[(warp * ROWS + i * DOWN + down) * COLUMNS + across * EACH_ACROSS + j] = acc[i][j];
        __syncthreads();
    }

    static __device__ inline void write(const product_args &s, T sum, int i, int top, int left)
    {
        const int row = top + i / COLUMNS, column = left + i % COLUMNS;
        if (row < s.m && column < s.n)
            ((T *)s.out)[row * s.out_row + column] = result_of(s, sum, row, column);
    }

    static __device__ inline T sum_of_warps(const T *shared_tile, int i)
    {
        T sum = K(0);
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += shared_tile[w * ROWS * COLUMNS + i];
        return sum;
    }

    /* Each thread block of a cluster stores its share of the tile. */
    static __device__ inline void join_cluster(const product_args &s, T *shared_tile, int top, int left)
    {
        const int share = (ROWS * COLUMNS + s.parts - 1) / s.parts, from = blockIdx.x % s.parts * share;
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += WARPS * 32)
            shared_tile[i] = sum_of_warps(shared_tile, i);
        meet_cluster();
        for (int i = from + threadIdx.x; i < min(from + share, ROWS * COLUMNS); i += WARPS * 32) {
            T sum = K(0);
            for (int p = 0; p < s.parts; p++) sum += of_neighbour(shared_tile + i, p);
            write(s, sum, i, top, left);
        }
        meet_cluster(); /* no thread block may end while others read its memory */
    }

    static __device__ inline void join(const product_args &s, T *shared_tile, int top, int left)
    {
        if (s.parts > 1) return join_cluster(s, shared_tile, top, left);
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += WARPS * 32)
            write(s, sum_of_warps(shared_tile, i), i, top, left);
    }
};

template <int EACH_DOWN, int EACH_ACROSS, int DOWN, int ACROSS, int WARPS, int STAGES, bool WIDE>
KERNEL(WARPS * 32)
split(ARGUMENT(product_args) s)
{
    typedef tile<EACH_DOWN, EACH_ACROSS, DOWN, ACROSS, WARPS, STAGES, WIDE> t;
    static_assert(t::SHARED * sizeof(T) <= 227 << 10, "more than any card has");
    extern __shared__ float4 shared[];
    const int across = (s.n + t::COLUMNS - 1) / t::COLUMNS;
    const int block = blockIdx.x / s.parts, top = block / across * t::ROWS,
              left = block % across * t::COLUMNS;
    T acc[EACH_DOWN][EACH_ACROSS] = {};
    t::make(acc, s, (T *)shared, top, left);
    t::join(s, (T *)shared, top, left);
}

} // namespace

#ifdef TEMPLATE
#define SPLIT(number, wide, each_down, each_across, down, across, warps, stages, start, cost)                \
    TEMPLATE_OF(gemm_split_k_##number, (warps * 32), product_args,                                           \
                split<each_down, each_across, down, across, warps, stages, false>)                           \
    TEMPLATE_OF(gemm_split_k_##wide, (warps * 32), product_args,                                             \
                split<each_down, each_across, down, across, warps, stages, true>)
#include "gemm_split_k.def"
#else
#define SPLIT(number, wide, each_down, each_across, down, across, warps, stages, start, cost)                \
    { each_down * down,                                                                                      \
      each_across * across,                                                                                  \
      warps * 32,                                                                                            \
      (int)sizeof(T) * tile<each_down, each_across, down, across, warps, stages, true>::SHARED,              \
      0,                                                                                                     \
      start,                                                                                                 \
      cost,                                                                                                  \
      { (const void *)split<each_down, each_across, down, across, warps, stages, false>,                     \
        (const void *)split<each_down, each_across, down, across, warps, stages, true> } },
static const split_kernel kernels[] = {
#include "gemm_split_k.def"
};

const split_kernel *split_kernels(int *count)
{
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}
#endif
