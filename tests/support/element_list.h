/* element_list.h - the elements of a matrix or view as a list, for oracles that do not deal with
 * layouts. */
#ifndef ELEMENT_LIST_H
#define ELEMENT_LIST_H

#include "common.h"
#include "dtype.h"
#include "element.h"
#include "test_rng.h"
#include <math.h>

typedef struct list {
    duet_dtype type;
    int rank;
    int64_t size[DUET_RANK_MAX], count;
    char *at;
} list;

static inline size_t list_each(const list *l) { return dtypes[l->type].bytes; }
static inline void *list_place(const list *l, int64_t i) { return l->at + i * (int64_t)list_each(l); }

static inline list list_new(duet_dtype type, int rank, const int64_t *size)
{
    list l = { .type = type, .rank = rank, .count = 1 };
    for (int a = 0; a < rank; a++) {
        l.size[a] = size[a];
        l.count *= size[a];
    }
    l.at = calloc((size_t)l.count + 1, dtypes[type].bytes);
    return l;
}

static inline list list_of(const duet_matrix *m)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_rank(m); a++) size[a] = duet_size(m, a);
    list l = list_new(duet_type(m), duet_rank(m), size);
    const char *from = duet_read(m);
    CHECK(from != NULL, "duet_read failed: %s", duet_error());
    for (int64_t i = 0; from && i < l.count; i++) {
        int64_t at = 0, left = i;
        for (int a = l.rank; a-- > 0; left /= l.size[a]) at += left % l.size[a] * duet_stride(m, a);
        memcpy(list_place(&l, i), from + at * (int64_t)list_each(&l), list_each(&l));
    }
    return l;
}

static inline void list_free(list *l)
{
    free(l->at);
    l->at = NULL;
}

/* The numbers of elements before and after an axis. */
static inline int64_t list_outer(const list *l, int axis)
{
    int64_t n = 1;
    for (int a = 0; a < axis; a++) n *= l->size[a];
    return n;
}
static inline int64_t list_inner(const list *l, int axis)
{
    int64_t n = 1;
    for (int a = axis + 1; a < l->rank; a++) n *= l->size[a];
    return n;
}

/* Exact in long double. */
static inline long double list_number(const list *l, int64_t i) { return element_value(l->type, l->at, i); }

/* Stores x, rounded if the type is a floating-point type. */
static inline void list_put(list *l, int64_t i, long double x)
{
    element_put(l->type, l->at, i, is_floating(l->type) ? converted(DUET_F64, l->type, x) : x);
}

/* Converts the elements to a type: exactly where the type represents them, otherwise rounded or
 * modulo 2^n; bool: whether they differ from 0. */
static inline list list_cast(const list *from, duet_dtype type)
{
    list l = list_new(type, from->rank, from->size);
    for (int64_t i = 0; i < l.count; i++)
        element_put(type, l.at, i, converted(from->type, type, list_number(from, i)));
    return l;
}

/* The type in which elements are summed. */
static inline duet_dtype list_sums_in(duet_dtype type)
{
    if (is_floating(type)) return type == DUET_F64 ? DUET_F64 : DUET_F32;
    if (dtype_kind(type) == TYPE_UNSIGNED) return DUET_U64;
    return DUET_I64;
}

/* Have all elements equal bits, or are both NaN? */
static inline bool list_same(const list *a, const list *b, const char *what)
{
    bool same = a->type == b->type && a->count == b->count;
    for (int64_t i = 0; i < a->count && same; i++)
        if (memcmp(list_place(a, i), list_place(b, i), list_each(a)) &&
            !(isnan(list_number(a, i)) && isnan(list_number(b, i))))
            same = CHECK(false, "%s: element %lld is %.17Lg, not %.17Lg", what, (long long)i,
                         list_number(a, i), list_number(b, i));
    return CHECK(same, "%s: the elements differ", what);
}

/* ---- matrices to read from ---- */

/* The matrix itself; reversed axes; a part of a larger matrix; a column. */
enum { PLAIN, TURNED, PART, SIGHTS };
typedef struct sight {
    duet_matrix *whole, *m;
} sight;

static inline sight sight_new(duet_dtype type, int rank, const int64_t *size, int view)
{
    int64_t other[DUET_RANK_MAX];
    sight s = { 0 };
    for (int a = 0; a < rank; a++) other[a] = view == TURNED ? size[rank - 1 - a] : size[a];
    if (view == PART && rank == 2) {
        s.whole = duet_new(type, size[0] + 2, size[1] + 3);
        s.m = duet_submatrix(s.whole, 1, 2, size[0], size[1]);
    } else if (view == PART && rank == 1) {
        s.whole = duet_new(type, size[0], 3);
        s.m = duet_column(s.whole, 1);
    } else {
        s.whole = duet_new_shape(type, rank, other);
        if (view == TURNED) s.m = duet_transposed(s.whole);
        else s.m = NULL;
    }
    CHECK(s.whole && (s.m || view == PLAIN || (view == PART && (rank < 1 || rank > 2))),
          "the matrix was not made: %s", duet_error());
    if (!s.m) {
        s.m = s.whole;
        s.whole = NULL;
    }
    return s;
}

static inline void sight_free(sight *s)
{
    duet_free(&s->m);
    duet_free(&s->whole);
}

/* Contents with many ties, of any magnitude, or with all special values. */
enum { TIES, ANY, SPECIAL, FILLINGS };
static inline long double filling(duet_dtype type, int kind)
{
    static const double special[] = {
        NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -1, 5e-324, -1e-45, 3e38, -3e38
    };
    const bool whole = !is_floating(type), below = dtype_kind(type) == TYPE_SIGNED;
    if (type == DUET_BOOL) return draw(2);
    if (type == DUET_U64 && kind != TIES && draw(2)) return 0x1p63L + draw(200);
    if (whole && kind != TIES) return draw(200) - (below ? 100 : 0);
    if (kind == TIES) return draw(7) - (below || !whole ? 3 : 0);
    if (kind == SPECIAL && draw(2)) return special[draw(11)];
    return (draw(2000001) - 1000000) / 997.0;
}

static inline void sight_fill(const sight *s, int kind)
{
    duet_matrix *all = s->whole ? s->whole : s->m;
    list l = { .type = duet_type(all), .count = duet_count(all), .at = duet_overwrite(all) };
    CHECK(l.at != NULL, "duet_overwrite failed: %s", duet_error());
    for (int64_t i = 0; l.at && i < l.count; i++) list_put(&l, i, filling(l.type, kind));
}

/* Fills with indices into n elements, some counted from the end. */
static inline void sight_fill_places(const sight *s, int64_t n)
{
    duet_matrix *all = s->whole ? s->whole : s->m;
    const bool below = dtype_kind(duet_type(all)) == TYPE_SIGNED;
    list l = { .type = duet_type(all), .count = duet_count(all), .at = duet_overwrite(all) };
    CHECK(l.at != NULL, "duet_overwrite failed: %s", duet_error());
    for (int64_t i = 0; l.at && i < l.count; i++)
        list_put(&l, i, (long double)(draw((int)n) - (below && draw(2) ? n : 0)));
}

#endif
