/* least_squares.c - least squares by QR, on the GPU as long as R is certainly well-conditioned.
 *
 * R in f32 and c64 shows less than the rank of the operand, so problems that are near the limit are solved
 * again in f64 and c128. If R may still be rank-deficient, the CPU computes the result
 * (cpu/lapack_lstsq_tmpl.c). */
#include "linalg_checks.h" /* first: see there */

#include "columns.h"
#include "least_squares.h"
#include "linalg_on_host.h"
#include "min_max.h"

/* Reads the right-hand sides into memory with as many rows as the results need. */
static duet_status sides_read(solver_workspace *b, int64_t rows, columns *x)
{
    const layout at = layout_as_matrix(&b->s->in[1].at);
    TRY(columns_take(b, rows, at.size[1], x));
    TRY(CUDA(cudaMemsetAsync, x->p, 0, (size_t)(x->ld * x->cols) * element_bytes(b), b->q->stream));
    TRY(columns_fill(b, x, &at, b->f->data[b->s->in[1].slot]));
    return check_part(b, x, PART_ALL, &b->says->operand[2]);
}

/* Is R certainly well-conditioned? The test is that of the CPU. */
static bool is_regular(const answers *a, double limit)
{
    return CONDITION_CAUTION * condition_quick(a->triangle_size, a->triangle_rows, a->probes) < limit;
}

/* Solves with R and the right-hand sides of the test of its condition. */
static duet_status probe(solver_workspace *b, const columns *r)
{
    columns x;
    TRY(probes_take(b, r->rows, &x));
    TRY(columns_size(b, r, PART_UPPER, &b->says->triangle_size));
    TRY(rows_size(b, r, true, &b->says->triangle_rows));
    TRY(solver_triangular(b, r, false, false, false, &x));
    return columns_squares(b, &x, &b->says->probes);
}

/* With more columns than rows, the transpose is factored: if A = R^T Q^T, the shortest x is
 * conj(Q) R^-T b. *done is false, and nothing is written, if the condition may exceed the limit. */
static duet_status solve_below(solver_workspace *b, double limit, bool *done)
{
    const layout *l = &b->s->in[0].at;
    const bool tall = l->size[0] >= l->size[1];
    columns a, x;
    answers said;
    void *tau;
    TRY(operand_read(b, 0, !tall, &a));
    TRY(columns_size(b, &a, PART_ALL, &b->says->size));
    TRY(columns_qr(b, &a, &tau));
    TRY(sides_read(b, a.rows, &x));
    TRY(columns_size(b, &x, PART_ALL, &b->says->sides));
    columns r = a;
    r.rows = a.cols;
    TRY(probe(b, &r));
    if (tall) TRY(solver_times_q(b, &a, tau, true, &x));
    TRY(solver_triangular(b, &r, false, false, !tall, &x));
    if (!tall) {
        TRY(columns_conjugate(b, &x));
        TRY(solver_times_q(b, &a, tau, false, &x));
        TRY(columns_conjugate(b, &x));
    }
    columns first = x;
    first.rows = l->size[1];
    TRY(result_check(b, &first));
    TRY(ask_of_operands(b, &said));
    const bool in_range = is_in_range(b, said.size) && is_in_range(b, said.sides);
    *done = !said.result[0] && in_range && (!a.cols || is_regular(&said, limit));
    return *done ? columns_write(b, &x, false, 0) : DUET_OK;
}

/* ---- f32 in f64, c64 in c128 ---- */

/* Memory for an operand or a result with wider elements, in row-major order without gaps. */
static duet_status wider_take(solver_workspace *b, operand *o, int slot, void **p)
{
    layout at;
    layout_dense(&at, dtype_is_complex(o->at.type) ? DUET_C128 : DUET_F64, o->at.rank, o->at.size);
    *o = (operand){ slot, at };
    return gpu_workspace_take(b, ON_CARD, (size_t)layout_count(&at) * dtypes[at.type].bytes, p);
}

/* Solves the step with wide operands, in memory of its own. */
static duet_status solve_step(const step *s, const frame *f, queue *q, bool *done)
{
    const int64_t *size = s->in[0].at.size;
    solver_workspace b;
    duet_status r = gpu_workspace_open(&b, s, f, q);
    if (r == DUET_OK) r = solve_below(&b, condition_limit_f32(size[0], size[1]), done);
    gpu_workspace_close(&b);
    return r;
}

/* The result may overflow the narrower type: then *done is false. */
static duet_status solve_wider(solver_workspace *b, bool *done)
{
    const solver_workspace was = *b;
    step s = *b->s;
    void *data[3];
    columns x;
    answers said;
    gpu_workspace_close(b);
    TRY(gpu_workspace_open(b, was.s, was.f, was.q));
    for (int k = 0; k < 2; k++) {
        const operand *from = &was.s->in[k];
        TRY(wider_take(b, &s.in[k], k, &data[k]));
        TRY(columns_convert(b, data[k], &s.in[k].at, was.f->data[from->slot], &from->at));
    }
    TRY(wider_take(b, &s.out[0], 2, &data[2]));
    TRY(solve_step(
        &s, &(frame){ .data = data, .num = was.f->num, .queue = was.f->queue, .device = was.f->device },
        was.q, done));
    if (!*done) return DUET_OK;
    const layout at = layout_as_matrix(&s.out[0].at);
    TRY(columns_take(b, at.size[0], at.size[1], &x));
    const layout to = columns_layout(&x);
    TRY(columns_convert(b, x.p, &to, data[2], &at));
    TRY(result_check(b, &x));
    TRY(gpu_workspace_ask(b, &said));
    *done = !said.result[0];
    return *done ? columns_write(b, &x, false, 0) : DUET_OK;
}

duet_status gpu_least_squares(solver_workspace *b)
{
    const int64_t *size = b->s->in[0].at.size;
    const bool narrow = dtype_part(solver_type(b)) == DUET_F32;
    bool done = false;
    TRY(solve_below(b, narrow ? condition_certain_f32(size[0], size[1]) : condition_limit(size[0], size[1]),
                    &done));
    if (!done && narrow) TRY(solve_wider(b, &done));
    return done ? DUET_OK : gpu_linear_on_host(b, LINALG_CONDITION, 0);
}
