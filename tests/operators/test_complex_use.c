/* test_complex_use.c - complex numbers in statements: destinations that are operands, several
 * statements at once, reductions, products, spectra, recordings, streamed parts, bad input; against
 * C99 in long double. */
#include "complex_trial.h"
#include "stream_policy.h"
#ifdef FAKE_CUDA
#include "stream.h"
#endif

/* ---- destinations that are operands ---- */

static void same(const char *name, const struct kind *k, const duet_matrix *m, const number *want,
                 int64_t count, real in_u)
{
    array t = { .rank = 1, .size = { count }, .count = count, .v = (number *)(uintptr_t)want };
    near(name, k, m, &t, in_u);
}

static void aliases(duet_place p)
{
    enum { N = 12 };
    number want[N];
    for (size_t k = 0; k < 2; k++) {
        duet_matrix *x = duet_new(kinds[k].whole, N), *y = duet_new(kinds[k].whole, N),
                    *back = duet_flipped(x, 0);
        duet_matrix *head = duet_slice(x, 0, N - 1), *tail = duet_slice(x, 1, N - 1),
                    *even = duet_stepped(x, 0, 0, DUET_OPEN, 2);
        duet_matrix *odd = duet_stepped(x, 0, 1, DUET_OPEN, 2);
        fill_range(y, &kinds[k], MILD);
        array b = array_of(y), a;
#define BEGIN fill_range(x, &kinds[k], MILD), a = array_of(x)
#define END   array_free(&a)
        BEGIN;
        evaluate(p, x, duet_mul(duet_conj(x), y), "x = conj(x) y");
        for (int i = 0; i < N; i++) want[i] = conjl(a.v[i]) * b.v[i];
        same("x = conj(x) y", &kinds[k], x, want, N, 3);
        END;
        BEGIN;
        CHECK(duet_imul(x, DUET(back)) == DUET_OK, "%s", duet_error());
        for (int i = 0; i < N; i++) want[i] = a.v[i] * a.v[N - 1 - i];
        same("x *= x[::-1]", &kinds[k], x, want, N, 3);
        END;
        BEGIN;
        evaluate(p, tail, duet_mul(head, duet_complex(0, 2)), "x[1:] = 2i x[:-1]");
        for (int i = 0; i < N; i++) want[i] = i ? 2 * I * a.v[i - 1] : a.v[0];
        same("x[1:] = 2i x[:-1]", &kinds[k], x, want, N, 0);
        END;
        BEGIN;
        evaluate(p, even, duet_add(odd, even), "x[::2] += x[1::2]");
        for (int i = 0; i < N; i++) want[i] = i % 2 ? a.v[i] : a.v[i] + a.v[i + 1];
        same("x[::2] += x[1::2]", &kinds[k], x, want, N, 1);
        END;
        BEGIN;
        evaluate(p, x, duet_div(x, duet_abs(x)), "x /= |x|");
        for (int i = 0; i < N; i++) want[i] = a.v[i] == 0 ? NAN : a.v[i] / cabsl(a.v[i]);
        same("x /= |x|", &kinds[k], x, want, N, 6);
        END;
        BEGIN;
        evaluate(p, x, duet_complex(duet_imag(x), duet_real(x)), "x = imag(x) + i real(x)");
        for (int i = 0; i < N; i++) want[i] = cimagl(a.v[i]) + I * creall(a.v[i]);
        same("x = imag(x) + i real(x)", &kinds[k], x, want, N, 0);
        END;
        BEGIN;
        evaluate(p, back, duet_conj(x), "x[::-1] = conj(x)");
        for (int i = 0; i < N; i++) want[i] = conjl(a.v[N - 1 - i]);
        same("x[::-1] = conj(x)", &kinds[k], x, want, N, 0);
        END;
        BEGIN;
        evaluate(p, x, duet_sub(x, duet_mean(x)), "x -= mean(x)");
        number mean = 0;
        real sizes_ = 0;
        for (int i = 0; i < N; i++) {
            mean += a.v[i] / N;
            sizes_ += cabsl(a.v[i]);
        }
        array got = array_of(x);
        for (int i = 0; i < N; i++)
            CHECK(cabsl(got.v[i] - (a.v[i] - mean)) <= kinds[k].u * 2 * (N + 2) * sizes_,
                  "x -= mean(x) is wrong");
        array_free(&got);
        END;
        array_free(&b);
        duet_free(&x);
        duet_free(&y);
        duet_free(&back);
        duet_free(&head);
        duet_free(&tail);
        duet_free(&even);
        duet_free(&odd);
    }
    tap_point("destinations that the formula reads");
}

