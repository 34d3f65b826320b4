/* test_random_laws.c - random numbers follow their distributions. Seeds are fixed. A statistic
 * fails if the true distribution would exceed its threshold once in a million, by the distribution
 * of the statistic. */
#include "dtype.h"
#include "each_type.h"
#include "random_trial.h"
#include <math.h>

#define SIGMAS 4.9 /* of a normal distribution: one in a million is beyond */

static bool quick;

/* Not inlined: gcc 12 vectorises two of these side by side and loses the rounding. */
static __attribute__((noinline)) double rounded(duet_dtype type, double x)
{
    if (type == DUET_F32) return (double)(float)x;
    return x;
}

/* ---- statistics ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: P(sqrt(n) D > t) is about 2 exp(-2 t^2). */
static void follows(const char *what, double *x, int64_t n, double cdf(double x, const trial *t),
                    const trial *t)
{
    double most = 0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int64_t i = 0; i < n; i++) {
        const double f = cdf(x[i], t), below = f - (double)i / (double)n,
                     above = (double)(i + 1) / (double)n - f;
        most = fmax(most, fmax(below, above));
        if (isnan(f)) most = INFINITY;
    }
    CHECK(most * sqrt((double)n) <= sqrt(-log(1e-6 / 2) / 2), "%s: Kolmogorov's statistic is %.3f", what,
          most * sqrt((double)n));
}

/* Pearson: chi-square with `bins` - 1 degrees of freedom, by the approximation of Wilson and
 * Hilferty. */
static void even(const char *what, const int64_t *count, int bins)
{
    double n = 0, sum = 0;
    const double k = bins - 1;
    for (int b = 0; b < bins; b++) n += (double)count[b];
    for (int b = 0; b < bins; b++)
        sum += ((double)count[b] - n / bins) * ((double)count[b] - n / bins) / (n / bins);
    const double most = k * pow(1 - 2 / (9 * k) + SIGMAS * sqrt(2 / (9 * k)), 3);
    CHECK(sum <= most, "%s: chi-square of %d bins is %.1f, above %.1f", what, bins, sum, most);
}

/* Is x, the mean of n numbers with this standard deviation, near enough to the expected value? */
static void near(const char *what, double x, double should, double deviation, int64_t n)
{
    CHECK(fabs(x - should) <= SIGMAS * deviation / sqrt((double)n), "%s is %.6g, not %.6g", what, x, should);
}

static double *draw(duet_dtype type, int64_t n, uint64_t seed, const trial *t)
{
    duet_matrix *m = duet_new(type, n);
    double *x = malloc((size_t)n * sizeof *x);
    CHECK(fill(m, seed, t) == DUET_OK, "%s", duet_error());
    const void *p = duet_read(m);
    for (int64_t i = 0; i < n; i++) {
        int64_t whole;
        x[i] = read_one(p, type, i, &whole);
        if (type == DUET_I64) x[i] = (double)whole;
    }
    duet_free(&m);
    return x;
}

static double mean_of_products(const double *x, const double *y, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * y[i];
    return s / (double)n;
}

static double mean_of_powers(const double *x, int power, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += pow(x[i], power);
    return s / (double)n;
}

static int64_t many(void) { return quick ? 20000 : 1000000; }

/* Numbers at several distances, and at equal positions with other seeds, are uncorrelated: x has
 * mean 0 and deviation 1. */
static void unrelated(const char *what, const double *x, duet_dtype type, int64_t n, const trial *t)
{
    static const int64_t apart[] = { 1, 2, 3, 4, 8, 1024 };
    for (int k = 0; k < 6; k++)
        near(what, mean_of_products(x, x + apart[k], n - apart[k]), 0, 1, n - apart[k]);
    for (uint64_t bit = 1; bit; bit <<= 13) {
        double *y = draw(type, n, SEED ^ bit, t);
        near(what, mean_of_products(x, y, n), 0, 1, n);
        free(y);
    }
}

static double uniform_cdf(double x, const trial *t) { return fmin(fmax((x - t->a) / (t->b - t->a), 0), 1); }

static void uniform_law(void)
{
    const int64_t n = many();
    const double half = sqrt(3.0); /* deviation 1 */
    FOR_FLOAT_TYPES (type) {
        const trial t = { DISTRIBUTION_UNIFORM, -half, half, 0, 0, 0, 0 },
                    unit = { DISTRIBUTION_UNIFORM, 0, 1, 0, 0, 0, 0 };
        double *x = draw(type, n, SEED, &t), *u = draw(type, n, SEED + 1, &unit);
        int64_t high[256] = { 0 }, low[256] = { 0 };
        near("mean", mean_of_powers(x, 1, n), 0, 1, n);
        near("mean square", mean_of_powers(x, 2, n), 1, sqrt(0.8), n);
        unrelated("uniform", x, type, n, &t);
        follows("uniform", x, n, uniform_cdf, &t);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = (uint64_t)(u[i] * (type == DUET_F64 ? 0x1p53 : 0x1p24));
            high[(int)(u[i] * 256)]++;
            low[bits % 256]++;
        }
        even("upper bits", high, 256);
        even("lower bits", low, 256);
        free(x);
        free(u);
    }
    tap_point("uniform: moments, Kolmogorov-Smirnov, bits, independence");
}

