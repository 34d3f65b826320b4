/* random.h - random numbers, noise, shuffles, sequences. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_RANDOM_H
#define DUET_RANDOM_H

/* Statements that write every element of m, which may be a view. Element i, in row-major order, depends on the seed, the
 * statement and i alone, on every machine and for any number of threads: one seed, one matrix, bit for bit (docs/semantics.md has
 * the mapping). Two matrices that are to be independent take two seeds. Numbers of float type are first rounded to m's. The first
 * three laws are of floating point, the others of any real type.
 *     duet_random_uniform           evenly in [low, high)
 *     duet_random_normal            mean + deviation * (normal of deviation 1)
 *     duet_random_truncated_normal  the same, given that it lies in [low, high], which may be infinite; however far out these are
 *     duet_random_bernoulli         1 with probability p, else 0
 *     duet_random_integers          evenly in low .. high - 1, without bias; the same ones in every type
 *     duet_random_permutation       0 .. n-1 in random order, all orders being equally likely; the same one in every type
 * Shapes    any; of a permutation [n]
 * Errors    BAD_ARGUMENT: no matrix; uniform: not low < high, or their difference not finite; normal: mean or deviation not
 *           finite, or deviation < 0; truncated: or deviation 0, or not low < high, or 1e150 deviations from the mean; p outside
 *           of [0, 1]; low >= high. BAD_TYPE: another type; integers that m's does not hold exactly. BAD_SHAPE, NO_MEMORY,
 *           UNSUPPORTED, NO_DEVICE: m is unchanged; DEVICE_ERROR: m may be unknown */
DUET_API DUET_MUST duet_status duet_random_uniform(duet_matrix *m, uint64_t seed, double low, double high);
DUET_API DUET_MUST duet_status duet_random_uniform_at(duet_matrix *m, uint64_t seed, double low, double high,
                                                      const char *site);
DUET_API DUET_MUST duet_status duet_random_normal(duet_matrix *m, uint64_t seed, double mean,
                                                  double deviation);
DUET_API DUET_MUST duet_status duet_random_normal_at(duet_matrix *m, uint64_t seed, double mean,
                                                     double deviation, const char *site);
DUET_API DUET_MUST duet_status duet_random_truncated_normal(duet_matrix *m, uint64_t seed, double mean,
                                                            double deviation, double low, double high);
DUET_API DUET_MUST duet_status duet_random_truncated_normal_at(duet_matrix *m, uint64_t seed, double mean,
                                                               double deviation, double low, double high,
                                                               const char *site);
DUET_API DUET_MUST duet_status duet_random_bernoulli(duet_matrix *m, uint64_t seed, double p);
DUET_API DUET_MUST duet_status duet_random_bernoulli_at(duet_matrix *m, uint64_t seed, double p,
                                                        const char *site);
DUET_API DUET_MUST duet_status duet_random_integers(duet_matrix *m, uint64_t seed, int64_t low, int64_t high);
DUET_API DUET_MUST duet_status duet_random_integers_at(duet_matrix *m, uint64_t seed, int64_t low,
                                                       int64_t high, const char *site);
DUET_API DUET_MUST duet_status duet_random_permutation(duet_matrix *m, uint64_t seed);
DUET_API DUET_MUST duet_status duet_random_permutation_at(duet_matrix *m, uint64_t seed, const char *site);

/* Noise: `to` becomes a formula of x, which may be `to`, a matrix, a formula or a number, and of w, which is what
 * duet_random_uniform(w, seed, 0, 1) or duet_random_normal(w, seed, 0, 1) makes of a matrix w like `to`. Spends x, also when it
 * fails.
 *     duet_noise_uniform    x + w, uniform
 *     duet_noise_normal     x + w, normal
 *     duet_noise_logistic   x + w sigmoid(x), normal
 *     duet_noise_ranged     x + w, normal; but x where it is 0 or `top`
 *     duet_noise_bernoulli  1 where w < x, else 0, uniform: x is the chance of each. Here w is of the type that x is computed in
 * A mask for duet_dropout is duet_random_bernoulli(y, seed, share that is kept).
 * Shapes    that of x broadcasts to that of `to`
 * Errors    as duet_set; BAD_TYPE: `to`, of duet_noise_bernoulli x, is not of floating point. `to` is as it was, as there */
DUET_API DUET_MUST duet_status duet_noise_uniform(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_uniform_at(duet_matrix *to, duet_expr x, uint64_t seed,
                                                     const char *site);
DUET_API DUET_MUST duet_status duet_noise_normal(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_normal_at(duet_matrix *to, duet_expr x, uint64_t seed,
                                                    const char *site);
DUET_API DUET_MUST duet_status duet_noise_logistic(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_logistic_at(duet_matrix *to, duet_expr x, uint64_t seed,
                                                      const char *site);
DUET_API DUET_MUST duet_status duet_noise_ranged(duet_matrix *to, duet_expr x, uint64_t seed, double top);
DUET_API DUET_MUST duet_status duet_noise_ranged_at(duet_matrix *to, duet_expr x, uint64_t seed, double top,
                                                    const char *site);
DUET_API DUET_MUST duet_status duet_noise_bernoulli(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_bernoulli_at(duet_matrix *to, duet_expr x, uint64_t seed,
                                                       const char *site);

/* duet_shuffle: `to` becomes the parts of from along an axis in random order, duet_take(from, p, axis) with p of
 * duet_random_permutation(p, seed): every order is equally likely, and matrices that are shuffled by one seed are shuffled alike.
 * from may be `to`. Of all elements: along the one axis of a reshaped view.
 * duet_sequence: element i of m, in row-major order, becomes start + i by: of floating point fma(i, by, start), of integers
 * modulo 2^n.
 * Shapes    shuffle: equal; sequence: any
 * Errors    BAD_ARGUMENT: no matrix, or, of a sequence of integers, a number out of their range; BAD_TYPE: types differ; m is
 *           bool or complex, or a fraction among integers; BAD_SHAPE; and as duet_set: `to`, or m, is as it was, as there */
DUET_API DUET_MUST duet_status duet_shuffle(duet_matrix *to, const duet_matrix *from, int axis,
                                            uint64_t seed);
DUET_API DUET_MUST duet_status duet_shuffle_at(duet_matrix *to, const duet_matrix *from, int axis,
                                               uint64_t seed, const char *site);
DUET_API DUET_MUST duet_status duet_sequence(duet_matrix *m, double start, double by);
DUET_API DUET_MUST duet_status duet_sequence_at(duet_matrix *m, double start, double by, const char *site);

#endif
