/* test_select.c - masked, nonzero, unique and unique_axis against simple loops, and the transfers that
 * they need. */
#include "element_list.h"

static duet_place place[2];
static int places;

static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64, DUET_I32, DUET_I16, DUET_U64, DUET_U8 };
static const sizes shapes[] = { SIZES(),       SIZES(0),       SIZES(1),       SIZES(2),
                                SIZES(17),     SIZES(4099),    SIZES(3, 0),    SIZES(0, 3),
                                SIZES(1, 1),   SIZES(5, 33),   SIZES(37, 41),  SIZES(1, 300),
                                SIZES(300, 1), SIZES(3, 5, 7), SIZES(2, 1, 9), SIZES(2, 3, 4, 5),
                                SIZES(70, 300) };
#define LENGTH_OF(a) (int)(sizeof(a) / sizeof *(a))

/* Frees both. */
static void are(duet_matrix *m, list want, const char *what, duet_place at)
{
    char text[100];
    snprintf(text, sizeof text, "%s on the %s", what, place_name(at));
    if (CHECK(m != NULL, "%s: %s", text, duet_error())) {
        list got = list_of(m);
        bool same = got.rank == want.rank;
        for (int a = 0; a < want.rank && same; a++) same = got.size[a] == want.size[a];
        if (CHECK(same, "%s: another shape: %lld of %lld", text, (long long)got.size[0],
                  (long long)want.size[0]))
            list_same(&got, &want, text);
        list_free(&got);
    }
    list_free(&want);
    duet_free(&m);
}

/* ---- expected results ---- */

static bool chosen(const list *mask, int64_t i) { return list_number(mask, i) != 0; } /* and NaN is not 0 */

static list known_masked(const list *x, const list *mask)
{
    int64_t size[DUET_RANK_MAX] = { 0 }, inner = 1, n = 0;
    for (int a = mask->rank; a < x->rank; a++) {
        size[a - mask->rank + 1] = x->size[a];
        inner *= x->size[a];
    }
    for (int64_t i = 0; i < mask->count; i++) size[0] += chosen(mask, i);
    list out = list_new(x->type, x->rank - mask->rank + 1, size);
    for (int64_t i = 0; i < mask->count; i++)
        if (chosen(mask, i))
            memcpy(list_place(&out, n++ * inner), list_place(x, i * inner), (size_t)inner * list_each(x));
    return out;
}

static list known_nonzero(const list *x)
{
    int64_t size[2] = { 0, x->rank }, n = 0;
    for (int64_t i = 0; i < x->count; i++) size[0] += chosen(x, i);
    list out = list_new(DUET_I64, 2, size);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t left = i;
        for (int a = x->rank; a-- > 0 && chosen(x, i); left /= x->size[a])
            ((int64_t *)out.at)[n * x->rank + a] = left % x->size[a];
        n += chosen(x, i);
    }
    return out;
}

/* The order of sort: NaN last, all NaNs equal; equal elements keep their order. */
static const list *sorting;
static int before(const void *p, const void *q)
{
    const int64_t i = *(const int64_t *)p, j = *(const int64_t *)q;
    const long double a = list_number(sorting, i), b = list_number(sorting, j);
    if (isnan(a) != isnan(b)) return isnan(a) ? 1 : -1;
    if (!isnan(a) && a != b) return a < b ? -1 : 1;
    if (i < j) return -1;
    return i > j;
}

static void known_unique(const list *x, list out[3])
{
    int64_t *order = malloc((size_t)(x->count + 1) * sizeof *order), n = 0;
    for (int64_t i = 0; i < x->count; i++) order[i] = i;
    sorting = x;
    qsort(order, (size_t)x->count, sizeof *order, before);
    out[0] = list_new(x->type, 1, &x->count);
    out[1] = list_new(DUET_I64, 1, &x->count);
    out[2] = list_new(DUET_I64, x->rank, x->size);
    for (int64_t i = 0; i < x->count; i++) {
        const long double v = list_number(x, order[i]), last = i ? list_number(x, order[i - 1]) : 0;
        if (!i || !(v == last || (isnan(v) && isnan(last))))
            memcpy(list_place(&out[0], n++), list_place(x, order[i]), list_each(x));
        ((int64_t *)out[1].at)[n - 1]++;
        ((int64_t *)out[2].at)[order[i]] = n - 1;
    }
    for (int k = 0; k < 2; k++) out[k].size[0] = out[k].count = n;
    free(order);
}

