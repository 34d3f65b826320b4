/* test_random.c - random numbers: Philox's known answers, the mapping that docs/semantics.md promises, the same bits on every machine,
 * instruction set, number of threads and view, and statistics.
 *
 * Seeds are fixed. A statistic fails when a true law would exceed its threshold once in a million, by the law of the statistic. */
#define T_f64
#include "philox.h"
#undef T
#include "common.h"
#include "cpu.h"
#include <math.h>
#include <omp.h>

#define PI     3.14159265358979323846264338327950288L
#define SEED   0x0123456789abcdefu
#define SIGMAS 4.9 /* of a normal law: one in a million lies beyond */

static duet_place places[2];
static int n_places;
static bool quick;

/* ---- Philox, as its authors describe it ---- */

static void philox_plainly(uint32_t c[4], uint64_t seed)
{
    uint32_t k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1],
                                   (uint32_t)a };
        memcpy(c, next, sizeof next);
        k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
    }
}

/* Vectors of Random123's kat_vectors: counter, key, result. */
static const uint32_t known[][10] = {
    { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
    { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
    { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 },
};

static void known_answers(void)
{
    for (int n = 0; n < 3; n++) {
        const uint32_t *k = known[n];
        uint32_t plain[4] = { k[0], k[1], k[2], k[3] };
        const philox_block b = philox((philox_block){ { k[0], k[1], k[2], k[3] } }, k[4], k[5]);
        philox_plainly(plain, k[4] | (uint64_t)k[5] << 32);
        for (int j = 0; j < 4; j++) CHECK(b.w[j] == k[6 + j] && plain[j] == k[6 + j], "vector %d, word %d: %08x", n, j, b.w[j]);
    }
    tap_point("known answers of Philox4x32-10");
}

/* ---- a law with its numbers ---- */

typedef struct trial {
    enum law law;
    double a, b, c, d;
    int64_t low, high;
} trial;

static duet_status fill(duet_matrix *m, uint64_t seed, const trial *t)
{
    switch (t->law) {
    case LAW_UNIFORM: return duet_random_uniform(m, seed, t->a, t->b);
    case LAW_NORMAL: return duet_random_normal(m, seed, t->a, t->b);
    case LAW_TRUNCATED_NORMAL: return duet_random_truncated_normal(m, seed, t->a, t->b, t->c, t->d);
    case LAW_BERNOULLI: return duet_random_bernoulli(m, seed, t->a);
    case LAW_INTEGERS: return duet_random_integers(m, seed, t->low, t->high);
    default: return duet_random_permutation(m, seed);
    }
}

static const trial trials[] = {
    { LAW_UNIFORM, 0, 1, 0, 0, 0, 0 },
    { LAW_UNIFORM, -3.5, 1e4, 0, 0, 0, 0 },
    { LAW_NORMAL, 0, 1, 0, 0, 0, 0 },
    { LAW_NORMAL, 10, 0.25, 0, 0, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 0, 1, -2, 2, 0, 0 },          /* from a normal law */
    { LAW_TRUNCATED_NORMAL, 1, 2, -1, INFINITY, 0, 0 },   /* with one bound */
    { LAW_TRUNCATED_NORMAL, 0, 1, -0.5, 1, 0, 0 },        /* from a uniform one */
    { LAW_TRUNCATED_NORMAL, 0, 1, 2, 2.25, 0, 0 },        /* beside the mean */
    { LAW_TRUNCATED_NORMAL, 5, 0.5, -INFINITY, 2, 0, 0 }, /* from an exponential one, below */
    { LAW_TRUNCATED_NORMAL, -40, 1, 0, 1, 0, 0 },         /* far above */
    { LAW_BERNOULLI, 0.3, 0, 0, 0, 0, 0 },
    { LAW_BERNOULLI, 1, 0, 0, 0, 0, 0 },
    { LAW_INTEGERS, 0, 0, 0, 0, -7, 1000 },
    { LAW_INTEGERS, 0, 0, 0, 0, -(3ll << 61), 3ll << 61 }, /* a quarter is rejected */
    { LAW_PERMUTATION, 0, 0, 0, 0, 0, 0 },
};
enum { TRIALS = sizeof trials / sizeof *trials };

static bool takes(const trial *t, duet_dtype type)
{
    if (t->law == LAW_INTEGERS && t->high > 1 << 24) return type == DUET_I64;
    return type != DUET_I64 || t->law >= LAW_BERNOULLI;
}

/* ---- the mapping, written down once more ---- */

static uint32_t plain_word(const trial *t, uint64_t seed, uint64_t block, uint32_t stream, int j)
{
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), stream, (uint32_t)t->law };
    philox_plainly(c, seed);
    return c[j];
}

