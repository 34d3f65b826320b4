/* csr_solve.c - direct solutions of sparse systems, with SuperLU. */
#include "cpu.h"
#include "csr_kernels.h"
#include "dtype.h"
#include "superlu.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/* SuperLU ends the process if it cannot allocate small arrays. So there must be room for these before it
 * starts, and for factors ten times as large as the matrix, which it expects. If factors grow beyond the
 * memory, it returns. */
static size_t room_for(const superlu_system *s, size_t each)
{
    return (size_t)64 * (size_t)(s->n + 1000) * sizeof(int) + 10 * (size_t)s->count * (each + sizeof(int)) +
           (size_t)64 * (size_t)s->n * each;
}

/* ---- operands as SuperLU has them ---- */

static bool all_finite(duet_dtype type, const void *p, int64_t n)
{
    const int64_t parts = dtype_is_complex(type) ? 2 * n : n;
    bool finite = true;
    if (dtype_part(type) == DUET_F32)
        for (int64_t i = 0; i < parts; i++) finite &= (bool)isfinite(((const float *)p)[i]);
    else
        for (int64_t i = 0; i < parts; i++) finite &= (bool)isfinite(((const double *)p)[i]);
    return finite;
}

/* Indices of i64 are copied. */
static duet_status indices_of(const csr *c, const frame *f, const int **list, void **copy)
{
    *list = c->pattern;
    if (!c->wide) return DUET_OK;
    const int64_t n = c->rows + 1 + c->count;
    TRY(scratch_take((size_t)n * sizeof(int), f, copy));
    for (int64_t i = 0; i < n; i++) ((int *)*copy)[i] = (int)csr_at(c, i);
    *list = *copy;
    return DUET_OK;
}

/* The layout of n x sides in column-major order. */
static layout by_columns(duet_dtype type, int64_t n, int64_t sides)
{
    layout l = { .type = type, .rank = 2, .size = { n, sides }, .stride = { 1, n } };
    return l;
}

static layout as_columns(const layout *b)
{
    layout l = *b;
    if (l.rank == 1) layout_insert(&l, 1, 1, 1);
    return l;
}

static superlu_function *function_for(duet_dtype type)
{
    switch (type) {
    case DUET_F32: return superlu_f32;
    case DUET_F64: return superlu_f64;
    case DUET_C64: return superlu_c64;
    default: return superlu_c128;
    }
}

/* ---- the step ---- */

#define WHO "duet_sparse_solve" /* the function that the user called */

static duet_status not_finite(const char *what) { return fail(DUET_NOT_FINITE, WHO ": %s", what); }

static duet_status status_of(int result)
{
    if (result == SUPERLU_SOLVED) return DUET_OK;
    if (result == SUPERLU_NO_MEMORY) return fail(DUET_NO_MEMORY, WHO ": there is no memory for the factors");
    return fail(DUET_SINGULAR, WHO ": the matrix is singular: pivot %d of its LU factorisation is 0", result);
}

/* ---- patterns that make a matrix singular: SuperLU would write outside of its arrays ---- */

/* Looks for a column for row r, which may take that of another row if that row finds another one: a search in
 * depth. row_of[c] is the row that has column c, or -1. next[i] is where row i looks for a free column, at[i]
 * where it looks for one to take. */
static bool find_column(const superlu_system *m, int r, int *row_of, int *next, int *seen, int *path, int *at)
{
    int depth = 0;
    path[0] = r;
    at[r] = m->offset[r];
    while (depth >= 0) {
        const int row = path[depth], end = m->offset[row + 1];
        while (next[row] < end && row_of[m->column[next[row]]] >= 0) next[row]++;
        if (next[row] < end) {
            row_of[m->column[next[row]++]] = row;
            while (depth-- > 0) row_of[m->column[at[path[depth]] - 1]] = path[depth];
            return true;
        }
        while (at[row] < end && seen[m->column[at[row]]] == r) at[row]++;
        if (at[row] == end) {
            depth--;
            continue;
        }
        const int column = m->column[at[row]++];
        seen[column] = r;
        path[++depth] = row_of[column];
        at[path[depth]] = m->offset[path[depth]];
    }
    return false;
}

/* Can each row have an element in a column of its own? I. Duff, On algorithms for obtaining a maximum
 * transversal, 1981. */
