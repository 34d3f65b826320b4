/* threads.h - how many threads a piece of work is worth, and how it is cut. */
#ifndef THREADS_H
#define THREADS_H

#include "cpu.h"
#include <omp.h>

/* What one thread does, in seconds: rough, for the choice of threads alone. */
#define SECONDS_PER_BYTE     1e-10 /* of memory gone through */
#define SECONDS_PER_ROUNDED  1e-10 /* one element through an operator that rounds once, */
#define SECONDS_PER_FUNCTION 1e-9  /* and through a function such as exp */
#define SECONDS_PER_FLOP     5e-11 /* of a product or a convolution */

/* 1 inside of a parallel region of the caller's. */
static inline int threads_here(void) { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

/* One or all: of a team that is smaller than the last one gcc's OpenMP ends the threads that are left out, and the next one has to make them
 * anew. Regions take the number by num_threads alone: with an if beside it that is false, clang's OpenMP keeps the number for the next
 * region, though it be OpenBLAS's, which then waits for ever. */
static inline int threads_for(double seconds)
{
    if (seconds <= cpu_serial_seconds) return 1;
    if (cpu_blas_apart && cpu_blas_awake()) return 1;
    return threads_here();
}

/* For a call of a library that takes as many threads as OpenMP has: none is woken if alone. The caller's number is there again after
 * threads_again(what threads_alone returned). */
static inline int threads_alone(bool alone)
{
    const int most = omp_get_max_threads();
    if (alone && most > 1) omp_set_num_threads(1);
    return alone ? most : 1;
}

static inline void threads_again(int threads)
{
    if (threads > 1) omp_set_num_threads(threads);
}

/* Each of so many threads does its share of the work. One alone does it without a region, which takes gcc's OpenMP 0.3 us even then. */
typedef void share_function(const void *work, int t, int threads);

static inline void by_threads(int threads, share_function *share, const void *work)
{
    if (threads <= 1) {
        share(work, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    share(work, omp_get_thread_num(), omp_get_num_threads());
}

/* The first item of part t when n items are cut into `parts` parts. */
static inline int64_t part_of(int64_t n, int t, int parts)
{
    return n / parts * t + (n % parts < t ? n % parts : t);
}

#endif