static uint64_t plain_pair(const trial *t, uint64_t seed, uint64_t i, uint32_t stream)
{
    return plain_word(t, seed, i / 2, stream, (int)(i % 2 * 2)) |
           (uint64_t)plain_word(t, seed, i / 2, stream, (int)(i % 2 * 2 + 1)) << 32;
}

static double plain_uniform(const trial *t, duet_dtype type, uint64_t i)
{
    if (type == DUET_F64) {
        const double x = fma((double)(plain_pair(t, SEED, i, 0) >> 11) / 0x1p53, t->b - t->a, t->a);
        return x < t->b ? x : nextafter(t->b, t->a);
    }
    const float low = (float)t->a, high = (float)t->b;
    const float x = fmaf((float)(plain_word(t, SEED, i / 4, 0, i % 4) >> 8) / 0x1p24f, high - low, low);
    return x < high ? x : nextafterf(high, low);
}

/* Box and Muller in long double; the error allowed is that of four functions and two roundings, each an ulp at most. */
static long double plain_normal(const trial *t, duet_dtype type, uint64_t i, long double *allowed)
{
    long double u, v;
    if (type == DUET_F64) {
        u = fma((double)plain_pair(t, SEED, i & ~1ull, 0), 0x1p-64, 0x1p-65);
        v = (double)(int64_t)plain_pair(t, SEED, i | 1, 0) * 0x1p-64;
    } else {
        u = fmaf((float)plain_word(t, SEED, i / 4, 0, (int)(i & 2)), 0x1p-32f, 0x1p-33f);
        v = (float)(int32_t)plain_word(t, SEED, i / 4, 0, (int)((i & 2) | 1)) * 0x1p-32f;
    }
    const long double turn = 2 * PI * v, z = sqrtl(-2 * logl(u)) * (i & 1 ? sinl(turn) : cosl(turn));
    const long double x = (long double)t->a + (long double)t->b * z, ulp = type == DUET_F64 ? 0x1p-52L : 0x1p-23L;
    *allowed = 6 * ulp * fabsl((long double)t->b * z) + ulp * fabsl(x) + 1e-9L * ulp;
    return x;
}

static int64_t plain_integer(const trial *t, uint64_t i)
{
    const uint64_t range = (uint64_t)t->high - (uint64_t)t->low, least = -range % range;
    for (uint32_t attempt = 0;; attempt++) {
        const unsigned __int128 m = (unsigned __int128)plain_pair(t, SEED, i, attempt) * range;
        if ((uint64_t)m >= least) return (int64_t)((uint64_t)t->low + (uint64_t)(m >> 64));
    }
}

static int64_t plain_coin(const trial *t, uint64_t i)
{
    const uint64_t w = (uint64_t)plain_word(t, SEED, i / 4, 0, i % 4) << 32 | plain_word(t, SEED, i / 4, 1, i % 4);
    return t->a == 1 || w < (uint64_t)(t->a * 0x1p64);
}

/* Not inline: where two of them stand side by side, gcc 12 vectorises and forgets to round. */
static __attribute__((noinline)) double rounded(duet_dtype type, double x) { return type == DUET_F32 ? (double)(float)x : x; }

static double read_one(const void *p, duet_dtype type, int64_t i, int64_t *whole)
{
    if (type == DUET_I64) return *whole = ((const int64_t *)p)[i], 0;
    const double x = type == DUET_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
    return *whole = (int64_t)x, x;
}

static void maps(const trial *t, duet_dtype type)
{
    enum { N = 3001 };
    duet_matrix *m = duet_new(type, N);
    CHECK(fill(m, SEED, t) == DUET_OK, "%s", duet_error());
    const void *p = duet_read(m);
    for (int i = 0; i < N; i++) {
        int64_t whole;
        const double x = read_one(p, type, i, &whole);
        long double allowed, normal;
        bool right = true;
        if (t->law == LAW_UNIFORM) right = x == plain_uniform(t, type, (uint64_t)i);
        if (t->law == LAW_NORMAL) normal = plain_normal(t, type, (uint64_t)i, &allowed), right = fabsl(x - normal) <= allowed;
        if (t->law == LAW_INTEGERS) right = whole == plain_integer(t, (uint64_t)i);
        if (t->law == LAW_BERNOULLI) right = whole == plain_coin(t, (uint64_t)i);
        if (!CHECK(right, "law %d, element %d is %.17g or %lld", t->law, i, x, (long long)whole)) break;
    }
    duet_free(&m);
}

