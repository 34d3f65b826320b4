/* gather.c - take, take_along_axis and one_hot; and reading of indices, for gather.h.
 *
 * The operand and the indices may have any layout, the result is dense. Threads divide the indices. */
#include "gather.h"
#include "dtype.h"
#include "index_list.h"
#include "min_max.h"
#include <string.h>

/* ---- elements ---- */

#define COPY(type)                                                                                           \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i] = ((const type *)from)[i * stride]
typedef struct bits128 {
    uint64_t half[2];
} bits128;

void gather_elements(void *to, const void *from, int64_t stride, int64_t n, size_t size)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: COPY(uint8_t); break;
    case 2: COPY(uint16_t); break;
    case 4: COPY(uint32_t); break;
    case 8: COPY(uint64_t); break;
    default: COPY(bits128);
    }
}

/* Gathers all elements of a layout. */
static void gather_layout(char *to, const char *from, const layout *l, size_t size)
{
    const int64_t n = layout_count(l), last = l->size[l->rank - 1];
    for (int64_t i = 0; i < n; i += last)
        gather_elements(to + i * (int64_t)size, from + layout_offset(l, i) * (int64_t)size,
                        l->stride[l->rank - 1], last, size);
}

/* ---- indices ---- */

static __attribute__((cold)) duet_status bad_index(const step *s, const operand *o, const frame *f, int64_t i,
                                                   int64_t n)
{
    const int64_t index = index_at(address(f, o), o->at.type, layout_offset(&o->at, i));
    char text[BAD_INDEX_TEXT];
    return fail(DUET_BAD_ARGUMENT, "%s", bad_index_text(text, op_infos[s->kernel].name, index, i, n));
}

typedef struct index_work {
    const void *from;
    const layout *at;
    int64_t count, n, *to, *bad;
} index_work;

static void read_indices(const void *work, int t, int threads)
{
    const index_work *p = work;
    const int64_t end = part_of(p->count, t + 1, threads);
    int64_t bad = end;
    for (int64_t i = part_of(p->count, t, threads); i < end; i++) {
        p->to[i] = index_among(index_at(p->from, p->at->type, layout_offset(p->at, i)), p->n);
        if (p->to[i] < 0 && i < bad) bad = i;
    }
    if (bad == end) return;
#pragma omp critical(duet_bad_index)
    if (bad < *p->bad) *p->bad = bad;
}

duet_status indices_open(const step *s, const operand *o, int64_t n, const frame *f, int64_t **indices)
{
    const int64_t count = layout_count(&o->at), none = INT64_MAX;
    int64_t bad = none;
    void *p;
    *indices = NULL;
    TRY(scratch_take((size_t)count * sizeof **indices, f, &p));
    const index_work work = {
        .from = address(f, o), .at = &o->at, .count = count, .n = n, .to = p, .bad = &bad
    };
    by_threads(threads_for((double)count * 10 * SECONDS_PER_ROUNDED), read_indices, &work);
    if (bad != none) {
        scratch_give(p);
        return bad_index(s, o, f, bad, n);
    }
    *indices = p;
    return DUET_OK;
}

/* ---- take, take_along_axis, one_hot ---- */

typedef struct gather_work {
    const char *x;
    char *out;
    axis_split axes;          /* of x: the axes before, at and after the indexed one */
    int64_t indices_per_line; /* indices for each position of the outer axes */
    int64_t inner_size;       /* elements of the inner axes */
    int64_t rows;             /* number of indices in all */
    int64_t *index;
    size_t size;
    bool along;
} gather_work;

/* Copies the inner elements of one index. In take_along_axis each has its own index. */
static void take_row(const gather_work *t, int64_t row)
{
    const int64_t o = row / t->indices_per_line, stride = t->axes.along.stride[0], size = (int64_t)t->size;
    const char *x = t->x + layout_offset(&t->axes.outer, o) * size;
    char *to = t->out + row * t->inner_size * size;
    if (!t->along) {
        gather_layout(to, x + t->index[row % t->indices_per_line] * stride * size, &t->axes.inner, t->size);
        return;
    }
    for (int64_t c = 0; c < t->inner_size; c++)
        memcpy(to + c * size,
               x + (t->index[row * t->inner_size + c] * stride + layout_offset(&t->axes.inner, c)) * size,
               t->size);
}

