/* test_gather_scatter.c - take, take_along_axis, one_hot, put, scatter_add and scatter_max against
 * simple loops over indices. */
#include "each_type.h"
#include "scan_sort_trial.h"

typedef struct question {
    duet_matrix *x, *by, *z;
    int axis, n;
    duet_dtype type;
} question;

static int64_t place_in(const list *by, int64_t i, int64_t n)
{
    const int64_t at = (int64_t)list_number(by, i);
    if (at < 0) return at + n;
    return at;
}

/* ---- take ---- */

static list like_taken(const list *x, const list *by, int axis)
{
    int64_t size[2 * DUET_RANK_MAX];
    int rank = 0;
    for (int a = 0; a < axis; a++) size[rank++] = x->size[a];
    for (int a = 0; a < by->rank; a++) size[rank++] = by->size[a];
    for (int a = axis + 1; a < x->rank; a++) size[rank++] = x->size[a];
    return list_new(x->type, rank, size);
}

/* The position in x of element i of the result. */
static int64_t source_of(const list *x, const list *by, int axis, int64_t i)
{
    const int64_t inner = list_inner(x, axis), j = i / inner % by->count, o = i / inner / by->count;
    return (o * x->size[axis] + place_in(by, j, x->size[axis])) * inner + i % inner;
}

static list taken(const list *x, const list *by, int axis)
{
    list out = like_taken(x, by, axis);
    for (int64_t i = 0; i < out.count; i++)
        memcpy(list_place(&out, i), list_place(x, source_of(x, by, axis, i)), list_each(x));
    return out;
}

static duet_expr ask_take(const void *of)
{
    const question *q = of;
    return duet_take(q->x, q->by, q->axis);
}
static duet_expr ask_along(const void *of)
{
    const question *q = of;
    return duet_take_along_axis(q->x, q->by, q->axis);
}

static void along(const sight *s, int axis, int64_t m, duet_dtype index, int view)
{
    list x = list_of(s->m);
    int64_t size[DUET_RANK_MAX];
    memcpy(size, x.size, sizeof size);
    if (x.size[axis]) size[axis] = m;
    else size[axis] = 0;
    sight by = sight_new(index, x.rank, size, view);
    if (x.size[axis]) sight_fill_places(&by, x.size[axis]);
    list places_of = list_of(by.m), out = list_new(x.type, x.rank, size);
    const int64_t inner = list_inner(&x, axis);
    for (int64_t i = 0; i < out.count; i++) {
        const int64_t o = i / inner / size[axis];
        const int64_t at = (o * x.size[axis] + place_in(&places_of, i, x.size[axis])) * inner + i % inner;
        memcpy(list_place(&out, i), list_place(&x, at), list_each(&x));
    }
    everywhere(ask_along, &(question){ .x = s->m, .by = by.m, .axis = axis }, out, "take_along_axis");
    list_free(&x);
    list_free(&places_of);
    sight_free(&by);
}

/* ---- put, scatter_add, scatter_max ---- */

enum { PUT, ADD, MAX };

#define MEET(T, a, b, how)                                                                                   \
    do {                                                                                                     \
        T *x_ = (a);                                                                                         \
        const T y_ = *(const T *)(b);                                                                        \
        if ((how) == ADD) *x_ += y_;                                                                         \
        else if (x_[0] != x_[0] || y_ != y_) *x_ = *x_ != *x_ ? *x_ : y_;                                    \
        else if (y_ > *x_ || (y_ == *x_ && signbit((double)*x_))) *x_ = y_;                                  \
    } while (0)

static void meet(duet_dtype type, void *a, const void *b, int how)
{
    if (how == PUT) memcpy(a, b, dtypes[type].bytes);
    else if (type == DUET_F32) MEET(float, a, b, how);
    else if (type == DUET_F64) MEET(double, a, b, how);
    else if (how == ADD) *(uint64_t *)a += *(const uint64_t *)b;
    else if (type == DUET_U64) MEET(uint64_t, a, b, how);
    else MEET(int64_t, a, b, how);
}

