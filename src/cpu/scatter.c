/* scatter.c - put, scatter_add and scatter_max: to each element in the order of the indices. A thread has places of its own. */
#include "dtype.h"
#include "gather.h"
#include <string.h>

typedef struct scattering {
    const char *updates;
    char *out;
    axis_split x, at; /* of x, and of the updates */
    const char *from;
    const int64_t *place;
    int64_t m, n, inner;
    size_t each;
    scatter_columns *onto; /* NULL: elements are put */
} scattering;

static void copy_rows(const scattering *s, int64_t o, int64_t from, int64_t to)
{
    const layout *inner = &s->x.inner;
    const int64_t last = inner->size[inner->rank - 1], each = (int64_t)s->each;
    for (int64_t d = from; d < to; d++) {
        const char *x = s->from + (layout_offset(&s->x.outer, o) + d * s->x.along.stride[0]) * each;
        char *out = s->out + (o * s->n + d) * s->inner * each;
        for (int64_t c = 0; c < s->inner; c += last)
            elements_in(out + c * each, x + layout_offset(inner, c) * each, inner->stride[inner->rank - 1],
                        last, s->each);
    }
}

static void update(const scattering *s, int64_t o, int64_t j)
{
    const layout *inner = &s->at.inner;
    const int64_t last = inner->size[inner->rank - 1], stride = inner->stride[inner->rank - 1],
                  each = (int64_t)s->each;
    const char *by = s->updates + (layout_offset(&s->at.outer, o) + layout_offset(&s->at.along, j)) * each;
    char *out = s->out + (o * s->n + s->place[j]) * s->inner * each;
    for (int64_t c = 0; c < s->inner; c += last) {
        const char *some = by + layout_offset(inner, c) * each;
        if (s->onto) s->onto(out + c * each, some, stride, last);
        else elements_in(out + c * each, some, stride, last, s->each);
    }
}

/* Places from .. to - 1 of each line. */
static void scatter_to(const scattering *s, int64_t from, int64_t to)
{
    for (int64_t o = 0; o < layout_count(&s->x.outer); o++) {
        copy_rows(s, o, from, to);
        for (int64_t j = 0; j < s->m; j++)
            if (s->place[j] >= from && s->place[j] < to) update(s, o, j);
    }
}

static void scatter_some(const void *work, int t, int threads)
{
    const scattering *s = work;
    scatter_to(s, part_of(s->n, t, threads), part_of(s->n, t + 1, threads));
}

static scatter_columns *columns_of(const step *s)
{
    static scatter_columns *const add[] = { scatter_add_f32, scatter_add_f64, scatter_add_i64 };
    static scatter_columns *const max[] = { scatter_max_f32, scatter_max_f64, scatter_max_i64 };
    const duet_dtype type = s->out[0].at.type;
    return s->kernel == OP_put ? NULL : s->kernel == OP_scatter_add ? add[type] : max[type];
}

duet_status run_scatter(const step *given, const frame *f)
{
    const int axis = given->attr.index.axis;
    const layout *x = &given->in[0].at, *by = &given->in[1].at;
    int64_t *place;
    TRY(indices_open(given, &given->in[1], x->size[axis], f, &place));
    scattering s = { .updates = address(f, &given->in[2]),
                     .out = address(f, &given->out[0]),
                     .from = address(f, &given->in[0]) };
    s.x = axis_split_at(x, axis, 1), s.at = axis_split_at(&given->in[2].at, axis, by->rank);
    s.place = place, s.m = layout_count(by), s.n = x->size[axis], s.inner = layout_count(&s.x.inner);
    s.each = dtypes[x->type].bytes, s.onto = columns_of(given);
    const double work = (double)layout_count(x) + (double)layout_count(&given->in[2].at);
    if (layout_count(x)) by_threads(threads_for(work * 10 * SECONDS_PER_ROUNDED), scatter_some, &s);
    scratch_give(place);
    return DUET_OK;
}
