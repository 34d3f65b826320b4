/* test_array_api.c - functions of the array API standard and of NumPy that are made of other operators:
 * tril, triu, diag, meshgrid, vecdot, cross along an axis, diff, statistics, searchsorted and isin. They
 * are compared with loops over random matrices of random shapes and types. Also nextafter, and pow of
 * integers. */
#include "common.h"
#include "dtype.h"
#include "indices.h"
#include <complex.h>
#include <math.h>

static duet_place place[2];
static int places, at_place; /* at_place: an index in place[] */
static rng gen;

enum { MOST = 3000, REAL_TYPES = 8 };
static const duet_dtype types[REAL_TYPES] = { DUET_F32, DUET_F64, DUET_I32,  DUET_I64,
                                              DUET_U8,  DUET_F16, DUET_BF16, DUET_BOOL };

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(rng_next(&gen) % (uint64_t)(high - low + 1));
}

static bool is_float(duet_dtype t) { return dtype_kind(t) == TYPE_FLOAT; }

/* The numbers of a matrix, all of which its type represents. */
typedef struct array {
    duet_dtype type;
    int rank;
    int64_t size[DUET_RANK_MAX], count;
    double x[MOST];
} array;

static void set_count(array *a)
{
    a->count = 1;
    for (int k = 0; k < a->rank; k++) a->count *= a->size[k];
}

/* Small integers, so that equal elements are frequent; in some matrices also NaN, infinities and -0. */
static void fill(array *a, int low, int high)
{
    const bool strange = is_float(a->type) && !between(0, 3);
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0 };
    set_count(a);
    for (int64_t k = 0; k < a->count; k++) {
        a->x[k] = (double)between(a->type == DUET_U8 ? 0 : low, high);
        if (a->type == DUET_BOOL) a->x[k] = (double)between(0, 1);
        if (strange && !between(0, 5)) a->x[k] = odd[between(0, 3)];
    }
}

static void random_array(array *a, duet_dtype type, int least, int most)
{
    a->type = type;
    a->rank = (int)between(least, most);
    for (int k = 0; k < a->rank; k++) a->size[k] = between(between(0, 9) > 0, a->rank > 2 ? 5 : 9);
    fill(a, -4, 9);
}

static duet_matrix *matrix_of(const array *a)
{
    duet_matrix *wide = duet_from_array_shape(a->x, DUET_F64, a->rank, a->size),
                *m = duet_eval(duet_cast(wide, a->type));
    CHECK(m != NULL, "%s", duet_error());
    duet_free(&wide);
    return m;
}

/* Checks the type, the shape and the elements of e. want->x may be off by `error` of its size. */
static void check(duet_expr e, const array *want, double error, const char *what)
{
    duet_matrix *m = NULL, *wide = NULL;
    DUET_ON(place[at_place]) m = duet_eval(e);
    if (!CHECK(m != NULL, "%s: %s", what, duet_error())) return;
    bool same = duet_type(m) == want->type && duet_rank(m) == want->rank;
    for (int a = 0; same && a < want->rank; a++) same = duet_size(m, a) == want->size[a];
    CHECK(same, "%s: the type is %d of rank %d, not %d of rank %d; or the sizes differ", what,
          (int)duet_type(m), duet_rank(m), (int)want->type, want->rank);
    wide = duet_eval(duet_cast(m, DUET_F64));
    const double *p = wide ? duet_read_f64(wide) : NULL;
    for (int64_t k = 0; same && p && k < want->count; k++) {
        const double w = want->x[k];
        const bool signs =
            error >= 0 || isnan(w) || !signbit(p[k]) == !signbit(w); /* -1: exact, with the sign of 0 */
        const bool equal = isnan(w) ? isnan(p[k]) : p[k] == w || fabs(p[k] - w) <= error * (1 + fabs(w));
        if (!CHECK(equal && signs, "%s, type %d: element %d is %.17g, not %.17g", what, (int)want->type,
                   (int)k, p[k], w))
            break;
    }
    duet_free(&m);
    duet_free(&wide);
}

static double error_of(duet_dtype t)
{
    if (t == DUET_BF16) return 0.04;
    if (t == DUET_F16) return 0.005;
    return t == DUET_F32 ? 1e-5 : 1e-13;
}

/* ---- tril, triu, diag, meshgrid ---- */

static void try_triangle(duet_dtype type)
{
    static array a, want;
    random_array(&a, type, 2, 4);
    const int64_t rows = a.size[a.rank - 2], columns = a.size[a.rank - 1];
    const int64_t k = between(0, 9) ? between(-7, 7) : between(0, 1) ? INT64_MIN : INT64_MAX;
    duet_matrix *m = matrix_of(&a);
    for (int low = 0; low < 2; low++) {
        want = a;
        for (int64_t n = 0; n < a.count; n++) {
            const int64_t off = n % columns - n / columns % rows;
            if (low ? off > k : off < k) want.x[n] = 0;
        }
        check(low ? duet_tril(m, k) : duet_triu(m, k), &want, 0, low ? "tril" : "triu");
    }
    duet_free(&m);
}

