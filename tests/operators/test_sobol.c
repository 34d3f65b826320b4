/* test_sobol.c - Sobol sequences: known points, the property that defines a digital net in all dimensions,
 * parts of a sequence, every floating-point type, views, shifts, bad input, recordings, on every machine. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "element.h"
#include "status_checks.h"
#include <math.h>

static rng gen;
static duet_place here;

static duet_matrix *points_of(duet_dtype t, int64_t points, int64_t dims, uint64_t seed, uint64_t first)
{
    duet_matrix *m = duet_new(t, points, dims);
    DUET_ON(here) GOES(duet_random_sobol(m, seed, first));
    return m;
}

/* The first points in four dimensions, in 64ths: by hand from the direction numbers 1, 1; 1, 3, 5; ... */
static void test_known(void)
{
    static const int expected[8][4] = { { 0, 0, 0, 0 },     { 32, 32, 32, 32 }, { 48, 16, 16, 16 },
                                        { 16, 48, 48, 48 }, { 24, 24, 40, 56 }, { 56, 56, 8, 24 },
                                        { 40, 8, 56, 40 },  { 8, 40, 24, 8 } };
    duet_matrix *m = points_of(DUET_F64, 8, 4, 0, 0);
    const double *p = duet_read_f64(m);
    for (int i = 0; i < 32 && p; i++)
        CHECK(p[i] == expected[i / 4][i % 4] / 64.0, "point %d, dimension %d: %g", i / 4, i % 4, p[i]);
    duet_free(&m);
}

/* Of 2^k points that start at a multiple of 2^k, each interval of length 2^-k has one, in each dimension, also
 * if the coordinates are shifted. */
static void test_net(int bits, int64_t dims, uint64_t seed, uint64_t first)
{
    const int64_t points = (int64_t)1 << bits;
    duet_matrix *m = points_of(DUET_F64, points, dims, seed, first << bits);
    const double *p = duet_read_f64(m);
    char *met = calloc((size_t)points, 1);
    for (int64_t d = 0; d < dims && p && met; d++) {
        memset(met, 0, (size_t)points);
        for (int64_t i = 0; i < points; i++) {
            const double x = p[i * dims + d];
            if (CHECK(x >= 0 && x < 1, "%.17g", x)) met[(int64_t)ldexp(x, bits)]++;
        }
        CHECK(!memchr(met, 0, (size_t)points), "dimension %d of %d points: an interval is empty", (int)d,
              (int)points);
    }
    free(met);
    duet_free(&m);
}

/* Points `from` on are those rows of the whole sequence, also those of a view: in each type rounded down, in
 * f32 to a multiple of 2^-24. */
static void test_part(duet_dtype t)
{
    const int64_t dims = 1 + (int64_t)rng_below(&gen, 40), points = (int64_t)rng_below(&gen, 90),
                  from = (int64_t)rng_below(&gen, 1000);
    const uint64_t seed = rng_below(&gen, 3), base = rng_below(&gen, 2) ? (uint64_t)1 << 40 : 0;
    const enum view view = (enum view[]){ VIEW_NONE, VIEW_SLICE, VIEW_TRANSPOSED }[rng_below(&gen, 3)];
    duet_matrix *all = points_of(DUET_F64, from + points, dims, seed, base), *whole = NULL;
    duet_matrix *m = random_view(&gen, view, t, 2, (const int64_t[]){ points, dims }, -1, 1, &whole);
    if (!m) m = duet_new(t, points, dims);
    DUET_ON(here) GOES(duet_random_sobol(m, seed, base + (uint64_t)from));
    const double *p = duet_read_f64(all);
    const void *q = duet_read(m);
    const double ulp = 2 * dtypes[t].roundoff;
    for (int64_t i = 0; i < points && p && q; i++)
        for (int64_t d = 0; d < dims; d++) {
            const double x = p[(from + i) * dims + d];
            const double y = (double)element_value(t, q, i * duet_stride(m, 0) + d * duet_stride(m, 1));
            CHECK(t == DUET_F64 ? x == y : y <= x && x - y < fmax(ulp * 2 * x, 0x1p-24),
                  "%s: point %d, dimension %d: %.17g, not %.17g", dtypes[t].name, (int)i, (int)d, y, x);
        }
    if (whole != m) duet_free(&whole);
    duet_free(&m, &all);
}

