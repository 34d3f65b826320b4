/* ops.h - the operators as numbers and facts, from the rows of ops.def. */
#ifndef OPS_H
#define OPS_H

#include <duet/duet.h>
#include <stdbool.h>

enum op {
#define DUET_MAP1(name, ...) OP_##name,
#define DUET_MAP2            DUET_MAP1
#define DUET_MAP3            DUET_MAP1
#define DUET_INT1            DUET_MAP1
#define DUET_INT2            DUET_MAP1
#define DUET_FOLD1           DUET_MAP1
#define DUET_FOLD2           DUET_MAP1
#define DUET_MOMENT1         DUET_MAP1
#define DUET_PLACE1          DUET_MAP1
#define DUET_DEF1            DUET_MAP1
#define DUET_DEF2            DUET_MAP1
#define DUET_CALL1           DUET_MAP1
#define DUET_CALL2           DUET_MAP1
#define DUET_CALL3           DUET_MAP1
#include <duet/ops.def>
    OP_collective, /* not a row: elements move between the ranks of a group (core/communicator.h) */
    OPS,
    /* not rows: the leaves of a formula */
    OP_LEAF = OPS, /* a matrix */
    OP_NUMBER,     /* a number, which takes the type of the other operand */
    OP_HOLE,       /* in a pattern of fused.def: any operand; its attribute says which */
    OP_HOLE_NUMBER,
    /* instructions that only programs have */
    OP_LOAD,  /* accumulator = operand 0 */
    OP_SAVE,  /* slot = accumulator */
    OP_STORE, /* output = accumulator */
    OP_WRAP,  /* accumulator = operand 0 as an element of the integer type arg[1].index, and back */
    OP_VIEW,  /* in a plan: elements of a value in memory, by an offset and strides */
    OPS_ALL
};

enum op_kind { KIND_LEAF, KIND_MAP, KIND_REDUCE, KIND_DEF };
/* Flags of rows. ops.def describes those with DUET_. */
enum {
    DUET_COMMUTES = 1,
    DUET_JUMPS = 2,
    OP_GIVES_INDEX = 4, /* the result is an index, an i64 */
    OP_ANY_TYPES = 8,   /* conditions of the row say which types operands may have */
    DUET_TRUTH = 16,
    DUET_BOOLS = 32,
    DUET_WITHIN = 64,
    OP_FLOATS = 128,    /* operands may be floating point */
    OP_INTEGERS = 256,  /* operands may be integers */
    OP_ASKS = 512,      /* a step may fail, because there may be no result */
    OP_COMPUTES = 1024, /* with OP_ANY_TYPES: the operator computes with elements; others only move them */
    OP_BILINEAR = 2048  /* complex operands are computed from the products of their parts */
};

/* The flags of the types that a row with DUET_CALL names. */
#define TYPES_SAME     OP_FLOATS
#define TYPES_EVERY    (OP_FLOATS | OP_INTEGERS | DUET_BOOLS)
#define TYPES_BILINEAR (TYPES_EVERY | OP_BILINEAR)
#define TYPES_FREE     OP_ANY_TYPES
#define TYPES_COMPUTES (OP_ANY_TYPES | OP_COMPUTES)
#define TYPES_SOLVES   (OP_FLOATS | OP_ASKS)

typedef struct op_info {
    const char *name, *doc;
    enum op_kind kind;
    int arity;
    int flags;
} op_info;

extern const op_info op_infos[OPS_ALL];

/* The result of an operator for complex operands, from complex.def. */
enum complex_kind { COMPLEX_NONE, COMPLEX_SAME, COMPLEX_PART, COMPLEX_MADE };
extern const uint8_t op_complex[OPS];

/* Does the operator only select, repeat or rearrange elements? */
static inline bool is_view_operator(int op)
{
    return op == OP_reshape || op == OP_broadcast || op == OP_permute || op == OP_transpose ||
           op == OP_range || op == OP_sliding_window || op == OP_diagonal_of;
}

#endif
