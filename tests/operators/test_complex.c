/* test_complex.c - complex element-wise operators against C99 functions in long double: every such
 * operator of complex.def, within error bounds relative to the absolute value of the result
 * (docs/semantics.md), with views, broadcasts, promotions, numbers and extreme magnitudes. */
#include "complex_trial.h"

/* ---- one operand ---- */

static number of_neg(number z) { return -z; }
static number of_abs(number z) { return cabsl(z); }
static number of_arg(number z) { return cargl(z); }
static number of_real(number z) { return creall(z); }
static number of_imag(number z) { return cimagl(z); }
static number of_square(number z) { return z * z; }
static number of_reciprocal(number z) { return 1 / z; }
static number of_log2(number z) { return clogl(z) / logl(2); }
static number of_log10(number z) { return clogl(z) / logl(10); }
/* By the series near 0. */
static number of_expm1(number z)
{
    number sum = 0, term = 1;
    if (cabsl(z) >= 0.5L) return cexpl(z) - 1;
    for (int k = 1; k < 18; k++) {
        term *= z / k;
        sum += term;
    }
    return sum;
}
static number of_log1p(number z)
{
    number sum = 0, power = 1;
    if (cabsl(z) >= 0.25L) return clogl(1 + z);
    for (int k = 1; k < 36; k++) {
        power *= -z;
        sum -= power / k;
    }
    return sum;
}
static number of_sign(number z) { return z == 0 ? 0 : z / cabsl(z); }

static const struct unary {
    const char *name;
    duet_expr (*make)(duet_expr);
    number (*of)(number);
    real bound; /* in units of u: docs/semantics.md */
    bool is_real, everywhere;
} unary[] = {
    { "neg", duet_neg, of_neg, 0, false, true },
    { "conj", duet_conj, conjl, 0, false, true },
    { "real", duet_real, of_real, 0, true, true },
    { "imag", duet_imag, of_imag, 0, true, true },
    { "abs", duet_abs, of_abs, 3, true, true },
    { "arg", duet_arg, of_arg, 4, true, true },
    { "sqrt", duet_sqrt, csqrtl, 8, false, true },
    { "log", duet_log, clogl, 16, false, true },
    { "exp", duet_exp, cexpl, 20, false, false },
    { "sin", duet_sin, csinl, 10, false, false },
    { "cos", duet_cos, ccosl, 10, false, false },
    { "sinh", duet_sinh, csinhl, 10, false, false },
    { "cosh", duet_cosh, ccoshl, 10, false, false },
    { "tan", duet_tan, ctanl, 20, false, true },
    { "tanh", duet_tanh, ctanhl, 20, false, true },
    { "log2", duet_log2, of_log2, 18, false, true },
    { "log10", duet_log10, of_log10, 18, false, true },
    { "expm1", duet_expm1, of_expm1, 42, false, true },
    { "log1p", duet_log1p, of_log1p, 20, false, true },
    { "asin", duet_asin, casinl, 24, false, true },
    { "acos", duet_acos, cacosl, 24, false, true },
    { "atan", duet_atan, catanl, 24, false, true },
    { "sign", duet_sign, of_sign, 5, false, true },
    { "square", duet_square, of_square, 3, false, false },
    { "reciprocal", duet_reciprocal, of_reciprocal, 5, false, true },
};

static array map(const array *x, number (*of)(number))
{
    array t = array_new(x->rank, x->size);
    for (int64_t i = 0; i < t.count; i++) t.v[i] = of(x->v[i]);
    return t;
}

static void one_unary(duet_place p, const struct kind *k, const struct unary *f, const sizes *s, int sight,
                      int range)
{
    duet_matrix *all, *x = view(&all, k->whole, s, sight),
                      *y = duet_new_shape(f->is_real ? k->part : k->whole, s->rank, s->size);
    fill_range(all, k, range);
    evaluate(p, y, f->make(DUET(x)), f->name);
    array a = array_of(x), want = map(&a, f->of);
    near(f->name, k, y, &want, f->bound);
    array_free(&a);
    array_free(&want);
    duet_free(&x);
    duet_free(&all);
    duet_free(&y);
}

