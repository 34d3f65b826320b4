/* test_noise.c - random numbers of every type, compared with those of f32 and i64, which
 * test_random.c compares with the documented mapping; noise, shuffles and sequences, against the
 * oracle or by hand. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "element.h"
#include "status_checks.h"
#include <math.h>

static rng gen;
static duet_place place[2];
static int places;

static const sizes shapes[] = { SIZES(),     SIZES(0),    SIZES(1),      SIZES(5),
                                SIZES(1027), SIZES(3, 0), SIZES(37, 41), SIZES(2, 3, 50) };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static duet_matrix *view_like(enum view view, duet_dtype t, const sizes *s)
{
    duet_matrix *m = random_view(&gen, view, t, s->rank, s->size, 0, 1, NULL);
    if (m) return m;
    return random_matrix(&gen, t, s->rank, s->size, 0, 1);
}

/* ---- random numbers of every type ---- */

enum distribution { UNIFORM, NORMAL, TRUNCATED, BERNOULLI, INTEGERS, PERMUTATION, DISTRIBUTIONS };
static const char *const distribution_names[] = { "uniform",   "normal",   "truncated normal",
                                                  "bernoulli", "integers", "permutation" };

/* Parameters that no half-precision number equals; for integers, values that every type but bool
 * represents. */
typedef struct numbers {
    double a, b, c, d;
    int64_t low, high;
} numbers;

static numbers numbers_of(duet_dtype t)
{
    const bool is_signed = is_floating(t) || dtype_kind(t) == TYPE_SIGNED;
    numbers n = { -0.3, 1.7, -1.1, 2.9, 3, 101 };
    if (is_signed) n.low = -100;
    if (t == DUET_BOOL) {
        n.low = 0;
        n.high = 2;
    }
    return n;
}

static duet_status fill(duet_matrix *m, enum distribution distribution, const numbers *n)
{
    switch (distribution) {
    case UNIFORM: return duet_random_uniform(m, 9, n->a, n->b);
    case NORMAL: return duet_random_normal(m, 9, n->a, n->b);
    case TRUNCATED: return duet_random_truncated_normal(m, 9, n->a, n->b, n->c, n->d);
    case BERNOULLI: return duet_random_bernoulli(m, 9, 0.3);
    case INTEGERS: return duet_random_integers(m, 9, n->low, n->high);
    default: return duet_random_permutation(m, 9);
    }
}

static double half(duet_dtype t, double x) { return is_floating(t) ? (double)converted(DUET_F64, t, x) : x; }

/* The same distribution with numbers of type t, in the type in which they are drawn. */
static duet_matrix *drawn(duet_dtype t, enum distribution distribution, const sizes *s)
{
    const bool whole = distribution >= INTEGERS;
    duet_matrix *m = duet_new_shape(whole ? DUET_I64 : DUET_F32, s->rank, s->size);
    numbers n = numbers_of(t);
    n.a = half(t, n.a);
    n.b = half(t, n.b);
    n.c = half(t, n.c);
    n.d = half(t, n.d);
    DUET_ON(DUET_CPU) GOES(fill(m, distribution, &n));
    return m;
}

/* The largest number of type t, f16 or bf16, that is at most x; near: x rounded to nearest. */
static long double down(duet_dtype t, long double x, long double near)
{
    if (near <= x) return near;
    return converted(DUET_F64, t, near - 0.7L * ldexpl(dtypes[t].roundoff, ilogbl(near) + 1));
}

/* Uniform numbers are rounded down, and are below the upper bound. */
static long double wanted(duet_dtype t, enum distribution distribution, long double x)
{
    const long double high = half(t, numbers_of(t).b),
                      near = converted(distribution >= INTEGERS ? DUET_I64 : DUET_F32, t, x);
    if (distribution == UNIFORM && near >= high) return high - ldexpl(dtypes[t].roundoff, 1);
    if (distribution == UNIFORM && t != DUET_F32 && t != DUET_F64) return down(t, x, near);
    return near;
}

static void test_distribution(duet_dtype t, enum distribution distribution, const sizes *s, enum view view)
{
    const numbers n = numbers_of(t);
    if (distribution == PERMUTATION && (s->rank != 1 || s->size[0] > (t == DUET_BOOL ? 2 : 100))) return;
    for (int p = 0; p < places; p++) {
        duet_matrix *want = drawn(t, distribution, s), *m = view_like(view, t, s);
        DUET_ON(place[p]) GOES(fill(m, distribution, &n));
        void *a = elements(want), *got = elements(m);
        int64_t wrong = 0;
        for (int64_t i = 0; i < duet_count(m); i++)
            wrong +=
                element_value(t, got, i) != wanted(t, distribution, element_value(duet_type(want), a, i));
        CHECK(!wrong, "%s of %s, %s, on %s: %lld of %lld elements differ", distribution_names[distribution],
              dtypes[t].name, view_names[view], place_name(place[p]), (long long)wrong,
              (long long)duet_count(m));
        free(a);
        free(got);
        duet_free(&want);
        duet_free(&m);
    }
}

