/* sort.c - sort, argsort, top_k and top_k_indices.
 *
 * Elements are converted to integer keys with the same order, and sorted stably together with their
 * indices. Long lines are sorted by radix sort from the low digit up, short ones by merging. If k
 * is small, only candidates are sorted. The operand may have any layout, the result is dense.
 * Threads take lines, or share each line if there are few. */
#include "dtype.h"
#include "gather.h"
#include "min_max.h"
#include "sort_entry.h"
#include <string.h>

#define DIGIT_BITS    11
#define BUCKETS       (1 << DIGIT_BITS)
#define MERGE_MAX     2048 /* longer lines are sorted by radix sort */
#define RUN           12   /* runs that merging starts with are sorted by insertion */
#define SELECT_FACTOR 16   /* k is small if the line has this many times as many elements */
#define SECONDS_EACH  3e-8 /* one element */

typedef struct sort_task {
    const char *x;
    char *out;
    axis_split axes;
    int64_t n, k, inner; /* k: number of results */
    duet_dtype type;
    size_t size;
    int bits; /* of a key */
    bool descending, indices;
} sort_task;

static entry entry_at(const sort_task *s, int64_t first, int64_t i)
{
    const uint64_t key = order_key(s->x, s->type, first + i * s->axes.along.stride[0]);
    return (entry){ s->descending ? ~key & (~(uint64_t)0 >> (64 - s->bits)) : key, i };
}

/* ---- one thread ---- */

static void merge(const entry *a, int64_t n, const entry *b, int64_t m, entry *to)
{
    while (n && m)
        if (b->key < a->key) {
            *to++ = *b++;
            m--;
        } else {
            *to++ = *a++;
            n--;
        }
    memcpy(to, n ? a : b, (size_t)(n + m) * sizeof *to);
}

/* Sorts into x or y, and returns which. */
static entry *merge_sort(entry *x, entry *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN) insert_sort(x + i, smaller(n - i, RUN));
    for (int64_t run = RUN; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            const int64_t a = smaller(n - i, run), b = smaller(n - i - a, run);
            merge(x + i, a, x + i + a, b, y + i);
        }
        entry *sorted = y;
        y = x;
        x = sorted;
    }
    return x;
}

/* ---- the first k elements, for small k ---- */

/* Sorts x and keeps the first k elements. */
static int64_t keep_first(entry *x, entry *y, int64_t n, int64_t k)
{
    if (n < k) k = n;
    const entry *sorted = merge_sort(x, y, n);
    if (sorted != x) memcpy(x, sorted, (size_t)k * sizeof *x);
    return k;
}

/* Selects from elements from .. to - 1. x holds the best k, sorted, and up to k candidates after
 * them. An element with the same key as the k-th one is no candidate. */
static int64_t select_part(const sort_task *s, int64_t first, int64_t from, int64_t to, entry *x, entry *y)
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

/* ---- radix sort, by one thread or by a team with barriers ---- */

typedef struct radix_buffers {
    entry *x, *y;
    int64_t n, (*end)[BUCKETS]; /* for each thread, the end of its part of each bucket */
    int bits;
} radix_buffers;

static int digit_of(uint64_t key, int shift) { return (int)(key >> shift & (BUCKETS - 1)); }

static void count_part(const radix_buffers *d, const entry *x, int shift, int t, int team)
{
    memset(d->end[t], 0, sizeof d->end[t]);
    for (int64_t i = part_of(d->n, t, team); i < part_of(d->n, t + 1, team); i++)
        d->end[t][digit_of(x[i].key, shift)]++;
}

static void start_positions(const radix_buffers *d, int team)
{
    int64_t first = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (int t = 0; t < team; t++) {
            first += d->end[t][b];
            d->end[t][b] = first - d->end[t][b];
        }
}

static void move_part(const radix_buffers *d, const entry *x, entry *y, int shift, int t, int team)
{
    for (int64_t i = part_of(d->n, t, team); i < part_of(d->n, t + 1, team); i++)
        y[d->end[t][digit_of(x[i].key, shift)]++] = x[i];
}

static entry *radix_sort(const radix_buffers *d)
{
    entry *x = d->x, *y = d->y;
    for (int shift = 0; shift < d->bits; shift += DIGIT_BITS) {
        count_part(d, x, shift, 0, 1);
        start_positions(d, 1);
        move_part(d, x, y, shift, 0, 1);
        entry *moved = y;
        y = x;
        x = moved;
    }
    return x;
}

/* ---- lines ---- */

static int64_t line_offset(const sort_task *s, int64_t line)
{
    return layout_offset(&s->axes.outer, line / s->inner) + layout_offset(&s->axes.inner, line % s->inner);
}

static void write_sorted(const sort_task *s, int64_t line, const entry *e, int64_t from, int64_t to)
{
    const int64_t first = line_offset(s, line), size = s->indices ? 8 : (int64_t)s->size;
    char *out = s->out + (line / s->inner * s->k * s->inner + line % s->inner) * size;
    for (int64_t i = from; i < to; i++)
        if (s->indices) memcpy(out + i * s->inner * size, &e[i].index, sizeof e[i].index);
        else
            memcpy(out + i * s->inner * size, s->x + (first + e[i].index * s->axes.along.stride[0]) * size,
                   s->size);
}

