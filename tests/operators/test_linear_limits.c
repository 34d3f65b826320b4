/* test_linear_limits.c - linear algebra where the textbook method fails: matrices whose elements grow
 * in LU with partial pivoting, elements near the limits of the type, and rank-deficient least squares.
 * On every machine. Compiled a second time with COMPLEX. */
#include "linear_trial.h"

/* ---- growth ---- */

/* i^k, or 1 for real elements. Pivots are compared by |re| + |im|, which it does not change. */
static number turned(number x, int64_t k)
{
    for (int64_t e = 0; e < k % 4; e++) x = number_of(-imaginary_of(x), real_of(x));
    return own_types[0] == DUET_F32 ? real_of(x) : x;
}

/* Wilkinson's matrix: 1 on the diagonal and in the last column, -1 below. The elements of the last
 * column double in each step of LU. `rounded`: elements differ, so that the sums are rounded. */
static number wilkinson(int64_t i, int64_t j, int64_t n, bool rounded)
{
    const wide change = rounded ? rng_real(&gen, 0, 0.05) : 0;
    if (j == n - 1 || i == j) return 1 - change;
    return i > j ? change - 1 : 0;
}

static duet_matrix *growing(duet_dtype t, int64_t n, bool transposed, bool rounded)
{
    duet_matrix *a = duet_new(t, n, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const number x = wilkinson(i, j, n, rounded);
            put(a, transposed ? j : i, transposed ? i : j,
                own_types[0] == DUET_F32 ? x : turned(number_of(real_of(x), 0), i));
        }
    return a;
}

/* The residual of each column, as documented. */
static void check_columns(const duet_matrix *a, const duet_matrix *b, const duet_matrix *x, const char *what)
{
    wides A = wides_of(a), B = wides_of(b), X = wides_of(x), p = wides_product(&A, &X);
    const wide size = norm1(&A), eps = eps_of(duet_type(x));
    for (int64_t j = 0; j < X.n; j++) {
        wide rest = 0, solution = 0;
        for (int64_t i = 0; i < X.m; i++) {
            rest += size_of(*at(&B, i, j) - *at(&p, i, j));
            solution += size_of(*at(&X, i, j));
        }
        small(ratio(rest, size * solution, 1, eps), what, duet_type(x), X.m, X.n, here);
    }
    wides_free(&A);
    wides_free(&B);
    wides_free(&X);
    wides_free(&p);
}

static void check_solutions(duet_dtype t, const duet_matrix *a, int64_t n, int64_t sides, int refine)
{
    made b = new_made(t, 2, n, sides), x = new_made(t, 2, n, sides);
    if (set(x.m, duet_solve(a, b.m, .refine = refine), "solve"))
        check_columns(a, b.m, x.m, refine ? "solve, refined" : "solve");
    end(&b);
    end(&x);
}

/* Elimination of the transpose is accurate: its elements do not grow. */
static void check_determinant(duet_dtype t, const duet_matrix *a, bool transposed)
{
    const duet_dtype part = dtype_part(t);
    duet_matrix *d = duet_new(t), *l = duet_new(part), *sign = duet_new(t), *s = duet_new(part);
    wides A = wides_of(a), turn = wides_transposed(&A), unit = wides_unit(A.m), inverse;
    number det;
    CHECK(eliminate(transposed ? &A : &turn, &unit, &inverse, &det), "the matrix is singular");
    const wide off = THRESHOLD * (wide)A.m * eps_of(t) * norm1(&A) * norm1(&inverse);
    if (set(d, duet_det(a), "det") && set(l, duet_logdet(a), "logdet") && FACTOR(duet_slogdet(sign, s, a))) {
        wides D = wides_of(d), L = wides_of(l), S = wides_of(sign), E = wides_of(s);
        CHECK(size_of(*D.v - det) <= off * size_of(det), "det on the %s is off by %Lg of %Lg",
              place_name(here), size_of(*D.v - det), size_of(det));
        CHECK(size_of(*L.v - logl(size_of(det))) <= off, "logdet is %Lg, not %Lg", real_of(*L.v),
              logl(size_of(det)));
        CHECK(size_of(*S.v - det / size_of(det)) <= off, "the sign of slogdet is wrong");
        CHECK(*E.v == *L.v, "slogdet says %Lg, logdet %Lg", real_of(*E.v), real_of(*L.v));
        wides_free(&D);
        wides_free(&L);
        wides_free(&S);
        wides_free(&E);
    }
    wides_free(&A);
    wides_free(&turn);
    wides_free(&unit);
    wides_free(&inverse);
    duet_matrix **all[] = { &d, &l, &sign, &s };
    for (int i = 0; i < 4; i++) duet_free(all[i]);
}

