/* vmath_mpfr.c - compares the functions of core/vmath.h with MPFR on random operands. The other checks trust
 * the C library and CUDA; this one does not. It is not part of the build:
 *
 *     gcc -std=gnu11 -O2 -march=native -ffp-contract=off -Iinclude -Isrc/core \
 *         tests/support/vmath_mpfr.c -o vmath_mpfr -lmpfr -lgmp -lm
 *     vmath_mpfr [operands]        operands of each function and type; the default is 10^5 */
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#define T_f32
#include "scalar_ops.h"
#undef T_f32
#define T_f64
#include "scalar_ops.h"

typedef int exact(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

static int exact_sigmoid(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t round)
{
    mpfr_neg(r, x, round);
    mpfr_exp(r, r, round);
    mpfr_add_ui(r, r, 1, round);
    return mpfr_ui_div(r, 1, r, round);
}

static int exact_softplus(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t round)
{
    if (mpfr_cmp_ui(x, 200) > 0) return mpfr_set(r, x, round);
    mpfr_exp(r, x, round);
    return mpfr_log1p(r, r, round);
}

/* reach: how far from 0 the function is not constant, in f32 and in f64. */
static const struct function {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    exact *of;
    double reach[2];
} functions[] = {
#define FUNCTION(name, of, ...) { #name, name##_f32, name##_f64, of, { __VA_ARGS__ } },
    // clang-format off
    FUNCTION(exp, mpfr_exp, 105, 746)
    FUNCTION(exp2, mpfr_exp2, 151, 1076)
    FUNCTION(expm1, mpfr_expm1, 90, 711)
    FUNCTION(log, mpfr_log, 9, 9)
    FUNCTION(log2, mpfr_log2, 9, 9)
    FUNCTION(log10, mpfr_log10, 9, 9)
    FUNCTION(log1p, mpfr_log1p, 9, 9)
    FUNCTION(cbrt, mpfr_cbrt, 9, 9)
    FUNCTION(rsqrt, mpfr_rec_sqrt, 9, 9)
    FUNCTION(sinh, mpfr_sinh, 90, 711)
    FUNCTION(cosh, mpfr_cosh, 90, 711)
    FUNCTION(tanh, mpfr_tanh, 10, 20)
    FUNCTION(sigmoid, exact_sigmoid, 105, 746)
    FUNCTION(softplus, exact_softplus, 105, 746)
    // clang-format on
};

static uint64_t seed;

static uint64_t random_bits(void)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Random bits: where the function is not constant, near 0, near 1. */
static double draw(int wide, double reach)
{
    const uint64_t r = random_bits();
    const double u = (double)(int64_t)random_bits() * 0x1p-63;
    switch (r % 4) {
    case 0: return wide ? as_t_f64(random_bits()) : (double)as_t_f32((uint32_t)random_bits());
    case 1: return u * reach;
    case 2: return ldexp(u, -(int)(r / 4 % 60));
    default: return 1 + ldexp(u, -(int)(r / 4 % 52));
    }
}

/* The distance between got and want, in units in the last place of want. */
static double ulps(int wide, double got, mpfr_srcptr want)
{
    const int digits = wide ? 53 : 24, low = wide ? -1074 : -149, high = wide ? 1024 : 128;
    if (isnan(got) || mpfr_nan_p(want)) return isnan(got) && mpfr_nan_p(want) ? 0 : INFINITY;
    if (mpfr_inf_p(want)) return isinf(got) && !signbit(got) == !mpfr_signbit(want) ? 0 : INFINITY;
    if (mpfr_zero_p(want)) return got == 0 && !signbit(got) == !mpfr_signbit(want) ? 0 : INFINITY;
    const mpfr_exp_t e = mpfr_get_exp(want) - digits;
    if (mpfr_get_exp(want) > high) return isinf(got) ? 0 : INFINITY;
    mpfr_t d;
    mpfr_init2(d, 300);
    mpfr_set_d(d, isinf(got) ? copysign(1, got) : got, MPFR_RNDN);
    if (isinf(got)) mpfr_mul_2si(d, d, high, MPFR_RNDN);
    mpfr_sub(d, d, want, MPFR_RNDN);
    mpfr_mul_2si(d, d, -(e < low ? low : e), MPFR_RNDN);
    const double u = fabs(mpfr_get_d(d, MPFR_RNDN));
    mpfr_clear(d);
    return u;
}

static void look_at(const struct function *f, int wide, long operands)
{
    double worst = 0, at = 0;
    mpfr_t x, want;
    mpfr_inits2(200, x, want, (mpfr_ptr)0);
    for (long i = 0; i < operands; i++) {
        const double d = draw(wide, f->reach[wide]), a = wide ? d : (double)(float)d;
        mpfr_set_d(x, a, MPFR_RNDN);
        f->of(want, x, MPFR_RNDN);
        const double u = ulps(wide, wide ? f->f64(a) : (double)f->f32((float)a), want);
        if (!(u <= worst)) {
            worst = u;
            at = a;
        }
    }
    mpfr_clears(x, want, (mpfr_ptr)0);
    printf("| %s | %s | %.3f | %a | %ld, random |\n", f->name, wide ? "f64" : "f32", worst, at, operands);
}

int main(int argc, char **argv)
{
    const long operands = argc > 1 ? atol(argv[1]) : 100000;
    puts("| function | type | worst error, ulp | at | inputs |\n|---|---|---|---|---|");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int wide = 0; wide < 2; wide++) look_at(&functions[i], wide, operands);
    return 0;
}
