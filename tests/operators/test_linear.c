/* test_linear.c - linear algebra: residuals as in LAPACK's tests, in extended precision; operands
 * and results that are views; ill-conditioned matrices. On every machine. Compiled a second time
 * with COMPLEX. */
#include "linear_trial.h"

/* ---- systems ---- */

static void check_rests(const duet_matrix *a, const duet_matrix *b, const duet_matrix *x, const char *what)
{
    wides A = wides_of(a), B = wides_of(b), X = wides_of(x);
    for (int64_t j = 0; j < X.n; j++) {
        wides one = wides_new(X.m, 1), right = wides_new(X.m, 1);
        for (int64_t i = 0; i < X.m; i++) {
            one.v[i] = *at(&X, i, j);
            right.v[i] = *at(&B, i, j);
        }
        small(ratio(norm_rest(&right, &A, &one), norm1(&A) * norm1(&one), 1, eps_of(duet_type(x))), what,
              duet_type(x), X.m, X.n, here);
        wides_free(&one);
        wides_free(&right);
    }
    wides_free(&A);
    wides_free(&B);
    wides_free(&X);
}

static void check_solution(duet_dtype t, const duet_matrix *a, int64_t n, int64_t sides, int refine)
{
    made b = new_made(t, sides < 0 ? 1 : 2, n, sides), x = new_made(t, sides < 0 ? 1 : 2, n, sides);
    if (set(x.m, duet_solve(a, b.m, .refine = refine), "solve"))
        check_rests(a, b.m, x.m, refine ? "solve, refined" : "solve");
    end(&b);
    end(&x);
}

/* Neighbours of -1 below a row that outweighs them, with b a column: LAPACK's refinement ends with
 * a residual far above the promised one. */
static void check_bordered(int64_t n, wide border, int refine)
{
    duet_matrix *a = duet_new(DUET_F64, n, n), *b = duet_new(DUET_F64, n), *x = duet_new(DUET_F64, n),
                *middle = duet_column(a, n / 2);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i == 0) put(a, i, j, border * cosl((wide)j));
            else if (i == j) put(a, i, j, 2.001L);
            else if (i - j == 1 || j - i == 1) put(a, i, j, -1);
            else put(a, i, j, 0);
    if (set(b, duet_mul(2.75, middle), "a column") &&
        set(x, duet_solve(a, b, .refine = refine), "a bordered system"))
        check_rests(a, b, x, "a bordered system");
    duet_free(&a);
    duet_free(&b);
    duet_free(&x);
    duet_free(&middle);
}

/* The operands are in the range of f32 but the solution is not: refinement computes infinities. */
static void check_narrow(int refine)
{
    duet_matrix *a = duet_new(DUET_F64, 2, 2), *b = duet_new(DUET_F64, 2), *x = duet_new(DUET_F64, 2);
    put(a, 0, 0, 1e-30L);
    put(a, 1, 1, 1);
    put(b, 0, 0, 1e20L);
    put(b, 1, 0, 1);
    if (set(x, duet_solve(a, b, .refine = refine), "beyond f32")) check_rests(a, b, x, "beyond f32");
    duet_free(&a);
    duet_free(&b);
    duet_free(&x);
}

/* The determinant by elimination is that of a matrix at a distance of n eps |a|; its relative error
 * is that times the condition number. */
