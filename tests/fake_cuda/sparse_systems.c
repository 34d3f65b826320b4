/* sparse_systems.c - fake solvers of sparse systems: the triangles of cuSPARSE by substitution, cuDSS by the
 * factorisation of the dense matrix, and the checks of csr_system.h. Numbers are complex. */
#include "csr_system.h"
#include "cudss_api.h"
#include "fake.h"
#include "sparse_matrix.h"
#include "vendor.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAILS_WITH(status)                                                                                   \
    if (fake_vendor_fails()) return status

/* ---- triangles of cuSPARSE ---- */

typedef struct triangle_call {
    sparse_matrix a;
    dense_matrix b, x;
    bool turned;
    void *buffer;
} triangle_call;

/* Element i, j of the matrix as it is used, 0 if it is in the other triangle or not stored. */
static double complex used_element(const triangle_call *c, int64_t i, int64_t j)
{
    const sparse_matrix *a = &c->a;
    const int64_t row = c->turned ? j : i, column = c->turned ? i : j;
    if (row == column && a->unit) return 1;
    if (row != column && (column > row) != a->upper) return 0;
    for (int64_t k = index_of(a, a->offsets, row); k < index_of(a, a->offsets, row + 1); k++)
        if (index_of(a, a->column, k) == column)
            return read_number(a->type, (char *)a->values + k * (int64_t)element_bytes(a->type));
    return 0;
}

static void run_triangle(void *args)
{
    const triangle_call *c = args;
    const int64_t n = c->a.rows;
    const bool from_below = c->a.upper != c->turned;
    memset(c->buffer, 0xff, SPARSE_ROOM);
    for (int64_t j = 0; j < c->b.columns; j++)
        for (int64_t done = 0; done < n; done++) {
            const int64_t i = from_below ? n - 1 - done : done;
            double complex sum = read_number(c->a.type, element(&c->b, i, j));
            for (int64_t before = 0; before < done; before++) {
                const int64_t k = from_below ? n - 1 - before : before;
                sum -= used_element(c, i, k) * read_number(c->a.type, element(&c->x, k, j));
            }
            write_number(c->a.type, element(&c->x, i, j), sum / used_element(c, i, i));
        }
}

typedef struct triangle_plan {
    const void *matrix;
    void *buffer; /* of the analysis */
} triangle_plan;

cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t *plan)
{
    FAILS_WITH(CUSPARSE_STATUS_ALLOC_FAILED);
    triangle_plan *p = fake_alloc(sizeof *p);
    if (!p) return CUSPARSE_STATUS_ALLOC_FAILED;
    *p = (triangle_plan){ NULL, NULL };
    fake_handles(1);
    *plan = (cusparseSpSMDescr_t)p;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t plan)
{
    fake_free(plan);
    fake_handles(-1);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         cusparseDnMatDescr_t c, cudaDataType type,
                                         cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t plan, size_t *bytes)
{
    FAILS_WITH(CUSPARSE_STATUS_EXECUTION_FAILED);
    *bytes = SPARSE_ROOM;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t op_a,
                                       cusparseOperation_t op_b, const void *alpha,
                                       cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                       cusparseDnMatDescr_t c, cudaDataType type, cusparseSpSMAlg_t algorithm,
                                       cusparseSpSMDescr_t plan, void *buffer)
{
    FAILS_WITH(CUSPARSE_STATUS_EXECUTION_FAILED);
    if (!fake_owns(buffer, SPARSE_ROOM)) return CUSPARSE_STATUS_INVALID_VALUE;
    *(triangle_plan *)plan = (triangle_plan){ a, buffer };
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t op_a,
                                    cusparseOperation_t op_b, const void *alpha, cusparseConstSpMatDescr_t a,
                                    cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c, cudaDataType type,
                                    cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t plan)
{
    FAILS_WITH(CUSPARSE_STATUS_EXECUTION_FAILED);
    const sparse_handle *h = (const sparse_handle *)handle;
    const triangle_plan *p = (const triangle_plan *)plan;
    const triangle_call all = { *(const sparse_matrix *)a, *(const dense_matrix *)b, *(const dense_matrix *)c,
                                op_a == CUSPARSE_OPERATION_TRANSPOSE, p->buffer };
    const int64_t n = all.a.rows;
    if (p->matrix != a || h->context != fake_context() || op_b != CUSPARSE_OPERATION_NON_TRANSPOSE ||
        all.a.columns != n || all.b.rows != n || all.x.rows != n || all.b.columns != all.x.columns ||
        read_number(type, alpha) != 1)
        return CUSPARSE_STATUS_INVALID_VALUE;
    return fake_queue(h->stream, run_triangle, &all, sizeof all) ? CUSPARSE_STATUS_EXECUTION_FAILED
                                                                 : CUSPARSE_STATUS_SUCCESS;
}

