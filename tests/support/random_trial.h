/* random_trial.h - a distribution with its parameters, and the matrix that it fills. */
#ifndef RANDOM_TRIAL_H
#define RANDOM_TRIAL_H

#include "common.h"
#include "random_step.h"
#include <math.h>

#define PI   3.14159265358979323846264338327950288L
#define SEED 0x0123456789abcdefu

typedef struct trial {
    enum random_distribution distribution;
    double a, b, c, d;
    int64_t low, high;
} trial;

static duet_status fill(duet_matrix *m, uint64_t seed, const trial *t)
{
    switch (t->distribution) {
    case DISTRIBUTION_UNIFORM: return duet_random_uniform(m, seed, t->a, t->b);
    case DISTRIBUTION_NORMAL: return duet_random_normal(m, seed, t->a, t->b);
    case DISTRIBUTION_TRUNCATED_NORMAL: return duet_random_truncated_normal(m, seed, t->a, t->b, t->c, t->d);
    case DISTRIBUTION_BERNOULLI: return duet_random_bernoulli(m, seed, t->a);
    case DISTRIBUTION_INTEGERS: return duet_random_integers(m, seed, t->low, t->high);
    default: return duet_random_permutation(m, seed);
    }
}

/* Element i as a number and, unless it is too large, as an integer; for integer types as an integer alone. */
static double read_one(const void *p, duet_dtype type, int64_t i, int64_t *whole)
{
    if (type == DUET_I64) {
        *whole = ((const int64_t *)p)[i];
        return 0;
    }
    const double x = type == DUET_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
    *whole = fabs(x) < 0x1p63 ? (int64_t)x : INT64_MIN;
    return x;
}

#endif
