/* optimizers.c - statements that update the parameters of a network from their gradient. Each is one list
 * of assignments, of which the last one writes the parameters. */
#include "dtype.h"
#include "expr.h"
#include "matrix.h"
#include "statement.h"
#include <math.h>
#include <string.h>
#undef DUET_HERE
#define DUET_HERE u->site /* of the user's call */

#define STATES 2 /* matrices that an optimiser keeps for one w */

/* A matrix that is updated besides w. */
typedef struct state {
    const char *name;
    duet_matrix *m;
} state;

/* A number of the options, which must be in [0, below). */
typedef struct limit {
    const char *name;
    double value, below;
} limit;
#define LIMITS 4

/* A call: its operands, and the rest of its arguments to check. */
typedef struct update {
    const char *who, *site;
    duet_matrix *w;
    duet_expr g, rate, step;
    bool counts;    /* is there a step? */
    bool decoupled; /* is decay subtracted from w, not added to g? */
    int32_t nesterov;
    double decay, momentum, epsilon, keep[STATES];
    state state[STATES];
    limit limit[LIMITS];
} update;

/* ---- error texts ---- */

static const char *matrix_text(const duet_matrix *m, char text[SHAPE_TEXT])
{
    if (!m) return "NULL";
    if (!m->serial) return "freed matrix";
    return shape_text(text, m->at.type, m->at.rank, m->at.size);
}

/* "duet_adam(w: f32[3], square: f32[2]): square must have the shape of w". rule: what `name` must be. */
static __attribute__((cold)) duet_status refuse(const update *u, duet_status s, const char *name,
                                                const char *text, const char *rule)
{
    char w[SHAPE_TEXT];
    return fail(s, "%s(w: %s, %s: %s): %s %s", u->who, matrix_text(u->w, w), name, text, name, rule);
}

static __attribute__((cold)) duet_status refuse_matrix(const update *u, duet_status s, const state *m,
                                                       const char *rule)
{
    char text[SHAPE_TEXT];
    return refuse(u, s, m->name, matrix_text(m->m, text), rule);
}

static __attribute__((cold)) duet_status refuse_number(const update *u, const char *name, double x,
                                                       const char *rule)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", x);
    return refuse(u, DUET_BAD_ARGUMENT, name, text, rule);
}

static __attribute__((cold)) duet_status refuse_formula(const update *u, duet_status s, const char *name,
                                                        const node *n, const char *rule)
{
    char text[SHAPE_TEXT];
    shape_text(text, (duet_dtype)n->type, n->rank, n->size);
    return refuse(u, s, name, n->flags & NODE_WEAK ? "a number" : text, rule);
}

/* formula_of failed: its text calls every operand e. */
static __attribute__((cold)) duet_status name_operand(const update *u, duet_status s, const char *name)
{
    char general[64], w[SHAPE_TEXT];
    error_text said;
    error_keep(&said);
    const int n = snprintf(general, sizeof general, "%s: e ", u->who);
    if (strncmp(said.text, general, (size_t)n) != 0) return s;
    return fail(s, "%s(w: %s): %s %s", u->who, matrix_text(u->w, w), name, said.text + n);
}

/* ---- checks of matrices and options ---- */

static duet_status check_w(const update *u)
{
    if (!u->w) return fail(DUET_BAD_ARGUMENT, "%s: w must not be NULL", u->who);
    if (!u->w->serial) return fail(DUET_FREED, "%s: w is a matrix that was freed", u->who);
    char text[SHAPE_TEXT];
    matrix_text(u->w, text);
    if (dtype_kind(u->w->at.type) != TYPE_FLOAT)
        return fail(DUET_BAD_TYPE, "%s(w: %s): w must be floating point and real", u->who, text);
    char constant[CONSTANT_TEXT];
    if (u->w->constant)
        return fail(DUET_BAD_ARGUMENT, "%s(w: %s): %s", u->who, text, matrix_constant_text(u->w, constant));
    if (!u->w->repeats) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s(w: %s): w must not repeat elements, as a broadcast view does", u->who,
                text);
}

