/* test_fft.c - Fourier transforms against their definition in long double: all kinds, types, axes,
 * lengths and views on every machine. The error of a result in the 2-norm is at most 8 u log2(2 N)
 * of the norm that the definition gives, where N is the number of terms of a sum; 32 u if a length
 * has prime factors above 13 (docs/semantics.md). */
#include "fourier_arrays.h"

static duet_place place[2];
static int places;

/* ---- the definition ---- */

/* The same with n elements along an axis: truncated, or padded with zeros. */
static array resized(const array *t, int axis, int64_t n)
{
    int64_t size[DUET_RANK_MAX];
    memcpy(size, t->size, sizeof size);
    size[axis] = n;
    array r = array_new(t->rank, size);
    const int64_t s = stride_of(t, axis);
    for (int64_t i = 0; i < r.count; i++) {
        const int64_t k = i / s % n, outer = i / s / n;
        if (k < t->size[axis]) r.v[i] = t->v[(outer * t->size[axis] + k) * s + i % s];
    }
    return r;
}

static void line(number *x, int64_t n, int64_t s, const number *w, number *room)
{
    for (int64_t k = 0; k < n; k++) {
        room[k] = 0;
        for (int64_t j = 0; j < n; j++) room[k] += x[j * s] * w[j * k % n];
    }
    for (int64_t k = 0; k < n; k++) x[k * s] = room[k];
}

static void transform_along(array *t, int axis, int sign)
{
    const int64_t n = t->size[axis], s = stride_of(t, axis);
    number *w = malloc(2 * (size_t)n * sizeof *w);
    for (int64_t k = 0; k < n; k++) w[k] = cexpl(sign * 2 * PI * I * (real)k / (real)n);
    for (int64_t i = 0; i < t->count; i++)
        if (i / s % n == 0) line(t->v + i, n, s, w, w + n);
    free(w);
}

static void replace(array *t, array with)
{
    array_free(t);
    *t = with;
}

/* Completes the transform of a real array along an axis from its first n / 2 + 1 elements. */
static void mirror(array *t, int axis, int64_t n)
{
    array r = resized(t, axis, n);
    const int64_t s = stride_of(t, axis);
    for (int64_t i = 0; i < r.count; i++) {
        const int64_t k = i / s % n, outer = i / s / n;
        if (2 * k % n == 0) r.v[i] = creall(r.v[i]);
        if (k > n / 2) r.v[i] = conjl(r.v[(outer * n + n - k) * s + i % s]);
    }
    replace(t, r);
}

enum kind { FFT, IFFT, RFFT, IRFFT };
static const char *const kind_names[] = { "fftn", "ifftn", "rfftn", "irfftn" };

typedef struct trial {
    enum kind kind;
    duet_dtype type; /* of x */
    sizes x;
    duet_fourier o;
    int view; /* enum view, or: */
} trial;

enum { FLIPPED = VIEWS, REPEATED };

static const char *name_of_view(int v)
{
    if (v == FLIPPED) return "flipped";
    if (v == REPEATED) return "repeated";
    return view_names[v];
}

static int axis_of(const trial *t, int k) { return t->o.axes ? (t->o.axis[k] + t->x.rank) % t->x.rank : k; }

/* The expected result; *size: the magnitude to which errors are relative, that of the sum over all
 * terms. */
static array meant(const trial *t, const array *x, real *size, real *terms)
{
    const int count = t->o.axes ? t->o.axes : t->x.rank, sign = t->kind == FFT || t->kind == RFFT ? -1 : 1;
    array y = resized(x, 0, x->size[0]);
    *terms = 1;
    for (int k = 0; k < count; k++) {
        const int a = axis_of(t, k);
        const bool mirrored = t->kind == IRFFT && k == count - 1;
        int64_t n = x->size[a];
        if (t->o.n[k]) n = t->o.n[k];
        else if (mirrored) n = 2 * (n - 1);
        replace(&y, resized(&y, a, mirrored ? n / 2 + 1 : n));
        *terms *= (real)n;
    }
    const real scale = t->kind == IFFT || t->kind == IRFFT ? 1 / *terms : 1;
    *size = norm(&y) * sqrtl(*terms) * scale * (t->kind == IRFFT ? sqrtl(2) : 1);
    for (int k = 0; k < count; k++) {
        const int a = axis_of(t, k);
        if (t->kind == IRFFT && k == count - 1) mirror(&y, a, t->o.n[k] ? t->o.n[k] : 2 * (x->size[a] - 1));
        transform_along(&y, a, sign);
    }
    const int last = axis_of(t, count - 1);
    if (t->kind == RFFT) replace(&y, resized(&y, last, y.size[last] / 2 + 1));
    for (int64_t i = 0; i < y.count; i++) y.v[i] *= scale;
    return y;
}