static void check_determinant(duet_dtype t, const duet_matrix *a, int64_t n)
{
    const duet_dtype part = dtype_part(t);
    made d = new_made(t, 0, 0, 0), l = new_made(part, 0, 0, 0), s = new_made(t, 0, 0, 0),
         e = new_made(part, 0, 0, 0);
    wides A = wides_of(a), unit = wides_unit(n), inverse;
    number det;
    const bool regular = eliminate(&A, &unit, &inverse, &det);
    const wide off = THRESHOLD * (wide)(n > 1 ? n : 1) * eps_of(t) *
                     (regular ? norm1(&A) * norm1(&inverse) : 0),
               size = logl(size_of(det)), large = size_of(det);
    if (set(d.m, duet_det(a), "det") && set(l.m, duet_logdet(a), "logdet") &&
        FACTOR(duet_slogdet(s.m, e.m, a))) {
        wides D = wides_of(d.m), L = wides_of(l.m), S = wides_of(s.m), E = wides_of(e.m);
        if (large < 1e37L && large > 1e-30L)
            CHECK(size_of(*D.v - det) <= off * large, "det of %d: %Lg + %Lg i, not %Lg + %Lg i", (int)n,
                  real_of(*D.v), imaginary_of(*D.v), real_of(det), imaginary_of(det));
        CHECK(size_of(*L.v - size) <= off + 4 * eps_of(t) * fabsl(size), "logdet of %d: %Lg, not %Lg", (int)n,
              real_of(*L.v), size);
        CHECK(off > 1 || size_of(*S.v - (large > 0 ? det / large : 0)) <= (part == t ? 0 : off),
              "the sign of %Lg is not %Lg", real_of(det), real_of(*S.v));
        CHECK(*E.v == *L.v, "slogdet says %Lg, logdet %Lg", real_of(*E.v), real_of(*L.v));
        wides_free(&D);
        wides_free(&L);
        wides_free(&S);
        wides_free(&E);
    }
    wides_free(&A);
    wides_free(&unit);
    wides_free(&inverse);
    end(&d);
    end(&l);
    end(&s);
    end(&e);
}

static void systems(duet_dtype t, enum kind kind, int64_t n)
{
    made a = new_kind(t, kind, n, n);
    check_solution(t, a.m, n, -1, 0);
    check_solution(t, a.m, n, rng_below(&gen, 9), 0);
    if (dtype_part(t) == DUET_F64) {
        check_solution(t, a.m, n, rng_below(&gen, 4), DUET_REFINE_F32);
        check_solution(t, a.m, n, -1, DUET_REFINE_F16);
    }
    check_inverse(t, a.m, n);
    if (kind != LOW && kind != HIGH) check_determinant(t, a.m, n);
    end(&a);
}

/* ---- triangular systems: elements outside the triangle are NaN ---- */

static number diagonal(number x)
{
    const wide size = size_of(x);
    return 1 + size + (size > 0 ? number_of(0, imaginary_of(x) / size) : 0);
}

static number rounded(duet_dtype t, number x)
{
    const wide re = real_of(x), im = imaginary_of(x);
    if (dtype_part(t) == DUET_F32) return number_of((float)re, (float)im);
    return number_of((double)re, (double)im);
}

static void triangular(duet_dtype t, int64_t n, int64_t sides, int how)
{
    const bool lower = how & 1, unit = how & 2, transposed = how & 4;
    made a = new_made(t, 2, n, n), b = new_made(t, sides < 0 ? 1 : 2, n, sides),
         x = new_made(t, sides < 0 ? 1 : 2, n, sides);
    wides A = wides_of(a.m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            bool read = lower ? i > j : i < j;
            if (i == j) read = !unit;
            if (i == j) *at(&A, i, j) = unit ? 1 : diagonal(*at(&A, i, i));
            else if (read) *at(&A, i, j) = *at(&A, i, j) / (wide)n;
            else *at(&A, i, j) = 0;
            put(a.m, i, j, read ? *at(&A, i, j) : NAN);
            *at(&A, i, j) = rounded(t, *at(&A, i, j));
        }
    if (set(x.m, duet_solve_triangular(a.m, b.m, .lower = lower, .unit = unit, .transposed = transposed),
            "solve_triangular")) {
        wides B = wides_of(b.m), X = wides_of(x.m), turned = wides_transposed(&A);
        const wides *of = transposed ? &turned : &A;
        small(ratio(norm_rest(&B, of, &X), norm1(of) * norm1(&X), n, eps_of(t)), "solve_triangular", t, n,
              sides, here);
        wides_free(&B);
        wides_free(&X);
        wides_free(&turned);
    }
    wides_free(&A);
    end(&a);
    end(&b);
    end(&x);
}

/* ---- symmetric and Hermitian matrices: elements above the diagonal and imaginary parts on it are
 * NaN ---- */

static made lower_only(const made *a, duet_dtype t, int64_t n)
{
    made l = new_made(t, 2, n, n);
    wides A = wides_of(a->m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i > j) put(l.m, i, j, *at(&A, i, j));
            else if (i == j) put(l.m, i, j, number_of(real_of(*at(&A, i, i)), NAN));
            else put(l.m, i, j, NAN);
    wides_free(&A);
    return l;
}

