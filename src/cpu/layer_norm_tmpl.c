/* layer_norm_tmpl.c - layer_norm: (row - mean) / sqrt(variance + r) * gain + bias, for f32 and f64.
 * Template.
 *
 * A row is one or more last axes. Reductions have the canonical order of core/reduce_order.h. They
 * work in blocks that stay in the cache, and a second pass normalises the row. The input, gain and
 * bias may have any layout, the output is dense. Each thread normalises a part of the rows. */
#include "compiler.h"
#include "cpu_kernels.h"
#include "layer_norm.h"
#include "reduce_group.h"
#include "reduce_rows.h"
#include "row_iterator.h"
#include "threads.h"
#include "transpose_registers.h"

/* INTERLEAVED rows of at most SHORT_ROW elements are reduced together. One such row would use few lanes. */
#define SHORT_ROW   64
#define INTERLEAVED 64
#define SEGMENT     256 /* elements whose gain and bias are read at a time */
#define LINE_BYTES  64  /* of the cache */

_Static_assert(INTERLEAVED <= REDUCE_LANES, "the states of all interleaved rows fit");

/* The gain or the bias: one number, or an operand with an element for each element of a row. */
typedef struct affine {
    const T *at; /* NULL: use the number */
    T number;
    layout rows;
    row_path path;
    bool varies; /* whether rows have different ones */
} affine;

typedef struct layer_norm_work {
    const T *x;
    T *out;
    layout rows; /* of x; a row is the last axis */
    affine affine[2];
    bool has_affine;
    int64_t n, count;
    T r;
} layer_norm_work;

typedef struct row_stats {
    T mean, scale;
} row_stats;

/* ---- the sum and the moments of a row ---- */

enum { PARTS = 1 + MOST_PARTS }; /* the sum, then the moments */

/* The reductions mean and var of ops.def together: p[3] is the sum, not the count. */
INLINE void update_moments(V *p, V row, V x, V y)
{
    vec_var(p, row, x, y);
    p[3] = p[3] + x;
}
INLINE void update_more_moments(V *p, V row, V x, V y)
{
    vec_more_var(p, row, x, y);
    p[3] = p[3] + x;
}

#define MOMENTS_AND_SUM                                                                                      \
    ((reduce_kind){ update_moments,                                                                          \
                    update_more_moments,                                                                     \
                    NULL,                                                                                    \
                    vec_join_var,                                                                            \
                    { K(NAN), 0, 0, -K(0) },                                                                 \
                    MOST_PARTS,                                                                              \
                    false })

/* The sums of the lanes of one row. */
INLINE V join_sums(const output_lanes *o)
{
    output_lanes sums;
    V sum[MOST_PARTS];
#pragma GCC unroll 8
    for (int i = 0; i < LANE_VECTORS; i++) sums.part[i][0] = o->part[i][MOST_PARTS - 1];
    join_output(REDUCE_KIND(mean, -K(0)), &sums, sum, 0);
    return sum[0];
}

/* The state of one block: of the reduction mean, then of var. */
static void moments_of_block(T state[PARTS], const T *x, int64_t n)
{
    output_lanes o;
    V sum[MOST_PARTS] = { { 0 } }, moments[MOST_PARTS];
    update_output(MOMENTS_AND_SUM, &o, x, x, n);
    sum[0] = join_sums(&o);
    join_output(MOMENT_KIND(var), &o, moments, n);
    halve_register(REDUCE_KIND(mean, -K(0)), sum);
    halve_register(MOMENT_KIND(var), moments);
    state[0] = sum[0][0];
    EACH_PART(k, MOST_PARTS) state[1 + k] = moments[k][0];
}

static void join_state(T a[PARTS], const T b[PARTS])
{
    T p[MOST_PARTS * REDUCE_LANES] = { 0 }, q[MOST_PARTS * REDUCE_LANES] = { 0 };
    EACH_PART(k, MOST_PARTS)
    {
        p[k * REDUCE_LANES] = a[1 + k];
        q[k * REDUCE_LANES] = b[1 + k];
    }
    reduce_rows[OP_var].join(p, q, 1);
    EACH_PART(k, MOST_PARTS) a[1 + k] = p[k * REDUCE_LANES];
    a[0] = a[0] + b[0];
}

static bool sum_is_finite(const T state[PARTS]) { return ABS(state[0]) < INF; }
static bool squares_are_finite(const T state[PARTS]) { return ABS(state[3]) < INF; }

