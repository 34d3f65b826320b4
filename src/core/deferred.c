/* deferred.c - records for each queue which thread defers work there. */
#include "deferred.h"
#include "device_use.h"
#include <pthread.h>

uint64_t deferred_queues;

static struct {
    _Alignas(128) pthread_mutex_t lock;
    deferred_work *by;
} queues[QUEUES] = { [0 ... QUEUES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

void deferred_lock(int queue) { pthread_mutex_lock(&queues[queue].lock); }
void deferred_unlock(int queue) { pthread_mutex_unlock(&queues[queue].lock); }
deferred_work *deferred_owner(int queue) { return queues[queue].by; }

void deferred_set(int queue, deferred_work *h)
{
    const uint64_t own = 1ull << queue;
    queues[queue].by = h;
    if (h) __atomic_or_fetch(&deferred_queues, own, __ATOMIC_RELEASE);
    else __atomic_and_fetch(&deferred_queues, ~own, __ATOMIC_RELEASE);
}

static duet_status launch_queue(int queue, const deferred_work *except, bool reported)
{
    duet_status s = DUET_OK;
    USE_GPUS;
    deferred_lock(queue);
    deferred_work *h = deferred_owner(queue);
    if (h && h != except) {
        s = h->launch(h, reported);
        deferred_set(queue, NULL);
    }
    deferred_unlock(queue);
    if (s != DUET_OK) thread_get()->deferred_failures++;
    return s;
}

static duet_status launch_queues(uint64_t which, bool reported)
{
    duet_status first = DUET_OK;
    for (which &= deferred_queues_now(); which; which &= which - 1) {
        const duet_status s = launch_queue(__builtin_ctzll(which), NULL, reported);
        if (first == DUET_OK) first = s;
    }
    return first;
}

duet_status deferred_launch(uint64_t which) { return launch_queues(which, true); }

void deferred_launch_or_lose(uint64_t which) { (void)launch_queues(which, false); }

void deferred_launch_others(int queue, const deferred_work *except)
{
    if (deferred_queues_now() >> queue & 1) (void)launch_queue(queue, except, false);
}

bool deferred_uses(int queue, const struct storage *b)
{
    deferred_lock(queue);
    const deferred_work *h = deferred_owner(queue);
    const bool uses = h && h->uses(h, b);
    deferred_unlock(queue);
    return uses;
}

bool deferred_may_use(int queue, const struct storage *b)
{
    if (pthread_mutex_trylock(&queues[queue].lock)) return true;
    const deferred_work *h = deferred_owner(queue);
    const bool uses = h && h->uses(h, b);
    deferred_unlock(queue);
    return uses;
}
