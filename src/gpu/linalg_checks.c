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

/* Work that reads a part of a column-major matrix. */
static linear_args part_args(enum linear what, const columns *c, enum linear_part which)
{
    return (linear_args){ .what = what,
                          .part = which,
                          .in = c->p,
                          .rows = c->rows,
                          .cols = c->cols,
                          .in_row = 1,
                          .in_col = c->ld };
}

static duet_status part_work(const solver_workspace *b, duet_dtype type, const linear_args *a)
{
    return a->rows && a->cols ? work_in(b, type, *a) : DUET_OK;
}

duet_status check_part(const solver_workspace *b, const columns *c, enum linear_part which, int *flag)
{
    linear_args a = part_args(LINEAR_CHECK, c, which);
    a.flag = flag;
    return part_work(b, c->type, &a);
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
    linear_args a = part_args(LINEAR_SIZE, c, which);
    a.out = to;
    return a;
}

static duet_status size_work(const solver_workspace *b, const linear_args *a)
{
    return part_work(b, solver_type(b), a);
}

duet_status columns_size(const solver_workspace *b, const columns *c, enum linear_part which, double *to)
{
    const linear_args a = size_args(c, which, to);
    return size_work(b, &a);
}

duet_status columns_squares(const solver_workspace *b, const columns *c, double *to)
{
    linear_args a = size_args(c, PART_ALL, to);
    a.squares = true;
    return size_work(b, &a);
}

static linear_args rows_args(const columns *c, bool upper_only, double *to)
{
    linear_args a = size_args(c, upper_only ? PART_LOWER : PART_ALL, to);
    a.rows = c->cols;
    a.cols = c->rows;
    a.in_row = c->ld;
    a.in_col = 1;
    return a;
}

duet_status rows_size(const solver_workspace *b, const columns *c, bool upper_only, double *to)
{
    const linear_args a = rows_args(c, upper_only, to);
    return size_work(b, &a);
}

duet_status rows_range(const solver_workspace *b, const columns *c, double *to, double *reciprocal)
{
    linear_args a = rows_args(c, false, to);
    a.more = reciprocal;
    return size_work(b, &a);
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
    if (l->stride[*transposed] == 1 && pitch >= n && pitch >= 1 && pitch <= INT_MAX && is_aligned(b, a->p))
        return DUET_OK;
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
    TRY(columns_take(b, rows, CONDITION_PROBES, c));
    const linear_args a = { .what = LINEAR_PROBES, .out = c->p, .rows = rows, .cols = CONDITION_PROBES };
    return rows ? linear_work(b, &a) : DUET_OK;
}

/* ---- on the host ---- */

bool is_in_range(const solver_workspace *b, double size)
{
    const bool wide = dtype_part(solver_type(b)) == DUET_F64;
    return size == 0 || (size > (wide ? 0x1p-960 : 0x1p-96) && size < (wide ? 0x1p1000 : 0x1p110));
}

duet_status ask_of_operands(solver_workspace *b, answers *a)
{
    TRY(gpu_workspace_ask(b, a));
    for (int k = 0; k < b->s->ins; k++)
        if (a->operand[2 * k]) return linalg_failed(b->s, LINALG_OPERAND, k + 1);
    return DUET_OK;
}

bool is_aligned(const solver_workspace *b, const void *p) { return (uintptr_t)p % element_bytes(b) == 0; }
