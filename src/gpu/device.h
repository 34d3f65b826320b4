/* device.h - the card: which one, whether it is there, and the one way in which its errors become ours. */
#ifndef DEVICE_H
#define DEVICE_H

#include "status.h"
#include <cuda_runtime_api.h>
#include <stdio.h>

/* NULL, or why there is no card, or no longer one; a text that stays. */
const char *gpu_device_absent(void);
int gpu_device_major(void);    /* of its compute capability; the card must be there */
size_t gpu_device_bytes(void); /* of its memory; as many as can be where it does not say */
void gpu_device_info(FILE *out);
void gpu_device_name(
    char *text, size_t size); /* with the driver's and the runtime's versions; "" when it does not answer */

/* CUDA(cudaMalloc, &p, bytes): the call, its error turned into a status with a text. */
#define CUDA(f, ...) cuda_status(#f, f(__VA_ARGS__))
duet_status cuda_failed(const char *call, cudaError_t e) __attribute__((cold));
static inline duet_status cuda_status(const char *call, cudaError_t e)
{
    return __builtin_expect(e == cudaSuccess, 1) ? DUET_OK : cuda_failed(call, e);
}

/* ON_DEVICE(); makes the card current until the end of the block, where the caller's own is again. It returns when there is none. */
#define ON_DEVICE()                                                                                          \
    __attribute__((cleanup(gpu_device_leave))) int device_before = -1;                                       \
    TRY(gpu_device_enter(&device_before))
duet_status gpu_device_enter(int *before);
void gpu_device_leave(const int *before);

duet_status gpu_alloc(size_t bytes, void **p);
void gpu_free(void *p);
size_t gpu_room(void);

duet_status gpu_pin(void *host, size_t bytes);
void gpu_unpin(void *host);

#endif