static void distributions(void)
{
    FOR_TYPES (t, !dtype_is_complex(t) && !is_drawn(t))
        for (enum distribution distribution = is_floating(t) ? UNIFORM : BERNOULLI;
             distribution < DISTRIBUTIONS; distribution++)
            for (int s = 0; s < SHAPES; s++)
                for (enum view view = 0; view < VIEWS; view++)
                    test_distribution(t, distribution, &shapes[s], view);
    tap_point("random numbers of other types are converted from f32 and i64");
}

static long double extreme(duet_dtype t, bool least)
{
    const int bits = 8 * (int)dtypes[t].bytes - (dtype_kind(t) == TYPE_SIGNED);
    if (is_floating(t))
        return least ? -1 / (long double)dtypes[t].roundoff : 1 / (long double)dtypes[t].roundoff;
    if (t == DUET_BOOL) return !least;
    if (least) return dtype_kind(t) == TYPE_SIGNED ? -ldexpl(1, bits) : 0;
    return ldexpl(1, bits) - 1;
}

static void refused_laws(duet_dtype t)
{
    duet_matrix *m = duet_new(t, 300), *two = duet_new(t, 2, 2);
    const bool complex = dtype_kind(t) == TYPE_COMPLEX;
    const int64_t most = complex || t == DUET_U64 ? INT64_MAX : (int64_t)extreme(t, false),
                  least = complex ? 0 : (int64_t)extreme(t, true);
    if (!is_floating(t)) {
        FAILS(duet_random_uniform(m, 1, 0, 1), DUET_BAD_TYPE, "floating point");
        FAILS(duet_random_normal(m, 1, 0, 1), DUET_BAD_TYPE, "floating point");
        FAILS(duet_random_truncated_normal(m, 1, 0, 1, -1, 1), DUET_BAD_TYPE, "floating point");
    }
    if (complex) {
        FAILS(duet_random_bernoulli(m, 1, 0.5), DUET_BAD_TYPE, "real");
        FAILS(duet_random_integers(m, 1, 0, 2), DUET_BAD_TYPE, "real");
        FAILS(duet_random_permutation(m, 1), DUET_BAD_TYPE, "real");
    } else {
        if (most < INT64_MAX - 1)
            FAILS(duet_random_integers(m, 1, most - 1, most + 2), DUET_BAD_TYPE, "exact");
        if (least > INT64_MIN)
            FAILS(duet_random_integers(m, 1, least - 1, least + 1), DUET_BAD_TYPE, "exact");
        GOES(duet_random_integers(m, 1, least, least + 1));
        CHECK(element_value(t, duet_read(m), 0) == least, "the least %s", dtypes[t].name);
        FAILS(duet_random_bernoulli(m, 1, 1.5), DUET_BAD_ARGUMENT, "from 0 to 1");
        if (most < 299) FAILS(duet_random_permutation(m, 1), DUET_BAD_TYPE, "exact");
        FAILS(duet_random_permutation(two, 1), DUET_BAD_SHAPE, "1 axis");
    }
    duet_free(&m);
    duet_free(&two);
}

static void refusals_of_laws(void)
{
    for (duet_dtype t = 0; t < DUET_DTYPE_COUNT; t++) refused_laws(t);
    tap_point("distributions and numbers that a type cannot hold are errors");
}

/* ---- noise ---- */

enum noise { NOISE_UNIFORM, NOISE_NORMAL, NOISE_LOGISTIC, NOISE_RANGED, NOISE_BERNOULLI, NOISES };
static const char *const noise_names[] = { "uniform", "normal", "logistic", "ranged", "bernoulli" };

static duet_status add_noise(duet_matrix *to, duet_expr x, enum noise kind)
{
    switch (kind) {
    case NOISE_UNIFORM: return duet_noise_uniform(to, x, 4);
    case NOISE_NORMAL: return duet_noise_normal(to, x, 4);
    case NOISE_LOGISTIC: return duet_noise_logistic(to, x, 4);
    case NOISE_RANGED: return duet_noise_ranged(to, x, 4, 1);
    default: return duet_noise_bernoulli(to, x, 4);
    }
}

