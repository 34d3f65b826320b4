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

/* Bytes a second that a rank receives from ranks on its machine, and from others. GPUs receive from other
 * machines through network adapters, one for each GPU. */
static double near_rate(const planner *p) { return p->g->place == DUET_GPU ? 100e9 : 4e9; }
static double far_rate(const planner *p) { return p->g->place == DUET_GPU ? 12.5e9 : 4e9; }

/* If all ranks receive the same elements, each of them crosses the network once for each machine. */
static double shared_rate(const planner *p)
{
    const double far = p->g->on_machine * far_rate(p);
    return p->g->on_machine == p->g->ranks || far > near_rate(p) ? near_rate(p) : far;
}

/* Operations a second of a rank. */
double rank_flops(const planner *p) { return p->g->place == DUET_GPU ? 20e12 : 200e9; }

double node_count(const node *n)
{
    double count = 1;
    for (int a = 0; a < n->rank; a++) count *= (double)n->size[a];
    return count;
}

double node_bytes(const node *n) { return node_count(n) * (double)dtypes[n->type].bytes; }

/* A rank receives from its machine and from others at the same time. */
static double receive_seconds(const planner *p, double near, double far)
{
    const double near_seconds = near / near_rate(p), far_seconds = far / far_rate(p);
    return near_seconds > far_seconds ? near_seconds : far_seconds;
}

/* The seconds in which rank r receives its part in `to`. */
static double rank_seconds(const planner *p, const node *n, const distribution *from, const distribution *to,
                           int r)
{
    const int on_machine = p->g->on_machine, first = r / on_machine * on_machine;
    const bool one_machine = on_machine == p->g->ranks;
    const shape whole = shape_of_node(n);
    shape start, size, has_start, has_size;
    double own = 0, near = 0;
    distribution_part(to, &whole, r, &start, &size);
    for (int k = one_machine ? r : first; k < (one_machine ? r + 1 : first + on_machine); k++) {
        distribution_part(from, &whole, k, &has_start, &has_size);
        const int64_t count = common_box(&start, &size, &has_start, &has_size, k).count;
        *(k == r ? &own : &near) += (double)count;
    }
    const double each = (double)dtypes[n->type].bytes, all = (double)shape_count(&size) - own;
    return one_machine ? receive_seconds(p, all * each, 0)
                       : receive_seconds(p, near * each, (all - near) * each);
}

/* The time of the slowest rank. If there are many ranks, only some of them are examined. */
static double slowest_seconds(const planner *p, const node *n, const distribution *from,
                              const distribution *to)
{
    double most = 0;
    for (int r = 0; r < p->g->ranks; r += 1 + p->g->ranks / 64) {
        const double seconds = rank_seconds(p, n, from, to, r);
        if (seconds > most) most = seconds;
    }
    return most;
}

double move_seconds(const planner *p, const node *n, const distribution *from, const distribution *to)
{
    const double ranks = p->g->ranks, bytes = node_bytes(n), each = bytes / ranks / ranks;
    if (from->axis < 0 || distribution_equal(from, to, p->g->ranks)) return 0;
    if (from->parts || to->parts) return slowest_seconds(p, n, from, to);
    if (to->axis < 0) return bytes * (ranks - 1) / ranks / shared_rate(p);
    return receive_seconds(p, each * (p->g->on_machine - 1), each * (ranks - p->g->on_machine));
}

/* Sums of shorter types are sent as f32 or i32. */
double add_seconds(const planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    const spread *s = &p->of[i];
    const bool scatters = s->is_wanted && s->wanted.axis >= 0;
    const double bytes = dtypes[n->type].bytes < 4 ? 4 * node_count(n) : node_bytes(n),
                 once = bytes * (p->g->ranks - 1) / p->g->ranks / shared_rate(p);
    return scatters ? once : 2 * once;
}
