/* test_linear_stacks.c - linear algebra on stacks of matrices: each matrix of a result has the residual that
 * is promised for one matrix. Operands that broadcast, and views; empty stacks; errors that name the matrix;
 * operators made of others. On every machine. Compiled a second time with COMPLEX. */
#include "linear_trial.h"

/* ---- stacks ---- */

typedef struct stack {
    duet_matrix *m, *whole;
    int lead; /* the number of leading axes */
    int64_t size[3], count;
} stack;

/* Leading axes of 0 to 4 matrices each. */
static void draw_lead(stack *s)
{
    static const int64_t often[] = { 0, 1, 1, 2, 2, 3, 4 };
    s->lead = (int)rng_below(&gen, 4);
    s->count = 1;
    for (int a = 0; a < s->lead; a++) s->count *= s->size[a] = often[rng_below(&gen, 7)];
}

static void stack_make(stack *s, duet_dtype t, int rank, int64_t m, int64_t n)
{
    int64_t size[5];
    for (int a = 0; a < s->lead; a++) size[a] = s->size[a];
    if (rank > 0) size[s->lead] = m;
    if (rank > 1) size[s->lead + 1] = n;
    const int all = s->lead + rank;
    const enum view view =
        all < 2 ? VIEW_NONE : (enum view[]){ VIEW_NONE, VIEW_SLICE, VIEW_TRANSPOSED }[rng_below(&gen, 3)];
    s->m = random_view(&gen, view, t, all, size, -1, 1, &s->whole);
    if (!s->m) s->m = s->whole = random_matrix(&gen, t, all, size, -1, 1);
    CHECK(s->m != NULL, "%s", duet_error());
}

static stack stack_like(const stack *lead, duet_dtype t, int rank, int64_t m, int64_t n)
{
    stack s = *lead;
    stack_make(&s, t, rank, m, n);
    return s;
}

static void stack_end(stack *s)
{
    if (s->whole != s->m) duet_free(&s->whole);
    duet_free(&s->m);
}

/* Offset of matrix k, in elements. */
static int64_t offset_of(const stack *s, int64_t k)
{
    int64_t offset = 0;
    for (int a = s->lead; a-- > 0; k /= s->size[a]) offset += k % s->size[a] * duet_stride(s->m, a);
    return offset;
}

/* Matrix k: the last two axes, or one, or none. */
static wides matrix_of(const stack *s, int64_t k)
{
    const int rank = duet_rank(s->m) - s->lead;
    const duet_dtype t = duet_type(s->m);
    const int64_t rows = rank ? duet_size(s->m, s->lead) : 1,
                  cols = rank > 1 ? duet_size(s->m, s->lead + 1) : 1;
    wides x = wides_new(rows, cols);
    const void *p = duet_read(s->m);
    const int64_t first = offset_of(s, k);
    for (int64_t i = 0; i < rows && p; i++)
        for (int64_t j = 0; j < cols; j++)
            *at(&x, i, j) = element_at(t, p,
                                       first + (rank ? i * duet_stride(s->m, s->lead) : 0) +
                                           (rank > 1 ? j * duet_stride(s->m, s->lead + 1) : 0));
    return x;
}

static void put_in(const stack *s, int64_t k, int64_t i, int64_t j, number x)
{
    char *p = duet_update(s->m);
    const int64_t e = offset_of(s, k) + i * duet_stride(s->m, s->lead) + j * duet_stride(s->m, s->lead + 1);
    const wide part[] = { real_of(x), imaginary_of(x) };
    const int parts = dtype_is_complex(duet_type(s->m)) ? 2 : 1;
    for (int c = 0; c < parts && p; c++)
        if (dtype_part(duet_type(s->m)) == DUET_F32) ((float *)p)[parts * e + c] = (float)part[c];
        else ((double *)p)[parts * e + c] = (double)part[c];
}

