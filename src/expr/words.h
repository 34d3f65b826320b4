/* words.h - the words of nodes, which form the key of the plan cache. Most formulas consist of leaves
 * and numbers, so these functions are inline. Private to src/expr. */
#ifndef WORDS_H
#define WORDS_H

#include "operands.h"

static inline enum number_class number_class_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (x != 0 && (exponent < -126 || exponent > 126)) return NUMBER_EXTREME;
    if (bits << 12 != 0) return NUMBER_OTHER; /* most are */
    if (x == 0) return NUMBER_ZERO;
    if (x == 1) return NUMBER_ONE;
    return x == -1 ? NUMBER_MINUS_ONE : NUMBER_POWER;
}

/* An equal leaf, or an equal number, is searched for only among this many of the latest ones. */
#define LATEST 16

/* Records that n, the last node of the arena, is the latest of its kind. */
static inline void follow(const arena *a, node *n, uint32_t *last)
{
    n->before = *last ? a->count - *last : 0;
    *last = a->count;
}

/* Returns the distance back to the latest leaf with the same matrix, or 0 if it is not found. */
static inline uint32_t same_leaf(const node *n)
{
    const node *p = n;
    for (int tries = 0; tries < LATEST && p->before; tries++) {
        p -= p->before;
        if (p->matrix == n->matrix && p->matrix_serial == n->matrix_serial) return (uint32_t)(n - p);
    }
    return 0;
}

/* The same for numbers: two are equal if their bits are. */
static inline uint32_t same_number(const node *n)
{
    const node *p = n;
    for (int tries = 0; tries < LATEST && p->before; tries++) {
        p -= p->before;
        if (!memcmp(&p->number, &n->number, sizeof n->number) && p->type == n->type) return (uint32_t)(n - p);
    }
    return 0;
}

static inline uint32_t *put_sizes(uint32_t *w, const int64_t *size, int rank)
{
    copy_sizes(w, size, rank);
    return w + 2 * rank;
}

/* Makes n the latest leaf. Returns the distance back to a leaf with the same matrix, or 0. */
static inline uint32_t link_leaf(arena *a, node *n)
{
    follow(a, n, &a->last_leaf);
    return same_leaf(n);
}

#define NUMBER_KIND KIND(OP_NUMBER, DUET_F64, 0, NODE_WEAK | NODE_PLAIN)

/* Numbers have no rank. The word has their class instead. */
static inline uint32_t number_word(const node *n)
{
    return KIND(OP_NUMBER, n->type, number_class_of(node_number(n)), NODE_WEAK);
}

static inline uint32_t *number_words(arena *a, node *n, uint32_t *w)
{
    follow(a, n, &a->last_number);
    *w++ = number_word(n);
    *w++ = same_number(n);
    return w;
}

#endif
