/* test_gradient_use.c - duet_grad and duet_vjp in use: every operator has a derivative or a reason, points
 * without a derivative or where results are saturated, lists of statements that share nodes, recordings,
 * persistent formulas. */
#include "common.h"
#include "matrix.h"
#include "ops.h"
#include <math.h>

static duet_place place[2];
static int places;

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

static duet_matrix *of(int n, const double *v) { return duet_from_array(v, DUET_F64, n); }

static void holds(const duet_matrix *m, const double *expected, const char *what)
{
    const double *p = duet_read_f64(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        CHECK(p[i] == expected[i] || (isnan(p[i]) && isnan(expected[i])), "%s, element %d: %g, not %g", what,
              (int)i, p[i], expected[i]);
    CHECK(p != NULL, "%s: %s", what, duet_error());
}

/* ---- every operator ---- */

static const bool has_row[OPS_ALL] = {
#define DUET_D1(name, ...)   [OP_##name] = true,
#define DUET_D2(name, ...)   [OP_##name] = true,
#define DUET_D3(name, ...)   [OP_##name] = true,
#define DUET_NO_D(name, ...) [OP_##name] = true,
#include "derivatives.def"
};

/* Operators without a row take no floating-point numbers, or give truth values, indices or numbers of
 * elements. */
static void test_rows(void)
{
    for (int op = 0; op < OPS; op++) {
        const int flags = op_infos[op].flags;
        const bool is_constant = flags & (OP_GIVES_INDEX | DUET_TRUTH) ||
                                 !(flags & (OP_FLOATS | OP_ANY_TYPES)) || op == OP_one_hot ||
                                 op == OP_histogram || op == OP_argsort || op == OP_top_k_indices ||
                                 op == OP_bottom_k_indices || op == OP_collective;
        CHECK(has_row[op] || is_constant, "%s has no row in derivatives.def", op_infos[op].name);
    }
    tap_point("every operator has a derivative or a reason");
}

/* ---- points without a derivative ---- */

static void check_point(const char *what, duet_expr y, const duet_matrix *x, const double *expected)
{
    const duet_expr d = duet_hold(duet_grad(y, x));
    for (int p = 0; p < places; p++) {
        duet_matrix *g = duet_new(DUET_F64, duet_count(x));
        ok(duet_set_on(place[p], g, d));
        holds(g, expected, what);
        duet_free(&g);
    }
    forget(d);
}
#define POINT(formula, ...) check_point(#formula, duet_sum(formula), x, (const double[]){ __VA_ARGS__ })

static void test_points(void)
{
    duet_matrix *x = of(4, (double[]){ 0, 2, 2, -1 }), *y = of(4, (double[]){ 0, 2, 1, 3 });
    POINT(duet_abs(x), 0, 1, 1, -1);
    POINT(duet_relu(x), 0, 1, 1, 0);
    POINT(duet_minimum(x, y), .5, .5, 0, 1);
    POINT(duet_maximum(x, y), .5, .5, 1, 0);
    POINT(duet_max(x), 0, .5, .5, 0);
    POINT(duet_min(x), 0, 0, 0, 1);
    POINT(duet_norm(duet_mul(x, 0)), 0, 0, 0, 0);
    POINT(duet_hypot(x, duet_mul(x, 0)), 0, 1, 1, -1);
    POINT(duet_floor(x), 0, 0, 0, 0);
    POINT(duet_sign(x), 0, 0, 0, 0);
    POINT(duet_prod(x), -4, 0, 0, 0);
    POINT(duet_where(duet_greater(x, 1), duet_log(duet_abs(x)), x), NAN, .5, .5, 1);
    POINT(duet_pow(x, 2), 0, 4, 4, -2);
    POINT(duet_pow(x, 0), 0, 0, 0, 0);
    POINT(duet_copysign(x, y), 0, 1, 1, -1);
    POINT(duet_cast(duet_greater(x, 1), DUET_F64), 0, 0, 0, 0);
    POINT(duet_cast(duet_cast(x, DUET_I64), DUET_F64), 0, 0, 0, 0);
    POINT(y, 0, 0, 0, 0);
    POINT(x, 1, 1, 1, 1);
    POINT(duet_mul(x, duet_stop_gradient(x)), 0, 2, 2, -1);
    POINT(duet_stop_gradient(duet_exp(x)), 0, 0, 0, 0);
    POINT(duet_add(duet_index(x, DUET_AT(1)), duet_broadcast(duet_index(x, DUET_AT(3)), 2)), 0, 2, 0, 2);
    const duet_expr e = duet_add(x, 1), f = duet_add(e, e);
    forget(e); /* f keeps its nodes */
    check_point("a formula with a part that was dropped", duet_sum(f), x, (const double[]){ 2, 2, 2, 2 });
    duet_expr sum = DUET(x);
    for (int i = 0; i < 3000; i++) sum = duet_add(sum, x); /* the arena grows and moves */
    check_point("a long formula", duet_sum(sum), x, (const double[]){ 3001, 3001, 3001, 3001 });
    duet_free(&x, &y);
    tap_point("points without a derivative, constants, and numbers as gradients");
}

/* Equal operands get the same share, also equal infinities. The second derivative is that of a smooth
 * function. */
static void test_logaddexp(void)
{
    const double inf = INFINITY, at[] = { 0, 3, inf, inf, -inf, -inf, inf, 700, -800, 1 },
                 other[] = { 0, 3, inf, 2, -inf, 5, -inf, -800, 700, NAN },
                 first[] = { .5, .5, .5, 1, .5, 0, 1, 1, 0, NAN },
                 second[] = { .25, .25, 0, 0, 0, 0, 0, 0, 0, NAN };
    duet_matrix *x = of(10, at), *y = of(10, other);
    check_point("logaddexp", duet_sum(duet_logaddexp(x, y)), x, first);
    for (int p = 0; p < places; p++) {
        duet_matrix *g = duet_new(DUET_F64, 10);
        ok(duet_set_on(place[p], g, duet_grad(duet_sum(duet_grad(duet_sum(duet_logaddexp(x, y)), x)), x)));
        const double *got = duet_read_f64(g);
        for (int i = 0; i < 10; i++)
            CHECK(i == 2 || i == 4 || fabs(got[i] - second[i]) < 1e-15 || (isnan(got[i]) && isnan(second[i])),
                  "second derivative of logaddexp(%g, %g): %g", at[i], other[i], got[i]);
        duet_free(&g);
    }
    duet_free(&x, &y);
    tap_point("logaddexp of equal and infinite operands");
}

/* Where a sigmoid is nearly 1, its derivative is as accurate as elsewhere. */
static void check_saturated(duet_place p, duet_dtype t, bool is_tanh)
{
    enum { N = 1201 };
    duet_matrix *x = duet_new(t, N), *g = duet_new(t, N), *wide = duet_new(DUET_F64, N);
    const double u = t == DUET_F32 ? 0x1p-24 : 0x1p-53, end = t == DUET_F32 ? 40 : 300;
    ok(duet_set(x, duet_cast(duet_mul(duet_sub(duet_iota(DUET_F64, N), N / 2), end / (N / 2)), t)));
    ok(duet_set_on(p, g, duet_grad(duet_sum(is_tanh ? duet_tanh(x) : duet_sigmoid(x)), x)));
    ok(duet_set(wide, duet_cast(x, DUET_F64)));
    const double *at = duet_read_f64(wide);
    for (int i = 0; i < N; i++) {
        const long double z = is_tanh ? 2 * at[i] : at[i], e = expl(-fabsl(z)),
                          want = (is_tanh ? 4 : 1) * e / ((1 + e) * (1 + e));
        const double got = t == DUET_F32 ? duet_read_f32(g)[i] : duet_read_f64(g)[i];
        if (!CHECK(fabsl(got - want) <= 8 * u * want, "derivative of %s at %g: %g, not %Lg",
                   is_tanh ? "tanh" : "sigmoid", at[i], got, want))
            break;
    }
    duet_free(&x, &g, &wide);
}

static void test_saturated(void)
{
    for (int p = 0; p < places; p++)
        for (int k = 0; k < 4; k++) check_saturated(place[p], k & 1 ? DUET_F64 : DUET_F32, k & 2);
    tap_point("derivatives of sigmoid and tanh near their limits");
}

/* The type of a gradient is that of the matrix, and no part is computed in another one. */
static void test_types(void)
{
    static const duet_dtype types[] = { DUET_F16, DUET_BF16, DUET_F32, DUET_F64 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        duet_matrix *x = duet_full(types[t], 2, 3), *g = duet_new(types[t], 3);
        for (int k = 0; k < 4; k++) {
            const duet_expr of_each[] = { duet_maximum(x, 1), duet_minimum(duet_exp(x), 4), duet_relu(x),
                                          duet_clip(x, -1, 1) };
            const duet_expr d = duet_grad(duet_sum(of_each[k]), x);
            CHECK(duet_expr_type(d) == types[t], "formula %d: the type is %d", k, (int)duet_expr_type(d));
            ok(duet_set(g, d));
            for (int i = 0; i < 4; i++)
                if (i != k) forget(of_each[i]);
        }
        duet_free(&x, &g);
    }
    tap_point("types of gradients");
}

/* With respect to a + ib, dy/da - i dy/db. */
static void test_complex(void)
{
    duet_matrix *z = duet_new(DUET_C128, 2), *g = duet_new(DUET_C128, 2);
    double *p = duet_overwrite(z);
    if (p) memcpy(p, (double[]){ 3, 4, 1, -2 }, 4 * sizeof *p);
    static const double squares[] = { 6, -8, 2, 4 }, reals[] = { 6, 8, 2, -4 }, lengths[] = { .6, -.8 };
    ok(duet_set(g, duet_grad(duet_sum(duet_square(duet_abs(z))), z)));
    const double *q = duet_read(g);
    CHECK(q != NULL, "%s", duet_error());
    for (int i = 0; q && i < 4; i++)
        CHECK(fabs(q[i] - squares[i]) <= 1e-14, "|z|^2: %g, not %g", q[i], squares[i]);
    ok(duet_set(g, duet_grad(duet_sum(duet_real(duet_mul(z, z))), z)));
    q = duet_read(g);
    CHECK(q != NULL, "%s", duet_error());
    for (int i = 0; q && i < 4; i++)
        CHECK(fabs(q[i] - reals[i]) <= 1e-14, "real(z^2): %g, not %g", q[i], reals[i]);
    ok(duet_set(g, duet_grad(duet_sum(duet_abs(z)), z)));
    q = duet_read(g);
    for (int i = 0; q && i < 2; i++)
        CHECK(fabs(q[i] - lengths[i]) <= 1e-15, "|z|: %g, not %g", q[i], lengths[i]);
    duet_free(&z, &g);
    tap_point("complex gradients");
}

/* ---- unusual operands ---- */

static void gives(duet_expr y, const duet_matrix *x, const char *what)
{
    duet_matrix *g = duet_eval(duet_grad(y, x));
    CHECK(g != NULL, "%s: %s", what, duet_error());
    CHECK(!g || duet_count(g) == duet_count(x), "%s: the gradient has another shape", what);
    duet_free(&g);
}
#define GIVES(formula, x) gives(duet_sum(formula), x, #formula)

static void test_unusual(void)
{
    static const int64_t equal[] = { 1, 1, 0 };
    duet_matrix *stack = duet_new(DUET_F64, 2, 3, 0), *wide = duet_new(DUET_F64, 0, 2),
                *tall = duet_new(DUET_F64, 4, 0), *full = duet_ones(DUET_F64, 2, 3, 4),
                *small = duet_ones(DUET_F64, 2, 2), *v = duet_ones(DUET_F64, 3),
                *i = duet_from_array(equal, DUET_I64, 3), *z = duet_zeros(DUET_F64, 3),
                *m = duet_ones(DUET_BOOL, 3), *c = duet_ones(DUET_C128, 3),
                *eight = duet_ones(DUET_F64, 2, 1, 1, 1, 1, 1, 1, 7);
    GIVES(duet_matmul(stack, wide), stack);
    GIVES(duet_matmul(stack, wide), wide);
    GIVES(duet_matmul(full, tall), full);
    GIVES(duet_matmul(full, tall), tall);
    GIVES(duet_diagonal_of(small, -5), small);
    GIVES(duet_diagonal_of(small, 5), small);
    GIVES(duet_pow(m, v), v);
    GIVES(duet_pow(v, m), v);
    GIVES(duet_copysign(v, m), v);
    GIVES(duet_abs(duet_take(c, i, 0)), c);
    GIVES(duet_range(eight, 0, 0, 2, 1), eight);
    check_point("put with equal indices", duet_sum(duet_put(z, i, v, 0)), v, (const double[]){ 0, 1, 1 });
    duet_matrix *g = duet_eval(duet_vjp(duet_exp(c), c, duet_complex(1, 2)));
    CHECK(g != NULL, "a complex number as gradient: %s", duet_error());
    const duet_expr constant = duet_mul(duet_stop_gradient(0.5), duet_cast(v, DUET_F32));
    CHECK(duet_expr_type(constant) == DUET_F32, "a number as a constant has a type");
    forget(constant);
    duet_free(&stack, &wide, &tall, &full, &small, &v, &i, &z, &m, &c, &eight, &g);
    tap_point("empty matrices, bool and complex operands, equal indices");
}

/* Formulas that a gradient does not name are freed, although another formula is never evaluated. */
static void test_arena(void)
{
    duet_matrix *x = duet_ones(DUET_F64, 3), *g = duet_new(DUET_F64, 3);
    const duet_expr other = duet_add(x, 1);
    bool all = true;
    for (int turn = 0; turn < 40000 && all; turn++)
        all = CHECK(duet_set(g, duet_grad(duet_sum(duet_maximum(duet_exp(x), 2)), x)) == DUET_OK,
                    "turn %d: %s", turn, duet_error());
    for (int turn = 0; turn < 1000; turn++) forget(duet_grad(duet_sum(duet_exp(x)), NULL));
    ok(duet_set(g, other));
    duet_free(&x, &g);
    tap_point("many gradients while a formula is not evaluated");
}

/* The gradient with respect to a matrix that a formula does not name is 0, and the plan says so. */
static void test_absent(void)
{
    duet_matrix *x = duet_ones(DUET_F64, 3), *other = duet_ones(DUET_F64, 3), *d = duet_ones(DUET_F64, 3),
                *l = duet_ones(DUET_F64, 1);
    for (int named = 0; named < 2; named++) {
        char *text;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        const duet_expr y = duet_sum(duet_mul(x, x));
        DUET_EXPLAIN(out) ok(duet_set_all({ l, y }, { d, duet_grad(y, named ? x : other) }));
        fclose(out);
        const char *note =
            strstr(text, "note: in statement 2, a gradient is 0, because its formula does not name");
        CHECK((note != NULL) == !named, "%s", text);
        free(text);
    }
    ok(duet_set(d, duet_grad(duet_sum(duet_mul(x, x)), other)));
    holds(d, (const double[]){ 0, 0, 0 }, "a matrix that the formula does not name");
    duet_free(&x, &other, &d, &l);
    tap_point("the gradient with respect to a matrix that the formula does not name");
}

/* ---- lists of statements ---- */

/* The program under test in C: nodes of a formula over four arrays, evaluated for each statement anew. */
enum { ARRAYS = 4, LONG = 5, NODES = 24, LIST = 6 };

typedef struct dag {
    int count, op[NODES], x[NODES], y[NODES];
} dag;

static dag random_dag(rng *gen)
{
    dag d = { .count = ARRAYS };
    while (d.count < NODES) {
        d.op[d.count] = (int)rng_below(gen, 4);
        d.x[d.count] = (int)rng_below(gen, (uint64_t)d.count);
        d.y[d.count] = (int)rng_below(gen, (uint64_t)d.count);
        d.count++;
    }
    return d;
}

static void value_of(const dag *d, int i, double a[ARRAYS][LONG], double *v)
{
    double x[LONG], y[LONG];
    if (i < ARRAYS) {
        memcpy(v, a[i], sizeof x);
        return;
    }
    value_of(d, d->x[i], a, x);
    value_of(d, d->y[i], a, y);
    for (int k = 0; k < LONG; k++)
        v[k] = d->op[i] == 0   ? x[k] + y[k]
               : d->op[i] == 1 ? x[k] - y[k]
               : d->op[i] == 2 ? fmin(x[k], y[k])
                               : -x[k];
}

static duet_expr node_of(int op, duet_expr x, duet_expr y)
{
    return op == 0 ? duet_add(x, y) : op == 1 ? duet_sub(x, y) : op == 2 ? duet_minimum(x, y) : duet_neg(x);
}

/* Statements whose formulas share nodes read what the statements before them have written. Some
 * destinations are parts of other matrices. */
static void one_list(rng *gen)
{
    const dag d = random_dag(gen);
    double a[ARRAYS][LONG], v[LONG];
    duet_matrix *m[ARRAYS], *part[ARRAYS];
    duet_expr e[NODES];
    duet_assignment list[LIST];
    const int count = 2 + (int)rng_below(gen, LIST - 1);
    for (int i = 0; i < ARRAYS; i++) {
        for (int k = 0; k < LONG; k++) a[i][k] = (double)(int)rng_below(gen, 100) - 50;
        m[i] = of(LONG, a[i]);
        part[i] = duet_slice(m[i], 1, 3);
        e[i] = DUET(m[i]);
    }
    for (int i = ARRAYS; i < NODES; i++) e[i] = node_of(d.op[i], e[d.x[i]], e[d.y[i]]);
    for (int k = 0; k < count; k++) {
        const int root = (int)rng_below(gen, NODES), to = (int)rng_below(gen, ARRAYS);
        const bool some = rng_chance(gen, 30);
        value_of(&d, root, a, v);
        if (some) memcpy(a[to] + 1, v + 1, 3 * sizeof *v);
        else memcpy(a[to], v, sizeof v);
        list[k].to = some ? part[to] : m[to];
        list[k].value = some ? duet_index(e[root], DUET_RANGE(1, 4)) : e[root];
    }
    ok((duet_set_all)(list, count));
    for (int i = 0; i < ARRAYS; i++) holds(m[i], a[i], "a list");
    for (int i = 0; i < NODES; i++) forget(e[i]);
    for (int i = 0; i < ARRAYS; i++) duet_free(&part[i], &m[i]);
}

static void test_lists(int trials)
{
    rng gen = rng_new(7);
    for (int t = 0; t < trials; t++)
        for (int p = 0; p < places; p++) DUET_ON(place[p]) one_list(&gen);
    tap_point("lists of statements that share nodes");
}

/* ---- a network ---- */

enum { BATCH = 8, IN = 20, UNITS = 12, OUT = 5 };
typedef struct network {
    duet_matrix *x, *t, *w1, *b1, *w2, *b2, *d[4], *loss;
} network;

static network network_new(rng *gen)
{
    network n = { duet_new(DUET_F64, BATCH, IN),  duet_new(DUET_F64, BATCH, OUT),
                  duet_new(DUET_F64, IN, UNITS),  duet_new(DUET_F64, UNITS),
                  duet_new(DUET_F64, UNITS, OUT), duet_new(DUET_F64, OUT) };
    duet_matrix *const all[] = { n.x, n.t, n.w1, n.b1, n.w2, n.b2 };
    for (int i = 0; i < 6; i++) {
        double *p = duet_overwrite(all[i]);
        for (int64_t k = 0; p && k < duet_count(all[i]); k++) p[k] = (double)rng_below(gen, 1000) / 500 - 1;
        if (i > 1) n.d[i - 2] = duet_new_shape(DUET_F64, duet_rank(all[i]), all[i]->at.size);
    }
    n.loss = duet_new(DUET_F64, 1);
    return n;
}

static void network_free(network *n)
{
    duet_free(&n->x, &n->t, &n->w1, &n->b1, &n->w2, &n->b2, &n->d[0], &n->d[1], &n->d[2], &n->d[3], &n->loss);
}

static duet_expr loss_of(const network *n)
{
    const duet_expr h = duet_relu(duet_bias_add(duet_matmul(n->x, n->w1), n->b1));
    return duet_cross_entropy_logits(duet_bias_add(duet_matmul(h, n->w2), n->b2), n->t);
}

static duet_status train(const network *n)
{
    const duet_expr y = loss_of(n);
    return duet_set_all({ n->loss, y }, { n->d[0], duet_grad(y, n->w1) }, { n->d[1], duet_grad(y, n->b1) },
                        { n->d[2], duet_grad(y, n->w2) }, { n->d[3], duet_grad(y, n->b2) });
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p++) n++;
    return n;
}

