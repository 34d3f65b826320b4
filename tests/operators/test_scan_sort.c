/* test_scan_sort.c - cumsum, cumprod, sort, argsort, top_k and histogram against simple loops:
 * equal bits on every machine and with any number of threads. */
#include "each_type.h"
#include "scan_sort_trial.h"

typedef struct question {
    duet_matrix *x;
    int axis, k, n;
    double low, high;
} question;

static const sizes shapes[] = {
    SIZES(0),       SIZES(1),         SIZES(2),        SIZES(17),       SIZES(255),      SIZES(257),
    SIZES(4096),    SIZES(4097),      SIZES(9001),     SIZES(3, 0),     SIZES(0, 3),     SIZES(1, 1),
    SIZES(5, 33),   SIZES(37, 41),    SIZES(2, 4099),  SIZES(4099, 2),  SIZES(300, 4),   SIZES(4, 300),
    SIZES(3, 5, 7), SIZES(2, 600, 3), SIZES(70000, 1), SIZES(1, 70000), SIZES(3, 20000),
};

static int64_t line_place(const list *l, int axis, int64_t line, int64_t i)
{
    const int64_t inner = list_inner(l, axis);
    return (line / inner * l->size[axis] + i) * inner + line % inner;
}

static int64_t lines_of(const list *l, int axis) { return list_outer(l, axis) * list_inner(l, axis); }

/* ---- cumsum and cumprod: by docs/semantics.md, each sum independently ---- */

#define SUMS(type, T, none_sum)                                                                              \
    static T join_##type(T a, T b, bool product) { return product ? a * b : a + b; }                         \
    /* Sums `parts` parts before i, each of `each` elements and made of smaller parts, in order. */          \
    static T before_##type(const T *x, int64_t from, int64_t to, int64_t each, bool product)                 \
    {                                                                                                        \
        T sum = product ? (T)1 : none_sum;                                                                   \
        for (int64_t i = from; i + each <= to; i += each)                                                    \
            sum = join_##type(sum, each == 1 ? x[i] : before_##type(x, i, i + each, each / 16, product),     \
                              product);                                                                      \
        return sum;                                                                                          \
    }                                                                                                        \
    static void scan_##type(const T *x, T *out, int64_t n, bool product)                                     \
    {                                                                                                        \
        T blocks = product ? (T)1 : none_sum;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const int64_t block = i / 4096 * 4096, group = i / 256 * 256, run = i / 16 * 16;                 \
            if (i == block && i)                                                                             \
                blocks = join_##type(blocks, before_##type(x, i - 4096, i, 256, product), product);          \
            const T in_run = before_##type(x, run, i + 1, 1, product);                                       \
            const T in_group = join_##type(before_##type(x, group, run, 16, product), in_run, product);      \
            const T in_block = join_##type(before_##type(x, block, group, 256, product), in_group, product); \
            out[i] = join_##type(blocks, in_block, product);                                                 \
        }                                                                                                    \
    }
SUMS(f32, float, -0.0f)
SUMS(f64, double, -0.0)
SUMS(i64, uint64_t, 0)

static list summed_up(const list *x, int axis, bool product)
{
    list out = list_new(x->type, x->rank, x->size);
    const int64_t n = x->size[axis];
    char *line = malloc((size_t)(2 * n + 1) * 8), *sums = line + n * 8;
    for (int64_t l = 0; l < lines_of(x, axis); l++) {
        for (int64_t i = 0; i < n; i++)
            memcpy(line + i * (int64_t)list_each(x), list_place(x, line_place(x, axis, l, i)), list_each(x));
        if (x->type == DUET_F32) scan_f32((float *)line, (float *)sums, n, product);
        else if (x->type == DUET_F64) scan_f64((double *)line, (double *)sums, n, product);
        else scan_i64((uint64_t *)line, (uint64_t *)sums, n, product);
        for (int64_t i = 0; i < n; i++)
            memcpy(list_place(&out, line_place(x, axis, l, i)), sums + i * (int64_t)list_each(x),
                   list_each(x));
    }
    free(line);
    return out;
}

/* Halves in f32, rounded once; integers in 64 bits. */
static list summed(const list *x, int axis, bool product)
{
    list wide = list_cast(x, list_sums_in(x->type)), sums = summed_up(&wide, axis, product);
    list out = list_cast(&sums, is_floating(x->type) ? x->type : wide.type);
    list_free(&wide);
    list_free(&sums);
    return out;
}

