/* execute.h - runs a plan: binds operands and numbers, allocates temporaries, and gives the steps
 * to the machine. */
#ifndef EXECUTE_H
#define EXECUTE_H

#include "plan.h"

/* Runs a plan for its statement. A plan with a stream runs part by part: stream.h. */
duet_status plan_run(const plan *p, const statement *s);

/* The same for a plan without a stream that has a step. */
duet_status plan_run_once(const plan *p, const statement *s);

/* The stages of plan_run, for recordings. plan_step runs step *done, and the next step
 * with it if both run as one kernel. It adds the number of steps to *done. */
duet_status plan_step(const plan *p, const frame *f, int *done);
duet_status plan_steps(const plan *p, const frame *f, int *done); /* *done: how many steps succeeded */
/* To be called after the last plan_step, with the status of the steps, which it returns: see machine.join. */
duet_status plan_join(const plan *p, const frame *f, duet_status s);
void plan_numbers(const plan *p, const formula *f, double *num);
bool plan_has_numbers(const plan *p, const formula *f, const double *num); /* equal bit for bit? */
/* *taken: how many temporaries must be released, also after a failure. */
duet_status plan_take_temporaries(const plan *p, void **data, int queue, int *taken);
void plan_release_temporaries(const plan *p, void **data, int queue, int taken);
void plan_bind_derived(const plan *p, void **data); /* to be called when all other operands are bound */
bool plan_wrote_before(const plan *p, int at);      /* has a step before this one written a destination? */
void plan_wrote(const plan *p, const statement *s, int queue);

/* Is b the storage of an operand? And: records the operands on a GPU in the history of this thread. */
bool plan_uses(const plan *p, const statement *s, const struct storage *b);
void plan_note_uses(const plan *p, const statement *s);

#define FEW 32 /* operands or numbers of a plan that are bound on the stack; for more, memory is allocated */

#endif
