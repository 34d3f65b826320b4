/* recover.c - restarts a card after an error that has ended its CUDA context: destroys the context
 * with all that this folder keeps in it, and runs a kernel in a new one. */
#include "recover.h"
#include "cublaslt.h"
#include "cuda_graph.h"
#include "link.h"
#include "packed_cache.h"
#include "pinned_ring.h"
#include "queue.h"
#include "step_kinds.h"
#include <string.h>

enum { TESTED = 256 }; /* elements that the test computes */

/* Without graphs, no packed operand is in use. Their blocks are returned while the pool still has them. */
void gpu_abandon(int device)
{
    gpu_graphs_end(device);
    (void)packed_spare(device, SIZE_MAX);
}

/* Vendor libraries free their own memory of the host while the old context still exists. Their calls
 * for the card fail, which is expected. Later these handles would belong to no context. */
static void close_libraries(int device)
{
    gpu_links_lost(device);
    gpu_fourier_close(device);
    gpu_queues_close(device);
    gpu_gemm_close(device);
}

/* Streams, events and pinned memory end with the context. */
static void forget_context(int device)
{
    kernels_forget(device);
    gpu_stages_forget(device);
    gpu_queues_forget(device);
}

/* What must be 3 + 4 in each element. */
static duet_status compute(void *block, queue *q)
{
    const layout at = { .type = DUET_F32, .rank = 1, .size = { TESTED }, .stride = { 1 } };
    TRY(gpu_apply(OP_LOAD, block, &at, &(part){ .number = 3 }, 1, q));
    return gpu_apply(OP_add, block, &at, (part[]){ { .p = block, .at = &at }, { .number = 4 } }, 2, q);
}

static duet_status test_in(void *block, int device)
{
    float result[TESTED] = { 0 };
    queue *q;
    TRY(gpu_queue_open(device, 0, &q));
    TRY(compute(block, q));
    TRY(CUDA(cudaMemcpyAsync, result, block, sizeof result, cudaMemcpyDeviceToHost, q->stream));
    TRY(CUDA(cudaStreamSynchronize, q->stream));
    for (int i = 0; i < TESTED; i++)
        if (result[i] != 7)
            return fail(DUET_DEVICE_ERROR, "a kernel computed %g and not 7", (double)result[i]);
    return DUET_OK;
}

static duet_status test(int device)
{
    void *block;
    TRY(CUDA(cudaMalloc, &block, TESTED * sizeof(float)));
    const duet_status s = test_in(block, device);
    if (cudaFree(block) != cudaSuccess) (void)cudaGetLastError();
    return s;
}

/* The reset also clears the last error of this thread's calls before it. */
static duet_status reset(void)
{
    const cudaError_t e = cudaDeviceReset();
    (void)cudaGetLastError();
    if (e == cudaSuccess) return DUET_OK;
    return fail(DUET_DEVICE_ERROR, "cudaDeviceReset: %s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
}

static duet_status restart(int device)
{
    ON_DEVICE(device);
    close_libraries(device);
    forget_context(device);
    TRY(reset());
    return test(device);
}

/* If the test fails, what it has made is in a context that is of no use. */
duet_status gpu_recover(int device)
{
    gpu_device_revive(device);
    const duet_status s = restart(device);
    if (s != DUET_OK) forget_context(device);
    gpu_device_revived(device, s == DUET_OK ? NULL : duet_error());
    return s == DUET_OK ? DUET_OK : error_becomes(DUET_DEVICE_ERROR);
}
