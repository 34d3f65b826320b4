/* vector_tests.c - the tests of duet-vectors: Wiemann's four tests, programs of 2 to 64 operators,
 * functions and reductions. Each has a formula in Duet and a reference in double, and some have a
 * handwritten kernel. */
#include "vector_tests.h"
#include "black_scholes.h"
#include "data.h"
#include "handwritten.h"
#include <math.h>

uint32_t data_seed;

float data_value(const test *t, int k, int64_t i)
{
    return t->shift[k] + t->scale[k] * noise(data_seed * 64 + (uint32_t)k, i);
}

/* ---- the tests in Duet, in double, and as handwritten kernels ---- */

static duet_status add_run(const problem *p) { return duet_set(p->in[0], duet_add(p->in[1], p->in[2])); }
static void add_exact(const problem *p, const double *x, double prepared, double *want)
{
    *want = x[1] + x[2];
}
static const char *add_handwritten(const problem *p, float *const in[], float *const out[])
{
    return handwritten_add(in[0], in[1], in[2], p->n);
}

static duet_status axpby_run(const problem *p)
{
    return duet_set(p->in[0], duet_add(duet_mul(0.12f, p->in[1]), duet_mul(7.54f, p->in[2])));
}
static void axpby_exact(const problem *p, const double *x, double prepared, double *want)
{
    *want = (double)0.12f * x[1] + (double)7.54f * x[2];
}
static const char *axpby_handwritten(const problem *p, float *const in[], float *const out[])
{
    return handwritten_axpby(in[0], 0.12f, in[1], 7.54f, in[2], p->n);
}

/* a = (b - (a + 3.75 c) + c - 0.24 b) / 27.51 + a - 0.25 b */
static duet_status wiemann3_run(const problem *p)
{
    duet_matrix *a = p->in[0], *b = p->in[1], *c = p->in[2];
    duet_expr inner = duet_sub(duet_add(duet_sub(b, duet_add(a, duet_mul(3.75f, c))), c), duet_mul(0.24f, b));
    return duet_set(a, duet_sub(duet_add(duet_div(inner, 27.51f), a), duet_mul(0.25f, b)));
}
static void wiemann3_exact(const problem *p, const double *x, double prepared, double *want)
{
    const double a = x[0], b = x[1], c = x[2];
    *want = (b - (a + (double)3.75f * c) + c - (double)0.24f * b) / (double)27.51f + a - 0.25 * b;
}
static const char *wiemann3_handwritten(const problem *p, float *const in[], float *const out[])
{
    return handwritten_wiemann(in[0], in[1], in[2], p->n);
}

static duet_status normalise_run(const problem *p)
{
    return duet_set(p->in[0], duet_div(p->in[0], duet_norm(p->in[0])));
}
static double norm_of_all(const problem *p)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int64_t i = 0; i < p->n; i++) sum += (double)data_value(p->test, 0, i) * data_value(p->test, 0, i);
    return sqrt(sum);
}
static void normalise_exact(const problem *p, const double *x, double prepared, double *want)
{
    *want = x[0] / prepared;
}

/* A mix of operators: the prototype of the GPU interpreter was measured with it. */
static duet_status program_run(const problem *p)
{
    const int length = p->test->terms;
    duet_expr a = duet_of_matrix(p->in[0]);
    for (int i = 0; i < length; i++) {
        duet_matrix *x = p->in[i % 3];
        switch (i % 4) {
        case 0: a = duet_mul(a, x); break;
        case 1: a = duet_add(a, x); break;
        case 2: a = duet_fma(0.5f, x, a); break;
        default: a = duet_mul(a, 0.9f);
        }
    }
    return duet_set(p->out[0], a);
}
static void program_exact(const problem *p, const double *x, double prepared, double *want)
{
    double a = x[0];
    for (int i = 0; i < p->test->terms; i++) {
        const double b = x[i % 3];
        switch (i % 4) {
        case 0: a = a * b; break;
        case 1: a = a + b; break;
        case 2: a = 0.5 * b + a; break;
        default: a = a * (double)0.9f;
        }
    }
    *want = a;
}
static const char *program_handwritten(const problem *p, float *const in[], float *const out[])
{
    return handwritten_program(p->test->terms, out[0], in[0], in[1], in[2], p->n);
}

static duet_status sigmoid_run(const problem *p) { return duet_set(p->out[0], duet_sigmoid(p->in[0])); }
static void sigmoid_exact(const problem *p, const double *x, double prepared, double *want)
{
    *want = 1 / (1 + exp(-x[0]));
}
static const char *sigmoid_handwritten(const problem *p, float *const in[], float *const out[])
{
    return handwritten_sigmoid(out[0], in[0], p->n);
}

