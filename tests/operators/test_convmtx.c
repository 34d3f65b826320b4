/* test_convmtx.c - the matrices of duet_convmtx and duet_convmtx2, bit by bit against their
 * definition, for every type and mode, into views, and over their own kernel. */
#include "convs.h"

static duet_place place[2];
static int places;

static int64_t drawn(int64_t low, int64_t high) { return low + rng_below(&gen, high - low + 1); }

/* Along one axis: the first element of a kernel of m that the first result uses. */
static int64_t first_tap(int64_t m, duet_overlap part)
{
    if (part == DUET_OVERLAP_FULL) return 0;
    if (part == DUET_OVERLAP_SAME) return (m - 1) / 2;
    return m - 1;
}

/* Along one axis: the element of the kernel in row i and column j; -1: none. */
static int64_t tap_of(int64_t m, duet_overlap part, int64_t i, int64_t j)
{
    const int64_t k = i + first_tap(m, part) - j;
    if (k >= 0 && k < m) return k;
    return -1;
}

static int64_t results_along(int64_t n, int64_t m, duet_overlap part)
{
    int64_t count = n - m + 1;
    if (part == DUET_OVERLAP_FULL) count = n + m - 1;
    else if (part == DUET_OVERLAP_SAME) count = n;
    if (count > 0) return count;
    return 0;
}

/* One axis if n[0] and m[0] are 1. Bit by bit, for any type. */
static void check_matrix(duet_place p, duet_dtype type, const int64_t n[2], const int64_t m[2], bool planes,
                         duet_overlap part, bool turned)
{
    const size_t each = dtypes[type].bytes;
    const int64_t rows[] = { results_along(n[0], m[0], part), results_along(n[1], m[1], part) };
    const int64_t down = rows[0] * rows[1], across = n[0] * n[1];
    duet_matrix *whole = turned ? duet_new(type, across, down) : NULL,
                *to = turned ? duet_transposed(whole) : duet_new(type, down, across),
                *k = planes ? duet_new(type, m[0], m[1]) : duet_new(type, m[1]), *back = duet_flipped(k, -1);
    unsigned char *bits = duet_overwrite(k);
    for (size_t i = 0; i < (size_t)duet_count(k) * each; i++)
        bits[i] = (unsigned char)(1 + rng_below(&gen, type == DUET_BOOL ? 1 : 255));
    unsigned char *was = malloc((size_t)duet_count(k) * each);
    memcpy(was, bits, (size_t)duet_count(k) * each);
    duet_status s = DUET_OK;
    DUET_ON(p)
    s = planes ? duet_convmtx2(to, back, (int)n[0], (int)n[1], part) : duet_convmtx(to, back, part);
    CHECK(s == DUET_OK, "%s", duet_error());
    const unsigned char *got = s == DUET_OK ? duet_read(to) : NULL, none[16] = { 0 };
    int64_t wrong = 0;
    for (int64_t i = 0; got && i < down; i++)
        for (int64_t j = 0; j < across; j++) {
            const int64_t a = tap_of(m[0], part, i / rows[1], j / n[1]),
                          b = tap_of(m[1], part, i % rows[1], j % n[1]);
            const unsigned char *want =
                a < 0 || b < 0 ? none : was + (size_t)(a * m[1] + m[1] - 1 - b) * each;
            wrong += memcmp(got + (i * duet_stride(to, 0) + j * duet_stride(to, 1)) * (int64_t)each, want,
                            each) != 0;
        }
    CHECK(!wrong, "convmtx of %s on the %s: %lld elements are wrong", dtypes[type].name, place_name(p),
          (long long)wrong);
    free(was);
    duet_free(&back);
    duet_free(&k);
    duet_free(&to);
    duet_free(&whole);
}

/* The example of SciPy's documentation; and with integers, which are exact, the convolution itself
 * along two axes. */
