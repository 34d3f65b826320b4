/* cusolver.h - cuSOLVER's and cuBLAS's calls, over matrices by columns in the card's memory. */
#ifndef SOLVER_H
#define SOLVER_H

#include "dtype.h"
#include "linalg_status.h"
#include "step_kinds.h"

typedef struct columns {
    void *p;
    int64_t rows, cols, ld;
    duet_dtype type;
} columns;

/* What a step's calls say, in the card's memory and, once it is asked for, the host's. All 0: nothing to say. */
typedef struct answers {
    int pivot;      /* cuSOLVER's info of what was factored */
    int other;      /* of other calls: no more than an error of ours */
    int operand[4]; /* of two operands: linalg.h's flags */
    int result[2];
    int triangle[2]; /* of one that is solved with */
    int rest[2];     /* of a solution that was refined */
    double size;     /* of its matrix */
} answers;

/* A step at work: what it is, and what it has taken. */
#define BENCH_BLOCKS 16
typedef struct bench {
    const step *s;
    const frame *f;
    queue *q;
    const vendor *v;
    answers *says;                /* the card's */
    void *block[2][BENCH_BLOCKS]; /* of the host, and of the card */
    int blocks[2];
} bench;

/* The libraries' handles are there, and room for answers. */
/* Whose memory: the host's, or the card's. */
enum workspace_memory { ON_HOST, ON_CARD };
duet_status gpu_workspace_open(bench *b, const step *s, const frame *f, queue *q);
void gpu_workspace_close(bench *b);
duet_status gpu_workspace_take(bench *b, enum workspace_memory where, size_t bytes, void *p);
duet_status gpu_workspace_forget(bench *b);          /* what was said */
duet_status gpu_workspace_ask(bench *b, answers *a); /* waits until all is done, and said */

/* Of the operands; its values (singular ones, eigenvalues) are of their parts' type. */
static inline duet_dtype bench_type(const bench *b) { return b->s->in[0].at.type; }
static inline size_t element_bytes(const bench *b) { return dtypes[bench_type(b)].bytes; }

duet_status solver_lu(bench *b, const columns *a, int64_t *pivot); /* a = P L U */
duet_status solver_lu_solve(bench *b, const columns *a, const int64_t *pivot, bool transposed,
                            const columns *x);
duet_status solver_cholesky(bench *b, const columns *a); /* lower */
duet_status solver_qr(bench *b, const columns *a, void *tau);
duet_status solver_q(bench *b, const columns *a, const void *tau); /* its columns, in their place */
duet_status solver_times_q(bench *b, const columns *a, const void *tau, bool back,
                           const columns *x); /* x = Q x; back: Q^T or Q^H */
duet_status solver_triangular(bench *b, const columns *a, bool lower, bool unit, bool transposed,
                              const columns *x);
duet_status solver_eigen(bench *b, const columns *a, bool vectors, const columns *w); /* upper */
duet_status solver_svd(bench *b, const columns *a, const columns *w, const columns *u,
                       const columns *vt); /* rows >= cols; u NULL: values alone */
/* turns: below 0, it did not converge. A pivot of 0 in fewer bits, or a solution that is not finite, says nothing of the matrix. */
duet_status solver_refined(bench *b, bool half, const columns *a, const columns *y, const columns *x,
                           int *turns);
duet_status solver_rest(bench *b, const columns *a, const columns *x,
                        const columns *y); /* y = y - a x, f64 */

#endif
