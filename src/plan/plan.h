/* plan.h - what a statement became: steps, and what to bind when they run. */
#ifndef PLAN_H
#define PLAN_H

#include "lower.h"

typedef struct plan {
    uint64_t hash;
    uint32_t *key;
    uint32_t key_length;
    struct plan *next; /* in its bucket */
    const machine *machine;
    duet_status status; /* not OK: this machine cannot, because of `why` */
    char why[REFUSALS];
    step *steps;
    program **programs;
    int count;
    leaf *leaves;
    uint8_t *overlap; /* of each leaf with the destination */
    int n_leaves;
    bound *numbers;
    int n_numbers;
    size_t *temp;
    int temps;
    int first_write; /* the first step that writes into the destination's memory */
    double seconds;  /* expected, without moves */
} plan;

/* A statement to be planned: m = the formula. */
typedef struct statement {
    const duet_matrix *m;
    const formula *f;
    enum fusion fusion;
} statement;

/* plan.c: a new plan, or NULL: no memory. A machine that refuses makes a plan whose status says so. */
plan *plan_make(const statement *s, const machine *on);
void plan_free(plan *p);
size_t plan_bytes(const plan *p); /* of memory, about */

/* cache.c: this thread's plan for a statement, made when it is not there; NULL: no memory. */
const plan *plan_find(const statement *s, const machine *on);
void plans_make_room(
    void); /* before a statement: it may find a plan for each machine, and none of them may be dropped while it runs */

/* place.c: the plan to follow, and so where. place: forced, or AUTO. Errors: NO_DEVICE, UNSUPPORTED, NO_MEMORY */
duet_status plan_place(const statement *s, duet_place place, const plan **p);
duet_place place_now(duet_place call); /* that of the call, the innermost block, the environment */

/* The same for one step without operands, which writes m and which the CPU does not refuse. */
duet_status step_place(const duet_matrix *m, const step *s, duet_place place, const machine **on);

/* The fusion mode: DUET_FUSION, unless a test has set another. -1 goes back to the environment. */
enum fusion fusion_now(void);
void plan_fusion(int mode);

/* run.c */
duet_status plan_run(const plan *p, const statement *s);

/* explain.c */
void plan_print(FILE *out, const plan *p, const statement *s);

/* set.c: everything that duet_set checks before a plan is looked for. */
duet_status statement_check(const char *who, const duet_matrix *m, const formula *f);

#endif
