/* test_layers.c - softmax, one-hot vectors and normalisations along any axes, and losses by class index,
 * against loops in long double over random matrices, and their gradients against finite differences. */
#include "plain_array.h"

typedef long double real;

static const duet_dtype floats[] = { DUET_F32, DUET_F64, DUET_F16, DUET_BF16 };

static void random_floats(array *a, duet_dtype type, int least, int most)
{
    int64_t size[DUET_RANK_MAX];
    const int rank = (int)between(least, most);
    for (int d = 0; d < rank; d++) size[d] = between(between(0, 12) > 0, rank > 3 ? 4 : 6);
    array_shape(a, type, rank, size);
    array_fill(a, -3, 3);
}

static int given_axis(int axis, int rank) { return between(0, 1) ? axis : axis - rank; }

/* The place of element i of the line along an axis that element k belongs to. */
static int64_t on_line(const array *a, int axis, int64_t k, int64_t i)
{
    int64_t inner = 1;
    for (int d = axis + 1; d < a->rank; d++) inner *= a->size[d];
    return k - k / inner % a->size[axis] * inner + i * inner;
}

/* ---- along one axis ---- */

static real log_sum(const array *a, int axis, int64_t k)
{
    real sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < a->size[axis]; i++) most = fmaxl(most, a->x[on_line(a, axis, k, i)]);
    for (int64_t i = 0; i < a->size[axis]; i++) sum += expl(a->x[on_line(a, axis, k, i)] - most);
    return logl(sum) + most;
}

static void try_softmax(duet_dtype type)
{
    static array a, want;
    random_floats(&a, type, 1, 5);
    const int axis = (int)between(0, a.rank - 1), given = given_axis(axis, a.rank);
    duet_matrix *m = array_matrix(&a);
    for (int is_log = 0; is_log < 2; is_log++) {
        want = a;
        for (int64_t k = 0; k < a.count; k++) {
            const real l = a.x[k] - log_sum(&a, axis, k);
            want.x[k] = (double)(is_log ? l : expl(l));
        }
        array_check(is_log ? duet_log_softmax(m, given) : duet_softmax(m, given), &want,
                    16 * array_error(type), is_log ? "log_softmax" : "softmax");
    }
    duet_free(&m);
}

static void try_one_hot(duet_dtype type)
{
    static array a, want;
    int64_t size[DUET_RANK_MAX] = { 0 }, i[DUET_RANK_MAX] = { 0 };
    const int rank = (int)between(0, 4), n = (int)between(0, 5), axis = (int)between(0, rank);
    for (int d = 0; d < rank; d++) size[d] = between(n > 0 ? 1 : 0, 4);
    array_shape(&a, between(0, 1) ? DUET_I64 : DUET_I8, rank, size);
    if (!n && a.count) return; /* each index would be out of bounds */
    for (int64_t k = 0; k < a.count; k++) a.x[k] = (double)between(-n, n - 1);
    for (int d = rank; d > axis; d--) size[d] = size[d - 1];
    size[axis] = n;
    array_shape(&want, type, rank + 1, size);
    for (bool more = want.count > 0; more; more = array_next(&want, i)) {
        int64_t own[DUET_RANK_MAX] = { 0 };
        for (int d = 0; d < rank; d++) own[d] = i[d + (d >= axis)];
        const int64_t at = (int64_t)a.x[array_at(&a, own)];
        want.x[array_at(&want, i)] = (at < 0 ? at + n : at) == i[axis];
    }
    duet_matrix *m = array_matrix(&a);
    array_check(duet_one_hot(m, n, type, given_axis(axis, rank + 1)), &want, 0, "one_hot");
    if (axis == rank) array_check(duet_one_hot(m, n, type), &want, 0, "one_hot");
    duet_free(&m);
}

/* ---- normalisations ---- */

/* Normalises the elements of x for which key() is equal: sums over them. rms: without the mean. */
static void normalised(const array *a, const int64_t *key, bool rms, real r, const array *scale,
                       const array *shift, const int64_t *at, array *want)
{
    *want = *a;
    for (int64_t k = 0; k < a->count; k++) {
        real sum = 0, square = 0;
        int64_t n = 0;
        for (int64_t i = 0; i < a->count; i++)
            if (key[i] == key[k]) sum += a->x[i], n++;
        const real mean = rms ? 0 : sum / (real)n;
        for (int64_t i = 0; i < a->count; i++)
            if (key[i] == key[k]) square += (a->x[i] - mean) * (a->x[i] - mean);
        const real unit = (a->x[k] - mean) / sqrtl(square / (real)n + r);
        want->x[k] = (double)(unit * scale->x[at[k]] + (shift ? shift->x[at[k]] : 0));
    }
}

