/* test_grad.c - gradients: against finite differences of the definitions in quadruple precision;
 * max_pool2d against a simple loop; and every row of networks.def against the oracle on every
 * machine. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include <math.h>

static rng gen;
static duet_place place[2];
static int places;

/* ---- finite differences -------------------------------------------------------------------------------- */

/* A function of x, y, z, and its gradient with respect to one of them, given the gradient d of its
 * result. */
#define PAIRS                                                                                                \
    PAIR(conv2d_images, 0, SIZES(2, 4, 5, 6), SIZES(6, 2, 3, 2), SIZES(), duet_conv2d(x, y, CONV),           \
         duet_conv2d_input_grad(d, y, CONV, .size = { 5, 6 }))                                               \
    PAIR(conv2d_filters, 1, SIZES(2, 4, 5, 6), SIZES(6, 2, 3, 2), SIZES(), duet_conv2d(x, y, CONV),          \
         duet_conv2d_filter_grad(x, d, CONV, .size = { 3, 2 }))                                              \
    PAIR(conv2d_depthwise, 1, SIZES(2, 3, 6, 5), SIZES(3, 1, 3, 3), SIZES(), duet_conv2d(x, y, .groups = 3), \
         duet_conv2d_filter_grad(x, d, .groups = 3))                                                         \
    PAIR(conv_transpose2d, 0, SIZES(2, 4, 3, 4), SIZES(4, 2, 3, 3), SIZES(),                                 \
         duet_conv_transpose2d(x, y, .stride = { 2, 2 }, .output_pad = { 1, 0 }),                            \
         duet_conv2d(d, y, .stride = { 2, 2 }))                                                              \
    PAIR(avg_pool2d, 0, SIZES(2, 2, 6, 7), SIZES(), SIZES(), duet_avg_pool2d(x, POOL),                       \
         duet_avg_pool2d_grad(d, POOL, .size = { 6, 7 }))                                                    \
    PAIR(upsample2d, 0, SIZES(2, 2, 2, 3), SIZES(), SIZES(), duet_upsample2d(x, 2, 3),                       \
         duet_mul(6, duet_avg_pool2d(d, .window = { 2, 3 })))                                                \
    PAIR(softmax, 0, SIZES(3, 5), SIZES(), SIZES(), duet_softmax(x), duet_softmax_grad(duet_softmax(x), d))  \
    PAIR(log_softmax, 0, SIZES(3, 5), SIZES(), SIZES(), duet_log_softmax(x),                                 \
         duet_log_softmax_grad(duet_log_softmax(x), d))                                                      \
    PAIR(mse, 0, SIZES(3, 5), SIZES(3, 5), SIZES(), duet_mse(x, y), duet_mul(d, duet_mse_grad(x, y)))        \
    PAIR(binary_cross_entropy, 0, SIZES(3, 5), SIZES(3, 5), SIZES(), duet_binary_cross_entropy(x, y),        \
         duet_mul(d, duet_binary_cross_entropy_grad(x, y)))                                                  \
    PAIR(binary_cross_entropy_logits, 0, SIZES(3, 5), SIZES(3, 5), SIZES(),                                  \
         duet_binary_cross_entropy_logits(x, y), duet_mul(d, duet_binary_cross_entropy_logits_grad(x, y)))   \
    PAIR(cross_entropy, 0, SIZES(3, 5), SIZES(3, 5), SIZES(), duet_cross_entropy(x, y),                      \
         duet_mul(d, duet_cross_entropy_grad(x, y)))                                                         \
    PAIR(cross_entropy_logits, 0, SIZES(2, 3, 5), SIZES(2, 3, 5), SIZES(), duet_cross_entropy_logits(x, y),  \
         duet_mul(d, duet_cross_entropy_logits_grad(x, y)))                                                  \
    PAIR(bias_batch_sum, 1, SIZES(2, 3, 4, 2), SIZES(3), SIZES(), duet_bias_add(x, y),                       \
         duet_bias_batch_sum(d))                                                                             \
    PAIR(batch_norm, 0, SIZES(3, 2, 4, 5), SIZES(2, 1, 1), SIZES(2, 1, 1), duet_batch_norm(x, y, z, 1e-3),   \
         duet_batch_norm_grad(x, y, d, 1e-3))                                                                \
    PAIR(batch_norm_2d, 0, SIZES(7, 3), SIZES(3), SIZES(3), duet_batch_norm(x, y, z, 1e-3),                  \
         duet_batch_norm_grad(x, y, d, 1e-3))                                                                \
    PAIR(batch_norm_scale, 1, SIZES(3, 2, 4, 5), SIZES(2, 1, 1), SIZES(2, 1, 1),                             \
         duet_batch_norm(x, y, z, 1e-3), duet_batch_norm_scale_grad(x, d, 1e-3))                             \
    PAIR(layer_norm, 0, SIZES(4, 6), SIZES(6), SIZES(6), duet_layer_norm(x, y, z, 1e-3),                     \
         duet_layer_norm_grad(x, y, d, 1e-3))                                                                \
    PAIR(layer_norm_scale, 1, SIZES(2, 3, 6), SIZES(6), SIZES(6), duet_layer_norm(x, y, z, 1e-3),            \
         duet_layer_norm_scale_grad(x, d, 1e-3))                                                             \
    PAIR(instance_norm, 0, SIZES(2, 3, 4, 3), SIZES(3, 1, 1), SIZES(3, 1, 1),                                \
         duet_instance_norm(x, y, z, 1e-3), duet_instance_norm_grad(x, y, d, 1e-3))                          \
    PAIR(group_norm, 0, SIZES(2, 2, 3, 2, 3), SIZES(2, 3, 1, 1), SIZES(2, 3, 1, 1),                          \
         duet_instance_norm(x, y, z, 1e-3), duet_instance_norm_grad(x, y, d, 1e-3))                          \
    PAIR(dropout, 0, SIZES(3, 5), SIZES(3, 5), SIZES(),                                                      \
         duet_dropout_inverted(x, duet_greater(y, 0.5), 0.25),                                               \
         duet_dropout_inverted(d, duet_greater(y, 0.5), 0.25))
