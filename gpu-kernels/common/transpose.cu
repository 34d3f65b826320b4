/* transpose.cu - copies between operands whose fastest axes differ. */
#include "device.cuh"
#include "transpose_kernels.h"

namespace
{

/* A warp reads along the fast axis of the input and writes along that of the output. A row of the
 * tile has one extra element, so that neither access has bank conflicts. Element (i, j) of the tile
 * is number u of this thread: lanes run along i for reading and along j for writing. */
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
        out += c * a.stride[0][b];
        in += c * a.stride[1][b];
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

const void *TYPED(tile_kernel)(void) { return (const void *)tile; }
