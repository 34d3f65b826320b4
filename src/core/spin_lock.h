/* spin_lock.h - a lock for short critical sections, which every new matrix enters; a few of them, such as a
 * list of all matrices, take longer. Without contention it takes about a third of the time of a mutex. A
 * thread that waits for long gives up its processor, and later sleeps: the owner of the lock may have a lower
 * priority and need this processor. */
#ifndef SPIN_LOCK_H
#define SPIN_LOCK_H

#include "compiler.h"
#include <sched.h>
#include <time.h>

typedef struct spin_lock {
    int taken;
} spin_lock;

#define SPINS  100 /* before a waiting thread gives up its processor */
#define YIELDS 10  /* before it sleeps */

static __attribute__((noinline, cold)) void spin_wait(spin_lock *l)
{
    const struct timespec nap = { .tv_nsec = 50000 };
    for (int64_t spins = 1;; spins++) {
        const int taken = __atomic_load_n(&l->taken, __ATOMIC_RELAXED);
        if (!taken && !__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE)) return;
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
        if (spins % SPINS) continue;
        if (spins < (int64_t)SPINS * YIELDS) sched_yield();
        else nanosleep(&nap, NULL);
    }
}

static inline void spin_take(spin_lock *l)
{
    if (unlikely(__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE))) spin_wait(l);
}

static inline void spin_give(spin_lock *l) { __atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE); }

#endif
