/* vendors.c - the fake cuBLASLt, and the table of all fake libraries. */
#include "fake.h"
#include "vendor.h"
#include <math.h>
#include <string.h>

static vendor table = {
    .place = { [0 ... LIBRARIES - 1] = "(fake)" },
#define VENDOR(lib, f) VENDOR_(f)
#define VENDOR_(f)     .f = f,
#include "vendor.def"
};

const vendor *vendor_open(enum library l) { return &table; }

void fake_without(const char *library, const char *why)
{
    static const char *const names[LIBRARIES] = {
#define LIBRARY(name, ...) #name,
#include "vendor.def"
    };
    for (int l = 0; l < LIBRARIES; l++)
        if (!strcmp(library, names[l])) table.missing[l] = why;
}

#define BLAS_ENTER(status)                                                                                   \
    if (fake_vendor_fails()) return status

void fake_handles(int n)
{
    pthread_mutex_lock(&fake_lock);
    fake_counted.handles += n;
    pthread_mutex_unlock(&fake_lock);
}

/* ---- handles and descriptors ---- */

typedef struct description {
    bool f64, ta, tb, biased;
    int bits; /* bits that operands are rounded to; 0: not rounded */
    const void *bias;
} description;

typedef struct stored {
    bool f64;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch; /* number of products and their distance; 0: one */
    int64_t apart;
} stored;

typedef struct preference {
    uint64_t room;
    uint32_t alignment;
} preference;