/* Random matrices, symmetric or Hermitian, with `diagonal` added on the diagonal. */
static stack drawn(const stack *lead, duet_dtype t, int64_t m, int64_t n, bool symmetric_too, wide diagonal)
{
    stack s = stack_like(lead, t, 2, m, n);
    for (int64_t k = 0; k < s.count; k++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                number x = number_of(rng_real(&gen, -1, 1), rng_real(&gen, -1, 1));
                if (symmetric_too && i < j) continue;
                if (i == j) x = (symmetric_too ? real_of(x) : x) + diagonal;
                put_in(&s, k, i, j, x);
                if (symmetric_too && i > j) put_in(&s, k, j, i, conjugate_of(x));
            }
    return s;
}

static int64_t some_size(void)
{
    static const int64_t often[] = { 0, 1, 2, 3, 4, 5, 7, 8, 13, 17 };
    return often[rng_below(&gen, 10)];
}

/* ---- solutions, inverses, determinants ---- */

static void check_rest(const wides *b, const wides *a, const wides *x, duet_dtype t, const char *what)
{
    for (int64_t j = 0; j < x->n; j++) {
        wides one = wides_new(x->m, 1), right = wides_new(b->m, 1);
        for (int64_t i = 0; i < x->m; i++) one.v[i] = *at(x, i, j);
        for (int64_t i = 0; i < b->m; i++) right.v[i] = *at(b, i, j);
        small(ratio(norm_rest(&right, a, &one), norm1(a) * norm1(&one), 1, eps_of(t)), what, t, x->m, x->n,
              here);
        wides_free(&one);
        wides_free(&right);
    }
}

static void inverses(duet_dtype t, int64_t n)
{
    stack lead;
    draw_lead(&lead);
    stack a = drawn(&lead, t, n, n, false, 0), x = stack_like(&lead, t, 2, n, n),
          d = stack_like(&lead, t, 0, 0, 0), l = stack_like(&lead, dtype_part(t), 0, 0, 0),
          s = stack_like(&lead, t, 0, 0, 0), e = stack_like(&lead, dtype_part(t), 0, 0, 0);
    const bool done = set(x.m, duet_inv(a.m), "inv") && set(d.m, duet_det(a.m), "det") &&
                      set(l.m, duet_logdet(a.m), "logdet") && FACTOR(duet_slogdet(s.m, e.m, a.m));
    for (int64_t k = 0; k < a.count && done; k++) {
        wides A = matrix_of(&a, k), X = matrix_of(&x, k), D = matrix_of(&d, k), L = matrix_of(&l, k),
              S = matrix_of(&s, k), E = matrix_of(&e, k), unit = wides_unit(n), inverse;
        number det;
        const bool regular = eliminate(&A, &unit, &inverse, &det);
        const wide off = THRESHOLD * (wide)(n + 1) * eps_of(t) * (1 + norm1(&A) * norm1(&inverse));
        small(ratio(norm_rest(NULL, &A, &X), norm1(&A) * norm1(&X), n, eps_of(t)), "inv", t, n, n, here);
        CHECK(!regular || size_of(*D.v - det) <= off * size_of(det), "det is %Lg, not %Lg", real_of(*D.v),
              real_of(det));
        CHECK(!regular || size_of(*L.v - logl(size_of(det))) <= off * (1 + fabsl(logl(size_of(det)))),
              "logdet");
        CHECK(!regular || off > 1 || size_of(*S.v - det / size_of(det)) <= off, "sign");
        CHECK(!regular || size_of(*E.v - *L.v) <= off, "slogdet and logdet differ");
        wides *all[] = { &A, &X, &D, &L, &S, &E, &unit, &inverse };
        for (int i = 0; i < 8; i++) wides_free(all[i]);
    }
    stack *all[] = { &a, &x, &d, &l, &s, &e };
    for (int i = 0; i < 6; i++) stack_end(all[i]);
}

/* The leading axes of the right-hand sides broadcast: they are those of a, none, or ones. A vector is one
 * right-hand side. */