static bool shares_elements(const duet_matrix *a, const duet_matrix *b)
{
    return a == b || matrix_overlap(a, b) != APART;
}

/* The type of the matrices that are updated besides w. In f16 a mean square would underflow. */
static duet_dtype computed_type(const update *u) { return dtypes[u->w->at.type].computed; }

static __attribute__((cold)) duet_status refuse_state_type(const update *u, const state *x)
{
    char rule[64];
    snprintf(rule, sizeof rule, "must be %s, the type in which w is computed", dtypes[computed_type(u)].name);
    return refuse_matrix(u, DUET_BAD_TYPE, x, rule);
}

static duet_status check_state(const update *u, const state *x)
{
    const duet_matrix *m = x->m;
    if (!m) return refuse_matrix(u, DUET_BAD_ARGUMENT, x, "must not be NULL");
    if (!m->serial) return refuse_matrix(u, DUET_FREED, x, "must not be a matrix that was freed");
    const shape own = shape_of_layout(&m->at), w = shape_of_layout(&u->w->at);
    if (!shape_equal(&own, &w)) return refuse_matrix(u, DUET_BAD_SHAPE, x, "must have the shape of w");
    if (m->at.type != computed_type(u)) return refuse_state_type(u, x);
    char constant[CONSTANT_TEXT];
    if (m->constant) return refuse_matrix(u, DUET_BAD_ARGUMENT, x, matrix_constant_text(m, constant));
    if (m->repeats)
        return refuse_matrix(u, DUET_BAD_ARGUMENT, x, "must not repeat elements, as a broadcast view does");
    if (shares_elements(m, u->w))
        return refuse_matrix(u, DUET_BAD_ARGUMENT, x, "must not share elements with w");
    return DUET_OK;
}

static duet_status check_states(const update *u)
{
    char rule[64];
    const state *x = u->state;
    for (int k = 0; k < STATES && x[k].name; k++) {
        TRY(check_state(u, &x[k]));
        if (k == 0 || !shares_elements(x[0].m, x[k].m)) continue;
        snprintf(rule, sizeof rule, "must not share elements with %s", x[0].name);
        return refuse_matrix(u, DUET_BAD_ARGUMENT, &x[k], rule);
    }
    return DUET_OK;
}

static duet_status check_options(const update *u)
{
    for (const limit *l = u->limit; l < u->limit + LIMITS && l->name; l++) {
        const bool shares = l->below <= 1;
        if (!(l->value >= 0 && l->value < l->below))
            return refuse_number(u, l->name, l->value,
                                 shares ? "must be at least 0 and less than 1"
                                        : "must be at least 0 and finite");
    }
    if (u->nesterov != 0 && u->nesterov != 1)
        return refuse_number(u, "nesterov", u->nesterov, "must be 0 or 1");
    if (u->nesterov && u->momentum == 0)
        return refuse_number(u, "momentum", 0, "must not be 0 with Nesterov's momentum");
    return DUET_OK;
}

/* ---- checks of formulas ---- */

/* A formula is used by the assignment of w, but also by those before it. */
static duet_status check_leaves(const update *u, const char *name, const formula *f)
{
    char rule[64];
    TRY(formula_lives(u->who, f));
    for (const node *n = leaf_last(f); n; n = leaf_before(f, n))
        for (int k = 0; k < STATES && u->state[k].name; k++) {
            if (!shares_elements(n->matrix, u->state[k].m)) continue;
            snprintf(rule, sizeof rule, "must not read %s, which is updated", u->state[k].name);
            return refuse_formula(u, DUET_BAD_ARGUMENT, name, &f->nodes[f->count - 1], rule);
        }
    return DUET_OK;
}

/* The root of an operand, until another formula is read. */
static duet_status read_operand(const update *u, duet_expr e, const char *name, const node **root)
{
    formula f;
    const duet_status s = formula_of(e, u->who, &f);
    if (s != DUET_OK) return name_operand(u, s, name);
    *root = &f.nodes[f.count - 1];
    return check_leaves(u, name, &f);
}

