/* linalg.c - linear algebra by cuSOLVER. Operands are copied to column-major matrices, and results
 * are computed in scratch memory. The host waits once for the status and writes the results only if
 * it is OK. Before an iterative method it checks that the operand is finite. */
#include "linalg.h"
#include "columns.h"
#include "exponential.h"
#include "least_squares.h"
#include "linalg_checks.h"
#include "linalg_on_host.h"
#include "linalg_stack.h"
#include "min_max.h"
#include "scratch.h"
#include "singular_values.h"
#include "triangle.h"
#include <limits.h>

const char *gpu_linear_unsupported(const step *s)
{
    const duet_dtype type = s->in[0].at.type;
    if (!dtype_is_blas(type)) return "the elements must be f32, f64, c64 or c128";
    if (s->ins > 1 && s->in[1].at.type != type) return "the operands must have the same element type";
    if (s->kernel == OP_solve && s->attr.solver.refine && type != DUET_F64 && type != DUET_C128)
        return "refinement is implemented for f64 and c128 only";
    for (int k = 0; k < s->ins; k++)
        for (int i = s->in[k].at.rank; i-- > 0 && i + 2 >= s->in[k].at.rank;)
            if (s->in[k].at.size[i] > INT_MAX) return "cuSOLVER takes sizes below 2^31";
    const char *missing = gpu_solver_missing();
    if (!missing && (s->kernel == OP_eigvals || s->kernel == KERNEL_eig) &&
        !solver_has_general_eigen(vendor_open(LIBRARY_cusolver)))
        return "this cuSOLVER has no function for eigenvalues of matrices that are not symmetric";
    return missing;
}

/* ---- operands and status values ---- */

/* Reads the lower triangle of a symmetric or Hermitian operand as the upper one of its transpose,
 * which is its conjugate. */
static duet_status symmetric_read(solver_workspace *b, columns *c)
{
    TRY(columns_read(b, 0, true, c));
    TRY(columns_diagonal_real(b, c));
    return check_part(b, c, PART_UPPER, b->says->operand);
}

/* Converts the status values to a status; pivot: the meaning of cuSOLVER's info if it is not 0. */
static duet_status check_status(solver_workspace *b, enum linalg_failed pivot)
{
    answers a;
    TRY(ask_of_operands(b, &a));
    if (a.pivot) return linalg_failed(b->s, pivot, a.pivot);
    if (a.result[0]) return linalg_failed(b->s, LINALG_RESULT, 0);
    return DUET_OK;
}

/* Output k is a part of `in`. */
static linear_args triangle_of(const solver_workspace *b, const columns *in, enum linear_part which, int k)
{
    const layout *l = &b->s->out[k].at;
    return (linear_args){ .what = LINEAR_TRIANGLE,
                          .part = which,
                          .in = in->p,
                          .in_row = 1,
                          .in_col = in->ld,
                          .out = b->f->data[b->s->out[k].slot],
                          .rows = l->size[0],
                          .cols = l->size[1],
                          .out_row = l->stride[0],
                          .out_col = l->stride[1] };
}

static duet_status write_triangle(const solver_workspace *b, const columns *in, enum linear_part which, int k)
{
    const linear_args a = triangle_of(b, in, which, k);
    if (a.rows && a.cols) return linear_work(b, &a);
    return DUET_OK;
}

/* ---- by LU of the transpose, whose columns are our rows ---- */

/* Reads operand 0 and factors it. Also computes its size, and for the transpose whether it is graded. */
static duet_status lu_read(solver_workspace *b, bool transposed, columns *a, int64_t **pivot)
{
    TRY(operand_read(b, 0, transposed, a));
    if (transposed) TRY(rows_range(b, a, &b->says->size, &b->says->reciprocal));
    else TRY(columns_size(b, a, PART_ALL, &b->says->size));
    TRY(gpu_workspace_take(b, ON_CARD, (size_t)smaller(a->rows, a->cols) * sizeof **pivot, pivot));
    return solver_lu(b, a, *pivot);
}

