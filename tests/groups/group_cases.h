/* group_cases.h - compares random statements with matrices on a group with those of ordinary matrices. */
#ifndef GROUP_CASES_H
#define GROUP_CASES_H

#include "random_matrix.h"
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same elements twice. */
typedef struct pair {
    duet_matrix *grouped, *plain;
    duet_matrix *grouped_view, *plain_view; /* of them, or NULL */
} pair;

static duet_matrix *used(duet_matrix *m, duet_matrix *view) { return view ? view : m; }

static duet_matrix *new_on_group(rng *r, duet_group *g, duet_dtype type, int rank, const int64_t *size)
{
    const int how = (int)rng_below(r, rank ? 6 : 2);
    if (how == 0) return duet_new_shape(type, rank, size);
    if (how == 1) return duet_new_replicated_shape(g, type, rank, size);
    return duet_new_split_shape(g, type, how > 3 ? 0 : (int)rng_below(r, rank), rank, size);
}

static void fill_both(rng *r, pair *p)
{
    rng same = *r;
    random_fill(r, p->grouped, -2, 2);
    random_fill(&same, p->plain, -2, 2);
}

/* A view with the same elements of both. */
static void view_both(rng *r, pair *p)
{
    const int rank = duet_rank(p->plain), how = (int)rng_below(r, 4);
    if (!rank) return;
    const int axis = (int)rng_below(r, rank);
    const int64_t n = duet_size(p->plain, axis), from = n ? rng_below(r, n) : 0,
                  upto = from + (n - from ? 1 + rng_below(r, n - from) : 0), by = 1 + rng_below(r, 3);
    duet_matrix *all[] = { p->grouped, p->plain }, *views[2];
    for (int k = 0; k < 2; k++) {
        if (how == 0) views[k] = duet_transposed(all[k]);
        else if (how == 1 || n == 0) views[k] = duet_stepped(all[k], axis, from, upto, by);
        else if (how == 2) views[k] = duet_picked(all[k], axis, from);
        else views[k] = duet_stepped(all[k], axis, from, upto, 1);
    }
    p->grouped_view = views[0];
    p->plain_view = views[1];
}

static pair new_pair(rng *r, duet_group *g, duet_dtype type, int rank, const int64_t *size, bool views)
{
    pair p = { new_on_group(r, g, type, rank, size), duet_new_shape(type, rank, size), NULL, NULL };
    if (CHECK(p.grouped && p.plain, "new: %s", duet_error())) fill_both(r, &p);
    if (views && rng_chance(r, 30)) view_both(r, &p);
    return p;
}

static __attribute__((unused)) void free_pair(pair *p)
{
    duet_free(&p->grouped_view, &p->plain_view, &p->grouped, &p->plain);
}

/* ---- formulas: of x and y, with numbers that were drawn for the case ---- */

typedef struct drawn {
    int axis, rank;
    int64_t number[4], size[DUET_RANK_MAX];
    double real;
} drawn;

typedef duet_expr formula_of_case(const duet_expr *x, const drawn *d);

/* rank: of x and y, 0: any; like: y has the shape of x; exact: the results have the same bits as on one
 * rank */
typedef struct kind {
    const char *name;
    formula_of_case *make;
    int rank, operands;
    bool exact;
    enum shapes { ALIKE, BROADCAST, PRODUCT, IMAGES, SQUARES } shapes;
} kind;

#define FORMULA(name, e)                                                                                     \
    static duet_expr make_##name(const duet_expr *x, const drawn *d) { return e; }
