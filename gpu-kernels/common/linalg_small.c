/* linalg_small.c - launches the kernels of linalg_small.h. */
#include "linalg_small.h"
#include "launch.h"

const void *small_kernel_f32(bool pairs);
const void *small_kernel_f64(bool pairs);

cudaError_t small_launch(const small_args *a, cudaStream_t q)
{
    small_args args = *a;
    const void *kernel = (a->wide ? small_kernel_f64 : small_kernel_f32)(a->pairs);
    const size_t bytes = small_bytes(a);
    const cudaError_t e = with_shared(kernel, bytes, SMALL_BYTES_MOST);
    return e == cudaSuccess ? launch(kernel, a->count, a->lanes, bytes, &args, q) : e;
}