/* The state of one block in a second pass, given that of the first. */
static __attribute__((noinline)) void scale_block(T state[PARTS], const T *x, int64_t n)
{
    const T down = TYPED(REDUCE_DOWN);
    T scaled[REDUCE_BLOCK], again[PARTS];
    for (int64_t i = 0; i < n; i++) scaled[i] = x[i] * down;
    moments_of_block(again, scaled, n);
    state[0] = sum_is_finite(state) ? state[0] * down : again[0];
    if (squares_are_finite(state)) {
        state[1] = state[1] * down;
        state[2] = state[2] * down;
        state[3] = state[3] * down * down;
    } else {
        memcpy(state + 1, again + 1, MOST_PARTS * sizeof *state);
    }
}

/* Blocks are joined in pairs as they arrive: bit k of `count` says that level k holds 2^k blocks. */
static void moments_of_row(T state[PARTS], const T *x, int64_t n, bool again)
{
    T level[64][PARTS];
    uint64_t count = 0;
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK, count++) {
        int k = 0;
        const int64_t length = SMALLER(REDUCE_BLOCK, n - i);
        moments_of_block(state, x + i, length);
        if (again) scale_block(state, x + i, length);
        for (; count >> k & 1; k++) {
            join_state(level[k], state);
            memcpy(state, level[k], sizeof level[k]);
        }
        memcpy(level[k], state, sizeof level[k]);
    }
    bool below = false;
    for (int k = 0; count >> k; k++) {
        if (!(count >> k & 1)) continue;
        if (below) join_state(level[k], state);
        memcpy(state, level[k], sizeof level[k]);
        below = true;
    }
}

typedef struct mean_and_var {
    T mean, var;
} mean_and_var;

/* `sum` and `moments` are laid out as states of reduce_rows.h. */
static mean_and_var results_of(const T *sum, const T *moments, int64_t n)
{
    mean_and_var r;
    reduce_rows[OP_mean].results(&r.mean, sum, 1, n);
    reduce_rows[OP_var].results(&r.var, moments, 1, n);
    return r;
}

/* The results of a second pass, where sums are not finite. */
static __attribute__((noinline)) mean_and_var results_again(mean_and_var r, const T *x, int64_t n, bool sum,
                                                            bool squares)
{
    const T up = 1 / TYPED(REDUCE_DOWN);
    T state[PARTS], moments[MOST_PARTS * REDUCE_LANES];
    moments_of_row(state, x, n, true);
    EACH_PART(k, MOST_PARTS) moments[k * REDUCE_LANES] = state[1 + k];
    const mean_and_var scaled = results_of(state, moments, n);
    if (!sum) r.mean = scaled.mean * up;
    if (!squares) r.var = scaled.var * up * up;
    return r;
}

/* sum, squares: are they finite? */
static row_stats stats_of(const layer_norm_work *j, const T *x, mean_and_var r, bool sum, bool squares)
{
    if (unlikely(!sum || !squares)) r = results_again(r, x, j->n, sum, squares);
    return (row_stats){ r.mean, FN(rsqrt)(r.var + j->r) };
}

static row_stats stats_of_row(const layer_norm_work *j, const T *x)
{
    T state[PARTS], moments[MOST_PARTS * REDUCE_LANES];
    moments_of_row(state, x, j->n, false);
    EACH_PART(k, MOST_PARTS) moments[k * REDUCE_LANES] = state[1 + k];
    return stats_of(j, x, results_of(state, moments, j->n), sum_is_finite(state), squares_are_finite(state));
}

/* ---- normalisation ---- */

/* Elements i .. i + n - 1 of a gain or a bias whose first element is at `row`. Returns their
 * address, or copies them to `buffer`. */
static const T *affine_segment(const affine *t, const T *row, T *buffer, int64_t i, int64_t n)
{
    if (t->path.stride == 1 && t->path.run == 1) return row + i;
    for (int64_t k = 0; k < n;) {
        const int64_t left = t->path.run - (i + k) % t->path.run, count = SMALLER(left, n - k);
        const T value = row[(i + k) / t->path.run * t->path.stride];
        for (int64_t end = k + count; k < end; k++) buffer[k] = value;
    }
    return buffer;
}

