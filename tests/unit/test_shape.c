/* test_shape.c - shapes, broadcasting and layouts, against loops over every index. */
#include "dtype.h"
#include "indices.h"
#include "shape.h"
#include "tap.h"
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;
static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static const int64_t few[] = { 1, 1, 2, 3, 4, 0 };

static shape random_shape(int rank_most, int kinds)
{
    shape s = { .rank = draw(rank_most + 1) };
    for (int a = 0; a < s.rank; a++) s.size[a] = few[draw(kinds)];
    return s;
}

static int64_t place(const layout *l, const int64_t *at)
{
    int64_t n = 0;
    for (int a = 0; a < l->rank; a++) n += at[a] * l->stride[a];
    return n;
}

#define EVERY(l, at)                                                                                         \
    for (int64_t at[DUET_RANK_MAX] = { 0 }, go_ = slow_count((l)->rank, (l)->size) > 0; go_;                 \
         go_ = step_on((l)->rank, (l)->size, at))

static int64_t slow_count(int rank, const int64_t *size)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++) n *= size[a];
    return n;
}

static void test_check(void)
{
    static const struct {
        int rank;
        int64_t size[9];
        duet_status f32, f64;
    } rows[] = {
        { 0, { 0 }, DUET_OK, DUET_OK },
        { 8, { 1, 2, 1, 2, 1, 2, 1, 2 }, DUET_OK, DUET_OK },
        { 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { -1, { 1 }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { 2, { 3, -1 }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { 2, { 0, -1 }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { 2, { 0, 5 }, DUET_OK, DUET_OK },
        /* 2^61 elements, 2^62 bytes; the largest is 2^62 - 1 */
        { 1, { (int64_t)1 << 59 }, DUET_OK, DUET_BAD_SHAPE },
        { 1, { ((int64_t)1 << 59) - 1 }, DUET_OK, DUET_OK },
        { 2, { (int64_t)1 << 32, (int64_t)1 << 32 }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { 3, { (int64_t)1 << 32, (int64_t)1 << 32, 0 }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { 1, { INT64_MAX }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
        { 1, { INT64_MIN }, DUET_BAD_SHAPE, DUET_BAD_SHAPE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        duet_status a = shape_check("who", DUET_F32, rows[i].rank, rows[i].size),
                    b = shape_check("who", DUET_F64, rows[i].rank, rows[i].size);
        CHECK(a == rows[i].f32, "row %zu of f32: %s", i, duet_status_text(a));
        CHECK(b == rows[i].f64, "row %zu of f64: %s", i, duet_status_text(b));
        CHECK(b == DUET_OK || strstr(duet_error(), "who"), "row %zu: %s", i, duet_error());
    }
    CHECK(shape_check("who", DUET_F32, 1, NULL) == DUET_BAD_ARGUMENT, "NULL sizes were accepted");
    CHECK(shape_check("who", DUET_F32, 0, NULL) == DUET_OK, "NULL sizes of rank 0 were not accepted");
    CHECK(shape_check("who", (duet_dtype)77, 0, NULL) == DUET_BAD_TYPE, "type 77 was accepted");
    tap_point("shape_check");
}

static void test_text(void)
{
    char text[SHAPE_TEXT];
    const int64_t size[] = { 2, 3 }, large[] = { INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                                                 INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN };
    CHECK(!strcmp(shape_text(text, DUET_F32, 2, size), "f32[2,3]"), "%s", text);
    CHECK(!strcmp(shape_text(text, DUET_F64, 0, NULL), "f64[]"), "%s", text);
    CHECK(!strcmp(shape_text(text, (duet_dtype)-1, 1, size), "?[2]"), "%s", text);
    shape_text(text, DUET_F32, 8, large);
    CHECK(text[strlen(text) - 1] == ']', "%s", text);
    tap_point("shape_text");
}

/* The size by NumPy's rule of the axis `back` places before the last. */
static int64_t sized(const shape *s, int back) { return back < s->rank ? s->size[s->rank - 1 - back] : 1; }

static void test_broadcast(void)
{
    int fit = 0;
    for (int n = 0; n < 20000; n++) {
        shape a = random_shape(4, 6), b = random_shape(4, 6), out, again = a;
        bool want = true, got = shape_broadcast(&a, &b, &out);
        for (int k = 0; k < 4; k++)
            want &= sized(&a, k) == sized(&b, k) || sized(&a, k) == 1 || sized(&b, k) == 1;
        CHECK(got == want, "whether pair %d broadcasts is wrong", n);
        if (!got) continue;
        fit++;
        CHECK(out.rank == (a.rank > b.rank ? a.rank : b.rank), "the rank of pair %d is wrong", n);
        for (int k = 0; k < out.rank; k++)
            CHECK(sized(&out, k) == (sized(&a, k) == 1 ? sized(&b, k) : sized(&a, k)),
                  "the size of axis %d of pair %d is wrong", k, n);
        CHECK(shape_broadcast(&again, &b, &again) && shape_equal(&again, &out),
              "broadcasting in place is wrong for pair %d", n);

        layout l, to;
        layout_dense(&l, DUET_F32, a.rank, a.size);
        layout_dense(&to, DUET_F32, out.rank, out.size);
        layout r = layout_broadcast(&l, &out);
        CHECK(r.rank == out.rank && !memcmp(r.size, to.size, sizeof r.size), "the layout of pair %d is wrong",
              n);
        EVERY(&r, at)
        {
            int64_t from[DUET_RANK_MAX] = { 0 };
            for (int k = 0; k < a.rank; k++) from[k] = at[k + r.rank - a.rank] % a.size[k];
            CHECK(place(&r, at) == place(&l, from), "an element of pair %d has a wrong offset", n);
        }
    }
    CHECK(fit > 1000, "only %d pairs broadcast", fit);
    tap_point("broadcasting");
}

static void test_dense(void)
{
    for (int n = 0; n < 5000; n++) {
        shape s = random_shape(8, 6);
        layout l;
        int64_t next = 0, low, high;
        layout_dense(&l, DUET_F64, s.rank, s.size);
        EVERY(&l, at) CHECK(place(&l, at) == next++, "shape %d is not row-major", n);
        CHECK(next == layout_count(&l) && next == shape_count(&s), "the count of shape %d is wrong", n);
        CHECK(layout_is_dense(&l), "whether layout %d is dense is wrong", n);
        layout_span(&l, &low, &high);
        CHECK(low == 0 && high == next, "the span of layout %d is wrong", n);
    }
    const int64_t huge[] = { (int64_t)1 << 31, (int64_t)1 << 31, 0 };
    CHECK(shape_count(&(shape){ 3, { huge[0], huge[1], huge[2] } }) == 0,
          "the count of an empty shape is not 0");
    tap_point("dense layouts");
}

/* A layout of sizes s with some strides: a part, transposed, repeated, backwards. */
static layout random_layout(const shape *s)
{
    layout l;
    layout_dense(&l, DUET_F32, s->rank, s->size);
    int64_t grown = draw(3) ? 1 : 2, last = 1;
    if (draw(3))
        for (int a = s->rank; a-- > 0;) {
            l.stride[a] = last * grown;
            last = l.stride[a] * (s->size[a] ? s->size[a] : 1);
            if (draw(4)) grown = 1;
            else grown = 2;
        }
    for (int a = 0; a < s->rank; a++) {
        if (!draw(6)) l.stride[a] = 0;
        if (!draw(12)) l.stride[a] = -l.stride[a];
    }
    return l;
}

static void test_layouts(void)
{
    for (int n = 0; n < 20000; n++) {
        shape s = random_shape(5, 6);
        layout l = random_layout(&s);
        int64_t low, high, least = 0, most = 0, next = 0;
        bool dense = true;
        EVERY(&l, at)
        {
            int64_t p = place(&l, at);
            if (p < least) least = p;
            if (p + 1 > most) most = p + 1;
            dense &= p == next++;
        }
        layout_span(&l, &low, &high);
        CHECK(low == least && high == most, "the span of layout %d is %d .. %d, not %d .. %d", n, (int)low,
              (int)high, (int)least, (int)most);
        CHECK(layout_is_dense(&l) == dense, "whether layout %d is dense is wrong", n);
    }
    tap_point("layouts");
}

/* Can axes a and a + 1 of l be merged? For layouts without axes of size 1. */
static bool joins(const layout *l, int a) { return l->stride[a] == l->size[a + 1] * l->stride[a + 1]; }

static void test_collapse(void)
{
    int less = 0;
    for (int n = 0; n < 20000; n++) {
        enum { N = 3 };
        shape s = random_shape(6, draw(4) ? 5 : 6);
        layout before[N], after[N], *l[N + 1];
        int64_t low = 0;
        int many = 1 + draw(N);
        for (int k = 0; k < many; k++) {
            before[k] = after[k] = random_layout(&s);
            l[k] = &after[k];
        }
        l[many] = l[0]; /* one that occurs twice */
        layout_collapse(l, many + (draw(2)));
        less += after[0].rank < s.rank;

        CHECK(after[0].rank >= 1 && layout_count(&after[0]) == shape_count(&s),
              "the count of shape %d is wrong", n);
        for (int k = 0; k < many; k++) {
            CHECK(after[k].rank == after[0].rank && after[k].type == DUET_F32,
                  "collapsed layout %d has another rank", n);
            CHECK(!memcmp(after[k].size, after[0].size, (size_t)after[0].rank * sizeof low),
                  "collapsed layout %d has other sizes", n);
            int64_t index[DUET_RANK_MAX] = { 0 };
            EVERY(&before[k], at)
            {
                CHECK(place(&after[k], index) == place(&before[k], at),
                      "an element of collapsed layout %d has a wrong offset", n);
                step_on(after[k].rank, after[k].size, index);
            }
        }
        for (int a = 0; a < after[0].rank && after[0].rank > 1; a++)
            CHECK(after[0].size[a] != 1, "collapsed layout %d has an axis of size 1", n);
        for (int a = 0; a + 1 < after[0].rank; a++) {
            bool all = true;
            for (int k = 0; k < many; k++) all &= joins(&after[k], a);
            CHECK(!all, "axes %d and %d could be one, %d", a, a + 1, n);
        }
    }
    CHECK(less > 5000, "only %d layouts have fewer axes", less);
    layout_collapse(NULL, 0);
    tap_point("collapse");
}

int main(void)
{
    test_check();
    test_text();
    test_broadcast();
    test_dense();
    test_layouts();
    test_collapse();
    return tap_end();
}
