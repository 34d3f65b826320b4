/* arrange.c - statements that fill a matrix with elements of others: concatenate, stack, tile,
 * repeat, pad, roll. Each is a sequence of assignments to views of the destination, which are
 * planned like those of a user. */
#include "min_max.h"
#include "statement.h"
#include "status.h"
#include "thread.h"
#include "view.h"
#include <stdlib.h>
#include <string.h>

/* A running statement: its name, its destination, and the number of assignments that have run. */
typedef struct arranging {
    const char *who;
    duet_matrix *to;
    int done;
} arranging;

/* ---- assignments ---- */

/* to = e. Frees the view `to`; if it is NULL, there was no memory for it. */
static duet_status put(arranging *x, duet_matrix *to, duet_expr e)
{
    if (!to) {
        (duet_drop)(e);
        return DUET_NO_MEMORY;
    }
    duet_status s = to->count ? statement_part(x->who, to, e) : (duet_drop)(e);
    x->done += to->count > 0 && s == DUET_OK;
    return record_own_or_free(to, s);
}

static duet_status put_matrix(arranging *x, duet_matrix *to, duet_matrix *from)
{
    if (!to || !from) {
        duet_free(&to);
        duet_free(&from);
        return DUET_NO_MEMORY;
    }
    duet_status s = put(x, to, duet_of_matrix(from));
    return record_own_or_free(from, s);
}

/* A view of `count` elements along an axis, starting at `from`. */
static duet_matrix *part_of(const duet_matrix *m, int axis, int64_t from, int64_t count)
{
    layout at = m->at;
    at.size[axis] = count;
    return view_of(m, &at, from * at.stride[axis]);
}

static duet_matrix *whole(const duet_matrix *m) { return view_of(m, &m->at, 0); }

/* ---- checks ---- */

/* The documented name of the source. */
static const char *source_name(const char *who)
{
    return strcmp(who, "duet_concatenate") && strcmp(who, "duet_stack") ? "from" : "part";
}

static duet_status check(const char *who, const duet_matrix *to, const duet_matrix *from)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    TRY(matrix_check(who, to));
    TRY(matrix_check(who, from));
    if (to->at.type == from->at.type) return matrix_check_writable(who, to);
    return fail(DUET_BAD_TYPE, "%s(to: %s, %s: %s): the matrices must have the same element type", who,
                view_text(to, a), source_name(who), view_text(from, b));
}

static duet_status wrong_shape(const char *who, const duet_matrix *to, const duet_matrix *from,
                               const char *rule)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    return fail(DUET_BAD_SHAPE, "%s(to: %s, %s: %s): %s", who, view_text(to, a), source_name(who),
                view_text(from, b), rule);
}

/* Have both the same sizes, except along axis `but`? -1: along all axes. */
static bool alike(const duet_matrix *a, const duet_matrix *b, int but)
{
    bool same = a->at.rank == b->at.rank;
    for (int i = 0; i < a->at.rank && same; i++) same = i == but || a->at.size[i] == b->at.size[i];
    return same;
}

/* ---- sources ---- */

/* Copies a source that overlaps the destination, so that assignments may run in any order. */
static duet_status take_source(arranging *x, const duet_matrix *from, duet_matrix **taken)
{
    if (matrix_overlap(x->to, from) == APART) {
        *taken = whole(from);
        return *taken ? DUET_OK : DUET_NO_MEMORY;
    }
    *taken = (duet_new_shape)(from->at.type, from->at.rank, from->at.size);
    if (!*taken) return DUET_NO_MEMORY;
    duet_status s = statement_part(x->who, *taken, duet_of_matrix(from));
    if (s != DUET_OK) duet_free(taken);
    return s;
}

typedef duet_status on_source(arranging *x, const duet_matrix *from, const void *with);

/* Does nothing if there are no elements, however large the sizes of other axes are. */
static duet_status with_source(arranging *x, const duet_matrix *from, on_source *act, const void *with)
{
    duet_matrix *taken;
    if (!x->to->count) return DUET_OK;
    TRY(take_source(x, from, &taken));
    duet_status s = act(x, taken, with);
    return record_own_or_free(taken, s);
}

