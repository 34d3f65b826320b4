/* linalg_checks.h - checks of matrices on the GPU: are they finite, how large are they, is a solution
 * accurate. They store their results in the status values of the step, which the host then asks for. */
#ifndef LINALG_CHECKS_H
#define LINALG_CHECKS_H

#include "linalg.h" /* before step_kinds.h, which has a type `part` */

#include "columns.h"

duet_status linear_work(const solver_workspace *b, const linear_args *a);

/* Sets the flags of LINEAR_CHECK for a part of a matrix. */
duet_status check_part(const solver_workspace *b, const columns *c, enum linear_part which, int *flag);
duet_status result_check(const solver_workspace *b, const columns *c);
/* Reads operand k, or its transpose, and checks that it is finite. */
duet_status operand_read(solver_workspace *b, int k, bool transposed, columns *c);

/* Raises *to, in device memory, to the largest sum of absolute values of a column; or of a row. */
duet_status columns_size(const solver_workspace *b, const columns *c, enum linear_part which, double *to);
duet_status rows_size(const solver_workspace *b, const columns *c, bool upper_only, double *to);

/* Raises *to to the largest sum of absolute values of a column of operand 0, a square matrix. */
duet_status operand_size(solver_workspace *b, double *to);

/* Sets says->rest if the residual of a column of x exceeds the documented bound. says->size must be
 * that of operand 0. */
duet_status residual_check(solver_workspace *b, const columns *x);

/* The right-hand sides of the test of the condition (core/linalg_status.h). */
duet_status probes_take(solver_workspace *b, int64_t rows, columns *c);

#endif
