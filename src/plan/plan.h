/* plan.h - what statements became: steps, and what to bind when they run. */
#ifndef PLAN_H
#define PLAN_H

#include "lower.h"

typedef struct plan {
    uint64_t number; /* of this thread's plans, never used again */
    uint64_t hash;
    uint32_t *key;
    uint32_t key_length;
    struct plan *next; /* in its bucket */
    const struct plan *
        twin; /* of the CPU's: the GPU's for the same statement, where both can and it is known; both go at once */
    const machine *machine;
    duet_status status; /* not OK: this machine cannot, because of `why` */
    char why[REFUSALS];
    step *steps;
    program **programs;
    int count;
    int dests;
    /* Of each destination, the first step that writes into its memory; -1: none does, it is overwritten. */
    int first_write[STATEMENTS];
    leaf *leaves;
    int n_leaves;
    bound *numbers;
    int n_numbers;
    size_t *temp;
    int temps;
    size_t bytes;     /* of all operands and temporaries, about */
    double seconds;   /* expected, without moves, */
    unsigned edition; /* by the costs of this edition; 0: not yet. See plan_seconds */
    struct cut *cut;  /* how its statement is streamed, once somebody has asked */
    struct streaming *
        stream; /* of the plan of a part of the rows: how all of them go through it; else NULL. See stream.h */
    bool may_fail; /* a step may find that there is no result: kernel_may_fail */
    bool planes;   /* steps take complex elements by halves */
} plan;

/* Slots: destinations, leaves, temporaries. Where steps take complex elements by halves, those once more from where the imaginary half of a
 * c64 begins, and of a c128. */
static inline int plan_operands(const plan *p) { return p->dests + p->n_leaves + p->temps; }
static inline int plan_slots(const plan *p) { return plan_operands(p) * (p->planes ? 3 : 1); }
static inline int plan_base_slot(const plan *p, int slot)
{
    return slot < p->dests ? slot : slot % plan_operands(p);
}

/* Does it run at once and by itself, not held back and no part of a graph? */
static inline bool plan_is_apart(const plan *p) { return p->stream || p->may_fail; }

/* A destination, and the last node of the part of the formula that it takes. */
typedef struct target {
    const duet_matrix *m;
    uint32_t node;
} target;

/* What is planned at once: one statement, or several as if they stood one after the other. f holds their formulas in order. No
 * destination, and no matrix in a formula, overlaps the destination of an earlier statement but as the same elements in the same
 * order. */
typedef struct statement {
    const target *to;
    int count;
    const formula *f;
    enum fusion fusion;
    duet_math_mode math;
} statement;

/* plan.c: a new plan, or NULL: no memory. A machine that refuses makes a plan whose status says so. */
plan *plan_make(const statement *s, const machine *on);
void plan_free(plan *p);
size_t plan_bytes(const plan *p); /* of memory, about */

/* Expected of its steps by the costs that are in use now. The plan is this thread's own. */
double plan_seconds(const plan *p);

/* cache.c: this thread's plan for a statement, made when it is not there; NULL: no memory. */
const plan *plan_find(const statement *s, const machine *on);
void plans_reserve(
    int statements); /* before them: each may find a plan for each machine, and none may be dropped meanwhile */

/* placement.c: the plan to follow, and so where. place: forced, or AUTO. Errors: NO_DEVICE, UNSUPPORTED, NO_MEMORY */
duet_status plan_place(const statement *s, duet_place place, const plan **p);
duet_status plan_look(const statement *s, duet_place place,
                      const plan **p); /* the same of a statement that will not run now */

/* What a statement is expected to take by a plan, in seconds. */
typedef struct outlook {
    double steps;
    double moves;  /* to bring all that it reads to its machine; */
    double missed; /* of that, what statements have missed already by its not being there; */
    double rent;   /* of that, what has been brought there before */
    double back;   /* to bring results to the host, where the user has read the last ones */
} outlook;
outlook plan_outlook(const statement *s, const plan *p);
duet_place place_now(duet_place call); /* that of the call, the innermost block, the environment */

/* The same for a plan of one step, made for no machine yet: single_step.c. */
duet_status step_place(const statement *s, const plan *p, duet_place place, const machine **on);

/* The mode of the call, the innermost block, the environment. */
static inline duet_math_mode math_now(void) { return thread_get()->math; }

/* The fusion mode: DUET_FUSION, unless a test has set another. -1 goes back to the environment. */
enum fusion fusion_now(void);
void plan_fusion(int mode);

/* explain.c */
void plan_print(FILE *out, const plan *p, const statement *s);

#endif
