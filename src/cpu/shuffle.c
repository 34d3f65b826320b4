/* shuffle.c - random permutations: the indices 0 .. n-1, sorted by random keys and then by index.
 *
 * The sort is a radix sort from the high digit down. All threads distribute the first digit, then
 * each bucket is sorted by one thread. */
#define T_f64
#include "min_max.h"
#include "philox.h"
#include "random_cpu.h"
#include "sort_entry.h"
#include <string.h>

#define FIRST_BITS    10
#define BUCKETS       (1 << FIRST_BITS)
#define DIGIT_BITS    8
#define INSERTION_MAX 24   /* so few elements are sorted by insertion */
#define SECONDS_EACH  4e-8 /* one element */

typedef struct shuffle_task {
    const random_params *params;
    int64_t n, (*end)[BUCKETS]; /* for each thread, the end of its part of each bucket */
    entry *from, *to;
    void *out;
    duet_dtype type;
    int64_t stride;
} shuffle_task;

static void write_index(const shuffle_task *s, int64_t at, int64_t value)
{
    if (s->type == DUET_F32) ((float *)s->out)[at * s->stride] = (float)value;
    else if (s->type == DUET_F64) ((double *)s->out)[at * s->stride] = (double)value;
    else ((int64_t *)s->out)[at * s->stride] = value;
}

/* The number of bits of the next digit, for buckets of about 16 elements. */
static int digit_bits(int64_t n, int bits)
{
    int digit = 59 - __builtin_clzll((uint64_t)n);
    if (digit < 1) digit = 1;
    if (digit > DIGIT_BITS) digit = DIGIT_BITS;
    return (int)smaller(digit, bits);
}

/* Sorts x, whose keys differ only in their low `bits` bits, to positions from `at` on. y is a
 * buffer. */
static void radix_sort(const shuffle_task *s, entry *x, entry *y, int64_t n, int bits, int64_t at)
{
    if (n <= INSERTION_MAX || bits == 0) {
        if (bits) insert_sort(x, n);
        for (int64_t i = 0; i < n; i++) write_index(s, at + i, x[i].index);
        return;
    }
    int64_t end[1 << DIGIT_BITS] = { 0 }, first = 0;
    const int digit = digit_bits(n, bits), below = bits - digit, buckets = 1 << digit;
    const uint64_t mask = (uint64_t)buckets - 1;
    for (int64_t i = 0; i < n; i++) end[x[i].key >> below & mask]++;
    for (int d = 0; d < buckets; d++) {
        first += end[d];
        end[d] = first - end[d];
    }
    for (int64_t i = 0; i < n; i++) y[end[x[i].key >> below & mask]++] = x[i];
    for (int64_t d = 0, from = 0; d < buckets; from = end[d], d++)
        radix_sort(s, y + from, x + from, end[d] - from, below, at + from);
}

static uint64_t key_of(const shuffle_task *s, int64_t i) { return philox_sort_key(s->params, (uint64_t)i); }

static void count_keys(const shuffle_task *s, int t, int threads)
{
    memset(s->end[t], 0, sizeof s->end[t]);
    for (int64_t i = part_of(s->n, t, threads); i < part_of(s->n, t + 1, threads); i++)
        s->end[t][key_of(s, i) >> (64 - FIRST_BITS)]++;
}

/* Converts the counts of each thread and bucket to start positions. */
static void start_positions(const shuffle_task *s, int threads)
{
    int64_t first = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (int t = 0; t < threads; t++) {
            first += s->end[t][b];
            s->end[t][b] = first - s->end[t][b];
        }
}

static void place_keys(const shuffle_task *s, int t, int threads)
{
    for (int64_t i = part_of(s->n, t, threads); i < part_of(s->n, t + 1, threads); i++) {
        const uint64_t key = key_of(s, i);
        s->from[s->end[t][key >> (64 - FIRST_BITS)]++] = (entry){ key, i };
    }
}

/* After the distribution, the part of the last thread ends at the end of the bucket. */
static void sort_bucket(const shuffle_task *s, int b, int threads)
{
    const int64_t first = b ? s->end[threads - 1][b - 1] : 0, end = s->end[threads - 1][b];
    radix_sort(s, s->from + first, s->to + first, end - first, 64 - FIRST_BITS, first);
}

static void sort_by_team(const shuffle_task *s, int available)
{
#pragma omp parallel num_threads(available)
    {
        const int t = omp_get_thread_num(), threads = omp_get_num_threads();
        count_keys(s, t, threads);
#pragma omp barrier
#pragma omp single
        start_positions(s, threads);
        place_keys(s, t, threads);
#pragma omp barrier
#pragma omp for schedule(dynamic, 4)
        for (int b = 0; b < BUCKETS; b++) sort_bucket(s, b, threads);
    }
}

/* Sorts few elements in one thread, without the first digit. */
static void sort_alone(const shuffle_task *s)
{
    for (int64_t i = 0; i < s->n; i++) s->from[i] = (entry){ key_of(s, i), i };
    radix_sort(s, s->from, s->to, s->n, 64, 0);
}

duet_status run_permutation(const step *given, const frame *f, const random_params *params)
{
    const layout *at = &given->out[0].at;
    shuffle_task s = { .params = params,
                       .n = at->size[0],
                       .out = address(f, &given->out[0]),
                       .type = at->type,
                       .stride = at->stride[0] };
    const int threads = threads_for((double)s.n * SECONDS_EACH);
    const size_t bytes = (size_t)s.n * sizeof(entry);
    void *p;
    TRY(scratch_take(2 * bytes + (size_t)threads * sizeof *s.end, f, &p));
    s.from = p;
    s.to = s.from + s.n;
    s.end = (void *)(s.to + s.n);
    if (threads == 1 && s.n < 4 * BUCKETS) sort_alone(&s);
    else sort_by_team(&s, threads);
    scratch_give(p);
    return DUET_OK;
}
