/* csr_ops.c - the steps of sparse matrices: opens and checks their operands, and runs the kernels of
 * csr_tmpl.c. */
#include "csr_kernels.h"
#include "dtype.h"
#include <math.h>
#include <string.h>

duet_status csr_operand_open(const operand *o, const frame *f, csr_operand *opened)
{
    *opened = (csr_operand){ address(f, o), NULL };
    if (layout_is_dense(&o->at) || !layout_count(&o->at)) return DUET_OK;
    TRY(scratch_copy(o, f, &opened->copy));
    opened->p = opened->copy;
    return DUET_OK;
}

duet_status csr_open(const step *s, const frame *f, int64_t rows, int64_t columns, csr *c,
                     csr_operand *opened)
{
    char who[64];
    const operand *o = &s->in[1];
    TRY(csr_operand_open(o, f, opened));
    *c = (csr){ opened->p, rows, columns, layout_count(&o->at) - 1 - rows, o->at.type == DUET_I64 };
    if (!opened->copy && csr_is_declared(owned_by(f, o->slot), c)) return DUET_OK;
    snprintf(who, sizeof who, "duet_%s", kernel_infos[s->kernel].name);
    return csr_check(who, c);
}

/* ---- steps ---- */

static const csr_functions *functions_of(const step *s)
{
    switch (s->out[0].at.type) {
    case DUET_F32: return &csr_functions_f32;
    case DUET_F64: return &csr_functions_f64;
    case DUET_C64: return &csr_functions_c64;
    default: return &csr_functions_c128;
    }
}

static int64_t rows_of_values(const step *s)
{
    return layout_count(&s->in[1].at) - 1 - layout_count(&s->in[0].at);
}

static int64_t width_of(const layout *l) { return l->rank > 1 ? l->size[1] : 1; }

/* Rough times of one thread for each element of the matrix: with a vector, with a dense matrix, and for each
 * of its columns. */
#define SECONDS_PER_VECTOR 5e-10
#define SECONDS_PER_MATRIX 4e-9
#define SECONDS_PER_COLUMN 2e-10

static double seconds_per_element(const csr_work *w)
{
    return w->width == 1 ? SECONDS_PER_VECTOR : SECONDS_PER_MATRIX + (double)w->width * SECONDS_PER_COLUMN;
}

static int threads_of(const csr_work *w)
{
    return threads_for((double)(w->c.count + w->c.rows) * seconds_per_element(w));
}

/* Each thread searches every row for its columns. Two threads are faster than one if the searches take less
 * than half the time of the product. */
#define SECONDS_PER_SEARCH 6e-9

static int threads_of_transposed(const csr_work *w)
{
    const bool pays =
        (double)w->c.rows * SECONDS_PER_SEARCH < (double)w->c.count * seconds_per_element(w) / 2;
    return pays ? threads_of(w) : 1;
}

static duet_status matmul(const step *s, const frame *f, csr_work *w, csr_operand used[])
{
    const csr_attributes *a = &s->attr.csr;
    const csr_functions *of = functions_of(s);
    TRY(csr_open(s, f, rows_of_values(s), a->columns, &w->c, &used[1]));
    TRY(csr_operand_open(&s->in[0], f, &used[0]));
    TRY(csr_operand_open(&s->in[2], f, &used[2]));
    w->values = used[0].p;
    w->x = used[2].p;
    w->width = width_of(&s->out[0].at);
    if (a->transposed) by_threads(threads_of_transposed(w), of->matmul_transposed, w);
    else by_threads(threads_of(w), of->matmul, w);
    return DUET_OK;
}

static duet_status sddmm(const step *s, const frame *f, csr_work *w, csr_operand used[])
{
    TRY(csr_open(s, f, s->in[0].at.size[0], s->in[2].at.size[0], &w->c, &used[1]));
    TRY(csr_operand_open(&s->in[0], f, &used[0]));
    TRY(csr_operand_open(&s->in[2], f, &used[2]));
    w->x = used[0].p;
    w->y = used[2].p;
    w->width = width_of(&s->in[0].at);
    by_threads(threads_of(w), functions_of(s)->sddmm, w);
    return DUET_OK;
}