FORMULA(map, duet_add(duet_mul(x[0], d->real), duet_tanh(x[1])))
FORMULA(where, duet_where(duet_greater(x[0], x[1]), x[0], duet_square(x[1])))
FORMULA(sum, duet_sum(x[0]))
FORMULA(sum_axis, duet_sum_axis(x[0], d->axis))
FORMULA(sum_keep, duet_sub(x[0], duet_sum_keep(x[0], d->axis)))
FORMULA(dot, duet_dot_axis(x[0], x[1], d->axis))
FORMULA(prod, duet_prod_axis(x[0], d->axis))
FORMULA(max_axis, duet_max_axis(x[0], d->axis))
FORMULA(any, duet_any_axis(duet_greater(x[0], 1.9), d->axis))
FORMULA(argmax, duet_argmax_axis(x[0], d->axis))
FORMULA(argmin, duet_argmin(x[0]))
FORMULA(mean, duet_mean_axis(x[0], d->axis))
FORMULA(var, duet_var_axis(x[0], d->axis))
FORMULA(norm, duet_norm(x[0]))
FORMULA(centred, duet_div(duet_sub(x[0], duet_mean(x[0])), duet_add(duet_norm(x[0]), 1)))
FORMULA(softmax, duet_softmax(x[0]))
FORMULA(log_softmax, duet_log_softmax(duet_mul(x[0], x[1])))
FORMULA(cumsum, duet_cumsum(x[0], d->axis))
FORMULA(sort, duet_sort(x[0], d->axis))
FORMULA(argsort, duet_argsort(x[0], d->axis))
FORMULA(top, duet_top_k(x[0], d->size[d->axis] < 3 ? (int)d->size[d->axis] : 3, d->axis))
FORMULA(transposed, duet_mul(duet_transpose(x[0]), 2))
FORMULA(flip, duet_flip(x[0], d->axis))
FORMULA(range, duet_range(x[0], d->axis, d->size[d->axis] / 3, d->size[d->axis], 1 + d->number[0] % 3))
FORMULA(append, duet_append(x[0], x[1], d->axis))
FORMULA(flat, (duet_reshape)(x[0], 1, (int64_t[]){ -1 }))
FORMULA(shaped, duet_exp((duet_reshape)(x[0], 3, (int64_t[]){ d->size[0], 1, -1 })))
FORMULA(folded, (duet_reshape)((duet_reshape)(x[0], 1, (int64_t[]){ -1 }), 2, (int64_t[]){ d->size[0], -1 }))
FORMULA(take,
        duet_take(x[0], duet_remainder(duet_cast(duet_abs(duet_mul(x[1], 9)), DUET_I64), d->size[d->axis]),
                  d->axis))
FORMULA(one_hot, duet_one_hot(duet_cast(duet_abs(x[0]), DUET_I64), 3, DUET_F32))
FORMULA(histogram, duet_histogram(x[0], -2, 2, 5))
FORMULA(product, duet_matmul(x[0], x[1]))
FORMULA(product_of, duet_sub(duet_matmul(duet_mul(x[0], 2), x[1]), 1))
FORMULA(gram, duet_matmul(duet_transpose(x[0]), x[1]))
FORMULA(conv, duet_conv2d(x[0], x[1]))
FORMULA(filters, duet_conv2d_filter_grad(x[0], duet_conv2d(x[0], x[1])))
FORMULA(pool, duet_max_pool2d(x[0], .window = { 2, 2 }))
FORMULA(determinant, duet_det(x[0]))
FORMULA(fourier, duet_real(duet_fft(x[0], d->size[d->axis], d->axis)))
FORMULA(fourier_all, duet_real(duet_fftn(x[0])))
FORMULA(fourier_real, duet_imag(duet_rfftn(x[0])))
FORMULA(bottom_indices,
        duet_bottom_k_indices(x[0], d->size[d->axis] < 3 ? (int)d->size[d->axis] : 3, d->axis))
FORMULA(cast, duet_cast(duet_mul(x[0], 10), DUET_I32))
FORMULA(integers, duet_sum_axis(duet_cast(duet_mul(x[0], 10), DUET_I64), d->axis))

#define KIND(name, rank, operands, exact, shapes)                                                            \
    {                                                                                                        \
#name, make_##name, rank, operands, exact, shapes                                                    \
    }
