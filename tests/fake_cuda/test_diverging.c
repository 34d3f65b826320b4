/* test_diverging.c - iterations of the fake cuSOLVER that do not converge: the CPU computes the result,
 * for all types, into views too. */
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

int main(void)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_C64, DUET_C128 };
    for (int i = 0; i < 4; i++) test_eigh(types[i]);
    tap_point("eigenvalues");
    for (int i = 0; i < 4; i++) test_svd(types[i]);
    tap_point("singular values");
    return tap_end();
}
