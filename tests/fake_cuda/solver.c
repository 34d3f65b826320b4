/* solver.c - the fake cuSOLVER and cuBLAS without the iterative methods (jacobi.c): textbook
 * algorithms for column-major matrices in complex f64, rounded to the type of a matrix when stored. */
#include "calls.h"
#include <float.h>
#include <limits.h>

/* ---- handles ---- */

static bool make(void *to)
{
    handle *h = fake_vendor_fails() ? NULL : fake_alloc(sizeof *h);
    if (h) {
        memcpy(to, &h, sizeof h);
        fake_handles(1);
    }
    return h;
}

static void end(void *h)
{
    fake_free(h);
    fake_handles(-1);
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *h)
{
    if (make(h)) return CUSOLVER_STATUS_SUCCESS;
    return CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t h)
{
    end(h);
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *p)
{
    if (make(p)) return CUSOLVER_STATUS_SUCCESS;
    return CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t p)
{
    end(p);
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t h, cudaStream_t stream)
{
    if (fake_vendor_fails()) return CUSOLVER_STATUS_NOT_INITIALIZED;
    ((handle *)(void *)h)->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate(cublasHandle_t *h)
{
    if (make(h)) return CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasDestroy(cublasHandle_t h)
{
    end(h);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t stream)
{
    if (fake_vendor_fails()) return CUBLAS_STATUS_NOT_INITIALIZED;
    ((handle *)(void *)h)->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *room, size_t bytes)
{
    if (fake_vendor_fails() || !fake_owns(room, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    ((handle *)(void *)h)->room = room;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- LU ---- */

static void exchange(const call *c, void *p, int64_t ld, int64_t cols, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < cols && i != j; k++) {
        const number x = get(c, p, i + k * ld);
        put(c, p, i + k * ld, get(c, p, j + k * ld));
        put(c, p, j + k * ld, x);
    }
}

/* The magnitude by which LAPACK compares pivots. */
static double size_of(number x) { return fabs(creal(x)) + fabs(cimag(x)); }

static void getrf(void *args)
{
    const call *c = args;
    const int64_t least = c->m < c->n ? c->m : c->n;
    spoil(c);
    *c->info = 0;
    for (int64_t k = 0; k < least; k++) {
        int64_t p = k;
        for (int64_t i = k; i < c->m; i++)
            if (size_of(A(i, k)) > size_of(A(p, k))) p = i;
        c->pivot[k] = p + 1;
        exchange(c, c->a, c->lda, c->n, k, p);
        if (A(k, k) == 0 && !*c->info) *c->info = (int)k + 1;
        for (int64_t i = k + 1; i < c->m && A(k, k) != 0; i++) {
            SET_A(i, k, over(A(i, k), A(k, k)));
            for (int64_t j = k + 1; j < c->n; j++) SET_A(i, j, A(i, j) - A(i, k) * A(k, j));
        }
    }
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params, int64_t m,
                                             int64_t n, cudaDataType_t type, const void *a, int64_t lda,
                                             cudaDataType_t compute, size_t *bytes, size_t *host_bytes)
{
    *bytes = ROOM;
    *host_bytes = HOST_ROOM;
    return said(!fake_vendor_fails());
}

cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t h, cusolverDnParams_t params, int64_t m, int64_t n,
                                  cudaDataType_t type, void *a, int64_t lda, int64_t *pivot,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .m = m,
               .n = n,
               .a = a,
               .lda = lda,
               .pivot = pivot,
               .room = room,
               .bytes = bytes,
               .host = host,
               .host_bytes = host_bytes,
               .info = info };
    const int64_t least = m < n ? m : n;
    return said(queue_call(h, getrf, &c,
                           owns(&c, a, m, n, lda) && fake_owns(pivot, (size_t)least * 8) && bytes == ROOM &&
                               host_bytes == HOST_ROOM));
}

/* x = T^-1 x or T^-T x, column by column, with a triangle of a. */
static void substitute(const call *c, bool lower, bool unit, bool transposed)
{
    const bool down = lower != transposed;
    for (int64_t j = 0; j < c->k; j++)
        for (int64_t t = 0; t < c->n; t++) {
            const int64_t i = down ? t : c->n - 1 - t;
            number x = B(i, j);
            for (int64_t l = down ? 0 : i + 1; l < (down ? i : c->n); l++)
                x -= (transposed ? A(l, i) : A(i, l)) * B(l, j);
            SET_B(i, j, unit ? x : over(x, A(i, i)));
        }
}

static void getrs(void *args)
{
    const call *c = args;
    const bool transposed = c->flag[0];
    *c->info = 0;
    for (int64_t i = 0; i < c->n && !transposed; i++) exchange(c, c->b, c->ldb, c->k, i, c->pivot[i] - 1);
    substitute(c, !transposed, !transposed, transposed);
    substitute(c, transposed, transposed, transposed);
    for (int64_t i = c->n; i-- > 0 && transposed;) exchange(c, c->b, c->ldb, c->k, i, c->pivot[i] - 1);
}

cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t h, cusolverDnParams_t params, cublasOperation_t how,
                                  int64_t n, int64_t sides, cudaDataType_t type, const void *a, int64_t lda,
                                  const int64_t *pivot, cudaDataType_t type_b, void *b, int64_t ldb,
                                  int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .flag = { how != CUBLAS_OP_N },
               .n = n,
               .k = sides,
               .a = (void *)a,
               .lda = lda,
               .b = b,
               .ldb = ldb,
               .pivot = (int64_t *)pivot,
               .info = info };
    return said(queue_call(h, getrs, &c,
                           type == type_b && how != CUBLAS_OP_C && owns(&c, a, n, n, lda) &&
                               owns(&c, b, n, sides, ldb)));
}

