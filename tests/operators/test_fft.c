/* test_fft.c - Fourier transforms against their definition in long double: all kinds, types, axes,
 * lengths and views on every machine. The error of a result in the 2-norm is at most 8 u log2(2 N)
 * of the norm that the definition gives, where N is the number of terms of a sum; 32 u if a length
 * has prime factors above 13 (docs/semantics.md). */
#include "fourier_trial.h"

static duet_place place[2];
static int places;

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