static void solutions(duet_dtype t, int64_t n, int64_t sides)
{
    stack lead;
    draw_lead(&lead);
    stack some = lead;
    const int how = (int)rng_below(&gen, 4);
    if (how == 1) some.lead = 0, some.count = 1;
    for (int a = 0; a < some.lead && how == 2; a++) some.size[a] = 1;
    if (how == 2) some.count = 1;
    const bool vector = how == 3;
    if (vector) some.lead = 0, some.count = 1;
    stack a = drawn(&lead, t, n, n, false, (wide)n), b = stack_like(&some, t, vector ? 1 : 2, n, sides),
          x = stack_like(&lead, t, vector ? 1 : 2, n, sides),
          y = stack_like(&lead, t, vector ? 1 : 2, n, sides),
          z = stack_like(&lead, t, vector ? 1 : 2, n, sides);
    const bool done = set(x.m, duet_solve(a.m, b.m), "solve") &&
                      set(y.m, duet_solve_triangular(a.m, b.m, .lower = 1), "solve_triangular") &&
                      set(z.m, duet_lstsq(a.m, b.m), "lstsq");
    for (int64_t k = 0; k < a.count && done; k++) {
        wides A = matrix_of(&a, k), B = matrix_of(&b, b.count == 1 ? 0 : k), X = matrix_of(&x, k),
              Y = matrix_of(&y, k), Z = matrix_of(&z, k), low = matrix_of(&a, k);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) *at(&low, i, j) = 0;
        check_rest(&B, &A, &X, t, "solve");
        small(ratio(norm_rest(&B, &low, &Y), norm1(&low) * norm1(&Y), n, eps_of(t)), "solve_triangular", t, n,
              1, here);
        small(ratio(norm_rest(&B, &A, &Z), norm1(&A) * (norm1(&Z) + 1), 10 * n, eps_of(t)), "lstsq", t, n, 1,
              here);
        wides *all[] = { &A, &B, &X, &Y, &Z, &low };
        for (int i = 0; i < 6; i++) wides_free(all[i]);
    }
    stack *all[] = { &a, &b, &x, &y, &z };
    for (int i = 0; i < 5; i++) stack_end(all[i]);
}

static void test_solutions(duet_dtype t)
{
    for (int i = 0; i < trials(30); i++) {
        inverses(t, some_size());
        solutions(t, some_size(), rng_below(&gen, 4));
    }
}

/* ---- factors ---- */

static void check_orthogonal(const wides *q, duet_dtype t, const char *what)
{
    wides turned = wides_turned(q);
    small(ratio(norm_rest(NULL, &turned, q), 1, q->m, eps_of(t)), what, t, q->m, q->n, here);
    wides_free(&turned);
}

static wides scaled_columns(const wides *u, const wides *s, int64_t cols)
{
    wides x = wides_new(u->m, cols);
    for (int64_t i = 0; i < u->m; i++)
        for (int64_t j = 0; j < cols; j++) *at(&x, i, j) = j < s->m ? *at(u, i, j) * s->v[j] : 0;
    return x;
}

static void symmetric_factors(duet_dtype t, int64_t n)
{
    stack lead;
    draw_lead(&lead);
    stack a = drawn(&lead, t, n, n, true, 2 * (wide)n), l = stack_like(&lead, t, 2, n, n),
          w = stack_like(&lead, dtype_part(t), 1, n, 0), v = stack_like(&lead, t, 2, n, n),
          alone = stack_like(&lead, dtype_part(t), 1, n, 0);
    const bool done = set(l.m, duet_cholesky(a.m), "cholesky") && FACTOR(duet_eigh(w.m, v.m, a.m)) &&
                      set(alone.m, duet_eigvalsh(a.m), "eigvalsh");
    for (int64_t k = 0; k < a.count && done; k++) {
        wides A = matrix_of(&a, k), L = matrix_of(&l, k), W = matrix_of(&w, k), V = matrix_of(&v, k),
              B = matrix_of(&alone, k), LT = wides_turned(&L), VT = wides_turned(&V),
              VW = scaled_columns(&V, &W, n);
        small(ratio(norm_rest(&A, &L, &LT), norm1(&A), n, eps_of(t)), "cholesky", t, n, n, here);
        small(ratio(norm_rest(&A, &VW, &VT), norm1(&A), n, eps_of(t)), "eigh", t, n, n, here);
        small(ratio(norm_difference(&W, &B), norm1(&A), n, eps_of(t)), "eigvalsh", t, n, n, here);
        check_orthogonal(&V, t, "the vectors of eigh");
        wides *all[] = { &A, &L, &W, &V, &B, &LT, &VT, &VW };
        for (int i = 0; i < 8; i++) wides_free(all[i]);
    }
    stack *all[] = { &a, &l, &w, &v, &alone };
    for (int i = 0; i < 5; i++) stack_end(all[i]);
}

