/* region.c - which element-wise values are computed in one pass: those of one shape whose every use lies in the same pass. */
#include "lower.h"
#include <string.h>

enum { UNSEEN = -1, ALONE = -2 };

static bool same_shape(const value *x, const value *y)
{
    return x->rank == y->rank && !memcmp(x->size, y->size, sizeof x->size[0] * x->rank);
}

/* The region that a use of v by user would put v into. */
static int wanted(const lowering *l, int user, int k)
{
    int v = value_at(l->g, user)->arg[k];
    if (l->cut[v] || !value_is_map(l->g, user) || !value_is_map(l->g, v)) return ALONE;
    return same_shape(value_at(l->g, user), value_at(l->g, v)) ? l->region[user] : ALONE;
}

/* Users stand after what they use: from the root down, each value has met all its uses. A full region takes no more. */
void regions_assign(lowering *l)
{
    for (int v = 0; v <= l->g->root; v++) l->region[v] = UNSEEN, l->members[v] = 0;
    for (int v = l->g->root; v >= 0; v--) {
        const value *u = value_at(l->g, v);
        if (!u->uses) continue;
        if (l->region[v] < 0 || l->members[l->region[v]] == REGION_VALUES) l->region[v] = v;
        l->members[l->region[v]]++;
        for (int k = 0; k < u->args; k++) {
            int *r = &l->region[u->arg[k]], w = wanted(l, v, k);
            *r = *r == UNSEEN || *r == w ? w : ALONE;
        }
    }
}