static duet_status dense(const step *s, const frame *f, csr_work *w, csr_operand used[])
{
    const csr_attributes *a = &s->attr.csr;
    const csr_functions *of = functions_of(s);
    TRY(csr_open(s, f, rows_of_values(s), a->columns, &w->c, &used[1]));
    TRY(csr_operand_open(&s->in[0], f, &used[0]));
    w->values = used[0].p;
    const double seconds =
        (double)layout_count(&s->out[0].at) * (double)dtypes[s->out[0].at.type].bytes * SECONDS_PER_BYTE;
    by_threads(threads_for(seconds), a->transposed ? of->put_transposed : of->put, w);
    return DUET_OK;
}

static duet_status take(const step *s, const frame *f, csr_work *w, csr_operand used[])
{
    const layout *x = &s->in[0].at;
    TRY(csr_open(s, f, x->size[0], x->size[1], &w->c, &used[1]));
    w->x = address(f, &s->in[0]);
    memcpy(w->stride, x->stride, sizeof w->stride);
    w->width = 1;
    by_threads(threads_of(w), functions_of(s)->take, w);
    return DUET_OK;
}

/* A singular matrix is found before anything is written. */
static duet_status triangular(const step *s, const frame *f, csr_work *w, csr_operand used[])
{
    const csr_functions *of = functions_of(s);
    const layout *b = &s->in[2].at;
    TRY(csr_open(s, f, b->size[0], b->size[0], &w->c, &used[1]));
    TRY(csr_operand_open(&s->in[0], f, &used[0]));
    w->values = used[0].p;
    w->lower = s->attr.triangle.lower;
    w->unit = s->attr.triangle.unit;
    w->transposed = s->attr.triangle.transposed;
    w->width = width_of(b);
    const int64_t zero = w->unit ? -1 : of->first_zero(w);
    if (zero >= 0) return csr_is_singular(b->size[0], zero);
    TRY(copy_elements(w->out, &s->out[0].at, address(f, &s->in[2]), b));
    by_threads(w->width == 1 ? 1 : threads_of(w), of->substitute, w); /* divides columns */
    return DUET_OK;
}

static duet_status run(const step *s, const frame *f)
{
    csr_operand used[3] = { 0 };
    csr_work w = { .out = address(f, &s->out[0]) };
    duet_status status;
    switch (s->kernel) {
    case OP_csr_matmul: status = matmul(s, f, &w, used); break;
    case OP_csr_sddmm: status = sddmm(s, f, &w, used); break;
    case OP_csr_dense: status = dense(s, f, &w, used); break;
    case OP_csr_take: status = take(s, f, &w, used); break;
    default: status = triangular(s, f, &w, used);
    }
    for (int k = 0; k < 3; k++) scratch_give(used[k].copy);
    return status;
}

const char *csr_unsupported(const step *s)
{
    const duet_dtype t = s->out[0].at.type, index = s->in[1].at.type;
    const bool elements = t == DUET_F32 || t == DUET_F64 || t == DUET_C64 || t == DUET_C128;
    for (int k = 0; k < s->ins; k++)
        if (k != 1 && s->in[k].at.type != t) return "the operands must have the same element type";
    return elements && (index == DUET_I32 || index == DUET_I64) ? NULL : "the element type is not supported";
}

/* Measured on 16 cores of a Xeon: an element of a pattern costs more than its bytes, because it refers
 * to memory at any place. */
#define SECONDS_PER_PLACE  2.5e-9
#define SECONDS_PER_TERM   0.4e-9 /* for each column of a dense operand */
#define SECONDS_PER_SOLVED 10e-9  /* for each column of a solution */

static double cost(const step *s, const costs *c)
{
    const double count = (double)layout_count(&s->in[1].at), threads = threads_here();
    const double width =
        s->kernel == OP_csr_sddmm ? (double)width_of(&s->in[0].at) : (double)width_of(&s->out[0].at);
    /* A thread that solves goes through the whole pattern for its columns. */
    if (s->kernel == OP_csr_solve_triangular)
        return cost_of_pass(s, c) +
               count * (SECONDS_PER_PLACE + fmax(1, width / threads) * SECONDS_PER_SOLVED);
    return cost_of_pass(s, c) + count * (SECONDS_PER_PLACE + width * SECONDS_PER_TERM) / threads;
}

const cpu_kernel cpu_kernel_csr = { csr_unsupported, run, cost };
