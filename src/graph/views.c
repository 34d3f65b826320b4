/* views.c - operators that select or arrange elements. Such an operator becomes a view of memory: an
 * offset and a stride for each axis. If its operand is a formula that is computed element by element,
 * the operator is moved below it, to the operands of the formula: the formula is then computed for
 * the selected elements only, in the order in which they are needed, and still is one pass.
 *
 * The elements that a view selects of a matrix, or of another result in memory, are copied only if
 * strides cannot express a reshape. */
#include "views.h"
#include "dtype.h"
#include "min_max.h"
#include "view_memo.h"

/* A value that several others use is computed again for its views if that takes at most so many
 * operators. Otherwise it is stored once. */
#define AGAIN_MAX 8

/* A view moves below at most so many operators, because functions call themselves once for each.
 * The operand of the last one is then stored. */
#define DEPTH_MAX 100

/* ---- changes of a layout ---- */

/* l with the change applied; *offset grows by that of the first element. False: no strides express it. */
static bool change_layout(layout *l, int64_t *offset, const view_change *c)
{
    layout r = { .type = l->type, .rank = c->to.rank };
    memcpy(r.size, c->to.size, sizeof r.size);
    switch (c->kind) {
    case CHANGE_RESHAPE: return layout_reshape(l, &c->to);
    case CHANGE_BROADCAST: *l = layout_broadcast(l, &c->to); return true;
    case CHANGE_PERMUTE:
        for (int i = 0; i < r.rank; i++) r.stride[i] = l->stride[c->order[i]];
        break;
    case CHANGE_RANGE:
        memcpy(r.stride, l->stride, sizeof r.stride);
        *offset += c->start * l->stride[c->axis];
        r.stride[c->axis] *= c->step;
        break;
    case CHANGE_WINDOWS:
        memcpy(r.stride, l->stride, sizeof r.stride);
        r.stride[r.rank - 1] = c->step * l->stride[c->axis];
        r.stride[c->axis] *= c->start;
        break;
    case CHANGE_DIAGONAL:
        memcpy(r.stride, l->stride + 2, (size_t)(r.rank - 1) * sizeof *r.stride);
        r.stride[r.rank - 1] = l->stride[0] + l->stride[1];
        if (r.size[r.rank - 1]) *offset += c->start * l->stride[c->start_axis];
        break;
    }
    *l = r;
    return true;
}

/* ---- views of memory ---- */

static bool is_identity(const graph *g, int x, const layout *l, int64_t offset)
{
    const layout own = value_layout(g, x);
    if (offset || own.rank != l->rank) return false;
    for (int i = 0; i < own.rank; i++)
        if (own.size[i] != l->size[i] || (own.size[i] > 1 && own.stride[i] != l->stride[i])) return false;
    return true;
}

/* If x is a copy that was made because strides could not express a layout: its source. Else x. */
static int copied_view(const graph *g, int x)
{
    const value *u = value_at(g, x);
    return u->op == OP_LOAD && u->attr.load.purpose == LOAD_COPY ? u->arg[0] : x;
}

/* The view of x with layout l. x is not a view. offset: offset of the first element, in elements. */
static int view_at(graph *g, int x, const layout *l, int64_t offset)
{
    const value like = copy_of(g, x);
    if (is_identity(g, x, l, offset)) return copied_view(g, x);
    value v = value_init(OP_VIEW, &like);
    v.weak = false;
    v.args = 1;
    v.arg[0] = x;
    v.rank = (uint8_t)l->rank;
    memcpy(v.size, l->size, sizeof v.size);
    memset(v.size + l->rank, 0, (size_t)(DUET_RANK_MAX - l->rank) * sizeof *v.size);
    v.attr.view.offset = offset;
    for (int i = 0; i < l->rank; i++) v.attr.view.stride[i] = l->size[i] == 1 ? 1 : l->stride[i];
    return intern(g, &v);
}

/* x in row-major order without gaps, in the type that it has in memory. */
static int copy_of_elements(graph *g, int x)
{
    const value like = copy_of(g, x);
    value load = value_init(OP_LOAD, &like);
    load.weak = false;
    load.args = 1;
    load.arg[0] = x;
    load.attr.load.purpose = LOAD_COPY;
    load.comp = load.mem = like.mem;
    load.stored = true;
    return intern(g, &load);
}

