/* jacobi.c - the pretended cuSOLVER's eigenvalues and singular values, by Jacobi's rotations in f64. */
#include "calls.h"

/* Makes columns p and q of n elements orthogonal, turning those of v alike. Were they so? */
static bool rotate(double *a, double *v, int64_t m, int64_t n, int64_t p, int64_t q)
{
    double *x = a + p * m, *y = a + q * m, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < m; i++) xx += x[i] * x[i], yy += y[i] * y[i], xy += x[i] * y[i];
    if (fabs(xy) <= 1e-16 * sqrt(xx) * sqrt(yy) || xy == 0) return true;
    const double zeta = (yy - xx) / (2 * xy), t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta)), cosine = 1 / hypot(1, t),
                 sine = cosine * t;
    for (int64_t i = 0; i < m; i++) {
        const double s = x[i];
        x[i] = cosine * s - sine * y[i], y[i] = sine * s + cosine * y[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const double s = v[i + p * n];
        v[i + p * n] = cosine * s - sine * v[i + q * n], v[i + q * n] = sine * s + cosine * v[i + q * n];
    }
    return false;
}

static double length_of(const double *x, int64_t m)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < m; i++) most = fmax(most, fabs(x[i]));
    for (int64_t i = 0; i < m && most > 0; i++) sum += x[i] / most * (x[i] / most);
    return most * sqrt(sum);
}

/* a (m x n, m >= n) becomes U diag(w), v the V of its singular value decomposition. */
static void one_sided(double *a, double *v, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    bool done = false;
    for (int turn = 0; turn < 60 && !done; turn++) {
        done = true;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) done &= rotate(a, v, m, n, p, q);
    }
}

/* x, of m elements, becomes a unit vector orthogonal to the first k of u. */
static void complete(double *u, int64_t m, int64_t k)
{
    double *x = u + k * m;
    for (int64_t e = 0; e < m; e++) {
        for (int64_t i = 0; i < m; i++) x[i] = i == e;
        for (int turn = 0; turn < 2; turn++)
            for (int64_t j = 0; j < k; j++) {
                double dot = 0;
                for (int64_t i = 0; i < m; i++) dot += x[i] * u[i + j * m];
                for (int64_t i = 0; i < m; i++) x[i] -= dot * u[i + j * m];
            }
        const double length = length_of(x, m);
        for (int64_t i = 0; i < m; i++) x[i] /= length > 0 ? length : 1;
        if (length > 0.5 / sqrt((double)m)) return;
    }
}

static void swap_columns(double *a, int64_t m, int64_t p, int64_t q)
{
    for (int64_t i = 0; i < m; i++) {
        const double x = a[i + p * m];
        a[i + p * m] = a[i + q * m], a[i + q * m] = x;
    }
}

/* In descending order, u's columns of length 1. */
static void sort_values(double *u, double *v, double *w, int64_t m, int64_t n)
{
    double most = 0;
    for (int64_t j = 0; j < n; j++) w[j] = length_of(u + j * m, m), most = fmax(most, w[j]);
    for (int64_t j = 0; j < n; j++) {
        int64_t p = j;
        for (int64_t i = j + 1; i < n; i++)
            if (w[i] > w[p]) p = i;
        const double x = w[j];
        w[j] = w[p], w[p] = x;
        if (p != j) swap_columns(u, m, j, p), swap_columns(v, n, j, p);
        if (w[j] > 1e-15 * most)
            for (int64_t i = 0; i < m; i++) u[i + j * m] /= w[j];
        else complete(u, m, j);
    }
}

static void gesvd(void *args)
{
    const call *c = args;
    const int64_t m = c->m, n = c->n;
    double *u = fake_alloc((size_t)(m * n + n * n + n) * sizeof *u), *v = u + m * n, *w = v + n * n;
    spoil(c), *c->info = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) u[i + j * m] = A(i, j);
    one_sided(u, v, m, n), sort_values(u, v, w, m, n);
    for (int64_t j = 0; j < n; j++) put(c, c->w, j, w[j]);
    for (int64_t j = 0; j < n && c->b; j++)
        for (int64_t i = 0; i < m; i++) SET_B(i, j, u[i + j * m]);
    for (int64_t j = 0; j < n && c->c; j++)
        for (int64_t i = 0; i < n; i++) put(c, c->c, i + j * c->ldc, v[j + i * n]);
    fake_free(u);
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params, signed char jobu, signed char jobvt,
                                             int64_t m, int64_t n, cudaDataType_t type, const void *a, int64_t lda,
                                             cudaDataType_t type_s, const void *w, cudaDataType_t type_u, const void *u,
                                             int64_t ldu, cudaDataType_t type_vt, const void *vt, int64_t ldvt,
                                             cudaDataType_t compute, size_t *bytes, size_t *host_bytes)
{
    return *bytes = ROOM, *host_bytes = HOST_ROOM, said(!fake_vendor_fails() && m >= n);
}

cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t h, cusolverDnParams_t params, signed char jobu, signed char jobvt, int64_t m,
                                  int64_t n, cudaDataType_t type, void *a, int64_t lda, cudaDataType_t type_s, void *w,
                                  cudaDataType_t type_u, void *u, int64_t ldu, cudaDataType_t type_vt, void *vt, int64_t ldvt,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host, size_t host_bytes, int *info)
{
    call c = { .wide = type == CUDA_R_64F,
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
    bool fits =
        owns(&c, a, m, n, lda) && owns(&c, w, n, 1, n) && m >= n && bytes == ROOM && (u != NULL) == (jobu == 'S') && ldu >= m;
    if (u) fits &= owns(&c, u, m, n, ldu) && owns(&c, vt, n, n, ldvt);
    return said(queue_call(h, gesvd, &c, fits && host_bytes == HOST_ROOM));
}

/* Two-sided rotations of a symmetric matrix; its vectors in v. */
static void two_sided(double *a, double *v, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    for (int turn = 0; turn < 60; turn++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                if (a[p + q * n] == 0) continue;
                const double theta = (a[q + q * n] - a[p + p * n]) / (2 * a[p + q * n]);
                const double t = copysign(1, theta) / (fabs(theta) + hypot(1, theta)), cosine = 1 / hypot(1, t),
                             sine = t * cosine;
                for (int64_t i = 0; i < n; i++) {
                    const double x = a[i + p * n], y = a[i + q * n], s = v[i + p * n], r = v[i + q * n];
                    a[i + p * n] = cosine * x - sine * y, a[i + q * n] = sine * x + cosine * y;
                    v[i + p * n] = cosine * s - sine * r, v[i + q * n] = sine * s + cosine * r;
                }
                for (int64_t i = 0; i < n; i++) {
                    const double x = a[p + i * n], y = a[q + i * n];
                    a[p + i * n] = cosine * x - sine * y, a[q + i * n] = sine * x + cosine * y;
                }
                a[p + q * n] = a[q + p * n] = 0;
            }
}

static void syevd(void *args)
{
    const call *c = args;
    const int64_t n = c->n;
    double *a = fake_alloc((size_t)(2 * n * n + 1) * sizeof *a), *v = a + n * n;
    spoil(c), *c->info = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++) a[i + j * n] = a[j + i * n] = A(i, j);
    two_sided(a, v, n);
    for (int64_t j = 0; j < n; j++) {
        int64_t p = j;
        for (int64_t i = j + 1; i < n; i++)
            if (a[i + i * n] < a[p + p * n]) p = i;
        const double x = a[j + j * n];
        a[j + j * n] = a[p + p * n], a[p + p * n] = x;
        if (p != j) swap_columns(v, n, j, p);
        put(c, c->w, j, a[j + j * n]);
        for (int64_t i = 0; i < n && c->flag[0]; i++) SET_A(i, j, v[i + j * n]);
    }
    fake_free(a);
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params, cusolverEigMode_t mode,
                                             cublasFillMode_t part, int64_t n, cudaDataType_t type, const void *a, int64_t lda,
                                             cudaDataType_t type_w, const void *w, cudaDataType_t compute, size_t *bytes,
                                             size_t *host_bytes)
{
    return *bytes = ROOM, *host_bytes = HOST_ROOM, said(!fake_vendor_fails() && part == CUBLAS_FILL_MODE_UPPER);
}

cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t h, cusolverDnParams_t params, cusolverEigMode_t mode, cublasFillMode_t part,
                                  int64_t n, cudaDataType_t type, void *a, int64_t lda, cudaDataType_t type_w, void *w,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host, size_t host_bytes, int *info)
{
    call c = { .wide = type == CUDA_R_64F,
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
    return said(
        queue_call(h, syevd, &c, owns(&c, a, n, n, lda) && owns(&c, w, n, 1, n) && bytes == ROOM && host_bytes == HOST_ROOM));
}
