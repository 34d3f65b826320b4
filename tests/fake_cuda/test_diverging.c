/* test_diverging.c - results that the fake cuSOLVER does not have: iterations that do not converge, growth
 * in LU, and least squares near the limit of the condition. The CPU computes them, for all types, into views
 * too, unless copies between devices are forbidden. */
#include "dtype.h"
#include "fake_cuda.h"
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <string.h>

enum { N = 33 };

static bool went(duet_status s, const char *what)
{
    return CHECK(s == DUET_OK, "%s: %s", what, duet_error());
}

/* A graded symmetric or Hermitian matrix: elements from 1 to 1e-6. */
static duet_matrix *graded(duet_dtype t)
{
    duet_matrix *a = duet_new(t, N, N);
    char *p = duet_overwrite(a);
    const int parts = dtype_is_complex(t) ? 2 : 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const double size = pow(10, -3.0 * (i + j) / N), angle = i == j ? 0 : (i - j) * 0.7,
                         x[] = { size * cos(angle), size * sin(angle) };
            for (int k = 0; k < parts; k++)
                if (dtype_part(t) == DUET_F32) ((float *)p)[parts * (i * N + j) + k] = (float)x[k];
                else ((double *)p)[parts * (i * N + j) + k] = x[k];
        }
    return a;
}

static bool same_bits(const duet_matrix *x, const duet_matrix *y)
{
    duet_matrix *copy = duet_eval(DUET(y));
    const size_t bytes = (size_t)duet_count(x) * dtypes[duet_type(x)].bytes;
    const bool same = copy && !memcmp(duet_read(x), duet_read(copy), bytes);
    duet_free(&copy);
    return same;
}

/* The next iteration on the GPU diverges; its results are then those of the CPU. */
static void test_eigh(duet_dtype t)
{
    duet_matrix *a = graded(t), *w = duet_new(dtype_part(t), N), *v = duet_new(t, N, N),
                *values = duet_new(dtype_part(t), N), *base = duet_new(t, N, N),
                *turned = duet_transposed(base);
    DUET_ON(DUET_CPU) went(duet_eigh(w, v, a), "eigh on the CPU");
    const uint64_t before = fake_count().solutions;
    fake_diverge(1);
    DUET_ON(DUET_GPU) went(duet_eigh(values, turned, a), "eigh that does not converge");
    CHECK(fake_count().solutions > before, "the GPU was not asked");
    CHECK(same_bits(w, values) && same_bits(v, turned), "the results are not those of the CPU");
    DUET_ON(DUET_CPU) went(duet_set(w, duet_eigvalsh(a)), "eigvalsh on the CPU");
    fake_diverge(1);
    went(duet_set_on(DUET_GPU, values, duet_eigvalsh(a)), "eigvalsh that does not converge");
    CHECK(same_bits(w, values), "the eigenvalues are not those of the CPU");
    went(duet_set_on(DUET_GPU, values, duet_eigvalsh(a)), "eigvalsh that converges");
    duet_free(&a, &w, &v, &values, &turned, &base);
}

static void test_svd(duet_dtype t)
{
    duet_matrix *square = graded(t), *a = duet_submatrix(square, 2, 1, 9, 20), *u = duet_new(t, 9, 9),
                *vt = duet_new(t, 9, 20), *s = duet_new(dtype_part(t), 9), *u2 = duet_new(t, 9, 9),
                *vt2 = duet_new(t, 9, 20), *s2 = duet_new(dtype_part(t), 9);
    DUET_ON(DUET_CPU) went(duet_svd(u, s, vt, a), "svd on the CPU");
    fake_diverge(1);
    DUET_ON(DUET_GPU) went(duet_svd(u2, s2, vt2, a), "svd that does not converge");
    CHECK(same_bits(u, u2) && same_bits(s, s2) && same_bits(vt, vt2), "the results are not those of the CPU");
    DUET_ON(DUET_CPU) went(duet_set(s, duet_svdvals(a)), "svdvals on the CPU");
    fake_diverge(1);
    went(duet_set_on(DUET_GPU, s2, duet_svdvals(a)), "svdvals that do not converge");
    CHECK(same_bits(s, s2), "the singular values are not those of the CPU");
    duet_free(&a, &square, &u, &vt, &s, &u2, &vt2, &s2);
}

/* Wilkinson's matrix, whose elements grow in LU. */
static duet_matrix *growing(duet_dtype t)
{
    duet_matrix *a = duet_new(t, N, N), *x = duet_new(DUET_F64, N, N);
    double *p = duet_overwrite(x);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) p[i * N + j] = i == j || j == N - 1 ? 1 : i > j ? -1 : 0;
    went(duet_set(a, duet_cast(duet_transpose(x), t)), "a matrix");
    duet_free(&x);
    return a;
}

