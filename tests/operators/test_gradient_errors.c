/* test_gradient_errors.c - what duet_grad and duet_vjp refuse. Each text names the function that the user
 * called and the operator that has no derivative, and no other function. */
#include "common.h"
#include <duet/duet.h>

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

static void fails(duet_expr e, duet_status s, const char *text)
{
    CHECK(duet_expr_status(e) == s, "status %s, not %s: %s", duet_status_text(duet_expr_status(e)),
          duet_status_text(s), duet_error());
    CHECK(strstr(duet_error(), text) != NULL, "\"%s\" is not in \"%s\"", text, duet_error());
    forget(e);
}

/* The text begins with the call of this function, and names no other. */
static void fails_in(const char *function, duet_expr e, duet_status s, const char *text)
{
    fails(e, s, text);
    const char *first = strstr(duet_error(), "duet_");
    CHECK(first && !strncmp(first, function, strlen(function)), "%s is not first in \"%s\"", function,
          duet_error());
    CHECK(first && !strstr(first + 1, "(x: ") && !strstr(first + 1, "): in "), "another call is in \"%s\"",
          duet_error());
}

/* ---- operators without a derivative ---- */

#define WINDOWS "it needs windows that do not overlap and have no padding"

/* The formula is built three times: a gradient consumes its operand. */
#define NO_DERIVATIVE(formula, of, reason)                                                                   \
    fails_in("duet_grad(y: ", duet_grad(duet_sum(formula), x), DUET_UNSUPPORTED,                             \
             "there is no derivative of " of ": " reason);                                                   \
    fails_in("duet_vjp(y: ", duet_vjp(duet_mul(formula, 2), x, 3), DUET_UNSUPPORTED,                         \
             "there is no derivative of " of ": " reason);                                                   \
    fails_in("duet_grad(y: ", duet_grad(duet_norm(duet_exp(formula)), x), DUET_UNSUPPORTED,                  \
             "there is no derivative of " of ": " reason)

static duet_expr slope(duet_expr y, const duet_matrix *x) { return duet_grad(duet_sum(duet_exp(y)), x); }

static void test_operators(void)
{
    duet_matrix *x = duet_ones(DUET_F64, 4, 4);
    NO_DERIVATIVE(duet_svdvals(x), "svdvals", "it needs the singular vectors");
    NO_DERIVATIVE(duet_eigvalsh(x), "eigvalsh", "it needs the eigenvectors");
    NO_DERIVATIVE(duet_eigvalsh(duet_complex(x, x)), "eigvalsh", "it needs the eigenvectors");
    duet_free(&x);
    x = duet_ones(DUET_F32, 1, 1, 4);
    NO_DERIVATIVE(slope(duet_max_pool1d(x, .window = 2, .stride = 1), x), "max_pool1d_grad", WINDOWS);
    duet_free(&x);
    x = duet_ones(DUET_F32, 1, 1, 4, 4);
    NO_DERIVATIVE(slope(duet_max_pool2d(x, .window = { 3, 3 }, .stride = { 2, 2 }), x), "max_pool2d_grad",
                  WINDOWS);
    NO_DERIVATIVE(slope(duet_max_pool2d(x, .window = { 2, 2 }, .pad = { 1, 1 }), x), "max_pool2d_grad",
                  WINDOWS);
    duet_free(&x);
    x = duet_ones(DUET_F32, 1, 1, 4, 4, 4);
    NO_DERIVATIVE(slope(duet_max_pool3d(x, .window = { 2, 2, 2 }, .stride = { 1, 2, 2 }), x),
                  "max_pool3d_grad", WINDOWS);
    duet_free(&x);
    tap_point("operators without a derivative");
}

/* ---- operands ---- */

