/* sparse_transpose.c - the transpose and a range of rows of a sparse matrix, on the host. */
#include "sparse_inline.h"
#include "sparse_parts.h"
#include "statement.h"
#include "status.h"

/* Half the measured time of one thread, because threads have to wait for each other four times. The number of
 * threads follows from it. */
#define SECONDS_PER_TRANSPOSED 1e-9

/* A counting sort of the elements by column. Each part counts those of its rows. So equal columns keep the
 * order of the rows, whatever the number of parts. */
typedef struct transposing {
    sparse_view v;
    sparse_lists l;
    void *next; /* for each part: where its next element of each column goes. As wide as the result */
    parts parts;
    int64_t before[PARTS_MAX + 1]; /* elements in front of those of a range of columns */
} transposing;

static void *next_of(const transposing *p, int part)
{
    return (char *)p->next + part * p->v.c.columns * (p->l.wide ? 8 : 4);
}

/* same: the indices of the result are as wide as those of v, or else of the other width, which its columns,
 * the rows of v, may need. */
INLINE int count_columns(bool same, bool wide, const transposing *p, int part)
{
    const csr *c = &p->v.c;
    const bool to_wide = wide == same;
    const void *column = columns_of(c, wide);
    void *next = next_of(p, part);
    const int64_t end = index_in(c->pattern, wide, p->parts.first[part + 1]);
    memset(next, 0, (size_t)c->columns * (to_wide ? 8 : 4));
    for (int64_t k = index_in(c->pattern, wide, p->parts.first[part]); k < end; k++) {
        const int64_t j = index_in(column, wide, k);
        put_index(next, to_wide, j, index_in(next, to_wide, j) + 1);
    }
    return 0;
}

static void count_part(void *of, int part)
{
    const transposing *p = of;
    const bool wide = p->v.c.wide;
    (void)(p->l.wide == wide ? FOR_WIDTHS(count_columns, true, wide, p, part)
                             : FOR_WIDTHS(count_columns, false, wide, p, part));
}

/* The number of elements in a range of the columns. */
static void sum_range(void *of, int part)
{
    transposing *p = of;
    const int64_t n = p->v.c.columns, to = part_of(n, part + 1, p->parts.count);
    int64_t sum = 0;
    for (int t = 0; t < p->parts.count; t++)
        for (int64_t j = part_of(n, part, p->parts.count); j < to; j++)
            sum += index_in(next_of(p, t), p->l.wide, j);
    p->before[part + 1] = sum;
}

/* Replaces the numbers by places, and writes the row offsets of the result. */
INLINE void place_columns(bool wide, const transposing *p, int part)
{
    const int64_t n = p->v.c.columns, to = part_of(n, part + 1, p->parts.count);
    int64_t place = p->before[part];
    for (int64_t j = part_of(n, part, p->parts.count); j < to; j++) {
        put_index(p->l.pattern, wide, j, place);
        for (int t = 0; t < p->parts.count; t++) {
            void *next = next_of(p, t);
            const int64_t count = index_in(next, wide, j);
            put_index(next, wide, j, place);
            place += count;
        }
    }
}

static void place_range(void *of, int part)
{
    const transposing *p = of;
    if (p->l.wide) place_columns(true, p, part);
    else place_columns(false, p, part);
}

INLINE int put_rows(duet_dtype type, bool wide, bool same, const transposing *p, int part)
{
    const csr *c = &p->v.c;
    const bool to_wide = wide == same;
    const void *column = columns_of(c, wide), *from = p->v.values;
    void *to = new_columns(&p->l, to_wide), *values = p->l.values, *next = next_of(p, part);
    for (int64_t r = p->parts.first[part]; r < p->parts.first[part + 1]; r++) {
        const int64_t end = index_in(c->pattern, wide, r + 1);
        for (int64_t k = index_in(c->pattern, wide, r); k < end; k++) {
            const int64_t j = index_in(column, wide, k), at = index_in(next, to_wide, j);
            put_index(next, to_wide, j, at + 1);
            put_index(to, to_wide, at, r);
            copy_element(type, element_at(values, type, at), element_at(from, type, k));
        }
    }
    return 0;
}

static void put_part(void *of, int part)
{
    const transposing *p = of;
    const bool wide = p->v.c.wide;
    (void)(p->l.wide == wide ? FOR_TYPES (put_rows, p->v.type, wide, true, p, part)
                             : FOR_TYPES (put_rows, p->v.type, wide, false, p, part));
}

static void put_transposed(transposing *p)
{
    const csr *c = &p->v.c;
    each_part(&p->parts, count_part, p);
    p->before[0] = 0;
    if (p->parts.count > 1) each_part(&p->parts, sum_range, p);
    for (int t = 1; t < p->parts.count; t++) p->before[t] += p->before[t - 1];
    each_part(&p->parts, place_range, p);
    csr_put(p->l.pattern, p->l.wide, c->columns, c->count);
    each_part(&p->parts, put_part, p);
}

/* Elements that a part should have in each column, because threads that write neighbouring elements slow down
 * each other. A part also needs memory for all columns. */
#define ELEMENTS_APART 16

static duet_status transpose(const char *who, const duet_sparse *s, transposing *p)
{
    TRY(sparse_open(who, s, &p->v));
    parts_divide(&p->parts, &p->v.c, (double)(s->count + s->columns) * SECONDS_PER_TRANSPOSED,
                 larger(1, s->count / (ELEMENTS_APART * (s->columns + 1))));
    TRY(sparse_begin(who, p->v.type, s->columns, s->rows, s->count, &p->l));
    p->next =
        sparse_allocate(who, s->columns * p->parts.count, p->l.wide ? sizeof(int64_t) : sizeof(int32_t));
    if (p->next) {
        put_transposed(p);
        sparse_release(p->next);
        return DUET_OK;
    }
    (duet_sparse_free)(&p->l.s);
    return DUET_NO_MEMORY;
}

duet_sparse *(duet_sparse_transposed)(const duet_sparse *s)
{
    transposing p;
    return transpose("duet_sparse_transposed", s, &p) == DUET_OK ? sparse_done(&p.l) : NULL;
}

static duet_status slice(const char *who, const duet_sparse *s, int64_t from, int64_t to, sparse_lists *l)
{
    char text[SPARSE_TEXT];
    sparse_view v;
    TRY(sparse_open(who, s, &v));
    if (from < 0 || from > to || to > s->rows)
        return fail(DUET_BAD_ARGUMENT,
                    "%s(s: %s): from (%lld) and to (%lld) must satisfy 0 <= from <= to <= %lld", who,
                    sparse_text(text, s), (long long)from, (long long)to, (long long)s->rows);
    const int64_t first = csr_offset(&v.c, from), count = csr_offset(&v.c, to) - first;
    TRY(sparse_begin(who, v.type, to - from, s->columns, count, l));
    for (int64_t r = from; r <= to; r++) csr_put(l->pattern, l->wide, r - from, csr_offset(&v.c, r) - first);
    for (int64_t k = 0; k < count; k++)
        csr_put(l->pattern, l->wide, to - from + 1 + k, csr_column(&v.c, first + k));
    if (count) memcpy(l->values, element_at(v.values, v.type, first), (size_t)count * v.each);
    return DUET_OK;
}

duet_sparse *(duet_sparse_slice)(const duet_sparse *s, int64_t from, int64_t to)
{
    sparse_lists l;
    return slice("duet_sparse_slice", s, from, to, &l) == DUET_OK ? sparse_done(&l) : NULL;
}