static const sizes shapes[] = { SIZES(),     SIZES(1),       SIZES(0),       SIZES(7),     SIZES(3, 5),
                                SIZES(1, 6), SIZES(2, 0, 3), SIZES(2, 3, 4), SIZES(33, 17) };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void unaries(duet_place p)
{
    const sizes many = SIZES(12000);
    for (size_t k = 0; k < 2; k++)
        for (size_t f = 0; f < sizeof unary / sizeof *unary; f++) {
            for (int s = 0; s < SHAPES; s++)
                for (int sight = 0; sight < SIGHTS; sight++)
                    one_unary(p, &kinds[k], &unary[f], &shapes[s], sight, MILD);
            for (int range = MILD; range <= UNIT; range++)
                if (range != WIDE || unary[f].everywhere)
                    one_unary(p, &kinds[k], &unary[f], &many, PLAIN, range);
        }
    tap_point("unary operators and their rounding errors");
}

/* Near zeros, poles and branch points, and where a formula switches to another. */
static void corners(duet_place p)
{
    static const real near_[] = { 0,        0.5L,           1,         PI / 4,  PI / 2, PI,
                                  2,        1.41421356237L, 10,        20,      88,     0x1p-20L,
                                  0x1p-60L, 0x1p-100L,      0x1p-600L, 0x1p27L, 0x1p56L };
    enum { POINTS = sizeof near_ / sizeof *near_, EACH = 3, N = 2 * POINTS * EACH };
    for (size_t k = 0; k < 2; k++) {
        real part[N];
        for (int i = 0; i < N; i++)
            part[i] = near_[i / 2 / EACH] * (1 + (i / 2 % EACH - 1) * 2 * kinds[k].u) * (i % 2 ? -1 : 1);
        for (int i = 0; i < N; i++) part[i] = fabsl(part[i]) < kinds[k].tiny ? 0 : part[i]; /* not -0 */
        duet_matrix *x = duet_new(kinds[k].whole, N, N);
        void *q = duet_overwrite(x);
        for (int64_t i = 0; q && i < N * N; i++) put(q, kinds[k].whole, i, part[i / N] + I * part[i % N]);
        array a = array_of(x);
        for (size_t f = 0; f < sizeof unary / sizeof *unary; f++) {
            if (!unary[f].everywhere) continue;
            duet_matrix *y = duet_new(unary[f].is_real ? kinds[k].part : kinds[k].whole, N, N);
            array want = map(&a, unary[f].of);
            evaluate(p, y, unary[f].make(DUET(x)), unary[f].name);
            near(unary[f].name, &kinds[k], y, &want, unary[f].bound);
            array_free(&want);
            duet_free(&y);
        }
        array_free(&a);
        duet_free(&x);
    }
    tap_point("zeros, poles and branch points");
}

/* ---- two operands ---- */

static number of_add(number x, number y) { return x + y; }
static number of_sub(number x, number y) { return x - y; }
static number of_mul(number x, number y) { return x * y; }
static number of_div(number x, number y) { return x / y; }
static number of_equal(number x, number y) { return x == y; }
static number of_not_equal(number x, number y) { return x != y; }

static const struct binary {
    const char *name;
    duet_expr (*make)(duet_expr, duet_expr);
    number (*of)(number, number);
    real bound;
    bool compares, everywhere;
} binary[] = {
    { "add", duet_add, of_add, 1, false, true },
    { "sub", duet_sub, of_sub, 1, false, true },
    { "mul", duet_mul, of_mul, 2.2361L, false, false },
    { "div", duet_div, of_div, 5, false, true },
    { "equal", duet_equal, of_equal, 0, true, true },
    { "not_equal", duet_not_equal, of_not_equal, 0, true, true },
};
enum { BINARIES = sizeof binary / sizeof *binary };

/* The element of an operand, which broadcasts, for element i of the result. */
static number at_of(const array *x, const array *like, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int a = like->rank - 1, b = x->rank - 1; b >= 0; a--, b--) {
        if (x->size[b] != 1) at += i % like->size[a] * stride;
        i /= like->size[a];
        stride *= x->size[b];
    }
    return x->v[at];
}

