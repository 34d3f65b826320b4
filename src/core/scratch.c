/* scratch.c - temporaries and workspaces, from the pool or from what a recording reserves. */
#include "scratch.h"
#include "compiler.h"
#include "pool.h"
#include "thread.h"
#include <stdlib.h>

typedef struct reserved {
    void *p;
    size_t bytes; /* as requested: the same work requests the same sizes again */
    int device;
    bool in_use;
} reserved;

static reserved *find_free(const scratch_reserve *l, int device, size_t bytes)
{
    for (int i = 0; i < l->count; i++) {
        reserved *b = &l->block[i];
        if (!b->in_use && b->bytes == bytes && b->device == device) return b;
    }
    return NULL;
}

static bool grow(scratch_reserve *l)
{
    if (l->count < l->capacity) return true;
    const int capacity = l->capacity ? 2 * l->capacity : 16;
    reserved *block = realloc(l->block, (size_t)capacity * sizeof *block);
    if (!block) return false;
    l->block = block;
    l->capacity = capacity;
    return true;
}

static duet_status reserve(scratch_reserve *l, enum memory_kind kind, int device, size_t bytes, int queue,
                           void **p)
{
    if (l->closed)
        return fail(
            DUET_UNSUPPORTED,
            "the recording has no buffer of %zu bytes, and memory cannot be allocated while a CUDA graph "
            "is captured",
            bytes);
    if (!grow(l)) return fail(DUET_NO_MEMORY, "out of memory for the list of buffers of a recording");
    TRY(memory_take(kind, device, bytes, queue, p));
    l->block[l->count++] = (reserved){ *p, bytes, device, true };
    return DUET_OK;
}

static scratch_reserve *reserve_of_thread(int device)
{
    if (device == HOST) return NULL;
    return thread_get()->scratch_reserve;
}

static inline duet_status acquire(enum memory_kind kind, int device, size_t bytes, int queue, void **p)
{
    scratch_reserve *l = reserve_of_thread(device);
    if (likely(!l)) return memory_take(kind, device, bytes, queue, p);
    reserved *b = find_free(l, device, bytes);
    if (!b) return reserve(l, kind, device, bytes, queue, p);
    b->in_use = true;
    *p = b->p;
    return DUET_OK;
}

duet_status scratch_acquire(int device, size_t bytes, int queue, void **p)
{
    return acquire(MEMORY_SCRATCH, device, bytes, queue, p);
}

duet_status scratch_acquire_workspace(int device, size_t bytes, int queue, void **p)
{
    return acquire(MEMORY_WORKSPACE, device, bytes, queue, p);
}

void scratch_release(int device, void *p, int queue)
{
    const scratch_reserve *l = reserve_of_thread(device);
    if (likely(!l)) return pool_give(device, p, 1ull << queue);
    for (int i = 0; i < l->count; i++)
        if (l->block[i].p == p) l->block[i].in_use = false;
}

size_t scratch_reserve_bytes(const scratch_reserve *l)
{
    size_t sum = 0;
    for (int i = 0; i < l->count; i++) sum += l->block[i].bytes;
    return sum;
}

void scratch_reserve_forget(scratch_reserve *l, unsigned which)
{
    int kept = 0;
    for (int i = 0; i < l->count; i++)
        if (!(which >> l->block[i].device & 1)) l->block[kept++] = l->block[i];
    l->count = kept;
}

void scratch_reserve_free(scratch_reserve *l, uint64_t queues)
{
    for (int i = 0; i < l->count; i++) pool_give(l->block[i].device, l->block[i].p, queues);
    free(l->block);
    *l = (scratch_reserve){ 0 };
}