static duet_expr meant(duet_expr x, duet_matrix *w, enum noise kind)
{
    switch (kind) {
    case NOISE_UNIFORM:
    case NOISE_NORMAL: return duet_add(x, w);
    case NOISE_LOGISTIC: return duet_add(x, duet_mul(w, duet_sigmoid(x)));
    case NOISE_RANGED:
        return duet_where(duet_logical_or(duet_equal(x, 0), duet_equal(x, 1)), x, duet_add(x, w));
    default: return duet_less(w, x);
    }
}

/* Some elements are 0 and 1, which ranged noise keeps and Bernoulli noise decides without chance. */
static duet_matrix *grades(duet_dtype t, enum view view, const sizes *s)
{
    duet_matrix *x = view_like(view, t, s);
    const size_t bytes = dtypes[t].bytes;
    char *all = elements(x);
    for (int64_t i = 0; i < duet_count(x); i++)
        if (rng_chance(&gen, 30)) element_put(t, all + i * (int64_t)bytes, 0, rng_chance(&gen, 50));
    fill_from(x, all);
    free(all);
    return x;
}

static void noise_is(duet_matrix *to, duet_matrix *x, enum noise kind, duet_place where, const char *what)
{
    const bool flat = kind == NOISE_UNIFORM || kind == NOISE_BERNOULLI;
    const duet_dtype t = kind == NOISE_BERNOULLI ? dtypes[duet_type(x)].computed : duet_type(to);
    int64_t size[DUET_RANK_MAX] = { 0 };
    for (int a = 0; a < duet_rank(to); a++) size[a] = duet_size(to, a);
    duet_matrix *w = duet_new_shape(t, duet_rank(to), size);
    if (flat) GOES(duet_random_uniform(w, 4, 0, 1));
    else GOES(duet_random_normal(w, 4, 0, 1));
    duet_expr e = meant(duet_of_matrix(x), w, kind);
    table want = oracle(e, duet_type(to));
    forget(e);
    duet_status s = DUET_OK;
    DUET_ON(where) s = add_noise(to, duet_of_matrix(x), kind);
    const char *why = s == DUET_OK ? oracle_differs(&want, to) : duet_error();
    CHECK(!why, "%s noise of %s, %s, on %s: %s", noise_names[kind], dtypes[duet_type(to)].name, what,
          place_name(where), why);
    table_free(&want);
    duet_free(&w);
}

static void noise_of(duet_dtype t, duet_dtype from, enum noise kind, const sizes *s, enum view view)
{
    const sizes scalar = SIZES();
    for (int p = 0; p < places; p++) {
        duet_matrix *x = grades(from, (enum view)rng_below(&gen, VIEWS), s),
                    *one = grades(from, VIEW_NONE, &scalar);
        duet_matrix *to = view_like(view, t, s);
        noise_is(to, x, kind, place[p], view_names[view]);
        noise_is(to, one, kind, place[p], "of one number");
        if (t == from) noise_is(x, x, kind, place[p], "in place");
        duet_free(&x);
        duet_free(&one);
        duet_free(&to);
    }
}

static void noises(void)
{
    for (enum noise kind = 0; kind < NOISES; kind++)
        FOR_REAL_TYPES (t)
            for (int s = 0; s < SHAPES && (is_floating(t) || kind == NOISE_BERNOULLI); s++) {
                noise_of(t, is_floating(t) ? t : DUET_F64, kind, &shapes[s],
                         (enum view)rng_below(&gen, VIEWS));
                if (t == DUET_F64) noise_of(t, DUET_F32, kind, &shapes[s], VIEW_NONE);
                if (t == DUET_F32) noise_of(t, DUET_F16, kind, &shapes[s], VIEW_NONE);
            }
    tap_point("noise equals the oracle");
}

