/* scratch.h - memory for the length of a step: temporaries and scratch. What a recording has lent once it keeps for itself, so that work
 * recorded with an address finds nothing else there later. */
#ifndef LEND_H
#define LEND_H

#include "backend.h"

/* pool_take and pool_give, for memory that the queue is done with when its work is; of the device's, while this thread has a lender,
 * from that. */
duet_status lend(enum side s, size_t bytes, int queue, void **p);
void lend_back(enum side s, void *p, int queue);

/* What a recording keeps of the device's memory. All zeros at first. */
typedef struct lender {
    struct lent *block;
    int count, room;
    bool closed; /* what it has not is refused: while work is recorded nothing may be allocated */
} lender;

size_t lender_bytes(const lender *l);
void lender_free(lender *l,
                 uint64_t queues); /* queues: bit q is set when queue q may still have work on it */

#endif