/* Is the operand in range, and are its columns of about one size? Otherwise L may underflow. */
static bool is_level(const solver_workspace *b, const answers *a)
{
    const bool wide = dtype_part(solver_type(b)) == DUET_F64;
    return is_in_range(b, a->size) && a->size * a->reciprocal < (wide ? 0x1p960 : 0x1p96);
}

/* Has U grown by at most the factor `limit`, and is it finite and in range? */
static bool growth_is_small(const solver_workspace *b, const answers *a, int limit)
{
    return is_level(b, a) && a->grown <= limit * a->size;
}

/* cuSOLVER found a pivot of 0, or NaN, which a tiny earlier pivot may cause. If U is finite and has not
 * grown, the matrix is singular; otherwise the CPU decides. */
static duet_status check_pivot(solver_workspace *b, const columns *lu)
{
    answers a;
    TRY(check_part(b, lu, PART_UPPER, b->says->triangle));
    TRY(rows_size(b, lu, true, &b->says->grown));
    TRY(gpu_workspace_ask(b, &a));
    const int64_t zero = a.triangle[1] ? lu->rows - a.triangle[1] + 1 : INT64_MAX;
    if (zero <= a.pivot && growth_is_small(b, &a, GROWTH_LIMIT))
        return linalg_failed(b->s, LINALG_PIVOT, zero);
    return gpu_linear_on_host(b, LINALG_RESULT, 0);
}

/* Writes x if it is accurate: if U has grown by at most the factor `growth`, or, if that is 0, if the
 * residual is small. Otherwise the CPU computes the result. */
static duet_status check_lu(solver_workspace *b, const columns *lu, const columns *x, int growth,
                            bool transposed)
{
    answers a;
    TRY(ask_of_operands(b, &a));
    if (a.pivot) return check_pivot(b, lu);
    const bool is_accurate = growth ? growth_is_small(b, &a, growth) : is_level(b, &a) && !a.rest[0];
    if (is_accurate && !a.result[0]) return columns_write(b, x, transposed, 0);
    return gpu_linear_on_host(b, a.result[0] ? LINALG_RESULT : LINALG_RESIDUAL, 0);
}

static duet_status unit_fill(const solver_workspace *b, const columns *c)
{
    const linear_args a = { .what = LINEAR_TRIANGLE,
                            .part = PART_UNIT_LOWER,
                            .out = c->p,
                            .rows = c->rows,
                            .cols = c->cols,
                            .out_row = 1,
                            .out_col = c->ld };
    if (!c->rows || !c->cols) return DUET_OK;
    return linear_work(b, &a);
}

static duet_status unit_take(solver_workspace *b, int64_t n, columns *c)
{
    TRY(columns_take(b, n, n, c));
    return unit_fill(b, c);
}

static duet_status inverse(solver_workspace *b)
{
    columns a, x;
    int64_t *pivot;
    TRY(lu_read(b, true, &a, &pivot));
    TRY(unit_take(b, a.rows, &x));
    TRY(solver_lu_solve(b, &a, pivot, false, &x));
    TRY(result_check(b, &x));
    TRY(rows_size(b, &a, true, &b->says->grown));
    return check_lu(b, &a, &x, GROWTH_LIMIT, true);
}

/* The residuals of many right-hand sides cost as much as their solutions: the growth of U decides. */
static duet_status solve(solver_workspace *b)
{
    columns a, x;
    int64_t *pivot;
    TRY(lu_read(b, true, &a, &pivot));
    TRY(operand_read(b, 1, false, &x));
    TRY(solver_lu_solve(b, &a, pivot, true, &x));
    TRY(result_check(b, &x));
    const bool by_residual = x.cols <= 1 + x.rows / 200;
    if (by_residual) TRY(residual_check(b, &x));
    else TRY(rows_size(b, &a, true, &b->says->grown));
    return check_lu(b, &a, &x, by_residual ? 0 : SOLVE_GROWTH_LIMIT, false);
}

