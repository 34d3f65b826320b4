/* threads.h - chooses the number of threads for a piece of work, and distributes the work. */
#ifndef THREADS_H
#define THREADS_H

#include "cpu.h"
#include "fp_environment.h"
#include "host_threads.h"
#include <omp.h>
#include <signal.h>

/* Rough times of one thread, in seconds. They are used only to choose the number of threads. */
#define SECONDS_PER_BYTE     1e-10 /* memory read or written */
#define SECONDS_PER_CACHED   1e-11 /* a byte read from the caches, or written there */
#define SECONDS_PER_ROUNDED  1e-10 /* one element, by an operator that rounds once */
#define SECONDS_PER_FUNCTION 1e-9  /* one element, by a function such as exp */
#define SECONDS_PER_FLOP     5e-11 /* matrix products and convolutions */

/* OpenMP ends the process if it cannot make a thread. So before this thread's first parallel region, as many
 * threads are made and ended, and then OpenMP makes its own. If fewer can be made, OpenMP's number for this
 * thread is lowered to that, which also holds for libraries. What another part of the program takes between
 * the two is not noticed; nor is it if the program has ended OpenMP's threads since, by a smaller region. */
extern _Thread_local int threads_tested __attribute__((tls_model(DUET_TLS))); /* the largest number tested */
void threads_test(int threads) __attribute__((cold));                         /* sets it */

static inline void threads_prepare(void)
{
    const int most = omp_get_max_threads();
    if (unlikely(most > threads_tested) && !omp_in_parallel()) threads_test(most);
}

/* If set, OpenMP's other threads block signals from their first work for Duet on, except those that an
 * instruction raises. A handler of the program then runs in another thread. */
extern bool cpu_workers_block_signals;
extern _Thread_local bool threads_signals_blocked __attribute__((tls_model(DUET_TLS)));
void threads_block_signals(void) __attribute__((cold));
void threads_signals(sigset_t *all); /* the signals that are blocked */

/* The number of threads available; 1 inside a parallel region of the caller. */
static inline int threads_here(void) { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

/* Returns 1 or all threads, nothing between. When a team is smaller than the previous one, gcc's
 * OpenMP ends the remaining threads, and the next team creates them again.
 *
 * Parallel regions set the number with num_threads only, never with an if clause. If an if clause
 * is false, clang's OpenMP applies num_threads to the next region. That region may be OpenBLAS's,
 * which then waits forever. */
static inline int threads_for(double seconds)
{
    if (seconds <= cpu_serial_seconds) return 1;
    if (cpu_blas_apart && cpu_blas_awake()) return 1;
    threads_prepare();
    return threads_here();
}

/* Before a call of a library that uses all OpenMP threads: makes it use one thread if `alone`. Pass
 * the result to threads_again(), which restores the caller's number. */
static inline int threads_alone(bool alone)
{
    const int available = omp_get_max_threads();
    if (alone && available > 1) omp_set_num_threads(1);
    return alone ? available : 1;
}

static inline void threads_again(int threads)
{
    if (threads > 1) omp_set_num_threads(threads);
}

/* Runs `share` in each of `threads` threads. One thread runs it without a parallel region, which
 * costs 0.3 us in gcc's OpenMP even then. */
static inline void by_threads(int threads, share_function *share, const void *work)
{
    if (threads <= 1) {
        share(work, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        if (cpu_workers_block_signals && !threads_signals_blocked && omp_get_thread_num())
            threads_block_signals();
        IN_DEFAULT_FP_ENVIRONMENT;
        share(work, omp_get_thread_num(), omp_get_num_threads());
    }
}

#endif
