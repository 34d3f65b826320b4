/* program_tmpl.c - the fake interpreter for programs of one type, one element after the other.
 * convert.c reads and writes operands of other types. Integer types are compiled with wrapping
 * arithmetic. */
#include "dtype.h"
#include "fake.h"
#include "reduce_order.h"
#include "scalar_ops.h"
#include <stdlib.h>

#if defined T_f32
#define OWN DUET_F32
#elif defined T_f64
#define OWN DUET_F64
#elif defined T_i64
#define OWN DUET_I64
#define WHOLE
#else
#define OWN DUET_U64
#define WHOLE
#endif

/* ---- offsets of elements ---- */

static int64_t place(const layout *l, const int64_t *index)
{
    int64_t at = 0;
    for (int axis = 0; axis < l->rank; axis++) at += index[axis] * l->stride[axis];
    return at;
}

/* Element i in row-major order. */
static char *element(const void *p, const layout *l, int64_t i)
{
    int64_t index[DUET_RANK_MAX];
    for (int axis = l->rank; axis-- > 0; i /= l->size[axis]) index[axis] = i % l->size[axis];
    return (char *)p + place(l, index) * (int64_t)dtypes[l->type].bytes;
}

static T get(duet_dtype t, const char *p)
{
    if (t == OWN) return *(const T *)p;
    return (T)fake_converted(t, OWN, fake_value(t, p));
}

static void put(duet_dtype t, char *p, T x)
{
    if (t == OWN) *(T *)p = x;
    else fake_put(t, p, fake_converted(OWN, t, (long double)x));
}

static T number(double x)
{
#ifdef WHOLE
    T bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#else
    return (T)x;
#endif
}

static T wrapped(duet_dtype t, T x)
{
    return (T)fake_converted(t, OWN, fake_converted(OWN, t, (long double)x));
}

/* ---- element-wise programs ---- */

static T apply(int op, const T *v)
{
    const T x = v[0], y = v[1], z = v[2];
    switch (op) {
#define FORMULA(name, formula, ...)                                                                          \
    case OP_##name:                                                                                          \
        return formula;
#ifdef WHOLE
#define DUET_ANY1 FORMULA
#define DUET_ANY2 FORMULA
#define DUET_ANY3 FORMULA
#define DUET_INT1 FORMULA
#define DUET_INT2 FORMULA
#else
#define DUET_MAP1 FORMULA
#define DUET_MAP2 FORMULA
#define DUET_MAP3 FORMULA
#endif
#include <duet/ops.def>
    default:
        (void)x;
        (void)y;
        (void)z;
        return K(0);
    }
}

/* The state of a program at element i of its domain. */
typedef struct state {
    const job *j;
    int64_t i;
    T acc, slot[PROGRAM_SLOTS], taken[PROGRAM_OUTPUTS][2]; /* taken: operands of each reduction */
} state;

static T input_at(const job *j, int k, int64_t i)
{
    return get(j->s.in[k].at.type, element(j->in[k], &j->s.in[k].at, i));
}

static T fetch(const state *m, source from)
{
    switch (from.kind) {
    case FROM_INPUT: return input_at(m->j, from.index, m->i);
    case FROM_NUMBER: return number(m->j->num[from.index]);
    case FROM_SLOT: return m->slot[from.index];
    default: return m->acc;
    }
}

static void execute(state *m, const instruction *c)
{
    const job *j = m->j;
    const int to = c->arg[0].index;
    T x[3] = { K(0), K(0), K(0) };
    for (int k = 0; k < op_infos[c->op].arity; k++) x[k] = fetch(m, c->arg[k]);
    switch (c->op) {
    case OP_LOAD: m->acc = x[0]; break;
    case OP_SAVE: m->slot[c->arg[0].index] = m->acc; break;
    case OP_STORE: put(j->s.out[to].at.type, element(j->out[to], &j->s.out[to].at, m->i), m->acc); break;
    case OP_WRAP: m->acc = wrapped(c->arg[1].index, x[0]); break;
    default:
        if (op_infos[c->op].kind == KIND_REDUCE) memcpy(m->taken[c->arg[2].index], x, sizeof m->taken[0]);
        else m->acc = apply(c->op, x);
    }
}

