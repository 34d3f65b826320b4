/* layer_norm_tmpl.c - layer_norm: rows less their mean, over their deviation, in the order of core/reduction.h. A row is reduced by blocks
 * that stay in cache, and read once more when its mean and its deviation are known. */
#include "cpu_kernels.h"
#include "layer_norm.h"
#include "reduce_rows.h"
#include "row_iterator.h"
#include "threads.h"

#define SHORT                                                                                                \
    64 /* elements of a row, at most, of which so few lanes are used that several rows are reduced side by side: */
#define BESIDE 64  /* so many */
#define RUN    256 /* elements whose gain and bias are brought together at a time */

_Static_assert(BESIDE <= REDUCE_LANES, "states of so many outputs stand side by side");

/* What all elements of a row are multiplied by, or moved by: a number, or elements along the row. */
typedef struct trim {
    const T *at; /* NULL: the number */
    T number;
    layout rows;
    row_path path;
    bool moves; /* other rows have others */
} trim;

typedef struct job {
    const T *x;
    T *out;
    layout rows; /* of x, a row being the last axis */
    trim with[2];
    bool trims;
    int64_t n, count;
    T r;
} job;

typedef struct unit {
    T mean, scale;
} unit;

/* ---- what a row is reduced to: the sum, then the moments ---- */

enum { PARTS = 4 };

#if VECTOR_BYTES > 16
/* Is a quotient by n, of so few elements that a lane takes, perhaps subnormal? */
INLINE bool is_tiny(V d)
{
    const V size = (V)((lanes)d & ~((lanes){ 0 } + SIGN_BIT)),
            least = spread(sizeof(T) == 4 ? (T)0x1p-100 : (T)0x1p-900);
#if VECTOR_BYTES == 64
    return PASTE(MM(mask_cmp), mask)(PASTE(MM(cmp), mask)((F)size, (F)least, _CMP_LT_OQ), (F)d, (F)spread(0),
                                     _CMP_NEQ_UQ);
#else
    return MM(movemask)((F)((size < least) & (d != spread(0))));
#endif
}

/* d / n, rounded to nearest, as ever: the remainder is exact, and no quotient by so small an n lies nearer to the middle of two
 * numbers than the error of the correction. Of -0 it is +0, which adds the same to a mean; of an infinity it is NaN, as the variance
 * is then in any case, or negative, which comes to the same. */
INLINE V quotient(V d, V n)
{
    const V inverse = spread(1) / n, q = d * inverse;
    if (__builtin_expect(is_tiny(d), 0)) return d / n;
    return multiply_add(multiply_add(-q, n, d), inverse, q);
}
#else
INLINE V quotient(V d, V n) { return d / n; }
#endif

/* The rows mean and var of ops.def together: how many elements a lane has seen, its rows say. */
INLINE void take_unit(V *sum, V *mean, V *squares, V row, V x, V y)
{
    const V d = x - *mean;
    *sum = *sum + x;
    *mean = *mean + quotient(d, row + spread(1));
    *squares = multiply_add(d, x - *mean, *squares);
}

static void moments_of_block(T state[PARTS], const T *x, int64_t n)
{
    const reduce_kind both = { take_unit, vec_join_var, { -K(0), 0, 0 }, 3, false };
    const int64_t rows = n / REDUCE_LANES, done = rows * REDUCE_LANES;
    T lane[3 * REDUCE_LANES] __attribute__((aligned(64))), sum[REDUCE_LANES] __attribute__((aligned(64)));
    T root[3 * REDUCE_LANES];
    start_states(lane, both.start, 3, REDUCE_LANES);
    take_rows(both, lane, x, x, rows);
    if (done < n) take_some(both, lane, x + done, x + done, n - done, rows);
    memcpy(sum, lane, sizeof sum);
    for (int64_t l = 0; l < REDUCE_LANES; l++) lane[l] = (T)(rows + (l < n - done));
    halve_lanes(REDUCE_KIND(mean, -K(0)), sum, root);
    state[0] = root[0];
    halve_lanes(MOMENT_KIND(var), lane, root);
    for (int k = 0; k < 3; k++) state[1 + k] = root[k * REDUCE_LANES];
}

static void join_state(T a[PARTS], const T b[PARTS])
{
    T p[3 * REDUCE_LANES] = { 0 }, q[3 * REDUCE_LANES] = { 0 };
    for (int k = 0; k < 3; k++) p[k * REDUCE_LANES] = a[1 + k], q[k * REDUCE_LANES] = b[1 + k];
    reduce_rows[OP_var].join(p, q, 1);
    for (int k = 0; k < 3; k++) a[1 + k] = p[k * REDUCE_LANES];
    a[0] = a[0] + b[0];
}

