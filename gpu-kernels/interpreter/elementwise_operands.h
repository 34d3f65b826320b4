/* elementwise_operands.h - the operands of a kernel that goes element by element, as interpreter.c and fused.c ready them. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "launch.h"

enum { OPERANDS = PROGRAM_OUTPUTS + PROGRAM_INPUTS };

/* Outputs, then inputs: layouts of equal sizes. */
typedef struct operands {
    int outs, count;
    size_t each; /* bytes of an element as kernels have it */
    void *at[OPERANDS];
    layout of[OPERANDS];
} operands;

void operands_take(operands *o, const step *s, const frame *f, size_t each);

/* Elements as pairs of others: one more axis. False: there are too many. And the first or the second of each alone. */
bool operands_as_pairs(operands *o, duet_dtype part);
operands operands_halves(const operands *o, duet_dtype part, int which);

/* Puts the axes into the order of the first output's memory, as few as will do: they are free to be taken in any. */
void operands_order(operands *o);

/* Do indices of 32 bits do for all elements, and for how far apart they lie? */
bool operands_fit(const operands *o);

/* Both halves of the farthest axis, for operands that do not fit. */
void operands_halve(const operands *o, operands *low, operands *high);

/* Vectors are 16 bytes, or what as many elements of another type take, at aligned addresses: elements of one, and how many of them operand k
 * lies past one. */
static inline int64_t operands_width(const operands *o) { return 16 / (int64_t)o->each; }
int operand_lead(const operands *o, int k);

void operand_strides(const layout *l, int32_t stride[]); /* 0 along an axis of one element */

/* An operand that repeats along the domain: element e is at[e / run % size * stride]. */
typedef struct cycle {
    int64_t run, size, stride;
} cycle;
bool cycle_of(const layout *l, cycle *c); /* false: it does not */
enum how cycle_how(const cycle *c, int64_t width);

#endif