/* The same for n adjacent indices, if there are no inner axes. It avoids a call for each element. */
static void take_indices(const gather_work *t, int64_t row, int64_t n)
{
    const int64_t *index = t->index + (t->along ? row : row % t->indices_per_line),
                  stride = t->axes.along.stride[0], size = (int64_t)t->size;
    const char *from = t->x + layout_offset(&t->axes.outer, row / t->indices_per_line) * size;
    char *to = t->out + row * size;
#define TAKE(type)                                                                                           \
    for (int64_t j = 0; j < n; j++) ((type *)to)[j] = ((const type *)from)[index[j] * stride]
    switch (t->size) {
    case 1: TAKE(uint8_t); break;
    case 2: TAKE(uint16_t); break;
    case 4: TAKE(uint32_t); break;
    case 8: TAKE(uint64_t); break;
    default: TAKE(bits128);
    }
}

static void take_rows(const gather_work *t, int64_t from, int64_t to)
{
    for (int64_t row = from; row < to && t->inner_size != 1; row++) take_row(t, row);
    while (from < to && t->inner_size == 1) {
        const int64_t left = t->indices_per_line - from % t->indices_per_line, n = smaller(left, to - from);
        take_indices(t, from, n);
        from += n;
    }
}

static void take_part(const void *work, int t, int threads)
{
    const gather_work *all = work;
    take_rows(all, part_of(all->rows, t, threads), part_of(all->rows, t + 1, threads));
}

static const void *one_bits(duet_dtype type)
{
    static const float f = 1, complex64[2] = { 1, 0 };
    static const double d = 1, complex128[2] = { 1, 0 };
    static const uint16_t half = 0x3c00, bfloat = 0x3f80;
    static const uint64_t integer = 1; /* little-endian: its first byte is also the uint8 1 */
    switch (type) {
    case DUET_F32: return &f;
    case DUET_F64: return &d;
    case DUET_F16: return &half;
    case DUET_BF16: return &bfloat;
    case DUET_C64: return complex64;
    case DUET_C128: return complex128;
    default: return &integer;
    }
}

static void one_hot_part(const void *work, int t, int threads)
{
    const gather_work *h = work;
    const int64_t size = (int64_t)h->size;
    for (int64_t i = part_of(h->rows, t, threads); i < part_of(h->rows, t + 1, threads); i++) {
        memset(h->out + i * h->inner_size * size, 0, (size_t)(h->inner_size * size));
        memcpy(h->out + (i * h->inner_size + h->index[i]) * size, h->x, h->size);
    }
}

static void one_hot_all(const step *s, gather_work *h)
{
    h->x = one_bits(s->out[0].at.type);
    h->rows = layout_count(&s->in[0].at);
    h->inner_size = s->attr.one_hot.classes;
    by_threads(threads_for((double)(h->rows * h->inner_size) * (double)h->size * SECONDS_PER_BYTE),
               one_hot_part, h);
}

static duet_status run_take(const step *s, const frame *f)
{
    const bool one_hot = s->kernel == OP_one_hot;
    const int axis = s->attr.index.axis;
    const layout *x = &s->in[0].at;
    const operand *indices_operand = &s->in[one_hot ? 0 : 1];
    gather_work t = { .x = address(f, &s->in[0]),
                      .out = address(f, &s->out[0]),
                      .size = dtypes[s->out[0].at.type].bytes };
    t.along = s->kernel == OP_take_along_axis;
    TRY(indices_open(s, indices_operand, one_hot ? s->attr.one_hot.classes : x->size[axis], f, &t.index));
    if (one_hot) one_hot_all(s, &t);
    else if (layout_count(&s->out[0].at)) {
        t.axes = axis_split_at(x, axis, 1);
        t.inner_size = layout_count(&t.axes.inner);
        t.indices_per_line = t.along ? indices_operand->at.size[axis] : layout_count(&indices_operand->at);
        t.rows = layout_count(&t.axes.outer) * t.indices_per_line;
        by_threads(threads_for((double)(t.rows * t.inner_size) * (10 * SECONDS_PER_ROUNDED)), take_part, &t);
    }
    scratch_give(t.index);
    return DUET_OK;
}

const cpu_kernel cpu_kernel_take = { index_unsupported, run_take, cost_of_pass };
