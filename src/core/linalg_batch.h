/* linalg_batch.h - stacks of matrices: a step of linear algebra may have axes in front of those of a matrix.
 * Machines run such a step for each matrix, or several matrices at a time. */
#ifndef LINALG_BATCH_H
#define LINALG_BATCH_H

#include "backend.h"

/* The leading axes of a step: those to which the leading axes of its operands broadcast. Rank 0: the step
 * has one matrix. */
typedef struct linalg_batch {
    shape lead;
    int64_t count; /* of matrices */
} linalg_batch;

linalg_batch linalg_batch_of(const step *s);

/* The rows, or the columns, of the matrices of operand 0. */
static inline int64_t linalg_rows(const step *s) { return s->in[0].at.size[s->in[0].at.rank - 2]; }
static inline int64_t linalg_cols(const step *s) { return s->in[0].at.size[s->in[0].at.rank - 1]; }

/* The number of right-hand sides of a system: 1 for a vector. */
int64_t linalg_sides(const step *s);

/* The step of one matrix. Its operands have the slots 0, 1, ...: first the results, then the inputs. */
step linalg_batch_step(const step *s, const linalg_batch *b);

/* The addresses of these operands for a matrix; data[slot] are those of the step s. */
#define LINALG_OPERANDS (STEP_OUTPUTS + STEP_INPUTS)
void linalg_batch_data(const step *s, const linalg_batch *b, int64_t matrix, void *const *data,
                       void *own[LINALG_OPERANDS]);

/* Puts the indices of the matrix that has no result in front of the error text. Returns status. */
duet_status linalg_batch_failed(const linalg_batch *b, int64_t matrix, duet_status status)
    __attribute__((cold));

#endif