/* Compares with an ordinary sum: no element takes part in more than 48 additions plus the number of
 * blocks. */
static void near(const list *x, const list *sums, int axis)
{
    const int64_t n = x->size[axis];
    const long double u = dtypes[x->type].roundoff, depth = 48 + (long double)n / 4096;
    for (int64_t l = 0; l < lines_of(x, axis) && dtype_is_f32_or_f64(x->type); l++) {
        long double sum = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = line_place(x, axis, l, i);
            sum += list_number(x, at);
            size += fabsl(list_number(x, at));
            const long double error = fabsl(list_number(sums, at) - sum),
                              bound = depth * u / (1 - depth * u) * size + 1e-17L * size;
            CHECK(error <= bound || isnan(sum), "sum %lld: error %.3Lg, bound %.3Lg", (long long)i, error,
                  bound);
        }
    }
}

static duet_expr ask_cumsum(const void *of)
{
    return duet_cumsum(((const question *)of)->x, ((const question *)of)->axis);
}
static duet_expr ask_cumprod(const void *of)
{
    return duet_cumprod(((const question *)of)->x, ((const question *)of)->axis);
}

static void scans(const sight *s, int axis, int kind)
{
    list x = list_of(s->m);
    const question q = { .x = s->m, .axis = axis };
    list sums = summed(&x, axis, false);
    if (kind != SPECIAL) near(&x, &sums, axis);
    everywhere(ask_cumsum, &q, sums, "cumsum");
    everywhere(ask_cumprod, &q, summed(&x, axis, true), "cumprod");
    list_free(&x);
}

/* ---- sort, argsort, top_k ---- */

typedef struct item {
    long double x;
    int64_t index;
} item;

static int up(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (isnan(x->x) != isnan(y->x)) return isnan(x->x) ? 1 : -1;
    if (!isnan(x->x) && x->x != y->x) return x->x < y->x ? -1 : 1;
    if (x->index < y->index) return -1;
    return 1;
}

static int down(const void *a, const void *b)
{
    const item *x = a, *y = b;
    const bool tied = x->x == y->x || (isnan(x->x) && isnan(y->x));
    if (tied) return (x->index < y->index ? -1 : 1);
    return -up(a, b);
}

/* values and indices of the first k of each line */
static void ranked(const list *x, int axis, int64_t k, bool falls, list *values, list *indices)
{
    int64_t size[DUET_RANK_MAX];
    const int64_t n = x->size[axis];
    memcpy(size, x->size, sizeof size);
    size[axis] = k;
    *values = list_new(x->type, x->rank, size);
    *indices = list_new(DUET_I64, x->rank, size);
    item *line = malloc((size_t)(n + 1) * sizeof *line);
    for (int64_t l = 0; l < lines_of(x, axis); l++) {
        for (int64_t i = 0; i < n; i++) line[i] = (item){ list_number(x, line_place(x, axis, l, i)), i };
        qsort(line, (size_t)n, sizeof *line, falls ? down : up);
        for (int64_t i = 0; i < k; i++) {
            const int64_t to = line_place(values, axis, l, i);
            memcpy(list_place(values, to), list_place(x, line_place(x, axis, l, line[i].index)),
                   list_each(x));
            ((int64_t *)indices->at)[to] = line[i].index;
        }
    }
    free(line);
}

static duet_expr ask_sort(const void *of)
{
    return duet_sort(((const question *)of)->x, ((const question *)of)->axis);
}
static duet_expr ask_argsort(const void *of)
{
    return duet_argsort(((const question *)of)->x, ((const question *)of)->axis);
}
static duet_expr ask_top_k(const void *of)
{
    const question *q = of;
    return duet_top_k(q->x, q->k, q->axis);
}
static duet_expr ask_top_k_indices(const void *of)
{
    const question *q = of;
    return duet_top_k_indices(q->x, q->k, q->axis);
}

static void sorts(const sight *s, int axis)
{
    list x = list_of(s->m), values, indices;
    question q = { .x = s->m, .axis = axis };
    ranked(&x, axis, x.size[axis], false, &values, &indices);
    everywhere(ask_sort, &q, values, "sort");
    everywhere(ask_argsort, &q, indices, "argsort");
    const int64_t wanted[] = { 0, x.size[axis] > 5 ? 5 : x.size[axis], x.size[axis] / 17, x.size[axis] / 40 };
    for (int i = 0; i < LENGTH_OF(wanted); i++) {
        q.k = (int)wanted[i];
        ranked(&x, axis, q.k, true, &values, &indices);
        everywhere(ask_top_k, &q, values, "top_k");
        everywhere(ask_top_k_indices, &q, indices, "top_k_indices");
    }
    list_free(&x);
}

