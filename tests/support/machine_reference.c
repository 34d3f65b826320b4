/* machine_reference.c - the reference for steps. Values are double; each exact operation is rounded
 * to the element type at once. machine_maps.c has element-wise operators, machine_integers.c
 * integer programs. */
#include "machine_reference.h"
#include "element.h"
#include "layer_norm.h"
#include "machine_rounding.h"
#include "reduce_order.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

void unravel(const layout *l, int64_t n, int64_t *index)
{
    for (int a = l->rank; a-- > 0; n /= l->size[a]) index[a] = n % l->size[a];
}

int64_t place(const layout *l, const int64_t *index)
{
    int64_t at = 0;
    for (int a = 0; a < l->rank; a++) at += index[a] * l->stride[a];
    return at;
}

long double exact_element(const frame *f, const operand *o, const int64_t *index)
{
    return element_value(o->at.type, f->data[o->slot], place(&o->at, index));
}

double element(const frame *f, const operand *o, const int64_t *index)
{
    return (double)exact_element(f, o, index);
}

bool agrees(duet_dtype t, long double got, expected e)
{
    if (isnan(e.value)) return isnan(got);
    const long double want = dtype_is_f32_or_f64(t) ? converted(DUET_F64, t, e.value) : e.value;
    if (e.allowed == 0 || !isfinite(e.value)) return got == want && !signbit(got) == !signbit(want);
    return fabsl(got - e.value) <= e.allowed;
}

/* Stores a value of type t in an output of another type, with one more rounding. */
static expected stored(duet_dtype t, duet_dtype out, expected e)
{
    if (t == out) return e;
    const long double value = converted(t, out, e.value);
    long double place = 1;
    if (out == DUET_F32 || out == DUET_F64) place = ulp_of(out, value);
    else if (is_floating(out)) place = fabsl(value) * 0x1p-7L;
    return (expected){ value, e.allowed == 0 ? 0 : e.allowed + place };
}

/* ---- programs ---- */

typedef struct state {
    double acc, slot[PROGRAM_SLOTS], out[PROGRAM_OUTPUTS];
    /* of the last instruction; exact instructions have a bound of 0 only if all before were
     * exact */
    long double allowed;
} state;

static double source_value(const step *s, const frame *f, const state *st, source from, duet_dtype t,
                           const int64_t *index)
{
    switch (from.kind) {
    case FROM_INPUT:
        return (double)converted(s->in[from.index].at.type, t, exact_element(f, &s->in[from.index], index));
    case FROM_NUMBER: return rounded(t, f->num[s->num[from.index]]);
    case FROM_SLOT: return st->slot[from.index];
    default: return st->acc;
    }
}

static void execute(const step *s, const frame *f, const instruction *i, state *st, const int64_t *index)
{
    double arg[3] = { 0 };
    for (int k = 0; k < 3 && k < op_infos[i->op].arity; k++)
        arg[k] = source_value(s, f, st, i->arg[k], i->type, index);
    if (i->op == OP_LOAD) st->acc = source_value(s, f, st, i->arg[0], i->type, index);
    else if (i->op == OP_SAVE) st->slot[i->arg[0].index] = st->acc;
    else if (i->op == OP_STORE) st->out[i->arg[0].index] = st->acc;
    else {
        expected e = reference_map(i->op, i->type, arg[0], arg[1], arg[2]);
        st->acc = rounded(i->type, (double)e.value);
        if (e.allowed != 0) st->allowed = e.allowed;
    }
}

static bool program_reference(const step *s, const frame *f, int which, expected *out)
{
    const layout *l = &s->out[which].at;
    for (int64_t n = 0; n < layout_count(l); n++) {
        int64_t index[DUET_RANK_MAX];
        state st = { .allowed = 0 };
        unravel(l, n, index);
        for (int i = 0; i < s->program->length; i++) execute(s, f, &s->program->code[i], &st, index);
        out[n] = stored(s->program->code[0].type, l->type, (expected){ st.out[which], st.allowed });
    }
    return true;
}

/* ---- reductions: the canonical tree, with every absent element written out ---- */

static double start_of(int op)
{
    if (op == OP_min) return INFINITY;
    if (op == OP_max) return -INFINITY;
    if (op == OP_prod) return 1;
    return -0.0;
}

