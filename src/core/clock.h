/* clock.h - the time, and whether a choice may depend on it. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Seconds, from some moment on. */
static inline double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* DUET_REPRODUCIBLE=1: results repeat from run to run, so nothing is chosen by how long it took. */
static inline bool reproducible(void)
{
    const char *text = getenv("DUET_REPRODUCIBLE");
    return text && *text == '1';
}

#endif
