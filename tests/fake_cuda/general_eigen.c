/* general_eigen.c - the fake cuSOLVER's eigenvalues of any square matrix: the shifted QR algorithm by
 * rotations, on a Hessenberg matrix of complex f64. */
#include "calls.h"

#define H(i, j) h[(i) + (j)*n]
#define Z(i, j) z[(i) + (j)*n]

/* Rotates rows p and q, so that H(q, col) becomes 0, and columns p and q of both matrices back. */
static void rotate(number *h, number *z, int64_t n, int64_t p, int64_t q, int64_t col)
{
    const double size = hypot(cabs(H(p, col)), cabs(H(q, col)));
    if (H(q, col) == 0) return;
    const number c = H(p, col) / size, s = H(q, col) / size;
    for (int64_t j = 0; j < n; j++) {
        const number x = H(p, j), y = H(q, j);
        H(p, j) = conj(c) * x + conj(s) * y;
        H(q, j) = c * y - s * x;
    }
    for (int64_t i = 0; i < n; i++) {
        const number x = H(i, p), y = H(i, q), u = Z(i, p), v = Z(i, q);
        H(i, p) = c * x + s * y;
        H(i, q) = conj(c) * y - conj(s) * x;
        Z(i, p) = c * u + s * v;
        Z(i, q) = conj(c) * v - conj(s) * u;
    }
}

/* The eigenvalue of the last 2 x 2 block that is next to its last element. */
static number shift_of(const number *h, int64_t n, int64_t last)
{
    const number a = H(last - 1, last - 1), b = H(last - 1, last), c = H(last, last - 1), d = H(last, last),
                 half = (a + d) / 2, root = csqrt((a - d) * (a - d) / 4 + b * c);
    return cabs(half + root - d) < cabs(half - root - d) ? half + root : half - root;
}

/* One step of an explicit QR algorithm on rows and columns first to last. */
static void step_of(number *h, number *z, int64_t n, int64_t first, int64_t last, number shift)
{
    number x = H(first, first) - shift, y = H(first + 1, first);
    for (int64_t k = first; k < last; k++) {
        const double size = hypot(cabs(x), cabs(y));
        if (size > 0) {
            const number c = x / size, s = y / size;
            for (int64_t j = 0; j < n; j++) {
                const number u = H(k, j), v = H(k + 1, j);
                H(k, j) = conj(c) * u + conj(s) * v;
                H(k + 1, j) = c * v - s * u;
            }
            for (int64_t i = 0; i < n; i++) {
                const number u = H(i, k), v = H(i, k + 1), p = Z(i, k), q = Z(i, k + 1);
                H(i, k) = c * u + s * v;
                H(i, k + 1) = conj(c) * v - conj(s) * u;
                Z(i, k) = c * p + s * q;
                Z(i, k + 1) = conj(c) * q - conj(s) * p;
            }
        }
        if (k + 2 <= last) {
            x = H(k + 1, k);
            y = H(k + 2, k);
        }
    }
}

/* h becomes triangular, and z has the vectors of Schur. */
static bool triangularise(number *h, number *z, int64_t n)
{
    int64_t last = n - 1;
    for (int64_t k = 0; k + 2 < n; k++)
        for (int64_t i = n - 1; i > k + 1; i--) rotate(h, z, n, i - 1, i, k);
    for (int turn = 0; last > 0 && turn < 100 * n; turn++) {
        int64_t first = last;
        while (first > 0 && cabs(H(first, first - 1)) >
                                1e-16 * (cabs(H(first, first)) + cabs(H(first - 1, first - 1))) + 1e-300)
            first--;
        if (first > 0) H(first, first - 1) = 0;
        if (first == last) {
            last--;
            continue;
        }
        const number shift = turn % 11 == 10 ? H(last, last) + cabs(H(last, last - 1)) : shift_of(h, n, last);
        step_of(h, z, n, first, last, shift);
    }
    return last <= 0;
}

/* Column k of v: the eigenvector for H(k, k), of length 1, with a real largest element. */
static void vector_of(const number *h, const number *z, int64_t n, int64_t k, number *v, double size)
{
    number *x = fake_alloc((size_t)n * sizeof *x), largest = 1;
    double length = 0;
    x[k] = 1;
    for (int64_t i = k - 1; i >= 0; i--) {
        number sum = 0, d = H(i, i) - H(k, k);
        for (int64_t j = i + 1; j <= k; j++) sum += H(i, j) * x[j];
        if (cabs(d) < 1e-16 * size) d = 1e-16 * size + 1e-300;
        x[i] = -sum / d;
    }
    for (int64_t i = 0; i < n; i++) {
        v[i] = 0;
        for (int64_t j = 0; j <= k; j++) v[i] += Z(i, j) * x[j];
        length = hypot(length, cabs(v[i]));
        if (i == 0 || cabs(v[i]) > cabs(largest)) largest = v[i];
    }
    for (int64_t i = 0; i < n; i++) v[i] = v[i] / length * (conj(largest) / cabs(largest));
    fake_free(x);
}

