/* csr.c - the fake kernels of sparse matrices: one element after the other, each located by its layout. */
#include "dtype.h"
#include "fake.h"
#include "index_ops.h"
#include "kernels.h"
#include <string.h>

static int64_t pattern_at(const job *j, int64_t i)
{
    const layout *l = &j->s.in[1].at;
    return index_at(j->in[1], l->type, i * l->stride[0]);
}

static char *at(const void *p, const layout *l, int64_t row, int64_t column)
{
    const int64_t i = row * l->stride[0] + (l->rank > 1 ? column * l->stride[1] : 0);
    return (char *)p + i * (int64_t)dtypes[l->type].bytes;
}

/* to += a b */
static void add(duet_dtype type, void *to, const void *a, const void *b)
{
    switch (type) {
    case DUET_F32: *(float *)to += *(const float *)a * *(const float *)b; break;
    case DUET_F64: *(double *)to += *(const double *)a * *(const double *)b; break;
    case DUET_C64: {
        const float *x = a, *y = b;
        ((float *)to)[0] += x[0] * y[0] - x[1] * y[1];
        ((float *)to)[1] += x[0] * y[1] + x[1] * y[0];
        break;
    }
    default: {
        const double *x = a, *y = b;
        ((double *)to)[0] += x[0] * y[0] - x[1] * y[1];
        ((double *)to)[1] += x[0] * y[1] + x[1] * y[0];
    }
    }
}

static void report(const job *j, int64_t index, int64_t element, int64_t columns)
{
    if (*j->claimed) return;
    *j->claimed = 1;
    *j->bad_index =
        (bad_index){ .kernel = j->s.kernel + 1, .index = index, .element = element, .size = columns };
}

/* Element k of the pattern, in this row and column. */
static void visit(const job *j, int64_t k, int64_t row, int64_t column)
{
    const step *s = &j->s;
    const layout *out = &s->out[0].at, *x = &s->in[0].at, *y = &s->in[s->ins - 1].at;
    const bool turned = s->attr.csr.transposed;
    const int64_t width = x->rank > 1 ? x->size[1] : 1;
    const size_t each = dtypes[out->type].bytes;
    switch (s->kernel) {
    case OP_csr_matmul:
        for (int64_t i = 0; i < (out->rank > 1 ? out->size[1] : 1); i++)
            add(out->type, at(j->out[0], out, turned ? column : row, i), at(j->in[0], x, k, 0),
                at(j->in[2], y, turned ? row : column, i));
        break;
    case OP_csr_sddmm:
        for (int64_t i = 0; i < width; i++)
            add(out->type, at(j->out[0], out, k, 0), at(j->in[0], x, row, i), at(j->in[2], y, column, i));
        break;
    case OP_csr_dense:
        memcpy(turned ? at(j->out[0], out, column, row) : at(j->out[0], out, row, column),
               at(j->in[0], x, k, 0), each);
        break;
    default: memcpy(at(j->out[0], out, k, 0), at(j->in[0], x, row, column), each);
    }
}

void fake_run_csr(const job *j)
{
    const step *s = &j->s;
    const layout *x = &s->in[0].at, *y = &s->in[s->ins - 1].at, *out = &s->out[0].at;
    const bool has_values = s->kernel == OP_csr_matmul || s->kernel == OP_csr_dense;
    const int64_t length = layout_count(&s->in[1].at),
                  rows = has_values ? length - 1 - layout_count(x) : x->size[0];
    int64_t columns = s->attr.csr.columns;
    if (s->kernel == OP_csr_sddmm) columns = y->size[0];
    if (s->kernel == OP_csr_take) columns = x->size[1];
    memset(j->out[0], 0, (size_t)layout_count(out) * dtypes[out->type].bytes);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = pattern_at(j, r); k < pattern_at(j, r + 1) && k < length - 1 - rows; k++) {
            const int64_t column = pattern_at(j, rows + 1 + k);
            if (k < 0) continue;
            if (column >= 0 && column < columns) visit(j, k, r, column);
            else report(j, column, rows + 1 + k, columns);
        }
}
