/* rules.c - for each operator, how its result is distributed, from the distributions of its operands. */
#include "rules.h"

static int arity_of(const node *n) { return op_infos[n->op].arity; }

bool everywhere(planner *p, uint32_t i, spread *s)
{
    s->how = LOCAL;
    s->at = replicated();
    for (int k = 0; k < arity_of(&p->nodes[i]); k++) {
        s->need[k] = replicated();
        s->gathers |= is_split(operand_at(p, i, k));
    }
    return true;
}

/* ---- element by element ---- */

/* The axis of x that is axis a of the result n; -1: x has no such axis, or repeats along it. */
static int axis_in(const node *n, const node *x, int a)
{
    const int own = a - (n->rank - x->rank);
    return own < 0 || (x->size[own] == 1 && n->size[a] != 1) ? -1 : own;
}

/* The split operand of the mask with the most elements that does not repeat along its split axis; -1: there
 * is none. */
static int leading_of(const planner *p, uint32_t i, const node *n, int operands)
{
    int lead = -1;
    for (int k = 0; k < arity_of(&p->nodes[i]); k++) {
        const node *x = operand_node(p, i, k);
        const distribution *d = operand_at(p, i, k);
        if (!is_split(d) || axis_in(n, x, d->axis + n->rank - x->rank) < 0) continue;
        if (!(operands >> k & 1)) continue;
        if (lead < 0 || node_count(x) > node_count(operand_node(p, i, lead))) lead = k;
    }
    return lead;
}
static int leading_operand(const planner *p, uint32_t i, const node *n) { return leading_of(p, i, n, 7); }
static int leading_product(const planner *p, uint32_t i, const node *n)
{
    return leading_of(p, i, n, products_added(p, i));
}

/* Splits x, which broadcasts to n, along the axis of n that `at` names. */
static distribution cut(const node *n, const node *x, const distribution *at)
{
    const int own = at->axis < 0 ? -1 : axis_in(n, x, at->axis);
    return own < 0 ? replicated() : (distribution){ own, at->bounds };
}

distribution operand_cut(const planner *p, uint32_t i, int k, const distribution *to)
{
    return cut(&p->nodes[i], operand_node(p, i, k), to);
}

static void cut_operands(planner *p, uint32_t i, const node *n, distribution at, spread *s)
{
    for (int k = 0; k < arity_of(&p->nodes[i]); k++) s->need[k] = cut(n, operand_node(p, i, k), &at);
}

static bool map_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i];
    int lead = leading_operand(p, i, n);
    const int fused = lead < 0 ? lead : leading_product(p, i, n);
    if (fused >= 0 && node_count(operand_node(p, i, fused)) == node_count(operand_node(p, i, lead)))
        lead = fused;
    if (lead < 0) {
        everywhere(p, i, s);
        s->gathers = false; /* operands that are gathered have one element along the axis */
        return true;
    }
    const distribution *d = operand_at(p, i, lead);
    s->at = (distribution){ d->axis + n->rank - operand_node(p, i, lead)->rank, d->bounds };
    cut_operands(p, i, n, s->at, s);
    return true;
}

/* ---- along axes ---- */

/* How to split operand k so that no axis of the mask is split: as it is, or along another axis. */
static distribution cut_beside(planner *p, uint32_t i, int k, uint32_t axes)
{
    const node *x = operand_node(p, i, k);
    const distribution d = *operand_at(p, i, k);
    if (!is_split(&d) || !(axes >> d.axis & 1)) return d;
    const int a = other_axis(p, x, axes);
    return a < 0 ? replicated() : split_evenly(p, a, x->size[a]);
}

/* The result has the axes of operand 0, and the operator works along those of the mask. All operands are
 * split in the same way. */
static bool beside_rule(planner *p, uint32_t i, spread *s, uint32_t axes)
{
    const node *n = &p->nodes[i];
    const distribution at = cut_beside(p, i, 0, axes);
    if (!is_split(&at)) return everywhere(p, i, s);
    s->at = at;
    for (int k = 0; k < arity_of(n); k++) s->need[k] = at;
    return at.bounds;
}

