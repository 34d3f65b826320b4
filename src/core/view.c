/* view.c - matrices that share the elements of others. reshape.c has those whose axes are others. */
#include "view.h"
#include "matrix.h"
#include "min_max.h"
#include "status.h"
#include <string.h>

static duet_status check_range(const char *who, const duet_matrix *m, int axis, int64_t first, int64_t count)
{
    char text[SHAPE_TEXT];
    int64_t size = m->at.size[axis];
    if (first >= 0 && count >= 0 && first <= size && count <= size - first) return DUET_OK;
    if (count == 1)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): index %lld of axis %d is out of bounds; its size is %lld",
                    who, view_text(m, text), (long long)first, axis, (long long)size);
    return fail(DUET_BAD_ARGUMENT,
                "%s(m: %s): %lld elements from index %lld of axis %d are out of bounds; its size is %lld",
                who, view_text(m, text), (long long)count, (long long)first, axis, (long long)size);
}

duet_matrix *(duet_slice)(duet_matrix *m, int64_t first, int64_t count)
{
    if (view_check_rank("duet_slice", m, 1, DUET_RANK_MAX) || check_range("duet_slice", m, 0, first, count))
        return NULL;
    layout at = m->at;
    at.size[0] = count;
    return view_of(m, &at, first * at.stride[0]);
}

duet_matrix *(duet_row)(duet_matrix *m, int64_t i)
{
    if (view_check_rank("duet_row", m, 1, DUET_RANK_MAX) || check_range("duet_row", m, 0, i, 1)) return NULL;
    layout at = m->at;
    layout_drop(&at, 0);
    return view_of(m, &at, i * m->at.stride[0]);
}

duet_matrix *(duet_column)(duet_matrix *m, int64_t j)
{
    if (view_check_rank("duet_column", m, 2, 2) || check_range("duet_column", m, 1, j, 1)) return NULL;
    layout at = m->at;
    layout_drop(&at, 1);
    return view_of(m, &at, j * m->at.stride[1]);
}

duet_matrix *(duet_submatrix)(duet_matrix *m, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
    const char *who = "duet_submatrix";
    if (view_check_rank(who, m, 2, 2) || check_range(who, m, 0, i, rows) || check_range(who, m, 1, j, cols))
        return NULL;
    layout at = m->at;
    at.size[0] = rows;
    at.size[1] = cols;
    return view_of(m, &at, i * at.stride[0] + j * at.stride[1]);
}

/* ---- NumPy's basic indexing ---- */

/* State of an indexing: the next axis of m, and the view so far. */
typedef struct indexing {
    const char *who;
    const duet_matrix *m;
    int axis;
    layout at;
    int64_t ahead;
} indexing;

static duet_status take_element(indexing *x, int64_t i)
{
    char text[SHAPE_TEXT];
    const int64_t size = x->m->at.size[x->axis], from_start = i < 0 ? i + size : i;
    if (from_start < 0 || from_start >= size)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): index %lld of axis %d is out of bounds; its size is %lld",
                    x->who, view_text(x->m, text), (long long)i, x->axis, (long long)size);
    x->ahead += from_start * x->m->at.stride[x->axis++];
    return DUET_OK;
}

/* A bound as Python reads it: negative ones count from the end, what lies outside is cut off, what
 * is left out is the end that is meant. */
static int64_t bound_of(int64_t given, int64_t size, bool backwards, bool is_start)
{
    const int64_t low = backwards ? -1 : 0, high = backwards ? size - 1 : size;
    if (given == DUET_OPEN) return backwards == is_start ? high : low;
    if (given < 0) given += size;
    return clamp(given, low, high);
}

static duet_status take_range(indexing *x, const duet_index *r)
{
    char text[SHAPE_TEXT];
    const int64_t size = x->m->at.size[x->axis], by = r->step == INT64_MIN ? -INT64_MAX : r->step;
    if (by == 0)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): the step along axis %d must not be 0", x->who,
                    view_text(x->m, text), x->axis);
    const int64_t start = bound_of(r->start, size, by < 0, true),
                  stop = bound_of(r->stop, size, by < 0, false);
    const int64_t distance = by < 0 ? start - stop : stop - start, each = by < 0 ? -by : by;
    const int64_t count = distance > 0 ? (distance - 1) / each + 1 : 0, stride = x->m->at.stride[x->axis++];
    layout_insert(&x->at, x->at.rank, count, count > 1 ? stride * by : stride);
    if (count) x->ahead += start * stride;
    return DUET_OK;
}

static duet_status take_all(indexing *x, int until)
{
    const duet_index all = DUET_ALL;
    duet_status s = DUET_OK;
    while (x->axis < until && s == DUET_OK) s = take_range(x, &all);
    return s;
}