/* LU is that of partial pivoting, however much the elements grow: |A[p] - L U| <= 30 n eps ||L| |U||. */
static void check_lu(duet_dtype t, const duet_matrix *a, int64_t n)
{
    duet_matrix *l = duet_new(t, n, n), *u = duet_new(t, n, n), *p = duet_new(DUET_I64, n);
    if (FACTOR(duet_lu(l, u, p, a))) {
        wides A = wides_of(a), L = wides_of(l), U = wides_of(u), P = wides_of(p), ordered = wides_new(n, n);
        for (int64_t i = 0; i < n * n; i++) ordered.v[i] = *at(&A, (int64_t)real_of(P.v[i / n]), i % n);
        const wide rest = norm_rest(&ordered, &L, &U);
        for (int64_t i = 0; i < n * n; i++) {
            L.v[i] = size_of(L.v[i]);
            U.v[i] = size_of(U.v[i]);
        }
        wides absolute = wides_product(&L, &U);
        small(ratio(rest, norm1(&absolute), n, eps_of(t)), "lu", t, n, n, here);
        wides_free(&A);
        wides_free(&L);
        wides_free(&U);
        wides_free(&P);
        wides_free(&ordered);
        wides_free(&absolute);
    }
    duet_free(&l);
    duet_free(&u);
    duet_free(&p);
}

static void grows(duet_dtype t, int64_t n, bool transposed, bool rounded)
{
    duet_matrix *a = growing(t, n, transposed, rounded);
    check_solutions(t, a, n, 1, 0);
    check_solutions(t, a, n, 9, 0);
    if (t == DUET_F64) {
        check_solutions(t, a, n, 1, DUET_REFINE_F32);
        check_solutions(t, a, n, 2, DUET_REFINE_F16);
    }
    check_inverse(t, a, n);
    if (n < 100) check_determinant(t, a, transposed);
    if (n < 100) check_lu(t, a, n);
    duet_free(&a);
}

static void test_growth(duet_dtype t)
{
    static const int64_t orders[] = { 8, 16, 32, 64, 140 }; /* 140: U overflows f32 */
    for (int i = 0; i < 5 - quick; i++)
        for (int how = 0; how < 4; how++) grows(t, orders[i], how & 1, how & 2);
}

/* A pivot may become 0 although the matrix is regular: the last one is 1 + 2^-k, rounded. */
static void test_lost_pivot(duet_dtype t)
{
    enum { N = 64 };
    for (int transposed = 0; transposed < 2; transposed++) {
        duet_matrix *a = growing(t, N, transposed, false);
        put(a, N - 1, N - 1, 2);
        check_solutions(t, a, N, 1, 0);
        check_inverse(t, a, N);
        duet_free(&a);
    }
}

/* ---- near the limits of the type ---- */

/* The exponents of the smallest subnormal and of the largest number. */
static int least_exponent(duet_dtype t) { return dtype_part(t) == DUET_F32 ? -149 : -1074; }
static int most_exponent(duet_dtype t) { return dtype_part(t) == DUET_F32 ? 127 : 1023; }

static void is_about(const duet_matrix *x, int64_t i, int64_t j, number want, wide off, const char *what)
{
    wides X = wides_of(x);
    const wide d = size_of(*at(&X, i, j) - want);
    CHECK(d <= off * size_of(want), "%s on the %s: element %d, %d is off by %Lg of %Lg", what,
          place_name(here), (int)i, (int)j, d, size_of(want));
    wides_free(&X);
}

