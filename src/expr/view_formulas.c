/* view_formulas.c - operators that select or arrange elements: reshape, broadcast, permute, range and
 * diagonal_of, and operators composed of these, such as indexing. */
#include "view_formulas.h"
#include "call_text.h"
#include "min_max.h"
#include "operands.h"
#include "shape_rules.h"
#include "status.h"

shape formula_shape(duet_expr x)
{
    shape s = { .rank = duet_expr_rank(x) };
    for (int a = 0; a < s.rank; a++) s.size[a] = duet_expr_size(x, a);
    return s;
}

duet_expr not_itself(duet_expr made, duet_expr x, const char *site)
{
    const shape s = formula_shape(x);
    return made.serial == x.serial ? duet_reshape_at(x, s.rank, s.size, site) : made;
}

uint32_t nodes_built(void) { return arena_here() ? arena_here()->count : 0; }

duet_expr alone_if_failed(duet_expr made, uint32_t from, int count, const duet_expr e[])
{
    arena *a = arena_here();
    const node *n = a ? arena_look(a, made.serial) : NULL;
    if (!a || made.serial & SERIAL_HELD || (n && !(n->flags & NODE_FAILED))) return made;
    for (uint32_t i = from; i < a->count; i++)
        if (&a->nodes[i] != n) consume(a, &a->nodes[i]);
    for (int k = 0; k < count; k++) {
        node *x = e[k].serial & SERIAL_HELD ? NULL : arena_look(a, e[k].serial);
        if (x && x != n) consume(a, x);
    }
    if (!a->roots) arena_clear(a); /* the failure has no node */
    return made;
}

duet_expr reshaped(const char *function, duet_expr x, const sizes_given *given, const char *site)
{
    return make_operator(OP_reshape, function, 1, &x, (const int32_t *)given, site);
}

/* Returns a failure because of an argument. If x failed before, returns the failure of x. */
duet_expr bad_argument(const char *function, duet_expr x, duet_status s, const char *site)
{
    return reshaped(function, x, &(sizes_given){ .failed = &s }, site);
}

duet_expr bad_operands(const char *function, int arity, const duet_expr e[], duet_status s, const char *site)
{
    arena *a = arena_mine();
    node *x[3] = { NULL };
    error_text said;
    if (!a) return no_room(DUET_NO_MEMORY);
    error_keep(&said);
    const duet_status own = operands(a, OP_append, arity, e, x);
    if (own == DUET_OK) error_put_back(&said);
    return call_failed(a, function, arity, x, own == DUET_OK ? s : own, site);
}

static duet_expr in_range(const char *function, duet_expr x, const range_given *range, const char *site)
{
    return make_operator(OP_range, function, 1, &x, (const int32_t *)range, site);
}

/* x with the list applied: a range for each axis of which not all elements are selected, then the
 * sizes of the result. */
static duet_expr selected(const char *function, duet_expr x, const shape *s, const index_list *l,
                          const char *site)
{
    int64_t size[DUET_RANK_MAX];
    bool same = l->rank == s->rank;
    for (int a = 0; a < s->rank; a++) {
        const axis_range *r = &l->range[a];
        const int64_t stop = r->start + r->count * r->step;
        if (axis_range_is_all(r, s->size[a])) continue;
        x = in_range(function, x, &(range_given){ a, r->start, stop < 0 ? DUET_OPEN : stop, r->step }, site);
    }
    for (int i = 0; i < l->rank; i++) {
        size[i] = l->axis[i] == INDEX_NEW_AXIS ? 1 : l->range[l->axis[i]].count;
        same &= l->axis[i] == i;
    }
    return same ? x : reshaped(function, x, &(sizes_given){ l->rank, size, NULL }, site);
}

static duet_expr indexed(const char *function, duet_expr x, int count, const duet_index_entry *index,
                         const char *site)
{
    index_list l;
    if (duet_expr_status(x) != DUET_OK) return bad_argument(function, x, DUET_BAD_ARGUMENT, site);
    const shape s = formula_shape(x);
    const duet_status status = index_list_read(&s, count, index, &l);
    if (status != DUET_OK) return bad_argument(function, x, status, site);
    return selected(function, x, &s, &l, site);
}

duet_expr duet_index_at(duet_expr x, int count, const duet_index_entry *index, const char *site)
{
    return indexed("index", x, count, index, site);
}

duet_status check_axis_of(const shape *s, int *axis)
{
    const node like = { .rank = (uint8_t)s->rank };
    return check_axis(&like, axis);
}