/* Bounds hold where rounding could exceed them. */
static void uniform_bounds(void)
{
    static const double range[][2] = { { 1, 1 + 0x1p-23 },     { -1, -1 + 0x1p-24 }, { 0, 0x1p-149 },
                                       { 16777215, 16777216 }, { -1e38, 1e38 },      { 1, 3 } };
    FOR_FLOAT_TYPES (type)
        for (size_t k = 0; k < sizeof range / sizeof *range; k++) {
            const trial t = { DISTRIBUTION_UNIFORM, range[k][0], range[k][1], 0, 0, 0, 0 };
            double *x = draw(type, 5000, SEED, &t);
            for (int i = 0; i < 5000; i++)
                if (!CHECK(x[i] >= t.a && x[i] < t.b, "%.17g is not in [%.17g, %.17g)", x[i], t.a, t.b))
                    break;
            free(x);
        }
    tap_point("uniform never reaches its upper bound");
}

static double normal_cdf(double x, const trial *t) { return erfc((t->a - x) / t->b / sqrt(2)) / 2; }

static void normal_law(void)
{
    static const trial t = { DISTRIBUTION_NORMAL, 0, 1, 0, 0, 0, 0 },
                       other = { DISTRIBUTION_NORMAL, -3, 0.5, 0, 0, 0, 0 };
    static const double moment[] = { 1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945, 0, 10395 };
    const int64_t n = many();
    FOR_FLOAT_TYPES (type) {
        double *x = draw(type, n, SEED, &t), *y = draw(type, n, SEED, &other);
        for (int k = 1; k <= 6; k++)
            near("moment", mean_of_powers(x, k, n), moment[k], sqrt(moment[2 * k] - moment[k] * moment[k]),
                 n);
        unrelated("normal", x, type, n, &t);
        follows("normal", y, n, normal_cdf, &other);
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] * x[i] - 1) / sqrt(2); /* the numbers of a pair share a radius */
        near("squares of a pair", mean_of_products(y, y + 1, n - 1), 0, 1, n - 1);
        follows("normal", x, n, normal_cdf, &t);
        CHECK(x[0] < -sqrt(2 * log((double)n)) + 1.5 && x[n - 1] > sqrt(2 * log((double)n)) - 1.5,
              "tails end at %g, %g", x[0], x[n - 1]);
        free(x);
        free(y);
    }
    tap_point("normal: moments, Kolmogorov-Smirnov, independence, tails");
}

/* ---- truncated normal ---- */

/* exp(x^2 / 2) times the integral of exp(-z^2 / 2) from x >= 0 to infinity: by erfc or a continued
 * fraction. */
static long double mills(long double x)
{
    if (x < 5) return expl(x * x / 2) * erfcl(x / sqrtl(2)) * sqrtl(PI / 2);
    long double f = x;
    for (int k = 200; k > 0; k--) f = x + k / f;
    return 1 / f;
}

/* The part of a normal distribution above a >= 0 that is below a + by. */
static long double part_of_tail(long double a, long double by)
{
    if (isinf(by)) return 1;
    return 1 - expl(-by * (2 * a + by) / 2) * mills(a + by) / mills(a);
}

static double truncated_cdf(double x, const trial *t)
{
    const long double a = ((long double)t->c - t->a) / t->b, b = ((long double)t->d - t->a) / t->b,
                      z = ((long double)x - t->a) / t->b;
    if (!(x >= t->c && x <= t->d)) return NAN;
    const long double above = ((long double)x - t->c) / t->b, under = ((long double)t->d - x) / t->b,
                      width = ((long double)t->d - t->c) / t->b;
    if (a >= 0) return (double)(part_of_tail(a, above) / part_of_tail(a, width));
    if (b <= 0) return (double)(1 - part_of_tail(-b, under) / part_of_tail(-b, width));
    const long double below = erfcl(-a / sqrtl(2)), all = erfcl(-b / sqrtl(2)) - below;
    return (double)((erfcl(-z / sqrtl(2)) - below) / all);
}

