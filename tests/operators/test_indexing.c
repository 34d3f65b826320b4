/* test_indexing.c - scatters and gathers along an axis and by lists of indices, scans with options, the
 * smallest elements, division that truncates, and padding that wraps, against loops over random matrices. */
#include "plain_array.h"

static void random_shape(array *a, duet_dtype type, int least, int most)
{
    int64_t size[DUET_RANK_MAX];
    const int rank = (int)between(least, most);
    for (int d = 0; d < rank; d++) size[d] = between(between(0, 15) > 0, rank > 3 ? 3 : 5);
    array_shape(a, type, rank, size);
    array_fill(a, -4, 4);
}

static int64_t from_start(double i, int64_t n) { return i < 0 ? (int64_t)i + n : (int64_t)i; }

static double combined(duet_dtype type, double a, double b, duet_scatter_how how)
{
    double r = b;
    if (how == DUET_SCATTER_ADD) r = a + b;
    if (how == DUET_SCATTER_MUL) r = a * b;
    if (how == DUET_SCATTER_MIN) r = isnan(a) || a < b ? a : b;
    if (how == DUET_SCATTER_MAX) r = isnan(a) || a > b ? a : b;
    if (how >= DUET_SCATTER_MIN && isnan(b)) r = NAN;
    if (type == DUET_I32) return (double)(int32_t)(int64_t)r;
    if (type == DUET_U8) return (double)(uint8_t)(int64_t)r;
    return type == DUET_F32 ? (double)(float)r : r;
}

static bool has_how(duet_dtype type, duet_scatter_how how)
{
    return type != DUET_BOOL || (how != DUET_SCATTER_ADD && how != DUET_SCATTER_MUL);
}

static const duet_dtype index_types[] = { DUET_I64, DUET_I32, DUET_I8 };

/* ---- scatter ---- */

static void try_scatter(duet_dtype type)
{
    static array x, by, v, want, wide, wide_v;
    random_shape(&x, type, 1, 4);
    if (!between(0, 2)) array_spoil(&x, 9);
    const int axis = (int)between(0, x.rank - 1), given = between(0, 1) ? axis : axis - x.rank;
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    for (int d = 0; d < x.rank; d++)
        size[d] = d == axis ? (x.size[d] ? between(0, 6) : 0) : between(0, x.size[d]);
    array_shape(&by, index_types[between(0, 2)], x.rank, size);
    for (int64_t k = 0; k < by.count; k++) by.x[k] = (double)between(-x.size[axis], x.size[axis] - 1);
    array_shape(&v, type, x.rank, size);
    array_fill(&v, -3, 3);
    duet_matrix *m = array_matrix(&x), *b = array_matrix(&by), *values = array_matrix(&v);
    for (int how = DUET_SCATTER_SET; how <= DUET_SCATTER_MAX; how++) {
        if (!has_how(type, (duet_scatter_how)how)) continue;
        want = x;
        memset(i, 0, sizeof i);
        for (int64_t k = 0; k < by.count; k++, array_next(&by, i)) {
            int64_t at[DUET_RANK_MAX];
            memcpy(at, i, sizeof at);
            at[axis] = from_start(by.x[k], x.size[axis]);
            double *to = &want.x[array_at(&want, at)];
            *to = combined(type, *to, v.x[k], (duet_scatter_how)how);
        }
        array_check(duet_scatter_along_axis(m, b, values, given, (duet_scatter_how)how), &want, 0,
                    "scatter_along_axis");
    }
    duet_free(&b, &values);
    /* put_along_axis: some axes of indices and values have size 1 */
    for (int d = 0; d < x.rank; d++) size[d] = d == axis ? by.size[axis] : between(0, 1) ? x.size[d] : 1;
    array_shape(&wide, DUET_I32, x.rank, size);
    for (int64_t k = 0; k < wide.count; k++) wide.x[k] = (double)between(-x.size[axis], x.size[axis] - 1);
    for (int d = 0; d < x.rank; d++) size[d] = between(0, 1) ? 1 : d == axis ? by.size[axis] : x.size[d];
    array_shape(&wide_v, type, x.rank, size);
    array_fill(&wide_v, -3, 3);
    memcpy(size, x.size, sizeof size);
    size[axis] = by.size[axis];
    array_shape(&v, type, x.rank, size);
    want = x;
    memset(i, 0, sizeof i);
    for (int64_t k = 0; k < v.count; k++, array_next(&v, i)) {
        int64_t at[DUET_RANK_MAX], own[DUET_RANK_MAX];
        for (int d = 0; d < x.rank; d++)
            at[d] = wide.size[d] == 1 ? 0 : i[d], own[d] = wide_v.size[d] == 1 ? 0 : i[d];
        const int64_t to = from_start(wide.x[array_at(&wide, at)], x.size[axis]);
        memcpy(at, i, sizeof at);
        at[axis] = to;
        want.x[array_at(&want, at)] = wide_v.x[array_at(&wide_v, own)];
    }
    b = array_matrix(&wide);
    values = array_matrix(&wide_v);
    array_check(duet_put_along_axis(m, b, values, given), &want, 0, "put_along_axis");
    duet_free(&m, &b, &values);
}