static double take(int op, duet_dtype t, double a, double x, double y)
{
    if (op == OP_min) return lesser(a, x);
    if (op == OP_max) return -lesser(-a, -x);
    if (op == OP_norm) return fma_in(t, x, x, a);
    if (op == OP_prod) return rounded(t, a * x);
    if (op == OP_dot) return fma_in(t, x, y, a);
    return rounded(t, a + x);
}

static double join(int op, duet_dtype t, double a, double b)
{
    if (op == OP_min || op == OP_max || op == OP_prod) return take(op, t, a, b, 0);
    return rounded(t, a + b);
}

static double block_tree(int op, duet_dtype t, const double *x, const double *y, int64_t n)
{
    double lane[REDUCE_LANES];
    for (int l = 0; l < REDUCE_LANES; l++) {
        lane[l] = start_of(op);
        for (int64_t i = l; i < n; i += REDUCE_LANES) lane[l] = take(op, t, lane[l], x[i], y[i]);
    }
    for (int h = REDUCE_LANES / 2; h > 0; h /= 2)
        for (int l = 0; l < h; l++) lane[l] = join(op, t, lane[l], lane[l + h]);
    return lane[0];
}

/* Blocks first .. first + count - 1; count is a power of two. */
static double tree(int op, duet_dtype t, const double *x, const double *y, int64_t n, int64_t first,
                   int64_t count)
{
    const int64_t from = first * REDUCE_BLOCK;
    if (count == 1 && from >= n) return start_of(op);
    if (count == 1)
        return block_tree(op, t, x + from, y + from, n - from < REDUCE_BLOCK ? n - from : REDUCE_BLOCK);
    return join(op, t, tree(op, t, x, y, n, first, count / 2),
                tree(op, t, x, y, n, first + count / 2, count / 2));
}

static int64_t tree_blocks(int64_t n)
{
    int64_t count = 1;
    while (count * REDUCE_BLOCK < n) count *= 2;
    return count;
}

static double whole_tree(int op, duet_dtype t, const double *x, const double *y, int64_t n)
{
    if (n == 0) return start_of(op) + 0.0;
    return tree(op, t, x, y, n, 0, tree_blocks(n));
}

static double down_of(duet_dtype t) { return t == DUET_F32 ? 0x1p-100 : 0x1p-600; }

static double safe_norm(duet_dtype t, double *x, int64_t n)
{
    const bool f32 = t == DUET_F32;
    double s = whole_tree(OP_norm, t, x, x, n), by = 1;
    if (n > 0 && isinf(s)) by = f32 ? 0x1p-100 : 0x1p-600;
    if (n > 0 && s < (f32 ? 0x1p-100 : 0x1p-900)) by = f32 ? 0x1p100 : 0x1p600;
    if (by == 1) return rounded(t, sqrt(s));
    for (int64_t i = 0; i < n; i++) x[i] = rounded(t, x[i] * by);
    return rounded(t, rounded(t, sqrt(whole_tree(OP_norm, t, x, x, n))) / by);
}

/* The sum of blocks, all scaled down: those with a finite sum afterwards. */
static double scaled_sum(duet_dtype t, const double *x, int64_t n, int64_t first, int64_t count)
{
    const int64_t from = first * REDUCE_BLOCK, length = n - from < REDUCE_BLOCK ? n - from : REDUCE_BLOCK;
    if (from >= n) return start_of(OP_mean);
    if (count > 1)
        return rounded(t, scaled_sum(t, x, n, first, count / 2) +
                              scaled_sum(t, x, n, first + count / 2, count / 2));
    const double s = block_tree(OP_mean, t, x + from, x + from, length);
    if (isfinite(s)) return rounded(t, s * down_of(t));
    double scaled[REDUCE_BLOCK];
    for (int64_t i = 0; i < length; i++) scaled[i] = rounded(t, x[from + i] * down_of(t));
    return block_tree(OP_mean, t, scaled, scaled, length);
}

static double safe_mean(duet_dtype t, const double *x, int64_t n)
{
    const double count = rounded(t, (double)n), s = whole_tree(OP_mean, t, x, x, n);
    if (isfinite(s)) return rounded(t, s / count);
    return rounded(t, rounded(t, scaled_sum(t, x, n, 0, tree_blocks(n)) / count) / down_of(t));
}

/* ---- moments: the same tree, without nodes that have no elements ---- */

