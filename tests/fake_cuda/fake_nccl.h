/* fake_nccl.h - declarations that the two files of the fake NCCL share. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include "fake.h"
#include "nccl_api.h"

enum kind { SEND, RECEIVE, GATHER, REDUCE, SCATTER };

typedef struct call {
    enum kind kind;
    const char *from;
    char *to;
    size_t count;
    ncclDataType_t type;
    int peer;
    bool done;
} call;

/* The calls of a group for one communicator: work of a stream. */
typedef struct unit {
    ncclComm_t comm;
    int count;
    bool begun, counted; /* counted: in comm->queued, since it is not part of a graph */
    double ready;        /* when a delayed rank begins it; 0: not reached yet */
    call call[];
} unit;

typedef struct clique {
    struct clique *next;
    ncclUniqueId id;
    int ranks, joined;
    ncclComm_t comm[FAKE_RANKS];
} clique;

struct ncclComm {
    clique *of;
    int rank, device;
    ncclResult_t state; /* ncclSuccess, or its error: */
    char error[200];
    bool ended;      /* destroyed or aborted */
    bool finalized;  /* it is in progress until its calls have run */
    int queued, run; /* units */
    int polls;       /* it is in progress for so many polls */
    double ready;    /* when it is connected */
    unit *begun;     /* the unit that the stream has reached, or NULL */
};

/* What tests have set, and the counts for them; protected by fake_lock. */
extern int fake_nccl_delays[FAKE_RANKS];
extern bool fake_nccl_silence[FAKE_RANKS];
extern fake_nccl_counts fake_nccl_counted[FAKE_RANKS];

double fake_nccl_now(void); /* seconds */

/* The communicator has an asynchronous error from now on, unless it has one or was ended. */
void fake_nccl_break(ncclComm_t c, ncclResult_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t fake_nccl_bytes(const call *c);              /* of its operand; of one part for calls of all ranks */
size_t fake_nccl_written(const call *c, int ranks); /* bytes of its result */
fake_trying fake_nccl_try;                          /* a unit as work of a stream */

#endif