static void trsm(void *args)
{
    const call *c = args;
    substitute(c, c->flag[0], c->flag[1], c->flag[2]);
}

static cublasStatus_t queue_trsm(cublasHandle_t h, call *c, cublasSideMode_t side, cublasOperation_t how,
                                 number alpha)
{
    int bytes = 4; /* the alignment that cuBLAS demands */
    if (c->pairs) bytes = c->wide ? 16 : 8;
    const bool fits = owns(c, c->a, c->n, c->n, c->lda) && owns(c, c->b, c->n, c->k, c->ldb) &&
                      side == CUBLAS_SIDE_LEFT && how != CUBLAS_OP_C && alpha == 1 &&
                      (uintptr_t)c->a % (uintptr_t)bytes == 0;
    if (fake_vendor_fails() || !fits) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (fake_queue(((handle *)(void *)h)->stream, trsm, c, sizeof *c)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

#define TRSM(letter, type, wide_, pairs_)                                                                    \
    cublasStatus_t cublas##letter##trsm_v2(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part,   \
                                           cublasOperation_t how, cublasDiagType_t diagonal, int m, int n,   \
                                           const type *alpha, const type *a, int lda, type *b, int ldb)      \
    {                                                                                                        \
        call c = { .wide = wide_,                                                                            \
                   .pairs = pairs_,                                                                          \
                   .flag = { part == CUBLAS_FILL_MODE_LOWER, diagonal == CUBLAS_DIAG_UNIT,                   \
                             how != CUBLAS_OP_N },                                                           \
                   .n = m,                                                                                   \
                   .k = n,                                                                                   \
                   .a = (void *)a,                                                                           \
                   .lda = lda,                                                                               \
                   .b = b,                                                                                   \
                   .ldb = ldb };                                                                             \
        return queue_trsm(h, &c, side, how, get(&c, alpha, 0));                                              \
    }
TRSM(S, float, false, false)
TRSM(D, double, true, false)
TRSM(C, cuComplex, false, true)
TRSM(Z, cuDoubleComplex, true, true)

/* c -= a b, or a^T b. With flag[1], c = a b, whatever c holds. */
static void gemm(void *args)
{
    const call *c = args;
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->m; i++) {
            number x = c->flag[1] ? 0 : get(c, c->c, i + j * c->ldc), sum = 0;
            for (int64_t l = 0; l < c->k; l++) {
                const number term = (c->flag[0] ? A(l, i) : A(i, l)) * B(l, j);
                x -= term;
                sum += term;
            }
            put(c, c->c, i + j * c->ldc, c->flag[1] ? sum : x);
        }
}

