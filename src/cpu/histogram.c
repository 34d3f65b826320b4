/* histogram.c - counts elements by bins. Each thread has its own counts; they are added at the end. */
#include "gather.h"
#include <string.h>

#define SECONDS_EACH 5e-9 /* one element */

typedef struct histogram_work {
    const bins *b;
    const void *x;
    const layout *at;
    int64_t n, *counts, *out;
} histogram_work;

static void histogram_part(const void *work, int t, int threads)
{
    const histogram_work *c = work;
    const bins *b = c->b;
    int64_t *counts = c->counts + t * b->count;
    memset(counts, 0, (size_t)b->count * sizeof *counts);
    for (int64_t i = part_of(c->n, t, threads); i < part_of(c->n, t + 1, threads); i++) {
        const int64_t k = bin_of(b, order_number(c->x, c->at->type, layout_offset(c->at, i)));
        if (k >= 0) counts[k]++;
    }
#pragma omp critical(duet_histogram)
    for (int64_t k = 0; k < b->count; k++) c->out[k] += counts[k];
}

static duet_status run_histogram(const step *s, const frame *f)
{
    const bins b = bins_of(s);
    const int64_t n = layout_count(&s->in[0].at);
    const int threads = threads_for((double)n * SECONDS_EACH);
    int64_t *out = address(f, &s->out[0]);
    void *p;
    TRY(scratch_take((size_t)threads * (size_t)b.count * sizeof *out, f, &p));
    memset(out, 0, (size_t)b.count * sizeof *out);
    by_threads(threads, histogram_part,
               &(histogram_work){ &b, address(f, &s->in[0]), &s->in[0].at, n, p, out });
    scratch_give(p);
    return DUET_OK;
}

const cpu_kernel cpu_kernel_histogram = { index_unsupported, run_histogram, cost_of_pass };