static list scattered_wide(const list *x, const list *by, const list *z, int axis, int how)
{
    list out = list_new(x->type, x->rank, x->size);
    memcpy(out.at, x->at, (size_t)x->count * list_each(x));
    const int64_t inner = list_inner(x, axis);
    for (int64_t o = 0; o < list_outer(x, axis); o++)
        for (int64_t j = 0; j < by->count; j++)
            for (int64_t c = 0; c < inner; c++) {
                const int64_t i = (o * by->count + j) * inner + c;
                meet(x->type, list_place(&out, source_of(x, by, axis, i)), list_place(z, i), how);
            }
    return out;
}

/* Updates of one element are combined in the accumulation type and rounded, or wrapped, once. */
static list scattered(const list *x, const list *by, const list *z, int axis, int how)
{
    const duet_dtype type = how == PUT ? x->type : list_sums_in(x->type);
    list wide = list_cast(x, type), with = list_cast(z, type),
         met = scattered_wide(&wide, by, &with, axis, how);
    list out = list_cast(&met, x->type);
    list_free(&wide);
    list_free(&with);
    list_free(&met);
    return out;
}

#define ASK(name)                                                                                            \
    static duet_expr ask_##name(const void *of)                                                              \
    {                                                                                                        \
        const question *q = of;                                                                              \
        return duet_##name(q->x, q->by, q->z, q->axis);                                                      \
    }
ASK(put)
ASK(scatter_add)
ASK(scatter_max)

static void scatters(const sight *s, const sight *by, int axis, int view)
{
    list x = list_of(s->m), places_of = list_of(by->m), like = like_taken(&x, &places_of, axis);
    sight z = sight_new(x.type, like.rank, like.size, view);
    sight_fill(&z, view);
    list updates = list_of(z.m);
    const question q = { .x = s->m, .by = by->m, .z = z.m, .axis = axis };
    everywhere(ask_put, &q, scattered(&x, &places_of, &updates, axis, PUT), "put");
    if (x.type != DUET_BOOL)
        everywhere(ask_scatter_add, &q, scattered(&x, &places_of, &updates, axis, ADD), "scatter_add");
    everywhere(ask_scatter_max, &q, scattered(&x, &places_of, &updates, axis, MAX), "scatter_max");
    sight_free(&z);
    list_free(&x);
    list_free(&places_of);
    list_free(&like);
    list_free(&updates);
}

/* ---- shapes ---- */

static const sizes shapes[] = { SIZES(1),        SIZES(7),       SIZES(300),      SIZES(1, 1),
                                SIZES(5, 33),    SIZES(33, 4),   SIZES(0, 3),     SIZES(3, 0),
                                SIZES(3, 5, 7),  SIZES(2, 9, 8), SIZES(50, 128),  SIZES(70000, 1),
                                SIZES(1, 70000), SIZES(9000),    SIZES(20, 129),  SIZES(9, 260),
                                SIZES(7, 516),   SIZES(5, 2100), SIZES(2, 6, 132) };
static const sizes indices[] = {
    SIZES(), SIZES(0), SIZES(1), SIZES(5), SIZES(3, 4), SIZES(700), SIZES(5000)
};

static void tried(duet_dtype type, const sizes *z, const sizes *m, duet_dtype index, int view)
{
    for (int axis = 0; axis < z->rank; axis++) {
        const int64_t n = z->size[axis];
        int64_t taken_count = 1;
        for (int a = 0; a < z->rank; a++) taken_count *= a == axis ? 1 : z->size[a];
        for (int a = 0; a < m->rank; a++) taken_count *= m->size[a];
        if (taken_count > 4000000) continue; /* gigabytes, and no different case */
        sight s = sight_new(type, z->rank, z->size, view),
              by = sight_new(index, m->rank, m->size, (view + 1) % SIGHTS);
        sight_fill(&s, view);
        list x = list_of(s.m);
        if (n) sight_fill_places(&by, n < 120 || index != DUET_U8 ? n : 120);
        list places_of = list_of(by.m);
        if (n || !places_of.count) {
            everywhere(ask_take, &(question){ .x = s.m, .by = by.m, .axis = axis },
                       taken(&x, &places_of, axis), "take");
            scatters(&s, &by, axis, view);
        }
        if (m->rank == 1 && m->size[0] < 50)
            along(&s, axis, m->size[0], index == DUET_U8 && n > 255 ? DUET_I32 : index, view);
        sight_free(&s);
        sight_free(&by);
        list_free(&x);
        list_free(&places_of);
    }
}