static bool last_axis_rule(planner *p, uint32_t i, spread *s)
{
    return beside_rule(p, i, s, 1u << (p->nodes[i].rank - 1));
}
bool index_axis_rule(planner *p, uint32_t i, spread *s)
{
    return beside_rule(p, i, s, 1u << p->nodes[i].attr.index.axis);
}
/* If all long axes are transformed: first those that are not split, then, after an exchange, the split
 * one. */
static bool fourier_rule_of(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0);
    const distribution *d = operand_at(p, i, 0);
    const uint32_t axes = (uint32_t)n->attr.fourier.axes;
    const bool supported =
        n->op == OP_fftn || n->op == OP_ifftn || (n->op == OP_rfftn && d->axis != n->attr.fourier.last);
    const bool along = is_split(d) && axes >> d->axis & 1;
    if (!along || !supported || other_axis(p, x, axes) >= 0) return beside_rule(p, i, s, axes);
    const int other = other_axis(p, n, 1u << d->axis);
    if (other < 0) return everywhere(p, i, s);
    s->how = TRANSFORMED;
    s->need[0] = *d;
    s->at = split_evenly(p, other, n->size[other]);
    return s->at.bounds;
}

/* Along the split axis, each rank finds the largest elements of its part. */
static bool top_rule(planner *p, uint32_t i, spread *s)
{
    const distribution *d = operand_at(p, i, 0);
    if (!is_split(d) || d->axis != p->nodes[i].attr.index.axis) return index_axis_rule(p, i, s);
    s->how = TOP;
    s->at = replicated();
    s->need[0] = *d;
    return true;
}
static bool images_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i];
    return beside_rule(p, i, s, ((1u << n->rank) - 1) & ~3u);
}

/* The result has the axes of x, and one more at the end. */
static bool one_hot_rule(planner *p, uint32_t i, spread *s) { return beside_rule(p, i, s, 0); }

/* Matrices in the last two axes, one for each index of the others. */
static bool stack_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0);
    const int leading = x->rank - 2;
    if (leading < 1) return everywhere(p, i, s);
    const distribution at = cut_beside(p, i, 0, 3u << leading);
    if (!is_split(&at)) return everywhere(p, i, s);
    for (int k = 1; k < arity_of(n); k++) {
        const node *y = operand_node(p, i, k);
        if (y->rank != x->rank || y->size[at.axis] != x->size[at.axis]) return everywhere(p, i, s);
    }
    s->at = at;
    for (int k = 0; k < arity_of(n); k++) s->need[k] = at;
    return at.bounds;
}

/* ---- reductions ---- */

static node domain_of_reduction(const planner *p, uint32_t i)
{
    const node *x = operand_node(p, i, 0);
    if (arity_of(&p->nodes[i]) == 1) return *x;
    const node *y = operand_node(p, i, 1);
    node domain = x->rank >= y->rank ? *x : *y;
    const node *shorter = x->rank >= y->rank ? y : x;
    for (int a = 0; a < shorter->rank; a++) {
        int64_t *size = &domain.size[a + domain.rank - shorter->rank];
        if (*size == 1) *size = shorter->size[a];
    }
    return domain;
}

static bool reduce_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], domain = domain_of_reduction(p, i);
    const int lead = leading_operand(p, i, &domain);
    if (lead < 0) return everywhere(p, i, s);
    const distribution *d = operand_at(p, i, lead);
    const int axis = d->axis + domain.rank - operand_node(p, i, lead)->rank;
    const uint32_t reduced = axes_of(n, &domain);
    if (reduced >> axis & 1) {
        if (distribute_reduction(p, i, axis)) return true;
        const int other = other_axis(p, &domain, reduced);
        if (other < 0) return everywhere(p, i, s);
        const distribution at = split_evenly(p, other, domain.size[other]);
        cut_operands(p, i, &domain, at, s);
        s->at = (distribution){
            n->attr.reduce.keep ? other : other - __builtin_popcount(reduced & ((1u << other) - 1)), at.bounds
        };
        return at.bounds;
    }
    const int before = __builtin_popcount(reduced & ((1u << axis) - 1));
    cut_operands(p, i, &domain, (distribution){ axis, d->bounds }, s);
    s->at = (distribution){ n->attr.reduce.keep ? axis : axis - before, d->bounds };
    return true;
}

