/* pool.h - all memory of all machines: accounted, capped, and used again in the order of the queues. */
#ifndef POOL_H
#define POOL_H

#include "backend.h"
#include <stdbool.h>

/* A block of at least `bytes` bytes on one side, for use by this queue: work of other queues that used it before is waited
 * for by the machine, not by the host. At the cap, or when the system refuses, cached blocks are dropped first.
 * Errors    NO_MEMORY, with an itemised text; DEVICE_ERROR */
duet_status pool_take(enum side s, size_t bytes, int queue, void **p);

/* Gives a block back. queues: bit q is set when queue q may still have work on it. */
void pool_give(enum side s, void *p, uint64_t queues);

/* How many bytes a side can still scratch_acquire, under its limit or, where there is none, of what the machine has. */
size_t pool_room(enum side s);

/* Pins a block of the host's side that is lent, for good: it stays so in the pool. false: it could not be, and no error is set. */
bool pool_pin(void *p);

#endif