/* Solves in f64, after releasing the memory of the refinement. */
static duet_status solve_anew(solver_workspace *b)
{
    const solver_workspace was = *b;
    gpu_workspace_close(b);
    TRY(gpu_workspace_open(b, was.s, was.f, was.q));
    return solve(b);
}

/* Solves with refinement. cuSOLVER also accepts solutions from f16 that are only as accurate as f32, so
 * the residual is checked. The operands are checked for NaN and infinity first, because refinement is
 * iterative. If the solution is not accurate enough, the system is solved in f64. */
static duet_status solve_refined(solver_workspace *b)
{
    columns a, y, x;
    answers said;
    int turns = 0;
    TRY(operand_read(b, 0, false, &a));
    TRY(operand_read(b, 1, false, &y));
    TRY(columns_take(b, y.rows, y.cols, &x));
    TRY(check_status(b, LINALG_PIVOT));
    TRY(solver_refined(b, b->s->attr.solver.refine == DUET_REFINE_F16, &a, &y, &x, &turns));
    TRY(result_check(b, &x));
    TRY(operand_size(b, &b->says->size));
    TRY(residual_check(b, &x));
    TRY(gpu_workspace_ask(b, &said));
    if (turns >= 0 && !said.pivot && !said.result[0] && !said.rest[0]) return columns_write(b, &x, false, 0);
    return solve_anew(b);
}

/* A zero pivot is not an error here. */
static duet_status check_factored(solver_workspace *b, answers *a)
{
    TRY(gpu_workspace_ask(b, a));
    return a->operand[0] ? linalg_failed(b->s, LINALG_OPERAND, 1) : DUET_OK;
}

static duet_status determinant(solver_workspace *b, enum linear what)
{
    columns a;
    int64_t *pivot;
    answers said;
    TRY(lu_read(b, true, &a, &pivot));
    TRY(result_check(b, &a));
    TRY(rows_size(b, &a, true, &b->says->grown));
    TRY(check_factored(b, &said));
    if (said.result[0] || !growth_is_small(b, &said, GROWTH_LIMIT))
        return gpu_linear_on_host(b, LINALG_RESULT, 0);
    linear_args d = { .what = what, .in = a.p, .pivot = pivot, .rows = a.rows, .in_row = 1, .in_col = a.ld };
    d.out = b->f->data[b->s->out[0].slot];
    if (what == LINEAR_SLOGDET) d.more = b->f->data[b->s->out[1].slot];
    return linear_work(b, &d);
}

static duet_status lu(solver_workspace *b)
{
    columns a;
    int64_t *pivot;
    answers said;
    TRY(lu_read(b, false, &a, &pivot));
    TRY(result_check(b, &a));
    TRY(check_factored(b, &said));
    if (said.result[0] || !is_in_range(b, said.size)) return gpu_linear_on_host(b, LINALG_RESULT, 0);
    TRY(write_triangle(b, &a, PART_UNIT_LOWER, 0));
    TRY(half_written(write_triangle(b, &a, PART_UPPER, 1)));
    const linear_args order = { .what = LINEAR_ORDER,
                                .pivot = pivot,
                                .out = b->f->data[b->s->out[2].slot],
                                .rows = a.rows,
                                .pivots = smaller(a.rows, a.cols),
                                .out_row = b->s->out[2].at.stride[0] };
    return half_written(linear_work(b, &order));
}

/* ---- triangular systems ---- */

/* A triangle that cuBLAS cannot read in place is copied: see triangle.h. */
static duet_status triangle_open(solver_workspace *b, triangle *t, columns *a)
{
    const triangle_attributes *how = &b->s->attr.triangle;
    const int64_t n = b->s->in[0].at.size[0];
    *a = (columns){ b->f->data[b->s->in[0].slot], n, n, t->pitch, solver_type(b) };
    if (t->pitch && is_aligned(b, a->p)) return DUET_OK;
    *t = (triangle){ !how->lower, how->unit, !how->transposed, 0 };
    return columns_read(b, 0, true, a);
}

