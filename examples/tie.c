/* tie.c - runs several assignments in one pass over memory, as NT2 does with
 *
 *     tie(p, q, s) = tie(x + y, x - y, sqrt(abs(p * q)));
 *
 * It follows Listing 4 of "The numerical template toolbox: A modern C++ design for scientific computing"
 * (Esterie, Falcou, Gaunard, Lapreste, Lacassagne, 2014). The text of the listing was not available, so
 * the formulas are our own. Each formula uses the results of earlier ones element by element, so one
 * loop computes them all.
 *
 *     tie [elements] */
#include <duet/duet.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDING 0x1p-24 /* largest relative rounding error of f32 */
enum { REPEATS = 10 };

typedef struct problem {
    int64_t n;
    duet_matrix *x, *y, *p, *q, *s;
} problem;

static duet_status in_one_pass(const problem *a)
{
    return duet_set_all({ a->p, duet_add(a->x, a->y) }, { a->q, duet_sub(a->x, a->y) },
                        { a->s, duet_sqrt(duet_abs(duet_mul(a->p, a->q))) });
}

static duet_status one_by_one(const problem *a)
{
    duet_status s = duet_set(a->p, duet_add(a->x, a->y));
    if (!s) s = duet_set(a->q, duet_sub(a->x, a->y));
    if (s) return s;
    return duet_set(a->s, duet_sqrt(duet_abs(duet_mul(a->p, a->q))));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Prints the number of steps and the shortest time. The first run is not timed: it makes the plan and
 * copies operands to the device. */
static duet_status measure(const char *name, duet_status (*run)(const problem *), const problem *a,
                           uint64_t *steps)
{
    double least = INFINITY;
    duet_status s = DUET_OK;
    for (int k = 0; !s && k <= REPEATS; k++) {
        const uint64_t before = duet_stats().steps;
        const double start = now();
        if ((s = run(a)) || (s = duet_synchronize())) break;
        *steps = duet_stats().steps - before;
        if (k && now() - start < least) least = now() - start;
    }
    if (!s)
        printf("%-12s %d steps, %.1f us, %.3g elements/s\n", name, (int)*steps, 1e6 * least,
               (double)a->n / least);
    return s;
}

static bool near(double got, double want, double roundings)
{
    return fabs(got - want) <= roundings * ROUNDING * fabs(want);
}

/* Compares the results with plain C in double, and with the bits that separate statements gave. */
static bool is_correct(const problem *a, const float *single)
{
    const float *x = duet_read(a->x), *y = duet_read(a->y), *p = duet_read(a->p), *q = duet_read(a->q),
                *s = duet_read(a->s);
    if (!x || !y || !p || !q || !s) return false;
    for (int64_t i = 0; i < a->n; i++) {
        const double sum = (double)x[i] + y[i], difference = (double)x[i] - y[i];
        if (!near(p[i], sum, 1.01) || !near(q[i], difference, 1.01) ||
            !near(s[i], sqrt(fabs(sum * difference)), 3)) {
            fprintf(stderr, "wrong result in element %lld: %g %g %g\n", (long long)i, p[i], q[i], s[i]);
            return false;
        }
    }
    if (!memcmp(s, single, (size_t)a->n * sizeof *s)) return true;
    fputs("separate statements gave other bits\n", stderr);
    return false;
}

int main(int argc, char **argv)
{
    const int64_t n = argc > 1 ? atoll(argv[1]) : 100000;
    if (n < 1) {
        fprintf(stderr, "tie [elements]\n");
        return 2;
    }
    problem a = { n,
                  duet_new(DUET_F32, n),
                  duet_new(DUET_F32, n),
                  duet_new(DUET_F32, n),
                  duet_new(DUET_F32, n),
                  duet_new(DUET_F32, n) };
    duet_matrix *single = duet_new(DUET_F32, n);
    uint64_t steps = 0, ignored;
    bool failed = duet_random_uniform(a.x, 1, -1, 1) || duet_random_uniform(a.y, 2, -1, 1) ||
                  measure("one by one", one_by_one, &a, &ignored) || duet_set(single, a.s) ||
                  duet_set(a.s, 0) || measure("in one pass", in_one_pass, &a, &steps);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    const float *bits = failed ? NULL : duet_read(single);
    failed = !bits || !is_correct(&a, bits);
    if (!failed && steps != 1) { /* happens if the environment variable DUET_FUSION turns fusion off */
        puts("the statements took more than one pass");
        failed = true;
    }
    duet_free(&a.x);
    duet_free(&a.y);
    duet_free(&a.p);
    duet_free(&a.q);
    duet_free(&a.s);
    duet_free(&single);
    return failed;
}