/* Element i of a permutation goes where its key, with i to tell equal ones apart, is among all keys. */
static void maps_permutation(void)
{
    enum { N = 1500 };
    const trial *t = &trials[TRIALS - 1];
    uint64_t key[N];
    duet_matrix *m = duet_new(DUET_I64, N);
    CHECK(fill(m, SEED, t) == DUET_OK, "%s", duet_error());
    const int64_t *p = duet_read(m);
    for (uint64_t i = 0; i < N; i++) key[i] = plain_pair(t, SEED, i, 0);
    for (int i = 0; i < N; i++) {
        int rank = 0;
        for (int j = 0; j < N; j++) rank += key[j] < key[i] || (key[j] == key[i] && j < i);
        if (!CHECK(p[rank] == i, "place %d has %lld, not %d", rank, (long long)p[rank], i)) break;
    }
    duet_free(&m);
}

/* Beyond what memory holds: the formulas by themselves. */
static void maps_far(void)
{
    const trial t = { LAW_INTEGERS, 0, 0, 0, 0, -(3ll << 61), 3ll << 61 }, coin = { LAW_BERNOULLI, 0.7, 0, 0, 0, 0, 0 };
    const uint64_t range = 3ull << 62;
    lottery l = { .key = { (uint32_t)SEED, (uint32_t)(SEED >> 32) }, .whole = { (uint64_t)t.low, range, -range % range } };
    for (uint64_t i = (1ull << 36) - 50; i < (1ull << 36) + 50; i++)
        CHECK(philox_integer(&l, i) == plain_integer(&t, i), "integer %llu", (unsigned long long)i);
    const uint64_t p = (uint64_t)(0.7 * 0x1p64);
    l.whole[0] = p >> 32, l.whole[1] = (uint32_t)p;
    for (uint64_t i = (1ull << 38) - 50; i < (1ull << 38) + 50; i++)
        CHECK(philox_coin(&l, i) == plain_coin(&coin, i), "coin %llu", (unsigned long long)i);
}

static void mapping(void)
{
    for (int n = 0; n < TRIALS; n++)
        for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++)
            if (takes(&trials[n], type)) maps(&trials[n], type);
    maps_permutation();
    maps_far();
    tap_point("each element is what the documentation says");
}

/* ---- the same bits everywhere ---- */

static const struct variant {
    const char *isa;
    int threads;
} variants[] = { { "portable", 1 }, { "avx2", 1 }, { "avx512", 1 }, { "avx512", 3 }, { "avx2", 16 } };
enum { VARIANTS = sizeof variants / sizeof *variants };

static void use_variant(const struct variant *v)
{
    setenv("DUET_ISA", v->isa, 1);
    cpu_choose_isa();
    omp_set_num_threads(v->threads);
    cpu_serial_seconds = v->threads > 1 ? 0 : 20e-6;
}

/* The elements of m, row-major, and where each lies in memory. */
static char *gather(const duet_matrix *m, bool *touched, const char *whole)
{
    const size_t bytes = duet_type(m) == DUET_F32 ? 4 : 8;
    const char *p = duet_read(m);
    char *dense = malloc((size_t)duet_count(m) * bytes + 1);
    for (int64_t i = 0; i < duet_count(m); i++) {
        int64_t at = 0, rest = i;
        for (int a = duet_rank(m); a-- > 0; rest /= duet_size(m, a)) at += rest % duet_size(m, a) * duet_stride(m, a);
        memcpy(dense + (size_t)i * bytes, p + at * (int64_t)bytes, bytes);
        if (touched) touched[(size_t)(p - whole) / bytes + (size_t)at] = true;
    }
    return dense;
}

