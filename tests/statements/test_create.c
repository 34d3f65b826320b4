/* test_create.c - new matrices with elements, single elements, copies to and from arrays of C, typed
 * pointers, times of blocks, the list of live matrices and the number of threads: random shapes and types
 * against loops, then errors, which must leave nothing behind. */
#include "common.h"
#include "cpu.h"
#include "dtype.h"
#include "element.h"
#include "modes.h"
#include "thread.h"
#include <complex.h>
#include <math.h>
#include <omp.h>

enum { TRIALS = 300, MOST = 6 * 6 * 6 };

static rng gen;
static int64_t live_before;

static void set(duet_matrix *m, duet_expr e) { CHECK((duet_set)(m, e) == DUET_OK, "%s", duet_error()); }
#define SET_OK(m, e) set(m, DUET(e))

static int64_t random_shape(int *rank, int64_t *size)
{
    int64_t n = 1;
    *rank = (int)rng_below(&gen, 4);
    for (int a = 0; a < *rank; a++) n *= size[a] = rng_below(&gen, 10) ? 1 + rng_below(&gen, 6) : 0;
    return n;
}

static duet_dtype random_type(bool also_complex)
{
    for (;;) {
        const duet_dtype t = (duet_dtype)rng_below(&gen, DUET_DTYPE_COUNT);
        if (also_complex || (t != DUET_C64 && t != DUET_C128)) return t;
    }
}

/* Small integers, which every type represents; 0 and 1 for bool. */
static double small_number(duet_dtype t) { return (double)rng_below(&gen, t == DUET_BOOL ? 2 : 100); }

static void nothing_is_left(const char *what)
{
    CHECK(duet_live(NULL) == live_before, "%s: %d matrices are left", what,
          (int)(duet_live(NULL) - live_before));
    /* the limit cannot change while a formula is unevaluated */
    CHECK(duet_arena_limit((size_t)64 << 20) == DUET_OK, "%s: a formula is left", what);
}

/* m has `count` elements, all equal to x; or x + i by if by is not 0. Frees m. */
static void holds_sequence(duet_matrix *m, const char *what, duet_dtype type, int64_t count, double x,
                           double by)
{
    if (!CHECK(m != NULL, "%s: %s", what, duet_error())) return;
    CHECK(duet_type(m) == type && duet_count(m) == count, "%s: %d elements of type %d", what,
          (int)duet_count(m), (int)duet_type(m));
    const void *p = duet_read(m);
    for (int64_t i = 0; i < count; i++) {
        const long double found = element_value(type, p, i);
        const long double wanted = converted(DUET_F64, type, (long double)(x + (double)i * by));
        if (!CHECK(found == wanted, "%s: element %d is %Lg, not %Lg", what, (int)i, found, wanted)) break;
    }
    duet_free(&m);
}

static void test_constants(void)
{
    for (int i = 0; i < TRIALS; i++) {
        int rank;
        int64_t size[DUET_RANK_MAX];
        const duet_dtype t = random_type(false);
        const int64_t n = random_shape(&rank, size);
        const double x = small_number(t);
        holds_sequence(duet_zeros_shape(t, rank, size), "zeros", t, n, 0, 0);
        holds_sequence(duet_ones_shape(t, rank, size), "ones", t, n, 1, 0);
        holds_sequence(duet_full_shape(t, DUET(x), rank, size), "full", t, n, x, 0);
        holds_sequence(duet_eval(duet_cast(duet_add(x, 0), t)), "eval of a number", t, 1, x, 0);
    }
    for (int n = 0; n < 7; n++) {
        duet_matrix *m = duet_eye(DUET_F32, n);
        const float *p = m ? duet_read(m) : NULL;
        CHECK(p || !n, "%s", duet_error());
        for (int i = 0; p && i < n * n; i++)
            CHECK(p[i] == (i % (n + 1) == 0), "eye: element %d is %g", i, p[i]);
        duet_free(&m);
    }
    nothing_is_left("constants");
    tap_point("zeros, ones, full, eye and eval of numbers");
}

/* ---- sequences ---- */

