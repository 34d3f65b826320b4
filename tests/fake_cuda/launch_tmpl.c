/* launch_tmpl.c - the fake kernels for one element type except programs, from the rows and
 * reduce_order.h, one element after the other. */
#include "dtype.h"
#include "fake.h"
#include "layer_norm.h"
#include "philox.h"
#include "reduce_order.h"
#include "scalar_ops.h"
#include <stdlib.h>

void FN(fake_reduce)(void *out, int op, const T (*pair)[2], int64_t n); /* program_tmpl.c */
void FN(fake_program)(const job *j);

/* ---- offsets of elements ---- */

static int64_t place(const layout *l, const int64_t *index)
{
    int64_t at = 0;
    for (int axis = 0; axis < l->rank; axis++) at += index[axis] * l->stride[axis];
    return at;
}

/* Computes the index of element i in row-major order. */
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

/* ---- softmax ---- */

static T reduce_row(int op, const T *x, int64_t n, T (*pair)[2])
{
    union {
        T value;
        int64_t index;
    } out;
    for (int64_t i = 0; i < n; i++) {
        pair[i][0] = x[i];
        pair[i][1] = K(0);
    }
    FN(fake_reduce)(&out, op, (const T(*)[2])pair, n);
    return out.value;
}

static void soften(int kernel, T *t, int64_t n)
{
    T(*pair)[2] = fake_alloc(sizeof *pair * (size_t)n), *e = fake_alloc(sizeof *e * (size_t)n);
    const T m = reduce_row(OP_max, t, n, pair);
    for (int64_t i = 0; i < n; i++) {
        t[i] = t[i] - m;
        e[i] = FN(exp)(t[i]);
    }
    const T s = reduce_row(OP_sum, e, n, pair);
    for (int64_t i = 0; i < n; i++) t[i] = kernel == OP_softmax ? e[i] / s : t[i] - FN(log)(s);
    fake_free(pair);
    fake_free(e);
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

/* ---- layer_norm ---- */

static T trim(const job *j, int which, int64_t i)
{
    const operand *o = norm_operand(&j->s, which);
    step s = j->s;
    for (int k = 0; k < s.nums; k++) s.num[k] = (uint32_t)k; /* the numbers of the job are in order */
    const frame f = { .num = j->num };
    if (o) return *element(j->in[o - j->s.in], &o->at, i);
    return (T)norm_number(&s, &f, which);
}

static void norm_row(const job *j, T *x, int64_t first, int64_t n)
{
    T(*pair)[2] = fake_alloc(sizeof *pair * (size_t)n);
    const T mean = reduce_row(OP_mean, x, n, pair),
            scale = FN(rsqrt)(reduce_row(OP_var, x, n, pair) + (T)j->num[0]);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (x[i] - mean) * scale;
        if (j->s.attr.layer_norm.source[NORM_GAIN])
            x[i] = FMA(x[i], trim(j, NORM_GAIN, first + i), trim(j, NORM_BIAS, first + i));
    }
    fake_free(pair);
}

