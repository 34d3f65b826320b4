/* convs.h - convolutions and pooling of one, two or three axes by their definitions in long double.
 * Every product of a convolution belongs to one element, one weight and one result. This file
 * shares nothing with the library. */
#ifndef CONVS_H
#define CONVS_H

#include "common.h"
#include "dtype.h"
#include "element.h"
#include <math.h>

typedef long double real;

static rng gen;

/* The elements of a matrix, or the expected ones, in row-major order; for each the sum of the
 * absolute values of its terms. */
typedef struct array {
    int64_t count;
    real *v, *size;
} array;

static inline array array_new(int64_t count)
{
    return (array){ count, calloc((size_t)count + 1, sizeof(real)), calloc((size_t)count + 1, sizeof(real)) };
}
static inline void array_free(array *a)
{
    free(a->v);
    free(a->size);
}

static inline array array_of(const duet_matrix *m)
{
    array a = array_new(duet_count(m));
    void *all = elements(m);
    CHECK(all != NULL, "duet_read failed: %s", duet_error());
    for (int64_t i = 0; i < a.count && all; i++) {
        a.v[i] = element_value(duet_type(m), all, i);
        a.size[i] = fabsl(a.v[i]);
    }
    free(all);
    return a;
}

/* Images n c, filters m c / groups, results n m, each followed by the spatial axes. */
typedef struct geometry {
    int axes;
    int64_t n, c, m, groups;
    int64_t image[3], window[3], out[3], stride[3], pad[3], dilation[3],
        more[3]; /* more: additional padding at the end */
    bool flips;
} geometry;

static inline int64_t volume(const int64_t *size, int axes)
{
    int64_t n = 1;
    for (int a = 0; a < axes; a++) n *= size[a];
    return n;
}

static inline void unravel(int64_t i, const int64_t *size, int axes, int64_t *at)
{
    for (int a = axes; a-- > 0; i /= size[a]) at[a] = i % size[a];
}

/* The position in an image of element u of window o; -1: outside. */
static inline int64_t element_offset(const geometry *g, int64_t o, int64_t u)
{
    int64_t out[3], at[3], i = 0;
    unravel(o, g->out, g->axes, out);
    unravel(u, g->window, g->axes, at);
    for (int a = 0; a < g->axes; a++) {
        const int64_t p = out[a] * g->stride[a] - g->pad[a] + at[a] * g->dilation[a];
        if (p < 0 || p >= g->image[a]) return -1;
        i = i * g->image[a] + p;
    }
    return i;
}

typedef void product(void *with, int64_t x, int64_t w, int64_t y);

static inline void each_product(const geometry *g, product *f, void *with)
{
    const int64_t outs = volume(g->out, g->axes), window = volume(g->window, g->axes),
                  image = volume(g->image, g->axes);
    const int64_t depth = g->c / g->groups, each = g->m / g->groups;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t m = 0; m < g->m; m++)
            for (int64_t o = 0; o < outs; o++)
                for (int64_t k = 0; k < depth * window; k++) {
                    const int64_t u = k % window, at = element_offset(g, o, u),
                                  c = m / each * depth + k / window;
                    const int64_t w = (m * depth + k / window) * window + (g->flips ? window - 1 - u : u);
                    if (at >= 0) f(with, (n * g->c + c) * image + at, w, (n * g->m + m) * outs + o);
                }
}

/* Which of the three operands is computed from the other two. */
enum operand { IMAGES, FILTERS, RESULTS };
typedef struct making {
    array of[3];
    enum operand result;
} making;

static inline void add_product(void *with, int64_t x, int64_t w, int64_t y)
{
    making *k = with;
    const int64_t at[] = { x, w, y };
    const int a = (k->result + 1) % 3, b = (k->result + 2) % 3;
    const real p = k->of[a].v[at[a]] * k->of[b].v[at[b]];
    k->of[k->result].v[at[k->result]] += p;
    k->of[k->result].size[at[k->result]] += fabsl(p);
}

static inline int64_t operand_count(const geometry *g, enum operand which)
{
    if (which == IMAGES) return g->n * g->c * volume(g->image, g->axes);
    if (which == FILTERS) return g->m * (g->c / g->groups) * volume(g->window, g->axes);
    return g->n * g->m * volume(g->out, g->axes);
}

/* The largest number of products in an element. */
static inline real terms_of(const geometry *g, enum operand result)
{
    if (result == FILTERS) return (real)(g->n * volume(g->out, g->axes));
    const int64_t channels = result == RESULTS ? g->c : g->m;
    return (real)(channels / g->groups * volume(g->window, g->axes));
}

static inline real roundoff(duet_dtype type) { return type == DUET_F32 ? 0x1p-24L : 0x1p-53L; }

/* Compares within this number of rounding errors of the terms of an element; 0: exactly. */
static inline void compare(const char *name, const duet_matrix *m, const array *want, real roundings)
{
    array got = array_of(m);
    const real u = roundoff(duet_type(m));
    if (CHECK(got.count == want->count, "%s: %lld elements", name, (long long)got.count))
        for (int64_t i = 0; i < got.count; i++) {
            const bool nan = isnan(want->v[i]) && isnan(got.v[i]);
            const real off = fabsl(got.v[i] - want->v[i]),
                       most = roundings * u * want->size[i] / (1 - roundings * u);
            CHECK(nan || got.v[i] == want->v[i] || off <= most,
                  "%s, element %lld: %.17Lg, not %.17Lg, off by %.3Lg, at most %.3Lg", name, (long long)i,
                  got.v[i], want->v[i], off, most);
        }
    array_free(&got);
}

/* ---- matrices ---- */

/* The given leading sizes, then those of g. */
static inline sizes sizes_with(int leading, int64_t a, int64_t b, const int64_t *rest, int axes)
{
    sizes s = { leading + axes, { a, b } };
    for (int k = 0; k < axes; k++) s.size[leading + k] = rest[k];
    return s;
}

typedef struct held {
    duet_matrix *m, *whole;
} held;

static inline held held_new(duet_dtype type, const sizes *s)
{
    static const enum view views[] = { VIEW_NONE, VIEW_NONE, VIEW_SLICE, VIEW_TRANSPOSED };
    held h = { 0 };
    h.m = random_view(&gen, views[rng_below(&gen, 4)], type, s->rank, s->size, -1, 1, &h.whole);
    if (!h.m) h.m = h.whole = random_matrix(&gen, type, s->rank, s->size, -1, 1);
    if (rng_chance(&gen, 20)) {
        duet_matrix *flipped = duet_flipped(h.m, -1);
        if (h.m != h.whole) duet_free(&h.m);
        h.m = flipped;
    }
    CHECK(h.m && h.whole, "%s", duet_error());
    return h;
}

static inline void held_free(held *h)
{
    if (h->whole != h->m) duet_free(&h->whole);
    duet_free(&h->m);
}

/* Evaluates the formula into a new matrix, whose shape must be the expected one. */
static inline duet_matrix *evaluated(duet_place p, duet_dtype type, duet_expr e, const sizes *shape)
{
    const sizes s = sizes_of_expr(e);
    CHECK(duet_expr_status(e) == DUET_OK, "%s", duet_error());
    CHECK(s.rank == shape->rank && !memcmp(s.size, shape->size, sizeof s.size[0] * (size_t)s.rank),
          "%s: another shape", text_of(e));
    duet_matrix *m = duet_new_shape(type, shape->rank, shape->size);
    CHECK(duet_set_on(p, m, e) == DUET_OK, "%s", duet_error());
    return m;
}

#endif