static const trial windows[] = {
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -2, 2, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -0.001, 2.6, 0, 0 }, /* half of all attempts are rejected */
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -0.001, INFINITY, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, 0, INFINITY, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -1.25, 1.2, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -2.3, 0.1, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -INFINITY, INFINITY, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 3, 2, 4, 6, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 3, 2, 4, 60, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 3, 2, -6, -4, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 3, 2, -INFINITY, -4, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, -10, 1, 0, INFINITY, 0,
      0 }, /* far from the mean; the nearer bound is 0, where numbers are dense */
    { DISTRIBUTION_TRUNCATED_NORMAL, -10, 1, 0, 0.12, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, -10, 1, 0, 0.14, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 1000, 1, -5, 0, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 1000, 0.01, -5, 0, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, -1e6, 1, 0, 1e-6, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, -1e6, 0.001, 0, INFINITY, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, -16, 1e-6, 0, INFINITY, 0, 0 },
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static void truncated_law(void)
{
    const int64_t n = many() / 4;
    for (int k = 0; k < WINDOWS; k++)
        FOR_FLOAT_TYPES (type) {
            char name[80];
            trial t = windows[k];
            double *x = draw(type, n, SEED + (uint64_t)k, &t);
            snprintf(name, sizeof name, "N(%g, %g) in [%g, %g], %s", t.a, t.b, t.c, t.d, type_name(type));
            t.a = rounded(type, t.a);
            t.b = rounded(type, t.b);
            t.c = rounded(type, t.c);
            t.d = rounded(type, t.d);
            follows(name, x, n, truncated_cdf, &t);
            free(x);
        }
    tap_point("truncated normal: Kolmogorov-Smirnov in windows near the mean and far from it");
}

/* Windows of a few numbers, and one so far from the mean that only its bound remains. */
static void truncated_corners(void)
{
    static const trial corner[] = { { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, 1, 1 + 0x1p-22, 0, 0 },
                                    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1e-6, 1e20, 1e21, 0, 0 },
                                    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -1e-30, 1e-30, 0, 0 },
                                    { DISTRIBUTION_TRUNCATED_NORMAL, -3e38, 3e38, -3.4e38, 3e38, 0, 0 } };
    for (int k = 0; k < 4; k++)
        FOR_FLOAT_TYPES (type) {
            double *x = draw(type, 5000, SEED, &corner[k]), least = INFINITY, most = -INFINITY;
            const double low = rounded(type, corner[k].c), high = rounded(type, corner[k].d);
            for (int i = 0; i < 5000; i++) {
                if (!CHECK(x[i] >= low && x[i] <= high, "%.17g is not in [%.17g, %.17g]", x[i], low, high))
                    break;
                least = fmin(least, x[i]);
                most = fmax(most, x[i]);
            }
            CHECK(k == 1 ? most == low : most > least,
                  "the numbers in window %d are all equal, or not: %.17g to %.17g", k, least, most);
            free(x);
        }
    tap_point("truncated normal: narrow windows and windows in the tail");
}

/* ---- integers ---- */

static void bernoulli_law(void)
{
    static const double p[] = { 0.5, 0.3, 0.999, 1e-3, 0x1p-20 };
    const int64_t n = many();
    for (int k = 0; k < 5; k++)
        FOR_DRAWN_TYPES (type) {
            const trial t = { DISTRIBUTION_BERNOULLI, p[k], 0, 0, 0, 0, 0 };
            double *x = draw(type, n, SEED, &t);
            const double sigma = sqrt(p[k] * (1 - p[k]));
            for (int64_t i = 0; i < n; i++) CHECK(x[i] == 0 || x[i] == 1, "%g", x[i]);
            if (p[k] * (double)n > 20) near("mean", mean_of_powers(x, 1, n), p[k], sigma, n);
            for (int64_t i = 0; i < n; i++) x[i] = (x[i] - p[k]) / sigma;
            for (int apart = 1; apart <= 4 && k < 2; apart++)
                near("bernoulli", mean_of_products(x, x + apart, n - apart), 0, 1, n - apart);
            free(x);
        }
    for (int k = 0; k < 2; k++) {
        const trial t = { DISTRIBUTION_BERNOULLI, k, 0, 0, 0, 0, 0 };
        double *x = draw(DUET_F32, n, SEED, &t);
        CHECK(mean_of_powers(x, 1, n) == k, "p = %d", k);
        free(x);
    }
    tap_point("bernoulli: frequencies, independence, probabilities 0 and 1");
}

/* Ranges of which 2^64 is far from a multiple: the bias of a plain multiplication would show modulo
 * 3. */
