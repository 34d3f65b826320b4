/* view_model.h - a model of views: the elements of the base matrix as a list in row-major order,
 * without strides. It applies random view operations to the library and to the list. */
#ifndef VIEW_MODEL_H
#define VIEW_MODEL_H

#include "common.h"
#include "indices.h"

enum { MOST = 400 }; /* elements */

/* A view operation, to be applied to formulas as well. */
enum made_kind {
    MADE_RANGE,
    MADE_PICK,
    MADE_FLIP,
    MADE_PERMUTE,
    MADE_TRANSPOSE,
    MADE_EXPAND,
    MADE_SQUEEZE,
    MADE_DIAGONAL,
    MADE_RESHAPE,
    MADE_BROADCAST,
    MADE_INDEX
};
typedef struct made_view {
    enum made_kind kind;
    int rank, axis[DUET_RANK_MAX];
    int64_t x[DUET_RANK_MAX];
    int entries;
    duet_index_entry entry[2 * DUET_RANK_MAX];
} made_view;

enum { MADE_MOST = 16 };

typedef struct shown {
    duet_matrix *m; /* NULL: only formulas are tested */
    made_view view[MADE_MOST];
    int views;
    int rank;
    int64_t size[DUET_RANK_MAX], n, at[MOST];
    char made[1000]; /* the operations, for the report */
} shown;

static uint64_t seed;

static int64_t below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}
static int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }

/* ---- the model ---- */

static int64_t count_of(int rank, const int64_t *size)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++) n *= size[a];
    return n;
}

static int64_t element_offset(const shown *v, const int64_t *i)
{
    int64_t k = 0;
    for (int a = 0; a < v->rank; a++) k = k * v->size[a] + i[a];
    return k;
}

/* Element i of the new view is element old(i) of v. */
typedef void remap(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old);

static void change(shown *v, int rank, const int64_t *size, remap *old, const int64_t *arg)
{
    int64_t at[MOST], n = count_of(rank, size), i[DUET_RANK_MAX] = { 0 }, from[DUET_RANK_MAX];
    for (int64_t k = 0; k < n; k++, step_on(rank, size, i)) {
        old(v, arg, i, from);
        at[k] = v->at[element_offset(v, from)];
    }
    v->rank = rank;
    v->n = n;
    if (rank) memmove(v->size, size, (size_t)rank * sizeof *size);
    memcpy(v->at, at, (size_t)n * sizeof *at);
}

static bool repeats(const shown *v)
{
    bool seen[MOST] = { 0 }, twice = false;
    for (int64_t k = 0; k < v->n; k++) {
        twice |= seen[v->at[k]];
        seen[v->at[k]] = true;
    }
    return twice;
}

/* ---- one operation, by the library and by the model ---- */

