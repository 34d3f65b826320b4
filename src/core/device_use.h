/* device_use.h - threads say when they use a GPU, so that duet_recover can wait until no other thread
 * does. While a GPU is recovered, addresses of its memory become invalid.
 *
 * A thread uses GPUs from before it asks for the address of a buffer until all work with that address
 * is queued. Uses may be nested. */
#ifndef DEVICE_USE_H
#define DEVICE_USE_H

#include "thread.h"

extern bool devices_recovering; /* a thread recovers GPUs */

/* Waits until the recovery has ended, unless the thread was using GPUs before, or recovers them itself. */
void device_use_wait(thread *t) __attribute__((cold, noinline));

/* Threads for which there was no memory share one count. */
static inline void device_use_count(thread *t, uint32_t by)
{
    if (unlikely(t->shared)) (void)__atomic_add_fetch(&t->uses_of_gpus, by, __ATOMIC_SEQ_CST);
    else __atomic_store_n(&t->uses_of_gpus, t->uses_of_gpus + by, __ATOMIC_RELEASE);
}

/* The processor may load before it has stored: the recovering thread then makes all threads pass a
 * memory barrier. So a signal fence, which costs nothing, is enough here. */
static inline thread *device_use_enter(void)
{
    thread *t = thread_get();
    device_use_count(t, 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return t;
}

static inline thread *device_use_begin(void)
{
    thread *t = device_use_enter();
    if (unlikely(__atomic_load_n(&devices_recovering, __ATOMIC_ACQUIRE))) device_use_wait(t);
    return t;
}

static inline void device_use_end(thread *t) { device_use_count(t, (uint32_t)-1); }

static inline void device_use_leave(thread *const *t)
{
    if (*t) device_use_end(*t);
}

/* USE_GPUS; from here to the end of the block this thread uses GPUs. USE_GPUS_IF: if the condition holds. */
#define USE_GPUS_IF(condition)                                                                               \
    __attribute__((cleanup(device_use_leave), unused)) thread *device_user =                                 \
        (condition) ? device_use_begin() : NULL
#define USE_GPUS USE_GPUS_IF(true)

/* Only one thread recovers at a time; the others wait. begin waits until no other thread uses a GPU.
 * Errors: DEVICE_ERROR: a thread still does after some seconds. Call end in any case. */
duet_status device_recovery_begin(void);
void device_recovery_end(void);
bool device_recovery_is_mine(void); /* does this thread recover GPUs? */

#endif
