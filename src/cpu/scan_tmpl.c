/* scan_tmpl.c - cumsum and cumprod in the order of docs/semantics.md, and what scatter.c does to elements. For f32, f64, and i64, whose sums
 * and products wrap. */
#include "gather.h"
#include <string.h>
#ifdef T_i64
typedef uint64_t number;
#define MOST(a, b) ((int64_t)(a) > (int64_t)(b) ? (a) : (b))
#define ZERO       0
#else
#include "scalar_ops.h"
typedef T number;
#define MOST(a, b) MAXIMUM(a, b)
#define ZERO       -K(0)
#endif
#define NAMED_(name, type)   name##_##type
#define NAMED_AS(name, type) NAMED_(name, type)
#define NAMED(name)          NAMED_AS(name, TYPE)

#define WIDTH 32 /* lines at once */

/* Lines side by side: element i of line c is x[i * stride + from[c]]. */
typedef struct bundle {
    const number *x;
    number *out;
    int64_t stride, out_stride, from[WIDTH];
    int width;
    bool product;
} bundle;

/* What of each line comes before: of its run, group, block, and of the blocks before that. */
typedef struct before {
    number run[WIDTH], group[WIDTH], block[WIDTH], line[WIDTH];
} before;

static inline number both(number a, number b, bool product) { return product ? a * b : a + b; }
static inline number nothing(bool product) { return product ? 1 : ZERO; }

static inline void close_part(number *whole, number *part, int width, bool product)
{
    for (int c = 0; c < width; c++) whole[c] = both(whole[c], part[c], product), part[c] = nothing(product);
}

static inline void close_parts(before *b, int64_t i, int width, bool product)
{
    close_part(b->group, b->run, width, product);
    if (i % SCAN_GROUP == 0) close_part(b->block, b->group, width, product);
    if (i % SCAN_BLOCK == 0) close_part(b->line, b->block, width, product);
}

static inline void open_parts(before *b, int width, bool product)
{
    for (int c = 0; c < width; c++) b->run[c] = b->group[c] = b->block[c] = b->line[c] = nothing(product);
}

/* Elements i .. end - 1, all of a run or its first ones. */
static inline __attribute__((always_inline)) void scan_run(const bundle *u, before *b, int64_t i, int64_t end,
                                                           int width, bool product, bool writes)
{
    for (; i < end; i++)
        for (int c = 0; c < width; c++) {
            b->run[c] = both(b->run[c], u->x[i * u->stride + u->from[c]], product);
            const number inner = both(b->block[c], both(b->group[c], b->run[c], product), product);
            if (writes) u->out[i * u->out_stride + c] = both(b->line[c], inner, product);
        }
}

static inline __attribute__((always_inline)) void scan_as(const bundle *u, before *b, int64_t from,
                                                          int64_t to, int width, bool product, bool writes)
{
    for (int64_t i = from; i < to; i += SCAN_RUN) {
        scan_run(u, b, i, to - i < SCAN_RUN ? to : i + SCAN_RUN, width, product, writes);
        close_parts(b, i + SCAN_RUN, width, product);
    }
}

/* From the beginning of a block on. Where not all of a run is there, nothing follows. */
static void scan(const bundle *u, before *b, int64_t from, int64_t to, bool writes)
{
    if (u->width > 1)
        u->product ? scan_as(u, b, from, to, u->width, true, writes)
                   : scan_as(u, b, from, to, u->width, false, writes);
    else u->product ? scan_as(u, b, from, to, 1, true, writes) : scan_as(u, b, from, to, 1, false, writes);
}

typedef struct scanning {
    const number *x;
    number *out;
    axis_split at;
    int64_t n, inner, bundles; /* bundles: of all lines */
    bool product;
} scanning;

static bundle bundle_of(const scanning *s, int64_t i)
{
    const int64_t across = (s->inner + WIDTH - 1) / WIDTH, o = i / across, first = i % across * WIDTH;
    const int64_t left = s->inner - first;
    bundle u = { .stride = s->at.along.stride[0], .out_stride = s->inner, .product = s->product };
    u.width = left < WIDTH ? (int)left : WIDTH;
    u.x = s->x + layout_offset(&s->at.outer, o), u.out = s->out + o * s->n * s->inner + first;
    for (int c = 0; c < u.width; c++) u.from[c] = layout_offset(&s->at.inner, first + c);
    return u;
}