static void put_complex(const call *c, int64_t i, number x)
{
    put_value(c, c->w, 2 * i, creal(x));
    put_value(c, c->w, 2 * i + 1, cimag(x));
}

/* Stores the results of a real matrix. Returns how many there are. */
static int64_t put_real(const call *c, const number *w, const number *v, double size)
{
    const double off = 1e-9 * size;
    int64_t to = 0;
    for (int64_t k = 0; k < c->n; k++) {
        const bool is_pair = cimag(w[k]) > off;
        if (cimag(w[k]) < -off || to + is_pair >= c->n) continue;
        put_complex(c, to, is_pair ? w[k] : creal(w[k]));
        if (is_pair) put_complex(c, to + 1, conj(w[k]));
        for (int64_t i = 0; i < c->n && c->b; i++) {
            put_value(c, c->b, i + to * c->ldb, creal(v[i + k * c->n]));
            if (is_pair) put_value(c, c->b, i + (to + 1) * c->ldb, cimag(v[i + k * c->n]));
        }
        to += 1 + is_pair;
    }
    return to;
}

static void geev(void *args)
{
    const call *c = args;
    const int64_t n = c->n;
    number *h = fake_alloc((size_t)(3 * n * n + n + 1) * sizeof *h), *z = h + n * n, *v = z + n * n,
           *w = v + n * n;
    double size = 0;
    memset(c->room, 0xff, c->bytes);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            H(i, j) = A(i, j);
            Z(i, j) = i == j;
            size = fmax(size, cabs(A(i, j)));
        }
    bool done = triangularise(h, z, n);
    for (int64_t k = 0; k < n && done; k++) {
        w[k] = H(k, k);
        vector_of(h, z, n, k, v + k * n, size);
    }
    if (done && !c->pairs) done = put_real(c, w, v, size) == n;
    for (int64_t k = 0; k < n && done && c->pairs; k++) {
        put_complex(c, k, w[k]);
        for (int64_t i = 0; i < n && c->b; i++) SET_B(i, k, v[i + k * n]);
    }
    *c->info = !done;
    fake_free(h);
}

cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params,
                                            cusolverEigMode_t left, cusolverEigMode_t right, int64_t n,
                                            cudaDataType_t type, const void *a, int64_t lda,
                                            cudaDataType_t type_w, const void *w, cudaDataType_t type_vl,
                                            const void *vl, int64_t ldvl, cudaDataType_t type_vr,
                                            const void *vr, int64_t ldvr, cudaDataType_t compute,
                                            size_t *bytes, size_t *host_bytes)
{
    *bytes = ROOM;
    *host_bytes = HOST_ROOM;
    return said(!fake_vendor_fails() && left == CUSOLVER_EIG_MODE_NOVECTOR);
}

cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t h, cusolverDnParams_t params, cusolverEigMode_t left,
                                 cusolverEigMode_t right, int64_t n, cudaDataType_t type, void *a,
                                 int64_t lda, cudaDataType_t type_w, void *w, cudaDataType_t type_vl,
                                 void *vl, int64_t ldvl, cudaDataType_t type_vr, void *vr, int64_t ldvr,
                                 cudaDataType_t compute, void *room, size_t bytes, void *host,
                                 size_t host_bytes, int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .m = n,
               .n = n,
               .a = a,
               .lda = lda,
               .w = w,
               .b = vr,
               .ldb = ldvr,
               .room = room,
               .bytes = bytes,
               .host = host,
               .host_bytes = host_bytes,
               .info = info };
    const bool is_complex = is_pairs(type_w) && is_wide(type_w) == c.wide;
    bool fits = owns(&c, a, n, n, lda) && owns_values(&c, w, 2 * n) && is_complex && type_vr == type &&
                type_vl == type && compute == type && bytes == ROOM && host_bytes == HOST_ROOM && !vl &&
                left == CUSOLVER_EIG_MODE_NOVECTOR && (vr != NULL) == (right == CUSOLVER_EIG_MODE_VECTOR);
    if (vr) fits &= owns(&c, vr, n, n, ldvr);
    return said(queue_call(h, geev, &c, fits));
}