static state run_element(const job *j, int64_t i)
{
    state m = { .j = j, .i = i };
    for (int k = 0; k < j->p.length; k++) execute(&m, &j->p.code[k]);
    return m;
}

static void run_program(const job *j)
{
    const int64_t n = layout_count(&j->s.out[0].at);
    for (int64_t i = 0; i < n; i++) run_element(j, i);
}

/* ---- reductions ---- */

/* A partial result: as many numbers as the row has, or an element and its index; -1: none. */
typedef struct partial {
    T v[4];
    int64_t at;
} partial;

typedef struct reduction {
    partial start;
    partial (*take)(partial p, T x, T y, int64_t at);
    partial (*close)(partial p, int64_t count); /* of a lane of `count` elements, not 0 */
    partial (*join)(partial p, partial q);
    T (*epilogue)(partial p, int64_t n);
    int sum; /* the number of a partial that may overflow */
} reduction;

/* Of two elements, the first NaN or the better one; of equal elements the first. */
static partial preferred(partial p, partial q, bool (*better)(T x, T a))
{
    const T x = p.v[0], y = q.v[0];
    if (p.at < 0 || q.at < 0) return p.at < 0 ? q : p;
    const partial first = p.at < q.at ? p : q;
    if (x != x && y != y) return first;
    if (x != x) return p;
    if (y != y) return q;
    if (better(x, y)) return p;
    if (better(y, x)) return q;
    return first;
}

#define REDUCE_OF(name, start, take, join, epilogue, ...)                                                    \
    static T take_one_##name(T a, T x, T y) { return (void)y, take; }                                        \
    static T join_one_##name(T a, T b) { return join; }                                                      \
    static T finish_one_##name(T a, int64_t n) { return (void)n, epilogue; }                                 \
    static partial take_##name(partial p, T x, T y, int64_t at)                                              \
    {                                                                                                        \
        return p.v[0] = take_one_##name(p.v[0], x, y), p;                                                    \
    }                                                                                                        \
    static partial join_##name(partial p, partial q) { return p.v[0] = join_one_##name(p.v[0], q.v[0]), p; } \
    static T finish_##name(partial p, int64_t n) { return finish_one_##name(n ? p.v[0] : p.v[0] + K(0), n); }
#ifdef WHOLE
#define DUET_ANY_FOLD1 REDUCE_OF
#define DUET_ANY_FOLD2 REDUCE_OF
#else
#define DUET_FOLD1 REDUCE_OF
#define DUET_FOLD2 REDUCE_OF
#define MOMENT_DO(...)                                                                                       \
    T a0 = p.v[0], a1 = p.v[1], a2 = p.v[2], a3 = p.v[3];                                                    \
    __VA_ARGS__;                                                                                             \
    return (partial){ { a0, a1, a2, a3 }, 0 };
#define DUET_MOMENT1(name, take, close, join, epilogue, ...)                                                 \
    static partial take_##name(partial p, T x, T y, int64_t at) { MOMENT_DO(take) }                          \
    static partial close_##name(partial p, int64_t count)                                                    \
    {                                                                                                        \
        p.v[0] = (T)count;                                                                                   \
        MOMENT_DO(close)                                                                                     \
    }                                                                                                        \
    static partial join_##name(partial p, partial q)                                                         \
    {                                                                                                        \
        const T b0 = q.v[0], b1 = q.v[1], b2 = q.v[2], b3 = q.v[3];                                          \
        MOMENT_DO(join)                                                                                      \
    }                                                                                                        \
    static T finish_##name(partial p, int64_t n)                                                             \
    {                                                                                                        \
        const T a0 = p.v[0], a1 = p.v[1], a2 = p.v[2], a3 = p.v[3];                                          \
        return (void)a0, (void)a1, (void)a2, (void)n, epilogue;                                              \
    }
