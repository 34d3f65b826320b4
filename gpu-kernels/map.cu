/* map.cu - the operators that go element by element, from their rows; and copies. */
#include "pointwise.cuh"

namespace
{

#define DUET_MAP1(name, FORMULA, ...)                                                                                            \
    struct row_##name {                                                                                                          \
        static __device__ inline T of(T x, T y, T z, T s, T r) { return FORMULA; }                                               \
    };
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>
struct row_load {
    static __device__ inline T of(T x, T y, T z, T s, T r) { return x; }
};

/* A warp reads along the input's fast axis and writes along the output's; a row of the tile is one longer, to keep both free of
 * bank conflicts. An element (i, j) of the tile, this thread's u-th: lanes run along i to read it, along j to write it. */
KERNEL(TILE_THREADS) tile(const __grid_constant__ tile_args a)
{
    enum { WARPS = TILE_THREADS / 32, MINE = TILE * TILE / TILE_THREADS, RUNS = TILE / 32 };
    __shared__ T kept[TILE][TILE + 1];
    const uint32_t across = blockIdx.x % a.tiles_across, rest = blockIdx.x / a.tiles_across;
    const int64_t i0 = (int64_t)(rest % a.tiles_down) * TILE, j0 = (int64_t)across * TILE;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T *in = (const T *)a.in + i0 * a.in_fast + j0 * a.in_stride;
    T *out = (T *)a.out + i0 * a.out_stride + j0 * a.out_fast, v[MINE];
    uint32_t outside = rest / a.tiles_down;
#pragma unroll 1
    for (int b = a.rank; b-- > 0; outside /= (uint32_t)a.size[b]) {
        const int64_t c = outside % (uint32_t)a.size[b];
        out += c * a.stride[0][b], in += c * a.stride[1][b];
    }
#pragma unroll
    for (int u = 0; u < MINE; u++) {
        const int i = u % RUNS * 32 + lane, j = u / RUNS * WARPS + warp;
        v[u] = i0 + i < a.rows && j0 + j < a.columns ? in[i * a.in_fast + j * a.in_stride] : K(0);
    }
#pragma unroll
    for (int u = 0; u < MINE; u++) kept[u / RUNS * WARPS + warp][u % RUNS * 32 + lane] = v[u];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < MINE; u++) v[u] = kept[u % RUNS * 32 + lane][u / RUNS * WARPS + warp];
#pragma unroll
    for (int u = 0; u < MINE; u++) {
        const int i = u / RUNS * WARPS + warp, j = u % RUNS * 32 + lane;
        if (i0 + i < a.rows && j0 + j < a.columns) out[i * a.out_stride + j * a.out_fast] = v[u];
    }
}

} // namespace

#define FORMS(name)                                                                                                              \
    return form == FORM_FLAT ? (const void *)flat<row_##name> : form == FORM_STRIDED ? (const void *)strided<row_##name> : NULL;

const void *TYPED(map_kernel)(int row, int form)
{
    switch (row) {
    case OP_LOAD:
        if (form == FORM_TILE) return (const void *)tile;
        FORMS(load)
#define DUET_MAP1(name, ...)                                                                                                     \
    case OP_##name:                                                                                                              \
        FORMS(name)
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>
    default: return NULL;
    }
}
