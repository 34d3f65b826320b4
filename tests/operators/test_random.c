/* test_random.c - random numbers: known answers of Philox, the mapping that docs/semantics.md
 * documents, equal bits on every machine, instruction set, number of threads and view, and errors. */
#define T_f64
#include "dtype.h"
#include "each_type.h"
#include "philox.h"
#undef T
#include "cpu.h"
#include "random_trial.h"
#include <math.h>
#include <omp.h>

static duet_place places[2];
static int n_places;
static bool quick;

/* ---- Philox as its authors describe it ---- */

static void philox_plainly(uint32_t c[4], uint64_t seed)
{
    uint32_t k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a };
        memcpy(c, next, sizeof next);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
}

/* Vectors of Random123's kat_vectors: counter, key, result. */
static const uint32_t known[][10] = {
    { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
    { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
    { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
      0x5001e420, 0x24126ea1 },
};

static void known_answers(void)
{
    for (int n = 0; n < 3; n++) {
        const uint32_t *k = known[n];
        uint32_t plain[4] = { k[0], k[1], k[2], k[3] };
        const philox_block b = philox((philox_block){ { k[0], k[1], k[2], k[3] } }, k[4], k[5]);
        philox_plainly(plain, k[4] | (uint64_t)k[5] << 32);
        for (int j = 0; j < 4; j++)
            CHECK(b.w[j] == k[6 + j] && plain[j] == k[6 + j], "vector %d, word %d: %08x", n, j, b.w[j]);
    }
    tap_point("known answers of Philox4x32-10");
}

/* ---- distributions ---- */

static const trial trials[] = {
    { DISTRIBUTION_UNIFORM, 0, 1, 0, 0, 0, 0 },
    { DISTRIBUTION_UNIFORM, -3.5, 1e4, 0, 0, 0, 0 },
    { DISTRIBUTION_NORMAL, 0, 1, 0, 0, 0, 0 },
    { DISTRIBUTION_NORMAL, 10, 0.25, 0, 0, 0, 0 },
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -2, 2, 0, 0 },        /* by proposals from a normal distribution */
    { DISTRIBUTION_TRUNCATED_NORMAL, 1, 2, -1, INFINITY, 0, 0 }, /* with one bound */
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, -0.5, 1, 0, 0 },      /* from a uniform distribution */
    { DISTRIBUTION_TRUNCATED_NORMAL, 0, 1, 2, 2.25, 0, 0 },      /* both bounds above the mean */
    { DISTRIBUTION_TRUNCATED_NORMAL, 5, 0.5, -INFINITY, 2, 0,
      0 },                                                 /* from an exponential distribution, below */
    { DISTRIBUTION_TRUNCATED_NORMAL, -40, 1, 0, 1, 0, 0 }, /* far above */
    { DISTRIBUTION_BERNOULLI, 0.3, 0, 0, 0, 0, 0 },
    { DISTRIBUTION_BERNOULLI, 1, 0, 0, 0, 0, 0 },
    { DISTRIBUTION_INTEGERS, 0, 0, 0, 0, -7, 1000 },
    { DISTRIBUTION_INTEGERS, 0, 0, 0, 0, -(3ll << 61), 3ll << 61 }, /* a quarter of the draws is rejected */
    { DISTRIBUTION_PERMUTATION, 0, 0, 0, 0, 0, 0 },
};
enum { TRIALS = sizeof trials / sizeof *trials };

static bool takes(const trial *t, duet_dtype type)
{
    if (t->distribution == DISTRIBUTION_INTEGERS && t->high > 1 << 24) return type == DUET_I64;
    return type != DUET_I64 || t->distribution >= DISTRIBUTION_BERNOULLI;
}

/* ---- the mapping, written independently ---- */

static uint32_t plain_word(const trial *t, uint64_t seed, uint64_t block, uint32_t stream, int j)
{
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), stream, (uint32_t)t->distribution };
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
        if (x < t->b) return x;
        return nextafter(t->b, t->a);
    }
    const float low = (float)t->a, high = (float)t->b;
    const float x = fmaf((float)(plain_word(t, SEED, i / 4, 0, i % 4) >> 8) / 0x1p24f, high - low, low);
    if (x < high) return x;
    return nextafterf(high, low);
}