/* The order of parts along an axis: that of their first different elements. */
static int parts_axis;
static int compare_parts(int64_t i, int64_t j)
{
    const int64_t n = sorting->size[parts_axis], outer = list_outer(sorting, parts_axis),
                  inner = list_inner(sorting, parts_axis);
    for (int64_t k = 0; k < outer * inner; k++) {
        const int64_t start = k / inner * n * inner + k % inner;
        const long double a = list_number(sorting, start + i * inner),
                          b = list_number(sorting, start + j * inner);
        if (isnan(a) != isnan(b)) return isnan(a) ? 1 : -1;
        if (!isnan(a) && a != b) return a < b ? -1 : 1;
    }
    return 0;
}
static int part_before(const void *p, const void *q)
{
    const int64_t i = *(const int64_t *)p, j = *(const int64_t *)q;
    const int order = compare_parts(i, j);
    return order ? order : (i > j) - (i < j);
}

static void copy_part(list *to, int64_t at, const list *from, int64_t i)
{
    const int64_t outer = list_outer(from, parts_axis), inner = list_inner(from, parts_axis);
    for (int64_t o = 0; o < outer; o++)
        memcpy(list_place(to, (o * to->size[parts_axis] + at) * inner),
               list_place(from, (o * from->size[parts_axis] + i) * inner), (size_t)inner * list_each(from));
}

static void known_unique_axis(const list *x, int axis, list out[3])
{
    const int64_t n = x->size[axis];
    int64_t *order = malloc((size_t)(n + 1) * sizeof *order),
            *group = malloc((size_t)(n + 1) * sizeof *group), size[DUET_RANK_MAX], parts = 0;
    sorting = x;
    parts_axis = axis;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    qsort(order, (size_t)n, sizeof *order, part_before);
    for (int64_t i = 0; i < n; i++) {
        parts += !i || compare_parts(order[i - 1], order[i]);
        group[i] = parts - 1;
    }
    memcpy(size, x->size, sizeof size);
    size[axis] = parts;
    out[0] = list_new(x->type, x->rank, size);
    out[1] = list_new(DUET_I64, 1, &parts);
    out[2] = list_new(DUET_I64, 1, &n);
    for (int64_t i = n; i-- > 0;) {
        copy_part(&out[0], group[i], x, order[i]); /* the first of equal parts stays */
        ((int64_t *)out[1].at)[group[i]]++;
        ((int64_t *)out[2].at)[order[i]] = group[i];
    }
    free(order);
    free(group);
}

/* ---- on every machine ---- */

static void masked_on(duet_place at, const sight *x, const sight *mask, const char *what)
{
    list of = list_of(x->m), by = list_of(mask->m);
    DUET_ON(at) are(duet_masked(x->m, mask->m), known_masked(&of, &by), what, at);
    list_free(&of);
    list_free(&by);
}

static void masked(duet_place at, duet_dtype type, const sizes *s, int view)
{
    char what[100];
    sight x = sight_new(type, s->rank, s->size, view);
    sight_fill(&x, ANY);
    for (int rank = 1; rank <= s->rank; rank++) {
        const duet_dtype as = types[draw(LENGTH_OF(types))];
        sight mask = sight_new(as, rank, s->size, draw(SIGHTS));
        sight_fill(&mask, draw(4) ? TIES : SPECIAL);
        snprintf(what, sizeof what, "masked %s, rank %d by %s, rank %d", dtypes[type].name, s->rank,
                 dtypes[as].name, rank);
        masked_on(at, &x, &mask, what);
        sight_free(&mask);
    }
    sight_free(&x);
}

