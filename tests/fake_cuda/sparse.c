/* sparse.c - the fake cuSPARSE: products by their definition. Like the real one, it trusts the pattern;
 * here an index that is out of bounds ends the program. */
#include "fake.h"
#include "sparse_matrix.h"
#include <stdlib.h>
#include <string.h>

#define SPARSE_ENTER(status)                                                                                 \
    if (fake_vendor_fails()) return status

/* ---- handles and descriptors ---- */

static cusparseStatus_t make(void *to, const void *what, size_t bytes)
{
    SPARSE_ENTER(CUSPARSE_STATUS_ALLOC_FAILED);
    void *p = fake_alloc(bytes);
    if (!p) return CUSPARSE_STATUS_ALLOC_FAILED;
    memcpy(p, what, bytes);
    memcpy(to, &p, sizeof p);
    fake_handles(1);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t end(const void *p)
{
    fake_free((void *)(uintptr_t)p);
    fake_handles(-1);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle)
{
    const sparse_handle h = { .context = fake_context() };
    return make(handle, &h, sizeof h);
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) { return end(handle); }

cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream)
{
    SPARSE_ENTER(CUSPARSE_STATUS_NOT_INITIALIZED);
    ((sparse_handle *)handle)->stream = stream;
    return CUSPARSE_STATUS_SUCCESS;
}

const char *cusparseGetErrorString(cusparseStatus_t status)
{
    return status == CUSPARSE_STATUS_ALLOC_FAILED ? "(fake) no memory" : "(fake) failure";
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t count,
                                   void *offsets, void *column, void *values,
                                   cusparseIndexType_t offsets_type, cusparseIndexType_t column_type,
                                   cusparseIndexBase_t base, cudaDataType type)
{
    const bool wide = offsets_type == CUSPARSE_INDEX_64I;
    const size_t each = wide ? 8 : 4;
    const sparse_matrix m = { rows, columns, count, offsets, column, values, wide, false, false, type };
    if (base != CUSPARSE_INDEX_BASE_ZERO || offsets_type != column_type || rows < 1 || columns < 1 ||
        count < 1)
        return CUSPARSE_STATUS_INVALID_VALUE;
    if (!fake_owns(offsets, (size_t)(rows + 1) * each) || !fake_owns(column, (size_t)count * each) ||
        !fake_owns(values, (size_t)count * element_bytes(type)))
        return CUSPARSE_STATUS_INVALID_VALUE;
    return make(matrix, &m, sizeof m);
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) { return end(matrix); }

static cusparseStatus_t make_dense(void *to, const dense_matrix *m)
{
    const int64_t last = (m->rows - 1) * m->down + (m->columns - 1) * m->across;
    if (m->rows < 1 || m->columns < 1 || !fake_owns(m->values, (size_t)(last + 1) * element_bytes(m->type)))
        return CUSPARSE_STATUS_INVALID_VALUE;
    return make(to, m, sizeof *m);
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t ld,
                                     void *values, cudaDataType type, cusparseOrder_t order)
{
    const bool by_rows = order == CUSPARSE_ORDER_ROW;
    const dense_matrix m = { rows, columns, by_rows ? ld : 1, by_rows ? 1 : ld, values, type };
    if (ld < (by_rows ? columns : rows)) return CUSPARSE_STATUS_INVALID_VALUE;
    return make_dense(matrix, &m);
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) { return end(matrix); }

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *vector, int64_t size, void *values,
                                     cudaDataType type)
{
    const dense_matrix m = { size, 1, 1, 1, values, type };
    return make_dense(vector, &m);
}
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) { return end(vector); }

cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute,
                                           void *data, size_t bytes)
{
    sparse_matrix *m = (sparse_matrix *)matrix;
    SPARSE_ENTER(CUSPARSE_STATUS_EXECUTION_FAILED);
    if (attribute == CUSPARSE_SPMAT_FILL_MODE)
        m->upper = *(cusparseFillMode_t *)data == CUSPARSE_FILL_MODE_UPPER;
    else m->unit = *(cusparseDiagType_t *)data == CUSPARSE_DIAG_TYPE_UNIT;
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- products ---- */

typedef struct call {
    sparse_matrix a;
    dense_matrix x, y; /* y: the result; of SDDMM the second operand, of which the rows are multiplied */
    bool turned, samples;
    void *buffer;
} call;

/* to += a b */
static void add(cudaDataType type, void *to, const void *a, const void *b)
{
    if (type == CUDA_R_32F) *(float *)to += *(const float *)a * *(const float *)b;
    else if (type == CUDA_R_64F) *(double *)to += *(const double *)a * *(const double *)b;
    else if (type == CUDA_C_32F) {
        const float *u = a, *v = b;
        ((float *)to)[0] += u[0] * v[0] - u[1] * v[1];
        ((float *)to)[1] += u[0] * v[1] + u[1] * v[0];
    } else {
        const double *u = a, *v = b;
        ((double *)to)[0] += u[0] * v[0] - u[1] * v[1];
        ((double *)to)[1] += u[0] * v[1] + u[1] * v[0];
    }
}

static void visit(const call *c, int64_t row, int64_t column, char *value)
{
    const size_t each = element_bytes(c->a.type);
    if (c->samples) {
        memset(value, 0, each);
        for (int64_t j = 0; j < c->x.columns; j++)
            add(c->a.type, value, element(&c->x, row, j), element(&c->y, column, j));
        return;
    }
    const int64_t to = c->turned ? column : row, from = c->turned ? row : column;
    for (int64_t j = 0; j < c->y.columns; j++)
        add(c->a.type, element(&c->y, to, j), value, element(&c->x, from, j));
}

static void run_call(void *args)
{
    const call *c = args;
    const size_t each = element_bytes(c->a.type);
    memset(c->buffer, 0xff, SPARSE_ROOM);
    for (int64_t i = 0; i < c->y.rows && !c->samples; i++)
        for (int64_t j = 0; j < c->y.columns; j++) memset(element(&c->y, i, j), 0, each);
    for (int64_t r = 0; r < c->a.rows; r++)
        for (int64_t k = index_of(&c->a, c->a.offsets, r); k < index_of(&c->a, c->a.offsets, r + 1); k++) {
            const int64_t column = index_of(&c->a, c->a.column, k);
            if (k < 0 || k >= c->a.count || column < 0 || column >= c->a.columns) abort();
            visit(c, r, column, (char *)c->a.values + k * (int64_t)each);
        }
}

/* Is x[0] this number, and an imaginary part 0? */
static bool is_number(cudaDataType type, const void *x, double wanted)
{
    const float *f = x;
    const double *d = x;
    if (type == CUDA_R_32F) return f[0] == (float)wanted;
    if (type == CUDA_R_64F) return d[0] == wanted;
    return type == CUDA_C_32F ? f[0] == (float)wanted && f[1] == 0 : d[0] == wanted && d[1] == 0;
}

static cusparseStatus_t launch(cusparseHandle_t handle, const call *c, const void *alpha, const void *beta)
{
    SPARSE_ENTER(CUSPARSE_STATUS_EXECUTION_FAILED);
    const sparse_handle *h = (const sparse_handle *)handle;
    const sparse_matrix *a = &c->a;
    const int64_t rows = c->turned ? a->columns : a->rows, columns = c->turned ? a->rows : a->columns;
    const bool fits = c->samples
                          ? c->x.rows == a->rows && c->y.rows == a->columns && c->x.columns == c->y.columns
                          : c->x.rows == columns && c->y.rows == rows && c->x.columns == c->y.columns;
    if (!fits || h->context != fake_context() || !fake_owns(c->buffer, SPARSE_ROOM))
        return CUSPARSE_STATUS_INVALID_VALUE;
    if (!is_number(a->type, alpha, 1) || !is_number(a->type, beta, 0)) return CUSPARSE_STATUS_INVALID_VALUE;
    if (fake_queue(h->stream, run_call, c, sizeof *c)) return CUSPARSE_STATUS_EXECUTION_FAILED;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t size_of(size_t *bytes)
{
    SPARSE_ENTER(CUSPARSE_STATUS_EXECUTION_FAILED);
    *bytes = SPARSE_ROOM;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                         const void *beta, cusparseDnVecDescr_t y, cudaDataType type,
                                         cusparseSpMVAlg_t algorithm, size_t *bytes)
{
    return size_of(bytes);
}

cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void *beta,
                              cusparseDnVecDescr_t y, cudaDataType type, cusparseSpMVAlg_t algorithm,
                              void *buffer)
{
    const call c = { *(const sparse_matrix *)a,
                     *(const dense_matrix *)x,
                     *(const dense_matrix *)y,
                     op == CUSPARSE_OPERATION_TRANSPOSE,
                     false,
                     buffer };
    return launch(handle, &c, alpha, beta);
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c, cudaDataType type,
                                         cusparseSpMMAlg_t algorithm, size_t *bytes)
{
    return size_of(bytes);
}

cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                              const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void *beta, cusparseDnMatDescr_t c, cudaDataType type,
                              cusparseSpMMAlg_t algorithm, void *buffer)
{
    const call all = { *(const sparse_matrix *)a,
                       *(const dense_matrix *)b,
                       *(const dense_matrix *)c,
                       op_a == CUSPARSE_OPERATION_TRANSPOSE,
                       false,
                       buffer };
    if (op_b != CUSPARSE_OPERATION_NON_TRANSPOSE) return CUSPARSE_STATUS_INVALID_VALUE;
    return launch(handle, &all, alpha, beta);
}

cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                          cusparseOperation_t op_b, const void *alpha,
                                          cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                          const void *beta, cusparseSpMatDescr_t c, cudaDataType type,
                                          cusparseSDDMMAlg_t algorithm, size_t *bytes)
{
    return size_of(bytes);
}

cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                               const void *alpha, cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                               const void *beta, cusparseSpMatDescr_t c, cudaDataType type,
                               cusparseSDDMMAlg_t algorithm, void *buffer)
{
    const call all = {
        *(const sparse_matrix *)c, *(const dense_matrix *)a, *(const dense_matrix *)b, false, true, buffer
    };
    if (op_a != CUSPARSE_OPERATION_NON_TRANSPOSE || op_b != CUSPARSE_OPERATION_TRANSPOSE)
        return CUSPARSE_STATUS_INVALID_VALUE;
    return launch(handle, &all, alpha, beta);
}
