/* launch_tmpl.c - the pretended kernels for one element type, from the rows and from fold.h, one element after the other. */
#include "dtype.h"
#include "fake.h"
#include "fold.h"
#include "formula.h"
#include "philox.h"
#include <stdlib.h>

/* ---- where elements are ---- */

static int64_t place(const layout *l, const int64_t *index)
{
    int64_t at = 0;
    for (int axis = 0; axis < l->rank; axis++) at += index[axis] * l->stride[axis];
    return at;
}

/* The index of element i in row-major order. */
static void unravel(const layout *l, int64_t i, int64_t *index)
{
    for (int axis = l->rank; axis-- > 0; i /= l->size[axis]) index[axis] = i % l->size[axis];
}

static T *element(const void *p, const layout *l, int64_t i)
{
    int64_t index[DUET_RANK_MAX];
    unravel(l, i, index);
    return (T *)p + place(l, index);
}

/* ---- element by element ---- */

static T apply(int op, const T *v)
{
    const T x = v[0], y = v[1], z = v[2];
    switch (op) {
#define DUET_MAP1(name, formula, ...)                                                                                            \
    case OP_##name:                                                                                                              \
        return formula;
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>
    default: return (void)x, (void)y, (void)z, K(0);
    }
}

// clang-format off
static T fused(int kernel, T x, T y, T s, T r)
{
    switch (kernel) {
#define DUET_FUSED(name, pattern, formula, doc) case KERNEL_##name: return formula;
#include "fused.def"
    default: return K(0);
    }
}
// clang-format on

/* A program at element i of its domain. */
typedef struct state {
    const job *j;
    int64_t i;
    T acc, slot[PROGRAM_SLOTS], taken[PROGRAM_OUTPUTS][2]; /* taken: into each fold */
} state;

static T fetch(const state *m, source from)
{
    switch (from.kind) {
    case FROM_INPUT: return *element(m->j->in[from.index], &m->j->s.in[from.index].at, m->i);
    case FROM_NUMBER: return (T)m->j->num[from.index];
    case FROM_SLOT: return m->slot[from.index];
    default: return m->acc;
    }
}