static void test_seeds(void)
{
    duet_matrix *a = points_of(DUET_F64, 64, 20, 1, 0), *b = points_of(DUET_F64, 64, 20, 2, 0);
    const double *p = duet_read_f64(a), *q = duet_read_f64(b);
    int same = 0;
    for (int i = 0; i < 64 * 20 && p && q; i++) same += p[i] == q[i];
    CHECK(same == 0, "%d coordinates are equal", same);
    duet_free(&a, &b);
}

static void test_recording(void)
{
    duet_matrix *m = duet_new(DUET_F32, 33, 7), *line = duet_new(DUET_F32, 33);
    GOES(duet_record_begin());
    DUET_ON(here) GOES(duet_random_sobol(m, 5, 9));
    duet_recording *r = duet_record_end();
    if (!CHECK(r != NULL, "%s", duet_error())) return;
    GOES(duet_set(m, 0));
    GOES(duet_replay(r));
    duet_matrix *n = points_of(DUET_F32, 33, 7, 5, 9);
    const float *p = duet_read_f32(m), *q = duet_read_f32(n);
    CHECK(p && q && !memcmp(p, q, 33 * 7 * sizeof *p), "a replay gives other points");
    DUET_ON(here) GOES(duet_random_sobol(line, 5, 9));
    const float *l = duet_read_f32(line);
    for (int i = 0; i < 33 && l && q; i++) CHECK(l[i] == q[7 * i], "point %d of one dimension", i);
    duet_recording_free(&r);
    duet_free(&m, &n, &line);
}

static void test_bad(void)
{
    duet_matrix *m = duet_full(DUET_F32, 7, 2, 3), *wide = duet_new(DUET_F32, 2, 1025),
                *z = duet_new(DUET_C64, 2), *cube = duet_new(DUET_F32, 2, 2, 2),
                *none = duet_new(DUET_F32, 0, 3), *i = duet_new(DUET_I32, 2);
    DUET_ON(here)
    {
        FAILS(duet_random_sobol(wide, 0, 0), DUET_BAD_SHAPE, "m must have at most 1024 columns");
        FAILS(duet_random_sobol(cube, 0, 0), DUET_BAD_SHAPE, "[points, dimensions] or [points]");
        FAILS(duet_random_sobol(z, 0, 0), DUET_BAD_TYPE, "floating point");
        FAILS(duet_random_sobol(i, 0, 0), DUET_BAD_TYPE, "floating point");
        FAILS(duet_random_sobol(m, 0, INT64_MAX), DUET_BAD_ARGUMENT, "less than 2^63");
        FAILS(duet_random_sobol(NULL, 0, 0), DUET_BAD_ARGUMENT, "duet_random_sobol");
        GOES(duet_random_sobol(none, 0, 0));
    }
    const float *p = duet_read_f32(m);
    for (int k = 0; k < 6 && p; k++) CHECK(p[k] == 7, "the destination was changed");
    duet_free(&m, &wide, &z, &cube, &none, &i);
}

static void test_place(duet_place place, bool quick)
{
    here = place;
    test_known();
    for (int bits = 0; bits <= (quick ? 8 : 12); bits++) {
        test_net(bits, bits < 6 ? 1024 : 33, 0, rng_below(&gen, 100));
        test_net(bits, 33, 1 + rng_below(&gen, 100), (uint64_t)1 << 30);
    }
    test_net(11, 1, 0, 0);
    for (int i = 0; i < (quick ? 10 : 60); i++) {
        test_part(DUET_F32);
        test_part(DUET_F64);
        test_part(DUET_F16);
        test_part(DUET_BF16);
    }
    test_seeds();
    test_recording();
    test_bad();
    tap_point(place_name(place));
}

int main(int argc, char **argv)
{
    duet_place place[2];
    const bool quick = is_quick(argc, argv);
    gen = rng_new(1);
    const int places = list_places(place);
    for (int k = 0; k < places; k++) test_place(place[k], quick);
    return tap_end();
}