static cublasStatus_t make(void *to, const void *what, size_t bytes)
{
    BLAS_ENTER(CUBLAS_STATUS_ALLOC_FAILED);
    void *p = fake_alloc(bytes);
    if (!p) return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(p, what, bytes);
    memcpy(to, &p, sizeof p);
    fake_handles(1);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t end(void *p)
{
    fake_free(p);
    fake_handles(-1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    const int context = fake_context();
    return make(handle, &context, sizeof context);
}

static bool is_current(cublasLtHandle_t handle) { return *(const int *)(void *)handle == fake_context(); }

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return end(handle); }

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value)
{
    if (type == MAJOR_VERSION) *value = CUBLAS_VER_MAJOR;
    else *value = 0;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_EXECUTION_FAILED) return "CUBLAS_STATUS_EXECUTION_FAILED";
    return "a fake status";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *what, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    description d = { .f64 = scale == CUDA_R_64F };
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) d.bits = 11;
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) d.bits = 8;
    const cublasComputeType_t strict = d.f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F_PEDANTIC;
    if (d.bits ? d.f64 : compute != strict) return CUBLAS_STATUS_INVALID_VALUE;
    return make(what, &d, sizeof d);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t what) { return end(what); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t what,
                                              cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t bytes)
{
    BLAS_ENTER(CUBLAS_STATUS_INVALID_VALUE);
    description *d = (void *)what;
    int32_t number = 0;
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
        memcpy(&d->bias, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    memcpy(&number, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) d->ta = number != CUBLAS_OP_N;
    else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) d->tb = number != CUBLAS_OP_N;
    else d->biased = number == CUBLASLT_EPILOGUE_BIAS;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    const preference none = { 0, 256 };
    return make(p, &none, sizeof none);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return end(p); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    BLAS_ENTER(CUBLAS_STATUS_INVALID_VALUE);
    preference *to = (void *)p;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) memcpy(&to->room, value, bytes);
    else memcpy(&to->alignment, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    const stored l = { type == CUDA_R_64F, rows, columns, ld, 0, 0 };
    return make(made, &l, sizeof l);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return end(l); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes)
{
    BLAS_ENTER(CUBLAS_STATUS_INVALID_VALUE);
    stored *l = (void *)made;
    const bool count = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
    if (bytes != (count ? sizeof l->batch : sizeof l->apart)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(count ? (void *)&l->batch : &l->apart, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* Three algorithms with workspaces of 0, 16 and 32 KiB. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t prefers, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *count)
{
    BLAS_ENTER(CUBLAS_STATUS_NOT_INITIALIZED);
    const preference *p = (void *)prefers;
    *count = 0;
    for (uint64_t i = 3; i-- > 0 && *count < asked;)
        if (i << 22 <= p->room)
            results[(*count)++] = (cublasLtMatmulHeuristicResult_t){ .algo = { { 1 + i, p->alignment } },
                                                                     .workspaceSize = i << 22 };
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

/* A product as it was requested: column-major. */
typedef struct gemm {
    bool f64, ta, tb;
    int bits;
    int m, n, k, lda, ldb, ldc;
    double alpha, beta;
    const void *a, *b, *bias; /* bias is NULL if there is none */
    void *c, *workspace;
    size_t room;
    int batch;
    int64_t apart[3];
} gemm;

static double get(const gemm *g, const void *p, int64_t i)
{
    if (g->f64) return ((const double *)p)[i];
    return (double)((const float *)p)[i];
}

/* A factor of a product, rounded as tensor cores do. */
static double factor(const gemm *g, const void *p, int64_t i)
{
    if (g->bits) return fake_rounded(get(g, p, i), g->bits, -126);
    return get(g, p, i);
}

static void put(const gemm *g, int64_t i, double x)
{
    if (g->f64) ((double *)g->c)[i] = x;
    else ((float *)g->c)[i] = (float)x;
}

static void run_one(const gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < g->k; l++)
                sum += factor(g, g->a, g->ta ? l + i * g->lda : i + l * g->lda) *
                       factor(g, g->b, g->tb ? j + l * g->ldb : l + j * g->ldb);
            int64_t at = i + j * g->ldc;
            const double bias = g->bias ? get(g, g->bias, i) : 0;
            put(g, at, g->alpha * sum + (g->beta == 0 ? 0 : g->beta * get(g, g->c, at)) + bias);
        }
}

static void *along(const gemm *g, const void *p, int64_t elements)
{
    return (char *)p + elements * (g->f64 ? 8 : 4);
}

/* A product with a workspace runs in two parts, like those that add parts of a sum in a second kernel. If
 * other work writes to the workspace between them, the result is NaN. */
static void run_first_part(void *args)
{
    const gemm *g = args;
    memcpy(g->workspace, &g->c, sizeof g->c);
}

static void run_gemm(void *args)
{
    gemm one = *(const gemm *)args;
    if (one.room && memcmp(one.workspace, &one.c, sizeof one.c)) one.alpha = NAN;
    memset(one.workspace, 0xff, one.room);
    for (int i = 0; i < one.batch; i++) {
        run_one(&one);
        one.a = along(&one, one.a, one.apart[0]);
        one.b = along(&one, one.b, one.apart[1]);
        one.c = along(&one, one.c, one.apart[2]);
    }
}

/* Is a stored matrix of these sizes in device memory, with a valid leading dimension? */
static bool is_matrix(const gemm *g, const void *p, int64_t rows, int64_t cols, int ld)
{
    size_t each = g->f64 ? 8 : 4;
    return ld >= (rows > 1 ? rows : 1) &&
           (rows * cols == 0 || fake_owns(p, (size_t)(ld * (cols - 1) + rows) * each));
}

/* The problem that the algorithm was chosen for, and its workspace. */
static bool is_chosen(const cublasLtMatmulAlgo_t *algo, const gemm *g, const void *workspace, size_t bytes)
{
    const uint64_t which = algo->data[0] - 1, alignment = algo->data[1];
    if (which > 2 || ((uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->c) % alignment) return false;
    return which << 22 <= bytes && (uintptr_t)workspace % 256 == 0 && (!which || fake_owns(workspace, bytes));
}

static cublasStatus_t queue_gemm(cudaStream_t stream, gemm *g)
{
    bool fits = is_matrix(g, g->a, g->ta ? g->k : g->m, g->ta ? g->m : g->k, g->lda) &&
                is_matrix(g, g->b, g->tb ? g->n : g->k, g->tb ? g->k : g->n, g->ldb) &&
                is_matrix(g, g->c, g->m, g->n, g->ldc);
    gemm last = *g;
    last.a = along(g, g->a, g->apart[0] * (g->batch - 1));
    last.b = along(g, g->b, g->apart[1] * (g->batch - 1));
    last.c = along(g, g->c, g->apart[2] * (g->batch - 1));
    fits &= is_matrix(g, last.a, g->ta ? g->k : g->m, g->ta ? g->m : g->k, g->lda) &&
            is_matrix(g, last.b, g->tb ? g->n : g->k, g->tb ? g->k : g->n, g->ldb) &&
            is_matrix(g, last.c, g->m, g->n, g->ldc);
    if (g->bias) fits &= fake_owns(g->bias, (size_t)g->m * (g->f64 ? 8 : 4));
    if (!fits || g->m < 0 || g->n < 0 || g->k < 0) return CUBLAS_STATUS_INVALID_VALUE;
    pthread_mutex_lock(&fake_lock);
    fake_counted.products++;
    fake_counted.rounded += g->bits > 0;
    pthread_mutex_unlock(&fake_lock);
    if (g->room && fake_queue(stream, run_first_part, g, sizeof *g)) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (fake_queue(stream, run_gemm, g, sizeof *g)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

static double number(const void *p, bool f64) { return f64 ? *(const double *)p : (double)*(const float *)p; }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                              cudaStream_t stream)
{
    BLAS_ENTER(CUBLAS_STATUS_EXECUTION_FAILED);
    if (!is_current(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    const description *w = (void *)what;
    const stored *la = (void *)a, *lb = (void *)b, *lc = (void *)c;
    gemm g = { w->f64,
               w->ta,
               w->tb,
               w->bits,
               (int)lc->rows,
               (int)lc->columns,
               (int)(w->ta ? la->rows : la->columns),
               (int)la->ld,
               (int)lb->ld,
               (int)lc->ld,
               number(alpha, w->f64),
               number(beta, w->f64),
               A,
               B,
               w->biased ? w->bias : NULL,
               D,
               workspace,
               (size_t)(algo->data[0] - 1) << 22,
               lc->batch ? lc->batch : 1,
               { la->apart, lb->apart, lc->apart } };
    if (la->batch != lc->batch || lb->batch != lc->batch ||
        (lc->batch > 1 && lc->apart < (int64_t)(lc->ld * (int64_t)lc->columns)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (C != D || c != d || !is_chosen(algo, &g, workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    return queue_gemm(stream, &g);
}