/* Fills a view: its elements are those of `want`, and all others of its storage stay. */
static void fills(const trial *t, enum view view, duet_dtype type, const sizes *s, duet_place place, const char *want,
                  const char *how)
{
    rng r = rng_new(7);
    duet_matrix *whole, *m = random_view(&r, view, type, s->rank, s->size, -1, 1, &whole);
    if (!m) return;
    const size_t bytes = type == DUET_F32 ? 4 : 8, all = (size_t)duet_count(whole);
    char *before = gather(whole, NULL, NULL);
    bool *touched = calloc(all + 1, 1);
    DUET_ON(place) CHECK(fill(m, SEED, t) == DUET_OK, "%s", duet_error());
    char *after = gather(whole, NULL, NULL), *got = gather(m, touched, duet_read(whole));
    CHECK(!memcmp(got, want, (size_t)duet_count(m) * bytes), "law %d, %d numbers of type %d, %s, on the %s (%s) differ", t->law,
          (int)duet_count(m), type, view_names[view], place_name(place), how);
    for (size_t i = 0; i < all; i++)
        if (!touched[i] && memcmp(before + i * bytes, after + i * bytes, bytes)) {
            CHECK(false, "law %d, %s: element %zu of the storage was written", t->law, view_names[view], i);
            break;
        }
    if (whole != m) duet_free(&whole);
    duet_free(&m), free(before), free(after), free(got), free(touched);
}

static void same(const trial *t, duet_dtype type, const sizes *s)
{
    duet_matrix *m = duet_new_shape(type, s->rank, s->size);
    use_variant(&variants[0]);
    DUET_ON(DUET_CPU) CHECK(fill(m, SEED, t) == DUET_OK, "%s", duet_error());
    char *want = gather(m, NULL, NULL);
    for (enum view view = 0; view < VIEWS; view++) {
        for (int v = 0; v < VARIANTS; v++) {
            use_variant(&variants[v]);
            fills(t, view, type, s, DUET_CPU, want, variants[v].isa);
        }
        if (n_places > 1) fills(t, view, type, s, DUET_GPU, want, "-");
    }
    free(want), duet_free(&m);
}

static const sizes shapes[] = { SIZES(),     SIZES(0),    SIZES(1),      SIZES(5),      SIZES(1027),
                                SIZES(5000), SIZES(3, 0), SIZES(37, 41), SIZES(2, 700), SIZES(5, 6, 43) };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void sameness(void)
{
    for (int n = 0; n < TRIALS; n++)
        for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++)
            for (int s = 0; s < SHAPES; s++)
                if (takes(&trials[n], type) && (trials[n].law != LAW_PERMUTATION || shapes[s].rank == 1))
                    same(&trials[n], type, &shapes[s]);
    use_variant(&variants[2]);
    tap_point("the same bits on every machine, instruction set, number of threads and view");
}

static void large(void)
{
    const int64_t n = quick ? 40000 : 700001;
    for (int k = 0; k < TRIALS; k++) {
        const duet_dtype type = k % 2 || !takes(&trials[k], DUET_F32) ? DUET_I64 : DUET_F32;
        const sizes s = { 1, { n } };
        duet_matrix *m = duet_new(takes(&trials[k], type) ? type : DUET_F64, n);
        use_variant(&variants[0]);
        DUET_ON(DUET_CPU) CHECK(fill(m, SEED, &trials[k]) == DUET_OK, "%s", duet_error());
        char *want = gather(m, NULL, NULL);
        for (int v = 1; v < VARIANTS; v++) {
            use_variant(&variants[v]);
            fills(&trials[k], VIEW_NONE, duet_type(m), &s, DUET_CPU, want, variants[v].isa);
        }
        if (n_places > 1) fills(&trials[k], VIEW_NONE, duet_type(m), &s, DUET_GPU, want, "-");
        free(want), duet_free(&m);
    }
    use_variant(&variants[2]);
    tap_point("many elements, by threads");
}

/* ---- statistics ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: P(sqrt(n) D > t) is about 2 exp(-2 t^2). */
static void follows(const char *what, double *x, int64_t n, double cdf(double x, const trial *t), const trial *t)
{
    double most = 0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int64_t i = 0; i < n; i++) {
        const double f = cdf(x[i], t), below = f - (double)i / (double)n, above = (double)(i + 1) / (double)n - f;
        most = fmax(most, fmax(below, above));
        if (isnan(f)) most = INFINITY;
    }
    CHECK(most * sqrt((double)n) <= sqrt(-log(1e-6 / 2) / 2), "%s: Kolmogorov's statistic is %.3f", what, most * sqrt((double)n));
}