static int view_in_memory(graph *g, int x, const view_change *c)
{
    const bool is_own = is_op(g, x, OP_VIEW);
    const int base = is_own ? g->values[x].arg[0] : x;
    layout l = value_layout(g, x);
    int64_t offset = is_own ? g->values[x].attr.view.offset : 0;
    if (change_layout(&l, &offset, c)) return view_at(g, base, &l, offset);
    return view_in_memory(g, copy_of_elements(g, x), c);
}

int first_elements(graph *g, int x, const int64_t *size)
{
    const bool is_own = is_op(g, x, OP_VIEW);
    layout l = value_layout(g, x);
    memcpy(l.size, size, (size_t)l.rank * sizeof *size);
    return view_at(g, is_own ? g->values[x].arg[0] : x, &l, is_own ? g->values[x].attr.view.offset : 0);
}

/* ---- the change of an operand that is broadcast ---- */

static view_change reshape_to(int rank, const int64_t *size)
{
    view_change c = { .kind = CHANGE_RESHAPE, .to = { .rank = rank } };
    memcpy(c.to.size, size, (size_t)rank * sizeof *size);
    return c;
}

/* change_view, below `depth` operators that the change has passed. *m has the values that were changed
 * before. */
static int change_below(graph *g, view_memo *m, int x, const view_change *c, int depth);

/* x with as many axes as `rank`: new ones of one element come first. */
static int with_rank(graph *g, view_memo *m, int x, int rank, int depth)
{
    const value u = copy_of(g, x);
    int64_t size[DUET_RANK_MAX];
    for (int i = 0; i < rank; i++) size[i] = i < rank - u.rank ? 1 : u.size[i - (rank - u.rank)];
    if (u.rank == rank) return x;
    const view_change c = reshape_to(rank, size);
    return change_below(g, m, x, &c, depth);
}

static bool has_one_element(const value *u)
{
    for (int i = 0; i < u->rank; i++)
        if (u->size[i] != 1) return false;
    return true;
}

/* The vector of bias_add, as an operand that broadcasts: along axis 1. */
static int bias_operand(graph *g, view_memo *m, int bias, int rank, int depth)
{
    int64_t size[DUET_RANK_MAX];
    for (int i = 1; i < rank; i++) size[i - 1] = i == 1 ? copy_of(g, bias).size[0] : 1;
    const view_change c = reshape_to(rank - 1, size);
    return change_below(g, m, bias, &c, depth);
}

/* The change for an operand of x with smaller sizes. Range and permute keep its axes apart, so that
 * it still broadcasts. */
static bool change_of_operand(const graph *g, const value *x, int arg, const view_change *c, view_change *own)
{
    const value *u = value_at(g, arg);
    *own = *c;
    for (int i = 0; i < u->rank; i++) own->to.size[i] = u->size[i];
    own->to.rank = u->rank;
    if (c->kind == CHANGE_RANGE) {
        own->axis = c->axis - (x->rank - u->rank);
        if (own->axis < 0 || u->size[own->axis] == 1) return false; /* unchanged */
        own->to.size[own->axis] = c->to.size[c->axis];
    }
    for (int i = 0; i < u->rank && c->kind == CHANGE_PERMUTE; i++) own->to.size[i] = u->size[c->order[i]];
    return true;
}

static int changed_operand(graph *g, view_memo *m, const value *x, int arg, const view_change *c, int depth)
{
    view_change own, wide = { .kind = CHANGE_BROADCAST };
    if (g->values[arg].weak || g->values[arg].op == OP_NUMBER) return arg;
    if (same_sizes(value_at(g, arg), x)) return change_below(g, m, arg, c, depth);
    if (has_one_element(value_at(g, arg)) && g->values[arg].rank <= c->to.rank) return arg;
    if (c->kind == CHANGE_PERMUTE) arg = with_rank(g, m, arg, x->rank, depth);
    if (c->kind == CHANGE_RANGE || c->kind == CHANGE_PERMUTE)
        return change_of_operand(g, x, arg, c, &own) ? change_below(g, m, arg, &own, depth) : arg;
    wide.to.rank = x->rank;
    memcpy(wide.to.size, x->size, sizeof wide.to.size);
    return view_in_memory(g, view_in_memory(g, arg, &wide), c);
}

