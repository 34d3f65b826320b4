/* pinned_ring.h - small copies between the host and a GPU, through pinned memory of the queue. */
#ifndef PINNED_RING_H
#define PINNED_RING_H

#include "queue.h"

/* Returns how many bytes a copy through the ring may have: the environment variable DUET_STAGED, by
 * default and at most STAGE_SLOT. 0 means that the ring is not used. */
#define STAGE_SLOT ((size_t)64 << 10)
extern size_t gpu_staged_most;

/* Copy on the stream of the queue. When an upload returns, the host memory may be overwritten; when a
 * download returns, the host memory has the data. *done is false if the ring could not be used and
 * nothing was copied. */
duet_status gpu_stage_up(void *own, const void *host, size_t bytes, const queue *q, bool *done);
duet_status gpu_stage_down(void *host, const void *own, size_t bytes, const queue *q, bool *done);

/* After the loss of a card: its rings no longer exist. */
void gpu_stages_forget(int device);

#endif