static void known_matrices(duet_place p)
{
    static const float k[] = { -1, 4, -2 }, same[] = { 4,  -1, 0, 0, 0,  -2, 4,  -1, 0, 0, 0,  -2, 4,
                                                       -1, 0,  0, 0, -2, 4,  -1, 0,  0, 0, -2, 4 };
    duet_matrix *K = duet_wrap((void *)(uintptr_t)k, DUET_F32, 3), *t = duet_new(DUET_F32, 5, 5),
                *x = duet_new(DUET_F32, 3, 4), *w = duet_new(DUET_F32, 2, 3),
                *all = duet_new(DUET_F32, 24, 12), *y = duet_new(DUET_F32, 24), *z = duet_new(DUET_F32, 4, 6),
                *line = duet_reshaped(x, 12), *corner = duet_submatrix(all, 1, 1, 2, 3);
    float *a = duet_overwrite(x), *b = duet_overwrite(w);
    for (int i = 0; i < 12; i++) a[i] = (float)drawn(-9, 9);
    for (int i = 0; i < 6; i++) b[i] = (float)drawn(-9, 9);
    DUET_ON(p)
    {
        CHECK(duet_convmtx(t, K, DUET_OVERLAP_SAME) == DUET_OK && !memcmp(duet_read(t), same, sizeof same),
              "the result differs from SciPy's: %s", duet_error());
        CHECK(duet_set(corner, w) == DUET_OK &&
                  duet_convmtx2(all, corner, 3, 4, DUET_OVERLAP_FULL) == DUET_OK &&
                  duet_set(y, duet_matmul(all, line)) == DUET_OK &&
                  duet_set(z, duet_convolve(x, w, DUET_OVERLAP_FULL)) == DUET_OK,
              "%s", duet_error());
    }
    CHECK(!memcmp(duet_read(y), duet_read(z), 24 * sizeof(float)),
          "the product with the matrix differs from the convolution");
    duet_matrix *made[] = { K, t, corner, line, x, w, all, y, z };
    for (int i = 0; i < 9; i++) duet_free(&made[i]);
}

static void refused_matrices(void)
{
    duet_matrix *t = duet_new(DUET_F32, 4, 4), *k = duet_new(DUET_F32, 2), *d = duet_new(DUET_F64, 2),
                *none = duet_new(DUET_F32, 0), *plane = duet_new(DUET_F32, 2, 2);
#define NO(call, status, words) CHECK(call == (status) && strstr(duet_error(), words), "%s", duet_error())
    NO(duet_convmtx(t, k, DUET_OVERLAP_FULL), DUET_BAD_SHAPE,
       "duet_convmtx(to: f32[4,4], kernel: f32[2]): to must have one row for each result");
    NO(duet_convmtx(t, plane, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "kernel 1 axis");
    NO(duet_convmtx(t, none, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "must not be empty");
    NO(duet_convmtx(t, d, DUET_OVERLAP_SAME), DUET_BAD_TYPE, "same element type");
    NO(duet_convmtx(t, k, (duet_overlap)3), DUET_BAD_ARGUMENT, "part (3)");
    NO(duet_convmtx(NULL, k, DUET_OVERLAP_SAME), DUET_BAD_ARGUMENT, "NULL");
    NO(duet_convmtx2(t, plane, 2, 3, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "one column for each element");
    NO(duet_convmtx2(t, plane, -2, -2, DUET_OVERLAP_SAME), DUET_BAD_ARGUMENT, "h (-2) and w (-2)");
    NO(duet_convmtx2(t, k, 2, 2, DUET_OVERLAP_SAME), DUET_BAD_SHAPE, "must have 2 axes");
    duet_matrix *all[] = { t, k, d, none, plane };
    for (int i = 0; i < 5; i++) duet_free(&all[i]);
}

static void matrices(int count)
{
    for (int i = 0; i < count; i++) {
        const bool planes = rng_chance(&gen, 50);
        const int64_t n[] = { planes ? drawn(1, 5) : 1, drawn(0, planes ? 5 : 40) },
                      m[] = { planes ? drawn(1, 4) : 1, drawn(1, planes ? 4 : 20) };
        const duet_dtype type = (duet_dtype)rng_below(&gen, DUET_DTYPE_COUNT);
        for (int k = 0; k < places; k++)
            for (int part = DUET_OVERLAP_FULL; part <= DUET_OVERLAP_VALID; part++)
                check_matrix(place[k], type, n, m, planes, (duet_overlap)part, i % 3 == 0);
    }
    for (int k = 0; k < places; k++) known_matrices(place[k]);
    refused_matrices();
    tap_point("convmtx, convmtx2");
}

int main(int argc, char **argv)
{
    gen = rng_new(20261123);
    places = list_places(place);
    matrices(is_quick(argc, argv) ? 60 : 200);
    return tap_end();
}
