/* reshape.c - views of the same elements along other axes. */
#include "dtype.h"
#include "min_max.h"
#include "status.h"
#include "view.h"
#include <stdlib.h>
#include <string.h>

duet_status view_check_rank(const char *who, const duet_matrix *m, int least, int most)
{
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    if (m->at.rank >= least && m->at.rank <= most) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(m: %s): m must have %s%d %s", who, view_text(m, text),
                most > least ? "at least " : "", least, axes_word(least));
}

duet_status view_check_axis(const char *who, const char *name, const duet_matrix *m, int rank, int *axis)
{
    char text[SHAPE_TEXT];
    const int given = *axis;
    if (given < 0) *axis += rank;
    if (*axis >= 0 && *axis < rank) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(%s: %s): axis %d is out of range; it must be from %d to %d", who, name,
                view_text(m, text), given, -rank, rank - 1);
}

/* ---- reordered axes ---- */

duet_matrix *(duet_transposed)(duet_matrix *m)
{
    if (matrix_check("duet_transposed", m)) return NULL;
    layout at = m->at;
    for (int a = 0; a < at.rank; a++) {
        at.size[a] = m->at.size[at.rank - 1 - a];
        at.stride[a] = m->at.stride[at.rank - 1 - a];
    }
    return view_of(m, &at, 0);
}

duet_matrix *(duet_permuted_axes)(duet_matrix *m, int rank, const int *axis)
{
    const char *who = "duet_permuted";
    char text[SHAPE_TEXT];
    unsigned seen = 0;
    if (matrix_check(who, m)) return NULL;
    layout at = m->at;
    if (rank != at.rank || (rank > 0 && !axis)) {
        fail(DUET_BAD_SHAPE, "%s(m: %s): the list must name all %d axes, not %d", who, view_text(m, text),
             at.rank, rank);
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        int a = axis[i];
        if (view_check_axis(who, "m", m, rank, &a)) return NULL;
        if (seen >> a & 1) {
            fail(DUET_BAD_ARGUMENT, "%s(m: %s): axis %d is named twice", who, view_text(m, text), a);
            return NULL;
        }
        seen |= 1u << a;
        at.size[i] = m->at.size[a];
        at.stride[i] = m->at.stride[a];
    }
    return view_of(m, &at, 0);
}

/* ---- inserted, removed and broadcast axes ---- */

duet_matrix *(duet_expanded)(duet_matrix *m, int axis)
{
    const char *who = "duet_expanded";
    char text[SHAPE_TEXT];
    if (view_check_rank(who, m, 0, DUET_RANK_MAX)) return NULL;
    layout at = m->at;
    if (view_check_axis(who, "m", m, at.rank + 1, &axis)) return NULL;
    if (at.rank == DUET_RANK_MAX) {
        fail(DUET_BAD_SHAPE, "%s(m: %s): the view would have %d axes, more than %d", who, view_text(m, text),
             at.rank + 1, DUET_RANK_MAX);
        return NULL;
    }
    layout_insert(&at, axis, 1, 1);
    return view_of(m, &at, 0);
}

duet_matrix *(duet_squeezed)(duet_matrix *m, int axis)
{
    const char *who = "duet_squeezed";
    char text[SHAPE_TEXT];
    if (matrix_check(who, m) || view_check_axis(who, "m", m, m->at.rank, &axis)) return NULL;
    layout at = m->at;
    if (at.size[axis] != 1) {
        fail(DUET_BAD_SHAPE, "%s(m: %s): axis %d must have size 1, not %lld", who, view_text(m, text), axis,
             (long long)at.size[axis]);
        return NULL;
    }
    layout_drop(&at, axis);
    return view_of(m, &at, 0);
}