static void rectangular_factors(duet_dtype t, int64_t m, int64_t n, bool full)
{
    stack lead;
    draw_lead(&lead);
    const int64_t k = m < n ? m : n, most = m > n ? m : n;
    stack a = drawn(&lead, t, m, n, false, 0), q = stack_like(&lead, t, 2, m, full ? m : k),
          r = stack_like(&lead, t, 2, full ? m : k, n), u = stack_like(&lead, t, 2, m, full ? m : k),
          s = stack_like(&lead, dtype_part(t), 1, k, 0), vt = stack_like(&lead, t, 2, full ? n : k, n),
          alone = stack_like(&lead, dtype_part(t), 1, k, 0);
    bool done = set(alone.m, duet_svdvals(a.m), "svdvals");
    if (full)
        done = done && FACTOR(duet_qr_complete(q.m, r.m, a.m)) && FACTOR(duet_svd_full(u.m, s.m, vt.m, a.m));
    else done = done && FACTOR(duet_qr(q.m, r.m, a.m)) && FACTOR(duet_svd(u.m, s.m, vt.m, a.m));
    for (int64_t i = 0; i < a.count && done; i++) {
        wides A = matrix_of(&a, i), Q = matrix_of(&q, i), R = matrix_of(&r, i), U = matrix_of(&u, i),
              S = matrix_of(&s, i), VT = matrix_of(&vt, i), B = matrix_of(&alone, i),
              US = scaled_columns(&U, &S, VT.m), V = wides_turned(&VT);
        small(ratio(norm_rest(&A, &Q, &R), norm1(&A), most, eps_of(t)), "qr", t, m, n, here);
        small(ratio(norm_rest(&A, &US, &VT), norm1(&A), most, eps_of(t)), "svd", t, m, n, here);
        small(ratio(norm_difference(&S, &B), norm1(&A), most, eps_of(t)), "svdvals", t, m, n, here);
        check_orthogonal(&Q, t, "Q");
        check_orthogonal(&U, t, "U");
        check_orthogonal(&V, t, "V");
        for (int64_t x = 0; x < R.m; x++)
            for (int64_t y = 0; y < x && y < R.n; y++)
                CHECK(*at(&R, x, y) == 0, "R is not 0 below its diagonal");
        wides *all[] = { &A, &Q, &R, &U, &S, &VT, &B, &US, &V };
        for (int j = 0; j < 9; j++) wides_free(all[j]);
    }
    stack *all[] = { &a, &q, &r, &u, &s, &vt, &alone };
    for (int i = 0; i < 7; i++) stack_end(all[i]);
}

/* L U is P a, with the matrix P of the permutation. */
static void lu_factors(duet_dtype t, int64_t m, int64_t n)
{
    stack lead;
    draw_lead(&lead);
    const int64_t k = m < n ? m : n;
    stack a = drawn(&lead, t, m, n, false, 0), l = stack_like(&lead, t, 2, m, k),
          u = stack_like(&lead, t, 2, k, n), p = stack_like(&lead, DUET_I64, 1, m, 0),
          perm = stack_like(&lead, t, 2, m, m);
    const bool done =
        FACTOR(duet_lu(l.m, u.m, p.m, a.m)) && set(perm.m, duet_permutation_matrix(p.m, t), "P");
    for (int64_t i = 0; i < a.count && done; i++) {
        wides A = matrix_of(&a, i), L = matrix_of(&l, i), U = matrix_of(&u, i), P = matrix_of(&perm, i),
              PA = wides_product(&P, &A);
        small(ratio(norm_rest(&PA, &L, &U), norm1(&A), 4 * (m + 1), eps_of(t)), "lu", t, m, n, here);
        wides *all[] = { &A, &L, &U, &P, &PA };
        for (int j = 0; j < 5; j++) wides_free(all[j]);
    }
    stack *all[] = { &a, &l, &u, &p, &perm };
    for (int i = 0; i < 5; i++) stack_end(all[i]);
}