/* Pearson: chi-square with `bins` - 1 degrees of freedom, by Wilson and Hilferty's approximation. */
static void even(const char *what, const int64_t *count, int bins)
{
    double n = 0, sum = 0;
    const double k = bins - 1;
    for (int b = 0; b < bins; b++) n += (double)count[b];
    for (int b = 0; b < bins; b++) sum += ((double)count[b] - n / bins) * ((double)count[b] - n / bins) / (n / bins);
    const double most = k * pow(1 - 2 / (9 * k) + SIGMAS * sqrt(2 / (9 * k)), 3);
    CHECK(sum <= most, "%s: chi-square of %d bins is %.1f, above %.1f", what, bins, sum, most);
}

/* Is x, the mean of n numbers of this deviation, near enough to what it should be? */
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

/* Neighbours near and far, and the same places under other seeds, have nothing to do with each other: x has mean 0 and deviation 1. */
static void unrelated(const char *what, const double *x, duet_dtype type, int64_t n, const trial *t)
{
    static const int64_t apart[] = { 1, 2, 3, 4, 8, 1024 };
    for (int k = 0; k < 6; k++) near(what, mean_of_products(x, x + apart[k], n - apart[k]), 0, 1, n - apart[k]);
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
    for (duet_dtype type = DUET_F32; type <= DUET_F64; type++) {
        const trial t = { LAW_UNIFORM, -half, half, 0, 0, 0, 0 }, unit = { LAW_UNIFORM, 0, 1, 0, 0, 0, 0 };
        double *x = draw(type, n, SEED, &t), *u = draw(type, n, SEED + 1, &unit);
        int64_t high[256] = { 0 }, low[256] = { 0 };
        near("mean", mean_of_powers(x, 1, n), 0, 1, n);
        near("mean square", mean_of_powers(x, 2, n), 1, sqrt(0.8), n);
        unrelated("uniform", x, type, n, &t);
        follows("uniform", x, n, uniform_cdf, &t);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = (uint64_t)(u[i] * (type == DUET_F64 ? 0x1p53 : 0x1p24));
            high[(int)(u[i] * 256)]++, low[bits % 256]++;
        }
        even("upper bits", high, 256), even("lower bits", low, 256);
        free(x), free(u);
    }
    tap_point("uniform: moments, Kolmogorov, bits, independence");
}

/* Bounds are kept where rounding would break them. */
static void uniform_bounds(void)
{
    static const double range[][2] = { { 1, 1 + 0x1p-23 },     { -1, -1 + 0x1p-24 }, { 0, 0x1p-149 },
                                       { 16777215, 16777216 }, { -1e38, 1e38 },      { 1, 3 } };
    for (duet_dtype type = DUET_F32; type <= DUET_F64; type++)
        for (size_t k = 0; k < sizeof range / sizeof *range; k++) {
            const trial t = { LAW_UNIFORM, range[k][0], range[k][1], 0, 0, 0, 0 };
            double *x = draw(type, 5000, SEED, &t);
            for (int i = 0; i < 5000; i++)
                if (!CHECK(x[i] >= t.a && x[i] < t.b, "%.17g is not in [%.17g, %.17g)", x[i], t.a, t.b)) break;
            free(x);
        }
    tap_point("uniform never reaches its upper bound");
}

static double normal_cdf(double x, const trial *t) { return erfc((t->a - x) / t->b / sqrt(2)) / 2; }

static void normal_law(void)
{
    static const trial t = { LAW_NORMAL, 0, 1, 0, 0, 0, 0 }, other = { LAW_NORMAL, -3, 0.5, 0, 0, 0, 0 };
    static const double moment[] = { 1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945, 0, 10395 };
    const int64_t n = many();
    for (duet_dtype type = DUET_F32; type <= DUET_F64; type++) {
        double *x = draw(type, n, SEED, &t), *y = draw(type, n, SEED, &other);
        for (int k = 1; k <= 6; k++)
            near("moment", mean_of_powers(x, k, n), moment[k], sqrt(moment[2 * k] - moment[k] * moment[k]), n);
        unrelated("normal", x, type, n, &t);
        follows("normal", y, n, normal_cdf, &other);
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] * x[i] - 1) / sqrt(2); /* the numbers of a pair share a radius */
        near("squares of a pair", mean_of_products(y, y + 1, n - 1), 0, 1, n - 1);
        follows("normal", x, n, normal_cdf, &t);
        CHECK(x[0] < -sqrt(2 * log((double)n)) + 1.5 && x[n - 1] > sqrt(2 * log((double)n)) - 1.5, "tails end at %g, %g", x[0],
              x[n - 1]);
        free(x), free(y);
    }
    tap_point("normal: moments, Kolmogorov, independence, tails");
}

