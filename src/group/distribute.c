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

int other_axis(const planner *p, const node *x, uint32_t without)
{
    int best = -1;
    for (int a = 0; a < x->rank; a++)
        if (!(without >> a & 1) && x->size[a] >= p->g->ranks && (best < 0 || x->size[a] > x->size[best]))
            best = a;
    return best;
}

/* ---- costs: only their ratios matter ---- */

/* Bytes a second of a link, and operations a second of a rank. */
static double link_rate(const planner *p) { return p->g->place == DUET_GPU ? 100e9 : 4e9; }
double rank_flops(const planner *p) { return p->g->place == DUET_GPU ? 20e12 : 200e9; }

double node_count(const node *n)
{
    double count = 1;
    for (int a = 0; a < n->rank; a++) count *= (double)n->size[a];
    return count;
}

double node_bytes(const node *n) { return node_count(n) * (double)dtypes[n->type].bytes; }

/* The elements that two boxes have in common. */
static double common_count(const shape *start, const shape *size, const shape *other_start,
                           const shape *other_size)
{
    double count = 1;
    for (int a = 0; a < start->rank; a++) {
        const int64_t end = start->size[a] + size->size[a], upto = other_start->size[a] + other_size->size[a];
        const int64_t first = start->size[a] > other_start->size[a] ? start->size[a] : other_start->size[a],
                      last = end < upto ? end : upto;
        count *= last > first ? (double)(last - first) : 0;
    }
    return count;
}

/* The most elements that a rank receives. If there are many ranks, some of them are examined. */
static double most_received(const planner *p, const node *n, const distribution *from, const distribution *to)
{
    const shape whole = shape_of_node(n);
    double most = 0;
    for (int r = 0; r < p->g->ranks; r += 1 + p->g->ranks / 64) {
        shape start, size, has_start, has_size;
        distribution_part(to, &whole, r, &start, &size);
        distribution_part(from, &whole, r, &has_start, &has_size);
        const double count = (double)shape_count(&size) - common_count(&start, &size, &has_start, &has_size);
        if (count > most) most = count;
    }
    return most;
}

double move_seconds(const planner *p, const node *n, const distribution *from, const distribution *to)
{
    const double others = (double)(p->g->ranks - 1) / p->g->ranks;
    if (from->axis < 0 || distribution_equal(from, to, p->g->ranks)) return 0;
    if (from->parts || to->parts)
        return most_received(p, n, from, to) * (double)dtypes[n->type].bytes / link_rate(p);
    const double all = node_bytes(n) * others / link_rate(p);
    return to->axis < 0 ? all : all / p->g->ranks;
}

double add_seconds(const planner *p, const node *n)
{
    return 2 * node_bytes(n) * (p->g->ranks - 1) / p->g->ranks / link_rate(p);
}