static void squares(duet_place p)
{
    enum { N = 5 };
    for (size_t k = 0; k < 2; k++) {
        duet_matrix *x = duet_new(kinds[k].whole, N, N), *t = duet_transposed(x);
        number want[N * N];
        fill_range(x, &kinds[k], MILD);
        array a = array_of(x);
        evaluate(p, x, duet_conj(t), "x = conj(x.T)");
        for (int i = 0; i < N * N; i++) want[i] = conjl(a.v[i % N * N + i / N]);
        array w = { .rank = 2, .size = { N, N }, .count = N * N, .v = want };
        near("x = conj(x.T)", &kinds[k], x, &w, 0);
        evaluate(p, x, duet_transpose(duet_mul(x, t)), "x = (x x.T).T, element by element");
        for (int i = 0; i < N * N; i++) want[i] = conjl(a.v[i] * a.v[i % N * N + i / N]);
        near("x = (x x.T).T", &kinds[k], x, &w, 2.2361L);
        fill_range(x, &kinds[k], MILD);
        array b = array_of(x);
        evaluate(p, x, duet_conj(duet_transpose(x)), "x = conj(transpose(x))");
        for (int i = 0; i < N * N; i++) want[i] = conjl(b.v[i % N * N + i / N]);
        near("x = conj(transpose(x))", &kinds[k], x, &w, 0);
        array_free(&b);
        array_free(&a);
        duet_free(&x);
        duet_free(&t);
    }
    tap_point("transposes");
}

static void together(duet_place p)
{
    enum { N = 9 };
    for (size_t k = 0; k < 2; k++) DUET_ON(p)
        {
            duet_matrix *x = duet_new(kinds[k].whole, N), *y = duet_new(kinds[k].whole, N),
                        *r = duet_new(kinds[k].part, N);
            number want[N];
            fill_range(x, &kinds[k], MILD);
            fill_range(y, &kinds[k], MILD);
            array a = array_of(x), b = array_of(y);
            CHECK(duet_set_all({ x, duet_mul(x, y) }, { y, duet_sub(x, y) }, { r, duet_imag(y) },
                               { x, duet_conj(x) }) == DUET_OK,
                  "%s", duet_error());
            for (int i = 0; i < N; i++) want[i] = conjl(a.v[i] * b.v[i]);
            same("first of several", &kinds[k], x, want, N, 3);
            array z = array_of(y), im = array_of(r);
            for (int i = 0; i < N; i++) {
                const real most =
                    kinds[k].u * (4 * cabsl(a.v[i] * b.v[i]) + cabsl(b.v[i])) + 4 * kinds[k].tiny;
                CHECK(cabsl(z.v[i] - (a.v[i] * b.v[i] - b.v[i])) <= most,
                      "second of several statements: element %d is wrong", i);
                CHECK(creall(im.v[i]) == cimagl(z.v[i]), "third of several statements: element %d is wrong",
                      i);
            }
            array_free(&a);
            array_free(&b);
            array_free(&z);
            array_free(&im);
            duet_free(&x);
            duet_free(&y);
            duet_free(&r);
        }
    tap_point("several statements at once");
}

/* A later statement is just a matrix that an earlier one sets: a sum, another matrix, its own
 * reverse, the result of a step. */