static array map2(const array *x, const array *y, const sizes *s, number (*of)(number, number))
{
    array t = array_new(s->rank, s->size);
    for (int64_t i = 0; i < t.count; i++) t.v[i] = of(at_of(x, &t, i), at_of(y, &t, i));
    return t;
}

static void take_some(duet_matrix *to, duet_matrix *from)
{
    array t = array_of(from);
    void *p = duet_update(to);
    for (int64_t i = 0; p && i < t.count && i < duet_count(to); i += 2) put(p, duet_type(to), i, t.v[i]);
    array_free(&t);
}

static void one_binary(duet_place p, const struct kind *k, const struct binary *f, duet_dtype tx,
                       duet_dtype ty, const sizes *sx, const sizes *sy, int sight, int range)
{
    duet_matrix *all_x, *x = view(&all_x, tx, sx, sight), *all_y, *y = view(&all_y, ty, sy, PLAIN);
    fill_range(all_x, k, range);
    fill_range(all_y, k, range);
    if (f->compares && tx == ty) take_some(all_y, x);
    const duet_expr e = f->make(DUET(x), DUET(y));
    const sizes s = sizes_of_expr(e);
    CHECK(duet_expr_type(e) == (f->compares ? DUET_BOOL : k->whole), "%s: type %s", f->name,
          dtypes[duet_expr_type(e)].name);
    duet_matrix *z = duet_new_shape(f->compares ? k->part : k->whole, s.rank, s.size);
    evaluate(p, z, e, f->name);
    array a = array_of(x), b = array_of(y), want = map2(&a, &b, &s, f->of);
    near(f->name, k, z, &want, f->bound);
    array_free(&a);
    array_free(&b);
    array_free(&want);
    duet_free(&x);
    duet_free(&all_x);
    duet_free(&y);
    duet_free(&all_y);
    duet_free(&z);
}

static void binaries(duet_place p)
{
    static const sizes pairs[][2] = { { SIZES(), SIZES() },          { SIZES(5), SIZES(5) },
                                      { SIZES(3, 5), SIZES(5) },     { SIZES(3, 1), SIZES(1, 4) },
                                      { SIZES(), SIZES(2, 3) },      { SIZES(0), SIZES(1) },
                                      { SIZES(1), SIZES(1) },        { SIZES(2, 3, 4), SIZES(3, 4) },
                                      { SIZES(20000), SIZES(20000) } };
    for (size_t k = 0; k < 2; k++)
        for (int f = 0; f < BINARIES; f++)
            for (size_t s = 0; s < sizeof pairs / sizeof *pairs; s++)
                for (int sight = 0; sight < SIGHTS; sight++)
                    for (int range = MILD; range <= (binary[f].everywhere ? WIDE : MILD); range++)
                        one_binary(p, &kinds[k], &binary[f], kinds[k].whole, kinds[k].whole, &pairs[s][0],
                                   &pairs[s][1], sight, range);
    tap_point("binary operators and their rounding errors");
}

/* The common type of two operands is c64 or else c128. */
static void promotions(duet_place p)
{
    static const duet_dtype types[][3] = { { DUET_C64, DUET_F32, 0 },  { DUET_F32, DUET_C64, 0 },
                                           { DUET_C64, DUET_F64, 1 },  { DUET_F64, DUET_C64, 1 },
                                           { DUET_C128, DUET_F32, 1 }, { DUET_F32, DUET_C128, 1 },
                                           { DUET_C64, DUET_C128, 1 }, { DUET_C128, DUET_C64, 1 },
                                           { DUET_F64, DUET_C128, 1 } };
    const sizes s[] = { SIZES(9), SIZES(4, 3), SIZES(1) };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int f = 0; f < BINARIES; f++)
            for (int i = 0; i < 3; i++)
                one_binary(p, &kinds[types[t][2]], &binary[f], types[t][0], types[t][1], &s[i], &s[i], i,
                           MILD);
    tap_point("promotion");
}

/* ---- numbers ---- */

