/* machine_maps.c - the reference for element-wise operators, by the long double functions of the C
 * library. */
#include "machine_reference.h"
#include "machine_rounding.h"

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus(long double x) { return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x))); }

static long double ncdf(long double x) { return erfcl(x > 0 ? -sqrtl(x * x / 2) : sqrtl(x * x / 2)) / 2; }

static double rest_of(double x, double y)
{
    const double r = fmod(x, y);
    if (r == 0) return copysign(0, y);
    if (!signbit(r) != !signbit(y)) return r + y;
    return r;
}

/* The quotient of long doubles may have been rounded up to an integer. */
static long double floor_of(long double x, long double y)
{
    if (isinf(y) && isfinite(x) && x != 0) return !signbit(x) != !signbit(y) ? -1 : 0;
    const long double n = floorl(x / y), left = fmal(-n, y, x);
    if ((left < 0 && y > 0) || (left > 0 && y < 0)) return n - 1;
    return n; /* NaN compares false; n is right for infinities */
}

static const double ulps[OPS_ALL] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) [OP_##name] = ulp,
#define DUET_MAP2                                          DUET_MAP1
#define DUET_MAP3                                          DUET_MAP1
#include <duet/ops.def>
};

static expected near(int op, duet_dtype t, long double value)
{
    const long double most = t == DUET_F32 ? 3.40282346638528859812e38L : 1.79769313486231570815e308L;
    if (fabsl(value) > most && isfinite(value)) value = copysignl(INFINITY, value);
    return (expected){ value, isfinite(value) ? (ulps[op] + 0.5L) * ulp_of(t, value) : 0 };
}

expected reference_map(int op, duet_dtype t, double x, double y, double z)
{
    switch (op) {
    case OP_neg: return (expected){ -x, 0 };
    case OP_abs: return (expected){ fabs(x), 0 };
    case OP_sqrt: return (expected){ rounded(t, sqrt(x)), 0 };
    case OP_exp: return near(op, t, expl(x));
    case OP_exp2: return near(op, t, exp2l(x));
    case OP_expm1: return near(op, t, expm1l(x));
    case OP_log: return near(op, t, logl(x));
    case OP_log2: return near(op, t, log2l(x));
    case OP_log10: return near(op, t, log10l(x));
    case OP_log1p: return near(op, t, log1pl(x));
    case OP_cbrt: return near(op, t, cbrtl(x));
    case OP_rsqrt: return near(op, t, 1 / sqrtl(x));
    case OP_sinh: return near(op, t, sinhl(x));
    case OP_cosh: return near(op, t, coshl(x));
    case OP_tanh: return near(op, t, tanhl(x));
    case OP_asinh: return near(op, t, asinhl(x));
    case OP_acosh: return near(op, t, acoshl(x));
    case OP_atanh: return near(op, t, atanhl(x));
    case OP_sigmoid: return near(op, t, sigmoid(x));
    case OP_softplus: return near(op, t, softplus(x));
    case OP_sin: return near(op, t, sinl(x));
    case OP_cos: return near(op, t, cosl(x));
    case OP_tan: return near(op, t, tanl(x));
    case OP_asin: return near(op, t, asinl(x));
    case OP_acos: return near(op, t, acosl(x));
    case OP_atan: return near(op, t, atanl(x));
    case OP_erf: return near(op, t, erfl(x));
    case OP_erfc: return near(op, t, erfcl(x));
    case OP_ncdf: return near(op, t, ncdf(x));
    case OP_gelu: return near(op, t, x < -99 ? -0.0L : x * ncdf(x));
    case OP_relu: return (expected){ isnan(x) || x > 0 ? x : 0, 0 };
    case OP_floor: return (expected){ floor(x), 0 };
    case OP_ceil: return (expected){ ceil(x), 0 };
    case OP_trunc: return (expected){ trunc(x), 0 };
    case OP_round: return (expected){ rint(x), 0 };
    case OP_sign:
        if (x == 0 || isnan(x)) return (expected){ x, 0 };
        return (expected){ x > 0 ? 1 : -1, 0 };
    case OP_signbit: return (expected){ !isnan(x) && signbit(x), 0 };
    case OP_copysign: return (expected){ copysign(x, isnan(y) ? 1 : y), 0 };
    case OP_floor_divide: return near(op, t, floor_of(x, y));
    case OP_remainder: return (expected){ rounded(t, rest_of(x, y)), 0 };
    case OP_fmod: return (expected){ fmod(x, y), 0 };
    case OP_hypot: return near(op, t, hypotl(x, y));
    case OP_add: return (expected){ rounded(t, x + y), 0 };
    case OP_sub: return (expected){ rounded(t, x - y), 0 };
    case OP_mul: return (expected){ rounded(t, x * y), 0 };
    case OP_div: return (expected){ rounded(t, x / y), 0 };
    case OP_pow: return near(op, t, powl(x, y));
    case OP_atan2: return near(op, t, atan2l(x, y));
    case OP_minimum: return (expected){ lesser(x, y), 0 };
    case OP_maximum: return (expected){ -lesser(-x, -y), 0 };
    case OP_equal: return (expected){ x == y, 0 };
    case OP_not_equal: return (expected){ !(x == y), 0 };
    case OP_less: return (expected){ x < y, 0 };
    case OP_less_equal: return (expected){ x <= y, 0 };
    case OP_greater: return (expected){ x > y, 0 };
    case OP_greater_equal: return (expected){ x >= y, 0 };
    case OP_logical_and: return (expected){ !(x == 0 || y == 0), 0 };
    case OP_logical_or: return (expected){ !(x == 0 && y == 0), 0 };
    case OP_logical_xor: return (expected){ (x == 0) != (y == 0), 0 };
    case OP_logical_not: return (expected){ x == 0, 0 };
    case OP_fma: return (expected){ fma_in(t, x, y, z), 0 };
    case OP_where: return (expected){ x == 0 ? z : y, 0 };
    default: return (expected){ NAN, -1 };
    }
}