static void try_nd(duet_dtype type)
{
    static array x, by, got, v, want;
    random_shape(&x, type, 1, 4);
    for (int d = 0; d < x.rank; d++)
        if (!x.size[d]) return;
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    const int count = (int)between(1, x.rank), rank = (int)between(1, 3);
    for (int d = 0; d < rank - 1; d++) size[d] = between(0, 4);
    size[rank - 1] = count;
    array_shape(&by, index_types[between(0, 2)], rank, size);
    for (int64_t k = 0; k < by.count; k++)
        by.x[k] = (double)between(-x.size[k % count], x.size[k % count] - 1);
    for (int d = count; d < x.rank; d++) size[rank - 1 + d - count] = x.size[d];
    array_shape(&got, type, rank - 1 + x.rank - count, size);
    v = got;
    array_fill(&v, -3, 3);
    duet_matrix *m = array_matrix(&x), *b = array_matrix(&by), *values = array_matrix(&v);
    for (int how = -1; how <= DUET_SCATTER_MAX; how++) {
        if (how >= 0 && !has_how(type, (duet_scatter_how)how)) continue;
        want = x;
        memset(i, 0, sizeof i);
        for (int64_t k = 0; k < got.count; k++, array_next(&got, i)) {
            int64_t at[DUET_RANK_MAX], list = 0;
            for (int d = 0; d < rank - 1; d++) list = list * by.size[d] + i[d];
            for (int d = 0; d < count; d++) at[d] = from_start(by.x[list * count + d], x.size[d]);
            for (int d = count; d < x.rank; d++) at[d] = i[rank - 1 + d - count];
            double *to = &want.x[array_at(&want, at)];
            if (how < 0) got.x[k] = *to;
            else *to = combined(type, *to, v.x[k], (duet_scatter_how)how);
        }
        if (how < 0) array_check(duet_gather_nd(m, b), &got, 0, "gather_nd");
        else array_check(duet_scatter_nd(m, b, values, (duet_scatter_how)how), &want, 0, "scatter_nd");
    }
    duet_free(&m, &b, &values);
}

/* scatter_min and scatter_mul along an axis whose axes the indices replace. */
static void try_combine(duet_dtype type)
{
    static array x, by, v, want;
    random_shape(&x, type, 1, 3);
    const int axis = (int)between(0, x.rank - 1);
    if (!x.size[axis]) return;
    const int64_t n = between(0, 6);
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    array_shape(&by, DUET_I32, 1, &n);
    for (int64_t k = 0; k < n; k++) by.x[k] = (double)between(-x.size[axis], x.size[axis] - 1);
    memcpy(size, x.size, sizeof size);
    size[axis] = n;
    array_shape(&v, type, x.rank, size);
    array_fill(&v, -3, 3);
    if (!between(0, 2)) array_spoil(&v, 5);
    duet_matrix *m = array_matrix(&x), *b = array_matrix(&by), *values = array_matrix(&v);
    for (int k = 0; k < 2; k++) {
        const duet_scatter_how how = k ? DUET_SCATTER_MIN : DUET_SCATTER_MUL;
        if (!has_how(type, how)) continue;
        want = x;
        memset(i, 0, sizeof i);
        for (int64_t j = 0; j < v.count; j++, array_next(&v, i)) {
            int64_t at[DUET_RANK_MAX];
            memcpy(at, i, sizeof at);
            at[axis] = from_start(by.x[i[axis]], x.size[axis]);
            double *to = &want.x[array_at(&want, at)];
            *to = combined(type, *to, v.x[j], how);
        }
        array_check(k ? duet_scatter_min(m, b, values, axis) : duet_scatter_mul(m, b, values, axis), &want, 0,
                    k ? "scatter_min" : "scatter_mul");
    }
    duet_free(&m, &b, &values);
}

