/* dlpack_types.h - what the files of this folder share: element types and devices as DLPack names them. */
#ifndef DLPACK_TYPES_H
#define DLPACK_TYPES_H

#include "matrix.h"
#include <duet/dlpack.h>

DLDataType dlpack_type(duet_dtype type);
/* Errors: UNSUPPORTED */
duet_status dlpack_read_type(const char *who, DLDataType t, duet_dtype *type);

DLDevice dlpack_device(int device);
/* A text such as "ROCm". */
const char *dlpack_device_name(DLDeviceType type);
/* The device of this library with that number of CUDA. Errors: NO_DEVICE */
duet_status dlpack_read_gpu(const char *who, int32_t id, int *device);

/* The stream of the array API's number, as the machine knows it. */
static inline void *dlpack_stream(intptr_t stream)
{
    return (void *)(stream == DUET_DLPACK_LEGACY ? (intptr_t)1 : stream);
}
static inline bool dlpack_is_stream(intptr_t stream) { return stream >= 0 || stream < -1; }

/* dlpack_export.c. Exports m on this device. flags: those of the tensor. */
struct DLManagedTensorVersioned *dlpack_export(const char *who, duet_matrix *m, int device, enum use use,
                                               uint64_t flags);
/* The matrix of a tensor that this library exported, or NULL. */
const duet_matrix *dlpack_own(const struct DLManagedTensorVersioned *t);
const duet_matrix *dlpack_own_legacy(const struct DLManagedTensor *t);

#endif