static void handed_on(duet_place p)
{
    enum { N = 9 };
    for (size_t k = 0; k < 2; k++) DUET_ON(p)
        {
            duet_matrix *x = duet_new(kinds[k].whole, N), *y = duet_new(kinds[k].whole, N),
                        *back = duet_flipped(x, 0);
            duet_matrix *to[3] = { duet_new(kinds[k].whole, N), duet_new(kinds[k].whole, N),
                                   duet_new(DUET_C128, N) };
            fill_range(x, &kinds[k], MILD);
            for (int i = 0; i < 4; i++) {
                duet_expr e;
                if (i == 0) e = duet_add(x, 1);
                else if (i == 1) e = DUET(x);
                else if (i == 2) e = DUET(back);
                else e = duet_fft(x, 0, 0);
                CHECK(duet_set_all({ y, e }, { to[0], DUET(y) }, { to[1], DUET(to[0]) },
                                   { to[2], DUET(y) }) == DUET_OK,
                      "%s", duet_error());
                array a = array_of(y);
                for (int j = 0; j < 3; j++)
                    same("as an earlier statement set it", &kinds[j < 2 ? k : 1], to[j], a.v, N, 0);
                array_free(&a);
            }
            duet_free(&x);
            duet_free(&y);
            duet_free(&back);
            duet_free(&to[0]);
            duet_free(&to[1]);
            duet_free(&to[2]);
        }
    tap_point("a statement that reads the result of an earlier one");
}

/* ---- reductions ---- */

static real size_of(const number *v, int64_t n)
{
    real sum = 0;
    for (int64_t i = 0; i < n; i++) sum += cabsl(v[i]);
    return sum;
}

static void reduce_whole(duet_place p, const struct kind *k, int64_t n)
{
    duet_matrix *x = duet_new(k->whole, n), *y = duet_new(k->whole, n), *z = duet_new(k->whole),
                *r = duet_new(k->part);
    fill_range(x, k, MILD);
    fill_range(y, k, MILD);
    array a = array_of(x), b = array_of(y);
    number sum = 0, dot = 0;
    real squares_ = 0, dots = 0, var = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += a.v[i];
        dot += a.v[i] * b.v[i];
        dots += cabsl(a.v[i] * b.v[i]);
        squares_ += creall(a.v[i] * conjl(a.v[i]));
    }
    for (int64_t i = 0; i < n; i++) var += creall((a.v[i] - sum / n) * conjl(a.v[i] - sum / n)) / n;
    const real u = k->u * 2 * (real)(n + 4);
#define RESULT(m) (array_of(m).v[0])
#define REDUCES(to, e, want, most)                                                                           \
    do {                                                                                                     \
        evaluate(p, to, e, #e);                                                                              \
        array got = array_of(to);                                                                            \
        CHECK(cabsl(got.v[0] - (want)) <= (most) + 4 * k->tiny, #e " of %d: %Lg%+Lgi", (int)n,               \
              creall(got.v[0]), cimagl(got.v[0]));                                                           \
        array_free(&got);                                                                                    \
    } while (0)
    REDUCES(z, duet_sum(x), sum, u * size_of(a.v, n));
    REDUCES(z, duet_dot(x, y), dot, u * dots);
    REDUCES(r, duet_norm(x), sqrtl(squares_), u * sqrtl(squares_));
    REDUCES(r, duet_any(duet_mul(0, x)), 0, 0);
    REDUCES(r, duet_any(x), size_of(a.v, n) > 0, 0);
    REDUCES(r, duet_all(duet_add(x, 1000)), 1, 0);
    if (n) REDUCES(z, duet_mean(x), sum / n, u * size_of(a.v, n) / n);
    if (n) REDUCES(r, duet_var(x), var, u * squares_);
    if (n)
        REDUCES(r, duet_all(duet_sub(x, duet_mean(duet_sub(x, x)))), 1 - (a.v[0] == 0 && n == 1),
                n == 1 ? 0 : 1);
    array_free(&a);
    array_free(&b);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&r);
}