/* ---- images ---- */

/* Images are split along axis 0, or replicated. */
static distribution images_cut(planner *p, uint32_t i, int k)
{
    const node *x = operand_node(p, i, k);
    const distribution d = *operand_at(p, i, k);
    if (d.axis <= 0) return d;
    return x->size[0] >= p->g->ranks ? split_evenly(p, 0, x->size[0]) : replicated();
}

static bool conv_rule(planner *p, uint32_t i, spread *s)
{
    const distribution at = images_cut(p, i, 0);
    if (!is_split(&at)) return everywhere(p, i, s);
    s->at = s->need[0] = at;
    s->need[1] = replicated();
    s->gathers = is_split(operand_at(p, i, 1));
    return at.bounds;
}

static bool filter_rule(planner *p, uint32_t i, spread *s)
{
    const int k = !is_split(operand_at(p, i, 0));
    const distribution at = images_cut(p, i, k);
    if (!is_split(&at)) return everywhere(p, i, s);
    s->how = ADDED;
    s->at = replicated();
    s->need[0] = s->need[1] = at;
    return at.bounds;
}

static bool bias_rule(planner *p, uint32_t i, spread *s)
{
    const distribution *d = operand_at(p, i, 0);
    if (!is_split(d)) return everywhere(p, i, s);
    s->at = s->need[0] = *d;
    s->need[1] = d->axis == 1 ? (distribution){ 0, d->bounds } : replicated();
    return true;
}

static bool histogram_rule(planner *p, uint32_t i, spread *s)
{
    const distribution *d = operand_at(p, i, 0);
    if (!is_split(d)) return everywhere(p, i, s);
    s->how = ADDED;
    s->at = replicated();
    s->need[0] = *d;
    return true;
}

/* ---- elements that move ---- */

/* Along the split axis of x, each rank takes the elements that it has, and the results are added. false: it
 * is faster to gather x. */
static bool add_taken(const planner *p, uint32_t i, spread *s)
{
    const node *x = operand_node(p, i, 0);
    const distribution all = replicated();
    const double gathering = move_seconds(p, x, operand_at(p, i, 0), &all),
                 adding =
                     move_seconds(p, operand_node(p, i, 1), operand_at(p, i, 1), &all) + add_seconds(p, i);
    if (adding >= gathering) return false;
    s->how = ADDED;
    s->at = s->need[1] = all;
    s->need[0] = *operand_at(p, i, 0);
    return true;
}

static bool take_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *index = operand_node(p, i, 1);
    const distribution *x = operand_at(p, i, 0), *at = operand_at(p, i, 1);
    const int axis = n->attr.index.axis;
    if (is_split(x) && x->axis != axis) {
        s->at = (distribution){ x->axis < axis ? x->axis : x->axis + index->rank - 1, x->bounds };
        s->need[0] = *x;
        s->need[1] = replicated();
        return true;
    }
    if (is_split(x) && add_taken(p, i, s)) return true;
    if (!is_split(at)) return everywhere(p, i, s);
    s->at = (distribution){ axis + at->axis, at->bounds };
    s->need[0] = replicated();
    s->need[1] = *at;
    s->gathers = is_split(x);
    return true;
}

/* Splits all operands along the split axis of the first one, unless the indices refer to that axis. */
static bool put_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *index = operand_node(p, i, 1);
    const distribution *x = operand_at(p, i, 0);
    const int axis = n->attr.index.axis;
    if (!is_split(x) || x->axis == axis) return everywhere(p, i, s);
    s->at = s->need[0] = *x;
    s->need[1] = replicated();
    s->need[2] = (distribution){ x->axis < axis ? x->axis : x->axis + index->rank - 1, x->bounds };
    return true;
}

