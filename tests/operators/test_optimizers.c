/* test_optimizers.c - the optimisers against their definitions in long double, over 20 steps, with all of
 * their options, in every type that they accept; in recordings; and how many steps an update takes. */
#include "common.h"
#include <math.h>

static rng gen;
static duet_place place[2];
static int places;

#define GOES(s) CHECK((s) == DUET_OK, "%s: %s", #s, duet_error())
#define STEPS   20
#define MOST    2048 /* elements */

/* ---- cases ---- */

enum kind { SGD, ADAM, ADAMW, RMSPROP, ADAGRAD };
static const char *const names[] = { "sgd", "adam", "adamw", "rmsprop", "adagrad" };

typedef struct options {
    enum kind kind;
    double momentum, decay, keep, keep_square, epsilon;
    int nesterov;
} options;

static const options cases[] = {
    { .kind = SGD },
    { .kind = SGD, .decay = 0.3 },
    { .kind = SGD, .momentum = 0.9 },
    { .kind = SGD, .momentum = 0.8, .nesterov = 1 },
    { .kind = SGD, .momentum = 1.1, .decay = 0.2 },
    { .kind = SGD, .momentum = 0.7, .decay = 0.2, .nesterov = 1 },
    { .kind = ADAM },
    { .kind = ADAM, .decay = 0.2 },
    { .kind = ADAM, .keep = 0.5, .keep_square = 0.75, .epsilon = 0.1 },
    { .kind = ADAMW },
    { .kind = ADAMW, .decay = 0.2 },
    { .kind = ADAMW, .keep = 0.95, .keep_square = 0.9, .epsilon = 1e-3, .decay = 0.01 },
    { .kind = RMSPROP },
    { .kind = RMSPROP, .keep = 0.8, .epsilon = 0.01, .decay = 0.1 },
    { .kind = RMSPROP, .momentum = 0.9 },
    { .kind = RMSPROP, .momentum = 0.5, .decay = 0.3, .keep = 0.9 },
    { .kind = ADAGRAD },
    { .kind = ADAGRAD, .epsilon = 0.05, .decay = 0.2 },
};
enum { CASES = sizeof cases / sizeof *cases };

/* The matrices of one w: mean or square or velocity or sum, and the other one that the optimiser has. */
typedef struct trained {
    duet_matrix *w, *g, *first, *second;
    int64_t count;
    double scale; /* of the numbers that its elements are computed from */
} trained;

static duet_status update(const options *o, const trained *t, duet_expr g, duet_expr rate, duet_expr step)
{
    const bool counts = o->kind == ADAM || o->kind == ADAMW;
    if (!counts) forget(step);
    switch (o->kind) {
    case SGD:
        return duet_sgd(t->w, g, rate, .momentum = o->momentum,
                        .velocity = o->momentum != 0 ? t->first : NULL, .nesterov = o->nesterov,
                        .decay = o->decay);
    case ADAM:
        return duet_adam(t->w, g, t->first, t->second, rate, step, .keep_mean = o->keep,
                         .keep_square = o->keep_square, .epsilon = o->epsilon, .decay = o->decay);
    case ADAMW:
        return duet_adamw(t->w, g, t->first, t->second, rate, step, .keep_mean = o->keep,
                          .keep_square = o->keep_square, .epsilon = o->epsilon, .decay = o->decay);
    case RMSPROP:
        return duet_rmsprop(t->w, g, t->first, rate, .keep = o->keep, .epsilon = o->epsilon,
                            .momentum = o->momentum, .velocity = o->momentum != 0 ? t->second : NULL,
                            .decay = o->decay);
    default: return duet_adagrad(t->w, g, t->first, rate, .epsilon = o->epsilon, .decay = o->decay);
    }
}

/* ---- the definitions ---- */

typedef struct values {
    long double w, first, second;
} values;

static long double given(double x, double usual) { return x != 0 ? x : usual; }

static void step_sgd(const options *o, values *x, long double g, long double rate)
{
    long double d = g + o->decay * x->w;
    if (o->momentum != 0) {
        x->first = o->momentum * x->first + d;
        d = o->nesterov ? d + o->momentum * x->first : x->first;
    }
    x->w -= rate * d;
}

static void step_adam(const options *o, values *x, long double g, long double rate, int step)
{
    const long double b1 = given(o->keep, 0.9), b2 = given(o->keep_square, 0.999),
                      eps = given(o->epsilon, 1e-8);
    if (o->kind == ADAM) g += o->decay * x->w;
    else x->w *= 1 - rate * o->decay;
    x->first = b1 * x->first + (1 - b1) * g;
    x->second = b2 * x->second + (1 - b2) * g * g;
    const long double mean = x->first / (1 - powl(b1, step)), square = x->second / (1 - powl(b2, step));
    x->w -= rate * mean / (sqrtl(square) + eps);
}