static int64_t count_of(const sizes *s)
{
    int64_t n = 1;
    for (int a = 0; a < s->rank; a++) n *= s->size[a];
    return n;
}

static void all_shapes(duet_dtype type)
{
    static const duet_dtype index[] = { DUET_I32, DUET_I64, DUET_U8 };
    int t = 0;
    for (int i = 0; i < LENGTH_OF(shapes); i++)
        for (int j = 0; j < LENGTH_OF(indices); j++) {
            const int64_t n = count_of(&shapes[i]), taken_most = n * count_of(&indices[j]);
            if (type != DUET_F32 && (i + j) % 2) continue;
            if (type > DUET_I64 && (i + j) % 4) continue;
            if (n > 10000 && (quick || indices[j].rank != 1)) continue;
            if (type != DUET_F32 && quick && taken_most > 1000000) continue;
            if (shapes[i].rank > 2 && indices[j].rank == 1 && indices[j].size[0] > 100) continue;
            tried(type, &shapes[i], &indices[j], index[t % 3], t % SIGHTS);
            t++;
        }
}

/* ---- one_hot ---- */

static duet_expr ask_one_hot(const void *of)
{
    const question *q = of;
    return duet_one_hot(q->by, q->n, q->type);
}

static void one_hots(void)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64, DUET_U8, DUET_I16 };
    for (int t = 0; t < LENGTH_OF(types); t++)
        for (int j = 0; j < LENGTH_OF(indices); j++) {
            const int n = 1 + draw(40);
            sight by = sight_new(j % 2 ? DUET_I64 : DUET_I32, indices[j].rank, indices[j].size, j % SIGHTS);
            sight_fill_places(&by, n);
            list p = list_of(by.m);
            int64_t size[DUET_RANK_MAX];
            memcpy(size, p.size, sizeof size);
            size[p.rank] = n;
            list out = list_new(types[t], p.rank + 1, size);
            for (int64_t i = 0; i < p.count; i++) list_put(&out, i * n + place_in(&p, i, n), 1);
            everywhere(ask_one_hot, &(question){ .by = by.m, .n = n, .type = types[t] }, out, "one_hot");
            list_free(&p);
            sight_free(&by);
        }
    tap_point("one_hot");
}

/* ---- bad indices ---- */

/* The GPU finds an index out of bounds after the statement has returned. The next call in which the host
 * waits for the GPU fails once. */
static void found_late(duet_status s, const char *text)
{
    CHECK(s == DUET_BAD_ARGUMENT && strstr(duet_error(), text) &&
              strstr(duet_error(), "in an earlier statement"),
          "an index out of bounds on the GPU gives: %s: %s", duet_status_text(s), duet_error());
}

/* On the CPU an error that leaves the destination unchanged; on the GPU a later error, and 0 or no
 * update. */