/* ---- histogram ---- */

static duet_expr ask_histogram(const void *of)
{
    const question *q = of;
    return duet_histogram(q->x, q->low, q->high, q->n);
}

static void counts(const sight *s, double low, double high, int n)
{
    list x = list_of(s->m), out = list_new(DUET_I64, 1, (int64_t[]){ n });
    const question q = { .x = s->m, .low = low, .high = high, .n = n };
    const double width = (high - low) / n;
    for (int64_t i = 0; i < x.count; i++) {
        const double v = (double)list_number(&x, i);
        int k = n - 1;
        if (!(v >= low && v <= high)) continue;
        while (k > 0 && v < low + k * width) k--;
        ((int64_t *)out.at)[k]++;
    }
    everywhere(ask_histogram, &q, out, "histogram");
    list_free(&x);
}

static void histograms(const sight *s)
{
    counts(s, -3, 4, 7);
    counts(s, -0.1, 0.7, 1);
    counts(s, -900, 901, 33);
    counts(s, -1e-3, 2.2, 5000);
}

/* ---- all operators ---- */

enum { SCAN = 1, SORT = 2, COUNT = 4 };

static void tried(duet_dtype type, const sizes *z, int view, int kind, int what)
{
    sight s = sight_new(type, z->rank, z->size, view);
    sight_fill(&s, kind);
    for (int axis = 0; axis < z->rank; axis++) {
        if (what & SCAN) scans(&s, axis, kind);
        if (what & SORT) sorts(&s, axis);
    }
    if (what & COUNT) histograms(&s);
    sight_free(&s);
}

static void all_shapes(duet_dtype type, int what)
{
    const bool widened = what == SCAN && type > DUET_I64; /* large ones behave like those of the wider type */
    for (int i = 0; i < LENGTH_OF(shapes); i++) {
        int64_t n = 1;
        for (int a = 0; a < shapes[i].rank; a++) n *= shapes[i].size[a];
        const bool large = n > 10000;
        for (int view = 0; view < SIGHTS; view++)
            for (int kind = 0; kind < FILLINGS; kind++)
                if ((n <= 300 && !widened) || (kind == view && !(large && (quick || widened))))
                    tried(type, &shapes[i], view, kind, what);
    }
}

/* ---- long lines: around the limits of tiles and parts, many lines, aligned and not ---- */

/* n elements, the first of them `lead` after the start of memory. */
static sight long_line(duet_dtype type, int64_t n, int lead, int kind)
{
    sight s = { .whole = duet_new(type, n + lead) };
    s.m = duet_slice(s.whole, lead, n);
    CHECK(s.m != NULL, "the matrix was not made: %s", duet_error());
    sight_fill(&s, kind % FILLINGS);
    char *all = kind == FILLINGS ? duet_overwrite(s.whole) : NULL; /* all equal */
    if (all) memset(all, 1, (size_t)(n + lead) * dtypes[type].bytes);
    return s;
}

static void everywhere_once(asked *make, const void *of, list want, const char *what)
{
    for (int k = 0; k < n_places; k++) compare(make, of, places[k], &want, what);
    list_free(&want);
}

#define IN_ORDER(type, T, none_sum)                                                                          \
    static void in_order_##type(const T *x, T *out, int64_t n, bool product)                                 \
    {                                                                                                        \
        const T nil = product ? (T)1 : none_sum;                                                             \
        T sum[4] = { nil, nil, nil, nil }; /* of a run, of runs, of groups, of blocks */                     \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            for (int k = 0; k < 3; k++)                                                                      \
                if (i % (16 << 4 * k) == 0)                                                                  \
                    sum[k + 1] = join_##type(sum[k + 1], sum[k], product), sum[k] = nil;                     \
            out[i] = sum[0] = join_##type(sum[0], x[i], product);                                            \
            for (int k = 1; k < 4; k++) out[i] = join_##type(sum[k], out[i], product);                       \
        }                                                                                                    \
    }
IN_ORDER(f32, float, -0.0f)
IN_ORDER(f64, double, -0.0)
IN_ORDER(i64, uint64_t, 0)

