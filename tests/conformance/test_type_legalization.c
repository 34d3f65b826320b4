/* test_type_legalization.c - products, convolutions, pooling and similar operators of all types:
 * halves and mixed operands in formulas against the oracle; integers whose sums overflow against
 * loops modulo 2^n; unsupported types. test_ops.c has every row in every type. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "element.h"
#include "modes.h"
#include <math.h>

static rng gen;
static duet_place place[2];
static int places;

static bool is_whole(duet_dtype t) { return dtype_is_integer(t); }

/* ---- results and errors ---- */

static duet_status dropped(duet_expr e, duet_dtype *t)
{
    const duet_status s = duet_expr_status(e);
    *t = duet_expr_type(e);
    forget(e);
    return s;
}

#define GIVES(e, want)                                                                                       \
    CHECK(dropped(e, &got) == DUET_OK && got == (want), "%s of %s: %s", #e, dtypes[t].name, dtypes[want].name)
#define REFUSES(e, words)                                                                                    \
    CHECK(dropped(e, &got) == DUET_BAD_TYPE && strstr(duet_error(), words), "%s of %s: %s", #e,              \
          dtypes[t].name, duet_error())
#define GIVES_IF(can, e, words)                                                                              \
    if (can) GIVES(e, t);                                                                                    \
    else REFUSES(e, words)

static void results_of(duet_dtype t)
{
    const bool real = is_floating(t), number = t != DUET_BOOL;
    const size_t bytes = dtypes[t].bytes;
    duet_matrix *x = duet_new(t, 3, 3), *v = duet_new(t, 3), *im = duet_new(t, 1, 1, 3, 3),
                *deep = duet_new(t, 2, 3, 3);
    duet_dtype got;
    GIVES(duet_matmul(x, x), t);
    GIVES(duet_matmul(deep, v), t);
    GIVES(duet_einsum(x, x, "ij,jk->ik"), t);
    GIVES(duet_outer(v, v), t);
    GIVES(duet_upsample2d(im, 2, 2), t);
    GIVES_IF(number, duet_bias_add(x, v), "bool elements are not supported");
    GIVES_IF(real || (number && bytes <= 4), duet_max_pool2d(im, .window = { 2, 2 }), "duet_cast");
    GIVES_IF(real || (number && bytes <= 2), duet_conv2d(im, im), "duet_cast");
    GIVES_IF(real, duet_avg_pool2d(im, .window = { 2, 2 }), "floating point");
    GIVES_IF(real, duet_softmax(x), "floating point");
    GIVES_IF(real, duet_max_pool2d_grad(im, im, .window = { 1, 1 }), "floating point");
    GIVES_IF(real, duet_conv2d_input_grad(im, im), "floating point");
    GIVES_IF(dtype_is_f32_or_f64(t), duet_inv(x), "f32, f64");
    duet_free(&x);
    duet_free(&v);
    duet_free(&im);
    duet_free(&deep);
}

static void results(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 2), *i = duet_new(DUET_I32, 2, 2), *u = duet_new(DUET_U64, 2, 2),
                *c = duet_new(DUET_C64, 2, 2), *h = duet_new(DUET_F16, 2, 2), *b = duet_new(DUET_BF16, 2, 2),
                *d = duet_new(DUET_F64, 2, 2);
    duet_dtype got, t = DUET_F32;
    FOR_REAL_TYPES (real) results_of(real);
    REFUSES(duet_matmul(x, i), "no common element type");
    REFUSES(duet_matmul(i, u), "no common element type");
    GIVES(duet_matmul(c, c), DUET_C64);
    REFUSES(duet_softmax(c), "complex");
    REFUSES(duet_solve(x, d), "the same element type");
    GIVES(duet_matmul(h, b), DUET_F32);
    GIVES(duet_matmul(h, d), DUET_F64);
    CHECK(duet_set(h, duet_matmul(x, x)) == DUET_BAD_TYPE && strstr(duet_error(), "duet_cast"),
          "assigning f32 to f16 did not fail: %s", duet_error());
    duet_free(&x);
    duet_free(&i);
    duet_free(&u);
    duet_free(&c);
    duet_free(&h);
    duet_free(&b);
    duet_free(&d);
    tap_point("result types, and unsupported types");
}