static void try_diag(duet_dtype type)
{
    static array a, want;
    random_array(&a, type, 1, 2);
    const int64_t k = between(-4, 4), size = a.size[0] + llabs(k);
    duet_matrix *m = matrix_of(&a);
    want = (array){ .type = type, .rank = 3 - a.rank };
    if (a.rank == 1) {
        want.size[0] = want.size[1] = size;
        for (int64_t i = 0; i < a.size[0]; i++)
            want.x[(i - (k < 0 ? k : 0)) * size + i + (k > 0 ? k : 0)] = a.x[i];
    } else {
        for (int64_t i = 0; i < a.size[0]; i++)
            if (0 <= i + k && i + k < a.size[1]) want.x[want.size[0]++] = a.x[i * a.size[1] + i + k];
    }
    set_count(&want);
    check(duet_diag(m, k), &want, 0, "diag");
    duet_free(&m);
}

static void try_meshgrid(duet_dtype type)
{
    static array a, want;
    random_array(&a, type, 1, 1);
    want = (array){ .type = type, .rank = (int)between(1, 4) };
    const int axis = (int)between(0, want.rank - 1);
    for (int d = 0; d < want.rank; d++) want.size[d] = d == axis ? a.size[0] : between(0, 4);
    set_count(&want);
    int64_t i[DUET_RANK_MAX] = { 0 };
    for (int64_t n = 0; n < want.count; n++, step_on(want.rank, want.size, i)) want.x[n] = a.x[i[axis]];
    duet_matrix *m = matrix_of(&a);
    const int given = between(0, 1) ? axis : axis - want.rank;
    check((duet_meshgrid)(DUET(m), given, want.rank, want.size), &want, 0, "meshgrid");
    duet_free(&m);
}

/* ---- vecdot, cross, diff ---- */

/* Indices of both operands, whose sizes broadcast to those of the result. */
static int64_t place_in(const array *a, const array *all, const int64_t *i, int64_t *stride, int axis)
{
    int64_t at = 0, by = 1;
    for (int d = a->rank - 1, e = all->rank - 1; d >= 0; d--) {
        if (d == axis) *stride = by;
        else if (a->size[d] > 1) at += by * i[e--];
        else e--;
        by *= a->size[d];
    }
    return at;
}

/* Two operands whose axes broadcast, except `axis`, which has n elements; all: the others of the result. */
static void random_pair(array *a, array *b, array *all, int64_t n, int *axis, duet_dtype type)
{
    *a = *b = *all = (array){ .type = type };
    all->rank = (int)between(0, 3);
    for (int d = 0; d < all->rank; d++) all->size[d] = between(between(0, 6) > 0, 4);
    array *both[] = { a, b };
    const int from_end = (int)between(0, all->rank);
    *axis = -1 - from_end;
    for (int k = 0; k < 2; k++) {
        array *x = both[k];
        const int least = k ? from_end : all->rank;
        const int rank = (int)between(least, all->rank), own = rank - from_end;
        x->rank = rank + 1;
        for (int d = 0; d <= rank; d++) {
            const int e = all->rank - rank + d - (d > own);
            x->size[d] = d == own ? n : between(0, 3) || !k ? all->size[e] : 1;
        }
    }
    if (a->rank == b->rank && between(0, 1)) *axis += a->rank;
    fill(a, -3, 3);
    fill(b, -3, 3);
    set_count(all);
}

static void try_vecdot(duet_dtype type)
{
    static array a, b, want;
    int axis;
    if (type == DUET_BOOL) return;
    random_pair(&a, &b, &want, between(0, 6), &axis, type);
    const int own = axis < 0 ? axis + a.rank : axis, other = axis < 0 ? axis + b.rank : axis;
    const int64_t n = a.size[own];
    int64_t i[DUET_RANK_MAX] = { 0 }, by_a = 0, by_b = 0;
    for (int64_t k = 0; k < want.count; k++, step_on(want.rank, want.size, i)) {
        const int64_t p = place_in(&a, &want, i, &by_a, own), q = place_in(&b, &want, i, &by_b, other);
        for (int64_t j = 0; j < n; j++) want.x[k] += a.x[p + j * by_a] * b.x[q + j * by_b];
    }
    want.type = dtype_of_sums(type);
    duet_matrix *m = matrix_of(&a), *l = matrix_of(&b);
    check(duet_vecdot(m, l, axis), &want, 0, "vecdot");
    duet_free(&m);
    duet_free(&l);
}

