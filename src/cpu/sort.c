/* sort.c - sort, argsort, top_k and top_k_indices: elements become keys whose order is that of whole numbers, sorted stably with their
 * indices; from the lower bits up where there are many, by merging where there are few. Of a small part of a line only the candidates are. */
#include "dtype.h"
#include "gather.h"
#include "sort_entry.h"
#include <string.h>

#define DIGIT_BITS   11
#define BUCKETS      (1 << DIGIT_BITS)
#define FEW          2048 /* elements: sorted by merging, */
#define RUN          12   /* of runs sorted by insertion */
#define PART         16   /* so many times as many elements as are wanted: most of them are no candidates */
#define SECONDS_EACH 3e-8 /* an element */

typedef struct sorting {
    const char *x;
    char *out;
    axis_split at;
    int64_t n, k, inner; /* k: how many are wanted */
    duet_dtype type;
    size_t each;
    int bits; /* of keys */
    bool down, indices;
} sorting;

static entry entry_at(const sorting *s, int64_t first, int64_t i)
{
    const uint64_t key = order_key(s->x, s->type, first + i * s->at.along.stride[0]);
    return (entry){ s->down ? ~key & (~(uint64_t)0 >> (64 - s->bits)) : key, i };
}

/* ---- of one thread ---- */

static void merge(const entry *a, int64_t n, const entry *b, int64_t m, entry *to)
{
    while (n && m)
        if (b->key < a->key) *to++ = *b++, m--;
        else *to++ = *a++, n--;
    memcpy(to, n ? a : b, (size_t)(n + m) * sizeof *to);
}

/* Into x or y, which it returns. */
static entry *merge_sort(entry *x, entry *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN) insert_sort(x + i, n - i < RUN ? n - i : RUN);
    for (int64_t run = RUN; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            const int64_t a = n - i < run ? n - i : run, b = n - i - a < run ? n - i - a : run;
            merge(x + i, a, x + i + a, b, y + i);
        }
        entry *sorted = y;
        y = x, x = sorted;
    }
    return x;
}

/* ---- the first k of some elements, k being a small part of them ---- */

/* Of what is in x, k stay, sorted. */
static int64_t keep_first(entry *x, entry *y, int64_t n, int64_t k)
{
    if (n < k) k = n;
    const entry *sorted = merge_sort(x, y, n);
    if (sorted != x) memcpy(x, sorted, (size_t)k * sizeof *x);
    return k;
}

/* Elements from .. to - 1: candidates come after k that are sorted, until there are as many; an equal key is no candidate. */
static int64_t select_part(const sorting *s, int64_t first, int64_t from, int64_t to, entry *x, entry *y)
{
    int64_t n = 0;
    for (int64_t i = from; i < to; i++) {
        const entry e = entry_at(s, first, i);
        if (n >= s->k && e.key >= x[s->k - 1].key) continue;
        x[n++] = e;
        if (n % s->k == 0) n = keep_first(x, y, n, s->k);
    }
    return keep_first(x, y, n, s->k);
}

/* ---- by digits, alone or with others: between barriers all do the same ---- */

typedef struct digits {
    entry *x, *y;
    int64_t n, (*end)[BUCKETS]; /* of each thread's part of each bucket */
    int bits;
} digits;

static int digit_of(uint64_t key, int shift) { return (int)(key >> shift & (BUCKETS - 1)); }

static void count_part(const digits *d, const entry *x, int shift, int t, int team)
{
    memset(d->end[t], 0, sizeof d->end[t]);
    for (int64_t i = part_of(d->n, t, team); i < part_of(d->n, t + 1, team); i++)
        d->end[t][digit_of(x[i].key, shift)]++;
}

static void place_parts(const digits *d, int team)
{
    int64_t first = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (int t = 0; t < team; t++) first += d->end[t][b], d->end[t][b] = first - d->end[t][b];
}

static void move_part(const digits *d, const entry *x, entry *y, int shift, int t, int team)
{
    for (int64_t i = part_of(d->n, t, team); i < part_of(d->n, t + 1, team); i++)
        y[d->end[t][digit_of(x[i].key, shift)]++] = x[i];
}

static entry *digit_sort(const digits *d)
{
    entry *x = d->x, *y = d->y;
    for (int shift = 0; shift < d->bits; shift += DIGIT_BITS) {
        count_part(d, x, shift, 0, 1), place_parts(d, 1), move_part(d, x, y, shift, 0, 1);
        entry *moved = y;
        y = x, x = moved;
    }
    return x;
}

/* ---- lines ---- */

static int64_t first_of(const sorting *s, int64_t line)
{
    return layout_offset(&s->at.outer, line / s->inner) + layout_offset(&s->at.inner, line % s->inner);
}

static void write_sorted(const sorting *s, int64_t line, const entry *e, int64_t from, int64_t to)
{
    const int64_t first = first_of(s, line), each = s->indices ? 8 : (int64_t)s->each;
    char *out = s->out + (line / s->inner * s->k * s->inner + line % s->inner) * each;
    for (int64_t i = from; i < to; i++)
        if (s->indices) memcpy(out + i * s->inner * each, &e[i].index, sizeof e[i].index);
        else
            memcpy(out + i * s->inner * each, s->x + (first + e[i].index * s->at.along.stride[0]) * each,
                   s->each);
}

