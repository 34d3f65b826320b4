/* constant_fold.c - computes operators whose operands are all numbers, in f64, with the formulas of
 * the rows. */
#define T_f64   1
#define FN_DECL static inline
#include "arena.h"
#include "scalar_ops.h"

double reduce_numbers(enum op op, double x, double y, double z)
{
    switch (op) {
#define DUET_MAP1(name, formula, ...)                                                                        \
    case OP_##name:                                                                                          \
        return formula;
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>
    default: return x;
    }
}
