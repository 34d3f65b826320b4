/* plan_operands.h - the matrices of a statement in the order of its plan: destinations, then leaves. */
#ifndef PLAN_OPERANDS_H
#define PLAN_OPERANDS_H

#include "matrix.h"
#include "plan.h"

static inline int matrices_count(const statement *s, const plan *p) { return s->count + p->n_leaves; }

static inline const duet_matrix *matrices_at(const statement *s, const plan *p, int i)
{
    if (i < s->count) return s->to[i].m;
    return s->f->nodes[p->leaves[i - s->count].node].matrix;
}

/* Is i a destination whose whole storage is overwritten? */
static inline bool matrices_overwrites(const statement *s, int i)
{
    return i < s->count && matrix_fills(s->to[i].m);
}

/* Has one of the matrices before i the same storage? only_read: do not count destinations whose whole
 * storage is overwritten. Only the last LOOK_BACK matrices are compared, so that long formulas do not
 * take quadratic time. */
#define LOOK_BACK 16
static inline bool matrices_came_before(const statement *s, const plan *p, int i, bool only_read)
{
    const storage *b = matrices_at(s, p, i)->storage;
    for (int e = i > LOOK_BACK ? i - LOOK_BACK : 0; e < i; e++)
        if (matrices_at(s, p, e)->storage == b && !(only_read && matrices_overwrites(s, e))) return true;
    return false;
}

#endif
