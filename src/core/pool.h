/* pool.h - all memory of all devices: accounted, limited, and reused in the order of the queues. */
#ifndef POOL_H
#define POOL_H

#include "backend.h"
#include <stdbool.h>

/* A block of at least `bytes` bytes on a device, for use by this queue. If another queue may still
 * use the block, this queue waits for it; the host does not. At the limit, or if the system has no
 * memory, cached blocks are freed first.
 * Errors    NO_MEMORY, with the figures; DEVICE_ERROR */
duet_status pool_take(int device, size_t bytes, int queue, void **p);

/* Gives a block back. queues: bit q is set when queue q of the device may still have work on it. */
void pool_give(int device, void *p, uint64_t queues);

/* The bytes used and cached on a device, and its limit. */
duet_memory pool_memory(int device);

/* How many bytes can still be allocated on a device: within its limit, or, without one, of what
 * the machine has left. */
size_t pool_room(int device);

/* After the loss of a GPU. pool_forget_device: its blocks are gone, also those in use; the machine frees
 * none of them. pool_unpin_device: unpins the host's memory that was pinned for it. */
void pool_forget_device(int device);
void pool_unpin_device(int device);
int pool_pinned_for(const void *p); /* the GPU for which a block of the host is pinned, or HOST */

/* Pins a block of the host that is in use, for copies to and from a device. It stays pinned until
 * it is freed. false: it could not be pinned. No error is set. */
bool pool_pin(void *p, int device);

#endif
