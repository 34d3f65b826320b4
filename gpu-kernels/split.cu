/* split.cu - products with few rows. A thread block has a tile of the result, and each of its warps makes the whole tile from its own
 * slices of the inner axis, which it fetches by itself: no thread waits for another but at the end, where the warps' tiles are summed. */
#include "finish.cuh"

namespace
{

enum { SLICE = 8, A_PITCH = SLICE + 4 }; /* of the inner axis; rows of a lie so that lanes meet no bank twice */

/* 16 bytes, or one element, on their way to shared memory; without a source zeros. */
template <int BYTES> static __device__ inline void fetch(uint32_t to, const T *from, bool there)
{
    const int bytes = there ? BYTES : 0;
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

static __device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> static __device__ inline void wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* Lanes are DOWN x ACROSS, so that the two halves of a warp read different rows of a and the same columns of b. */
template <int DOWN, int ACROSS> static __device__ inline void place_lane(int lane, int &down, int &across)
{
    static_assert(DOWN * ACROSS == 32, "a warp");
    if (DOWN == 4) down = (lane & 1) | (lane >> 3 & 1) << 1, across = (lane >> 1 & 3) | lane >> 4 << 2;
    else if (DOWN == 8) down = (lane & 1) | lane >> 3 << 1, across = lane >> 1 & 3;
    else down = lane / ACROSS, across = lane % ACROSS;
}

/* EACH_DOWN x EACH_ACROSS results a lane. */
template <int EACH_DOWN, int EACH_ACROSS, int DOWN, int ACROSS, int WARPS, int STAGES, bool WIDE> struct tile {
    static constexpr int ROWS = EACH_DOWN * DOWN, COLUMNS = EACH_ACROSS * ACROSS, PIECE = WIDE ? 4 : 1;
    struct alignas(EACH_ACROSS * sizeof(T)) columns {
        T e[EACH_ACROSS];
    };
    static constexpr int STAGE = ROWS * A_PITCH + SLICE * COLUMNS; /* elements */
    static constexpr int SHARED = WARPS * (STAGES * STAGE > ROWS * COLUMNS ? STAGES * STAGE : ROWS * COLUMNS);

    static __device__ inline void fetch_b(const product_args &s, uint32_t to, int k0, int left, int lane)
    {
        constexpr int PIECES = COLUMNS / PIECE;
#pragma unroll
        for (int i = lane; i < SLICE * PIECES; i += 32) {
            const int k = i / PIECES, c = i % PIECES * PIECE;
            const bool there = k0 + k < s.k && left + c < s.n;
            const T *from = (const T *)s.b + (there ? (k0 + k) * s.b_row + left + c : 0);
            fetch<PIECE * sizeof(T)>(to + (ROWS * A_PITCH + k * COLUMNS + c) * (int)sizeof(T), from, there);
        }
    }

    static __device__ inline void fetch_a(const product_args &s, uint32_t to, int k0, int top, int lane)
    {
        constexpr int PIECES = SLICE / PIECE;
#pragma unroll
        for (int i = lane; i < ROWS * PIECES; i += 32) {
            const int r = i / PIECES, k = i % PIECES * PIECE;
            const bool there = top + r < s.m && k0 + k < s.k;
            const T *from = (const T *)s.a + (there ? (top + r) * s.a_row + k0 + k : 0);
            fetch<PIECE * sizeof(T)>(to + (r * A_PITCH + k) * (int)sizeof(T), from, there);
        }
    }

    static __device__ inline void take(T acc[EACH_DOWN][EACH_ACROSS], const T *a, const T *b, int down, int across)
    {
#pragma unroll
        for (int half = 0; half < SLICE; half += 4) {
            float4 x[EACH_DOWN];
#pragma unroll
            for (int i = 0; i < EACH_DOWN; i++) x[i] = *(const float4 *)(a + (i * DOWN + down) * A_PITCH + half);
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

    static __device__ inline void make(T acc[EACH_DOWN][EACH_ACROSS], const product_args &s, T *room, int top, int left)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int slices = (s.k + SLICE - 1) / SLICE, mine = (slices - warp + WARPS - 1) / WARPS;
        T *own = room + warp * (STAGES * STAGE);
        const uint32_t at = (uint32_t)__cvta_generic_to_shared(own);
        int down, across;
        place_lane<DOWN, ACROSS>(lane, down, across);
        for (int i = 0; i < STAGES - 1 && s.b_is_there; i++)
            if (i < mine) fetch_b(s, at + i * STAGE * (int)sizeof(T), (warp + i * WARPS) * SLICE, left, lane);
        take_turn();
        for (int i = 0; i < STAGES - 1; i++) {
            const uint32_t to = at + i * STAGE * (int)sizeof(T);
            const int k0 = (warp + i * WARPS) * SLICE;
            if (i < mine && !s.b_is_there) fetch_b(s, to, k0, left, lane);
            if (i < mine) fetch_a(s, to, k0, top, lane);
            end_group();
        }
        for (int i = 0; i < mine; i++) {
            wait_groups<STAGES - 2>();
            __syncwarp();
            if (i + STAGES - 1 < mine) {
                const uint32_t to = at + (i + STAGES - 1) % STAGES * STAGE * (int)sizeof(T);
                const int k0 = (warp + (i + STAGES - 1) * WARPS) * SLICE;
                fetch_a(s, to, k0, top, lane), fetch_b(s, to, k0, left, lane);
            }
            end_group();
            const T *from = own + i % STAGES * STAGE;
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
                room[(warp * ROWS + i * DOWN + down) * COLUMNS + across * EACH_ACROSS + j] = acc[i][j];
        __syncthreads();
    }

    static __device__ inline void write(const product_args &s, const T *room, int top, int left)
    {
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += WARPS * 32) {
            const int row = top + i / COLUMNS, column = left + i % COLUMNS;
            T sum = K(0);
#pragma unroll
            for (int w = 0; w < WARPS; w++) sum += room[w * ROWS * COLUMNS + i];
            if (row < s.m && column < s.n) ((T *)s.out)[row * s.out_row + column] = result_of(s, sum, column);
        }
    }
};

template <int EACH_DOWN, int EACH_ACROSS, int DOWN, int ACROSS, int WARPS, int STAGES, bool WIDE>
KERNEL(WARPS * 32)
split(const __grid_constant__ product_args s)
{
    typedef tile<EACH_DOWN, EACH_ACROSS, DOWN, ACROSS, WARPS, STAGES, WIDE> t;
    static_assert(t::SHARED * sizeof(T) <= 227 << 10, "more than any card has");
    extern __shared__ float4 shared[];
    const int across = (s.n + t::COLUMNS - 1) / t::COLUMNS;
    const int top = blockIdx.x / across * t::ROWS, left = blockIdx.x % across * t::COLUMNS;
    T acc[EACH_DOWN][EACH_ACROSS] = {};
    t::make(acc, s, (T *)shared, top, left);
    t::write(s, (const T *)shared, top, left);
}

} // namespace

#define SPLIT(each_down, each_across, down, across, warps, stages, each, cost)                                                   \
    { each_down * down,                                                                                                          \
      each_across * across,                                                                                                      \
      warps * 32,                                                                                                                \
      (int)sizeof(T) * tile<each_down, each_across, down, across, warps, stages, true>::SHARED,                                  \
      each,                                                                                                                      \
      cost,                                                                                                                      \
      { (const void *)split<each_down, each_across, down, across, warps, stages, false>,                                         \
        (const void *)split<each_down, each_across, down, across, warps, stages, true> } },
static const split_kernel kernels[] = {
#include "split.def"
};

const split_kernel *split_kernels(int *count)
{
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}
