/* einsum_rule.c - how an einsum of two operands is distributed: along the split axis of one of them. */
#include "einsum.h"
#include "rules.h"

/* The operand `lead` stays as it is, and the other one is split along the axis with the same letter, if it
 * has one. */
static spread along(const planner *p, uint32_t i, int lead)
{
    const einsum_attributes *e = &p->nodes[i].attr.einsum;
    const distribution *d = operand_at(p, i, lead);
    const spread *before = &p->of[i];
    const int letter = einsum_letter(e, lead, d->axis), other = einsum_axis(e, !lead, letter),
              out = einsum_axis(e, EINSUM_OUT, letter);
    spread s = { .how = out < 0 ? ADDED : LOCAL, .at = replicated() };
    s.is_wanted = before->is_wanted;
    s.wanted = before->wanted;
    s.need[lead] = *d;
    s.need[!lead] = other < 0 ? replicated() : (distribution){ other, d->bounds };
    if (out >= 0) s.at = (distribution){ out, d->bounds };
    return s;
}

static double operations(const planner *p, uint32_t i)
{
    const einsum_attributes *e = &p->nodes[i].attr.einsum;
    const node *x = operand_node(p, i, EINSUM_A);
    double count = 2 * node_count(&p->nodes[i]);
    for (int a = 0; a < x->rank; a++)
        if (einsum_axis(e, EINSUM_OUT, einsum_letter(e, EINSUM_A, a)) < 0) count *= (double)x->size[a];
    return count;
}

static double seconds_of(const planner *p, uint32_t i, const spread *s, int parts)
{
    double seconds = operations(p, i) / rank_flops(p) / parts;
    for (int k = 0; k < 2; k++)
        seconds += move_seconds(p, operand_node(p, i, k), operand_at(p, i, k), &s->need[k]);
    return seconds + (s->how == ADDED ? add_seconds(p, i) : 0);
}

bool einsum_rule(planner *p, uint32_t i, spread *s)
{
    everywhere(p, i, s);
    double best = seconds_of(p, i, s, 1);
    for (int k = 0; k < 2; k++) {
        if (!is_split(operand_at(p, i, k))) continue;
        const spread way = along(p, i, k);
        const double seconds = seconds_of(p, i, &way, p->g->ranks);
        if (seconds >= best) continue;
        best = seconds;
        *s = way;
    }
    return true;
}