static void test_sequences(void)
{
    for (int i = 0; i < TRIALS; i++) {
        const double start = (double)rng_below(&gen, 20), by = (double)(1 + rng_below(&gen, 5));
        const int64_t n = rng_below(&gen, 10);
        const double stop = start + (double)n * by - (double)rng_below(&gen, (int64_t)by);
        const duet_dtype t = i % 2 ? DUET_I32 : DUET_F64;
        holds_sequence(duet_arange(t, start, stop, by), "arange", t, n, start, by);
        holds_sequence(duet_arange(t, -start, -stop, -by), "a falling arange", t, n, -start, -by);
        holds_sequence(duet_linspace(t, start, start + (double)(n - 1) * by, n), "linspace", t, n, start, by);
    }
    duet_matrix *m = duet_linspace(DUET_F64, 0.1, 0.7, 7);
    const double *p = duet_read_f64(m);
    CHECK(p && p[0] == 0.1 && p[6] == 0.7, "linspace misses an end");
    duet_free(&m);
    nothing_is_left("sequences");
    tap_point("arange and linspace");
}

/* ---- arrays, copies and single elements ---- */

static void one_array(void)
{
    int rank;
    int64_t size[DUET_RANK_MAX];
    _Alignas(16) unsigned char array[MOST * 16], back[MOST * 16];
    const duet_dtype t = random_type(true);
    const int64_t n = random_shape(&rank, size);
    const size_t bytes = (size_t)n * dtypes[t].bytes;
    memset(array, 0, sizeof array);
    memset(back, 0x55, sizeof back);
    if (t == DUET_C64)
        for (int64_t i = 0; i < 2 * n; i++) ((float *)array)[i] = (float)i;
    else if (t == DUET_C128)
        for (int64_t i = 0; i < 2 * n; i++) ((double *)array)[i] = (double)i;
    else
        for (int64_t i = 0; i < n; i++) element_put(t, array, i, (long double)small_number(t));
    duet_matrix *m = duet_from_array_shape(array, t, rank, size), *copy = m ? duet_copy(m) : NULL;
    if (CHECK(copy != NULL, "%s", duet_error())) {
        memset(array + bytes, 0x55, sizeof array - bytes);
        CHECK(duet_to_array(copy, back) == DUET_OK, "%s", duet_error());
        CHECK(!memcmp(array, back, sizeof array), "%d elements of type %d differ, or more were written",
              (int)n, (int)t);
        if (rank == 2) {
            duet_matrix *turned = duet_transposed(m), *dense = duet_copy(turned),
                        *again = duet_eval(duet_transpose(dense));
            CHECK(again && duet_to_array(again, back) == DUET_OK && !memcmp(array, back, sizeof array),
                  "a copy of a transposed view differs");
            duet_free(&turned);
            duet_free(&dense);
            duet_free(&again);
        }
    }
    duet_free(&m);
    duet_free(&copy);
}

static void test_items(void)
{
    const float given[] = { 1, 2, 3, 4 };
    duet_matrix *m = duet_from_array(given, DUET_F32, 2, 2);
    double f64 = 0;
    float f32 = 0;
    int64_t i64 = 0;
    uint8_t u8 = 0;
    CHECK(duet_item(duet_sum(m), &f64) == DUET_OK && f64 == 10, "f64: %g", f64);
    CHECK(duet_item(duet_mean(m), &f32) == DUET_OK && f32 == 2.5f, "f32: %g", f32);
    CHECK(duet_item(duet_argmax(m), &i64) == DUET_OK && i64 == 3, "i64: %d", (int)i64);
    CHECK(duet_item(duet_max(m), &u8) == DUET_OK && u8 == 4, "u8: %d", u8);
    CHECK(duet_item(duet_index(m, DUET_AT(1), DUET_AT(0)), &f64) == DUET_OK && f64 == 3, "an element: %g, %s",
          f64, duet_error());
    duet_free(&m);
}

static void test_arrays(void)
{
    for (int i = 0; i < TRIALS; i++) one_array();
    test_items();
    nothing_is_left("arrays");
    tap_point("arrays of C, copies and single elements");
}

