/* layer_overhead.h - the part of duet-calls that needs a GPU: the overhead of a dense layer
 * compared with the bare calls that it makes, and of networks with automatic replay compared with a
 * recording. */
#ifndef LAYER_OVERHEAD_H
#define LAYER_OVERHEAD_H

#include "json.h"
#include "measure.h"

/* Measures the forward passes of the dense and the convolutional network at batch 1: without
 * replay, with automatic replay, and recorded. Call it before duet_stream(), which turns automatic
 * replay off. */
bool layer_overhead_networks(json *j, effort how);

/* Measures the host time of one dense layer at batch 1, 100 and 1000, and of its bare calls. Call
 * handwritten_open with Duet's stream before. */
bool layer_overhead_dense(json *j, effort how);

#endif