static bool is_smooth(const array *t)
{
    for (int a = 0; a < t->rank; a++) {
        int64_t n = t->size[a];
        for (int64_t p = 2; p <= 13; p++)
            while (n > 1 && n % p == 0) n /= p;
        if (n > 1) return false;
    }
    return true;
}

static real allowed(const array *y, real terms, duet_dtype type)
{
    const real u = type == DUET_F32 || type == DUET_C64 ? 0x1p-24L : 0x1p-53L;
    return (is_smooth(y) ? 8 : 32) * u * log2l(2 * terms);
}

/* ---- one transform ---- */

static duet_expr formula_for(const trial *t, const duet_matrix *x)
{
    duet_expr (*const of[])(duet_expr, const duet_fourier *) = { (duet_fftn), (duet_ifftn), (duet_rfftn),
                                                                 (duet_irfftn) };
    return of[t->kind](DUET(x), &t->o);
}

/* A matrix of these sizes inside a larger one, or the matrix itself. */
static duet_matrix *laid(const trial *t, duet_matrix **whole)
{
    int64_t size[DUET_RANK_MAX];
    const int rank = t->x.rank;
    memcpy(size, t->x.size, sizeof size);
    if (t->view == VIEW_TRANSPOSED)
        for (int a = 0; a < rank; a++) size[a] = t->x.size[rank - 1 - a];
    if (t->view == VIEW_SLICE) size[0] += 2;
    if (t->view == VIEW_SUBMATRIX) {
        size[0] += 1;
        size[1] += 3;
    }
    if (t->view == REPEATED) size[0] = 1;
    *whole = duet_new_shape(t->type, rank, size);
    fill(*whole);
    if (t->view == FLIPPED) return duet_flipped(*whole, -1);
    if (t->view == REPEATED) return duet_broadcast_to_shape(*whole, rank, t->x.size);
    if (t->view == VIEW_TRANSPOSED) return duet_transposed(*whole);
    if (t->view == VIEW_SLICE) return duet_slice(*whole, 1, t->x.size[0]);
    if (t->view == VIEW_SUBMATRIX) return duet_submatrix(*whole, 1, 1, t->x.size[0], t->x.size[1]);
    return *whole;
}

static void name_trial(const trial *t, char text[300], duet_place p)
{
    char what[SHAPE_TEXT];
    int n = snprintf(text, 300, "duet_%s(%s) on %s, %s, axes", kind_names[t->kind],
                     shape_text(what, t->type, t->x.rank, t->x.size), place_name(p), name_of_view(t->view));
    for (int k = 0; k < (t->o.axes ? t->o.axes : t->x.rank); k++)
        n += snprintf(text + n, 300 - (size_t)n, " %d (%d)", axis_of(t, k), t->o.n[k]);
}

static duet_dtype result_type(const trial *t)
{
    const bool wide = t->type == DUET_F64 || t->type == DUET_C128;
    if (t->kind == IRFFT) return (wide ? DUET_F64 : DUET_F32);
    if (wide) return DUET_C128;
    return DUET_C64;
}

static void one(const trial *t)
{
    duet_matrix *whole, *x = laid(t, &whole);
    array at = array_of(x);
    real size, terms;
    array want = meant(t, &at, &size, &terms);
    for (int p = 0; p < places; p++) {
        char name[300];
        name_trial(t, name, place[p]);
        duet_matrix *y = duet_new_shape(result_type(t), want.rank, want.size);
        if (CHECK(duet_set_on(place[p], y, formula_for(t, x)) == DUET_OK, "%s: %s", name, duet_error()))
            compare(name, y, &want, size * allowed(&want, terms, t->type));
        duet_free(&y);
    }
    array_free(&want);
    array_free(&at);
    if (whole != x) duet_free(&whole);
    duet_free(&x);
}

/* ---- random transforms ---- */

static const int64_t lengths[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12, 13,  15,
                                   16, 17, 19, 24, 30, 31, 32, 37, 60, 64, 97, 101, 128 };
