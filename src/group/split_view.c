/* split_view.c - views of a matrix on a group as views of its parts.
 *
 * The offset of an element in the whole array has three digits: outer, for the axes before the split one;
 * along, for the split axis; and inner, for the axes after it. along is less than `length`, and inner less
 * than `inner`. A view of the array is also a view of each part if each of its axes changes only one digit,
 * and no digit overflows. */
#include "split_matrix.h"
#include <stdlib.h>

/* The strides of the digits. */
typedef struct digits {
    int64_t inner, length;
} digits;

enum digit { INNER, ALONG, OUTER };

static digits digits_of(const split *s)
{
    digits d = { 1, s->whole.size[s->at.axis] };
    for (int a = s->at.axis + 1; a < s->whole.rank; a++) d.inner *= s->whole.size[a];
    return d;
}

/* For a view: which digit each axis changes, by how much, and the first value of each digit. */
typedef struct moves {
    enum digit digit[DUET_RANK_MAX];
    int64_t by[DUET_RANK_MAX], start[3];
    int along; /* the axis that changes ALONG; -1: none */
} moves;

static enum digit digit_of(const digits *d, int64_t stride)
{
    if (stride % d->inner) return INNER;
    return stride % (d->inner * d->length) ? ALONG : OUTER;
}

/* Does the digit stay within its limit, for all indices of the view? */
static bool is_within(const duet_matrix *m, const moves *v, enum digit digit, int64_t limit)
{
    int64_t low = v->start[digit], high = low;
    for (int a = 0; a < m->at.rank; a++) {
        if (v->digit[a] != digit) continue;
        const int64_t reach = (m->at.size[a] - 1) * v->by[a];
        *(reach < 0 ? &low : &high) += reach;
    }
    return low >= 0 && high < limit;
}

/* Strides of 0, and those of axes with one element, may belong to any digit; OUTER is always possible. */
static bool find_moves(const duet_matrix *m, const split *s, moves *v)
{
    const digits d = digits_of(s);
    const int64_t unit[] = { 1, d.inner, d.inner * d.length };
    if (!m->count || !unit[OUTER]) return false;
    v->along = -1;
    v->start[INNER] = m->offset % d.inner;
    v->start[ALONG] = m->offset / d.inner % d.length;
    v->start[OUTER] = m->offset / unit[OUTER];
    for (int a = 0; a < m->at.rank; a++) {
        const int64_t stride = m->at.size[a] > 1 ? m->at.stride[a] : 0;
        v->digit[a] = stride ? digit_of(&d, stride) : OUTER;
        v->by[a] = stride / unit[v->digit[a]];
        if (v->digit[a] != ALONG) continue;
        if (v->along >= 0 || v->by[a] < 0) return false;
        v->along = a;
    }
    return is_within(m, v, INNER, d.inner) && is_within(m, v, ALONG, d.length);
}

static bool is_whole(const duet_matrix *m, const split *s)
{
    const shape own = shape_of_layout(&m->at);
    return m->dense && m->offset == 0 && shape_equal(&own, &s->whole);
}

/* The first index of the view whose element is at `bound` of the split axis or after it. */
static int64_t index_from(const moves *v, const duet_matrix *m, int64_t bound)
{
    const int64_t by = v->by[v->along], start = v->start[ALONG], n = m->at.size[v->along];
    const int64_t i = bound <= start ? 0 : (bound - start + by - 1) / by;
    return i < n ? i : n;
}

bool split_distribution(const duet_matrix *m, distribution *at)
{
    const split *s = m->storage->split;
    moves v;
    at->axis = s->at.axis;
    if (s->at.axis < 0) return true;
    if (is_whole(m, s)) {
        for (int r = 0; r <= s->group->ranks; r++) at->bounds[r] = s->at.bounds[r];
        return true;
    }
    if (!find_moves(m, s, &v) || v.along < 0) return false;
    at->axis = v.along;
    for (int r = 0; r <= s->group->ranks; r++) at->bounds[r] = index_from(&v, m, s->at.bounds[r]);
    return true;
}

/* The view m of a part, which has other strides of the outer digit than the whole array. from: the first
 * index of the split axis, in the whole array. */