/* ---- scans ---- */

static void try_scan(duet_dtype type)
{
    static array x, want;
    random_shape(&x, type, 1, 4);
    array_fill(&x, -2, 2);
    const int axis = (int)between(0, x.rank - 1), n = (int)x.size[axis];
    duet_scan o = { .exclusive = (int)between(0, 1), .reverse = (int)between(0, 1) };
    o.initial = !o.exclusive && between(0, 1);
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    memcpy(size, x.size, sizeof size);
    size[axis] += o.initial;
    duet_matrix *m = array_matrix(&x);
    for (int product = 0; product < 2; product++) {
        array_shape(&want, dtype_of_sums(type), x.rank, size);
        memset(i, 0, sizeof i);
        for (int64_t k = 0; k < want.count; k++, array_next(&want, i)) {
            int64_t at[DUET_RANK_MAX], place_of = i[axis];
            double r = product;
            memcpy(at, i, sizeof at);
            if (o.initial) place_of -= !o.reverse; /* place_of: the last element that counts */
            if (o.exclusive) place_of += o.reverse ? 1 : -1;
            for (at[axis] = 0; at[axis] < n; at[axis]++) {
                const bool counts = o.reverse ? at[axis] >= place_of : at[axis] <= place_of;
                const double e = x.x[array_at(&x, at)];
                if (counts) r = product ? r * e : r + e;
            }
            want.x[k] = r;
        }
        array_check(product ? (duet_cumprod_with)(DUET(m), axis, &o) : (duet_cumsum_with)(DUET(m), axis, &o),
                    &want, 16 * array_error(type), product ? "cumprod" : "cumsum");
    }
    duet_free(&m);
}

/* ---- the smallest elements ---- */

static void try_bottom(duet_dtype type)
{
    static array x, want, places_of;
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    random_shape(&x, type, 1, 3);
    const int axis = (int)between(0, x.rank - 1);
    if (!between(0, 3)) { /* longer lines are selected from, shorter ones sorted */
        const int64_t n = between(40, 300);
        array_shape(&x, type, 1, &n);
        array_fill(&x, -4, 4);
    }
    if (between(0, 1)) array_spoil(&x, 5);
    const int own = x.rank == 1 ? 0 : axis;
    const int64_t n = x.size[own], k = between(0, n < 9 ? n : 9);
    memcpy(size, x.size, sizeof size);
    size[own] = k;
    array_shape(&want, type, x.rank, size);
    array_shape(&places_of, DUET_I64, x.rank, size);
    for (int64_t j = 0; j < want.count; j++, array_next(&want, i)) {
        int64_t at[DUET_RANK_MAX];
        memcpy(at, i, sizeof at);
        for (at[own] = 0; at[own] < n; at[own]++) { /* the element with i[own] elements before it */
            const double v = x.x[array_at(&x, at)];
            int64_t before = 0, other[DUET_RANK_MAX];
            memcpy(other, at, sizeof other);
            for (other[own] = 0; other[own] < n; other[own]++) {
                const double w = x.x[array_at(&x, other)];
                const bool same = w == v || (isnan(w) && isnan(v));
                before += w < v || (isnan(v) && !isnan(w)) || (same && other[own] < at[own]);
            }
            if (before != i[own]) continue;
            want.x[j] = v;
            places_of.x[j] = (double)at[own];
        }
    }
    duet_matrix *m = array_matrix(&x);
    array_check(duet_bottom_k(m, (int)k, own), &want, 0, "bottom_k");
    array_check(duet_bottom_k_indices(m, (int)k, own), &places_of, 0, "bottom_k_indices");
    duet_free(&m);
}

/* ---- division and padding ---- */

static void try_divide(duet_dtype type)
{
    static array x, y, want;
    if (type == DUET_BOOL) return;
    random_shape(&x, type, 1, 2);
    array_fill(&x, -99, 99);
    y = want = x;
    array_fill(&y, -5, 5);
    if (!between(0, 2)) array_spoil(&x, 7), array_spoil(&y, 7);
    for (int64_t k = 0; k < x.count; k++) {
        if (!is_float(type) && y.x[k] == 0) want.x[k] = 0;
        else want.x[k] = trunc(x.x[k] / y.x[k]);
        if (is_float(type) && isinf(y.x[k]) && isfinite(x.x[k])) want.x[k] = 0;
    }
    duet_matrix *m = array_matrix(&x), *d = array_matrix(&y);
    array_check(duet_trunc_divide(m, d), &want, 0, "trunc_divide");
    duet_free(&m, &d);
}