static void out_of_range(void)
{
    static const int64_t bad[] = { 3, -4, INT64_MAX, INT64_MIN, 1ll << 32 };
    duet_matrix *x = duet_new(DUET_F32, 3), *by = duet_new(DUET_I64, 2), *y = duet_new(DUET_F32, 2),
                *z = duet_new(DUET_F32, 3);
    for (int k = 0; k < 5; k++) {
        int64_t *p = duet_overwrite(by);
        p[0] = 1;
        p[1] = bad[k];
        float *q = duet_overwrite(x);
        q[0] = 5;
        q[1] = 6;
        q[2] = 7;
        q = duet_overwrite(y);
        q[0] = q[1] = 8;
        q = duet_overwrite(z);
        q[0] = q[1] = q[2] = 9;
        FAILS(duet_set_on(DUET_CPU, y, duet_take(x, by, 0)), DUET_BAD_ARGUMENT,
              "element 1 of the indices, is out of bounds; the size of the axis is 3");
        FAILS(duet_set_on(DUET_CPU, z, duet_scatter_add(x, by, y, 0)), DUET_BAD_ARGUMENT,
              "is out of bounds; the size of the axis is 3");
        CHECK(((const float *)duet_read(y))[0] == 8 && ((const float *)duet_read(z))[2] == 9,
              "a failed statement has changed its destination");
        if (n_places < 2) continue;
        char text[100];
        CHECK(duet_set_on(DUET_GPU, z, duet_scatter_add(x, by, y, 0)) == DUET_OK, "%s", duet_error());
        snprintf(text, sizeof text,
                 "duet_scatter_add: index %lld, element 1 of the indices, is out of bounds; the size",
                 (long long)bad[k]);
        found_late(duet_synchronize(), text);
        CHECK(duet_synchronize() == DUET_OK, "an index out of bounds is reported twice: %s", duet_error());
        CHECK(duet_set_on(DUET_GPU, y, duet_take(x, by, 0)) == DUET_OK, "%s", duet_error());
        snprintf(text, sizeof text,
                 "duet_take: index %lld, element 1 of the indices, is out of bounds; the size",
                 (long long)bad[k]);
        CHECK(!duet_read(y), "reading the result of an index out of bounds does not fail");
        found_late(duet_error_status(), text);
        const float *r = duet_read(y);
        CHECK(r && r[0] == 6 && r[1] == 0, "take with an index out of bounds gives 0");
        r = duet_read(z);
        CHECK(r && r[0] == 5 && r[1] == 14 && r[2] == 7,
              "an update with an index out of bounds is skipped: %g %g %g", r[0], r[1], r[2]);
    }
    duet_free(&x);
    duet_free(&by);
    duet_free(&y);
    duet_free(&z);
    tap_point("indices out of bounds");
}

/* To and from contiguous memory that is not aligned: rows of many widths; and more indices than one
 * thread block sorts. */
static void unaligned(void)
{
    static const int widths[] = { 1, 2, 3, 4, 8, 31, 64, 127, 132, 512 };
    static const duet_dtype types[] = { DUET_U8, DUET_I16, DUET_F32, DUET_F64, DUET_C128 };
    for (int t = 0; t < LENGTH_OF(types); t++)
        for (int w = 0; w < LENGTH_OF(widths); w++)
            for (int lead = 0; lead < 3; lead++) {
                const int64_t rows = 11, m = w % 4 ? 37 : 4999, n = widths[w];
                const size_t each = dtypes[types[t]].bytes;
                duet_matrix *from = duet_new(types[t], rows * n + lead),
                            *line = duet_slice(from, lead, rows * n), *x = duet_reshaped(line, rows, n),
                            *by = duet_new(DUET_I64, m), *to = duet_new(types[t], m * n + lead),
                            *end = duet_slice(to, lead, m * n), *y = duet_reshaped(end, m, n),
                            *back = duet_new(types[t], rows, n);
                char *p = duet_overwrite(from);
                for (size_t i = 0; p && i < (size_t)(rows * n + lead) * each; i++) p[i] = (char)draw(100);
                int64_t *at = duet_overwrite(by);
                for (int64_t i = 0; at && i < m; i++) at[i] = draw(2 * (int)rows) - (int)rows;
                list have = list_of(x), places_of = list_of(by), want = taken(&have, &places_of, 0),
                     zero = list_new(types[t], 2, have.size);
                list put = scattered_wide(&zero, &places_of, &want, 0, PUT);
                for (int k = 0; k < n_places; k++) {
                    CHECK(duet_set_on(places[k], y, duet_take(x, by, 0)) == DUET_OK, "%s", duet_error());
                    list got = list_of(y);
                    list_same(&got, &want, "take, not aligned");
                    list_free(&got);
                    memset(duet_overwrite(back), 0, (size_t)(rows * n) * each);
                    CHECK(duet_set_on(places[k], back, duet_put(back, by, y, 0)) == DUET_OK, "%s",
                          duet_error());
                    got = list_of(back);
                    list_same(&got, &put, "put of what is not aligned");
                    list_free(&got);
                }
                list_free(&have);
                list_free(&places_of);
                list_free(&want);
                list_free(&zero);
                list_free(&put);
                duet_free(&y);
                duet_free(&end);
                duet_free(&to);
                duet_free(&by);
                duet_free(&x);
                duet_free(&line);
                duet_free(&from);
                duet_free(&back);
            }
    tap_point("unaligned memory");
}

