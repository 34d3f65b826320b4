/* residual.h - matrices in extended precision, to measure what linear algebra leaves over, in the units that LAPACK's own tests use. */
#ifndef RESIDUAL_H
#define RESIDUAL_H

#include "common.h"
#include "dtype.h"
#include <math.h>

typedef long double wide;

/* m x n, by rows. */
typedef struct wides {
    int64_t m, n;
    wide *v;
} wides;

static inline wide *at(const wides *t, int64_t i, int64_t j) { return &t->v[i * t->n + j]; }
static inline wides wides_new(int64_t m, int64_t n) { return (wides){ m, n, calloc((size_t)(m * n + 1), sizeof(wide)) }; }
static inline void wides_free(wides *t) { free(t->v), t->v = NULL; }

/* A vector is one column, a number one element. */
static inline wides wides_of(const duet_matrix *x)
{
    const int rank = duet_rank(x);
    wides t = wides_new(rank ? duet_size(x, 0) : 1, rank > 1 ? duet_size(x, 1) : 1);
    const char *p = duet_read(x);
    CHECK(p || !duet_count(x), "%s", duet_error());
    for (int64_t i = 0; i < t.m && p; i++)
        for (int64_t j = 0; j < t.n; j++) {
            const int64_t k = i * (rank ? duet_stride(x, 0) : 0) + j * (rank > 1 ? duet_stride(x, 1) : 0);
            *at(&t, i, j) = duet_type(x) == DUET_F32   ? ((const float *)p)[k]
                            : duet_type(x) == DUET_F64 ? (wide)((const double *)p)[k]
                                                       : (wide)((const int64_t *)p)[k];
        }
    return t;
}

static inline wides wides_turned(const wides *a)
{
    wides t = wides_new(a->n, a->m);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) *at(&t, j, i) = *at(a, i, j);
    return t;
}

static inline wides wides_product(const wides *a, const wides *b)
{
    wides c = wides_new(a->m, b->n);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t k = 0; k < a->n; k++)
            for (int64_t j = 0; j < b->n; j++) *at(&c, i, j) += *at(a, i, k) * *at(b, k, j);
    return c;
}

/* The largest sum of a column's sizes; NaN if one is. */
static inline wide norm1(const wides *a)
{
    wide most = 0;
    for (int64_t j = 0; j < a->n; j++) {
        wide sum = 0;
        for (int64_t i = 0; i < a->m; i++) sum += fabsl(*at(a, i, j));
        if (!(sum <= most)) most = sum;
    }
    return most;
}

/* |c - a b|; c NULL: the unit matrix. */
static inline wide norm_rest(const wides *c, const wides *a, const wides *b)
{
    wides p = wides_product(a, b);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) *at(&p, i, j) -= c ? *at(c, i, j) : i == j;
    const wide r = norm1(&p);
    return wides_free(&p), r;
}

static inline wide norm_difference(const wides *a, const wides *b)
{
    wide most = 0;
    for (int64_t i = 0; i < a->m * a->n; i++)
        if (!(fabsl(a->v[i] - b->v[i]) <= most)) most = fabsl(a->v[i] - b->v[i]);
    return most;
}

/* Gauss's elimination with row exchanges, of a copy: x with a x = b, and the determinant. false: singular. */
static inline bool eliminate(const wides *of, const wides *b, wides *x, wide *det)
{
    wides a = wides_new(of->m, of->n);
    memcpy(a.v, of->v, (size_t)(of->m * of->n) * sizeof(wide));
    *x = wides_new(b->m, b->n), *det = 1;
    memcpy(x->v, b->v, (size_t)(b->m * b->n) * sizeof(wide));
    for (int64_t k = 0; k < a.n && *det != 0; k++) {
        int64_t p = k;
        for (int64_t i = k; i < a.m; i++)
            if (fabsl(*at(&a, i, k)) > fabsl(*at(&a, p, k))) p = i;
        for (int64_t j = 0; j < a.n && p != k; j++) {
            const wide t = *at(&a, k, j);
            *at(&a, k, j) = *at(&a, p, j), *at(&a, p, j) = t;
        }
        for (int64_t j = 0; j < x->n && p != k; j++) {
            const wide t = *at(x, k, j);
            *at(x, k, j) = *at(x, p, j), *at(x, p, j) = t;
        }
        *det *= *at(&a, k, k) * (p == k ? 1 : -1);
        for (int64_t i = 0; i < a.m && *det != 0; i++) {
            const wide f = i == k ? 0 : *at(&a, i, k) / *at(&a, k, k);
            for (int64_t j = k; j < a.n && f != 0; j++) *at(&a, i, j) -= f * *at(&a, k, j);
            for (int64_t j = 0; j < x->n && f != 0; j++) *at(x, i, j) -= f * *at(x, k, j);
        }
    }
    for (int64_t i = 0; i < a.m && *det != 0; i++)
        for (int64_t j = 0; j < x->n; j++) *at(x, i, j) /= *at(&a, i, i);
    wides_free(&a);
    return *det != 0;
}

static inline wides wides_unit(int64_t n)
{
    wides t = wides_new(n, n);
    for (int64_t i = 0; i < n; i++) *at(&t, i, i) = 1;
    return t;
}

static inline wide eps_of(duet_dtype t) { return 2 * (wide)dtypes[t].roundoff; }

/* What LAPACK calls a ratio: rest in units of n eps size; 0 of nothing. It should be below THRESHOLD. */
#define THRESHOLD 30
static inline wide ratio(wide rest, wide size, int64_t n, wide eps)
{
    return rest == 0 ? 0 : rest / (size * (wide)(n > 1 ? n : 1) * eps);
}

static inline void small(wide r, const char *what, duet_dtype type, int64_t m, int64_t n, duet_place place)
{
    CHECK(r <= THRESHOLD, "%s of %s %lld x %lld on the %s: ratio %Lg", what, type_name(type), (long long)m, (long long)n,
          place_name(place), r);
}

#endif
