/* linalg.c - launches the kernels of linalg.h. */
#include "linalg.h"
#include "launch.h"
#include "min_max.h"

const void *linear_kernel_f32(enum linear what, bool pairs);
const void *linear_kernel_f64(enum linear what, bool pairs);

enum { THREADS = 256, ACROSS = 32, MOST_BLOCKS = 4096 };

static int64_t blocks_of(const linear_args *a)
{
    const int64_t n = a->rows * a->cols, blocks = (n + THREADS - 1) / THREADS;
    if (a->what == LINEAR_SIZE && a->in_row != 1) return (a->cols + ACROSS - 1) / ACROSS;
    if (a->what == LINEAR_REST || a->what == LINEAR_SIZE) return a->cols;
    if (a->what != LINEAR_CHECK && a->what != LINEAR_TRIANGLE) return 1;
    return smaller(blocks, MOST_BLOCKS);
}

cudaError_t linear_launch(const linear_args *a, cudaStream_t q)
{
    linear_args args = *a;
    return launch((a->wide ? linear_kernel_f64 : linear_kernel_f32)(a->what, a->pairs), blocks_of(a), THREADS,
                  0, &args, q);
}
