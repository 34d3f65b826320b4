/* linalg_status.h - what a step of linear algebra may find instead of a result, said alike by every machine. */
#ifndef VERDICT_H
#define VERDICT_H

#include "backend.h"
#include <float.h>

enum verdict {
    VERDICT_PIVOT,   /* at: which, from 1 */
    VERDICT_MINOR,   /* at: its order */
    VERDICT_RANK,    /* at: which diagonal element of the triangular factor, from 1 */
    VERDICT_OPERAND, /* at: which, from 1 */
    VERDICT_RESULT,
    VERDICT_ITERATION, /* at: how many values */
};

/* What is promised of solutions that are refined, by columns: |b - A x| <= so much |A| |x|, sums of sizes. */
#define REST_MOST (30 * DBL_EPSILON)

/* Sets the text, with what the step computes, and returns the status. */
duet_status verdict(const step *s, enum verdict v, int64_t at) __attribute__((cold));

#endif
