/* operands.h - functions that leaves and operators share: they look up operands and append nodes.
 * Private to src/expr. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "arena.h"
#include "compiler.h"
#include "dtype.h"
#include <string.h>

/* Few matrices have more than two axes, so that two sizes are copied unconditionally. */
static inline void copy_sizes(void *to, const int64_t *from, int rank)
{
    memcpy(to, from, PLAIN_RANK * sizeof *from);
    if (unlikely(rank > PLAIN_RANK))
        memcpy((char *)to + PLAIN_RANK * sizeof *from, from + PLAIN_RANK,
               (size_t)(rank - PLAIN_RANK) * sizeof *from);
}

static inline duet_expr no_room(duet_status s) { return (duet_expr){ (uint64_t)s }; }

static inline duet_expr full(void) { return no_room(DUET_ARENA_FULL); }

/* The arena if it exists and has capacity for a node, else NULL. */
static inline arena *arena_ready(void)
{
    arena *a = arena_here();
    return a && a->next != a->stop ? a : NULL;
}

static inline uint32_t kind_of(enum op op, duet_dtype type, int rank)
{
    return KIND(op, type, rank, dtype_is_f32_or_f64(type) && rank <= PLAIN_RANK ? NODE_PLAIN : 0);
}

static inline void adopt(arena *a, node *n, int arity, node *const x[])
{
    uint32_t stored = 0, first = n->first, consumed = 0;
    for (int k = 0; k < arity; k++) {
        if (unlikely(!x[k])) continue;
        n->back[stored++] = (uint32_t)(n - x[k]);
        if (x[k]->first < first) first = x[k]->first;
        consumed += (x[k]->kind & KIND(0, 0, 0, NODE_ROOT)) != 0;
        x[k]->kind &= ~KIND(0, 0, 0, NODE_ROOT);
    }
    if (stored < 3) n->back[stored] = 0;
    n->first = first;
    a->roots -= consumed;
}

static inline node *push_operator(arena *a, uint32_t kind, int arity, node *const x[], const char *site)
{
    node *n = arena_push(a, kind, site);
    if (n) adopt(a, n, arity, x);
    return n;
}

/* Finds an operand that is persistent, and copies it to the arena. If the operand cannot be used, sets
 * the text, and *s if it was OK. */
node *operand_slow(arena *a, duet_expr e, enum op op, int k, duet_status *s);
duet_status operand_failure(const arena *a, enum op op, int k, const node *x) __attribute__((cold));

static inline node *operand_of(arena *a, duet_expr e, enum op op, int k, duet_status *s)
{
    node *n = e.serial & SERIAL_HELD ? NULL : arena_look(a, e.serial);
    return likely(n && !(n->flags & NODE_SPENT)) ? n : operand_slow(a, e, op, k, s);
}

/* Finds the nodes of e[]; a node is NULL if e[] has no live formula there. A failed operand makes the
 * result fail with the first error. */
static inline duet_status operands(arena *a, enum op op, int arity, const duet_expr e[], node *x[])
{
    duet_status s = DUET_OK;
    for (int k = 0; k < arity; k++) x[k] = operand_of(a, e[k], op, k, &s);
    for (int k = 0; k < arity && s == DUET_OK; k++)
        if (unlikely(x[k]->flags & NODE_FAILED)) s = operand_failure(a, op, k, x[k]);
    return s;
}

/* type_rules.c: the type of the result; DUET_DTYPE_COUNT: all operands are numbers. Errors:
 * BAD_TYPE, BAD_ARGUMENT */
duet_status settle_type(enum op op, int arity, node *const x[], duet_dtype *result);

/* The same check for operators whose rows state their types. They accept no complex numbers. */
duet_status check_free_types(enum op op, int arity, node *const x[]);

/* Writes a number in C's notation, with as many digits as identify it. */
const char *number_text(const node *n, char text[40]);

/* operators.c: a reduction, or an operator with a definition. function: the name of the user's call without
 * "duet_". attr: its options as given. */
duet_expr make_operator(enum op op, const char *function, int arity, const duet_expr e[], const int32_t *attr,
                        const char *site);

/* The handle of a formula that failed with s. Its operands are consumed. */
duet_expr failed(arena *a, int arity, node *const x[], duet_status s, const char *site) __attribute__((cold));

#endif
