/* sparse_parts.h - divides the rows of a sparse matrix into parts, on which several threads work. */
#ifndef SPARSE_PARTS_H
#define SPARSE_PARTS_H

#include "csr.h"
#include "min_max.h"

#define PARTS_MAX 256

typedef struct parts {
    int threads, count;
    int64_t first[PARTS_MAX + 1]; /* the first row of each part, and the number of rows */
} parts;

/* Parts with equal numbers of rows and elements, for work that takes one thread so many seconds. There are
 * at most `most` parts. */
static inline void parts_divide(parts *p, const csr *c, double seconds, int64_t most)
{
    p->threads = host_threads.count(seconds);
    p->count = (int)smaller(smaller(p->threads, PARTS_MAX), most);
    for (int t = 0; t <= p->count; t++) p->first[t] = csr_part(c, t, p->count);
}

typedef void part_function(void *of, int part);

typedef struct parts_work {
    const parts *p;
    part_function *f;
    void *of;
} parts_work;

static inline void parts_share(const void *work, int t, int threads)
{
    const parts_work *w = work;
    for (int i = t; i < w->p->count; i += threads) w->f(w->of, i);
}

/* Calls f(of, part) for each part. */
static inline void each_part(const parts *p, part_function *f, void *of)
{
    const parts_work w = { p, f, of };
    host_threads.share(p->count > 1 ? p->threads : 1, parts_share, &w);
}

#endif