/* scale and shift have the sizes of x along the axes from `first` on. */
static void try_norms(duet_dtype type)
{
    static array a, scale, shift, want;
    static int64_t key[ARRAY_MOST], at[ARRAY_MOST];
    int axis[DUET_RANK_MAX], given[DUET_RANK_MAX], count = 0;
    random_floats(&a, type, 1, 4);
    for (int d = 0; d < a.rank; d++)
        if (between(0, 1)) axis[count++] = d;
    if (!count) axis[count++] = a.rank - 1;
    const int first = (int)between(0, a.rank);
    array_shape(&scale, type, a.rank - first, a.size + first);
    array_fill(&scale, -2, 2);
    shift = scale;
    array_fill(&shift, -2, 2);
    int64_t i[DUET_RANK_MAX] = { 0 };
    for (int64_t k = 0; k < a.count; k++, array_next(&a, i)) {
        int64_t own[DUET_RANK_MAX];
        memcpy(own, i, sizeof own);
        for (int c = 0; c < count; c++) own[axis[c]] = 0;
        key[k] = array_at(&a, own);
        at[k] = array_at(&scale, i + first);
    }
    for (int c = 0; c < count; c++) given[c] = given_axis(axis[c], a.rank);
    duet_matrix *m = array_matrix(&a), *s = array_matrix(&scale), *t = array_matrix(&shift);
    const double r = 0.25, error = 64 * array_error(type);
    normalised(&a, key, false, r, &scale, &shift, at, &want);
    array_check((duet_layer_norm_axes)(DUET(m), DUET(s), DUET(t), r, count, given), &want, error,
                "layer_norm_axes");
    if (count == 1) array_check(duet_layer_norm(m, s, t, r, given[0]), &want, error, "layer_norm");
    if (count == 2) array_check(duet_layer_norm(m, s, t, r, given[1], given[0]), &want, error, "layer_norm");
    normalised(&a, key, true, r, &scale, NULL, at, &want);
    array_check((duet_rms_norm_axes)(DUET(m), DUET(s), r, count, given), &want, error, "rms_norm_axes");
    if (count == 2) array_check(duet_rms_norm(m, s, r, given[0], given[1]), &want, error, "rms_norm");
    if (count == 1 && axis[0] == a.rank - 1) array_check(duet_rms_norm(m, s, r), &want, error, "rms_norm");
    duet_free(&m, &s, &t);
}

static void try_group_norm(duet_dtype type)
{
    static array a, scale, shift, want;
    static int64_t key[ARRAY_MOST], at[ARRAY_MOST];
    const int groups = (int)between(1, 3), rank = (int)between(2, 8);
    int64_t size[DUET_RANK_MAX] = { between(1, 3), groups * between(1, 3) }, i[DUET_RANK_MAX] = { 0 };
    for (int d = 2; d < rank; d++) size[d] = between(1, rank > 5 ? 2 : 3);
    array_shape(&a, type, rank, size);
    array_fill(&a, -3, 3);
    array_shape(&scale, type, 1, &size[1]);
    array_fill(&scale, -2, 2);
    shift = scale;
    array_fill(&shift, -2, 2);
    for (int64_t k = 0; k < a.count; k++, array_next(&a, i)) {
        at[k] = i[1];
        key[k] = i[0] * groups + i[1] / (size[1] / groups);
    }
    duet_matrix *m = array_matrix(&a), *s = array_matrix(&scale), *t = array_matrix(&shift);
    const double r = 0.25, error = 64 * array_error(type);
    normalised(&a, key, false, r, &scale, &shift, at, &want);
    array_check(duet_group_norm(m, s, t, groups, r), &want, error, "group_norm");
    for (int64_t c = 0; c < size[1]; c++) scale.x[c] = 1.5, shift.x[c] = -0.5;
    normalised(&a, key, false, r, &scale, &shift, at, &want);
    array_check(duet_group_norm(m, 1.5, -0.5, groups, r), &want, error, "group_norm");
    duet_free(&m, &s, &t);
}

/* ---- losses ---- */