/* How often the host waited, and bytes copied from the GPU, in the statement. */
#define WAITS(statement)                                                                                     \
    ({                                                                                                       \
        const uint64_t before_ = duet_stats().synchronisations;                                              \
        went(statement, #statement);                                                                         \
        (int)(duet_stats().synchronisations - before_);                                                      \
    })

static void test_growth(duet_dtype t)
{
    duet_matrix *a = growing(t), *x = duet_new(t, N, N), *y = duet_new(t, N, N), *l = duet_new(t, N, N),
                *u = duet_new(t, N, N), *p = duet_new(DUET_I64, N);
    went(duet_set_on(DUET_CPU, x, duet_inv(a)), "inv on the CPU");
    went(duet_set_on(DUET_GPU, y, DUET(7)), "a destination on the GPU");
    went(duet_set_on(DUET_GPU, l, duet_add(a, 0)), "the operand on the GPU");
    DUET_FORBID_TRANSFERS
    {
        const uint64_t before = duet_stats().downloads;
        CHECK(duet_set_on(DUET_GPU, y, duet_inv(a)) == DUET_FORBIDDEN, "the CPU computed the result");
        CHECK(strstr(duet_error(), "the GPU has no result"), "\"%s\"", duet_error());
        CHECK(duet_stats().downloads == before, "the operand was copied");
    }
    const int waits = WAITS(duet_set_on(DUET_GPU, y, duet_inv(a)));
    CHECK(waits == 3 || waits == 4, "the host waited %d times", waits);
    CHECK(same_bits(x, y), "the inverse is not that of the CPU");
    duet_matrix *small = duet_new(t, N, N);
    went(duet_set(small, duet_mul(a, dtype_part(t) == DUET_F32 ? 0x1p-140 : 0x1p-1060)), "tiny elements");
    DUET_ON(DUET_CPU) went(duet_lu(l, u, p, small), "lu on the CPU");
    DUET_ON(DUET_GPU) went(duet_lu(x, y, p, small), "lu of tiny elements");
    CHECK(same_bits(l, x) && same_bits(u, y), "the factors of tiny elements are not those of the CPU");
    duet_free(&a, &x, &y, &l, &u, &p, &small);
}

/* x + d i */
static duet_expr line(const duet_matrix *i, double x, double d, duet_dtype t)
{
    return duet_cast(duet_add(duet_mul(i, d), x), t);
}

/* Columns 1 and 1 + d i: the condition is about 1 / (6 d). For the smaller d it is near the limit in f32, so
 * that the GPU solves again in f64. The solution for 3 + e i is 3 - e / d, e / d. */
static void test_condition(duet_dtype t)
{
    enum { ROWS = 40 };
    const bool narrow = dtype_part(t) == DUET_F32;
    const double e = 0x1p-17;
    duet_matrix *a = duet_new(t, ROWS, 2), *b = duet_new(t, ROWS), *x = duet_new(t, 2),
                *i = duet_new(DUET_F64, ROWS), *first = duet_column(a, 0), *second = duet_column(a, 1);
    for (int k = 0; k < ROWS; k++) duet_overwrite_f64(i)[k] = k;
    went(duet_set_on(DUET_GPU, first, DUET(1)), "a column");
    went(duet_set_on(DUET_GPU, b, line(i, 3, e, t)), "right-hand sides");
    for (int far = 0; far < 2; far++) {
        const double d = far ? 1 : e;
        went(duet_set_on(DUET_GPU, second, line(i, 1, d, t)), "a column");
        went(duet_set_on(DUET_GPU, x, DUET(0)), "a destination");
        const uint64_t before = duet_stats().downloads;
        int waits = 0;
        DUET_FORBID_TRANSFERS waits = WAITS(duet_set_on(DUET_GPU, x, duet_lstsq(a, b)));
        CHECK(narrow && !far ? waits > 2 : waits == 1, "the host waited %d times", waits);
        CHECK(duet_stats().downloads == before, "elements were copied from the GPU");
        duet_matrix *real = duet_eval(duet_cast(dtype_is_complex(t) ? duet_real(x) : DUET(x), DUET_F64));
        const double *r = duet_read_f64(real);
        CHECK(fabs(r[0] - 3 + e / d) < 1e-5 && fabs(r[1] - e / d) < 1e-5, "the solution is %g, %g", r[0],
              r[1]);
        duet_free(&real);
    }
    duet_free(&first, &second, &a, &b, &x, &i);
}

int main(void)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_C64, DUET_C128 };
    for (int i = 0; i < 4; i++) test_eigh(types[i]);
    tap_point("eigenvalues");
    for (int i = 0; i < 4; i++) test_svd(types[i]);
    tap_point("singular values");
    for (int i = 0; i < 4; i++) test_growth(types[i]);
    tap_point("growth, and copies that are forbidden");
    for (int i = 0; i < 4; i++) test_condition(types[i]);
    tap_point("least squares near the limit of the condition");
    return tap_end();
}