/* Several items at once have the values of the same items one by one, in every combination of types. */
static void test_several_items(void)
{
    for (int i = 0; i < TRIALS; i++) {
        const int n = 1 + (int)rng_below(&gen, 50);
        const int64_t shift = (int64_t)rng_below(&gen, 1000) - 500;
        duet_matrix *m = duet_eval(duet_add(duet_iota(DUET_F64, n), shift));
        double sum = 0, mean = 0, alone = 0;
        float least = 0;
        int8_t last = 0;
        int64_t count = 0;
        const duet_expr twice = duet_mul(m, 2);
        const duet_status s =
            duet_item(duet_sum(twice), &sum, duet_min(twice), &least, duet_mean(m), &mean, duet_argmax(twice),
                      &last, duet_count_nonzero(duet_greater_equal(m, shift)), &count);
        CHECK(s == DUET_OK, "%s", duet_error());
        CHECK(sum == (double)n * (2 * (double)shift + n - 1), "the sum is %g", sum);
        CHECK(least == 2 * (float)shift && last == n - 1 && count == n, "%g, %d, %d", least, last,
              (int)count);
        CHECK(duet_item(duet_mean(m), &alone) == DUET_OK && alone == mean, "%g is not %g", mean, alone);
        duet_free(&m);
    }
    nothing_is_left("several items");
    tap_point("several items in one call");
}

static void test_iota(void)
{
    for (int i = 0; i < TRIALS; i++) {
        duet_dtype t;
        do t = random_type(false);
        while (t == DUET_BOOL);
        const int64_t n = rng_below(&gen, 10) ? (int64_t)rng_below(&gen, 120) : 0;
        holds_sequence(duet_eval(duet_iota(t, n)), "iota", t, n, 0, 1);
        if (!n) continue;
        const int64_t by = 1 + (int64_t)rng_below(&gen, 4);
        double last = -1;
        CHECK(duet_item(duet_pick(duet_mul(duet_iota(DUET_I64, n), by), 0, n - 1), &last) == DUET_OK, "%s",
              duet_error());
        CHECK(last == (double)((n - 1) * by), "the last of %d numbers is %g", (int)n, last);
    }
    nothing_is_left("iota");
    tap_point("duet_iota");
}

/* ---- freeing ---- */

static int frees_at_return(int64_t *inside)
{
    DUET_LOCAL duet_matrix *x = duet_ones(DUET_F32, 3), *none = NULL;
    for (int i = 0; i < 4; i++) {
        DUET_LOCAL duet_matrix *view = duet_slice(x, 0, 2);
        if (i == 1) continue;
        *inside = duet_live(NULL) - live_before;
        if (i == 2) break;
    }
    if (!none) return duet_count(x) == 3;
    return 0;
}

/* Macros with lists evaluate each argument once. */
static void test_once(void)
{
    float data[8] = { 0 };
    int n = 1, types = 0;
    const duet_dtype type[] = { DUET_F32, DUET_F64 };
    duet_matrix *m[] = { duet_new(type[types++], n++, 2),
                         duet_zeros(type[types++ - 1], n++),
                         duet_ones(DUET_I32, n++),
                         duet_wrap(data, DUET_F32, n++),
                         duet_wrap_columns(data, DUET_F32, n++),
                         duet_from_array(data, DUET_F32, n++),
                         duet_full(DUET_F32, 1, n++),
                         duet_eval(duet_reshape(duet_iota(DUET_F32, 6), n++ - 7, 6)) };
    CHECK(types == 2 && n == 9, "evaluated %d and %d times", types, n - 1);
    for (int k = 0; k < 8; k++) {
        CHECK(m[k] && duet_size(m[k], 0) == (k < 7 ? k + 1 : 1), "matrix %d: %s", k, duet_error());
        duet_free(&m[k]);
    }
    nothing_is_left("macros with lists");
    tap_point("macros evaluate their arguments once");
}

static void test_free(void)
{
    duet_matrix *x = duet_ones(DUET_F32, 3), *y = duet_row(x, 0), *z = NULL, *list[2] = { NULL };
    list[1] = duet_copy(x);
    duet_free(&y, &z, &list[1], NULL);
    CHECK(!y && !z && !list[1] && duet_live(NULL) == live_before + 1, "%d matrices are left",
          (int)(duet_live(NULL) - live_before));
    duet_free(&x);
    duet_free(&x, &x);
    (duet_free)(&x);
    int64_t inside = 0;
    CHECK(frees_at_return(&inside) && inside == 2, "%d matrices inside", (int)inside);
    nothing_is_left("duet_free");
    tap_point("duet_free of several matrices, DUET_LOCAL");
}

/* ---- errors ---- */

static void refuses(duet_matrix *m, duet_status expected, const char *text)
{
    CHECK(!m, "a matrix was made: %s", text);
    CHECK(duet_error_status() == expected && strstr(duet_error(), text), "status %d, \"%s\", not \"%s\"",
          (int)duet_error_status(), duet_error(), text);
    duet_free(&m);
}