static duet_status black_scholes_run(const problem *p)
{
    duet_expr put, call = black_scholes(p->in[0], p->in[1], p->in[2], &put);
    return duet_set_all({ p->out[0], call }, { p->out[1], put });
}
static void black_scholes_exact(const problem *p, const double *x, double prepared, double *want)
{
    want[0] = black_scholes_reference(x[0], x[1], x[2], &want[1]);
}
static const char *black_scholes_handwritten(const problem *p, float *const in[], float *const out[])
{
    return handwritten_black_scholes(out[0], out[1], in[0], in[1], in[2], p->n);
}

static duet_status sum_run(const problem *p) { return duet_set(p->out[0], duet_sum(p->in[0])); }
static double sum_of_all(const problem *p)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int64_t i = 0; i < p->n; i++) sum += (double)data_value(p->test, 0, i);
    return sum;
}
static void prepared_exact(const problem *p, const double *x, double prepared, double *want)
{
    *want = prepared;
}

static duet_status norm_run(const problem *p) { return duet_set(p->out[0], duet_norm(p->in[0])); }

static duet_status argmax_run(const problem *p) { return duet_set(p->out[0], duet_argmax(p->in[0])); }
static double place_of_greatest(const problem *p)
{
    int64_t at = 0;
    for (int64_t i = 1; i < p->n; i++)
        if (data_value(p->test, 0, i) > data_value(p->test, 0, at)) at = i;
    return (double)at;
}

static duet_status softmax_run(const problem *p) { return duet_set(p->out[0], duet_softmax(p->in[0])); }

/* ---- the table ---- */

// clang-format off
#define AROUND    { 0.6f, 0.6f, 0.6f }, { 0.5f, 0.5f, 0.5f } /* 0.1 to 1.1 */
#define OPTIONS   { 110, 110, 1.1f }, { 90, 90, 0.9f }       /* prices and strikes of 20 to 200, times of 0.2 to 2 */
#define WIDE      { 0 }, { 9 }
#define LENGTHS   { 100, 1000, 10000, 100000, 1000000, 10000000, 50000000, 100000000 }, { 100, 10000, 1000000, 10000000 }
#define FEW       { 1024, 1048576, 100000000 }, { 1024, 1048576 }
#define ROWS      { 1000, 10000, 100000 }, { 1000 }
#define PROGRAM(l) \
    { "ops" #l,        3, 1, AROUND,  OUT_OF_PLACE, 3, 1, 1, l, 0, false, program_run,   program_handwritten,  NULL, program_exact, FEW }

const test vector_tests[] = {
    /* name           in out data     into       reads writes launches terms width number */
    { "add",           3, 1, AROUND,  0,            2, 1, 1, 1, 0, false, add_run,       add_handwritten,      NULL, add_exact, LENGTHS },
    { "axpby",         3, 1, AROUND,  0,            2, 1, 1, 2, 0, false, axpby_run,     axpby_handwritten,    NULL, axpby_exact, LENGTHS },
    { "wiemann3",      3, 1, AROUND,  0,            3, 1, 1, 8, 0, false, wiemann3_run,  wiemann3_handwritten, NULL, wiemann3_exact, LENGTHS },
    { "normalise",     1, 1, AROUND,  0,            2, 1, 2, 4, 0, false, normalise_run, NULL, norm_of_all, normalise_exact, LENGTHS },
    PROGRAM(2), PROGRAM(8), PROGRAM(16), PROGRAM(24), PROGRAM(28), PROGRAM(32), PROGRAM(40), PROGRAM(64),
    { "sigmoid",       1, 1, WIDE,    OUT_OF_PLACE, 1, 1, 1, 4, 0, false, sigmoid_run,   sigmoid_handwritten,  NULL, sigmoid_exact, LENGTHS },
    { "black_scholes", 3, 2, OPTIONS, OUT_OF_PLACE, 3, 2, 1, 100, 0, false, black_scholes_run, black_scholes_handwritten, NULL, black_scholes_exact, LENGTHS },
    { "sum",           1, 1, AROUND,  OUT_OF_PLACE, 1, 0, 0, 30, 0, true, sum_run,       NULL, sum_of_all, prepared_exact, LENGTHS },
    { "norm",          1, 1, AROUND,  OUT_OF_PLACE, 1, 0, 0, 30, 0, true, norm_run,      NULL, norm_of_all, prepared_exact, LENGTHS },
    { "argmax",        1, 1, AROUND,  OUT_OF_PLACE, 1, 0, 0, 0, 0, true, argmax_run,     NULL, place_of_greatest, prepared_exact, LENGTHS },
    { "softmax",       1, 1, WIDE,    OUT_OF_PLACE, 1, 1, 1, 30, 1000, false, softmax_run, NULL, NULL, NULL, ROWS },
};
// clang-format on
const int vector_test_count = sizeof vector_tests / sizeof *vector_tests;