/* ---- formulas of halves and of mixed operands ---- */

static duet_matrix *some(duet_dtype t, enum view view, const sizes *s)
{
    duet_matrix *m = random_view(&gen, view, t, s->rank, s->size, t == DUET_BOOL ? 0 : -2, 2, NULL);
    if (m) return m;
    return random_matrix(&gen, t, s->rank, s->size, t == DUET_BOOL ? 0 : -2, 2);
}
#define SOME(t, ...) some(t, (enum view)rng_below(&gen, VIEWS), &(sizes)SIZES(__VA_ARGS__))

#define RIGHT(m, e)                                                                                          \
    do {                                                                                                     \
        const char *why_ = NULL;                                                                             \
        DUET_ON(where) why_ = oracle_refutes(m, e);                                                          \
        CHECK(!why_, "%s, %s, fusion %s: %s", dtypes[t].name, place_name(where), mode_names[mode], why_);    \
    } while (0)

/* e must equal what the oracle says of `as`, because it has no definition of einsum. */
static void same(duet_matrix *out, duet_expr e, duet_expr as, duet_place where)
{
    table want = oracle(as, duet_type(out));
    duet_status s = DUET_OK;
    DUET_ON(where) s = (duet_set)(out, e);
    const char *why = s == DUET_OK ? oracle_differs(&want, out) : duet_error();
    CHECK(!why, "einsum of %s on %s: %s", dtypes[duet_type(out)].name, place_name(where), why);
    table_free(&want);
    forget(as);
}

static void formulas(duet_dtype t, duet_place where, int mode)
{
    duet_matrix *x = SOME(t, 5, 7), *y = SOME(t, 7, 9), *z = SOME(t, 5, 9), *b = SOME(t, 9),
                *out = duet_new(t, 5, 9), *f = duet_new(DUET_F32, 5, 9), *im = SOME(t, 2, 3, 6, 6),
                *w = SOME(t, 4, 3, 3, 3), *c = SOME(t, 4), *conv = duet_new(t, 2, 4, 6, 6),
                *pooled = duet_new(t, 2, 4, 3, 3), *deep = SOME(t, 2, 5, 7), *more = duet_new(t, 2, 5, 9);
    RIGHT(out, duet_add(duet_mul(0.3, duet_matmul(x, y)), duet_mul(-1.7, z)));
    RIGHT(out, duet_sub(z, duet_matmul(duet_mul(2.5, x), y)));
    RIGHT(out, duet_matmul(duet_exp(duet_mul(0.1, x)), duet_sub(y, 1)));
    RIGHT(out, duet_relu(duet_bias_add(duet_matmul(x, y), b)));
    RIGHT(out, duet_softmax(duet_bias_add(duet_matmul(x, y), b)));
    RIGHT(f, duet_matmul(x, y));
    RIGHT(out, duet_matmul(duet_matmul(x, duet_transpose(x)), z));
    same(out, duet_einsum(y, x, "jk,ij->ik"), duet_matmul(x, y), where);
    RIGHT(more, duet_matmul(deep, y));
    RIGHT(more, duet_mul(duet_matmul(deep, y), z));
    RIGHT(conv, duet_relu(duet_bias_add(duet_conv2d(im, w, .pad = { 1, 1 }), c)));
    RIGHT(pooled, duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(im, w, .pad = { 1, 1 }), c)),
                                  .window = { 2, 2 }));
    RIGHT(pooled, duet_avg_pool2d(conv, .window = { 2, 2 }));
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&b);
    duet_free(&out);
    duet_free(&f);
    duet_free(&im);
    duet_free(&w);
    duet_free(&c);
    duet_free(&conv);
    duet_free(&pooled);
    duet_free(&deep);
    duet_free(&more);
}

