/* spin_lock.h - a lock for critical sections of a few instructions, which every new matrix enters. Without
 * contention it takes about a third of the time of a mutex. A thread that waits for long gives up its
 * processor, since the owner of the lock may need it. */
#ifndef SPIN_LOCK_H
#define SPIN_LOCK_H

#include "compiler.h"
#include <sched.h>

typedef struct spin_lock {
    int taken;
} spin_lock;

#define SPINS 100 /* before a waiting thread gives up its processor */

static __attribute__((noinline, cold)) void spin_wait(spin_lock *l)
{
    for (int spins = 1;; spins++) {
        const int taken = __atomic_load_n(&l->taken, __ATOMIC_RELAXED);
        if (!taken && !__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE)) return;
        if (spins % SPINS == 0) sched_yield();
    }
}

static inline void spin_take(spin_lock *l)
{
    if (unlikely(__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE))) spin_wait(l);
}

static inline void spin_give(spin_lock *l) { __atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE); }

#endif