/* ---- cuDSS ---- */

typedef struct direct_handle {
    int context;
    cudaStream_t stream;
} direct_handle;

typedef struct direct_matrix {
    sparse_matrix sparse;
    dense_matrix dense;
} direct_matrix;

typedef struct direct_data {
    cudaStream_t stream;
    int phases, changed;
} direct_data;

typedef struct direct_config {
    int mode, refinements;
} direct_config;

static cudssStatus_t make(void *to, const void *what, size_t bytes)
{
    FAILS_WITH(CUDSS_STATUS_ALLOC_FAILED);
    void *p = fake_alloc(bytes);
    if (!p) return CUDSS_STATUS_ALLOC_FAILED;
    memcpy(p, what, bytes);
    memcpy(to, &p, sizeof p);
    fake_handles(1);
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t end(void *p)
{
    fake_free(p);
    fake_handles(-1);
    return CUDSS_STATUS_SUCCESS;
}

cudssStatus_t cudssCreate(cudssHandle_t *handle)
{
    const direct_handle h = { .context = fake_context() };
    return make(handle, &h, sizeof h);
}
cudssStatus_t cudssDestroy(cudssHandle_t handle) { return end(handle); }

cudssStatus_t cudssSetStream(cudssHandle_t handle, cudaStream_t stream)
{
    FAILS_WITH(CUDSS_STATUS_NOT_INITIALIZED);
    ((direct_handle *)handle)->stream = stream;
    return CUDSS_STATUS_SUCCESS;
}

cudssStatus_t cudssConfigCreate(cudssConfig_t *config)
{
    const direct_config c = { 0 };
    return make(config, &c, sizeof c);
}
cudssStatus_t cudssConfigDestroy(cudssConfig_t config) { return end(config); }

cudssStatus_t cudssConfigSet(cudssConfig_t config, cudssConfigParam_t param, const void *value, size_t bytes)
{
    direct_config *c = (direct_config *)config;
    FAILS_WITH(CUDSS_STATUS_INVALID_VALUE);
    if (bytes != sizeof(int)) return CUDSS_STATUS_INVALID_VALUE;
    memcpy(param == CUDSS_CONFIG_SOLVE_MODE ? &c->mode : &c->refinements, value, bytes);
    return CUDSS_STATUS_SUCCESS;
}

cudssStatus_t cudssDataCreate(const cudssHandle_t handle, cudssData_t *data)
{
    const direct_data d = { .stream = ((direct_handle *)handle)->stream };
    return make(data, &d, sizeof d);
}

cudssStatus_t cudssDataDestroy(cudssHandle_t handle, cudssData_t data)
{
    direct_data *d = (direct_data *)data;
    cudaStreamSynchronize(d->stream);
    return end(data);
}

cudssStatus_t cudssDataGet(const cudssHandle_t handle, const cudssData_t data, cudssDataParam_t param,
                           void *value, size_t bytes, size_t *written)
{
    const direct_data *d = (const direct_data *)data;
    FAILS_WITH(CUDSS_STATUS_EXECUTION_FAILED);
    if (param != CUDSS_DATA_NPIVOTS || bytes != sizeof d->changed) return CUDSS_STATUS_INVALID_VALUE;
    if (cudaStreamSynchronize(d->stream)) return CUDSS_STATUS_EXECUTION_FAILED;
    memcpy(value, &d->changed, bytes);
    *written = bytes;
    return CUDSS_STATUS_SUCCESS;
}

cudssStatus_t cudssMatrixCreateCsr(cudssMatrix_t *matrix, int64_t rows, int64_t columns, int64_t count,
                                   const void *row_start, const void *row_end, const void *column,
                                   const void *values, cudaDataType_t offset_type, cudaDataType_t index_type,
                                   cudaDataType_t value_type, cudssMatrixType_t type,
                                   cudssMatrixViewType_t view, cudssIndexBase_t base)
{
    const bool wide = offset_type == CUDA_R_64I;
    const size_t each = wide ? 8 : 4;
    const direct_matrix m = { .sparse = { rows, columns, count, row_start, column, (void *)(uintptr_t)values,
                                          wide, false, false, value_type } };
    if (rows != columns || rows < 1 || count < 1 || row_end || offset_type != index_type)
        return CUDSS_STATUS_INVALID_VALUE;
    if (!fake_owns(row_start, (size_t)(rows + 1) * each) || !fake_owns(column, (size_t)count * each) ||
        !fake_owns(values, (size_t)count * element_bytes(value_type)))
        return CUDSS_STATUS_INVALID_VALUE;
    return make(matrix, &m, sizeof m);
}

cudssStatus_t cudssMatrixCreateDn(cudssMatrix_t *matrix, int64_t rows, int64_t columns, int64_t ld,
                                  const void *values, cudaDataType_t value_type, cudssLayout_t order)
{
    const direct_matrix m = { .dense = { rows, columns, 1, ld, (char *)(uintptr_t)values, value_type } };
    if (order != CUDSS_LAYOUT_COL_MAJOR || ld < rows ||
        !fake_owns(values, (size_t)(ld * columns) * element_bytes(value_type)))
        return CUDSS_STATUS_INVALID_VALUE;
    return make(matrix, &m, sizeof m);
}
cudssStatus_t cudssMatrixDestroy(cudssMatrix_t matrix) { return end(matrix); }

typedef struct direct_call {
    sparse_matrix a;
    dense_matrix b, x;
    direct_data *data;
    bool turned;
} direct_call;

/* Swaps rows so that the pivot of column k is its largest element, and replaces one that is too small. */
static void take_pivot(double complex *m, int64_t n, int64_t width, int64_t k, double size, int *changed)
{
    int64_t best = k;
    for (int64_t i = k; i < n; i++)
        if (cabs(m[i * width + k]) > cabs(m[best * width + k])) best = i;
    for (int64_t j = 0; j < width; j++) {
        const double complex x = m[k * width + j];
        m[k * width + j] = m[best * width + j];
        m[best * width + j] = x;
    }
    if (cabs(m[k * width + k]) > 1e-13 * size) return;
    m[k * width + k] = 1e-13 * size;
    ++*changed;
}

static void eliminate(double complex *m, int64_t n, int64_t width, double size, int *changed)
{
    for (int64_t k = 0; k < n; k++) {
        take_pivot(m, n, width, k, size, changed);
        for (int64_t i = 0; i < n; i++) {
            const double complex factor = m[i * width + k] / m[k * width + k];
            for (int64_t j = k; j < width && i != k; j++) m[i * width + j] -= factor * m[k * width + j];
        }
    }
}

/* Gauss-Jordan elimination of [A, b]. */
static void run_direct(void *args)
{
    const direct_call *c = args;
    const int64_t n = c->a.rows, width = n + c->b.columns;
    const size_t bytes = (size_t)(n * width) * sizeof(double complex);
    double complex *m = fake_alloc(bytes);
    double size = 0;
    if (!m) abort();
    memset(m, 0, bytes);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t k = index_of(&c->a, c->a.offsets, r); k < index_of(&c->a, c->a.offsets, r + 1); k++) {
            const int64_t column = index_of(&c->a, c->a.column, k);
            const double complex v =
                read_number(c->a.type, (char *)c->a.values + k * (int64_t)element_bytes(c->a.type));
            if (column < 0 || column >= n) abort();
            m[c->turned ? column * width + r : r * width + column] = v;
            size = fmax(size, cabs(v));
        }
        for (int64_t j = 0; j < c->b.columns; j++)
            m[r * width + n + j] = read_number(c->a.type, element(&c->b, r, j));
    }
    eliminate(m, n, width, size, &c->data->changed);
    for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < c->b.columns; j++)
            write_number(c->a.type, element(&c->x, r, j), m[r * width + n + j] / m[r * width + r]);
    fake_free(m);
}

