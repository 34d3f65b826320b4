/* pool.h - all memory of all devices: accounted, limited, and reused in the order of the queues. */
#ifndef POOL_H
#define POOL_H

#include "backend.h"
#include <stdbool.h>

/* What a block is used for, for duet_memory_report. */
enum memory_kind { MEMORY_MATRIX, MEMORY_SCRATCH, MEMORY_WORKSPACE, MEMORY_PACKED, MEMORY_KINDS };

/* A block of at least `bytes` bytes on a device, for use by this queue. If another queue may still
 * use the block, this queue waits for it; the host does not. At the limit, or if the system has no
 * memory, cached blocks are freed first. pool_take: the kind is SCRATCH.
 * Errors    NO_MEMORY, with the figures; DEVICE_ERROR */
duet_status pool_take_as(enum memory_kind kind, int device, size_t bytes, int queue, void **p);
duet_status pool_take(int device, size_t bytes, int queue, void **p);

/* eviction.c: the same, but on a GPU buffers of other matrices are freed if there is too little memory. The
 * caller holds no lock of a storage or of deferred work. memory_take_workspace: the kind is WORKSPACE.
 * Errors    NO_MEMORY, with the largest matrices; NO_DEVICE; DEVICE_ERROR; those of deferred work of this
 *           thread */
duet_status memory_take(enum memory_kind kind, int device, size_t bytes, int queue, void **p);
duet_status memory_take_workspace(int device, size_t bytes, int queue, void **p);

/* Gives a block back. queues: bit q is set when queue q of the device may still have work on it. */
void pool_give(int device, void *p, uint64_t queues);

/* The bytes used and cached on a device, and its limit. */
duet_memory pool_memory(int device);

/* The part of `used` that is of this kind. */
size_t pool_used_as(enum memory_kind kind, int device);

/* Plans are host memory that is not from the pool. Add `bytes`, which may be negative, to their sum. */
void pool_count_plans(ptrdiff_t bytes);
size_t pool_plans(void);

/* How many bytes can still be allocated on a device: within its limit, or, without one, of what
 * the machine has left. */
size_t pool_room(int device);

/* After the loss of a GPU. pool_forget_device: its blocks are gone, also those in use; the machine frees
 * none of them. pool_unpin_device: unpins the host's memory that was pinned for it. */
void pool_forget_device(int device);
void pool_unpin_device(int device);
int pool_pinned_for(const void *p); /* the GPU for which a block of the host is pinned, or HOST */

/* Is memory of a GPU so scarce that buffers of matrices are freed for others (core/eviction.h)? While it is,
 * buffers change their addresses often. pool_is_watched: it is, or may soon be. */
enum pressure { PRESSURE_NONE, PRESSURE_WATCHED, PRESSURE_TIGHT };
extern uint8_t pool_pressure;
static inline bool pool_is_watched(void) { return __atomic_load_n(&pool_pressure, __ATOMIC_RELAXED); }
static inline bool pool_is_tight(void)
{
    return __atomic_load_n(&pool_pressure, __ATOMIC_RELAXED) == PRESSURE_TIGHT;
}
void pool_note_pressure(void); /* buffers were freed, or have to be */
/* To be called now and then: ends the state if no buffers were freed since many calls. */
void pool_review_pressure(void);

/* Pins a block of the host that is in use, for copies to and from a device. It stays pinned until
 * it is freed. false: it could not be pinned. No error is set. */
bool pool_pin(void *p, int device);

#endif