#define CONV .stride = { 2, 1 }, .pad = { 1, 2 }, .dilation = { 1, 2 }, .groups = 2
#define POOL .window = { 3, 2 }, .stride = { 2, 1 }, .pad = { 1, 1 }

typedef duet_expr function(duet_matrix *x, duet_matrix *y, duet_matrix *z, duet_matrix *d);
#define PAIR(name, by, x_size, y_size, z_size, value, gradient)                                              \
    static duet_expr value_##name(duet_matrix *x, duet_matrix *y, duet_matrix *z, duet_matrix *d)            \
    {                                                                                                        \
        return value;                                                                                        \
    }                                                                                                        \
    static duet_expr gradient_##name(duet_matrix *x, duet_matrix *y, duet_matrix *z, duet_matrix *d)         \
    {                                                                                                        \
        return gradient;                                                                                     \
    }
PAIRS
#undef PAIR

static const struct pair {
    const char *name;
    int by;
    sizes size[3];
    function *value, *gradient;
} pairs[] = {
#define PAIR(name, by, x_size, y_size, z_size, value, gradient)                                              \
    { #name, by, { x_size, y_size, z_size }, value_##name, gradient_##name },
    PAIRS
};

/* Numbers to which a power of two can be added exactly. */
static void fill_exactly(duet_matrix *m)
{
    double *v = duet_overwrite(m);
    for (int64_t i = 0; i < duet_count(m); i++) v[i] = round(rng_real(&gen, 0.05, 0.95) * 0x1p20) * 0x1p-20;
}

static duet_matrix *exact_matrix(const sizes *s)
{
    duet_matrix *m = duet_new_shape(DUET_F64, s->rank, s->size);
    fill_exactly(m);
    return m;
}

/* sum(d * value); *size receives the sum of absolute values. */
static quad total(const struct pair *p, duet_matrix *const m[3], duet_matrix *d, quad *size)
{
    duet_expr e = duet_mul(d, p->value(m[0], m[1], m[2], d));
    table t = oracle(e, DUET_F64);
    quad sum = 0;
    *size = 1;
    for (int64_t i = 0; i < t.count; i++) {
        sum += t.at[i].v;
        if (t.at[i].v < 0) *size += -t.at[i].v;
        else *size += t.at[i].v;
    }
    forget(e);
    table_free(&t);
    return sum;
}

/* The derivative with respect to element i of the operand, by steps of h in both directions. */
static quad slope(const struct pair *p, duet_matrix *const m[3], duet_matrix *d, int64_t i, double h,
                  quad *size)
{
    double *v = duet_update(m[p->by]), was = v[i];
    v[i] = was + h;
    const quad up = total(p, m, d, size);
    v = duet_update(m[p->by]);
    v[i] = was - h;
    const quad down = total(p, m, d, size);
    v = duet_update(m[p->by]);
    v[i] = was;
    return (up - down) / (2 * (quad)h);
}

/* The error with a step of h is at most a third of the difference from the result with 2 h, apart
 * from fourth-order terms; the whole difference is allowed. Also allowed are ten thousand roundings
 * in quadruple precision, and the rounding of numbers in a formula to double, such as 1 / count. */
static void test_pair(const struct pair *p)
{
    duet_matrix *m[3];
    for (int k = 0; k < 3; k++) m[k] = exact_matrix(&p->size[k]);
    duet_expr value = p->value(m[0], m[1], m[2], m[0]);
    const sizes s = sizes_of_expr(value);
    CHECK(duet_expr_status(value) == DUET_OK, "%s: %s", p->name, duet_error());
    forget(value);
    duet_matrix *d = exact_matrix(&s);
    duet_expr e = p->gradient(m[0], m[1], m[2], d);
    CHECK(duet_expr_status(e) == DUET_OK, "%s: %s", p->name, duet_error());
    table gradient = oracle(e, DUET_F64);
    forget(e);
    CHECK(gradient.count == duet_count(m[p->by]), "%s: %lld elements", p->name, (long long)gradient.count);
    const double h = 0x1p-20;
    for (int64_t i = 0; i < gradient.count; i++) {
        quad size;
        const quad near = slope(p, m, d, i, h, &size), far = slope(p, m, d, i, 2 * h, &size);
        const quad apart = near < far ? far - near : near - far, size_near = near < 0 ? -near : near,
                   allowed = apart + size * 1e4 * 0x1p-112 / h + size_near * 0x1p-51;
        const quad off = gradient.at[i].v < near ? near - gradient.at[i].v : gradient.at[i].v - near;
        CHECK(off <= allowed, "%s, element %lld: %.17g, by differences %.17g +- %.3g", p->name, (long long)i,
              (double)gradient.at[i].v, (double)near, (double)allowed);
    }
    for (int k = 0; k < 3; k++) duet_free(&m[k]);
    duet_free(&d);
    table_free(&gradient);
    tap_point(p->name);
}

/* ---- max_pool2d ---------------------------------------------------------------------------------------- */

static int64_t results(int64_t in, const duet_pool *o, int axis)
{
    const int32_t stride = o->stride[axis] ? o->stride[axis] : o->window[axis];
    return (in + 2 * o->pad[axis] - o->window[axis]) / stride + 1;
}

/* The position of the maximum of a window of a dense plane. */
static int64_t first_greatest(const double *x, int64_t h, int64_t w, const duet_pool *o, int64_t top,
                              int64_t left)
{
    int64_t best = -1;
    for (int64_t i = top; i < top + o->window[0]; i++)
        for (int64_t j = left; j < left + o->window[1]; j++) {
            if (i < 0 || j < 0 || i >= h || j >= w || (best >= 0 && isnan(x[best]))) continue;
            if (best < 0 || isnan(x[i * w + j]) || x[i * w + j] > x[best]) best = i * w + j;
        }
    return best;
}

static void plane_back(const double *x, int64_t h, int64_t w, const double *d, const duet_pool *o,
                       double *out)
{
    const int64_t rows = results(h, o, 0), columns = results(w, o, 1);
    const int32_t stride[2] = { o->stride[0] ? o->stride[0] : o->window[0],
                                o->stride[1] ? o->stride[1] : o->window[1] };
    for (int64_t i = 0; i < h * w; i++) out[i] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            out[first_greatest(x, h, w, o, i * stride[0] - o->pad[0], j * stride[1] - o->pad[1])] +=
                d[i * columns + j];
}

static void put(duet_matrix *m, const double *from)
{
    float *narrow = malloc((size_t)duet_count(m) * sizeof *narrow + 1);
    for (int64_t i = 0; i < duet_count(m); i++) narrow[i] = (float)from[i];
    fill_from(m, duet_type(m) == DUET_F32 ? (const void *)narrow : from);
    free(narrow);
}

static duet_matrix *any_view(duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *m = random_view(&gen, (enum view)rng_below(&gen, VIEWS), type, rank, size, -1, 1, NULL);
    if (m) return m;
    return random_matrix(&gen, type, rank, size, -1, 1);
}

/* Small integers: sums are exact, many elements are equal, and some are NaN. */
static void test_max_pool(duet_dtype type, const sizes *s, const duet_pool *o)
{
    const int64_t *n = s->size, h = n[2], w = n[3], oh = results(h, o, 0), ow = results(w, o, 1),
                  planes = n[0] * n[1];
    double *x = malloc((size_t)(planes * h * w + 1) * sizeof *x),
           *d = malloc((size_t)(planes * oh * ow + 1) * sizeof *d),
           *want = malloc((size_t)(planes * h * w + 1) * sizeof *want);
    for (int64_t i = 0; i < planes * h * w; i++)
        x[i] = rng_chance(&gen, 3) ? NAN : (double)rng_below(&gen, 4) - 2;
    for (int64_t i = 0; i < planes * oh * ow; i++) d[i] = (double)rng_below(&gen, 9) - 4;
    for (int64_t p = 0; p < planes; p++)
        plane_back(x + p * h * w, h, w, d + p * oh * ow, o, want + p * h * w);
    duet_matrix *X = any_view(type, 4, n), *D = any_view(type, 4, (int64_t[]){ n[0], n[1], oh, ow });
    put(X, x);
    put(D, d);
    for (int k = 0; k < places; k++) {
        duet_matrix *G = any_view(type, 4, n);
        const duet_status status =
            duet_set_on(place[k], G, (duet_max_pool2d_grad)(duet_of_matrix(X), duet_of_matrix(D), o));
        CHECK(status == DUET_OK, "%s", duet_error());
        void *got = elements(G);
        for (int64_t i = 0; i < planes * h * w; i++)
            CHECK(element(type, got, i) == want[i],
                  "max_pool2d_grad on %s, window %d x %d, element %lld: %g, want %g", place_name(place[k]),
                  o->window[0], o->window[1], (long long)i, element(type, got, i), want[i]);
        free(got);
        duet_free(&G);
    }
    free(x);
    free(d);
    free(want);
    duet_free(&X);
    duet_free(&D);
}

static void test_max_pools(void)
{
    static const duet_pool pools[] = { { { 2, 2 }, { 0, 0 }, { 0, 0 } },
                                       { { 3, 3 }, { 2, 2 }, { 1, 1 } },
                                       { { 3, 2 }, { 1, 1 }, { 2, 1 } },
                                       { { 1, 4 }, { 2, 5 }, { 0, 3 } } };
    static const sizes shapes[] = { SIZES(2, 3, 8, 9), SIZES(1, 1, 4, 4), SIZES(0, 2, 5, 5),
                                    SIZES(2, 0, 5, 5), SIZES(3, 2, 17, 70) };
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 5; k++) test_max_pool(n % 2 ? DUET_F64 : DUET_F32, &shapes[k], &pools[i]);
    tap_point("max_pool2d_grad equals a reference loop");
}

