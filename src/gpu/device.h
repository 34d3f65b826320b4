/* device.h - the CUDA devices ("cards"), and CUDA errors as status. `device` is an index into
 * devices[]. */
#ifndef DEVICE_H
#define DEVICE_H

#include "backend.h"
#include "device_use.h"
#include <cuda_runtime_api.h>
#include <stdio.h>

/* NULL if the card can be used, else the reason: it was not found, or it was lost. The text stays
 * valid. */
const char *gpu_device_absent(int device);
/* NULL if any card can be used, or could before it was lost; else the reason why the default one cannot. */
const char *gpu_device_all_absent(void);
/* For cards that can be used: the major compute capability, CUDA's number, bytes of memory
 * (SIZE_MAX if unknown). */
int gpu_device_major(int device);
int gpu_device_ordinal(int device);
size_t gpu_device_bytes(int device);
/* Both are about the default card. */
void gpu_device_info(FILE *out);
void gpu_device_name(char *text, size_t size); /* with the versions of driver and runtime; "" on failure */

/* CUDA(cudaMalloc, &p, bytes) calls the function and converts an error to a status with a text. */
#define CUDA(f, ...) cuda_status(#f, f(__VA_ARGS__))
duet_status cuda_failed(const char *call, cudaError_t e) __attribute__((cold));
static inline duet_status cuda_status(const char *call, cudaError_t e)
{
    if (likely(e == cudaSuccess)) return DUET_OK;
    return cuda_failed(call, e);
}

/* After an error of a vendor library, or of a call whose error is not reported: was the current card
 * lost? Then it is marked as lost, and the error text of the thread says so. */
bool gpu_device_was_lost(const char *call) __attribute__((cold));

/* NULL if the card was not lost, else the reason. */
const char *gpu_device_lost(int device);
/* Between these calls, only this thread may enter the card, which is still marked as lost. why: the
 * reason why it is still lost; NULL: it can be used again. */
void gpu_device_revive(int device);
void gpu_device_revived(int device, const char *why);

/* ON_DEVICE(device); makes a card current until the end of the block, and then restores the
 * caller's. If the card cannot be used, the function returns. */
typedef struct device_scope {
    int before;   /* CUDA's number of the caller's card; -1: it is current */
    thread *user; /* core/device_use.h */
} device_scope;
#define ON_DEVICE(device)                                                                                    \
    __attribute__((cleanup(gpu_device_leave))) device_scope device_entered;                                  \
    TRY(gpu_device_enter(device, &device_entered))
/* Call leave even if enter fails. */
duet_status gpu_device_enter(int device, device_scope *s);
void gpu_device_leave(const device_scope *s);

/* queue.c: call it before calls of CUDA that wait for all work of the card, which may include exchanges. */
void gpu_queues_settle(int device);

duet_status gpu_alloc(int device, size_t bytes, void **p);
void gpu_free(int device, void *p);
size_t gpu_available(int device);

duet_status gpu_pin(int device, void *host, size_t bytes);
void gpu_unpin(int device, void *host);

#endif