cudssStatus_t cudssExecute(cudssHandle_t handle, int phase, const cudssConfig_t config, cudssData_t data,
                           const cudssMatrix_t matrix, cudssMatrix_t solution, const cudssMatrix_t right)
{
    const direct_handle *h = (const direct_handle *)handle;
    direct_data *d = (direct_data *)data;
    FAILS_WITH(phase == CUDSS_PHASE_ANALYSIS ? CUDSS_STATUS_ALLOC_FAILED : CUDSS_STATUS_EXECUTION_FAILED);
    if (h->context != fake_context() || (phase != CUDSS_PHASE_ANALYSIS && !d->phases))
        return CUDSS_STATUS_INVALID_VALUE;
    d->phases |= phase;
    if (phase != CUDSS_PHASE_SOLVE) return CUDSS_STATUS_SUCCESS;
    const direct_call c = { ((direct_matrix *)matrix)->sparse, ((direct_matrix *)right)->dense,
                            ((direct_matrix *)solution)->dense, d,
                            ((const direct_config *)config)->mode == CUDSS_SOLVE_MODE_TRANSPOSE };
    if (!(d->phases & CUDSS_PHASE_FACTORIZATION) || c.b.rows != c.a.rows || c.x.rows != c.a.rows ||
        c.b.columns != c.x.columns)
        return CUDSS_STATUS_INVALID_VALUE;
    return fake_queue(h->stream, run_direct, &c, sizeof c) ? CUDSS_STATUS_EXECUTION_FAILED
                                                           : CUDSS_STATUS_SUCCESS;
}