static duet_status check_gradient(const update *u)
{
    const node *n;
    const layout *w = &u->w->at;
    TRY(read_operand(u, u->g, "g", &n));
    bool same = n->rank == w->rank;
    for (int a = 0; a < w->rank && same; a++) same = n->size[a] == w->size[a];
    if (!same) return refuse_formula(u, DUET_BAD_SHAPE, "g", n, "must have the shape of w");
    if (dtype_is_complex((duet_dtype)n->type))
        return refuse_formula(u, DUET_BAD_TYPE, "g", n, "must be real");
    const duet_dtype computed = computed_type(u);
    if (n->flags & NODE_WEAK || dtype_promote((duet_dtype)n->type, computed) == computed) return DUET_OK;
    return refuse_formula(
        u, DUET_BAD_TYPE, "g", n,
        "cannot be converted to the type in which w is computed without loss; use duet_cast");
}

/* Checks an operand of one element. If it is a number, it must be in [least, infinity). Converts a matrix to
 * the type in which w is computed, and to as few axes. */
static duet_status check_scalar(const update *u, const char *name, duet_expr *e, double least)
{
    const node *n;
    TRY(read_operand(u, *e, name, &n));
    const duet_dtype type = (duet_dtype)n->type, computed = computed_type(u);
    const int rank = n->rank;
    const bool is_weak = n->flags & NODE_WEAK;
    for (int a = 0; a < rank; a++)
        if (n->size[a] != 1) return refuse_formula(u, DUET_BAD_SHAPE, name, n, "must have one element");
    if (dtype_is_complex(type) || dtype_kind(type) == TYPE_BOOL)
        return refuse_formula(u, DUET_BAD_TYPE, name, n, "must be a real number");
    if (n->op == OP_NUMBER && !(node_number(n) >= least && node_number(n) < INFINITY))
        return refuse_number(u, name, node_number(n),
                             least > 0 ? "must be at least 1 and finite" : "must be at least 0 and finite");
    if (!is_weak && type != computed) *e = duet_cast(*e, computed);
    if (rank > u->w->at.rank) *e = duet_reshape_at(*e, 0, NULL, u->site);
    return DUET_OK;
}

static duet_status check(update *u)
{
    TRY(check_w(u));
    TRY(check_options(u));
    TRY(check_states(u));
    TRY(check_gradient(u));
    TRY(check_scalar(u, "rate", &u->rate, 0));
    return u->counts ? check_scalar(u, "step", &u->step, 1) : DUET_OK;
}

/* ---- running ---- */

typedef struct assignments {
    duet_assignment of[STATES + 1];
    int count;
} assignments;

typedef void rule(const update *u, assignments *to);

static void assign(assignments *all, duet_matrix *m, duet_expr e)
{
    all->of[all->count++] = (duet_assignment){ m, e };
}

/* Operands that became part of a formula are spent with it, others here. */
static void spend_operands(const update *u)
{
    formula_spend(u->g, u->site);
    formula_spend(u->rate, u->site);
    if (u->counts) formula_spend(u->step, u->site);
}

static duet_status run_update(update *u, rule *make)
{
    const update given = *u; /* without conversions */
    assignments all = { .count = 0 };
    thread_get()->site = u->site;
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_status s = check(u);
    if (s == DUET_OK) {
        make(u, &all);
        s = statement_set_all(u->who, "result", all.of, all.count, u->site);
        spend_operands(&given);
        return s;
    }
    spend_operands(u);
    spend_operands(&given);
    return statement_ends(s, u->site);
}

/* The gradient with weight decay. */
static duet_expr decayed(const update *u)
{
    return u->decay != 0 ? duet_add(u->g, duet_mul(u->decay, u->w)) : u->g;
}

/* w less rate times e. If w is f16 or bf16, the formula is f32. */
static void move(const update *u, assignments *to, duet_expr e)
{
    const duet_dtype type = u->w->at.type;
    const duet_expr moved = duet_sub(u->w, duet_mul(e, u->rate));
    assign(to, u->w, dtypes[type].computed == type ? moved : duet_cast(moved, type));
}

/* ---- the optimisers ---- */