/* Ends a statement. If it fails half-way, the destination has lost its elements. */
static duet_status end(arranging *x, duet_status s, const char *site)
{
    thread *t = thread_get();
    if (s != DUET_OK && x->done && !t->explaining) matrix_lost(x->to);
    return statement_ends(s, site);
}

static arranging begin(const char *who, duet_matrix *to, const char *site)
{
    thread_get()->site = site;
    return (arranging){ .who = who, .to = to };
}

/* ---- several into one ---- */

typedef struct parts {
    const duet_matrix *const *of;
    int count, axis;
    bool stacked;
} parts;

static duet_status check_parts(const char *who, const duet_matrix *to, parts *p)
{
    const char *too_long = "the sizes of the parts must add up to the size of to along the axis";
    int64_t along = 0;
    TRY(matrix_check(who, to));
    if (p->count < 1 || !p->of) return fail(DUET_BAD_ARGUMENT, "%s: there must be at least one part", who);
    for (int k = 0; k < p->count; k++) TRY(check(who, to, p->of[k]));
    TRY(view_check_axis(who, "to", to, to->at.rank, &p->axis));
    for (int k = 0; k < p->count; k++) {
        const duet_matrix *m = p->of[k];
        layout slot = to->at;
        if (p->stacked) layout_drop(&slot, p->axis);
        if (slot.rank != m->at.rank)
            return wrong_shape(who, to, m,
                               p->stacked ? "part must have one axis less than to"
                                          : "to and part must have the same number of axes");
        for (int a = 0; a < slot.rank; a++)
            if ((p->stacked || a != p->axis) && slot.size[a] != m->at.size[a])
                return wrong_shape(who, to, m, "to and part must have the same sizes along the other axes");
        const int64_t own = p->stacked ? 1 : m->at.size[p->axis];
        if (own > to->at.size[p->axis] - along) return wrong_shape(who, to, p->of[0], too_long);
        along += own;
    }
    return along == to->at.size[p->axis] ? DUET_OK : wrong_shape(who, to, p->of[0], too_long);
}

/* A view of the destination for the k-th part, which starts at `at`. */
static duet_matrix *part_for(const duet_matrix *to, const parts *p, int k, int64_t at)
{
    layout slot = to->at;
    if (!p->stacked) return part_of(to, p->axis, at, p->of[k]->at.size[p->axis]);
    layout_drop(&slot, p->axis);
    return view_of(to, &slot, at * to->at.stride[p->axis]);
}

/* Copies the sources that overlap the destination before any element is written. */
static duet_status take_sources(arranging *x, const parts *p, duet_matrix **taken)
{
    for (int k = 0; k < p->count; k++) TRY(take_source(x, p->of[k], &taken[k]));
    return DUET_OK;
}

static duet_status put_sources(arranging *x, const parts *p, duet_matrix *const *taken)
{
    int64_t at = 0;
    for (int k = 0; k < p->count; k++) {
        TRY(put(x, part_for(x->to, p, k, at), duet_of_matrix(taken[k])));
        at += p->stacked ? 1 : taken[k]->at.size[p->axis];
    }
    return DUET_OK;
}

static duet_status put_parts(arranging *x, parts *p)
{
    TRY(check_parts(x->who, x->to, p));
    duet_matrix **taken = calloc((size_t)p->count, sizeof *taken);
    if (!taken) return fail(DUET_NO_MEMORY, "%s: out of memory for %d parts", x->who, p->count);
    duet_status s = take_sources(x, p, taken);
    if (s == DUET_OK) s = put_sources(x, p, taken);
    for (int k = 0; k < p->count; k++) s = record_own_or_free(taken[k], s);
    free(taken);
    return s;
}

static duet_status join(const char *who, duet_matrix *to, int axis, bool stacked,
                        const duet_matrix *const *part, int count, const char *site)
{
    arranging x = begin(who, to, site);
    return end(&x, put_parts(&x, &(parts){ part, count, axis, stacked }), site);
}

duet_status duet_concatenate_at(duet_matrix *to, int axis, const duet_matrix *const *part, int count,
                                const char *site)
{
    return join("duet_concatenate", to, axis, false, part, count, site);
}

duet_status duet_stack_at(duet_matrix *to, int axis, const duet_matrix *const *part, int count,
                          const char *site)
{
    return join("duet_stack", to, axis, true, part, count, site);
}