static void try_losses(duet_dtype type)
{
    static array x, target, weights, want, all;
    static const duet_dtype integers[] = { DUET_I64, DUET_I32, DUET_I8, DUET_U8 };
    int64_t size[DUET_RANK_MAX] = { 0 }, own[DUET_RANK_MAX] = { 0 };
    const int rank = (int)between(1, 4), axis = rank > 1;
    for (int d = 0; d < rank; d++) size[d] = between(d == axis || between(0, 9), 4);
    array_shape(&x, type, rank, size);
    array_fill(&x, -3, 3);
    for (int d = 0; d < rank - 1; d++) own[d] = size[d + (d >= axis)];
    array_shape(&target, integers[between(0, 3)], rank - 1, own);
    const int64_t classes = size[axis], ignored = between(0, 1) ? between(0, classes - 1) : 77;
    duet_class_loss o = { .ignores = (int)between(0, 1), .ignored = between(0, 8) ? ignored : -100 };
    for (int64_t k = 0; k < target.count; k++) {
        target.x[k] = (double)between(target.type == DUET_U8 ? 0 : -classes, classes - 1);
        if (o.ignores && o.ignored >= 0 && !between(0, 2)) target.x[k] = (double)o.ignored;
    }
    array_shape(&weights, type, 1, &classes);
    for (int64_t c = 0; c < classes; c++) weights.x[c] = (double)between(0, 4) / 2;
    duet_matrix *m = array_matrix(&x), *t = array_matrix(&target), *w = array_matrix(&weights);
    const bool logits = between(0, 1), weighs = between(0, 1);
    if (weighs) o.weights = w;
    array_shape(&want, type, rank - 1, own);
    real sum = 0, total = 0, size_of = 0;
    int64_t i[DUET_RANK_MAX] = { 0 };
    for (int64_t k = 0; k < want.count; k++, array_next(&want, i)) {
        int64_t place_of[DUET_RANK_MAX] = { 0 };
        const bool skips = o.ignores && target.x[k] == (double)o.ignored;
        const int64_t c = target.x[k] < 0 ? (int64_t)target.x[k] + classes : (int64_t)target.x[k];
        if (skips) continue;
        for (int d = 0; d < rank; d++) place_of[d] = d == axis ? c : i[d - (d > axis)];
        const int64_t at = array_at(&x, place_of);
        const real weight = weighs ? weights.x[c] : 1;
        const real loss = weight * -(x.x[at] - (logits ? log_sum(&x, axis, at) : 0));
        want.x[k] = (double)loss;
        sum += loss;
        size_of += fabsl(loss);
        total += weight;
    }
    for (int how = DUET_LOSS_MEAN; how <= DUET_LOSS_NONE; how++) {
        o.reduction = (duet_loss_reduction)how;
        const duet_expr e =
            logits ? (duet_cross_entropy_loss)(DUET(m), DUET(t), &o) : (duet_nll_loss)(DUET(m), DUET(t), &o);
        array_shape(&all, type, 0, NULL);
        all.x[0] = (double)(how == DUET_LOSS_SUM ? sum : sum / total);
        const double error = 32 * array_error(type) * (how == DUET_LOSS_NONE ? 1 : (double)(1 + size_of));
        array_check(e, how == DUET_LOSS_NONE ? &want : &all, error,
                    logits ? "cross_entropy_loss" : "nll_loss");
    }
    duet_free(&m, &t, &w);
}

/* The sum of the losses, and that of the weights, exceed the largest f16. */
static void test_many_halves(void)
{
    enum { N = 3000 };
    static array x, target, weights, want;
    array_shape(&x, DUET_F16, 2, (const int64_t[]){ N, 2 });
    array_shape(&target, DUET_I8, 1, (const int64_t[]){ N });
    for (int k = 0; k < N; k++) {
        target.x[k] = k % 3 == 0 ? -1 : k % 2;
        for (int c = 0; c < 2; c++) x.x[2 * k + c] = c == k % 2 ? -48 : -96;
    }
    array_shape(&weights, DUET_F16, 1, (const int64_t[]){ 2 });
    weights.x[0] = weights.x[1] = 64;
    array_shape(&want, DUET_F16, 0, NULL);
    want.x[0] = 48;
    duet_matrix *m = array_matrix(&x), *t = array_matrix(&target), *w = array_matrix(&weights);
    for (at_place = 0; at_place < places; at_place++) {
        array_check(duet_nll_loss(m, t, .ignores = 1, .ignored = -1), &want, 0, "nll_loss of many");
        array_check(duet_nll_loss(m, t, .ignores = 1, .ignored = -1, .weights = w), &want, 0,
                    "nll_loss of many with weights");
    }
    at_place = 0;
    duet_free(&m, &t, &w);
    tap_point("means of halves do not overflow");
}