static void cholesky(duet_dtype t, int64_t n)
{
    made a = new_kind(t, POSITIVE, n, n), half = lower_only(&a, t, n), l = new_made(t, 2, n, n);
    if (set(l.m, duet_cholesky(half.m), "cholesky")) {
        wides A = wides_of(a.m), L = wides_of(l.m), turned = wides_turned(&L);
        small(ratio(norm_rest(&A, &L, &turned), norm1(&A), n, eps_of(t)), "cholesky", t, n, n, here);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) CHECK(*at(&L, i, j) == 0, "L is not 0 above the diagonal");
        for (int64_t i = 0; i < n; i++) CHECK(imaginary_of(*at(&L, i, i)) == 0, "the diagonal is not real");
        wides_free(&A);
        wides_free(&L);
        wides_free(&turned);
    }
    end(&a);
    end(&half);
    end(&l);
}

static void ordered(const wides *w, int sign, const char *what)
{
    for (int64_t i = 1; i < w->m; i++)
        CHECK(sign * (real_of(w->v[i]) - real_of(w->v[i - 1])) >= 0, "%s %d: %Lg comes after %Lg", what,
              (int)i, real_of(w->v[i]), real_of(w->v[i - 1]));
}

static void eigen(duet_dtype t, enum kind kind, int64_t n)
{
    made a = new_kind(t, kind, n, n), half = lower_only(&a, t, n), w = new_made(dtype_part(t), 1, n, 0),
         v = new_made(t, 2, n, n), values_only = new_made(dtype_part(t), 1, n, 0);
    if (FACTOR(duet_eigh(w.m, v.m, half.m)) && set(values_only.m, duet_eigvalsh(half.m), "eigvalsh")) {
        wides A = wides_of(a.m), W = wides_of(w.m), V = wides_of(v.m), turned = wides_turned(&V),
              X = wides_of(values_only.m), scaled = wides_of(v.m);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) *at(&scaled, i, j) *= W.v[j];
        small(ratio(norm_rest(&A, &scaled, &turned), norm1(&A), n, eps_of(t)), "eigh", t, n, n, here);
        small(ratio(norm_rest(NULL, &turned, &V), 1, n, eps_of(t)), "the vectors of eigh", t, n, n, here);
        small(ratio(norm_difference(&W, &X), norm1(&A), n, eps_of(t)), "eigvalsh", t, n, n, here);
        ordered(&W, 1, "eigenvalue");
        wides_free(&A);
        wides_free(&W);
        wides_free(&V);
        wides_free(&turned);
        wides_free(&X);
        wides_free(&scaled);
    }
    end(&a);
    end(&half);
    end(&w);
    end(&v);
    end(&values_only);
}

/* ---- factorisations of m x n matrices ---- */

static void lu(duet_dtype t, enum kind kind, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    made a = new_kind(t, kind, m, n), l = new_made(t, 2, m, k), u = new_made(t, 2, k, n);
    duet_matrix *p = duet_new(DUET_I64, m);
    if (FACTOR(duet_lu(l.m, u.m, p, a.m))) {
        wides A = wides_of(a.m), L = wides_of(l.m), U = wides_of(u.m), P = wides_of(p),
              in_order = wides_new(m, n);
        bool *seen = calloc((size_t)m + 1, sizeof *seen);
        const wide most = dtype_is_complex(t) ? sqrtl(2) * (1 + eps_of(t)) : 1;
        for (int64_t i = 0; i < m; i++) {
            const int64_t from = (int64_t)real_of(P.v[i]);
            CHECK(from >= 0 && from < m && !seen[from], "p is not a permutation");
            seen[from] = true;
            for (int64_t j = 0; j < n; j++) *at(&in_order, i, j) = *at(&A, from, j);
            for (int64_t j = 0; j < k; j++)
                CHECK(size_of(*at(&L, i, j)) <= most && (i != j || *at(&L, i, j) == 1) &&
                          (i >= j || *at(&L, i, j) == 0),
                      "an element of L is wrong");
        }
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < i; j++) CHECK(*at(&U, i, j) == 0, "U is not 0 below the diagonal");
        small(ratio(norm_rest(&in_order, &L, &U), norm1(&A), n, eps_of(t)), "lu", t, m, n, here);
        wides_free(&A);
        wides_free(&L);
        wides_free(&U);
        wides_free(&P);
        wides_free(&in_order);
        free(seen);
    }
    end(&a);
    end(&l);
    end(&u);
    duet_free(&p);
}