static void refuses_item(duet_status s, duet_status expected, const char *text)
{
    CHECK(s == expected && strstr(duet_error(), text), "status %d, \"%s\", not \"%s\"", (int)s, duet_error(),
          text);
}

static void test_errors(void)
{
    duet_matrix *m = duet_ones(DUET_F32, 2, 3);
    double x = 7, *none = NULL;
    refuses(duet_eval(duet_add(m, duet_reshape(m, 3, 2))), DUET_BAD_SHAPE,
            "duet_add(x: f32[2,3], y: f32[3,2])");
    refuses(duet_full(DUET_F32, duet_sqrt(m), 2, 2), DUET_BAD_SHAPE, "duet_full(m: f32[2,2], e: f32[2,3])");
    refuses(duet_full(DUET_U8, 300, 2), DUET_BAD_ARGUMENT,
            "duet_full(m: u8[2]): 300 is out of the range of u8");
    refuses(duet_zeros(DUET_F32, -1), DUET_BAD_SHAPE, "duet_zeros");
    refuses(duet_eye(DUET_F32, -1), DUET_BAD_SHAPE, "duet_eye");
    refuses(duet_arange(DUET_F32, 0, 1, 0), DUET_BAD_ARGUMENT, "duet_arange(0, 1, 0): ");
    refuses(duet_arange(DUET_F32, 0, INFINITY, 1), DUET_BAD_ARGUMENT, "duet_arange(0, inf, 1): ");
    refuses(duet_arange(DUET_F32, 0, 1e300, 1e-300), DUET_BAD_SHAPE, "too many numbers");
    refuses(duet_linspace(DUET_F32, 0, 1, -1), DUET_BAD_ARGUMENT, "duet_linspace(0, 1, -1): ");
    refuses((duet_from_array_shape)(none, DUET_F64, 1, (const int64_t[]){ 2 }), DUET_BAD_ARGUMENT,
            "duet_from_array: the pointer must not be NULL");
    refuses(duet_from_array((double *)((char *)&x + 1), DUET_F64, 1), DUET_BAD_ARGUMENT,
            "duet_from_array: the pointer");
    refuses(duet_copy(NULL), DUET_BAD_ARGUMENT, "duet_copy");
    refuses_item(duet_item(duet_neg(m), &x), DUET_BAD_SHAPE,
                 "duet_item(e: f32[2,3]): e must have one element");
    refuses_item(duet_item(duet_sum(m), none), DUET_BAD_ARGUMENT, "duet_item: x must not be NULL");
    refuses_item(duet_item(duet_add(m, duet_reshape(m, 3, 2)), &x), DUET_BAD_SHAPE, "duet_add(");
    refuses_item((duet_item)(duet_sum(m), (duet_dtype)99, &x), DUET_BAD_ARGUMENT, "type (99)");
    double f = 7;
    refuses_item(duet_item(duet_sum(m), &x, duet_neg(m), &f), DUET_BAD_SHAPE,
                 "item 2: duet_item(e: f32[2,3]): e must have one element");
    refuses_item(duet_item(duet_sum(m), none, duet_sum(m), &f), DUET_BAD_ARGUMENT,
                 "item 1: duet_item: x must");
    refuses_item(duet_item(duet_sum(m), &f, duet_add(m, duet_reshape(m, 3, 2)), &x), DUET_BAD_SHAPE,
                 "duet_add(");
    refuses_item((duet_items)(NULL, 1), DUET_BAD_ARGUMENT, "duet_items: the list must not be NULL");
    const duet_item_entry entry = { duet_sum(m), DUET_F64, &f };
    refuses_item((duet_items)(&entry, 0), DUET_BAD_ARGUMENT,
                 "the number of formulas (0) must be from 1 to 255");
    CHECK(f == 7 && duet_drop(entry.e) == DUET_OK, "a failed duet_items changed something: %s", duet_error());
    refuses(duet_eval(duet_iota(DUET_I32, -1)), DUET_BAD_ARGUMENT,
            "duet_iota(): n (-1) must not be negative");
    refuses(duet_eval(duet_iota(DUET_C64, 2)), DUET_BAD_TYPE, "duet_iota(): type (c64) must be");
    refuses(duet_eval(duet_iota(DUET_BOOL, 2)), DUET_BAD_TYPE, "duet_iota(): type (bool) must be");
    refuses(duet_eval(duet_iota((duet_dtype)99, 2)), DUET_BAD_ARGUMENT, "duet_iota(): type (99) is not");
    refuses_item(duet_to_array(m, NULL), DUET_BAD_ARGUMENT, "duet_to_array: the pointer must not be NULL");
    refuses_item(duet_to_array(NULL, &x), DUET_BAD_ARGUMENT, "duet_to_array: the matrix must not be NULL");
    CHECK(!duet_read_f64(m) && strstr(duet_error(), "f32[2,3]") && duet_error_status() == DUET_BAD_TYPE,
          "\"%s\"", duet_error());
    CHECK(!duet_update_i32(m) && !duet_overwrite_u8(m), "a pointer to elements of another type");
    CHECK(x == 7, "*x was changed");
    duet_free(&m);
    nothing_is_left("errors");
    double d = 5;
    refuses_item(duet_item((duet_matrix *)NULL, &d), DUET_BAD_ARGUMENT, "duet_");
    CHECK(!strstr(duet_error(), "duet_expr_status"), "%s", duet_error());
    refuses_item(duet_item(duet_complex(1, 2), &d), DUET_BAD_TYPE, "duet_item(e: c128[]): a complex e");
    refuses_item(duet_item(1, &d, duet_complex(1, 2), &d), DUET_BAD_TYPE,
                 "a complex e cannot be stored as f64");
    CHECK(d == 5, "a failed duet_item stored %g", d);
    tap_point("errors name the function and leave nothing behind");
}

