/* int_gemm.c - products of 64-bit integer matrices modulo 2^64, batched too. No library offers
 * them.
 *
 * Operands in other layouts are copied. A row of the result is a sum of rows of b, each times an
 * element of a. The work is done in blocks that fit into the caches. Threads take blocks of rows. */
#include "cpu_kernels.h"
#include "min_max.h"
#include "threads.h"
#include <string.h>

enum { ROWS = 16, INNER = 128, COLUMNS = 512 };
#define SECONDS_PER_TERM 3e-10

/* A product of dense row-major matrices. */
typedef struct int_product {
    const uint64_t *a, *b;
    uint64_t *out;
    int64_t m, n, k;
} int_product;

static void add_row(uint64_t *restrict out, const uint64_t *restrict b, uint64_t a, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) out[j] += a * b[j];
}

static void multiply_block(const int_product *p, int64_t i0, int64_t k0, int64_t j0)
{
    const int64_t rows = smaller(ROWS, p->m - i0), inner = smaller(INNER, p->k - k0),
                  columns = smaller(COLUMNS, p->n - j0);
    for (int64_t i = i0; i < i0 + rows; i++)
        for (int64_t k = k0; k < k0 + inner; k++)
            add_row(p->out + i * p->n + j0, p->b + k * p->n + j0, p->a[i * p->k + k], columns);
}

static void multiply_rows(const int_product *p, int64_t i0)
{
    const int64_t rows = smaller(ROWS, p->m - i0);
    memset(p->out + i0 * p->n, 0, (size_t)(rows * p->n) * sizeof *p->out);
    for (int64_t j0 = 0; j0 < p->n; j0 += COLUMNS)
        for (int64_t k0 = 0; k0 < p->k; k0 += INNER) multiply_block(p, i0, k0, j0);
}

/* A dense operand, copied if necessary. Matrices that are repeated along the batch axes are copied
 * once; `batch` has the strides of the batch axes. */
static duet_status dense_factor(const operand *o, const frame *f, layout *batch, const uint64_t **p,
                                void **copy)
{
    operand distinct = *o;
    layout dense;
    const int batch_axes = o->at.rank - 2;
    for (int i = 0; i < batch_axes; i++)
        if (!o->at.stride[i]) distinct.at.size[i] = 1;
    layout_dense(&dense, o->at.type, distinct.at.rank, distinct.at.size);
    *batch = (layout){ .rank = batch_axes };
    for (int i = 0; i < batch_axes; i++) {
        batch->size[i] = o->at.size[i];
        batch->stride[i] = o->at.stride[i] ? dense.stride[i] : 0;
    }
    *p = address(f, o);
    if (layout_is_dense(&distinct.at)) return DUET_OK;
    TRY(scratch_copy(&distinct, f, copy));
    *p = *copy;
    return DUET_OK;
}

static int64_t batch_offset(const layout *batch, int64_t i)
{
    int64_t at = 0;
    for (int a = batch->rank; a-- > 0;) {
        at += i % batch->size[a] * batch->stride[a];
        i /= batch->size[a];
    }
    return at;
}

typedef struct batched_products {
    const int_product *first;
    const layout *a, *b;
    int64_t count;
} batched_products;

/* Computes a part of the blocks of rows of all matrices. */
static void multiply_part(const void *work, int t, int threads)
{
    const batched_products *all = work;
    const int_product *p = all->first;
    const int64_t bands = (p->m + ROWS - 1) / ROWS, n = all->count * bands;
    for (int64_t i = part_of(n, t, threads); i < part_of(n, t + 1, threads); i++) {
        int_product item = *p;
        const int64_t at = i / bands;
        item.a += batch_offset(all->a, at);
        item.b += batch_offset(all->b, at);
        item.out += at * p->m * p->n;
        multiply_rows(&item, i % bands * ROWS);
    }
}

static void multiply_all(const int_product *p, const layout *a, const layout *b, int64_t count)
{
    const double terms = (double)p->m * (double)p->n * (double)p->k * (double)count;
    by_threads(threads_for(terms * SECONDS_PER_TERM), multiply_part, &(batched_products){ p, a, b, count });
}

duet_status run_int_gemm(const step *s, const frame *f)
{
    const operand *out = &s->out[0];
    const int last = out->at.rank - 1;
    int_product p = { .out = address(f, out),
                      .m = out->at.size[last - 1],
                      .n = out->at.size[last],
                      .k = s->in[0].at.size[last] };
    layout a, b = { 0 };
    void *copy[2] = { NULL, NULL };
    if (!layout_count(&out->at)) return DUET_OK;
    duet_status r = dense_factor(&s->in[0], f, &a, &p.a, &copy[0]);
    if (r == DUET_OK) r = dense_factor(&s->in[1], f, &b, &p.b, &copy[1]);
    if (r == DUET_OK) multiply_all(&p, &a, &b, layout_count(&out->at) / (p.m * p.n));
    scratch_give(copy[0]);
    scratch_give(copy[1]);
    return r;
}
