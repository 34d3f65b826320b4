/* linalg_checks.c - implements linalg_checks.h. */
#include "linalg_checks.h"
#include <limits.h>

static duet_status work_in(const solver_workspace *b, duet_dtype type, linear_args a)
{
    a.wide = dtype_part(type) == DUET_F64;
    a.pairs = dtype_is_complex(type);
    gpu_queue_wrote_anything(b->q);
    COUNT(launches);
    return CUDA(linear_launch, &a, b->q->stream);
}

duet_status linear_work(const solver_workspace *b, const linear_args *a)
{
    return work_in(b, solver_type(b), *a);
}

duet_status check_part(const solver_workspace *b, const columns *c, enum linear_part which, int *flag)
{
    const linear_args a = { .what = LINEAR_CHECK,
                            .part = which,
                            .in = c->p,
                            .flag = flag,
                            .rows = c->rows,
                            .cols = c->cols,
                            .in_row = 1,
                            .in_col = c->ld };
    if (c->rows && c->cols) return work_in(b, c->type, a);
    return DUET_OK;
}

duet_status operand_read(solver_workspace *b, int k, bool transposed, columns *c)
{
    TRY(columns_read(b, k, transposed, c));
    return check_part(b, c, PART_ALL, &b->says->operand[2 * k]);
}

duet_status result_check(const solver_workspace *b, const columns *c)
{
    return check_part(b, c, PART_ALL, b->says->result);
}

/* ---- sizes ---- */

static linear_args size_args(const columns *c, enum linear_part which, double *to)
{
    return (linear_args){ .what = LINEAR_SIZE,
                          .part = which,
                          .in = c->p,
                          .out = to,
                          .rows = c->rows,
                          .cols = c->cols,
                          .in_row = 1,
                          .in_col = c->ld };
}

duet_status columns_size(const solver_workspace *b, const columns *c, enum linear_part which, double *to)
{
    const linear_args a = size_args(c, which, to);
    return c->rows && c->cols ? linear_work(b, &a) : DUET_OK;
}

duet_status rows_size(const solver_workspace *b, const columns *c, bool upper_only, double *to)
{
    linear_args a = size_args(c, upper_only ? PART_LOWER : PART_ALL, to);
    a.rows = c->cols;
    a.cols = c->rows;
    a.in_row = c->ld;
    a.in_col = 1;
    return c->rows && c->cols ? linear_work(b, &a) : DUET_OK;
}

/* ---- residuals ---- */

/* Operand 0, in place if cuBLAS can read it: column-major, or *transposed. */
static duet_status matrix_open(solver_workspace *b, columns *a, bool *transposed)
{
    const layout *l = &b->s->in[0].at;
    const int64_t n = l->size[0];
    *transposed = l->stride[1] == 1;
    const int64_t pitch = l->stride[!*transposed];
    *a = (columns){ b->f->data[b->s->in[0].slot], n, n, pitch, solver_type(b) };
    if (l->stride[*transposed] == 1 && pitch >= n && pitch >= 1 && pitch <= INT_MAX) return DUET_OK;
    *transposed = false;
    return columns_read(b, 0, false, a);
}

duet_status operand_size(solver_workspace *b, double *to)
{
    columns a;
    bool transposed;
    TRY(matrix_open(b, &a, &transposed));
    return transposed ? rows_size(b, &a, false, to) : columns_size(b, &a, PART_ALL, to);
}

duet_status residual_check(solver_workspace *b, const columns *x)
{
    columns a, rest;
    bool transposed;
    const bool wide = dtype_part(solver_type(b)) == DUET_F64;
    if (!x->rows || !x->cols) return DUET_OK;
    TRY(matrix_open(b, &a, &transposed));
    TRY(columns_read(b, 1, false, &rest));
    TRY(solver_rest(b, &a, transposed, x, &rest));
    const linear_args of = { .what = LINEAR_REST,
                             .in = rest.p,
                             .more = x->p,
                             .out = &b->says->size,
                             .flag = b->says->rest,
                             .most = RESIDUAL_LIMIT * (wide ? DBL_EPSILON : FLT_EPSILON),
                             .rows = rest.rows,
                             .cols = rest.cols,
                             .in_col = rest.ld,
                             .out_col = x->ld };
    return linear_work(b, &of);
}

/* ---- probes ---- */

duet_status probes_take(solver_workspace *b, int64_t rows, columns *c)
{
    void *host;
    const size_t bytes = (size_t)(rows * CONDITION_PROBES) * element_bytes(b);
    TRY(columns_take(b, rows, CONDITION_PROBES, c));
    if (!bytes) return DUET_OK;
    TRY(gpu_workspace_take(b, ON_HOST, bytes, &host));
    uint64_t state = CONDITION_SEED;
    const bool wide = dtype_part(c->type) == DUET_F64;
    const int64_t n = (int64_t)(bytes / (wide ? sizeof(double) : sizeof(float)));
    for (int64_t i = 0; i < n; i++)
        if (wide) ((double *)host)[i] = condition_probe(&state);
        else ((float *)host)[i] = (float)condition_probe(&state);
    return CUDA(cudaMemcpyAsync, c->p, host, bytes, cudaMemcpyHostToDevice, b->q->stream);
}
