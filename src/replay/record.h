/* record.h - statements that are noted as they run, to run again without being planned. Private to src/plan.
 *
 * What runs on one machine without another in between is a stretch; the GPU runs one as a graph, which is recorded anew when a matrix
 * has moved or another thread replays. */
#ifndef RECORD_H
#define RECORD_H

#include "execute.h"
#include "plan.h"
#include "scratch.h"

/* Statements that were planned at once. */
typedef struct recorded {
    plan *plan;
    statement s; /* over copies: */
    formula f;
    node *nodes;
    target *to;
    uint64_t *serial; /* of the destinations, as they were */
    storage **bits;   /* of the destinations, then the leaves, as they were */
    char *site;       /* a copy, or NULL */
    int number;       /* of the statement among those that the user made: several passes may be of one */
    void **data;      /* as the plan binds them */
    double *num;
    bool *
        there; /* of each destination, then leaf: an earlier statement of the stretch has it on the machine */
} recorded;

typedef struct stretch {
    int first, end; /* of the recorded */
    void *graph;    /* or NULL */
    int failures;   /* of attempts to make one */
    int queue;      /* where it was recorded, and runs */
    uint64_t launches;
} stretch;

struct duet_recording {
    recorded *of;
    int count, room, statements;
    stretch *stretches;
    int n_stretches;
    scratch_reserve lent;
    uint64_t queues; /* bit q: queue q may still have work on what is lent */
    duet_status failed;
    duet_matrix *kept; /* matrices that the library has made for statements, the latest first */
};

/* Adds a statement with own, its plan, which is freed when that fails; it counts only once r->count is one more. NULL: no memory */
recorded *record_note(duet_recording *r, plan *own, const statement *s);
void record_free_one(recorded *e);
void record_clear(duet_recording *r); /* frees all that it has */

/* replay.c: once all is recorded. Errors: NO_MEMORY */
duet_status replay_prepare(duet_recording *r);
duet_status replay_lives(const recorded *e); /* FREED, if a matrix of it was */
/* Runs one on this thread's queue, lending from the recording. */
duet_status replay_one(duet_recording *r, recorded *e);
/* Records the steps of a stretch, bound as they are. */
duet_status replay_record(duet_recording *r, stretch *g, int queue);
/* Runs, or records, the steps of one, bound as they are, lending from this thread's scratch_reserve. The matrices may count as what later ones make of
 * them already. */
duet_status replay_steps(const duet_recording *r, const stretch *g, const recorded *e, int queue);

/* record.c, while this thread records: plan_run for what is to be replayed; the same of a plan of one step, which is copied; and the end of a
 * statement, in which s was its status. */
duet_status record_run(const plan *p, const statement *s);
duet_status record_single(const plan *p, const statement *s);
void record_next(duet_status s);
/* A matrix that the library has made for a statement, whose status s is: freed, or, while this thread records, kept by the recording. NULL is
 * accepted. Returns s */
duet_status record_keep(duet_matrix *m, duet_status s);

#endif