static void step_rmsprop(const options *o, values *x, long double g, long double rate)
{
    const long double keep = given(o->keep, 0.99), eps = given(o->epsilon, 1e-8);
    g += o->decay * x->w;
    x->first = keep * x->first + (1 - keep) * g * g;
    long double u = g / (sqrtl(x->first) + eps);
    if (o->momentum != 0) u = x->second = o->momentum * x->second + u;
    x->w -= rate * u;
}

static void step_adagrad(const options *o, values *x, long double g, long double rate)
{
    g += o->decay * x->w;
    x->first += g * g;
    x->w -= rate * g / (sqrtl(x->first) + given(o->epsilon, 1e-10));
}

static void step_of(const options *o, values *x, long double g, long double rate, int step)
{
    if (o->kind == SGD) step_sgd(o, x, g, rate);
    else if (o->kind == RMSPROP) step_rmsprop(o, x, g, rate);
    else if (o->kind == ADAGRAD) step_adagrad(o, x, g, rate);
    else step_adam(o, x, g, rate, step);
}

/* ---- elements ---- */

/* Elements of m, of any type, in row-major order. */
static void read_as_f64(const duet_matrix *m, double *x)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(m); a++) size[a] = duet_size(m, a);
    duet_matrix *copy = duet_new_shape(DUET_F64, duet_rank(m), size);
    GOES(duet_set(copy, duet_cast(m, DUET_F64)));
    const double *p = duet_read_f64(copy);
    if (p) memcpy(x, p, sizeof *x * (size_t)duet_count(m));
    duet_free(&copy);
}

static void randomize(duet_matrix *m, double low, double high)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(m); a++) size[a] = duet_size(m, a);
    duet_matrix *from = random_matrix(&gen, DUET_F64, duet_rank(m), size, low, high);
    GOES(duet_set(m, duet_cast(from, duet_type(m))));
    duet_free(&from);
}

/* view: the matrices are transposed views of others. */
static duet_matrix *one(duet_dtype type, const sizes *s, bool view)
{
    sizes turned = *s;
    for (int a = 0; view && a < s->rank; a++) turned.size[a] = s->size[s->rank - 1 - a];
    duet_matrix *base = duet_zeros_shape(type, s->rank, turned.size);
    if (!view) return base;
    duet_matrix *m = duet_transposed(base);
    duet_free(&base);
    return m;
}

static trained train(const options *o, duet_dtype type, const sizes *s, bool view)
{
    const duet_dtype computed = type == DUET_F64 ? DUET_F64 : DUET_F32;
    trained t = {
        one(type, s, view), one(type, s, false), one(computed, s, false), one(computed, s, view), 0, 0
    };
    t.scale = o->kind == RMSPROP ? 10 : 1;
    t.count = duet_count(t.w);
    randomize(t.w, -1, 1);
    return t;
}

static void train_end(trained *t) { duet_free(&t->w, &t->g, &t->first, &t->second); }

static void load(const trained *t, values *x)
{
    static double w[MOST], first[MOST], second[MOST];
    read_as_f64(t->w, w);
    read_as_f64(t->first, first);
    read_as_f64(t->second, second);
    for (int64_t i = 0; i < t->count; i++) x[i] = (values){ w[i], first[i], second[i] };
}

/* The roundoff of one operator, times how many there may be in `steps` steps. */
static double tolerance(duet_dtype type, int steps)
{
    const double u = type == DUET_F64   ? 0x1p-53
                     : type == DUET_F32 ? 0x1p-24
                     : type == DUET_F16 ? 0x1p-11
                                        : 0x1p-8;
    return u * (4 + 4 * steps);
}

static void agrees(const trained *t, const values *want, double bound, const char *what, int step)
{
    static values got[MOST];
    load(t, got);
    for (int64_t i = 0; i < t->count; i++) {
        const long double x[] = { got[i].w, got[i].first, got[i].second },
                          y[] = { want[i].w, want[i].first, want[i].second };
        for (int k = 0; k < 3; k++)
            if (!CHECK(fabsl(x[k] - y[k]) <= bound * (t->scale + fabsl(y[k])),
                       "%s, step %d: matrix %d [%d] is %.17Lg instead of %.17Lg", what, step, k, (int)i, x[k],
                       y[k]))
                return;
    }
}

/* ---- twenty steps ---- */

