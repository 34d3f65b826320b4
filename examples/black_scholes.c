/* black_scholes.c - prices of European calls by Black and Scholes, four assignments in one pass over memory.
 *
 * After Listing 11 of "The numerical template toolbox: A modern C++ design for scientific computing" (Esterie, Falcou, Gaunard,
 * Lapreste, Lacassagne, 2014), which in substance is
 *
 *     tie(da, d1, d2, R) = tie(sqrt(Ta), log(Sa / Xa) + (fma(sqr(va), 0.5, ra) * Ta) / (va * da), fma(-va, da, d1),
 *                              Sa * normcdf(d1) - Xa * exp(-ra * Ta) * normcdf(d2));
 *
 * There va da divides the second term of d1 alone; here both, as the formula of Black and Scholes has it.
 *
 *     black_scholes [elements] */
#include <duet/duet.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define RATE       0.02f /* of interest */
#define VOLATILITY 0.3f
enum { REPEATS = 10 };

typedef struct problem {
    int64_t n;
    duet_matrix *S, *X, *T;        /* prices now, strikes, years left */
    duet_matrix *da, *d1, *d2, *R; /* R: what the calls are worth */
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

/* Against plain C in double. A price is the difference of two products of S and of X, of up to seven roundings each; what d1 is off by,
 * d2 is too, and these two errors cancel. */
static bool is_right(const problem *p)
{
    const float *s = duet_read(p->S), *x = duet_read(p->X), *t = duet_read(p->T), *got = duet_read(p->R);
    double worst = 0;
    if (!s || !x || !t || !got) return false;
    for (int64_t i = 0; i < p->n; i++) {
        const double error = fabs(got[i] - price(s[i], x[i], t[i])) / ((double)s[i] + x[i]);
        if (!(error <= worst)) worst = error;
    }
    printf("%.2g of S + X off at most; the first call: S %g, X %g, T %g, worth %g\n", worst, s[0], x[0], t[0],
           got[0]);
    return worst <= 8 * 0x1p-24;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Says how many steps it takes, and the least time. The first run makes the plan and moves what is elsewhere. */
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
    if (n < 1) return fprintf(stderr, "black_scholes [elements]\n"), 2;
    problem p = {
        .n = n, .S = duet_new(DUET_F32, n), .X = duet_new(DUET_F32, n), .T = duet_new(DUET_F32, n)
    };
    p.da = duet_new(DUET_F32, n), p.d1 = duet_new(DUET_F32, n), p.d2 = duet_new(DUET_F32, n),
    p.R = duet_new(DUET_F32, n);
    uint64_t steps = 0;
    bool failed = duet_random_uniform(p.S, 1, 5, 30) || duet_random_uniform(p.X, 2, 1, 100) ||
                  duet_random_uniform(p.T, 3, 0.25, 10) || measure(&p, &steps);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    failed = failed || !is_right(&p);
    if (!failed && steps != 1) puts("more than one pass"), failed = true; /* DUET_FUSION makes it so */
    duet_free(&p.S), duet_free(&p.X), duet_free(&p.T), duet_free(&p.da), duet_free(&p.d1), duet_free(&p.d2),
        duet_free(&p.R);
    return failed;
}
