/* test_vmath.c - the functions of core/vmath.h: their errors, their special values, and equal bits
 * from every compilation.
 *
 *     test_vmath           a TAP report; with --quick or DUET_TEST_QUICK, with few inputs
 *     test_vmath --table [NAME...]   the table of docs/accuracy.md, of all functions or of those named; all
 *                          inputs where that is possible (minutes for each)
 *     test_vmath --search [NAME...]  the worst errors that a search finds. It starts at many random operands
 *                          and follows growing errors; it finds larger ones than random operands alone */
#ifdef HAS_QUADMATH
#include <quadmath.h>
#endif
#include "dtype.h"
#include "each_type.h"
#include "quick.h"
#include "tap.h"
#include "vmath_loop.h"
#include "vmath_special.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 4096, BUILDS = 4 };

/* Functions that rows need and C lacks. A quotient of long doubles may have been rounded up to an
 * integer. */
#define REMAINDERS(real, suffix)                                                                             \
    static real modulo##suffix(real x, real y)                                                               \
    {                                                                                                        \
        const real r = fmod##suffix(x, y);                                                                   \
        return r == 0 ? copysign##suffix(0, y) : !signbit(r) != !signbit(y) ? r + y : r;                     \
    }                                                                                                        \
    static real floor_div##suffix(real x, real y)                                                            \
    {                                                                                                        \
        if (isinf(y) && isfinite(x) && x != 0) return !signbit(x) != !signbit(y) ? -1 : 0;                   \
        const real n = floor##suffix(x / y), left = fma##suffix(-n, y, x);                                   \
        return (left < 0 && y > 0) || (left > 0 && y < 0) ? n - 1 : n;                                       \
    }
REMAINDERS(double, )
REMAINDERS(long double, l)

#ifdef HAS_QUADMATH
__extension__ typedef __float128 quad;
REMAINDERS(quad, q)
#endif

/* The oracles of the rows: double for f32, long double for f64. The search uses quad for f64: the error of
 * some oracles in long double is up to 0.2 units. */
typedef long double oracle(long double x, long double y, long double z);
#define ORACLE(type, real, name, formula)                                                                    \
    static long double type##_##name(long double x_, long double y_, long double z_)                         \
    {                                                                                                        \
        const real x = (real)x_, y = (real)y_, z = (real)z_;                                                 \
        (void)x, (void)y, (void)z;                                                                           \
        return (formula);                                                                                    \
    }
#define DUET_MAP2                             DUET_MAP1
#define DUET_MAP3                             DUET_MAP1
#define Q(f)                                  f
#define DUET_MAP1(name, formula, oracle, ...) ORACLE(f32, double, name, oracle)
#include <duet/ops.def>
#undef Q
#define DUET_MAP2                             DUET_MAP1
#define DUET_MAP3                             DUET_MAP1
#define Q(f)                                  f##l
#define DUET_MAP1(name, formula, oracle, ...) ORACLE(f64, long double, name, oracle)
#include <duet/ops.def>
#undef Q
#ifdef HAS_QUADMATH
#define DUET_MAP2                             DUET_MAP1
#define DUET_MAP3                             DUET_MAP1
#define Q(f)                                  f##q
#define DUET_MAP1(name, formula, oracle, ...) ORACLE(quad, quad, name, oracle)
#include <duet/ops.def>
#undef Q
#endif

#ifdef HAS_QUADMATH
#define BEST(name) quad_##name
#else
#define BEST(name) f64_##name
#endif
static const struct row {
    const char *name;
    double ulp;
    oracle *of[DUET_DTYPE_COUNT]; /* of f32 and f64 */
    oracle *best[DUET_DTYPE_COUNT];
} rows[OPS] = {
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...)                                                   \
    [OP_##name] = { #name, ulp, { f32_##name, f64_##name }, { f32_##name, BEST(name) } },
#include <duet/ops.def>
};

/* An element type, and the compilations of the loops for it. The portable one comes first and
 * always exists; an instruction set that was not built has NULL. */
