/* graph.h - steps as a CUDA graph. The functions are those of core/backend.h. */
#ifndef GPU_GRAPH_H
#define GPU_GRAPH_H

#include "queue.h"

duet_status gpu_graph_record(int index);
duet_status gpu_graph_recorded(int index, void **graph);
duet_status gpu_graph_replay(void *graph, int index);
void gpu_graph_discard(void *graph);

#endif
