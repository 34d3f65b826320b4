/* scan_tmpl.c - cumsum and cumprod, and the inner loops of scatter.c. Template, for f32, f64 and
 * i64.
 *
 * The order of the operations is that of docs/semantics.md; sums and products of i64 wrap. The
 * operand may have any layout, the result is dense. Threads take groups of lines, or blocks of each
 * line if there are few. */
#include "gather.h"
#include <string.h>
#ifdef T_i64
typedef uint64_t number;
#define MAXIMUM_OF(a, b) ((int64_t)(a) > (int64_t)(b) ? (a) : (b))
#define ZERO             0
#else
#include "scalar_ops.h"
typedef T number;
#define MAXIMUM_OF(a, b) MAXIMUM(a, b)
#define ZERO             -K(0)
#endif
#define TYPED_NAME_(name, type)   name##_##type
#define TYPED_NAME_AS(name, type) TYPED_NAME_(name, type)
#define TYPED_NAME(name)          TYPED_NAME_AS(name, TYPE)

#define WIDTH 32 /* lines that are scanned together */

/* Adjacent lines: element i of line c is x[i * stride + from[c]]. */
typedef struct line_group {
    const number *x;
    number *out;
    int64_t stride, out_stride, from[WIDTH];
    int width;
    bool product;
} line_group;

/* What precedes an element, for each line: in its run, its group, its block, and the blocks before. */
typedef struct prefix {
    number run[WIDTH], group[WIDTH], block[WIDTH], line[WIDTH];
} prefix;

static inline number combine(number a, number b, bool product) { return product ? a * b : a + b; }
static inline number identity(bool product) { return product ? 1 : ZERO; }

static inline void merge_part(number *sum, number *part, int width, bool product)
{
    for (int c = 0; c < width; c++) {
        sum[c] = combine(sum[c], part[c], product);
        part[c] = identity(product);
    }
}

static inline void merge_parts(prefix *b, int64_t i, int width, bool product)
{
    merge_part(b->group, b->run, width, product);
    if (i % SCAN_GROUP == 0) merge_part(b->block, b->group, width, product);
    if (i % SCAN_BLOCK == 0) merge_part(b->line, b->block, width, product);
}

static inline void clear_parts(prefix *b, int width, bool product)
{
    for (int c = 0; c < width; c++) b->run[c] = b->group[c] = b->block[c] = b->line[c] = identity(product);
}

/* Scans elements i .. end - 1 of one run. */
static inline __attribute__((always_inline)) void scan_run(const line_group *u, prefix *b, int64_t i,
                                                           int64_t end, int width, bool product, bool writes)
{
    for (; i < end; i++)
        for (int c = 0; c < width; c++) {
            b->run[c] = combine(b->run[c], u->x[i * u->stride + u->from[c]], product);
            const number inner = combine(b->block[c], combine(b->group[c], b->run[c], product), product);
            if (writes) u->out[i * u->out_stride + c] = combine(b->line[c], inner, product);
        }
}

static inline __attribute__((always_inline)) void scan_with(const line_group *u, prefix *b, int64_t from,
                                                            int64_t to, int width, bool product, bool writes)
{
    for (int64_t i = from; i < to; i += SCAN_RUN) {
        scan_run(u, b, i, to - i < SCAN_RUN ? to : i + SCAN_RUN, width, product, writes);
        merge_parts(b, i + SCAN_RUN, width, product);
    }
}

/* Scans from the start of a block. If the last run is incomplete, it is the end of the line. */
static void scan(const line_group *u, prefix *b, int64_t from, int64_t to, bool writes)
{
    if (u->width > 1) {
        if (u->product) scan_with(u, b, from, to, u->width, true, writes);
        else scan_with(u, b, from, to, u->width, false, writes);
    } else {
        if (u->product) scan_with(u, b, from, to, 1, true, writes);
        else scan_with(u, b, from, to, 1, false, writes);
    }
}

typedef struct scan_work {
    const number *x;
    number *out;
    axis_split axes;
    int64_t n, inner, groups; /* groups of all lines */
    bool product;
} scan_work;

static line_group line_group_at(const scan_work *s, int64_t i)
{
    const int64_t across = (s->inner + WIDTH - 1) / WIDTH, o = i / across, first = i % across * WIDTH;
    const int64_t left = s->inner - first;
    line_group u = { .stride = s->axes.along.stride[0], .out_stride = s->inner, .product = s->product };
    u.width = left < WIDTH ? (int)left : WIDTH;
    u.x = s->x + layout_offset(&s->axes.outer, o);
    u.out = s->out + o * s->n * s->inner + first;
    for (int c = 0; c < u.width; c++) u.from[c] = layout_offset(&s->axes.inner, first + c);
    return u;
}