static void test_each(int turns)
{
    for (at_place = 0; at_place < places; at_place++) {
        for (int k = 0; k < turns; k++) {
            gen = rng_new((uint64_t)k + 1);
            try_softmax(floats[k % 4]);
            try_one_hot(k % 2 ? DUET_F32 : DUET_I32);
            try_norms(floats[k % 4]);
            try_group_norm(floats[k % 4]);
            try_losses(floats[k % 4]);
        }
        tap_point(at_place ? "results equal loops, on the GPU" : "results equal loops, on the CPU");
    }
    at_place = 0;
}

/* ---- gradients ---- */

static duet_matrix *factors, *deep_labels;

/* Formulas of x; c is a constant of the same number of elements. */
static duet_expr formula(int which, const duet_matrix *x)
{
    switch (which) {
    case 0: return duet_softmax(x, 0);
    case 1: return duet_log_softmax(x, 1);
    case 2: return duet_layer_norm(x, 0.5, 0.25, 0.1, 0, 1);
    case 3: return duet_rms_norm(x, 0.5, 0.1);
    case 4: return duet_rms_norm(x, x, 0.1, 0);
    case 5: return duet_group_norm(x, 1.5, 0.5, 2, 0.1);
    case 6: return duet_nll_loss(x, deep_labels, .weights = factors);
    case 7: return duet_cross_entropy_loss(x, deep_labels, .weights = factors, .ignores = 1, .ignored = 1);
    case 8: return duet_cross_entropy_loss(x, deep_labels, .reduction = DUET_LOSS_NONE);
    default: return duet_cross_entropy_loss(x, deep_labels, .ignores = 1, .ignored = 7);
    }
}
enum { FORMULAS = 10 };

static double total(int which, const duet_matrix *x)
{
    double sum = NAN;
    const duet_expr e = formula(which, x);
    CHECK(duet_item(duet_sum(duet_sin(e)), &sum) == DUET_OK, "formula %d: %s", which, duet_error());
    return sum;
}

static void test_gradients(void)
{
    static array a;
    array_shape(&a, DUET_F64, 3, (const int64_t[]){ 2, 4, 3 });
    gen = rng_new(5);
    for (int64_t k = 0; k < a.count; k++) a.x[k] = (double)between(-2000, 2000) / 1000;
    deep_labels = duet_from_array(((const int32_t[]){ 2, 0, 1, 3, 1, -1 }), DUET_I32, 2, 3);
    factors = duet_from_array(((const double[]){ 1, 0.5, 2, 1.5 }), DUET_F64, 4);
    duet_matrix *x = duet_from_array(a.x, DUET_F64, 2, 4, 3), *g = duet_new(DUET_F64, 2, 4, 3);
    for (at_place = 0; at_place < places; at_place++)
        for (int which = 0; which < FORMULAS; which++) {
            duet_status s = DUET_OK;
            DUET_ON(place[at_place]) s = duet_set(g, duet_grad(duet_sum(duet_sin(formula(which, x))), x));
            if (!CHECK(s == DUET_OK, "formula %d: %s", which, duet_error())) continue;
            for (int64_t k = 0; k < a.count; k++) {
                const double h = 0x1p-20;
                double *p = duet_update_f64(x);
                p[k] = a.x[k] + h;
                const double up = total(which, x);
                p = duet_update_f64(x);
                p[k] = a.x[k] - h;
                const double slope = (up - total(which, x)) / (2 * h);
                p = duet_update_f64(x);
                p[k] = a.x[k];
                const double is = duet_read_f64(g)[k];
                CHECK(!(!(fabs(is - slope) <= 1e-7 * (1 + fabs(slope)))),
                      "the gradient of formula %d, element %d, is %g, by differences %g", which, (int)k, is,
                      slope);
            }
        }
    at_place = 0;
    duet_free(&x, &g, &factors, &deep_labels);
    tap_point("gradients equal differences");
}

/* ---- errors ---- */

