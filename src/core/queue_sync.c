/* queue_sync.c - waiting on the host for the device's queues. */
#include "queue_sync.h"
#include "thread.h"
#include "trace.h"

/* Waits begun are numbered from 1. A mark is the number of the last one begun: only later ones are sure to cover the work. */
static struct {
    uint64_t begun, ended;
} queues[QUEUES_ALL];

uint64_t queue_sync_mark(int queue) { return __atomic_load_n(&queues[queue].begun, __ATOMIC_SEQ_CST); }

bool queue_sync_passed(int queue, uint64_t mark)
{
    return __atomic_load_n(&queues[queue].ended, __ATOMIC_ACQUIRE) > mark;
}

uint64_t queue_sync_begin(int queue) { return __atomic_add_fetch(&queues[queue].begun, 1, __ATOMIC_SEQ_CST); }

void queue_sync_end(int queue, uint64_t ticket)
{
    uint64_t last = __atomic_load_n(&queues[queue].ended, __ATOMIC_RELAXED);
    while (last < ticket && !__atomic_compare_exchange_n(&queues[queue].ended, &last, ticket, true,
                                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

duet_status queue_wait(int queue, const char *why)
{
    uint64_t ticket = queue_sync_begin(queue);
    COUNT(synchronisations);
    TRACE("wait for queue %d of the %s: %s", queue, machines[DEVICE]->name, why);
    TRY(machines[DEVICE]->sync(queue));
    queue_sync_end(queue, ticket);
    return DUET_OK;
}
