/* plan.h - plans: the steps that one or several statements become on one device, and the matrices and
 * numbers to bind when they run. */
#ifndef PLAN_H
#define PLAN_H

#include "lower.h"

typedef struct plan {
    uint64_t number; /* unique among all plans that this thread ever made */
    uint64_t hash;
    uint32_t *key;
    uint32_t key_length;
    struct plan *next; /* in its bucket of the cache, or in a list of another plan */

    /* Of a plan for the CPU: the plan of the same statement for the GPU, if both devices can run it
     * and both plans have been made. The cache frees all plans together. */
    const struct plan *gpu_plan;
    int device;             /* the device that runs the plan, */
    const machine *machine; /* and its machine */
    duet_status status;     /* if not OK, this device cannot run the plan; `why` has the reason */
    char why[UNSUPPORTED_TEXT];
    step *steps;
    program **programs;
    int count;
    bool is_sure;   /* all steps are: machine.is_sure */
    int first_sure; /* the first step after one that writes a destination; it and later ones are sure */
    int dests;
    int first_write
        [STATEMENTS]; /* of each destination: the first step that writes its memory; -1: none does */
    leaf *leaves;
    int n_leaves;
    bound *numbers;
    int n_numbers;
    size_t *temp;
    int temps;
    size_t temp_bytes; /* of all temporaries */
    size_t limit;      /* of temp_bytes: values are computed again to keep it, if possible; SIZE_MAX: none */
    struct plan *smaller;        /* the same with limits, for when memory is scarce: a list by `next` */
    size_t bytes;                /* approximate bytes of all operands and temporaries */
    double seconds;              /* expected for the steps, without copies; see plan_seconds */
    unsigned cost_edition;       /* edition of the costs used for `seconds`; 0: not computed yet */
    struct partition *partition; /* how the statement can be split; NULL: not examined yet */
    struct streaming *stream; /* of the plan of a part: how all parts are streamed; else NULL. See stream.h */
    bool may_fail;            /* a step may find that there is no result: kernel_may_fail */
    bool collects;            /* a step is collective */
    derived_slot *derived;    /* slots behind those of the operands */
    int n_derived;
} plan;

/* Slots: destinations, leaves, temporaries, then derived slots. */
static inline int plan_operands(const plan *p) { return p->dests + p->n_leaves + p->temps; }
static inline int plan_slots(const plan *p) { return plan_operands(p) + p->n_derived; }
static inline int plan_base_slot(const plan *p, int slot)
{
    return slot < plan_operands(p) ? slot : p->derived[slot - plan_operands(p)].base;
}

static inline bool plan_is_temporary(const plan *p, int slot)
{
    return slot >= p->dests + p->n_leaves && slot < plan_operands(p);
}

static inline bool step_writes(const step *s, int slot)
{
    for (int k = 0; k < s->outs; k++)
        if (s->out[k].slot == slot) return true;
    return false;
}

/* Must it run at once and by itself? Then automatic replay does not defer it. */
static inline bool plan_runs_alone(const plan *p) { return p->stream || p->may_fail || p->collects; }

/* May it be part of the CUDA graph of a recording? With collective steps it may, since all ranks replay the
 * recording at the same time. */
static inline bool plan_fits_graph(const plan *p) { return !p->stream && !p->may_fail; }

/* A destination, and the last node of its part of the formula. */
typedef struct target {
    const duet_matrix *m;
    uint32_t node;
} target;

/* The statements that are planned together: one, or several that behave as if they ran one after the
 * other. f has their formulas in order. If a destination or a matrix in a formula overlaps the
 * destination of an earlier statement, it has the same elements in the same order. */
typedef struct statement {
    const target *to;
    int count;
    const formula *f;
    enum fusion fusion;
    duet_math_mode math;
    int *failed_dest; /* plan_run stores the destination that it failed for, if known; or NULL */
} statement;

/* plan.c: makes a plan; NULL: out of memory. If the device does not support it, the plan's status
 * says so. */
plan *plan_make(const statement *s, int device);
plan *plan_make_within(const statement *s, int device, size_t limit); /* of the bytes of all temporaries */
void plan_free(plan *p);
size_t plan_bytes(const plan *p);         /* approximate memory of the plan itself */
size_t plan_library_bytes(const plan *p); /* and of what libraries compile for its steps */

/* less_memory.c: if the plan's temporaries do not fit in `bytes`, sets *p to a plan of the same statement
 * whose temporaries do, if there is one. The first plan owns it. Errors: NO_MEMORY */
duet_status plan_with_less(const statement *s, const plan **p, size_t bytes);

/* cache.c: gives a number to a plan that is freed with one of this thread's cache, and counts its memory. */
void plan_enter(plan *p);

/* The expected time of its steps, by the costs in use now. The plan must belong to this thread. */
double plan_seconds(const plan *p);

/* cache.c: this thread's plan for a statement, made if necessary. NULL: out of memory. */
const plan *plan_find(const statement *s, int device);

/* Reserve space for the plans of `statements` statements on all devices: they are not dropped
 * before the next call. */
void plans_reserve(int statements);

/* placement.c: choose the plan, and thereby the device. place: the device, or AUTO.
 * Errors: NO_DEVICE, UNSUPPORTED, NO_MEMORY */
duet_status plan_place(const statement *s, duet_place place, const plan **p);

/* The same for a statement that will not run now: nothing is recorded for later choices. */
duet_status plan_preview(const statement *s, duet_place place, const plan **p);

/* The expected time of a statement with a plan, in seconds. */
typedef struct cost_estimate {
    double steps;
    double copies;   /* copying all operands to the plan's device; */
    double accrued;  /* the part of it that earlier statements have already lost by missing operands; */
    double repeated; /* the part of it for matrices that have been copied there before */
    double back;     /* copying results to the host, if the user read the previous ones there */
} cost_estimate;
cost_estimate plan_estimate(const statement *s, const plan *p);
duet_place place_now(duet_place call); /* the place of the call, the innermost block, or the environment */

/* The same for a plan of one step that is not made for a device yet: single_step.c. */
duet_status step_place(const statement *s, const plan *p, duet_place place, int *device);

/* The mode of the call, the innermost block, or the environment. */
static inline duet_math_mode math_now(void) { return thread_get()->math; }

/* The fusion mode: DUET_FUSION, unless a test has set another one. -1: back to DUET_FUSION. */
enum fusion fusion_now(void);
void plan_fusion(int mode);

/* joins.c: sets step.joins; does a step from `first` on read the value that is in the slot before it? */
void plan_find_joins(plan *p);
bool plan_reads_later(const plan *p, int first, int slot);

/* explain.c */
void plan_print(FILE *out, const plan *p, const statement *s);

#endif
