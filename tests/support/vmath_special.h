/* vmath_special.h - operands at which the functions of core/vmath.h have exact or difficult
 * results: one table for each kind. */
#ifndef VMATH_SPECIAL_H
#define VMATH_SPECIAL_H

#include "ops.h"
#include <math.h>

// clang-format off
static const struct {
    int op;
    double x, want;
} special_values[] = {
    { OP_exp, 0, 1 }, { OP_exp, -0.0, 1 }, { OP_exp, INFINITY, INFINITY }, { OP_exp, -INFINITY, 0 },
    { OP_exp, NAN, NAN },
    { OP_exp, 1000, INFINITY }, { OP_exp, -1000, 0 }, { OP_exp, 3e38f, INFINITY }, { OP_exp, -3e38f, 0 },
    { OP_log, 1, 0 }, { OP_log, 0, -INFINITY }, { OP_log, -0.0, -INFINITY }, { OP_log, -1, NAN },
    { OP_log, -INFINITY, NAN },
    { OP_log, INFINITY, INFINITY }, { OP_log, NAN, NAN }, { OP_log, -0x1p-140, NAN },
    { OP_tanh, 0, 0 }, { OP_tanh, -0.0, -0.0 }, { OP_tanh, INFINITY, 1 }, { OP_tanh, -INFINITY, -1 },
    { OP_tanh, NAN, NAN },
    { OP_tanh, 30, 1 }, { OP_tanh, -3e38f, -1 }, { OP_tanh, 0x1p-140, 0x1p-140 },
    { OP_tanh, -0x1p-149, -0x1p-149 },
    { OP_sigmoid, 0, 0.5 }, { OP_sigmoid, -0.0, 0.5 }, { OP_sigmoid, INFINITY, 1 },
    { OP_sigmoid, -INFINITY, 0 },
    { OP_sigmoid, NAN, NAN }, { OP_sigmoid, 3e38f, 1 }, { OP_sigmoid, -3e38f, 0 },
    { OP_exp2, 0, 1 }, { OP_exp2, -0.0, 1 }, { OP_exp2, INFINITY, INFINITY }, { OP_exp2, -INFINITY, 0 },
    { OP_exp2, NAN, NAN },
    { OP_exp2, 3e38f, INFINITY }, { OP_exp2, -3e38f, 0 }, { OP_exp2, 1024, INFINITY }, { OP_exp2, -1075, 0 },
    { OP_expm1, 0, 0 }, { OP_expm1, -0.0, -0.0 }, { OP_expm1, INFINITY, INFINITY },
    { OP_expm1, -INFINITY, -1 }, { OP_expm1, NAN, NAN },
    { OP_expm1, 3e38f, INFINITY }, { OP_expm1, -3e38f, -1 }, { OP_expm1, 0x1p-149, 0x1p-149 },
    { OP_expm1, -0x1p-140, -0x1p-140 },
    { OP_log2, 1, 0 }, { OP_log2, 0, -INFINITY }, { OP_log2, -0.0, -INFINITY }, { OP_log2, -1, NAN },
    { OP_log2, -INFINITY, NAN },
    { OP_log2, INFINITY, INFINITY }, { OP_log2, NAN, NAN }, { OP_log2, -0x1p-140, NAN },
    { OP_log10, 1, 0 }, { OP_log10, 0, -INFINITY }, { OP_log10, -0.0, -INFINITY }, { OP_log10, -1, NAN },
    { OP_log10, -INFINITY, NAN },
    { OP_log10, INFINITY, INFINITY }, { OP_log10, NAN, NAN }, { OP_log10, -0x1p-140, NAN },
    { OP_log1p, 0, 0 }, { OP_log1p, -0.0, -0.0 }, { OP_log1p, -1, -INFINITY }, { OP_log1p, -1.5, NAN },
    { OP_log1p, -INFINITY, NAN },
    { OP_log1p, INFINITY, INFINITY }, { OP_log1p, NAN, NAN }, { OP_log1p, 0x1p-149, 0x1p-149 },
    { OP_log1p, -0x1p-140, -0x1p-140 },
    { OP_cbrt, 0, 0 }, { OP_cbrt, -0.0, -0.0 }, { OP_cbrt, INFINITY, INFINITY },
    { OP_cbrt, -INFINITY, -INFINITY }, { OP_cbrt, NAN, NAN },
    { OP_cbrt, 0x1p-147, 0x1p-49 }, { OP_cbrt, -0x1p-129, -0x1p-43 }, { OP_cbrt, 0x1p126, 0x1p42 },
    { OP_rsqrt, 0, INFINITY }, { OP_rsqrt, -0.0, -INFINITY }, { OP_rsqrt, -1, NAN },
    { OP_rsqrt, -INFINITY, NAN }, { OP_rsqrt, NAN, NAN },
    { OP_rsqrt, INFINITY, 0 }, { OP_rsqrt, -0x1p-140, NAN }, { OP_rsqrt, 0x1p-148, 0x1p74 },
    { OP_rsqrt, 0x1p126, 0x1p-63 },
    { OP_sinh, 0, 0 }, { OP_sinh, -0.0, -0.0 }, { OP_sinh, INFINITY, INFINITY },
    { OP_sinh, -INFINITY, -INFINITY }, { OP_sinh, NAN, NAN },
    { OP_sinh, 3e38f, INFINITY }, { OP_sinh, -3e38f, -INFINITY }, { OP_sinh, 0x1p-149, 0x1p-149 },
    { OP_sinh, -0x1p-140, -0x1p-140 },
    { OP_cosh, 0, 1 }, { OP_cosh, -0.0, 1 }, { OP_cosh, INFINITY, INFINITY },
    { OP_cosh, -INFINITY, INFINITY }, { OP_cosh, NAN, NAN },
    { OP_cosh, -3e38f, INFINITY }, { OP_cosh, 0x1p-149, 1 },
    { OP_asinh, 0, 0 }, { OP_asinh, -0.0, -0.0 }, { OP_asinh, INFINITY, INFINITY },
    { OP_asinh, -INFINITY, -INFINITY }, { OP_asinh, NAN, NAN },
    { OP_asinh, 0x1p-149, 0x1p-149 }, { OP_asinh, -0x1p-140, -0x1p-140 },
    { OP_acosh, 1, 0 }, { OP_acosh, 0, NAN }, { OP_acosh, -1, NAN }, { OP_acosh, 0x1.fffffep-1, NAN },
    { OP_acosh, INFINITY, INFINITY }, { OP_acosh, -INFINITY, NAN }, { OP_acosh, NAN, NAN },
    { OP_atanh, 0, 0 }, { OP_atanh, -0.0, -0.0 }, { OP_atanh, 1, INFINITY }, { OP_atanh, -1, -INFINITY },
    { OP_atanh, 0x1.000002p0, NAN }, { OP_atanh, -2, NAN }, { OP_atanh, INFINITY, NAN },
    { OP_atanh, -INFINITY, NAN }, { OP_atanh, NAN, NAN }, { OP_atanh, 0x1p-149, 0x1p-149 },
    { OP_atanh, -0x1p-140, -0x1p-140 },
    { OP_softplus, INFINITY, INFINITY }, { OP_softplus, -INFINITY, 0 }, { OP_softplus, NAN, NAN },
    { OP_softplus, 3e38f, 3e38f },
    { OP_softplus, -3e38f, 0 }, { OP_softplus, 100, 100 },
    { OP_sin, 0, 0 }, { OP_sin, -0.0, -0.0 }, { OP_sin, INFINITY, NAN }, { OP_sin, -INFINITY, NAN },
    { OP_sin, NAN, NAN },
    { OP_sin, 0x1p-149, 0x1p-149 }, { OP_sin, -0x1p-140, -0x1p-140 },
    { OP_cos, 0, 1 }, { OP_cos, -0.0, 1 }, { OP_cos, INFINITY, NAN }, { OP_cos, -INFINITY, NAN },
    { OP_cos, NAN, NAN }, { OP_cos, 0x1p-149, 1 },
    { OP_tan, 0, 0 }, { OP_tan, -0.0, -0.0 }, { OP_tan, INFINITY, NAN }, { OP_tan, -INFINITY, NAN },
    { OP_tan, NAN, NAN },
    { OP_tan, 0x1p-149, 0x1p-149 }, { OP_tan, -0x1p-140, -0x1p-140 },
    { OP_asin, 0, 0 }, { OP_asin, -0.0, -0.0 }, { OP_asin, 1.5, NAN }, { OP_asin, -1.5, NAN },
    { OP_asin, INFINITY, NAN },
    { OP_asin, -INFINITY, NAN }, { OP_asin, NAN, NAN }, { OP_asin, 0x1.000002p0, NAN },
    { OP_asin, 0x1p-149, 0x1p-149 },
    { OP_acos, 1, 0 }, { OP_acos, 1.5, NAN }, { OP_acos, -1.5, NAN }, { OP_acos, INFINITY, NAN },
    { OP_acos, -INFINITY, NAN },
    { OP_acos, NAN, NAN }, { OP_acos, -0x1.000002p0, NAN },
    { OP_atan, 0, 0 }, { OP_atan, -0.0, -0.0 }, { OP_atan, NAN, NAN }, { OP_atan, 0x1p-149, 0x1p-149 },
    { OP_atan, -0x1p-140, -0x1p-140 },
    { OP_erf, 0, 0 }, { OP_erf, -0.0, -0.0 }, { OP_erf, INFINITY, 1 }, { OP_erf, -INFINITY, -1 },
    { OP_erf, NAN, NAN },
    { OP_erf, 3e38f, 1 }, { OP_erf, -7, -1 },
    { OP_erfc, 0, 1 }, { OP_erfc, -0.0, 1 }, { OP_erfc, INFINITY, 0 }, { OP_erfc, -INFINITY, 2 },
    { OP_erfc, NAN, NAN },
    { OP_erfc, 3e38f, 0 }, { OP_erfc, -3e38f, 2 }, { OP_erfc, 27.5, 0 },
    { OP_ncdf, 0, 0.5 }, { OP_ncdf, -0.0, 0.5 }, { OP_ncdf, INFINITY, 1 }, { OP_ncdf, -INFINITY, 0 },
    { OP_ncdf, NAN, NAN },
    { OP_ncdf, 3e38f, 1 }, { OP_ncdf, -3e38f, 0 },
    { OP_gelu, 0, 0 }, { OP_gelu, -0.0, -0.0 }, { OP_gelu, INFINITY, INFINITY },
    { OP_gelu, -INFINITY, -0.0 }, { OP_gelu, NAN, NAN },
    { OP_gelu, 3e38f, 3e38f }, { OP_gelu, -3e38f, -0.0 }, { OP_gelu, 0x1p-148, 0x1p-149 },
    { OP_floor, -0.0, -0.0 }, { OP_floor, 0.5, 0 }, { OP_floor, -0.5, -1 }, { OP_floor, 0x1p23, 0x1p23 },
    { OP_floor, -8388607.5, -8388608 },
    { OP_floor, INFINITY, INFINITY }, { OP_floor, NAN, NAN }, { OP_floor, -0x1p-149, -1 },
    { OP_floor, 0x1p-149, 0 },
    { OP_ceil, -0.0, -0.0 }, { OP_ceil, 0, 0 }, { OP_ceil, -0.5, -0.0 }, { OP_ceil, 0x1p-149, 1 },
    { OP_ceil, -INFINITY, -INFINITY }, { OP_ceil, NAN, NAN },
    { OP_trunc, -0.5, -0.0 }, { OP_trunc, 1.75, 1 }, { OP_trunc, -1.75, -1 }, { OP_trunc, NAN, NAN },
    { OP_trunc, 3e38f, 3e38f },
    { OP_round, 0.5, 0 }, { OP_round, -0.5, -0.0 }, { OP_round, 1.5, 2 }, { OP_round, 2.5, 2 },
    { OP_round, -2.5, -2 }, { OP_round, 4194304.5, 4194304 },
    { OP_round, 8388607, 8388607 }, { OP_round, NAN, NAN }, { OP_round, -INFINITY, -INFINITY },
    { OP_sign, -0.0, -0.0 }, { OP_sign, 0, 0 }, { OP_sign, NAN, NAN }, { OP_sign, INFINITY, 1 },
    { OP_sign, -0x1p-149, -1 },
    { OP_relu, -0.0, 0 }, { OP_relu, NAN, NAN }, { OP_relu, -INFINITY, 0 }, { OP_relu, INFINITY, INFINITY },
    { OP_abs, -0.0, 0 }, { OP_abs, -INFINITY, INFINITY }, { OP_sqrt, -0.0, -0.0 }, { OP_sqrt, -1, NAN },
};

