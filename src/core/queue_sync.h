/* queue_sync.h - blocks the host until a queue of a device is empty, and records which work is
 * known to be done. */
#ifndef QUEUE_SYNC_H
#define QUEUE_SYNC_H

#include "backend.h"
#include <stdbool.h>

/* Waits until the queue is empty. The wait is counted and traced. why: what it is for. */
duet_status queue_wait(int device, int queue, const char *why);

/* Take a mark after work was queued. It is passed once the host has waited for that work. */
uint64_t queue_sync_mark(int device, int queue);
bool queue_sync_passed(int device, int queue, uint64_t mark);

/* Around any other wait for all the work of a queue: call begin before it. If the wait succeeded,
 * call end with what begin returned. */
uint64_t queue_sync_begin(int device, int queue);
void queue_sync_end(int device, int queue, uint64_t ticket);

#endif