static cublasStatus_t queue_gemm(cublasHandle_t h, call *c, cublasOperation_t how_b, number alpha,
                                 number beta)
{
    c->flag[1] = beta == 0;
    const bool fits = owns(c, c->a, c->flag[0] ? c->k : c->m, c->flag[0] ? c->m : c->k, c->lda) &&
                      owns(c, c->b, c->k, c->n, c->ldb) && owns(c, c->c, c->m, c->n, c->ldc) &&
                      how_b == CUBLAS_OP_N && (c->flag[1] ? alpha == 1 : alpha == -1 && beta == 1);
    if (fake_vendor_fails() || !fits) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (fake_queue(((handle *)(void *)h)->stream, gemm, c, sizeof *c)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

#define GEMM(letter, type, wide_, pairs_)                                                                    \
    cublasStatus_t cublas##letter##gemm_v2(cublasHandle_t h, cublasOperation_t how_a,                        \
                                           cublasOperation_t how_b, int m, int n, int k, const type *alpha,  \
                                           const type *a, int lda, const type *b, int ldb, const type *beta, \
                                           type *y, int ldy)                                                 \
    {                                                                                                        \
        call c = { .wide = wide_,                                                                            \
                   .pairs = pairs_,                                                                          \
                   .flag = { how_a == CUBLAS_OP_T },                                                         \
                   .m = m,                                                                                   \
                   .n = n,                                                                                   \
                   .k = k,                                                                                   \
                   .a = (void *)a,                                                                           \
                   .lda = lda,                                                                               \
                   .b = (void *)b,                                                                           \
                   .ldb = ldb,                                                                               \
                   .c = y,                                                                                   \
                   .ldc = ldy };                                                                             \
        return queue_gemm(h, &c, how_b, get(&c, alpha, 0), get(&c, beta, 0));                                \
    }
GEMM(S, float, false, false)
GEMM(D, double, true, false)
GEMM(C, cuComplex, false, true)
GEMM(Z, cuDoubleComplex, true, true)

/* ---- Cholesky: the result is undefined if the diagonal is not real ---- */

static void potrf(void *args)
{
    const call *c = args;
    const bool sound = has_real_diagonal(c);
    spoil(c);
    *c->info = 0;
    for (int64_t j = 0; j < c->n && !*c->info; j++)
        for (int64_t i = 0; i <= j; i++) {
            number x = A(j, i);
            for (int64_t l = 0; l < i; l++) x -= conj(A(i, l)) * A(j, l);
            if (i == j && !(creal(x) > 0)) *c->info = (int)j + 1;
            SET_A(j, i, i == j ? sqrt(creal(x)) : over(x, A(i, i)));
        }
    if (!sound) *c->info = -4;
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params,
                                             cublasFillMode_t part, int64_t n, cudaDataType_t type,
                                             const void *a, int64_t lda, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes)
{
    *bytes = ROOM;
    *host_bytes = 0;
    return said(!fake_vendor_fails() && part == CUBLAS_FILL_MODE_LOWER);
}

cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t h, cusolverDnParams_t params, cublasFillMode_t part,
                                  int64_t n, cudaDataType_t type, void *a, int64_t lda,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .n = n,
               .a = a,
               .lda = lda,
               .room = room,
               .bytes = bytes,
               .info = info };
    return said(
        queue_call(h, potrf, &c, owns(&c, a, n, n, lda) && part == CUBLAS_FILL_MODE_LOWER && bytes == ROOM));
}