static void reductions(duet_place p)
{
    static const int64_t counts[] = { 0, 1, 2, 7, 100, 5000 };
    for (size_t k = 0; k < 2; k++) {
        for (int i = 0; i < 6; i++) reduce_whole(p, &kinds[k], counts[i]);
        duet_matrix *x = duet_new(kinds[k].whole, 6, 4, 5), *t = duet_transposed(x),
                    *y = duet_new(kinds[k].whole, 5, 6), *z = duet_new(kinds[k].whole, 5, 1, 6);
        fill_range(x, &kinds[k], MILD);
        evaluate(p, y, duet_sum_axis(t, 1), "sum_axis");
        evaluate(p, z, duet_mean_keep(t, 1), "mean_keep");
        array a = array_of(t), b = array_of(y), c = array_of(z);
        for (int i = 0; i < 30; i++) {
            number sum = 0;
            real most = 0;
            for (int j = 0; j < 4; j++) {
                sum += a.v[i / 6 * 24 + j * 6 + i % 6];
                most += cabsl(a.v[i / 6 * 24 + j * 6 + i % 6]);
            }
            CHECK(cabsl(b.v[i] - sum) <= 8 * kinds[k].u * most, "sum_axis: element %d is wrong", i);
            CHECK(cabsl(c.v[i] - sum / 4) <= 8 * kinds[k].u * most, "mean_keep: element %d is wrong", i);
        }
        array_free(&a);
        array_free(&b);
        array_free(&c);
        duet_free(&x);
        duet_free(&t);
        duet_free(&y);
        duet_free(&z);
    }
    tap_point("reductions");
}

/* ---- products ---- */

static void one_product(duet_place p, const struct kind *k, int64_t m, int64_t n, int64_t l, bool turned,
                        bool conjugate)
{
    duet_matrix *x = duet_new(k->whole, turned ? l : m, turned ? m : l),
                *a = turned ? duet_transposed(x) : duet_reshaped(x, m, l);
    duet_matrix *b = duet_new(k->whole, l, n), *c = duet_new(k->whole, m, n);
    fill_range(x, k, UNIT);
    fill_range(b, k, UNIT);
    evaluate(p, c, duet_matmul(conjugate ? duet_conj(a) : DUET(a), b), "matmul");
    array A = array_of(a), B = array_of(b), C = array_of(c);
    for (int64_t i = 0; i < m * n; i++) {
        number sum = 0;
        real most = 0;
        for (int64_t j = 0; j < l; j++) {
            const number q = conjugate ? conjl(A.v[i / n * l + j]) : A.v[i / n * l + j];
            sum += q * B.v[j * n + i % n];
            most += cabsl(q) * cabsl(B.v[j * n + i % n]);
        }
        CHECK(cabsl(C.v[i] - sum) <= 3 * (real)(l + 2) * k->u * most,
              "matmul of %d x %d x %d: element %d is wrong", (int)m, (int)l, (int)n, (int)i);
    }
    array_free(&A);
    array_free(&B);
    array_free(&C);
    duet_free(&x);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
}

