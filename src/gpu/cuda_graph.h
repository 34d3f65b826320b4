/* cuda_graph.h - steps as a CUDA graph; implements functions of core/backend.h. */
#ifndef CUDA_GRAPH_H
#define CUDA_GRAPH_H

#include "queue.h"

duet_status gpu_graph_record(int device, int index);
duet_status gpu_graph_recorded(int device, int index, void **made);
duet_status gpu_graph_replay(int device, void *made, int index);
bool gpu_graph_outdated(int device, void *made);
void gpu_graph_discard(int device, void *made);
void gpu_graphs_end(int device); /* after the loss of a card: none of its graphs can be launched */

/* The graph under capture on q contains the address of k. k lives as long as the graph; its packed
 * contents are refreshed before a launch. */
struct packed_operand;
duet_status gpu_graph_uses(queue *q, struct packed_operand *k);

/* The graph under capture on q contains an exchange of the link. A graph has at most one link.
 * Errors    UNSUPPORTED: it has another one */
struct gpu_link;
duet_status gpu_graph_links(queue *q, struct gpu_link *l);

/* The order of the steps of the graph under capture on q (graph_order.h). */
struct graph_order *gpu_graph_order(const queue *q);

/* The compiled kernels of the graph under capture on q. */
kernels_used *gpu_graph_used(const queue *q);

#endif