duet_matrix *(duet_diagonal)(duet_matrix *m, int64_t offset)
{
    const char *who = "duet_diagonal";
    if (view_check_rank(who, m, 2, DUET_RANK_MAX)) return NULL;
    layout at = m->at;
    const int64_t down = larger(-offset, 0), across = larger(offset, 0);
    const int64_t n = larger(smaller(at.size[0] - down, at.size[1] - across), 0);
    const int64_t stride = at.stride[0] + at.stride[1];
    layout_drop(&at, 0);
    layout_drop(&at, 0);
    layout_insert(&at, at.rank, n, stride);
    return view_of(m, &at, n ? down * m->at.stride[0] + across * m->at.stride[1] : 0);
}

duet_matrix *(duet_broadcast_to_shape)(duet_matrix *m, int rank, const int64_t *size)
{
    const char *who = "duet_broadcast_to";
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    shape wide = { .rank = rank }, own, both;
    if (matrix_check(who, m) || shape_check(who, m->at.type, rank, size)) return NULL;
    own.rank = m->at.rank;
    memcpy(own.size, m->at.size, sizeof own.size);
    if (rank) memcpy(wide.size, size, (size_t)rank * sizeof *size);
    if (!shape_broadcast(&own, &wide, &both) || !shape_equal(&both, &wide)) {
        fail(DUET_BAD_SHAPE, "%s(m: %s): m does not broadcast to %s", who, view_text(m, from),
             shape_text(to, m->at.type, rank, size));
        return NULL;
    }
    const layout at = layout_broadcast(&m->at, &wide);
    return view_of(m, &at, 0);
}

/* ---- reshaping ---- */

/* At most one size may be -1. It is replaced by the size that gives `count` elements. false: there is
 * no such size. */
static bool infer(int64_t count, int rank, const int64_t *size, int64_t *out)
{
    int64_t others = 1;
    int open = -1;
    for (int a = 0; a < rank; a++) {
        out[a] = size[a];
        if (size[a] == -1 && open >= 0) return false;
        if (size[a] == -1) open = a;
        else if (__builtin_mul_overflow(others, size[a], &others))
            others = 0; /* if no size is -1, the caller reports the overflow */
    }
    if (open < 0) return true;
    if (others <= 0 || count % others) return false;
    out[open] = count / others;
    return true;
}

/* "duet_reshaped(m: f32[2,3]): to be f32[5], m must have the same number of elements" */
static duet_matrix *no_reshape(const duet_matrix *m, int rank, const int64_t *size, const char *what)
{
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    fail(DUET_BAD_SHAPE, "duet_reshaped(m: %s): to become %s, %s", view_text(m, from),
         shape_text(to, m->at.type, rank, size), what);
    return NULL;
}

static duet_matrix *needs_copy(const duet_matrix *m, int rank, const int64_t *size)
{
    char from[SHAPE_TEXT], text[SHAPE_TEXT + 100];
    snprintf(text, sizeof text,
             "m must be copied (%lld bytes): assign m to a new %s with duet_set, and "
             "reshape that",
             (long long)m->count * (long long)dtypes[m->at.type].bytes, view_text(m, from));
    return no_reshape(m, rank, size, text);
}

duet_matrix *(duet_reshaped_shape)(duet_matrix *m, int rank, const int64_t *size)
{
    const char *who = "duet_reshaped";
    int64_t sizes[DUET_RANK_MAX];
    layout at;
    if (matrix_check(who, m)) return NULL;
    const bool sized = rank >= 0 && rank <= DUET_RANK_MAX && (size || !rank),
               inferred = sized && infer(m->count, rank, size, sizes);
    if (sized && !inferred)
        return no_reshape(
            m, rank, size,
            "at most one size may be -1, and the product of the others must divide the number of elements");
    if (shape_check(who, m->at.type, rank, sized ? sizes : size)) return NULL;
    layout_dense(&at, m->at.type, rank, sizes);
    if (layout_count(&at) != m->count)
        return no_reshape(m, rank, sizes, "m must have the same number of elements");
    const shape to = shape_of_layout(&at);
    at = m->at;
    if (!layout_reshape(&at, &to)) return needs_copy(m, rank, sizes);
    return view_of(m, &at, 0);
}
