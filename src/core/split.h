/* split.h - the storage of a matrix on a group. The elements are in parts: one ordinary matrix for each rank
 * of this process. The storage itself has a buffer only while the host accesses the elements. */
#ifndef SPLIT_H
#define SPLIT_H

#include "communicator.h"
#include "matrix.h"

/* The numbers of a part's elements in the row-major order of the whole array. The part consists of runs of
 * `run` elements. The first run begins at element `first`, and the next ones every `apart` elements. */
typedef struct part_runs {
    int64_t first, run, apart;
} part_runs;

typedef struct split {
    duet_group *group;
    distribution at;
    shape whole;
    duet_dtype type;
    int parts;
    duet_matrix **part; /* dense; that of rank first + i at i */
    pthread_mutex_t lock;
    bool valid; /* the parts have the elements; else the buffer on the host has them */
    /* Copy all elements between the parts and a dense array. */
    duet_status (*gather)(struct split *s, void *to,
                          duet_status room); /* room: why there is no `to`, or OK */
    duet_status (*scatter)(struct split *s, const void *from);
    void (*end)(struct split *s); /* frees it */
    /* For functions that access the parts themselves, while they hold this lock of the group. */
    pthread_mutex_t *busy;
    communicator *comm; /* of the first rank in this process */
    /* Does each rank have runs of the elements of m, a view of this matrix? Then view_part returns the
     * elements that a rank in this process has, perhaps none, and their numbers. NULL: out of memory */
    bool (*has_parts)(const duet_matrix *m);
    duet_matrix *(*view_part)(const duet_matrix *m, int index, part_runs *at);
} split;

/* How many groups there are: formulas are searched for matrices on groups only if there is one. */
extern int groups_alive;
static inline bool any_groups(void) { return __atomic_load_n(&groups_alive, __ATOMIC_RELAXED) > 0; }

/* Waits for the GPUs of all groups of this process, as duet_synchronize does for that of the thread. Set by
 * src/group when it makes the first group. */
extern duet_status (*groups_synchronize)(void);

/* A matrix with this storage, which owns s. NULL: out of memory, and s is unchanged */
duet_matrix *matrix_of_split(split *s);

/* If the buffer on the host has the elements, copies them to the parts. */
duet_status split_ready(storage *b);

#endif
