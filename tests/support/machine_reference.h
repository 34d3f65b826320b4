/* machine_reference.h - the expected results of a step, element by element, by the simplest code.
 * It shares with the machines only the names of the rows and the constants of the canonical tree. */
#ifndef MACHINE_REFERENCE_H
#define MACHINE_REFERENCE_H

#include "backend.h"

/* The expected value of one element and the allowed error; 0: equal bits, where all NaNs are equal. */
typedef struct expected {
    long double value, allowed;
} expected;

bool agrees(duet_dtype t, long double got, expected e);

/* Computes the elements of output `which` in row-major order; for a program with reductions, over
 * the axes that remain; an index as a number. f.data are host addresses that have not been written
 * yet. Returns false if this file does not support the kernel. */
bool reference(const step *s, const frame *f, int which, expected *out);

bool integers_reference(const step *s, const frame *f, int which,
                        expected *out); /* for programs of types other than f32 and f64 */
bool finished_reference(const step *s, const frame *f,
                        expected *out); /* for steps with an epilogue: machine_finished.c */

/* The same for one element-wise operator. */
expected reference_map(int op, duet_dtype type, double x, double y, double z);

/* The value of the element of an operand at an index; its offset from the address of the operand,
 * in elements. */
double element(const frame *f, const operand *o, const int64_t *index);
long double exact_element(const frame *f, const operand *o, const int64_t *index);
int64_t place(const layout *l, const int64_t *index);
/* Computes the index of element n in row-major order. */
void unravel(const layout *l, int64_t n, int64_t *index);

/* Axes from .. to - 1 of l. */
static inline layout axes(const layout *l, int from, int to)
{
    layout part = { .type = l->type, .rank = to - from };
    for (int a = from; a < to; a++) {
        part.size[a - from] = l->size[a];
        part.stride[a - from] = l->stride[a];
    }
    return part;
}

#endif
