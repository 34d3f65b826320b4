/* jacobi.c - eigenvalues and singular values of the fake cuSOLVER, by Jacobi rotations in f64. */
#include "calls.h"
#include "fake_cuda.h"

/* ---- iterations that do not converge ---- */

static int diverging;

void fake_diverge(int calls) { __atomic_store_n(&diverging, calls, __ATOMIC_SEQ_CST); }

/* Work of several streams may run at the same time, but tests let only one stream diverge. */
static bool diverges(void)
{
    const int left = __atomic_load_n(&diverging, __ATOMIC_SEQ_CST);
    if (left > 0) __atomic_store_n(&diverging, left - 1, __ATOMIC_SEQ_CST);
    return left > 0;
}

/* Sets the status to a number of values that have not converged, and changes one of them. */
static void end_iteration(const call *c)
{
    if (!diverges() || !c->n) return;
    *c->info = 3;
    put_value(c, c->w, 0, 12345);
}

/* ---- rotations ---- */

static double norm2(number x) { return creal(x) * creal(x) + cimag(x) * cimag(x); }

/* A number of magnitude 1, however small x is; 1 for real x, so that real numbers keep their sign. */
static number phase(number x)
{
    const double most = fmax(fabs(creal(x)), fabs(cimag(x)));
    const number near = over(x, most);
    if (cimag(x) == 0) return 1;
    return over(near, cabs(near));
}

/* Rotates two columns, after multiplying the second one by a number of magnitude 1. */
static void turn_columns(number *x, number *y, int64_t n, double cosine, double sine, number by)
{
    for (int64_t i = 0; i < n; i++) {
        const number s = x[i], r = y[i] * by;
        x[i] = cosine * s - sine * r;
        y[i] = sine * s + cosine * r;
    }
}

/* Makes columns p and q of m elements orthogonal and applies the same rotation to v. Returns
 * whether they were orthogonal already. q is multiplied first, so that the inner product is real. */
static bool rotate(number *a, number *v, int64_t m, int64_t n, int64_t p, int64_t q)
{
    number *x = a + p * m, *y = a + q * m, common = 0;
    double xx = 0, yy = 0;
    for (int64_t i = 0; i < m; i++) {
        xx += norm2(x[i]);
        yy += norm2(y[i]);
        common += conj(x[i]) * y[i];
    }
    if (cabs(common) <= 1e-16 * sqrt(xx) * sqrt(yy) || common == 0) return true;
    const number back = conj(phase(common));
    const double xy = creal(common * back), zeta = (yy - xx) / (2 * xy),
                 t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta)), cosine = 1 / hypot(1, t),
                 sine = cosine * t;
    turn_columns(x, y, m, cosine, sine, back);
    turn_columns(v + p * n, v + q * n, n, cosine, sine, back);
    return false;
}

static double length_of(const number *x, int64_t m)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < m; i++) most = fmax(most, cabs(x[i]));
    for (int64_t i = 0; i < m && most > 0; i++) sum += norm2(x[i] / most);
    return most * sqrt(sum);
}

/* Replaces a (m x n, m >= n) by U diag(w) and sets v to V of the singular value decomposition. */
static void one_sided(number *a, number *v, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    bool done = false;
    for (int turn = 0; turn < 60 && !done; turn++) {
        done = true;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) done &= rotate(a, v, m, n, p, q);
    }
}

/* Makes x, with m elements, a unit vector orthogonal to the first k columns of u. */
static void complete(number *u, int64_t m, int64_t k)
{
    number *x = u + k * m;
    for (int64_t e = 0; e < m; e++) {
        for (int64_t i = 0; i < m; i++) x[i] = i == e;
        for (int turn = 0; turn < 2; turn++)
            for (int64_t j = 0; j < k; j++) {
                number dot = 0;
                for (int64_t i = 0; i < m; i++) dot += x[i] * conj(u[i + j * m]);
                for (int64_t i = 0; i < m; i++) x[i] -= dot * u[i + j * m];
            }
        const double length = length_of(x, m);
        for (int64_t i = 0; i < m; i++) x[i] /= length > 0 ? length : 1;
        if (length > 0.5 / sqrt((double)m)) return;
    }
}

