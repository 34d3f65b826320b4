/* test_gradient.c - gradients of formulas against finite differences in f64, for every row of
 * derivatives.def, on every machine: with respect to each operand, with broadcast operands, and a second
 * time for smooth functions. */
#include "common.h"
#include "matrix.h"
#include <duet/duet.h>
#include <math.h>

#define STEP      1e-3 /* of the differences, whose error is of order STEP^4 */
#define TOLERANCE 1e-7

static duet_place place[2];
static int places;

/* ---- matrices ---- */

#define S(...) SIZES(__VA_ARGS__)

static uint64_t state = 1;

static double unit(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static duet_matrix *random_of(const sizes *s, double low, double high)
{
    duet_matrix *m = duet_new_shape(DUET_F64, s->rank, s->size);
    double *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = low + (high - low) * unit();
    return m;
}

static duet_matrix *indices, *lines, *distinct, *eye, *zero_row, *shift, *one_zero, *two_zeros;
static duet_matrix *pattern, *square; /* of a sparse 3 x 4 matrix with 5 elements, of a 3 x 3 one with 6 */

static duet_matrix *integers(int rank, const int64_t *size, const int64_t *v)
{
    duet_matrix *m = duet_new_shape(DUET_I64, rank, size);
    int64_t *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v[i];
    return m;
}

static void make_constants(void)
{
    indices = integers(2, (int64_t[]){ 2, 2 }, (int64_t[]){ 0, 3, -1, 3 });
    lines = integers(2, (int64_t[]){ 2, 3 }, (int64_t[]){ 0, 3, -1, 0, 2, 1 });
    distinct = integers(1, (int64_t[]){ 3 }, (int64_t[]){ 4, 0, 2 });
    pattern = integers(1, (int64_t[]){ 9 }, (int64_t[]){ 0, 2, 2, 5, 1, 3, 0, 1, 3 });
    square = integers(1, (int64_t[]){ 10 }, (int64_t[]){ 0, 2, 4, 6, 0, 2, 0, 1, 1, 2 });
    eye = duet_new(DUET_F64, 3, 3);
    CHECK(duet_set(eye, duet_mul(3, duet_cast(duet_equal(duet_reshape(duet_iota(DUET_F64, 3), 3, 1),
                                                         duet_iota(DUET_F64, 3)),
                                              DUET_F64))) == DUET_OK,
          "%s", duet_error());
    zero_row =
        duet_from_array(((double[]){ 3, 1, 4, 1, 5, 9, 2, 6, 0, 0, 0, 0, 5, 3, 5, 8 }), DUET_F64, 4, 4);
    one_zero = duet_from_array(((double[]){ 0, 1, 2, 1.5, -1, 0, 2, 1, 1, 2, -.5, 0 }), DUET_F64, 3, 4);
    two_zeros = duet_from_array(((double[]){ 2, 0, -1.5, 0, 1, 0, 1, 2, -.5, 0 }), DUET_F64, 2, 5);
    shift = duet_from_array(((double[]){ 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0 }), DUET_F64, 4, 4);
}

/* ---- the functions ---- */

/* A real formula of both parts of z. */
static duet_expr parts_of(duet_expr z) { return duet_add(duet_real(z), duet_mul(duet_imag(z), 0.7)); }

typedef duet_expr function(const duet_matrix *x, const duet_matrix *y);

#define CASE(name, x_, y_, low, high, smooth, operands, formula)                                             \
    static duet_expr of_##name(const duet_matrix *x, const duet_matrix *y) { return formula; }
#include "gradient_cases.def"

typedef struct test_case {
    const char *name;
    sizes x, y;
    double low, high;
    bool smooth;
    int operands;
    function *of;
} test_case;

static const test_case cases[] = {
#define CASE(name, x, y, low, high, smooth, operands, formula)                                               \
    { #name, x, y, low, high, smooth, operands, of_##name },
#include "gradient_cases.def"
};

/* ---- sums with weights, and their gradients ---- */

typedef struct trial {
    const test_case *c;
    duet_matrix *x, *y, *of; /* of: x or y */
    duet_matrix *weights, *direction;
} trial;

static duet_expr weighted(const trial *t) { return duet_sum(duet_mul(t->c->of(t->x, t->y), t->weights)); }

/* The first derivative in a direction. */
static duet_expr sloped(const trial *t)
{
    return duet_sum(duet_mul(duet_grad(weighted(t), t->of), t->direction));
}

static double value(duet_expr e)
{
    double v = NAN;
    CHECK(duet_item(e, &v) == DUET_OK, "%s", duet_error());
    return v;
}

/* The derivative of e by element i. */
static double difference(const trial *t, duet_expr (*e)(const trial *), int64_t i)
{
    static const double at[] = { -2, -1, 1, 2 }, factor[] = { 1, -8, 8, -1 };
    double sum = 0;
    const double before = duet_read_f64(t->of)[i];
    for (int k = 0; k < 4; k++) {
        duet_update_f64(t->of)[i] = before + at[k] * STEP;
        sum += factor[k] * value(e(t));
    }
    duet_update_f64(t->of)[i] = before;
    return sum / (12 * STEP);
}

static void check_elements(const trial *t, const duet_matrix *g, const double *expected, const char *which)
{
    const double *got = duet_read_f64(g);
    for (int64_t i = 0; got && i < duet_count(g); i++)
        if (!CHECK(fabs(got[i] - expected[i]) <= TOLERANCE * (1 + fabs(expected[i])),
                   "%s, %s, element %d: %.12g, by differences %.12g", t->c->name, which, (int)i, got[i],
                   expected[i]))
            break;
    CHECK(got != NULL, "%s", duet_error());
}

static void compare(const trial *t, duet_expr (*e)(const trial *), const char *which)
{
    duet_matrix *g = duet_new_shape(DUET_F64, duet_rank(t->of), t->of->at.size);
    double *expected = calloc((size_t)duet_count(t->of) + 1, sizeof *expected);
    for (int64_t i = 0; i < duet_count(t->of); i++) expected[i] = difference(t, e, i);
    for (int p = 0; p < places; p++) {
        const duet_expr made = duet_grad(e(t), t->of);
        CHECK(duet_expr_rank(made) == duet_rank(t->of), "%s, %s: rank %d", t->c->name, which,
              duet_expr_rank(made));
        const duet_status s = duet_set_on(place[p], g, made);
        if (s == DUET_UNSUPPORTED && place[p] == DUET_GPU && !strcmp(t->c->name, "csr_solve"))
            continue; /* no cuDSS */
        if (CHECK(s == DUET_OK, "%s, %s: %s", t->c->name, which, duet_error()))
            check_elements(t, g, expected, which);
    }
    free(expected);
    duet_free(&g);
}

static void test_case_of(const test_case *c)
{
    trial t = { .c = c, .x = random_of(&c->x, c->low, c->high), .y = random_of(&c->y, c->low, c->high) };
    const duet_expr made = c->of(t.x, t.y);
    const sizes s = sizes_of_expr(made);
    CHECK(duet_expr_status(made) == DUET_OK, "%s: %s", c->name, duet_error());
    (void)duet_drop(made);
    t.weights = random_of(&s, 0.5, 1.5);
    for (int k = 0; k < c->operands; k++) {
        t.of = k ? t.y : t.x;
        t.direction = random_of(k ? &c->y : &c->x, -1, 1);
        compare(&t, weighted, k ? "y" : "x");
        if (c->smooth) compare(&t, sloped, k ? "second derivative, y" : "second derivative, x");
        duet_free(&t.direction);
    }
    duet_free(&t.x, &t.y, &t.weights);
}

int main(void)
{
    places = list_places(place);
    make_constants();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_case_of(&cases[i]);
        if (i % 20 == 19) tap_point("gradients by finite differences");
    }
    tap_point("gradients by finite differences");
    duet_free(&indices, &lines, &distinct, &eye, &zero_row, &shift, &one_zero, &two_zeros, &pattern, &square);
    return tap_end();
}