/* ---- tile and repeat ---- */

static int axes_to_split(const layout *to, const layout *from, int *first)
{
    int n = 0;
    for (int a = to->rank; a-- > 0;) {
        const int own = a - (to->rank - from->rank);
        if (own >= 0 && from->size[own] > 1 && to->size[a] != from->size[own]) {
            n++;
            *first = a;
        }
    }
    return n;
}

/* Runs one assignment: each repeated axis is split into repetition and element. The source has only
 * the second one. */
static duet_status tile_at_once(arranging *x, const duet_matrix *to, const duet_matrix *from)
{
    layout wide = to->at, own = from->at;
    for (int a = to->at.rank, b = from->at.rank; b-- > 0;) {
        const int64_t size = from->at.size[b], stride = to->at.stride[--a];
        if (size <= 1 || size == to->at.size[a]) continue;
        wide.size[a] = to->at.size[a] / size;
        wide.stride[a] = size * stride;
        layout_insert(&wide, a + 1, size, stride);
        layout_insert(&own, b, 1, 1);
    }
    return put_matrix(x, view_of(to, &wide, 0), view_of(from, &own, 0));
}

/* If that needs too many axes, iterates over one of them. */
static duet_status tile(arranging *x, const duet_matrix *to, const duet_matrix *from)
{
    int axis = 0;
    if (to->at.rank + axes_to_split(&to->at, &from->at, &axis) <= DUET_RANK_MAX)
        return tile_at_once(x, to, from);
    const int64_t each = from->at.size[axis - (to->at.rank - from->at.rank)];
    duet_status s = DUET_OK;
    for (int64_t at = 0; at < to->at.size[axis] && s == DUET_OK; at += each) {
        duet_matrix *one = part_of(to, axis, at, each);
        s = one ? tile(x, one, from) : DUET_NO_MEMORY;
        duet_free(&one);
    }
    return s;
}

static duet_status tile_source(arranging *x, const duet_matrix *from, const void *with)
{
    return tile(x, x->to, from);
}

static duet_status check_tile(const char *who, const duet_matrix *to, const duet_matrix *from)
{
    TRY(check(who, to, from));
    const int off = to->at.rank - from->at.rank;
    if (off < 0) return wrong_shape(who, to, from, "from must not have more axes than to");
    for (int b = 0; b < from->at.rank; b++) {
        const int64_t own = from->at.size[b], wide = to->at.size[b + off];
        if (own ? wide % own : wide)
            return wrong_shape(who, to, from, "the sizes of to must be multiples of those of from");
    }
    return DUET_OK;
}

duet_status duet_tile_at(duet_matrix *to, const duet_matrix *from, const char *site)
{
    arranging x = begin("duet_tile", to, site);
    duet_status s = check_tile(x.who, to, from);
    return end(&x, s == DUET_OK ? with_source(&x, from, tile_source, NULL) : s, site);
}

/* Runs one assignment. If it needs one axis too many, runs one for each repetition. */
static duet_status repeat_source(arranging *x, const duet_matrix *from, const void *with)
{
    const int axis = *(const int *)with;
    const int64_t n = from->at.size[axis], times = n ? x->to->at.size[axis] / n : 0;
    layout wide = x->to->at, own = from->at;
    wide.size[axis] = n;
    wide.stride[axis] *= times;
    if (wide.rank < DUET_RANK_MAX) {
        layout_insert(&wide, axis + 1, times, x->to->at.stride[axis]);
        layout_insert(&own, axis + 1, 1, 1);
        return put_matrix(x, view_of(x->to, &wide, 0), view_of(from, &own, 0));
    }
    for (int64_t k = 0; k < times; k++)
        TRY(put_matrix(x, view_of(x->to, &wide, k * x->to->at.stride[axis]), whole(from)));
    return DUET_OK;
}

static duet_status check_repeat(const char *who, const duet_matrix *to, const duet_matrix *from, int *axis)
{
    TRY(check(who, to, from));
    TRY(view_check_axis(who, "to", to, to->at.rank, axis));
    if (!alike(to, from, *axis))
        return wrong_shape(who, to, from, "to and from must have the same sizes along the other axes");
    const int64_t own = from->at.size[*axis], wide = to->at.size[*axis];
    if (own ? wide % own : wide)
        return wrong_shape(who, to, from,
                           "along the axis, the size of to must be a multiple of that of from");
    return DUET_OK;
}

