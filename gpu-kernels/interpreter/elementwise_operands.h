/* elementwise_operands.h - the operands of an element-wise kernel, as its launcher prepares them. */
#ifndef ELEMENTWISE_OPERANDS_H
#define ELEMENTWISE_OPERANDS_H

#include "interpreter_kernels.h"
#include "transpose_kernels.h"

enum { OPERANDS = PROGRAM_OUTPUTS + PROGRAM_INPUTS };

/* Outputs first, then inputs. All layouts have the same sizes. */
typedef struct operands {
    int outs, count;
    size_t each; /* bytes of an element, in the type that the kernel uses */
    void *at[OPERANDS];
    layout of[OPERANDS];
} operands;

void operands_take(operands *o, const step *s, const frame *f, size_t each);

/* Treats each element as two elements of the type `part`, along one more axis. Returns false if
 * there are too many axes. The second function takes the first or the second part alone. */
bool operands_as_pairs(operands *o, duet_dtype part);
operands operands_halves(const operands *o, duet_dtype part, int which);

/* Sorts the axes by the strides of the first output and merges as many as possible. Element-wise
 * kernels may take axes in any order. */
void operands_order(operands *o);

/* Are all outputs dense and aligned like the first one? */
bool operands_outputs_dense(const operands *o);

/* Can one launch reach all elements? Dense operands need no index, so they may have any size. */
bool operands_reachable(const operands *o);

/* The bytes of all operands in memory: axes of stride 0 do not count. */
double operands_bytes(const operands *o);

/* Splits operands that do not fit at the middle of the axis with the largest reach. */
void operands_halve(const operands *o, operands *low, operands *high);

/* Vector loads take 16 bytes, or as many elements of a narrower type, at aligned addresses.
 * operands_width is the number of elements in a vector; the other function says how many elements
 * operand k starts after an aligned address. */
static inline int64_t operands_width(const operands *o) { return 16 / (int64_t)o->each; }
int operand_lead(const operands *o, int k);

void operand_strides(const layout *l, int32_t stride[]); /* 0 along an axis with one element */

/* How a kernel reads operand k, where the domain has n elements, and the first one is `lead` elements after
 * an aligned address. Sets *p unless the operand is dense or walked. */
enum how operand_how(const operands *o, int k, int64_t n, int lead, interp_path *p);

#endif