#define LENGTHS (int64_t)(sizeof lengths / sizeof *lengths)

static duet_dtype type_for(enum kind k, bool wide, bool real_too)
{
    const bool is_real = k == RFFT || (k != IRFFT && real_too);
    if (is_real) return (wide ? DUET_F64 : DUET_F32);
    if (wide) return DUET_C128;
    return DUET_C64;
}

static void choose_axes(trial *t)
{
    int axis[DUET_RANK_MAX];
    for (int a = 0; a < t->x.rank; a++) axis[a] = a;
    for (int a = t->x.rank; a-- > 1;) {
        const int64_t b = rng_below(&gen, a + 1);
        const int c = axis[a];
        axis[a] = axis[b];
        axis[b] = c;
    }
    if (rng_chance(&gen, 30)) t->o.axes = 0;
    else t->o.axes = 1 + (int32_t)rng_below(&gen, t->x.rank);
    for (int k = 0; k < t->o.axes; k++) t->o.axis[k] = axis[k] - (rng_chance(&gen, 50) ? t->x.rank : 0);
    for (int k = 0; k < (t->o.axes ? t->o.axes : t->x.rank); k++) {
        const int a = axis_of(t, k);
        if (rng_chance(&gen, 25)) t->o.n[k] = 1 + (int32_t)rng_below(&gen, 2 * t->x.size[a] + 1);
        if (t->kind == IRFFT && t->x.size[a] == 1 && !t->o.n[k]) t->o.n[k] = 1;
    }
}

static trial random_trial(enum kind kind, bool wide)
{
    static const int views[] = { VIEW_NONE, VIEW_NONE, VIEW_SLICE,    VIEW_TRANSPOSED,
                                 FLIPPED,   REPEATED,  VIEW_SUBMATRIX };
    trial t = { .kind = kind, .type = type_for(kind, wide, rng_chance(&gen, 30)) };
    t.x.rank = 1 + (int)rng_below(&gen, 5);
    int64_t most = 4000, count = 1;
    for (int a = 0; a < t.x.rank; a++) {
        int64_t n = lengths[rng_below(&gen, LENGTHS)];
        while (count * n > most) n = 1 + n / 3;
        t.x.size[a] = n;
        count *= n;
    }
    t.view = views[rng_below(&gen, t.x.rank == 2 ? 7 : 6)];
    choose_axes(&t);
    return t;
}

static void many(enum kind kind, int times)
{
    for (int i = 0; i < times; i++) {
        const trial t = random_trial(kind, i % 2);
        one(&t);
    }
    tap_point(kind_names[kind]);
}

/* Single lengths, with primes for which no vendor has special code, and shapes that use rare
 * algorithms. */
static void chosen(bool quick)
{
    static const int64_t more[] = { 127, 251, 509, 1000, 1009, 1024 };
    for (enum kind k = FFT; k <= IRFFT; k++)
        for (int wide = 0; wide < 2; wide++) {
            for (int i = 0; i < (quick ? 1 : 6); i++)
                one(&(trial){ .kind = k,
                              .type = type_for(k, wide, false),
                              .x = SIZES(2, more[i]),
                              .o = { 1, { 1 }, { 0 } } });
            for (int32_t n = 1; n <= 12; n++)
                one(&(trial){
                    .kind = k, .type = type_for(k, wide, false), .x = SIZES(n), .o = { 1, { 0 }, { n } } });
            one(&(trial){ .kind = k,
                          .type = type_for(k, wide, false),
                          .x = SIZES(20, 6, 4),
                          .o = { 1, { 1 }, { 0 } } });
            one(&(trial){ .kind = k,
                          .type = type_for(k, wide, false),
                          .x = SIZES(20, 6, 2, 3),
                          .o = { 2, { 1, 2 }, { 0 } } });
            one(&(trial){ .kind = k, .type = type_for(k, wide, false), .x = SIZES(2, 3, 2, 2, 3, 2, 2, 3) });
            one(&(trial){
                .kind = k, .type = type_for(k, wide, false), .x = SIZES(0, 6), .o = { 1, { 1 }, { 0 } } });
        }
    tap_point("lengths and shapes with known results");
}

/* ---- consequences of the definition ---- */

