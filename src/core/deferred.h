/* deferred.h - work that a thread holds back from its queue, to launch more of it at once.
 *
 * Matrices take it for done: they say that the queue has written them and reads them. So who waits for a queue, or puts something
 * behind its work, launches first what it holds; what goes in front of that work must not touch what it uses. A block of memory is
 * given to the pool only when no work that is held uses it. */
#ifndef HELD_H
#define HELD_H

#include "thread.h"

struct storage;

/* Who holds work back. Both are called under the queue's lock. */
typedef struct holder {
    duet_status (*launch)(struct holder *h); /* all of it; when that fails, what was to be written is lost */
    bool (*uses)(const struct holder *h, const struct storage *b);
} holder;

extern uint64_t held_queues; /* bit q: queue q holds work */
static inline uint64_t held_now(void) { return __atomic_load_n(&held_queues, __ATOMIC_ACQUIRE); }

/* The lock of a queue, and under it who holds work back there. No lock of a storage may be held by who takes it. */
void held_lock(int queue);
void held_unlock(int queue);
holder *held_by(int queue);
void held_set(int queue, holder *h); /* NULL: nobody */

/* Launches what these queues hold. Errors: the first */
duet_status held_launch(uint64_t queues);
bool held_uses(int queue, const struct storage *b);

/* Before the host waits for this thread's queue, or gives it work at once: statements in front are not launched together with
 * statements behind. */
static inline duet_status held_cut(void)
{
    thread *t = thread_get();
    const uint64_t own = held_now() & 1ull << t->queue;
    t->cut = true;
    return __builtin_expect(own != 0, 0) ? held_launch(own) : DUET_OK;
}

#endif
