/* distribute.c - memory and costs of the planner of distributions. */
#include "distribute.h"
#include "dtype.h"
#include <stdlib.h>
#include <string.h>

typedef struct bounds_block {
    struct bounds_block *next;
    int64_t bounds[];
} bounds_block;

bool planner_begin(planner *p, duet_group *g, const node *nodes, uint32_t count)
{
    *p = (planner){ .g = g, .nodes = nodes, .count = count };
    p->of = calloc(count, sizeof *p->of);
    for (uint32_t i = 0; i < count && p->of; i++) p->of[i].at.axis = -1;
    return p->of;
}

void planner_end(planner *p)
{
    for (bounds_block *b = p->blocks; b; b = p->blocks) {
        p->blocks = b->next;
        free(b);
    }
    free(p->of);
}

int64_t *bounds_new(planner *p)
{
    bounds_block *b = malloc(sizeof *b + ((size_t)p->g->ranks + 1) * sizeof *b->bounds);
    if (!b) return NULL;
    b->next = p->blocks;
    p->blocks = b;
    return b->bounds;
}

distribution split_evenly(planner *p, int axis, int64_t n)
{
    int64_t *bounds = bounds_new(p);
    for (int r = 0; bounds && r <= p->g->ranks; r++) bounds[r] = part_first(n, p->g->ranks, r);
    return (distribution){ axis, bounds };
}

/* ---- costs: only their ratios matter ---- */

/* Bytes a second of a link, and operations a second of a rank. */
static double link_rate(const planner *p) { return p->g->place == DUET_GPU ? 100e9 : 4e9; }
double rank_flops(const planner *p) { return p->g->place == DUET_GPU ? 20e12 : 200e9; }

static double bytes_of(const node *n)
{
    double bytes = (double)dtypes[n->type].bytes;
    for (int a = 0; a < n->rank; a++) bytes *= (double)n->size[a];
    return bytes;
}

double move_seconds(const planner *p, const node *n, const distribution *from, const distribution *to)
{
    const double others = (double)(p->g->ranks - 1) / p->g->ranks;
    if (from->axis < 0 || distribution_equal(from, to, p->g->ranks)) return 0;
    const double all = bytes_of(n) * others / link_rate(p);
    return to->axis < 0 ? all : all / p->g->ranks;
}

double add_seconds(const planner *p, const node *n)
{
    return 2 * bytes_of(n) * (p->g->ranks - 1) / p->g->ranks / link_rate(p);
}