/* A lane has a sum of distances from its origin where a closed one has their mean. */
typedef struct moments {
    double n, origin, mean, squares;
} moments;

static moments take_moments(duet_dtype t, moments a, double x)
{
    if (a.n == 0) a.origin = x;
    const double d = rounded(t, x - a.origin);
    return (moments){ a.n + 1, a.origin, rounded(t, a.mean + d), fma_in(t, d, d, a.squares) };
}

static moments close_moments(duet_dtype t, moments a)
{
    if (a.n == 0) return a;
    const double mean = rounded(t, a.mean / a.n), squares = fma_in(t, -a.mean, mean, a.squares);
    return (moments){ a.n, a.origin, mean, squares < 0 ? 0 : squares };
}

static moments join_moments(duet_dtype t, moments a, moments b)
{
    if (b.n == 0) return a;
    const double n = rounded(t, a.n + b.n), share = rounded(t, b.n / n);
    const double d = rounded(t, rounded(t, b.origin - a.origin) + rounded(t, b.mean - a.mean));
    const double between = rounded(t, d * rounded(t, a.n * share));
    return (moments){ n, a.origin, fma_in(t, d, share, a.mean),
                      fma_in(t, between, d, rounded(t, a.squares + b.squares)) };
}

static moments block_moments(duet_dtype t, const double *x, int64_t n)
{
    moments lane[REDUCE_LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % REDUCE_LANES] = take_moments(t, lane[i % REDUCE_LANES], x[i]);
    for (int l = 0; l < REDUCE_LANES; l++) lane[l] = close_moments(t, lane[l]);
    for (int h = REDUCE_LANES / 2; h > 0; h /= 2)
        for (int l = 0; l < h; l++) lane[l] = join_moments(t, lane[l], lane[l + h]);
    return lane[0];
}

/* scaled: all blocks are scaled down, those with finite squares afterwards */
static moments scaled_moments(duet_dtype t, const double *x, int64_t n, bool scaled)
{
    const moments m = block_moments(t, x, n);
    const double by = down_of(t);
    if (!scaled) return m;
    if (isfinite(m.squares))
        return (moments){ m.n, rounded(t, m.origin * by), rounded(t, m.mean * by),
                          rounded(t, rounded(t, m.squares * by) * by) };
    double y[REDUCE_BLOCK];
    for (int64_t i = 0; i < n; i++) y[i] = rounded(t, x[i] * by);
    return block_moments(t, y, n);
}

static moments tree_moments(duet_dtype t, const double *x, int64_t n, bool scaled, int64_t first,
                            int64_t count)
{
    const int64_t from = first * REDUCE_BLOCK;
    if (from >= n) return (moments){ 0 };
    if (count == 1)
        return scaled_moments(t, x + from, n - from < REDUCE_BLOCK ? n - from : REDUCE_BLOCK, scaled);
    return join_moments(t, tree_moments(t, x, n, scaled, first, count / 2),
                        tree_moments(t, x, n, scaled, first + count / 2, count / 2));
}

static double variance(duet_dtype t, const double *x, int64_t n)
{
    const double count = rounded(t, (double)n), by = down_of(t),
                 s = tree_moments(t, x, n, false, 0, tree_blocks(n)).squares;
    if (isfinite(s)) return rounded(t, s / count);
    const double scaled = rounded(t, tree_moments(t, x, n, true, 0, tree_blocks(n)).squares / count);
    return rounded(t, rounded(t, scaled / by) / by);
}

/* ---- argmin and argmax ---- */

static double first_place(int op, const double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) return (double)i;
        if (op == OP_argmin ? x[i] < x[best] : x[i] > x[best]) best = i;
    }
    return (double)best;
}

static double count_zeros(const double *x, int64_t n)
{
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) zeros += x[i] == 0;
    return (double)zeros;
}

static double reduce_value(int op, duet_dtype t, double *x, const double *y, int64_t n)
{
    if (op == OP_norm) return safe_norm(t, x, n);
    if (op == OP_var) return variance(t, x, n);
    if (op == OP_any) return count_zeros(x, n) < (double)n;
    if (op == OP_all) return count_zeros(x, n) == 0;
    if (op == OP_argmin || op == OP_argmax) return first_place(op, x, n);
    if (op == OP_mean) return safe_mean(t, x, n);
    return whole_tree(op, t, x, y, n);
}

/* ---- programs with reductions ---- */

