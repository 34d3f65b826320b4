/* random.h - random numbers, noise, shuffling and sequences. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_RANDOM_H
#define DUET_RANDOM_H

/* Fill m, which may be a view, with random numbers.
 *     duet_random_uniform           uniform in [low, high)
 *     duet_random_normal            normal with the given mean and standard deviation
 *     duet_random_truncated_normal  normal, restricted to [low, high]. Both limits may be infinite, or
 *                                   far from the mean
 *     duet_random_bernoulli         1 with probability p, else 0
 *     duet_random_integers          uniform in low .. high - 1, without bias; the same numbers in
 *                                   every element type
 *     duet_random_permutation       0 .. n-1 in random order, the same in every element type. Each
 *                                   order has the same probability
 *     duet_random_sobol             points of the Sobol sequence in [0, 1): m is [points, dimensions] or
 *                                   [points], and element (i, j) is coordinate j of point first + i. The
 *                                   same numbers in every type, rounded down: in f32 to a multiple of
 *                                   2^-24, in f64 of 2^-53; halves are rounded down from f32. With a
 *                                   seed other than 0 each coordinate gets a random digital shift. For
 *                                   quasi-Monte Carlo methods use a power of 2 of points
 * Element i, in row-major order, depends only on the seed, the function with its arguments, and i (in
 * a Sobol sequence also on the dimensions). So a seed gives the same bits on every device and with any
 * number of threads or ranks. Use two seeds for two independent matrices. docs/semantics.md defines
 * the numbers. Arguments of type double are first rounded to the element type of m. For the first
 * three functions and duet_random_sobol m has a floating-point type, for the others any real type.
 * Shapes    any; for a permutation [n]; for a Sobol sequence [points] or [points, 1 to 1024]
 * Errors    BAD_ARGUMENT: m is NULL or freed; uniform: low >= high, or high - low is not finite;
 *           normal: mean or deviation is not finite, or deviation < 0; truncated normal: as normal, and
 *           also if deviation is 0, low >= high, or the range is 1e150 deviations from the mean;
 *           bernoulli: p is outside of [0, 1]; integers: low >= high; sobol: first + points >= 2^63.
 *           BAD_TYPE: m does not have one of the types above, or its type cannot represent the integers
 *           exactly. BAD_SHAPE, NO_MEMORY,
 *           UNSUPPORTED, NO_DEVICE: m is unchanged. DEVICE_ERROR: the contents of m may be undefined */
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
DUET_API DUET_MUST duet_status duet_random_sobol(duet_matrix *m, uint64_t seed, uint64_t first);
DUET_API DUET_MUST duet_status duet_random_sobol_at(duet_matrix *m, uint64_t seed, uint64_t first,
                                                    const char *site);

/* Add random noise to x and store the result in `to`. x is a matrix (also `to` itself), a formula or a
 * number. Below, w is a matrix of random numbers with the shape and type of `to`. Its elements are
 * those of duet_random_uniform(w, seed, 0, 1) or duet_random_normal(w, seed, 0, 1). The functions
 * consume x, also on failure.
 *     duet_noise_uniform    x + w, w uniform
 *     duet_noise_normal     x + w, w normal
 *     duet_noise_logistic   x + w sigmoid(x), w normal
 *     duet_noise_ranged     x + w, w normal, but x where x is 0 or `top`
 *     duet_noise_bernoulli  1 where w < x, else 0, w uniform: x is the probability of a 1. Here w has
 *                           the type in which x is computed, not the type of `to`. This is f32 if x
 *                           is f16 or bf16, else x's type
 * For the mask of duet_dropout use duet_random_bernoulli(y, seed, p), where p is the fraction of
 * elements that remain.
 * Shapes    x broadcasts to the shape of `to`
 * Errors    as duet_set; BAD_TYPE: `to` (for duet_noise_bernoulli, x) is not floating point. After a
 *           failure, `to` contains what the comment of duet_set says */
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

/* Shuffle a matrix, or fill it with a sequence.
 *     duet_shuffle   copies the slices of `from` along an axis to `to` in random order. `to` becomes
 *                    duet_take(from, p, axis), where p is the permutation that
 *                    duet_random_permutation(p, seed) writes. Each order has the same probability.
 *                    Matrices shuffled with the same seed get the same order. `from` may be `to`. To
 *                    shuffle all elements, shuffle a view reshaped to one axis
 *     duet_sequence  sets element i of m, in row-major order, to start + i * by: in floating point
 *                    fma(i, by, start), in integers modulo 2^n for a type of n bits
 * Shapes    shuffle: equal shapes; sequence: any
 * Errors    BAD_ARGUMENT: a NULL or freed matrix; an integer sequence with a number out of the type's
 *           range. BAD_TYPE: `to` and `from` have different types; m is bool or complex; a fraction in
 *           an integer sequence. BAD_SHAPE; and as duet_set. After a failure, `to` and m contain what
 *           the comment of duet_set says */
DUET_API DUET_MUST duet_status duet_shuffle(duet_matrix *to, const duet_matrix *from, int axis,
                                            uint64_t seed);
DUET_API DUET_MUST duet_status duet_shuffle_at(duet_matrix *to, const duet_matrix *from, int axis,
                                               uint64_t seed, const char *site);
DUET_API DUET_MUST duet_status duet_sequence(duet_matrix *m, double start, double by);
DUET_API DUET_MUST duet_status duet_sequence_at(duet_matrix *m, double start, double by, const char *site);

#endif
