/* deferred.c - who holds back work, by queue. */
#include "deferred.h"
#include <pthread.h>

uint64_t held_queues;

static struct {
    _Alignas(128) pthread_mutex_t lock;
    holder *by;
} queues[QUEUES] = { [0 ... QUEUES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

void held_lock(int queue) { pthread_mutex_lock(&queues[queue].lock); }
void held_unlock(int queue) { pthread_mutex_unlock(&queues[queue].lock); }
holder *held_by(int queue) { return queues[queue].by; }

void held_set(int queue, holder *h)
{
    const uint64_t own = 1ull << queue;
    queues[queue].by = h;
    if (h) __atomic_or_fetch(&held_queues, own, __ATOMIC_RELEASE);
    else __atomic_and_fetch(&held_queues, ~own, __ATOMIC_RELEASE);
}

static duet_status launch(int queue)
{
    duet_status s = DUET_OK;
    held_lock(queue);
    holder *h = held_by(queue);
    if (h) s = h->launch(h), held_set(queue, NULL);
    held_unlock(queue);
    if (s != DUET_OK) thread_get()->held_failed = true;
    return s;
}

duet_status held_launch(uint64_t which)
{
    duet_status first = DUET_OK;
    for (which &= held_now(); which; which &= which - 1) {
        const duet_status s = launch(__builtin_ctzll(which));
        if (first == DUET_OK) first = s;
    }
    return first;
}

bool held_uses(int queue, const struct storage *b)
{
    held_lock(queue);
    const holder *h = held_by(queue);
    const bool uses = h && h->uses(h, b);
    held_unlock(queue);
    return uses;
}
