/* device_use.c - keeps other threads from using GPUs while one thread recovers them. */
#include "device_use.h"
#include "clock.h"
#include "status.h"
#include <pthread.h>
#include <unistd.h>

#define WAIT_MOST 10.0 /* seconds for other threads to stop using GPUs */
#define WAIT_EACH 200  /* microseconds between two looks */

#define FENCE_WAIT 10000 /* microseconds in which stores of other threads become visible without a fence */

bool devices_recovering;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held during a recovery */
static const thread *recoverer;

bool device_recovery_is_mine(void)
{
    const thread *by = __atomic_load_n(&recoverer, __ATOMIC_RELAXED);
    return by && by == thread_mine;
}

/* A thread that already uses GPUs must go on: the recovering thread waits for it. */
void device_use_wait(thread *t)
{
    while (__atomic_load_n(&devices_recovering, __ATOMIC_ACQUIRE)) {
        if (t->uses_of_gpus > 1 || t->shared || device_recovery_is_mine()) return;
        device_use_end(t);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        device_use_count(t, 1);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

duet_status device_recovery_begin(void)
{
    (void)thread_get();
    pthread_mutex_lock(&lock);
    __atomic_store_n(&recoverer, thread_mine, __ATOMIC_RELAXED);
    __atomic_store_n(&devices_recovering, true, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!thread_fence_all()) usleep(FENCE_WAIT);
    const double start = clock_now();
    while (thread_any_uses_gpus()) {
        if (clock_now() - start > WAIT_MOST)
            return fail(DUET_DEVICE_ERROR, "duet_recover: another thread still uses a GPU after %g seconds",
                        WAIT_MOST);
        usleep(WAIT_EACH);
    }
    return DUET_OK;
}

void device_recovery_end(void)
{
    __atomic_store_n(&recoverer, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&devices_recovering, false, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}
