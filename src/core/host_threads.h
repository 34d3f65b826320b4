/* host_threads.h - divides work of the host among the threads of the CPU backend. */
#ifndef HOST_THREADS_H
#define HOST_THREADS_H

#include <stdint.h>

/* Does the part of some work that belongs to thread t of `threads`. It must not fail. */
typedef void share_function(const void *work, int t, int threads);

/* Only src/duet.c fills this.
 *     count   the number of threads for work that takes one thread this many seconds
 *     share   calls f(work, t, n) for each t < n, in n threads, and waits for all of them. n is at most
 *             `threads`. All calls have the default floating-point environment */
extern const struct host_threads {
    int (*count)(double seconds);
    void (*share)(int threads, share_function *f, const void *work);
} host_threads;

/* The first item of part t if n items are divided into `parts` parts. */
static inline int64_t part_of(int64_t n, int t, int parts)
{
    return n / parts * t + (n % parts < t ? n % parts : t);
}

#endif
