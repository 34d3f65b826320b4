/* cudss_api.h - the part of cuDSS 1 that sparse_systems.c calls. cuDSS does not come with the CUDA toolkit,
 * so its header may be absent where Duet is built. Constants have the values of cuDSS. */
#ifndef CUDSS_API_H
#define CUDSS_API_H

#include <cusparse.h> /* for cudaDataType_t */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDSS_MAJOR 1 /* of the soname */

typedef struct cudssContext *cudssHandle_t;
typedef struct cudssMatrix *cudssMatrix_t;
typedef struct cudssData *cudssData_t;
typedef struct cudssConfig *cudssConfig_t;

typedef enum {
    CUDSS_STATUS_SUCCESS,
    CUDSS_STATUS_NOT_INITIALIZED,
    CUDSS_STATUS_ALLOC_FAILED,
    CUDSS_STATUS_INVALID_VALUE,
    CUDSS_STATUS_NOT_SUPPORTED,
    CUDSS_STATUS_EXECUTION_FAILED,
    CUDSS_STATUS_INTERNAL_ERROR,
    CUDSS_STATUS_IR_FAILED
} cudssStatus_t;
typedef enum { CUDSS_CONFIG_SOLVE_MODE = 4, CUDSS_CONFIG_IR_N_STEPS = 5 } cudssConfigParam_t;
typedef enum { CUDSS_DATA_INFO, CUDSS_DATA_NPIVOTS = 2 } cudssDataParam_t;
typedef enum { CUDSS_SOLVE_MODE_NORMAL, CUDSS_SOLVE_MODE_TRANSPOSE } cudssSolveMode_t;
typedef enum {
    CUDSS_PHASE_ANALYSIS = 3,
    CUDSS_PHASE_FACTORIZATION = 4,
    CUDSS_PHASE_SOLVE = 0x3f0
} cudssPhase_t;
typedef enum { CUDSS_MTYPE_GENERAL } cudssMatrixType_t;
typedef enum { CUDSS_MVIEW_FULL } cudssMatrixViewType_t;
typedef enum { CUDSS_BASE_ZERO } cudssIndexBase_t;
typedef enum { CUDSS_LAYOUT_COL_MAJOR } cudssLayout_t;

cudssStatus_t cudssCreate(cudssHandle_t *handle);
cudssStatus_t cudssDestroy(cudssHandle_t handle);
cudssStatus_t cudssSetStream(cudssHandle_t handle, cudaStream_t stream);
cudssStatus_t cudssConfigCreate(cudssConfig_t *config);
cudssStatus_t cudssConfigDestroy(cudssConfig_t config);
cudssStatus_t cudssConfigSet(cudssConfig_t config, cudssConfigParam_t param, const void *value, size_t bytes);
cudssStatus_t cudssDataCreate(const cudssHandle_t handle, cudssData_t *data);
cudssStatus_t cudssDataDestroy(cudssHandle_t handle, cudssData_t data);
cudssStatus_t cudssDataGet(const cudssHandle_t handle, const cudssData_t data, cudssDataParam_t param,
                           void *value, size_t bytes, size_t *written);
cudssStatus_t cudssMatrixCreateCsr(cudssMatrix_t *matrix, int64_t rows, int64_t columns, int64_t count,
                                   const void *row_start, const void *row_end, const void *column,
                                   const void *values, cudaDataType_t offset_type, cudaDataType_t index_type,
                                   cudaDataType_t value_type, cudssMatrixType_t type,
                                   cudssMatrixViewType_t view, cudssIndexBase_t base);
cudssStatus_t cudssMatrixCreateDn(cudssMatrix_t *matrix, int64_t rows, int64_t columns, int64_t ld,
                                  const void *values, cudaDataType_t value_type, cudssLayout_t layout);
cudssStatus_t cudssMatrixDestroy(cudssMatrix_t matrix);
cudssStatus_t cudssExecute(cudssHandle_t handle, int phase, const cudssConfig_t config, cudssData_t data,
                           const cudssMatrix_t matrix, cudssMatrix_t solution, const cudssMatrix_t right);

#ifdef __cplusplus
}
#endif
#endif