static int64_t product_of(const int64_t *size, int from, int upto)
{
    int64_t n = 1;
    for (int a = from; a < upto; a++) n *= size[a];
    return n;
}

/* Sets `to` to the bounds times a / b; false: they are not divisible. */
static bool scale_bounds(const planner *p, const int64_t *from, int64_t a, int64_t b, int64_t *to)
{
    for (int r = 0; r <= p->g->ranks; r++) {
        if (from[r] * a % b) return false;
        to[r] = from[r] * a / b;
    }
    return true;
}

/* The result is split along the axis that has the same product of sizes before it as the split axis of x. */
static bool reshape_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0);
    const distribution *d = operand_at(p, i, 0);
    if (!is_split(d)) return everywhere(p, i, s);
    int64_t *bounds = bounds_new(p);
    if (!bounds) return false;
    const int64_t before = product_of(x->size, 0, d->axis), own = x->size[d->axis];
    for (int a = 0; a < n->rank; a++) {
        const int64_t behind = product_of(n->size, a + 1, n->rank);
        if (product_of(n->size, 0, a) != before || (n->size[a] == 1 && own != 1)) continue;
        const int64_t was_behind = product_of(x->size, d->axis + 1, x->rank);
        if (!behind || !scale_bounds(p, d->bounds, was_behind, behind, bounds)) break;
        s->at = (distribution){ a, bounds };
        s->need[0] = *d;
        return true;
    }
    return everywhere(p, i, s);
}

static bool broadcast_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0);
    const distribution *d = operand_at(p, i, 0);
    const int a = is_split(d) ? d->axis + n->rank - x->rank : -1;
    if (a < 0 || x->size[d->axis] != n->size[a]) return everywhere(p, i, s);
    s->at = (distribution){ a, d->bounds };
    s->need[0] = *d;
    return true;
}

static bool permute_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i];
    const distribution *d = operand_at(p, i, 0);
    if (!is_split(d)) return everywhere(p, i, s);
    for (int a = 0; a < n->rank; a++)
        if (axis_before(n, a) == d->axis) s->at = (distribution){ a, d->bounds };
    s->need[0] = *d;
    return true;
}

/* Along the split axis, each rank has the elements of the range that are in its part of x. */
static bool range_rule(planner *p, uint32_t i, spread *s)
{
    const node *n = &p->nodes[i];
    const distribution *d = operand_at(p, i, 0);
    const int64_t start = pair_of_words(n->attr.range.start), by = pair_of_words(n->attr.range.step);
    if (!is_split(d)) return everywhere(p, i, s);
    s->need[0] = s->at = *d;
    if (d->axis != n->attr.range.axis) return true;
    if (by < 0) {
        const int a = other_axis(p, operand_node(p, i, 0), 1u << d->axis);
        if (a < 0) return everywhere(p, i, s);
        s->need[0] = s->at = split_evenly(p, a, n->size[a]);
        return s->at.bounds;
    }
    int64_t *bounds = bounds_new(p);
    for (int r = 0; bounds && r <= p->g->ranks; r++) {
        const int64_t k = d->bounds[r] <= start ? 0 : (d->bounds[r] - start + by - 1) / by;
        bounds[r] = k < n->size[d->axis] ? k : n->size[d->axis];
    }
    s->at.bounds = bounds;
    return bounds;
}

static bool append_rule(planner *p, uint32_t i, spread *s)
{
    const uint32_t axes = 1u << p->nodes[i].attr.index.axis;
    const int k = is_split(operand_at(p, i, 0)) && !(axes >> operand_at(p, i, 0)->axis & 1) ? 0 : 1;
    const distribution at = cut_beside(p, i, is_split(operand_at(p, i, k)) ? k : 0, axes);
    if (!is_split(&at)) return everywhere(p, i, s);
    s->at = s->need[0] = s->need[1] = at;
    return at.bounds;
}

static bool window_rule(planner *p, uint32_t i, spread *s)
{
    return beside_rule(p, i, s, 1u << p->nodes[i].attr.range.axis);
}