static void products(duet_place p)
{
    static const int64_t size[][3] = { { 1, 1, 1 }, { 3, 4, 5 }, { 17, 1, 9 },  { 1, 8, 30 },
                                       { 0, 3, 2 }, { 3, 2, 0 }, { 33, 40, 70 } };
    for (size_t k = 0; k < 2; k++)
        for (int i = 0; i < 7; i++)
            for (int how = 0; how < 4; how++)
                one_product(p, &kinds[k], size[i][0], size[i][1], size[i][2], how & 1, how > 1);
    duet_matrix *a = duet_new(DUET_C128, 3, 4, 5), *b = duet_new(DUET_C128, 5, 2),
                *c = duet_new(DUET_C128, 3, 4, 2), *v = duet_new(DUET_C128, 5);
    duet_matrix *d = duet_new(DUET_C128, 3, 4, 2), *w = duet_new(DUET_C128, 5, 2);
    fill_range(a, &kinds[1], UNIT);
    fill_range(b, &kinds[1], UNIT);
    fill_range(v, &kinds[1], UNIT);
    evaluate(p, c, duet_matmul(a, b), "batched matmul");
    evaluate(p, d, duet_einsum(a, b, "ijk,kl->ijl"), "einsum");
    array A = array_of(a), B = array_of(b), C = array_of(c), D = array_of(d), V = array_of(v);
    for (int i = 0; i < 24; i++) {
        number sum = 0;
        for (int j = 0; j < 5; j++) sum += A.v[i / 2 * 5 + j] * B.v[j * 2 + i % 2];
        CHECK(cabsl(C.v[i] - sum) <= 60 * kinds[1].u && cabsl(D.v[i] - sum) <= 60 * kinds[1].u,
              "matmul of matrices of rank 3: element %d is wrong", i);
    }
    evaluate(p, w, duet_matmul(duet_outer(v, duet_conj(v)), b), "outer");
    array W = array_of(w);
    for (int i = 0; i < 10; i++) {
        number sum = 0;
        for (int j = 0; j < 5; j++) sum += V.v[i / 2] * conjl(V.v[j]) * B.v[j * 2 + i % 2];
        CHECK(cabsl(W.v[i] - sum) <= 120 * kinds[1].u,
              "product with the matrix v conj(v)': element %d is wrong", i);
    }
    array_free(&A);
    array_free(&B);
    array_free(&C);
    array_free(&D);
    array_free(&V);
    array_free(&W);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&d);
    duet_free(&v);
    duet_free(&w);
    tap_point("matrix products");
}

/* ---- with Fourier transforms ---- */

static void spectra(duet_place p)
{
    enum { N = 24 };
    if (p == DUET_CPU && fft_absent()) return;
    duet_matrix *x = duet_new(DUET_F64, N), *y = duet_new(DUET_F64, N), *z = duet_new(DUET_F64, N),
                *c = duet_new(DUET_C128, N), *d = duet_new(DUET_C128, N);
    fill_range(x, &kinds[1], UNIT);
    fill_range(y, &kinds[1], UNIT);
    fill_range(c, &kinds[1], UNIT);
    evaluate(p, z, duet_irfft(duet_mul(duet_rfft(x, 0, 0), duet_rfft(y, 0, 0)), N, 0),
             "convolution by spectra");
    array a = array_of(x), b = array_of(y), got = array_of(z);
    for (int i = 0; i < N; i++) {
        number sum = 0;
        for (int j = 0; j < N; j++) sum += a.v[j] * b.v[(i - j + N) % N];
        CHECK(cabsl(got.v[i] - sum) <= 64 * N * kinds[1].u, "product of spectra: element %d is wrong", i);
    }
    array_free(&got);
    evaluate(p, z, duet_real(duet_ifft(duet_fft(x, 0, 0), 0, 0)), "real(ifft(fft))");
    got = array_of(z);
    for (int i = 0; i < N; i++)
        CHECK(cabsl(got.v[i] - a.v[i]) <= 64 * kinds[1].u, "real(ifft(fft(x))): element %d is wrong", i);
    array_free(&got);
    evaluate(p, z, duet_abs(duet_fft(c, 0, 0)), "|fft|");
    evaluate(p, d, duet_conj(duet_ifft(duet_conj(duet_fft(c, 0, 0)), 0, 0)), "conj(ifft(conj(fft)))");
    array e = array_of(c), f = array_of(d), g = array_of(z);
    for (int i = 0; i < N; i++) {
        number sum = 0;
        for (int j = 0; j < N; j++) sum += e.v[j] * cexpl(-2 * PI * I * i * j / N);
        CHECK(fabsl(creall(g.v[i]) - cabsl(sum)) <= 64 * N * kinds[1].u, "|fft|: element %d is wrong", i);
        CHECK(cabsl(f.v[i] - e.v[(N - i) % N]) <= 64 * N * kinds[1].u,
              "conj(ifft(conj(fft))): element %d is wrong", i);
    }
    array_free(&a);
    array_free(&b);
    array_free(&e);
    array_free(&f);
    array_free(&g);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&c);
    duet_free(&d);
    tap_point("spectra");
}