/* ---- every row of networks.def against the oracle ------------------------------------------------------ */

typedef duet_expr maker(duet_expr x, duet_expr y, duet_expr z);
#define MAKE(name, call)                                                                                     \
    static duet_expr make_##name(duet_expr x, duet_expr y, duet_expr z) { return (void)y, (void)z, call; }
#define DUET_NETWORK1(name, ...)  MAKE(name, (duet_##name)(x))
#define DUET_NETWORK2(name, ...)  MAKE(name, (duet_##name)(x, y))
#define DUET_NETWORK2R(name, ...) MAKE(name, (duet_##name)(x, y, 0.25))
#define DUET_NETWORK3R(name, ...) MAKE(name, (duet_##name)(x, y, z, 0.25))
#include <duet/networks.def>

static const struct row {
    const char *name;
    int operands;
    maker *make;
} rows[] = {
#define DUET_NETWORK1(name, ...)  { #name, 1, make_##name },
#define DUET_NETWORK2(name, ...)  { #name, 2, make_##name },
#define DUET_NETWORK2R(name, ...) DUET_NETWORK2(name)
#define DUET_NETWORK3R(name, ...) { #name, 3, make_##name },
#include <duet/networks.def>
};

/* Returns 1 if the shape fits. Operands that the row does not name are dropped. */
static int test_on(const struct row *r, duet_dtype type, const sizes *s, duet_place where)
{
    duet_matrix *m[3], *out = NULL;
    for (int k = 0; k < 3; k++) {
        m[k] = random_view(&gen, (enum view)rng_below(&gen, VIEWS), type, s->rank, s->size, 0.05, 0.95, NULL);
        if (!m[k]) m[k] = random_matrix(&gen, type, s->rank, s->size, 0.05, 0.95);
    }
    duet_expr x[3] = { duet_of_matrix(m[0]), { 0 }, { 0 } };
    for (int k = 1; k < r->operands; k++) x[k] = duet_of_matrix(m[k]);
    duet_expr e = r->make(x[0], x[1], x[2]);
    const bool fits = duet_expr_status(e) == DUET_OK;
    if (fits) {
        const sizes to = sizes_of_expr(e);
        const char *why = NULL;
        out = duet_new_shape(type, to.rank, to.size);
        DUET_ON(where) why = oracle_refutes(out, e);
        CHECK(!why, "%s on %s: %s", r->name, place_name(where), why);
    } else {
        CHECK(duet_expr_status(e) == DUET_BAD_SHAPE, "%s: %s", r->name, duet_error());
        forget(e);
    }
    for (int k = 0; k < 3; k++) duet_free(&m[k]);
    duet_free(&out);
    return fits;
}

