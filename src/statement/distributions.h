/* distributions.h - the distributions of random.c as parts of other statements, which call
 * statement_ends. Private to src/statement. */
#ifndef DISTRIBUTIONS_H
#define DISTRIBUTIONS_H

#include "statement.h"

duet_status random_uniform(duet_matrix *m, uint64_t seed, double low, double high);
duet_status random_normal(duet_matrix *m, uint64_t seed, double mean, double deviation);
duet_status random_truncated_normal(duet_matrix *m, uint64_t seed, double mean, double deviation, double low,
                                    double high);
duet_status random_bernoulli(duet_matrix *m, uint64_t seed, double p);
duet_status random_integers(duet_matrix *m, uint64_t seed, int64_t low, int64_t high);
duet_status random_permutation(duet_matrix *m, uint64_t seed);
duet_status random_sobol(duet_matrix *m, uint64_t seed, uint64_t first);

#endif