/* ---- execution ---- */

static int steps_of(duet_matrix *to, duet_expr e)
{
    char *text = NULL, *at;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(duet_explain(out, to, e) == DUET_OK, "%s", duet_error());
    forget(e);
    fclose(out);
    at = strstr(text, " step");
    const int n = at ? at[-1] - '0' : -1;
    if (n < 0 || n > 9) printf("# %s\n", text);
    free(text);
    return n;
}

static void passes(duet_place p)
{
    duet_matrix *x = duet_new(DUET_C64, 50), *y = duet_new(DUET_C64, 50), *z = duet_new(DUET_C64),
                *r = duet_new(DUET_F32, 50);
    DUET_ON(p)
    {
        CHECK(steps_of(x, duet_mul(duet_conj(x), y)) == 1, "x = conj(x) y takes more than one pass");
        CHECK(steps_of(x, duet_add(duet_mul(DUET(0.5), x), duet_mul(y, y))) == 1,
              "x / 2 + y y takes more than one pass");
        CHECK(steps_of(x, duet_div(x, y)) == 1, "x / y takes more than one pass");
        CHECK(steps_of(r, duet_abs(duet_sub(x, y))) == 1, "|x - y| takes more than one pass");
        CHECK(steps_of(z, duet_sum(x)) == 1, "sum(x) takes more than one pass");
        const duet_counts before = duet_stats();
        for (int i = 0; i < 3; i++)
            CHECK(duet_set(x, duet_mul(x, duet_complex(0, 3 + 2 * i))) == DUET_OK, "%s", duet_error());
        CHECK(duet_stats().plan_misses <= before.plan_misses + 1,
              "statements that differ only in numbers have several plans");
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&r);
    tap_point("a complex formula is computed in one pass");
}

static void replays(duet_place p)
{
    enum { N = 40 };
    DUET_ON(p)
    {
        duet_matrix *x = duet_new(DUET_C64, N), *y = duet_new(DUET_C64, N), *z = duet_new(DUET_C64),
                    *w = duet_new(DUET_C64, N);
        fill_range(x, &kinds[0], UNIT);
        fill_range(y, &kinds[0], UNIT);
        array a = array_of(x), b = array_of(y);
        CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
        CHECK(duet_set(w, duet_mul(x, duet_conj(y))) == DUET_OK &&
                  duet_set(z, duet_sum(duet_div(w, duet_complex(2, 1)))) == DUET_OK,
              "%s", duet_error());
        duet_recording *r = duet_record_end();
        CHECK(r != NULL, "%s", duet_error());
        for (int turn = 0; turn < 3; turn++) {
            void *q = duet_overwrite(x);
            for (int i = 0; i < N; i++) put(q, DUET_C64, i, a.v[i] * (1 << turn));
            CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
            number sum = 0;
            real most = 0;
            for (int i = 0; i < N; i++) {
                sum += a.v[i] * conjl(b.v[i]) * (1 << turn) / (2 + I);
                most += cabsl(a.v[i] * b.v[i]) * (1 << turn);
            }
            array got = array_of(z);
            CHECK(cabsl(got.v[0] - sum) <= 2 * (N + 12) * kinds[0].u * most, "turn %d: %Lg%+Lgi", turn,
                  creall(got.v[0]), cimagl(got.v[0]));
            array_free(&got);
        }
        duet_recording_free(&r);
        array_free(&a);
        array_free(&b);
        duet_free(&x);
        duet_free(&y);
        duet_free(&z);
        duet_free(&w);
    }
    tap_point("recording and replay");
}