static void mixed(duet_dtype t, duet_dtype u, duet_place where, int mode)
{
    duet_matrix *x = SOME(t, 5, 7), *y = SOME(u, 7, 4), *im = SOME(t, 1, 2, 5, 5), *w = SOME(u, 3, 2, 2, 2),
                *b = SOME(u, 7);
    const duet_dtype in = dtype_promote(t, u);
    duet_matrix *out = duet_new(in, 5, 4), *images = duet_new(in, 1, 3, 4, 4), *added = duet_new(in, 5, 7);
    RIGHT(out, duet_matmul(x, y));
    same(out, duet_einsum(y, x, "kj,ik->ij"), duet_matmul(x, y), where);
    if (is_floating(in) || (dtypes[in].bytes <= 2 && in != DUET_BOOL)) RIGHT(images, duet_conv2d(im, w));
    if (in != DUET_BOOL) RIGHT(added, duet_bias_add(x, b));
    duet_free(&x);
    duet_free(&y);
    duet_free(&im);
    duet_free(&w);
    duet_free(&b);
    duet_free(&out);
    duet_free(&images);
    duet_free(&added);
}

static void all_formulas(void)
{
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            plan_fusion(mode);
            formulas(DUET_F16, place[p], mode);
            formulas(DUET_BF16, place[p], mode);
            FOR_REAL_TYPES (t)
                FOR_REAL_TYPES (u)
                    if (dtype_promote(t, u) != DUET_DTYPE_COUNT && mode == MODE_MACHINE)
                        mixed(t, u, place[p], mode);
        }
    plan_fusion(-1);
    tap_point("formulas of halves and of mixed types");
}

/* A product is in f32 until it is stored: halves are rounded once. */
static void rounded_once(void)
{
    duet_matrix *x = duet_new(DUET_F16, 1, 2), *y = duet_new(DUET_F16, 2, 1), *out = duet_new(DUET_F16, 1, 1);
    uint16_t *p = duet_overwrite(x), *q = duet_overwrite(y);
    element_put(DUET_F16, p, 0, 2048);
    element_put(DUET_F16, p, 1, 1);
    element_put(DUET_F16, q, 0, 1);
    element_put(DUET_F16, q, 1, 1);
    for (int k = 0; k < places; k++) {
        CHECK(duet_set_on(place[k], out, duet_sub(duet_matmul(x, y), 2048)) == DUET_OK, "%s", duet_error());
        CHECK(element_value(DUET_F16, duet_read(out), 0) == 1, "2049 - 2048 of f16 is wrong on %s",
              place_name(place[k]));
        CHECK(duet_set_on(place[k], out,
                          duet_sub(duet_cast(duet_cast(duet_matmul(x, y), DUET_F32), DUET_F16), 2048)) ==
                  DUET_OK,
              "%s", duet_error());
        CHECK(element_value(DUET_F16, duet_read(out), 0) == 0, "the cast does not round 2049, on %s",
              place_name(place[k]));
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&out);
    tap_point("halves are rounded once");
}

/* Modes with as many bits as f16 or bf16 do not change operands of these types, so the strict bound
 * holds. */
static void math_modes(void)
{
    static const duet_math_mode of[] = { DUET_MATH_SPLIT, DUET_MATH_TF32, DUET_MATH_BF16 };
    for (int p = 0; p < places; p++)
        for (int i = 0; i < 3; i++)
            for (duet_dtype t = i < 2 ? DUET_F16 : DUET_BF16; t <= DUET_BF16; t++) {
                duet_matrix *x = SOME(t, 70, 65), *y = SOME(t, 65, 130), *out = duet_new(t, 70, 130);
                const char *why = NULL;
                DUET_MATH(of[i]) DUET_ON(place[p]) why = oracle_refutes(out, duet_matmul(x, y));
                CHECK(!why, "%s in mode %d on %s: %s", dtypes[t].name, (int)of[i], place_name(place[p]), why);
                duet_free(&x);
                duet_free(&y);
                duet_free(&out);
            }
    tap_point("math modes");
}

/* ---- integers that overflow their type ---- */

static uint64_t bits_of(duet_dtype t, const void *all, int64_t i)
{
    const long double v = element_value(t, all, i);
    if (v < 0) return (uint64_t)(int64_t)v;
    return (uint64_t)v;
}

static bool same_whole(duet_dtype t, uint64_t a, uint64_t b)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    return (a ^ b) << (64 - bits) == 0;
}