static void scan_bundles(const scanning *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) {
        const bundle u = bundle_of(s, i);
        before b;
        open_parts(&b, u.width, u.product);
        scan(&u, &b, 0, s->n, true);
    }
}

/* ---- few long lines: threads take blocks ---- */

static void block_totals(const bundle *u, int64_t block, number *total)
{
    before b;
    open_parts(&b, u->width, u->product);
    scan(u, &b, block * SCAN_BLOCK, (block + 1) * SCAN_BLOCK, false);
    memcpy(total, b.line, (size_t)u->width * sizeof *total);
}

/* Totals of blocks become what comes before them. */
static void totals_before(number *total, int64_t blocks, int width, bool product)
{
    for (int c = 0; c < width; c++) {
        number sum = nothing(product);
        for (int64_t k = 0; k < blocks; k++) {
            const number own = total[k * WIDTH + c];
            total[k * WIDTH + c] = sum, sum = both(sum, own, product);
        }
    }
}

static void scan_block(const bundle *u, int64_t block, int64_t n, const number *total)
{
    before b;
    const int64_t first = block * SCAN_BLOCK, left = n - first;
    open_parts(&b, u->width, u->product);
    memcpy(b.line, total, (size_t)u->width * sizeof *total);
    scan(u, &b, first, left < SCAN_BLOCK ? n : first + SCAN_BLOCK, true);
}

static void scan_together(const scanning *s, number *total, int threads)
{
    const int64_t blocks = (s->n + SCAN_BLOCK - 1) / SCAN_BLOCK;
    for (int64_t i = 0; i < s->bundles; i++) {
        const bundle u = bundle_of(s, i);
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(static)
            for (int64_t k = 0; k < blocks - 1; k++) block_totals(&u, k, total + k * WIDTH);
#pragma omp single
            totals_before(total, blocks, u.width, u.product);
#pragma omp for schedule(static)
            for (int64_t k = 0; k < blocks; k++) scan_block(&u, k, s->n, total + k * WIDTH);
        }
    }
}

static void scan_apart(const void *work, int t, int threads)
{
    const scanning *s = work;
    scan_bundles(s, part_of(s->bundles, t, threads), part_of(s->bundles, t + 1, threads));
}

duet_status NAMED(run_scan)(const step *given, const frame *f)
{
    scanning s = { .x = address(f, &given->in[0]),
                   .out = address(f, &given->out[0]),
                   .product = given->kernel == OP_cumprod };
    const int64_t count = layout_count(&given->out[0].at);
    if (!count) return DUET_OK;
    s.at = axis_split_at(&given->in[0].at, given->attr.index.axis, 1);
    s.n = s.at.along.size[0], s.inner = layout_count(&s.at.inner);
    s.bundles = (s.inner + WIDTH - 1) / WIDTH * layout_count(&s.at.outer);
    const int threads = threads_for((double)count * 10 * SECONDS_PER_ROUNDED);
    if (threads == 1 || s.bundles >= threads || s.n < 2 * SCAN_BLOCK)
        return by_threads(threads, scan_apart, &s), DUET_OK;
    void *total;
    TRY(scratch_take((size_t)(s.n / SCAN_BLOCK + 1) * WIDTH * sizeof(number), f, &total));
    scan_together(&s, total, threads);
    scratch_give(total);
    return DUET_OK;
}

/* ---- of scatter.c ---- */

#define COLUMNS(name, formula)                                                                               \
    void NAMED(name)(void *to, const void *from, int64_t stride, int64_t n)                                  \
    {                                                                                                        \
        number *a = to;                                                                                      \
        const number *b = from;                                                                              \
        for (int64_t i = 0; i < n; i++) a[i] = formula(a[i], b[i * stride]);                                 \
    }
#define SUM(a, b) (a) + (b)
COLUMNS(scatter_add, SUM)
COLUMNS(scatter_max, MOST)
