/* vendors.c - the pretended cuBLAS, and the table of both pretended libraries. */
#include "fake.h"
#include "vendor.h"
#include <string.h>

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    size_t bytes;
};

static vendor table = {
    .place = { "(pretended)", "(pretended)" },
#define VENDOR(lib, f) VENDOR_(f)
#define VENDOR_(f)     .f = f,
#include "vendor.def"
};

const vendor *vendor_open(enum library l) { return &table; }

void fake_without(const char *library, const char *why)
{
    table.missing[strcmp(library, "cublas") ? LIBRARY_cudnn : LIBRARY_cublas] = why;
}

#define BLAS_ENTER(status)                                                                                                       \
    if (fake_vendor_fails()) return status

void fake_handles(int n)
{
    pthread_mutex_lock(&fake_lock);
    fake_counted.handles += n;
    pthread_mutex_unlock(&fake_lock);
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    BLAS_ENTER(CUBLAS_STATUS_NOT_INITIALIZED);
    *handle = fake_alloc(sizeof **handle);
    fake_handles(*handle != NULL);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    fake_free(handle);
    fake_handles(-1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : 0;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED" : "a pretended status";
}

/* The real one forgets the workspace as well. */
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    BLAS_ENTER(CUBLAS_STATUS_NOT_INITIALIZED);
    *handle = (struct cublasContext){ .stream = stream };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    BLAS_ENTER(CUBLAS_STATUS_NOT_INITIALIZED);
    if ((uintptr_t)workspace % 256 || !fake_owns(workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace, handle->bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

/* A product as it was asked for: by columns. */
typedef struct gemm {
    bool f64, ta, tb;
    int m, n, k, lda, ldb, ldc;
    double alpha, beta;
    const void *a, *b;
    void *c, *workspace;
} gemm;

static double get(const gemm *g, const void *p, int64_t i)
{
    return g->f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void put(const gemm *g, int64_t i, double x)
{
    if (g->f64) ((double *)g->c)[i] = x;
    else ((float *)g->c)[i] = (float)x;
}

static void run_gemm(void *args)
{
    const gemm *g = args;
    memset(g->workspace, 0xff, 256);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < g->k; l++)
                sum +=
                    get(g, g->a, g->ta ? l + i * g->lda : i + l * g->lda) * get(g, g->b, g->tb ? j + l * g->ldb : l + j * g->ldb);
            int64_t at = i + j * g->ldc;
            put(g, at, g->alpha * sum + (g->beta == 0 ? 0 : g->beta * get(g, g->c, at)));
        }
}

/* Is a stored matrix of so many rows and columns device memory, with a leading dimension that fits? */
static bool is_matrix(const gemm *g, const void *p, int64_t rows, int64_t cols, int ld)
{
    size_t each = g->f64 ? 8 : 4;
    return ld >= (rows > 1 ? rows : 1) && (rows * cols == 0 || fake_owns(p, (size_t)(ld * (cols - 1) + rows) * each));
}

static cublasStatus_t queue_gemm(cublasHandle_t h, gemm *g)
{
    BLAS_ENTER(CUBLAS_STATUS_EXECUTION_FAILED);
    bool fits = is_matrix(g, g->a, g->ta ? g->k : g->m, g->ta ? g->m : g->k, g->lda) &&
                is_matrix(g, g->b, g->tb ? g->n : g->k, g->tb ? g->k : g->n, g->ldb) && is_matrix(g, g->c, g->m, g->n, g->ldc);
    if (!fits || g->m < 0 || g->n < 0 || g->k < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (h->bytes < 16 << 10) return CUBLAS_STATUS_ALLOC_FAILED; /* nobody lent memory: it would take some of its own */
    g->workspace = h->workspace;
    pthread_mutex_lock(&fake_lock);
    fake_counted.products++;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(h->stream, run_gemm, g, sizeof *g) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha,
                           const float *A, int lda, const float *B, int ldb, const float *beta, float *C, int ldc)
{
    gemm g = { false, ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, lda, ldb, ldc, *alpha, *beta, A, B, C, NULL };
    return queue_gemm(h, &g);
}

cublasStatus_t cublasDgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double *alpha,
                           const double *A, int lda, const double *B, int ldb, const double *beta, double *C, int ldc)
{
    gemm g = { true, ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, lda, ldb, ldc, *alpha, *beta, A, B, C, NULL };
    return queue_gemm(h, &g);
}