/* ---- QR: reflectors I - tau v v^H; v has an implicit 1 on top and the rest below the diagonal
 * ---- */

static number below(const call *c, int64_t i, int64_t k) { return i == k ? 1 : A(i, k); }

/* Applies reflector k to column j of p. */
static void reflect_column(const call *c, void *p, int64_t ld, int64_t j, int64_t k, number tau)
{
    number dot = 0;
    for (int64_t i = k; i < c->m; i++) dot += conj(below(c, i, k)) * get(c, p, i + j * ld);
    for (int64_t i = k; i < c->m; i++)
        put(c, p, i + j * ld, get(c, p, i + j * ld) - tau * dot * below(c, i, k));
}

static void geqrf(void *args)
{
    const call *c = args;
    const int64_t least = c->m < c->n ? c->m : c->n;
    spoil(c);
    *c->info = 0;
    for (int64_t k = 0; k < least; k++) {
        const number alpha = A(k, k);
        double rest = 0, most = 0;
        for (int64_t i = k + 1; i < c->m; i++) most = fmax(most, cabs(A(i, k)));
        for (int64_t i = k + 1; i < c->m && most > 0; i++)
            rest += cabs(A(i, k)) / most * (cabs(A(i, k)) / most);
        put(c, c->w, k, 0);
        if (rest == 0 && cimag(alpha) == 0) continue;
        const double beta = -copysign(hypot(cabs(alpha), most * sqrt(rest)), creal(alpha));
        const number tau = over(beta - alpha, beta);
        for (int64_t i = k + 1; i < c->m; i++) SET_A(i, k, over(A(i, k), alpha - beta));
        put(c, c->w, k, tau);
        SET_A(k, k, beta);
        for (int64_t j = k + 1; j < c->n; j++) reflect_column(c, c->a, c->lda, j, k, conj(tau));
    }
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params, int64_t m,
                                             int64_t n, cudaDataType_t type, const void *a, int64_t lda,
                                             cudaDataType_t type_tau, const void *tau, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes)
{
    *bytes = ROOM;
    *host_bytes = 0;
    return said(!fake_vendor_fails());
}

cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t h, cusolverDnParams_t params, int64_t m, int64_t n,
                                  cudaDataType_t type, void *a, int64_t lda, cudaDataType_t type_tau,
                                  void *tau, cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info)
{
    call c = { .wide = is_wide(type),
               .pairs = is_pairs(type),
               .m = m,
               .n = n,
               .a = a,
               .lda = lda,
               .w = tau,
               .room = room,
               .bytes = bytes,
               .info = info };
    return said(queue_call(h, geqrf, &c,
                           owns(&c, a, m, n, lda) && owns(&c, tau, m < n ? m : n, 1, m) && bytes == ROOM));
}

/* b = Q b or Q^H b; Q is the product of the k reflectors in a. */
static void reflect(const call *c, bool back)
{
    for (int64_t t = 0; t < c->k; t++) {
        const int64_t l = back ? t : c->k - 1 - t;
        const number tau = get(c, c->w, l);
        for (int64_t j = 0; j < c->n; j++) reflect_column(c, c->b, c->ldb, j, l, back ? conj(tau) : tau);
    }
}

static void ormqr(void *args)
{
    const call *c = args;
    spoil(c);
    *c->info = 0;
    reflect(c, c->flag[0]);
}

static void orgqr(void *args)
{
    call own = *(const call *)args, *c = &own;
    number *q = fake_alloc((size_t)(c->m * c->n + 1) * sizeof *q);
    spoil(c);
    *c->info = 0;
    c->b = q;
    c->ldb = c->m;
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->m; i++) SET_B(i, j, i == j);
    reflect(c, false);
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->m; i++) SET_A(i, j, B(i, j));
    fake_free(q);
}

