/* vector_tests.h - the tests of duet-vectors: a table with one row for each. */
#ifndef VECTOR_TESTS_H
#define VECTOR_TESTS_H

#include <duet/duet.h>
#include <stdbool.h>

#define SIZES   12
#define INPUTS  3
#define OUTPUTS 2

typedef struct test test;

/* A test at one size on one device. black_scholes has two results, out[0] and out[1]. The other
 * tests have one: in[test->into], or out[0] if test->into is OUT_OF_PLACE. */
typedef struct problem {
    const test *test;
    int64_t n;
    duet_place place;
    duet_matrix *in[INPUTS], *out[OUTPUTS];
} problem;

enum { OUT_OF_PLACE = -1 };

/* One row of the table.
 *   shift, scale  the inputs are shift + scale * noise, where the noise is in [-1, 1); vectors.py
 *                 has the same table
 *   into          the input that is overwritten, or OUT_OF_PLACE
 *   reads, writes floats per element that have to be moved
 *   launches      expected number of kernels on the GPU; 0: not checked
 *   terms         roundings that may accumulate in a result; determines the allowed error
 *   width         elements of a row, for softmax; 0: vectors
 *   one_number    the result is a single number
 *   prepare       computes a value that the reference needs from all elements, or NULL
 *   exact         computes the results of one element in double, from its inputs */
struct test {
    const char *name;
    int inputs, outputs;
    float shift[INPUTS], scale[INPUTS];
    int into;
    double reads, writes;
    int launches, terms, width;
    bool one_number;
    duet_status (*run)(const problem *p);
    const char *(*handwritten)(const problem *p, float *const in[], float *const out[]);
    double (*prepare)(const problem *p);
    void (*exact)(const problem *p, const double *x, double prepared, double *want);
    int64_t sizes[SIZES], quick[SIZES];
};

extern const test vector_tests[];
extern const int vector_test_count;

extern uint32_t data_seed;
float data_value(const test *t, int k, int64_t i); /* the initial value of element i of input k */

#endif