/* Box and Muller in long double. The allowed error is that of four functions and two roundings, at
 * most one ulp each. */
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
    const long double x = (long double)t->a + (long double)t->b * z,
                      ulp = type == DUET_F64 ? 0x1p-52L : 0x1p-23L;
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
    const uint64_t w =
        (uint64_t)plain_word(t, SEED, i / 4, 0, i % 4) << 32 | plain_word(t, SEED, i / 4, 1, i % 4);
    return t->a == 1 || w < (uint64_t)(t->a * 0x1p64);
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
        if (t->distribution == DISTRIBUTION_UNIFORM) right = x == plain_uniform(t, type, (uint64_t)i);
        if (t->distribution == DISTRIBUTION_NORMAL) {
            normal = plain_normal(t, type, (uint64_t)i, &allowed);
            right = fabsl(x - normal) <= allowed;
        }
        if (t->distribution == DISTRIBUTION_INTEGERS) right = whole == plain_integer(t, (uint64_t)i);
        if (t->distribution == DISTRIBUTION_BERNOULLI) right = whole == plain_coin(t, (uint64_t)i);
        if (!CHECK(right, "distribution %d, element %d is %.17g or %lld", t->distribution, i, x,
                   (long long)whole))
            break;
    }
    duet_free(&m);
}

/* Element i of a permutation goes to the rank of its key among all keys; i orders equal keys. */
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
        if (!CHECK(p[rank] == i, "rank %d has element %lld, not %d", rank, (long long)p[rank], i)) break;
    }
    duet_free(&m);
}

/* Beyond the size of memory: the formulas alone. */
static void maps_far(void)
{
    const trial t = { DISTRIBUTION_INTEGERS, 0, 0, 0, 0, -(3ll << 61), 3ll << 61 },
                coin = { DISTRIBUTION_BERNOULLI, 0.7, 0, 0, 0, 0, 0 };
    const uint64_t range = 3ull << 62;
    random_params l = { .key = { (uint32_t)SEED, (uint32_t)(SEED >> 32) },
                        .integer = { (uint64_t)t.low, range, -range % range } };
    for (uint64_t i = (1ull << 36) - 50; i < (1ull << 36) + 50; i++)
        CHECK(philox_integer(&l, i) == plain_integer(&t, i), "integer %llu is wrong", (unsigned long long)i);
    const uint64_t p = (uint64_t)(0.7 * 0x1p64);
    l.integer[0] = p >> 32;
    l.integer[1] = (uint32_t)p;
    for (uint64_t i = (1ull << 38) - 50; i < (1ull << 38) + 50; i++)
        CHECK(philox_coin(&l, i) == plain_coin(&coin, i), "Bernoulli number %llu is wrong",
              (unsigned long long)i);
}

static void mapping(void)
{
    for (int n = 0; n < TRIALS; n++)
        FOR_DRAWN_TYPES (type)
            if (takes(&trials[n], type)) maps(&trials[n], type);
    maps_permutation();
    maps_far();
    tap_point("every element follows the formulas in the documentation");
}

/* ---- equal bits everywhere ---- */

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
    if (v->threads > 1) cpu_serial_seconds = 0;
    else cpu_serial_seconds = 20e-6;
}

/* The elements of m in row-major order, and where each is in memory. */
static char *gather(const duet_matrix *m, bool *touched, const char *whole)
{
    const size_t bytes = duet_type(m) == DUET_F32 ? 4 : 8;
    const char *p = duet_read(m);
    char *dense = malloc((size_t)duet_count(m) * bytes + 1);
    for (int64_t i = 0; i < duet_count(m); i++) {
        int64_t at = 0, rest = i;
        for (int a = duet_rank(m); a-- > 0; rest /= duet_size(m, a))
            at += rest % duet_size(m, a) * duet_stride(m, a);
        memcpy(dense + (size_t)i * bytes, p + at * (int64_t)bytes, bytes);
        if (touched) touched[(size_t)(p - whole) / bytes + (size_t)at] = true;
    }
    return dense;
}

/* Fills a view: its elements equal `want`, and all others of its storage are unchanged. */
static void fills(const trial *t, enum view view, duet_dtype type, const sizes *s, duet_place place,
                  const char *want, const char *how)
{
    rng r = rng_new(7);
    duet_matrix *whole, *m = random_view(&r, view, type, s->rank, s->size, -1, 1, &whole);
    if (!m) return;
    const size_t bytes = type == DUET_F32 ? 4 : 8, all = (size_t)duet_count(whole);
    char *before = gather(whole, NULL, NULL);
    bool *touched = calloc(all + 1, 1);
    DUET_ON(place) CHECK(fill(m, SEED, t) == DUET_OK, "%s", duet_error());
    char *after = gather(whole, NULL, NULL), *got = gather(m, touched, duet_read(whole));
    CHECK(!memcmp(got, want, (size_t)duet_count(m) * bytes),
          "distribution %d, %d numbers of type %d, %s, on the %s (%s) differ", t->distribution,
          (int)duet_count(m), type, view_names[view], place_name(place), how);
    for (size_t i = 0; i < all; i++)
        if (!touched[i] && memcmp(before + i * bytes, after + i * bytes, bytes)) {
            CHECK(false, "distribution %d, %s: element %zu of the storage was written", t->distribution,
                  view_names[view], i);
            break;
        }
    if (whole != m) duet_free(&whole);
    duet_free(&m);
    free(before);
    free(after);
    free(got);
    free(touched);
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
    free(want);
    duet_free(&m);
}

