/* csr_kernels.h - what the kernels of sparse matrices share. Elements are in row-major order without gaps. */
#ifndef CSR_KERNELS_H
#define CSR_KERNELS_H

#include "cpu_kernels.h"
#include "csr.h"
#include "threads.h"

/* The operands of a kernel. A dense matrix has `width` columns. */
typedef struct csr_work {
    csr c;
    const void *values; /* of the sparse matrix */
    const void *x, *y;  /* dense operands */
    void *out;
    int64_t width;
    int64_t stride[2]; /* of x in csr_take */
    bool transposed, lower, unit;
} csr_work;

typedef struct csr_functions {
    share_function *matmul, *matmul_transposed, *sddmm, *take, *put, *put_transposed, *substitute;
    /* The first row whose element on the diagonal is absent or 0; -1: none */
    int64_t (*first_zero)(const csr_work *w);
} csr_functions;
extern const csr_functions csr_functions_f32, csr_functions_f64, csr_functions_c64, csr_functions_c128;

/* The first element of row r from column `from` on. */
static inline int64_t csr_search(const csr *c, int64_t r, int64_t from)
{
    int64_t low = csr_offset(c, r), high = csr_offset(c, r + 1);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (csr_column(c, middle) < from) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* An operand of a step without gaps: where it is, or a copy of it. */
typedef struct csr_operand {
    const void *p;
    void *copy; /* to be given back by scratch_give */
} csr_operand;
duet_status csr_operand_open(const operand *o, const frame *f, csr_operand *opened);

/* NULL, or why the element types of a step are not supported: a static text. */
const char *csr_unsupported(const step *s);

/* The pattern of a step, which is in[1]; checked, unless it is that of a duet_sparse. opened: to be given
 * back. Errors: BAD_ARGUMENT, NO_MEMORY */
duet_status csr_open(const step *s, const frame *f, int64_t rows, int64_t columns, csr *c,
                     csr_operand *opened);

#endif
