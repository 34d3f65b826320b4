/* cusolverDn.h - the part of cuSOLVER that src/gpu uses. */
#ifndef FAKE_CUSOLVERDN_H
#define FAKE_CUSOLVERDN_H

#include "cublas_v2.h"

#define CUSOLVER_VER_MAJOR 12

typedef int cusolver_int_t;
typedef enum {
    CUSOLVER_STATUS_SUCCESS = 0,
    CUSOLVER_STATUS_NOT_INITIALIZED = 1,
    CUSOLVER_STATUS_ALLOC_FAILED = 2,
    CUSOLVER_STATUS_INVALID_VALUE = 3,
    CUSOLVER_STATUS_EXECUTION_FAILED = 6
} cusolverStatus_t;
typedef enum { CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR } cusolverEigMode_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct cusolverDnParams *cusolverDnParams_t;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params);
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params);

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                             int64_t n, cudaDataType_t type, const void *A, int64_t lda,
                                             cudaDataType_t compute, size_t *bytes, size_t *host_bytes);
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                  cudaDataType_t type, void *A, int64_t lda, int64_t *ipiv,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info);
cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasOperation_t how,
                                  int64_t n, int64_t sides, cudaDataType_t type, const void *A, int64_t lda,
                                  const int64_t *ipiv, cudaDataType_t type_b, void *B, int64_t ldb,
                                  int *info);
cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cublasFillMode_t part, int64_t n, cudaDataType_t type,
                                             const void *A, int64_t lda, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes);
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t part,
                                  int64_t n, cudaDataType_t type, void *A, int64_t lda,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info);
cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                             int64_t n, cudaDataType_t type, const void *A, int64_t lda,
                                             cudaDataType_t type_tau, const void *tau, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes);
cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                  cudaDataType_t type, void *A, int64_t lda, cudaDataType_t type_tau,
                                  void *tau, cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info);
cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cusolverEigMode_t mode, cublasFillMode_t part, int64_t n,
                                             cudaDataType_t type, const void *A, int64_t lda,
                                             cudaDataType_t type_w, const void *W, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes);
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cusolverEigMode_t mode, cublasFillMode_t part, int64_t n,
                                  cudaDataType_t type, void *A, int64_t lda, cudaDataType_t type_w, void *W,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info);
cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params,
                                            cusolverEigMode_t left, cusolverEigMode_t right, int64_t n,
                                            cudaDataType_t type, const void *a, int64_t lda,
                                            cudaDataType_t type_w, const void *w, cudaDataType_t type_vl,
                                            const void *vl, int64_t ldvl, cudaDataType_t type_vr,
                                            const void *vr, int64_t ldvr, cudaDataType_t compute,
                                            size_t *bytes, size_t *host_bytes);
cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t h, cusolverDnParams_t params, cusolverEigMode_t left,
                                 cusolverEigMode_t right, int64_t n, cudaDataType_t type, void *a,
                                 int64_t lda, cudaDataType_t type_w, void *w, cudaDataType_t type_vl,
                                 void *vl, int64_t ldvl, cudaDataType_t type_vr, void *vr, int64_t ldvr,
                                 cudaDataType_t compute, void *room, size_t bytes, void *host,
                                 size_t host_bytes, int *info);
cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             signed char jobu, signed char jobvt, int64_t m, int64_t n,
                                             cudaDataType_t type, const void *A, int64_t lda,
                                             cudaDataType_t type_s, const void *S, cudaDataType_t type_u,
                                             const void *U, int64_t ldu, cudaDataType_t type_vt,
                                             const void *VT, int64_t ldvt, cudaDataType_t compute,
                                             size_t *bytes, size_t *host_bytes);
cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t params, signed char jobu,
                                  signed char jobvt, int64_t m, int64_t n, cudaDataType_t type, void *A,
                                  int64_t lda, cudaDataType_t type_s, void *S, cudaDataType_t type_u, void *U,
                                  int64_t ldu, cudaDataType_t type_vt, void *VT, int64_t ldvt,
                                  cudaDataType_t compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info);

#define FAKE_QR(letter, type, q)                                                                             \
    cusolverStatus_t cusolverDn##letter##q##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k,   \
                                                           const type *A, int lda, const type *tau,          \
                                                           int *length);                                     \
    cusolverStatus_t cusolverDn##letter##q##gqr(cusolverDnHandle_t handle, int m, int n, int k, type *A,     \
                                                int lda, const type *tau, type *room, int length,            \
                                                int *info);                                                  \
    cusolverStatus_t cusolverDn##letter##q##mqr_bufferSize(cusolverDnHandle_t handle, cublasSideMode_t side, \
                                                           cublasOperation_t how, int m, int n, int k,       \
                                                           const type *A, int lda, const type *tau,          \
                                                           const type *C, int ldc, int *length);             \
    cusolverStatus_t cusolverDn##letter##q##mqr(cusolverDnHandle_t handle, cublasSideMode_t side,            \
                                                cublasOperation_t how, int m, int n, int k, const type *A,   \
                                                int lda, const type *tau, type *C, int ldc, type *room,      \
                                                int length, int *info);
FAKE_QR(S, float, or)
FAKE_QR(D, double, or)
FAKE_QR(C, cuComplex, un)
FAKE_QR(Z, cuDoubleComplex, un)
#undef FAKE_QR

#define FAKE_REFINED(letters, type)                                                                          \
    cusolverStatus_t cusolverDn##letters##gesv_bufferSize(cusolverDnHandle_t handle, cusolver_int_t n,       \
                                                          cusolver_int_t sides, type *A, cusolver_int_t lda, \
                                                          cusolver_int_t *pivot, type *B,                    \
                                                          cusolver_int_t ldb, type *X, cusolver_int_t ldx,   \
                                                          void *room, size_t *bytes);                        \
    cusolverStatus_t cusolverDn##letters##gesv(cusolverDnHandle_t handle, cusolver_int_t n,                  \
                                               cusolver_int_t sides, type *A, cusolver_int_t lda,            \
                                               cusolver_int_t *pivot, type *B, cusolver_int_t ldb, type *X,  \
                                               cusolver_int_t ldx, void *room, size_t bytes,                 \
                                               cusolver_int_t *turns, cusolver_int_t *info);
FAKE_REFINED(DS, double)
FAKE_REFINED(DH, double)
FAKE_REFINED(ZC, cuDoubleComplex)
FAKE_REFINED(ZK, cuDoubleComplex)
#undef FAKE_REFINED

#endif