static const struct {
    double x, y, least, most;
} special_pairs[] = {
    { 0, -0.0, -0.0, 0 }, { -0.0, 0, -0.0, 0 }, { 0, 0, 0, 0 }, { -0.0, -0.0, -0.0, -0.0 },
    { 1, NAN, NAN, NAN },
    { NAN, 1, NAN, NAN }, { NAN, NAN, NAN, NAN }, { INFINITY, NAN, NAN, NAN }, { NAN, -INFINITY, NAN, NAN },
    { -INFINITY, INFINITY, -INFINITY, INFINITY }, { -1, 1, -1, 1 }, { 2, 2, 2, 2 }, { -2, -2, -2, -2 },
    { -1, -0.0, -1, -0.0 },
};

/* Annex F of the C standard, and the ends of the exponent range. */
#define INF INFINITY
#define FAR 0x1p60
static const struct {
    double x, y, want;
} special_powers[] = {
    { 0, -1, INF }, { -0.0, -1, -INF }, { 0, -3, INF }, { -0.0, -3, -INF }, { 0, -2, INF },
    { -0.0, -2, INF }, { 0, -0.5, INF },
    { -0.0, -0.5, INF }, { 0, -INF, INF }, { -0.0, -INF, INF }, { 0, 1, 0 }, { -0.0, 1, -0.0 },
    { -0.0, 3, -0.0 }, { 0, 2, 0 },
    { -0.0, 2, 0 }, { -0.0, 0.5, 0 }, { 0, INF, 0 }, { -0.0, INF, 0 }, { -0.0, FAR, 0 },
    { -0.0, -FAR, INF }, { -1, INF, 1 },
    { -1, -INF, 1 }, { 1, INF, 1 }, { 1, -INF, 1 }, { 1, NAN, 1 }, { 1, 7.3, 1 }, { 1, 0, 1 },
    { NAN, 0, 1 }, { NAN, -0.0, 1 },
    { INF, 0, 1 }, { -INF, -0.0, 1 }, { 0, 0, 1 }, { -0.0, -0.0, 1 }, { -3, 0, 1 }, { -2, 0.5, NAN },
    { -2, -1.5, NAN },
    { -0x1p-140, 0.5, NAN }, { -1, 0.5, NAN }, { 0.5, -INF, INF }, { -0.5, -INF, INF }, { 2, -INF, 0 },
    { -2, -INF, 0 },
    { 0.5, INF, 0 }, { -0.5, INF, 0 }, { 2, INF, INF }, { -2, INF, INF }, { -INF, -3, -0.0 },
    { -INF, -2, 0 }, { -INF, -0.5, 0 },
    { -INF, 3, -INF }, { -INF, 2, INF }, { -INF, 0.5, INF }, { -INF, INF, INF }, { -INF, -INF, 0 },
    { INF, -1, 0 }, { INF, 0.5, INF },
    { INF, INF, INF }, { INF, -INF, 0 }, { NAN, 1, NAN }, { 2, NAN, NAN }, { -1, NAN, NAN },
    { NAN, NAN, NAN }, { NAN, INF, NAN },
    { INF, NAN, NAN }, { 0, NAN, NAN }, { NAN, -2, NAN }, { -2, 3, -8 }, { -2, 2, 4 }, { -2, -1, -0.5 },
    { 2, 10, 1024 },
    { 10, 2, 100 }, { 4, 0.5, 2 }, { 2, -149, 0x1p-149 }, { -2, -149, -0x1p-149 },
    { -1, 0x1.fffffep23, -1 }, { -1, 0x1p24, 1 },
    { -1, 0x1.000002p24, 1 }, { -1, 8388607, -1 }, { -1, 8388608, 1 }, { -1, 8388609, -1 },
    { -1, 4194304.5, NAN },
    { -3, FAR, INF }, { -3, -FAR, 0 }, { -0.3, FAR, 0 }, { 2, 5000, INF }, { -2, 5001, -INF },
    { 2, -5000, 0 },
    { -2, -5001, -0.0 }, { 1.5, 3e38f, INF }, { 1.5, -3e38f, 0 }, { 0x1p-140, 1, 0x1p-140 },
    { 0x1p-140, -0.5, 0x1p70 },
    { 7, 1, 7 }, { -7, 1, -7 },
};

