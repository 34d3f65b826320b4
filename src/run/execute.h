/* execute.h - runs a plan: binds operands and numbers, takes temporaries, gives the steps to the machine. */
#ifndef EXECUTE_H
#define EXECUTE_H

#include "plan.h"

/* execute.c. Of a plan that has a stream, see stream.h. */
duet_status plan_run(const plan *p, const statement *s);
duet_status plan_steps(const plan *p, const frame *f, int *done); /* its steps, of which *done ran well */
/* Its parts, for graphs: the numbers of its steps; its temporaries, of which *lent are there also when it fails; that its steps are done. */
void plan_numbers(const plan *p, const formula *f, double *num);
bool plan_has_numbers(const plan *p, const formula *f, const double *num); /* these, bit for bit */
duet_status plan_take_temporaries(const plan *p, void **data, int queue, int *lent);
void plan_release_temporaries(const plan *p, void **data, int queue, int lent);
void plan_wrote(const plan *p, const statement *s, int queue);
void plan_bind_planes(const plan *p, void **data); /* after all other operands are bound */

#endif
