/* scatter.c - put, scatter_add, scatter_mul and scatter_max.
 *
 * Updates of one element are applied in the order of the indices. The operands may have any layout,
 * the result is dense. Each thread computes a range of the result along the axis, so no element is
 * updated by two threads. */
#include "dtype.h"
#include "gather.h"
#include <string.h>

typedef struct scatter_work {
    const char *updates;
    char *out;
    axis_split x_axes, updates_axes;
    const char *from;
    const int64_t *index;
    int64_t index_count, length, inner; /* inner: elements of the inner axes */
    size_t size;
    scatter_columns *combine; /* NULL for put, which only stores */
} scatter_work;

static void copy_x(const scatter_work *s, int64_t o, int64_t from, int64_t to)
{
    const layout *inner = &s->x_axes.inner;
    const int64_t last = inner->size[inner->rank - 1], size = (int64_t)s->size;
    for (int64_t d = from; d < to; d++) {
        const char *x = s->from + (layout_offset(&s->x_axes.outer, o) + d * s->x_axes.along.stride[0]) * size;
        char *out = s->out + (o * s->length + d) * s->inner * size;
        for (int64_t c = 0; c < s->inner; c += last)
            gather_elements(out + c * size, x + layout_offset(inner, c) * size,
                            inner->stride[inner->rank - 1], last, s->size);
    }
}

static void update(const scatter_work *s, int64_t o, int64_t j)
{
    const layout *inner = &s->updates_axes.inner;
    const int64_t last = inner->size[inner->rank - 1], stride = inner->stride[inner->rank - 1],
                  size = (int64_t)s->size;
    const char *row =
        s->updates +
        (layout_offset(&s->updates_axes.outer, o) + layout_offset(&s->updates_axes.along, j)) * size;
    char *out = s->out + (o * s->length + s->index[j]) * s->inner * size;
    for (int64_t c = 0; c < s->inner; c += last) {
        const char *values = row + layout_offset(inner, c) * size;
        if (s->combine) s->combine(out + c * size, values, stride, last);
        else gather_elements(out + c * size, values, stride, last, s->size);
    }
}

/* Computes elements from .. to - 1 of the axis. */
static void scatter_range(const scatter_work *s, int64_t from, int64_t to)
{
    for (int64_t o = 0; o < layout_count(&s->x_axes.outer); o++) {
        copy_x(s, o, from, to);
        for (int64_t j = 0; j < s->index_count; j++)
            if (s->index[j] >= from && s->index[j] < to) update(s, o, j);
    }
}

static void scatter_part(const void *work, int t, int threads)
{
    const scatter_work *s = work;
    scatter_range(s, part_of(s->length, t, threads), part_of(s->length, t + 1, threads));
}

static scatter_columns *combine_function(const step *s)
{
    static scatter_columns *const add[] = { scatter_add_f32, scatter_add_f64, scatter_add_i64 };
    static scatter_columns *const max[] = { scatter_max_f32, scatter_max_f64, scatter_max_i64 };
    static scatter_columns *const mul[] = { scatter_mul_f32, scatter_mul_f64, scatter_mul_i64 };
    const duet_dtype type = s->out[0].at.type;
    if (s->kernel == OP_put) return NULL;
    if (s->kernel == OP_scatter_mul) return mul[type];
    return s->kernel == OP_scatter_add ? add[type] : max[type];
}

static duet_status run_scatter(const step *given, const frame *f)
{
    const int axis = given->attr.index.axis;
    const layout *x = &given->in[0].at, *indices = &given->in[1].at;
    int64_t *index;
    TRY(indices_open(given, &given->in[1], x->size[axis], f, &index));
    scatter_work s = { .updates = address(f, &given->in[2]),
                       .out = address(f, &given->out[0]),
                       .from = address(f, &given->in[0]) };
    s.x_axes = axis_split_at(x, axis, 1);
    s.updates_axes = axis_split_at(&given->in[2].at, axis, indices->rank);
    s.index = index;
    s.index_count = layout_count(indices);
    s.length = x->size[axis];
    s.inner = layout_count(&s.x_axes.inner);
    s.size = dtypes[x->type].bytes;
    s.combine = combine_function(given);
    const double work = (double)layout_count(x) + (double)layout_count(&given->in[2].at);
    if (layout_count(x)) by_threads(threads_for(work * 10 * SECONDS_PER_ROUNDED), scatter_part, &s);
    scratch_give(index);
    return DUET_OK;
}

const cpu_kernel cpu_kernel_put = { index_unsupported, run_scatter, cost_of_pass };
const cpu_kernel cpu_kernel_scatter = { index_arithmetic_unsupported, run_scatter, cost_of_pass };