static void names_of_their_own(duet_place p)
{
    duet_matrix *x = duet_new(DUET_F64, 6, 8), *y = duet_new(DUET_C128, 6, 8), *z = duet_new(DUET_C128, 6, 8),
                *h = duet_new(DUET_C128, 6, 5), *g = duet_new(DUET_C128, 6, 5),
                *back = duet_new(DUET_F64, 6, 8);
    fill(x);
    array a, want = array_of(x);
    const real error = norm(&want) * 100 * 0x1p-53L;
    set_on(p, y, duet_fft2(x));
    set_on(p, z, duet_fftn(x));
    a = array_of(z);
    compare("fft2", y, &a, 0);
    array_free(&a);
    set_on(p, h, duet_rfft2(x));
    set_on(p, g, duet_rfft(x, 0, -1));
    set_on(p, back, duet_irfft2(h));
    compare("irfft2(rfft2)", back, &want, error);
    set_on(p, back, duet_irfft(g, 8, 1));
    compare("irfft(rfft)", back, &want, error);
    set_on(p, back, duet_irfft(duet_rfft(x, 0, 1), 0, 1));
    compare("in one formula", back, &want, error);
    set_on(p, y, duet_fft(x, 0, 0));
    set_on(p, z, duet_ifft(y, 0, 0));
    compare("ifft(fft)", z, &want, error);
    set_on(p, z, duet_ifft2(duet_fft2(x)));
    compare("ifft2(fft2)", z, &want, error);
    set_on(p, y, duet_fft2(x));
    set_on(p, y, duet_ifft2(y));
    compare("in place", y, &want, error);
    array_free(&want);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&h);
    duet_free(&g);
    duet_free(&back);
    tap_point("fft, fft2, fftn and their inverses");
}

/* Known parts of a real transform: the first element is the sum, that of Nyquist the alternating
 * sum, and both are real; exactly real for FFTW. */
static void ends(duet_place p)
{
    for (int64_t n = 1; n <= 40; n++) {
        duet_matrix *x = duet_new(DUET_F32, n), *y = duet_new(DUET_C64, n / 2 + 1);
        fill(x);
        set_on(p, y, duet_rfft(x, 0, 0));
        array a = array_of(x), b = array_of(y);
        real sum = 0, alternating = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += creall(a.v[i]);
            alternating += (i % 2 ? -1 : 1) * creall(a.v[i]);
        }
        const real error =
            8 * 0x1p-24L * log2l(2 * (real)n) * norm(&a) * sqrtl((real)n) * (is_smooth(&a) ? 1 : 4);
        const real imaginary = p == DUET_CPU ? 0 : error;
        CHECK(fabsl(creall(b.v[0]) - sum) <= error && fabsl(cimagl(b.v[0])) <= imaginary,
              "sum of %d: %Lg, not %Lg", (int)n, creall(b.v[0]), sum);
        if (n % 2 == 0)
            CHECK(fabsl(creall(b.v[n / 2]) - alternating) <= error && fabsl(cimagl(b.v[n / 2])) <= imaginary,
                  "length %d: the element at the Nyquist frequency is wrong", (int)n);
        array_free(&a);
        array_free(&b);
        duet_free(&x);
        duet_free(&y);
    }
    tap_point("the first and last term of a real transform");
}

/* So large that all threads work: a shifted impulse becomes a rotation, and the norm is preserved. */
static void large(duet_place p, int64_t n)
{
    duet_matrix *x = duet_new(DUET_C64, n), *y = duet_new(DUET_C64, n);
    float *v = duet_overwrite(x);
    memset(v, 0, (size_t)n * 8);
    v[2 * 5] = 1;
    set_on(p, y, duet_fft(x, 0, 0));
    array t = array_of(y);
    real worst = 0;
    for (int64_t k = 0; k < n; k++)
        worst = fmaxl(worst, cabsl(t.v[k] - cexpl(-2 * PI * I * (real)(5 * k % n) / (real)n)));
    CHECK(worst <= 8 * 0x1p-24L * log2l(2 * (real)n), "length %d: the transform of an impulse is off by %Lg",
          (int)n, worst);
    array_free(&t);
    fill(x);
    set_on(p, y, duet_fft(x, 0, 0));
    array a = array_of(x), b = array_of(y);
    const real before = norm(&a) * sqrtl((real)n);
    CHECK(fabsl(norm(&b) - before) <= 8 * 0x1p-24L * log2l(2 * (real)n) * before,
          "length %d: Parseval's theorem does not hold", (int)n);
    set_on(p, x, duet_ifft(y, 0, 0));
    compare("there and back", x, &a, 16 * 0x1p-24L * log2l(2 * (real)n) * norm(&a));
    array_free(&a);
    array_free(&b);
    duet_free(&x);
    duet_free(&y);
    tap_point("a large transform");
}

