/* in_thread.h - runs a function in a new thread, whose arena and plans start empty and end with it. */
#ifndef ALONE_H
#define ALONE_H

#include "tap.h"
#include <pthread.h>

/* Runs run(arg) and waits for it. */
static inline void alone(void *run(void *), void *arg)
{
    pthread_t t;
    const int none = pthread_create(&t, NULL, run, arg);
    if (!none) pthread_join(t, NULL);
    CHECK(!none, "no thread");
}

#endif