/* ---- typed pointers ---- */

static void test_typed(void)
{
    duet_matrix *m = duet_zeros(DUET_I32, 4);
    int32_t *p = duet_overwrite_i32(m);
    for (int i = 0; p && i < 4; i++) p[i] = i;
    p = duet_update_i32(m);
    if (CHECK(p != NULL, "%s", duet_error())) p[0] += 5;
    const int32_t *q = duet_read_i32(m);
    CHECK(q && q[0] == 5 && q[3] == 3, "%s", duet_error());
    duet_free(&m);
    duet_matrix *c = duet_full(DUET_C64, 1 + 2 * I, 2);
    const float _Complex *z = duet_read_c64(c);
    CHECK(z && ((const float *)z)[2] == 1 && ((const float *)z)[3] == 2, "%s", duet_error());
    duet_free(&c);
    nothing_is_left("typed pointers");
    tap_point("typed pointers");
}

/* ---- the list of live matrices ---- */

static void test_live(void)
{
    char text[1000] = "", wanted[200];
    FILE *out = tmpfile();
    duet_matrix *first = duet_zeros(DUET_F32, 2, 3);
    const int line = __LINE__ - 1;
    duet_matrix *view = duet_slice(first, 0, 1),
                *other = (duet_new_shape)(DUET_U8, 1, (const int64_t[]){ 5 });
    CHECK(duet_live(NULL) == live_before + 3, "%d live matrices", (int)duet_live(NULL));
    if (CHECK(out != NULL, "no temporary file")) {
        CHECK(duet_live(out) == live_before + 3, "printing changes the number");
        rewind(out);
        text[fread(text, 1, sizeof text - 1, out)] = 0;
        fclose(out);
    }
    snprintf(wanted, sizeof wanted, "%s:%d: f32[2,3], one of 2 matrices that share 24 bytes\n", __FILE__,
             line);
    CHECK(strstr(text, wanted) != NULL, "no line \"%s\" in \"%s\"", wanted, text);
    CHECK(strstr(text, "unknown place: u8[5], 5 bytes\n") != NULL, "\"%s\"", text);
    duet_free(&view);
    duet_free(&other);
    duet_free(&first);
    nothing_is_left("live matrices");
    tap_point("the list of live matrices names their source lines");
}

/* A report, as text. */
static const char *report(char text[4000])
{
    FILE *out = tmpfile();
    *text = 0;
    if (!CHECK(out != NULL, "no temporary file")) return text;
    duet_memory_report(out);
    rewind(out);
    text[fread(text, 1, 3999, out)] = 0;
    fclose(out);
    return text;
}

static int lines_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p++) n++;
    return n;
}

