/* graph_order.h - the order of the steps in a CUDA graph under capture. A step waits for the earlier
 * steps that use the same memory, and for no others, so independent steps become parallel branches. A
 * step whose memory is not known waits for all earlier steps, and all later ones wait for it.
 *
 * All steps are captured on one stream. Before a step, the nodes that it waits for are set as the
 * dependencies of the stream. */
#ifndef GRAPH_ORDER_H
#define GRAPH_ORDER_H

#include "queue.h"

typedef struct graph_order graph_order;

graph_order *gpu_order_new(void); /* NULL: no host memory */
void gpu_order_free(graph_order *o);

/* To be called around each step that q captures. If begin or the step fails, end need not be called. */
duet_status gpu_order_begin(queue *q, const step *s, const frame *f);
duet_status gpu_order_end(queue *q);

/* The step under capture also uses this memory, which is not an operand: what it launches from now on
 * waits for the earlier steps that use it. Does nothing if this thread does not capture on q. */
duet_status gpu_order_uses(queue *q, const void *p, size_t bytes);

/* Returns in *lent a part of `bytes` bytes of a workspace for the step under capture; *bytes must be at
 * most `all`. Steps that follow one another get different parts, so that they may run at the same time. If
 * this thread does not capture on q, the part is the whole workspace, and *bytes becomes `all`. */
duet_status gpu_order_part(queue *q, void *memory, size_t all, size_t *bytes, void **lent);

#endif
