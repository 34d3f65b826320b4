/* clock.h - the time, and whether choices may depend on it. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Seconds since an arbitrary time. */
static inline double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* With DUET_REPRODUCIBLE=1 results are the same in every run, so nothing may be chosen by timing. */
static inline bool reproducible(void)
{
    const char *text = getenv("DUET_REPRODUCIBLE");
    return text && *text == '1';
}

#endif
