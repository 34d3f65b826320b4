/* linear_trial.h - matrices of several kinds, as views or not, and statements of linear algebra on
 * the machine under test. */
#ifndef LINEAR_TRIAL_H
#define LINEAR_TRIAL_H

#include "residual.h"

static duet_place place[2], here;
static int places;
static rng gen;

/* ---- matrices ---- */

enum kind { UNIFORM, SYMMETRIC, POSITIVE, HILBERT, GRADED, LOW, HIGH, KINDS };

/* Makes an element of a symmetric matrix, or a Hermitian one if complex, from the elements drawn
 * for it and for its mirror image. */
static __attribute__((unused)) number symmetric(int64_t i, int64_t j, number drawn, number mirrored)
{
    if (i == j) return real_of(drawn);
    if (i > j) return drawn;
    return conjugate_of(mirrored);
}

/* The Hilbert matrix; if complex, between diagonal matrices of magnitude 1. */
static __attribute__((unused)) number hilbert(int64_t i, int64_t j)
{
    const wide x = 1 / (wide)(i + j + 1), turned = (wide)(i - j);
    return number_of(own_types[0] == DUET_F32 ? x : x * cosl(turned), x * sinl(turned));
}

static __attribute__((unused)) number element_of(enum kind kind, int64_t i, int64_t j, int64_t n,
                                                 number drawn, number mirrored)
{
    switch (kind) {
    case SYMMETRIC: return symmetric(i, j, drawn, mirrored);
    case POSITIVE: return symmetric(i, j, drawn, mirrored) + (i == j ? 2 * (wide)n : 0);
    case HILBERT: return hilbert(i, j);
    case GRADED: return drawn * powl(10, -6.0L * (wide)(i + j) / (wide)(2 * n));
    case LOW: return drawn * 1e-15L;
    case HIGH: return drawn * 1e15L;
    default: return drawn;
    }
}

static __attribute__((unused)) void put(duet_matrix *m, int64_t i, int64_t j, number x)
{
    char *p = duet_update(m);
    const int64_t k = i * duet_stride(m, 0) + (duet_rank(m) > 1 ? j * duet_stride(m, 1) : 0);
    const wide part[] = { real_of(x), imaginary_of(x) };
    const int parts = dtype_is_complex(duet_type(m)) ? 2 : 1;
    for (int e = 0; e < parts; e++)
        if (dtype_part(duet_type(m)) == DUET_F32) ((float *)p)[parts * k + e] = (float)part[e];
        else ((double *)p)[parts * k + e] = (double)part[e];
}

typedef struct made {
    duet_matrix *m, *whole;
} made;

static __attribute__((unused)) enum view some_view(void)
{
    static const enum view of[] = { VIEW_NONE, VIEW_NONE, VIEW_SLICE, VIEW_SUBMATRIX, VIEW_TRANSPOSED };
    return of[rng_below(&gen, 5)];
}

static __attribute__((unused)) made new_made(duet_dtype t, int rank, int64_t m, int64_t n)
{
    made x;
    enum view view = VIEW_NONE;
    if (rank == 2) view = some_view();
    else if (rank && rng_chance(&gen, 50)) view = VIEW_COLUMN;
    x.m = random_view(&gen, view, t, rank, (int64_t[]){ m, n }, -1, 1, &x.whole);
    CHECK(x.m != NULL, "%s", duet_error());
    for (int64_t i = 0; dtype_is_complex(t) && i < m; i++) /* makes the parts differ */
        for (int64_t j = 0; j < (rank > 1 ? n : 1); j++)
            put(x.m, i, j, number_of(rng_real(&gen, -1, 1), rng_real(&gen, -1, 1)));
    return x;
}

static __attribute__((unused)) void end(made *x)
{
    if (x->whole != x->m) duet_free(&x->whole);
    duet_free(&x->m);
}

static __attribute__((unused)) made new_kind(duet_dtype t, enum kind kind, int64_t m, int64_t n)
{
    made x = new_made(t, 2, m, n);
    wides drawn = wides_of(x.m);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            put(x.m, i, j, element_of(kind, i, j, n, *at(&drawn, i, j), m == n ? *at(&drawn, j, i) : 0));
    wides_free(&drawn);
    return x;
}

/* ---- statements at the present place, and the expected results ---- */

static __attribute__((unused)) bool went(duet_status s, const char *what)
{
    return CHECK(s == DUET_OK, "%s on the %s: %s", what, place_name(here), duet_error());
}

static __attribute__((unused)) bool set(duet_matrix *m, duet_expr e, const char *what)
{
    return went(duet_set_on(here, m, e), what);
}

#define FACTOR(call)                                                                                         \
    ({                                                                                                       \
        duet_status st_ = DUET_OK;                                                                           \
        DUET_ON(here) st_ = call;                                                                            \
        went(st_, #call);                                                                                    \
    })

static __attribute__((unused)) void check_inverse(duet_dtype t, const duet_matrix *a, int64_t n)
{
    made x = new_made(t, 2, n, n);
    if (set(x.m, duet_inv(a), "inv")) {
        wides A = wides_of(a), X = wides_of(x.m);
        small(ratio(norm_rest(NULL, &A, &X), norm1(&A) * norm1(&X), n, eps_of(t)), "inv", t, n, n, here);
        wides_free(&A);
        wides_free(&X);
    }
    end(&x);
}

static __attribute__((unused)) void each_type(void run(duet_dtype t), const char *name)
{
    char text[100];
    for (int k = 0; k < places; k++) {
        here = place[k];
        run(own_types[0]);
        run(own_types[1]);
        snprintf(text, sizeof text, "%s on the %s", name, place_name(here));
        tap_point(text);
    }
}

static bool quick;
static __attribute__((unused)) int trials(int n) { return quick ? n / 5 + 1 : n; }

static bool begin(int argc, char **argv)
{
    quick = is_quick(argc, argv);
    places = list_places(place);
    gen = rng_new(20261122);
    duet_matrix *one = duet_new(DUET_F32, 1, 1);
    const bool without = duet_set_on(DUET_CPU, one, duet_det(one)) == DUET_UNSUPPORTED;
    duet_free(&one);
    if (without) printf("1..0 # SKIP %s\n", duet_error());
    return !without;
}

#endif
