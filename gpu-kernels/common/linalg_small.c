/* linalg_small.c - launches the kernels of linalg_small.h. */
#include "linalg_small.h"
#include "launch.h"

const void *small_kernel_f32(bool pairs);
const void *small_kernel_f64(bool pairs);

enum { THREADS = 64 };

cudaError_t small_launch(const small_args *a, cudaStream_t q)
{
    small_args args = *a;
    return launch((a->wide ? small_kernel_f64 : small_kernel_f32)(a->pairs), a->count, THREADS,
                  small_bytes(a), &args, q);
}