/* Elements with random bits. */
static duet_matrix *full(duet_dtype t, const sizes *s)
{
    duet_matrix *m = some(t, (enum view)rng_below(&gen, VIEWS), s);
    const size_t bytes = dtypes[t].bytes;
    char *bits = malloc((size_t)duet_count(m) * bytes + 8);
    for (int64_t i = 0; i < duet_count(m); i++) {
        const uint64_t x = rng_chance(&gen, 10) ? (uint64_t)1 << (8 * bytes - 1) : rng_next(&gen);
        memcpy(bits + i * (int64_t)bytes, &x, bytes);
    }
    fill_from(m, bits);
    free(bits);
    return m;
}
#define FULL(t, ...) full(t, &(sizes)SIZES(__VA_ARGS__))

/* A batch of size one of x or y repeats. */
typedef struct product {
    int64_t batch, batch_x, batch_y, m, k, n;
} product;

/* All elements in row-major order as 64-bit integers; the caller frees them. */
static uint64_t *all_bits(const duet_matrix *m)
{
    void *all = elements(m);
    uint64_t *bits = malloc((size_t)duet_count(m) * sizeof *bits + 8);
    for (int64_t i = 0; i < duet_count(m); i++) bits[i] = bits_of(duet_type(m), all, i);
    free(all);
    return bits;
}

static uint64_t product_at(const product *p, const uint64_t *x, const uint64_t *y, int64_t i)
{
    const int64_t column = i % p->n, row = i / p->n % p->m, one = i / p->n / p->m;
    uint64_t sum = 0;
    for (int64_t k = 0; k < p->k; k++)
        sum += x[((one % p->batch_x) * p->m + row) * p->k + k] *
               y[((one % p->batch_y) * p->k + k) * p->n + column];
    return sum;
}

static void product_is(duet_dtype t, duet_matrix *out, duet_expr e, const product *p, duet_matrix *x,
                       duet_matrix *y, duet_place where)
{
    duet_status s = DUET_OK;
    DUET_ON(where) s = (duet_set)(out, e);
    CHECK(s == DUET_OK, "%s on %s: %s", dtypes[t].name, place_name(where), duet_error());
    uint64_t *a = all_bits(x), *b = all_bits(y), *got = all_bits(out);
    int64_t wrong = 0;
    for (int64_t i = 0; i < duet_count(out) && s == DUET_OK; i++)
        wrong += !same_whole(t, got[i], product_at(p, a, b, i));
    CHECK(!wrong, "%s on %s, %lld x %lld by %lld, %lld times: %lld elements are wrong", dtypes[t].name,
          place_name(where), (long long)p->m, (long long)p->k, (long long)p->n, (long long)p->batch,
          (long long)wrong);
    free(a);
    free(b);
    free(got);
}

static void products_of(duet_dtype t, const product *p, duet_place where)
{
    duet_matrix *x = p->batch_x > 1 ? FULL(t, p->batch_x, p->m, p->k) : FULL(t, p->m, p->k);
    duet_matrix *y = p->batch_y > 1 ? FULL(t, p->batch_y, p->k, p->n) : FULL(t, p->k, p->n);
    duet_matrix *out = p->batch > 1 ? FULL(t, p->batch, p->m, p->n) : FULL(t, p->m, p->n);
    product_is(t, out, duet_matmul(x, y), p, x, y, where);
    if (p->batch == 1) {
        product_is(t, out, duet_einsum(duet_transpose(y), x, "jk,ik->ij"), p, x, y, where);
        product_is(t, out, duet_add(0, duet_matmul(x, y)), p, x, y, where);
        product_is(t, out, duet_neg(duet_matmul(duet_neg(x), y)), p, x, y, where);
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&out);
}

static void products(void)
{
    static const product of[] = { { 1, 1, 1, 1, 1, 1 }, { 1, 1, 1, 0, 3, 4 },  { 1, 1, 1, 3, 0, 4 },
                                  { 1, 1, 1, 5, 7, 1 }, { 1, 1, 1, 1, 70, 9 }, { 1, 1, 1, 33, 150, 600 },
                                  { 3, 3, 3, 5, 7, 4 }, { 3, 1, 3, 5, 7, 4 },  { 3, 3, 1, 5, 7, 4 },
                                  { 2, 2, 2, 3, 0, 4 } };
    for (int p = 0; p < places; p++)
        FOR_REAL_TYPES (t)
            for (int i = 0; i < (int)(sizeof of / sizeof *of) && is_whole(t); i++)
                products_of(t, &of[i], place[p]);
    tap_point("products of integers, modulo 2^n");
}