#endif
#define DUET_PLACE1(name, better, ...)                                                                       \
    static bool better_##name(T x, T a) { return better; }                                                   \
    static partial join_##name(partial p, partial q) { return preferred(p, q, better_##name); }              \
    static partial take_##name(partial p, T x, T y, int64_t at)                                              \
    {                                                                                                        \
        return join_##name(p, (partial){ { x }, at });                                                       \
    }                                                                                                        \
    static T finish_##name(partial p, int64_t n) { return p.v[0]; }
#include <duet/ops.def>

static partial close_nothing(partial p, int64_t count) { return (void)count, p; }

static reduction reduce_of(int op)
{
    switch (op) {
#define REDUCE_CASE(name, first, at, close, sum, ...)                                                        \
    case OP_##name:                                                                                          \
        return (reduction){                                                                                  \
            { { first, ##__VA_ARGS__ }, at }, take_##name, close, join_##name, finish_##name, sum            \
        };
#define FROM_START(name, start, ...) REDUCE_CASE(name, START(start), 0, close_nothing, 0)
#ifdef WHOLE
#define DUET_ANY_FOLD1 FROM_START
#define DUET_ANY_FOLD2 FROM_START
#else
#define DUET_FOLD1              FROM_START
#define DUET_FOLD2              FROM_START
#define DUET_MOMENT1(name, ...) REDUCE_CASE(name, K(0), 0, close_##name, 3, K(NAN))
#endif
#define DUET_PLACE1(name, ...) REDUCE_CASE(name, K(0), -1, close_nothing, 0)
#include <duet/ops.def>
    default: return (reduction){ { { K(0) }, 0 }, take_sum, close_nothing, join_sum, finish_sum, 0 };
    }
}

/* A reduction of n pairs (only dot uses y), and the scale of x. by_block: x is scaled in the blocks whose
 * sum is not finite otherwise; the numbers of other blocks are. */
typedef struct run {
    const T (*pair)[2];
    int64_t n;
    T scale;
    bool by_block;
} run;

static partial reduce_elements(const reduction *f, const run *r, int64_t first, int64_t end)
{
    partial lane[REDUCE_LANES];
    for (int l = 0; l < REDUCE_LANES; l++) {
        lane[l] = f->start;
        for (int64_t i = first + l; i < end; i += REDUCE_LANES)
            lane[l] = f->take(lane[l], r->pair[i][0] * r->scale, r->pair[i][1], i);
        if (first + l < end) lane[l] = f->close(lane[l], (end - first - l - 1) / REDUCE_LANES + 1);
    }
    for (int half = REDUCE_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] = f->join(lane[l], lane[l + half]);
    return lane[0];
}

static partial reduce_block(const reduction *f, const run *r, int64_t first, int64_t end)
{
#ifndef WHOLE
    if (r->by_block) {
        const run as_is = { r->pair, r->n, K(1), false };
        partial p = reduce_elements(f, &as_is, first, end);
        if (!(ABS(p.v[f->sum]) < INF)) return reduce_elements(f, r, first, end);
        for (int k = f->sum ? 1 : 0; k < 4; k++) p.v[k] = p.v[k] * r->scale;
        if (f->sum) p.v[f->sum] = p.v[f->sum] * r->scale;
        return p;
    }
#endif
    return reduce_elements(f, r, first, end);
}

/* The accumulator of blocks first .. first + count - 1; count is a power of two, absent blocks are
 * omitted. */
static partial reduce_tree(const reduction *f, const run *r, int64_t first, int64_t count)
{
    int64_t begin = first * REDUCE_BLOCK, end = begin + REDUCE_BLOCK;
    if (count == 1) return reduce_block(f, r, begin, end < r->n ? end : r->n);
    partial left = reduce_tree(f, r, first, count / 2);
    if ((first + count / 2) * REDUCE_BLOCK >= r->n) return left;
    return f->join(left, reduce_tree(f, r, first + count / 2, count / 2));
}

static partial reduce_all(const reduction *f, const run *r)
{
    int64_t count = 1;
    while (count * REDUCE_BLOCK < r->n) count *= 2;
    if (r->n) return reduce_tree(f, r, 0, count);
    return f->start;
}

#ifndef WHOLE
/* The factor of a second pass; 1: none is needed. */
static T factor_of(int op, T s)
{
    if (op == OP_norm && s < TYPED(REDUCE_LEAST)) return TYPED(REDUCE_UP);
    if (op == OP_norm && s != s) return K(1);
    return ABS(s) < INF ? K(1) : TYPED(REDUCE_DOWN);
}

/* norm, mean or var. */
static T scaled_of(const reduction *f, int op, run *r)
{
    partial s = reduce_all(f, r);
    r->scale = factor_of(op, s.v[f->sum]);
    r->by_block = op != OP_norm && r->scale != K(1);
    if (r->scale != K(1)) s = reduce_all(f, r);
    T value = f->epilogue(s, r->n);
    for (int times = op == OP_var ? 2 : 1; times > 0; times--) value = value * (K(1) / r->scale);
    return value;
}
#endif

/* Stores a T, or the index if the reduction returns one. */
void FN(fake_reduce)(void *out, int op, const T (*pair)[2], int64_t n)
{
    const reduction f = reduce_of(op);
    run r = { pair, n, K(1), false };
#ifndef WHOLE
    if (op == OP_norm || op == OP_mean || op == OP_var) {
        *(T *)out = scaled_of(&f, op, &r);
        return;
    }
#endif
    if (op_infos[op].flags & OP_GIVES_INDEX) *(int64_t *)out = reduce_all(&f, &r).at;
    else *(T *)out = f.epilogue(reduce_all(&f, &r), n);
}

static void reduce_into(duet_dtype t, char *out, int op, const T (*pair)[2], int64_t n)
{
    T value;
    if (op_infos[op].flags & OP_GIVES_INDEX) return FN(fake_reduce)(out, op, pair, n);
    FN(fake_reduce)(&value, op, pair, n);
    put(t, out, value);
}

/* Computes output i of each reduction of the program over elements i * n .. i * n + n - 1 of the
 * domain; pair has space for n pairs of each. */
static void reduce_outputs(const job *j, int64_t i, int64_t n, T (*pair)[2])
{
    int64_t index[DUET_RANK_MAX] = { 0 };
    for (int64_t k = 0; k < n; k++) {
        const state m = run_element(j, i * n + k);
        for (int o = 0; o < j->s.outs; o++) memcpy(pair[o * n + k], m.taken[o], sizeof *pair);
    }
    for (int axis = j->s.out[0].at.rank - j->s.inner; axis-- > 0; i /= j->s.out[0].at.size[axis])
        index[axis] = i % j->s.out[0].at.size[axis];
    for (int k = 0; k < j->p.length; k++) {
        const instruction *c = &j->p.code[k];
        const int o = c->arg[2].index;
        if (op_infos[c->op].kind != KIND_REDUCE) continue;
        const layout *l = &j->s.out[o].at;
        reduce_into(l->type, (char *)j->out[o] + place(l, index) * (int64_t)dtypes[l->type].bytes, c->op,
                    (const T(*)[2])pair + o * n, n);
    }
}

static void run_reduces(const job *j)
{
    const layout *l = &j->s.out[0].at;
    int64_t n = 1, outputs = 1;
    for (int axis = 0; axis < l->rank; axis++)
        *(axis < l->rank - j->s.inner ? &outputs : &n) *= l->size[axis];
    T(*pair)[2] = fake_alloc(sizeof *pair * (size_t)(n * j->s.outs + 1));
    if (j->scratch_bytes) memset(j->scratch, 0xff, j->scratch_bytes);
    for (int64_t i = 0; i < outputs; i++) reduce_outputs(j, i, n, pair);
    fake_free(pair);
}

void FN(fake_program)(const job *j)
{
    if (j->p.reductions) run_reduces(j);
    else run_program(j);
}