/* ---- checks ---- */

static cudaDataType type_of(const csr_system *a) { return vendor_type((duet_dtype)a->type); }

static double complex at(const csr_system *a, const void *p, int64_t i)
{
    return read_number(type_of(a), (const char *)p + i * (int64_t)element_bytes(type_of(a)));
}

static sparse_matrix matrix_of(const csr_system *a)
{
    const char *offsets = a->pattern;
    return (sparse_matrix){ .rows = a->n,
                            .count = a->count,
                            .offsets = offsets,
                            .column = offsets + (a->n + 1) * (a->wide ? 8 : 4),
                            .wide = a->wide };
}

static void find_zero(void *args)
{
    const csr_system *a = args;
    const sparse_matrix m = matrix_of(a);
    for (int64_t r = a->n; r-- > 0;) {
        double complex x = 0;
        for (int64_t k = index_of(&m, m.offsets, r); k < index_of(&m, m.offsets, r + 1); k++)
            if (index_of(&m, m.column, k) == r) x = at(a, a->values, k);
        if (x == 0) *a->zero = (int)(a->n - r);
    }
}

static double magnitude(double complex x) { return fabs(creal(x)) + fabs(cimag(x)); }
static double larger_or_nan(double a, double b) { return a >= b || isnan(a) ? a : b; }

static void find_rest(void *args)
{
    const csr_system *a = args;
    const sparse_matrix m = matrix_of(a);
    for (int64_t j = 0; j < a->sides; j++) {
        double complex *rest = fake_alloc((size_t)a->n * sizeof *rest);
        double *terms = a->terms + j * a->n, most[2] = { 0, 0 };
        if (!rest) abort();
        for (int64_t r = 0; r < a->n; r++) {
            rest[r] = at(a, a->b, j * a->n + r);
            terms[r] = 0;
        }
        for (int64_t r = 0; r < a->n; r++)
            for (int64_t k = index_of(&m, m.offsets, r); k < index_of(&m, m.offsets, r + 1); k++) {
                const int64_t column = index_of(&m, m.column, k), to = a->transposed ? column : r,
                              from = a->transposed ? r : column;
                const double complex v = at(a, a->values, k), x = at(a, a->x, j * a->n + from);
                rest[to] -= v * x;
                terms[to] += magnitude(v) * magnitude(x);
            }
        for (int64_t r = 0; r < a->n; r++) {
            most[0] = larger_or_nan(most[0], magnitude(rest[r]));
            most[1] = larger_or_nan(most[1], terms[r]);
        }
        memcpy(a->most + 2 * j, most, sizeof most);
        fake_free(rest);
    }
}

static cudaError_t launch_check(void run(void *), const csr_system *a, bool fits, cudaStream_t q)
{
    const size_t each = element_bytes(type_of(a)), index = a->wide ? 8 : 4;
    ENTER(cudaErrorUnknown);
    if (!fits || !fake_owns(a->values, (size_t)a->count * each) ||
        !fake_owns(a->pattern, (size_t)(a->n + 1 + a->count) * index))
        return fake_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&fake_lock);
    fake_counted.launches++;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(q, run, a, sizeof *a);
}

cudaError_t csr_zero_launch(const csr_system *a, cudaStream_t q)
{
    return launch_check(find_zero, a, fake_owns(a->zero, sizeof *a->zero), q);
}

cudaError_t csr_rest_launch(const csr_system *a, cudaStream_t q)
{
    const size_t elements = (size_t)(a->n * a->sides), each = element_bytes(type_of(a));
    return launch_check(find_rest, a,
                        fake_owns(a->x, elements * each) && fake_owns(a->b, elements * each) &&
                            fake_owns(a->rest, 2 * elements * sizeof(double)) &&
                            fake_owns(a->terms, elements * sizeof(double)) &&
                            fake_owns(a->most, 2 * (size_t)a->sides * sizeof(double)),
                        q);
}
