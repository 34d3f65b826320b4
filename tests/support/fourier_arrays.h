/* fourier_arrays.h - arrays of complex numbers in long double, and matrices filled from and
 * compared with them. */
#ifndef FOURIER_ARRAYS_H
#define FOURIER_ARRAYS_H

#include "common.h"
#include "dtype.h"
#include "fft.h"
#include "shape.h"
#include <complex.h>
#include <math.h>

typedef long double real;
typedef long double complex number;
#define PI 3.14159265358979323846264338327950288L

static rng gen; /* the generator of all random data */

typedef struct array {
    int rank;
    int64_t size[DUET_RANK_MAX], count;
    number *v;
} array;

static inline array array_new(int rank, const int64_t *size)
{
    array t = { .rank = rank, .count = 1 };
    for (int a = 0; a < rank; a++) {
        t.size[a] = size[a];
        t.count *= size[a];
    }
    t.v = calloc((size_t)t.count + 1, sizeof *t.v);
    return t;
}

static inline void array_free(array *t) { free(t->v); }

static inline number element_of(const void *p, duet_dtype t, int64_t i)
{
    switch (t) {
    case DUET_F32: return ((const float *)p)[i];
    case DUET_F64: return ((const double *)p)[i];
    case DUET_I64: return ((const int64_t *)p)[i];
    case DUET_C64: return ((const float *)p)[2 * i] + I * (real)((const float *)p)[2 * i + 1];
    default: return ((const double *)p)[2 * i] + I * (real)((const double *)p)[2 * i + 1];
    }
}

static inline void put(void *p, duet_dtype t, int64_t i, number x)
{
    switch (t) {
    case DUET_F32: ((float *)p)[i] = (float)creall(x); break;
    case DUET_F64: ((double *)p)[i] = (double)creall(x); break;
    case DUET_I64: ((int64_t *)p)[i] = (int64_t)creall(x); break;
    case DUET_C64:
        ((float *)p)[2 * i] = (float)creall(x);
        ((float *)p)[2 * i + 1] = (float)cimagl(x);
        break;
    default: ((double *)p)[2 * i] = (double)creall(x); ((double *)p)[2 * i + 1] = (double)cimagl(x);
    }
}

/* The offset in m of element i of an array of the same sizes. */
static inline int64_t offset_in(const duet_matrix *m, int64_t i)
{
    int64_t at = 0;
    for (int a = duet_rank(m); a-- > 0; i /= duet_size(m, a)) at += i % duet_size(m, a) * duet_stride(m, a);
    return at;
}

static inline array array_of(const duet_matrix *m)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(m); a++) size[a] = duet_size(m, a);
    array t = array_new(duet_rank(m), size);
    const void *p = duet_read(m);
    CHECK(p || !t.count, "%s", duet_error());
    for (int64_t i = 0; p && i < t.count; i++) t.v[i] = element_of(p, duet_type(m), offset_in(m, i));
    return t;
}

static inline void fill(duet_matrix *m)
{
    void *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        put(p, duet_type(m), offset_in(m, i), rng_real(&gen, -9, 9) + I * (real)rng_real(&gen, -9, 9));
}

static inline real norm(const array *t)
{
    real sum = 0;
    for (int64_t i = 0; i < t->count; i++) sum += creall(t->v[i] * conjl(t->v[i]));
    return sqrtl(sum);
}

static inline real sizes_of(const array *t)
{
    real sum = 0;
    for (int64_t i = 0; i < t->count; i++) sum += cabsl(t->v[i]);
    return sum;
}

static inline int64_t stride_of(const array *t, int axis)
{
    int64_t s = 1;
    for (int a = axis + 1; a < t->rank; a++) s *= t->size[a];
    return s;
}

static inline void compare(const char *name, const duet_matrix *m, const array *want, real error)
{
    array got = array_of(m);
    real sum = 0;
    if (!CHECK(got.count == want->count, "%s: %d elements", name, (int)got.count)) return array_free(&got);
    for (int64_t i = 0; i < got.count; i++)
        sum += creall((got.v[i] - want->v[i]) * conjl(got.v[i] - want->v[i]));
    CHECK(sqrtl(sum) <= error, "%s: the error is %Lg, at most %Lg, of %Lg", name, sqrtl(sum), error,
          norm(want));
    array_free(&got);
}

static inline bool set_on(duet_place p, duet_matrix *m, duet_expr e)
{
    return CHECK(duet_set_on(p, m, e) == DUET_OK, "%s", duet_error());
}

/* Lists the places with Fourier transforms: the CPU only if the library is built with FFTW. */
static inline int list_transforming(duet_place place[2])
{
    int places = list_places(place);
    if (fft_absent()) {
        place[0] = place[1];
        places--;
    }
    if (!places) printf("1..0 # SKIP %s\n", fft_absent());
    return places;
}

#endif