/* Two products forward, three backward; the first one runs with its bias and activation. */
static void test_plan(const network *n)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    DUET_ON(DUET_CPU) DUET_EXPLAIN(out) ok(train(n));
    fclose(out);
    CHECK(count_of(text, ". matmul") == 5, "%d products:\n%s", count_of(text, ". matmul"), text);
    CHECK(count_of(text, "matmul_bias_relu") == 1, "the first layer is not one step:\n%s", text);
    CHECK(strstr(text, "on the CPU: 13 steps") != NULL, "not 13 steps:\n%s", text);
    CHECK(count_of(text, ". log_softmax") == 1, "the softmax is computed again:\n%s", text);
    free(text);
    out = open_memstream(&text, &bytes);
    const duet_expr h = duet_sigmoid(duet_bias_add(duet_matmul(n->x, n->w1), n->b1)), y = duet_norm(h);
    DUET_ON(DUET_CPU) DUET_EXPLAIN(out) ok(duet_set_all({ n->loss, y }, { n->d[0], duet_grad(y, n->w1) }));
    fclose(out);
    CHECK(count_of(text, "matmul_bias_sigmoid") == 1, "the layer is not one step:\n%s", text);
    free(text);
    tap_point("the forward pass runs once");
}

static void check_network(const network *n, duet_expr (*gradient)(duet_expr, const duet_matrix *),
                          double bound)
{
    duet_matrix *const w[] = { n->w1, n->b1, n->w2, n->b2 };
    for (int k = 0; k < 4; k++) {
        duet_matrix *alone = duet_eval(gradient(loss_of(n), w[k]));
        const double *p = alone ? duet_read_f64(alone) : NULL, *q = duet_read_f64(n->d[k]);
        for (int64_t i = 0; p && q && i < duet_count(alone); i++)
            CHECK(fabs(p[i] - q[i]) <= bound, "matrix %d, element %d: %g and %g", k, (int)i, p[i], q[i]);
        CHECK(p && q, "%s", duet_error());
        duet_free(&alone);
    }
}