static void test_errors(void)
{
    duet_matrix *x = duet_ones(DUET_F64, 2, 2), *row = duet_row(x, 1), *i = duet_ones(DUET_I64, 2),
                *z = duet_ones(DUET_C64, 2), *gone = duet_ones(DUET_F64, 2);
    fails(duet_grad(duet_exp(x), x), DUET_BAD_SHAPE,
          "duet_grad(y: f64[2,2]): the formula must have one element");
    fails(duet_grad(duet_sum(i), i), DUET_BAD_TYPE, "x is a matrix of i64");
    fails(duet_grad(duet_sum(x), i), DUET_BAD_TYPE, "duet_grad(y: f64[]): x is a matrix of i64");
    fails(duet_grad(duet_sum(i), x), DUET_BAD_TYPE, "must have a floating-point type");
    fails(duet_grad(duet_sum(z), z), DUET_BAD_TYPE, "must be real");
    fails_in("duet_grad(y: f64[]): ", duet_grad(duet_sum(x), NULL), DUET_BAD_ARGUMENT, "x must not be NULL");
    fails_in("duet_vjp(y: f64[], g: 1): ", duet_vjp(duet_sum(x), NULL, 1), DUET_BAD_ARGUMENT,
             "x must not be NULL");
    fails_in("duet_grad(", duet_grad((duet_expr){ 0 }, x), DUET_BAD_ARGUMENT, "y is not a formula");
    const duet_expr dead = duet_sum(duet_mul(x, duet_sum(gone)));
    duet_free(&gone);
    fails(duet_grad(dead, x), DUET_FREED, "names a matrix that was freed");
    fails(duet_grad(duet_sum(duet_mul(x, row)), x), DUET_BAD_ARGUMENT,
          "names another matrix with elements of x");
    fails(duet_vjp(duet_exp(x), x, duet_reshape(duet_iota(DUET_F64, 3), 3, 1)), DUET_BAD_SHAPE,
          "duet_vjp(y: f64[2,2], g: f64[3,1]): g does not broadcast to the shape of y");
    fails_in("duet_vjp(y: f64[2,2], g: c64[2]): ", duet_vjp(duet_exp(x), x, z), DUET_BAD_TYPE,
             "complex elements cannot be cast to f64");
    fails_in("duet_vjp(y: f64[2,2], g: a complex number): ", duet_vjp(duet_exp(x), x, duet_complex(1, 2)),
             DUET_BAD_TYPE, "complex elements cannot be cast to f64");
    fails(duet_grad(duet_sum(duet_matmul(x, duet_iota(DUET_F64, 3))), x), DUET_BAD_SHAPE,
          "duet_matmul(x: f64[2,2]");
    const duet_expr y = duet_sum(duet_exp(x));
    fails(duet_grad(duet_exp(x), x), DUET_BAD_SHAPE, "one element");
    ok(duet_set(x, y)); /* other formulas stay */
    duet_free(&row, &x, &i, &z);
    tap_point("errors of operands");
}

/* ---- views of x ---- */

/* A view loses its share of the gradient, unless no gradient passes to it. */
static void test_views(void)
{
    duet_matrix *x = duet_full(DUET_F64, 3, 4), *part = duet_slice(x, 1, 2), *g = duet_new(DUET_F64, 4);
    static const char lost[] = "names another matrix with elements of x";
    fails_in("duet_grad(", duet_grad(duet_mul(duet_sum(x), duet_sum(part)), x), DUET_BAD_ARGUMENT, lost);
    fails_in("duet_grad(", duet_grad(duet_sum(part), x), DUET_BAD_ARGUMENT, lost);
    fails_in("duet_vjp(", duet_vjp(duet_add(duet_stop_gradient(part), duet_mul(part, 2)), x, 1),
             DUET_BAD_ARGUMENT, lost);
    const duet_expr allowed[] = {
        duet_mul(duet_sum(x), duet_sum(duet_stop_gradient(part))),
        duet_mul(duet_sum(x), duet_stop_gradient(duet_sum(duet_mul(part, 1)))),
        duet_mul(duet_sum(x), duet_sum(duet_mul(duet_cast(duet_greater(part, 1), DUET_F64), 3))),
        duet_mul(duet_sum(x), duet_sum(duet_cast(duet_cast(part, DUET_I32), DUET_F64))),
    };
    for (int k = 0; k < 4; k++) {
        ok(duet_set(g, duet_grad(allowed[k], x)));
        const double *p = duet_read_f64(g);
        for (int i = 0; p && i < 4; i++) CHECK(p[i] == 6, "formula %d, element %d: %g, not 6", k, i, p[i]);
    }
    duet_free(&part, &x, &g);
    tap_point("views of x");
}

int main(void)
{
    test_operators();
    test_errors();
    test_views();
    return tap_end();
}