duet_status duet_repeat_at(duet_matrix *to, const duet_matrix *from, int axis, const char *site)
{
    arranging x = begin("duet_repeat", to, site);
    duet_status s = check_repeat(x.who, to, from, &axis);
    return end(&x, s == DUET_OK ? with_source(&x, from, repeat_source, &axis) : s, site);
}

/* ---- roll ---- */

typedef struct rolling {
    int axis;
    int64_t by;
} rolling;

static duet_status roll_source(arranging *x, const duet_matrix *from, const void *with)
{
    const rolling *r = with;
    const int64_t n = from->at.size[r->axis], by = n ? (r->by % n + n) % n : 0;
    TRY(put_matrix(x, part_of(x->to, r->axis, by, n - by), part_of(from, r->axis, 0, n - by)));
    return put_matrix(x, part_of(x->to, r->axis, 0, by), part_of(from, r->axis, n - by, by));
}

duet_status duet_roll_at(duet_matrix *to, const duet_matrix *from, int axis, int64_t by, const char *site)
{
    arranging x = begin("duet_roll", to, site);
    duet_status s = check(x.who, to, from);
    if (s == DUET_OK) s = view_check_axis(x.who, "to", to, to->at.rank, &axis);
    if (s == DUET_OK && !alike(to, from, -1))
        s = wrong_shape(x.who, to, from, "to and from must have the same shape");
    return end(&x, s == DUET_OK ? with_source(&x, from, roll_source, &(rolling){ axis, by }) : s, site);
}

/* ---- pad ---- */

typedef struct padding {
    const int64_t *before;
    duet_pad_mode mode;
    double value;
} padding;

/* The part of the destination that is filled before axis `axis` is, as offsets from the
 * destination's first element. Along axes before `axis` it has the size of the destination, along
 * later ones that of the source. Along `axis` it extends from low to high and grows; `own` elements
 * of it are the source's. */
typedef struct band {
    layout at;
    int64_t ahead, low, high, own;
    int axis;
} band;

static band band_of(const duet_matrix *to, const duet_matrix *from, const padding *p, int axis)
{
    band b = { .at = to->at, .axis = axis };
    for (int a = axis; a < to->at.rank; a++) {
        b.at.size[a] = from->at.size[a];
        b.ahead += p->before[a] * to->at.stride[a];
    }
    if (axis < to->at.rank) b.high = b.own = from->at.size[axis];
    return b;
}

/* A view of `count` elements along the axis, starting at `at`, which may be outside of the band.
 * backwards: from the last element to the first. */
static duet_matrix *stretch_of(const arranging *x, const band *b, int64_t at, int64_t count, bool backwards)
{
    layout l = b->at;
    const int64_t stride = l.stride[b->axis];
    l.size[b->axis] = count;
    if (backwards) l.stride[b->axis] = -stride;
    return view_of(x->to, &l, b->ahead + (at + (backwards ? count - 1 : 0)) * stride);
}

/* Fills elements after the band, or in front of it, by one assignment: its elements mirrored about
 * its end. If the band has a whole period, it copies the elements one period away. */
static duet_status reflect(arranging *x, band *b, int64_t missing, bool front)
{
    const int64_t have = b->high - b->low, period = 2 * (b->own - 1),
                  far = period ? have / period * period : have;
    const bool mirrors = have <= period;
    const int64_t n = smaller(missing, mirrors ? b->own - 1 : far), at = front ? b->low - n : b->high;
    int64_t from = front ? at + far : at - far;
    if (mirrors) from = front ? b->low + 1 : b->high - 1 - n;
    TRY(put_matrix(x, stretch_of(x, b, at, n, false), stretch_of(x, b, from, n, mirrors)));
    if (front) b->low -= n;
    else b->high += n;
    return DUET_OK;
}

