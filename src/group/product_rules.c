/* product_rules.c - how a product is distributed: of the ways that the split axes of its operands allow, the
 * one that is expected to be fastest. */
#include "dtype.h"
#include "grid_product.h"
#include <math.h>

/* A way to compute a product: the split axes of the result and of each operand (-1: replicated). adds: the
 * results of the ranks are partial sums. */
typedef struct product_way {
    int result, left, right;
    bool adds;
    const int64_t *bounds;
    double seconds;
    int calls; /* collective steps */
} product_way;

static distribution way_need(const product_way *w, int axis)
{
    return axis < 0 ? replicated() : (distribution){ axis, (int64_t *)w->bounds };
}

/* GPUs of one machine gather an operand much faster than they multiply it. So they do that at once if it
 * needs no more memory than two panels: products of panels take some 3 % longer than one product, and even
 * more while another panel arrives. */
static bool comes_at_once(const planner *p, const node *y)
{
    const bool near = p->g->place == DUET_GPU && p->g->on_machine == p->g->ranks;
    return near && node_bytes(y) <= 2 * grid_products()->panel_bytes;
}

/* Must a large right operand that is split by rows be gathered? Then a panel of its rows is gathered at a
 * time. */
static bool goes_by_panels(const planner *p, uint32_t i, const product_way *w)
{
    const node *x = operand_node(p, i, 0), *y = operand_node(p, i, 1);
    const duet_dtype type = (duet_dtype)p->nodes[i].type;
    return x->rank == 2 && y->rank == 2 && w->left == 0 && w->right < 0 && !w->adds &&
           operand_at(p, i, 1)->axis == 0 && node_count(y) >= grid_products()->gathered &&
           !comes_at_once(p, y) && dtype_is_f32_or_f64(type) && x->type == type && y->type == type;
}

/* Adds the time and the latency of moving an array. */
static void weigh_move(const planner *p, const node *n, const distribution *from, const distribution *to,
                       product_way *w)
{
    if (from->axis < 0 || distribution_equal(from, to, p->g->ranks)) return;
    w->seconds += move_seconds(p, n, from, to);
    w->calls++;
}

/* Adds the costs of adding the partial sums, and of moving the result to a destination that is known. */
static void weigh_result(const planner *p, uint32_t i, product_way *w)
{
    const node *n = &p->nodes[i];
    const spread *s = &p->of[i];
    if (w->adds) {
        w->seconds += add_seconds(p, i);
        w->calls++;
    } else if (s->is_wanted) {
        const distribution at = way_need(w, w->result);
        weigh_move(p, n, &at, &s->wanted, w);
    }
}

static void weigh(const planner *p, uint32_t i, product_way w, product_way *best)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0), *y = operand_node(p, i, 1);
    const distribution left = way_need(&w, w.left), right = way_need(&w, w.right);
    const bool cut = w.left >= 0 || w.right >= 0;
    weigh_move(p, x, operand_at(p, i, 0), &left, &w);
    weigh_move(p, y, operand_at(p, i, 1), &right, &w);
    weigh_result(p, i, &w);
    w.seconds += 2 * node_count(n) * (double)x->size[x->rank - 1] / rank_flops(p) / (cut ? p->g->ranks : 1);
    if (w.seconds < best->seconds) *best = w;
}

/* Panels of rows: one for each rank, but at most 8 unless they would be too large. */
static int row_panels(const planner *p, const node *y)
{
    const int ranks = p->g->ranks, few = ranks < 8 ? ranks : 8;
    const double least = ceil(node_bytes(y) / grid_products()->panel_bytes);
    return least > few ? (int)fmin(least, (double)y->size[0]) : few;
}

/* The seconds of a way, with latency and waiting. weigh() leaves these out, because they hardly differ
 * between the ways that it compares. If ranks have different numbers of rows, one rank sends a panel, and the
 * others wait. */
static double complete_seconds(const planner *p, uint32_t i, const product_way *w)
{
    const node *y = operand_node(p, i, 1);
    const distribution *at = operand_at(p, i, 1), all = replicated();
    const double seconds = w->seconds + w->calls * ring_seconds(p);
    if (!goes_by_panels(p, i, w)) return seconds;
    const bool in_memory = p->g->place == DUET_CPU && p->g->near == p->g->ranks,
               waits = !in_memory && !has_equal_parts(at, 0, y->size[0], p->g->ranks);
    const double waiting = waits ? (p->g->ranks - 1) * move_seconds(p, y, at, &all) : 0;
    return seconds + (row_panels(p, y) - 1) * ring_seconds(p) + waiting;
}

static void use_panels(const planner *p, uint32_t i, const product_way *w, spread *s)
{
    const distribution rows = way_need(w, 0);
    s->how = GRID;
    s->at = rows;
    s->grid = (struct product_grid){
        .rows = p->g->ranks, .columns = 1, .left = rows, .right = replicated(), .block = rows
    };
    s->grid.panels = row_panels(p, operand_node(p, i, 1));
    s->need[0] = rows;
    s->need[1] = *operand_at(p, i, 1);
}

/* The way to compute the product if axis a of operand k is split. */
static product_way way_of_axis(const node *n, const node *x, const node *y, int k, int a)
{
    const node *own = k ? y : x, *other = k ? x : y;
    const int contracted = k ? (y->rank > 1 ? y->rank - 2 : 0) : x->rank - 1,
              rows = n->rank - (x->rank > 1) - (y->rank > 1);
    product_way w = { -1, -1, -1, false, NULL, 0, 0 };
    if (a == contracted) {
        w.left = x->rank - 1;
        w.right = y->rank > 1 ? y->rank - 2 : 0;
        w.adds = true;
        return w;
    }
    *(k ? &w.right : &w.left) = a;
    if (a >= own->rank - 2) {
        w.result = k ? n->rank - 1 : rows;
        return w;
    }
    w.result = a + rows - (own->rank - 2);
    if (n->size[w.result] != own->size[a])
        return (product_way){ -1, -1, -1, false, NULL, 0, 0 }; /* it repeats */
    const int matching = w.result - (rows - (other->rank - 2));
    if (other->rank > 2 && matching >= 0 && other->size[matching] == own->size[a])
        *(k ? &w.left : &w.right) = matching;
    return w;
}

bool product_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0), *y = operand_node(p, i, 1);
    product_way best = { -1, -1, -1, false, NULL, 1e300, 0 };
    weigh(p, i, (product_way){ -1, -1, -1, false, NULL, 0, 0 }, &best);
    for (int k = 0; k < 2; k++) {
        const distribution *d = operand_at(p, i, k);
        if (!is_split(d)) continue;
        product_way w = way_of_axis(n, x, y, k, d->axis);
        w.bounds = d->bounds;
        weigh(p, i, w, &best);
    }
    bool failed;
    if (grid_is_faster(p, i, complete_seconds(p, i, &best), s, &failed)) return true;
    if (failed) return false;
    if (best.left < 0 && best.right < 0) return everywhere(p, i, s);
    if (goes_by_panels(p, i, &best)) {
        use_panels(p, i, &best, s);
        return true;
    }
    s->how = best.adds ? ADDED : LOCAL;
    s->at = way_need(&best, best.adds ? -1 : best.result);
    s->need[0] = way_need(&best, best.left);
    s->need[1] = way_need(&best, best.right);
    return true;
}
