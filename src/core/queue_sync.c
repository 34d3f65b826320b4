/* queue_sync.c - waits on the host for queues of devices. */
#include "queue_sync.h"
#include "thread.h"
#include "trace.h"

/* Waits are numbered from 1 as they begin. A mark is the number of the last wait that had begun:
 * only a later one is certain to cover the work. */
typedef struct waits {
    uint64_t begun, ended;
} waits;
static waits queues[DEVICES_MAX][QUEUES_ALL];

uint64_t queue_sync_mark(int device, int queue)
{
    return __atomic_load_n(&queues[device][queue].begun, __ATOMIC_SEQ_CST);
}

bool queue_sync_passed(int device, int queue, uint64_t mark)
{
    return __atomic_load_n(&queues[device][queue].ended, __ATOMIC_ACQUIRE) > mark;
}

uint64_t queue_sync_begin(int device, int queue)
{
    return __atomic_add_fetch(&queues[device][queue].begun, 1, __ATOMIC_SEQ_CST);
}

void queue_sync_end(int device, int queue, uint64_t ticket)
{
    uint64_t *ended = &queues[device][queue].ended, last = __atomic_load_n(ended, __ATOMIC_RELAXED);
    while (last < ticket &&
           !__atomic_compare_exchange_n(ended, &last, ticket, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

duet_status queue_wait(int device, int queue, const char *why)
{
    const machine *on = device_machine(device);
    const uint64_t ticket = queue_sync_begin(device, queue);
    COUNT(synchronisations);
    TRACE("wait for queue %d of the %s: %s", queue, on->name, why);
    TRY(on->sync(device, queue));
    queue_sync_end(device, queue, ticket);
    return DUET_OK;
}