static void with_number(duet_place p, const struct kind *k, const struct binary *f, number c, duet_expr by,
                        bool first)
{
    duet_matrix *x = duet_new(k->whole, 3, 4), *z = duet_new(f->compares ? k->part : k->whole, 3, 4);
    fill_range(x, k, MILD);
    const duet_expr e = first ? f->make(by, DUET(x)) : f->make(DUET(x), by);
    CHECK(duet_expr_type(e) == (f->compares ? DUET_BOOL : k->whole), "%s: type %s", f->name,
          dtypes[duet_expr_type(e)].name);
    evaluate(p, z, e, f->name);
    array a = array_of(x), want = array_new(2, (int64_t[]){ 3, 4 });
    for (int64_t i = 0; i < 12; i++) want.v[i] = first ? f->of(c, a.v[i]) : f->of(a.v[i], c);
    near(f->name, k, z, &want, f->bound);
    array_free(&a);
    array_free(&want);
    duet_free(&x);
    duet_free(&z);
}

static void numbers(duet_place p)
{
    const double _Complex whole[] = { 2, 0.5, -1, 1, 0.75 - 3 * I, I, -2 * I };
    for (size_t k = 0; k < 2; k++)
        for (int f = 0; f < BINARIES; f++)
            for (int i = 0; i < 7; i++)
                for (int first = 0; first < 2; first++) {
                    if (i < 5 && i != 4)
                        with_number(p, &kinds[k], &binary[f], whole[i], DUET(creal(whole[i])), first);
                    with_number(p, &kinds[k], &binary[f], whole[i], DUET(whole[i]), first);
                    with_number(p, &kinds[k], &binary[f], whole[i],
                                duet_complex(creal(whole[i]), cimag(whole[i])), first);
                }
    tap_point("real and complex C numbers as operands");
}

/* A real matrix and a complex number. */
static void real_with_number(duet_place p)
{
    for (size_t k = 0; k < 2; k++)
        for (int f = 0; f < BINARIES; f++) {
            duet_matrix *x = duet_new(kinds[k].part, 5),
                        *z = duet_new(binary[f].compares ? kinds[k].part : kinds[k].whole, 5);
            fill_range(x, &kinds[k], MILD);
            const duet_expr e = binary[f].make(DUET(x), DUET(2.0 - I * 0.5));
            CHECK(duet_expr_type(e) == (binary[f].compares ? DUET_BOOL : kinds[k].whole), "%s",
                  binary[f].name);
            evaluate(p, z, e, binary[f].name);
            array a = array_of(x), want = array_new(1, (int64_t[]){ 5 });
            for (int i = 0; i < 5; i++) want.v[i] = binary[f].of(a.v[i], 2 - I * 0.5L);
            near(binary[f].name, &kinds[k], z, &want, binary[f].bound);
            array_free(&a);
            array_free(&want);
            duet_free(&x);
            duet_free(&z);
        }
    tap_point("real matrices with complex numbers");
}

/* ---- creation, casts, where, set ---- */

static number of_first(number x, number y) { return x; }

static void made(duet_place p)
{
    static const sizes pairs[][2] = { { SIZES(4), SIZES(4) },
                                      { SIZES(3, 1), SIZES(5) },
                                      { SIZES(), SIZES(2) },
                                      { SIZES(0), SIZES(1) },
                                      { SIZES(), SIZES() } };
    for (size_t k = 0; k < 2; k++)
        for (size_t s = 0; s < 5; s++) {
            duet_matrix *x = duet_new_shape(kinds[k].part, pairs[s][0].rank, pairs[s][0].size);
            duet_matrix *y = duet_new_shape(kinds[k].part, pairs[s][1].rank, pairs[s][1].size);
            fill_range(x, &kinds[k], MILD);
            fill_range(y, &kinds[k], MILD);
            const duet_expr e = duet_complex(x, y);
            const sizes out = sizes_of_expr(e);
            duet_matrix *z = duet_new_shape(kinds[k].whole, out.rank, out.size),
                        *w = duet_new_shape(kinds[k].whole, out.rank, out.size);
            evaluate(p, z, e, "complex");
            evaluate(p, w, duet_complex(duet_mul(2, y), 3), "complex");
            array a = array_of(x), b = array_of(y), got = array_of(z), other = array_of(w);
            for (int64_t i = 0; i < got.count; i++) {
                CHECK(got.v[i] == at_of(&a, &got, i) + I * at_of(&b, &got, i),
                      "duet_complex: element %d is wrong", (int)i);
                CHECK(other.v[i] == 2 * at_of(&b, &got, i) + 3 * I,
                      "duet_complex with a number: element %d is wrong", (int)i);
            }
            array_free(&a);
            array_free(&b);
            array_free(&got);
            array_free(&other);
            duet_free(&x);
            duet_free(&y);
            duet_free(&z);
            duet_free(&w);
        }
    tap_point("complex elements from real and imaginary part");
}

