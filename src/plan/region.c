/* region.c - which element-wise values are computed in one pass: those of one shape whose every use lies in the same pass. */
#include "lower.h"
#include <string.h>

enum { UNSEEN = -1, ALONE = -2 };

/* The region that a use of v by user would put v into. */
static int wanted(const lowering *l, int user, int k)
{
    int v = value_at(l->g, user)->arg[k];
    if (l->cut[v] || !value_is_map(l->g, user) || !value_is_map(l->g, v)) return ALONE;
    return same_shape(l->g, user, v) ? l->region[user] : ALONE;
}

/* Notes v in a list of what a region reads; false when it is full. */
static bool read_too(int *list, int *count, int most, int v)
{
    for (int i = 0; i < *count; i++)
        if (list[i] == v) return true;
    if (*count == most) return false;
    list[(*count)++] = v;
    return true;
}

/* Takes v into a region, unless a program would then exceed its limits. Operands that may still join the region are not counted. */
static bool take(const lowering *l, region_load *r, int v)
{
    const value *u = value_at(l->g, v);
    region_load with = *r;
    bool fits = with.values++ < REGION_VALUES;
    for (int k = 0; k < u->args && fits; k++) {
        int x = u->arg[k];
        if (value_at(l->g, x)->op == OP_NUMBER) fits = read_too(with.number, &with.numbers, PROGRAM_NUMBERS, x);
        else if (!value_is_map(l->g, x)) fits = read_too(with.input, &with.inputs, PROGRAM_INPUTS, x);
    }
    if (fits) *r = with;
    return fits;
}

/* Users stand after what they use: from the root down, each value has met all its uses. A full region takes no more. */
void regions_assign(lowering *l)
{
    for (int v = 0; v <= l->g->root; v++) l->region[v] = UNSEEN;
    for (int v = l->g->root; v >= 0; v--) {
        const value *u = value_at(l->g, v);
        if (!u->uses) continue;
        if (l->region[v] < 0 || !take(l, &l->load[l->region[v]], v)) {
            l->region[v] = v, l->load[v] = (region_load){ 0 };
            (void)take(l, &l->load[v], v);
        }
        for (int k = 0; k < u->args; k++) {
            int *r = &l->region[u->arg[k]], w = wanted(l, v, k);
            *r = *r == UNSEEN || *r == w ? w : ALONE;
        }
    }
}
