/* scratch.h - memory for the length of a step: temporaries and scratch. What a recording has lent once it keeps for itself, so that work
 * recorded with an address finds nothing else there later. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include "backend.h"

/* pool_take and pool_give, for memory that the queue is done with when its work is; of the device's, while this thread has a scratch_reserve,
 * from that. */
duet_status scratch_acquire(enum side s, size_t bytes, int queue, void **p);
void scratch_release(enum side s, void *p, int queue);

/* What a recording keeps of the device's memory. All zeros at first. */
typedef struct scratch_reserve {
    struct lent *block;
    int count, room;
    bool closed; /* what it has not is refused: while work is recorded nothing may be allocated */
} scratch_reserve;

size_t scratch_reserve_bytes(const scratch_reserve *l);
void scratch_reserve_free(scratch_reserve *l,
                          uint64_t queues); /* queues: bit q is set when queue q may still have work on it */

#endif