/* one_hot into a part of a vector, at any alignment and with any row length. */
static void hot_parts(void)
{
    static const duet_dtype types[] = { DUET_U8, DUET_F16, DUET_F32, DUET_F64, DUET_C128 };
    for (int t = 0; t < LENGTH_OF(types); t++)
        for (int n = 1; n < 40; n += 1 + draw(6))
            for (int lead = 0; lead < 3; lead++) {
                const int64_t m = 1 + draw(300);
                duet_matrix *by = duet_new(DUET_I32, m), *all = duet_new(types[t], m * n + lead),
                            *part = duet_slice(all, lead, m * n), *y = duet_reshaped(part, m, n),
                            *whole = duet_new(types[t], m, n);
                int32_t *at = duet_overwrite(by);
                for (int64_t i = 0; at && i < m; i++) at[i] = draw(2 * n) - n;
                CHECK(duet_set_on(DUET_CPU, whole, duet_one_hot(by, n, types[t])) == DUET_OK, "%s",
                      duet_error());
                list want = list_of(whole);
                for (int k = 0; k < n_places; k++) {
                    CHECK(duet_set_on(places[k], y, duet_one_hot(by, n, types[t])) == DUET_OK, "%s",
                          duet_error());
                    list got = list_of(y);
                    list_same(&got, &want, "one_hot, not aligned");
                    list_free(&got);
                }
                list_free(&want);
                duet_free(&y);
                duet_free(&part);
                duet_free(&all);
                duet_free(&by);
                duet_free(&whole);
            }
    tap_point("one_hot into unaligned memory");
}

/* Rows of many widths with some bad indices: on the GPU only. */
static void rows_of_nowhere(void)
{
    static const int widths[] = { 1, 4, 130, 260, 1040 };
    if (n_places < 2) return;
    for (int w = 0; w < LENGTH_OF(widths); w++) {
        const int n = widths[w], m = 9;
        static const int64_t at[] = { 0, 5, -5, 4, INT64_MAX, -1, INT64_MIN, 2, 2 };
        duet_matrix *x = duet_new(DUET_F32, 5, n), *by = duet_new(DUET_I64, m), *y = duet_new(DUET_F32, m, n),
                    *z = duet_new(DUET_F32, 5, n);
        float *p = duet_overwrite(x);
        for (int i = 0; p && i < 5 * n; i++) p[i] = (float)(i + 1);
        memcpy(duet_overwrite(by), at, sizeof at);
        CHECK(duet_set(z, 0) == DUET_OK && duet_set_on(DUET_GPU, y, duet_take(x, by, 0)) == DUET_OK, "%s",
              duet_error());
        CHECK(duet_set_on(DUET_GPU, z, duet_scatter_add(z, by, y, 0)) == DUET_OK, "%s", duet_error());
        found_late(duet_synchronize(), "duet_take: index ");
        const float *got = duet_read(y), *sum = duet_read(z);
        static const int times[] = { 2, 0, 2, 0, 2 };
        bool right = got && sum;
        for (int i = 0; i < m * n && right; i++) {
            const int64_t k = at[i / n] < 0 ? at[i / n] + 5 : at[i / n];
            right = got[i] == (k >= 0 && k < 5 ? (float)(k * n + i % n + 1) : 0);
        }
        CHECK(right, "take of rows of %d elements with bad indices is wrong", n);
        for (int i = 0; i < 5 * n && right; i++) right = sum[i] == (float)(times[i / n] * (i + 1));
        CHECK(right, "put of rows of %d elements with bad indices is wrong", n);
        duet_free(&x);
        duet_free(&by);
        duet_free(&y);
        duet_free(&z);
    }
    tap_point("some indices of rows are out of bounds");
}