/* y, x, and the angle in eighths of a turn. */
static const struct {
    double y, x, eighths;
} special_points[] = {
    { 0, 0, 0 }, { -0.0, 0, -0.0 }, { 0, -0.0, 4 }, { -0.0, -0.0, -4 }, { 0, -1, 4 }, { -0.0, -1, -4 },
    { 0, 1, 0 }, { -0.0, 1, -0.0 },
    { 0, -INF, 4 }, { -0.0, -INF, -4 }, { 0, INF, 0 }, { -0.0, INF, -0.0 }, { 1, 0, 2 }, { -1, 0, -2 },
    { 1, -0.0, 2 }, { -1, -0.0, -2 },
    { INF, 0, 2 }, { -INF, -0.0, -2 }, { 1, -INF, 4 }, { -1, -INF, -4 }, { 1, INF, 0 }, { -1, INF, -0.0 },
    { INF, 1, 2 }, { -INF, 1, -2 },
    { INF, -1, 2 }, { -INF, -1, -2 }, { INF, INF, 1 }, { -INF, INF, -1 }, { INF, -INF, 3 },
    { -INF, -INF, -3 }, { 3, 3, 1 }, { -3, 3, -1 },
    { 3, -3, 3 }, { -3, -3, -3 }, { 0x1p-149, 0x1p-149, 1 }, { 0x1p-149, -0x1p-149, 3 },
    { 0x1p127, 0x1p127, 1 }, { 0x1p127, -0x1p127, 3 },
    { 0x1p-149, -0x1p127, 4 }, { 0x1p127, 0x1p-149, 2 }, { NAN, 1, NAN }, { 1, NAN, NAN },
    { NAN, NAN, NAN }, { NAN, 0, NAN },
    { 0, NAN, NAN }, { NAN, INF, NAN }, { INF, NAN, NAN }, { NAN, -INF, NAN }, { -INF, NAN, NAN },
};

/* Angles whose remainder is hard to compute: the doubles nearest to a multiple of pi / 2, others
 * near one, and the largest. */
static const double hard_angles[] = {
    0x1.6ac5b262ca1ffp849, 0x1.1ebc2cdb2bf22p-1, 0x1.921fb54442d18p0, 0x1.921fb54442d18p1,
    0x1.2d97c7f3321d2p2, 0x1.921fb54442d18p20,
    0x1.f9cbe21e8d5b7p14, 0x1.4bc9a6p89, 0x1.f37d92p72, 0x1.6c6cbcp1, 0x1.fffffffffffffp1023, 0x1p1023,
    0x1.fffffep127, 0x1p127, 0x1p17,
    0x1.000002p17, 0x1p30, 0x1.0000000000001p30, 0x1p54, 0x1p100, 0x1p500, 0x1.921fb6p0, 0x1.921fb6p10,
    0x1.5fdbbep2, 0x1.5fdbc0p2,
    0x1.86a0p16, 0x1.4p3, 0x1.62p22, 0x1.28p44,
};
// clang-format on

#endif