/* Blocks join in pairs as they come: bit k of the count says that level k holds 2^k. */
static void moments_of_row(T state[PARTS], const T *x, int64_t n)
{
    T level[64][PARTS];
    uint64_t count = 0;
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK, count++) {
        int k = 0;
        moments_of_block(state, x + i, SMALLER(REDUCE_BLOCK, n - i));
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

/* Of a sum and of moments that lie as the rows of reduce_rows.h have them. */
static unit unit_of(const job *j, const T *sum, const T *moments)
{
    unit u;
    T var;
    reduce_rows[OP_mean].epilogue(&u.mean, sum, j->n), reduce_rows[OP_var].epilogue(&var, moments, j->n);
    u.scale = FN(rsqrt)(var + j->r);
    return u;
}

static unit unit_of_row(const job *j, const T *x)
{
    T state[PARTS], moments[3 * REDUCE_LANES];
    moments_of_row(state, x, j->n);
    for (int k = 0; k < 3; k++) moments[k * REDUCE_LANES] = state[1 + k];
    return unit_of(j, state, moments);
}

/* ---- what is made of it ---- */

/* Elements i .. i + n - 1 of a gain or a bias, of which `row` is the first: where they lie, or in `room`. */
static const T *trim_at(const trim *t, const T *row, T *room, int64_t i, int64_t n)
{
    if (t->path.stride == 1 && t->path.run == 1) return row + i;
    for (int64_t k = 0; k < n;) {
        const int64_t left = t->path.run - (i + k) % t->path.run, some = SMALLER(left, n - k);
        const T value = row[(i + k) / t->path.run * t->path.stride];
        for (int64_t end = k + some; k < end; k++) room[k] = value;
    }
    return room;
}

static const T *trim_row(const trim *t, int64_t row)
{
    if (!t->at) return &t->number;
    return t->moves ? t->at + walk_to(&t->rows, row).offset : t->at;
}

static void trimmed(const job *j, int64_t row, const T *x, T *out, unit u)
{
    T room[2][RUN];
    const T *gains = trim_row(&j->with[0], row), *biases = trim_row(&j->with[1], row);
    for (int64_t i = 0; i < j->n; i += RUN) {
        const int64_t some = SMALLER(RUN, j->n - i);
        const T *gain = trim_at(&j->with[0], gains, room[0], i, some),
                *bias = trim_at(&j->with[1], biases, room[1], i, some);
#pragma omp simd
        for (int64_t k = 0; k < some; k++) out[i + k] = FMA((x[i + k] - u.mean) * u.scale, gain[k], bias[k]);
    }
}

static void epilogue_row(const job *j, int64_t row, const T *x, unit u)
{
    T *out = j->out + row * j->n;
    if (j->trims) trimmed(j, row, x, out, u);
    else
        for (int64_t i = 0; i < j->n; i++) out[i] = (x[i] - u.mean) * u.scale;
}

/* ---- rows ---- */

/* The elements of a row, one after the other: where they lie, or where the results go. */
static const T *next_row(const job *j, int64_t row, walk *w)
{
    const T *x = j->x + w->offset;
    walk_on(w, &j->rows);
    if (row_stride(&j->rows) == 1) return x;
    row_in(j->out + row * j->n, x, row_stride(&j->rows), j->n);
    return j->out + row * j->n;
}

static void some_beside(const job *j, int64_t from, int64_t count, walk *at)
{
    T beside[SHORT * BESIDE], sum[REDUCE_LANES], moments[3 * REDUCE_LANES];
    const T *x[BESIDE];
    const strip in[2] = { { beside, BESIDE }, { beside, BESIDE } };
    for (int64_t w = 0; w < count; w++) {
        x[w] = next_row(j, from + w, at);
        for (int64_t i = 0; i < j->n; i++) beside[i * BESIDE + w] = x[w][i];
    }
    reduce_rows[OP_mean].outputs(sum, in, j->n, count), reduce_rows[OP_var].outputs(moments, in, j->n, count);
    for (int64_t w = 0; w < count; w++) epilogue_row(j, from + w, x[w], unit_of(j, sum + w, moments + w));
}

static void norm_rows(const void *work, int t, int threads)
{
    const job *j = work;
    const int64_t from = part_of(j->count, t, threads), to = part_of(j->count, t + 1, threads);
    walk w = walk_to(&j->rows, from);
    if (j->n <= SHORT)
        for (int64_t row = from; row < to; row += BESIDE) some_beside(j, row, SMALLER(BESIDE, to - row), &w);
    else
        for (int64_t row = from; row < to; row++) {
            const T *x = next_row(j, row, &w);
            epilogue_row(j, row, x, unit_of_row(j, x));
        }
}

/* The last axes as one. */
static layout rows_of(const layout *l, int inner, int64_t n, const row_path *p)
{
    layout r = *l;
    r.rank += 1 - inner;
    r.size[r.rank - 1] = n, r.stride[r.rank - 1] = p->stride;
    return r;
}

static trim trim_of(const step *s, const frame *f, int which)
{
    trim t = { .path = { norm_length(s), 0 } };
    const operand *o = norm_operand(s, which);
    if (!o) return t.number = number_of(norm_number(s, f, which)), t;
    norm_path(&o->at, s->inner, &t.path);
    if (t.path.stride == 0) t.path.run = norm_length(s);
    t.at = address(f, o), t.rows = rows_of(&o->at, s->inner, norm_length(s), &t.path);
    for (int a = 0; a < t.rows.rank - 1; a++) t.moves |= t.rows.stride[a] != 0;
    return t;
}

duet_status NAME(run_norm)(const step *s, const frame *f)
{
    row_path along = { 1, 1 };
    job j = { .x = address(f, &s->in[0]),
              .out = address(f, &s->out[0]),
              .n = norm_length(s),
              .trims = s->attr.layer_norm.source[NORM_GAIN] };
    const int64_t count = layout_count(&s->out[0].at);
    if (count == 0) return DUET_OK;
    norm_path(&s->in[0].at, s->inner, &along);
    j.rows = rows_of(&s->in[0].at, s->inner, j.n, &along), j.count = count / j.n,
    j.r = number_of(f->num[s->num[0]]);
    for (int k = NORM_GAIN; k <= NORM_BIAS && j.trims; k++) j.with[k] = trim_of(s, f, k);
    const double seconds = (double)count * 8 * SECONDS_PER_ROUNDED;
    by_threads(j.count > 1 ? threads_for(seconds) : 1, norm_rows, &j);
    return DUET_OK;
}