/* Triangles with a first diagonal element of 2^exponent, whose reciprocal is infinite: x is 1, 1, 1. */
static void tiny_diagonal(duet_dtype t, int exponent, bool lower, bool transposed)
{
    enum { N = 3 };
    const wide tiny = ldexpl(1, exponent);
    duet_matrix *a = duet_new(t, N, N), *b = duet_new(t, N), *x = duet_new(t, N);
    for (int64_t i = 0; i < N; i++) put(a, i, i, i ? 1 : number_of(tiny, tiny));
    put(a, lower ? 2 : 1, lower ? 1 : 2, 2);
    const bool at_first = lower == transposed; /* row 1 has a second element */
    put(b, 0, 0, number_of(tiny, tiny));
    put(b, 1, 0, at_first ? 3 : 1);
    put(b, 2, 0, at_first ? 1 : 3);
    if (set(x, duet_solve_triangular(a, b, .lower = lower, .transposed = transposed), "solve_triangular"))
        for (int64_t i = 0; i < N; i++) is_about(x, i, 0, 1, 10 * eps_of(t), "solve_triangular");
    duet_free(&a);
    duet_free(&b);
    duet_free(&x);
}

static void test_tiny_diagonals(duet_dtype t)
{
    for (int how = 0; how < 4; how++)
        for (int exponent = least_exponent(t); exponent < least_exponent(t) + 30; exponent += 7)
            tiny_diagonal(t, exponent, how & 1, how & 2);
}

/* Elements of about 2^exponent on both sides: lstsq(A, A) is 1, solve(A, A) too. */
static void scaled(duet_dtype t, int exponent, int64_t m, int64_t n)
{
    made a = new_kind(t, UNIFORM, m, n), x = new_made(t, 2, n, n), y = new_made(t, 2, n, n);
    wides A = wides_of(a.m);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            put(a.m, i, j, ldexpl(1, exponent) * (*at(&A, i, j) / (wide)(2 * n) + (i == j ? 0.5L : 0)));
    const wide off = 1000 * (wide)m * eps_of(t);
    const bool solved = m == n && set(y.m, duet_solve(a.m, a.m), "solve");
    if (set(x.m, duet_lstsq(a.m, a.m), "lstsq"))
        for (int64_t i = 0; i < n; i++) {
            is_about(x.m, i, i, 1, off, "lstsq");
            if (solved) is_about(y.m, i, i, 1, off, "solve");
        }
    wides_free(&A);
    end(&a);
    end(&x);
    end(&y);
}

static void test_scaled(duet_dtype t)
{
    const int low = least_exponent(t) + 12, high = most_exponent(t);
    for (int exponent = low; exponent < low + 50; exponent += quick ? 11 : 3) {
        scaled(t, exponent, 5, 5);
        scaled(t, exponent, 9, 4);
    }
    for (int exponent = high - 6; exponent <= high; exponent += 2) {
        scaled(t, exponent, 5, 5);
        scaled(t, exponent, 9, 4);
    }
}

/* Right-hand sides of very different sizes, and a wide matrix: x(0) + x(1) = b / 2^exponent. */
static void test_shortest(duet_dtype t)
{
    for (int low = 0; low < 2; low++) {
        const int exponent = low ? least_exponent(t) + 3 : most_exponent(t);
        duet_matrix *a = duet_new(t, 1, 2), *b = duet_new(t, 1, 2), *x = duet_new(t, 2, 2);
        for (int64_t j = 0; j < 2; j++) {
            put(a, 0, j, ldexpl(1, exponent));
            put(b, 0, j, ldexpl(1, j ? exponent : low ? -30 : 3));
        }
        if (!low && set(x, duet_lstsq(a, b), "lstsq")) is_about(x, 1, 0, ldexpl(1, 2 - exponent), 1, "lstsq");
        put(b, 0, 0, ldexpl(1, exponent - low));
        if (set(x, duet_lstsq(a, b), "lstsq")) {
            is_about(x, 0, 0, low ? 0.25L : 0.5L, 10 * eps_of(t), "lstsq");
            is_about(x, 1, 1, 0.5L, 10 * eps_of(t), "lstsq");
        }
        duet_free(&a);
        duet_free(&b);
        duet_free(&x);
    }
}

/* ---- rank-deficient least squares ---- */

/* A matrix of small integers. */
static wides integers(int64_t m, int64_t n)
{
    wides a = wides_new(m, n);
    for (int64_t i = 0; i < m * n; i++)
        a.v[i] = number_of((wide)rng_below(&gen, 9) - 4,
                           own_types[0] == DUET_F32 ? 0 : (wide)rng_below(&gen, 9) - 4);
    return a;
}