/* The real functions count their workspace in an int too, and refuse matrices of about 9 million rows. */
static cusolverStatus_t workspace_length(int rows, int *length)
{
    enum { BLOCK = 256 };
    if (fake_vendor_fails()) return CUSOLVER_STATUS_EXECUTION_FAILED;
    if (rows > INT_MAX / BLOCK) return CUSOLVER_STATUS_INVALID_VALUE;
    *length = 32;
    return CUSOLVER_STATUS_SUCCESS;
}

#define QR(letter, type, wide_, pairs_, q)                                                                   \
    cusolverStatus_t cusolverDn##letter##q##gqr_bufferSize(cusolverDnHandle_t h, int m, int n, int k,        \
                                                           const type *a, int lda, const type *tau,          \
                                                           int *length)                                      \
    {                                                                                                        \
        return workspace_length(m, length);                                                                  \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##letter##q##gqr(cusolverDnHandle_t h, int m, int n, int k, type *a, int lda, \
                                                const type *tau, type *room, int length, int *info)          \
    {                                                                                                        \
        call c = { .wide = wide_,                                                                            \
                   .pairs = pairs_,                                                                          \
                   .m = m,                                                                                   \
                   .n = n,                                                                                   \
                   .k = k,                                                                                   \
                   .a = a,                                                                                   \
                   .lda = lda,                                                                               \
                   .w = (void *)tau,                                                                         \
                   .room = room,                                                                             \
                   .bytes = (size_t)length * sizeof *room,                                                   \
                   .info = info };                                                                           \
        return said(queue_call(h, orgqr, &c,                                                                 \
                               owns(&c, a, m, n, lda) && owns(&c, tau, k, 1, k) && m >= n && n >= k &&       \
                                   length == 32));                                                           \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##letter##q##mqr_bufferSize(cusolverDnHandle_t h, cublasSideMode_t side,      \
                                                           cublasOperation_t how, int m, int n, int k,       \
                                                           const type *a, int lda, const type *tau,          \
                                                           const type *b, int ldb, int *length)              \
    {                                                                                                        \
        return side == CUBLAS_SIDE_LEFT ? workspace_length(m, length) : said(false);                         \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##letter##q##mqr(cusolverDnHandle_t h, cublasSideMode_t side,                 \
                                                cublasOperation_t how, int m, int n, int k, const type *a,   \
                                                int lda, const type *tau, type *b, int ldb, type *room,      \
                                                int length, int *info)                                       \
    {                                                                                                        \
        call c = { .wide = wide_,                                                                            \
                   .pairs = pairs_,                                                                          \
                   .flag = { how != CUBLAS_OP_N },                                                           \
                   .m = m,                                                                                   \
                   .n = n,                                                                                   \
                   .k = k,                                                                                   \
                   .a = (void *)a,                                                                           \
                   .lda = lda,                                                                               \
                   .b = b,                                                                                   \
                   .ldb = ldb,                                                                               \
                   .w = (void *)tau,                                                                         \
                   .room = room,                                                                             \
                   .bytes = (size_t)length * sizeof *room,                                                   \
                   .info = info };                                                                           \
        return said(queue_call(h, ormqr, &c,                                                                 \
                               owns(&c, a, m, k, lda) && owns(&c, b, m, n, ldb) && m >= k && length == 32 && \
                                   (how == CUBLAS_OP_N || how == (pairs_ ? CUBLAS_OP_C : CUBLAS_OP_T))));    \
    }
QR(S, float, false, false, or)
QR(D, double, true, false, or)
QR(C, cuComplex, false, true, un)
QR(Z, cuDoubleComplex, true, true, un)

/* ---- refined solutions: computed in f64, or not available from the narrower type. The function
 * waits, like the real one ---- */

/* The largest element exceeds the narrow type: it becomes NaN without an error. If it underflows to
 * 0, refinement does not converge. */
static bool is_lost(const call *c)
{
    const double most = c->flag[1] ? 65504 : FLT_MAX, least = c->flag[1] ? 0x1p-25 : FLT_MIN;
    double greatest = 0;
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->n; i++) greatest = fmax(greatest, cabs(A(i, j)));
    if (greatest <= least) *(int *)c->w = -50;
    return greatest > most || greatest <= least;
}