/* The sums of an inverse transform may be out of range where its results are not. */
static void large_means(duet_place p)
{
    enum { N = 1024 };
    for (int wide = 0; wide < 2; wide++) {
        const double size = wide ? 1e307 : 1e37;
        duet_matrix *x = duet_new(wide ? DUET_C128 : DUET_C64, N), *y = duet_new(duet_type(x), N),
                    *z = duet_new(wide ? DUET_F64 : DUET_F32, 2 * N - 2);
        CHECK(duet_set(x, size) == DUET_OK, "%s", duet_error());
        CHECK(duet_set_on(p, y, duet_ifft(x, 0, 0)) == DUET_OK, "%s", duet_error());
        CHECK(duet_set_on(p, z, duet_irfft(x, 2 * N - 2, 0)) == DUET_OK, "%s", duet_error());
        array a = array_of(y), b = array_of(z);
        CHECK(cabsl(a.v[0] - size) <= 1e-6L * size && cabsl(a.v[1]) <= 1e-6L * size,
              "ifft of a constant is %Lg, %Lg", creall(a.v[0]), creall(a.v[1]));
        CHECK(cabsl(b.v[0] - size) <= 1e-6L * size && cabsl(b.v[1]) <= 1e-6L * size,
              "irfft of a constant is %Lg, %Lg", creall(b.v[0]), creall(b.v[1]));
        array_free(&a);
        array_free(&b);
        duet_free(&x);
        duet_free(&y);
        duet_free(&z);
    }
    tap_point("inverse transforms whose sums are out of range");
}

/* The error of subnormal elements, whose roundings are not relative to them. */
static void tiny_elements(duet_place p)
{
    enum { N = 1024 };
    duet_matrix *x = duet_new(DUET_C64, N), *y = duet_new(DUET_C64, N);
    for (int inverse = 0; inverse < 2; inverse++) {
        float *part = duet_overwrite(x);
        for (int i = 0; i < 2 * N; i++) part[i] = (float)(1e-42 * sin(i));
        array want = array_of(x);
        transform_along(&want, 0, inverse ? 1 : -1);
        for (int i = 0; i < N && inverse; i++) want.v[i] /= N;
        CHECK(duet_set_on(p, y, inverse ? duet_ifft(x, 0, 0) : duet_fft(x, 0, 0)) == DUET_OK, "%s",
              duet_error());
        array x_at = array_of(x);
        const real share = inverse ? 1 / sqrtl(N) : sqrtl(N);
        compare(inverse ? "ifft of subnormals" : "fft of subnormals", y, &want,
                8 * 0x1p-24L * 11 * share * norm(&x_at) + 2 * N * 0x1p-149L);
        array_free(&x_at);
        array_free(&want);
    }
    duet_free(&x);
    duet_free(&y);
    tap_point("transforms of subnormal numbers");
}

static void nan_stays(duet_place p)
{
    duet_matrix *x = duet_new(DUET_F32, 3, 10), *y = duet_new(DUET_C64, 3, 6);
    fill(x);
    ((float *)duet_update(x))[14] = NAN;
    set_on(p, y, duet_rfft(x, 0, 1));
    array t = array_of(y);
    for (int64_t i = 0; i < t.count; i++)
        CHECK((i / 6 == 1) == !!isnan(creall(t.v[i])), "element %d is %Lg", (int)i, creall(t.v[i]));
    array_free(&t);
    duet_free(&x);
    duet_free(&y);
    tap_point("NaN fills its own line and no other");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    gen = rng_new(20261122);
    places = list_transforming(place);
    if (!places) return 0;
    for (enum kind k = FFT; k <= IRFFT; k++) many(k, quick ? 20 : 150);
    chosen(quick);
    for (int p = 0; p < places; p++) {
        printf("# on the %s\n", place_name(place[p]));
        names_of_their_own(place[p]);
        ends(place[p]);
        nan_stays(place[p]);
        large_means(place[p]);
        tiny_elements(place[p]);
    }
    large(place[0], 1 << (quick ? 10 : 18));
    return tap_end();
}