static const kind kinds[] = {
    KIND(map, 0, 2, true, BROADCAST),
    KIND(where, 0, 2, true, BROADCAST),
    KIND(sum, 0, 1, true, ALIKE),
    KIND(sum_axis, 0, 1, true, ALIKE),
    KIND(sum_keep, 0, 1, true, ALIKE),
    KIND(dot, 0, 2, true, ALIKE),
    KIND(prod, 0, 1, true, ALIKE),
    KIND(max_axis, 0, 1, true, ALIKE),
    KIND(any, 0, 1, true, ALIKE),
    KIND(argmax, 0, 1, true, ALIKE),
    KIND(argmin, 0, 1, true, ALIKE),
    KIND(mean, 0, 1, true, ALIKE),
    KIND(var, 0, 1, true, ALIKE),
    KIND(norm, 0, 1, true, ALIKE),
    KIND(centred, 0, 1, true, ALIKE),
    KIND(softmax, 0, 1, true, ALIKE),
    KIND(log_softmax, 0, 2, true, ALIKE),
    KIND(cumsum, 0, 1, true, ALIKE),
    KIND(sort, 0, 1, true, ALIKE),
    KIND(argsort, 0, 1, true, ALIKE),
    KIND(top, 0, 1, true, ALIKE),
    KIND(transposed, 0, 1, true, ALIKE),
    KIND(flip, 0, 1, true, ALIKE),
    KIND(range, 0, 1, true, ALIKE),
    KIND(append, 0, 2, true, ALIKE),
    KIND(flat, 0, 1, true, ALIKE),
    KIND(shaped, 0, 1, true, ALIKE),
    KIND(folded, 0, 1, true, ALIKE),
    KIND(take, 1, 2, true, ALIKE),
    KIND(one_hot, 0, 1, true, ALIKE),
    KIND(histogram, 0, 1, true, ALIKE),
    KIND(product, 2, 2, false, PRODUCT),
    KIND(product_of, 2, 2, false, PRODUCT),
    KIND(gram, 2, 2, false, ALIKE),
    KIND(conv, 4, 2, false, IMAGES),
    KIND(filters, 4, 2, false, IMAGES),
    KIND(pool, 4, 1, true, IMAGES),
    KIND(determinant, 3, 1, false, SQUARES),
    KIND(fourier, 0, 1, false, ALIKE),
    KIND(cast, 0, 1, true, ALIKE),
    KIND(fourier_all, 0, 1, false, ALIKE),
    KIND(fourier_real, 0, 1, false, ALIKE),
    KIND(bottom_indices, 0, 1, true, ALIKE),
    KIND(integers, 0, 1, true, ALIKE),
};
#define KINDS (int64_t)(sizeof kinds / sizeof *kinds)

/* ---- shapes ---- */

static int draw_shapes(rng *r, const kind *k, int64_t x[], int64_t y[], bool large)
{
    int rank = k->rank ? k->rank : 1 + (int)rng_below(r, 3);
    for (int a = 0; a < rank; a++) x[a] = rng_chance(r, 5) && k->shapes < PRODUCT ? 0 : 1 + rng_below(r, 12);
    if (large && k->shapes < PRODUCT)
        x[rng_below(r, rank)] = 4096 * (1 + rng_below(r, 4)) + rng_below(r, 3) * 1000;
    if (large && k->shapes == PRODUCT) x[0] = 500 + rng_below(r, 500);
    memcpy(y, x, (size_t)rank * sizeof *y);
    for (int a = 0; a < rank && k->shapes == BROADCAST; a++)
        if (rng_chance(r, 25)) y[a] = 1;
    if (k->shapes == PRODUCT) y[0] = x[1], y[1] = 1 + rng_below(r, 12);
    if (k->shapes == IMAGES) {
        x[2] = x[3] = 6;
        y[0] = 4, y[1] = x[1], y[2] = y[3] = 3;
    }
    if (k->shapes == SQUARES) x[1] = x[2] = 3;
    return rank;
}

/* Reductions of no elements are errors for some operators. */
static bool may_be_empty(const kind *k, const int64_t *x, int rank)
{
    for (int a = 0; a < rank; a++)
        if (!x[a]) return k->make == make_map || k->make == make_sum || k->make == make_transposed;
    return true;
}

/* ---- comparison ---- */

static bool is_close(const kind *k, const void *a, const void *b, int64_t n, duet_dtype type, size_t size)
{
    if (!n || !memcmp(a, b, (size_t)n * size)) return true;
    if (k->exact || type != DUET_F32) return false;
    double most = 1;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)((const float *)b)[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)((const float *)a)[i] - ((const float *)b)[i]) <= 1e-4 * most)) return false;
    return true;
}

static size_t element_bytes(duet_dtype type)
{
    switch (type) {
    case DUET_BOOL:
    case DUET_I8:
    case DUET_U8: return 1;
    case DUET_F16:
    case DUET_BF16:
    case DUET_I16:
    case DUET_U16: return 2;
    case DUET_F64:
    case DUET_I64:
    case DUET_U64:
    case DUET_C64: return 8;
    case DUET_C128: return 16;
    default: return 4;
    }
}