static void try_wrap(duet_dtype type)
{
    static array x, want;
    random_shape(&x, type, 1, 3);
    duet_padding p = { .mode = DUET_PAD_WRAP };
    int64_t size[DUET_RANK_MAX], i[DUET_RANK_MAX] = { 0 };
    for (int d = 0; d < x.rank; d++) {
        if (x.size[d]) p.before[d] = between(0, 7), p.after[d] = between(0, 7);
        size[d] = x.size[d] + p.before[d] + p.after[d];
    }
    array_shape(&want, type, x.rank, size);
    for (int64_t k = 0; k < want.count; k++, array_next(&want, i)) {
        int64_t at[DUET_RANK_MAX];
        for (int d = 0; d < x.rank; d++) at[d] = (i[d] - p.before[d] + 8 * x.size[d]) % x.size[d];
        want.x[k] = x.x[array_at(&x, at)];
    }
    duet_matrix *m = array_matrix(&x);
    array_check((duet_pad)(DUET(m), &p), &want, 0, "pad, wrapped");
    duet_free(&m);
}

static void test_each(int turns)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I32, DUET_U8, DUET_BOOL, DUET_F32 };
    for (at_place = 0; at_place < places; at_place++) {
        for (int k = 0; k < turns; k++) {
            gen = rng_new((uint64_t)k + 1);
            try_scatter(types[k % 6]);
            try_nd(types[k % 6]);
            try_combine(types[k % 6]);
            try_scan(types[k % 6]);
            try_bottom(types[k % 6]);
            try_divide(types[k % 6]);
            try_wrap(types[k % 6]);
        }
        tap_point(at_place ? "results equal loops, on the GPU" : "results equal loops, on the CPU");
    }
    at_place = 0;
}

/* ---- gradients ---- */

static duet_matrix *by, *lists, *other;

static duet_expr formula(int which, const duet_matrix *x)
{
    switch (which) {
    case 0: return duet_scatter_along_axis(x, by, other, 1, DUET_SCATTER_MUL);
    case 1: return duet_scatter_along_axis(other, by, duet_range(x, 0, 0, 2, 1), 1, DUET_SCATTER_MUL);
    case 2: return duet_scatter_along_axis(x, by, other, 1, DUET_SCATTER_MIN);
    case 3: return duet_put_along_axis(x, by, duet_sin(x), 1);
    case 4: return duet_gather_nd(x, lists);
    case 5: return duet_scatter_nd(x, lists, duet_pick(x, 0, 0), DUET_SCATTER_ADD);
    case 6: return duet_cumsum(x, 1, .exclusive = 1, .reverse = 1);
    case 7: return duet_cumprod(x, 0, .initial = 1);
    case 8: return duet_bottom_k(x, 2, 1);
    case 9: return duet_pad(x, .before = { 3, 1 }, .after = { 0, 2 }, .mode = DUET_PAD_WRAP);
    default: return duet_scatter_min(x, duet_cast(duet_pick(by, 0, 0), DUET_I64), duet_sin(x), 1);
    }
}
enum { FORMULAS = 11 };

static double total(int which, const duet_matrix *x)
{
    double sum = NAN;
    CHECK(duet_item(duet_sum(duet_sin(formula(which, x))), &sum) == DUET_OK, "formula %d: %s", which,
          duet_error());
    return sum;
}

static void test_gradients(void)
{
    static array a;
    array_shape(&a, DUET_F64, 2, (const int64_t[]){ 2, 3 });
    gen = rng_new(5);
    for (int64_t k = 0; k < a.count; k++) a.x[k] = (double)between(-2000, 2000) / 1000;
    by = duet_from_array(((const int32_t[]){ 2, 0, 2, -2, -2, -2 }), DUET_I32, 2, 3);
    lists = duet_from_array(((const int32_t[]){ 1, 2, 0, -1, 1, 2 }), DUET_I32, 3, 2);
    other = duet_from_array(((const double[]){ 1, 0.5, 2, 1.5, -0.25, 0.75 }), DUET_F64, 2, 3);
    duet_matrix *x = duet_from_array(a.x, DUET_F64, 2, 3), *g = duet_new(DUET_F64, 2, 3);
    for (at_place = 0; at_place < places; at_place++)
        for (int which = 0; which < FORMULAS; which++) {
            duet_status s = DUET_OK;
            DUET_ON(place[at_place]) s = duet_set(g, duet_grad(duet_sum(duet_sin(formula(which, x))), x));
            if (!CHECK(s == DUET_OK, "formula %d: %s", which, duet_error())) continue;
            for (int64_t k = 0; k < a.count; k++) {
                const double h = 0x1p-20;
                duet_update_f64(x)[k] = a.x[k] + h;
                const double up = total(which, x);
                duet_update_f64(x)[k] = a.x[k] - h;
                const double slope = (up - total(which, x)) / (2 * h);
                duet_update_f64(x)[k] = a.x[k];
                const double is = duet_read_f64(g)[k];
                CHECK(fabs(is - slope) <= 1e-7 * (1 + fabs(slope)),
                      "the gradient of formula %d, element %d, is %g, by differences %g", which, (int)k, is,
                      slope);
            }
        }
    at_place = 0;
    duet_free(&x, &g, &by, &lists, &other);
    tap_point("gradients equal differences");
}

