/* linalg_small.c - launches the kernels of linalg_small.h. */
#include "linalg_small.h"
#include "launch.h"

const void *small_kernel_f32(bool factors, bool pairs, bool warps);
const void *small_kernel_f64(bool factors, bool pairs, bool warps);

cudaError_t small_launch(const small_args *a, cudaStream_t q)
{
    small_args args = *a;
    const bool warps = a->lanes == 32;
    const void *kernel =
        (a->wide ? small_kernel_f64 : small_kernel_f32)(a->what >= SMALL_QR, a->pairs, warps);
    const size_t each = small_bytes_apart(a), fit = SMALL_BYTES_MOST / each;
    const int together = !warps ? 1 : fit < SMALL_WARPS ? (int)fit : SMALL_WARPS;
    const cudaError_t e = with_shared(kernel, (size_t)together * each, SMALL_BYTES_MOST);
    if (e != cudaSuccess) return e;
    return launch(kernel, quotient_up(a->count, together), together * a->lanes, (size_t)together * each,
                  &args, q);
}