static void sort_line(const sorting *s, int64_t line, const digits *d)
{
    const int64_t first = first_of(s, line);
    if (s->k * PART <= s->n) {
        select_part(s, first, 0, s->n, d->x, d->y);
        write_sorted(s, line, d->x, 0, s->k);
        return;
    }
    for (int64_t i = 0; i < s->n; i++) d->x[i] = entry_at(s, first, i);
    write_sorted(s, line, s->n < FEW ? merge_sort(d->x, d->y, s->n) : digit_sort(d), 0, s->k);
}

/* A thread's candidates are where its part begins; one thread takes the best of all, earlier elements before later ones. */
static void select_together(const sorting *s, int64_t line, const digits *d, int t, int team)
{
    const int64_t first = first_of(s, line), from = part_of(s->n, t, team);
    select_part(s, first, from, part_of(s->n, t + 1, team), d->x + from, d->y + from);
#pragma omp barrier
    if (t == 0) {
        for (int i = 1; i < team; i++)
            memmove(d->x + i * s->k, d->x + part_of(s->n, i, team), (size_t)s->k * sizeof *d->x);
        keep_first(d->x, d->y, team * s->k, s->k);
        write_sorted(s, line, d->x, 0, s->k);
    }
#pragma omp barrier
}

static void sort_line_together(const sorting *s, int64_t line, const digits *d, int t, int team)
{
    if (s->k * PART <= s->n / team) {
        select_together(s, line, d, t, team);
        return;
    }
    const int64_t first = first_of(s, line);
    entry *x = d->x, *y = d->y;
    for (int64_t i = part_of(s->n, t, team); i < part_of(s->n, t + 1, team); i++)
        x[i] = entry_at(s, first, i);
    for (int shift = 0; shift < s->bits; shift += DIGIT_BITS) {
        count_part(d, x, shift, t, team); /* of what this thread has made, or, */
#pragma omp barrier
#pragma omp single
        place_parts(d, team);
        move_part(d, x, y, shift, t, team);
#pragma omp barrier
        entry *moved = y; /* after the barrier, of what all have */
        y = x, x = moved;
    }
    write_sorted(s, line, x, part_of(s->k, t, team), part_of(s->k, t + 1, team));
#pragma omp barrier
}

/* ---- the step ---- */

static sorting sorting_of(const step *given, const frame *f)
{
    const layout *x = &given->in[0].at;
    sorting s = { .x = address(f, &given->in[0]), .out = address(f, &given->out[0]), .type = x->type };
    s.at = axis_split_at(x, given->attr.index.axis, 1), s.n = s.at.along.size[0],
    s.inner = layout_count(&s.at.inner);
    s.k = given->out[0].at.size[given->attr.index.axis], s.each = dtypes[x->type].bytes,
    s.bits = (int)(8 * s.each);
    s.down = sorts_down(given), s.indices = sorts_indices(given);
    return s;
}

/* A thread's own room, or that of all together. */
static digits room_of(const sorting *s, void *p, int64_t parts, int64_t part, int teams)
{
    digits d = { .n = s->n, .bits = s->bits };
    d.end = (void *)((char *)p + (size_t)part * (size_t)teams * sizeof *d.end);
    entry *entries = (entry *)((char *)p + (size_t)(parts * teams) * sizeof *d.end);
    d.x = entries + 2 * part * s->n, d.y = d.x + s->n;
    return d;
}

typedef struct sort_work {
    const sorting *s;
    void *room;
    int64_t count;
    int threads; /* that there is room for */
    bool together;
} sort_work;

static void sort_some(const void *work, int t, int threads)
{
    const sort_work *l = work;
    const digits d =
        l->together ? room_of(l->s, l->room, 1, 0, l->threads) : room_of(l->s, l->room, l->threads, t, 1);
    if (l->together)
        for (int64_t i = 0; i < l->count; i++) sort_line_together(l->s, i, &d, t, threads);
    else
        for (int64_t i = part_of(l->count, t, threads); i < part_of(l->count, t + 1, threads); i++)
            sort_line(l->s, i, &d);
}

duet_status run_sort(const step *given, const frame *f)
{
    const sorting s = sorting_of(given, f);
    const int64_t lines = layout_count(&s.at.outer) * s.inner;
    const int threads = threads_for((double)(lines * s.n) * SECONDS_EACH);
    const bool together = threads > 1 && lines < threads && s.n >= FEW;
    const int64_t rooms = together ? 1 : threads;
    void *p;
    if (!lines || !s.n || !s.k) return DUET_OK;
    TRY(scratch_take((size_t)(2 * rooms * s.n) * sizeof(entry) + (size_t)threads * sizeof(int64_t[BUCKETS]),
                     f, &p));
    by_threads(threads, sort_some, &(sort_work){ &s, p, lines, threads, together });
    scratch_give(p);
    return DUET_OK;
}
