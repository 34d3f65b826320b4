/* expr.h - formulas as nodes: operators build them and plans read them. */
#ifndef EXPR_H
#define EXPR_H

#include "attributes.h"
#include "compiler.h"
#include "matrix.h"
#include "ops.h"

/* WEAK: made of numbers only; it takes the type of the other operands. CHECKPOINT, STOP: a reshape made by
 * duet_checkpoint or duet_stop_gradient. ABSENT: of an operator: zeros, the gradient with respect to a matrix
 * that the formula does not name */
enum {
    NODE_CHECKPOINT = 1,
    NODE_SPENT = 2,
    NODE_WEAK = 4,
    NODE_ABSENT = 16,
    NODE_STOP = 64,
    NODE_ROOT = 128
};

/* The options of an operator as words, which are part of the key. Convolutions and pooling store them
 * in the order of the structs of options.h, for as many axes as the operator has. Other operators use
 * a member of node_attributes. graph/attributes.c reads the options. */
#define NODE_WORDS 16
typedef struct failure_attributes {
    int32_t status, words; /* words: the length of its text */
    int32_t is_matrix;     /* the text describes a bad matrix; the caller puts the operand's name in front */
} failure_attributes;
typedef struct histogram_words {
    int32_t low[2], high[2], bins; /* low, high: the bytes of a double */
} histogram_words;
typedef struct range_words {
    int32_t axis, start[2], step[2], count[2]; /* pairs: the bytes of an int64_t */
} range_words;
/* The integer in two words of a node. */
static inline int64_t pair_of_words(const int32_t words[2])
{
    int64_t x;
    __builtin_memcpy(&x, words, sizeof x);
    return x;
}
typedef struct csr_words {
    int32_t columns[2], transposed; /* columns: the bytes of an int64_t */
} csr_words;
typedef union node_attributes {
    int32_t word[NODE_WORDS];
    reduce_attributes reduce;
    fourier_attributes fourier;
    overlap_attributes overlap;
    index_attributes index;
    one_hot_attributes one_hot;
    histogram_words histogram;
    range_words range;
    int32_t size[DUET_RANK_MAX][2]; /* of reshape and broadcast: the result's, as pairs of words */
    int32_t order[DUET_RANK_MAX];   /* of permute */
    int32_t offset[2];              /* of diagonal_of */
    cast_attributes cast;
    solver_attributes solver;
    collective_attributes collective;
    triangle_attributes triangle;
    einsum_attributes einsum;
    csr_words csr;
    int32_t turned; /* of csr_solve: a bool */
    hole_attributes hole;
    failure_attributes failure;
} node_attributes;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KIND(op, type, rank, flags)                                                                          \
    ((uint32_t)(op) | (uint32_t)(type) << 8 | (uint32_t)(rank) << 16 | (uint32_t)(flags) << 24)
#else
#define KIND(op, type, rank, flags) KIND_(flags, rank, type, op)

#define KIND_(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#endif

/* A node of a formula: an operator, a matrix or a number. Its operands precede it. */
typedef struct node {
    uint64_t serial; /* the value of its handle */
    union {
        struct {
            uint8_t op, type, rank, flags;
        };
        uint32_t kind; /* all four: KIND(op, type, rank, flags) */
    };
    uint32_t word;    /* index of its first word in the key */
    uint32_t first;   /* the first node of the formula below it */
    uint32_t back[3]; /* operands, as distances back */
    union {
        node_attributes attr;
        struct {
            union {
                double number;
                int64_t integer; /* an i64 or u64 that no double represents */
                struct {
                    const duet_matrix *matrix;
                    uint64_t matrix_serial; /* the serial when the formula was built */
                };
            };
            uint32_t before; /* distance back to the previous matrix, or number; 0: none */
        };
    };
    const char *site; /* "file:line", or NULL */
    int64_t size[DUET_RANK_MAX];
} node;

/* A formula as contiguous nodes, the root last, with its key: words that describe everything
 * except the addresses of matrices and the values of numbers (the key has only their class, and
 * which are equal). It is in the arena, or in a persistent copy, until the formula is spent. */