static duet_matrix *view_of_part(const duet_matrix *m, const split *s, int index, const moves *v,
                                 const layout *like, int64_t from, bool is_empty)
{
    const digits d = digits_of(s);
    const int r = s->group->first + index;
    const int64_t length = s->at.bounds[r + 1] - s->at.bounds[r];
    const int64_t unit[] = { 1, d.inner, d.inner * length };
    layout at = *like;
    const int added = at.rank - m->at.rank;
    for (int a = 0; a < m->at.rank; a++) at.stride[a + added] = v->by[a] * unit[v->digit[a]];
    const int64_t offset =
        v->start[INNER] + v->start[OUTER] * unit[OUTER] + (from - s->at.bounds[r]) * unit[ALONG];
    return matrix_share(s->part[index]->storage, &at, is_empty ? 0 : offset);
}

static duet_matrix *local_view(const duet_matrix *m, const split *s, int index, const moves *v)
{
    const int r = s->group->first + index;
    const int64_t from = index_from(v, m, s->at.bounds[r]), upto = index_from(v, m, s->at.bounds[r + 1]);
    layout at = m->at;
    at.size[v->along] = upto - from;
    return view_of_part(m, s, index, v, &at, v->start[ALONG] + from * v->by[v->along], upto == from);
}

duet_matrix *split_local(const duet_matrix *m, int index)
{
    const split *s = m->storage->split;
    duet_matrix *part = s->part[index];
    moves v;
    if (s->at.axis < 0 || s->group->ranks == 1) return matrix_share(part->storage, &m->at, m->offset);
    if (is_whole(m, s)) return matrix_share(part->storage, &part->at, 0);
    if (!find_moves(m, s, &v)) return NULL;
    return local_view(m, s, index, &v);
}

/* ---- views of one index of the split axis ---- */

bool split_owner(const duet_matrix *m, int *rank)
{
    const split *s = m->storage->split;
    moves v;
    if (s->at.axis < 0 || m->at.rank == DUET_RANK_MAX || !find_moves(m, s, &v) || v.along >= 0) return false;
    *rank = 0;
    while (s->at.bounds[*rank + 1] <= v.start[ALONG]) ++*rank;
    return true;
}

duet_matrix *split_owned(const duet_matrix *m, int index)
{
    const split *s = m->storage->split;
    moves v;
    int owner;
    layout at = m->at;
    if (!find_moves(m, s, &v) || !split_owner(m, &owner)) return NULL;
    const bool is_own = owner == s->group->first + index;
    layout_insert(&at, 0, is_own, 1);
    return view_of_part(m, s, index, &v, &at, v.start[ALONG], !is_own);
}

/* ---- parts of views ---- */

/* at->bounds must be freed. false: m is not split along one axis, or there is no memory */
static bool find_bounds(const duet_matrix *m, distribution *at)
{
    const duet_group *g = m->storage->split->group;
    *at = (distribution){ -1, malloc(((size_t)g->ranks + 1) * sizeof *at->bounds) };
    int64_t *bounds = at->bounds;
    if (bounds && split_distribution(m, at)) return true;
    free(bounds);
    return false;
}

bool split_has_parts(const duet_matrix *m)
{
    distribution at;
    int owner;
    if (m->storage->split->group->ranks == 1 || split_owner(m, &owner)) return true;
    if (!find_bounds(m, &at)) return false;
    free(at.bounds);
    return true;
}

static part_runs runs_of(const duet_matrix *m, const distribution *at, int rank)
{
    int64_t inner = 1;
    if (at->axis < 0) return (part_runs){ 0, m->count, m->count };
    for (int a = at->axis + 1; a < m->at.rank; a++) inner *= m->at.size[a];
    return (part_runs){ at->bounds[rank] * inner, (at->bounds[rank + 1] - at->bounds[rank]) * inner,
                        m->at.size[at->axis] * inner };
}

duet_matrix *split_part(const duet_matrix *m, int index, part_runs *runs)
{
    const split *s = m->storage->split;
    distribution at = replicated();
    int owner;
    *runs = runs_of(m, &at, 0);
    if (s->at.axis < 0 || s->group->ranks == 1) return split_local(m, index);
    if (split_owner(m, &owner)) return split_owned(m, index);
    if (!find_bounds(m, &at)) return NULL;
    *runs = runs_of(m, &at, s->group->first + index);
    free(at.bounds);
    return split_local(m, index);
}

duet_matrix *split_like(const duet_matrix *m, duet_dtype type)
{
    const shape whole = shape_of_layout(&m->at);
    distribution at;
    if (!find_bounds(m, &at)) at = replicated();
    duet_matrix *like = split_new(m->storage->split->group, type, &whole, &at);
    free(at.bounds);
    return like;
}