/* ---- truncated normal ---- */

/* exp(x^2 / 2) times the integral of exp(-z^2 / 2) from x >= 0 up: by erfc, or by a continued fraction. */
static long double mills(long double x)
{
    if (x < 5) return expl(x * x / 2) * erfcl(x / sqrtl(2)) * sqrtl(PI / 2);
    long double f = x;
    for (int k = 200; k > 0; k--) f = x + k / f;
    return 1 / f;
}

/* Of a normal law from a >= 0 up, what part lies below a + by? */
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
    { LAW_TRUNCATED_NORMAL, 0, 1, -2, 2, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 0, 1, -0.001, 2.6, 0, 0 }, /* half of all attempts fail */
    { LAW_TRUNCATED_NORMAL, 0, 1, -0.001, INFINITY, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 0, 1, 0, INFINITY, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 0, 1, -1.25, 1.2, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 0, 1, -2.3, 0.1, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 0, 1, -INFINITY, INFINITY, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 3, 2, 4, 6, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 3, 2, 4, 60, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 3, 2, -6, -4, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 3, 2, -INFINITY, -4, 0, 0 },
    { LAW_TRUNCATED_NORMAL, -10, 1, 0, INFINITY, 0, 0 }, /* far out; the nearer bound is 0 where numbers are dense */
    { LAW_TRUNCATED_NORMAL, -10, 1, 0, 0.12, 0, 0 },
    { LAW_TRUNCATED_NORMAL, -10, 1, 0, 0.14, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 1000, 1, -5, 0, 0, 0 },
    { LAW_TRUNCATED_NORMAL, 1000, 0.01, -5, 0, 0, 0 },
    { LAW_TRUNCATED_NORMAL, -1e6, 1, 0, 1e-6, 0, 0 },
    { LAW_TRUNCATED_NORMAL, -1e6, 0.001, 0, INFINITY, 0, 0 },
    { LAW_TRUNCATED_NORMAL, -16, 1e-6, 0, INFINITY, 0, 0 },
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static void truncated_law(void)
{
    const int64_t n = many() / 4;
    for (int k = 0; k < WINDOWS; k++)
        for (duet_dtype type = DUET_F32; type <= DUET_F64; type++) {
            char name[80];
            trial t = windows[k];
            double *x = draw(type, n, SEED + (uint64_t)k, &t);
            snprintf(name, sizeof name, "N(%g, %g) in [%g, %g], %s", t.a, t.b, t.c, t.d, type_name(type));
            t.a = rounded(type, t.a), t.b = rounded(type, t.b), t.c = rounded(type, t.c), t.d = rounded(type, t.d);
            follows(name, x, n, truncated_cdf, &t);
            free(x);
        }
    tap_point("truncated normal: Kolmogorov in windows near and far");
}

/* Windows of a few numbers, and one so far out that nothing but its bound is left. */
static void truncated_corners(void)
{
    static const trial corner[] = { { LAW_TRUNCATED_NORMAL, 0, 1, 1, 1 + 0x1p-22, 0, 0 },
                                    { LAW_TRUNCATED_NORMAL, 0, 1e-6, 1e20, 1e21, 0, 0 },
                                    { LAW_TRUNCATED_NORMAL, 0, 1, -1e-30, 1e-30, 0, 0 },
                                    { LAW_TRUNCATED_NORMAL, -3e38, 3e38, -3.4e38, 3e38, 0, 0 } };
    for (int k = 0; k < 4; k++)
        for (duet_dtype type = DUET_F32; type <= DUET_F64; type++) {
            double *x = draw(type, 5000, SEED, &corner[k]), least = INFINITY, most = -INFINITY;
            const double low = rounded(type, corner[k].c), high = rounded(type, corner[k].d);
            for (int i = 0; i < 5000; i++) {
                if (!CHECK(x[i] >= low && x[i] <= high, "%.17g is not in [%.17g, %.17g]", x[i], low, high)) break;
                least = fmin(least, x[i]), most = fmax(most, x[i]);
            }
            CHECK(k == 1 ? most == low : most > least, "window %d: from %.17g to %.17g", k, least, most);
            free(x);
        }
    tap_point("truncated normal: narrow windows, and very far ones");
}

