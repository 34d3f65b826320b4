/* pass_split.c - splits a pass that no backend runs as one program. A pass of several outputs is
 * split by outputs; a pass of one output is split in two where the fewest elements go through memory. */
#include "pass_list.h"
#include <math.h>

/* ---- what a program for a list would read and write ---- */

typedef struct io_counts {
    int values, inputs, numbers, outs;
    int large; /* inputs with as many elements as the domain */
} io_counts;

/* Count x, an operand of the list's value, unless it was counted before or is in the list. */
static void count_operand(lowering *l, int leader, int x, io_counts *r)
{
    if (l->in_set[x]) return;
    l->in_set[x] = 1;
    if (value_at(l->g, x)->op == OP_NUMBER) {
        r->numbers++;
    } else {
        r->inputs++;
        r->large += is_in_domain(l->g, leader, x);
    }
}

static io_counts count_io(lowering *l, const value_list *a)
{
    io_counts r = { .values = a->count, .outs = list_outputs(l, a).count };
    for (int i = 0; i < a->count; i++) l->in_set[a->v[i]] = 1;
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        for (int k = 0; k < u->args; k++) count_operand(l, a->v[a->count - 1], u->arg[k], &r);
    }
    set_clear(l, a);
    return r;
}

/* A list of at most this many values always fits in a program, whatever is saved and stored. */
#define SURE_VALUES ((PROGRAM_LENGTH - 2 * PROGRAM_OUTPUTS) / 2)

static bool fits(const io_counts *r)
{
    return r->values <= SURE_VALUES && r->inputs <= PROGRAM_INPUTS && r->numbers <= PROGRAM_NUMBERS &&
           r->outs <= PROGRAM_OUTPUTS;
}

/* ---- splitting ---- */

/* Split a list: `lower` gets the i-th value and all that it needs, `upper` the rest. */
static void split_list(lowering *l, const value_list *a, int i, value_list *lower, value_list *upper)
{
    lower->count = upper->count = 0;
    l->in_set[a->v[i]] = 1;
    for (int k = i; k >= 0; k--) {
        const value *u = value_at(l->g, a->v[k]);
        for (int m = 0; m < u->args && l->in_set[a->v[k]]; m++) l->in_set[u->arg[m]] = 1;
    }
    for (int k = 0; k < a->count; k++) {
        value_list *to = k <= i && l->in_set[a->v[k]] ? lower : upper;
        to->v[to->count++] = a->v[k];
    }
    set_clear(l, a);
}

/* A pass split in two. The lower part fits in one program. */
typedef struct fusion_split {
    value_list lower, upper;
    bool is_last; /* the upper part fits in one program, too */
    double cost;
} fusion_split;

/* Split at the i-th value. False: the lower part does not fit in one program. The cost counts
 * elements that are written, read again, and read twice; of equal costs, the more even split wins.
 * If the upper part must be split again, the cost is per value of the lower part. */
static bool split_at(lowering *l, const value_list *a, int i, const io_counts *all, fusion_split *c)
{
    if (value_is_reduce(l->g, a->v[i])) return false;
    split_list(l, a, i, &c->lower, &c->upper);
    const io_counts lower = count_io(l, &c->lower), upper = count_io(l, &c->upper);
    const double cost = 2 * lower.outs + (lower.large + upper.large - lower.outs - all->large);
    const double even = lower.values < upper.values ? lower.values : upper.values;
    c->is_last = fits(&upper);
    c->cost = c->is_last ? cost - even / PASS_VALUES / 2 : cost / lower.values;
    return fits(&lower);
}

static bool is_better(const fusion_split *a, const fusion_split *b)
{
    if (a->is_last != b->is_last) return a->is_last;
    return a->cost < b->cost;
}

static void split_pass(lowering *l, int leader)
{
    const value_list a = list_of(l, leader);
    const io_counts all = count_io(l, &a);
    fusion_split c, best = { .cost = INFINITY };
    for (int i = a.count - 2; i >= 0; i--)
        if (split_at(l, &a, i, &all, &c) && is_better(&c, &best)) best = c;
    make_pass(l, &best.lower);
    make_pass(l, &best.upper);
}

bool pass_refine(lowering *l, int leader)
{
    int out[PASS_VALUES];
    if (l->members[leader] == 1) return false;
    if (pass_outputs(l, leader, out) > 1) assign_again(l, leader);
    else split_pass(l, leader);
    return true;
}
