/* index_list.c - reads lists of index entries. See index_list.h. */
#include "index_list.h"
#include "min_max.h"
#include "status.h"

/* A bound as Python reads it: a negative one counts from the end, and one that is out of bounds is
 * moved to the end of the axis. An open one is the end in its direction. */
static int64_t bound_of(int64_t given, int64_t size, bool backwards, bool is_start)
{
    const int64_t low = backwards ? -1 : 0, high = backwards ? size - 1 : size;
    if (given == DUET_OPEN) return backwards == is_start ? high : low;
    if (given < 0) given += size;
    return clamp(given, low, high);
}

duet_status axis_range_read(int axis, int64_t size, int64_t start, int64_t stop, int64_t step, axis_range *r)
{
    if (step == 0) return fail(DUET_BAD_ARGUMENT, "the step along axis %d must not be 0", axis);
    const int64_t by = step == INT64_MIN ? -INT64_MAX : step;
    const int64_t from = bound_of(start, size, by < 0, true), to = bound_of(stop, size, by < 0, false);
    const int64_t distance = by < 0 ? from - to : to - from, each = by < 0 ? -by : by;
    const int64_t count = distance > 0 ? (distance - 1) / each + 1 : 0;
    *r = (axis_range){ count ? from : 0, count > 1 ? by : 1, count };
    return DUET_OK;
}

static bool takes_axis(const duet_index_entry *i)
{
    return i->kind == DUET_INDEX_RANGE || i->kind == DUET_INDEX_AT;
}

static int axes_taken(const duet_index_entry *index, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) n += takes_axis(&index[i]);
    return n;
}

static duet_status check_entries(const shape *s, int count, const duet_index_entry *index)
{
    int rests = 0, rank = s->rank;
    if (count < 0 || (count > 0 && !index))
        return fail(DUET_BAD_ARGUMENT, "the index must not be NULL, nor its length (%d) negative", count);
    for (int i = 0; i < count; i++) {
        if ((unsigned)index[i].kind > DUET_INDEX_REST)
            return fail(DUET_BAD_ARGUMENT, "entry %d of the index is not valid", i);
        rests += index[i].kind == DUET_INDEX_REST;
        rank += (index[i].kind == DUET_INDEX_NEW) - (index[i].kind == DUET_INDEX_AT);
    }
    const int named = axes_taken(index, count);
    if (rests > 1) return fail(DUET_BAD_ARGUMENT, "the index must have at most one DUET_REST, not %d", rests);
    if (named > s->rank)
        return fail(DUET_BAD_SHAPE, "the index has %d entries for axes, but there %s %d %s", named,
                    s->rank == 1 ? "is" : "are", s->rank, axes_word(s->rank));
    if (rank > DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "the result would have %d axes, more than %d", rank, DUET_RANK_MAX);
    return DUET_OK;
}

static void append_axis(index_list *l, int axis) { l->axis[l->rank++] = axis; }

static duet_status read_element(const shape *s, int axis, int64_t i, index_list *l)
{
    const int64_t size = s->size[axis], from_start = i < 0 ? i + size : i;
    if (from_start < 0 || from_start >= size)
        return fail(DUET_BAD_ARGUMENT, "index %lld of axis %d is out of bounds; its size is %lld",
                    (long long)i, axis, (long long)size);
    l->range[axis] = (axis_range){ from_start, 1, 1 };
    return DUET_OK;
}

static duet_status read_range(const shape *s, int axis, const duet_index_entry *r, index_list *l)
{
    append_axis(l, axis);
    return axis_range_read(axis, s->size[axis], r->start, r->stop, r->step, &l->range[axis]);
}

static void take_all(const shape *s, int *axis, int until, index_list *l)
{
    for (; *axis < until; ++*axis) {
        append_axis(l, *axis);
        l->range[*axis] = (axis_range){ 0, 1, s->size[*axis] };
    }
}

duet_status index_list_read(const shape *s, int count, const duet_index_entry *index, index_list *l)
{
    int axis = 0; /* the next axis of the array */
    *l = (index_list){ .rank = 0 };
    TRY(check_entries(s, count, index));
    for (int i = 0; i < count; i++) {
        switch (index[i].kind) {
        case DUET_INDEX_AT: TRY(read_element(s, axis++, index[i].start, l)); break;
        case DUET_INDEX_RANGE: TRY(read_range(s, axis++, &index[i], l)); break;
        case DUET_INDEX_NEW: append_axis(l, INDEX_NEW_AXIS); break;
        default: take_all(s, &axis, s->rank - axes_taken(index + i + 1, count - 1 - i), l); break;
        }
    }
    take_all(s, &axis, s->rank, l);
    return DUET_OK;
}

char *bad_index_text(char text[BAD_INDEX_TEXT], const char *name, int64_t index, int64_t element,
                     int64_t size)
{
    if (index == POSITION_OUT_OF_BOUNDS)
        snprintf(
            text, BAD_INDEX_TEXT,
            "duet_%s: element %lld of the indices is out of bounds; of indices of several axes, list %lld",
            name, (long long)element, (long long)element);
    else
        snprintf(text, BAD_INDEX_TEXT,
                 "duet_%s: index %lld, element %lld of the indices, is out of bounds; the size of the axis "
                 "is %lld",
                 name, (long long)index, (long long)element, (long long)size);
    return text;
}