static bool takes_axis(const duet_index *i)
{
    return i->kind == DUET_INDEX_RANGE || i->kind == DUET_INDEX_AT;
}

/* How many axes of m the entries name, and how many axes the view has; BAD_ARGUMENT of what is no index. */
static duet_status check_index(const char *who, const duet_matrix *m, int count, const duet_index *index)
{
    char text[SHAPE_TEXT];
    int named = 0, rests = 0, rank;
    if (count < 0 || (count > 0 && !index))
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): the index must not be NULL, nor its length (%d) negative",
                    who, view_text(m, text), count);
    rank = m->at.rank;
    for (int i = 0; i < count; i++) {
        if ((unsigned)index[i].kind > DUET_INDEX_REST)
            return fail(DUET_BAD_ARGUMENT, "%s(m: %s): entry %d of the index is not valid", who,
                        view_text(m, text), i);
        named += takes_axis(&index[i]);
        rests += index[i].kind == DUET_INDEX_REST;
        rank += (index[i].kind == DUET_INDEX_NEW) - (index[i].kind == DUET_INDEX_AT);
    }
    if (rests > 1)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): the index must have at most one DUET_REST, not %d", who,
                    view_text(m, text), rests);
    if (named > m->at.rank)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): the index has %d entries for axes; m has %d %s", who,
                    view_text(m, text), named, m->at.rank, axes_word(m->at.rank));
    if (rank > DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): the view would have %d axes, more than %d", who,
                    view_text(m, text), rank, DUET_RANK_MAX);
    return DUET_OK;
}

static int axes_after(const duet_index *index, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) n += takes_axis(&index[i]);
    return n;
}

static duet_status take_entry(indexing *x, const duet_index *index, int left)
{
    switch (index->kind) {
    case DUET_INDEX_AT: return take_element(x, index->start);
    case DUET_INDEX_RANGE: return take_range(x, index);
    case DUET_INDEX_NEW: layout_insert(&x->at, x->at.rank, 1, 1); return DUET_OK;
    default: return take_all(x, x->m->at.rank - axes_after(index + 1, left));
    }
}

duet_matrix *(duet_indexed_by)(duet_matrix *m, int count, const duet_index *index)
{
    indexing x = { .who = "duet_indexed", .m = m };
    if (matrix_check(x.who, m) || check_index(x.who, m, count, index)) return NULL;
    x.at.type = m->at.type;
    for (int i = 0; i < count; i++)
        if (take_entry(&x, &index[i], count - 1 - i)) return NULL;
    if (take_all(&x, m->at.rank)) return NULL;
    return view_of(m, &x.at, x.ahead);
}

/* m with one entry for one axis. */
static duet_matrix *index_axis(const char *who, duet_matrix *m, int axis, duet_index entry)
{
    indexing x = { .who = who, .m = m };
    if (matrix_check(who, m) || view_check_axis(who, "m", m, m->at.rank, &axis)) return NULL;
    x.at.type = m->at.type;
    if (take_all(&x, axis) || take_entry(&x, &entry, 0) || take_all(&x, m->at.rank)) return NULL;
    return view_of(m, &x.at, x.ahead);
}

duet_matrix *(duet_stepped)(duet_matrix *m, int axis, int64_t start, int64_t stop, int64_t by)
{
    return index_axis("duet_stepped", m, axis, DUET_STEP(start, stop, by));
}

duet_matrix *(duet_picked)(duet_matrix *m, int axis, int64_t i)
{
    return index_axis("duet_picked", m, axis, DUET_AT(i));
}

duet_matrix *(duet_flipped)(duet_matrix *m, int axis)
{
    return index_axis("duet_flipped", m, axis, DUET_STEP(DUET_OPEN, DUET_OPEN, -1));
}

/* ---- in parts ---- */

static void free_all(duet_matrix **part, int count)
{
    for (int k = 0; k < count; k++) duet_free(&part[k]);
}

duet_status(duet_split)(duet_matrix *m, int axis, int count, duet_matrix **part)
{
    const char *who = "duet_split";
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    TRY(view_check_axis(who, "m", m, m->at.rank, &axis));
    if (count < 1 || !part)
        return fail(DUET_BAD_ARGUMENT, "%s(m: %s): count (%d) must be positive, and part must not be NULL",
                    who, view_text(m, text), count);
    const int64_t each = m->at.size[axis] / count, more = m->at.size[axis] % count;
    int64_t from = 0;
    for (int k = 0; k < count; k++) {
        layout at = m->at;
        at.size[axis] = each + (k < more);
        part[k] = view_of(m, &at, from * at.stride[axis]);
        from += at.size[axis];
        if (!part[k]) {
            free_all(part, k);
            return DUET_NO_MEMORY;
        }
    }
    return DUET_OK;
}