static void test_report(void)
{
    char text[4000], wanted[400];
    duet_matrix *m[12], *view = NULL;
    const int line = __LINE__ + 1;
    for (int i = 0; i < 12; i++) m[i] = duet_ones(DUET_F64, 100, 100 + i);
    view = duet_slice(m[11], 0, 1);
    duet_memory_report(NULL);
    report(text);
    CHECK(strstr(text, "memory of the CPU\n         used ") && strstr(text, ", no limit\n"), "\"%s\"", text);
    CHECK(strstr(text, "matrices ") && strstr(text, "temporary buffers ") && strstr(text, "plans "), "\"%s\"",
          text);
    snprintf(
        wanted, sizeof wanted,
        "largest matrices\n         %s:%d: f64[100,111], one of 2 matrices that share 88800 bytes on the "
        "CPU\n         %s:%d: f64[100,110], 88000 bytes on the CPU\n",
        __FILE__, line, __FILE__, line);
    CHECK(strstr(text, wanted) != NULL, "no \"%s\" in \"%s\"", wanted, text);
    CHECK(lines_of(text, __FILE__) == 10 && !strstr(text, "f64[100,101]"), "not the ten largest: \"%s\"",
          text);
    CHECK(duet_memory_limit(DUET_CPU, duet_memory_of(DUET_CPU).used) == DUET_OK, "%s", duet_error());
    duet_matrix *more = duet_new(DUET_F64, 1000, 1000);
    CHECK(!duet_overwrite(more) && duet_error_status() == DUET_NO_MEMORY, "the limit has no effect");
    snprintf(wanted, sizeof wanted,
             "; the largest matrices on the CPU: f64[100,111] created at %s:%d (88800 bytes), f64[100",
             __FILE__, line);
    CHECK(strstr(duet_error(), wanted) != NULL, "no \"%s\" in \"%s\"", wanted, duet_error());
    CHECK(duet_error()[strlen(duet_error()) - 1] == ')', "the last name is cut off: \"%s\"", duet_error());
    CHECK(duet_memory_limit(DUET_CPU, 0) == DUET_OK, "%s", duet_error());
    duet_free(&more, &view);
    for (int i = 0; i < 12; i++) duet_free(&m[i]);
    nothing_is_left("a report");
    tap_point("the report and NO_MEMORY name the largest matrices");
}

/* ---- times and threads ---- */

static double leave_early(void)
{
    double seconds = -1;
    do {
        DUET_TIMED(&seconds)
        {
            if (seconds == -1) break;
        }
    } while (0);
    return seconds;
}

static void test_times(void)
{
    double seconds = -1, *none = NULL;
    bool ran = false;
    duet_matrix *m = duet_ones(DUET_F32, 300, 300);
    DUET_TIMED(&seconds)
    {
        ran = true;
        SET_OK(m, duet_matmul(m, m));
    }
    CHECK(ran && seconds > 0 && seconds < 60, "%g s", seconds);
    const double early = leave_early();
    CHECK(early >= 0 && early < 60, "%g s after break", early);
    ran = false;
    DUET_TIMED(none) ran = true;
    CHECK(!ran && strstr(duet_error(), "DUET_TIMED: seconds must not be NULL"), "\"%s\"", duet_error());
    duet_free(&m);
    tap_point("times of blocks");
}

static void test_threads(void)
{
    const int before = omp_get_max_threads();
    duet_matrix *x = duet_arange(DUET_F32, 0, 200000, 1), *y = duet_copy(x), *z = duet_copy(x);
    CHECK(duet_set_threads(1) == DUET_OK, "%s", duet_error());
    SET_OK(y, duet_sqrt(duet_add(x, 1)));
    CHECK(duet_set_threads(3) == DUET_OK, "%s", duet_error());
    SET_OK(z, duet_sqrt(duet_add(x, 1)));
    CHECK(!memcmp(duet_read(y), duet_read(z), 200000 * sizeof(float)), "results depend on the threads");
    CHECK(omp_get_max_threads() == before, "OpenMP's setting changed from %d to %d", before,
          omp_get_max_threads());
    CHECK(duet_set_threads(-1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "threads (-1)"), "\"%s\"",
          duet_error());
    CHECK(duet_set_threads(0) == DUET_OK, "%s", duet_error());
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    nothing_is_left("threads");
    tap_point("the number of threads is this thread's own");
}