/* ---- formulas ---- */

static bool is_formula(const graph *g, int x)
{
    const value *u = value_at(g, x);
    if (!value_is_map(g, x) || u->join) return false;
    if (u->op == OP_bias_add) return u->rank >= 2;
    return u->op != OP_LOAD || u->attr.load.purpose == LOAD_SHAPE || u->attr.load.purpose == LOAD_CAST;
}

/* Would the operand have to be copied for this change, though it only broadcasts? */
static bool operand_needs_copy(const graph *g, const value *x, int arg, const view_change *c)
{
    const value *u = value_at(g, arg);
    if (c->kind != CHANGE_RESHAPE || u->op == OP_NUMBER || same_sizes(u, x) || has_one_element(u))
        return false;
    if (x->op == OP_bias_add) return true;
    const shape wide = { .rank = x->rank };
    layout l = value_layout(g, arg);
    shape s = wide;
    memcpy(s.size, x->size, sizeof s.size);
    l = layout_broadcast(&l, &s);
    return !layout_reshape(&l, &c->to);
}

/* Counts the operators that would be computed again. */
static int operators_below(const graph *g, int x, int most)
{
    int n = 1;
    const value *u = value_at(g, x);
    for (int k = 0; k < u->args && n <= most; k++)
        if (is_formula(g, u->arg[k])) n += operators_below(g, u->arg[k], most - n);
    return n;
}

static bool moves_below(const graph *g, int x, const view_change *c)
{
    const value *u = value_at(g, x);
    if (!is_formula(g, x) || c->kind == CHANGE_BROADCAST || c->kind == CHANGE_WINDOWS) return false;
    for (int k = 0; k < u->args; k++)
        if (operand_needs_copy(g, u, u->arg[k], c)) return false;
    return !u->shared || (!c->in_memory && operators_below(g, x, AGAIN_MAX) <= AGAIN_MAX);
}

/* x computed from changed operands. */
static int change_formula(graph *g, view_memo *m, int x, const view_change *c, int depth)
{
    const value u = copy_of(g, x);
    value v = u;
    if (u.op == OP_bias_add) {
        v.op = OP_add;
        v.arg[1] = bias_operand(g, m, u.arg[1], u.rank, depth);
    }
    for (int k = 0; k < u.args; k++) v.arg[k] = changed_operand(g, m, &u, v.arg[k], c, depth);
    v.rank = (uint8_t)c->to.rank;
    memset(v.size, 0, sizeof v.size);
    memcpy(v.size, c->to.size, (size_t)c->to.rank * sizeof *v.size);
    v.uses = 0;
    v.shared = v.weak = false;
    return intern(g, &v);
}

static int change_below(graph *g, view_memo *m, int x, const view_change *c, int depth)
{
    const int known = view_memo_find(m, x, c);
    if (known >= 0 || g->failed) return known < 0 ? x : known;
    const bool moves = depth < DEPTH_MAX && moves_below(g, x, c);
    const int made = moves ? change_formula(g, m, x, c, depth + 1) : view_in_memory(g, x, c);
    if (!view_memo_add(m, x, c, made)) g->failed = true;
    return made;
}

void change_views(graph *g, int count, int *x, const view_change *c)
{
    view_memo m = { 0 };
    for (int k = 0; k < count && !g->failed; k++)
        x[k] = moves_below(g, x[k], c) ? change_below(g, &m, x[k], c, 0) : view_in_memory(g, x[k], c);
    view_memo_free(&m);
}

int change_view(graph *g, int x, const view_change *c)
{
    change_views(g, 1, &x, c);
    return x;
}

/* ---- nodes ---- */

view_change change_of_node(const node *n)
{
    view_change c = { .to = { .rank = n->rank } };
    memcpy(c.to.size, n->size, (size_t)n->rank * sizeof *n->size);
    switch (n->op) {
    case OP_reshape: c.kind = CHANGE_RESHAPE; break;
    case OP_broadcast: c.kind = CHANGE_BROADCAST; break;
    case OP_range:
    case OP_sliding_window:
        c.kind = n->op == OP_range ? CHANGE_RANGE : CHANGE_WINDOWS;
        c.axis = n->attr.range.axis;
        c.start = pair_of_words(n->attr.range.start);
        c.step = pair_of_words(n->attr.range.step);
        break;
    case OP_diagonal_of:
        c.kind = CHANGE_DIAGONAL;
        c.start = pair_of_words(n->attr.offset);
        c.start_axis = c.start >= 0;
        if (c.start < 0) c.start = -c.start;
        break;
    default:
        c.kind = CHANGE_PERMUTE;
        for (int i = 0; i < n->rank; i++)
            c.order[i] = n->op == OP_transpose ? n->rank - 1 - i : n->attr.order[i];
    }
    return c;
}