static void integers_wide(void)
{
    const int64_t n = many(), low = -(3ll << 61);
    int64_t rest[3] = { 0 }, third[3] = { 0 }, sixteenth[16] = { 0 };
    duet_matrix *m = duet_new(DUET_I64, n);
    CHECK(duet_random_integers(m, SEED, low, 3ll << 61) == DUET_OK, "%s", duet_error());
    const int64_t *p = duet_read(m);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t v = (uint64_t)p[i] - (uint64_t)low;
        CHECK(v < 3ull << 62, "%lld is out of range", (long long)p[i]);
        rest[v % 3]++;
        third[v >> 62]++;
        sixteenth[v % 16]++;
    }
    even("modulo 3", rest, 3);
    even("thirds", third, 3);
    even("modulo 16", sixteenth, 16);
    CHECK(duet_random_integers(m, SEED, INT64_MIN, INT64_MAX) == DUET_OK, "%s", duet_error());
    p = duet_read(m);
    memset(sixteenth, 0, sizeof sixteenth);
    for (int64_t i = 0; i < n; i++) sixteenth[(uint64_t)p[i] >> 60]++;
    even("all integers", sixteenth, 16);
    duet_free(&m);
}

static void integers_law(void)
{
    static const int64_t range[][2] = { { 0, 10 },  { -3, 4 },     { 5, 6 },
                                        { 0, 256 }, { -100, 899 }, { (1 << 24) - 6, (1 << 24) + 1 } };
    const int64_t n = many();
    for (int k = 0; k < 6; k++)
        FOR_DRAWN_TYPES (type) {
            const trial t = { DISTRIBUTION_INTEGERS, 0, 0, 0, 0, range[k][0], range[k][1] };
            const int bins = (int)(t.high - t.low);
            int64_t count[1000] = { 0 };
            double *x = draw(type, n, SEED + 5, &t);
            for (int64_t i = 0; i < n; i++) {
                const int64_t v = (int64_t)x[i] - t.low;
                if (CHECK(v >= 0 && v < bins && x[i] == floor(x[i]), "%g is not in %d .. %d", x[i],
                          (int)t.low, (int)t.high - 1))
                    count[v]++;
            }
            if (bins > 1) even("integers", count, bins);
            free(x);
        }
    integers_wide();
    tap_point("integers: uniform in small and large ranges");
}

static bool is_permutation(const int64_t *p, int64_t n)
{
    bool *seen = calloc((size_t)n + 1, 1), yes = true;
    for (int64_t i = 0; i < n && yes; i++) {
        yes = p[i] >= 0 && p[i] < n && !seen[p[i]];
        yes ? seen[p[i]] = true : false;
    }
    free(seen);
    return yes;
}

/* The number of one of the 120 permutations of 5. */
static int order_of(const int64_t *p)
{
    int order = 0;
    for (int i = 0; i < 5; i++) {
        int before = 0;
        for (int j = i + 1; j < 5; j++) before += p[j] < p[i];
        order = order * (5 - i) + before;
    }
    return order;
}

static void permutation_law(void)
{
    static const int64_t length[] = { 0, 1, 2, 100, 4095, 4097, 100000 };
    for (int k = 0; k < 7; k++)
        for (int seed = 0; seed < 3; seed++) {
            duet_matrix *m = duet_new(DUET_I64, length[k]);
            CHECK(duet_random_permutation(m, (uint64_t)seed) == DUET_OK, "%s", duet_error());
            CHECK(is_permutation(duet_read(m), length[k]), "%lld elements are not a permutation",
                  (long long)length[k]);
            duet_free(&m);
        }
    int64_t orders[120] = { 0 }, first[100] = { 0 }, where[100] = { 0 };
    duet_matrix *five = duet_new(DUET_I64, 5), *hundred = duet_new(DUET_I64, 100);
    for (uint64_t seed = 0; seed < (quick ? 2400 : 120000); seed++) {
        CHECK(duet_random_permutation(five, seed) == DUET_OK, "%s", duet_error());
        orders[order_of(duet_read(five))]++;
    }
    for (uint64_t seed = 0; seed < (quick ? 2000 : 20000); seed++) {
        CHECK(duet_random_permutation(hundred, SEED + seed) == DUET_OK, "%s", duet_error());
        const int64_t *p = duet_read(hundred);
        first[p[0]]++;
        for (int i = 0; i < 100; i++) where[i] += p[i] == 99;
    }
    even("orders of five", orders, 120);
    even("first of a hundred", first, 100);
    even("place of the last", where, 100);
    duet_free(&five);
    duet_free(&hundred);
    tap_point("permutation: all orders are equally frequent");
}

int main(int argc, char **argv)
{
    quick = is_quick(argc, argv);
    uniform_law();
    uniform_bounds();
    normal_law();
    truncated_law();
    truncated_corners();
    bernoulli_law();
    integers_law();
    permutation_law();
    return tap_end();
}