static const struct element {
    const char *name;
    size_t bytes;
    int digits, low, high; /* bits of the significand; exponents of the smallest subnormal and of infinity */
    vmath_loop *const *build[BUILDS];
} elements[] = {
#ifdef BUILT_avx2
#define AVX2(type) loops_##type##_avx2
#else
#define AVX2(type) NULL
#endif
#ifdef BUILT_avx512
#define AVX512(type) loops_##type##_avx512
#else
#define AVX512(type) NULL
#endif
#define ISAS(type) loops_##type##_portable, loops_##type##_vector, AVX2(type), AVX512(type)
    { "f32", 4, 24, -149, 128, { ISAS(f32) } },
    { "f64", 8, 53, -1074, 1024, { ISAS(f64) } },
};
typedef struct element element;

static const char *const build_names[BUILDS] = { "portable", "vector", "avx2", "avx512" };

static bool runs(int build)
{
#ifdef __x86_64__
    if (build == 2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (build == 3)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
#endif
    return build < 2;
}

/* Elements of a buffer, as bits and as numbers. */
static uint64_t bits_at(const element *t, const void *p, size_t i)
{
    uint32_t b32;
    uint64_t b64;
    memcpy(&b32, (const char *)p + i * t->bytes, sizeof b32);
    if (t->bytes == 4) return b32;
    memcpy(&b64, (const char *)p + i * t->bytes, sizeof b64);
    return b64;
}

static void put_bits(const element *t, void *p, size_t i, uint64_t b)
{
    const uint32_t b32 = (uint32_t)b;
    memcpy((char *)p + i * t->bytes, t->bytes == 4 ? (const void *)&b32 : &b, t->bytes);
}

static double at(const element *t, const void *p, size_t i)
{
    const uint64_t b = bits_at(t, p, i);
    const uint32_t b32 = (uint32_t)b;
    float f;
    double d;
    memcpy(&f, &b32, sizeof f);
    memcpy(&d, &b, sizeof d);
    if (t->bytes == 4) return (double)f;
    return d;
}

static void put(const element *t, void *p, size_t i, double x)
{
    const float f = (float)x;
    memcpy((char *)p + i * t->bytes, t->bytes == 4 ? (const void *)&f : &x, t->bytes);
}

/* Random numbers: a scrambled counter. */
static uint64_t seed;

static uint64_t random_bits(void)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double random_between(double low, double high)
{
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

/* Operands that random numbers would miss: values around each of these and around its negative. */
static double landmark(const element *t, unsigned k)
{
    // clang-format off
    const double marks[] = { 0, 1, 0.5, 0.70710678118654752, 1.41421356237309505, 0.34657359027997265, 0.69314718055994531, 2, 3,
        t->high * 0.69314718055994531, -t->low * 0.69314718055994531, 8.5, 9.01, 17, 18.7, 19.06, 36.7, 0.41421356237309505,
        1.57079632679489662, 3.14159265358979324, 10.05, 14.4, 27.2, 38.5, 0x1p17, 0x1p30,
        ldexp(1, t->digits - 1), ldexp(1, t->digits), ldexp(1, 2 - t->high), INFINITY, NAN };
    // clang-format on
    return marks[k % (sizeof marks / sizeof marks[0])];
}

/* All kinds of x: random bits, the range where the function is not constant, landmarks, subnormals. */
static void draw_one(const element *t, double reach, size_t i, void *x)
{
    const uint64_t r = random_bits();
    switch (r % 16) {
    case 0:
        put(t, x, i, landmark(t, (unsigned)(r >> 8) & 1023));
        put_bits(t, x, i,
                 bits_at(t, x, i) + (r >> 18) % 9 - 4 + (r >> 40) % 2 * ((uint64_t)1 << (8 * t->bytes - 1)));
        break;
    case 1:
        put_bits(t, x, i, r >> (8 * sizeof r - t->digits + 1) | (r >> 8) % 2 << (8 * t->bytes - 1));
        break;
    case 2:
    case 3: put(t, x, i, ldexp(random_between(-2, 2), -(int)((r >> 8) % 30))); break;
    case 4:
    case 5: put(t, x, i, random_between(0.7, 1.42)); break;
    case 6:
    case 7:
    case 8: put(t, x, i, random_between(-reach, reach)); break;
    default: put_bits(t, x, i, random_bits()); break;
    }
}

/* Pairs for pow: results over the whole range, bases near 1, integer exponents, random bits. */
static void draw_pair(const element *t, size_t i, void *x, void *y)
{
    draw_one(t, 9, i, x);
    draw_one(t, 9, i, y);
    const uint64_t kind = random_bits() % 8;
    if (kind == 0) return;
    if (kind == 1) {
        put(t, x, i, (double)(random_bits() % 64) - 32);
        put(t, y, i, (double)(random_bits() % 64) - 32);
        return;
    }
    if (kind < 4) put(t, x, i, 1 + ldexp(random_between(-1, 1), -(int)(random_bits() % (unsigned)t->digits)));
    const double power = random_between(t->low - 2, t->high + 1) / log2(fabs(at(t, x, i)));
    put(t, y, i, kind == 7 ? rint(power) : power);
}

/* Points for atan2: random bits, near the axes and the diagonals, quotients over the whole range. */
static void draw_point(const element *t, size_t i, void *y, void *x)
{
    draw_one(t, 9, i, y);
    draw_one(t, 9, i, x);
    const uint64_t kind = random_bits() % 4;
    if (kind == 0) return;
    const double slope = kind == 1
                             ? 1 + ldexp(random_between(-1, 1), -(int)(random_bits() % (unsigned)t->digits))
                             : ldexp(random_between(-1, 1), (int)(random_bits() % 64) - 32);
    put(t, y, i, at(t, x, i) * slope);
}

/* The distance between got and want, in units in the last place of want; beyond the largest number
 * the units continue to the next power of two. */
static double ulps(const element *t, double got, long double want)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (got == 0 && want == 0) return !signbit(got) == !signbit(want) ? 0 : INFINITY;
    const long double top = ldexpl(1, t->high), g = isinf(got) ? copysignl(top, got) : (long double)got;
    const long double w = fabsl(want) > top ? copysignl(top, want) : want;
    int e;
    frexpl(w, &e);
    e = (e < t->high ? e : t->high) - t->digits;
    return (double)(fabsl(g - w) / ldexpl(1, w == 0 || e < t->low ? t->low : e));
}

typedef struct worst {
    double ulp, x, y, got;
    uint64_t inputs;
} worst;

static void judge(const element *t, oracle *want, const void *x, const void *y, const void *out, worst *w)
{
    for (size_t i = 0; i < BLOCK; i++) {
        const double u = ulps(t, at(t, out, i), want(at(t, x, i), at(t, y, i), 0));
        if (!(u <= w->ulp)) *w = (worst){ u, at(t, x, i), at(t, y, i), at(t, out, i), w->inputs };
    }
    w->inputs += BLOCK;
}

typedef union block {
    float f32[BLOCK];
    double f64[BLOCK];
} block;

/* Counts elements whose bits differ; all NaNs are equal. */
static size_t different(const element *t, const void *a, const void *b)
{
    size_t n = 0;
    for (size_t i = 0; i < BLOCK; i++)
        n += bits_at(t, a, i) != bits_at(t, b, i) && !(isnan(at(t, a, i)) && isnan(at(t, b, i)));
    return n;
}

/* Evaluates one block with every compilation: equal bits. */
static void agree(const element *t, int op, const block *x, const block *y, const block *z, block *out)
{
    block other;
    for (int b = 0; b < BUILDS; b++) {
        if (!t->build[b] || !t->build[b][op] || !runs(b)) continue;
        t->build[b][op](b ? &other : out, x, y, z, BLOCK);
        if (b)
            CHECK(!different(t, out, &other), "%s %s: %s and portable differ", rows[op].name, t->name,
                  build_names[b]);
    }
}

/* The functions, and the range of operands in which they are not constant, in f32 and in f64. */
static const struct function {
    int op;
    double reach[2];
} functions[] = {
    { OP_exp, { 105, 750 } },        { OP_exp2, { 151, 1080 } },  { OP_expm1, { 105, 750 } },
    { OP_log, { 100, 100 } },        { OP_log2, { 100, 100 } },   { OP_log10, { 100, 100 } },
    { OP_log1p, { 9, 9 } },          { OP_cbrt, { 100, 100 } },   { OP_rsqrt, { 100, 100 } },
    { OP_sinh, { 90, 711 } },        { OP_cosh, { 90, 711 } },    { OP_tanh, { 10, 20 } },
    { OP_sigmoid, { 105, 750 } },    { OP_softplus, { 50, 80 } }, { OP_sin, { 2e5, 2e9 } },
    { OP_cos, { 2e5, 2e9 } },        { OP_tan, { 2e5, 2e9 } },    { OP_asin, { 1, 1 } },
    { OP_acos, { 1, 1 } },           { OP_atan, { 9, 9 } },       { OP_erf, { 5, 7 } },
    { OP_erfc, { 11, 28 } },         { OP_ncdf, { 15, 40 } },     { OP_gelu, { 15, 40 } },
    { OP_floor, { 99, 99 } },        { OP_ceil, { 99, 99 } },     { OP_trunc, { 99, 99 } },
    { OP_round, { 99, 99 } },        { OP_pow, { 9, 9 } },        { OP_atan2, { 9, 9 } },
    { OP_hypot, { 9, 9 } },          { OP_fmod, { 99, 99 } },     { OP_remainder, { 99, 99 } },
    { OP_floor_divide, { 99, 99 } }, { OP_asinh, { 9, 9 } },      { OP_acosh, { 9, 9 } },
    { OP_atanh, { 1, 1 } },
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static bool divides(int op) { return op == OP_fmod || op == OP_remainder || op == OP_floor_divide; }
static bool of_pairs(int op) { return op == OP_pow || op == OP_atan2 || op == OP_hypot || divides(op); }

static worst sample(const struct function *f, int type, uint64_t inputs)
{
    const element *t = &elements[type];
    static block x, y, out;
    worst w = { 0 };
    while (w.inputs < inputs) {
        for (size_t i = 0; i < BLOCK; i++)
            if (f->op == OP_pow) draw_pair(t, i, &x, &y);
            else if (f->op == OP_atan2 || f->op == OP_hypot) draw_point(t, i, &x, &y);
            else if (divides(f->op)) {
                draw_one(t, f->reach[type == DUET_F64], i, &x);
                draw_one(t, f->reach[type == DUET_F64], i, &y);
            } else draw_one(t, f->reach[type == DUET_F64], i, &x);
        agree(t, f->op, &x, &y, &y, &out);
        judge(t, rows[f->op].of[type], &x, &y, &out, &w);
    }
    return w;
}

/* Every f32 number, with the fastest compilation. */
static worst sweep(const struct function *f)
{
    const element *t = &elements[DUET_F32];
    static block x, out;
    worst w = { 0 };
    int fast = BUILDS - 1;
    while (!t->build[fast] || !runs(fast)) fast--;
    for (uint64_t base = 0; base >> 32 == 0; base += BLOCK) {
        for (size_t i = 0; i < BLOCK; i++) put_bits(t, &x, i, base + i);
        t->build[fast][f->op](&out, &x, &x, &x, BLOCK);
        judge(t, rows[f->op].of[DUET_F32], &x, &x, &out, &w);
    }
    return w;
}

static void test_accuracy(const struct function *f, int type, uint64_t inputs)
{
    char title[64];
    const worst w = sample(f, type, inputs);
    double most = rows[f->op].ulp;
    if (f->op == OP_fmod) most = 0;
    else if (divides(f->op)) most = 0.5; /* quotients of random bits */
    CHECK(w.ulp <= most, "%s %s(%a, %a) = %a: %g ulp", rows[f->op].name, elements[type].name, w.x, w.y, w.got,
          w.ulp);
    snprintf(title, sizeof title, "%s %s: %.3f ulp at most", rows[f->op].name, elements[type].name, w.ulp);
    tap_point(title);
}

/* Every row, including exact ones, on random bits. */
static void test_builds(const element *t)
{
    static block x, y, z, out;
    char title[64];
    for (int op = 0; op < OPS; op++)
        for (int n = 0; t->build[0][op] && n < 64; n++) {
            for (size_t i = 0; i < BLOCK; i++) {
                draw_one(t, 20, i, &x);
                draw_one(t, 20, i, &y);
                draw_one(t, 20, i, &z);
            }
            agree(t, op, &x, &y, &z, &out);
        }
    snprintf(title, sizeof title, "%s: every build of every row gives the same bits", t->name);
    tap_point(title);
}

/* One value, rounded to each type if `round`, with every compilation. */
static void check_each(int op, double x, double y, double value, bool round)
{
    FOR_FLOAT_TYPES (type)
        for (int b = 0; b < BUILDS; b++) {
            const element *t = &elements[type];
            const double want = round && type == DUET_F32 ? (float)value : value;
            double px[4], py[4], pr[4];
            if (!t->build[b] || !t->build[b][op] || !runs(b)) continue;
            for (size_t i = 0; i < 4; i++) {
                put(t, px, i, x);
                put(t, py, i, y);
            }
            t->build[b][op](pr, px, py, py, 4);
            for (size_t i = 0; i < 4; i++) {
                const double got = at(t, pr, i);
                CHECK(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want),
                      "%s %s %s(%g, %g) = %g, not %g", build_names[b], t->name, rows[op].name, x, y, got,
                      want);
            }
        }
}

static void check_value(int op, double x, double y, double want) { check_each(op, x, y, want, false); }
static void check_rounded(int op, double x, double y, double want) { check_each(op, x, y, want, true); }

/* Results that the type represents must be exact. */
static void test_exact_values(void)
{
    for (int n = -149; n < 128; n++) {
        check_value(OP_exp2, n, 0, ldexp(1, n));
        check_value(OP_log2, ldexp(1, n), 0, n);
    }
    for (double n = 0, power = 1; n <= 10; n++, power *= 10) check_value(OP_log10, power, 0, n);
    for (double n = -255; n < 256; n++) check_value(OP_cbrt, n * n * n, 0, n);
    for (double n = 1; n < 4096; n *= 2) check_value(OP_rsqrt, n * n, 0, 1 / n);
    tap_point("exp2 and log2 of integers and powers of two, log10 of powers of ten, cbrt of cubes, "
              "rsqrt of squares");
}

/* The rounded multiples of pi / 4 in each type. */
static void test_special_angles(void)
{
    const double quarter = 0.78539816339744830962;
    for (size_t i = 0; i < sizeof special_points / sizeof special_points[0]; i++)
        check_rounded(OP_atan2, special_points[i].y, special_points[i].x,
                      special_points[i].eighths * quarter);
    for (int side = -1; side < 2; side += 2) {
        check_rounded(OP_atan, side * INF, 0, side * 2 * quarter);
        check_rounded(OP_atan, side * 3e38f, 0, side * 2 * quarter);
        check_rounded(OP_atan, side, 0, side * quarter);
        check_rounded(OP_asin, side, 0, side * 2 * quarter);
    }
    check_rounded(OP_acos, -1, 0, 4 * quarter);
    check_rounded(OP_acos, 0, 0, 2 * quarter);
    check_rounded(OP_acos, -0.0, 0, 2 * quarter);
    tap_point("special cases of atan2, atan, asin and acos");
}

/* f64 needs an oracle with more digits; in f32 these are other angles. */
static void test_hard_angles(int type)
{
    const int ops[] = { OP_sin, OP_cos, OP_tan };
    const element *t = &elements[type];
    static block x, out;
    for (int n = 0; n < 3; n++) {
        worst w = { 0 };
        for (size_t i = 0; i < BLOCK; i++)
            put(t, &x, i, hard_angles[i % (sizeof hard_angles / sizeof hard_angles[0])]);
        agree(t, ops[n], &x, &x, &x, &out);
        judge(t, rows[ops[n]].of[type], &x, &x, &out, &w);
        CHECK(w.ulp <= 1, "%s %s(%a) = %a: %g ulp", rows[ops[n]].name, t->name, w.x, w.got, w.ulp);
    }
    tap_point("sin, cos and tan of angles that are hard to reduce");
}

/* Operands that --search found, where an earlier version exceeded the allowed error. */
static void test_found(void)
{
    static const struct {
        int op;
        double x;
    } found[] = { { OP_erfc, 0x1.9e566a4712503p+4 },   { OP_erfc, 0x1.59e95cc2648b4p-21 },
                  { OP_ncdf, -0x1.25489c277ae2fp+5 },  { OP_gelu, -0x1.dda61d7812525p+0 },
                  { OP_gelu, -0x1.efd0f8c333961p-26 }, { OP_gelu, -0x1.ff94f805007b9p-12 } };
    const element *t = &elements[DUET_F64];
    static block x, out;
    for (size_t k = 0; k < sizeof found / sizeof *found; k++) {
        for (size_t i = 0; i < BLOCK; i++) put(t, &x, i, found[k].x);
        agree(t, found[k].op, &x, &x, &x, &out);
        const double u = ulps(t, at(t, &out, 0), rows[found[k].op].best[DUET_F64](found[k].x, 0, 0));
        CHECK(u <= rows[found[k].op].ulp, "%s(%a) = %a: %g ulp", rows[found[k].op].name, found[k].x,
              at(t, &out, 0), u);
    }
    tap_point("operands with large errors");
}

static void test_special_values(void)
{
    for (size_t i = 0; i < sizeof special_values / sizeof special_values[0]; i++)
        check_value(special_values[i].op, special_values[i].x, 0, special_values[i].want);
    tap_point("special values");
    test_exact_values();
    for (size_t i = 0; i < sizeof special_pairs / sizeof special_pairs[0]; i++) {
        check_value(OP_minimum, special_pairs[i].x, special_pairs[i].y, special_pairs[i].least);
        check_value(OP_maximum, special_pairs[i].x, special_pairs[i].y, special_pairs[i].most);
    }
    tap_point("minimum and maximum of zeros and NaN");
    for (size_t i = 0; i < sizeof special_powers / sizeof special_powers[0]; i++)
        check_value(OP_pow, special_powers[i].x, special_powers[i].y, special_powers[i].want);
    tap_point("special cases of pow");
    test_special_angles();
}

static bool is_named(const char *name, char **names)
{
    for (char **n = names; *n; n++)
        if (!strcmp(*n, name)) return true;
    return !*names;
}

/* Of the functions in the list, which NULL ends, or of all if it is empty. */
static int print_table(char **names)
{
    enum { RANDOM = 100000000 };
    puts("| function | type | worst error, ulp | at | inputs |\n|---|---|---|---|---|");
    for (size_t i = 0; i < FUNCTIONS; i++)
        FOR_TYPES (type, dtype_is_f32_or_f64(type) && is_named(rows[functions[i].op].name, names)) {
            const bool all = type == DUET_F32 && !of_pairs(functions[i].op);
            const worst w = all ? sweep(&functions[i]) : sample(&functions[i], type, RANDOM);
            printf("| %s | %s | %.3f | %a", rows[functions[i].op].name, elements[type].name, w.ulp, w.x);
            if (of_pairs(functions[i].op)) printf(", %a", w.y);
            printf(" | %s |\n", all ? "all" : "10^8, random");
            fflush(stdout);
        }
    return 0;
}

/* ---- search ---- */

enum { STARTS = 2000, ROUND = 128 };

static void draw_operands(const struct function *f, int type, size_t i, void *x, void *y)
{
    const element *t = &elements[type];
    const double reach = f->reach[type == DUET_F64];
    if (f->op == OP_pow) draw_pair(t, i, x, y);
    else if (f->op == OP_atan2 || f->op == OP_hypot) draw_point(t, i, x, y);
    else draw_one(t, reach, i, x);
}

/* Judges the first n elements of a block. */
static void judge_some(const struct function *f, int type, block *x, block *y, size_t n, worst *w)
{
    const element *t = &elements[type];
    block out;
    t->build[0][f->op](&out, x, y, y, n);
    for (size_t i = 0; i < n; i++) {
        const double u = ulps(t, at(t, &out, i), rows[f->op].best[type](at(t, x, i), at(t, y, i), 0));
        if (!(u <= w->ulp)) *w = (worst){ u, at(t, x, i), at(t, y, i), at(t, &out, i), w->inputs };
    }
    w->inputs += n;
}

/* x, moved by fewer than 2^scale numbers in either direction. */
static void put_near(const element *t, void *p, size_t i, double x, int scale)
{
    const uint64_t by = random_bits() >> (64 - scale);
    put(t, p, i, x);
    put_bits(t, p, i, bits_at(t, p, i) + (random_bits() & 1 ? by : 0 - by));
    if (!isfinite(at(t, p, i))) put(t, p, i, x);
}

/* Climbs from the worst of a few random operands: of numbers around the best one so far, at smaller and
 * smaller distances, the worst becomes the next one. */
static worst climb(const struct function *f, int type)
{
    const element *t = &elements[type];
    static block x, y;
    worst w = { 0 };
    for (size_t i = 0; i < ROUND; i++) draw_operands(f, type, i, &x, of_pairs(f->op) ? (void *)&y : &x);
    judge_some(f, type, &x, of_pairs(f->op) ? &y : &x, ROUND, &w);
    for (int scale = t->digits - 2; scale > 0 && w.ulp > 0 && isfinite(w.ulp); scale -= 2) {
        for (size_t i = 0; i < ROUND; i++) {
            put_near(t, &x, i, w.x, scale);
            put_near(t, &y, i, w.y, i % 3 ? scale : 1);
        }
        judge_some(f, type, &x, of_pairs(f->op) ? &y : &x, ROUND, &w);
    }
    return w;
}

static int search(char **names)
{
    bool all_within = true;
    puts("| function | type | worst error, ulp | allowed | at |\n|---|---|---|---|---|");
    for (size_t k = 0; k < FUNCTIONS; k++)
        FOR_TYPES (type, dtype_is_f32_or_f64(type) && !divides(functions[k].op) &&
                             is_named(rows[functions[k].op].name, names)) {
            worst most = { 0 };
            for (int n = 0; n < STARTS; n++) {
                const worst w = climb(&functions[k], type);
                if (!(w.ulp <= most.ulp)) most = w;
            }
            printf("| %s | %s | %.3f | %g | %a", rows[functions[k].op].name, elements[type].name, most.ulp,
                   rows[functions[k].op].ulp, most.x);
            if (of_pairs(functions[k].op)) printf(", %a", most.y);
            puts(" |");
            fflush(stdout);
            all_within &= most.ulp <= rows[functions[k].op].ulp;
        }
    return !all_within;
}

/* f64 needs an oracle with more digits. */
static bool has_oracle(duet_dtype t)
{
    return t == DUET_F32 || (t == DUET_F64 && LDBL_MANT_DIG > DBL_MANT_DIG);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--table")) return print_table(argv + 2);
    if (argc > 1 && !strcmp(argv[1], "--search")) return search(argv + 2);
    const bool quick = is_quick(argc, argv);
    for (size_t i = 0; i < FUNCTIONS; i++)
        FOR_TYPES (type, has_oracle(type)) test_accuracy(&functions[i], type, quick ? 1 << 16 : 1 << 22);
    FOR_TYPES (type, has_oracle(type)) test_hard_angles(type);
    if (has_oracle(DUET_F64)) test_found();
    FOR_FLOAT_TYPES (type) test_builds(&elements[type]);
    test_special_values();
    return tap_end();
}