static void refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3, 4), *by = duet_new(DUET_I32, 5), *f = duet_new(DUET_F32, 5),
                *y = duet_new(DUET_F32, 5, 4);
    duet_matrix *d = duet_new(DUET_F64, 5, 4), *deep = duet_new(DUET_I32, 1, 1, 1, 1, 1, 1, 1, 1);
    duet_matrix *b = duet_new(DUET_BOOL, 5), *c = duet_new(DUET_C64, 5);
    FAILS(duet_set(y, duet_take(x, f, 0)), DUET_BAD_TYPE, "indices must be an integer matrix");
    FAILS(duet_set(y, duet_take(x, 1, 0)), DUET_BAD_TYPE, "indices must be an integer matrix");
    FAILS(duet_set(y, duet_take(x, by, 2)), DUET_BAD_SHAPE, "does not exist");
    FAILS(duet_set(y, duet_take(x, by, 1)), DUET_BAD_SHAPE, "does not broadcast");
    FAILS(duet_set(y, duet_take(x, deep, 0)), DUET_BAD_SHAPE, "the result would have 9 axes, more than 8");
    FAILS(duet_set(y, duet_take_along_axis(x, by, 0)), DUET_BAD_SHAPE,
          "indices must have the shape of x except along axis 0");
    FAILS(duet_set(x, duet_put(x, by, d, 0)), DUET_BAD_TYPE, "x and values must have the same element type");
    FAILS(duet_set(x, duet_put(x, by, x, 0)), DUET_BAD_SHAPE,
          "values must be f32[5,4], the shape of duet_take(x, indices, 0)");
    FAILS(duet_set(x, duet_scatter_add(b, by, b, 0)), DUET_BAD_TYPE,
          "x must be an integer or floating-point matrix, not bool");
    FAILS(duet_set(x, duet_scatter_max(c, by, c, 0)), DUET_BAD_TYPE, "x must be real, not complex");
    FAILS(duet_set(y, duet_one_hot(by, -1, DUET_F32)), DUET_BAD_ARGUMENT, "must not be negative");
    FAILS(duet_set(y, duet_one_hot(by, 4, (duet_dtype)99)), DUET_BAD_ARGUMENT, "element type");
    FAILS(duet_set(y, duet_one_hot(deep, 4, DUET_F32)), DUET_BAD_SHAPE,
          "the result would have 9 axes, more than 8");
    CHECK(duet_set(y, duet_one_hot(by, 4, DUET_F32)) == DUET_OK, "%s", duet_error());
    duet_free(&x);
    duet_free(&by);
    duet_free(&f);
    duet_free(&y);
    duet_free(&d);
    duet_free(&deep);
    duet_free(&b);
    duet_free(&c);
    tap_point("invalid and unsupported arguments");
}

int main(int argc, char **argv)
{
    quick = is_quick(argc, argv);
    n_places = list_places(places);
    FOR_REAL_TYPES (t) all_shapes(t);
    tap_point("take, take_along_axis, put, scatter_add, scatter_max");
    one_hots();
    out_of_range();
    unaligned();
    hot_parts();
    rows_of_nowhere();
    refusals();
    return tap_end();
}