static void try_cross(duet_dtype type)
{
    static array a, b, all, want;
    int axis;
    if (type == DUET_BOOL || type == DUET_U8) return;
    random_pair(&a, &b, &all, 3, &axis, type);
    const int own = axis < 0 ? axis + a.rank : axis, other = axis < 0 ? axis + b.rank : axis,
              last = axis < 0 ? axis + all.rank + 1 : axis;
    want = (array){ .type = type, .rank = all.rank + 1 };
    for (int d = 0; d < want.rank; d++) want.size[d] = d == last ? 3 : all.size[d - (d > last)];
    set_count(&want);
    int64_t i[DUET_RANK_MAX] = { 0 }, by_a = 0, by_b = 0, by = 0;
    for (int64_t k = 0; k < all.count; k++, step_on(all.rank, all.size, i)) {
        const double *p = a.x + place_in(&a, &all, i, &by_a, own),
                     *q = b.x + place_in(&b, &all, i, &by_b, other);
        double *to = want.x + place_in(&want, &all, i, &by, last);
        for (int c = 0; c < 3; c++) {
            const int64_t u = (c + 1) % 3, v = (c + 2) % 3;
            to[c * by] = p[u * by_a] * q[v * by_b] - p[v * by_a] * q[u * by_b];
        }
    }
    duet_matrix *m = matrix_of(&a), *l = matrix_of(&b);
    check(duet_cross(m, l, axis), &want, 0, "cross");
    if (own == a.rank - 1 && other == b.rank - 1) check(duet_cross(m, l), &want, 0, "cross");
    duet_free(&m);
    duet_free(&l);
}

static void try_diff(duet_dtype type)
{
    static array a, want;
    random_array(&a, type, 1, 4);
    const int axis = (int)between(0, a.rank - 1), n = between(0, 9) ? (int)between(0, 4) : 1000;
    duet_matrix *m = matrix_of(&a);
    want = a;
    for (int k = 0; k < n && want.size[axis]; k++) {
        array from = want;
        int64_t i[DUET_RANK_MAX] = { 0 }, by = 1;
        for (int d = axis + 1; d < from.rank; d++) by *= from.size[d];
        want.size[axis]--;
        set_count(&want);
        for (int64_t j = 0; j < want.count; j++, step_on(want.rank, want.size, i)) {
            int64_t p = 0;
            for (int d = 0; d < from.rank; d++) p = p * from.size[d] + i[d];
            want.x[j] = from.x[p + by] - from.x[p];
            if (type == DUET_BOOL) want.x[j] = from.x[p + by] != from.x[p];
            if (type == DUET_U8) want.x[j] = (uint8_t)(int)want.x[j];
        }
    }
    check(duet_diff(m, n, axis - a.rank), &want, 0, "diff");
    duet_free(&m);
}

/* ---- statistics ---- */

