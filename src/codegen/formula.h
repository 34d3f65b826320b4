/* formula.h - the formulas of ops.def as lists of operations, for generated code.
 *
 * record_formulas.cpp compiles the formulas with a type whose operators append themselves to a list,
 * once for each type that programs compute in. The build writes the lists to formulas_f32.c,
 * formulas_f64.c, formulas_i64.c and formulas_u64.c. So the formulas have one source, also for
 * generated code. */
#ifndef FORMULA_H
#define FORMULA_H

#include "ops.h"

/* The operations. Their operands are earlier operations. Results are elements, or bits of the same
 * size, or conditions.
 *   OPERATION(NAME, arity)
 *   ARGUMENT, CONSTANT              operand a of the formula; constant a of the type
 *   MIN, MAX                        as MINIMUM and MAXIMUM of core/scalar_ops.h
 *   INVERSE                         1 / x, for 2^-100 < |x| < 2^100
 *   RINT, FLOOR                     RINT rounds to the nearest integer, ties to even
 *   LT .. GE                        comparisons of elements; conditions
 *   BIT_EQ, BIT_NE                  comparisons of bits; conditions
 *   SELECT                          b if condition a holds, else c
 *   LEFT, RIGHT                     shifts of bits by constant b, which is not an operation
 *   LEFT_BY, RIGHT_BY               shifts by bits b; 0 for shifts by the size or more
 * Elements of i64 are signed, those of u64 unsigned. Their arithmetic wraps. */
#define OPERATIONS(OPERATION)                                                                                \
    OPERATION(ARGUMENT, 0)                                                                                   \
    OPERATION(CONSTANT, 0)                                                                                   \
    OPERATION(ADD, 2)                                                                                        \
    OPERATION(SUB, 2)                                                                                        \
    OPERATION(MUL, 2)                                                                                        \
    OPERATION(DIV, 2)                                                                                        \
    OPERATION(FMA, 3)                                                                                        \
    OPERATION(SQRT, 1)                                                                                       \
    OPERATION(INVERSE, 1)                                                                                    \
    OPERATION(NEG, 1)                                                                                        \
    OPERATION(ABS, 1)                                                                                        \
    OPERATION(MIN, 2)                                                                                        \
    OPERATION(MAX, 2)                                                                                        \
    OPERATION(RINT, 1)                                                                                       \
    OPERATION(FLOOR, 1)                                                                                      \
    OPERATION(LT, 2)                                                                                         \
    OPERATION(LE, 2)                                                                                         \
    OPERATION(EQ, 2)                                                                                         \
    OPERATION(NE, 2)                                                                                         \
    OPERATION(GT, 2)                                                                                         \
    OPERATION(GE, 2)                                                                                         \
    OPERATION(BIT_EQ, 2)                                                                                     \
    OPERATION(BIT_NE, 2)                                                                                     \
    OPERATION(BOTH, 2)                                                                                       \
    OPERATION(EITHER, 2)                                                                                     \
    OPERATION(SELECT, 3)                                                                                     \
    OPERATION(BIT_AND, 2)                                                                                    \
    OPERATION(BIT_OR, 2)                                                                                     \
    OPERATION(BIT_XOR, 2)                                                                                    \
    OPERATION(BIT_NOT, 1)                                                                                    \
    OPERATION(BIT_ADD, 2)                                                                                    \
    OPERATION(BIT_SUB, 2)                                                                                    \
    OPERATION(BIT_MUL, 2)                                                                                    \
    OPERATION(LEFT, 1)                                                                                       \
    OPERATION(RIGHT, 1)                                                                                      \
    OPERATION(LEFT_BY, 2)                                                                                    \
    OPERATION(RIGHT_BY, 2)

enum operation {
#define OPERATION(name, arity) FORMULA_##name,
    OPERATIONS(OPERATION)
#undef OPERATION
        FORMULA_OPERATIONS
};

typedef struct formula_node {
    uint16_t operation, arg[3];
} formula_node;

/* A formula: operations, the last ones of which are not all results. Without operations, there is
 * no list: the formula has a loop. */
typedef struct formula {
    const formula_node *node;
    uint16_t length, results, result[3];
} formula;

/* The formulas of a type.
 * of           of a row. Maps have arguments x, y, z. `take` of a reduction has x, y and its
 *              state: a, or a1 to a3. `better` of a row that gives an index has x and a, and its
 *              result is a condition
 * moderate     the same results for operands of which |x| is at most `reach`, and shorter; or empty */
typedef struct formula_table {
    formula of[OPS], moderate[OPS];
    double reach[OPS];
    const uint64_t *constants;
} formula_table;

extern const formula_table formulas_f32, formulas_f64, formulas_i64, formulas_u64;

#endif
