/* deferred.h - work that a thread holds back from its queue, to launch more of it at once.
 *
 * Matrices take it for done: they say that the queue has written them and reads them. So who waits for a queue, or puts something
 * behind its work, launches first what it holds; what goes in front of that work must not touch what it uses. A block of memory is
 * given to the pool only when no work that is held uses it. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include "thread.h"

struct storage;

/* Who holds work back. Both are called under the queue's lock. */
typedef struct deferred_work {
    duet_status (*launch)(
        struct deferred_work *h); /* all of it; when that fails, what was to be written is lost */
    bool (*uses)(const struct deferred_work *h, const struct storage *b);
} deferred_work;

extern uint64_t deferred_queues; /* bit q: queue q holds work */
static inline uint64_t deferred_queues_now(void)
{
    return __atomic_load_n(&deferred_queues, __ATOMIC_ACQUIRE);
}

/* The lock of a queue, and under it who holds work back there. No lock of a storage may be held by who takes it. */
void deferred_lock(int queue);
void deferred_unlock(int queue);
deferred_work *deferred_owner(int queue);
void deferred_set(int queue, deferred_work *h); /* NULL: nobody */

/* Launches what these queues hold. Errors: the first */
duet_status deferred_launch(uint64_t queues);
bool deferred_uses(int queue, const struct storage *b);

/* Before the host waits for this thread's queue, or gives it work at once: statements in front are not launched together with
 * statements behind. */
static inline duet_status deferred_flush(void)
{
    thread *t = thread_get();
    const uint64_t own = deferred_queues_now() & 1ull << t->queue;
    t->cut = true;
    return __builtin_expect(own != 0, 0) ? deferred_launch(own) : DUET_OK;
}

#endif
