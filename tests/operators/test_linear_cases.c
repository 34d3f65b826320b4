/* test_linear_cases.c - linear algebra without a result: singular matrices, NaN, overflow, bad
 * input; in formulas and in place, repeatedly, recorded; and cases that ETL computes wrong. On
 * every machine. Compiled a second time with COMPLEX. */
#include "linear_trial.h"

/* ---- no result ---- */

static void fill(duet_matrix *m, double x) { CHECK(duet_set(m, x) == DUET_OK, "%s", duet_error()); }

static bool holds(const duet_matrix *m, double x)
{
    wides t = wides_of(m);
    bool all = true;
    for (int64_t i = 0; i < t.m * t.n; i++) all &= t.v[i] == (wide)(float)x;
    wides_free(&t);
    return all;
}

static void refused(duet_status got, duet_status want, const char *word, const char *what)
{
    CHECK(got == want && strstr(duet_error(), word), "%s on the %s: status %d, not %d: %s", what,
          place_name(here), (int)got, (int)want, duet_error());
}

/* The statement fails with this status and this word in the text, and the destination is unchanged. */
#define REFUSED(to, e, status, word)                                                                         \
    (fill(to, 7), refused(duet_set_on(here, to, e), status, word, #e),                                       \
     CHECK(holds(to, 7), "%s has changed its destination", #e))
#define REFUSES(call, status, word)                                                                          \
    do {                                                                                                     \
        duet_status st_ = DUET_OK;                                                                           \
        DUET_ON(here) st_ = call;                                                                            \
        refused(st_, status, word, #call);                                                                   \
    } while (0)

static duet_matrix *from(duet_dtype t, int64_t m, int64_t n, const double *x)
{
    duet_matrix *a = duet_new(t, m, n);
    for (int64_t i = 0; i < m * n; i++) put(a, i / n, i % n, x[i]);
    return a;
}

static void test_singular(duet_dtype t)
{
    const double dependent[] = { 1, 2, 4, 2, 4, 8, 1, 0, 1 };
    const double singular[] = { 1, 2, 0, 2, 1, 0, 0, 0, 0 }, indefinite[] = { 1, 2, 0, 2, 1, 0, 0, 0, 1 },
                 zero[] = { 1, 2, 3, 0, 0, 1, 0, 0, 5 };
    duet_matrix *a = from(t, 3, 3, singular), *d = from(t, 3, 3, indefinite), *z = from(t, 3, 3, zero),
                *x = duet_new(t, 3, 3), *b = duet_new(t, 3), *y = duet_new(t, 3), *n = duet_new(t),
                *e = duet_new(dtype_part(t)), *none = duet_new(t, 3, 3), *p = duet_new(DUET_I64, 3),
                *l = duet_new(t, 3, 3);
    fill(b, 1);
    REFUSED(x, duet_inv(a), DUET_SINGULAR, "pivot 3");
    duet_matrix *rows = from(t, 3, 3, dependent);
    REFUSED(x, duet_inv(rows), DUET_SINGULAR, "pivot");
    duet_free(&rows);
    REFUSED(x, duet_inv(none), DUET_SINGULAR, "pivot 1");
    REFUSED(y, duet_solve(a, b), DUET_SINGULAR, "pivot 3");
    if (dtype_part(t) == DUET_F64)
        REFUSED(y, duet_solve(a, b, .refine = DUET_REFINE_F32), DUET_SINGULAR, "pivot 3");
    REFUSED(x, duet_add(duet_mul(2, duet_solve(a, duet_add(d, 1))), 1), DUET_SINGULAR, "pivot 3");
    REFUSED(x, duet_cholesky(d), DUET_SINGULAR, "order 2");
    REFUSED(y, duet_solve_triangular(z, b), DUET_SINGULAR, "pivot 2");
    if (set(n, duet_det(a), "det of a singular matrix is not 0"))
        CHECK(holds(n, 0), "det of a singular matrix is not 0");
    if (set(e, duet_logdet(none), "logdet of a zero matrix is wrong"))
        CHECK(holds(e, -INFINITY), "logdet of a zero matrix is wrong");
    if (FACTOR(duet_slogdet(n, e, none)))
        CHECK(holds(n, 0) && holds(e, -INFINITY), "slogdet of a zero matrix is wrong");
    if (FACTOR(duet_lu(x, l, p, none))) CHECK(holds(l, 0), "lu of a zero matrix is wrong");
    duet_matrix **all[] = { &a, &d, &z, &x, &b, &y, &n, &e, &none, &p, &l };
    for (int i = 0; i < 11; i++) duet_free(all[i]);
}

/* A NaN or infinity anywhere is an error for all operators. */
static void spoilt(duet_dtype t, double bad)
{
    enum { N = 6 };
    made a = new_kind(t, POSITIVE, N, N), b = new_made(t, 1, N, 0), good = new_kind(t, POSITIVE, N, N);
    duet_matrix *x = duet_new(t, N, N), *z = duet_new(t, N, N), *y = duet_new(t, N), *n = duet_new(t),
                *e = duet_new(dtype_part(t)), *w = duet_new(dtype_part(t), N), *p = duet_new(DUET_I64, N);
    put(a.m, 4, 2, bad);
    put(b.m, 3, 0, bad);
    REFUSED(x, duet_inv(a.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(n, duet_det(a.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(e, duet_logdet(a.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(x, duet_cholesky(a.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(w, duet_eigvalsh(a.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(w, duet_svdvals(a.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(x, duet_solve(a.m, good.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(y, duet_solve(good.m, b.m), DUET_NOT_FINITE, "element of b is");
    if (t == DUET_F64)
        REFUSED(y, duet_solve(good.m, b.m, .refine = DUET_REFINE_F32), DUET_NOT_FINITE, "element of b is");
    REFUSED(y, duet_lstsq(good.m, b.m), DUET_NOT_FINITE, "element of b is");
    REFUSED(x, duet_lstsq(a.m, good.m), DUET_NOT_FINITE, "element of a is");
    REFUSED(x, duet_solve_triangular(a.m, good.m, .lower = 1), DUET_NOT_FINITE, "element of a is");
    if (set(x, duet_solve_triangular(a.m, good.m), "an upper triangle beside a NaN"))
        CHECK(!holds(x, 7), "the system was not solved");
    fill(x, 7);
    fill(z, 7);
    fill(w, 7);
    fill(n, 7);
    fill(e, 7);
    REFUSES(duet_lu(x, z, p, a.m), DUET_NOT_FINITE, "element of a is");
    REFUSES(duet_qr(x, z, a.m), DUET_NOT_FINITE, "element of a is");
    REFUSES(duet_svd(x, w, z, a.m), DUET_NOT_FINITE, "element of a is");
    REFUSES(duet_eigh(w, z, a.m), DUET_NOT_FINITE, "element of a is");
    REFUSES(duet_slogdet(n, e, a.m), DUET_NOT_FINITE, "element of a is");
    CHECK(holds(x, 7) && holds(w, 7) && holds(z, 7) && holds(n, 7) && holds(e, 7),
          "a failed factorisation has changed a destination");
    end(&a);
    end(&b);
    end(&good);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&n);
    duet_free(&e);
    duet_free(&w);
    duet_free(&p);
}

static void test_spoilt(duet_dtype t)
{
    spoilt(t, NAN);
    spoilt(t, INFINITY);
    spoilt(t, -INFINITY);
}

/* Results beyond the type are errors, not infinities. */
static void test_overflow(duet_dtype t)
{
    const double tiny = dtype_part(t) == DUET_F32 ? 1e-44 : 5e-324, x[] = { tiny, 0, 0, 1 };
    duet_matrix *a = from(t, 2, 2, x), *to = duet_new(t, 2, 2);
    REFUSED(to, duet_inv(a), DUET_NOT_FINITE, "overflows");
    REFUSED(to, duet_solve_triangular(a, duet_add(duet_mul(a, 0), 1)), DUET_NOT_FINITE, "overflows");
    REFUSED(to, duet_solve(a, duet_add(duet_mul(a, 0), 1)), DUET_NOT_FINITE, "overflows");
    duet_free(&a);
    duet_free(&to);
}

static void holds_about(const duet_matrix *m, int64_t k, number want, const char *what)
{
    wides x = wides_of(m);
    const wide off = size_of(x.v[k] - want);
    CHECK(off <= 20 * eps_of(duet_type(m)) * size_of(want), "%s: element %d is off by %Lg", what, (int)k,
          off);
    wides_free(&x);
}

/* An infinite factor must not become a divisor: 1, -1; m, m. */
static void beside_limit(duet_dtype t, double most)
{
    const double x[] = { 1, -1, most, most };
    duet_matrix *a = from(t, 2, 2, x), *b = duet_new(t, 2), *inverse = duet_new(t, 2, 2), *y = duet_new(t, 2);
    put(b, 1, 0, most);
    if (set(inverse, duet_inv(a), "inv")) {
        holds_about(inverse, 0, 0.5L, "inv");
        holds_about(inverse, 2, -0.5L, "inv");
    }
    if (set(y, duet_solve(a, b), "solve")) {
        holds_about(y, 0, 0.5L, "solve");
        holds_about(y, 1, 0.5L, "solve");
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&inverse);
    duet_free(&y);
}

/* 2 z, z; 0, z, and z (3/2, 1/2), which is that times 1/2, 1/2. */
static void at_limit(duet_dtype t, number z, bool large)
{
    duet_matrix *a = duet_new(t, 2, 2), *b = duet_new(t, 2), *x = duet_new(t, 2), *l = duet_new(t, 2, 2),
                *u = duet_new(t, 2, 2), *p = duet_new(DUET_I64, 2), *down = duet_transposed(a);
    put(a, 0, 0, 2 * z);
    put(a, 0, 1, z);
    put(a, 1, 1, z);
    put(b, 0, 0, 1.5L * z);
    put(b, 1, 0, z / 2);
    if (set(x, duet_solve(a, b), "solve")) {
        holds_about(x, 0, 0.5L, "solve");
        holds_about(x, 1, 0.5L, "solve");
    }
    if (large && set(x, duet_solve_triangular(a, b), "solve_triangular")) {
        holds_about(x, 0, 0.5L, "solve_triangular");
        holds_about(x, 1, 0.5L, "solve_triangular");
    }
    if (FACTOR(duet_lu(l, u, p, down))) {
        holds_about(l, 2, 0.5L, "lu");
        holds_about(u, 0, 2 * z, "lu");
        holds_about(u, 3, z, "lu");
    }
    duet_matrix **all[] = { &a, &b, &x, &l, &u, &p, &down };
    for (int i = 0; i < 7; i++) duet_free(all[i]);
}

/* z and its conjugate on a diagonal. */
static void sign_at_limit(duet_dtype t, number z)
{
    duet_matrix *a = duet_new(t, 2, 2), *sign = duet_new(t), *log = duet_new(dtype_part(t));
    put(a, 0, 0, z);
    put(a, 1, 1, conjugate_of(z));
    if (FACTOR(duet_slogdet(sign, log, a))) {
        holds_about(sign, 0, 1, "slogdet");
        holds_about(log, 0, 2 * logl(size_of(z)), "slogdet");
    }
    duet_free(&a);
    duet_free(&sign);
    duet_free(&log);
}

/* A diagonal with numbers near both limits of the type: any scaling that brings one into range
 * moves the other out. */
static void between_limits(duet_dtype t, double most, double least)
{
    const double x[] = { most, 0, 0, least };
    duet_matrix *a = from(t, 2, 2, x), *b = duet_new(t, 2), *inverse = duet_new(t, 2, 2), *y = duet_new(t, 2),
                *det = duet_new(t);
    put(b, 0, 0, (wide)most);
    put(b, 1, 0, (wide)least);
    if (set(det, duet_det(a), "det")) holds_about(det, 0, (wide)most * (wide)least, "det");
    if (set(inverse, duet_inv(a), "inv")) holds_about(inverse, 3, 1 / (wide)least, "inv");
    if (set(y, duet_solve(a, b), "solve")) {
        holds_about(y, 0, 1, "solve");
        holds_about(y, 1, 1, "solve");
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&inverse);
    duet_free(&y);
    duet_free(&det);
}

static void all_between_limits(duet_dtype t)
{
    static const double narrow[][2] = {
        { 8e37, 1.25e-38 }, { 1e38, 1e-35 }, { 3e38, 4e-36 }, { 3e38, 1e-30 }
    };
    static const double large[][2] = { { 1.7e308, 1e-300 }, { 8e307, 1.25e-308 }, { 1e300, 1e-300 } };
    for (int i = 0; i < 4 && t == DUET_F32; i++) between_limits(t, narrow[i][0], narrow[i][1]);
    for (int i = 0; i < 3 && t == DUET_F64; i++) between_limits(t, large[i][0], large[i][1]);
}

/* .refine with subnormal elements. */
static void refined_at_limit(void)
{
    const double x[] = { 1e-310, 1e-311, 1e-311, 1e-310 };
    duet_matrix *a = from(DUET_F64, 2, 2, x), *b = duet_new(DUET_F64, 2), *y = duet_new(DUET_F64, 2);
    put(b, 0, 0, 1e-310L);
    put(b, 1, 0, 1e-311L);
    if (set(y, duet_solve(a, b, .refine = DUET_REFINE_F32), "solve, refined"))
        CHECK(fabs(*(const double *)duet_read(y) - 1) <= 1e-12,
              "the refined solution of a subnormal system is not 1");
    duet_free(&a);
    duet_free(&b);
    duet_free(&y);
}

/* On the CPU, whose libraries use reciprocals of pivots. */
static void limits(duet_dtype t)
{
    all_between_limits(t);
    if (t == DUET_F64) refined_at_limit();
    const bool narrow = dtype_part(t) == DUET_F32;
    const wide large = 0.875L * (narrow ? 0x1p127L : 0x1p1023L), least = narrow ? 0x1p-140L : 0x1p-1060L;
    beside_limit(t, narrow ? 3e38 : 1.5e308);
    at_limit(t, number_of(large, large), true);
    at_limit(t, number_of(large, 0), true);
    at_limit(t, number_of(least, least), false);
    sign_at_limit(t, number_of(2 * large, 2 * large));
    sign_at_limit(t, number_of(least, -least));
}

/* Elements near the limit of the type. A determinant beyond it is infinite, and has a logarithm. */
static void test_large(duet_dtype t)
{
    const double most = dtype_part(t) == DUET_F32 ? 3e38 : 1.5e308, x[] = { 1, -1, most, most };
    duet_matrix *a = from(t, 2, 2, x), *one = from(t, 1, 1, &most), *n = duet_new(t),
                *e = duet_new(dtype_part(t));
    if (set(n, duet_det(a), "det of large numbers")) {
        wides d = wides_of(n);
        CHECK(real_of(d.v[0]) == INFINITY, "the determinant of large numbers is not infinite");
        wides_free(&d);
    }
    if (FACTOR(duet_slogdet(n, e, a))) {
        wides sign = wides_of(n), l = wides_of(e);
        const wide want = logl(2) + logl(most);
        CHECK(fabsl(real_of(l.v[0]) - want) <= 1e-6L * want && size_of(sign.v[0] - 1) < 1e-6L,
              "slogdet of large numbers is %Lg, not %Lg", real_of(l.v[0]), want);
        wides_free(&sign);
        wides_free(&l);
    }
    const bool is_pair = dtype_is_complex(t);
    if (is_pair) CHECK(duet_set(one, duet_complex(most, most)) == DUET_OK, "%s", duet_error());
    if (set(e, duet_logdet(one), "logdet of a large number")) {
        wides l = wides_of(e);
        const wide want = logl(most) + (is_pair ? logl(2) / 2 : 0);
        CHECK(fabsl(real_of(l.v[0]) - want) <= 1e-6L * want, "logdet of a large number is %Lg, not %Lg",
              real_of(l.v[0]), want);
        wides_free(&l);
    }
    if (here == DUET_CPU) limits(t);
    duet_free(&a);
    duet_free(&one);
    duet_free(&n);
    duet_free(&e);
}

/* ---- bad input ---- */

static void test_bad(duet_dtype t)
{
    duet_matrix *a = duet_new(t, 3, 3), *wide_ = duet_new(t, 3, 4), *v = duet_new(t, 3),
                *x = duet_new(t, 3, 3), *y = duet_new(t, 3, 3), *p = duet_new(DUET_I64, 3),
                *other = duet_new(own_types[t == own_types[0]], 3, 3), *n = duet_new(t),
                *part = duet_submatrix(x, 0, 0, 3, 3), *freed = NULL;
    REFUSED(x, duet_inv(wide_), DUET_BAD_SHAPE, "a must be square");
    REFUSED(x, duet_inv(v), DUET_BAD_SHAPE, "a must have at least 2 axes, not 1");
    REFUSED(n, duet_det(wide_), DUET_BAD_SHAPE, "a must be square");
    REFUSED(x, duet_solve(a, duet_transpose(wide_)), DUET_BAD_SHAPE, "the columns of a");
    REFUSED(x, duet_solve(a, other), DUET_BAD_TYPE, "");
    REFUSED(x, duet_solve(a, a, .refine = 9), DUET_BAD_ARGUMENT, "refine");
    REFUSED(x, duet_inv(p), DUET_BAD_TYPE, "");
    if (dtype_part(t) == DUET_F32)
        REFUSED(x, duet_solve(a, a, .refine = DUET_REFINE_F32), DUET_UNSUPPORTED, "f64 and c128");
    REFUSES(duet_qr(x, y, v), DUET_BAD_SHAPE, "a must have at least 2 axes");
    REFUSES(duet_qr(x, v, a), DUET_BAD_SHAPE, "r must be");
    REFUSES(duet_qr(x, other, a), DUET_BAD_TYPE, "r must be");
    REFUSES(duet_qr(x, part, a), DUET_BAD_ARGUMENT, "overlap");
    REFUSES(duet_qr(x, freed, a), DUET_BAD_ARGUMENT, "");
    REFUSES(duet_lu(x, y, v, a), DUET_BAD_TYPE, "p must be i64[3]");
    REFUSES(duet_eigh(v, x, wide_), DUET_BAD_SHAPE, "a must be square");
    REFUSES(duet_qr(x, y, p), DUET_BAD_TYPE, "f32, f64, c64 or c128");
    duet_matrix **all[] = { &a, &wide_, &v, &x, &y, &p, &other, &n, &part };
    for (int i = 0; i < 9; i++) duet_free(all[i]);
}

/* ---- in formulas, in place, repeated ---- */

static void test_composed(duet_dtype t)
{
    enum { N = 9 };
    made a = new_kind(t, POSITIVE, N, N);
    duet_matrix *x = duet_new(t, N, N), *y = duet_new(t, N, N), *turned = duet_transposed(a.m),
                *q = duet_new(t, N, N), *r = duet_new(t, N, N);
    wides A = wides_of(a.m), before = wides_transposed(&A); /* a.m must become the transpose of the inverse */
    const wide eps = eps_of(t);
    if (set(x, duet_sub(duet_matmul(duet_inv(duet_add(a.m, 0.5)), duet_add(a.m, 0.5)), 0),
            "a product with an inverse")) {
        wides X = wides_of(x), unit = wides_unit(N);
        CHECK(norm_difference(&X, &unit) <= THRESHOLD * N * eps * 10,
              "a product with an inverse is off by %Lg", norm_difference(&X, &unit));
        wides_free(&X);
        wides_free(&unit);
    }
    if (set(turned, duet_inv(a.m), "in place, transposed") && set(x, DUET(turned), "x")) {
        wides X = wides_of(x);
        small(ratio(norm_rest(NULL, &A, &X), norm1(&A) * norm1(&X), N, eps), "in place, transposed", t, N, N,
              here);
        wides_free(&X);
    }
    if (set(a.m, duet_inv(a.m), "in place")) {
        wides X = wides_of(a.m);
        CHECK(norm_difference(&X, &before) <= 2 * THRESHOLD * N * eps * norm1(&before) * 10,
              "the inverse of the inverse differs from the matrix");
        wides_free(&X);
    }
    if (FACTOR(duet_qr(q, r, a.m)) && set(x, DUET(a.m), "a copy") && FACTOR(duet_qr(a.m, y, a.m)))
        for (int i = 0; i < 2; i++) {
            wides one = wides_of(i ? r : q), two = wides_of(i ? y : a.m);
            CHECK(norm_difference(&one, &two) == 0, "a factor that overwrites its operand differs");
            wides_free(&one);
            wides_free(&two);
        }
    wides_free(&A);
    wides_free(&before);
    end(&a);
    duet_free(&x);
    duet_free(&y);
    duet_free(&turned);
    duet_free(&q);
    duet_free(&r);
}

/* After the first calls nothing is planned or allocated again. */
static void test_again(duet_dtype t)
{
    made a = new_kind(t, POSITIVE, 12, 12), b = new_made(t, 1, 12, 0);
    duet_matrix *x = duet_new(t, 12, 12), *y = duet_new(t, 12), *w = duet_new(dtype_part(t), 12),
                *q = duet_new(t, 12, 12);
    duet_counts before = { 0 };
    for (int i = 0; i < 6; i++) {
        if (i == 3) before = duet_stats();
        set(x, duet_inv(a.m), "inv");
        set(y, duet_solve(a.m, b.m), "solve");
        set(y, duet_lstsq(a.m, b.m), "lstsq");
        set(x, duet_cholesky(a.m), "cholesky");
        FACTOR(duet_qr(x, q, a.m));
        FACTOR(duet_svd(x, w, q, a.m));
        FACTOR(duet_eigh(w, q, a.m));
    }
    const duet_counts now = duet_stats();
    CHECK(now.pool_misses == before.pool_misses, "%d blocks were not from the pool",
          (int)(now.pool_misses - before.pool_misses));
    CHECK(now.plan_misses == before.plan_misses, "%d plans were not cached",
          (int)(now.plan_misses - before.plan_misses));
    end(&a);
    end(&b);
    duet_free(&x);
    duet_free(&y);
    duet_free(&w);
    duet_free(&q);
}

/* A replay computes again, and reports an error if there is no result any more. */
static void test_recorded(duet_dtype t)
{
    enum { N = 5 };
    made a = new_kind(t, POSITIVE, N, N);
    duet_matrix *x = duet_new(t, N, N), *q = duet_new(t, N, N), *r = duet_new(t, N, N),
                *y = duet_new(t, N, N);
    duet_recording *recording = NULL;
    if (went(duet_record_begin(), "record")) {
        set(y, duet_mul(a.m, 2), "mul");
        set(x, duet_inv(y), "inv");
        FACTOR(duet_qr(q, r, x));
        set(y, duet_add(x, q), "add");
        recording = duet_record_end();
        CHECK(recording != NULL, "%s", duet_error());
    }
    for (int turn = 0; turn < 3 && recording; turn++) {
        put(a.m, 0, 0, 3 + turn + 2 * N);
        if (!went(duet_replay(recording), "a replay")) break;
        wides A = wides_of(a.m), X = wides_of(x), Q = wides_of(q), R = wides_of(r);
        for (int64_t i = 0; i < N * N; i++) A.v[i] *= 2;
        small(ratio(norm_rest(NULL, &A, &X), norm1(&A) * norm1(&X), N, eps_of(t)), "a replay", t, N, N, here);
        small(ratio(norm_rest(&X, &Q, &R), norm1(&X), N, eps_of(t)), "a replayed qr", t, N, N, here);
        wides_free(&A);
        wides_free(&X);
        wides_free(&Q);
        wides_free(&R);
    }
    fill(a.m, 0);
    if (recording)
        refused(duet_replay(recording), DUET_SINGULAR, "pivot 1", "a replay of what is singular now");
    duet_recording_free(&recording);
    end(&a);
    duet_free(&x);
    duet_free(&q);
    duet_free(&r);
    duet_free(&y);
}

/* ---- cases that ETL computes wrong: the sign of det, pivots, the inverse of a singular matrix
 * ---- */

static void test_etl(duet_dtype t)
{
    enum { N = 200 };
    const double swaps[] = { 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0 };
    duet_matrix *two = from(t, 4, 4, swaps), *d = duet_new(t), *p = duet_new(DUET_I64, N);
    if (set(d, duet_det(two), "det")) CHECK(holds(d, 1), "det of two swaps is not 1");
    made a = new_kind(t, UNIFORM, N, N);
    duet_matrix *l = duet_new(t, N, N), *u = duet_new(t, N, N);
    if (FACTOR(duet_lu(l, u, p, a.m))) {
        wides U = wides_of(u), L = wides_of(l);
        wide most = 0;
        for (int64_t i = 0; i < N * N; i++) {
            most = fmaxl(most, size_of(U.v[i]));
            CHECK(size_of(L.v[i]) <= (dtype_is_complex(t) ? 1.5L : 1),
                  "a pivot is not the largest element of its column");
        }
        CHECK(most < N, "U grows to %Lg", most);
        wides_free(&U);
        wides_free(&L);
    }
    check_inverse(t, a.m, N);
    end(&a);
    duet_free(&two);
    duet_free(&d);
    duet_free(&l);
    duet_free(&u);
    duet_free(&p);
}

/* ---- complex matrices only ---- */

#ifdef COMPLEX
static number i_times(number x) { return number_of(-imaginary_of(x), real_of(x)); }

static bool near(const duet_matrix *m, int64_t k, number want, wide off)
{
    wides x = wides_of(m);
    const wide d = size_of(x.v[k] - want);
    wides_free(&x);
    return CHECK(d <= off, "element %d on the %s is off by %Lg", (int)k, place_name(here), d);
}

/* By hand: eigenvalues 1 and 3 of 2, -i; i, 2; singular values 1 and 2 of i, 0; 0, 2, whose
 * determinant is 2 i. */
static void test_known(duet_dtype t)
{
    const duet_dtype part = dtype_part(t);
    const wide off = 10 * eps_of(t);
    duet_matrix *h = duet_new(t, 2, 2), *d = duet_new(t, 2, 2), *w = duet_new(part, 2),
                *v = duet_new(t, 2, 2), *x = duet_new(t), *log = duet_new(part),
                *doubled = duet_new(DUET_F64, 2);
    put(h, 0, 0, number_of(2, 5));
    put(h, 1, 0, number_of(0, 1));
    put(h, 0, 1, NAN);
    put(h, 1, 1, 2);
    put(d, 0, 0, number_of(0, 1));
    put(d, 1, 1, 2);
    if (set(w, duet_eigvalsh(h), "eigvalsh")) {
        near(w, 0, 1, off);
        near(w, 1, 3, off);
    }
    if (set(doubled, duet_mul(duet_eigvalsh(h), 2), "eigvalsh to f64")) {
        near(doubled, 0, 2, off);
        near(doubled, 1, 6, off);
    }
    if (FACTOR(duet_eigh(w, v, h))) { /* eigenvector of 3: x, i x */
        wides V = wides_of(v);
        near(v, 3, i_times(*at(&V, 0, 1)), off);
        wides_free(&V);
    }
    if (set(w, duet_svdvals(d), "svdvals")) {
        near(w, 0, 2, off);
        near(w, 1, 1, off);
    }
    if (set(x, duet_det(d), "det")) near(x, 0, number_of(0, 2), off);
    if (set(log, duet_logdet(d), "logdet")) near(log, 0, logl(2), off);
    if (FACTOR(duet_slogdet(x, log, d))) {
        near(x, 0, number_of(0, 1), off);
        near(log, 0, logl(2), off);
    }
    if (set(v, duet_cholesky(h), "cholesky")) {
        near(v, 2, number_of(0, 1 / sqrtl(2)), off);
        near(v, 3, sqrtl(1.5L), off);
    }
    duet_matrix **all[] = { &h, &d, &w, &v, &x, &log, &doubled };
    for (int i = 0; i < 7; i++) duet_free(all[i]);
}

/* |b - A^H x| of A^H x = b, where A^H is a formula of a view, transposed or backwards. */
static void check_adjoint(duet_dtype t, int64_t n, bool backwards)
{
    made a = new_kind(t, UNIFORM, n, n), b = new_made(t, 1, n, 0), x = new_made(t, 1, n, 0);
    duet_matrix *of = backwards ? duet_flipped(a.m, 0) : duet_transposed(a.m);
    if (set(x.m,
            duet_mul(duet_solve(duet_conj(duet_transpose(of)), duet_mul(b.m, duet_complex(0, 2))),
                     duet_complex(0, -0.5)),
            "solve with a formula")) {
        wides A = wides_of(of), back = wides_turned(&A), B = wides_of(b.m), X = wides_of(x.m);
        small(ratio(norm_rest(&B, &back, &X), norm1(&back) * norm1(&X), n, eps_of(t)), "solve with a formula",
              t, n, 1, here);
        wides_free(&A);
        wides_free(&back);
        wides_free(&B);
        wides_free(&X);
    }
    duet_free(&of);
    end(&a);
    end(&b);
    end(&x);
}

/* Cholesky of A A^H + n, then a solution by two triangles, the second of which is the conjugate
 * transpose of the first, as a formula. */
static void check_gram(duet_dtype t, int64_t n)
{
    made a = new_kind(t, UNIFORM, n, n), b = new_made(t, 2, n, 3), x = new_made(t, 2, n, 3),
         g = new_made(t, 2, n, n), l = new_made(t, 2, n, n);
    bool went_on = set(g.m, duet_matmul(a.m, duet_conj(duet_transpose(a.m))), "A A^H");
    for (int64_t i = 0; i < n && went_on; i++) {
        wides G = wides_of(g.m);
        put(g.m, i, i, real_of(*at(&G, i, i)) + (wide)n);
        wides_free(&G);
    }
    went_on = went_on && set(l.m, duet_cholesky(g.m), "cholesky") &&
              set(x.m,
                  duet_solve_triangular(duet_conj(duet_transpose(l.m)),
                                        duet_solve_triangular(l.m, b.m, .lower = 1)),
                  "by L");
    if (went_on) {
        wides G = wides_of(g.m), B = wides_of(b.m), X = wides_of(x.m);
        small(ratio(norm_rest(&B, &G, &X), norm1(&G) * norm1(&X), n, eps_of(t)), "by Cholesky", t, n, 3,
              here);
        wides_free(&G);
        wides_free(&B);
        wides_free(&X);
    }
    end(&a);
    end(&b);
    end(&x);
    end(&g);
    end(&l);
}

static void test_conjugates(duet_dtype t)
{
    static const int64_t some[] = { 1, 2, 16, 33, 100 };
    for (int i = 0; i < 5 - quick; i++) {
        check_adjoint(t, some[i], false);
        check_adjoint(t, some[i], true);
        check_gram(t, some[i]);
    }
}

static void test_types(duet_dtype t)
{
    duet_matrix *a = duet_new(t, 3, 3), *x = duet_new(t, 3, 3), *y = duet_new(t, 3),
                *w = duet_new(dtype_part(t), 3), *real = duet_new(dtype_part(t), 3, 3), *n = duet_new(t),
                *e = duet_new(dtype_part(t)), *half = duet_new(DUET_F16, 3, 3),
                *explained = duet_new(t, 3, 3);
    REFUSED(x, duet_solve(a, real), DUET_BAD_TYPE, "same element type");
    REFUSED(x, duet_lstsq(real, a), DUET_BAD_TYPE, "same element type");
    REFUSED(x, duet_inv(duet_complex(1, 2)), DUET_BAD_TYPE, "a complex number");
    REFUSED(x, duet_inv(half), DUET_BAD_TYPE, "f32, f64, c64 or c128");
    REFUSED(w, duet_mul(duet_det(a), 1), DUET_BAD_TYPE, "");
    REFUSES(duet_eigh(y, x, a), DUET_BAD_TYPE, "w must be");
    REFUSES(duet_eigh(w, real, a), DUET_BAD_TYPE, "v must be");
    REFUSES(duet_svd(x, y, explained, a), DUET_BAD_TYPE, "s must be");
    REFUSES(duet_slogdet(e, e, a), DUET_BAD_TYPE, "sign must be");
    REFUSES(duet_slogdet(n, n, a), DUET_BAD_TYPE, "logdet must be");
    duet_matrix **all[] = { &a, &x, &y, &w, &real, &n, &e, &half, &explained };
    for (int i = 0; i < 9; i++) duet_free(all[i]);
}

/* Four times the operations of real matrices, in the same libraries. */
static void test_cost(duet_dtype t)
{
    char text[2000] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    duet_matrix *a = duet_new(t, 10, 10);
    duet_status st = DUET_NO_MEMORY;
    if (out) DUET_ON(here) DUET_EXPLAIN(out) st = duet_set(a, duet_inv(duet_mul(a, duet_complex(0, 1))));
    if (out) fclose(out);
    CHECK(st == DUET_OK && strstr(text, here == DUET_GPU ? "by cuSOLVER" : "by LAPACK") &&
              strstr(text, " 8e+03 flops"),
          "on the %s: %s", place_name(here), text);
    duet_free(&a);
}

static void test_own(void)
{
    each_type(test_known, "known by hand");
    each_type(test_conjugates, "conjugates in formulas");
    each_type(test_types, "types that do not go together");
    each_type(test_cost, "what it costs");
}
#else
static void test_own(void) {}
#endif

int main(int argc, char **argv)
{
    if (!begin(argc, argv)) return 0;
    each_type(test_singular, "singular matrices");
    each_type(test_spoilt, "NaN and infinity");
    each_type(test_overflow, "results beyond the type");
    each_type(test_large, "factors and sizes beyond the type");
    each_type(test_bad, "bad input");
    each_type(test_composed, "formulas, in place");
    each_type(test_again, "again");
    each_type(test_recorded, "recorded");
    each_type(test_etl, "what ETL gets wrong");
    test_own();
    return tap_end();
}
