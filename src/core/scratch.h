/* scratch.h - memory for the duration of a step: temporaries and workspaces. A recording reserves
 * what its steps use, since recorded work runs again with the same addresses. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include "backend.h"

/* Like pool_take and pool_give, for memory that can be reused once the queue has finished the work
 * queued so far. While this thread has a scratch_reserve, memory of GPUs comes from there.
 * scratch_acquire_workspace: the memory is lent to a vendor library. */
duet_status scratch_acquire(int device, size_t bytes, int queue, void **p);
duet_status scratch_acquire_workspace(int device, size_t bytes, int queue, void **p);
void scratch_release(int device, void *p, int queue);

/* The blocks that a recording reserves. All zeros at first. */
typedef struct scratch_reserve {
    struct reserved *block;
    int count, capacity;
    bool closed; /* fail instead of allocating: work is being recorded */
} scratch_reserve;

size_t scratch_reserve_bytes(const scratch_reserve *l);
/* Forgets the blocks on the devices of a bit mask, whose memory is gone. */
void scratch_reserve_forget(scratch_reserve *l, unsigned which);
/* queues: bit q is set when queue q may still have work on the blocks. */
void scratch_reserve_free(scratch_reserve *l, uint64_t queues);

#endif