enum form { NUMBERS, MATRICES, INTEGERS, FORMULAS, FORMS }; /* of rate and step */

typedef struct scalars {
    enum form form;
    duet_matrix *rate, *step;
} scalars;

static scalars scalars_new(enum form form, duet_dtype type)
{
    const duet_dtype computed = type == DUET_F64 ? DUET_F64 : DUET_F32;
    if (form == NUMBERS) return (scalars){ form, NULL, NULL };
    if (form == INTEGERS) return (scalars){ form, duet_new(DUET_F64, 1, 1), duet_new(DUET_I32) };
    return (scalars){ form, duet_new(computed), duet_new(computed, 1) };
}

/* rate: becomes the one that is used, rounded to the type of the matrix. */
static void scalars_set(const scalars *x, double *rate, int step)
{
    if (x->form == NUMBERS) return;
    GOES(duet_set(x->rate, duet_cast(*rate, duet_type(x->rate))));
    GOES(duet_set(x->step, step));
    read_as_f64(x->rate, rate);
}

static duet_expr rate_of(const scalars *x, double rate)
{
    if (x->form == NUMBERS) return DUET(rate);
    return x->form == FORMULAS ? duet_mul(0.5, duet_mul(2, x->rate)) : DUET(x->rate);
}
static duet_expr step_of_form(const scalars *x, int step)
{
    if (x->form == NUMBERS) return DUET(step);
    return x->form == FORMULAS ? duet_add(duet_sub(x->step, 1), 1) : DUET(x->step);
}

static void twenty_steps(const options *o, duet_dtype type, const sizes *s, bool view, enum form form)
{
    static values want[MOST];
    static double g[MOST];
    trained t = train(o, type, s, view);
    scalars x = scalars_new(form, type);
    const bool is_half = type == DUET_F16 || type == DUET_BF16;
    char what[80];
    snprintf(what, sizeof what, "%s, case %d, type %d, form %d", names[o->kind], (int)(o - cases), (int)type,
             form);
    load(&t, want);
    for (int step = 1; step <= STEPS; step++) {
        double rate = 0.1 / step;
        if (is_half) load(&t, want);
        randomize(t.g, -1, 1);
        read_as_f64(t.g, g);
        scalars_set(&x, &rate, step);
        const duet_expr e = step % 2 ? DUET(t.g) : duet_neg(duet_neg(t.g));
        GOES(update(o, &t, e, rate_of(&x, rate), step_of_form(&x, step)));
        for (int64_t i = 0; i < t.count; i++) step_of(o, &want[i], g[i], rate, step);
        agrees(&t, want, tolerance(type, is_half ? 1 : step), what, step);
    }
    GOES(duet_arena_limit(64 << 20)); /* no formula is left */
    duet_free(&x.rate, &x.step);
    train_end(&t);
}

static void against_definitions(void)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_F16, DUET_BF16 };
    static const sizes vector = SIZES(1027), matrix = SIZES(5, 7), number = SIZES(), none = SIZES(0, 3);
    for (int p = 0; p < places; p++)
        for (int k = 0; k < 4; k++) DUET_ON(place[p])
            {
                for (int c = 0; c < CASES; c++) {
                    twenty_steps(&cases[c], types[k], &matrix, false, NUMBERS);
                    twenty_steps(&cases[c], types[k], &vector, false, MATRICES);
                    twenty_steps(&cases[c], types[k], &matrix, true, INTEGERS);
                    twenty_steps(&cases[c], types[k], &number, false, FORMULAS);
                }
                twenty_steps(&cases[7], types[k], &none, false, MATRICES);
            }
    tap_point("20 steps");
}

/* ---- recordings ---- */

/* Each replay makes two steps, with a rate and a gradient that change between replays. */
static void record(const options *o, duet_dtype type)
{
    static const sizes shape = SIZES(6, 5);
    static values want[MOST];
    static double g[MOST];
    trained t = train(o, type, &shape, false);
    scalars x = scalars_new(MATRICES, type);
    duet_recording *r = NULL;
    load(&t, want);
    double rate = 0;
    scalars_set(&x, &rate, 0);
    for (int turn = 0; turn < 5; turn++) {
        rate = 0.05 * (turn + 1);
        GOES(duet_set(x.rate, duet_cast(rate, duet_type(x.rate))));
        read_as_f64(x.rate, &rate);
        randomize(t.g, -1, 1);
        read_as_f64(t.g, g);
        if (turn == 0) GOES(duet_record_begin());
        for (int twice = 0; turn == 0 && twice < 2; twice++) {
            GOES(duet_iadd(x.step, 1));
            GOES(update(o, &t, DUET(t.g), DUET(x.rate), DUET(x.step)));
        }
        if (turn == 0) CHECK((r = duet_record_end()) != NULL, "%s", duet_error());
        else GOES(duet_replay(r));
        for (int64_t i = 0; i < t.count; i++)
            for (int twice = 1; twice <= 2; twice++) step_of(o, &want[i], g[i], rate, 2 * turn + twice);
        agrees(&t, want, tolerance(type, 2 * turn + 2), "recorded", 2 * turn + 2);
    }
    duet_recording_free(&r);
    duet_free(&x.rate, &x.step);
    train_end(&t);
}

