/* foreign.c - memory and streams of the caller and of other libraries. */
#include "foreign.h"
#include "queue.h"

/* ---- memory ---- */

static int device_with(int ordinal)
{
    for (int d = DEFAULT_GPU; d < DEVICES_MAX; d++)
        if (!gpu_device_absent(d) && gpu_device_ordinal(d) == ordinal) return d;
    return HOST;
}

static duet_status query(const void *p, struct cudaPointerAttributes *a)
{
    ON_DEVICE(DEFAULT_GPU);
    const cudaError_t e = cudaPointerGetAttributes(a, p);
    if (e == cudaErrorInvalidValue) { /* before CUDA 11: memory that it does not know */
        (void)cudaGetLastError();
        a->type = cudaMemoryTypeUnregistered;
        return DUET_OK;
    }
    return cuda_status("cudaPointerGetAttributes", e);
}

duet_status gpu_foreign_locate(const void *p, int *device)
{
    struct cudaPointerAttributes a = { .type = cudaMemoryTypeUnregistered };
    TRY(query(p, &a));
    if (a.type != cudaMemoryTypeDevice && a.type != cudaMemoryTypeManaged)
        return fail(DUET_BAD_ARGUMENT, "the pointer (%p) is not one to memory of a GPU", p);
    *device = device_with(a.device);
    if (*device != HOST) return DUET_OK;
    return fail(DUET_NO_DEVICE, "the memory at %p is on CUDA's device %d, which this library does not use", p,
                a.device);
}

/* ---- streams ---- */

/* An event of its own: that of a queue may be recorded by another thread at any time. CUDA keeps a destroyed
 * event until nothing waits for it. */
static duet_status wait_for(cudaStream_t waits, cudaStream_t first)
{
    cudaEvent_t event;
    TRY(CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming));
    duet_status s = CUDA(cudaEventRecord, event, first);
    if (s == DUET_OK) s = CUDA(cudaStreamWaitEvent, waits, event, 0);
    if (cudaEventDestroy(event) != cudaSuccess) (void)cudaGetLastError();
    return s;
}

duet_status gpu_foreign_follow(int device, int index, void *stream)
{
    queue *q;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    gpu_queue_wrote_anything(q);
    return wait_for(q->stream, stream);
}

duet_status gpu_foreign_lead(int device, int index, void *stream)
{
    queue *q;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    return wait_for(stream, q->stream);
}

duet_status gpu_foreign_drain(int device)
{
    ON_DEVICE(device);
    gpu_queues_settle(device);
    return CUDA(cudaDeviceSynchronize);
}