static const sizes shapes[] = { SIZES(),     SIZES(0),    SIZES(1),      SIZES(5),      SIZES(1027),
                                SIZES(5000), SIZES(3, 0), SIZES(37, 41), SIZES(2, 700), SIZES(5, 6, 43) };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void sameness(void)
{
    for (int n = 0; n < TRIALS; n++)
        FOR_DRAWN_TYPES (type)
            for (int s = 0; s < SHAPES; s++)
                if (takes(&trials[n], type) &&
                    (trials[n].distribution != DISTRIBUTION_PERMUTATION || shapes[s].rank == 1))
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
        free(want);
        duet_free(&m);
    }
    use_variant(&variants[2]);
    tap_point("many elements, computed by several threads");
}

/* ---- errors ---- */

static duet_matrix *kept; /* destination of the failing calls */

static void refused(duet_status got, duet_status want, const char *who, const char *of, const char *word)
{
    CHECK(got == want, "%s: %s, not %s", who, duet_status_text(got), duet_status_text(want));
    CHECK(strstr(duet_error(), "duet_random_") && strstr(duet_error(), of) && strstr(duet_error(), word),
          "%s, %s, %s: '%s'", who, of, word, duet_error());
    CHECK(strstr(duet_error(), "test_random.c:") != NULL, "no source line in '%s'", duet_error());
    const float *p = duet_read(kept);
    for (int i = 0; i < 6; i++) CHECK(p[i] == (float)i, "element %d was written", i);
}
#define REFUSED(call, status, shape, word) refused(duet_random_##call, status, #call, shape, word)