static int compare_numbers(const void *p, const void *q) /* NaN is last */
{
    const double a = *(const double *)p, b = *(const double *)q;
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static double quantile_of(double *x, int64_t n, double q, bool is_median)
{
    if (!n) return NAN;
    qsort(x, (size_t)n, sizeof *x, compare_numbers);
    if (isnan(x[n - 1])) return NAN;
    const double at = q * (double)(n - 1), low = floor(at), share = at - low;
    const double a = x[(int64_t)low], b = share > 0 ? x[(int64_t)low + 1] : a;
    if (a == b) return a;
    if (is_median) return (a + b) / 2;
    return share < 0.5 ? a + share * (b - a) : b - (1 - share) * (b - a);
}

static double variance_of(const double *x, int64_t n, double ddof)
{
    double mean = 0, sum = 0;
    for (int64_t k = 0; k < n; k++) mean += x[k] / (double)n;
    for (int64_t k = 0; k < n; k++) sum += (x[k] - mean) * (x[k] - mean);
    return sum / fmax((double)n - ddof, 0);
}

enum { MEDIAN, QUANTILE, PERCENTILE, VAR, STD, STATISTICS };

static double statistic_of(int which, double *x, int64_t n, double number)
{
    if (which == MEDIAN) return quantile_of(x, n, 0.5, true);
    if (which == QUANTILE) return quantile_of(x, n, number, false);
    if (which == PERCENTILE) return quantile_of(x, n, number / 100, false);
    const double v = n ? variance_of(x, n, number) : NAN;
    return which == VAR ? v : sqrt(v);
}

static duet_expr statistic(int which, duet_matrix *m, double number, int count, const int *axis, bool keeps)
{
    const duet_expr x = DUET(m);
    if (which == MEDIAN && !axis) return (duet_median)(x);
    if (which == MEDIAN)
        return keeps ? (duet_median_axes_keep)(x, count, axis) : (duet_median_axes)(x, count, axis);
#define FORMS(name)                                                                                          \
    !axis   ? (duet_##name)(x, number)                                                                       \
    : keeps ? (duet_##name##_axes_keep)(x, number, count, axis)                                              \
            : (duet_##name##_axes)(x, number, count, axis)
    if (which == QUANTILE) return FORMS(quantile);
    if (which == PERCENTILE) return FORMS(percentile);
    if (which == VAR) return FORMS(var_ddof);
    return FORMS(std_ddof);
}

/* The statistic of a along the axes in the mask `is`. */
static void expect_statistic(int which, const array *a, double number, unsigned is, bool keeps, array *want)
{
    static double line[MOST];
    array kept = *a;
    *want = (array){ .type = is_float(a->type) ? a->type : DUET_F64 };
    for (int d = 0; d < a->rank; d++) {
        if (is >> d & 1) kept.size[d] = 1;
        if (keeps || !(is >> d & 1)) want->size[want->rank++] = kept.size[d];
    }
    set_count(want);
    int64_t i[DUET_RANK_MAX] = { 0 };
    for (int64_t k = 0; k < want->count; k++, step_on(kept.rank, kept.size, i)) {
        int64_t j[DUET_RANK_MAX] = { 0 }, n = 0;
        for (int64_t l = 0; l < a->count; l++, step_on(a->rank, a->size, j)) {
            bool same = true;
            for (int d = 0; d < a->rank; d++) same &= is >> d & 1 || i[d] == j[d];
            if (same) line[n++] = a->x[l];
        }
        want->x[k] = statistic_of(which, line, n, number);
    }
}

static void try_statistic(duet_dtype type, int which)
{
    static array a, want;
    static const char *const names[] = { "median", "quantile", "percentile", "var_ddof", "std_ddof" };
    random_array(&a, type, 0, 4);
    const bool all = !a.rank || !between(0, 3), keeps = between(0, 1);
    double number = (double)between(0, 2);
    if (which == QUANTILE) number = (double)between(0, 16) / 16;
    if (which == PERCENTILE) number = (double)between(0, 4) * 25;
    int axis[DUET_RANK_MAX], count = 0;
    unsigned is = 0;
    for (int d = a.rank - 1; d >= 0; d--)
        if (all || between(0, 1)) is |= 1u << d, axis[count++] = between(0, 1) ? d : d - a.rank;
    if (a.rank && !count && !all) is = 1, axis[count++] = 0;
    expect_statistic(which, &a, number, is, keeps && !all, &want);
    duet_matrix *m = matrix_of(&a);
    check(statistic(which, m, number, count, all ? NULL : axis, keeps), &want, error_of(want.type),
          names[which]);
    duet_free(&m);
}

static void try_cov(duet_dtype type)
{
    static array a, want, ratio;
    do random_array(&a, type, 1, 2);
    while (a.count == 0);
    for (int64_t k = 0; k < a.count; k++)
        if (!isfinite(a.x[k])) a.x[k] = 3;
    const int64_t rows = a.rank == 2 ? a.size[0] : 1, n = a.size[a.rank - 1];
    const double ddof = (double)between(0, 2);
    double mean[16] = { 0 };
    want = (array){ .type = is_float(type) ? type : DUET_F64,
                    .rank = a.rank == 2 ? 2 : 0,
                    .size = { rows, rows } };
    set_count(&want);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++) mean[i] += a.x[i * n + k] / (double)n;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++) sum += (a.x[i * n + k] - mean[i]) * (a.x[j * n + k] - mean[j]);
            want.x[i * rows + j] = fabs(sum) < 1e-9 ? 0 : sum;
        }
    ratio = want;
    bool constant = false;
    for (int64_t k = 0; k < want.count; k++) {
        const double size = sqrt(want.x[k / rows * (rows + 1)] * want.x[k % rows * (rows + 1)]);
        constant |= size == 0;
        ratio.x[k] = want.x[k] / size;
    }
    for (int64_t k = 0; k < want.count; k++) want.x[k] /= fmax((double)n - ddof, 0);
    duet_matrix *m = matrix_of(&a);
    const bool exact = n == 1 || n == 2 || n == 4 || n == 8; /* then means are exact, and zeros are zeros */
    if (exact || (double)n > ddof) check(duet_cov(m, ddof), &want, 8 * error_of(want.type), "cov");
    if (exact || !constant) check(duet_corrcoef(m), &ratio, 8 * error_of(want.type), "corrcoef");
    duet_free(&m);
}

/* ---- searchsorted and isin ---- */

static void try_search(duet_dtype type)
{
    static array list, values, want;
    random_array(&values, type, 0, 3);
    list = (array){ .type = type, .rank = 1, .size = { between(0, 3) ? between(0, 40) : between(100, 600) } };
    fill(&list, -4, 9);
    qsort(list.x, (size_t)list.count, sizeof *list.x, compare_numbers);
    duet_matrix *m = matrix_of(&values), *l = matrix_of(&list);
    for (duet_side side = DUET_SIDE_LEFT; side <= DUET_SIDE_RIGHT; side++) {
        want = values;
        want.type = DUET_I64;
        for (int64_t k = 0; k < values.count; k++) {
            int64_t n = 0;
            for (int64_t i = 0; i < list.count; i++) {
                const int order = compare_numbers(&list.x[i], &values.x[k]);
                n += order < 0 || (order == 0 && side == DUET_SIDE_RIGHT);
            }
            want.x[k] = (double)n;
        }
        check(duet_searchsorted(l, m, side), &want, 0, side ? "searchsorted, right" : "searchsorted, left");
    }
    want.type = DUET_BOOL;
    for (int64_t k = 0; k < values.count; k++) {
        bool is_in = false;
        for (int64_t i = 0; i < list.count; i++) is_in |= list.x[i] == values.x[k];
        want.x[k] = is_in;
    }
    check(duet_isin(m, duet_flip(l, 0)), &want, 0, "isin");
    if (list.count % 4 == 0) check(duet_isin(m, duet_reshape(l, 2, list.count / 4, 2)), &want, 0, "isin");
    duet_free(&m);
    duet_free(&l);
}

/* ---- integer powers, and the next number ---- */

/* Multiplies one factor at a time; wraps to 64 bits. */
static uint64_t power_of(uint64_t x, int n)
{
    uint64_t all = 1;
    while (n-- > 0) all *= x;
    return all;
}

static void try_power(duet_dtype type)
{
    static array a, b, want;
    if (is_float(type) || type == DUET_BOOL) return;
    random_array(&a, type, 1, 3);
    b = want = a;
    fill(&b, -2, 12);
    for (int64_t k = 0; k < a.count; k++) {
        const int64_t x = (int64_t)a.x[k];
        const int n = (int)b.x[k];
        const uint64_t all = power_of((uint64_t)x, n);
        if (type == DUET_U8) want.x[k] = (uint8_t)all;
        else if (type == DUET_I32) want.x[k] = (int32_t)(uint32_t)all;
        else want.x[k] = (double)(int64_t)all;
        if (n < 0) want.x[k] = x == 1 ? 1 : x == -1 ? n % 2 ? -1 : 1 : 0;
    }
    duet_matrix *m = matrix_of(&a), *l = matrix_of(&b);
    check(duet_pow(m, l), &want, 0, "pow");
    duet_free(&m);
    duet_free(&l);
}

/* The number next to x, by the bits of its type. */
static double next_of(duet_dtype type, double x, double y)
{
    if (type == DUET_F64) return nextafter(x, y);
    if (type == DUET_F32) return (double)nextafterf((float)x, (float)y);
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return y;
    const int fraction = type == DUET_F16 ? 10 : 7, least = type == DUET_F16 ? -14 : -126;
    const double most = type == DUET_F16 ? 65504 : 0x1.fep127;
    if (isinf(x)) return copysign(most, x);
    int e;
    const double m = frexp(x, &e); /* 0.5 <= |m| < 1 */
    const bool shrinks = x != 0 && (x > 0) == (y < x), is_power = fabs(m) == 0.5;
    const int top = e - 1 < least || x == 0 ? least : e - 1 - (shrinks && is_power && e - 1 > least);
    const double next = x + (y > x ? 1 : -1) * ldexp(1, top - fraction);
    if (next == 0) return copysign(0, x);
    return fabs(next) > most ? copysign(INFINITY, x) : next;
}

static double random_float(duet_dtype type)
{
    static const int low[] = { [DUET_F16] = -24, [DUET_BF16] = -133, [DUET_F32] = -149, [DUET_F64] = -1074 },
                     high[] = { [DUET_F16] = 15, [DUET_BF16] = 127, [DUET_F32] = 127, [DUET_F64] = 1023 };
    const double odd[] = { 0,
                           -0.0,
                           NAN,
                           INFINITY,
                           -INFINITY,
                           1,
                           -1,
                           ldexp(1, low[type]),
                           -ldexp(1, low[type]),
                           ldexp(1.75, high[type]) };
    if (!between(0, 3)) return odd[between(0, 9)];
    const double m = 1 + (double)(between(0, 2) ? between(0, 3) : between(0, 127)) / 128;
    return (between(0, 1) ? 1 : -1) * ldexp(m, (int)between(low[type] + 7, high[type]));
}

/* Every number is a value of its type, or is rounded to one by the cast; the reference uses that value. */
static void try_nextafter(duet_dtype type)
{
    static array a, b, want;
    if (!is_float(type)) return;
    random_array(&a, type, 1, 2);
    for (int64_t k = 0; k < a.count; k++) a.x[k] = random_float(type);
    b = want = a;
    for (int64_t k = 0; k < a.count; k++) b.x[k] = between(0, 4) ? random_float(type) : a.x[k];
    const double n = random_float(type);
    duet_matrix *m = matrix_of(&a), *l = matrix_of(&b), *next = NULL, *wide;
    for (int64_t k = 0; k < a.count; k++) want.x[k] = next_of(type, a.x[k], b.x[k]);
    check(duet_nextafter(m, l), &want, -1, "nextafter");
    for (int64_t k = 0; k < a.count; k++) want.x[k] = next_of(type, a.x[k], n);
    check(duet_nextafter(m, n), &want, -1, "nextafter");
    /* and once more from there: numbers of all digits */
    next = duet_eval(duet_nextafter(m, n));
    wide = duet_eval(duet_cast(next, DUET_F64));
    const double *p = duet_read_f64(wide);
    for (int64_t k = 0; p && k < a.count; k++) want.x[k] = next_of(type, p[k], b.x[k]);
    check(duet_nextafter(next, l), &want, -1, "nextafter");
    duet_free(&m);
    duet_free(&l);
    duet_free(&next);
    duet_free(&wide);
}

static void test_each(int turns)
{
    for (at_place = 0; at_place < places; at_place++) {
        for (int k = 0; k < turns; k++) {
            const duet_dtype type = types[k % REAL_TYPES];
            gen = rng_new((uint64_t)k + 1);
            try_triangle(type);
            try_diag(type);
            try_meshgrid(type);
            try_vecdot(type);
            try_cross(type);
            try_diff(type);
            for (int s = 0; s < STATISTICS; s++) try_statistic(type, s);
            try_cov(type);
            try_search(type);
            try_power(type);
            try_nextafter(type);
        }
        tap_point(at_place ? "results equal loops, on the GPU" : "results equal loops, on the CPU");
    }
    at_place = 0;
}

/* ---- numbers of C, complex numbers, macros ---- */

static double value_of(duet_expr e)
{
    double x = -77;
    CHECK(duet_item(e, &x) == DUET_OK, "%s", duet_error());
    return x;
}
#define IS(e, want)                                                                                          \
    do {                                                                                                     \
        const double is_ = value_of(DUET(e)), want_ = (want);                                                \
        CHECK(is_ == want_ || (isnan(is_) && isnan(want_)), "%s is %.17g, not %.17g", #e, is_, want_);       \
    } while (0)

static void test_macros(void)
{
    duet_matrix *x = duet_from_array(((const double[]){ 1, 4, 2, 8, 3, 5 }), DUET_F64, 2, 3),
                *v = duet_from_array(((const double[]){ 1, 2, 2, 7 }), DUET_F64, 4),
                *i = duet_from_array(((const int32_t[]){ 1, 2, 2, 7 }), DUET_I32, 4),
                *z = duet_from_array(((const double _Complex[]){ 1 + 2 * I, 3 - I }), DUET_C128, 2);
    IS(duet_median(x), 3.5);
    IS(duet_sum(duet_median(x, 1)), 7);
    IS(duet_median(x, 0, 1), 3.5);
    IS(duet_quantile(x, 0.2), 2);
    IS(duet_sum(duet_quantile(x, 1, 0)), 17);
    IS(duet_percentile(x, 40, 0, -1), 3);
    IS(duet_var_ddof(v, 1), 22.0 / 3);
    IS(duet_sum(duet_var_ddof(x, 1, 0)), 24.5 + 0.5 + 4.5);
    IS(duet_expr_rank(duet_std_ddof_axes_keep(x, 1, 0)), 2);
    IS(duet_searchsorted(v, 2, DUET_SIDE_LEFT), 1);
    IS(duet_searchsorted(v, 2, DUET_SIDE_RIGHT), 3);
    IS(duet_searchsorted(v, 2.5, DUET_SIDE_LEFT), 3);
    IS(duet_searchsorted(v, NAN, DUET_SIDE_LEFT), 4);
    IS(duet_searchsorted(i, 7, DUET_SIDE_RIGHT), 4);
    IS(duet_sum(duet_isin(i, 2)), 2);
    IS(duet_isin(7, i), 1);
    IS(duet_isin(5, v), 0);
    IS(duet_real(duet_vecdot(z, z, 0)), 15);
    IS(duet_imag(duet_sum(duet_diag(z, 1))), 1);
    IS(duet_real(duet_sum(duet_triu(duet_outer(z, z), 1))), 5);
    IS(duet_real(duet_cov(z, 0)), (4 + 9) / 4.0);
    IS(duet_real(duet_sum(duet_diff(z, 1, 0))), 2);
    IS(duet_sum(duet_meshgrid(v, 1, 3, 4)), 36);
    IS(duet_copysign(3, -2), -3);
    IS(duet_copysign(3, -0.0), -3);
    IS(duet_signbit(-0.0), 1);
    IS(duet_nextafter(1, 2), nextafter(1, 2));
    IS(duet_sum(duet_pow(i, 2)), 58);
    IS(duet_sum(duet_pow(2, i)), 138);
    duet_free(&x);
    duet_free(&v);
    duet_free(&i);
    duet_free(&z);
    tap_point("macros, numbers and complex numbers");
}

/* ---- errors ---- */

static void refused(duet_expr e, duet_status want, const char *text)
{
    duet_matrix *m = duet_eval(e);
    CHECK(!m && duet_error_status() == want && strstr(duet_error(), text), "\"%s\" is expected, not \"%s\"",
          text, duet_error());
    duet_free(&m);
}

static void test_refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 3), *v = duet_new(DUET_F32, 3), *i = duet_new(DUET_I32, 3),
                *z = duet_new(DUET_C64, 3), *none = NULL;
    refused(duet_tril(v, 0), DUET_BAD_SHAPE, "duet_tril(x: f32[3]): x must have at least 2 axes, not 1");
    refused(duet_triu(none, 0), DUET_BAD_ARGUMENT, "duet_triu(x: NULL): x must not be NULL");
    refused(duet_diag(duet_stack(0, x, x), 0), DUET_BAD_SHAPE,
            "duet_diag(x: f32[2,2,3]): x must have 1 or 2 axes, not 3");
    refused(duet_diag(v, INT64_MAX), DUET_BAD_SHAPE,
            "duet_diag(x: f32[3]): the number of elements overflows");
    refused(duet_meshgrid(x, 0, 2, 3), DUET_BAD_SHAPE,
            "duet_meshgrid(x: f32[2,3]): x must have 1 axis, not 2");
    refused(duet_meshgrid(v, 1, 3, 4), DUET_BAD_SHAPE,
            "duet_meshgrid(x: f32[3]): x has 3 elements, and axis 1 of the grid has size 4");
    refused(duet_meshgrid(v, 2, 3, 4), DUET_BAD_SHAPE, "axis 2 does not exist; the grid has 2 axes");
    refused(duet_vecdot(x, v, 0), DUET_BAD_SHAPE,
            "duet_vecdot(x: f32[2,3], y: f32[3]): x has 2 elements along axis 0, and y has 3");
    refused(duet_vecdot(x, v, 1), DUET_BAD_SHAPE, "axis 1 does not exist; x has 2 axes and y has 1");
    refused(duet_vecdot(v, i, 0), DUET_BAD_TYPE,
            "duet_vecdot(x: f32[3], y: i32[3]): the operands have no common");
    refused(duet_cross(x, v, 0), DUET_BAD_SHAPE,
            "duet_cross_axis(x: f32[2,3], y: f32[3]): axis 0 of x and of y must have 3 elements");
    refused(duet_cross(v, none), DUET_BAD_ARGUMENT, "duet_cross(x: f32[3], y: NULL): y must not be NULL");
    refused(duet_diff(v, -1, 0), DUET_BAD_ARGUMENT, "duet_diff(x: f32[3]): n (-1) must not be negative");
    refused(duet_diff(v, 1, 1), DUET_BAD_SHAPE, "duet_diff(x: f32[3]): axis 1 does not exist; x has 1 axis");
    refused(duet_median(z), DUET_BAD_TYPE, "duet_median(x: c64[3]): ");
    refused(duet_median(x, 0, 0), DUET_BAD_SHAPE,
            "duet_median_axes(x: f32[2,3]): axis 0 is in the list twice");
    refused(duet_median(x, 2), DUET_BAD_SHAPE, "axis 2 does not exist; x has 2 axes");
    refused(duet_quantile(x, 1.5), DUET_BAD_ARGUMENT,
            "duet_quantile(x: f32[2,3]): q (1.5) must be from 0 to 1");
    refused(duet_percentile(x, NAN, 0), DUET_BAD_ARGUMENT, "must be from 0 to 100");
    refused(duet_var_ddof(x, NAN), DUET_BAD_ARGUMENT, "duet_var_ddof(x: f32[2,3]): ddof must not be NaN");
    refused(duet_cov(duet_sum(x), 1), DUET_BAD_SHAPE, "duet_cov(x: f32[]): x must have 1 or 2 axes, not 0");
    refused(duet_searchsorted(x, v, DUET_SIDE_LEFT), DUET_BAD_SHAPE,
            "duet_searchsorted(x: f32[2,3], values: f32[3]): x must have 1 axis, not 2");
    refused(duet_searchsorted(v, v, (duet_side)7), DUET_BAD_ARGUMENT, "side (7) is not a duet_side");
    refused(duet_searchsorted(v, z, DUET_SIDE_LEFT), DUET_BAD_TYPE, "the elements must be real, not complex");
    refused(duet_searchsorted(v, i, DUET_SIDE_LEFT), DUET_BAD_TYPE,
            "duet_searchsorted(x: f32[3], values: i32[3]): the operands have no common element type");
    refused(duet_searchsorted(i, 2.5, DUET_SIDE_LEFT), DUET_BAD_TYPE, "2.5 is not a value of i32");
    refused(duet_isin(v, i), DUET_BAD_TYPE,
            "duet_isin(x: f32[3], values: i32[3]): the operands have no common");
    refused(duet_nextafter(i, i), DUET_BAD_TYPE,
            "duet_nextafter(x: i32[3], y: i32[3]): the elements must be floating");
    refused(duet_nextafter(x, duet_stack(0, v, v, v)), DUET_BAD_SHAPE,
            "duet_nextafter(x: f32[2,3], y: f32[3,3]): the shapes of the operands do not broadcast");
    refused(duet_isin(none, v), DUET_BAD_ARGUMENT, "duet_isin(x: NULL, values: f32[3]): x must not be NULL");
    duet_free(&x);
    duet_free(&v);
    duet_free(&i);
    duet_free(&z);
    tap_point("errors name the function, its operands and the rule");
}