static void descend(const update *u, assignments *to)
{
    const duet_expr d = decayed(u);
    duet_matrix *velocity = u->state[0].m;
    if (u->momentum == 0) {
        move(u, to, d);
        return;
    }
    assign(to, velocity, duet_add(duet_mul(u->momentum, velocity), d));
    move(u, to, u->nesterov ? duet_add(d, duet_mul(u->momentum, velocity)) : DUET(velocity));
}

/* 1 - keep^step, without cancellation where keep is close to 1. */
static duet_expr started(const update *u, double keep)
{
    return duet_neg(duet_expm1(duet_mul(u->step, log(keep))));
}

/* The bias corrections are applied to the denominator. So a rate that is a matrix is used as it is, and
 * needs no step of its own. */
static void adapt(const update *u, assignments *to)
{
    const double k = u->keep[0], l = u->keep[1];
    const duet_expr d = u->decoupled ? u->g : decayed(u);
    duet_matrix *mean = u->state[0].m, *square = u->state[1].m;
    assign(to, mean, duet_add(duet_mul(k, mean), duet_mul(1 - k, d)));
    assign(to, square, duet_add(duet_mul(l, square), duet_mul(1 - l, duet_mul(d, d))));
    const duet_expr second = duet_rsqrt(started(u, l));
    const duet_expr root = duet_fma(duet_sqrt(square), second, u->epsilon);
    const duet_expr e = duet_div(mean, duet_mul(started(u, k), root));
    move(u, to, u->decoupled && u->decay != 0 ? duet_add(e, duet_mul(u->decay, u->w)) : e);
}

/* The gradient, divided by the root of the sum or mean of its squares. */
static duet_expr scaled(const update *u, duet_expr d)
{
    return duet_div(d, duet_add(duet_sqrt(u->state[0].m), u->epsilon));
}

static void divide_by_mean(const update *u, assignments *to)
{
    const double k = u->keep[0];
    const duet_expr d = decayed(u);
    duet_matrix *square = u->state[0].m, *velocity = u->state[1].m;
    assign(to, square, duet_add(duet_mul(k, square), duet_mul(1 - k, duet_mul(d, d))));
    if (u->momentum != 0) {
        assign(to, velocity, duet_add(duet_mul(u->momentum, velocity), scaled(u, d)));
        move(u, to, DUET(velocity));
    } else move(u, to, scaled(u, d));
}

static void divide_by_sum(const update *u, assignments *to)
{
    const duet_expr d = decayed(u);
    duet_matrix *sum = u->state[0].m;
    assign(to, sum, duet_add(sum, duet_mul(d, d)));
    move(u, to, scaled(u, d));
}

/* ---- the functions ---- */

static double number_or(double x, double usual) { return x != 0 ? x : usual; }

duet_status duet_sgd_at(duet_matrix *w, duet_expr g, duet_expr rate, const duet_sgd_options *options,
                        const char *site)
{
    const duet_sgd_options none = { .momentum = 0 }, *o = options ? options : &none;
    update u = { .who = "duet_sgd", .site = site, .w = w, .g = g, .rate = rate };
    u.decay = o->decay;
    u.momentum = o->momentum;
    u.nesterov = o->nesterov;
    u.limit[0] = (limit){ "momentum", o->momentum, INFINITY };
    u.limit[1] = (limit){ "decay", o->decay, INFINITY };
    if (o->momentum != 0) u.state[0] = (state){ "velocity", o->velocity };
    return run_update(&u, descend);
}

static duet_status adam(update *u, duet_matrix *mean, duet_matrix *square, const duet_adam_options *options)
{
    const duet_adam_options none = { .decay = 0 }, *o = options ? options : &none;
    u->counts = true;
    u->decay = o->decay;
    u->keep[0] = number_or(o->keep_mean, 0.9);
    u->keep[1] = number_or(o->keep_square, 0.999);
    u->epsilon = number_or(o->epsilon, 1e-8);
    u->limit[0] = (limit){ "keep_mean", o->keep_mean, 1 };
    u->limit[1] = (limit){ "keep_square", o->keep_square, 1 };
    u->limit[2] = (limit){ "epsilon", o->epsilon, INFINITY };
    u->limit[3] = (limit){ "decay", o->decay, INFINITY };
    u->state[0] = (state){ "mean", mean };
    u->state[1] = (state){ "square", square };
    return run_update(u, adapt);
}

