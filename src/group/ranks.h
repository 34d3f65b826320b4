/* ranks.h - a group, and the threads that are its ranks in this process. */
#ifndef RANKS_H
#define RANKS_H

#include "split.h"

#define RANKS_MAX 64 /* in one process */

typedef struct crew crew;
typedef struct hub hub;

struct duet_group {
    int ranks, first, near; /* all ranks; first .. first + near - 1 are in this process */
    int on_machine;       /* consecutive ranks on each machine; 1: machines have different numbers of them */
    duet_place place;     /* of its statements: DUET_CPU or DUET_GPU */
    communicator *comm;   /* of each rank in this process */
    crew *crew;           /* a thread for each of them; NULL: the caller is the only one */
    hub *hub;             /* how they exchange, if the group is in one process */
    duet_group *next;     /* in the list of all groups */
    int refs;             /* of the user, the matrices and the recordings */
    pthread_mutex_t lock; /* one statement at a time */
};

/* Drops a reference. */
void group_release(duet_group *g);

/* BAD_ARGUMENT: g is NULL. RANK_FAILED: an earlier statement has failed. who: the function, for the text;
 * NULL: the caller adds it */
duet_status group_check(const char *who, const duet_group *g);

/* crew.c: threads that each run a function for one rank. */
typedef duet_status rank_work(void *context, int index); /* index: from 0 on, of the rank in this process */
crew *crew_new(int count, duet_place place);             /* NULL: failed, as the text says */
void crew_free(crew *c);
/* Runs a function in all threads, with the modes of the calling thread, and waits. Returns the first failure,
 * with its text; *failed: the index of that rank, or -1. RANK_FAILED is returned only if there is no other
 * failure. */
duet_status crew_run(crew *c, rank_work *work, void *context, int *failed);

/* Runs a function for all ranks of this process: in their threads, or in this thread if there is no crew. */
duet_status group_run(duet_group *g, rank_work *work, void *context, int *failed);

/* hub.c: messages between threads. */
hub *hub_new(int ranks); /* NULL: out of memory */
void hub_free(hub *h);
duet_transport hub_transport(hub *h, int rank);

#endif
