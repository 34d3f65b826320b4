/* transpose_kernels.h - the kernels that transpose by tiles. */
#ifndef TRANSPOSE_KERNELS_H
#define TRANSPOSE_KERNELS_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TILE         64
#define TILE_THREADS 256

/* out[i * out_stride + j * out_fast] = in[i * in_fast + j * in_stride] for i < rows, j < columns,
 * for each index of the outer axes. */
typedef struct tile_args {
    void *out;
    const void *in;
    int64_t rows, columns, in_fast, in_stride, out_fast, out_stride;
    uint32_t tiles_down, tiles_across;
    int32_t rank;
    int64_t size[DUET_RANK_MAX], stride[2][DUET_RANK_MAX]; /* of the outer axes: out, in */
} tile_args;

const void *tile_kernel_u8(void);
const void *tile_kernel_u16(void);
const void *tile_kernel_f32(void);
const void *tile_kernel_f64(void);

#ifdef __cplusplus
}
#endif

#endif