/* Statements of several kinds: fused, reduced, scanned, sorted, products of integers, and convolutions. */
static void compute(duet_matrix *const x[2], duet_matrix *const y[6])
{
    SET_OK(y[0], duet_tanh(duet_add(duet_exp(x[0]), 1)));
    SET_OK(y[1], duet_sum(duet_mul(x[0], x[0]), 1));
    SET_OK(y[2], duet_softmax(x[0]));
    SET_OK(y[3], duet_cumsum(x[0], 0));
    SET_OK(y[4], duet_matmul(x[1], x[1]));
    SET_OK(y[5], duet_sort(x[0], 1));
}

static int threads_in_block(int n)
{
    DUET_THREADS(n) return thread_get()->threads;
    return -1;
}

/* The same bits for every number of threads; also where several threads always share a statement. */
static void test_thread_blocks(void)
{
    const double serial = cpu_serial_seconds;
    const int before = omp_get_max_threads();
    duet_matrix *line = duet_linspace(DUET_F32, -3, 4, 300 * 200), *x[2], *y[6], *want[6];
    duet_matrix *rows = duet_reshaped(line, 300, 200);
    x[0] = duet_copy(rows);
    x[1] = duet_eval(duet_cast(duet_mul(duet_index(rows, DUET_RANGE(0, 200)), 10), DUET_I32));
    for (int k = 0; k < 6; k++) {
        y[k] = k == 1   ? duet_new(DUET_F32, 300)
               : k == 4 ? duet_new(DUET_I32, 200, 200)
                        : duet_new(DUET_F32, 300, 200);
        want[k] = duet_copy(y[k]);
    }
    omp_set_num_threads(4);
    cpu_serial_seconds = 0;
    DUET_THREADS(1) compute(x, want);
    for (int n = 0; n < 7; n++) {
        DUET_THREADS(n) compute(x, y);
        for (int k = 0; k < 6; k++)
            CHECK(!memcmp(duet_read(y[k]), duet_read(want[k]), (size_t)duet_count(y[k]) * 4),
                  "statement %d has other bits with %d threads", k, n);
        CHECK(omp_get_max_threads() == 4, "OpenMP's setting changed to %d", omp_get_max_threads());
    }
    cpu_serial_seconds = serial;
    omp_set_num_threads(before);
    CHECK(duet_set_threads(5) == DUET_OK, "%s", duet_error());
    CHECK(threads_in_block(2) == 2 && thread_get()->threads == 5, "return does not end a block");
    DUET_THREADS(3)
    {
        DUET_THREADS(0)
        CHECK(thread_get()->threads == 0, "an inner block has %d threads", thread_get()->threads);
        CHECK(thread_get()->threads == 3, "%d threads after an inner block", thread_get()->threads);
        DUET_THREADS(-2)
        {
            CHECK(thread_get()->threads == 3, "a negative number has an effect");
            CHECK(strstr(duet_error(), "DUET_THREADS: threads (-2) must not be negative"), "%s",
                  duet_error());
        }
        CHECK(duet_set_threads(1) == DUET_OK, "%s", duet_error());
    }
    CHECK(thread_get()->threads == 5, "%d threads after the block", thread_get()->threads);
    CHECK(duet_set_threads(0) == DUET_OK, "%s", duet_error());
    for (int k = 0; k < 6; k++) {
        duet_free(&y[k]);
        duet_free(&want[k]);
    }
    duet_free(&line);
    duet_free(&rows);
    duet_free(&x[0]);
    duet_free(&x[1]);
    tap_point("blocks of threads");
}

static void test_recordings(void)
{
    duet_matrix *x = duet_ones(DUET_F32, 3), *y = NULL;
    double sum = 0;
    float array[3] = { 0 };
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    y = duet_eval(duet_add(x, 1));
    holds_sequence(duet_arange(DUET_F32, 0, 3, 1), "arange", DUET_F32, 3, 0, 1);
    holds_sequence(duet_full(DUET_F32, 2, 3), "full", DUET_F32, 3, 2, 0);
    CHECK(duet_to_array(y, array) == DUET_OK && array[2] == 2, "%g: %s", array[2], duet_error());
    CHECK(y != NULL, "%s", duet_error());
    CHECK(duet_item(duet_sum(y), &sum) == DUET_OK && sum == 6, "the sum is %g: %s", sum, duet_error());
    CHECK(duet_item(duet_max(y), &sum, duet_min(y), &sum) == DUET_OK && sum == 2, "%g: %s", sum,
          duet_error());
    FILE *out = tmpfile();
    CHECK(out && duet_print(out, duet_sum(y), duet_iota(DUET_F32, 3)) == DUET_OK, "%s", duet_error());
    if (out) fclose(out);
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    SET_OK(x, 4);
    CHECK(duet_replay(r) == DUET_OK && duet_read_f32(y)[1] == 5, "a replayed duet_eval: %s", duet_error());
    duet_recording_free(&r);
    duet_free(&x);
    duet_free(&y);
    nothing_is_left("recordings");
    tap_point("eval and item within a recording");
}

