/* cost.c - the built-in costs of the GPU: the expected time of steps, and of copies to and from it. */
#include "kernels.h"
#include "linalg_batch.h"
#include "linalg_stack.h"
#include "step_kinds.h"

#define FEW_COLUMNS 16

/* Measured on an H200 (bench/results/h200.json, h200-rows.json) with one launch after the other.
 * Copies went over 16 lanes of PCIe 5. The costs of products with a short side, of small products
 * and of convolutions are estimates from the forward passes (h200-forward-1.json). */
const costs gpu_costs = { .seconds = {
                              [COST_pass] = { 2.8e-6, 2.9e-6, 3e-6, 3.8e-6, 31e-6 },
                              [COST_function] = { 2.8e-6, 2.8e-6, 3e-6, 3.4e-6, 7e-6 },
                              [COST_function_f64] = { 2.8e-6, 2.9e-6, 3.2e-6, 5e-6 },
                              [COST_product] = { 3e-6, 3e-6, 3.2e-6, 9.6e-6, 14e-6, 50.6e-6 },
                              [COST_product_f64] = { 9.4e-6, 9.5e-6, 14e-6 },
                              [COST_thin] = { 3e-6, 5e-6, 12e-6 },
                              [COST_conv] = { 3e-6, 5e-6, 12e-6 },
                              [COST_up] = { 8e-6, 16e-6, 110e-6, 1.6e-3 },
                              [COST_down] = { 12e-6, 22e-6, 130e-6, 2e-3 },
                              [COST_up_pinned] = { 6e-6, 8e-6, 26e-6, 320e-6 },
                              [COST_down_pinned] = { 10e-6, 12e-6, 30e-6, 330e-6 },
                          } };

/* Estimated seconds for each column. Except for large matrices, the columns take the time and not the
 * operations, because each column depends on the previous one. */
#define COLUMN_SECONDS 3e-6
static const double column_seconds[KERNELS_ALL] = {
    [OP_cholesky] = 1e-6,  [OP_solve_triangular] = 0.5e-6, [OP_lstsq] = 5e-6,     [KERNEL_qr] = 5e-6,
    [OP_eigvalsh] = 35e-6, [KERNEL_eigh] = 35e-6,          [OP_svdvals] = 200e-6, [KERNEL_svd] = 200e-6,
};

/* Estimated seconds for matrices of which many are computed at once, by the cube of their larger size.
 * Measured on an H200 for 10,000 matrices of 64 x 64. */
#define CUBE_SECONDS 0.6e-12
static const double cube_seconds[KERNELS_ALL] = {
    [KERNEL_qr] = 2e-12,   [KERNEL_qr_complete] = 2e-12, [OP_eigvalsh] = 25e-12,     [KERNEL_eigh] = 25e-12,
    [OP_svdvals] = 14e-12, [KERNEL_svd] = 19e-12,        [KERNEL_svd_full] = 19e-12,
};

/* Those of iterative methods. A single matrix waits for each rotation, and otherwise for each column. */
#define ITERATES 1e-11

double gpu_linear_cost(const step *s, const costs *c)
{
    const double m = (double)linalg_rows(s), n = (double)linalg_cols(s), most = m > n ? m : n,
                 count = (double)linalg_batch_of(s).count, cube = cube_seconds[s->kernel],
                 each = column_seconds[s->kernel];
    if (gpu_linear_is_small(s) && count == 1)
        return 25e-6 + (cube > ITERATES ? 0.5e-6 * most * most : 1.7e-6 * most);
    if (gpu_linear_is_small(s)) return 40e-6 + count * most * most * most * (cube > 0 ? cube : CUBE_SECONDS);
    return count * (40e-6 + (m < n ? m : n) * (each > 0 ? each : COLUMN_SECONDS)) + cost_of_solver(s, c);
}

/* Measured on an H200: cuSPARSE analyses the triangle in each call, and rows wait for each other. */
double gpu_sparse_triangle_cost(const step *s, const costs *c)
{
    return 300e-6 + 90e-9 * (double)s->out[0].at.size[0] + cost_at(c, COST_pass, s->bytes);
}

/* Measured on an H200, for grids and random matrices: cuDSS finds the order of elimination on the host. */
double gpu_sparse_solve_cost(const step *s, const costs *c)
{
    return 9e-3 + 1.3e-6 * (double)layout_count(&s->in[0].at) + cost_at(c, COST_pass, s->bytes);
}

/* Duet's own kernels for few columns take only the time to read the operands. */
double gpu_matmul_cost(const step *s, const costs *c)
{
    const bool few = s->in[1].at.size[1] <= FEW_COLUMNS && !kernels_unsupported(s);
    return few ? cost_at(c, COST_pass, s->bytes) : cost_of_product(s, c);
}
