/* captured_sequence.h - a sequence of statements that a thread repeats. It is recorded once. When the
 * statements come again, they are deferred one by one, and launched as one CUDA graph. */
#ifndef CAPTURED_SEQUENCE_H
#define CAPTURED_SEQUENCE_H

#include "deferred.h"
#include "record.h"

typedef struct captured_sequence {
    deferred_work deferred_work; /* the first member: its functions cast it back */
    const thread *owner;         /* the thread that defers it */
    duet_recording recording;
    segment segment;                /* all of the recording, with its graph */
    int deferred_from, deferred_to; /* entries that are deferred; under the lock of the queue */
    bool interrupted;               /* another thread has launched the first statements */
    uint64_t first_token;           /* the token of its first statement; see auto_replay.c */
    uint64_t period;                /* period_hash of the period that it is a part of */
    uint64_t last_use;
    int credit;
} captured_sequence;

captured_sequence *sequence_new(void);
void sequence_free(captured_sequence *r); /* nothing of it may be deferred */

bool sequence_takes(const plan *p); /* false: its temporaries are too large to be kept */

/* Run a statement and add it. *added: false if there was no memory to add it; it has run even so. */
duet_status sequence_add(captured_sequence *r, const plan *p, const statement *s, bool *added);

/* The sequence is complete: record its graph, if deferring it pays off. Returns whether there is a
 * graph. The thread's error text is kept. */
bool sequence_close(captured_sequence *r);

/* Is this statement entry i of the sequence? */
bool sequence_has(const captured_sequence *r, int i, const plan *p, const statement *s);

/* Do all that running entry i would do, except its steps, which are deferred. *deferred: false if an
 * address has changed, or if elements of a destination are lost; then nothing was done.
 * Errors: those of plan_run before its first step. */
duet_status sequence_defer(captured_sequence *r, int i, const statement *s, bool *deferred);

#endif