/* ---- bad input ---- */

static void bad(void)
{
    duet_matrix *z = duet_new(DUET_C64, 2, 3), *w = duet_new(DUET_C64, 4), *f = duet_new(DUET_F32, 2, 3),
                *i = duet_new(DUET_I32, 3);
    REFUSED(duet_less(z, z), DUET_BAD_TYPE, "duet_less(x: c64[2,3], y: c64[2,3])",
            "complex elements are not supported");
    REFUSED(duet_maximum(z, 1), DUET_BAD_TYPE, "duet_maximum(x: c64[2,3], y: 1)",
            "complex elements are not supported");
    REFUSED(duet_floor(z), DUET_BAD_TYPE, "duet_floor(x: c64[2,3])", "complex elements are not supported");
    REFUSED(duet_max(z), DUET_BAD_TYPE, "duet_max(x: c64[2,3])", "complex elements are not supported");
    REFUSED(duet_cumprod(z, 0), DUET_BAD_TYPE, "duet_cumprod(x: c64[2,3])", "x must be real");
    REFUSED(duet_softmax(z), DUET_BAD_TYPE, "duet_softmax(x: c64[2,3])",
            "complex elements are not supported");
    REFUSED(duet_add(z, w), DUET_BAD_SHAPE, "duet_add(x: c64[2,3], y: c64[4])", "broadcast");
    REFUSED(duet_add(z, i), DUET_BAD_TYPE, "duet_add(x: c64[2,3], y: i32[3])", "duet_cast");
    REFUSED(duet_cast(z, DUET_F32), DUET_BAD_TYPE, "duet_cast(x: c64[2,3])", "duet_real");
    REFUSED(duet_complex(z, f), DUET_BAD_TYPE, "duet_complex(x: c64[2,3], y: f32[2,3])",
            "must be real and floating point");
    REFUSED(duet_complex(f, w), DUET_BAD_TYPE, "duet_complex(x: f32[2,3], y: c64[4])",
            "must be real and floating point");
    REFUSED(duet_complex(i, 1), DUET_BAD_TYPE, "duet_complex(x: i32[3]", "must be real and floating point");
    REFUSED(duet_complex(f, duet_real(w)), DUET_BAD_SHAPE, "duet_complex(x: f32[2,3], y: f32[4])",
            "broadcast");
    REFUSED(duet_real(i), DUET_BAD_TYPE, "duet_real(x: i32[3])", "x must be floating point");
    REFUSED(duet_where(z, z, z), DUET_BAD_TYPE, "duet_where(condition: c64[2,3]", "condition must be real");
    REFUSED(duet_matmul(z, duet_transpose(f)), DUET_BAD_TYPE, "duet_matmul(x: c64[2,3], y: f32[3,2])",
            "same element type");
    REFUSED(duet_matmul(z, z), DUET_BAD_SHAPE, "duet_matmul(x: c64[2,3], y: c64[2,3])",
            "the columns of x (3)");
    REFUSED(duet_add(duet_complex(1, 2), 3), DUET_BAD_TYPE, "duet_add(x: a complex number, y: 3)",
            "a complex number");
    REFUSED(duet_sum(duet_complex(1, 2)), DUET_BAD_TYPE, "duet_sum(x: a complex number)", "a complex number");
    REFUSED(duet_add(duet_complex(1, 2), i), DUET_BAD_TYPE, "duet_add(x: a complex number, y: i32[3])",
            "floating point or complex");
    REFUSED(duet_conj(duet_complex(1, 2)), DUET_BAD_TYPE, "duet_conj(x: a complex number)",
            "a complex number");
    CHECK(duet_set(f, z) == DUET_BAD_TYPE && strstr(duet_error(), "duet_set(m: f32[2,3], e: c64[2,3])"), "%s",
          duet_error());
    CHECK(duet_set(f, duet_complex(1, 2)) == DUET_BAD_TYPE, "%s", duet_error());
    CHECK(duet_set(w, z) == DUET_BAD_SHAPE, "%s", duet_error());
    CHECK(duet_set(z, duet_cast(z, DUET_C128)) == DUET_BAD_TYPE, "%s", duet_error());
    duet_free(&z);
    duet_free(&w);
    duet_free(&f);
    duet_free(&i);
    tap_point("invalid arguments");
}

