/* link.h - the connection of a GPU to those of the other ranks of a group: a communicator of NCCL. */
#ifndef LINK_H
#define LINK_H

#include "queue.h"
#include "vendor.h"

/* How many calls of a link may be unfinished. A further one waits for the first of them. */
#define LINK_CALLS 32

/* The memory of a call on the stream of the link. Empty for calls on other streams. */
typedef struct link_uses {
    span read, written, scratch;
} link_uses;

/* A call that other ranks take part in, between two events. */
typedef struct link_call {
    cudaEvent_t begun, ended;
    link_uses uses;
} link_call;

typedef struct gpu_link {
    struct gpu_link *next; /* in the list of all links */
    int references;        /* the group, and graphs that contain a collective */
    int device, rank, ranks;
    double seconds;       /* how long a call waits for the other ranks */
    pthread_mutex_t lock; /* for all below */
    ncclComm_t comm;      /* NULL after it was aborted */
    bool broken;          /* and then the reason: */
    char why[600];
    link_call call[LINK_CALLS]; /* a ring */
    uint64_t first;             /* the number of the first call that may be unfinished, */
    unsigned count;             /* and how many there are */
    double since;               /* when the first of them was seen to have begun; 0: not yet */
    cudaStream_t stream; /* of calls that run while the queue does other work; NULL: the card was lost */
    cudaEvent_t joined;  /* recorded when the queue waits for all of them */
    uint64_t awaited;    /* the queue waits for the calls with smaller numbers */
} gpu_link;

/* Functions of core/backend.h. */
duet_status gpu_link_name(char name[LINK_NAME]);
duet_status gpu_connect(int device, const char name[LINK_NAME], int rank, int ranks, double seconds,
                        void **link);
void gpu_disconnect(void *link, bool failed);
duet_status gpu_link_check(void *link);
void gpu_link_info(FILE *out, const int device[], int count);

/* NULL is accepted by release. */
void gpu_link_hold(gpu_link *l);
void gpu_link_release(gpu_link *l);

/* Call begin before, and end after, work in which ranks wait for each other is queued on the stream. The
 * stream must not be under capture. begin locks the link, and end unlocks it. Call end if begin succeeds.
 * Errors    of begin: RANK_FAILED: the link has failed; DEVICE_ERROR */
duet_status gpu_link_begin(gpu_link *l, cudaStream_t stream, double seconds);
duet_status gpu_link_end(gpu_link *l, cudaStream_t stream);

/* The same under capture. */
duet_status gpu_link_lock(gpu_link *l);
void gpu_link_unlock(gpu_link *l);

/* Call it while the link is locked. Converts the result of a call of NCCL, and waits until the call has ended
 * on the host. After an error the link is broken. */
duet_status gpu_link_called(gpu_link *l, const char *call, ncclResult_t r);

/* After the loss of a card: its links are broken. */
void gpu_links_lost(int device);

#endif
