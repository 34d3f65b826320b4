/* shuffle.c - the indices 0 .. n-1 in the order of their random keys, equal keys in that of the indices: a radix sort from the upper
 * bits down, the first digit by all threads together, each of its buckets by one. */
#define T_f64
#include "philox.h"
#include "random_cpu.h"
#include "sort_entry.h"
#include <string.h>

#define FIRST_BITS   10
#define BUCKETS      (1 << FIRST_BITS)
#define DIGIT_BITS   8
#define FEW          24   /* elements: sorted by insertion */
#define SECONDS_EACH 4e-8 /* an element */

typedef struct sorting {
    const random_params *l;
    int64_t n, (*end)[BUCKETS]; /* of each thread's part of each bucket */
    entry *from, *to;
    void *out;
    duet_dtype type;
    int64_t stride;
} sorting;

static void put(const sorting *s, int64_t at, int64_t value)
{
    if (s->type == DUET_F32) ((float *)s->out)[at * s->stride] = (float)value;
    else if (s->type == DUET_F64) ((double *)s->out)[at * s->stride] = (double)value;
    else ((int64_t *)s->out)[at * s->stride] = value;
}

/* Bits of the next digit: buckets of about 16 elements, if that is not too many buckets, nor too many bits. */
static int digit_of(int64_t n, int bits)
{
    int digit = 59 - __builtin_clzll((uint64_t)n);
    if (digit < 1) digit = 1;
    if (digit > DIGIT_BITS) digit = DIGIT_BITS;
    return digit < bits ? digit : bits;
}

/* Elements of x, which agree in all but their lower `bits` bits, are the result's from `at` on. y is for use. */
static void sort(const sorting *s, entry *x, entry *y, int64_t n, int bits, int64_t at)
{
    if (n <= FEW || bits == 0) {
        if (bits) insert_sort(x, n);
        for (int64_t i = 0; i < n; i++) put(s, at + i, x[i].index);
        return;
    }
    int64_t end[1 << DIGIT_BITS] = { 0 }, first = 0;
    const int digit = digit_of(n, bits), below = bits - digit, many = 1 << digit;
    const uint64_t mask = (uint64_t)many - 1;
    for (int64_t i = 0; i < n; i++) end[x[i].key >> below & mask]++;
    for (int d = 0; d < many; d++) first += end[d], end[d] = first - end[d];
    for (int64_t i = 0; i < n; i++) y[end[x[i].key >> below & mask]++] = x[i];
    for (int64_t d = 0, from = 0; d < many; from = end[d], d++)
        sort(s, y + from, x + from, end[d] - from, below, at + from);
}

static uint64_t key_of(const sorting *s, int64_t i) { return philox_sort_key(s->l, (uint64_t)i); }

static void count_keys(const sorting *s, int t, int threads)
{
    memset(s->end[t], 0, sizeof s->end[t]);
    for (int64_t i = part_of(s->n, t, threads); i < part_of(s->n, t + 1, threads); i++)
        s->end[t][key_of(s, i) >> (64 - FIRST_BITS)]++;
}

/* From how many a thread has of each bucket to where they begin. */
static void place_parts(const sorting *s, int threads)
{
    int64_t first = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (int t = 0; t < threads; t++) first += s->end[t][b], s->end[t][b] = first - s->end[t][b];
}

static void place_keys(const sorting *s, int t, int threads)
{
    for (int64_t i = part_of(s->n, t, threads); i < part_of(s->n, t + 1, threads); i++) {
        const uint64_t key = key_of(s, i);
        s->from[s->end[t][key >> (64 - FIRST_BITS)]++] = (entry){ key, i };
    }
}

/* Once its parts are placed, the last of them ends where its bucket does. */
static void sort_bucket(const sorting *s, int b, int threads)
{
    const int64_t first = b ? s->end[threads - 1][b - 1] : 0, end = s->end[threads - 1][b];
    sort(s, s->from + first, s->to + first, end - first, 64 - FIRST_BITS, first);
}

static void sort_all(const sorting *s, int most)
{
#pragma omp parallel num_threads(most)
    {
        const int t = omp_get_thread_num(), threads = omp_get_num_threads();
        count_keys(s, t, threads);
#pragma omp barrier
#pragma omp single
        place_parts(s, threads);
        place_keys(s, t, threads);
#pragma omp barrier
#pragma omp for schedule(dynamic, 4)
        for (int b = 0; b < BUCKETS; b++) sort_bucket(s, b, threads);
    }
}

/* Few elements: by one thread, without a first digit. */
static void sort_few(const sorting *s)
{
    for (int64_t i = 0; i < s->n; i++) s->from[i] = (entry){ key_of(s, i), i };
    sort(s, s->from, s->to, s->n, 64, 0);
}

duet_status run_permutation(const step *given, const frame *f, const random_params *l)
{
    const layout *at = &given->out[0].at;
    sorting s = {
        .l = l, .n = at->size[0], .out = address(f, &given->out[0]), .type = at->type, .stride = at->stride[0]
    };
    const int threads = threads_for((double)s.n * SECONDS_EACH);
    const size_t bytes = (size_t)s.n * sizeof(entry);
    void *p;
    TRY(scratch_take(2 * bytes + (size_t)threads * sizeof *s.end, f, &p));
    s.from = p, s.to = s.from + s.n, s.end = (void *)(s.to + s.n);
    if (threads == 1 && s.n < 4 * BUCKETS) sort_few(&s);
    else sort_all(&s, threads);
    scratch_give(p);
    return DUET_OK;
}
