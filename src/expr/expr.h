/* expr.h - formulas: what operators build and plans read. */
#ifndef EXPR_H
#define EXPR_H

#include "attributes.h"
#include "compiler.h"
#include "matrix.h"
#include "ops.h"

enum {
    NODE_SPENT = 2,
    NODE_WEAK = 4,
    NODE_ROOT = 128
}; /* WEAK: of numbers alone; it takes the type of what it meets */

/* The options of an operator as words, which are part of the key: those of convolutions and pooling
 * in the order of the structs of options.h, along as many axes as the operator has; those of
 * others, as the member says. graph/attributes.c reads them. */
#define NODE_WORDS 16
typedef struct failure_attributes {
    int32_t status, words; /* words: the length of its text */
    int32_t is_matrix; /* the text says what is wrong with a matrix, which whoever names it puts in front */
} failure_attributes;
typedef struct histogram_words {
    int32_t low[2], high[2], bins; /* low, high: the bytes of a double */
} histogram_words;
typedef union node_attributes {
    int32_t word[NODE_WORDS];
    reduce_attributes reduce;
    fourier_attributes fourier;
    overlap_attributes overlap;
    index_attributes index;
    one_hot_attributes one_hot;
    histogram_words histogram;
    cast_attributes cast;
    solver_attributes solver;
    triangle_attributes triangle;
    einsum_attributes einsum;
    hole_attributes hole;
    failure_attributes failure;
} node_attributes;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KIND(op, type, rank, flags)                                                                          \
    ((uint32_t)(op) | (uint32_t)(type) << 8 | (uint32_t)(rank) << 16 | (uint32_t)(flags) << 24)
#else
#define KIND(op, type, rank, flags) KIND_(flags, rank, type, op)
#define KIND_(a, b, c, d)           ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#endif

/* A part of a formula: an operator, a matrix or a number. Its operands stand before it. */
typedef struct node {
    uint64_t serial; /* the handle that names it */
    union {
        struct {
            uint8_t op, type, rank, flags;
        };
        uint32_t kind; /* all four: KIND(op, type, rank, flags) */
    };
    uint32_t word;    /* where its words begin in the key */
    uint32_t first;   /* the first node of the formula below it */
    uint32_t back[3]; /* operands, as distances back */
    union {
        node_attributes attr;
        struct {
            union {
                double number;
                int64_t integer; /* of a number that no double is: its type is i64 or u64 */
                struct {
                    const duet_matrix *matrix;
                    uint64_t matrix_serial; /* as it was when it was named */
                };
            };
            uint32_t before; /* distance back to the matrix, or the number, that was named before it, or 0 */
        };
    };
    const char *site; /* "file:line", or NULL */
    int64_t size[DUET_RANK_MAX];
} node;

/* A formula as one run of nodes, the root last, with its key: words that say all but the addresses
 * of matrices and the values of numbers (only their class, and which are equal). It lies in the
 * arena, or in a held copy, until the formula is spent. */
typedef struct formula {
    const node *nodes;
    uint32_t count;
    const uint32_t *words;
    uint32_t length; /* of words */
    uint32_t leaves; /* one past the last leaf; 0: not known */
} formula;

/* Its leaves, from the last to the first; then NULL. */
static inline const node *leaf_before(const formula *f, const node *n)
{
    const node *p = n - n->before; /* those of a part of a formula may name one before it */
    return n->before && p >= f->nodes ? p : NULL;
}
static inline const node *leaf_last(const formula *f)
{
    if (f->leaves) return &f->nodes[f->leaves - 1];
    for (uint32_t i = f->count; i-- > 0;)
        if (f->nodes[i].op == OP_LEAF) return &f->nodes[i];
    return NULL;
}

/* The formula of e, which stays where it is. who: the function that asks, for the text.
 * Errors    the first one met while e was built, else BAD_ARGUMENT, SPENT, FOREIGN, NO_MEMORY */
duet_status formula_of(duet_expr e, const char *who, formula *f);

/* The formulas of several handles as one run, one after the other; root[i]: the last node of the
 * i-th. *failed: the one that has the error. Errors: as formula_of */
duet_status formulas_of(const duet_expr e[], int count, const char *who, formula *f, uint32_t root[],
                        int *failed);

/* A number as a double, perhaps rounded; and, of one that is whole and within i64, or u64, as the
 * bits of that. */
static inline double node_number(const node *n)
{
    return likely(n->type == DUET_F64) ? n->number
           : n->type == DUET_I64       ? (double)n->integer
                                       : (double)(uint64_t)n->integer;
}
static inline int64_t node_integer(const node *n, bool is_unsigned)
{
    return n->type != DUET_F64 ? n->integer : is_unsigned ? (int64_t)(uint64_t)n->number : (int64_t)n->number;
}

/* type_rules.c: does number n fit elements of type t? Errors: BAD_ARGUMENT, BAD_TYPE */
duet_status number_fits(const node *n, duet_dtype t);

/* Classes of numbers that a rewrite may look at. */
enum number_class { NUMBER_OTHER, NUMBER_ZERO, NUMBER_ONE, NUMBER_MINUS_ONE, NUMBER_POWER, NUMBER_EXTREME };
enum number_class
number_class(double x); /* POWER: of two; EXTREME: NaN, or it or its reciprocal is not normal in f32 */

/* Writes the formula that ends at a node of f as a line of C, its matrices as A, B, ... in order of
 * appearance; n, zeros at first, has their names. */
#define NAMES 64 /* matrices that get a name of their own; later ones are all called A64 */
typedef struct names {
    const duet_matrix *matrix[NAMES];
    int count;
} names;
void formula_print(FILE *out, const formula *f, uint32_t root, names *n);
void name_print(FILE *out, names *n, const duet_matrix *m);

/* Returns `made`, which statement duet_<function> built from the operands e[]. If it failed, its
 * text names the call of duet_<function>. within: and then the operator that failed; called: in its
 * place. */
duet_expr formula_within(const char *function, int arity, const duet_expr e[], duet_expr made,
                         const char *site);
duet_expr formula_called(const char *function, int arity, const duet_expr e[], duet_expr made,
                         const char *site);

/* Ends e and all formulas below it, unless it is held or ended already. */
void formula_spend(duet_expr e, const char *site);

/* Formulas built between these two stand in a room of their own, which is gone afterwards. */
void *formulas_apart(void);
void formulas_back(void *own);

/* Holes, for the patterns of fused.def. which: 0, 1, 2, ... The sizes are for the shape rules: what
 * fits may have others. */
duet_expr hole_operand(int which, int rank, const int64_t *size);
duet_expr hole_number(int which);

/* FREED, if a matrix of f was */
duet_status formula_lives(const char *who, const formula *f);

#endif
