/* test_optimizer_errors.c - calls of the optimisers that fail: their texts, and that they change nothing and
 * spend their formulas. */
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <string.h>

#define GOES(s) CHECK((s) == DUET_OK, "%s: %s", #s, duet_error())

/* The matrices of the calls. */
static struct {
    duet_matrix *w, *g, *first, *second;
} bad;
enum { ROWS = 3, COLUMNS = 4, COUNT = ROWS * COLUMNS };

static void make_matrices(void)
{
    bad.w = duet_full(DUET_F32, 1.5, ROWS, COLUMNS);
    bad.g = duet_full(DUET_F32, 2.5, ROWS, COLUMNS);
    bad.first = duet_full(DUET_F32, 3.5, ROWS, COLUMNS);
    bad.second = duet_full(DUET_F32, 4.5, ROWS, COLUMNS);
}

static void check_unchanged(const char *call)
{
    const duet_matrix *m[] = { bad.w, bad.g, bad.first, bad.second };
    for (int k = 0; k < 4; k++) {
        const float *p = duet_read_f32(m[k]);
        for (int i = 0; p && i < COUNT; i++) CHECK(p[i] == 1.5f + (float)k, "%s: matrix %d changed", call, k);
    }
}

static void forget(duet_expr e) { GOES(duet_drop(e)); }

