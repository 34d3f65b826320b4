/* scratch_memory.c - memory for the run of a step, from the pool. */
#include "cpu_kernels.h"
#include "pool.h"

/* The host queue is always idle after a call, so no queue has to be waited for. */
duet_status scratch_take(size_t bytes, const frame *f, void **p)
{
    return pool_take(HOST, bytes, f->queue, p);
}

void scratch_give(void *p)
{
    if (p) pool_give(HOST, p, 0);
}