static duet_status triangle_check(const solver_workspace *b, const triangle *t, const columns *a)
{
    static const enum linear_part parts[2][2] = { { PART_UPPER, PART_UNIT_UPPER },
                                                  { PART_LOWER, PART_UNIT_LOWER } };
    return check_part(b, a, parts[t->lower][t->unit], b->says->triangle);
}

static duet_status solve_triangular(solver_workspace *b)
{
    triangle t = step_triangle(b->s);
    columns a, x;
    answers said;
    TRY(triangle_open(b, &t, &a));
    TRY(triangle_check(b, &t, &a));
    TRY(operand_read(b, 1, false, &x));
    TRY(solver_triangular(b, &a, t.lower, t.unit, t.transposed, &x));
    TRY(result_check(b, &x));
    TRY(gpu_workspace_ask(b, &said));
    if (said.triangle[0] || said.operand[2])
        return linalg_failed(b->s, LINALG_OPERAND, said.triangle[0] ? 1 : 2);
    if (said.triangle[1]) return linalg_failed(b->s, LINALG_PIVOT, a.rows - said.triangle[1] + 1);
    if (said.result[0]) return gpu_linear_on_host(b, LINALG_RESULT, 0);
    return columns_write(b, &x, false, 0);
}

/* ---- by QR ---- */

/* Q has as many columns as there are reflectors, or, if it is complete, as many as rows. */
static duet_status qr(solver_workspace *b, bool complete)
{
    columns a, q;
    void *tau;
    TRY(operand_read(b, 0, false, &a));
    TRY(columns_qr(b, &a, &tau));
    TRY(result_check(b, &a));
    columns first = a;
    first.cols = smaller(a.rows, a.cols);
    const layout from = columns_layout(&first);
    TRY(columns_take(b, a.rows, complete ? a.rows : first.cols, &q));
    columns reflectors = q;
    reflectors.cols = first.cols;
    TRY(columns_fill(b, &reflectors, &from, a.p));
    if (first.cols) TRY(solver_q(b, &q, first.cols, tau));
    else TRY(unit_fill(b, &q));
    TRY(result_check(b, &q));
    TRY(check_status(b, LINALG_ITERATION));
    TRY(columns_write(b, &q, false, 0));
    return half_written(write_triangle(b, &a, PART_UPPER, 1));
}

/* ---- symmetric and Hermitian matrices, singular values ---- */

/* Factors the lower triangle. With the upper triangle of the transpose, which needs no transposing
 * copy, cuSOLVER takes 2 to 2.8 times as long. */
static duet_status cholesky(solver_workspace *b)
{
    columns a;
    TRY(columns_read(b, 0, false, &a));
    TRY(columns_diagonal_real(b, &a));
    TRY(check_part(b, &a, PART_LOWER, b->says->operand));
    TRY(solver_cholesky(b, &a));
    TRY(check_part(b, &a, PART_LOWER, b->says->result));
    TRY(check_status(b, LINALG_MINOR));
    return write_triangle(b, &a, PART_LOWER, 0);
}

/* Has an iteration ended with finite values? If not, *done is false. */
static duet_status check_iteration(solver_workspace *b, bool *done)
{
    answers a;
    TRY(gpu_workspace_ask(b, &a));
    *done = !a.pivot && !a.result[0];
    return DUET_OK;
}

/* If cuSOLVER's iteration does not converge, the CPU computes the result, with another algorithm. */
static duet_status eigen(solver_workspace *b, bool vectors)
{
    columns a, w;
    bool done;
    TRY(symmetric_read(b, &a));
    TRY(values_take(b, a.rows, &w));
    TRY(check_status(b, LINALG_ITERATION));
    TRY(solver_eigen(b, &a, vectors, &w));
    TRY(result_check(b, &w));
    if (vectors) TRY(columns_conjugate(b, &a));
    TRY(check_iteration(b, &done));
    if (!done) return gpu_linear_on_host(b, LINALG_ITERATION, b->s->in[0].at.size[0]);
    TRY(columns_write(b, &w, false, 0));
    if (!vectors) return DUET_OK;
    return half_written(columns_write(b, &a, false, 1));
}