static void sort_line(const sort_task *s, int64_t line, const radix_buffers *d)
{
    const int64_t first = line_offset(s, line);
    if (s->k * SELECT_FACTOR <= s->n) {
        select_part(s, first, 0, s->n, d->x, d->y);
        write_sorted(s, line, d->x, 0, s->k);
        return;
    }
    for (int64_t i = 0; i < s->n; i++) d->x[i] = entry_at(s, first, i);
    write_sorted(s, line, s->n < MERGE_MAX ? merge_sort(d->x, d->y, s->n) : radix_sort(d), 0, s->k);
}

/* Each thread selects at the start of its part of the buffers. One thread merges them, in the order
 * of the parts. */
static void select_shared(const sort_task *s, int64_t line, const radix_buffers *d, int t, int team)
{
    const int64_t first = line_offset(s, line), from = part_of(s->n, t, team);
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

static void sort_line_shared(const sort_task *s, int64_t line, const radix_buffers *d, int t, int team)
{
    if (s->k * SELECT_FACTOR <= s->n / team) {
        select_shared(s, line, d, t, team);
        return;
    }
    const int64_t first = line_offset(s, line);
    entry *x = d->x, *y = d->y;
    for (int64_t i = part_of(s->n, t, team); i < part_of(s->n, t + 1, team); i++)
        x[i] = entry_at(s, first, i);
    /* count_part() reads what this thread wrote before the loop, or what all wrote before a barrier. */
    for (int shift = 0; shift < s->bits; shift += DIGIT_BITS) {
        count_part(d, x, shift, t, team);
#pragma omp barrier
#pragma omp single
        start_positions(d, team);
        move_part(d, x, y, shift, t, team);
#pragma omp barrier
        entry *moved = y;
        y = x;
        x = moved;
    }
    write_sorted(s, line, x, part_of(s->k, t, team), part_of(s->k, t + 1, team));
#pragma omp barrier
}

/* ---- the step ---- */

static sort_task sort_task_of(const step *given, const frame *f)
{
    const layout *x = &given->in[0].at;
    sort_task s = { .x = address(f, &given->in[0]), .out = address(f, &given->out[0]), .type = x->type };
    s.axes = axis_split_at(x, given->attr.index.axis, 1);
    s.n = s.axes.along.size[0];
    s.inner = layout_count(&s.axes.inner);
    s.k = given->out[0].at.size[given->attr.index.axis];
    s.size = dtypes[x->type].bytes;
    s.bits = (int)(8 * s.size);
    s.descending = sorts_down(given);
    s.indices = sorts_indices(given);
    return s;
}

/* The buffers of one thread, or of the whole team. */
static radix_buffers buffers_of(const sort_task *s, void *p, int64_t parts, int64_t part, int teams)
{
    radix_buffers d = { .n = s->n, .bits = s->bits };
    d.end = (void *)((char *)p + (size_t)part * (size_t)teams * sizeof *d.end);
    entry *entries = (entry *)((char *)p + (size_t)(parts * teams) * sizeof *d.end);
    d.x = entries + 2 * part * s->n;
    d.y = d.x + s->n;
    return d;
}

typedef struct sort_work {
    const sort_task *s;
    void *buffer;
    int64_t count;
    int threads; /* for which there are buffers */
    bool all_threads;
} sort_work;

static void sort_part(const void *work, int t, int threads)
{
    const sort_work *l = work;
    const radix_buffers d = l->all_threads ? buffers_of(l->s, l->buffer, 1, 0, l->threads)
                                           : buffers_of(l->s, l->buffer, l->threads, t, 1);
    if (l->all_threads)
        for (int64_t i = 0; i < l->count; i++) sort_line_shared(l->s, i, &d, t, threads);
    else
        for (int64_t i = part_of(l->count, t, threads); i < part_of(l->count, t + 1, threads); i++)
            sort_line(l->s, i, &d);
}

static duet_status run_sort(const step *given, const frame *f)
{
    const sort_task s = sort_task_of(given, f);
    const int64_t lines = layout_count(&s.axes.outer) * s.inner;
    const int threads = threads_for((double)(lines * s.n) * SECONDS_EACH);
    const bool all_threads = threads > 1 && lines < threads && s.n >= MERGE_MAX;
    const int64_t buffer_sets = all_threads ? 1 : threads;
    void *p;
    if (!lines || !s.n || !s.k) return DUET_OK;
    TRY(scratch_take((size_t)(2 * buffer_sets * s.n) * sizeof(entry) +
                         (size_t)threads * sizeof(int64_t[BUCKETS]),
                     f, &p));
    by_threads(threads, sort_part, &(sort_work){ &s, p, lines, threads, all_threads });
    scratch_give(p);
    return DUET_OK;
}

const cpu_kernel cpu_kernel_sort = { index_unsupported, run_sort, cost_of_pass };
