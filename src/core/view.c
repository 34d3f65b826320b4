/* view.c - matrices that share the elements of others. reshape.c has those whose axes are others. */
#include "view.h"
#include "index_list.h"
#include "matrix.h"
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

/* The view of m that a list selects. */
static duet_matrix *selected(const duet_matrix *m, const index_list *l)
{
    layout at = { .type = m->at.type };
    int64_t ahead = 0;
    for (int a = 0; a < m->at.rank; a++) ahead += l->range[a].start * m->at.stride[a];
    for (int i = 0; i < l->rank; i++) {
        const int a = l->axis[i];
        if (a == INDEX_NEW_AXIS) layout_insert(&at, i, 1, 1);
        else layout_insert(&at, i, l->range[a].count, l->range[a].step * m->at.stride[a]);
    }
    return view_of(m, &at, ahead);
}

static duet_matrix *index_matrix(const char *who, duet_matrix *m, int count, const duet_index_entry *index)
{
    char text[SHAPE_TEXT];
    const shape s = shape_of_layout(&m->at);
    index_list l;
    const duet_status status = index_list_read(&s, count, index, &l);
    if (status == DUET_OK) return selected(m, &l);
    fail_within(status, "%s(m: %s)", who, view_text(m, text));
    return NULL;
}

duet_matrix *(duet_indexed_by)(duet_matrix *m, int count, const duet_index_entry *index)
{
    if (matrix_check("duet_indexed", m)) return NULL;
    return index_matrix("duet_indexed", m, count, index);
}

/* m with one entry for one axis. */
static duet_matrix *index_axis(const char *who, duet_matrix *m, int axis, duet_index_entry entry)
{
    duet_index_entry index[DUET_RANK_MAX];
    if (matrix_check(who, m) || view_check_axis(who, "m", m, m->at.rank, &axis)) return NULL;
    for (int a = 0; a < axis; a++) index[a] = DUET_ALL;
    index[axis] = entry;
    return index_matrix(who, m, axis + 1, index);
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
