/* cublas_v2.h - the part of cuBLAS that src/gpu uses. */
#ifndef FAKE_CUBLAS_V2_H
#define FAKE_CUBLAS_V2_H

#include "cublasLt.h"

typedef enum { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT } cublasSideMode_t;
typedef struct cublasContext *cublasHandle_t;

#define cublasCreate       cublasCreate_v2
#define cublasDestroy      cublasDestroy_v2
#define cublasSetStream    cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasStrsm        cublasStrsm_v2
#define cublasDtrsm        cublasDtrsm_v2
#define cublasSgemm        cublasSgemm_v2
#define cublasDgemm        cublasDgemm_v2
#define cublasCgemm        cublasCgemm_v2
#define cublasZgemm        cublasZgemm_v2
#define cublasCtrsm        cublasCtrsm_v2
#define cublasZtrsm        cublasZtrsm_v2

typedef struct cuComplex {
    float x, y;
} cuComplex;
typedef struct cuDoubleComplex {
    double x, y;
} cuDoubleComplex;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *room, size_t bytes);
cublasStatus_t cublasStrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,
                           cublasOperation_t how, cublasDiagType_t diagonal, int m, int n, const float *alpha,
                           const float *A, int lda, float *B, int ldb);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t how_a, cublasOperation_t how_b, int m,
                           int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                           const float *beta, float *c, int ldc);
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t how_a, cublasOperation_t how_b, int m,
                           int n, int k, const double *alpha, const double *a, int lda, const double *b,
                           int ldb, const double *beta, double *c, int ldc);
cublasStatus_t cublasCgemm(cublasHandle_t handle, cublasOperation_t how_a, cublasOperation_t how_b, int m,
                           int n, int k, const cuComplex *alpha, const cuComplex *a, int lda,
                           const cuComplex *b, int ldb, const cuComplex *beta, cuComplex *c, int ldc);
cublasStatus_t cublasZgemm(cublasHandle_t handle, cublasOperation_t how_a, cublasOperation_t how_b, int m,
                           int n, int k, const cuDoubleComplex *alpha, const cuDoubleComplex *a, int lda,
                           const cuDoubleComplex *b, int ldb, const cuDoubleComplex *beta, cuDoubleComplex *c,
                           int ldc);
cublasStatus_t cublasDtrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,
                           cublasOperation_t how, cublasDiagType_t diagonal, int m, int n,
                           const double *alpha, const double *A, int lda, double *B, int ldb);
cublasStatus_t cublasCtrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,
                           cublasOperation_t how, cublasDiagType_t diagonal, int m, int n,
                           const cuComplex *alpha, const cuComplex *A, int lda, cuComplex *B, int ldb);
cublasStatus_t cublasZtrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,
                           cublasOperation_t how, cublasDiagType_t diagonal, int m, int n,
                           const cuDoubleComplex *alpha, const cuDoubleComplex *A, int lda,
                           cuDoubleComplex *B, int ldb);

#endif
