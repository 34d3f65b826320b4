/* cuda_graph.h - steps as a CUDA graph. The functions are those of core/backend.h. */
#ifndef GPU_GRAPH_H
#define GPU_GRAPH_H

#include "queue.h"

duet_status gpu_graph_record(int device, int index);
duet_status gpu_graph_recorded(int device, int index, void **made);
duet_status gpu_graph_replay(int device, void *made, int index);
void gpu_graph_discard(int device, void *made);

/* What is being recorded on q holds the address of k: k stays as long as the graph, which finds it as its storage is. */
struct known;
duet_status gpu_graph_uses(queue *q, struct known *k);

#endif
