/* in_thread.h - a function in a thread of its own, whose arena and plans are new and end with it. */
#ifndef ALONE_H
#define ALONE_H

#include "tap.h"
#include <pthread.h>

/* run(arg), to its end. */
static inline void alone(void *run(void *), void *arg)
{
    pthread_t t;
    const int none = pthread_create(&t, NULL, run, arg);
    if (!none) pthread_join(t, NULL);
    CHECK(!none, "no thread");
}

#endif
