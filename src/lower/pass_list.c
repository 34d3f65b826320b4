/* pass_list.c - passes as lists of values: builds them, merges lists, and finds the values that a pass
 * must store. */
#include "pass_list.h"
#include <string.h>

/* ---- domains ---- */

shape domain_of(const graph *g, int v)
{
    return value_shape(g, value_is_reduce(g, v) ? value_at(g, v)->arg[0] : v);
}

uint32_t reduced_axes(const graph *g, int v)
{
    const value *u = value_at(g, v);
    if (!value_is_reduce(g, v)) return 0;
    return (uint32_t)u->attr.reduce.axes & ((1u << value_at(g, u->arg[0])->rank) - 1);
}

static shape without_leading_ones(shape s)
{
    while (s.rank > 0 && s.size[0] == 1) memmove(s.size, s.size + 1, (size_t)--s.rank * sizeof *s.size);
    return s;
}

/* Does v have one element for each element that `user` computes? Leading axes of one element do not
 * matter, except to operators that count axes. */
bool is_in_domain(const graph *g, int user, int v)
{
    shape domain = domain_of(g, user), s = value_shape(g, v);
    if (value_is_reduce(g, user)) return shape_equal(&domain, &s);
    domain = without_leading_ones(domain);
    s = without_leading_ones(s);
    return shape_equal(&domain, &s);
}

/* ---- passes as lists ---- */

void make_leader(lowering *l, int v)
{
    l->pass[v] = l->first[v] = v;
    l->next[v] = -1;
    l->members[v] = 1;
}

/* Add v, which is lower than all values of the pass. */
void add_to_pass(lowering *l, int leader, int v)
{
    l->next[v] = l->first[leader];
    l->first[leader] = v;
    l->pass[v] = leader;
    l->members[leader]++;
}

value_list list_of(const lowering *l, int leader)
{
    value_list a = { 0 };
    for (int v = l->first[leader]; v >= 0; v = l->next[v]) a.v[a.count++] = v;
    return a;
}

/* Make one pass of these values. The highest one leads it. */
int make_pass(lowering *l, const value_list *a)
{
    int leader = a->v[a->count - 1];
    make_leader(l, leader);
    for (int i = a->count - 1; i-- > 0;) add_to_pass(l, leader, a->v[i]);
    return leader;
}

value_list merged_list(const value_list *a, const value_list *b)
{
    value_list c = { 0 };
    for (int i = 0, k = 0; i < a->count || k < b->count;) {
        const bool from_a = k == b->count || (i < a->count && a->v[i] < b->v[k]);
        if (from_a) c.v[c.count++] = a->v[i++];
        else c.v[c.count++] = b->v[k++];
    }
    return c;
}

/* ---- sets of values ---- */

void set_add_operands(lowering *l, const value_list *a)
{
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        for (int k = 0; k < u->args; k++) l->in_set[u->arg[k]] = 1;
    }
}

void set_clear(lowering *l, const value_list *a)
{
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        l->in_set[a->v[i]] = 0;
        for (int k = 0; k < u->args; k++) l->in_set[u->arg[k]] = 0;
    }
}

/* ---- outputs ---- */

static void count_uses_inside(lowering *l, const value_list *a, int by)
{
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        for (int k = 0; k < u->args; k++) l->uses_inside[u->arg[k]] += by;
    }
}

value_list list_outputs(lowering *l, const value_list *a)
{
    value_list out = { 0 };
    count_uses_inside(l, a, 1);
    for (int i = 0; i < a->count; i++)
        if (value_at(l->g, a->v[i])->uses > l->uses_inside[a->v[i]]) out.v[out.count++] = a->v[i];
    count_uses_inside(l, a, -1);
    return out;
}

int pass_outputs(lowering *l, int leader, int out[PASS_VALUES])
{
    value_list a = list_of(l, leader), o = list_outputs(l, &a);
    memcpy(out, o.v, sizeof *out * (size_t)o.count);
    return o.count;
}
