/* csr.c - checks patterns of sparse matrices. See csr.h. */
#include "csr.h"
#include "status.h"

static duet_status check_offsets(const char *who, const csr *c)
{
    if (csr_offset(c, 0) != 0)
        return fail(DUET_BAD_ARGUMENT, "%s: the first row offset must be 0, not %lld", who,
                    (long long)csr_offset(c, 0));
    for (int64_t r = 0; r < c->rows; r++)
        if (csr_offset(c, r + 1) < csr_offset(c, r))
            return fail(DUET_BAD_ARGUMENT,
                        "%s: row offset %lld (%lld) must not be less than the one before (%lld)", who,
                        (long long)(r + 1), (long long)csr_offset(c, r + 1), (long long)csr_offset(c, r));
    if (csr_offset(c, c->rows) == c->count) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s: the last row offset must be the number of elements, %lld, not %lld",
                who, (long long)c->count, (long long)csr_offset(c, c->rows));
}

static duet_status check_row(const char *who, const csr *c, int64_t r)
{
    int64_t before = -1;
    for (int64_t k = csr_offset(c, r); k < csr_offset(c, r + 1); k++) {
        const int64_t column = csr_column(c, k);
        if (column < 0 || column >= c->columns)
            return fail(
                DUET_BAD_ARGUMENT,
                "%s: element %lld, in row %lld, has column %lld, which is out of bounds; there are %lld "
                "columns",
                who, (long long)k, (long long)r, (long long)column, (long long)c->columns);
        if (column == before)
            return fail(DUET_BAD_ARGUMENT, "%s: row %lld has column %lld twice; columns must not repeat", who,
                        (long long)r, (long long)column);
        if (column < before)
            return fail(
                DUET_BAD_ARGUMENT,
                "%s: in row %lld column %lld comes behind column %lld; the columns of a row must be in "
                "ascending order",
                who, (long long)r, (long long)column, (long long)before);
        before = column;
    }
    return DUET_OK;
}

duet_status csr_check(const char *who, const csr *c)
{
    TRY(check_offsets(who, c));
    for (int64_t r = 0; r < c->rows; r++) TRY(check_row(who, c, r));
    return DUET_OK;
}

duet_status csr_is_singular(int64_t n, int64_t row)
{
    return fail(
        DUET_SINGULAR,
        "duet_sparse_solve_triangular: the %lld x %lld matrix is singular: element [%lld, %lld] is 0 or not "
        "stored",
        (long long)n, (long long)n, (long long)row, (long long)row);
}

void csr_declare(duet_matrix *m, int64_t rows, int64_t columns)
{
    m->storage->csr_rows = rows;
    m->storage->csr_columns = columns;
    m->storage->constant = m->constant = true;
}

bool csr_is_declared(const storage *b, const csr *c)
{
    const size_t each = c->wide ? sizeof(int64_t) : sizeof(int32_t);
    return b && b->csr_columns == c->columns && b->csr_rows == c->rows &&
           b->bytes == (size_t)(c->rows + 1 + c->count) * each;
}