static void recorded(void)
{
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            for (int c = 0; c < CASES; c++) {
                record(&cases[c], DUET_F32);
                record(&cases[c], DUET_F64);
            }
        }
    tap_point("recordings");
}

/* ---- how many steps and plans ---- */

static int steps_of(const options *o, const trained *t, duet_expr rate, duet_expr step)
{
    GOES(duet_synchronize());
    const uint64_t before = duet_stats().steps;
    GOES(update(o, t, DUET(t->g), rate, step));
    GOES(duet_synchronize());
    return (int)(duet_stats().steps - before);
}

static void count_steps(const options *o, duet_place on)
{
    static const sizes shape = SIZES(40, 50);
    trained t = train(o, DUET_F32, &shape, false);
    scalars x = scalars_new(MATRICES, DUET_F32);
    double rate = 0.1;
    scalars_set(&x, &rate, 3);
    const int numbers = steps_of(o, &t, DUET(0.1), DUET(3)), matrix = steps_of(o, &t, DUET(x.rate), DUET(3)),
              both = steps_of(o, &t, DUET(x.rate), DUET(x.step));
    const bool counts = o->kind == ADAM || o->kind == ADAMW;
    CHECK(numbers == 1 && matrix == 1, "%s takes %d and %d steps on the %s", names[o->kind], numbers, matrix,
          place_name(on));
    CHECK(both == (counts ? 3 : 1), "%s with step as a matrix takes %d steps on the %s", names[o->kind], both,
          place_name(on));
    duet_free(&x.rate, &x.step);
    train_end(&t);
}

/* Numbers that change do not need new plans. In the first steps some of them are equal to others. */
static void count_plans(const options *o)
{
    static const sizes shape = SIZES(40, 50);
    trained t = train(o, DUET_F32, &shape, false);
    uint64_t before = 0;
    for (int step = 1; step <= STEPS; step++) {
        if (step == 4) before = duet_stats().plan_misses;
        GOES(update(o, &t, DUET(t.g), DUET(0.3 / (7 + step)), DUET(step)));
    }
    CHECK(duet_stats().plan_misses == before, "%s: %d new plans", names[o->kind],
          (int)(duet_stats().plan_misses - before));
    train_end(&t);
}

/* A gradient that several assignments use is computed once. */
static void count_products(void)
{
    duet_matrix *x = duet_ones(DUET_F32, 64, 32), *y = duet_ones(DUET_F32, 64, 16),
                *w = duet_ones(DUET_F32, 32, 16), *v = duet_zeros(DUET_F32, 32, 16),
                *s = duet_zeros(DUET_F32, 32, 16);
    char text[8192] = "";
    FILE *out = tmpfile();
    DUET_EXPLAIN(out)
    {
        GOES(duet_sgd(w, duet_grad(duet_mse(duet_matmul(x, w), y), w), 0.1, .momentum = 0.9, .velocity = v,
                      .nesterov = 1));
        GOES(duet_rmsprop(w, duet_grad(duet_mse(duet_matmul(x, w), y), w), s, 0.1, .momentum = 0.9,
                          .velocity = v));
    }
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    int products = 0;
    for (const char *p = text; (p = strstr(p, ". matmul")); p++) products++;
    CHECK(products == 4, "%d products instead of 4: %s", products, text);
    duet_free(&x, &y, &w, &v, &s);
}

static void counted(void)
{
    GOES(duet_auto_replay(0));
    for (int p = 0; p < places; p++) DUET_ON(place[p])
    for (int c = 0; c < CASES; c++) count_steps(&cases[c], place[p]);
    for (int c = 0; c < CASES; c++) count_plans(&cases[c]);
    count_products();
    GOES(duet_auto_replay(1));
    tap_point("steps and plans");
}

int main(void)
{
    gen = rng_new(5);
    places = list_places(place);
    against_definitions();
    recorded();
    counted();
    return tap_end();
}
