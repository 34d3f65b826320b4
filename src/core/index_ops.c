/* index_ops.c - splits operands at an axis, and checks steps of index operators. */
#include "index_ops.h"
#include <string.h>

static layout axes_between(const layout *l, int from, int to)
{
    layout part = { .type = l->type };
    for (int a = from; a < to; a++) layout_insert(&part, part.rank, l->size[a], l->stride[a]);
    layout_collapse((layout *[]){ &part }, 1);
    return part;
}

axis_split axis_split_at(const layout *l, int axis, int width)
{
    return (axis_split){ axes_between(l, 0, axis), axes_between(l, axis, axis + width),
                         axes_between(l, axis + width, l->rank) };
}

static bool is_computed(duet_dtype t) { return t <= DUET_I64; }

const char *index_unsupported(const step *s)
{
    return s->outs != 1 || s->ins < 1 ? "the step has the wrong number of operands" : NULL;
}

const char *index_arithmetic_unsupported(const step *s)
{
    const char *why = index_unsupported(s);
    if (why) return why;
    return is_computed(s->out[0].at.type) ? NULL : "the element type is not supported";
}

bins bins_of(const step *s)
{
    const histogram_attributes *a = &s->attr.histogram;
    bins b = { .low = a->low, .high = a->high, .count = a->bins };
    b.width = (b.high - b.low) / (double)b.count;
    return b;
}