static void scan_groups(const scan_work *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) {
        const line_group u = line_group_at(s, i);
        prefix b;
        clear_parts(&b, u.width, u.product);
        scan(&u, &b, 0, s->n, true);
    }
}

/* ---- few long lines: threads take blocks ---- */

static void block_totals(const line_group *u, int64_t block, number *total)
{
    prefix b;
    clear_parts(&b, u->width, u->product);
    scan(u, &b, block * SCAN_BLOCK, (block + 1) * SCAN_BLOCK, false);
    memcpy(total, b.line, (size_t)u->width * sizeof *total);
}

/* Replaces the total of each block by that of all blocks before it. */
static void exclusive_scan(number *total, int64_t blocks, int width, bool product)
{
    for (int c = 0; c < width; c++) {
        number sum = identity(product);
        for (int64_t k = 0; k < blocks; k++) {
            const number own = total[k * WIDTH + c];
            total[k * WIDTH + c] = sum;
            sum = combine(sum, own, product);
        }
    }
}

static void scan_block(const line_group *u, int64_t block, int64_t n, const number *total)
{
    prefix b;
    const int64_t first = block * SCAN_BLOCK, left = n - first;
    clear_parts(&b, u->width, u->product);
    memcpy(b.line, total, (size_t)u->width * sizeof *total);
    scan(u, &b, first, left < SCAN_BLOCK ? n : first + SCAN_BLOCK, true);
}

static void scan_blocks(const scan_work *s, number *total, int threads)
{
    const int64_t blocks = (s->n + SCAN_BLOCK - 1) / SCAN_BLOCK;
    for (int64_t i = 0; i < s->groups; i++) {
        const line_group u = line_group_at(s, i);
#pragma omp parallel num_threads(threads)
        {
            IN_DEFAULT_FP_ENVIRONMENT;
#pragma omp for schedule(static)
            for (int64_t k = 0; k < blocks - 1; k++) block_totals(&u, k, total + k * WIDTH);
#pragma omp single
            exclusive_scan(total, blocks, u.width, u.product);
#pragma omp for schedule(static)
            for (int64_t k = 0; k < blocks; k++) scan_block(&u, k, s->n, total + k * WIDTH);
        }
    }
}

static void scan_part(const void *work, int t, int threads)
{
    const scan_work *s = work;
    scan_groups(s, part_of(s->groups, t, threads), part_of(s->groups, t + 1, threads));
}

duet_status TYPED_NAME(run_scan)(const step *given, const frame *f)
{
    scan_work s = { .x = address(f, &given->in[0]),
                    .out = address(f, &given->out[0]),
                    .product = given->kernel == OP_cumprod };
    const int64_t count = layout_count(&given->out[0].at);
    if (!count) return DUET_OK;
    s.axes = axis_split_at(&given->in[0].at, given->attr.index.axis, 1);
    s.n = s.axes.along.size[0];
    s.inner = layout_count(&s.axes.inner);
    s.groups = (s.inner + WIDTH - 1) / WIDTH * layout_count(&s.axes.outer);
    const int threads = threads_for((double)count * 10 * SECONDS_PER_ROUNDED);
    if (threads == 1 || s.groups >= threads || s.n < 2 * SCAN_BLOCK) {
        by_threads(threads, scan_part, &s);
        return DUET_OK;
    }
    void *total;
    TRY(scratch_take((size_t)(s.n / SCAN_BLOCK + 1) * WIDTH * sizeof(number), f, &total));
    scan_blocks(&s, total, threads);
    scratch_give(total);
    return DUET_OK;
}

/* ---- inner loops of scatter.c ---- */

#define SCATTER(name, formula)                                                                               \
    void TYPED_NAME(name)(void *to, const void *from, int64_t stride, int64_t n)                             \
    {                                                                                                        \
        number *a = to;                                                                                      \
        const number *b = from;                                                                              \
        for (int64_t i = 0; i < n; i++) a[i] = formula(a[i], b[i * stride]);                                 \
    }
#define SUM(a, b)     (a) + (b)
#define PRODUCT(a, b) (a) * (b)
SCATTER(scatter_add, SUM)
SCATTER(scatter_mul, PRODUCT)
SCATTER(scatter_max, MAXIMUM_OF)