typedef struct formula {
    const node *nodes;
    uint32_t count;
    const uint32_t *words;
    uint32_t length; /* of words */
    uint32_t leaves; /* index + 1 of the last leaf; 0: unknown */
} formula;

/* Iterates over the leaves, from the last to the first; then returns NULL. */
static inline const node *leaf_before(const formula *f, const node *n)
{
    const node *p = n - n->before; /* a leaf of a subformula may refer to one before the subformula */
    return n->before && p >= f->nodes ? p : NULL;
}
static inline const node *leaf_last(const formula *f)
{
    if (f->leaves) return &f->nodes[f->leaves - 1];
    for (uint32_t i = f->count; i-- > 0;)
        if (f->nodes[i].op == OP_LEAF) return &f->nodes[i];
    return NULL;
}

/* The formula of e, without copying it. who: the calling function, for the text.
 * Errors    the first one met while e was built, else BAD_ARGUMENT, SPENT, FOREIGN, NO_MEMORY */
duet_status formula_of(duet_expr e, const char *who, formula *f);

/* The formulas of several statements as contiguous nodes; root[i]: the root of the i-th. Formulas may use
 * nodes of formulas before them, up to the first statement that overlaps a matrix written before. *failed:
 * the index of the statement with an error. Errors: as formula_of */
duet_status formulas_of(const duet_assignment *statements, int count, const char *who, formula *f,
                        uint32_t root[], int *failed);

/* node_number: a number as a double, perhaps rounded. node_integer: the bits of an integer in the range
 * of i64 or u64. */
static inline double node_number(const node *n)
{
    if (likely(n->type == DUET_F64)) return n->number;
    return n->type == DUET_I64 ? (double)n->integer : (double)(uint64_t)n->integer;
}
static inline int64_t node_integer(const node *n, bool is_unsigned)
{
    if (n->type != DUET_F64) return n->integer;
    return is_unsigned ? (int64_t)(uint64_t)n->number : (int64_t)n->number;
}

/* type_rules.c: does number n fit elements of type t? Errors: BAD_ARGUMENT, BAD_TYPE */
duet_status number_fits(const node *n, duet_dtype t);

/* Classes of numbers, which rewrites of formulas may depend on. */
enum number_class { NUMBER_OTHER, NUMBER_ZERO, NUMBER_ONE, NUMBER_MINUS_ONE, NUMBER_POWER, NUMBER_EXTREME };
enum number_class
number_class(double x); /* POWER: of two; EXTREME: NaN, or it or its reciprocal is not normal in f32 */

/* Writes the formula with root f->nodes[root] as a line of C, with matrices A, B, ... in order of
 * appearance. n holds their names; it is zero at first. */
#define NAMES 64 /* matrices that get a name of their own; later ones are all called A64 */
typedef struct names {
    const duet_matrix *matrix[NAMES];
    int count;
} names;
void formula_print(FILE *out, const formula *f, uint32_t root, names *n);
void name_print(FILE *out, names *n, const duet_matrix *m);

/* Returns `made`, which statement duet_<function> built from the operands e[]. If it failed,
 * its text names the call of duet_<function>. formula_within: the text also names the operator that
 * failed; formula_called: it does not. */
duet_expr formula_within(const char *function, int arity, const duet_expr e[], duet_expr made,
                         const char *site);
duet_expr formula_called(const char *function, int arity, const duet_expr e[], duet_expr made,
                         const char *site);

/* Spends e, unless it is persistent or spent already. */
void formula_spend(duet_expr e, const char *site);

/* Formulas built between these two calls use an arena of their own, which the second call frees. */
void *formulas_apart(void);
void formulas_back(void *own);

/* Placeholders for the patterns of fused.def: operand 0, 1, 2, ..., and the only number. Shape rules need the
 * sizes; operands that match may have others. */
duet_expr hole_operand(int which, int rank, const int64_t *size);
duet_expr hole_number(void);

/* FREED, if a matrix of f was */
duet_status formula_lives(const char *who, const formula *f);

#endif