static void compare(const kind *k, uint64_t seed, duet_matrix *grouped, duet_matrix *plain)
{
    const void *a = duet_read(grouped), *b = duet_read(plain);
    const int64_t n = duet_count(plain);
    const duet_dtype type = duet_type(plain);
    CHECK(a && b && duet_count(grouped) == n, "%s, seed %llu: %s", k->name, (unsigned long long)seed,
          duet_error());
    if (a && b)
        CHECK(is_close(k, a, b, n, type, element_bytes(type)), "%s, seed %llu: differs", k->name,
              (unsigned long long)seed);
}

/* ---- one case ---- */

typedef struct trial {
    const kind *k;
    uint64_t seed;
    pair p[2];
    drawn d;
    duet_matrix *got, *wanted;
} trial;

static duet_expr formula_of_trial(const trial *t, bool grouped)
{
    duet_expr x[2];
    for (int i = 0; i < t->k->operands; i++) {
        const pair *p = &t->p[i];
        x[i] = duet_of_matrix(grouped ? used(p->grouped, p->grouped_view) : used(p->plain, p->plain_view));
    }
    return t->k->make(x, &t->d);
}

static bool done(const trial *t, duet_status s)
{
    return CHECK(s == DUET_OK, "%s, seed %llu: %s", t->k->name, (unsigned long long)t->seed, duet_error());
}

static void draw_numbers(rng *r, trial *t)
{
    const duet_matrix *first = used(t->p[0].plain, t->p[0].plain_view);
    t->d = (drawn){ .real = rng_real(r, -2, 2), .rank = duet_rank(first) };
    for (int a = 0; a < t->d.rank; a++) t->d.size[a] = duet_size(first, a);
    for (int i = 0; i < 4; i++) t->d.number[i] = rng_below(r, 100);
    t->d.axis = t->d.rank ? (int)rng_below(r, t->d.rank) : 0;
}

/* The statement is recorded as it runs; then it is replayed with other elements. */
static void replay(rng *r, trial *t)
{
    if (!done(t, duet_record_begin())) return;
    const duet_status s = duet_set(t->got, formula_of_trial(t, true));
    duet_recording *all = duet_record_end();
    if (s == DUET_UNSUPPORTED) return; /* it gathers a view */
    if (!done(t, s) || !CHECK(all != NULL, "%s", duet_error())) return;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < t->k->operands; i++) fill_both(r, &t->p[i]);
        if (done(t, duet_replay(all)) && done(t, duet_set(t->wanted, formula_of_trial(t, false))))
            compare(t->k, t->seed, t->got, t->wanted);
    }
    duet_recording_free(&all);
}

static void run_statement(rng *r, duet_group *g, trial *t)
{
    int64_t of[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(t->wanted); a++) of[a] = duet_size(t->wanted, a);
    if (rng_chance(r, 30)) {
        t->got = duet_eval(formula_of_trial(t, true));
    } else {
        t->got = new_on_group(r, g, duet_type(t->wanted), duet_rank(t->wanted), of);
        done(t, duet_set(t->got, formula_of_trial(t, true)));
    }
    if (!CHECK(t->got != NULL, "%s, seed %llu: %s", t->k->name, (unsigned long long)t->seed, duet_error()))
        return;
    compare(t->k, t->seed, t->got, t->wanted);
    if (rng_chance(r, 30)) replay(r, t);
}

static void run_case(duet_group *g, uint64_t seed, bool large)
{
    rng r = rng_new(seed);
    trial t = { .k = &kinds[rng_below(&r, KINDS)], .seed = seed };
    int64_t size[2][DUET_RANK_MAX];
    const int rank = draw_shapes(&r, t.k, size[0], size[1], large);
    if (!may_be_empty(t.k, size[0], rank)) return;
    for (int i = 0; i < t.k->operands; i++)
        t.p[i] = new_pair(&r, g, DUET_F32, rank, size[i], t.k->operands == 1);
    draw_numbers(&r, &t);
    t.wanted = duet_eval(formula_of_trial(&t, false));
    if (t.wanted) run_statement(&r, g, &t);
    else duet_drop(formula_of_trial(&t, true)); /* such as an axis that the view does not have */
    duet_free(&t.wanted, &t.got);
    for (int i = 0; i < t.k->operands; i++) free_pair(&t.p[i]);
}

#endif
