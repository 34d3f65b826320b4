/* ready.h - can a plan still fail, other than by a device error? Of several statements, what those
 * before overwrite must be saved only if it can. */
#ifndef READY_H
#define READY_H

#include "plan.h"

#define HELD 8

/* Memory for the temporaries of plans that will run one after the other. Empty if count is 0. */
typedef struct held_memory {
    int count;
    int device;
    struct {
        void *p;
        size_t bytes;
    } block[HELD];
} held_memory;

/* Will only a device error stop the plan, if it runs after statements that wrote these matrices on
 * its device? Its steps are sure and its operands have buffers. If so, the thread now has what the
 * steps need (machine.make_sure), and h has memory for the temporaries. h may be NULL: a recording
 * has it. */
bool plan_is_ready(const plan *p, const statement *s, const duet_matrix *const *written, int count,
                   held_memory *h);

/* Of such a plan on a GPU: opens the operands, except those matrices. Then another thread frees none of their
 * buffers as long as this thread has a buffer_user (core/eviction.h). Returns false if that fails. */
bool plan_open_operands(const plan *p, const statement *s, const duet_matrix *const *written, int count);

/* To be called before the first plan that is ready, as soon as nothing else will be allocated:
 * gives the memory to the pool, where the plans find it. */
void release_held(held_memory *h);

#endif
