/* plain_array.h - random arrays of doubles of C, matrices with the same elements in several layouts, and the
 * comparison of a formula with what a loop computed. */
#ifndef PLAIN_ARRAY_H
#define PLAIN_ARRAY_H

#include "common.h"
#include "dtype.h"
#include <math.h>

static duet_place place[2];
static int places, at_place; /* at_place: an index in place[] */
static rng gen;

enum { ARRAY_MOST = 6000 };

/* The numbers of a matrix, all of which its type represents. */
typedef struct array {
    duet_dtype type;
    int rank;
    int64_t size[DUET_RANK_MAX], count;
    double x[ARRAY_MOST];
} array;

__attribute__((unused)) static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(rng_next(&gen) % (uint64_t)(high - low + 1));
}

static inline bool is_float(duet_dtype t) { return dtype_kind(t) == TYPE_FLOAT; }

/* Sets the shape; the elements are 0. */
__attribute__((unused)) static void array_shape(array *a, duet_dtype type, int rank, const int64_t *size)
{
    a->type = type;
    a->rank = rank;
    a->count = 1;
    for (int d = 0; d < rank; d++) a->count *= a->size[d] = size[d];
    if (!CHECK(a->count <= ARRAY_MOST, "an array of %d elements", (int)a->count)) a->count = 0;
    for (int64_t k = 0; k < a->count; k++) a->x[k] = 0;
}

/* Multiples of 1/8 from low to high, which f16 and bf16 represent if they are small; integers for other
 * types. */
__attribute__((unused)) static void array_fill(array *a, int low, int high)
{
    for (int64_t k = 0; k < a->count; k++) {
        const int least = dtype_kind(a->type) == TYPE_SIGNED || is_float(a->type) ? low : 0;
        a->x[k] = is_float(a->type) ? (double)between(8 * least, 8 * high) / 8 : (double)between(least, high);
        if (a->type == DUET_BOOL) a->x[k] = (double)between(0, 1);
    }
}

/* Replaces some elements by NaN, infinities and -0. */
__attribute__((unused)) static void array_spoil(array *a, int one_in)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0 };
    for (int64_t k = 0; k < a->count && is_float(a->type); k++)
        if (!between(0, one_in - 1)) a->x[k] = odd[between(0, 3)];
}

/* The position of element i in row-major order; i is advanced. */
__attribute__((unused)) static bool array_next(const array *a, int64_t *i)
{
    for (int d = a->rank - 1; d >= 0; d--) {
        if (++i[d] < a->size[d]) return true;
        i[d] = 0;
    }
    return false;
}
__attribute__((unused)) static int64_t array_at(const array *a, const int64_t *i)
{
    int64_t at = 0;
    for (int d = 0; d < a->rank; d++) at = at * a->size[d] + i[d];
    return at;
}

/* A matrix with these elements: dense, transposed in memory, or every other element of a larger one. */
__attribute__((unused)) static duet_matrix *array_matrix(const array *a)
{
    const int layout = (int)between(0, 2);
    int64_t size[DUET_RANK_MAX] = { 0 };
    duet_index_entry entry[DUET_RANK_MAX];
    int order[DUET_RANK_MAX];
    for (int d = 0; d < a->rank; d++) {
        size[layout == 1 ? a->rank - 1 - d : d] = layout == 2 ? 2 * a->size[d] : a->size[d];
        order[d] = a->rank - 1 - d;
        entry[d] = DUET_STEP(DUET_OPEN, DUET_OPEN, d % 2 ? -2 : 2);
    }
    duet_matrix *wide = duet_from_array_shape(a->x, DUET_F64, a->rank, a->size), *m = NULL,
                *base = duet_new_shape(a->type, a->rank, size);
    if (layout == 1) m = (duet_permuted_axes)(base, a->rank, order);
    if (layout == 2) m = (duet_indexed_by)(base, a->rank, entry);
    if (layout) duet_free(&base);
    else m = base;
    const duet_status s = duet_set(m, duet_cast(wide, a->type));
    CHECK(s == DUET_OK, "%s", duet_error());
    duet_free(&wide);
    return m;
}

/* The largest error of one rounding, twice. */
__attribute__((unused)) static double array_error(duet_dtype t)
{
    if (t == DUET_BF16) return 0x1p-7;
    if (t == DUET_F16) return 0x1p-10;
    return t == DUET_F32 ? 0x1p-23 : 0x1p-52;
}

/* Checks that no formula is left: the limit can be set only then. */
__attribute__((unused)) static void array_nothing_left(const char *what)
{
    CHECK(duet_arena_limit(64 << 20) == DUET_OK, "%s leaves a formula: %s", what, duet_error());
}

/* Checks the type, the shape and the elements of e. An element may be off by `error` (1 + |element|). */
__attribute__((unused)) static void array_check(duet_expr e, const array *want, double error,
                                                const char *what)
{
    duet_matrix *m = NULL, *wide = NULL;
    DUET_ON(place[at_place]) m = duet_eval(e);
    if (!CHECK(m != NULL, "%s: %s", what, duet_error())) return;
    bool same = duet_type(m) == want->type && duet_rank(m) == want->rank;
    for (int a = 0; same && a < want->rank; a++) same = duet_size(m, a) == want->size[a];
    CHECK(same, "%s: the type is %s of rank %d, not %s of rank %d; or the sizes differ", what,
          dtypes[duet_type(m)].name, duet_rank(m), dtypes[want->type].name, want->rank);
    wide = duet_eval(duet_cast(m, DUET_F64));
    const double *p = wide ? duet_read_f64(wide) : NULL;
    for (int64_t k = 0; same && p && k < want->count; k++) {
        const double w = want->x[k];
        const bool equal = isnan(w) ? isnan(p[k]) : p[k] == w || fabs(p[k] - w) <= error * (1 + fabs(w));
        if (!CHECK(equal, "%s, type %s: element %d is %.17g, not %.17g", what, dtypes[want->type].name,
                   (int)k, p[k], w))
            break;
    }
    duet_free(&m);
    duet_free(&wide);
    array_nothing_left(what);
}

/* Checks that a formula has failed with this status, and that `text` is part of the message. */
__attribute__((unused)) static void array_refused(duet_expr e, duet_status want, const char *text)
{
    duet_matrix *m = duet_eval(e);
    CHECK(!m && duet_error_status() == want && strstr(duet_error(), text), "\"%s\" is expected, not \"%s\"",
          text, duet_error());
    duet_free(&m);
    array_nothing_left(text);
}

/* At each place, `turns` trials with elements of these types in turn. */
__attribute__((unused)) static void array_each_place(int turns, const duet_dtype *types, int n,
                                                     void try_type(duet_dtype type))
{
    for (at_place = 0; at_place < places; at_place++) {
        for (int k = 0; k < turns; k++) {
            gen = rng_new((uint64_t)k + 1);
            try_type(types[k % n]);
        }
        tap_point(at_place ? "results equal loops, on the GPU" : "results equal loops, on the CPU");
    }
    at_place = 0;
}

#endif