/* ---- whole numbers ---- */

static void bernoulli_law(void)
{
    static const double p[] = { 0.5, 0.3, 0.999, 1e-3, 0x1p-20 };
    const int64_t n = many();
    for (int k = 0; k < 5; k++)
        for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++) {
            const trial t = { LAW_BERNOULLI, p[k], 0, 0, 0, 0, 0 };
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
        const trial t = { LAW_BERNOULLI, k, 0, 0, 0, 0, 0 };
        double *x = draw(DUET_F32, n, SEED, &t);
        CHECK(mean_of_powers(x, 1, n) == k, "p = %d", k);
        free(x);
    }
    tap_point("bernoulli: frequencies, independence, 0 and 1");
}

/* Where 2^64 is no multiple of the range, and by much: what a multiplication alone would do shows modulo 3. */
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
        rest[v % 3]++, third[v >> 62]++, sixteenth[v % 16]++;
    }
    even("modulo 3", rest, 3), even("thirds", third, 3), even("modulo 16", sixteenth, 16);
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
        for (duet_dtype type = 0; type < DUET_DTYPE_COUNT; type++) {
            const trial t = { LAW_INTEGERS, 0, 0, 0, 0, range[k][0], range[k][1] };
            const int bins = (int)(t.high - t.low);
            int64_t count[1000] = { 0 };
            double *x = draw(type, n, SEED + 5, &t);
            for (int64_t i = 0; i < n; i++) {
                const int64_t v = (int64_t)x[i] - t.low;
                if (CHECK(v >= 0 && v < bins && x[i] == floor(x[i]), "%g is not in %d .. %d", x[i], (int)t.low, (int)t.high - 1))
                    count[v]++;
            }
            if (bins > 1) even("integers", count, bins);
            free(x);
        }
    integers_wide();
    tap_point("integers: even in ranges small and large");
}

static bool is_permutation(const int64_t *p, int64_t n)
{
    bool *seen = calloc((size_t)n + 1, 1), yes = true;
    for (int64_t i = 0; i < n && yes; i++) yes = p[i] >= 0 && p[i] < n && !seen[p[i]], yes ? seen[p[i]] = true : false;
    free(seen);
    return yes;
}

/* Which of the 120 orders of 5. */
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
            CHECK(is_permutation(duet_read(m), length[k]), "%lld elements are not a permutation", (long long)length[k]);
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
    even("orders of five", orders, 120), even("first of a hundred", first, 100), even("place of the last", where, 100);
    duet_free(&five), duet_free(&hundred);
    tap_point("permutation: each order as often as the others");
}

/* ---- refusals ---- */

static duet_matrix *kept; /* of what fails */

static void refused(duet_status got, duet_status want, const char *who, const char *of, const char *word)
{
    CHECK(got == want, "%s: %s, not %s", who, duet_status_text(got), duet_status_text(want));
    CHECK(strstr(duet_error(), "duet_random_") && strstr(duet_error(), of) && strstr(duet_error(), word), "%s, %s, %s: '%s'", who,
          of, word, duet_error());
    CHECK(strstr(duet_error(), "test_random.c:") != NULL, "no place in '%s'", duet_error());
    const float *p = duet_read(kept);
    for (int i = 0; i < 6; i++) CHECK(p[i] == (float)i, "element %d was written", i);
}
#define REFUSED(call, status, shape, word) refused(duet_random_##call, status, #call, shape, word)

