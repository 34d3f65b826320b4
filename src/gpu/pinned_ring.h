/* pinned_ring.h - small copies between host and card through pinned memory of the queue. */
#ifndef STAGE_H
#define STAGE_H

#include "queue.h"

/* Copies of at most this many bytes use the ring: from DUET_STAGED, at most STAGE_SLOT, which is
 * the default. 0: none. */
#define STAGE_SLOT ((size_t)64 << 10)
extern size_t gpu_staged_most;

/* On the stream of the queue. On return an upload has read the host memory, and a download has
 * arrived. *done: false if the ring cannot be used; then nothing was done. */
duet_status gpu_stage_up(void *own, const void *host, size_t bytes, const queue *q, bool *done);
duet_status gpu_stage_down(void *host, const void *own, size_t bytes, const queue *q, bool *done);

#endif
