/* pinned_ring.c - a ring of pinned slots for each queue. A slot is reused when its last copy has
 * finished. */
#include "pinned_ring.h"
#include <stdlib.h>
#include <string.h>

#define SLOTS 8

typedef struct ring {
    pthread_mutex_t lock;
    char *memory; /* SLOTS times STAGE_SLOT bytes; never freed, like the queue */
    cudaEvent_t over[SLOTS];
    int next;
    bool refused; /* allocation failed; it is not tried again */
} ring;

static ring rings[DEVICES_MAX][QUEUES_ALL] = {
    [0 ... DEVICES_MAX - 1] = { [0 ... QUEUES_ALL - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } }
};

size_t gpu_staged_most = STAGE_SLOT;

static __attribute__((constructor)) void read_environment(void)
{
    const char *text = getenv("DUET_STAGED");
    const size_t most = text && *text ? strtoul(text, NULL, 10) : STAGE_SLOT;
    gpu_staged_most = most < STAGE_SLOT ? most : STAGE_SLOT;
}

/* The caller can copy without the ring, so a failure is not an error: CUDA's last error is cleared. */
static bool works(cudaError_t e)
{
    if (e != cudaSuccess) (void)cudaGetLastError();
    return e == cudaSuccess;
}

static bool is_open(ring *r)
{
    if (r->memory || r->refused) return r->memory;
    char *memory = NULL;
    bool good = true;
    for (int i = 0; i < SLOTS && good; i++)
        good = r->over[i] || works(cudaEventCreateWithFlags(&r->over[i], cudaEventDisableTiming));
    if (good && works(cudaMallocHost((void **)&memory, SLOTS * STAGE_SLOT))) r->memory = memory;
    r->refused = !r->memory;
    return r->memory;
}

/* Returns the slot with the oldest copy, after waiting for this copy. Usually it has finished long
 * ago. */
static duet_status take_slot(ring *r, int *slot)
{
    *slot = r->next;
    r->next = (r->next + 1) % SLOTS;
    return CUDA(cudaEventSynchronize, r->over[*slot]);
}

typedef duet_status copying(char *slot, void *to, const void *from, size_t bytes, const queue *q);

static duet_status up(char *slot, void *own, const void *host, size_t bytes, const queue *q)
{
    memcpy(slot, host, bytes);
    return CUDA(cudaMemcpyAsync, own, slot, bytes, cudaMemcpyHostToDevice, q->stream);
}

static duet_status down(char *slot, void *host, const void *own, size_t bytes, const queue *q)
{
    TRY(CUDA(cudaMemcpyAsync, slot, own, bytes, cudaMemcpyDeviceToHost, q->stream));
    TRY(gpu_stream_wait(q->device, q->stream));
    memcpy(host, slot, bytes);
    return DUET_OK;
}

static duet_status go(ring *r, copying *copy, void *to, const void *from, size_t bytes, const queue *q)
{
    int slot;
    TRY(take_slot(r, &slot));
    TRY(copy(r->memory + (size_t)slot * STAGE_SLOT, to, from, bytes, q));
    if (copy != up) return DUET_OK;
    return CUDA(cudaEventRecord, r->over[slot], q->stream);
}

/* After a failure the ring is not used again, because a copy may still use a slot that is not marked. */
static duet_status stage(copying *copy, void *to, const void *from, size_t bytes, const queue *q, bool *done)
{
    ring *r = &rings[q->device][q->index];
    *done = false;
    if (bytes > gpu_staged_most) return DUET_OK;
    pthread_mutex_lock(&r->lock);
    *done = is_open(r);
    duet_status s = DUET_OK;
    if (*done) s = go(r, copy, to, from, bytes, q);
    if (s != DUET_OK) {
        r->memory = NULL;
        r->refused = true;
    }
    pthread_mutex_unlock(&r->lock);
    return s;
}

duet_status gpu_stage_up(void *own, const void *host, size_t bytes, const queue *q, bool *done)
{
    return stage(up, own, host, bytes, q, done);
}

duet_status gpu_stage_down(void *host, const void *own, size_t bytes, const queue *q, bool *done)
{
    return stage(down, host, own, bytes, q, done);
}

void gpu_stages_forget(int device)
{
    for (ring *r = rings[device]; r < rings[device] + QUEUES_ALL; r++) {
        pthread_mutex_lock(&r->lock);
        r->memory = NULL;
        memset(r->over, 0, sizeof r->over);
        r->refused = false;
        pthread_mutex_unlock(&r->lock);
    }
}
