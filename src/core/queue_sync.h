/* queue_sync.h - waiting on the host for the device's queues, and knowing which work has been waited for. */
#ifndef DRAIN_H
#define DRAIN_H

#include "backend.h"
#include <stdbool.h>

/* Waits until the queue is empty: counted and traced. why: what the wait is for. */
duet_status drain_queue(int queue, const char *why);

/* A mark taken after work was queued is passed once the host has waited for that work. */
uint64_t drain_mark(int queue);
bool drain_passed(int queue, uint64_t mark);

/* Any other wait for all that a queue holds: begin before it; end after it, with what begin gave, when it succeeded. */
uint64_t drain_begin(int queue);
void drain_end(int queue, uint64_t ticket);

#endif
