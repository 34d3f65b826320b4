/* machine_reference.h - what a step means, element by element, by the plainest code: nothing here is shared with the machines but
 * the rows' names and the constants of the canonical tree. */
#ifndef MACHINE_REFERENCE_H
#define MACHINE_REFERENCE_H

#include "backend.h"

/* One element of an output: its value, and how far from it a machine may be; 0: these very bits, all NaNs being one. */
typedef struct expected {
    long double value, allowed;
} expected;

bool agrees(duet_dtype t, long double got, expected e);

/* The elements of output `which`, row-major; of a program that reductions, over the axes that stay, and where its reduction gives an index, as
 * that number. f.data are host addresses that nothing has written yet. False: this file does not know
 * the kernel. */
bool reference(const step *s, const frame *f, int which, expected *out);

bool integers_reference(const step *s, const frame *f, int which,
                        expected *out); /* of programs of other types than f32 and f64 */
bool finished_reference(const step *s, const frame *f,
                        expected *out); /* of steps with a epilogue: machine_finished.c */

/* The same for one operator of kind map. */
expected reference_map(int op, duet_dtype type, double x, double y, double z);

/* The element of an operand at an index, and where that is: an element offset from its address. */
double element(const frame *f, const operand *o, const int64_t *index);
long double exact_element(const frame *f, const operand *o, const int64_t *index);
int64_t place(const layout *l, const int64_t *index);
void unravel(const layout *l, int64_t n, int64_t *index); /* the index of element n, row-major */

#endif