static void swap_columns(number *a, int64_t m, int64_t p, int64_t q)
{
    for (int64_t i = 0; i < m; i++) {
        const number x = a[i + p * m];
        a[i + p * m] = a[i + q * m];
        a[i + q * m] = x;
    }
}

/* Sorts in descending order and normalises the columns of u. */
static void sort_values(number *u, number *v, double *w, int64_t m, int64_t n)
{
    double most = 0;
    for (int64_t j = 0; j < n; j++) {
        w[j] = length_of(u + j * m, m);
        most = fmax(most, w[j]);
    }
    for (int64_t j = 0; j < n; j++) {
        int64_t p = j;
        for (int64_t i = j + 1; i < n; i++)
            if (w[i] > w[p]) p = i;
        const double x = w[j];
        w[j] = w[p];
        w[p] = x;
        if (p != j) {
            swap_columns(u, m, j, p);
            swap_columns(v, n, j, p);
        }
        if (w[j] > 1e-15 * most)
            for (int64_t i = 0; i < m; i++) u[i + j * m] /= w[j];
        else complete(u, m, j);
    }
}

/* Adds orthonormal columns to the first n of b, by the Gram-Schmidt process from unit vectors. */
static void complete_columns(const call *c, int64_t m, int64_t n)
{
    int64_t unit = 0;
    for (int64_t j = n; j < m && unit < m; unit++) {
        double size = 0;
        for (int64_t i = 0; i < m; i++) SET_B(i, j, i == unit);
        for (int turn = 0; turn < 2; turn++)
            for (int64_t k = 0; k < j; k++) {
                number dot = 0;
                for (int64_t i = 0; i < m; i++) dot += conj(B(i, k)) * B(i, j);
                for (int64_t i = 0; i < m; i++) SET_B(i, j, B(i, j) - dot * B(i, k));
            }
        for (int64_t i = 0; i < m; i++) size += creal(B(i, j) * conj(B(i, j)));
        if (!(size > 0.01 / (double)m)) continue;
        for (int turn = 0; turn < 2; turn++) {
            size = 0;
            for (int64_t i = 0; i < m; i++) size += creal(B(i, j) * conj(B(i, j)));
            for (int64_t i = 0; i < m; i++) SET_B(i, j, B(i, j) / sqrt(size));
        }
        j++;
    }
}

static void gesvd(void *args)
{
    const call *c = args;
    const int64_t m = c->m, n = c->n;
    number *u = fake_alloc((size_t)(m * n + n * n + n) * sizeof *u), *v = u + m * n;
    double *w = (double *)(v + n * n);
    spoil(c);
    *c->info = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) u[i + j * m] = A(i, j);
    one_sided(u, v, m, n);
    sort_values(u, v, w, m, n);
    for (int64_t j = 0; j < n; j++) put_value(c, c->w, j, w[j]);
    for (int64_t j = 0; j < n && c->b; j++)
        for (int64_t i = 0; i < m; i++) SET_B(i, j, u[i + j * m]);
    if (c->flag[0]) complete_columns(c, m, n);
    for (int64_t j = 0; j < n && c->c; j++)
        for (int64_t i = 0; i < n; i++) put(c, c->c, i + j * c->ldc, conj(v[j + i * n]));
    end_iteration(c);
    fake_free(u);
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params,
                                             signed char jobu, signed char jobvt, int64_t m, int64_t n,
                                             cudaDataType_t type, const void *a, int64_t lda,
                                             cudaDataType_t type_s, const void *w, cudaDataType_t type_u,
                                             const void *u, int64_t ldu, cudaDataType_t type_vt,
                                             const void *vt, int64_t ldvt, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes)
{
    *bytes = ROOM;
    *host_bytes = HOST_ROOM;
    return said(!fake_vendor_fails() && m >= n);
}

cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t h, cusolverDnParams_t params, signed char jobu,
                                  signed char jobvt, int64_t m, int64_t n, cudaDataType_t type, void *a,
                                  int64_t lda, cudaDataType_t type_s, void *w, cudaDataType_t type_u, void *u,
                                  int64_t ldu, cudaDataType_t type_vt, void *vt, int64_t ldvt,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .m = m,
               .n = n,
               .a = a,
               .lda = lda,
               .w = w,
               .b = u,
               .ldb = ldu,
               .c = vt,
               .ldc = ldvt,
               .room = room,
               .bytes = bytes,
               .host = host,
               .host_bytes = host_bytes,
               .info = info };
    c.flag[0] = jobu == 'A';
    bool fits = owns(&c, a, m, n, lda) && owns_values(&c, w, n) && type_s == part_of_type(type) &&
                type_u == type && type_vt == type && compute == type && m >= n && bytes == ROOM &&
                (u != NULL) == (jobu != 'N') && ldu >= m;
    if (u) fits &= owns(&c, u, m, jobu == 'A' ? m : n, ldu) && owns(&c, vt, n, n, ldvt);
    return said(queue_call(h, gesvd, &c, fits && host_bytes == HOST_ROOM));
}

/* Rotates rows p and q like columns, with the conjugate. */
static void turn_rows(number *a, int64_t n, int64_t p, int64_t q, double cosine, double sine, number by)
{
    for (int64_t i = 0; i < n; i++) {
        const number x = a[p + i * n], y = a[q + i * n] * conj(by);
        a[p + i * n] = cosine * x - sine * y;
        a[q + i * n] = sine * x + cosine * y;
    }
}

/* Two-sided rotations of a Hermitian matrix; v receives the eigenvectors. */
static void two_sided(number *a, number *v, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    for (int turn = 0; turn < 60; turn++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                const number common = a[p + q * n], back = conj(phase(common));
                if (common == 0) continue;
                const double theta = creal(a[q + q * n] - a[p + p * n]) / (2 * creal(common * back));
                const double t = copysign(1, theta) / (fabs(theta) + hypot(1, theta)),
                             cosine = 1 / hypot(1, t), sine = t * cosine;
                turn_columns(a + p * n, a + q * n, n, cosine, sine, back);
                turn_columns(v + p * n, v + q * n, n, cosine, sine, back);
                turn_rows(a, n, p, q, cosine, sine, back);
                a[p + q * n] = a[q + p * n] = 0;
            }
}

static void syevd(void *args)
{
    const call *c = args;
    const int64_t n = c->n;
    const bool sound = has_real_diagonal(c);
    number *a = fake_alloc((size_t)(2 * n * n + 1) * sizeof *a), *v = a + n * n;
    spoil(c);
    if (sound) *c->info = 0;
    else *c->info = -5;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++) {
            a[i + j * n] = A(i, j);
            a[j + i * n] = conj(A(i, j));
        }
    two_sided(a, v, n);
    for (int64_t j = 0; j < n; j++) {
        int64_t p = j;
        for (int64_t i = j + 1; i < n; i++)
            if (creal(a[i + i * n]) < creal(a[p + p * n])) p = i;
        const number x = a[j + j * n];
        a[j + j * n] = a[p + p * n];
        a[p + p * n] = x;
        if (p != j) swap_columns(v, n, j, p);
        put_value(c, c->w, j, creal(a[j + j * n]));
        for (int64_t i = 0; i < n && c->flag[0]; i++) SET_A(i, j, v[i + j * n]);
    }
    end_iteration(c);
    fake_free(a);
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params,
                                             cusolverEigMode_t mode, cublasFillMode_t part, int64_t n,
                                             cudaDataType_t type, const void *a, int64_t lda,
                                             cudaDataType_t type_w, const void *w, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes)
{
    *bytes = ROOM;
    *host_bytes = HOST_ROOM;
    return said(!fake_vendor_fails() && part == CUBLAS_FILL_MODE_UPPER);
}

cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t h, cusolverDnParams_t params, cusolverEigMode_t mode,
                                  cublasFillMode_t part, int64_t n, cudaDataType_t type, void *a, int64_t lda,
                                  cudaDataType_t type_w, void *w, cudaDataType_t compute, void *room,
                                  size_t bytes, void *host, size_t host_bytes, int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .flag = { mode == CUSOLVER_EIG_MODE_VECTOR },
               .n = n,
               .a = a,
               .lda = lda,
               .w = w,
               .room = room,
               .bytes = bytes,
               .host = host,
               .host_bytes = host_bytes,
               .info = info };
    return said(queue_call(h, syevd, &c,
                           owns(&c, a, n, n, lda) && owns_values(&c, w, n) && type_w == part_of_type(type) &&
                               compute == type && bytes == ROOM && host_bytes == HOST_ROOM));
}
