/* nccl_api.h - the part of NCCL 2 that link.c and collective.c call. NCCL does not come with every CUDA
 * toolkit, so its header may be absent where Duet is built. A test includes nccl.h first: then only the
 * functions are declared here, again, and the compiler compares them. */
#ifndef NCCL_API_H
#define NCCL_API_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_SONAME_MAJOR 2

#define NCCL_RESULTS(C)                                                                                      \
    C(ncclSuccess, 0)                                                                                        \
    C(ncclUnhandledCudaError, 1)                                                                             \
    C(ncclSystemError, 2)                                                                                    \
    C(ncclInternalError, 3)                                                                                  \
    C(ncclInvalidArgument, 4)                                                                                \
    C(ncclInvalidUsage, 5)                                                                                   \
    C(ncclRemoteError, 6)                                                                                    \
    C(ncclInProgress, 7)
#define NCCL_TYPES(C)                                                                                        \
    C(ncclInt8, 0)                                                                                           \
    C(ncclUint8, 1)                                                                                          \
    C(ncclInt32, 2)                                                                                          \
    C(ncclUint32, 3)                                                                                         \
    C(ncclInt64, 4)                                                                                          \
    C(ncclUint64, 5)                                                                                         \
    C(ncclFloat16, 6)                                                                                        \
    C(ncclFloat32, 7)                                                                                        \
    C(ncclFloat64, 8)                                                                                        \
    C(ncclBfloat16, 9)
#define NCCL_OPERATIONS(C) C(ncclSum, 0)

/* The configuration of NCCL 2.14. Later versions accept it and take their defaults for what they have added.
 * unset: NCCL_UNSET, which is undefined in later versions */
#define NCCL_CONFIG_MAGIC   0xcafebeefu
#define NCCL_CONFIG_VERSION 21400u
#define NCCL_UNSET          (-0x7fffffff - 1)
typedef struct nccl_config {
    size_t size;
    unsigned int magic, version;
    int blocking, unset;
} nccl_config;

#ifndef NCCL_H_
#define NCCL_CONSTANT(name, value) name = (value),
typedef enum { NCCL_RESULTS(NCCL_CONSTANT) } ncclResult_t;
typedef enum { NCCL_TYPES(NCCL_CONSTANT) } ncclDataType_t;
typedef enum { NCCL_OPERATIONS(NCCL_CONSTANT) } ncclRedOp_t;
#undef NCCL_CONSTANT
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
typedef struct ncclComm *ncclComm_t;
typedef struct nccl_config ncclConfig_t;
#endif

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
