/* staging.h - a pinned buffer between host memory that is not pinned and a device: the host copies
 * one part while the device copies another. Private to src/run. */
#ifndef STAGING_H
#define STAGING_H

#include "backend.h"

/* Two sets of blocks. The host and the device use them in turns. */
typedef struct staging {
    char *block; /* NULL: no pinned memory; copies go directly */
    size_t set;  /* bytes */
} staging;

void staging_open(staging *g, int device); /* two sets of g->set bytes; g->block is NULL on failure */
void staging_close(staging *g);

static inline char *staging_at(const staging *g, int64_t part, size_t at)
{
    return g->block + (size_t)(part % 2) * g->set + at;
}

/* Copies host memory with all threads of the CPU. bytes: a multiple of 4 */
duet_status staging_copy(void *to, const void *from, size_t bytes);

#endif
