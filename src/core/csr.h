/* csr.h - the pattern of a sparse matrix in compressed rows.
 *
 * A pattern is one matrix of i32 or i64 with rows + 1 + n elements. First the row offsets: row r has the
 * elements offset[r] to offset[r + 1] - 1. Then the column of each element, in ascending order within a row,
 * without duplicates. The values of the n elements are another matrix. One matrix for both lists lets an
 * operator have the pattern as one operand. */
#ifndef CSR_H
#define CSR_H

#include "host_threads.h"
#include "matrix.h"

typedef struct csr {
    const void *pattern;
    int64_t rows, columns, count; /* count: of the elements */
    bool wide;                    /* i64 */
} csr;

/* Element i of the pattern. */
static inline int64_t csr_at(const csr *c, int64_t i)
{
    return c->wide ? ((const int64_t *)c->pattern)[i] : ((const int32_t *)c->pattern)[i];
}
static inline int64_t csr_offset(const csr *c, int64_t row) { return csr_at(c, row); }
static inline int64_t csr_column(const csr *c, int64_t k) { return csr_at(c, c->rows + 1 + k); }
static inline void csr_put(void *pattern, bool wide, int64_t i, int64_t value)
{
    if (wide) ((int64_t *)pattern)[i] = value;
    else ((int32_t *)pattern)[i] = (int32_t)value;
}

/* Do the sizes need i64? */
static inline bool csr_needs_wide(int64_t columns, int64_t count)
{
    return columns > INT32_MAX || count > INT32_MAX;
}

/* The first row of part t, so that parts have equal numbers of rows and elements together. */
static inline int64_t csr_part(const csr *c, int t, int parts)
{
    const int64_t wanted = part_of(c->rows + c->count, t, parts);
    int64_t low = 0, high = c->rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (middle + csr_offset(c, middle) < wanted) low = middle + 1;
        else high = middle;
    }
    return t == parts ? c->rows : low;
}

/* Is it a pattern? Errors: BAD_ARGUMENT: the text names the first row that breaks a rule */
duet_status csr_check(const char *who, const csr *c);

/* Fails for a triangular system: the diagonal element of the row is 0 or not stored. Returns SINGULAR */
duet_status csr_is_singular(int64_t n, int64_t row) __attribute__((cold));

/* Declares the elements of m, which nobody else uses yet, to be a checked pattern. They cannot change any
 * more. */
void csr_declare(duet_matrix *m, int64_t rows, int64_t columns);
/* Are the elements of b, in this order, a checked pattern with these sizes? */
bool csr_is_declared(const storage *b, const csr *c);

#endif
