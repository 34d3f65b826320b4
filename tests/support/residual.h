/* residual.h - matrices in extended precision, to measure the residuals of linear algebra in the
 * units of LAPACK's tests. With COMPLEX defined, complex matrices. */
#ifndef RESIDUAL_H
#define RESIDUAL_H

#include "common.h"
#include "dtype.h"
#include <complex.h>
#include <math.h>
#include <string.h>

typedef long double wide;
#ifdef COMPLEX
typedef long double _Complex number;
static const duet_dtype own_types[] = { DUET_C64, DUET_C128 };
static inline number number_of(wide re, wide im)
{
    number x;
    memcpy(&x, (const wide[]){ re, im }, sizeof x);
    return x;
}
static inline wide size_of(number x) { return cabsl(x); }
static inline wide real_of(number x) { return creall(x); }
static inline wide imaginary_of(number x) { return cimagl(x); }
static inline number conjugate_of(number x) { return conjl(x); }
#else
typedef wide number;
static const duet_dtype own_types[] = { DUET_F32, DUET_F64 };
static inline number number_of(wide re, wide im) { return re; }
static inline wide size_of(number x) { return fabsl(x); }
static inline wide real_of(number x) { return x; }
static inline wide imaginary_of(number x) { return 0; }
static inline number conjugate_of(number x) { return x; }
#endif

/* m x n, row-major. */
typedef struct wides {
    int64_t m, n;
    number *v;
} wides;

static inline number *at(const wides *t, int64_t i, int64_t j) { return &t->v[i * t->n + j]; }
static inline wides wides_new(int64_t m, int64_t n)
{
    return (wides){ m, n, calloc((size_t)(m * n + 1), sizeof(number)) };
}
static inline void wides_free(wides *t)
{
    free(t->v);
    t->v = NULL;
}

static inline number element_at(duet_dtype t, const void *p, int64_t k)
{
    switch (t) {
    case DUET_F32: return ((const float *)p)[k];
    case DUET_F64: return ((const double *)p)[k];
    case DUET_C64: return number_of(((const float *)p)[2 * k], ((const float *)p)[2 * k + 1]);
    case DUET_C128: return number_of(((const double *)p)[2 * k], ((const double *)p)[2 * k + 1]);
    default: return (wide)((const int64_t *)p)[k];
    }
}

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
            *at(&t, i, j) = element_at(duet_type(x), p, k);
        }
    return t;
}

static inline wides wides_transposed(const wides *a)
{
    wides t = wides_new(a->n, a->m);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t j = 0; j < a->n; j++) *at(&t, j, i) = *at(a, i, j);
    return t;
}

/* The conjugate transpose. */
static inline wides wides_turned(const wides *a)
{
    wides t = wides_transposed(a);
    for (int64_t i = 0; i < t.m * t.n; i++) t.v[i] = conjugate_of(t.v[i]);
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

/* The largest column sum of absolute values; NaN if one is. */
static inline wide norm1(const wides *a)
{
    wide most = 0;
    for (int64_t j = 0; j < a->n; j++) {
        wide sum = 0;
        for (int64_t i = 0; i < a->m; i++) sum += size_of(*at(a, i, j));
        if (!(sum <= most)) most = sum;
    }
    return most;
}

/* |c - a b|; c NULL: the identity matrix. */
static inline wide norm_rest(const wides *c, const wides *a, const wides *b)
{
    wides p = wides_product(a, b);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) *at(&p, i, j) -= c ? *at(c, i, j) : i == j;
    const wide r = norm1(&p);
    wides_free(&p);
    return r;
}

static inline wide norm_difference(const wides *a, const wides *b)
{
    wide most = 0;
    for (int64_t i = 0; i < a->m * a->n; i++)
        if (!(size_of(a->v[i] - b->v[i]) <= most)) most = size_of(a->v[i] - b->v[i]);
    return most;
}

/* Gaussian elimination with row exchanges on a copy: x with a x = b, and the determinant. Returns
 * false if a is singular. */
static inline bool eliminate(const wides *of, const wides *b, wides *x, number *det)
{
    wides a = wides_new(of->m, of->n);
    memcpy(a.v, of->v, (size_t)(of->m * of->n) * sizeof(number));
    *x = wides_new(b->m, b->n);
    *det = 1;
    memcpy(x->v, b->v, (size_t)(b->m * b->n) * sizeof(number));
    for (int64_t k = 0; k < a.n && *det != 0; k++) {
        int64_t p = k;
        for (int64_t i = k; i < a.m; i++)
            if (size_of(*at(&a, i, k)) > size_of(*at(&a, p, k))) p = i;
        for (int64_t j = 0; j < a.n && p != k; j++) {
            const number t = *at(&a, k, j);
            *at(&a, k, j) = *at(&a, p, j);
            *at(&a, p, j) = t;
        }
        for (int64_t j = 0; j < x->n && p != k; j++) {
            const number t = *at(x, k, j);
            *at(x, k, j) = *at(x, p, j);
            *at(x, p, j) = t;
        }
        *det *= *at(&a, k, k) * (p == k ? 1 : -1);
        for (int64_t i = 0; i < a.m && *det != 0; i++) {
            const number f = i == k ? 0 : *at(&a, i, k) / *at(&a, k, k);
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

static inline wide eps_of(duet_dtype t) { return 2 * (wide)dtypes[dtype_part(t)].roundoff; }

/* The ratio of LAPACK's tests: the residual in units of n eps size; 0 for empty matrices. It should
 * be below THRESHOLD. */
#define THRESHOLD 30
static inline wide ratio(wide rest, wide size, int64_t n, wide eps)
{
    if (rest == 0) return 0;
    return rest / (size * (wide)(n > 1 ? n : 1) * eps);
}

static inline void small(wide r, const char *what, duet_dtype type, int64_t m, int64_t n, duet_place place)
{
    CHECK(r <= THRESHOLD, "%s of %s %lld x %lld on the %s: ratio %Lg", what, dtypes[type].name, (long long)m,
          (long long)n, place_name(place), r);
}

#endif
