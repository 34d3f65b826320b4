/* view_options.c - the options of operators that select or arrange elements, and the sizes of their
 * results. */
#include "min_max.h"
#include "shape_rules.h"
#include "status.h"
#include "view_formulas.h"
#include <string.h>

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
