/* plan.h - what statements became: steps, and what to bind when they run. */
#ifndef PLAN_H
#define PLAN_H

#include "lower.h"

typedef struct plan {
    uint64_t number; /* of this thread's plans, never used again */
    uint64_t hash;
    uint32_t *key;
    uint32_t key_length;
    struct plan *next;       /* in its bucket */
    const struct plan *twin; /* of the CPU's: the GPU's for the same statement, where both can and it is known; both go at once */
    const machine *machine;
    duet_status status; /* not OK: this machine cannot, because of `why` */
    char why[REFUSALS];
    step *steps;
    program **programs;
    int count;
    int goals;
    /* Of each destination, the first step that writes into its memory; -1: none does, it is overwritten. */
    int first_write[STATEMENTS];
    leaf *leaves;
    int n_leaves;
    bound *numbers;
    int n_numbers;
    size_t *temp;
    int temps;
    size_t bytes;             /* of all operands and temporaries, about */
    double seconds;           /* expected, without moves, */
    unsigned edition;         /* by the costs of this edition; 0: not yet. See plan_seconds */
    struct cut *cut;          /* how its statement is streamed, once somebody has asked */
    struct streaming *stream; /* of the plan of a part of the rows: how all of them go through it; else NULL. See stream.h */
    bool asks;                /* a step may find that there is no result: kernel_asks */
    bool planes;              /* steps take complex elements by halves */
} plan;

/* Slots: destinations, leaves, temporaries. Where steps take complex elements by halves, those once more from where the imaginary half of a
 * c64 begins, and of a c128. */
static inline int plan_operands(const plan *p) { return p->goals + p->n_leaves + p->temps; }
static inline int plan_slots(const plan *p) { return plan_operands(p) * (p->planes ? 3 : 1); }
static inline int plan_base_slot(const plan *p, int slot) { return slot < p->goals ? slot : slot % plan_operands(p); }
void plan_bind_planes(const plan *p, void **data); /* run.c: when all others are bound */

/* Does it run at once and by itself, not held back and no part of a graph? */
static inline bool plan_is_apart(const plan *p) { return p->stream || p->asks; }

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
void plans_make_room(int statements); /* before them: each may find a plan for each machine, and none may be dropped meanwhile */

/* place.c: the plan to follow, and so where. place: forced, or AUTO. Errors: NO_DEVICE, UNSUPPORTED, NO_MEMORY */
duet_status plan_place(const statement *s, duet_place place, const plan **p);
duet_status plan_look(const statement *s, duet_place place, const plan **p); /* the same of a statement that will not run now */

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

/* The same for a plan of one step, made for no machine yet: direct.c. */
duet_status step_place(const statement *s, const plan *p, duet_place place, const machine **on);

/* The mode of the call, the innermost block, the environment. */
static inline duet_math_mode math_now(void) { return thread_get()->math; }

/* The fusion mode: DUET_FUSION, unless a test has set another. -1 goes back to the environment. */
enum fusion fusion_now(void);
void plan_fusion(int mode);

/* run.c. Of a plan that has a stream, see stream.h. */
duet_status plan_run(const plan *p, const statement *s);
duet_status plan_steps(const plan *p, const frame *f, int *done); /* its steps, of which *done ran well */
/* Its parts, for graphs: the numbers of its steps; its temporaries, of which *lent are there also when it fails; that its steps are done. */
void plan_numbers(const plan *p, const formula *f, double *num);
bool plan_has_numbers(const plan *p, const formula *f, const double *num); /* these, bit for bit */
duet_status plan_lend(const plan *p, void **data, int queue, int *lent);
void plan_lend_back(const plan *p, void **data, int queue, int lent);
void plan_wrote(const plan *p, const statement *s, int queue);

/* repeat.c: plan_run on the GPU, at once or, where statements repeat, with those that follow. own: a failure is this statement's, not of what
 * was held back. */
duet_status repeat_run(const plan *p, const statement *s, bool *own);
void repeat_patience(double seconds); /* for tests, which may be slow: see there */

/* record.c, while this thread records: plan_run for what is to be replayed; the same of a plan of one step, which is copied; and the end of a
 * statement, in which s was its status. */
duet_status record_run(const plan *p, const statement *s);
duet_status record_single(const plan *p, const statement *s);
void record_next(duet_status s);
/* A matrix that the library has made for a statement, whose status s is: freed, or, while this thread records, kept by the recording. NULL is
 * accepted. Returns s */
duet_status record_keep(duet_matrix *m, duet_status s);
/* The end of every statement, whose status is s: what failed says where the call stands, if that is known. Returns s */
static inline duet_status statement_ends(duet_status s, const char *site)
{
    thread *t = thread_get();
    t->site = NULL;
    if (__builtin_expect(t->recording != NULL, 0)) record_next(s);
    return __builtin_expect(s == DUET_OK, 1) || !site ? s : fail_at(s, site);
}

/* set.c: m = e as a part of the statement `who`, which calls statement_ends at its end. Spends e */
duet_status statement_part(const char *who, duet_matrix *m, duet_expr e);

/* FREED, if a matrix of f was */
duet_status formula_lives(const char *who, const formula *f);

/* explain.c */
void plan_print(FILE *out, const plan *p, const statement *s);

#endif