static const instruction *reduce_of(const program *p, int which)
{
    const instruction *i = p->code;
    while (op_infos[i->op].kind != KIND_REDUCE || i->arg[2].index != which) i++;
    return i;
}

/* The operands of the reduction for one element of the domain: executes the program up to that
 * instruction. */
static void taken(const step *s, const frame *f, const instruction *reduction, const int64_t *index,
                  double *x, double *y)
{
    state st = { .allowed = 0 };
    for (const instruction *i = s->program->code; i < reduction; i++)
        if (op_infos[i->op].kind != KIND_REDUCE) execute(s, f, i, &st, index);
    *x = source_value(s, f, &st, reduction->arg[0], reduction->type, index);
    if (op_infos[reduction->op].arity > 1)
        *y = source_value(s, f, &st, reduction->arg[1], reduction->type, index);
    else *y = 0;
}

static bool reduce_reference(const step *s, const frame *f, int which, expected *out)
{
    const instruction *reduction = reduce_of(s->program, which);
    const layout *l = &s->out[which].at;
    const int kept = l->rank - s->inner;
    const layout outer = axes(l, 0, kept), inner = axes(l, kept, l->rank);
    const int64_t n = layout_count(&inner);
    double *x = malloc(sizeof *x * (size_t)(n + 1)), *y = malloc(sizeof *y * (size_t)(n + 1));
    for (int64_t o = 0; x && y && o < layout_count(&outer); o++) {
        int64_t index[DUET_RANK_MAX];
        unravel(&outer, o, index);
        for (int64_t i = 0; i < n; i++) {
            unravel(&inner, i, index + kept);
            taken(s, f, reduction, index, &x[i], &y[i]);
        }
        out[o] = (expected){ reduce_value(reduction->op, reduction->type, x, y, n), 0 };
        if (!(op_infos[reduction->op].flags & OP_GIVES_INDEX))
            out[o] = stored(reduction->type, l->type, out[o]);
    }
    free(x);
    free(y);
    return true;
}

/* ---- softmax, pooling, products ---- */

static void softmax_row(const step *s, duet_dtype t, const double *x, int64_t n, expected *out)
{
    double most = -INFINITY;
    long double sum = 0, eps = roundoff(t);
    for (int64_t j = 0; j < n; j++) most = -lesser(-most, -x[j]);
    for (int64_t j = 0; j < n; j++) sum += expl((long double)x[j] - most);
    for (int64_t j = 0; j < n; j++) {
        const long double d = (long double)x[j] - most, reach = isfinite(d) ? fabsl(d) : 0;
        const long double error = eps * (reach + (long double)n + 12);
        if (s->kernel == OP_softmax)
            out[j] = (expected){ expl(d) / sum, expl(d) / sum * error + 4 * least(t) };
        else out[j] = (expected){ d - logl(sum), error + 4 * eps * fabsl(logl(sum)) };
        if (isnan(out[j].value)) out[j].allowed = 0;
    }
}

/* The n elements of the first operand from element `first` on. */
static void read_row(const step *s, const frame *f, int64_t first, int64_t n, double *x)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t index[DUET_RANK_MAX];
        unravel(&s->in[0].at, first + j, index);
        x[j] = element(f, &s->in[0], index);
    }
}

static bool softmax_reference(const step *s, const frame *f, expected *out)
{
    const layout *l = &s->in[0].at;
    const int64_t n = l->size[l->rank - 1];
    double *x = malloc(sizeof *x * (size_t)(n + 1));
    for (int64_t i = 0; x && i < layout_count(l); i += n) {
        read_row(s, f, i, n, x);
        softmax_row(s, l->type, x, n, out + i);
    }
    free(x);
    return true;
}

/* Gain or bias at an index of the domain. */
static double trim(const step *s, const frame *f, int which, const int64_t *index)
{
    const operand *o = norm_operand(s, which);
    if (o) return element(f, o, index);
    return norm_number(s, f, which);
}

/* The error of the mean is at most n roundings of its terms, and that of the variance n roundings
 * of its squares. */