static list summed_in_order(const list *x, bool product)
{
    list out = list_new(x->type, 1, x->size);
    if (x->type == DUET_F32) in_order_f32((float *)x->at, (float *)out.at, x->count, product);
    else if (x->type == DUET_F64) in_order_f64((double *)x->at, (double *)out.at, x->count, product);
    else in_order_i64((uint64_t *)x->at, (uint64_t *)out.at, x->count, product);
    return out;
}

static void long_scan(duet_dtype type, int64_t n, int lead, int kind)
{
    sight s = long_line(type, n, lead, kind);
    list x = list_of(s.m);
    everywhere_once(ask_cumsum, &(question){ .x = s.m }, summed_in_order(&x, false), "a long cumsum");
    everywhere_once(ask_cumprod, &(question){ .x = s.m }, summed_in_order(&x, true), "a long cumprod");
    sight_free(&s);
    list_free(&x);
}

static void long_scans(void)
{
    static const int64_t lengths[] = { 4095,   4096,   8192,       8193,           3 * 4096,
                                       102400, 200001, 512 * 4096, 512 * 4096 + 1, 4097 * 4096 + 17 };
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64 };
    for (int i = 0; i < LENGTH_OF(lengths) - (quick ? 1 : 0); i++)
        for (int t = 0; t < LENGTH_OF(types); t++)
            for (int lead = 0; lead < 2; lead++) {
                if (lengths[i] > 1000000 && quick && lead != t % 2) continue;
                long_scan(types[t], lengths[i], lead, i % 3 == 2 ? SPECIAL : ANY);
            }
    tap_point("long cumsum and cumprod");
}

/* In place, and many lines of several tiles each. */
static void lines_of_tiles(void)
{
    static const sizes z[] = { SIZES(3, 9000), SIZES(9, 8200), SIZES(300, 5000), SIZES(9000, 3) };
    for (int i = 0; i < LENGTH_OF(z); i++) {
        const int axis = z[i].size[0] < 9000;
        sight s = sight_new(DUET_F32, 2, z[i].size, PLAIN);
        sight_fill(&s, ANY);
        list x = list_of(s.m), want = summed(&x, axis, false);
        for (int k = 0; k < n_places; k++) {
            memcpy(duet_overwrite(s.m), x.at, (size_t)x.count * 4);
            CHECK(duet_set_on(places[k], s.m, duet_cumsum(s.m, axis)) == DUET_OK, "%s", duet_error());
            list got = list_of(s.m);
            list_same(&got, &want, "cumsum in place");
            list_free(&got);
        }
        list_free(&x);
        list_free(&want);
        sight_free(&s);
    }
    tap_point("cumsum in place, of many lines");
}

static void long_sort(duet_dtype type, int64_t n, int lead, int kind)
{
    static const int most[] = { 1, 10, 32, 33, 200 };
    sight s = long_line(type, n, lead, kind);
    list x = list_of(s.m), values, indices;
    question q = { .x = s.m };
    ranked(&x, 0, n, false, &values, &indices);
    everywhere_once(ask_sort, &q, values, "a long sort");
    everywhere_once(ask_argsort, &q, indices, "a long argsort");
    ranked(&x, 0, 200, true, &values, &indices);
    for (int i = 0; i < LENGTH_OF(most); i++) {
        q.k = most[i];
        list some = list_new(type, 1, (int64_t[]){ q.k }), which = list_new(DUET_I64, 1, (int64_t[]){ q.k });
        memcpy(some.at, values.at, (size_t)q.k * list_each(&x));
        memcpy(which.at, indices.at, (size_t)q.k * 8);
        everywhere_once(ask_top_k, &q, some, "a long top_k");
        everywhere_once(ask_top_k_indices, &q, which, "a long top_k_indices");
    }
    sight_free(&s);
    list_free(&x);
    list_free(&values);
    list_free(&indices);
}

/* Tiles of the radix sort have 5760 and 7680 keys, parts of top_k 4096 elements: top_k of 32 among
 * 600000 needs three launches. */
static void long_sorts(void)
{
    static const int64_t lengths[] = { 4096, 4097, 5760, 5761, 7679, 7680, 7681, 11521, 40000, 600000 };
    for (int i = 0; i < LENGTH_OF(lengths); i++)
        FOR_REAL_TYPES (t) {
            const int kind = (i + (int)t) % (FILLINGS + 1);
            if (lengths[i] > 10000 && (quick || lengths[i] > 100000) && (int)t % 4 != i % 2) continue;
            long_sort(t, lengths[i], (int)(t + i) % 2, kind);
        }
    tap_point("long sort, argsort and top_k");
}

