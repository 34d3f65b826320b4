/* softmax_tmpl.c - softmax and log_softmax along the last axis, for f32 and f64. Template.
 *
 * Sums have the canonical order of core/reduce_order.h. The input may have any layout, the output
 * is dense. Each thread computes a part of the rows. */
#include "cpu_kernels.h"
#include "reduce_tree.h"
#include "row_iterator.h"
#include "threads.h"

#define SHORT_ROW 32

/* Some adjacent rows of n elements in the output (`at`), and the same rows of the input (`from`). */
typedef struct row_group {
    const T *from;
    T *at;
    int64_t count, n;
    bool log;
} row_group;

/* The maximum is the same in any order. */
static T max_of(const T *x, int64_t n)
{
    const V least = spread(-INFINITY);
    V m[4] = { least, least, least, least }, most[MOST_PARTS] = { { 0 } };
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int r = 0; r < 4; r++) m[r] = vec_maximum(m[r], load_v(x + i + r * LANES), least);
    for (; i < n; i += LANES) {
        const int64_t block_length = SMALLER(LANES, n - i);
        m[0] = vec_maximum(m[0],
                           choose(iota() < spread((T)block_length), load_first(x + i, block_length), least),
                           least);
    }
    most[0] = vec_maximum(vec_maximum(m[0], m[1], least), vec_maximum(m[2], m[3], least), least);
    halve_register(REDUCE_KIND(max, -INFINITY), most);
    return most[0][0];
}

static void subtract_max(T *t, const T *x, int64_t n)
{
    const T m = max_of(x, n);
    for (int64_t i = 0; i < n; i++) t[i] = x[i] - m;
}

static void exp_of(T *e, const T *t, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) e[i] = FN(exp)(t[i]);
}

static void normalize_row(T *t, int64_t n, T s, bool log)
{
    const T by = log ? FN(log)(s) : s;
    if (log)
        for (int64_t i = 0; i < n; i++) t[i] = t[i] - by;
    else
        for (int64_t i = 0; i < n; i++) t[i] = t[i] / by;
}

/* The canonical sum of at most SHORT_ROW elements, for which registers would be mostly empty. */
static T short_sum(const T *x, int64_t n)
{
    T lane[SHORT_ROW];
    memcpy(lane, x, (size_t)n * sizeof(T));
    for (int64_t h = SHORT_ROW / 2; h > 0; h /= 2) {
        for (int64_t l = 0; l < h && l + h < n; l++) lane[l] = lane[l] + lane[l + h];
        n = SMALLER(n, h);
    }
    return lane[0];
}

/* The canonical sum of at most one block. */
static T sum_of(const T *x, int64_t n)
{
    T root[LANES];
    if (n <= SHORT_ROW) return short_sum(x, n);
    reduce_block(REDUCE_KIND(sum, -K(0)), root, x, x, n);
    return *root;
}

/* The sum of exp(t), which softmax stores in t. Blocks are joined in pairs as they arrive: bit k of
 * `count` says that level k holds a sum of 2^k blocks. */
static T sum_of_row(T *t, int64_t n, bool log)
{
    T buffer[REDUCE_BLOCK], level[64], s = 0;
    uint64_t count = 0;
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK, count++) {
        const int64_t block_length = SMALLER(REDUCE_BLOCK, n - i);
        T *e = log ? buffer : t + i;
        int k = 0;
        exp_of(e, t + i, block_length);
        for (s = sum_of(e, block_length); count >> k & 1; k++) s = level[k] + s;
        level[k] = s;
    }
    bool below = false;
    for (int k = 0; count >> k; k++) {
        if (!(count >> k & 1)) continue;
        s = below ? level[k] + s : level[k];
        below = true;
    }
    return s;
}

/* Short rows share one vector loop for exp. */
static void short_rows(const row_group *r)
{
    T buffer[REDUCE_BLOCK];
    T *e = r->log ? buffer : r->at;
    exp_of(e, r->at, r->count * r->n);
    for (int64_t i = 0; i < r->count; i++, e += r->n) {
        normalize_row(r->at + i * r->n, r->n, sum_of(e, r->n), r->log);
    }
}

static void compute_rows(const row_group *r)
{
    for (int64_t i = 0; i < r->count; i++) subtract_max(r->at + i * r->n, r->from + i * r->n, r->n);
    if (r->n <= REDUCE_BLOCK / 8) {
        short_rows(r);
        return;
    }
    for (int64_t i = 0; i < r->count; i++) {
        T *t = r->at + i * r->n;
        normalize_row(t, r->n, sum_of_row(t, r->n, r->log), r->log);
    }
}

/* Computes rows from .. to - 1, a few at a time. */
static void softmax_rows(const step *s, const frame *f, int64_t from, int64_t to)
{
    const layout *in = &s->in[0].at;
    const T *x = address(f, &s->in[0]);
    T *out = address(f, &s->out[0]);
    const int64_t n = row_length(in), few = n < 512 ? 512 / n : 1;
    const bool dense = layout_is_dense(in);
    for (int64_t row = from; row < to; row += few) {
        T *at = out + row * n;
        const row_group r = { dense ? x + row * n : at, at, SMALLER(few, to - row), n,
                              s->kernel == OP_log_softmax };
        if (!dense) gather_range(at, x, in, row * n, r.count * n);
        compute_rows(&r);
    }
}

typedef struct softmax_work {
    const step *s;
    const frame *f;
    int64_t count;
} softmax_work;

static void softmax_part(const void *work, int t, int threads)
{
    const softmax_work *l = work;
    softmax_rows(l->s, l->f, part_of(l->count, t, threads), part_of(l->count, t + 1, threads));
}

duet_status NAME(run_softmax)(const step *s, const frame *f)
{
    const int64_t count = layout_count(&s->out[0].at);
    if (count == 0) return DUET_OK;
    const softmax_work l = { s, f, count / row_length(&s->out[0].at) };
    const double seconds = (double)count * (SECONDS_PER_FUNCTION + 4 * SECONDS_PER_ROUNDED);
    by_threads(l.count > 1 ? threads_for(seconds) : 1, softmax_part, &l);
    return DUET_OK;
}