static void test_composed(void)
{
    static const sizes shapes[] = { SIZES(),           SIZES(5),          SIZES(3, 4),
                                    SIZES(1, 1),       SIZES(0, 3),       SIZES(2, 3, 4),
                                    SIZES(2, 3, 4, 5), SIZES(1, 2, 1, 3), SIZES(2, 2, 3, 2, 2) };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int ran = 0;
        for (int n = 0; n < 9 * places; n++)
            FOR_FLOAT_TYPES (type) ran += test_on(&rows[i], type, &shapes[n / places], place[n % places]);
        CHECK(ran > 0, "%s: no random shape was valid", rows[i].name);
    }
    tap_point("every row of networks.def");
    CHECK(oracle_wild * 100 <= oracle_bounded,
          "the reference has no error bound for %lld elements, and one for %lld", (long long)oracle_wild,
          (long long)oracle_bounded);
    tap_point("the error bounds of the oracle hold");
}

/* ---- values calculated by hand ---- */

static void gives(const char *name, duet_expr e, double want)
{
    duet_matrix *m = duet_new(DUET_F64);
    const duet_status s = duet_set(m, e);
    const double *v = duet_read(m);
    CHECK(s == DUET_OK && v && fabs(*v - want) <= 0x1p-49 * fabs(want), "%s: %s%.17g, want %.17g", name,
          s ? duet_error() : "", v ? *v : 0, want);
    duet_free(&m);
}