#ifdef FAKE_CUDA
/* A statement that exceeds device memory is streamed, with both real planes. */
static void streamed(void)
{
    enum { N = 3000, M = 8 };
    duet_matrix *x = duet_new(DUET_C64, N, M), *y = duet_new(DUET_C64, N, M), *z = duet_new(DUET_C64, N, M);
    plan_fusion(MODE_MACHINE);
    fill_range(x, &kinds[0], MILD);
    fill_range(y, &kinds[0], MILD);
    stream_from(0);
    stream_staged_from(0);
    duet_memory_trim();
    CHECK(duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used + 120000) == DUET_OK, "%s", duet_error());
    const uint64_t before = duet_stats().streams;
    evaluate(DUET_GPU, z, duet_mul(duet_conj(x), y), "streamed");
    CHECK(duet_stats().streams == before + 1, "the statement was not streamed");
    array a = array_of(x), b = array_of(y), want = array_new(2, (int64_t[]){ N, M });
    for (int i = 0; i < N * M; i++) want.v[i] = conjl(a.v[i]) * b.v[i];
    near("streamed", &kinds[0], z, &want, 2.2361L);
    evaluate(DUET_GPU, x, duet_conj(x), "streamed in place");
    for (int i = 0; i < N * M; i++) want.v[i] = conjl(a.v[i]);
    near("streamed in place", &kinds[0], x, &want, 0);
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
    array_free(&a);
    array_free(&b);
    array_free(&want);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    tap_point("streamed statements");
}
#endif

/* Joined arrays that are kept in memory: they consist of pieces, not of halves. */
static void joined(duet_place p)
{
    enum { N = 12 };
    number want[N];
    for (size_t k = 0; k < 2; k++) {
        duet_matrix *x = duet_new(kinds[k].whole, N), *y = duet_new(kinds[k].whole, N),
                    *z = duet_new(kinds[k].whole, N);
        fill_range(x, &kinds[k], MILD);
        fill_range(y, &kinds[k], MILD);
        array a = array_of(x), b = array_of(y);
        for (int i = 0; i < N; i++) want[i] = a.v[i] + b.v[(i + N - 3) % N];
        evaluate(p, z, duet_add(x, duet_checkpoint(duet_roll(y, 3, 0))), "x + checkpoint(roll(y))");
        same("x + checkpoint(roll(y))", &kinds[k], z, want, N, 1);
        for (int i = 0; i < N; i++) want[i] = a.v[i] * (b.v[(i + N - 3) % N] + 1);
        duet_status s = DUET_OK;
        DUET_ON(p) s = duet_set_all({ z, duet_roll(y, 3, 0) }, { x, duet_mul(x, duet_add(z, 1)) });
        CHECK(s == DUET_OK, "%s", duet_error());
        same("z = roll(y), x = x (z + 1)", &kinds[k], x, want, N, 6);
        array_free(&a), array_free(&b);
        duet_free(&x, &y, &z);
    }
    tap_point("checkpoints and statements of joined arrays");
}

static void all(duet_place p, int mode)
{
    aliases(p);
    squares(p);
    together(p);
    joined(p);
    handed_on(p);
    reductions(p);
    products(p);
    spectra(p);
    replays(p);
    if (mode == MODE_MACHINE) passes(p);
}

int main(int count, char **argument)
{
    gen = rng_new(count > 1 ? strtoull(argument[1], NULL, 10) : 20);
    bad();
    each_mode(all);
#ifdef FAKE_CUDA
    streamed();
#endif
    return tap_end();
}