duet_status duet_adam_at(duet_matrix *w, duet_expr g, duet_matrix *mean, duet_matrix *square, duet_expr rate,
                         duet_expr number, const duet_adam_options *options, const char *site)
{
    update u = { .who = "duet_adam", .site = site, .w = w, .g = g, .rate = rate, .step = number };
    return adam(&u, mean, square, options);
}

duet_status duet_adamw_at(duet_matrix *w, duet_expr g, duet_matrix *mean, duet_matrix *square, duet_expr rate,
                          duet_expr number, const duet_adam_options *options, const char *site)
{
    update u = { .who = "duet_adamw", .site = site, .w = w, .g = g, .rate = rate, .step = number };
    u.decoupled = true;
    return adam(&u, mean, square, options);
}

duet_status duet_rmsprop_at(duet_matrix *w, duet_expr g, duet_matrix *square, duet_expr rate,
                            const duet_rmsprop_options *options, const char *site)
{
    const duet_rmsprop_options none = { .decay = 0 }, *o = options ? options : &none;
    update u = { .who = "duet_rmsprop", .site = site, .w = w, .g = g, .rate = rate };
    u.decay = o->decay;
    u.momentum = o->momentum;
    u.keep[0] = number_or(o->keep, 0.99);
    u.epsilon = number_or(o->epsilon, 1e-8);
    u.limit[0] = (limit){ "keep", o->keep, 1 };
    u.limit[1] = (limit){ "epsilon", o->epsilon, INFINITY };
    u.limit[2] = (limit){ "momentum", o->momentum, INFINITY };
    u.limit[3] = (limit){ "decay", o->decay, INFINITY };
    u.state[0] = (state){ "square", square };
    if (o->momentum != 0) u.state[1] = (state){ "velocity", o->velocity };
    return run_update(&u, divide_by_mean);
}

duet_status duet_adagrad_at(duet_matrix *w, duet_expr g, duet_matrix *sum, duet_expr rate,
                            const duet_adagrad_options *options, const char *site)
{
    const duet_adagrad_options none = { .decay = 0 }, *o = options ? options : &none;
    update u = { .who = "duet_adagrad", .site = site, .w = w, .g = g, .rate = rate };
    u.decay = o->decay;
    u.epsilon = number_or(o->epsilon, 1e-10);
    u.limit[0] = (limit){ "epsilon", o->epsilon, INFINITY };
    u.limit[1] = (limit){ "decay", o->decay, INFINITY };
    u.state[0] = (state){ "sum", sum };
    return run_update(&u, divide_by_sum);
}

/* ---- without a source line ---- */

duet_status(duet_sgd)(duet_matrix *w, duet_expr g, duet_expr rate, const duet_sgd_options *options)
{
    return duet_sgd_at(w, g, rate, options, NULL);
}
duet_status(duet_adam)(duet_matrix *w, duet_expr g, duet_matrix *mean, duet_matrix *square, duet_expr rate,
                       duet_expr number, const duet_adam_options *options)
{
    return duet_adam_at(w, g, mean, square, rate, number, options, NULL);
}
duet_status(duet_adamw)(duet_matrix *w, duet_expr g, duet_matrix *mean, duet_matrix *square, duet_expr rate,
                        duet_expr number, const duet_adam_options *options)
{
    return duet_adamw_at(w, g, mean, square, rate, number, options, NULL);
}
duet_status(duet_rmsprop)(duet_matrix *w, duet_expr g, duet_matrix *square, duet_expr rate,
                          const duet_rmsprop_options *options)
{
    return duet_rmsprop_at(w, g, square, rate, options, NULL);
}
duet_status(duet_adagrad)(duet_matrix *w, duet_expr g, duet_matrix *sum, duet_expr rate,
                          const duet_adagrad_options *options)
{
    return duet_adagrad_at(w, g, sum, rate, options, NULL);
}