static void nonzero(duet_place at, duet_dtype type, const sizes *s, int view)
{
    sight x = sight_new(type, s->rank, s->size, view);
    sight_fill(&x, draw(2) ? TIES : SPECIAL);
    list of = list_of(x.m);
    DUET_ON(at) are(duet_nonzero(x.m), known_nonzero(&of), "nonzero", at);
    list_free(&of);
    sight_free(&x);
}

static void unique(duet_place at, duet_dtype type, const sizes *s, int view)
{
    sight x = sight_new(type, s->rank, s->size, view);
    sight_fill(&x, draw(FILLINGS));
    for (int want = 0; want < 4; want++) {
        list of = list_of(x.m), known[3];
        duet_matrix *counts = x.m, *inverse = x.m;
        known_unique(&of, known);
        DUET_ON(at)
        are(duet_unique(x.m, want & 1 ? &counts : NULL, want & 2 ? &inverse : NULL), known[0], "unique", at);
        if (want & 1) are(counts, known[1], "counts", at);
        else list_free(&known[1]);
        if (want & 2) are(inverse, known[2], "inverse", at);
        else list_free(&known[2]);
        list_free(&of);
    }
    sight_free(&x);
}

static void unique_axis(duet_place at, duet_dtype type, const sizes *s, int view)
{
    if (!s->rank) return;
    sight x = sight_new(type, s->rank, s->size, view);
    sight_fill(&x, draw(2) ? TIES : draw(FILLINGS));
    const list of = list_of(x.m);
    for (int axis = 0; axis < s->rank; axis++) {
        const int want = draw(4), given = draw(2) ? axis : axis - s->rank;
        list known[3];
        duet_matrix *counts = x.m, *inverse = x.m;
        known_unique_axis(&of, axis, known);
        DUET_ON(at)
        are(duet_unique_axis(x.m, given, want & 1 ? &counts : NULL, want & 2 ? &inverse : NULL), known[0],
            "unique along an axis", at);
        if (want & 1) are(counts, known[1], "counts of parts", at);
        else list_free(&known[1]);
        if (want & 2) are(inverse, known[2], "inverse of parts", at);
        else list_free(&known[2]);
    }
    free(of.at);
    sight_free(&x);
}

/* Few values, so that the order is that of the last elements, and parts of one value, which are equal. */
static void long_parts(void)
{
    duet_matrix *x = duet_new(DUET_U8, 5, 1000), *counts, *inverse;
    uint8_t *p = duet_overwrite(x);
    memset(p, 7, 5000);
    p[999] = p[3999] = 9;
    p[1999] = 8;
    for (int k = 0; k < places; k++) DUET_ON(place[k])
        {
            duet_matrix *m = duet_unique_axis(x, 0, &counts, &inverse);
            const uint8_t *v = m ? duet_read(m) : NULL;
            const int64_t *c = counts ? duet_read(counts) : NULL, *i = inverse ? duet_read(inverse) : NULL;
            CHECK(v && duet_size(m, 0) == 3 && v[999] == 7 && v[1999] == 8 && v[2999] == 9, "%s",
                  duet_error());
            CHECK(c && c[0] == 2 && c[1] == 1 && c[2] == 2, "%s", duet_error());
            CHECK(i && i[0] == 2 && i[1] == 1 && i[2] == 0 && i[3] == 2 && i[4] == 0, "%s", duet_error());
            duet_free(&m);
            duet_free(&counts);
            duet_free(&inverse);
        }
    duet_free(&x);
    tap_point("parts that differ in their last element only");
}

