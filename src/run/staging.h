/* staging.h - pinned memory on the way between homes that are not pinned and the device: the host copies one part while the device copies another.
 * Private to src/plan. */
#ifndef STAGING_H
#define STAGING_H

#include "backend.h"

/* Two sets: one for the host, one for the device, in turns. */
typedef struct staging {
    char *block; /* NULL: there is none, and homes are copied as they are */
    size_t set;  /* bytes */
} staging;

void staging_open(staging *g); /* of g->set bytes; no error where there is no such memory */
void staging_close(staging *g);

static inline char *staging_at(const staging *g, int64_t part, size_t at)
{
    return g->block + (size_t)(part % 2) * g->set + at;
}

/* Within the host's memory, by all threads that the CPU has. bytes: whole elements */
duet_status staging_copy(void *to, const void *from, size_t bytes);

#endif
