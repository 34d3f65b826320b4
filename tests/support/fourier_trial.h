/* fourier_trial.h - random Fourier transforms, and their definition in long double. */
#ifndef FOURIER_TRIAL_H
#define FOURIER_TRIAL_H

#include "fourier_arrays.h"

/* ---- the definition ---- */

/* The same with n elements along an axis: truncated, or padded with zeros. */
static inline array resized(const array *t, int axis, int64_t n)
{
    int64_t size[DUET_RANK_MAX];
    memcpy(size, t->size, sizeof size);
    size[axis] = n;
    array r = array_new(t->rank, size);
    const int64_t s = stride_of(t, axis);
    for (int64_t i = 0; i < r.count; i++) {
        const int64_t k = i / s % n, outer = i / s / n;
        if (k < t->size[axis]) r.v[i] = t->v[(outer * t->size[axis] + k) * s + i % s];
    }
    return r;
}

static inline void line(number *x, int64_t n, int64_t s, const number *w, number *room)
{
    for (int64_t k = 0; k < n; k++) {
        room[k] = 0;
        for (int64_t j = 0; j < n; j++) room[k] += x[j * s] * w[j * k % n];
    }
    for (int64_t k = 0; k < n; k++) x[k * s] = room[k];
}

static inline void transform_along(array *t, int axis, int sign)
{
    const int64_t n = t->size[axis], s = stride_of(t, axis);
    number *w = malloc(2 * (size_t)n * sizeof *w);
    for (int64_t k = 0; k < n; k++) w[k] = cexpl(sign * 2 * PI * I * (real)k / (real)n);
    for (int64_t i = 0; i < t->count; i++)
        if (i / s % n == 0) line(t->v + i, n, s, w, w + n);
    free(w);
}

static inline void replace(array *t, array with)
{
    array_free(t);
    *t = with;
}

/* Completes the transform of a real array along an axis from its first n / 2 + 1 elements. */
static inline void mirror(array *t, int axis, int64_t n)
{
    array r = resized(t, axis, n);
    const int64_t s = stride_of(t, axis);
    for (int64_t i = 0; i < r.count; i++) {
        const int64_t k = i / s % n, outer = i / s / n;
        if (2 * k % n == 0) r.v[i] = creall(r.v[i]);
        if (k > n / 2) r.v[i] = conjl(r.v[(outer * n + n - k) * s + i % s]);
    }
    replace(t, r);
}

enum kind { FFT, IFFT, RFFT, IRFFT };
static const char *const kind_names[] = { "fftn", "ifftn", "rfftn", "irfftn" };

typedef struct trial {
    enum kind kind;
    duet_dtype type; /* of x */
    sizes x;
    duet_fourier o;
    int view; /* enum view, or: */
} trial;

enum { FLIPPED = VIEWS, REPEATED };

static inline const char *name_of_view(int v)
{
    if (v == FLIPPED) return "flipped";
    if (v == REPEATED) return "repeated";
    return view_names[v];
}

static inline int axis_of(const trial *t, int k)
{
    return t->o.axes ? (t->o.axis[k] + t->x.rank) % t->x.rank : k;
}

/* The expected result; *size: the magnitude to which errors are relative, that of the sum over all
 * terms. */
static inline array meant(const trial *t, const array *x, real *size, real *terms)
{
    const int count = t->o.axes ? t->o.axes : t->x.rank, sign = t->kind == FFT || t->kind == RFFT ? -1 : 1;
    array y = resized(x, 0, x->size[0]);
    *terms = 1;
    for (int k = 0; k < count; k++) {
        const int a = axis_of(t, k);
        const bool mirrored = t->kind == IRFFT && k == count - 1;
        int64_t n = x->size[a];
        if (t->o.n[k]) n = t->o.n[k];
        else if (mirrored) n = 2 * (n - 1);
        replace(&y, resized(&y, a, mirrored ? n / 2 + 1 : n));
        *terms *= (real)n;
    }
    const real scale = t->kind == IFFT || t->kind == IRFFT ? 1 / *terms : 1;
    *size = norm(&y) * sqrtl(*terms) * scale * (t->kind == IRFFT ? sqrtl(2) : 1);
    for (int k = 0; k < count; k++) {
        const int a = axis_of(t, k);
        if (t->kind == IRFFT && k == count - 1) mirror(&y, a, t->o.n[k] ? t->o.n[k] : 2 * (x->size[a] - 1));
        transform_along(&y, a, sign);
    }
    const int last = axis_of(t, count - 1);
    if (t->kind == RFFT) replace(&y, resized(&y, last, y.size[last] / 2 + 1));
    for (int64_t i = 0; i < y.count; i++) y.v[i] *= scale;
    return y;
}

static inline bool is_smooth(const array *t)
{
    for (int a = 0; a < t->rank; a++) {
        int64_t n = t->size[a];
        for (int64_t p = 2; p <= 13; p++)
            while (n > 1 && n % p == 0) n /= p;
        if (n > 1) return false;
    }
    return true;
}

static inline real allowed(const array *y, real terms, duet_dtype type)
{
    const real u = type == DUET_F32 || type == DUET_C64 ? 0x1p-24L : 0x1p-53L;
    return (is_smooth(y) ? 8 : 32) * u * log2l(2 * terms);
}