/* A formula cannot be checked only against its own parts. The sum of all roundings is below eight. */
static void test_known(void)
{
    duet_matrix *x = duet_new(DUET_F64, 2, 2), *t = duet_new(DUET_F64, 2, 2), *p = duet_new(DUET_F64, 2, 2),
                *edge = duet_new(DUET_F64, 2);
    fill_from(x, (double[]){ 1, 3, 5, 11 });
    fill_from(t, (double[]){ 1, 0, 0, 1 });
    fill_from(p, (double[]){ 0.5, 0.5, 0.25, 0.75 });
    fill_from(edge, (double[]){ 0, 1 });
    gives("mse", duet_mse(x, t), (0 + 9 + 25 + 100) / 4.0);
    gives("binary_cross_entropy", duet_binary_cross_entropy(p, t),
          (2 * 0.69314718055994531 - 2 * -0.28768207245178093) / 4);
    gives("binary_cross_entropy at the edge", duet_binary_cross_entropy(edge, edge), 0);
    gives("binary_cross_entropy, all wrong", duet_binary_cross_entropy(edge, duet_sub(1, edge)), 100);
    gives("cross_entropy", duet_cross_entropy(p, t), (0.69314718055994531 + 0.28768207245178093) / 2);
    gives("bias_batch_sum", duet_sum(duet_mul(duet_bias_batch_sum(x), duet_of_matrix(edge))), 14);
    gives("bias_batch_mean", duet_sum(duet_mul(duet_bias_batch_mean(x), duet_of_matrix(edge))), 7);
    gives("bias_batch_var", duet_sum(duet_mul(duet_bias_batch_var(x), duet_of_matrix(edge))), 16);
    gives("batch_norm", duet_sum(duet_mul(duet_batch_norm(x, 2, 1, 0), t)), -1 + 3);
    gives("layer_norm", duet_sum(duet_mul(duet_layer_norm(x, 2, 1, 0), t)), -1 + 3);
    gives("dropout", duet_sum(duet_dropout(x, t)), 12);
    gives("dropout_inverted", duet_sum(duet_dropout_inverted(x, t, 0.5)), 24);
    duet_free(&x);
    duet_free(&t);
    duet_free(&p);
    duet_free(&edge);
    tap_point("known values");
}

int main(void)
{
    gen = rng_new(31);
    places = list_places(place);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) test_pair(&pairs[i]);
    test_max_pools();
    test_composed();
    test_known();
    return tap_end();
}