/* The parts of complex columns from column j on, as a real matrix: every second number. */
static layout half_of(const columns *c, int64_t cols)
{
    return (layout){
        .type = dtype_part(c->type), .rank = 2, .size = { c->rows, cols }, .stride = { 2, 2 * c->ld }
    };
}

/* Puts columns of v, which is real, into the real or the imaginary parts of column j of z and the following
 * ones. With `repeats`, each of them is the same column. */
static duet_status put_half(const solver_workspace *b, int op, const columns *v, int64_t from, bool repeats,
                            const columns *z, bool imaginary, int64_t j, int64_t cols)
{
    const size_t bytes = dtypes[v->type].bytes;
    const layout to = half_of(z, cols);
    const layout at = {
        .type = v->type, .rank = 2, .size = { v->rows, cols }, .stride = { 1, repeats ? 0 : v->ld }
    };
    char *p = (char *)z->p + (size_t)(2 * j * z->ld + imaginary) * bytes;
    const part x = { .p = (const char *)v->p + (size_t)(from * v->ld) * bytes, .at = &at };
    return gpu_apply((enum op)op, p, &to, &x, 1, b->q);
}

/* z = the complex eigenvectors, from those of a real matrix as LAPACK stores them. `values` has the
 * eigenvalues, in host memory. */
static duet_status unpack_vectors(const solver_workspace *b, const columns *v, const void *values,
                                  const columns *z)
{
    const bool wide = v->type == DUET_F64;
    const int64_t n = v->rows;
    TRY(CUDA(cudaMemsetAsync, z->p, 0, (size_t)(z->ld * z->cols) * dtypes[z->type].bytes, b->q->stream));
    for (int64_t j = 0; j < n; j++) {
        const double im =
            wide ? ((const double *)values)[2 * j + 1] : (double)((const float *)values)[2 * j + 1];
        const bool is_pair = im != 0 && j + 1 < n;
        TRY(put_half(b, OP_LOAD, v, j, true, z, false, j, 1 + is_pair));
        if (!is_pair) continue;
        TRY(put_half(b, OP_LOAD, v, j + 1, true, z, true, j, 1));
        TRY(put_half(b, OP_neg, v, j + 1, true, z, true, j + 1, 1));
        j++;
    }
    return DUET_OK;
}

/* The host reads the eigenvalues of a real matrix, to know which of them are pairs. */
static duet_status general_vectors(solver_workspace *b, const columns *w, const columns *v, columns *z)
{
    void *values;
    const size_t bytes = (size_t)w->rows * dtypes[w->type].bytes;
    *z = *v;
    if (dtype_is_complex(v->type)) return DUET_OK;
    TRY(complex_take(b, v->rows, v->cols, z));
    if (!bytes) return DUET_OK;
    TRY(gpu_workspace_take(b, ON_HOST, bytes, &values));
    TRY(CUDA(cudaMemcpyAsync, values, w->p, bytes, cudaMemcpyDeviceToHost, b->q->stream));
    TRY(gpu_stream_wait(b->q->device, b->q->stream));
    COUNT(synchronisations);
    return unpack_vectors(b, v, values, z);
}

static duet_status general_eigen(solver_workspace *b, bool vectors)
{
    columns a, w, v, z;
    bool done;
    TRY(operand_read(b, 0, false, &a));
    TRY(complex_take(b, a.rows, 1, &w));
    if (vectors) TRY(columns_take(b, a.rows, a.rows, &v));
    TRY(check_status(b, LINALG_ITERATION));
    TRY(solver_general_eigen(b, &a, &w, vectors ? &v : NULL));
    TRY(result_check(b, &w));
    if (vectors) TRY(result_check(b, &v));
    TRY(check_iteration(b, &done));
    if (!done) return gpu_linear_on_host(b, LINALG_ITERATION, a.rows);
    if (vectors) TRY(general_vectors(b, &w, &v, &z));
    TRY(columns_write(b, &w, false, 0));
    if (!vectors) return DUET_OK;
    return half_written(columns_write(b, &z, false, 1));
}