static void test_refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 4, 3), *v = duet_new(DUET_F32, 3), *i = duet_new(DUET_I32, 2, 3),
                *n = duet_new(DUET_F32), *none = NULL, *z = duet_new(DUET_C64, 2, 4, 3),
                *wrong = duet_new(DUET_I32, 2, 4);
    array_refused(duet_softmax(x, 3), DUET_BAD_SHAPE,
                  "duet_softmax_axis(x: f32[2,4,3]): axis 3 does not exist; x has 3 axes");
    array_refused(duet_log_softmax(none, 0), DUET_BAD_ARGUMENT,
                  "duet_log_softmax_axis(x: NULL): x must not be NULL");
    array_refused(duet_softmax(i, 0), DUET_BAD_TYPE,
                  "duet_softmax_axis(x: i32[2,3]): x must be real and floating point");
    array_refused(duet_softmax(z, 0), DUET_BAD_TYPE,
                  "duet_softmax_axis(x: c64[2,4,3]): x must be real and floating point");
    array_refused(duet_one_hot(i, 3, DUET_F32, 3), DUET_BAD_SHAPE,
                  "duet_one_hot_axis(indices: i32[2,3]): axis 3 does not exist");
    array_refused(duet_one_hot(i, -3, DUET_F32, 0), DUET_BAD_ARGUMENT,
                  "duet_one_hot_axis(indices: i32[2,3]): n (-3) must not be negative");
    array_refused(duet_one_hot(x, 3, DUET_F32, 0), DUET_BAD_TYPE, "duet_one_hot_axis(indices: f32[2,4,3]): ");
    array_refused(duet_layer_norm(x, 1, 0, 0.1, 0, 0), DUET_BAD_ARGUMENT,
                  "duet_layer_norm_axes(x: f32[2,4,3], scale: 1, shift: 0): axis 0 is named "
                  "twice");
    array_refused((duet_layer_norm_axes)(DUET(x), DUET(v), DUET(v), 0.1, 0, NULL), DUET_BAD_ARGUMENT,
                  "duet_layer_norm_axes(x: f32[2,4,3], scale: f32[3], shift: f32[3]): there must be at least "
                  "one axis, not 0");
    array_refused(duet_rms_norm(n, 1, 0.1), DUET_BAD_SHAPE, "duet_rms_norm(x: f32[], scale: ");
    array_refused(duet_rms_norm(x, v, 0.1, -4), DUET_BAD_SHAPE,
                  "duet_rms_norm_axes(x: f32[2,4,3], scale: f32[3]): axis -4 does not exist; x has 3 axes");
    array_refused(duet_rms_norm(x, i, 0.1), DUET_BAD_TYPE, "duet_rms_norm(x: f32[2,4,3], scale: i32[2,3]): ");
    array_refused(duet_group_norm(x, 1, 0, 3, 0.1), DUET_BAD_SHAPE,
                  "the number of channels of x (4) must be a multiple of groups (3)");
    array_refused(duet_group_norm(x, 1, 0, 0, 0.1), DUET_BAD_ARGUMENT, "groups (0) must be positive");
    array_refused(duet_group_norm(x, v, 0, 2, 0.1), DUET_BAD_SHAPE,
                  "scale must be a vector with one element for each of the 4 channels of x");
    array_refused(duet_group_norm(v, 1, 0, 1, 0.1), DUET_BAD_SHAPE, "x must have at least 2 axes, not 1");
    array_refused(duet_nll_loss(x, wrong), DUET_BAD_SHAPE,
                  "duet_nll_loss(x: f32[2,4,3], target: i32[2,4]): target must have the shape of x without "
                  "axis 1, which has the classes");
    array_refused(duet_nll_loss(x, v), DUET_BAD_TYPE,
                  "duet_nll_loss(x: f32[2,4,3], target: f32[3]): target must be an integer matrix");
    array_refused(duet_nll_loss(i, i), DUET_BAD_TYPE, "x must be real and floating point");
    array_refused(duet_nll_loss(n, i), DUET_BAD_SHAPE, "x must have at least 1 axis, not 0");
    array_refused(duet_cross_entropy_loss(x, i, .reduction = 7), DUET_BAD_ARGUMENT,
                  "duet_cross_entropy_loss(x: f32[2,4,3], target: i32[2,3]): reduction (7) is not a "
                  "duet_loss_reduction");
    array_refused(duet_cross_entropy_loss(x, i, .weights = v), DUET_BAD_SHAPE,
                  "weights must be a vector with one element for each of the 4 classes");
    array_refused(duet_cross_entropy_loss(x, i, .weights = i), DUET_BAD_TYPE,
                  "weights must be real and floating point");
    const int32_t far[] = { 0, 0, 0, 4, 0, 0 };
    duet_matrix *out = duet_from_array(far, DUET_I32, 2, 3);
    DUET_ON(DUET_CPU) array_refused(duet_nll_loss(x, out), DUET_BAD_ARGUMENT, "4");
    duet_free(&x, &v, &i, &n, &z, &wrong, &out);
    tap_point("wrong operands are refused");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_each(trial_count(argc, argv, 40, 600));
    test_many_halves();
    test_gradients();
    test_refusals();
    return tap_end();
}