/* ---- one transform ---- */

static inline duet_expr formula_for(const trial *t, const duet_matrix *x)
{
    duet_expr (*const of[])(duet_expr, const duet_fourier *) = { (duet_fftn), (duet_ifftn), (duet_rfftn),
                                                                 (duet_irfftn) };
    return of[t->kind](DUET(x), &t->o);
}

/* A matrix of these sizes inside a larger one, or the matrix itself. */
static inline duet_matrix *laid(const trial *t, duet_matrix **whole)
{
    int64_t size[DUET_RANK_MAX];
    const int rank = t->x.rank;
    memcpy(size, t->x.size, sizeof size);
    if (t->view == VIEW_TRANSPOSED)
        for (int a = 0; a < rank; a++) size[a] = t->x.size[rank - 1 - a];
    if (t->view == VIEW_SLICE) size[0] += 2;
    if (t->view == VIEW_SUBMATRIX) {
        size[0] += 1;
        size[1] += 3;
    }
    if (t->view == REPEATED) size[0] = 1;
    *whole = duet_new_shape(t->type, rank, size);
    fill(*whole);
    if (t->view == FLIPPED) return duet_flipped(*whole, -1);
    if (t->view == REPEATED) return duet_broadcast_to_shape(*whole, rank, t->x.size);
    if (t->view == VIEW_TRANSPOSED) return duet_transposed(*whole);
    if (t->view == VIEW_SLICE) return duet_slice(*whole, 1, t->x.size[0]);
    if (t->view == VIEW_SUBMATRIX) return duet_submatrix(*whole, 1, 1, t->x.size[0], t->x.size[1]);
    return *whole;
}

static inline void name_trial(const trial *t, char text[300], duet_place p)
{
    char what[SHAPE_TEXT];
    int n = snprintf(text, 300, "duet_%s(%s) on %s, %s, axes", kind_names[t->kind],
                     shape_text(what, t->type, t->x.rank, t->x.size), place_name(p), name_of_view(t->view));
    for (int k = 0; k < (t->o.axes ? t->o.axes : t->x.rank); k++)
        n += snprintf(text + n, 300 - (size_t)n, " %d (%d)", axis_of(t, k), t->o.n[k]);
}

static inline duet_dtype result_type(const trial *t)
{
    const bool wide = t->type == DUET_F64 || t->type == DUET_C128;
    if (t->kind == IRFFT) return (wide ? DUET_F64 : DUET_F32);
    if (wide) return DUET_C128;
    return DUET_C64;
}

/* ---- random transforms ---- */

static const int64_t lengths[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12, 13,  15,
                                   16, 17, 19, 24, 30, 31, 32, 37, 60, 64, 97, 101, 128 };
#define LENGTHS (int64_t)(sizeof lengths / sizeof *lengths)

static inline duet_dtype type_for(enum kind k, bool wide, bool real_too)
{
    const bool is_real = k == RFFT || (k != IRFFT && real_too);
    if (is_real) return (wide ? DUET_F64 : DUET_F32);
    if (wide) return DUET_C128;
    return DUET_C64;
}

static inline void choose_axes(trial *t)
{
    int axis[DUET_RANK_MAX];
    for (int a = 0; a < t->x.rank; a++) axis[a] = a;
    for (int a = t->x.rank; a-- > 1;) {
        const int64_t b = rng_below(&gen, a + 1);
        const int c = axis[a];
        axis[a] = axis[b];
        axis[b] = c;
    }
    if (rng_chance(&gen, 30)) t->o.axes = 0;
    else t->o.axes = 1 + (int32_t)rng_below(&gen, t->x.rank);
    for (int k = 0; k < t->o.axes; k++) t->o.axis[k] = axis[k] - (rng_chance(&gen, 50) ? t->x.rank : 0);
    for (int k = 0; k < (t->o.axes ? t->o.axes : t->x.rank); k++) {
        const int a = axis_of(t, k);
        if (rng_chance(&gen, 25)) t->o.n[k] = 1 + (int32_t)rng_below(&gen, 2 * t->x.size[a] + 1);
        if (t->kind == IRFFT && t->x.size[a] == 1 && !t->o.n[k]) t->o.n[k] = 1;
    }
}

static inline trial random_trial(enum kind kind, bool wide)
{
    static const int views[] = { VIEW_NONE, VIEW_NONE, VIEW_SLICE,    VIEW_TRANSPOSED,
                                 FLIPPED,   REPEATED,  VIEW_SUBMATRIX };
    trial t = { .kind = kind, .type = type_for(kind, wide, rng_chance(&gen, 30)) };
    t.x.rank = 1 + (int)rng_below(&gen, 5);
    int64_t most = 4000, count = 1;
    for (int a = 0; a < t.x.rank; a++) {
        int64_t n = lengths[rng_below(&gen, LENGTHS)];
        while (count * n > most) n = 1 + n / 3;
        t.x.size[a] = n;
        count *= n;
    }
    t.view = views[rng_below(&gen, t.x.rank == 2 ? 7 : 6)];
    choose_axes(&t);
    return t;
}

#endif
