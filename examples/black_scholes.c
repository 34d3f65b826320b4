/* black_scholes.c - computes prices of European call options with the Black-Scholes formula: four
 * assignments in one pass over memory.
 *
 * It follows Listing 11 of "The numerical template toolbox: A modern C++ design for scientific
 * computing" (Esterie, Falcou, Gaunard, Lapreste, Lacassagne, 2014), which is in essence
 *
 *     tie(da, d1, d2, R) = tie(sqrt(Ta), log(Sa / Xa) + (fma(sqr(va), 0.5, ra) * Ta) / (va * da),
 *                              fma(-va, da, d1),
 *                              Sa * normcdf(d1) - Xa * exp(-ra * Ta) * normcdf(d2));
 *
 * The listing divides only the second term of d1 by va da. This program divides both terms, as the
 * Black-Scholes formula does.
 *
 *     black_scholes [elements] */
#include <duet/duet.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define RATE       0.02f /* risk-free interest rate, per year */
#define VOLATILITY 0.3f
enum { REPEATS = 10 };

typedef struct problem {
    int64_t n;
    duet_matrix *S, *X, *T;        /* current prices, strike prices, years to expiry */
    duet_matrix *da, *d1, *d2, *R; /* R: prices of the calls */
} problem;

static duet_status evaluate(const problem *p)
{
    const float drift = RATE + VOLATILITY * VOLATILITY / 2;
    duet_expr d1 =
        duet_div(duet_fma(drift, p->T, duet_log(duet_div(p->S, p->X))), duet_mul(VOLATILITY, p->da));
    duet_expr debt = duet_mul(p->X, duet_exp(duet_mul(-RATE, p->T)));
    return duet_set_all({ p->da, duet_sqrt(p->T) }, { p->d1, d1 },
                        { p->d2, duet_fma(-VOLATILITY, p->da, p->d1) },
                        { p->R,
                          duet_sub(duet_mul(p->S, duet_ncdf(p->d1)), duet_mul(debt, duet_ncdf(p->d2))) });
}

static double ncdf(double x) { return 0.5 * erfc(-x * sqrt(0.5)); }

static double price(double s, double x, double t)
{
    const double r = RATE, v = VOLATILITY, da = sqrt(t), d1 = (log(s / x) + (r + v * v / 2) * t) / (v * da);
    return s * ncdf(d1) - x * exp(-r * t) * ncdf(d1 - v * da);
}

/* Compares the results with plain C in double. A price is the difference of a product of S and a product
 * of X, with up to seven roundings each. d1 and d2 have the same error, and its two effects on the price
 * cancel. */
static bool is_correct(const problem *p)
{
    const float *s = duet_read(p->S), *x = duet_read(p->X), *t = duet_read(p->T), *got = duet_read(p->R);
    double worst = 0;
    if (!s || !x || !t || !got) return false;
    for (int64_t i = 0; i < p->n; i++) {
        const double error = fabs(got[i] - price(s[i], x[i], t[i])) / ((double)s[i] + x[i]);
        if (!(error <= worst)) worst = error;
    }
    printf("largest error: %.2g of S + X; the first call: S = %g, X = %g, T = %g, price %g\n", worst, s[0],
           x[0], t[0], got[0]);
    return worst <= 8 * 0x1p-24;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Prints the number of steps and the shortest time. The first run is not timed: it makes the plan and
 * copies operands to the device. */
static duet_status measure(const problem *p, uint64_t *steps)
{
    double least = INFINITY;
    for (int k = 0; k <= REPEATS; k++) {
        const uint64_t before = duet_stats().steps;
        const double start = now();
        duet_status s = evaluate(p);
        if (s || (s = duet_synchronize())) return s;
        *steps = duet_stats().steps - before;
        if (k && now() - start < least) least = now() - start;
    }
    printf("%lld calls: %d steps, %.1f us, %.3g calls/s\n", (long long)p->n, (int)*steps, 1e6 * least,
           (double)p->n / least);
    return DUET_OK;
}

int main(int argc, char **argv)
{
    const int64_t n = argc > 1 ? atoll(argv[1]) : 100000;
    if (n < 1) {
        fprintf(stderr, "black_scholes [elements]\n");
        return 2;
    }
    problem p = {
        .n = n, .S = duet_new(DUET_F32, n), .X = duet_new(DUET_F32, n), .T = duet_new(DUET_F32, n)
    };
    p.da = duet_new(DUET_F32, n);
    p.d1 = duet_new(DUET_F32, n);
    p.d2 = duet_new(DUET_F32, n);
    p.R = duet_new(DUET_F32, n);
    uint64_t steps = 0;
    bool failed = duet_random_uniform(p.S, 1, 5, 30) || duet_random_uniform(p.X, 2, 1, 100) ||
                  duet_random_uniform(p.T, 3, 0.25, 10) || measure(&p, &steps);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    failed = failed || !is_correct(&p);
    if (!failed && steps != 1) { /* happens if the environment variable DUET_FUSION turns fusion off */
        puts("the statements took more than one pass");
        failed = true;
    }
    duet_free(&p.S);
    duet_free(&p.X);
    duet_free(&p.T);
    duet_free(&p.da);
    duet_free(&p.d1);
    duet_free(&p.d2);
    duet_free(&p.R);
    return failed;
}