static void qr(duet_dtype t, enum kind kind, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    made a = new_kind(t, kind, m, n), q = new_made(t, 2, m, k), r = new_made(t, 2, k, n);
    if (FACTOR(duet_qr(q.m, r.m, a.m))) {
        wides A = wides_of(a.m), Q = wides_of(q.m), R = wides_of(r.m), turned = wides_turned(&Q);
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < i; j++) CHECK(*at(&R, i, j) == 0, "R is not 0 below the diagonal");
        small(ratio(norm_rest(&A, &Q, &R), norm1(&A), m > n ? m : n, eps_of(t)), "qr", t, m, n, here);
        small(ratio(norm_rest(NULL, &turned, &Q), 1, m, eps_of(t)), "the columns of Q", t, m, n, here);
        wides_free(&A);
        wides_free(&Q);
        wides_free(&R);
        wides_free(&turned);
    }
    end(&a);
    end(&q);
    end(&r);
}

static void svd(duet_dtype t, enum kind kind, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n, most = m > n ? m : n;
    made a = new_kind(t, kind, m, n), u = new_made(t, 2, m, k), s = new_made(dtype_part(t), 1, k, 0),
         vt = new_made(t, 2, k, n), values_only = new_made(dtype_part(t), 1, k, 0);
    if (FACTOR(duet_svd(u.m, s.m, vt.m, a.m)) && set(values_only.m, duet_svdvals(a.m), "svdvals")) {
        wides A = wides_of(a.m), U = wides_of(u.m), S = wides_of(s.m), V = wides_of(vt.m),
              X = wides_of(values_only.m);
        wides ut = wides_turned(&U), v = wides_turned(&V);
        small(ratio(norm_rest(NULL, &ut, &U), 1, most, eps_of(t)), "the columns of U", t, m, n, here);
        small(ratio(norm_rest(NULL, &V, &v), 1, most, eps_of(t)), "the rows of Vt", t, m, n, here);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < k; j++) *at(&U, i, j) *= S.v[j];
        small(ratio(norm_rest(&A, &U, &V), norm1(&A), most, eps_of(t)), "svd", t, m, n, here);
        small(ratio(norm_difference(&S, &X), k ? real_of(S.v[0]) : 0, most, eps_of(t)), "svdvals", t, m, n,
              here);
        ordered(&S, -1, "singular value");
        CHECK(!k || real_of(S.v[k - 1]) >= 0, "a singular value is negative or out of order");
        wides_free(&A);
        wides_free(&U);
        wides_free(&S);
        wides_free(&V);
        wides_free(&X);
        wides_free(&ut);
        wides_free(&v);
    }
    end(&a);
    end(&u);
    end(&s);
    end(&vt);
    end(&values_only);
}

/* ---- least squares ---- */

/* The part of each column of x outside the row space of a. */
static wide outside_of_rows(const wides *a, const wides *x)
{
    wides rows = wides_turned(a), gram = wides_product(a, &rows), ax = wides_product(a, x), z, of_rows;
    number det;
    wide rest = 0;
    if (!eliminate(&gram, &ax, &z, &det)) rest = NAN;
    of_rows = wides_product(&rows, &z);
    if (rest == 0) rest = norm_difference(&of_rows, x);
    wides_free(&rows);
    wides_free(&gram);
    wides_free(&ax);
    wides_free(&z);
    wides_free(&of_rows);
    return rest;
}

