/* linalg_stack.h - linear algebra on stacks of matrices. */
#ifndef LINALG_STACK_H
#define LINALG_STACK_H

#include "cusolver.h"
#include "linalg_batch.h"

/* Single matrices with more rows or columns are for cuSOLVER. Tests change it. */
extern int gpu_single_most;

/* Does one launch compute the only matrix of the step, or most of its matrices? */
bool gpu_linear_is_small(const step *s);

/* Runs the step for each matrix of a stack, or for the only one if it is small: small ones at once, others
 * one after the other. All results are computed before the first one is written. `one` runs the step of
 * one matrix. */
duet_status gpu_linear_stack(const step *s, const frame *f, queue *q, const linalg_batch *b,
                             duet_status one(const step *s, const frame *f, queue *q));

#endif
