/* linalg_status.h - what a step of linear algebra may find instead of a result, said alike by every machine. */
#ifndef LINALG_STATUS_H
#define LINALG_STATUS_H

#include "backend.h"
#include <float.h>

enum linalg_failed {
    LINALG_PIVOT,   /* at: which, from 1 */
    LINALG_MINOR,   /* at: its order */
    LINALG_RANK,    /* at: which diagonal element of the triangular factor, from 1 */
    LINALG_OPERAND, /* at: which, from 1 */
    LINALG_RESULT,
    LINALG_ITERATION, /* at: how many values */
};

/* What is promised of solutions that are refined, by columns: |b - A x| <= so much |A| |x|, sums of sizes. */
#define REST_MOST (30 * DBL_EPSILON)

/* Sets the text, with what the step computes, and returns the status. */
duet_status linalg_failed(const step *s, enum linalg_failed v, int64_t at) __attribute__((cold));

#endif