/* The call must fail with a text, leave no formula, and change nothing. */
#define FAILS(call, status, words)                                                                           \
    do {                                                                                                     \
        const duet_status s_ = (call);                                                                       \
        CHECK(s_ == (status) && strstr(duet_error(), words), "%s: %d, %s", #call, (int)s_, duet_error());    \
        CHECK(strstr(duet_error(), "test_optimizer_errors.c:"), "%s: no source line: %s", #call,             \
              duet_error());                                                                                 \
        GOES(duet_arena_limit(64 << 20));                                                                    \
        check_unchanged(#call);                                                                              \
    } while (0)

static void bad_options(void)
{
    duet_matrix *w = bad.w, *g = bad.g, *m = bad.first, *s = bad.second;
    FAILS(duet_sgd(w, g, 0.1, .momentum = -0.5, .velocity = m), DUET_BAD_ARGUMENT,
          "duet_sgd(w: f32[3,4], momentum: -0.5): momentum must be at least 0 and finite");
    FAILS(duet_sgd(w, g, 0.1, .momentum = NAN, .velocity = m), DUET_BAD_ARGUMENT, "momentum must be");
    FAILS(duet_sgd(w, g, 0.1, .decay = INFINITY), DUET_BAD_ARGUMENT, "decay must be at least 0 and finite");
    FAILS(duet_sgd(w, g, 0.1, .momentum = 0.9), DUET_BAD_ARGUMENT,
          "duet_sgd(w: f32[3,4], velocity: NULL): velocity must not be NULL");
    FAILS(duet_sgd(w, g, 0.1, .nesterov = 1), DUET_BAD_ARGUMENT, "momentum must not be 0");
    FAILS(duet_sgd(w, g, 0.1, .momentum = 0.9, .velocity = m, .nesterov = 2), DUET_BAD_ARGUMENT,
          "nesterov must be 0 or 1");
    FAILS(duet_adam(w, g, m, s, 0.1, 1, .keep_mean = 1), DUET_BAD_ARGUMENT,
          "duet_adam(w: f32[3,4], keep_mean: 1): keep_mean must be at least 0 and less than 1");
    FAILS(duet_adam(w, g, m, s, 0.1, 1, .keep_square = -0.1), DUET_BAD_ARGUMENT, "keep_square must be");
    FAILS(duet_adam(w, g, m, s, 0.1, 1, .epsilon = -1e-8), DUET_BAD_ARGUMENT, "epsilon must be");
    FAILS(duet_adamw(w, g, m, s, 0.1, 1, .decay = -1), DUET_BAD_ARGUMENT,
          "duet_adamw(w: f32[3,4], decay: -1)");
    FAILS(duet_rmsprop(w, g, s, 0.1, .keep = 1.5), DUET_BAD_ARGUMENT, "duet_rmsprop(w: f32[3,4], keep: 1.5)");
    FAILS(duet_rmsprop(w, g, s, 0.1, .momentum = 0.5), DUET_BAD_ARGUMENT, "velocity must not be NULL");
    FAILS(duet_rmsprop(w, g, s, 0.1, .epsilon = NAN), DUET_BAD_ARGUMENT, "epsilon must be");
    FAILS(duet_adagrad(w, g, s, 0.1, .decay = -2), DUET_BAD_ARGUMENT, "duet_adagrad(w: f32[3,4], decay: -2)");
    FAILS(duet_adagrad(w, g, s, 0.1, .epsilon = INFINITY), DUET_BAD_ARGUMENT, "epsilon must be");
}

static void bad_matrices(void)
{
    duet_matrix *w = bad.w, *g = bad.g, *m = bad.first, *s = bad.second;
    duet_matrix *none = NULL, *small = duet_zeros(DUET_F32, 3, 3), *f64 = duet_zeros(DUET_F64, 3, 4),
                *row = duet_zeros(DUET_F32, 4), *wide = duet_broadcast_to(row, 3, 4),
                *i32 = duet_zeros(DUET_I32, 3, 4), *c64 = duet_zeros(DUET_C64, 3, 4),
                *view = duet_flipped(w, 0);
    FAILS(duet_sgd(none, g, 0.1), DUET_BAD_ARGUMENT, "duet_sgd: w must not be NULL");
    FAILS(duet_sgd(i32, g, 0.1), DUET_BAD_TYPE, "duet_sgd(w: i32[3,4]): w must be floating point");
    FAILS(duet_sgd(c64, g, 0.1), DUET_BAD_TYPE, "duet_sgd(w: c64[3,4]): w must be floating point");
    FAILS(duet_sgd(wide, g, 0.1), DUET_BAD_ARGUMENT, "w must not repeat elements");
    FAILS(duet_adam(w, g, none, s, 0.1, 1), DUET_BAD_ARGUMENT, "mean must not be NULL");
    FAILS(duet_adam(w, g, m, none, 0.1, 1), DUET_BAD_ARGUMENT, "square must not be NULL");
    FAILS(duet_adam(w, g, small, s, 0.1, 1), DUET_BAD_SHAPE,
          "duet_adam(w: f32[3,4], mean: f32[3,3]): mean must have the shape of w");
    FAILS(duet_adam(w, g, m, f64, 0.1, 1), DUET_BAD_TYPE,
          "duet_adam(w: f32[3,4], square: f64[3,4]): square must be f32, the type in which w is computed");
    FAILS(duet_adam(w, g, m, m, 0.1, 1), DUET_BAD_ARGUMENT, "square must not share elements with mean");
    FAILS(duet_adam(w, g, w, s, 0.1, 1), DUET_BAD_ARGUMENT, "mean must not share elements with w");
    FAILS(duet_adagrad(w, g, view, 0.1), DUET_BAD_ARGUMENT, "sum must not share elements with w");
    FAILS(duet_adagrad(w, g, wide, 0.1), DUET_BAD_ARGUMENT, "sum must not repeat elements");
    FAILS(duet_rmsprop(w, g, s, 0.1, .momentum = 1, .velocity = small), DUET_BAD_SHAPE, "velocity must have");
    duet_matrix *freed = small;
    duet_free(&small);
    FAILS(duet_sgd(freed, g, 0.1), DUET_FREED, "w is a matrix that was freed");
    FAILS(duet_adagrad(w, g, freed, 0.1), DUET_FREED, "sum: freed matrix");
    duet_free(&f64, &wide, &row, &i32, &c64, &view);
}

static void bad_formulas(void)
{
    duet_matrix *w = bad.w, *g = bad.g, *m = bad.first, *s = bad.second;
    duet_matrix *none = NULL, *row = duet_zeros(DUET_F32, 4), *f64 = duet_zeros(DUET_F64, 3, 4),
                *two = duet_ones(DUET_F32, 2), *yes = duet_ones(DUET_BOOL), *c64 = duet_ones(DUET_C64, 3, 4);
    FAILS(duet_sgd(w, none, 0.1), DUET_BAD_ARGUMENT, "duet_sgd(w: f32[3,4]): g must not be NULL");
    FAILS(duet_sgd(w, row, 0.1), DUET_BAD_SHAPE,
          "duet_sgd(w: f32[3,4], g: f32[4]): g must have the shape of w");
    FAILS(duet_sgd(w, 1, 0.1), DUET_BAD_SHAPE, "g: a number): g must have the shape of w");
    FAILS(duet_sgd(w, f64, 0.1), DUET_BAD_TYPE, "g cannot be converted");
    FAILS(duet_sgd(w, c64, 0.1), DUET_BAD_TYPE, "g must be real");
    FAILS(duet_sgd(w, duet_add(g, two), 0.1), DUET_BAD_SHAPE, "duet_add(x: f32[3,4], y: f32[2])");
    FAILS(duet_adam(w, duet_mul(2, m), m, s, 0.1, 1), DUET_BAD_ARGUMENT,
          "g must not read mean, which is updated");
    FAILS(duet_adam(w, g, m, s, duet_max(s), 1), DUET_BAD_ARGUMENT, "rate must not read square");
    FAILS(duet_sgd(w, g, none), DUET_BAD_ARGUMENT, "rate must not be NULL");
    FAILS(duet_sgd(w, g, two), DUET_BAD_SHAPE,
          "duet_sgd(w: f32[3,4], rate: f32[2]): rate must have one element");
    FAILS(duet_sgd(w, g, -0.1), DUET_BAD_ARGUMENT, "rate must be at least 0 and finite");
    FAILS(duet_sgd(w, g, NAN), DUET_BAD_ARGUMENT, "rate must be at least 0 and finite");
    FAILS(duet_sgd(w, g, yes), DUET_BAD_TYPE, "rate: bool[]): rate must be a real number");
    FAILS(duet_adam(w, g, m, s, 0.1, 0), DUET_BAD_ARGUMENT, "step must be at least 1 and finite");
    FAILS(duet_adam(w, g, m, s, 0.1, none), DUET_BAD_ARGUMENT, "step must not be NULL");
    FAILS(duet_adam(w, g, m, s, 0.1, two), DUET_BAD_SHAPE, "step must have one element");
    const duet_expr gone = duet_neg(g);
    forget(gone);
    FAILS(duet_sgd(w, gone, 0.1), DUET_SPENT, "g");
    duet_matrix *freed = row;
    const duet_expr names_freed = duet_reshape(duet_concat(0, row, row, row), 3, 4);
    duet_free(&row);
    FAILS(duet_sgd(w, names_freed, 0.1), DUET_FREED, "was freed");
    (void)freed;
    duet_free(&f64, &two, &yes, &c64);
}

/* A formula that succeeded is spent too; a persistent one is not. */
static void spends(void)
{
    const duet_expr g = duet_neg(bad.g), kept = duet_hold(duet_neg(bad.g));
    GOES(duet_sgd(bad.w, g, 0.1));
    CHECK(duet_expr_status(g) == DUET_SPENT, "g is still there");
    for (int k = 0; k < 2; k++) GOES(duet_adagrad(bad.w, kept, bad.first, 0.1));
    GOES(duet_drop(kept));
    GOES((duet_sgd)(bad.w, DUET(bad.g), DUET(0.1), NULL));
    GOES((duet_adam)(bad.w, DUET(bad.g), bad.first, bad.second, DUET(0.1), DUET(1), NULL));
    GOES((duet_adamw)(bad.w, DUET(bad.g), bad.first, bad.second, DUET(0.1), DUET(1), NULL));
    GOES((duet_rmsprop)(bad.w, DUET(bad.g), bad.first, DUET(0.1), NULL));
    GOES((duet_adagrad)(bad.w, DUET(bad.g), bad.first, DUET(0.1), NULL));
    GOES(duet_arena_limit(64 << 20));
}

int main(void)
{
    make_matrices();
    bad_options();
    tap_point("options");
    bad_matrices();
    tap_point("matrices");
    bad_formulas();
    tap_point("formulas");
    spends();
    tap_point("what is spent");
    duet_free(&bad.w, &bad.g, &bad.first, &bad.second);
    return tap_end();
}