static void refusals(void)
{
    duet_matrix *m = kept = duet_new(DUET_F32, 2, 3), *d = duet_new(DUET_F64, 4), *i = duet_new(DUET_I64, 4),
                *gone = NULL;
    float *p = duet_overwrite(m);
    for (int k = 0; k < 6; k++) p[k] = (float)k;
    REFUSED(uniform(m, 1, 1, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "ascending order");
    REFUSED(uniform(m, 1, 2, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "low (2)");
    REFUSED(uniform(m, 1, 0, NAN), DUET_BAD_ARGUMENT, "f32[2,3]", "ascending order");
    REFUSED(uniform(m, 1, -INFINITY, 0), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    /* only one number of f32 */
    REFUSED(uniform(m, 1, 1, 1 + 1e-12), DUET_BAD_ARGUMENT, "f32[2,3]", "ascending order");
    REFUSED(uniform(m, 1, -3e38, 3e38), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(uniform(i, 1, 0, 1), DUET_BAD_TYPE, "i64[4]", "floating point");
    REFUSED(normal(m, 1, 0, -1), DUET_BAD_ARGUMENT, "f32[2,3]", "deviation (-1)");
    REFUSED(normal(m, 1, NAN, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(normal(m, 1, 0, 1e300), DUET_BAD_ARGUMENT, "f32[2,3]", "finite");
    REFUSED(normal(i, 1, 0, 1), DUET_BAD_TYPE, "i64[4]", "floating point");
    REFUSED(truncated_normal(m, 1, 0, 0, 0, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "deviation must be positive");
    REFUSED(truncated_normal(m, 1, 0, 1, 1, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "ascending order");
    REFUSED(truncated_normal(m, 1, 0, 1, NAN, 1), DUET_BAD_ARGUMENT, "f32[2,3]", "ascending order");
    REFUSED(truncated_normal(d, 1, 0, 1e-300, 1, 2), DUET_BAD_ARGUMENT, "f64[4]", "1e150");
    REFUSED(truncated_normal(i, 1, 0, 1, -1, 1), DUET_BAD_TYPE, "i64[4]", "floating point");
    REFUSED(bernoulli(m, 1, -0.1), DUET_BAD_ARGUMENT, "f32[2,3]", "must be from 0 to 1");
    REFUSED(bernoulli(m, 1, 1.1), DUET_BAD_ARGUMENT, "f32[2,3]", "p (1.1");
    REFUSED(bernoulli(m, 1, NAN), DUET_BAD_ARGUMENT, "f32[2,3]", "must be from 0 to 1");
    REFUSED(integers(m, 1, 3, 3), DUET_BAD_ARGUMENT, "f32[2,3]", "less than high");
    REFUSED(integers(m, 1, 0, (1 << 24) + 2), DUET_BAD_TYPE, "f32[2,3]", "16777216");
    REFUSED(integers(m, 1, -(1 << 24) - 1, 0), DUET_BAD_TYPE, "f32[2,3]", "exact");
    REFUSED(integers(d, 1, 0, (1ll << 53) + 2), DUET_BAD_TYPE, "f64[4]", "exact");
    REFUSED(permutation(m, 1), DUET_BAD_SHAPE, "f32[2,3]", "1 axis");
    CHECK(duet_random_uniform(NULL, 1, 0, 1) == DUET_BAD_ARGUMENT, "a NULL matrix was accepted");
    gone = duet_new(DUET_F32, 2);
    duet_matrix *was = gone;
    duet_free(&gone);
    CHECK(duet_random_uniform(was, 1, 0, 1) == DUET_BAD_ARGUMENT, "a freed matrix was accepted");
    CHECK((duet_random_uniform)(m, 1, 1, 0) == DUET_BAD_ARGUMENT && !strstr(duet_error(), "test_random.c"),
          "'%s'", duet_error());
    duet_free(&m);
    duet_free(&d);
    duet_free(&i);
    tap_point("invalid and unsupported arguments");
}

/* A matrix filled where it is needed is not transferred, and a formula continues from there. */
static void residence(void)
{
    duet_matrix *m = duet_new(DUET_F32, 100, 100), *s = duet_new(DUET_F32);
    for (int k = 0; k < n_places; k++) DUET_ON(places[k])
        {
            const duet_counts before = duet_stats();
            CHECK(duet_random_uniform(m, 3, 0, 2) == DUET_OK && duet_set(s, duet_mean(m)) == DUET_OK, "%s",
                  duet_error());
            const duet_counts after = duet_stats();
            CHECK(after.uploads == before.uploads && after.downloads == before.downloads,
                  "elements were copied between devices");
            CHECK(after.steps >= before.steps + 2, "steps are not counted");
            CHECK(fabsf(*(const float *)duet_read(s) - 1) < 0.1f, "mean %g", *(const float *)duet_read(s));
        }
    duet_free(&m);
    duet_free(&s);
    tap_point("matrices are filled on the device that uses them");
}

/* Elements of f16 and bf16 are those of f32, rounded down: over [0, 1) the largest number has the
 * same share as the one below it. */
static void narrow(duet_place place, duet_dtype type, int digits, double low, double high)
{
    enum { N = 200000 };
    const trial t = { DISTRIBUTION_UNIFORM, low, high, 0, 0, 0, 0 };
    const double gap = ldexp(fmax(fabs(low), fabs(high)), -digits), last = high - gap;
    duet_matrix *m = duet_new(type, N), *f = duet_new(DUET_F32, N);
    int top = 0, below = 0;
    DUET_ON(place) CHECK(duet_random_uniform(m, SEED, low, high) == DUET_OK, "%s", duet_error());
    CHECK(duet_set(f, m) == DUET_OK, "%s", duet_error());
    const float *x = duet_read(f);
    for (int i = 0; i < N; i++) {
        const double exact = fmin(plain_uniform(&t, DUET_F32, (uint64_t)i), last);
        if (!CHECK(x[i] <= exact && exact < x[i] + gap, "%s: element %d is %.9g, not %.9g rounded down",
                   dtypes[type].name, i, x[i], exact))
            break;
        top += x[i] == (float)last;
        below += x[i] == (float)(last - gap);
    }
    CHECK(abs(top - below) < 6 * sqrt(2.0 * (below + 1)), "%s: %d elements are %g, %d are %g",
          dtypes[type].name, top, last, below, last - gap);
    duet_free(&m);
    duet_free(&f);
}

static void narrow_types(void)
{
    for (int k = 0; k < n_places; k++) {
        narrow(places[k], DUET_F16, 11, 0, 1);
        narrow(places[k], DUET_BF16, 8, 0, 1);
        narrow(places[k], DUET_F16, 11, -1, 1);
        narrow(places[k], DUET_BF16, 8, 1, 2);
    }
    tap_point("uniform numbers of narrow types are rounded down");
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
    narrow_types();
    refusals();
    residence();
    return tap_end();
}
