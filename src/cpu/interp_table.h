/* interp_table.h - the table of the interpreter's handlers, by operator, form and variant.
 * Template. */
#ifndef INTERP_TABLE_H
#define INTERP_TABLE_H

#include "interp.h"

typedef struct handler {
    void (*tile)(void), (*tail)(void);
} handler;

/* What a handler does last: call the next handler; store the accumulator and call the next one;
 * store it and return. */
enum { CONTINUE, STORE_CONTINUE, STORE_RETURN, VARIANTS };
typedef const handler variants[VARIANTS];

/* The class of an operand: the accumulator (A), register bank B or C (simd_registers.h), memory
 * (M), or a scalar (S). N: the operator has no such operand. A form is the combination of the
 * classes of all operands. */
enum { CLASS_A, CLASS_B, CLASS_C, CLASS_M, CLASS_S, CLASS_N = 0, CLASSES = 5, BANKS = 2 };
#define FORM(x, y, z) ((x) + CLASSES * (y) + CLASSES * CLASSES * (z))

/* The handlers of one operator. Forms without handlers have NULL. Reductions and functions have
 * only the variant CONTINUE. A commutative operator has only forms whose first two classes are in
 * ascending order. */
typedef struct interp_row {
    variants *form;
    int forms;
    double seconds; /* estimated time of one element */
} interp_row;

typedef struct interp_table {
    interp_row row[OPS_ALL];
    variants *move;                     /* LOAD, SAVE and STORE, by class */
    variants stream;                    /* STORE with streaming stores */
    variants wrap[DUET_DTYPE_COUNT];    /* WRAP of the accumulator to an integer type */
    handler stop, keep[BANKS][CLASSES]; /* `stop` returns; `keep` loads a bank, by bank and class */
    bool banked;                        /* whether there are register banks */
} interp_table;

extern const interp_table NAME(interp_table);

#endif
