/* random_noise.c - statements that assign a formula of x and random numbers: noise, Bernoulli
 * numbers with given probabilities, shuffles. Also sequences, which count instead. */
#include "distributions.h"
#include "dtype.h"
#include "single_step.h"
#include "split_matrix.h"
#include "status.h"
#include "thread.h"
#include "view.h"
#include <math.h>

/* A running statement: the formula x, which is spent when the statement ends, and its random numbers. */
typedef struct noisy {
    const char *who;
    duet_matrix *to;
    duet_expr x;
    uint64_t seed;
    double top; /* only for uniform noise */
} noisy;

typedef duet_status fill_noise(duet_matrix *m, uint64_t seed);
typedef duet_expr formula_of_noise(const noisy *n, duet_expr w, const char *site);

static duet_status evenly(duet_matrix *m, uint64_t seed) { return random_uniform(m, seed, 0, 1); }
static duet_status normally(duet_matrix *m, uint64_t seed) { return random_normal(m, seed, 0, 1); }

/* ---- formulas of x and the random numbers ---- */

#undef DUET_HERE
#define DUET_HERE site

static duet_expr added(const noisy *n, duet_expr w, const char *site) { return duet_add(n->x, w); }

static duet_expr logistic(const noisy *n, duet_expr w, const char *site)
{
    return duet_add(n->x, duet_mul(w, duet_sigmoid(n->x)));
}

static duet_expr ranged(const noisy *n, duet_expr w, const char *site)
{
    const duet_expr stays = duet_logical_or(duet_equal(n->x, 0), duet_equal(n->x, n->top));
    return duet_where(stays, n->x, duet_add(n->x, w));
}

static duet_expr coins(const noisy *n, duet_expr w, const char *site) { return duet_less(w, n->x); }

/* ---- statements ---- */

static duet_status spent(duet_expr x, duet_status s)
{
    formula_spend(x, NULL);
    return s;
}

static duet_status check_to(const noisy *n)
{
    TRY(matrix_check(n->who, n->to));
    TRY(matrix_check_writable(n->who, n->to));
    return duet_expr_status(n->x);
}

static duet_status check_noise(const noisy *n)
{
    char text[SHAPE_TEXT];
    TRY(check_to(n));
    const layout *to = &n->to->at;
    if (dtype_kind(to->type) == TYPE_FLOAT) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s(to: %s): to must be floating point", n->who,
                shape_text(text, to->type, to->rank, to->size));
}

static duet_status check_chances(const noisy *n)
{
    TRY(check_to(n));
    const duet_dtype x = duet_expr_type(n->x);
    if (dtype_kind(x) == TYPE_FLOAT || duet_expr_rank(n->x) == 0) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s: x must be floating point, not %s", n->who, dtypes[x].name);
}

/* Makes the formula of x and w; errors name the statement. */
static duet_expr noisy_formula(const noisy *n, formula_of_noise *made, const duet_matrix *w, const char *site)
{
    const char *function = n->who + sizeof "duet_" - 1;
    return formula_within(function, 1, &n->x, made(n, duet_of_matrix(w), site), site);
}

/* A matrix for random numbers of this type, split like `to`. */
static duet_matrix *numbers_like(const duet_matrix *to, duet_dtype type)
{
    if (!to->storage->split) return (duet_new_shape)(type, to->at.rank, to->at.size);
    duet_matrix *m = split_like(to, type);
    if (!m) fail(DUET_NO_MEMORY, "no memory for random numbers");
    return m;
}

/* to = the formula of x and w, where w has the shape of `to` and the type `as`, filled from the
 * distribution. */
static duet_status noise_as(const noisy *n, duet_dtype as, fill_noise *draw, formula_of_noise *made,
                            const char *site)
{
    duet_matrix *w = numbers_like(n->to, as);
    if (!w) return spent(n->x, DUET_NO_MEMORY);
    duet_status s = draw(w, n->seed);
    if (s == DUET_OK) s = statement_part(n->who, n->to, noisy_formula(n, made, w, site));
    else spent(n->x, s);
    return record_own_or_free(w, s);
}

static duet_status noise(const noisy *n, fill_noise *draw, formula_of_noise *made, const char *site)
{
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_status s = check_noise(n);
    if (s == DUET_OK) s = noise_as(n, n->to->at.type, draw, made, site);
    else s = spent(n->x, s);
    return statement_ends(s, site);
}