static void refusals(void)
{
    duet_matrix *m = kept = duet_new(DUET_F32, 2, 3), *d = duet_new(DUET_F64, 4), *i = duet_new(DUET_I64, 4), *gone = NULL;
    float *p = duet_overwrite(m);
    for (int k = 0; k < 6; k++) p[k] = (float)k;
    REFUSED(uniform(m, 1, 1, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "low < high");
    REFUSED(uniform(m, 1, 2, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "low is 2");
    REFUSED(uniform(m, 1, 0, NAN), DUET_BAD_ARGUMENT, "f32[2,3]", "low < high");
    REFUSED(uniform(m, 1, -INFINITY, 0), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(uniform(m, 1, 1, 1 + 1e-12), DUET_BAD_ARGUMENT, "f32[2,3]", "low < high"); /* one number in f32 */
    REFUSED(uniform(m, 1, -3e38, 3e38), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(uniform(i, 1, 0, 1), DUET_BAD_TYPE, "i64[4]", "f32 or f64");
    REFUSED(normal(m, 1, 0, -1), DUET_BAD_ARGUMENT, "f32[2,3]", "deviation -1");
    REFUSED(normal(m, 1, NAN, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(normal(m, 1, 0, 1e300), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(normal(i, 1, 0, 1), DUET_BAD_TYPE, "i64[4]", "f32 or f64");
    REFUSED(truncated_normal(m, 1, 0, 0, 0, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "deviation > 0");
    REFUSED(truncated_normal(m, 1, 0, 1, 1, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "low < high");
    REFUSED(truncated_normal(m, 1, 0, 1, NAN, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "low < high");
    REFUSED(truncated_normal(d, 1, 0, 1e-300, 1, 2), DUET_BAD_ARGUMENT, "f64[4]", "too far");
    REFUSED(truncated_normal(i, 1, 0, 1, -1, 1), DUET_BAD_TYPE, "i64[4]", "f32 or f64");
    REFUSED(bernoulli(m, 1, -0.1), DUET_BAD_ARGUMENT, "f32[2,3]", "0 <= p <= 1");
    REFUSED(bernoulli(m, 1, 1.1), DUET_BAD_ARGUMENT, "f32[2,3]", "p is 1.1");
    REFUSED(bernoulli(m, 1, NAN), DUET_BAD_ARGUMENT, "f32[2,3]", "0 <= p <= 1");
    REFUSED(integers(m, 1, 3, 3), DUET_BAD_ARGUMENT, "f32[2,3]", "low < high");
    REFUSED(integers(m, 1, 0, (1 << 24) + 2), DUET_BAD_TYPE, "f32[2,3]", "16777216");
    REFUSED(integers(m, 1, -(1 << 24) - 1, 0), DUET_BAD_TYPE, "f32[2,3]", "exact");
    REFUSED(integers(d, 1, 0, (1ll << 53) + 2), DUET_BAD_TYPE, "f64[4]", "exact");
    REFUSED(permutation(m, 1), DUET_BAD_SHAPE, "f32[2,3]", "rank 1");
    CHECK(duet_random_uniform(NULL, 1, 0, 1) == DUET_BAD_ARGUMENT, "no matrix");
    gone = duet_new(DUET_F32, 2);
    duet_matrix *was = gone;
    duet_free(&gone);
    CHECK(duet_random_uniform(was, 1, 0, 1) == DUET_BAD_ARGUMENT, "a freed matrix");
    CHECK((duet_random_uniform)(m, 1, 1, 0) == DUET_BAD_ARGUMENT && !strstr(duet_error(), "test_random.c"), "'%s'", duet_error());
    duet_free(&m), duet_free(&d), duet_free(&i);
    tap_point("refusals");
}

/* What is filled where it is needed does not move, and a formula goes on from there. */
static void residence(void)
{
    duet_matrix *m = duet_new(DUET_F32, 100, 100), *s = duet_new(DUET_F32);
    for (int k = 0; k < n_places; k++) DUET_ON(places[k])
        {
            const duet_counts before = duet_stats();
            CHECK(duet_random_uniform(m, 3, 0, 2) == DUET_OK && duet_set(s, duet_mean(m)) == DUET_OK, "%s", duet_error());
            const duet_counts after = duet_stats();
            CHECK(after.uploads == before.uploads && after.downloads == before.downloads, "bits moved");
            CHECK(after.steps >= before.steps + 2, "steps are not counted");
            CHECK(fabsf(*(const float *)duet_read(s) - 1) < 0.1f, "mean %g", *(const float *)duet_read(s));
        }
    duet_free(&m), duet_free(&s);
    tap_point("filled where it is used");
}

int main(int argc, char **argv)
{
    quick = is_quick(argc, argv);
    n_places = list_places(places);
    use_variant(&variants[2]);
    known_answers();
    mapping();
    sameness();
    large();
    uniform_law();
    uniform_bounds();
    normal_law();
    truncated_law();
    truncated_corners();
    bernoulli_law();
    integers_law();
    permutation_law();
    refusals();
    residence();
    return tap_end();
}
