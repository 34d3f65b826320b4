/* per_operator_bare.c - the vendors' bare calls on the CPU: OpenBLAS, LAPACKE, FFTW, and oneDNN's
 * matrix products (its primitives are in per_operator_onednn.c). LAPACK is column-major and gets
 * row-major matrices as they are, as their transposes. Operands that it would overwrite are copied
 * first; the copy is part of the time. */
#include "per_operator.h"
#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_LAPACKE
#include <lapacke.h>
#endif
#ifdef WITH_FFTW
#include <fftw3.h>
#endif
#ifdef WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

static size_t bytes_of(const duet_matrix *m)
{
    static const size_t bytes[] = {
        [DUET_F32] = 4, [DUET_F64] = 8, [DUET_I64] = 8, [DUET_F16] = 2, [DUET_I32] = 4, [DUET_C64] = 8
    };
    return (size_t)duet_count(m) * bytes[duet_type(m)];
}

bool bare_begin(bare *b, duet_matrix *const *x, const duet_matrix *y)
{
    if (b->y) return true;
    for (int k = 0; k < CASE_OPERANDS && x[k]; k++) {
        b->x[k] = duet_read(x[k]);
        b->bytes[k] = bytes_of(x[k]);
        if (!b->x[k] || !(b->copy[k] = malloc(b->bytes[k]))) return false;
    }
    return (b->y = aligned_alloc(64, (bytes_of(y) + 127) / 64 * 64)) != NULL;
}

void bare_end(bare *b)
{
    for (int k = 0; k < CASE_OPERANDS; k++) free(b->copy[k]);
    if (b->end) b->end(b->plan);
    free(b->y);
}

/* ---- products ---- */

static bool product(int m, int n, int k, const float *a, const float *b, float *c)
{
#ifdef WITH_ONEDNN
    return dnnl_sgemm('N', 'N', m, n, k, 1, a, k, b, n, 0, c, n) == dnnl_success;
#else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
    return true;
#endif
}

bool bare_sgemm(bare *b)
{
    return product((int)b->size[0][0], (int)b->size[1][1], (int)b->size[0][1], b->x[0], b->x[1], b->y);
}

bool bare_dgemm(bare *b)
{
    const int m = (int)b->size[0][0], k = (int)b->size[0][1], n = (int)b->size[1][1];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, b->x[0], k, b->x[1], n, 0, b->y, n);
    return true;
}

bool bare_sgemv(bare *b)
{
    const int m = (int)b->size[0][0], n = (int)b->size[0][1];
    cblas_sgemv(CblasRowMajor, CblasNoTrans, m, n, 1, b->x[0], n, b->x[1], 1, 0, b->y, 1);
    return true;
}

bool bare_batched(bare *b)
{
    const int64_t *x = b->size[0], *w = b->size[1];
    bool ok = true;
    for (int64_t i = 0; i < x[0] && ok; i++)
        ok = product((int)x[1], (int)w[2], (int)x[2], (const float *)b->x[0] + i * x[1] * x[2],
                     (const float *)b->x[1] + i * w[1] * w[2], (float *)b->y + i * x[1] * w[2]);
    return ok;
}

/* ---- transforms ---- */

#ifdef WITH_FFTW
static void end_transform(void *plan) { fftwf_destroy_plan(plan); }

static bool transform(bare *b, fftwf_plan made)
{
    b->plan = made;
    if (made) b->end = end_transform;
    else b->end = NULL;
    return made != NULL;
}

bool bare_fft(bare *b)
{
    const int count = (int)b->size[0][0], n = (int)b->size[0][1];
    if (!b->plan && !transform(b, fftwf_plan_many_dft(1, &n, count, (void *)b->x[0], NULL, 1, n, b->y, NULL,
                                                      1, n, FFTW_FORWARD, FFTW_ESTIMATE)))
        return false;
    fftwf_execute(b->plan);
    return true;
}

bool bare_rfft2(bare *b)
{
    const int n[] = { (int)b->size[0][0], (int)b->size[0][1] };
    if (!b->plan && !transform(b, fftwf_plan_dft_r2c(2, n, (void *)b->x[0], b->y, FFTW_ESTIMATE)))
        return false;
    fftwf_execute(b->plan);
    return true;
}
#else
bool bare_fft(bare *b) { return false; }
bool bare_rfft2(bare *b) { return false; }
#endif

/* ---- linear algebra ---- */

#ifdef WITH_LAPACKE
#define COL LAPACK_COL_MAJOR

/* Copies the first operand to a buffer that LAPACK may overwrite, and sets n to its order. */
static float *fresh(bare *b, int *n)
{
    *n = (int)b->size[0][0];
    return memcpy(b->copy[0], b->x[0], b->bytes[0]);
}

bool bare_solve(bare *b)
{
    int n;
    float *a = fresh(b, &n);
    lapack_int *pivot = malloc((size_t)n * sizeof *pivot);
    memcpy(b->y, b->x[1], b->bytes[1]);
    const int info =
        LAPACKE_sgetrf(COL, n, n, a, n, pivot) || LAPACKE_sgetrs(COL, 'T', n, 1, a, n, pivot, b->y, n);
    free(pivot);
    return info == 0;
}

bool bare_inv(bare *b)
{
    const int n = (int)b->size[0][0];
    lapack_int *pivot = malloc((size_t)n * sizeof *pivot);
    memcpy(b->y, b->x[0], b->bytes[0]);
    const int info = LAPACKE_sgetrf(COL, n, n, b->y, n, pivot) || LAPACKE_sgetri(COL, n, b->y, n, pivot);
    free(pivot);
    return info == 0;
}

bool bare_cholesky(bare *b)
{
    const int n = (int)b->size[0][0];
    memcpy(b->y, b->x[0], b->bytes[0]);
    return LAPACKE_spotrf(COL, 'U', n, b->y, n) == 0;
}

bool bare_qr(bare *b)
{
    int n;
    float *a = fresh(b, &n), *tau = malloc((size_t)n * sizeof *tau);
    bool ok = LAPACKE_sgeqrf(COL, n, n, a, n, tau) == 0;
    memcpy(b->y, a, b->bytes[0]);
    ok = ok && LAPACKE_sorgqr(COL, n, n, n, a, n, tau) == 0;
    free(tau);
    return ok;
}

bool bare_eigvalsh(bare *b)
{
    int n;
    float *a = fresh(b, &n);
    return LAPACKE_ssyevd(COL, 'N', 'U', n, a, n, b->y) == 0;
}

bool bare_svdvals(bare *b)
{
    int n;
    float *a = fresh(b, &n);
    return LAPACKE_sgesdd(COL, 'N', n, n, a, n, b->y, NULL, 1, NULL, 1) == 0;
}
#endif
