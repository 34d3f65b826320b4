/* link_watch.h - how long the calls of a link wait for other ranks. Each call is between two events of its
 * stream. The time counts from when the host sees that the first event has happened, so it does not include
 * earlier work of the GPU. The caller holds the lock of the link. */
#ifndef LINK_WATCH_H
#define LINK_WATCH_H

#include "link.h"

duet_status watch_open(gpu_link *l); /* makes the stream and the events. If it fails, call watch_close */
void watch_close(gpu_link *l);
void watch_forget(gpu_link *l); /* they are gone with their card */

link_call *watch_call(gpu_link *l, unsigned i); /* call i of those that may be unfinished */
duet_status watch_begin(gpu_link *l, cudaStream_t stream);
duet_status watch_end(gpu_link *l, cudaStream_t stream);

bool watch_is_full(gpu_link *l); /* must another call wait, because LINK_CALLS are unfinished? */
bool watch_expired(gpu_link *l); /* has a call waited for l->seconds? */

/* Waits between two polls: first not at all, because most waits are short. */
void watch_pause(unsigned round);

#endif
