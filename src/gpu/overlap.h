/* overlap.h - exchanges that run while the queue of their rank does other work. They are calls on the stream
 * of the link. Work of the queue waits for a call only if both use the same memory. */
#ifndef OVERLAP_H
#define OVERLAP_H

#include "link.h"
#include "step_kinds.h"

/* Call it between gpu_link_begin and the call of NCCL, which is then made on l->stream. The call waits for
 * all earlier work of the queue. uses: its memory */
duet_status gpu_overlap_begin(queue *q, gpu_link *l, const link_uses *uses);

/* Call it before a step is launched on the queue: the step waits for the calls that use its memory. */
duet_status gpu_overlap_wait(queue *q, const step *s, const frame *f);
static inline duet_status gpu_overlap_before(queue *q, const step *s, const frame *f)
{
    return likely(!q->exchanges) ? DUET_OK : gpu_overlap_wait(q, s, f);
}

/* Makes the queue wait for all calls. join: the function of core/backend.h */
duet_status gpu_overlap_end(queue *q);
duet_status gpu_join(int device, int index);

#endif