static void spread(const call *c, double x)
{
    for (int64_t j = 0; j < c->k; j++)
        for (int64_t i = 0; i < c->n; i++) put(c, c->c, i + j * c->ldc, x);
}

/* With f16 the real solver may accept a solution that is only as good as f32; observed for small
 * systems. */
static void cut_short(const call *c)
{
    for (int64_t j = 0; j < c->k && c->flag[1] && c->n % 2; j++)
        for (int64_t i = 0; i < c->n; i++)
            put(c, c->c, i + j * c->ldc, (float _Complex)get(c, c->c, i + j * c->ldc));
}

static void gesv(void *args)
{
    call own = *(const call *)args, *c = &own;
    *c->info = 0;
    if (is_lost(c)) return spread(c, *(int *)c->w < 0 ? 0 : NAN);
    const int64_t parts = c->pairs ? 2 : 1, numbers = parts * c->n * c->n;
    double *a = fake_alloc((size_t)(numbers + c->n + 1) * sizeof *a);
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t i = 0; i < c->n; i++) put(c, a, i + j * c->n, A(i, j));
    for (int64_t j = 0; j < c->k; j++)
        for (int64_t i = 0; i < c->n; i++) put(c, c->c, i + j * c->ldc, B(i, j));
    c->a = a;
    c->lda = c->m = c->n;
    c->pivot = (int64_t *)(a + numbers);
    c->b = c->c;
    c->ldb = c->ldc;
    getrf(c);
    const bool singular = *c->info != 0;
    *c->info = 0;
    if (singular) spread(c, NAN);
    else {
        getrs(c);
        cut_short(c);
    }
    fake_free(a);
}

static cusolverStatus_t refined(void *h, call *c, int *turns)
{
    *turns = 1;
    c->w = turns;
    const bool fits = owns(c, c->a, c->n, c->n, c->lda) && owns(c, c->b, c->n, c->k, c->ldb) &&
                      owns(c, c->c, c->n, c->k, c->ldc);
    if (!queue_call(h, gesv, c, fits && c->bytes == ROOM)) return CUSOLVER_STATUS_EXECUTION_FAILED;
    fake_drain(((handle *)h)->stream);
    return CUSOLVER_STATUS_SUCCESS;
}

#define REFINED(letters, type, pairs_)                                                                       \
    cusolverStatus_t cusolverDn##letters##gesv_bufferSize(cusolverDnHandle_t h, int n, int sides, type *a,   \
                                                          int lda, int *pivot, type *b, int ldb, type *x,    \
                                                          int ldx, void *room, size_t *bytes)                \
    {                                                                                                        \
        return *bytes = ROOM, said(!fake_vendor_fails());                                                    \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##letters##gesv(cusolverDnHandle_t h, int n, int sides, type *a, int lda,     \
                                               int *pivot, type *b, int ldb, type *x, int ldx, void *room,   \
                                               size_t bytes, int *turns, int *info)                          \
    {                                                                                                        \
        call c = { .wide = true,                                                                             \
                   .pairs = pairs_,                                                                          \
                   .flag = { false, #letters[1] == 'H' || #letters[1] == 'K' },                              \
                   .n = n,                                                                                   \
                   .k = sides,                                                                               \
                   .a = a,                                                                                   \
                   .lda = lda,                                                                               \
                   .b = b,                                                                                   \
                   .ldb = ldb,                                                                               \
                   .c = x,                                                                                   \
                   .ldc = ldx,                                                                               \
                   .room = room,                                                                             \
                   .bytes = bytes,                                                                           \
                   .info = info };                                                                           \
        return refined(h, &c, turns);                                                                        \
    }
REFINED(DS, double, false)
REFINED(DH, double, false)
REFINED(ZC, cuDoubleComplex, true)
REFINED(ZK, cuDoubleComplex, true)