static void test_factors(duet_dtype t)
{
    for (int i = 0; i < trials(20); i++) {
        symmetric_factors(t, some_size());
        rectangular_factors(t, some_size(), some_size(), false);
        rectangular_factors(t, some_size(), some_size(), true);
        lu_factors(t, some_size(), some_size());
    }
}

/* ---- eigenvalues of any matrix, exponentials, and what is made of others ---- */

/* A V = V diag(w), computed by other operators. */
static void eigen(duet_dtype t, int64_t n)
{
    stack lead;
    draw_lead(&lead);
    const duet_dtype c = dtype_part(t) == DUET_F32 ? DUET_C64 : DUET_C128;
    stack a = drawn(&lead, t, n, n, false, 0), w = stack_like(&lead, c, 1, n, 0),
          v = stack_like(&lead, c, 2, n, n), alone = stack_like(&lead, c, 1, n, 0);
    double rest = 0, sum = 0;
    if (FACTOR(duet_eig(w.m, v.m, a.m)) && set(alone.m, duet_eigvals(a.m), "eigvals") && a.count && n) {
        const duet_expr row = duet_expand_dims(w.m, -2);
        CHECK(duet_item(duet_norm_inf(duet_sub(duet_matmul(duet_cast(a.m, c), v.m), duet_mul(v.m, row))),
                        &rest) == DUET_OK,
              "%s", duet_error());
        CHECK(duet_item(duet_norm_inf(duet_sub(duet_sum_axis(w.m, -1), duet_sum_axis(alone.m, -1))), &sum) ==
                  DUET_OK,
              "%s", duet_error());
        CHECK(rest <= (double)(30 * (n + 1) * 2 * n * eps_of(t)), "A V - V w is %g", rest);
        CHECK(sum <= (double)(30 * (n + 1) * 2 * n * eps_of(t)), "the sums of eigenvalues differ by %g", sum);
    }
    stack *all[] = { &a, &w, &v, &alone };
    for (int i = 0; i < 4; i++) stack_end(all[i]);
}

/* exp(a) exp(-a) is 1, and exp(a) is exp(a / 2)^2. */
static void exponentials(duet_dtype t, int64_t n, double size)
{
    stack lead;
    draw_lead(&lead);
    stack a = drawn(&lead, t, n, n, false, 0), e = stack_like(&lead, t, 2, n, n),
          f = stack_like(&lead, t, 2, n, n), half = stack_like(&lead, t, 2, n, n);
    if (set(e.m, duet_expm(duet_mul(a.m, size)), "expm") &&
        set(f.m, duet_expm(duet_mul(a.m, -size)), "expm") &&
        set(half.m, duet_expm(duet_mul(a.m, size / 2)), "expm"))
        for (int64_t i = 0; i < a.count; i++) {
            wides E = matrix_of(&e, i), F = matrix_of(&f, i), H = matrix_of(&half, i);
            const wide bound = (10 + size) * (wide)(n + 1);
            small(ratio(norm_rest(NULL, &E, &F), norm1(&E) * norm1(&F), (int64_t)bound, eps_of(t)), "exp(-a)",
                  t, n, n, here);
            small(ratio(norm_rest(&E, &H, &H), norm1(&H) * norm1(&H), (int64_t)bound, eps_of(t)),
                  "exp(a / 2)", t, n, n, here);
            wides_free(&E);
            wides_free(&F);
            wides_free(&H);
        }
    stack *all[] = { &a, &e, &f, &half };
    for (int i = 0; i < 4; i++) stack_end(all[i]);
}