static void run_norm(const job *j)
{
    const layout *in = &j->s.in[0].at, *out = &j->s.out[0].at;
    int64_t n = norm_length(&j->s), all = layout_count(in);
    T *t = fake_alloc(sizeof *t * (size_t)(n + 1));
    for (int64_t first = 0; first < all; first += n) {
        for (int64_t i = 0; i < n; i++) t[i] = *element(j->in[0], in, first + i);
        norm_row(j, t, first, n);
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

/* The sum, or in DUET_MATH_SPLIT the sum of three sums of parts; low parts are stored 2^11 times as
 * large. */
static T whole_sum(const job *j, T (*sum)(const job *j, const int64_t *out), const int64_t *out)
{
    if (!j->part[0]) return sum(j, out);
    const T low = sum(j->part[1], out) + sum(j->part[2], out);
    return (T)((double)(sum(j->part[0], out) + low / K(2048)) * j->unscale);
}

static T product_at(const job *j, int64_t row, int64_t column)
{
    const T sum = whole_sum(j, product_sum, (int64_t[]){ row, column });
    if (j->s.nums) return (T)j->num[0] * sum;
    return sum;
}

static void run_product(const job *j)
{
    const layout *out = &j->s.out[0].at;
    const int64_t n = out->size[1];
    const int act = epilogue_infos[j->s.epilogue].act;
    T *t = fake_alloc(sizeof *t * (size_t)(n + 1));
    for (int64_t row = 0; row < out->size[0]; row++) {
        for (int64_t i = 0; i < n; i++) {
            t[i] = product_at(j, row, i);
            if (j->s.epilogue) t[i] = finished(t[i] + *element(j->in[2], &j->s.in[2].at, i), act);
        }
        if (j->s.epilogue && act == OP_softmax) soften(OP_softmax, t, n);
        for (int64_t i = 0; i < n; i++) *element(j->out[0], out, row * n + i) = t[i];
    }
    fake_free(t);
}

/* ---- pooling ---- */

static T pool_window(const job *j, const int64_t *out)
{
    const layout *in = &j->s.in[0].at;
    const pool_attributes *pool = &j->s.attr.pool;
    const int32_t *window = pool->window, *stride = pool->stride, *pad = pool->pad;
    bool most = j->s.kernel == OP_max_pool2d;
    T a = most ? -INF : K(0);
    for (int64_t u = 0; u < window[0]; u++)
        for (int64_t v = 0; v < window[1]; v++) {
            int64_t at[4] = { out[0], out[1], out[2] * stride[0] - pad[0] + u,
                              out[3] * stride[1] - pad[1] + v };
            if (at[2] < 0 || at[2] >= in->size[2] || at[3] < 0 || at[3] >= in->size[3]) continue;
            T x = ((const T *)j->in[0])[place(in, at)];
            if (most) a = MAXIMUM(a, x);
            else a = a + x;
        }
    if (most) return a;
    return a / (T)((int64_t)window[0] * window[1]);
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

/* ---- gradients of pooling, and upsampling: every element of the image visits every window ---- */

static const T *image_at(const job *j, const int64_t *n_c, int64_t i, int64_t k)
{
    return (const T *)j->in[0] + place(&j->s.in[0].at, (int64_t[]){ n_c[0], n_c[1], i, k });
}

/* Is `out` the position of the first NaN of the window at (top, left) or, if there is none, of its
 * first maximum? */
static bool is_first(const job *j, const int64_t *out, int64_t top, int64_t left)
{
    const int64_t *size = j->s.in[0].at.size;
    int64_t best[2] = { -1, -1 };
    const int32_t *window = j->s.attr.pool.window;
    for (int64_t u = 0; u < window[0] * (int64_t)window[1]; u++) {
        const int64_t at[2] = { top + u / window[1], left + u % window[1] };
        if (at[0] < 0 || at[1] < 0 || at[0] >= size[2] || at[1] >= size[3]) continue;
        const T x = *image_at(j, out, at[0], at[1]);
        const T most = best[0] < 0 ? -INF : *image_at(j, out, best[0], best[1]);
        if (best[0] < 0 || x > most || (x != x && most == most)) {
            best[0] = at[0];
            best[1] = at[1];
        }
    }
    return best[0] == out[2] && best[1] == out[3];
}

static T back_at(const job *j, const int64_t *out)
{
    const operand *grad = &j->s.in[j->s.ins - 1];
    const pool_attributes *pool = &j->s.attr.pool;
    const int32_t *window = pool->window, *stride = pool->stride, *pad = pool->pad;
    T sum = K(0);
    for (int64_t p = 0; p < grad->at.size[2]; p++)
        for (int64_t q = 0; q < grad->at.size[3]; q++) {
            const int64_t top = p * stride[0] - pad[0], left = q * stride[1] - pad[1];
            const bool has =
                out[2] >= top && out[2] < top + window[0] && out[3] >= left && out[3] < left + window[1];
            if (!has || (j->s.ins == 2 && !is_first(j, out, top, left))) continue;
            sum =
                sum + ((const T *)j->in[j->s.ins - 1])[place(&grad->at, (int64_t[]){ out[0], out[1], p, q })];
        }
    if (j->s.ins == 2) return sum;
    return sum / (T)((int64_t)window[0] * window[1]);
}

static void run_pool_grad(const job *j)
{
    const layout *out = &j->s.out[0].at;
    int64_t at[DUET_RANK_MAX], n = layout_count(out);
    for (int64_t i = 0; i < n; i++) {
        unravel(out, i, at);
        const bool up = j->s.kernel == OP_upsample2d;
        const int32_t *scale = j->s.attr.pool.window;
        ((T *)j->out[0])[place(out, at)] =
            up ? *image_at(j, at, at[2] / scale[0], at[3] / scale[1]) : back_at(j, at);
    }
}

/* ---- convolutions by definition, with epilogues ---- */

static T conv_sum(const job *j, const int64_t *out)
{
    const layout *in = &j->s.in[0].at, *filters = &j->s.in[1].at;
    const int32_t *stride = j->s.attr.conv.stride, *pad = j->s.attr.conv.pad;
    T sum = K(0);
    for (int64_t k = 0; k < in->size[1] * filters->size[2] * filters->size[3]; k++) {
        int64_t from[4];
        unravel(filters, k, from);
        from[0] = out[1];
        const int64_t at[4] = { out[0], from[1], out[2] * stride[0] - pad[0] + from[2],
                                out[3] * stride[1] - pad[1] + from[3] };
        const bool inside = at[2] >= 0 && at[2] < in->size[2] && at[3] >= 0 && at[3] < in->size[3];
        const T x = inside ? ((const T *)j->in[0])[place(in, at)] : K(0);
        sum = FMA(((const T *)j->in[1])[place(filters, from)], x, sum);
    }
    return sum;
}

static T conv_finished(const job *j, const int64_t *out)
{
    T y = whole_sum(j, conv_sum, out);
    if (j->s.epilogue) y = y + *element(j->in[2], &j->s.in[2].at, out[1]);
    if (epilogue_infos[j->s.epilogue].act == OP_relu) return MAP(relu, y);
    return y;
}

static T conv_pooled(const job *j, const int64_t *out)
{
    const int32_t *window = j->s.attr.conv.pool.window, *stride = j->s.attr.conv.pool.stride;
    T most = -INF;
    for (int64_t u = 0; u < window[0]; u++)
        for (int64_t v = 0; v < window[1]; v++)
            most = MAXIMUM(most, conv_finished(j, (int64_t[]){ out[0], out[1], out[2] * stride[0] + u,
                                                               out[3] * stride[1] + v }));
    return most;
}

static void run_conv(const job *j)
{
    const layout *out = &j->s.out[0].at;
    const bool pooled = epilogue_infos[j->s.epilogue].pooled;
    int64_t index[DUET_RANK_MAX], n = layout_count(out);
    for (int64_t i = 0; i < n; i++) {
        unravel(out, i, index);
        ((T *)j->out[0])[place(out, index)] = pooled ? conv_pooled(j, index) : conv_finished(j, index);
    }
}

/* ---- gradients of convolutions with stride 1: padding is zeros of the gradient, or of the images
 * ---- */

static T at_or_zero(const void *p, const layout *l, const int64_t *at)
{
    const bool inside = at[2] >= 0 && at[2] < l->size[2] && at[3] >= 0 && at[3] < l->size[3];
    if (inside) return ((const T *)p)[place(l, at)];
    return K(0);
}

static T images_sum(const job *j, const int64_t *out)
{
    const layout *dy = &j->s.in[0].at, *filters = &j->s.in[1].at;
    const int32_t *pad = j->s.attr.conv.pad;
    T sum = K(0);
    for (int64_t k = 0; k < filters->size[0] * filters->size[2] * filters->size[3]; k++) {
        const int64_t v = k % filters->size[3], u = k / filters->size[3] % filters->size[2],
                      m = k / filters->size[3] / filters->size[2];
        const T x =
            at_or_zero(j->in[0], dy, (int64_t[]){ out[0], m, out[2] + pad[0] - u, out[3] + pad[1] - v });
        sum = FMA(((const T *)j->in[1])[place(filters, (int64_t[]){ m, out[1], u, v })], x, sum);
    }
    return sum;
}

static T filters_sum(const job *j, const int64_t *out)
{
    const layout *x = &j->s.in[0].at, *dy = &j->s.in[1].at;
    const int32_t *pad = j->s.attr.conv.pad;
    T sum = K(0);
    for (int64_t k = 0; k < dy->size[0] * dy->size[2] * dy->size[3]; k++) {
        const int64_t v = k % dy->size[3], u = k / dy->size[3] % dy->size[2],
                      n = k / dy->size[3] / dy->size[2];
        const T e =
            at_or_zero(j->in[0], x, (int64_t[]){ n, out[1], u + out[2] - pad[0], v + out[3] - pad[1] });
        sum = FMA(((const T *)j->in[1])[place(dy, (int64_t[]){ n, out[0], u, v })], e, sum);
    }
    return sum;
}

static void run_conv_back(const job *j)
{
    const layout *out = &j->s.out[0].at;
    int64_t index[DUET_RANK_MAX], n = layout_count(out);
    for (int64_t i = 0; i < n; i++) {
        unravel(out, i, index);
        ((T *)j->out[0])[place(out, index)] =
            (j->s.kernel == OP_conv2d_input_grad ? images_sum : filters_sum)(j, index);
    }
}

/* ---- random numbers, one after the other ---- */

static philox_block drawn(const random_params *l, int64_t block, uint32_t stream)
{
    return philox_drawn(l, (uint32_t)l->distribution, (uint32_t)block, (uint32_t)(block >> 32), stream);
}

static T random_truncated(const random_params *l, int64_t i)
{
    const truncation k = FN(truncation_of)(l);
    const int lane = (int)(i % PHILOX_EACH);
    for (uint32_t attempt = 0; attempt < RANDOM_ATTEMPTS; attempt++) {
        const philox_block b = drawn(l, i / PHILOX_EACH, 2 * attempt),
                           c = drawn(l, i / PHILOX_EACH, 2 * attempt + 1);
        const T x = FN(propose_part)(l->proposal, k, b, c, lane);
        if (x == x) return x;
    }
    return FN(truncation_last)(k);
}

static T random_number(const random_params *l, int64_t i)
{
    const philox_block b = drawn(l, i / PHILOX_EACH, 0);
    const int lane = (int)(i % PHILOX_EACH);
    if (l->distribution == DISTRIBUTION_UNIFORM)
        return FN(uniform)(FN(part)(b, lane), (T)l->number[0], (T)l->number[1], (T)l->number[2]);
    if (l->distribution == DISTRIBUTION_TRUNCATED_NORMAL) return random_truncated(l, i);
    const TYPED(pair) z = FN(box_muller)(FN(part)(b, lane & ~1), FN(part)(b, lane | 1));
    return FMA(lane & 1 ? z.lo : z.hi, (T)l->number[1], (T)l->number[0]);
}

static void put_integer(const job *j, int64_t i, int64_t x)
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
    if (x->index < y->index) return -1;
    return x->index > y->index;
}

static void run_permutation(const job *j, const random_params *l, int64_t n)
{
    sorted *x = fake_alloc(sizeof *x * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++) x[i] = (sorted){ philox_sort_key(l, (uint64_t)i), i };
    qsort(x, (size_t)n, sizeof *x, by_key);
    for (int64_t i = 0; i < n; i++) put_integer(j, i, x[i].index);
    fake_free(x);
}

static void run_random(const job *j)
{
    const int64_t n = layout_count(&j->s.out[0].at);
    const frame f = { .num = j->num };
    step s = j->s;
    for (int k = 0; k < s.nums; k++) s.num[k] = (uint16_t)k; /* the numbers of the job are in order */
    s.ins = 0;                                               /* the frame has no operands */
    random_params l = random_params_of(&s, &f);
    l.table = j->s.ins ? (const uint64_t *)j->in[0] : NULL;
    if (l.distribution == DISTRIBUTION_PERMUTATION) return run_permutation(j, &l, n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = l.run ? l.first + i / l.run * l.apart + i % l.run : i;
        if (l.distribution == DISTRIBUTION_BERNOULLI) put_integer(j, i, philox_coin(&l, (uint64_t)k));
        else if (l.distribution == DISTRIBUTION_INTEGERS) put_integer(j, i, philox_integer(&l, (uint64_t)k));
        else if (l.distribution == DISTRIBUTION_SOBOL)
            *element(j->out[0], &j->s.out[0].at, i) = FN(sobol)(&l, (uint64_t)k);
        else *element(j->out[0], &j->s.out[0].at, i) = random_number(&l, k);
    }
}

void TYPED(fake_run)(const job *j)
{
    int k = j->s.kernel;
    if (k == KERNEL_RANDOM) run_random(j);
    else if (k == KERNEL_PROGRAM) FN(fake_program)(j);
    else if (k == KERNEL_LAYER_NORM) run_norm(j);
    else if (k == OP_softmax || k == OP_log_softmax) run_softmax(j);
    else if (k == OP_matmul) run_product(j);
    else if (k == OP_conv2d) run_conv(j);
    else if (is_conv_grad(k)) run_conv_back(j);
    else if (k == OP_max_pool2d || k == OP_avg_pool2d) run_pool(j);
    else run_pool_grad(j);
}