/* C aligns a complex number like one of its parts, so an array may start at any multiple of that. */
static void test_complex_arrays(void)
{
    enum { N = 37 };
    const duet_dtype types[] = { DUET_C64, DUET_C128 };
    for (int t = 0; t < 2; t++) {
        const size_t bytes = dtypes[types[t]].bytes, part = bytes / 2;
        char *block = aligned_alloc(64, 64 * N), *odd = block + part, *back = block + 32 * N + part;
        for (int i = 0; i < 2 * N; i++) {
            const double x = (double)rng_below(&gen, 2001) / 1000 - 1;
            element_put(types[t] == DUET_C64 ? DUET_F32 : DUET_F64, odd, i,
                        converted(DUET_F64, types[t] == DUET_C64 ? DUET_F32 : DUET_F64, x));
        }
        duet_matrix *m = duet_wrap((void *)odd, types[t], N),
                    *same = duet_from_array((void *)odd, types[t], N);
        if (!CHECK(m && same, "%s", duet_error())) return;
        CHECK(duet_to_array(same, back) == DUET_OK && !memcmp(odd, back, N * bytes), "%s", duet_error());
        const duet_expr results[][2] = {
            { duet_mul(m, duet_conj(m)), duet_mul(same, duet_conj(same)) },
            { duet_exp(m), duet_exp(same) },
            { duet_sum(m), duet_sum(same) },
            { duet_cumsum(m, 0), duet_cumsum(same, 0) },
            { duet_fft(m, N, 0), duet_fft(same, N, 0) },
            { duet_outer(m, m), duet_outer(same, same) },
            { duet_matmul(duet_expand_dims(m, 0), duet_expand_dims(m, 1)),
              duet_matmul(duet_expand_dims(same, 0), duet_expand_dims(same, 1)) },
        };
        for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
            duet_matrix *x = duet_eval(results[i][0]), *y = duet_eval(results[i][1]);
            if (!CHECK(x && y, "%s", duet_error())) continue;
            int equal = 0; /* FFTW's routines differ with the alignment, in the last digits */
            const duet_expr same_value =
                i == 4 ? duet_allclose(x, y, 1e-5, 1e-5) : duet_all(duet_equal(x, y));
            CHECK(duet_item(same_value, &equal) == DUET_OK && equal, "%s, result %d: %s",
                  dtypes[types[t]].name, (int)i, duet_error());
            duet_free(&x, &y);
        }
        set(m, duet_mul(m, 2));
        set(same, duet_sub(m, duet_mul(same, 2)));
        double left = 1;
        CHECK(duet_item(duet_max(duet_abs(same)), &left) == DUET_OK && left == 0, "%g is left", left);
        refuses(duet_wrap((void *)(odd + 1), types[t], N), DUET_BAD_ARGUMENT, "must be aligned");
        duet_free(&m, &same);
        free(block);
    }
    nothing_is_left("arrays of complex numbers");
    tap_point("arrays of complex numbers at any address that C allows");
}

int main(int argc, char **argv)
{
    gen = rng_new(21);
    live_before = duet_live(NULL);
    CHECK(!strcmp(duet_version(), DUET_VERSION), "%s is not %s", duet_version(), DUET_VERSION);
    test_constants();
    test_sequences();
    test_arrays();
    test_several_items();
    test_iota();
    test_once();
    test_free();
    test_errors();
    test_typed();
    test_live();
    test_report();
    test_times();
    test_threads();
    test_thread_blocks();
    test_recordings();
    test_complex_arrays();
    CHECK(duet_memory_of(DUET_AUTO).used == 0 && duet_error_status() == DUET_BAD_ARGUMENT, "%s",
          duet_error());
    tap_point("the memory of no device");
    return tap_end();
}
