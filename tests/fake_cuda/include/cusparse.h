/* cusparse.h - the part of cuSPARSE that src/gpu uses. */
#ifndef FAKE_CUSPARSE_H
#define FAKE_CUSPARSE_H

#include "cublasLt.h"

#define CUSPARSE_VER_MAJOR 12

typedef cudaDataType_t cudaDataType;
typedef enum {
    CUSPARSE_STATUS_SUCCESS = 0,
    CUSPARSE_STATUS_NOT_INITIALIZED = 1,
    CUSPARSE_STATUS_ALLOC_FAILED = 2,
    CUSPARSE_STATUS_INVALID_VALUE = 3,
    CUSPARSE_STATUS_EXECUTION_FAILED = 6,
    CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11
} cusparseStatus_t;
typedef enum { CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE } cusparseOperation_t;
typedef enum { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 } cusparseIndexType_t;
typedef enum { CUSPARSE_INDEX_BASE_ZERO = 0 } cusparseIndexBase_t;
typedef enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 } cusparseOrder_t;
typedef enum { CUSPARSE_SPMV_CSR_ALG1 = 2, CUSPARSE_SPMV_CSR_ALG2 = 3 } cusparseSpMVAlg_t;
typedef enum { CUSPARSE_SPMM_ALG_DEFAULT = 0 } cusparseSpMMAlg_t;
typedef enum { CUSPARSE_SDDMM_ALG_DEFAULT = 0 } cusparseSDDMMAlg_t;
typedef enum { CUSPARSE_SPSM_ALG_DEFAULT = 0 } cusparseSpSMAlg_t;
typedef enum { CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER } cusparseFillMode_t;
typedef enum { CUSPARSE_DIAG_TYPE_NON_UNIT, CUSPARSE_DIAG_TYPE_UNIT } cusparseDiagType_t;
typedef enum { CUSPARSE_SPMAT_FILL_MODE, CUSPARSE_SPMAT_DIAG_TYPE } cusparseSpMatAttribute_t;
typedef struct cusparseContext *cusparseHandle_t;
typedef struct cusparseSpSMDescr *cusparseSpSMDescr_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef struct cusparseSpMatDescr const *cusparseConstSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef struct cusparseDnMatDescr const *cusparseConstDnMatDescr_t;
typedef struct cusparseDnVecDescr *cusparseDnVecDescr_t;
typedef struct cusparseDnVecDescr const *cusparseConstDnVecDescr_t;

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle);
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle);
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
const char *cusparseGetErrorString(cusparseStatus_t status);
cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t count,
                                   void *offsets, void *column, void *values,
                                   cusparseIndexType_t offsets_type, cusparseIndexType_t column_type,
                                   cusparseIndexBase_t base, cudaDataType type);
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix);
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t ld,
                                     void *values, cudaDataType type, cusparseOrder_t order);
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix);
cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *vector, int64_t size, void *values,
                                     cudaDataType type);
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector);
cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                         const void *beta, cusparseDnVecDescr_t y, cudaDataType type,
                                         cusparseSpMVAlg_t algorithm, size_t *bytes);
cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void *beta,
                              cusparseDnVecDescr_t y, cudaDataType type, cusparseSpMVAlg_t algorithm,
                              void *buffer);
cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c, cudaDataType type,
                                         cusparseSpMMAlg_t algorithm, size_t *bytes);
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                              const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void *beta, cusparseDnMatDescr_t c, cudaDataType type,
                              cusparseSpMMAlg_t algorithm, void *buffer);
cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                          cusparseOperation_t op_b, const void *alpha,
                                          cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                          const void *beta, cusparseSpMatDescr_t c, cudaDataType type,
                                          cusparseSDDMMAlg_t algorithm, size_t *bytes);
cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                               const void *alpha, cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                               const void *beta, cusparseSpMatDescr_t c, cudaDataType type,
                               cusparseSDDMMAlg_t algorithm, void *buffer);
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute,
                                           void *data, size_t bytes);
cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t *plan);
cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t plan);
cusparseStatus_t cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         cusparseDnMatDescr_t c, cudaDataType type,
                                         cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t plan,
                                         size_t *bytes);
cusparseStatus_t cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t op_a,
                                       cusparseOperation_t op_b, const void *alpha,
                                       cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                       cusparseDnMatDescr_t c, cudaDataType type, cusparseSpSMAlg_t algorithm,
                                       cusparseSpSMDescr_t plan, void *buffer);
cusparseStatus_t cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t op_a,
                                    cusparseOperation_t op_b, const void *alpha, cusparseConstSpMatDescr_t a,
                                    cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c, cudaDataType type,
                                    cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t plan);

#endif