/* a P a = a and P a P = P; the powers n and -n are inverses of each other. */
static void made_of_others(duet_dtype t, int64_t m, int64_t n)
{
    stack lead;
    draw_lead(&lead);
    stack a = drawn(&lead, t, m, n, false, 0), p = stack_like(&lead, t, 2, n, m),
          s = drawn(&lead, t, m, m, false, 2 * (wide)m), up = stack_like(&lead, t, 2, m, m),
          down = stack_like(&lead, t, 2, m, m);
    const bool done = set(p.m, duet_pinv(a.m), "pinv") &&
                      set(up.m, duet_matrix_power(s.m, 3), "matrix_power") &&
                      set(down.m, duet_matrix_power(s.m, -3), "matrix_power");
    for (int64_t i = 0; i < a.count && done; i++) {
        wides A = matrix_of(&a, i), P = matrix_of(&p, i), AP = wides_product(&A, &P),
              PA = wides_product(&P, &A), U = matrix_of(&up, i), D = matrix_of(&down, i);
        const wide size = norm1(&A) * norm1(&P) + 1;
        small(ratio(norm_rest(&A, &AP, &A), norm1(&A) * size * size, 10 * (m + n), eps_of(t)), "a P a", t, m,
              n, here);
        small(ratio(norm_rest(&P, &PA, &P), norm1(&P) * size * size, 10 * (m + n), eps_of(t)), "P a P", t, m,
              n, here);
        small(ratio(norm_rest(NULL, &U, &D), norm1(&U) * norm1(&D), 10 * (m + 1), eps_of(t)), "a^3 a^-3", t,
              m, m, here);
        wides *all[] = { &A, &P, &AP, &PA, &U, &D };
        for (int j = 0; j < 6; j++) wides_free(all[j]);
    }
    stack *all[] = { &a, &p, &s, &up, &down };
    for (int i = 0; i < 5; i++) stack_end(all[i]);
}

static void test_others(duet_dtype t)
{
    for (int i = 0; i < trials(20); i++) {
        made_of_others(t, some_size(), some_size());
        eigen(t, some_size());
        exponentials(t, some_size(), 1);
        exponentials(t, some_size(), 0.01);
        exponentials(t, 1 + rng_below(&gen, 4), 6);
    }
}

/* ---- bad input ---- */

static void refused(duet_status got, duet_status want, const char *word, const char *what)
{
    CHECK(got == want && strstr(duet_error(), word), "%s on the %s: status %d, not %d: %s", what,
          place_name(here), (int)got, (int)want, duet_error());
}

static bool is_filled(const duet_matrix *m, double x)
{
    double worst = 1;
    return duet_item(duet_norm_inf(duet_sub(m, x)), &worst) == DUET_OK && worst == 0;
}

