/* vector_tests.h - what duet-vectors measures: one row a test, by Duet, in double, and by hand. */
#ifndef VECTOR_TESTS_H
#define VECTOR_TESTS_H

#include <duet/duet.h>
#include <stdbool.h>

#define SIZES   12
#define INPUTS  3
#define OUTPUTS 2

typedef struct test test;

/* A test at one size on one machine. Of black_scholes call and put; of the others the result is m[test->into] or, where that is
 * OUT_OF_PLACE, out[0]. */
typedef struct problem {
    const test *test;
    int64_t n;
    duet_place place;
    duet_matrix *in[INPUTS], *out[OUTPUTS];
} problem;

enum { OUT_OF_PLACE = -1 };

/* One row of the table.
 *   shift, scale  inputs are shift + scale * noise, noise being -1 to 1. common.py has the same
 *   into          the input that is written, or OUT_OF_PLACE
 *   reads, writes floats an element that must move
 *   launches      kernels that it should take on the GPU; 0: not said
 *   terms         roundings that a result may gather: scales the error allowed
 *   width         elements of a row: softmax's. 0: a vector. Reductions give one number
 *   prepare       what the reference needs to know of all elements, or NULL
 *   exact         the results of element i in double, of its inputs; returns how many */
struct test {
    const char *name;
    int inputs, outputs;
    float shift[INPUTS], scale[INPUTS];
    int into;
    double reads, writes;
    int launches, terms, width;
    bool one_number;
    duet_status (*run)(const problem *p);
    const char *(*by_hand)(const problem *p, float *const in[], float *const out[]);
    double (*prepare)(const problem *p);
    void (*exact)(const problem *p, const double *x, double known, double *want);
    int64_t sizes[SIZES], quick[SIZES];
};

extern const test vector_tests[];
extern const int vector_test_count;

extern uint32_t data_seed;
float data_value(const test *t, int k, int64_t i); /* element i of input k, before it is written */

#endif
