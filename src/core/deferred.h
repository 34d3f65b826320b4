/* deferred.h - work that a thread has not given to its queue yet, in order to launch more of it at once.
 *
 * A storage treats deferred work as queued: it records the queue as writer or user of its buffer.
 * Three rules follow:
 * - Before waiting for a queue, or queueing anything after its work, launch the queue's deferred work.
 * - Work that is queued before deferred work must not touch a storage that the deferred work uses.
 * - A block may be given to the pool only when no deferred work uses it.
 *
 * A thread has the same queue number on every device, and defers work for one device at a time. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include "compiler.h"
#include "thread.h"

struct storage;

/* An object that defers work. Both functions are called under the queue's lock. */
typedef struct deferred_work {
    /* Launches all of it. If that fails for lack of memory, work that did not run counts as undone:
     * its destinations are as before. But if its thread will not see the status, they are lost.
     * reported: this thread reports the status to its user. */
    duet_status (*launch)(struct deferred_work *h, bool reported);
    bool (*uses)(const struct deferred_work *h, const struct storage *b);
} deferred_work;

extern uint64_t deferred_queues; /* bit q: queue q has deferred work */
static inline uint64_t deferred_queues_now(void)
{
    return __atomic_load_n(&deferred_queues, __ATOMIC_ACQUIRE);
}

/* The lock of a queue. It protects the record of who defers work there. The caller must not hold the lock of
 * a storage. */
void deferred_lock(int queue);
void deferred_unlock(int queue);
deferred_work *deferred_owner(int queue);       /* or NULL */
void deferred_set(int queue, deferred_work *h); /* NULL: no thread */

/* Launches the deferred work of these queues. Returns the first error, which the caller reports to its
 * user. deferred_launch_or_lose: for a caller that cannot report it. */
duet_status deferred_launch(uint64_t queues);
void deferred_launch_or_lose(uint64_t queues);

/* Launches the deferred work of a queue, unless it is `except`. If it fails, its results are lost. */
void deferred_launch_others(int queue, const deferred_work *except);

/* How often deferred work that this thread launched has failed. If the number changes while a
 * statement runs, the statement's failure may be that of earlier ones. */
static inline unsigned deferred_failures(void) { return thread_get()->deferred_failures; }

bool deferred_uses(int queue, const struct storage *b);
/* The same for a caller that holds the lock of a storage. Also true if another thread holds the lock of the
 * queue. */
bool deferred_may_use(int queue, const struct storage *b);

/* To be called before the host waits for this thread's queue, or queues something directly.
 * Statements before the call are not launched together with statements after it. */
static inline duet_status deferred_flush(void)
{
    thread *t = thread_get();
    const uint64_t own = deferred_queues_now() & 1ull << t->queue;
    t->host_waited = true;
    return unlikely(own != 0) ? deferred_launch(own) : DUET_OK;
}

#endif