/* ---- errors ---- */

/* A u64 index that is too large for i64 does not count from the end. */
static void refuse_large_unsigned(duet_matrix *x)
{
    const uint64_t last[] = { UINT64_MAX, 0 };
    duet_matrix *list = duet_from_array(last, DUET_U64, 1, 2),
                *column = duet_from_array(last, DUET_U64, 2, 1);
    array_refused(duet_gather_nd(x, list), DUET_BAD_ARGUMENT,
                  "duet_take: element 0 of the indices is out of bounds; of indices of several axes, list 0");
    array_refused(duet_scatter_nd(x, list, duet_part(duet_reshape(x, -1), 0, 6, 0), DUET_SCATTER_SET),
                  DUET_BAD_ARGUMENT, "out of bounds");
    array_refused(duet_scatter_along_axis(x, column, duet_part(x, 1, 3, 0), 1, DUET_SCATTER_ADD),
                  DUET_BAD_ARGUMENT, "out of bounds");
    duet_free(&list, &column);
}

static void test_refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 3), *i = duet_new(DUET_I32, 2, 3), *v = duet_new(DUET_F32, 3),
                *d = duet_new(DUET_F64, 2, 3),
                *far = duet_from_array(((const int32_t[]){ 0, 3, 0, 0, 0, 0 }), DUET_I32, 2, 3),
                *wide = duet_new(DUET_I32, 3, 3), *f3 = duet_new(DUET_F32, 3, 3),
                *none = duet_new(DUET_F32, 2, 0);
    array_refused(
        duet_scatter_along_axis(x, i, x, 2, DUET_SCATTER_ADD), DUET_BAD_SHAPE,
        "duet_scatter_along_axis(x: f32[2,3], indices: i32[2,3], values: f32[2,3]): axis 2 does not exist");
    array_refused(duet_scatter_along_axis(x, i, x, 0, 7), DUET_BAD_ARGUMENT,
                  "how (7) is not a duet_scatter_how");
    array_refused(duet_scatter_along_axis(x, x, x, 0, DUET_SCATTER_ADD), DUET_BAD_TYPE,
                  "indices must be an integer matrix");
    array_refused(duet_scatter_along_axis(x, i, d, 0, DUET_SCATTER_ADD), DUET_BAD_TYPE,
                  "x and values must have the same element type");
    array_refused(duet_scatter_along_axis(x, i, v, 0, DUET_SCATTER_ADD), DUET_BAD_SHAPE,
                  "x, indices and values must have the same number of axes, not 2, 2 and 1");
    array_refused(duet_scatter_along_axis(x, wide, f3, 1, DUET_SCATTER_ADD), DUET_BAD_SHAPE,
                  "along axis 0 indices (size 3) must not be larger than x (2)");
    array_refused(duet_put_along_axis(x, wide, f3, 1), DUET_BAD_SHAPE,
                  "along axis 0 indices (size 3) and values (size 3) must have size 2 or 1");
    array_refused(
        duet_gather_nd(x, wide), DUET_BAD_SHAPE,
        "duet_gather_nd(x: f32[2,3], indices: i32[3,3]): the last axis of indices must have 1 to 2 elements, "
        "the axes of x, not 3");
    array_refused(duet_gather_nd(x, x), DUET_BAD_TYPE, "indices must be an integer matrix");
    array_refused(duet_scatter_nd(f3, wide, x, DUET_SCATTER_SET), DUET_BAD_SHAPE, "the last axis of indices");
    array_refused(
        duet_scatter_min(x, i, v, 0), DUET_BAD_SHAPE,
        "duet_scatter_min(x: f32[2,3], indices: i32[2,3], values: f32[3]): values must be f32[2,3,3]");
    array_refused(duet_scatter_mul(x, i, d, 0), DUET_BAD_TYPE, "duet_scatter_mul(x: f32[2,3], ");
    DUET_ON(DUET_CPU)
    {
        array_refused(duet_scatter_along_axis(x, far, x, 1, DUET_SCATTER_ADD), DUET_BAD_ARGUMENT,
                      "out of bounds");
        array_refused(duet_put_along_axis(x, far, 1, 1), DUET_BAD_ARGUMENT, "out of bounds");
        array_refused(duet_gather_nd(f3, far), DUET_BAD_SHAPE, "the last axis of indices must have 1 to 2");
        refuse_large_unsigned(x);
    }
    array_refused(duet_cumsum(x, 0, .exclusive = 1, .initial = 1), DUET_BAD_ARGUMENT,
                  "duet_cumsum_with(x: f32[2,3]): exclusive and initial must not both be 1");
    array_refused(duet_cumprod(x, 5, .reverse = 1), DUET_BAD_SHAPE,
                  "duet_cumprod_with(x: f32[2,3]): axis 5 does not exist; x has 2 axes");
    array_refused(duet_bottom_k(x, 4, 1), DUET_BAD_SHAPE,
                  "duet_bottom_k(x: f32[2,3]): k (4) must be at most");
    array_refused(duet_bottom_k_indices(x, -1, 1), DUET_BAD_ARGUMENT, "k (-1) must not be negative");
    array_refused(duet_trunc_divide(x, i), DUET_BAD_TYPE, "duet_trunc_divide(x: f32[2,3], y: i32[2,3]): ");
    array_refused(duet_pad(none, .before = { 0, 1 }, .mode = DUET_PAD_WRAP), DUET_BAD_SHAPE,
                  "axis 1 has no element to pad with");
    duet_free(&x, &i, &v, &d, &far, &wide, &f3, &none);
    tap_point("wrong operands are refused");
}