#define UNPACK(...) __VA_ARGS__
#define NOISE(name, draw, made, types, values, ...)                                                          \
    duet_status duet_noise_##name##_at(duet_matrix *to, duet_expr x, uint64_t seed UNPACK types,             \
                                       const char *site)                                                     \
    {                                                                                                        \
        return noise(&(noisy){ .who = "duet_noise_" #name, .to = to, .x = x, .seed = seed, __VA_ARGS__ },    \
                     draw, made, site);                                                                      \
    }                                                                                                        \
    duet_status(duet_noise_##name)(duet_matrix * to, duet_expr x, uint64_t seed UNPACK types)                \
    {                                                                                                        \
        return duet_noise_##name##_at(to, x, seed UNPACK values, NULL);                                      \
    }
NOISE(uniform, evenly, added, (), ())
NOISE(normal, normally, added, (), ())
NOISE(logistic, normally, logistic, (), ())
NOISE(ranged, normally, ranged, (, double top), (, top), .top = top)

/* The random numbers have the type in which the probabilities are computed. */
duet_status duet_noise_bernoulli_at(duet_matrix *to, duet_expr x, uint64_t seed, const char *site)
{
    const noisy n = { .who = "duet_noise_bernoulli", .to = to, .x = x, .seed = seed };
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_status s = check_chances(&n);
    if (s != DUET_OK) return statement_ends(spent(x, s), site);
    const duet_dtype type = duet_expr_type(x);
    const duet_dtype drawn = dtype_kind(type) == TYPE_FLOAT ? dtypes[type].computed : DUET_F32;
    return statement_ends(noise_as(&n, drawn, evenly, coins, site), site);
}

duet_status(duet_noise_bernoulli)(duet_matrix *to, duet_expr x, uint64_t seed)
{
    return duet_noise_bernoulli_at(to, x, seed, NULL);
}

/* ---- shuffles ---- */

static duet_status check_shuffle(const char *who, const duet_matrix *to, const duet_matrix *from, int *axis)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    TRY(matrix_check(who, to));
    TRY(matrix_check(who, from));
    TRY(matrix_check_writable(who, to));
    const layout *l = &to->at, *k = &from->at;
    shape_text(a, l->type, l->rank, l->size);
    shape_text(b, k->type, k->rank, k->size);
    if (l->type != k->type)
        return fail(DUET_BAD_TYPE, "%s(to: %s, from: %s): the matrices must have the same element type", who,
                    a, b);
    bool same = l->rank == k->rank;
    for (int i = 0; i < l->rank && same; i++) same = l->size[i] == k->size[i];
    if (!same)
        return fail(DUET_BAD_SHAPE, "%s(to: %s, from: %s): the matrices must have the same shape", who, a, b);
    return view_check_axis(who, "to", to, l->rank, axis);
}

static duet_status shuffle(const char *who, duet_matrix *to, const duet_matrix *from, int axis, uint64_t seed,
                           const char *site)
{
    TRY(check_shuffle(who, to, from, &axis));
    duet_matrix *order = (duet_new_shape)(DUET_I64, 1, &to->at.size[axis]);
    if (!order) return DUET_NO_MEMORY;
    duet_status s = random_permutation(order, seed);
    if (s == DUET_OK) s = statement_part(who, to, duet_take(from, order, axis));
    return record_own_or_free(order, s);
}

duet_status duet_shuffle_at(duet_matrix *to, const duet_matrix *from, int axis, uint64_t seed,
                            const char *site)
{
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    return statement_ends(shuffle("duet_shuffle", to, from, axis, seed, site), site);
}

duet_status(duet_shuffle)(duet_matrix *to, const duet_matrix *from, int axis, uint64_t seed)
{
    return duet_shuffle_at(to, from, axis, seed, NULL);
}

/* ---- sequences ---- */

/* 0, 1, 2, ... as i64 in the shape of m: a cumulative sum of ones. NULL: no memory. */
static duet_status count(const char *who, duet_matrix *flat, const char *site)
{
    TRY(statement_part(who, flat, duet_of_integer(1)));
    return statement_part(who, flat, duet_sub(duet_cumsum(flat, 0), 1));
}

/* x converted to i64; modulo 2^64 if t is u64. */
static duet_expr counted(double x, duet_dtype t)
{
    return t == DUET_U64 && x >= 0x1p63 && x < 0x1p64 ? duet_of_integer((int64_t)(uint64_t)x)
                                                      : duet_of_number(x);
}

/* All numbers of an integer sequence are integers, so the formula is an integer formula. */
static duet_expr step_to(duet_matrix *index, duet_dtype t, double start, double by, const char *site)
{
    if (dtype_kind(t) != TYPE_FLOAT)
        return duet_cast(duet_add(duet_mul(index, counted(by, t)), counted(start, t)), t);
    const duet_expr i = duet_cast(index, dtypes[t].computed);
    return duet_cast(duet_fma(i, by, start), t);
}

/* Can the sequence be computed with x? */
static duet_status check_number(const char *who, const duet_matrix *m, const char *name, double x)
{
    char text[SHAPE_TEXT];
    const duet_dtype t = m->at.type;
    if (dtype_kind(t) == TYPE_FLOAT) return DUET_OK;
    shape_text(text, t, m->at.rank, m->at.size);
    if (!(x == floor(x) && fabs(x) < INFINITY))
        return fail(DUET_BAD_TYPE, "%s(m: %s): %s (%g) must be an integer for integer elements", who, text,
                    name, x);
    if (x >= -0x1p63 && x < (t == DUET_U64 ? 0x1p64 : 0x1p63)) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s(m: %s): %s (%g) is out of range", who, text, name, x);
}

static duet_status sequence(const char *who, duet_matrix *m, double start, double by, const char *site)
{
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    TRY(matrix_check_writable(who, m));
    const enum type_kind kind = dtype_kind(m->at.type);
    if (kind == TYPE_COMPLEX || kind == TYPE_BOOL)
        return fail(DUET_BAD_TYPE, "%s(m: %s): m must be an integer or floating-point matrix", who,
                    shape_text(text, m->at.type, m->at.rank, m->at.size));
    TRY(check_number(who, m, "by", by));
    TRY(check_number(who, m, "start", start));
    duet_matrix *flat = (duet_new_shape)(DUET_I64, 1, &m->count),
                *index = flat ? (duet_reshaped_shape)(flat, m->at.rank, m->at.size) : NULL;
    duet_status s = index ? count(who, flat, site) : DUET_NO_MEMORY;
    if (s == DUET_OK) s = statement_part(who, m, step_to(index, m->at.type, start, by, site));
    return record_own_or_free(index, record_own_or_free(flat, s));
}

duet_status duet_sequence_at(duet_matrix *m, double start, double by, const char *site)
{
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    return statement_ends(sequence("duet_sequence", m, start, by, site), site);
}

duet_status(duet_sequence)(duet_matrix *m, double start, double by)
{
    return duet_sequence_at(m, start, by, NULL);
}