#define REFUSED(to, e, status, word)                                                                         \
    do {                                                                                                     \
        CHECK(duet_set(to, 7) == DUET_OK, "%s", duet_error());                                               \
        refused(duet_set_on(here, to, e), status, word, #e);                                                 \
        CHECK(is_filled(to, 7), "%s has changed its destination", #e);                                       \
    } while (0)
#define REFUSES(call, status, word)                                                                          \
    do {                                                                                                     \
        duet_status st_ = DUET_OK;                                                                           \
        DUET_ON(here) st_ = call;                                                                            \
        refused(st_, status, word, #call);                                                                   \
    } while (0)

static void test_bad(duet_dtype t)
{
    const duet_dtype part = dtype_part(t), c = part == DUET_F32 ? DUET_C64 : DUET_C128;
    stack lead = { .lead = 2, .size = { 2, 3 }, .count = 6 };
    stack a = drawn(&lead, t, 4, 4, false, 8);
    duet_matrix *x = duet_new(t, 2, 3, 4, 4), *y = duet_new(t, 2, 3, 4), *v = duet_new(t, 4),
                *d = duet_new(t, 2, 3), *wide_ = duet_new(t, 2, 3, 4, 5), *w = duet_new(c, 2, 3, 4),
                *wrong = duet_new(t, 3, 2, 4, 4), *s = duet_new(part, 2, 3, 4), *one = duet_new(part),
                *vectors = duet_new(c, 2, 3, 4, 4);
    for (int64_t j = 0; j < 4; j++) put_in(&a, 4, 2, j, 0);
    REFUSED(x, duet_inv(a.m), DUET_SINGULAR, "matrix [1,1] of the stack");
    REFUSED(y, duet_solve(a.m, v), DUET_SINGULAR, "matrix [1,1] of the stack");
    REFUSED(x, duet_matrix_power(a.m, -1), DUET_SINGULAR, "matrix [1,1] of the stack");
    put_in(&a, 5, 2, 2, NAN);
    REFUSED(d, duet_det(a.m), DUET_NOT_FINITE, "matrix [1,2] of the stack");
    REFUSED(x, duet_expm(a.m), DUET_NOT_FINITE, "element of a is infinite or NaN");
    REFUSED(w, duet_eigvals(a.m), DUET_NOT_FINITE, "element of a is infinite or NaN");
    REFUSES(duet_eig(w, vectors, a.m), DUET_NOT_FINITE, "matrix [1,2] of the stack");
    REFUSES(duet_svd_full(x, s, wrong, a.m), DUET_BAD_SHAPE, "vt must be");
    put_in(&a, 5, 2, 2, 1e4);
    REFUSED(x, duet_expm(a.m), DUET_NOT_FINITE, "overflows");
    REFUSED(x, duet_inv(wide_), DUET_BAD_SHAPE, "a must be square, not 4 x 5");
    REFUSED(x, duet_solve(a.m, wrong), DUET_BAD_SHAPE, "do not broadcast");
    REFUSED(x, duet_lstsq(wrong, a.m), DUET_BAD_SHAPE, "do not broadcast");
    REFUSED(x, duet_solve(a.m, duet_matmul(wide_, duet_swapaxes(wide_, -1, -2))), DUET_SINGULAR,
            "of the stack");
    REFUSED(d, duet_matrix_norm(v, DUET_NORM_FRO), DUET_BAD_SHAPE, "x must have at least 2 axes, not 1");
    REFUSED(x, duet_pinv(v), DUET_BAD_SHAPE, "a must have at least 2 axes, not 1");
    REFUSED(x, duet_matrix_power(wide_, 2), DUET_BAD_SHAPE, "x must be square, not 4 x 5");
    REFUSED(x, duet_expm(wide_), DUET_BAD_SHAPE, "a must be square, not 4 x 5");
    REFUSED(one, duet_matrix_norm(a.m, (duet_matrix_norms)9), DUET_BAD_ARGUMENT, "kind (9)");
    REFUSED(one, duet_cond(wide_, DUET_NORM_1), DUET_BAD_SHAPE, "x must be square");
    REFUSED(one, duet_vector_norm(a.m, NAN), DUET_BAD_ARGUMENT, "p must not be NaN");
    REFUSED(one, duet_matrix_rank(a.m, NAN), DUET_BAD_ARGUMENT, "rtol must not be NaN");
    REFUSES(duet_eig(s, vectors, a.m), t == part || part != t ? DUET_BAD_TYPE : DUET_OK, "w must be");
    REFUSES(duet_qr(x, wrong, a.m), DUET_BAD_SHAPE, "r must be");
    REFUSES(duet_qr_complete(x, wide_, a.m), DUET_BAD_SHAPE, "r must be");
    REFUSES(duet_eig(w, vectors, wide_), DUET_BAD_SHAPE, "a must be square");
    duet_matrix **all[] = { &x, &y, &v, &d, &wide_, &w, &wrong, &s, &one, &vectors };
    for (int i = 0; i < 10; i++) duet_free(all[i]);
    stack_end(&a);
}

int main(int argc, char **argv)
{
    if (!begin(argc, argv)) return 0;
    each_type(test_solutions, "inverses, solutions, determinants");
    each_type(test_factors, "factors");
    each_type(test_others, "eigenvalues, exponentials, and what is made of others");
    each_type(test_bad, "bad input");
    return tap_end();
}