/* ---- the table ---- */

#define EACH_RANK(name, rest, rule)                                                                          \
    [OP_##name##1d##rest] = rule, [OP_##name##2d##rest] = rule, [OP_##name##3d##rest] = rule

/* By operator; NULL: every rank computes it. */
static rule *const rules[OPS] = {
#define DUET_MAP1(name, ...)  [OP_##name] = map_rule,
#define DUET_MAP2             DUET_MAP1
#define DUET_MAP3             DUET_MAP1
#define DUET_INT1             DUET_MAP1
#define DUET_INT2             DUET_MAP1
#define DUET_FOLD1(name, ...) [OP_##name] = reduce_rule,
#define DUET_FOLD2            DUET_FOLD1
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_PLACE1           DUET_FOLD1
#include <duet/ops.def>
    [OP_matmul] = product_rule,
    [OP_einsum] = einsum_rule,
    [OP_cast] = map_rule,
    [OP_real] = map_rule,
    [OP_imag] = map_rule,
    [OP_conj] = map_rule,
    [OP_arg] = map_rule,
    [OP_complex] = map_rule,
    [OP_bias_add] = bias_rule,
    EACH_RANK(conv, , conv_rule),
    EACH_RANK(convolve, , conv_rule),
    EACH_RANK(conv, _input_grad, conv_rule),
    EACH_RANK(conv, _filter_grad, filter_rule),
    EACH_RANK(conv_transpose, , conv_rule),
    EACH_RANK(max_pool, , images_rule),
    EACH_RANK(max_pool, _grad, images_rule),
    EACH_RANK(avg_pool, , images_rule),
    EACH_RANK(avg_pool, _grad, images_rule),
    EACH_RANK(upsample, , images_rule),
    [OP_softmax] = last_axis_rule,
    [OP_log_softmax] = last_axis_rule,
    [OP_cumsum] = scan_rule,
    [OP_cumprod] = scan_rule,
    [OP_sort] = sort_rule,
    [OP_argsort] = sort_rule,
    [OP_top_k] = top_rule,
    [OP_top_k_indices] = top_rule,
    [OP_bottom_k] = top_rule,
    [OP_bottom_k_indices] = top_rule,
    [OP_take_along_axis] = index_axis_rule,
    [OP_take] = take_rule,
    [OP_put] = put_rule,
    [OP_scatter_add] = put_rule,
    [OP_scatter_mul] = put_rule,
    [OP_scatter_max] = put_rule,
    [OP_one_hot] = one_hot_rule,
    [OP_histogram] = histogram_rule,
    [OP_fftn] = fourier_rule_of,
    [OP_ifftn] = fourier_rule_of,
    [OP_rfftn] = fourier_rule_of,
    [OP_irfftn] = fourier_rule_of,
    [OP_fftshift] = fourier_rule_of,
    [OP_ifftshift] = fourier_rule_of,
    [OP_inv] = stack_rule,
    [OP_det] = stack_rule,
    [OP_logdet] = stack_rule,
    [OP_cholesky] = stack_rule,
    [OP_eigvalsh] = stack_rule,
    [OP_eigvals] = stack_rule,
    [OP_expm] = stack_rule,
    [OP_svdvals] = stack_rule,
    [OP_solve] = stack_rule,
    [OP_solve_triangular] = stack_rule,
    [OP_lstsq] = stack_rule,
    [OP_reshape] = reshape_rule,
    [OP_broadcast] = broadcast_rule,
    [OP_permute] = permute_rule,
    [OP_transpose] = permute_rule,
    [OP_range] = range_rule,
    [OP_append] = append_rule,
    [OP_sliding_window] = window_rule,
};

bool maps_elements(enum op op) { return op < OPS && rules[op] == map_rule; }

bool distribute_node(planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    spread *s = &p->of[i];
    if (op_infos[n->op].kind == KIND_LEAF) return true;
    rule *const r = n->op < OPS ? rules[n->op] : NULL;
    find_product(p, i);
    return r ? r(p, i, s) : everywhere(p, i, s);
}