/* cuSOLVER needs at least as many rows as columns. For other matrices the transpose, V S U^T, is
 * factored. Its factors need no conjugation. */
static duet_status svd(solver_workspace *b, enum svd_vectors vectors)
{
    const layout *l = &b->s->in[0].at;
    const bool wide = l->size[0] < l->size[1];
    bool done;
    columns a, w, u, vt;
    TRY(operand_read(b, 0, wide, &a));
    TRY(values_take(b, a.cols, &w));
    if (vectors) TRY(columns_take(b, a.rows, vectors == SVD_ALL ? a.rows : a.cols, &u));
    if (vectors) TRY(columns_take(b, a.cols, a.cols, &vt));
    if (vectors && !a.cols) TRY(unit_fill(b, &u));
    TRY(check_status(b, LINALG_ITERATION));
    TRY(vectors ? solver_svd(b, &a, &w, vectors, &u, &vt) : singular_values(b, &a, &w));
    TRY(result_check(b, &w));
    TRY(check_iteration(b, &done));
    if (!done) return gpu_linear_on_host(b, LINALG_ITERATION, a.cols);
    if (!vectors) return columns_write(b, &w, false, 0);
    TRY(columns_write(b, wide ? &vt : &u, wide, 0));
    TRY(half_written(columns_write(b, &w, false, 1)));
    return half_written(columns_write(b, wide ? &u : &vt, wide, 2));
}

/* ---- dispatch ---- */

static duet_status run(solver_workspace *b)
{
    switch (b->s->kernel) {
    case OP_inv: return inverse(b);
    case OP_det: return determinant(b, LINEAR_DET);
    case OP_logdet: return determinant(b, LINEAR_LOGDET);
    case OP_cholesky: return cholesky(b);
    case OP_eigvalsh: return eigen(b, false);
    case OP_eigvals: return general_eigen(b, false);
    case KERNEL_eig: return general_eigen(b, true);
    case OP_expm: return gpu_exponential(b);
    case OP_svdvals: return svd(b, SVD_VALUES);
    case OP_solve: return b->s->attr.solver.refine ? solve_refined(b) : solve(b);
    case OP_solve_triangular: return solve_triangular(b);
    case OP_lstsq: return gpu_least_squares(b);
    case KERNEL_lu: return lu(b);
    case KERNEL_qr: return qr(b, false);
    case KERNEL_qr_complete: return qr(b, true);
    case KERNEL_svd: return svd(b, SVD_SOME);
    case KERNEL_svd_full: return svd(b, SVD_ALL);
    case KERNEL_eigh: return eigen(b, true);
    case KERNEL_slogdet: return determinant(b, LINEAR_SLOGDET);
    default: return fail(DUET_UNSUPPORTED, "the GPU has no kernel %d", b->s->kernel);
    }
}

static duet_status run_matrix(const step *s, const frame *f, queue *q)
{
    solver_workspace b;
    duet_status r = gpu_workspace_open(&b, s, f, q);
    if (r == DUET_OK) r = run(&b);
    if (r == DUET_UNSUPPORTED) r = gpu_linear_on_host(&b, LINALG_WORKSPACE, 0);
    gpu_workspace_close(&b);
    return r;
}

duet_status gpu_linear(const step *s, const frame *f, queue *q)
{
    const linalg_batch b = linalg_batch_of(s);
    if (!b.lead.rank && !gpu_linear_is_small(s)) return run_matrix(s, f, q);
    return gpu_linear_stack(s, f, q, &b, run_matrix);
}
