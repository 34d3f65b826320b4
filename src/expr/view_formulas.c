/* view_formulas.c - operators that select or arrange elements: reshape, broadcast, permute, range and
 * diagonal_of, and operators composed of these, such as indexing. */
#include "view_formulas.h"
#include "call_text.h"
#include "min_max.h"
#include "operands.h"
#include "shape_rules.h"
#include "status.h"

/* ---- sizes ---- */

static int64_t count_of(const node *x)
{
    int64_t n = 1;
    for (int a = 0; a < x->rank; a++) n *= x->size[a];
    return n;
}

static duet_status check_sizes(const node *x, int rank, const int64_t *size, bool infers)
{
    if (rank < 0 || rank > DUET_RANK_MAX || (rank > 0 && !size))
        return fail(DUET_BAD_SHAPE, "the result must have 0 to %d axes, not %d", DUET_RANK_MAX, rank);
    for (int a = 0; a < rank; a++)
        if (size[a] < 0 && !(infers && size[a] == -1))
            return fail(DUET_BAD_SHAPE, "size %lld of axis %d must not be negative", (long long)size[a], a);
    return DUET_OK;
}

/* At most one size may be -1. It is replaced by the size that gives `count` elements. */
static duet_status infer_size(int64_t count, op_options *o)
{
    int64_t others = 1;
    int open = -1;
    for (int a = 0; a < o->rank; a++) {
        if (o->sizes[a] == -1 && open >= 0)
            return fail(DUET_BAD_SHAPE, "only one size may be -1, but those of axes %d and %d are -1", open,
                        a);
        if (o->sizes[a] == -1) open = a;
        else if (__builtin_mul_overflow(others, o->sizes[a], &others))
            return fail(DUET_BAD_SHAPE, "the number of elements overflows");
    }
    if (open < 0 && others == count) return DUET_OK;
    if (open >= 0 && others > 0 && count % others == 0) {
        o->sizes[open] = count / others;
        return DUET_OK;
    }
    return fail(DUET_BAD_SHAPE, "x has %lld elements, but the product of the sizes%s is %lld",
                (long long)count, open < 0 ? "" : " other than -1", (long long)others);
}

static duet_status check_broadcast(const node *x, const op_options *o)
{
    char text[SHAPE_TEXT];
    shape own = { .rank = x->rank }, wide = { .rank = o->rank }, both;
    memcpy(own.size, x->size, sizeof own.size);
    memcpy(wide.size, o->sizes, sizeof wide.size);
    if (shape_broadcast(&own, &wide, &both) && shape_equal(&both, &wide)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "x does not broadcast to %s",
                shape_text(text, (duet_dtype)x->type, o->rank, o->sizes));
}

duet_status options_sizes(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const sizes_given *given = (const sizes_given *)attr;
    if (given->failed) return *given->failed;
    TRY(check_sizes(x, given->rank, given->size, op == OP_reshape));
    o->rank = given->rank;
    for (int a = 0; a < o->rank; a++) o->sizes[a] = given->size[a];
    return op == OP_reshape ? infer_size(count_of(x), o) : check_broadcast(x, o);
}

static void put_long(int32_t words[2], int64_t x) { memcpy(words, &x, sizeof x); }

void attrs_sizes(const op_options *o, node *out)
{
    for (int a = 0; a < o->rank; a++) put_long(out->attr.size[a], o->sizes[a]);
}

/* ---- order, range and diagonal ---- */

duet_status options_order(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const order_given *given = (const order_given *)attr;
    unsigned seen = 0;
    if (given->rank != x->rank || (x->rank > 0 && !given->order))
        return fail(DUET_BAD_SHAPE, "the list must name all %d axes, not %d", x->rank, given->rank);
    o->rank = x->rank;
    for (int i = 0; i < x->rank; i++) {
        int axis = given->order[i];
        TRY(check_axis(x, &axis));
        if (seen >> axis & 1) return fail(DUET_BAD_ARGUMENT, "axis %d is named twice", axis);
        seen |= 1u << axis;
        o->order[i] = axis;
        o->sizes[i] = x->size[axis];
    }
    return DUET_OK;
}

void attrs_order(const op_options *o, node *out)
{
    for (int i = 0; i < o->rank; i++) out->attr.order[i] = o->order[i];
}

static void sizes_of(const node *x, op_options *o)
{
    o->rank = x->rank;
    memcpy(o->sizes, x->size, sizeof o->sizes);
}

duet_status options_range(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const range_given *given = (const range_given *)attr;
    o->axis = given->axis;
    TRY(check_axis(x, &o->axis));
    TRY(axis_range_read(o->axis, x->size[o->axis], given->start, given->stop, given->step, &o->range));
    sizes_of(x, o);
    o->sizes[o->axis] = o->range.count;
    return DUET_OK;
}

void attrs_range(const op_options *o, node *out)
{
    range_words *words = &out->attr.range;
    words->axis = o->axis;
    put_long(words->start, o->range.start);
    put_long(words->step, o->range.step);
    put_long(words->count, o->range.count);
}

duet_status options_offset(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    memcpy(&o->offset, attr, sizeof o->offset);
    if (x->rank < 2) return fail(DUET_BAD_SHAPE, "x must have at least 2 axes");
    const int64_t down = larger(-o->offset, 0), across = larger(o->offset, 0);
    o->rank = x->rank - 1;
    for (int a = 2; a < x->rank; a++) o->sizes[a - 2] = x->size[a];
    o->sizes[o->rank - 1] = larger(smaller(x->size[0] - down, x->size[1] - across), 0);
    return DUET_OK;
}

void attrs_offset(const op_options *o, node *out) { put_long(out->attr.offset, o->offset); }

/* ---- windows ---- */

duet_status options_window(enum op op, const node *x, const int32_t *attr, op_options *o)
{
    const window_given *given = (const window_given *)attr;
    int64_t reach;
    o->axis = given->axis;
    TRY(check_axis(x, &o->axis));
    if (x->rank == DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "the result would have %d axes, more than %d", x->rank + 1,
                    DUET_RANK_MAX);
    if (given->size < 1 || given->stride < 1 || given->dilation < 1)
        return fail(DUET_BAD_ARGUMENT, "size (%lld), stride (%lld) and dilation (%lld) must be positive",
                    (long long)given->size, (long long)given->stride, (long long)given->dilation);
    const bool fits = !__builtin_mul_overflow(given->size - 1, given->dilation, &reach);
    const int64_t free_elements = x->size[o->axis] - 1 - (fits ? reach : x->size[o->axis]);
    sizes_of(x, o);
    o->range = (axis_range){ given->stride, given->dilation, given->size };
    o->sizes[o->axis] = free_elements < 0 ? 0 : free_elements / given->stride + 1;
    o->sizes[o->rank++] = given->size;
    return DUET_OK;
}

/* stride, dilation and size take the places of start, step and count. */
void attrs_window(const op_options *o, node *out) { attrs_range(o, out); }

/* ---- operators composed of these ---- */

shape formula_shape(duet_expr x)
{
    shape s = { .rank = duet_expr_rank(x) };
    for (int a = 0; a < s.rank; a++) s.size[a] = duet_expr_size(x, a);
    return s;
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