/* Applies one index entry to one axis of x. */
duet_expr index_axis(const char *function, duet_expr x, int axis, duet_index_entry entry, const char *site)
{
    duet_index_entry index[DUET_RANK_MAX];
    const shape s = formula_shape(x);
    const duet_status status = check_axis_of(&s, &axis);
    if (status != DUET_OK) return bad_argument(function, x, status, site);
    for (int a = 0; a < axis; a++) index[a] = DUET_ALL;
    index[axis] = entry;
    return indexed(function, x, axis + 1, index, site);
}

duet_expr duet_flip_at(duet_expr x, int axis, const char *site)
{
    return index_axis("flip", x, axis, DUET_STEP(DUET_OPEN, DUET_OPEN, -1), site);
}

duet_expr duet_pick_at(duet_expr x, int axis, int64_t i, const char *site)
{
    return index_axis("pick", x, axis, DUET_AT(i), site);
}

duet_expr duet_part_at(duet_expr x, int axis, int count, int k, const char *site)
{
    const shape s = formula_shape(x);
    duet_status status = check_axis_of(&s, &axis);
    if (status == DUET_OK && !(0 <= k && k < count))
        status = fail(DUET_BAD_ARGUMENT, "k (%d) must not be negative, and less than count (%d)", k, count);
    if (status != DUET_OK) return bad_argument("part", x, status, site);
    const int64_t each = s.size[axis] / count, more = s.size[axis] % count;
    const int64_t start = k * each + smaller(k, more);
    return index_axis("part", x, axis, DUET_RANGE(start, start + each + (k < more)), site);
}

duet_expr duet_expand_dims_at(duet_expr x, int axis, const char *site)
{
    duet_index_entry index[DUET_RANK_MAX + 1];
    const shape s = formula_shape(x), wider = { .rank = s.rank + 1 };
    const duet_status status = check_axis_of(&wider, &axis);
    if (status != DUET_OK) return bad_argument("expand_dims", x, status, site);
    for (int a = 0; a < axis; a++) index[a] = DUET_ALL;
    index[axis] = DUET_NEW;
    return indexed("expand_dims", x, axis + 1, index, site);
}

duet_expr duet_squeeze_at(duet_expr x, int axis, const char *site)
{
    const shape s = formula_shape(x);
    duet_status status = check_axis_of(&s, &axis);
    if (status == DUET_OK && s.size[axis] != 1)
        status = fail(DUET_BAD_SHAPE, "axis %d must have size 1, not %lld", axis, (long long)s.size[axis]);
    if (status != DUET_OK) return bad_argument("squeeze", x, status, site);
    return index_axis("squeeze", x, axis, DUET_AT(0), site);
}

/* Permutes the axes of x: moves axis `from` to `to`, or exchanges both if `swap`. */
static duet_expr reordered(const char *function, duet_expr x, int from, int to, bool swap, const char *site)
{
    int order[DUET_RANK_MAX];
    const shape s = formula_shape(x);
    duet_status status = check_axis_of(&s, &from);
    if (status == DUET_OK) status = check_axis_of(&s, &to);
    if (status != DUET_OK) return bad_argument(function, x, status, site);
    for (int a = 0; a < s.rank; a++) order[a] = a;
    const int toward = from < to ? 1 : -1;
    for (int a = from; a != to && !swap; a += toward) order[a] = a + toward;
    order[to] = from;
    if (swap) order[from] = to;
    return make_operator(OP_permute, function, 1, &x, (const int32_t *)&(order_given){ s.rank, order }, site);
}

duet_expr duet_moveaxis_at(duet_expr x, int from, int to, const char *site)
{
    return reordered("moveaxis", x, from, to, false, site);
}

duet_expr duet_swapaxes_at(duet_expr x, int i, int j, const char *site)
{
    return reordered("swapaxes", x, i, j, true, site);
}

/* The functions without a call site. */
duet_expr(duet_index)(duet_expr x, int count, const duet_index_entry *index)
{
    return duet_index_at(x, count, index, NULL);
}
duet_expr(duet_flip)(duet_expr x, int axis) { return duet_flip_at(x, axis, NULL); }
duet_expr(duet_pick)(duet_expr x, int axis, int64_t i) { return duet_pick_at(x, axis, i, NULL); }
duet_expr(duet_part)(duet_expr x, int axis, int count, int k)
{
    return duet_part_at(x, axis, count, k, NULL);
}
duet_expr(duet_expand_dims)(duet_expr x, int axis) { return duet_expand_dims_at(x, axis, NULL); }
duet_expr(duet_squeeze)(duet_expr x, int axis) { return duet_squeeze_at(x, axis, NULL); }
duet_expr(duet_moveaxis)(duet_expr x, int from, int to) { return duet_moveaxis_at(x, from, to, NULL); }
duet_expr(duet_swapaxes)(duet_expr x, int i, int j) { return duet_swapaxes_at(x, i, j, NULL); }