/* (a^H a)^-1 a^H b */
static wides fitted(const wides *a, const wides *b)
{
    wides turn = wides_turned(a), gram = wides_product(&turn, a), right = wides_product(&turn, b), x;
    number det;
    CHECK(eliminate(&gram, &right, &x, &det), "the matrix of the test is singular");
    wides_free(&turn);
    wides_free(&gram);
    wides_free(&right);
    return x;
}

static duet_matrix *rounded(duet_dtype t, const wides *x)
{
    duet_matrix *m = duet_new(t, x->m, x->n);
    for (int64_t i = 0; i < x->m * x->n; i++) put(m, i / x->n, i % x->n, x->v[i]);
    return m;
}

/* The solution of least norm of U V^H x = b is V (V^H V)^-1 y, where y minimises |U y - b|. U and V
 * have `rank` columns. */
static void deficient(duet_dtype t, int64_t m, int64_t n, int64_t rank, int exponent)
{
    wides U = integers(m, rank), V = integers(n, rank), turn = wides_turned(&V), A = wides_product(&U, &turn),
          B = integers(m, 3);
    wides y = fitted(&U, &B), unit = wides_unit(n), by_v = fitted(&V, &unit), back = wides_turned(&by_v),
          want = wides_product(&back, &y);
    for (int64_t i = 0; i < m * n; i++) A.v[i] *= ldexpl(1, exponent);
    const int of_sides = exponent < 0 ? exponent : 0; /* otherwise the solution overflows */
    for (int64_t i = 0; i < m * 3; i++) B.v[i] *= ldexpl(1, of_sides);
    duet_matrix *a = rounded(t, &A), *b = rounded(t, &B), *x = duet_new(t, n, 3);
    if (set(x, duet_lstsq(a, b), "lstsq")) {
        wides X = wides_of(x);
        for (int64_t i = 0; i < n * 3; i++) X.v[i] *= ldexpl(1, exponent - of_sides);
        CHECK(norm_difference(&X, &want) <= 1e4L * eps_of(t) * norm1(&want),
              "lstsq of %s %d x %d and rank %d on the %s is off by %Lg of %Lg", dtypes[t].name, (int)m,
              (int)n, (int)rank, place_name(here), norm_difference(&X, &want), norm1(&want));
        wides_free(&X);
    }
    wides *const all[] = { &U, &V, &turn, &A, &B, &y, &unit, &by_v, &back, &want };
    for (int i = 0; i < 10; i++) wides_free(all[i]);
    duet_free(&a);
    duet_free(&b);
    duet_free(&x);
}

static void test_deficient(duet_dtype t)
{
    const wide by_hand[] = { 1, 2, 3, 6, 5, 10 }, right[] = { 1, 2, 4 };
    duet_matrix *a = duet_new(t, 3, 2), *b = duet_new(t, 3), *x = duet_new(t, 2);
    for (int64_t i = 0; i < 6; i++) put(a, i / 2, i % 2, by_hand[i]);
    for (int64_t i = 0; i < 3; i++) put(b, i, 0, right[i]);
    if (set(x, duet_lstsq(a, b), "lstsq"))
        for (int64_t i = 0; i < 2; i++) is_about(x, i, 0, (wide)(i + 1) * 27 / 175, 100 * eps_of(t), "lstsq");
    for (int64_t i = 0; i < 6; i++) put(a, i / 2, i % 2, 0);
    if (set(x, duet_lstsq(a, b), "lstsq of 0")) {
        wides X = wides_of(x);
        CHECK(X.v[0] == 0 && X.v[1] == 0, "lstsq of a zero matrix is not 0");
        wides_free(&X);
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&x);
    const int low = least_exponent(t) + 24, high = most_exponent(t) - 12;
    for (int i = 0; i < 3; i++) {
        const int exponent = i == 1 ? low : i * high / 2;
        deficient(t, 7, 4, 2, exponent);
        deficient(t, 4, 7, 3, exponent);
        deficient(t, 12, 12, 5, exponent);
        deficient(t, 40, 20, 11, exponent);
    }
}

int main(int argc, char **argv)
{
    if (!begin(argc, argv)) return 0;
    each_type(test_growth, "growth in LU");
    each_type(test_lost_pivot, "a pivot that growth makes 0");
    each_type(test_tiny_diagonals, "triangles with tiny diagonals");
    each_type(test_scaled, "systems near the limits of the type");
    each_type(test_shortest, "wide systems near the limits of the type");
    each_type(test_deficient, "rank-deficient least squares");
    return tap_end();
}
