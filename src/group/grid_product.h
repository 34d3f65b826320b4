/* grid_product.h - products of large matrices on a grid of ranks. */
#ifndef GRID_PRODUCT_H
#define GRID_PRODUCT_H

#include "grid_policy.h"
#include "rules.h"

/* The latency of a collective step: of messages from other ranks, or of a ring of all ranks. */
static inline double messages_seconds(int senders) { return 40e-6 + 1e-6 * senders; }
static inline double ring_seconds(const planner *p) { return 40e-6 + 2e-6 * p->g->ranks; }

/* Does product i take less than `seconds` on a grid, with communication and arithmetic? Then sets *s.
 * *failed: out of memory */
bool grid_is_faster(planner *p, uint32_t i, double seconds, spread *s, bool *failed);

/* Do all ranks have equally many of the n indices of this axis? Also true if this axis is not split. */
bool has_equal_parts(const distribution *d, int axis, int64_t n, int ranks);

#endif
