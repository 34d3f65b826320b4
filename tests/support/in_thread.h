/* in_thread.h - runs a function in a new thread, whose arena and plans start empty and end with it. */
#ifndef IN_THREAD_H
#define IN_THREAD_H

#include "tap.h"
#include <pthread.h>

/* Runs run(arg) and waits for it. */
static inline void run_in_thread(void *run(void *), void *arg)
{
    pthread_t t;
    const int none = pthread_create(&t, NULL, run, arg);
    if (!none) pthread_join(t, NULL);
    CHECK(!none, "the thread could not be created");
}

#endif