/* Bernoulli results have the right frequencies, and one seed gives one matrix, recorded or not. */
static void coins(void)
{
    duet_matrix *x = duet_new(DUET_F32, 100000), *to = duet_new(DUET_U8, 100000), *n = duet_new(DUET_I64);
    GOES(duet_set(x, 0.2));
    GOES(duet_record_begin() == DUET_OK ? duet_noise_bernoulli(to, x, 5) : DUET_BAD_ARGUMENT);
    duet_recording *r = duet_record_end();
    void *first = elements(to);
    GOES(duet_set(n, duet_cast(duet_sum(to), DUET_I64)));
    const double up = (double)*(const int64_t *)duet_read(n);
    CHECK(fabs(up - 20000) < 6 * sqrt(100000 * 0.2 * 0.8), "%g of 100000 elements are 1", up);
    GOES(duet_set(to, 7));
    GOES(duet_replay(r));
    void *again = elements(to);
    CHECK(same_bits(DUET_U8, first, again, 100000), "a replay draws other numbers");
    GOES(duet_noise_bernoulli(to, 1, 5));
    GOES(duet_set(n, duet_cast(duet_sum(to), DUET_I64)));
    CHECK(*(const int64_t *)duet_read(n) == 100000, "a probability of 1 gives zeros");
    free(first);
    free(again);
    duet_recording_free(&r);
    duet_free(&x);
    duet_free(&to);
    duet_free(&n);
    tap_point("Bernoulli noise, and replayed noise");
}

static void refusals_of_noise(void)
{
    duet_matrix *x = duet_new(DUET_F32, 4), *d = duet_new(DUET_F64, 4), *i = duet_new(DUET_I32, 4),
                *w = duet_new(DUET_F32, 3), *null = NULL;
    GOES(duet_set(x, 3));
    FAILS(duet_noise_uniform(x, d, 1), DUET_BAD_TYPE, "duet_cast");
    FAILS(duet_noise_normal(x, i, 1), DUET_BAD_TYPE, "common element type");
    FAILS(duet_noise_logistic(i, x, 1), DUET_BAD_TYPE, "duet_noise_logistic(to: i32[4])");
    FAILS(duet_noise_ranged(x, w, 1, 2), DUET_BAD_SHAPE, "broadcast");
    FAILS(duet_noise_bernoulli(x, i, 1), DUET_BAD_TYPE, "floating point, not i32");
    FAILS(duet_noise_uniform(null, x, 1), DUET_BAD_ARGUMENT, "NULL");
    FAILS(duet_noise_uniform(x, duet_add(x, null), 1), DUET_BAD_ARGUMENT, "NULL");
    CHECK(*(const float *)duet_read(x) == 3, "a failed statement has changed its destination");
    duet_expr e = duet_add(x, 1);
    FAILS(duet_noise_uniform(i, e, 1), DUET_BAD_TYPE, "floating point");
    CHECK(duet_drop(e) == DUET_SPENT, "a failed statement did not consume its formula");
    duet_free(&x);
    duet_free(&d);
    duet_free(&i);
    duet_free(&w);
    tap_point("invalid arguments of noise");
}

/* ---- shuffles ---- */

static void shuffled(duet_dtype t, const sizes *s, int axis, enum view view, bool in_place)
{
    for (int p = 0; p < places; p++) {
        duet_matrix *from = view_like(view, t == DUET_C64 || t == DUET_C128 ? DUET_F32 : t, s), *to = from,
                    *order = duet_new(DUET_I64, s->size[axis]);
        if (!in_place) to = view_like((enum view)rng_below(&gen, VIEWS), duet_type(from), s);
        const size_t bytes = dtypes[duet_type(from)].bytes;
        char *was = elements(from);
        DUET_ON(DUET_CPU) GOES(duet_random_permutation(order, 11));
        DUET_ON(place[p]) GOES(duet_shuffle(to, from, axis - (rng_chance(&gen, 50) ? s->rank : 0), 11));
        char *got = elements(to);
        const int64_t *o = duet_read(order);
        int64_t inner = 1, wrong = 0;
        for (int a = axis + 1; a < s->rank; a++) inner *= s->size[a];
        for (int64_t i = 0; i < duet_count(to); i++) {
            const int64_t at = i / inner % s->size[axis], source = i + (o[at] - at) * inner;
            wrong += memcmp(got + i * (int64_t)bytes, was + source * (int64_t)bytes, bytes) != 0;
        }
        CHECK(!wrong, "a shuffle of %s along axis %d on %s%s: %lld elements are wrong",
              dtypes[duet_type(to)].name, axis, place_name(place[p]), in_place ? ", in place" : "",
              (long long)wrong);
        if (to != from) duet_free(&to);
        free(was);
        free(got);
        duet_free(&from);
        duet_free(&order);
    }
}