/* A destination accepts types that promote to its type. */
static void sets(duet_place p)
{
    static const duet_dtype from[] = {
        DUET_C64, DUET_C128, DUET_F32, DUET_F64, DUET_BOOL, DUET_I32, DUET_F16
    };
    const sizes s = SIZES(3, 4), one = SIZES(4);
    for (int t = 0; t < 7; t++)
        for (size_t k = 0; k < 2; k++)
            for (int wide = 0; wide < 2; wide++) {
                const struct kind *of = &kinds[k];
                duet_matrix *x = duet_new_shape(DUET_C64, wide ? one.rank : 2, wide ? one.size : s.size), *y,
                            *z = duet_new(of->whole, 3, 4);
                if (from[t] == DUET_C128 && of->whole == DUET_C64 && (duet_free(&x), duet_free(&z), true))
                    continue;
                fill_range(x, &kinds[0], UNIT);
                y = duet_new_shape(from[t], duet_rank(x), wide ? one.size : s.size);
                if (dtype_is_complex(from[t])) evaluate(p, y, duet_cast(x, from[t]), "cast");
                else evaluate(p, y, duet_cast(duet_mul(3, duet_real(x)), from[t]), "cast");
                const bool casts = from[t] == DUET_I32 || (from[t] == DUET_F64 && of->whole == DUET_C64);
                evaluate(p, z, casts ? duet_cast(y, of->whole) : DUET(y), "set");
                duet_matrix *f = duet_new_shape(DUET_F64, duet_rank(x), wide ? one.size : s.size);
                if (!dtype_is_complex(from[t])) evaluate(p, f, duet_cast(y, DUET_F64), "cast");
                array a = array_of(dtype_is_complex(from[t]) ? y : f), got = array_of(z),
                      want = map2(&a, &a, &s, of_first);
                near("set", of, z, &want, casts ? 1 : 0);
                array_free(&a);
                array_free(&got);
                array_free(&want);
                duet_free(&x);
                duet_free(&y);
                duet_free(&z);
                duet_free(&f);
            }
    duet_matrix *z = duet_new(DUET_C64, 3);
    evaluate(p, z, DUET(2.5), "number");
    array a = array_of(z);
    for (int i = 0; i < 3; i++) CHECK(a.v[i] == 2.5L, "a number has wrong elements");
    array_free(&a);
    evaluate(p, z, duet_complex(1, -2), "number");
    a = array_of(z);
    for (int i = 0; i < 3; i++) CHECK(a.v[i] == 1 - 2 * I, "a complex number has wrong elements");
    array_free(&a);
    duet_free(&z);
    tap_point("casts and destinations");
}