/* ---- destinations ---- */

/* Is this the first visit of x? */
static bool visit(graph *g, view_memo *m, int x, const view_change *c)
{
    if (view_memo_find(m, x, c) >= 0) return false;
    if (!view_memo_add(m, x, c, 0)) g->failed = true;
    return true;
}

/* Can x be changed without copying elements? A value that was visited before can, since the search ends
 * at the first one that cannot. */
static bool changes_freely(graph *g, view_memo *m, int x, const view_change *c, int depth)
{
    const value *u = value_at(g, x);
    if (depth >= DEPTH_MAX || g->failed) return false;
    if (u->op == OP_NUMBER || u->weak || !visit(g, m, x, c)) return true;
    if (!moves_below(g, x, c)) {
        layout l = value_layout(g, x);
        int64_t offset = 0;
        return change_layout(&l, &offset, c);
    }
    for (int k = 0; k < u->args; k++)
        if (same_sizes(value_at(g, u->arg[k]), u) && !changes_freely(g, m, u->arg[k], c, depth + 1))
            return false;
    return true;
}

/* The change that undoes view v of all elements of a result in memory; false: v is no such view. */
static bool undoing_change(const graph *g, int v, view_change *c)
{
    const value *u = value_at(g, v);
    if (u->op != OP_VIEW || value_at(g, u->arg[0])->op == OP_LEAF || u->attr.view.offset) return false;
    const layout at = value_layout(g, v), of = value_layout(g, u->arg[0]);
    if (value_at(g, u->arg[0])->shared || layout_count(&at) != layout_count(&of) || !layout_count(&of))
        return false;
    *c = reshape_to(of.rank, of.size);
    if (!layout_is_dense(&of)) return false;
    if (layout_is_dense(&at)) return true;
    c->kind = CHANGE_PERMUTE;
    unsigned seen = 0;
    for (int i = 0; i < of.rank && at.rank == of.rank; i++) {
        int k = 0;
        while (k < at.rank && (seen >> k & 1 || at.size[k] != of.size[i] || at.stride[k] != of.stride[i]))
            k++;
        if (k == at.rank) return false;
        seen |= 1u << k;
        c->order[i] = k;
    }
    return at.rank == of.rank;
}

/* Searches a formula for a view of a result in memory that could be undone at the formula's end. */
static bool find_undoing(graph *g, view_memo *m, int x, view_change *c, int depth)
{
    static const view_change any = { 0 };
    const value *u = value_at(g, x);
    if (undoing_change(g, x, c)) return true;
    if (!is_formula(g, x) || u->shared || depth >= DEPTH_MAX || g->failed) return false;
    if (!visit(g, m, x, &any)) return false;
    for (int k = 0; k < u->args; k++)
        if (same_sizes(value_at(g, u->arg[k]), u) && find_undoing(g, m, u->arg[k], c, depth + 1)) return true;
    return false;
}

/* Finds a view in the formula x that can be undone at its end without copying elements. */
static bool find_free_undoing(graph *g, int x, view_change *c)
{
    view_memo searched = { 0 }, changed = { 0 };
    const bool found = find_undoing(g, &searched, x, c, 0) && changes_freely(g, &changed, x, c, 0);
    view_memo_free(&searched);
    view_memo_free(&changed);
    return found && !g->failed;
}

int move_view_to_destination(graph *g, int x, layout *to, bool *rearranged)
{
    view_change c;
    const shape own = value_shape(g, x), wide = shape_of_layout(to);
    layout at = *to;
    int64_t offset = 0;
    if (!shape_equal(&own, &wide) || !find_free_undoing(g, x, &c)) return x;
    if (!change_layout(&at, &offset, &c)) return x;
    *rearranged = c.kind == CHANGE_PERMUTE;
    *to = at;
    return change_view(g, x, &c);
}