static void shuffles(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3), *y = duet_new(DUET_F32, 4), *i = duet_new(DUET_I32, 3),
                *none = duet_new(DUET_F32);
    FOR_REAL_TYPES (t)
        for (int s = 0; s < SHAPES; s++)
            for (int axis = 0; axis < shapes[s].rank; axis++)
                for (int n = 0; n < 3; n++)
                    shuffled(t, &shapes[s], axis, (enum view)rng_below(&gen, VIEWS), n == 2);
    FAILS(duet_shuffle(x, y, 0, 1), DUET_BAD_SHAPE, "same shape");
    FAILS(duet_shuffle(x, i, 0, 1), DUET_BAD_TYPE, "same element type");
    FAILS(duet_shuffle(x, x, 1, 1), DUET_BAD_SHAPE, "out of range");
    FAILS(duet_shuffle(none, none, 0, 1), DUET_BAD_SHAPE, "out of range");
    FAILS(duet_shuffle(x, NULL, 0, 1), DUET_BAD_ARGUMENT, "NULL");
    int orders[27] = { 0 };
    for (int seed = 0; seed < 6000; seed++) {
        float *p = duet_overwrite(x);
        p[0] = 0;
        p[1] = 1;
        p[2] = 2;
        GOES(duet_shuffle(x, x, 0, (uint64_t)seed));
        const float *q = duet_read(x);
        orders[(int)(9 * q[0] + 3 * q[1] + q[2])]++;
    }
    static const int all[] = { 5, 7, 11, 15, 19, 21 };
    for (int k = 0; k < 6; k++)
        CHECK(abs(orders[all[k]] - 1000) < 6 * 29, "order %d comes %d times of 6000", k, orders[all[k]]);
    duet_free(&x);
    duet_free(&y);
    duet_free(&i);
    duet_free(&none);
    tap_point("shuffles");
}

/* ---- sequences ---- */

static bool is_counted(duet_dtype t, const void *p, int64_t i, double start, double by)
{
    if (t == DUET_F64) return element_value(t, p, i) == fma((double)i, by, start);
    if (is_floating(t))
        return element_value(t, p, i) == converted(DUET_F32, t, fmaf((float)i, (float)by, (float)start));
    const uint64_t want =
        (start < 0 ? (uint64_t)(int64_t)start : (uint64_t)start) + (uint64_t)i * (uint64_t)(int64_t)by;
    const long double is = element_value(t, p, i);
    return (want ^ (is < 0 ? (uint64_t)(int64_t)is : (uint64_t)is)) << (64 - 8 * dtypes[t].bytes) == 0;
}

static void sequence_of(duet_dtype t, const sizes *s, enum view view, double start, double by)
{
    for (int p = 0; p < places; p++) {
        duet_matrix *m = view_like(view, t, s);
        DUET_ON(place[p]) GOES(duet_sequence(m, start, by));
        void *got = elements(m);
        int64_t wrong = 0;
        for (int64_t i = 0; i < duet_count(m); i++) wrong += !is_counted(t, got, i, start, by);
        CHECK(!wrong, "a sequence of %s, %s, on %s: %lld elements are wrong", dtypes[t].name,
              view_names[view], place_name(place[p]), (long long)wrong);
        free(got);
        duet_free(&m);
    }
}

static void sequences(void)
{
    duet_matrix *b = duet_new(DUET_BOOL, 3), *c = duet_new(DUET_C64, 3), *i = duet_new(DUET_I8, 3);
    for (duet_dtype t = 0; t < DUET_BOOL; t++)
        for (int s = 0; s < SHAPES; s++)
            for (enum view view = 0; view < VIEWS; view++) {
                sequence_of(t, &shapes[s], view, 0, 1);
                sequence_of(t, &shapes[s], view, is_floating(t) ? 0.3 : 100, is_floating(t) ? -0.7 : 3);
            }
    for (int s = 0; s < SHAPES; s++) sequence_of(DUET_U64, &shapes[s], VIEW_NONE, 0x1p63 + 4096, -3);
    FAILS(duet_sequence(b, 0, 1), DUET_BAD_TYPE, "integer or floating-point");
    FAILS(duet_sequence(c, 0, 1), DUET_BAD_TYPE, "integer or floating-point");
    FAILS(duet_sequence(i, 0, 0.5), DUET_BAD_TYPE, "by (0.5) must be an integer");
    FAILS(duet_sequence(i, 1e30, 1), DUET_BAD_ARGUMENT, "range");
    FAILS(duet_sequence(NULL, 0, 1), DUET_BAD_ARGUMENT, "NULL");
    duet_free(&b);
    duet_free(&c);
    duet_free(&i);
    tap_point("sequences");
}

int main(void)
{
    gen = rng_new(5);
    places = list_places(place);
    distributions();
    refusals_of_laws();
    noises();
    coins();
    refusals_of_noise();
    shuffles();
    sequences();
    return tap_end();
}