/* The maxima are all in one lane, increase, or decrease: more candidates than a warp can store. */
static void chosen(void)
{
    static const int n = 1000, most[] = { 1, 2, 10, 31, 32, 33 };
    duet_matrix *x = duet_new(DUET_F32, 3, n), *turned = duet_transposed(x);
    for (int kind = 0; kind < 5; kind++) {
        float *p = duet_overwrite(x);
        for (int i = 0; p && i < 3 * n; i++)
            if (kind == 0) p[i] = (float)i;
            else if (kind == 1) p[i] = (float)-i;
            else if (kind == 2) p[i] = (float)(i % 32 == 7) * (float)(i + 1);
            else if (kind == 3) p[i] = (float)(i % 3);
            else p[i] = i % 5 ? NAN : -0.0f;
        for (int j = 0; j < LENGTH_OF(most); j++) {
            const int k = most[j];
            list a = list_of(x), b = list_of(turned), values, indices;
            ranked(&a, 1, k, true, &values, &indices);
            everywhere_once(ask_top_k, &(question){ .x = x, .axis = 1, .k = k }, values,
                            "the greatest of rows");
            everywhere_once(ask_top_k_indices, &(question){ .x = x, .axis = 1, .k = k }, indices,
                            "where they are");
            ranked(&b, 0, k, true, &values, &indices);
            everywhere_once(ask_top_k, &(question){ .x = turned, .axis = 0, .k = k }, values,
                            "the greatest of columns");
            everywhere_once(ask_top_k_indices, &(question){ .x = turned, .axis = 0, .k = k }, indices,
                            "where those are");
            list_free(&a);
            list_free(&b);
        }
    }
    duet_free(&turned);
    duet_free(&x);
    tap_point("top_k of elements in any order");
}

/* Two long lines, separately, along either axis. */
static void two_long_lines(void)
{
    const int64_t size[] = { 2, (1 << 20) + 3 };
    sight s = sight_new(DUET_F32, 2, size, PLAIN);
    sight_fill(&s, SPECIAL);
    duet_matrix *t = duet_transposed(s.m);
    list x = list_of(s.m), y = list_of(t), values, indices;
    ranked(&x, 1, size[1], false, &values, &indices);
    everywhere_once(ask_sort, &(question){ .x = s.m, .axis = 1 }, values, "sort of two long rows");
    everywhere_once(ask_argsort, &(question){ .x = s.m, .axis = 1 }, indices, "argsort of two long rows");
    ranked(&y, 0, size[1], false, &values, &indices);
    everywhere_once(ask_sort, &(question){ .x = t }, values, "sort of two long columns");
    everywhere_once(ask_argsort, &(question){ .x = t }, indices, "argsort of two long columns");
    list_free(&x);
    list_free(&y);
    duet_free(&t);
    sight_free(&s);
    tap_point("two long lines along the axis");
}

static void long_counts(void)
{
    static const struct {
        double low, high;
        int n;
    } of[] = { { -3, 4, 7 },      { -1000, 1000, 256 }, { 0, 0.5, 1024 }, { -1, 1, 1025 },
               { -2, 900, 4096 }, { 1, 1 + 1e-6, 300 }, { 0, 1e-320, 3 }, { -1e300, 1e300, 10 } };
    FOR_REAL_TYPES (t)
        for (int i = 0; i < LENGTH_OF(of); i++) {
            if (quick && (i + (int)t) % 3) continue;
            sight s = long_line(t, i % 2 ? 30001 : 4099, i % 4 == 3, (i + (int)t) % (FILLINGS + 1));
            list x = list_of(s.m), out = list_new(DUET_I64, 1, (int64_t[]){ of[i].n });
            const double width = (of[i].high - of[i].low) / of[i].n;
            for (int64_t j = 0; j < x.count; j++) {
                const double v = (double)list_number(&x, j);
                int k = of[i].n - 1;
                if (!(v >= of[i].low && v <= of[i].high)) continue;
                while (k > 0 && v < of[i].low + k * width) k--;
                ((int64_t *)out.at)[k]++;
            }
            everywhere_once(ask_histogram,
                            &(question){ .x = s.m, .low = of[i].low, .high = of[i].high, .n = of[i].n }, out,
                            "histogram");
            list_free(&x);
            sight_free(&s);
        }
    tap_point("long histograms");
}