static void all_shapes(void (*test)(duet_place, duet_dtype, const sizes *, int), const char *name, bool quick)
{
    for (int k = 0; k < places; k++)
        for (int t = 0; t < LENGTH_OF(types); t++)
            for (int s = 0; s < LENGTH_OF(shapes); s += quick ? 1 + draw(3) : 1)
                for (int view = 0; view < SIGHTS; view++) test(place[k], types[t], &shapes[s], view);
    tap_point(name);
}

/* ---- formulas, types that are only moved, and transfers ---- */

static void formulas(void)
{
    duet_matrix *x = duet_new(DUET_F32, 6), *c = duet_new(DUET_C64, 3);
    memcpy(duet_overwrite(x), (float[]){ 1, -2, 3, -4, 5, -6 }, 6 * sizeof(float));
    memcpy(duet_overwrite(c), (float[]){ 1, 2, 3, 4, 5, 6 }, 6 * sizeof(float));
    for (int k = 0; k < places; k++) DUET_ON(place[k])
        {
            const duet_expr e = duet_mul(x, 2);
            duet_matrix *m = duet_masked(e, duet_less(e, 0)), *n = duet_nonzero(duet_greater(x, 2)),
                        *u = duet_unique(duet_abs(duet_sign(x)), NULL, NULL),
                        *z = duet_masked(c, duet_not_equal(x, 0)), *y;
            const float *p = m ? duet_read(m) : NULL, *v = u ? duet_read(u) : NULL;
            const int64_t *i = n ? duet_read(n) : NULL;
            CHECK(p && duet_count(m) == 3 && p[0] == -4 && p[1] == -8 && p[2] == -12, "masked: %s",
                  duet_error());
            CHECK(i && duet_count(n) == 2 && i[0] == 2 && i[1] == 4, "nonzero: %s", duet_error());
            CHECK(v && duet_count(u) == 1 && v[0] == 1, "unique: %s", duet_error());
            CHECK(!z && strstr(duet_error(), "the shape of mask"), "%s", duet_error());
            duet_matrix *three = duet_slice(x, 0, 3);
            y = duet_masked(c, duet_greater(three, 0));
            const float *q = y ? duet_read(y) : NULL;
            CHECK(q && duet_count(y) == 2 && q[0] == 1 && q[1] == 2 && q[2] == 5 && q[3] == 6, "complex: %s",
                  duet_error());
            duet_free(&m);
            duet_free(&n);
            duet_free(&u);
            duet_free(&y);
            duet_free(&three);
        }
    CHECK(duet_arena_limit(1 << 20) == DUET_OK && duet_arena_limit(64 << 20) == DUET_OK,
          "a formula is still in the arena: %s", duet_error());
    duet_free(&x);
    duet_free(&c);
    tap_point("formulas as operands, and complex elements");
}

/* A complex number is 0 if both parts are 0, with any sign. */
static void complex_zeros(void)
{
    static const double part[][2] = { { 0, 0 }, { 1, 0 }, { 0, -2 }, { -0.0, 0 }, { 0, NAN } };
    duet_matrix *z = duet_new(DUET_C128, 5);
    memcpy(duet_overwrite(z), part, sizeof part);
    for (int k = 0; k < places; k++) DUET_ON(place[k])
        {
            duet_matrix *n = duet_nonzero(z), *m = duet_masked(z, z);
            const int64_t *i = n ? duet_read(n) : NULL;
            const double *p = m ? duet_read(m) : NULL;
            CHECK(i && duet_count(n) == 3 && i[0] == 1 && i[1] == 2 && i[2] == 4, "nonzero: %s",
                  duet_error());
            CHECK(p && duet_count(m) == 3 && p[0] == 1 && p[3] == -2 && isnan(p[5]), "masked: %s",
                  duet_error());
            duet_free(&n);
            duet_free(&m);
        }
    duet_free(&z);
    tap_point("complex zeros");
}