static void lstsq(duet_dtype t, enum kind kind, int64_t m, int64_t n, int64_t sides)
{
    made a = new_kind(t, kind, m, n), b = new_made(t, sides < 0 ? 1 : 2, m, sides),
         x = new_made(t, sides < 0 ? 1 : 2, n, sides);
    if (set(x.m, duet_lstsq(a.m, b.m), "lstsq")) {
        const int64_t most = m > n ? m : n;
        wides A = wides_of(a.m), B = wides_of(b.m), X = wides_of(x.m), at_ = wides_turned(&A),
              rest = wides_product(&A, &X);
        for (int64_t i = 0; i < rest.m * rest.n; i++) rest.v[i] = B.v[i] - rest.v[i];
        if (m >= n) {
            wides left = wides_product(&at_, &rest);
            small(ratio(norm1(&left), norm1(&A) * norm1(&at_) * norm1(&X) + norm1(&at_) * norm1(&B), most,
                        eps_of(t)),
                  "lstsq", t, m, n, here);
            wides_free(&left);
        } else {
            small(ratio(norm1(&rest), norm1(&A) * norm1(&X), most, eps_of(t)), "lstsq", t, m, n, here);
            if (kind == UNIFORM && m < 20)
                small(ratio(outside_of_rows(&A, &X), norm1(&X), most, eps_of(t)), "the least of lstsq", t, m,
                      n, here);
        }
        wides_free(&A);
        wides_free(&B);
        wides_free(&X);
        wides_free(&at_);
        wides_free(&rest);
    }
    end(&a);
    end(&b);
    end(&x);
}

/* ---- suites ---- */

static int64_t some_size(void)
{
    static const int64_t often[] = { 0, 1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33 };
    return often[rng_below(&gen, 14)];
}

static void refined(int refine)
{
    for (int64_t n = 100; n <= (quick ? 100 : 300); n += 100) {
        check_bordered(n, 1, refine);
        check_bordered(n, 10, refine);
    }
    check_narrow(refine);
}

static void test_systems(duet_dtype t)
{
    static const enum kind kinds[] = { UNIFORM, UNIFORM, SYMMETRIC, POSITIVE, GRADED, LOW, HIGH };
    for (int i = 0; i < trials(40); i++) systems(t, kinds[rng_below(&gen, 7)], some_size());
    for (int64_t n = 1; n <= (dtype_part(t) == DUET_F32 ? 5 : 10); n++) systems(t, HILBERT, n);
    systems(t, UNIFORM, quick ? 50 : 130);
    for (int i = 0; i < trials(60); i++)
        triangular(t, some_size(), rng_below(&gen, 7) - 1, (int)rng_below(&gen, 8));
    if (t == DUET_F64) {
        refined(DUET_REFINE_F32);
        refined(DUET_REFINE_F16);
    }
}

static void test_symmetric(duet_dtype t)
{
    for (int i = 0; i < trials(30); i++) {
        cholesky(t, some_size());
        eigen(t, i % 2 ? SYMMETRIC : POSITIVE, some_size());
    }
    for (int64_t n = 1; n < 12; n++) eigen(t, HILBERT, n);
    cholesky(t, quick ? 40 : 120);
    eigen(t, SYMMETRIC, quick ? 40 : 90);
}

static void test_rectangles(duet_dtype t)
{
    static const enum kind kinds[] = { UNIFORM, UNIFORM, GRADED, HILBERT, LOW, HIGH };
    for (int i = 0; i < trials(50); i++) {
        const enum kind kind = kinds[rng_below(&gen, 6)];
        lu(t, kind, some_size(), some_size());
        qr(t, kind, some_size(), some_size());
        svd(t, kind, some_size(), some_size());
        lstsq(t, UNIFORM, some_size(), some_size(), rng_below(&gen, 6) - 1);
    }
    for (int64_t n = 2; n < 9; n++) lstsq(t, HILBERT, n + 5, dtype_part(t) == DUET_F32 ? n / 2 : n, 2);
    lu(t, UNIFORM, 90, 70);
    qr(t, UNIFORM, 90, 70);
    svd(t, UNIFORM, 40, 70);
    lstsq(t, UNIFORM, 90, 40, 3);
}

int main(int argc, char **argv)
{
    if (!begin(argc, argv)) return 0;
    each_type(test_systems, "inverses, solutions, determinants");
    each_type(test_symmetric, "symmetric matrices");
    each_type(test_rectangles, "LU, QR, SVD, least squares");
    return tap_end();
}