static void refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3, 4), *c = duet_new(DUET_C64, 3), *b = duet_new(DUET_BOOL, 3),
                *s = duet_new(DUET_F32);
    duet_matrix *n = duet_new(DUET_I64, 4), *y = duet_new(DUET_F32, 3, 4);
    FAILS(duet_set(y, duet_cumsum(x, 2)), DUET_BAD_SHAPE, "does not exist");
    FAILS(duet_set(y, duet_cumsum(s, 0)), DUET_BAD_SHAPE, "does not exist");
    FAILS(duet_set(y, duet_cumprod(b, 0)), DUET_BAD_TYPE, "i64");
    FAILS(duet_set(y, duet_cumprod(c, 0)), DUET_BAD_TYPE, "x must be real");
    FAILS(duet_set(y, duet_sort(c, 0)), DUET_BAD_TYPE, "x must be real");
    FAILS(duet_set(y, duet_argsort(x, 0)), DUET_BAD_TYPE, "i64");
    FAILS(duet_set(y, duet_top_k(x, 5, 1)), DUET_BAD_SHAPE,
          "k (5) must be at most the size of axis 1 of x (4)");
    FAILS(duet_set(y, duet_top_k(x, -1, 1)), DUET_BAD_ARGUMENT, "must not be negative");
    FAILS(duet_set(n, duet_histogram(x, 1, 1, 4)), DUET_BAD_ARGUMENT, "must be less than high");
    FAILS(duet_set(n, duet_histogram(x, 0, INFINITY, 4)), DUET_BAD_ARGUMENT, "must be less than high");
    FAILS(duet_set(n, duet_histogram(x, NAN, 1, 4)), DUET_BAD_ARGUMENT, "must be less than high");
    FAILS(duet_set(n, duet_histogram(x, 0, 1, 0)), DUET_BAD_ARGUMENT, "n (0) must be positive");
    duet_free(&x);
    duet_free(&c);
    duet_free(&b);
    duet_free(&s);
    duet_free(&n);
    duet_free(&y);
    tap_point("invalid and unsupported arguments");
}

/* Of a formula, into a view, and over an operand. */
static void in_formulas(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3, 300), *t = duet_transposed(x), *wide = duet_new(DUET_F32, 300, 5);
    duet_matrix *part = duet_submatrix(wide, 0, 1, 300, 3);
    for (int k = 0; k < n_places; k++) {
        sight_fill(&(sight){ .m = x }, ANY);
        list was = list_of(x), turned = list_of(t), want = summed(&was, 1, false),
             down_the_rows = summed(&turned, 0, false);
        CHECK(duet_set_on(places[k], x, duet_cumsum(x, -1)) == DUET_OK, "%s", duet_error());
        list got = list_of(x);
        list_same(&got, &want, "in place");
        list_free(&got);
        memcpy(duet_overwrite(x), was.at, (size_t)was.count * 4);
        CHECK(duet_set_on(places[k], part, duet_neg(duet_cumsum(duet_neg(t), 0))) == DUET_OK, "%s",
              duet_error());
        got = list_of(part);
        list_same(&got, &down_the_rows, "within a formula");
        list_free(&got);
        CHECK(duet_set_on(places[k], t, duet_cumsum(t, 0)) == DUET_OK, "%s", duet_error());
        got = list_of(t);
        list_same(&got, &down_the_rows, "over itself");
        list_free(&got);
        list_free(&was);
        list_free(&turned);
        list_free(&want);
        list_free(&down_the_rows);
    }
    duet_free(&part);
    duet_free(&wide);
    duet_free(&t);
    duet_free(&x);
    tap_point("inside formulas, of views, and in place");
}

int main(int argc, char **argv)
{
    static const duet_dtype sorted[] = {
        DUET_F32, DUET_F64, DUET_I64, DUET_I32, DUET_I16, DUET_U8, DUET_U64
    };
    quick = is_quick(argc, argv);
    n_places = list_places(places);
    FOR_REAL_TYPES (t) all_shapes(t, SCAN);
    tap_point("cumsum and cumprod");
    for (int t = 0; t < LENGTH_OF(sorted); t++) all_shapes(sorted[t], SORT);
    tap_point("sort, argsort and top_k");
    for (int t = 0; t < LENGTH_OF(sorted); t++) all_shapes(sorted[t], COUNT);
    tap_point("histogram");
    in_formulas();
    long_scans();
    lines_of_tiles();
    long_sorts();
    chosen();
    two_long_lines();
    long_counts();
    refusals();
    return tap_end();
}
