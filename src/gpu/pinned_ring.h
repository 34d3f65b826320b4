/* pinned_ring.h - small copies between the host and the card, by way of pinned memory of the queue's own. */
#ifndef STAGE_H
#define STAGE_H

#include "queue.h"

/* Copies of so many bytes at most go this way: from DUET_STAGED, STAGE_SLOT at most and at first. 0: none do. */
#define STAGE_SLOT ((size_t)64 << 10)
extern size_t gpu_staged_most;

/* On the queue's stream. When this returns an upload has left the host's memory, and a download has arrived. *done: false when this way cannot be
 * gone, and nothing was. */
duet_status gpu_stage_up(void *own, const void *host, size_t bytes, const queue *q, bool *done);
duet_status gpu_stage_down(void *host, const void *own, size_t bytes, const queue *q, bool *done);

#endif
