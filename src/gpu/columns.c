/* columns.c - column-major matrices in device memory: their memory, and copies to and from operands. */
#include "columns.h"
#include "min_max.h"

layout columns_layout(const columns *c)
{
    return (layout){ .type = c->type, .rank = 2, .size = { c->rows, c->cols }, .stride = { 1, c->ld } };
}

static duet_status columns_of(solver_workspace *b, duet_dtype type, int64_t rows, int64_t cols, columns *c)
{
    *c = (columns){ .rows = rows, .cols = cols, .ld = larger(rows, 1), .type = type };
    return gpu_workspace_take(b, ON_CARD, (size_t)(c->ld * cols) * dtypes[type].bytes, &c->p);
}

duet_status columns_take(solver_workspace *b, int64_t rows, int64_t cols, columns *c)
{
    return columns_of(b, solver_type(b), rows, cols, c);
}

duet_status values_take(solver_workspace *b, int64_t n, columns *c)
{
    return columns_of(b, dtype_part(solver_type(b)), n, 1, c);
}

duet_status complex_take(solver_workspace *b, int64_t rows, int64_t cols, columns *c)
{
    return columns_of(b, dtype_part(solver_type(b)) == DUET_F32 ? DUET_C64 : DUET_C128, rows, cols, c);
}

duet_status wide_take(solver_workspace *b, int64_t rows, int64_t cols, columns *c)
{
    return columns_of(b, dtype_is_complex(solver_type(b)) ? DUET_C128 : DUET_F64, rows, cols, c);
}

duet_status doubles_take(solver_workspace *b, int64_t n, columns *c)
{
    return columns_of(b, DUET_F64, n, 1, c);
}

static duet_status copy(const solver_workspace *b, void *to, const layout *to_at, const void *from,
                        const layout *from_at)
{
    if (!layout_count(to_at)) return DUET_OK;
    return gpu_apply(OP_LOAD, to, to_at, &(part){ .p = from, .at = from_at }, 1, b->q);
}

duet_status columns_fill(const solver_workspace *b, const columns *c, const layout *at, const void *from)
{
    columns first = *c;
    first.rows = at->size[0];
    const layout to = columns_layout(&first);
    return copy(b, c->p, &to, from, at);
}

duet_status columns_read(solver_workspace *b, int k, bool transposed, columns *c)
{
    layout at = layout_as_matrix(&b->s->in[k].at);
    if (transposed) at = layout_transposed(at);
    TRY(columns_take(b, at.size[0], at.size[1], c));
    return columns_fill(b, c, &at, b->f->data[b->s->in[k].slot]);
}

duet_status columns_write(const solver_workspace *b, const columns *c, bool transposed, int k)
{
    layout at = layout_as_matrix(&b->s->out[k].at);
    columns first = *c;
    if (transposed) at = layout_transposed(at);
    first.rows = at.size[0];
    const layout from = columns_layout(&first);
    return copy(b, b->f->data[b->s->out[k].slot], &at, c->p, &from);
}

/* ---- imaginary parts: every second number of complex elements ---- */

static layout imaginary(const columns *c, int rank, int64_t size, int64_t stride)
{
    return (layout){ .type = dtype_part(c->type),
                     .rank = rank,
                     .size = { size, c->cols },
                     .stride = { 2 * stride, 2 * c->ld } };
}

static void *first_imaginary(const columns *c) { return (char *)c->p + dtypes[c->type].bytes / 2; }

duet_status columns_conjugate(const solver_workspace *b, const columns *c)
{
    const layout at = imaginary(c, 2, c->rows, 1);
    if (!dtype_is_complex(c->type) || !layout_count(&at)) return DUET_OK;
    return gpu_apply(OP_neg, first_imaginary(c), &at, &(part){ .p = first_imaginary(c), .at = &at }, 1, b->q);
}

/* The diagonal of a Hermitian matrix is real. Imaginary parts that are stored there do not count. */
duet_status columns_diagonal_real(const solver_workspace *b, const columns *c)
{
    const layout at = imaginary(c, 1, c->cols, c->ld + 1);
    if (!dtype_is_complex(c->type) || !c->cols) return DUET_OK;
    return gpu_apply(OP_LOAD, first_imaginary(c), &at, &(part){ .number = 0 }, 1, b->q);
}

/* ---- other types ---- */

/* Part k of complex elements: every second number. */
static layout part_layout(const layout *l)
{
    layout at = *l;
    at.type = dtype_part(l->type);
    for (int i = 0; i < at.rank && at.type != l->type; i++) at.stride[i] *= 2;
    return at;
}

duet_status columns_convert(const solver_workspace *b, void *to, const layout *to_at, const void *from,
                            const layout *from_at)
{
    const layout part_to = part_layout(to_at), part_from = part_layout(from_at);
    const int parts = dtype_is_complex(to_at->type) ? 2 : 1;
    for (int k = 0; k < parts && layout_count(to_at); k++) {
        const part x = { .p = (const char *)from + (size_t)k * dtypes[part_from.type].bytes,
                         .at = &part_from };
        TRY(gpu_apply(OP_LOAD, (char *)to + (size_t)k * dtypes[part_to.type].bytes, &part_to, &x, 1, b->q));
    }
    return DUET_OK;
}

duet_status columns_qr(solver_workspace *b, const columns *c, void **tau)
{
    TRY(gpu_workspace_take(b, ON_CARD, (size_t)smaller(c->rows, c->cols) * element_bytes(b), tau));
    return solver_qr(b, c, *tau);
}