/* An operator that changes nothing gives another formula: dropping that leaves a persistent operand. */
static void test_own_results(void)
{
    duet_matrix *x = duet_ones(DUET_F32, 3, 4), *y = NULL;
    const duet_expr h = duet_hold(duet_add(x, 1));
    const duet_expr same[] = { duet_tril(h, 9),
                               duet_triu(h, -9),
                               duet_diff(h, 0, 0),
                               duet_roll(h, 4, 1),
                               duet_tile(h, 1),
                               duet_repeat(h, 1, 0),
                               duet_pad(h),
                               duet_concat(0, h),
                               duet_pow_int(h, 1),
                               duet_quantile(h, 1),
                               duet_tile(h, 1, 1),
                               duet_reshape(h, 3, 4),
                               duet_cast(h, DUET_F32),
                               DUET_ALONG(duet_median, h, 0, NULL) };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        CHECK(same[i].serial != h.serial, "result %d is the operand", (int)i);
        CHECK(duet_drop(same[i]) == DUET_OK, "%s", duet_error());
    }
    y = duet_eval(h);
    CHECK(y != NULL, "%s", duet_error());
    CHECK(duet_drop(h) == DUET_OK, "%s", duet_error());
    duet_free(&x, &y);
    tap_point("results are formulas of their own");
}

