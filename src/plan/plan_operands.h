/* plan_operands.h - the matrices of a statement in the order of its plan: destinations, then leaves. */
#ifndef PLAN_OPERANDS_H
#define PLAN_OPERANDS_H

#include "matrix.h"
#include "plan.h"

static inline int matrices_count(const statement *s, const plan *p) { return s->count + p->n_leaves; }

static inline const duet_matrix *matrices_at(const statement *s, const plan *p, int i)
{
    return i < s->count ? s->to[i].m : s->f->nodes[p->leaves[i - s->count].node].matrix;
}

/* Is i a destination of which nothing stays? */
static inline bool matrices_overwrites(const statement *s, int i)
{
    return i < s->count && matrix_fills(s->to[i].m);
}

/* Has one before i the same storage? Where only what is read counts, not one of which nothing stays. Long formulas are not looked through
 * for each of their matrices. */
#define LOOKED_BACK 16
static inline bool matrices_came_before(const statement *s, const plan *p, int i, bool what_is_read)
{
    const storage *b = matrices_at(s, p, i)->bits;
    for (int e = i > LOOKED_BACK ? i - LOOKED_BACK : 0; e < i; e++)
        if (matrices_at(s, p, e)->bits == b && !(what_is_read && matrices_overwrites(s, e))) return true;
    return false;
}

#endif