static uint64_t conv_at(duet_dtype t, const void *x, const void *w, int64_t c, const int64_t *at)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < c * 9; k++) {
        const int64_t i = at[2] + k / 3 % 3 - 1, j = at[3] + k % 3 - 1;
        if (i < 0 || j < 0 || i >= 8 || j >= 8) continue;
        sum += bits_of(t, x, ((at[0] * c + k / 9) * 8 + i) * 8 + j) * bits_of(t, w, at[1] * c * 9 + k);
    }
    return sum;
}

static void convolution_of(duet_dtype t, int64_t c, duet_place where)
{
    duet_matrix *x = FULL(t, 2, c, 8, 8), *w = FULL(t, 4, c, 3, 3), *out = FULL(t, 2, 4, 8, 8);
    duet_status s = DUET_OK;
    DUET_ON(where) s = duet_set(out, duet_conv2d(x, w, .pad = { 1, 1 }));
    CHECK(s == DUET_OK, "%s", duet_error());
    void *a = elements(x), *b = elements(w), *got = elements(out);
    int64_t wrong = 0;
    for (int64_t i = 0; i < duet_count(out); i++) {
        const int64_t at[] = { i / 256, i / 64 % 4, i / 8 % 8, i % 8 };
        wrong += !same_whole(t, bits_of(t, got, i), conv_at(t, a, b, c, at));
    }
    CHECK(!wrong, "a convolution of %s with %lld channels on %s: %lld elements are wrong", dtypes[t].name,
          (long long)c, place_name(where), (long long)wrong);
    free(a);
    free(b);
    free(got);
    duet_free(&x);
    duet_free(&w);
    duet_free(&out);
}

static void convolutions(void)
{
    static const duet_dtype of[] = { DUET_I8, DUET_U8, DUET_I16, DUET_U16 };
    for (int p = 0; p < places; p++)
        for (int i = 0; i < 4; i++) {
            convolution_of(of[i], 1, place[p]);
            convolution_of(of[i], 40, place[p]);
        }
    tap_point("convolutions of integers, modulo 2^n");
}

/* Windows of padding alone give the smallest number. */
static void empty_windows(void)
{
    for (int p = 0; p < places; p++)
        for (duet_dtype t = DUET_I8; t <= DUET_U32; t++) {
            duet_matrix *x = duet_new(t, 1, 2, 0, 3), *out = duet_new(t, 1, 2, 1, 2);
            duet_status s =
                duet_set_on(place[p], out,
                            duet_max_pool2d(x, .window = { 2, 2 }, .stride = { 1, 1 }, .pad = { 1, 0 }));
            const long double least =
                dtype_kind(t) == TYPE_SIGNED ? -ldexpl(1, 8 * (int)dtypes[t].bytes - 1) : 0;
            CHECK(s == DUET_OK, "%s", duet_error());
            CHECK(element_value(t, duet_read(out), 3) == least,
                  "the maximum of padding alone is wrong in %s on %s", dtypes[t].name, place_name(place[p]));
            duet_free(&x);
            duet_free(&out);
        }
    tap_point("windows that contain only padding");
}

/* Elements that no floating-point type represents are moved unchanged. */
static void moved(void)
{
    for (int p = 0; p < places; p++)
        FOR_REAL_TYPES (t) {
            if (!is_whole(t)) continue;
            duet_matrix *x = FULL(t, 2, 3, 4, 5), *out = FULL(t, 2, 3, 8, 15);
            CHECK(duet_set_on(place[p], out, duet_upsample2d(x, 2, 3)) == DUET_OK, "%s", duet_error());
            void *a = elements(x), *got = elements(out);
            int64_t wrong = 0;
            for (int64_t i = 0; i < duet_count(out); i++)
                wrong += bits_of(t, got, i) != bits_of(t, a, (i / 120 * 4 + i / 15 % 8 / 2) * 5 + i % 15 / 3);
            CHECK(!wrong, "upsampling of %s on %s: %lld elements are wrong", dtypes[t].name,
                  place_name(place[p]), (long long)wrong);
            free(a);
            free(got);
            duet_free(&x);
            duet_free(&out);
        }
    tap_point("upsampling copies all bits");
}

