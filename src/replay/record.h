/* record.h - recordings: statements with the plans that they ran with, which can run again without
 * being planned.
 *
 * A segment is a run of statements on one device without another in between. The GPU runs a segment
 * as a CUDA graph. The graph is recorded again if a matrix has a new address, or if another thread
 * replays the recording. */
#ifndef RECORD_H
#define RECORD_H

#include "execute.h"
#include "matrix.h"
#include "plan.h"
#include "scratch.h"

/* A destination of deferred work. */
typedef struct deferred_write {
    duet_matrix m;      /* a copy of its header, because it may be freed */
    unsigned before;    /* storage_valid before the work counted as done */
    uint8_t properties; /* of the storage, when the statement was recorded */
} deferred_write;

/* One or several statements that were planned together. */
typedef struct recorded {
    plan *plan;
    statement s; /* uses the following copies */
    formula f;
    node *nodes;
    target *to;
    uint64_t *serial;       /* serials of the destinations when they were recorded */
    storage **storages;     /* storages of the destinations, then of the leaves, when they were recorded */
    deferred_write *writes; /* one for each destination */
    char *site;             /* a copy, or NULL */
    int number;             /* number of the user's statement, which may have become several entries */
    bool is_kept;           /* its statement has later entries, and it writes a matrix of the user */
    void **data;            /* addresses, as the plan binds them */
    double *num;            /* numbers, as the plan binds them */
    bool *written_before; /* of each destination, then each leaf: an earlier entry of the segment writes it */
} recorded;

typedef struct segment {
    int first, end; /* entries */
    void *graph;    /* or NULL */
    int failures;   /* failed attempts to record a graph */
    int device;     /* where the graph was recorded, and runs: the device, */
    int queue;      /* and its queue */
    uint64_t launches;
} segment;

/* Statements of a group (src/group), which the threads of its ranks have recorded. They run after the entries
 * before `at`. No function may be NULL. */
typedef struct recorded_call {
    int at;
    duet_status (*end)(struct recorded_call *c);   /* the recording is complete */
    duet_status (*check)(struct recorded_call *c); /* FREED: a matrix was freed */
    duet_status (*replay)(struct recorded_call *c);
    void (*free)(struct recorded_call *c);
    struct recorded_call *next;
} recorded_call;

struct duet_recording {
    recorded *entries;
    int count, capacity;
    recorded_call *calls; /* in order */
    int statements;       /* statements of the user */
    segment *segments;
    int n_segments;
    scratch_reserve reserve; /* temporaries and workspaces of all entries */
    uint64_t queues;         /* bit q: work that uses the reserve may still run on queue q */
    duet_status failed;
    duet_matrix *matrices;                /* a list of matrices that the library made for statements */
    bool keeps_any;                       /* some entry is_kept */
    struct duet_recording *older, *newer; /* in the list of all recordings */
};

/* Every recording is in a list, from record_enter to record_clear. */
void record_enter(duet_recording *r);

/* The GPUs of the bit mask `which` were lost: all recordings forget their graphs there, the memory that
 * they reserve, and all addresses. No other thread uses these GPUs (device_use.h). */
void recordings_drop_devices(unsigned which);

/* Add an entry with its own plan, which is freed if this fails. The caller increments r->count when
 * the entry is complete. NULL: out of memory. */
recorded *record_add(duet_recording *r, plan *own, const statement *s);
/* Did entries first .. end - 1 use this storage when they were recorded? */
bool record_uses(const duet_recording *r, int first, int end, const storage *b);
void record_free_entry(recorded *e);
void record_clear(duet_recording *r); /* free all that it owns */

/* replay.c: divide a complete recording into segments and record their graphs. Errors: NO_MEMORY */
duet_status replay_prepare(duet_recording *r);

/* FREED, if a matrix of the entry was freed. UNSUPPORTED, if a destination was declared since. */
duet_status replay_check_matrices(const recorded *e);

/* Run an entry on this thread's queue, with the recording's reserve. */
duet_status replay_entry(duet_recording *r, recorded *e);

/* Would a graph of the segment be faster if it was recorded again? Returns true once. */
bool segment_is_outdated(const segment *g);

/* Record a graph of a segment, with the addresses that the entries have. */
duet_status replay_record(duet_recording *r, segment *g, int queue);

/* Run or record the steps of an entry, with the addresses that it has and this thread's
 * scratch_reserve. The state of the matrices may already be that after later entries. If it fails
 * with a status other than DEVICE_ERROR, no destination was written. */
duet_status replay_steps(const duet_recording *r, const segment *g, const recorded *e, int queue);

/* record.c, while this thread records. record_run: plan_run for a statement to be replayed.
 * record_single: the same for a plan of one step, which is copied. record_next: a statement of the
 * user has ended with this status. */
duet_status record_run(const plan *p, const statement *s);
duet_status record_single(const plan *p, const statement *s);
void record_next(duet_status s);

/* Dispose of a matrix that the library made for a statement with status s: free it, or, while this
 * thread records, let the recording own it. m may be NULL. Returns s. */
duet_status record_own_or_free(duet_matrix *m, duet_status s);

#endif