static void said(shown *v, duet_matrix *m, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void said(shown *v, duet_matrix *m, const char *format, ...)
{
    const size_t n = strlen(v->made);
    va_list ap;
    va_start(ap, format);
    vsnprintf(v->made + n, sizeof v->made - n, format, ap);
    va_end(ap);
    if (!v->m) return;
    CHECK(m, "%s: %s", v->made, duet_error());
    duet_free(&v->m);
    v->m = m;
}

static made_view *note_view(shown *v, enum made_kind kind)
{
    made_view *w = &v->view[v->views++];
    *w = (made_view){ .kind = kind };
    return w;
}

static void note_axis(shown *v, enum made_kind kind, int axis, int64_t x)
{
    made_view *w = note_view(v, kind);
    w->axis[0] = axis;
    w->x[0] = x;
}

static void note_sizes(shown *v, enum made_kind kind, int rank, const int64_t *size)
{
    made_view *w = note_view(v, kind);
    w->rank = rank;
    if (rank) memcpy(w->x, size, (size_t)rank * sizeof *size);
}

static duet_expr view_formula(const made_view *w, duet_expr e)
{
    switch (w->kind) {
    case MADE_RANGE: return duet_range(e, w->axis[0], w->x[0], w->x[1], w->x[2]);
    case MADE_PICK: return duet_pick(e, w->axis[0], w->x[0]);
    case MADE_FLIP: return duet_flip(e, w->axis[0]);
    case MADE_PERMUTE: return duet_permute_at(e, w->rank, w->axis, DUET_HERE);
    case MADE_TRANSPOSE: return duet_transpose(e);
    case MADE_EXPAND: return duet_expand_dims(e, w->axis[0]);
    case MADE_SQUEEZE: return duet_squeeze(e, w->axis[0]);
    case MADE_DIAGONAL: return duet_diagonal_of(e, w->x[0]);
    case MADE_RESHAPE: return duet_reshape_at(e, w->rank, w->x, DUET_HERE);
    case MADE_BROADCAST: return duet_broadcast_at(e, w->rank, w->x, DUET_HERE);
    default: return duet_index_at(e, w->entries, w->entry, DUET_HERE);
    }
}

/* The same operations on a formula. */
static inline duet_expr viewed(const shown *v, duet_expr e)
{
    for (int i = 0; i < v->views; i++) e = view_formula(&v->view[i], e);
    return e;
}

/* The rule of Python's range, by counting. */
static int64_t range_of(int64_t size, int64_t start, int64_t stop, int64_t by, int64_t *first)
{
    int64_t n = 0;
    if (start == DUET_OPEN) start = by > 0 ? 0 : size - 1;
    else if (start < 0) start += size;
    if (stop == DUET_OPEN) stop = by > 0 ? size : -1;
    else if (stop < 0) stop = stop + size < -1 ? -1 : stop + size;
    if (by > 0 && start < 0) start = 0;
    if (by < 0 && start >= size) start = size - 1;
    *first = start;
    for (int64_t k = start; by > 0 ? k < stop && k < size : k > stop && k >= 0; k += by) n++;
    return n;
}

static void old_stepped(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old)
{
    for (int a = 0; a < v->rank; a++) old[a] = i[a];
    old[arg[0]] = arg[1] + i[arg[0]] * arg[2];
}

static int64_t some_bound(int64_t size) { return below(3) ? between(-size - 2, size + 2) : DUET_OPEN; }

static void step_axis(shown *v)
{
    if (!v->rank) return;
    const int axis = (int)below(v->rank);
    const int64_t start = some_bound(v->size[axis]), stop = some_bound(v->size[axis]),
                  sign = below(2) ? 1 : -1, by = sign * between(1, 3);
    int64_t size[DUET_RANK_MAX], first;
    memcpy(size, v->size, sizeof size);
    size[axis] = range_of(v->size[axis], start, stop, by, &first);
    if (size[axis] == 0 && below(10)) return; /* mostly not empty */
    duet_matrix *m = duet_stepped(v->m, axis - (int)below(2) * v->rank, start, stop, by);
    change(v, v->rank, size, old_stepped, (int64_t[]){ axis, first, by });
    made_view *w = note_view(v, MADE_RANGE);
    *w = (made_view){ .kind = MADE_RANGE, .axis = { axis }, .x = { start, stop, by } };
    said(v, m, " stepped(%d, %lld, %lld, %lld)", axis, (long long)start, (long long)stop, (long long)by);
}

static void old_with_axis(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old)
{
    for (int a = 0, k = 0; a < v->rank; a++) old[a] = a == arg[0] ? arg[1] : i[k++];
}

static void without(const shown *v, int axis, int64_t *size)
{
    for (int a = 0, k = 0; a < v->rank; a++)
        if (a != axis) size[k++] = v->size[a];
}

static void pick(shown *v)
{
    int64_t size[DUET_RANK_MAX];
    const int axis = v->rank ? (int)below(v->rank) : 0;
    if (!v->rank || !v->size[axis]) return;
    const int64_t i = below(v->size[axis]);
    duet_matrix *m = duet_picked(v->m, axis, below(2) ? i : i - v->size[axis]);
    without(v, axis, size);
    change(v, v->rank - 1, size, old_with_axis, (int64_t[]){ axis, i });
    note_axis(v, MADE_PICK, axis, i);
    said(v, m, " picked(%d, %lld)", axis, (long long)i);
}

static void flip(shown *v)
{
    if (!v->rank) return;
    const int axis = (int)below(v->rank);
    duet_matrix *m = duet_flipped(v->m, axis);
    change(v, v->rank, v->size, old_stepped, (int64_t[]){ axis, v->size[axis] - 1, -1 });
    note_axis(v, MADE_FLIP, axis, 0);
    said(v, m, " flipped(%d)", axis);
}

static void old_permuted(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old)
{
    for (int a = 0; a < v->rank; a++) old[arg[a]] = i[a];
}

static void permute(shown *v)
{
    int axis[DUET_RANK_MAX];
    int64_t size[DUET_RANK_MAX], arg[DUET_RANK_MAX];
    for (int a = 0; a < v->rank; a++) axis[a] = a;
    for (int a = v->rank; a-- > 1;) {
        const int b = (int)below(a + 1), t = axis[a];
        axis[a] = axis[b];
        axis[b] = t;
    }
    for (int a = 0; a < v->rank; a++) {
        size[a] = v->size[axis[a]];
        arg[a] = axis[a];
    }
    duet_matrix *m = duet_permuted_axes(v->m, v->rank, axis);
    change(v, v->rank, size, old_permuted, arg);
    made_view *w = note_view(v, MADE_PERMUTE);
    w->rank = v->rank;
    memcpy(w->axis, axis, (size_t)v->rank * sizeof *axis);
    said(v, m, " permuted");
}

static void transpose(shown *v)
{
    int64_t size[DUET_RANK_MAX], arg[DUET_RANK_MAX];
    for (int a = 0; a < v->rank; a++) {
        arg[a] = v->rank - 1 - a;
        size[a] = v->size[arg[a]];
    }
    duet_matrix *m = duet_transposed(v->m);
    change(v, v->rank, size, old_permuted, arg);
    note_view(v, MADE_TRANSPOSE);
    said(v, m, " transposed");
}

static void old_without_axis(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old)
{
    for (int a = 0; a < v->rank; a++) old[a] = i[a + (a >= arg[0])];
}

static void expand(shown *v)
{
    int64_t size[DUET_RANK_MAX];
    if (v->rank == DUET_RANK_MAX) return;
    const int axis = (int)below(v->rank + 1);
    duet_matrix *m = duet_expanded(v->m, below(2) ? axis : axis - v->rank - 1);
    for (int a = 0; a <= v->rank; a++) size[a] = a == axis ? 1 : v->size[a - (a > axis)];
    change(v, v->rank + 1, size, old_without_axis, (int64_t[]){ axis });
    note_axis(v, MADE_EXPAND, axis, 0);
    said(v, m, " expanded(%d)", axis);
}

static void squeeze(shown *v)
{
    int64_t size[DUET_RANK_MAX];
    for (int axis = 0; axis < v->rank; axis++) {
        if (v->size[axis] != 1) continue;
        duet_matrix *m = duet_squeezed(v->m, axis);
        without(v, axis, size);
        change(v, v->rank - 1, size, old_with_axis, (int64_t[]){ axis, 0 });
        note_axis(v, MADE_SQUEEZE, axis, 0);
        said(v, m, " squeezed(%d)", axis);
        return;
    }
}

static void old_diagonal(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old)
{
    const int64_t k = i[v->rank - 2];
    old[0] = k + (arg[0] < 0 ? -arg[0] : 0);
    old[1] = k + (arg[0] > 0 ? arg[0] : 0);
    for (int a = 2; a < v->rank; a++) old[a] = i[a - 2];
}

static void diagonal(shown *v)
{
    int64_t size[DUET_RANK_MAX], n = 0;
    if (v->rank < 2) return;
    const int64_t offset = between(-v->size[0], v->size[1]);
    for (int64_t i = 0; i < v->size[0]; i++) n += i + offset >= 0 && i + offset < v->size[1];
    if (!n && below(10)) return;
    for (int a = 2; a < v->rank; a++) size[a - 2] = v->size[a];
    size[v->rank - 2] = n;
    duet_matrix *m = duet_diagonal(v->m, offset);
    change(v, v->rank - 1, size, old_diagonal, (int64_t[]){ offset });
    note_axis(v, MADE_DIAGONAL, 0, offset);
    said(v, m, " diagonal(%lld)", (long long)offset);
}

static void old_broadcast(const shown *v, const int64_t *arg, const int64_t *i, int64_t *old)
{
    for (int a = 0; a < v->rank; a++) old[a] = v->size[a] == 1 ? 0 : i[a + arg[0]];
}

static void broadcast(shown *v)
{
    int64_t size[DUET_RANK_MAX], more = below(3);
    if (v->rank + more > DUET_RANK_MAX || below(3)) return;
    for (int a = 0; a < v->rank + more; a++) {
        if (a < more) size[a] = between(1, 3);
        else size[a] = v->size[a - more];
        if (a >= more && size[a] == 1 && below(2)) size[a] = between(1, 3);
    }
    if (count_of(v->rank + (int)more, size) > MOST) return;
    duet_matrix *m = duet_broadcast_to_shape(v->m, v->rank + (int)more, size);
    change(v, v->rank + (int)more, size, old_broadcast, (int64_t[]){ more });
    note_sizes(v, MADE_BROADCAST, v->rank, v->size);
    said(v, m, " broadcast");
}

/* Can strides reach the elements in these sizes? */
static bool is_affine(const shown *v, int rank, const int64_t *size)
{
    int64_t stride[DUET_RANK_MAX] = { 0 }, unit = 1, i[DUET_RANK_MAX] = { 0 };
    bool is = true;
    for (int a = rank; a-- > 0; unit *= size[a])
        if (size[a] > 1) stride[a] = v->at[unit] - v->at[0];
    for (int64_t k = 0; k < v->n; k++, step_on(rank, size, i)) {
        int64_t at = v->at[0];
        for (int a = 0; a < rank; a++) at += i[a] * stride[a];
        is &= at == v->at[k];
    }
    return is;
}

static void reshape(shown *v)
{
    int64_t size[DUET_RANK_MAX], left = v->n;
    int rank = 0;
    if (!v->n) return;
    for (; rank < 5 && (left > 1 || !below(3)); rank++) {
        int64_t s = between(1, left);
        while (left % s) s--;
        if (rank == 4) size[rank] = left;
        else size[rank] = s;
        left /= size[rank];
    }
    if (left > 1) return;
    const bool can = is_affine(v, rank, size);
    int64_t asked[DUET_RANK_MAX];
    memcpy(asked, size, sizeof asked);
    if (rank && below(2)) asked[below(rank)] = -1;
    duet_matrix *m = duet_reshaped_shape(v->m, rank, asked);
    if (v->m) CHECK(!m == !can, "%s reshaped: %s", v->made, can ? duet_error() : "there is no such view");
    CHECK(m || !v->m || strstr(duet_error(), "must be copied"), "%s: %s", v->made, duet_error());
    if (!m && v->m) return;
    v->rank = rank;
    memcpy(v->size, size, sizeof size);
    note_sizes(v, MADE_RESHAPE, rank, asked);
    said(v, m, " reshaped");
}

/* An index with several entries; the same as operations on single axes one after the other. */
static void index_all(shown *v)
{
    duet_index_entry entry[2 * DUET_RANK_MAX];
    int n = 0, rank = v->rank, k = 0;
    const int rest = (int)below(v->rank + 1), skipped = rest < v->rank ? (int)below(v->rank - rest + 1) : 0;
    shown w = *v;
    for (int a = 0; a < v->rank; a++) {
        if (a == rest && skipped) {
            entry[n++] = DUET_REST;
            a += skipped - 1;
            k += skipped;
            continue;
        }
        const int64_t what = below(4), size = v->size[a];
        int64_t extent[DUET_RANK_MAX], first;
        memcpy(extent, w.size, sizeof extent);
        if (what == 0 && size) {
            const int64_t i = below(size);
            entry[n++] = DUET_AT(i - (below(2) ? size : 0));
            without(&w, k, extent);
            change(&w, w.rank - 1, extent, old_with_axis, (int64_t[]){ k, i });
        } else if (what == 1 && w.rank < DUET_RANK_MAX && rank < DUET_RANK_MAX) {
            entry[n++] = DUET_NEW;
            rank++;
            a--;
            for (int b = 0; b <= w.rank; b++) extent[b] = b == k ? 1 : w.size[b - (b > k)];
            change(&w, w.rank + 1, extent, old_without_axis, (int64_t[]){ k });
            k++;
        } else {
            const int64_t start = some_bound(size), stop = some_bound(size),
                          by = (below(2) ? 1 : -1) * between(1, 3);
            entry[n++] = DUET_STEP(start, stop, by);
            extent[k] = range_of(size, start, stop, by, &first);
            change(&w, w.rank, extent, old_stepped, (int64_t[]){ k, first, by });
            k++;
        }
    }
    if (!w.n && below(10)) return;
    duet_matrix *m = duet_indexed_by(v->m, n, entry);
    *v = w;
    made_view *made = note_view(v, MADE_INDEX);
    made->entries = n;
    memcpy(made->entry, entry, (size_t)n * sizeof *entry);
    said(v, m, " indexed by %d", n);
}

typedef void operation(shown *v);
static operation *const operations[] = { step_axis, step_axis, pick,      flip,     flip,
                                         permute,   transpose, expand,    squeeze,  diagonal,
                                         reshape,   reshape,   index_all, broadcast };

#endif