static void norm_row(const step *s, const frame *f, const double *x, int64_t first, int64_t n, expected *out)
{
    const layout *l = &s->in[0].at;
    long double sum = 0, size = 0, squares = 0, eps = roundoff(l->type);
    for (int64_t j = 0; j < n; j++) {
        sum += x[j];
        size += fabsl((long double)x[j]);
    }
    const long double mean = sum / n, mean_error = eps * (n + 4) * size / n;
    for (int64_t j = 0; j < n; j++) squares += (x[j] - mean) * (x[j] - mean);
    const long double var = squares / n + f->num[s->num[0]], scale = 1 / sqrtl(var);
    const long double var_error =
        eps * (4 * n + 40) * var + 2 * mean_error * mean_error + eps * 8 * size / n * sqrtl(squares / n);
    for (int64_t j = 0; j < n; j++) {
        int64_t index[DUET_RANK_MAX];
        unravel(l, first + j, index);
        const bool trims = s->attr.layer_norm.source[NORM_GAIN];
        const long double u = (x[j] - mean) * scale, gain = trims ? trim(s, f, NORM_GAIN, index) : 1;
        const long double bias = trims ? trim(s, f, NORM_BIAS, index) : 0, value = u * gain + bias;
        const long double error =
            (mean_error + eps * fabsl(x[j] - mean)) * scale + fabsl(u) * (var_error / var + 8 * eps);
        out[j] = (expected){ value,
                             error * fabsl(gain) + eps * (fabsl(value) + fabsl(u * gain)) + least(l->type) };
        if (isnan(out[j].value)) out[j].allowed = 0;
    }
}

static bool norm_reference(const step *s, const frame *f, expected *out)
{
    const layout *l = &s->in[0].at;
    const int64_t n = norm_length(s);
    double *x = malloc(sizeof *x * (size_t)(n + 1));
    for (int64_t i = 0; x && i < layout_count(l); i += n) {
        read_row(s, f, i, n, x);
        norm_row(s, f, x, i, n, out + i);
    }
    free(x);
    return true;
}

static bool pool_reference(const step *s, const frame *f, expected *out)
{
    const bool most = s->kernel == OP_max_pool2d;
    const layout *in = &s->in[0].at;
    const pool_attributes *p = &s->attr.pool;
    for (int64_t n = 0; n < layout_count(&s->out[0].at); n++) {
        int64_t o[4], i[4];
        double a = most ? -INFINITY : 0;
        unravel(&s->out[0].at, n, o);
        i[0] = o[0];
        i[1] = o[1];
        for (int u = 0; u < p->window[0]; u++)
            for (int v = 0; v < p->window[1]; v++) {
                i[2] = o[2] * p->stride[0] - p->pad[0] + u;
                i[3] = o[3] * p->stride[1] - p->pad[1] + v;
                if (i[2] < 0 || i[2] >= in->size[2] || i[3] < 0 || i[3] >= in->size[3]) continue;
                const double x = element(f, &s->in[0], i);
                if (most) a = -lesser(-a, -x);
                else a = rounded(in->type, a + x);
            }
        out[n] = (expected){ most ? a : rounded(in->type, a / (p->window[0] * p->window[1])), 0 };
    }
    return true;
}

/* A sum of n products and its error bound: n roundings of the absolute values. */
typedef struct sum {
    long double value, size;
    int64_t n;
} sum;

static void add_product(sum *a, double x, double y)
{
    a->value += (long double)x * y;
    a->size += fabsl((long double)x * y);
    a->n++;
}

static expected bounded(duet_dtype t, sum a)
{
    return (expected){ a.value, (2 * a.n + 6) * roundoff(t) * a.size + least(t) };
}

static bool matmul_reference(const step *s, const frame *f, expected *out)
{
    const duet_dtype t = s->out[0].at.type;
    const double alpha = s->nums > 0 ? rounded(t, f->num[s->num[0]]) : 1,
                 beta = s->nums > 1 ? rounded(t, f->num[s->num[1]]) : 1;
    for (int64_t i = 0; i < layout_count(&s->out[0].at); i++) {
        int64_t at[2];
        sum a = { 0 };
        unravel(&s->out[0].at, i, at);
        for (int64_t k = 0; k < s->in[0].at.size[1]; k++)
            add_product(&a, element(f, &s->in[0], (int64_t[]){ at[0], k }),
                        element(f, &s->in[1], (int64_t[]){ k, at[1] }));
        a.value *= alpha;
        a.size *= fabs(alpha);
        if (s->ins > 2) add_product(&a, beta, element(f, &s->in[2], at));
        out[i] = bounded(t, a);
        if (!isfinite(out[i].value)) out[i].allowed = 0;
    }
    return true;
}