/* ---- gathers and scatters of halves: the result for f32 with the same elements ---- */

static void moves_alike(duet_dtype t, duet_expr e, duet_expr as, duet_place where, const char *what)
{
    const sizes s = sizes_of_expr(e);
    duet_matrix *got = duet_new_shape(t, s.rank, s.size), *want = duet_new_shape(DUET_F32, s.rank, s.size);
    duet_status a = DUET_OK, b = DUET_OK;
    DUET_ON(where)
    {
        a = (duet_set)(got, e);
        b = (duet_set)(want, as);
    }
    CHECK(a == b && (a == DUET_OK || a == DUET_UNSUPPORTED), "%s of %s: %s", what, dtypes[t].name,
          duet_error()); /* built without FFTW */
    void *p = elements(got), *q = elements(want);
    int64_t wrong = 0;
    for (int64_t i = 0; i < duet_count(got) && a == DUET_OK; i++)
        wrong += element_value(t, p, i) != element_value(DUET_F32, q, i);
    CHECK(!wrong && duet_count(got), "%s of %s on %s: %lld elements are wrong", what, dtypes[t].name,
          place_name(where), (long long)wrong);
    free(p);
    free(q);
    duet_free(&got);
    duet_free(&want);
}

static void by_data_of(duet_dtype t, duet_place where)
{
    duet_matrix *x = SOME(t, 7, 9), *z = SOME(t, 2, 9), *f = duet_new(DUET_F32, 7, 9),
                *g = duet_new(DUET_F32, 2, 9), *i = duet_new(DUET_I32, 2);
    int32_t *p = duet_overwrite(i);
    p[0] = 5;
    p[1] = 2;
    CHECK(duet_set(f, x) == DUET_OK && duet_set(g, z) == DUET_OK, "%s", duet_error());
#define ROUNDED(e) duet_cast(duet_cast(e, t), DUET_F32)
#define MOVES(call, what)                                                                                    \
    do {                                                                                                     \
        duet_matrix *m = x, *n = z;                                                                          \
        duet_expr e = call(DUET(m), DUET(n));                                                                \
        m = f, n = g;                                                                                        \
        moves_alike(t, e, call(DUET(m), DUET(n)), where, what);                                              \
        m = x;                                                                                               \
        e = call(duet_mul(m, 0.3), duet_mul(z, 0.7));                                                        \
        m = f;                                                                                               \
        moves_alike(t, e, call(ROUNDED(duet_mul(m, 0.3)), ROUNDED(duet_mul(g, 0.7))), where,                 \
                    what " of formulas");                                                                    \
    } while (0)
#define TAKE(a, b) (forget(b), duet_take(a, i, 0))
#define SORT(a, b) (forget(b), duet_sort(a, 1))
#define TOP(a, b)  (forget(b), duet_top_k(a, 3, 1))
#define TURN(a, b) (forget(b), duet_sort(duet_transpose(a), 1))
#define PUT(a, b)  duet_put(a, i, b, 0)
    MOVES(TAKE, "take");
    MOVES(SORT, "sort");
    MOVES(TURN, "sort of a transpose");
    MOVES(TOP, "top_k");
    MOVES(PUT, "put");
    moves_alike(t, duet_one_hot(i, 7, t), duet_one_hot(i, 7, DUET_F32), where, "one_hot");
    moves_alike(t, duet_matmul(duet_take(x, i, 0), duet_transpose(x)),
                ROUNDED(duet_matmul(duet_take(f, i, 0), duet_transpose(f))), where,
                "a product of what is taken");
    duet_free(&x);
    duet_free(&z);
    duet_free(&f);
    duet_free(&g);
    duet_free(&i);
}