static void chosen(duet_place p)
{
    for (size_t k = 0; k < 2; k++) {
        duet_matrix *x = duet_new(kinds[k].whole, 3, 5), *y = duet_new(kinds[k].whole, 5),
                    *z = duet_new(kinds[k].whole, 3, 5);
        fill_range(x, &kinds[k], MILD);
        fill_range(y, &kinds[k], MILD);
        evaluate(p, z, duet_where(duet_greater(duet_real(x), 0), x, y), "where");
        array a = array_of(x), b = array_of(y), got = array_of(z);
        for (int i = 0; i < 15; i++)
            CHECK(got.v[i] == (creall(a.v[i]) > 0 ? a.v[i] : b.v[i % 5]), "duet_where: element %d is wrong",
                  i);
        array_free(&got);
        evaluate(p, z, duet_where(duet_greater(duet_real(x), 0), duet_complex(0, 1), x), "where");
        got = array_of(z);
        for (int i = 0; i < 15; i++)
            CHECK(got.v[i] == (creall(a.v[i]) > 0 ? I : a.v[i]),
                  "duet_where with a number: element %d is wrong", i);
        array_free(&a);
        array_free(&b);
        array_free(&got);
        duet_free(&x);
        duet_free(&y);
        duet_free(&z);
    }
    tap_point("where");
}

/* ---- exact identities ---- */

static void laws(duet_place p)
{
    enum { N = 1000 };
    for (size_t k = 0; k < 2; k++) {
        const struct kind *of = &kinds[k];
        duet_matrix *x = duet_new(of->whole, N), *y = duet_new(of->whole, N), *a = duet_new(of->whole, N),
                    *b = duet_new(of->whole, N);
        fill_range(x, of, MILD);
        fill_range(y, of, MILD);
        evaluate(p, a, duet_mul(x, y), "x y");
        evaluate(p, b, duet_mul(y, x), "y x");
        array s = array_of(a), t = array_of(b);
        for (int i = 0; i < N; i++) CHECK(s.v[i] == t.v[i], "x y and y x differ in element %d", i);
        array_free(&s);
        evaluate(p, a, duet_mul(x, duet_conj(x)), "x conj(x)");
        s = array_of(a);
        for (int i = 0; i < N; i++)
            CHECK(cimagl(s.v[i]) == 0, "x conj(x) has an imaginary part in element %d", i);
        array_free(&s);
        array_free(&t);
        const real large[] = {
            0x1p126L, of->huge_part, of->huge_part / 2, 1e30L, 0x1p-120L, 3 * of->tiny, 1
        };
        void *q = duet_overwrite(x);
        for (int i = 0; i < N; i++) put(q, of->whole, i, large[i % 7] + I * large[i / 7 % 7]);
        evaluate(p, a, duet_div(x, x), "x / x");
        s = array_of(a);
        for (int i = 0; i < N; i++)
            CHECK(cabsl(s.v[i] - 1) <= 6 * of->u, "x / x is not 1: element %d is %Lg%+Lgi", i, creall(s.v[i]),
                  cimagl(s.v[i]));
        array_free(&s);
        duet_free(&x);
        duet_free(&y);
        duet_free(&a);
        duet_free(&b);
    }
    tap_point("identities that hold exactly");
}

/* Branch cuts, zeros of both signs and infinities, as docs/semantics.md says; built from parts,
 * because a C number with one infinite part may lose the other. */
static void specials(duet_place p)
{
    const double in[] = { -4, 0, -4, -0.0, 0, 0, 1, 0 };
    duet_matrix *x = duet_wrap((double *)(uintptr_t)in, DUET_C128, 4), *y = duet_new(DUET_C128, 4),
                *r = duet_new(DUET_F64, 4);
    duet_matrix *zero = duet_new(DUET_C128, 4);
    const double *s, *t;
    evaluate(p, y, duet_sqrt(x), "sqrt");
    evaluate(p, r, duet_arg(x), "arg");
    s = duet_read(y);
    t = duet_read(r);
    CHECK(s[0] == 0 && s[1] == 2 && s[2] == 0 && s[3] == -2 && s[4] == 0 && s[5] == 0 && s[6] == 1 &&
              s[7] == 0,
          "sqrt is wrong at its branch cut");
    CHECK(t[0] > 3 && t[1] < -3 && t[2] == 0 && t[3] == 0, "arg is wrong at its branch cut");
    evaluate(p, y, duet_div(x, zero), "x / 0");
    s = duet_read(y);
    CHECK(s[6] == INFINITY && isnan(s[7]) && isnan(s[4]) && isnan(s[5]),
          "1 / 0 is %g%+gi, not the quotients of its parts", s[6], s[7]);
    evaluate(p, y, duet_exp(duet_complex(800, duet_mul(0, duet_real(x)))), "exp");
    s = duet_read(y);
    CHECK(s[6] == INFINITY && s[7] == 0, "exp(800 + 0i) is %g%+gi", s[6], s[7]);
    evaluate(p, y, duet_exp(duet_complex(710, duet_add(1.5, duet_mul(0, duet_real(x))))), "exp");
    s = duet_read(y);
    const number large = cexpl(710 + 1.5L * I);
    CHECK(fabsl(s[6] - creall(large)) <= 20 * kinds[1].u * cabsl(large) && s[7] == INFINITY,
          "exp(710 + 1.5i) is %g%+gi", s[6], s[7]);
    evaluate(p, y, duet_log(zero), "log");
    s = duet_read(y);
    CHECK(s[0] == -INFINITY && s[1] == 0, "log(0) is %g%+gi", s[0], s[1]);
    evaluate(p, r, duet_isnan(duet_div(zero, zero)), "isnan");
    t = duet_read(r);
    CHECK(t[0] == 1, "0 / 0 is not NaN");
    duet_free(&x);
    duet_free(&y);
    duet_free(&r);
    duet_free(&zero);
    tap_point("branch cuts, zeros and infinities");
}