static duet_status pad_side(arranging *x, const padding *p, band *b, int64_t missing, bool front)
{
    const int64_t at = front ? b->low - missing : b->high, length = b->high - b->low + missing;
    if (!missing) return DUET_OK;
    if (p->mode == DUET_PAD_CONSTANT)
        return put(x, stretch_of(x, b, at, missing, false), duet_of_number(p->value));
    if (p->mode == DUET_PAD_EDGE)
        return put_matrix(x, stretch_of(x, b, at, missing, false),
                          stretch_of(x, b, front ? b->low : b->high - 1, 1, false));
    while (b->high - b->low < length) TRY(reflect(x, b, length - (b->high - b->low), front));
    return DUET_OK;
}

static duet_status pad_axis(arranging *x, const duet_matrix *from, const padding *p, int axis)
{
    band b = band_of(x->to, from, p, axis);
    const int64_t before = p->before[axis], after = x->to->at.size[axis] - before - from->at.size[axis];
    TRY(pad_side(x, p, &b, before, true));
    return pad_side(x, p, &b, after, false);
}

static duet_status pad_center(arranging *x, const duet_matrix *from, const padding *p)
{
    const band b = band_of(x->to, from, p, 0);
    return put_matrix(x, view_of(x->to, &b.at, b.ahead), whole(from));
}

/* The number is assigned first: if it does not fit the type, the error comes before anything is
 * written. */
static duet_status pad_source(arranging *x, const duet_matrix *from, const void *with)
{
    const padding *p = with;
    const bool last = p->mode == DUET_PAD_CONSTANT;
    if (!last) TRY(pad_center(x, from, p));
    for (int a = 0; a < from->at.rank; a++) TRY(pad_axis(x, from, p, a));
    return last ? pad_center(x, from, p) : DUET_OK;
}

static duet_status check_pad(const char *who, const duet_matrix *to, const duet_matrix *from,
                             const padding *p)
{
    TRY(check(who, to, from));
    if (to->at.rank != from->at.rank)
        return wrong_shape(who, to, from, "to and from must have the same number of axes");
    if (to->at.rank && !p->before) return fail(DUET_BAD_ARGUMENT, "%s: before must not be NULL", who);
    if ((unsigned)p->mode > DUET_PAD_REFLECT)
        return fail(DUET_BAD_ARGUMENT, "%s: mode (%d) is not a padding mode", who, (int)p->mode);
    for (int a = 0; a < to->at.rank; a++) {
        const int64_t missing = to->at.size[a] - from->at.size[a];
        if (p->before[a] < 0 || p->before[a] > missing)
            return wrong_shape(who, to, from,
                               "before must not be negative, and before plus the size of from must not "
                               "exceed the size of to");
        if (missing && !from->at.size[a] && p->mode != DUET_PAD_CONSTANT)
            return wrong_shape(who, to, from, "from must not be empty if the padding repeats its elements");
    }
    return DUET_OK;
}

duet_status duet_pad_at(duet_matrix *to, const duet_matrix *from, const int64_t *before, duet_pad_mode mode,
                        double number, const char *site)
{
    arranging x = begin("duet_pad", to, site);
    const padding p = { before, mode, number };
    duet_status s = check_pad(x.who, to, from, &p);
    return end(&x, s == DUET_OK ? with_source(&x, from, pad_source, &p) : s, site);
}

/* ---- functions without a call site ---- */

duet_status(duet_concatenate)(duet_matrix *to, int axis, const duet_matrix *const *part, int count)
{
    return duet_concatenate_at(to, axis, part, count, NULL);
}
duet_status(duet_stack)(duet_matrix *to, int axis, const duet_matrix *const *part, int count)
{
    return duet_stack_at(to, axis, part, count, NULL);
}
duet_status(duet_tile)(duet_matrix *to, const duet_matrix *from) { return duet_tile_at(to, from, NULL); }
duet_status(duet_repeat)(duet_matrix *to, const duet_matrix *from, int axis)
{
    return duet_repeat_at(to, from, axis, NULL);
}
duet_status(duet_roll)(duet_matrix *to, const duet_matrix *from, int axis, int64_t by)
{
    return duet_roll_at(to, from, axis, by, NULL);
}
duet_status(duet_pad)(duet_matrix *to, const duet_matrix *from, const int64_t *before, duet_pad_mode mode,
                      double number)
{
    return duet_pad_at(to, from, before, mode, number, NULL);
}