/* Operands of two types, and the most axes. */
static void test_mixed(void)
{
    const bool list[] = { 0, 0, 1, 1 };
    const float values[] = { -1, 0, 0.5f, 1, 2, NAN };
    const int64_t want[2][6] = { { 0, 0, 2, 2, 4, 4 }, { 0, 2, 2, 4, 4, 4 } };
    duet_matrix *x = duet_from_array(list, DUET_BOOL, 4), *v = duet_from_array(values, DUET_F32, 6);
    for (int side = 0; side < 2; side++) {
        duet_matrix *at = duet_eval(duet_searchsorted(x, v, side ? DUET_SIDE_RIGHT : DUET_SIDE_LEFT));
        const int64_t *p = duet_read_i64(at);
        for (int i = 0; p && i < 6; i++) CHECK(p[i] == want[side][i], "value %d is at %d", i, (int)p[i]);
        CHECK(p != NULL, "%s", duet_error());
        duet_free(&at);
    }
    duet_matrix *deep = duet_ones(DUET_I8, 1, 1, 1, 1, 1, 1, 1, 2);
    duet_matrix *m = duet_eval(DUET_ALONG(duet_median, deep, 0, NULL));
    CHECK(m && duet_type(m) == DUET_F64 && duet_rank(m) == 8 && duet_count(m) == 2, "%s", duet_error());
    duet_free(&x, &v, &deep, &m);
    tap_point("operands of two types, and results of the largest rank");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_macros();
    test_refusals();
    test_own_results();
    test_mixed();
    test_each(is_quick(argc, argv) ? 400 : 4000);
    return tap_end();
}