static void execute(state *m, const instruction *c)
{
    const job *j = m->j;
    T x[3] = { K(0), K(0), K(0) };
    for (int k = 0; k < op_infos[c->op].arity; k++) x[k] = fetch(m, c->arg[k]);
    switch (c->op) {
    case OP_LOAD: m->acc = x[0]; break;
    case OP_SAVE: m->slot[c->arg[0].index] = m->acc; break;
    case OP_STORE: *element(j->out[c->arg[0].index], &j->s.out[c->arg[0].index].at, m->i) = m->acc; break;
    default:
        if (op_infos[c->op].kind == KIND_FOLD) memcpy(m->taken[c->arg[2].index], x, sizeof m->taken[0]);
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

static void run_fused(const job *j)
{
    int64_t n = layout_count(&j->s.out[0].at);
    for (int64_t i = 0; i < n; i++) {
        T v[2] = { K(0), K(0) };
        for (int k = 0; k < j->s.ins && k < 2; k++) v[k] = *element(j->in[k], &j->s.in[k].at, i);
        *element(j->out[0], &j->s.out[0].at, i) = fused(j->s.kernel, v[0], v[1], (T)j->num[0], (T)j->num[1]);
    }
}

/* ---- folds ---- */

/* What has been taken of elements: as many numbers as a row has, or an element and its index, -1 being none. */
typedef struct partial {
    T v[3];
    int64_t at;
} partial;

typedef struct fold {
    partial start;
    partial (*take)(partial p, T x, T y, int64_t at);
    partial (*join)(partial p, partial q);
    T (*finish)(partial p, int64_t n);
} fold;

/* Of two elements, the first NaN or the better one, and of equals the first. */
static partial preferred(partial p, partial q, bool (*better)(T x, T a))
{
    const T x = p.v[0], y = q.v[0];
    if (p.at < 0 || q.at < 0) return p.at < 0 ? q : p;
    const partial first = p.at < q.at ? p : q;
    if (x != x || y != y) return x == x ? q : y == y ? p : first;
    return better(x, y) ? p : better(y, x) ? q : first;
}

#define DUET_FOLD1(name, start, take, join, finish, ...)                                                                         \
    static T take_one_##name(T a, T x, T y) { return (void)y, take; }                                                            \
    static T join_one_##name(T a, T b) { return join; }                                                                          \
    static T finish_one_##name(T a, int64_t n) { return (void)n, finish; }                                                       \
    static partial take_##name(partial p, T x, T y, int64_t at) { return p.v[0] = take_one_##name(p.v[0], x, y), p; }            \
    static partial join_##name(partial p, partial q) { return p.v[0] = join_one_##name(p.v[0], q.v[0]), p; }                     \
    static T finish_##name(partial p, int64_t n) { return finish_one_##name(n ? p.v[0] : p.v[0] + K(0), n); }
#define DUET_FOLD2 DUET_FOLD1
#define DUET_MOMENT1(name, take, join, finish, ...)                                                                              \
    static partial take_##name(partial p, T x, T y, int64_t at)                                                                  \
    {                                                                                                                            \
        T a0 = p.v[0], a1 = p.v[1], a2 = p.v[2];                                                                                 \
        take;                                                                                                                    \
        return (partial){ { a0, a1, a2 }, 0 };                                                                                   \
    }                                                                                                                            \
    static partial join_##name(partial p, partial q)                                                                             \
    {                                                                                                                            \
        T a0 = p.v[0], a1 = p.v[1], a2 = p.v[2];                                                                                 \
        const T b0 = q.v[0], b1 = q.v[1], b2 = q.v[2];                                                                           \
        join;                                                                                                                    \
        return (partial){ { a0, a1, a2 }, 0 };                                                                                   \
    }                                                                                                                            \
    static T finish_##name(partial p, int64_t n)                                                                                 \
    {                                                                                                                            \
        const T a0 = p.v[0], a1 = p.v[1], a2 = p.v[2];                                                                           \
        return (void)a0, (void)a1, (void)a2, (void)n, finish;                                                                    \
    }
#define DUET_PLACE1(name, better, ...)                                                                                           \
    static bool better_##name(T x, T a) { return better; }                                                                       \
    static partial join_##name(partial p, partial q) { return preferred(p, q, better_##name); }                                  \
    static partial take_##name(partial p, T x, T y, int64_t at) { return join_##name(p, (partial){ { x }, at }); }               \
    static T finish_##name(partial p, int64_t n) { return p.v[0]; }
#include <duet/ops.def>

static fold fold_of(int op)
{
    switch (op) {
#define FOLD_CASE(name, first, at)                                                                                               \
    case OP_##name:                                                                                                              \
        return (fold){ { { first }, at }, take_##name, join_##name, finish_##name };
#define DUET_FOLD1(name, start, ...) FOLD_CASE(name, start, 0)
#define DUET_FOLD2                   DUET_FOLD1
#define DUET_MOMENT1(name, ...)      FOLD_CASE(name, K(0), 0)
#define DUET_PLACE1(name, ...)       FOLD_CASE(name, K(0), -1)
#include <duet/ops.def>
    default: return (fold){ { { K(0) }, 0 }, take_sum, join_sum, finish_sum };
    }
}

/* What is reduced: n pairs, y counting for dot alone; and what x is scaled by. */
typedef struct run {
    const T (*pair)[2];
    int64_t n;
    T scale;
} run;

static partial fold_block(const fold *f, const run *r, int64_t first, int64_t end)
{
    partial lane[FOLD_LANES];
    for (int l = 0; l < FOLD_LANES; l++) {
        lane[l] = f->start;
        for (int64_t i = first + l; i < end; i += FOLD_LANES)
            lane[l] = f->take(lane[l], r->pair[i][0] * r->scale, r->pair[i][1], i);
    }
    for (int half = FOLD_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] = f->join(lane[l], lane[l + half]);
    return lane[0];
}

/* The accumulator of blocks first .. first + count - 1, where count is a power of two and absent blocks are left out. */
static partial fold_tree(const fold *f, const run *r, int64_t first, int64_t count)
{
    int64_t begin = first * FOLD_BLOCK, end = begin + FOLD_BLOCK;
    if (count == 1) return fold_block(f, r, begin, end < r->n ? end : r->n);
    partial left = fold_tree(f, r, first, count / 2);
    if ((first + count / 2) * FOLD_BLOCK >= r->n) return left;
    return f->join(left, fold_tree(f, r, first + count / 2, count / 2));
}

static partial fold_all(const fold *f, const run *r)
{
    int64_t count = 1;
    while (count * FOLD_BLOCK < r->n) count *= 2;
    return r->n ? fold_tree(f, r, 0, count) : f->start;
}

static T norm_of(const fold *f, run *r)
{
    T s = fold_all(f, r).v[0];
    r->scale = s == INF ? TYPED(FOLD_NORM_DOWN) : s < TYPED(FOLD_NORM_LEAST) ? TYPED(FOLD_NORM_UP) : K(1);
    if (r->scale != K(1)) s = fold_all(f, r).v[0];
    return f->finish((partial){ { s }, 0 }, r->n) * (K(1) / r->scale);
}

static __attribute__((noinline)) void fold_into(void *out, int op, const T (*pair)[2], int64_t n)
{
    const fold f = fold_of(op);
    run r = { pair, n, K(1) };
    if (op == OP_norm) *(T *)out = norm_of(&f, &r);
    else if (op_infos[op].flags & OP_GIVES_INDEX) *(int64_t *)out = fold_all(&f, &r).at;
    else *(T *)out = f.finish(fold_all(&f, &r), n);
}

/* Output i of each fold of the program, whose n elements are the domain's i * n and following; pair has room for n of each. */
static void fold_outputs(const job *j, int64_t i, int64_t n, T (*pair)[2])
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
        if (op_infos[c->op].kind != KIND_FOLD) continue;
        const layout *l = &j->s.out[o].at;
        fold_into((char *)j->out[o] + place(l, index) * (int64_t)dtypes[l->type].bytes, c->op, (const T(*)[2])pair + o * n, n);
    }
}

static void run_folds(const job *j)
{
    const layout *l = &j->s.out[0].at;
    int64_t n = 1, outputs = 1;
    for (int axis = 0; axis < l->rank; axis++) *(axis < l->rank - j->s.inner ? &outputs : &n) *= l->size[axis];
    T(*pair)[2] = fake_alloc(sizeof *pair * (size_t)(n * j->s.outs + 1));
    if (j->scratch_bytes) memset(j->scratch, 0xff, j->scratch_bytes);
    for (int64_t i = 0; i < outputs; i++) fold_outputs(j, i, n, pair);
    fake_free(pair);
}

/* ---- softmax ---- */

static T fold_row(int op, const T *x, int64_t n, T (*pair)[2])
{
    union {
        T value;
        int64_t index;
    } out;
    for (int64_t i = 0; i < n; i++) pair[i][0] = x[i], pair[i][1] = K(0);
    fold_into(&out, op, (const T(*)[2])pair, n);
    return out.value;
}

static void soften(int kernel, T *t, int64_t n)
{
    T(*pair)[2] = fake_alloc(sizeof *pair * (size_t)n), *e = fake_alloc(sizeof *e * (size_t)n);
    const T m = fold_row(OP_max, t, n, pair);
    for (int64_t i = 0; i < n; i++) t[i] = t[i] - m, e[i] = FN(exp)(t[i]);
    const T s = fold_row(OP_sum, e, n, pair);
    for (int64_t i = 0; i < n; i++) t[i] = kernel == OP_softmax ? e[i] / s : t[i] - FN(log)(s);
    fake_free(pair), fake_free(e);
}

static void run_softmax(const job *j)
{
    const layout *in = &j->s.in[0].at, *out = &j->s.out[0].at;
    int64_t n = in->size[in->rank - 1], all = layout_count(in);
    T *t = fake_alloc(sizeof *t * (size_t)(n + 1));
    for (int64_t first = 0; first < all; first += n) {
        for (int64_t i = 0; i < n; i++) t[i] = *element(j->in[0], in, first + i);
        soften(j->s.kernel, t, n);
        for (int64_t i = 0; i < n; i++) *element(j->out[0], out, first + i) = t[i];
    }
    fake_free(t);
}

/* ---- products ---- */

static T finished(T x, int act)
{
    switch (act) {
    case OP_relu: return MAP(relu, x);
    case OP_sigmoid: return MAP(sigmoid, x);
    case OP_tanh: return MAP(tanh, x);
    default: return x;
    }
}

static T product_sum(const job *j, const int64_t *out)
{
    const layout *a = &j->s.in[0].at, *b = &j->s.in[1].at;
    const int64_t k = a->size[1];
    T sum = K(0);
    for (int64_t i = 0; i < k; i++)
        sum = FMA(*element(j->in[0], a, out[0] * k + i), *element(j->in[1], b, i * b->size[1] + out[1]), sum);
    return sum;
}

/* As it is, or by parts: low ones are 2^11 times what they stand for. */
static T whole_sum(const job *j, T (*sum)(const job *j, const int64_t *out), const int64_t *out)
{
    if (!j->part[0]) return sum(j, out);
    const T low = sum(j->part[1], out) + sum(j->part[2], out);
    return (T)((double)(sum(j->part[0], out) + low / K(2048)) * j->unscale);
}

static T product_at(const job *j, int64_t row, int64_t column)
{
    const T sum = whole_sum(j, product_sum, (int64_t[]){ row, column });
    return j->s.nums ? (T)j->num[0] * sum : sum;
}

static void run_product(const job *j)
{
    const layout *out = &j->s.out[0].at;
    const int64_t n = out->size[1];
    const int act = finish_infos[j->s.finish].act;
    T *t = fake_alloc(sizeof *t * (size_t)(n + 1));
    for (int64_t row = 0; row < out->size[0]; row++) {
        for (int64_t i = 0; i < n; i++) {
            t[i] = product_at(j, row, i);
            if (j->s.finish) t[i] = finished(t[i] + *element(j->in[2], &j->s.in[2].at, i), act);
        }
        if (j->s.finish && act == OP_softmax) soften(OP_softmax, t, n);
        for (int64_t i = 0; i < n; i++) *element(j->out[0], out, row * n + i) = t[i];
    }
    fake_free(t);
}

/* ---- pooling ---- */

static T pool_window(const job *j, const int64_t *out)
{
    const layout *in = &j->s.in[0].at;
    const int32_t *window = j->s.attr, *stride = j->s.attr + 2, *pad = j->s.attr + 4;
    bool most = j->s.kernel == OP_max_pool2d;
    T a = most ? -INF : K(0);
    for (int64_t u = 0; u < window[0]; u++)
        for (int64_t v = 0; v < window[1]; v++) {
            int64_t at[4] = { out[0], out[1], out[2] * stride[0] - pad[0] + u, out[3] * stride[1] - pad[1] + v };
            if (at[2] < 0 || at[2] >= in->size[2] || at[3] < 0 || at[3] >= in->size[3]) continue;
            T x = ((const T *)j->in[0])[place(in, at)];
            a = most ? MAXIMUM(a, x) : a + x;
        }
    return most ? a : a / (T)((int64_t)window[0] * window[1]);
}

static void run_pool(const job *j)
{
    const layout *out = &j->s.out[0].at;
    int64_t index[DUET_RANK_MAX], n = layout_count(out);
    for (int64_t i = 0; i < n; i++) {
        unravel(out, i, index);
        ((T *)j->out[0])[place(out, index)] = pool_window(j, index);
    }
}

/* ---- back from pooling, and upsampling: every element of the image asks every window ---- */

static const T *image_at(const job *j, const int64_t *n_c, int64_t i, int64_t k)
{
    return (const T *)j->in[0] + place(&j->s.in[0].at, (int64_t[]){ n_c[0], n_c[1], i, k });
}

/* Is `out` the place of the first NaN of the window from (top, left), or, without one, of its first greatest element? */
static bool is_first(const job *j, const int64_t *out, int64_t top, int64_t left)
{
    const int64_t *size = j->s.in[0].at.size;
    int64_t best[2] = { -1, -1 };
    for (int64_t u = 0; u < j->s.attr[0] * (int64_t)j->s.attr[1]; u++) {
        const int64_t at[2] = { top + u / j->s.attr[1], left + u % j->s.attr[1] };
        if (at[0] < 0 || at[1] < 0 || at[0] >= size[2] || at[1] >= size[3]) continue;
        const T x = *image_at(j, out, at[0], at[1]);
        const T most = best[0] < 0 ? -INF : *image_at(j, out, best[0], best[1]);
        if (best[0] < 0 || x > most || (x != x && most == most)) best[0] = at[0], best[1] = at[1];
    }
    return best[0] == out[2] && best[1] == out[3];
}

static T back_at(const job *j, const int64_t *out)
{
    const operand *grad = &j->s.in[j->s.ins - 1];
    const int32_t *window = j->s.attr, *stride = window + 2, *pad = window + 4;
    T sum = K(0);
    for (int64_t p = 0; p < grad->at.size[2]; p++)
        for (int64_t q = 0; q < grad->at.size[3]; q++) {
            const int64_t top = p * stride[0] - pad[0], left = q * stride[1] - pad[1];
            const bool has = out[2] >= top && out[2] < top + window[0] && out[3] >= left && out[3] < left + window[1];
            if (!has || (j->s.ins == 2 && !is_first(j, out, top, left))) continue;
            sum = sum + ((const T *)j->in[j->s.ins - 1])[place(&grad->at, (int64_t[]){ out[0], out[1], p, q })];
        }
    return j->s.ins == 2 ? sum : sum / (T)((int64_t)window[0] * window[1]);
}

static void run_pool_back(const job *j)
{
    const layout *out = &j->s.out[0].at;
    int64_t at[DUET_RANK_MAX], n = layout_count(out);
    for (int64_t i = 0; i < n; i++) {
        unravel(out, i, at);
        const bool up = j->s.kernel == OP_upsample2d;
        ((T *)j->out[0])[place(out, at)] = up ? *image_at(j, at, at[2] / j->s.attr[0], at[3] / j->s.attr[1]) : back_at(j, at);
    }
}

/* ---- convolutions, as they are defined, finished ---- */

static T conv_sum(const job *j, const int64_t *out)
{
    const layout *in = &j->s.in[0].at, *filters = &j->s.in[1].at;
    const int32_t *stride = j->s.attr, *pad = j->s.attr + 2;
    T sum = K(0);
    for (int64_t k = 0; k < in->size[1] * filters->size[2] * filters->size[3]; k++) {
        int64_t from[4];
        unravel(filters, k, from), from[0] = out[1];
        const int64_t at[4] = { out[0], from[1], out[2] * stride[0] - pad[0] + from[2], out[3] * stride[1] - pad[1] + from[3] };
        const bool inside = at[2] >= 0 && at[2] < in->size[2] && at[3] >= 0 && at[3] < in->size[3];
        const T x = inside ? ((const T *)j->in[0])[place(in, at)] : K(0);
        sum = FMA(((const T *)j->in[1])[place(filters, from)], x, sum);
    }
    return sum;
}

static T conv_finished(const job *j, const int64_t *out)
{
    T y = whole_sum(j, conv_sum, out);
    if (j->s.finish) y = y + *element(j->in[2], &j->s.in[2].at, out[1]);
    return finish_infos[j->s.finish].act == OP_relu ? MAP(relu, y) : y;
}

static T conv_pooled(const job *j, const int64_t *out)
{
    const int32_t *window = j->s.attr + STEP_POOL, *stride = window + 2;
    T most = -INF;
    for (int64_t u = 0; u < window[0]; u++)
        for (int64_t v = 0; v < window[1]; v++)
            most = MAXIMUM(most, conv_finished(j, (int64_t[]){ out[0], out[1], out[2] * stride[0] + u, out[3] * stride[1] + v }));
    return most;
}

static void run_conv(const job *j)
{
    const layout *out = &j->s.out[0].at;
    const bool pooled = finish_infos[j->s.finish].pooled;
    int64_t index[DUET_RANK_MAX], n = layout_count(out);
    for (int64_t i = 0; i < n; i++) {
        unravel(out, i, index);
        ((T *)j->out[0])[place(out, index)] = pooled ? conv_pooled(j, index) : conv_finished(j, index);
    }
}

/* ---- random numbers, each by itself ---- */

static philox_block drawn(const lottery *l, int64_t block, uint32_t stream)
{
    return philox_drawn(l, (uint32_t)l->law, (uint32_t)block, (uint32_t)(block >> 32), stream);
}

static T random_truncated(const lottery *l, int64_t i)
{
    const truncation k = FN(truncation_of)(l);
    const int lane = (int)(i % PHILOX_EACH);
    for (uint32_t attempt = 0; attempt < LOTTERY_ATTEMPTS; attempt++) {
        const philox_block b = drawn(l, i / PHILOX_EACH, 2 * attempt), c = drawn(l, i / PHILOX_EACH, 2 * attempt + 1);
        const T x = FN(propose_part)(l->proposal, k, b, c, lane);
        if (x == x) return x;
    }
    return FN(truncation_last)(k);
}

static T random_number(const lottery *l, int64_t i)
{
    const philox_block b = drawn(l, i / PHILOX_EACH, 0);
    const int lane = (int)(i % PHILOX_EACH);
    if (l->law == LAW_UNIFORM) return FN(uniform)(FN(part)(b, lane), (T)l->number[0], (T)l->number[1], (T)l->number[2]);
    if (l->law == LAW_TRUNCATED_NORMAL) return random_truncated(l, i);
    const TYPED(pair) z = FN(box_muller)(FN(part)(b, lane & ~1), FN(part)(b, lane | 1));
    return FMA(lane & 1 ? z.lo : z.hi, (T)l->number[1], (T)l->number[0]);
}

static void put_whole(const job *j, int64_t i, int64_t x)
{
    const layout *out = &j->s.out[0].at;
    int64_t index[DUET_RANK_MAX];
    unravel(out, i, index);
    if (out->type == DUET_I64) ((int64_t *)j->out[0])[place(out, index)] = x;
    else ((T *)j->out[0])[place(out, index)] = (T)x;
}

typedef struct sorted {
    uint64_t key;
    int64_t index;
} sorted;

static int by_key(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void run_permutation(const job *j, const lottery *l, int64_t n)
{
    sorted *x = fake_alloc(sizeof *x * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++) x[i] = (sorted){ philox_sort_key(l, (uint64_t)i), i };
    qsort(x, (size_t)n, sizeof *x, by_key);
    for (int64_t i = 0; i < n; i++) put_whole(j, i, x[i].index);
    fake_free(x);
}

static void run_random(const job *j)
{
    const int64_t n = layout_count(&j->s.out[0].at);
    const frame f = { .num = j->num };
    step s = j->s;
    for (int k = 0; k < s.nums; k++) s.num[k] = (uint16_t)k; /* the job's numbers are in order */
    const lottery l = lottery_of(&s, &f);
    if (l.law == LAW_PERMUTATION) return run_permutation(j, &l, n);
    for (int64_t i = 0; i < n; i++)
        if (l.law == LAW_BERNOULLI) put_whole(j, i, philox_coin(&l, (uint64_t)i));
        else if (l.law == LAW_INTEGERS) put_whole(j, i, philox_integer(&l, (uint64_t)i));
        else *element(j->out[0], &j->s.out[0].at, i) = random_number(&l, i);
}

void TYPED(fake_run)(const job *j)
{
    int k = j->s.kernel;
    if (k == KERNEL_RANDOM) run_random(j);
    else if (k == KERNEL_PROGRAM) j->p.folds ? run_folds(j) : run_program(j);
    else if (k > KERNEL_PROGRAM) run_fused(j);
    else if (k == OP_softmax || k == OP_log_softmax) run_softmax(j);
    else if (k == OP_matmul) run_product(j);
    else if (k == OP_conv2d) run_conv(j);
    else if (is_pool_grad(k) || k == OP_upsample2d) run_pool_back(j);
    else run_pool(j);
}