static const T *affine_row(const affine *t, int64_t row)
{
    if (!t->at) return &t->number;
    if (!t->varies) return t->at;
    return t->at + row_iterator_at(&t->rows, row).offset;
}

static void apply_affine(const layer_norm_work *j, int64_t row, const T *x, T *out, row_stats u)
{
    T buffer[2][SEGMENT];
    const T *gains = affine_row(&j->affine[0], row), *biases = affine_row(&j->affine[1], row);
    for (int64_t i = 0; i < j->n; i += SEGMENT) {
        const int64_t count = SMALLER(SEGMENT, j->n - i);
        const T *gain = affine_segment(&j->affine[0], gains, buffer[0], i, count),
                *bias = affine_segment(&j->affine[1], biases, buffer[1], i, count);
#pragma omp simd
        for (int64_t k = 0; k < count; k++) out[i + k] = FMA((x[i + k] - u.mean) * u.scale, gain[k], bias[k]);
    }
}

static void normalize_row(const layer_norm_work *j, int64_t row, const T *x, row_stats u)
{
    T *out = j->out + row * j->n;
    if (j->has_affine) apply_affine(j, row, x, out, u);
    else
        for (int64_t i = 0; i < j->n; i++) out[i] = (x[i] - u.mean) * u.scale;
}

/* ---- rows ---- */

/* The elements of a row, contiguous. They are in the operand, or copied to the output. */
static const T *next_row(const layer_norm_work *j, int64_t row, row_iterator *w)
{
    const T *x = j->x + w->offset;
    row_iterator_next(w, &j->rows);
    if (row_stride(&j->rows) == 1) return x;
    gather_row(j->out + row * j->n, x, row_stride(&j->rows), j->n);
    return j->out + row * j->n;
}

/* Stores element i of row w at to[i * INTERLEAVED + w]. */
static void interleave(T *to, const T *const x[], int64_t count, int64_t n)
{
    const int64_t full = count - count % LANES, tiled = n - n % LANES;
    for (int64_t w = 0; w < full; w += LANES)
        for (int64_t i = 0; i < tiled; i += LANES) {
            const T *row[VECTOR_LANES];
            for (int k = 0; k < LANES; k++) row[k] = x[w + k] + i;
            transpose_tile(to + i * INTERLEAVED + w, INTERLEAVED, row);
        }
    for (int64_t w = 0; w < count; w++)
        for (int64_t i = w < full ? tiled : 0; i < n; i++) to[i * INTERLEAVED + w] = x[w][i];
}

/* The states of some rows, laid out as in reduce_rows.h. */
typedef struct states_of_rows {
    T sum[REDUCE_LANES], moments[MOST_PARTS * REDUCE_LANES];
} states_of_rows;

/* The states of short rows. Element i of all of them is adjacent in `interleaved`. */
static void reduce_interleaved(states_of_rows *s, const T *const x[], int64_t count, int64_t n)
{
    T interleaved[SHORT_ROW * INTERLEAVED];
    const rows_of_outputs in[2] = { { interleaved, INTERLEAVED }, { interleaved, INTERLEAVED } };
    interleave(interleaved, x, count, n);
    reduce_rows[OP_mean].outputs(s->sum, in, n, count);
    reduce_rows[OP_var].outputs(s->moments, in, n, count);
}

/* Prefetches a row into the second-level cache. */
static void prefetch_row(const T *x, int64_t n)
{
    const int64_t line = LINE_BYTES / (int64_t)sizeof(T);
    for (int64_t i = 0; i < n; i += line) __builtin_prefetch(x + i, 0, 2);
}

/* Reduces at most LANES rows, each of at most one block. If `out` is not NULL, prefetches the memory to which
 * their results will be written. */
static void reduce_together(states_of_rows *s, const T *const x[], const T *out, int64_t count, int64_t n)
{
    const reduce_kind mean = REDUCE_KIND(mean, -K(0)), var = MOMENT_KIND(var);
    V sums[VECTOR_LANES][MOST_PARTS], moments[VECTOR_LANES][MOST_PARTS];
    start_outputs(mean, sums, count);
    start_outputs(var, moments, count);
    for (int64_t w = 0; w < count; w++) {
        output_lanes o;
        update_output(MOMENTS_AND_SUM, &o, x[w], x[w], n);
        if (out) prefetch_row(out + w * n, n);
        sums[w][0] = join_sums(&o);
        join_output(var, &o, moments[w], n);
    }
    join_outputs(mean, sums, s->sum);
    join_outputs(var, moments, s->moments);
}

