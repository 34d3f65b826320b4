/* histogram.c - counts by bins. A thread counts for itself. */
#include "orders.h"
#include <string.h>

#define SECONDS_EACH 5e-9 /* an element */

static void count(const step *s, const void *x, const bins *b, int64_t from, int64_t to, int64_t *counts)
{
    const layout *at = &s->in[0].at;
    memset(counts, 0, (size_t)b->count * sizeof *counts);
    for (int64_t i = from; i < to; i++) {
        const int64_t k = bin_of(b, order_number(x, at->type, layout_place(at, i)));
        if (k >= 0) counts[k]++;
    }
}

duet_status run_histogram(const step *s, const frame *f)
{
    const bins b = bins_of(s);
    const int64_t n = layout_count(&s->in[0].at);
    const int threads = threads_for((double)n * SECONDS_EACH);
    int64_t *out = address(f, &s->out[0]);
    void *p;
    TRY(scratch_take((size_t)threads * (size_t)b.count * sizeof *out, f, &p));
    int64_t *counts = p;
    memset(out, 0, (size_t)b.count * sizeof *out);
#pragma omp parallel num_threads(threads)
    {
        const int t = omp_get_thread_num(), team = omp_get_num_threads();
        count(s, address(f, &s->in[0]), &b, part_of(n, t, team), part_of(n, t + 1, team), counts + t * b.count);
#pragma omp critical
        for (int64_t k = 0; k < b.count; k++) out[k] += counts[t * b.count + k];
    }
    scratch_give(p);
    return DUET_OK;
}
