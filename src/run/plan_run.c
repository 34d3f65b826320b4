/* plan_run.c - runs a plan: at once, or part by part if it has a stream. */
#include "deferred.h"
#include "device_use.h"
#include "execute.h"
#include "stream.h"
#include "thread.h"

/* If no result has an element, there is nothing to bind. Work that another thread has deferred on
 * this queue comes first: its matrices say that the queue has done it. */
duet_status plan_run(const plan *p, const statement *s)
{
    if (p->count == 0) return DUET_OK;
    USE_GPUS_IF(p->device != HOST);
    const uint64_t deferred = p->device != HOST ? deferred_queues_now() & 1ull << thread_get()->queue : 0;
    if (unlikely(deferred != 0)) TRY(deferred_launch(deferred));
    if (unlikely(p->stream != NULL)) return stream_run(p, s);
    return plan_run_once(p, s);
}
