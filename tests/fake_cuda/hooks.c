/* hooks.c - runs functions of a test just before certain calls of the fake CUDA. */
#include "fake.h"

static struct {
    uint64_t left; /* calls until the hook runs; 0: there is none */
    void (*hook)(void *);
    void *arg;
} points[FAKE_POINTS];

void fake_before(enum fake_point point, uint64_t n, void (*hook)(void *), void *arg)
{
    pthread_mutex_lock(&fake_lock);
    points[point].left = n;
    points[point].hook = hook;
    points[point].arg = arg;
    pthread_mutex_unlock(&fake_lock);
}

void fake_at(enum fake_point point)
{
    pthread_mutex_lock(&fake_lock);
    const bool is_due = points[point].left && --points[point].left == 0;
    void (*hook)(void *) = points[point].hook;
    void *arg = points[point].arg;
    pthread_mutex_unlock(&fake_lock);
    if (is_due) hook(arg);
}
