/* plan_run.c - runs a plan: at once, or part by part if it has a stream. */
#include "deferred.h"
#include "device_use.h"
#include "execute.h"
#include "stream.h"
#include "thread.h"
#include "trace.h"
#include <pthread.h>
#include <unistd.h>

static duet_status run_once(const plan *p, const statement *s)
{
    if (unlikely(p->stream != NULL)) return stream_run(p, s);
    return plan_run_once(p, s);
}

/* ---- a statement that found no memory while other threads used it ---- */

#define WAITS        2000 /* at most, of so many */
#define MICROSECONDS 50
#define ALL_QUEUES   (~(uint64_t)0)

/* Held by a statement that found no memory. Other statements begin after it, so in the end it has all the
 * memory. */
static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
static int waiting; /* how many statements hold it or want to */

/* A thread that uses buffers must not wait: the other one waits for it. */
static __attribute__((noinline, cold)) void let_others_end(void)
{
    if (thread_get()->buffer_user) return;
    pthread_mutex_lock(&alone);
    pthread_mutex_unlock(&alone);
}

/* If an attempt overwrote an operand before it failed, the first failure is reported. */
static __attribute__((noinline, cold)) duet_status run_alone(const plan *p, const statement *s)
{
    error_text first;
    error_keep(&first);
    TRACE("wait until other threads do not use the memory of the GPU: %s", first.text);
    __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&alone);
    for (int i = 0; i < WAITS && thread_any_uses_buffers(ALL_QUEUES); i++) usleep(MICROSECONDS);
    const duet_status st = run_once(p, s);
    pthread_mutex_unlock(&alone);
    __atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
    if (st != DUET_UNKNOWN) return st;
    error_put_back(&first);
    return DUET_NO_MEMORY;
}

/* If no result has an element, there is nothing to bind. Work that another thread has deferred on
 * this queue comes first: its matrices say that the queue has done it. */
duet_status plan_run(const plan *p, const statement *s)
{
    if (p->count == 0) return DUET_OK;
    USE_GPUS_IF(p->device != HOST);
    const uint64_t deferred = p->device != HOST ? deferred_queues_now() & 1ull << thread_get()->queue : 0;
    if (unlikely(deferred != 0)) TRY(deferred_launch(deferred));
    if (unlikely(__atomic_load_n(&waiting, __ATOMIC_RELAXED)) && p->device != HOST) let_others_end();
    const unsigned failures = deferred_failures();
    const duet_status st = run_once(p, s);
    if (likely(st != DUET_NO_MEMORY) || p->device == HOST || failures != deferred_failures()) return st;
    return thread_any_on(ALL_QUEUES) ? run_alone(p, s) : st;
}
