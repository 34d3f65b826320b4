/* int_gemm.c - products of integers of 64 bits, modulo 2^64: no library has them. Rows of the right operand, times an element of the left one,
 * are added to rows of the result, in blocks that stay in the caches. */
#include "cpu_kernels.h"
#include "threads.h"
#include <string.h>

enum { ROWS = 16, INNER = 128, COLUMNS = 512 };
#define SECONDS_PER_TERM 3e-10

/* Matrices as they are taken: rows without gaps. */
typedef struct product {
    const uint64_t *a, *b;
    uint64_t *out;
    int64_t m, n, k;
} product;

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static void add_row(uint64_t *restrict out, const uint64_t *restrict b, uint64_t a, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) out[j] += a * b[j];
}

static void multiply_block(const product *p, int64_t i0, int64_t k0, int64_t j0)
{
    const int64_t rows = lesser(ROWS, p->m - i0), inner = lesser(INNER, p->k - k0),
                  columns = lesser(COLUMNS, p->n - j0);
    for (int64_t i = i0; i < i0 + rows; i++)
        for (int64_t k = k0; k < k0 + inner; k++)
            add_row(p->out + i * p->n + j0, p->b + k * p->n + j0, p->a[i * p->k + k], columns);
}

static void multiply_rows(const product *p, int64_t i0)
{
    const int64_t rows = lesser(ROWS, p->m - i0);
    memset(p->out + i0 * p->n, 0, (size_t)(rows * p->n) * sizeof *p->out);
    for (int64_t j0 = 0; j0 < p->n; j0 += COLUMNS)
        for (int64_t k0 = 0; k0 < p->k; k0 += INNER) multiply_block(p, i0, k0, j0);
}

/* A dense copy of an operand, in which matrices that repeat stand once; how far they are then apart is in batch. */
static duet_status factor_open(const operand *o, const frame *f, layout *batch, const uint64_t **p,
                               void **copy)
{
    operand once = *o;
    layout dense;
    const int leading = o->at.rank - 2;
    for (int i = 0; i < leading; i++)
        if (!o->at.stride[i]) once.at.size[i] = 1;
    layout_dense(&dense, o->at.type, once.at.rank, once.at.size);
    *batch = (layout){ .rank = leading };
    for (int i = 0; i < leading; i++)
        batch->size[i] = o->at.size[i], batch->stride[i] = o->at.stride[i] ? dense.stride[i] : 0;
    *p = address(f, o);
    if (layout_is_dense(&once.at)) return DUET_OK;
    TRY(scratch_copy(&once, f, copy));
    return *p = *copy, DUET_OK;
}

static int64_t offset_of(const layout *batch, int64_t i)
{
    int64_t at = 0;
    for (int a = batch->rank; a-- > 0;) at += i % batch->size[a] * batch->stride[a], i /= batch->size[a];
    return at;
}

typedef struct products {
    const product *first;
    const layout *a, *b;
    int64_t count;
} products;

/* Some rows of one matrix after the other. */
static void multiply_some(const void *work, int t, int threads)
{
    const products *all = work;
    const product *p = all->first;
    const int64_t bands = (p->m + ROWS - 1) / ROWS, n = all->count * bands;
    for (int64_t i = part_of(n, t, threads); i < part_of(n, t + 1, threads); i++) {
        product one = *p;
        const int64_t at = i / bands;
        one.a += offset_of(all->a, at), one.b += offset_of(all->b, at), one.out += at * p->m * p->n;
        multiply_rows(&one, i % bands * ROWS);
    }
}

static void multiply_all(const product *p, const layout *a, const layout *b, int64_t count)
{
    const double terms = (double)p->m * (double)p->n * (double)p->k * (double)count;
    by_threads(threads_for(terms * SECONDS_PER_TERM), multiply_some, &(products){ p, a, b, count });
}

duet_status run_whole_product(const step *s, const frame *f)
{
    const operand *out = &s->out[0];
    const int last = out->at.rank - 1;
    product p = { .out = address(f, out),
                  .m = out->at.size[last - 1],
                  .n = out->at.size[last],
                  .k = s->in[0].at.size[last] };
    layout a, b = { 0 };
    void *copy[2] = { NULL, NULL };
    if (!layout_count(&out->at)) return DUET_OK;
    duet_status r = factor_open(&s->in[0], f, &a, &p.a, &copy[0]);
    if (r == DUET_OK) r = factor_open(&s->in[1], f, &b, &p.b, &copy[1]);
    if (r == DUET_OK) multiply_all(&p, &a, &b, layout_count(&out->at) / (p.m * p.n));
    scratch_give(copy[0]), scratch_give(copy[1]);
    return r;
}
