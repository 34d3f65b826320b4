/* queue_sync.h - waiting on the host for the device's queues, and knowing which work has been waited for. */
#ifndef QUEUE_SYNC_H
#define QUEUE_SYNC_H

#include "backend.h"
#include <stdbool.h>

/* Waits until the queue is empty: counted and traced. why: what the wait is for. */
duet_status queue_wait(int queue, const char *why);

/* A mark taken after work was queued is passed once the host has waited for that work. */
uint64_t queue_sync_mark(int queue);
bool queue_sync_passed(int queue, uint64_t mark);

/* Any other wait for all that a queue holds: begin before it; end after it, with what begin gave, when it succeeded. */
uint64_t queue_sync_begin(int queue);
void queue_sync_end(int queue, uint64_t ticket);

#endif