/* Normalises some rows that are reduced together. If they are not short, the function prefetches their
 * results while it reduces them, and the next rows while it normalises them. Without prefetching, this is
 * slower than one row at a time if the rows are in memory. */
static void normalize_rows(const layer_norm_work *j, int64_t from, int64_t count, row_iterator *at)
{
    const bool prefetched = j->n > SHORT_ROW && row_stride(&j->rows) == 1;
    states_of_rows s;
    T mean[INTERLEAVED], var[INTERLEAVED];
    const T *x[INTERLEAVED];
    for (int64_t w = 0; w < count; w++) x[w] = next_row(j, from + w, at);
    if (j->n <= SHORT_ROW) reduce_interleaved(&s, x, count, j->n);
    else reduce_together(&s, x, prefetched ? j->out + from * j->n : NULL, count, j->n);
    reduce_rows[OP_mean].results(mean, s.sum, count, j->n);
    reduce_rows[OP_var].results(var, s.moments, count, j->n);
    row_iterator ahead = *at;
    for (int64_t w = 0; w < count; w++, row_iterator_next(&ahead, &j->rows)) {
        const T *squares = s.moments + 2 * REDUCE_LANES;
        const mean_and_var r = { mean[w], var[w] };
        if (prefetched) prefetch_row(j->x + ahead.offset, j->n);
        normalize_row(j, from + w, x[w], stats_of(j, x[w], r, ABS(s.sum[w]) < INF, ABS(squares[w]) < INF));
    }
}

/* How many rows are reduced together. */
static int64_t rows_together(const layer_norm_work *j)
{
    if (j->n <= SHORT_ROW) return INTERLEAVED;
    return j->n <= REDUCE_BLOCK ? LANES : 1;
}

static void normalize_part(const void *work, int t, int threads)
{
    const layer_norm_work *j = work;
    const int64_t from = part_of(j->count, t, threads), to = part_of(j->count, t + 1, threads),
                  together = rows_together(j);
    row_iterator w = row_iterator_at(&j->rows, from);
    if (together > 1)
        for (int64_t row = from; row < to; row += together)
            normalize_rows(j, row, SMALLER(together, to - row), &w);
    else
        for (int64_t row = from; row < to; row++) {
            const T *x = next_row(j, row, &w);
            normalize_row(j, row, x, stats_of_row(j, x));
        }
}

/* A layout in which the last axes are one. */
static layout rows_of(const layout *l, int inner, int64_t n, const row_path *p)
{
    layout r = *l;
    r.rank += 1 - inner;
    r.size[r.rank - 1] = n;
    r.stride[r.rank - 1] = p->stride;
    return r;
}

static affine affine_of(const step *s, const frame *f, int which)
{
    affine t = { .path = { norm_length(s), 0 } };
    const operand *o = norm_operand(s, which);
    if (!o) {
        t.number = number_of(norm_number(s, f, which));
        return t;
    }
    norm_path(&o->at, s->inner, &t.path);
    if (t.path.stride == 0) t.path.run = norm_length(s);
    t.at = address(f, o);
    t.rows = rows_of(&o->at, s->inner, norm_length(s), &t.path);
    for (int a = 0; a < t.rows.rank - 1; a++) t.varies |= t.rows.stride[a] != 0;
    return t;
}

duet_status NAME(run_norm)(const step *s, const frame *f)
{
    row_path along = { 1, 1 };
    layer_norm_work j = { .x = address(f, &s->in[0]),
                          .out = address(f, &s->out[0]),
                          .n = norm_length(s),
                          .has_affine = s->attr.layer_norm.source[NORM_GAIN] };
    const int64_t count = layout_count(&s->out[0].at);
    if (count == 0) return DUET_OK;
    norm_path(&s->in[0].at, s->inner, &along);
    j.rows = rows_of(&s->in[0].at, s->inner, j.n, &along);
    j.count = count / j.n;
    j.r = number_of(f->num[s->num[0]]);
    for (int k = NORM_GAIN; k <= NORM_BIAS && j.has_affine; k++) j.affine[k] = affine_of(s, f, k);
    const double seconds = (double)count * 8 * SECONDS_PER_ROUNDED;
    by_threads(j.count > 1 ? threads_for(seconds) : 1, normalize_part, &j);
    return DUET_OK;
}
