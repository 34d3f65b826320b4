/* cusolver.h - calls of cuSOLVER and cuBLAS on column-major matrices in device memory. */
#ifndef CUSOLVER_H
#define CUSOLVER_H

#include "dtype.h"
#include "linalg_status.h"
#include "step_kinds.h"

typedef struct columns {
    void *p;
    int64_t rows, cols, ld;
    duet_dtype type;
} columns;

/* Status values that the calls of a step return, in device memory and, on request, on the host. All
 * 0: no error. */
typedef struct answers {
    int pivot;      /* info of a factorisation */
    int other;      /* info of other calls; not 0 only for an error in this library */
    int operand[4]; /* flags of linalg.h for the operands */
    int result[2];
    int triangle[2]; /* flags for a triangular operand */
    int rest[2];     /* flags for the residual of a solution */
    /* The largest sum of absolute values: of a column of the matrix, and the largest reciprocal of one;
     * of a row of U as it is stored, which is the transpose; of a column and of a row of R; of a right-hand
     * side. The largest sum of squares of a solution with R. */
    double size, reciprocal, grown, triangle_size, triangle_rows, sides, probes;
} answers;

/* A step in execution, and the memory that it has taken. */
#define BENCH_BLOCKS 16
typedef struct solver_workspace {
    const step *s;
    const frame *f;
    queue *q;
    const vendor *v;
    answers *says;                /* device memory */
    void *block[2][BENCH_BLOCKS]; /* of the host, and of the card */
    int blocks[2];
} solver_workspace;

/* The memory to use: the host's or the card's. */
enum workspace_memory { ON_HOST, ON_CARD };
/* Opens the handles and takes memory for the status values. */
duet_status gpu_workspace_open(solver_workspace *b, const step *s, const frame *f, queue *q);
void gpu_workspace_close(solver_workspace *b);
/* Gives back what was taken after b->blocks had these values. */
void gpu_workspace_keep(solver_workspace *b, const int blocks[2]);
duet_status gpu_workspace_take(solver_workspace *b, enum workspace_memory where, size_t bytes, void *p);
duet_status gpu_workspace_forget(solver_workspace *b); /* clears the status values */
duet_status gpu_workspace_ask(solver_workspace *b,
                              answers *a); /* waits for the card and copies the status values */

/* NULL, or why there is no cuSOLVER or no cuBLAS: gpu_workspace_open needs both. */
const char *gpu_solver_missing(void);

/* Type of the operands. Singular values and eigenvalues have the type of their real parts. */
static inline duet_dtype solver_type(const solver_workspace *b) { return b->s->in[0].at.type; }
static inline size_t element_bytes(const solver_workspace *b) { return dtypes[solver_type(b)].bytes; }

/* DUET_UNSUPPORTED: cuSOLVER counts its workspace in an int, which overflows for this size (9 million rows in
 * QR). Nothing was written. */
duet_status solver_lu(solver_workspace *b, const columns *a, int64_t *pivot); /* a = P L U */
duet_status solver_lu_solve(solver_workspace *b, const columns *a, const int64_t *pivot, bool transposed,
                            const columns *x);
duet_status solver_cholesky(solver_workspace *b, const columns *a); /* lower triangle */
duet_status solver_qr(solver_workspace *b, const columns *a, void *tau);
/* Replaces a, whose first columns are reflectors, by the columns of Q. */
duet_status solver_q(solver_workspace *b, const columns *a, int64_t reflectors, const void *tau);
duet_status solver_times_q(solver_workspace *b, const columns *a, const void *tau, bool back,
                           const columns *x); /* x = Q x; back: Q^T or Q^H */
duet_status solver_triangular(solver_workspace *b, const columns *a, bool lower, bool unit, bool transposed,
                              const columns *x);
duet_status solver_eigen(solver_workspace *b, const columns *a, bool vectors,
                         const columns *w); /* upper triangle */
/* For a square matrix that need not be symmetric. w is complex. v is as LAPACK stores it, or NULL: of a real
 * matrix, two columns are the real and the imaginary part for a pair of eigenvalues. */
bool solver_has_general_eigen(const vendor *v);
duet_status solver_general_eigen(solver_workspace *b, const columns *a, const columns *w, const columns *v);
/* rows >= cols. Computes the vectors too: as many as a has columns, or, with SVD_ALL, rows for u. */
enum svd_vectors { SVD_VALUES, SVD_SOME, SVD_ALL };
duet_status solver_svd(solver_workspace *b, const columns *a, const columns *w, enum svd_vectors vectors,
                       const columns *u, const columns *vt);
/* *turns is the number of iterations, or negative if it did not converge. A zero pivot in the
 * narrower type, or a solution that is not finite, does not mean that the matrix is singular. */
duet_status solver_refined(solver_workspace *b, bool half, const columns *a, const columns *y,
                           const columns *x, int *turns);
duet_status solver_rest(solver_workspace *b, const columns *a, bool transposed, const columns *x,
                        const columns *y); /* y = y - a x, or y - a^T x */
duet_status solver_product(solver_workspace *b, const columns *a, const columns *x,
                           const columns *y);                                     /* y = a x */
duet_status solver_gram(solver_workspace *b, const columns *a, const columns *g); /* g = a^H a */

#endif