/* Reductions of nothing, as NumPy and the array API define them. */
static void test_nothing(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 0, 3);
    static array want;
    array_shape(&want, DUET_F32, 2, (const int64_t[]){ 2, 3 });
    array_check(duet_sum(x, 1), &want, 0, "sum of nothing");
    array_check(duet_norm(x, 1), &want, 0, "norm of nothing");
    for (int k = 0; k < 6; k++) want.x[k] = 1;
    array_check(duet_prod(x, 1), &want, 0, "prod of nothing");
    for (int k = 0; k < 6; k++) want.x[k] = NAN;
    array_check(duet_mean(x, 1), &want, 0, "mean of nothing");
    array_check(duet_var(x, 1), &want, 0, "var of nothing");
    array_check(duet_std(x, 1), &want, 0, "std of nothing");
    array_check(duet_median(x, 1), &want, 0, "median of nothing");
    array_shape(&want, DUET_BOOL, 2, (const int64_t[]){ 2, 3 });
    array_check(duet_any(x, 1), &want, 0, "any of nothing");
    for (int k = 0; k < 6; k++) want.x[k] = 1;
    array_check(duet_all(x, 1), &want, 0, "all of nothing");
    array_refused(duet_min(x, 1), DUET_BAD_SHAPE, "duet_min_axes(x: f32[2,0,3]): ");
    array_refused(duet_max(x), DUET_BAD_SHAPE,
                  "duet_max(x: f32[2,0,3]): there must be at least one element to reduce");
    array_refused(duet_argmin(x, 1), DUET_BAD_SHAPE, "duet_argmin_axis(x: f32[2,0,3]): ");
    array_refused(duet_norm_inf(x, 1), DUET_BAD_SHAPE, "duet_norm_inf_axes(x: f32[2,0,3]): ");
    array_refused(duet_logsumexp(x, 1), DUET_BAD_SHAPE, "duet_logsumexp_axes(x: f32[2,0,3]): ");
    array_shape(&want, DUET_F32, 2, (const int64_t[]){ 0, 3 });
    array_check(duet_max(x, 0), &want, 0, "no maxima"); /* of 2 elements each */
    duet_free(&x);
    tap_point("reductions of nothing");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_each(trial_count(argc, argv, 60, 1000));
    test_gradients();
    test_refusals();
    test_nothing();
    return tap_end();
}