static duet_expr plain(duet_expr y, const duet_matrix *x) { return duet_grad(y, x); }
static duet_expr by_vjp(duet_expr y, const duet_matrix *x) { return duet_mul(duet_vjp(y, x, 2), 0.5); }
static duet_expr by_held(duet_expr y, const duet_matrix *x)
{
    const duet_expr held = duet_hold(y), g = duet_hold(duet_grad(held, x)), result = duet_mul(g, 1);
    forget(held);
    forget(g);
    return result;
}

static void test_network(void)
{
    rng gen = rng_new(3);
    network n = network_new(&gen);
    for (int p = 0; p < places; p++) {
        DUET_ON(place[p]) ok(train(&n));
        check_network(&n, plain, 1e-14);
        check_network(&n, by_vjp, 1e-14);
        check_network(&n, by_held, 1e-14);
    }
    test_plan(&n);
    for (int p = 0; p < places; p++) {
        duet_recording *r = NULL;
        DUET_ON(place[p])
        {
            ok(duet_record_begin());
            ok(train(&n));
            r = duet_record_end();
        }
        ok(duet_set(n.w1, duet_mul(n.w1, 0.5)));
        CHECK(r != NULL, "%s", duet_error());
        if (r) ok(duet_replay(r));
        check_network(&n, plain, 1e-14);
        duet_recording_free(&r);
    }
    tap_point("a network: gradients together, alone, by vjp, persistent, recorded");
    network_free(&n);
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 150, 1000);
    places = list_places(place);
    test_rows();
    test_points();
    test_types();
    test_complex();
    test_unusual();
    test_arena();
    test_logaddexp();
    test_saturated();
    test_absent();
    test_lists(trials);
    test_network();
    return tap_end();
}