static void stays(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3000), *counts, *inverse;
    for (int k = 0; k < places; k++) DUET_ON(place[k])
        {
            CHECK(duet_set(x, 1) == DUET_OK, "%s", duet_error());
            const duet_counts was = duet_stats();
            duet_matrix *m = duet_masked(x, duet_greater(x, 0)), *n = duet_nonzero(x),
                        *u = duet_unique(x, &counts, &inverse),
                        *rows = duet_unique_axis(duet_reshape(x, 300, 10), 0, NULL, NULL);
            const duet_counts is = duet_stats();
            CHECK(m && n && u && counts && inverse && rows, "%s", duet_error());
            CHECK(is.download_bytes - was.download_bytes <= 4 * sizeof(int64_t),
                  "%s: %d bytes were downloaded", place_name(place[k]),
                  (int)(is.download_bytes - was.download_bytes));
            duet_free(&m);
            duet_free(&n);
            duet_free(&u);
            duet_free(&rows);
            duet_free(&counts);
            duet_free(&inverse);
        }
    duet_free(&x);
    tap_point("the host reads only the number of elements");
}

#define REFUSED(call, words)                                                                                 \
    do {                                                                                                     \
        duet_matrix *got_ = call;                                                                            \
        CHECK(!got_ && strstr(duet_error(), words) && strstr(duet_error(), "test_select.c:"), #call ": %s",  \
              duet_error());                                                                                 \
        duet_free(&got_);                                                                                    \
    } while (0)

static void errors(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 3), *v = duet_new(DUET_F32, 3), *none = NULL, *counts = x,
                *inverse = x;
    REFUSED(duet_masked(x, v), "duet_masked(x: f32[2,3], mask: f32[3]): the shape of mask");
    REFUSED(duet_masked(v, x), "the shape of mask");
    REFUSED(duet_masked(v, duet_add(v, x)), "the shape of mask");
    REFUSED(duet_masked(v, duet_sum(v)), "the shape of mask");
    REFUSED(duet_masked(none, v), "must not be NULL");
    REFUSED(duet_masked(v, none), "must not be NULL");
    REFUSED(duet_nonzero(duet_sum_axis(x, 7)), "axis 7");
    REFUSED(duet_unique(none, &counts, &inverse), "must not be NULL");
    CHECK(!counts && !inverse, "counts or inverse is not NULL after a failure");
    counts = inverse = x;
    REFUSED(duet_unique_axis(x, 2, &counts, &inverse),
            "duet_unique_axis(x: f32[2,3]): axis 2 does not exist; x has 2 axes");
    CHECK(!counts && !inverse, "counts or inverse is not NULL after a failure");
    REFUSED(duet_unique_axis(duet_sum(x), -1, NULL, NULL), "axis -1 does not exist; x has 0 axes");
    REFUSED(duet_unique_axis(none, 0, NULL, NULL), "must not be NULL");
    REFUSED(duet_unique_axis(duet_complex(x, x), 0, NULL, NULL),
            "duet_unique_axis(x: c64[2,3]): x must be real");
    REFUSED(duet_unique(duet_complex(x, x), NULL, NULL), "duet_unique(x: c64[2,3]): x must be real");
    FILE *file = tmpfile();
    DUET_EXPLAIN(file) REFUSED(duet_nonzero(x), "duet_nonzero: the shape of the result depends");
    fclose(file);
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    REFUSED(duet_unique(x, NULL, NULL), "cannot be recorded");
    CHECK(!duet_record_end(), "a recording with a failed statement was returned");
    CHECK(duet_arena_limit(1 << 20) == DUET_OK && duet_arena_limit(64 << 20) == DUET_OK,
          "a formula is still in the arena: %s", duet_error());
    duet_free(&x);
    duet_free(&v);
    tap_point("invalid arguments");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    places = list_places(place);
    all_shapes(masked, "masked", quick);
    all_shapes(nonzero, "nonzero", quick);
    all_shapes(unique, "unique", quick);
    all_shapes(unique_axis, "unique along an axis", quick);
    long_parts();
    formulas();
    complex_zeros();
    stays();
    errors();
    return tap_end();
}
