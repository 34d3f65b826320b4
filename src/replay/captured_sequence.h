/* captured_sequence.h - statements that a thread says again and again: recorded once, from then on held back one by one and launched as one graph.
 * Private to src/plan. */
#ifndef CAPTURED_SEQUENCE_H
#define CAPTURED_SEQUENCE_H

#include "deferred.h"
#include "record.h"

typedef struct captured_sequence {
    deferred_work deferred_work;
    duet_recording of;
    stretch all;     /* its graph */
    int from, to;    /* what is held back; under the lock of the queue */
    bool broken;     /* others have launched what was in front of it */
    uint64_t first;  /* as which its first statement is known: auto_replay.c */
    uint64_t period; /* and the period that it was made for */
    uint64_t last_use;
    int credit;
} captured_sequence;

captured_sequence *sequence_new(void);
void sequence_free(captured_sequence *r); /* it holds nothing back */

/* Runs a statement and adds it. *added is false when there was no memory for that: then the statement has run all the same. */
duet_status sequence_add(captured_sequence *r, const plan *p, const statement *s, bool *added);

/* No more are added: is it worth being held back? Then there is a graph. The thread's text stays. */
bool sequence_close(captured_sequence *r);

/* Is this its statement i? */
bool sequence_has(const captured_sequence *r, int i, const plan *p, const statement *s);

/* Does all that running it would do but its steps. *held is false when it lies elsewhere now: then nothing was done.
 * Errors: as of plan_run before its first step */
duet_status sequence_defer(captured_sequence *r, int i, const statement *s, bool *held);

#endif