static bool conv_reference(const step *s, const frame *f, expected *out)
{
    const int64_t *x = s->in[0].at.size, *w = s->in[1].at.size;
    const conv_attributes *conv = &s->attr.conv;
    for (int64_t i = 0; i < layout_count(&s->out[0].at); i++) {
        int64_t o[4];
        sum a = { 0 };
        unravel(&s->out[0].at, i, o);
        const int64_t first = o[1] / (w[0] / conv->groups) * w[1]; /* channel in the group */
        for (int64_t k = 0; k < w[1] * w[2] * w[3]; k++) {
            const int64_t c = k / (w[2] * w[3]), u = k / w[3] % w[2], v = k % w[3];
            const int64_t p = o[2] * conv->stride[0] - conv->pad[0] + u * conv->dilation[0],
                          q = o[3] * conv->stride[1] - conv->pad[1] + v * conv->dilation[1];
            if (p < 0 || p >= x[2] || q < 0 || q >= x[3]) continue;
            const int64_t at[4] = { o[1], c, conv->flip ? w[2] - 1 - u : u, conv->flip ? w[3] - 1 - v : v };
            add_product(&a, element(f, &s->in[0], (int64_t[]){ o[0], first + c, p, q }),
                        element(f, &s->in[1], at));
        }
        out[i] = bounded(s->out[0].at.type, a);
    }
    return true;
}

/* Gradients of a convolution: each product of the convolution contributes to an element of the
 * third operand. */
static bool conv_back_reference(const step *s, const frame *f, expected *out)
{
    const conv_operands o = conv_operands_of(s);
    const int64_t *x = o.x->at.size, *w = o.w->at.size, count = layout_count(&s->out[0].at);
    const conv_attributes *a = &s->attr.conv;
    const bool images = s->kernel == OP_conv2d_input_grad;
    sum *sums = calloc((size_t)count + 1, sizeof *sums);
    for (int64_t i = 0; i < layout_count(&o.y->at); i++)
        for (int64_t k = 0; k < w[1] * w[2] * w[3]; k++) {
            int64_t y[4];
            unravel(&o.y->at, i, y);
            const int64_t c = k / (w[2] * w[3]), u = k / w[3] % w[2], v = k % w[3];
            const int64_t at_w[4] = { y[1], c, u, v };
            const int64_t at_x[4] = { y[0], y[1] / (w[0] / a->groups) * w[1] + c,
                                      y[2] * a->stride[0] - a->pad[0] + u * a->dilation[0],
                                      y[3] * a->stride[1] - a->pad[1] + v * a->dilation[1] };
            if (at_x[2] < 0 || at_x[2] >= x[2] || at_x[3] < 0 || at_x[3] >= x[3]) continue;
            const int64_t to = images ? ((at_x[0] * x[1] + at_x[1]) * x[2] + at_x[2]) * x[3] + at_x[3]
                                      : y[1] * w[1] * w[2] * w[3] + k;
            add_product(&sums[to], element(f, o.y, y),
                        images ? element(f, o.w, at_w) : element(f, o.x, at_x));
        }
    for (int64_t i = 0; i < count; i++) out[i] = bounded(s->out[0].at.type, sums[i]);
    free(sums);
    return true;
}

bool reference(const step *s, const frame *f, int which, expected *out)
{
    if (s->epilogue) return finished_reference(s, f, out);
    if (s->kernel == KERNEL_PROGRAM && !is_floating(s->program->code[0].type))
        return integers_reference(s, f, which, out);
    if (s->kernel == KERNEL_PROGRAM)
        return s->program->reductions ? reduce_reference(s, f, which, out)
                                      : program_reference(s, f, which, out);
    if (s->kernel == KERNEL_LAYER_NORM) return norm_reference(s, f, out);
    switch (s->kernel) {
    case OP_matmul: return matmul_reference(s, f, out);
    case OP_conv2d: return conv_reference(s, f, out);
    case OP_conv2d_input_grad:
    case OP_conv2d_filter_grad: return conv_back_reference(s, f, out);
    case OP_softmax:
    case OP_log_softmax: return softmax_reference(s, f, out);
    case OP_max_pool2d:
    case OP_avg_pool2d: return pool_reference(s, f, out);
    default: return false;
    }
}