/* Intermediate results that are out of range where a part of the result is in range. */
static void overflows(duet_place p)
{
    static const double in[2][8] = {
        { 88.73, 0.785, 88.73, -2, 2e19, 2.1e19, 3e38, -3e38 },
        { 709.79, 0.785, 709.79, -2, 1.5e154, 1.6e154, 1.7e308, -1.7e308 },
    };
    for (size_t k = 0; k < 2; k++) {
        duet_matrix *x = duet_new(kinds[k].whole, 4), *y = duet_new(kinds[k].whole, 4);
        void *q = duet_overwrite(x);
        for (int i = 0; q && i < 4; i++) put(q, kinds[k].whole, i, in[k][2 * i] + I * in[k][2 * i + 1]);
        array a = array_of(x);
        evaluate(p, y, duet_expm1(x), "expm1");
        array got = array_of(y);
        for (int i = 0; i < 2; i++) {
            const number want = cexpl(a.v[i]);
            CHECK(fits(&kinds[k], want) && cabsl(got.v[i] - want) <= 20 * kinds[k].u * cabsl(want),
                  "expm1 is %Lg%+Lgi, not %Lg%+Lgi", creall(got.v[i]), cimagl(got.v[i]), creall(want),
                  cimagl(want));
        }
        array_free(&got);
        duet_matrix *re = duet_new(kinds[k].part, 4), *im = duet_new(kinds[k].part, 4);
        evaluate(p, re, duet_real(duet_square(x)), "square");
        evaluate(p, im, duet_imag(duet_square(x)), "square");
        array got_re = array_of(re), got_im = array_of(im);
        for (int i = 2; i < 4; i++) {
            const real c = creall(a.v[i]), d = cimagl(a.v[i]), want = (c - d) * (c + d);
            CHECK(fabsl(creall(got_re.v[i]) - want) <= 3 * kinds[k].u * fabsl(want), "square is %Lg, not %Lg",
                  creall(got_re.v[i]), want);
            CHECK(creall(got_im.v[i]) == (d > 0 ? INFINITY : -INFINITY), "square has part %Lg",
                  creall(got_im.v[i]));
        }
        array_free(&got_re);
        array_free(&got_im);
        duet_free(&re);
        duet_free(&im);
        array_free(&a);
        duet_free(&x);
        duet_free(&y);
    }
    tap_point("overflow of intermediate results");
}

static void all(duet_place p, int mode)
{
    binaries(p);
    unaries(p);
    corners(p);
    promotions(p);
    numbers(p);
    real_with_number(p);
    made(p);
    sets(p);
    chosen(p);
    laws(p);
    specials(p);
    overflows(p);
}

int main(int count, char **argument)
{
    gen = rng_new(count > 1 ? strtoull(argument[1], NULL, 10) : 20);
    each_mode(all);
    return tap_end();
}
