/* code_list.h - a program (core/program.h) as a list of operations on values, from which machine
 * code is generated. Every value is computed once, before its uses. */
#ifndef CODE_LIST_H
#define CODE_LIST_H

#include "formula.h"
#include "program.h"

/* Operations beyond those of formulas:
 *   INPUT, NUMBER      input, number `index`
 *   ROW                the number of the row, for reductions to an index
 *   STATE              part arg[1] of the state of reduction `index`, before this element
 *   READ               arg[0], an input, which is not read again after this
 *   STORE              output `index` = arg[0]; no value
 *   UPDATE             part arg[1] of the state of reduction `index` = arg[0]; no value
 *   FMS, FNMA, FNMS    a b - c, c - a b, -(a b) - c, rounded once
 *   WRAP               arg[0], an integer, as an element of the narrower integer type `index`, and back
 *   CALL               row `index` of ops.def of the operands, by a compiled function
 *   GUARD              arg[1], the moderate formula of row `index` of operand arg[0]; where that is
 *                      not moderate, what CALL gives */
enum {
    CODE_INPUT = FORMULA_OPERATIONS,
    CODE_NUMBER,
    CODE_ROW,
    CODE_STATE,
    CODE_READ,
    CODE_STORE,
    CODE_UPDATE,
    CODE_FMS,
    CODE_FNMA,
    CODE_FNMS,
    CODE_WRAP,
    CODE_CALL,
    CODE_GUARD,
    CODE_OPERATIONS
};

typedef struct code_node {
    uint8_t operation, arity;
    uint16_t index;
    int16_t arg[3]; /* places in the list */
    uint64_t bits;  /* of a constant */
} code_node;

#define CODE_LENGTH 6000

typedef struct code_list {
    int length, capacity;
    code_node *node;
    int16_t *table; /* a hash table of nodes, of `entries`, a power of two; equal nodes exist once */
    unsigned entries;
} code_list;

/* The formulas of a type in which programs compute; NULL for other types. */
const formula_table *code_formulas(duet_dtype type);

/* Makes the list of a program that computes in f32, f64, i64 or u64. Values without a use are left
 * out. The caller frees it with code_list_free(), also after an error.
 * Errors    false if there is no memory, or if the list would be too long */
bool code_list_make(code_list *l, const program *p, duet_dtype type);

/* The same for a program with one reduction, but the list stores the reduction's operands as outputs 0 and
 * 1. */
bool code_list_make_operands(code_list *l, const program *p, duet_dtype type);

/* Leaves out each WRAP that changes only bits on which no result depends. bits: how many low bits of a
 * stored integer the outputs keep. */
void code_list_drop_wraps(code_list *l, int bits);
void code_list_free(code_list *l);

#endif