/* For operators without a definition in the oracle: the f32 result, rounded. */
static void called_of(duet_dtype t, duet_place where)
{
    duet_matrix *x = SOME(t, 2, 3, 6, 6), *g = SOME(t, 2, 3, 3, 3), *f = duet_new(DUET_F32, 2, 3, 6, 6),
                *h = duet_new(DUET_F32, 2, 3, 3, 3);
    CHECK(duet_set(f, x) == DUET_OK && duet_set(h, g) == DUET_OK, "%s", duet_error());
    moves_alike(t, duet_max_pool2d_grad(x, g, .window = { 2, 2 }),
                ROUNDED(duet_max_pool2d_grad(f, h, .window = { 2, 2 })), where, "max_pool2d_grad");
    moves_alike(t, duet_fftconvolve(x, g, DUET_OVERLAP_FULL),
                ROUNDED(duet_fftconvolve(f, h, DUET_OVERLAP_FULL)), where, "fftconvolve");
    moves_alike(DUET_F32, duet_fftcorrelate(x, h, DUET_OVERLAP_SAME),
                duet_fftcorrelate(f, h, DUET_OVERLAP_SAME), where, "fftcorrelate");
    duet_free(&x);
    duet_free(&g);
    duet_free(&f);
    duet_free(&h);
}

static void by_data(void)
{
    for (int p = 0; p < places; p++)
        for (duet_dtype t = DUET_F16; t <= DUET_BF16; t++) {
            by_data_of(t, place[p]);
            called_of(t, place[p]);
        }
    tap_point("halves in index operators");
}

/* ---- images with one and with three axes ---- */

/* e of halves must equal `as` of the same elements in f32, rounded once. */
static void rounds(duet_place where, duet_dtype t, duet_expr e, duet_expr as, const char *what)
{
    int64_t size[DUET_RANK_MAX], wrong = 0;
    const int rank = duet_expr_rank(e);
    for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e, a);
    duet_matrix *is = duet_new_shape(t, rank, size), *should = duet_new_shape(t, rank, size);
    duet_status s = (duet_set_on)(where, is, e);
    if (s == DUET_OK) s = (duet_set_on)(where, should, duet_cast(as, t));
    else forget(as);
    const uint16_t *x = duet_read(is), *y = duet_read(should);
    for (int64_t i = 0; s == DUET_OK && i < duet_count(is); i++) wrong += x[i] != y[i];
    CHECK(s == DUET_OK && !wrong, "%s of %s on %s: %d wrong, %s", what, dtypes[t].name, place_name(where),
          (int)wrong, duet_error());
    duet_free(&is);
    duet_free(&should);
}
#define ROUNDS(formula, x, w)                                                                                \
    do {                                                                                                     \
        const duet_expr wide_[] = { duet_cast(x, DUET_F32), duet_cast(w, DUET_F32) };                        \
        rounds(where, t, formula(DUET(x), DUET(w)), formula(wide_[0], wide_[1]), #formula);                  \
    } while (0)
#define CONV1D(a, b)     duet_conv1d(a, b, .pad = 1)
#define CONV3D(a, b)     duet_conv3d(a, b, .pad = { 1, 0, 1 })
#define CONVOLVE(a, b)   duet_convolve(a, b, DUET_OVERLAP_SAME)
#define MAX_POOL1D(a, b) ((void)forget(b), duet_max_pool1d(a, .window = 2))
#define AVG_POOL3D(a, b) ((void)forget(b), duet_avg_pool3d(a, .window = { 2, 2, 2 }))

static void images_of_halves(void)
{
    static const duet_dtype halves[] = { DUET_F16, DUET_BF16 };
    for (int p = 0; p < places; p++)
        for (int h = 0; h < 2; h++) {
            const duet_dtype t = halves[h];
            const duet_place where = place[p];
            duet_matrix *x = SOME(t, 2, 3, 9), *w = SOME(t, 4, 3, 3), *v = SOME(t, 1, 2, 4, 5, 6),
                        *f = SOME(t, 3, 2, 2, 2, 3), *plain = SOME(t, 7, 8);
            ROUNDS(CONV1D, x, w);
            ROUNDS(CONV3D, v, f);
            ROUNDS(CONVOLVE, plain, plain);
            ROUNDS(MAX_POOL1D, x, w);
            ROUNDS(AVG_POOL3D, v, f);
            duet_free(&x);
            duet_free(&w);
            duet_free(&v);
            duet_free(&f);
            duet_free(&plain);
        }
    tap_point("halves in 1-D and 3-D convolutions, and in contiguous arrays");
}

int main(int argc, char **argv)
{
    gen = rng_new(77);
    places = list_places(place);
    results();
    all_formulas();
    rounded_once();
    math_modes();
    products();
    convolutions();
    empty_windows();
    moved();
    by_data();
    images_of_halves();
    return tap_end();
}