static bool is_matched(const superlu_system *m)
{
    int *row_of = m->work, *next = row_of + m->n, *seen = next + m->n, *path = seen + m->n, *at = path + m->n;
    for (int i = 0; i < m->n; i++) {
        row_of[i] = seen[i] = -1;
        next[i] = m->offset[i];
    }
    for (int r = 0; r < m->n; r++)
        if (!find_column(m, r, row_of, next, seen, path, at)) return false;
    return true;
}

typedef struct solving {
    superlu_system system;
    csr_operand values, pattern;
    void *indices, *columns, *work;
} solving;

static duet_status prepare(const step *s, const frame *f, const csr *c, solving *d)
{
    const layout b = as_columns(&s->in[2].at);
    const int64_t sides = b.size[1];
    const size_t each = dtypes[b.type].bytes;
    if (c->rows >= INT_MAX || c->count >= INT_MAX || sides >= INT_MAX)
        return fail(DUET_UNSUPPORTED,
                    WHO ": SuperLU takes fewer than 2^31 rows, elements and right-hand sides, not %lld, %lld "
                        "and %lld",
                    (long long)c->rows, (long long)c->count, (long long)sides);
    d->system = (superlu_system){ .n = (int)c->rows,
                                  .count = (int)c->count,
                                  .sides = (int)sides,
                                  .values = d->values.p,
                                  .transposed = s->attr.csr.transposed };
    TRY(indices_of(c, f, &d->system.offset, &d->indices));
    d->system.column = d->system.offset + c->rows + 1;
    TRY(scratch_take((size_t)c->rows * (size_t)sides * each, f, &d->columns));
    TRY(scratch_take(5 * (size_t)c->rows * sizeof(int), f, &d->work));
    const layout to = by_columns(b.type, c->rows, sides);
    TRY(copy_elements(d->columns, &to, address(f, &s->in[2]), &b));
    d->system.x = d->columns;
    d->system.work = d->work;
    if (!all_finite(b.type, d->values.p, c->count))
        return not_finite("an element of the matrix is not finite");
    if (!all_finite(b.type, d->columns, c->rows * sides)) return not_finite("an element of b is not finite");
    if (cpu_has_room(room_for(&d->system, each))) return DUET_OK;
    return fail(DUET_NO_MEMORY, WHO ": there is no memory for the factors");
}

static duet_status solve(const step *s, const frame *f, solving *d)
{
    csr c;
    const layout out = as_columns(&s->out[0].at);
    const int64_t n = out.size[0];
    TRY(csr_open(s, f, n, n, &c, &d->pattern));
    if (!layout_count(&out)) return DUET_OK;
    TRY(csr_operand_open(&s->in[0], f, &d->values));
    TRY(prepare(s, f, &c, d));
    if (!is_matched(&d->system))
        return fail(
            DUET_SINGULAR,
            WHO ": the %lld x %lld matrix is singular: there are rows that have elements in fewer columns "
                "than there are such rows",
            (long long)n, (long long)n);
    TRY(status_of(function_for(out.type)(&d->system)));
    if (!all_finite(out.type, d->columns, n * out.size[1])) return not_finite("the result overflows");
    const layout from = by_columns(out.type, n, out.size[1]);
    return copy_elements(address(f, &s->out[0]), &out, d->columns, &from);
}

static duet_status run(const step *s, const frame *f)
{
    solving d = { 0 };
    const duet_status status = solve(s, f, &d);
    scratch_give(d.values.copy);
    scratch_give(d.pattern.copy);
    scratch_give(d.indices);
    scratch_give(d.columns);
    scratch_give(d.work);
    return status;
}

static const char *algorithm(const step *s) { return "by SuperLU"; }

/* Measured for grids of 10,000 to 90,000 points. Other patterns may take a hundred times as long: how many
 * elements the factors have is not known in advance. */
static double cost(const step *s, const costs *c)
{
    const double n = (double)s->out[0].at.size[0], count = (double)layout_count(&s->in[0].at);
    return cost_of_pass(s, c) + count * 0.9e-6 * (1 + n / 100e3);
}

const cpu_kernel cpu_kernel_csr_solve = {
    .unsupported = csr_unsupported, .run = run, .cost = cost, .algorithm = algorithm, .calls_library = true
};
