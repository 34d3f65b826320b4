/* gather.c - operators that move elements by indices: take, take_along_axis, one_hot; what all of gather.h share. */
#include "gather.h"
#include "dtype.h"
#include <string.h>

run_function *order_function(const step *s)
{
    static run_function *const scans[] = { run_scan_f32, run_scan_f64, run_scan_i64 };
    switch (order_family(s->kernel)) {
    case ORDER_SCAN: return scans[s->out[0].at.type];
    case ORDER_TAKE: return run_take;
    case ORDER_SCATTER: return run_scatter;
    case ORDER_SORT: return run_sort;
    case ORDER_COUNT: return run_histogram;
    default: return NULL;
    }
}

/* ---- elements ---- */

#define RUN(type)                                                                                            \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i] = ((const type *)from)[i * stride]
typedef struct pair {
    uint64_t half[2];
} pair;

void elements_in(void *to, const void *from, int64_t stride, int64_t n, size_t each)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)n * each);
        return;
    }
    switch (each) {
    case 1: RUN(uint8_t); break;
    case 2: RUN(uint16_t); break;
    case 4: RUN(uint32_t); break;
    case 8: RUN(uint64_t); break;
    default: RUN(pair);
    }
}

/* All of a layout whose first element is at `from`, but for an axis more. */
static void layout_in(char *to, const char *from, const layout *l, size_t each)
{
    const int64_t n = layout_count(l), last = l->size[l->rank - 1];
    for (int64_t i = 0; i < n; i += last)
        elements_in(to + i * (int64_t)each, from + layout_offset(l, i) * (int64_t)each,
                    l->stride[l->rank - 1], last, each);
}

/* ---- indices ---- */

static __attribute__((cold)) duet_status no_such_place(const step *s, const operand *o, const frame *f,
                                                       int64_t i, int64_t n)
{
    const int64_t index = index_at(address(f, o), o->at.type, layout_offset(&o->at, i));
    return fail(DUET_BAD_ARGUMENT,
                "duet_%s: index %lld, element %lld of the indices, is not among %lld places",
                op_infos[s->kernel].name, (long long)index, (long long)i, (long long)n);
}

typedef struct placing {
    const void *from;
    const layout *at;
    int64_t count, n, *to, *bad;
} placing;

static void place_some(const void *work, int t, int threads)
{
    const placing *p = work;
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

duet_status indices_open(const step *s, const operand *o, int64_t n, const frame *f, int64_t **places)
{
    const int64_t count = layout_count(&o->at), none = INT64_MAX;
    int64_t bad = none;
    void *p;
    *places = NULL;
    TRY(scratch_take((size_t)count * sizeof **places, f, &p));
    const placing work = {
        .from = address(f, o), .at = &o->at, .count = count, .n = n, .to = p, .bad = &bad
    };
    by_threads(threads_for((double)count * 10 * SECONDS_PER_ROUNDED), place_some, &work);
    if (bad != none) return scratch_give(p), no_such_place(s, o, f, bad, n);
    return *places = p, DUET_OK;
}

/* ---- take and its sisters ---- */

typedef struct taking {
    const char *x;
    char *out;
    axis_split at; /* of x */
    int64_t m, in; /* indices for each of the outer axes; elements of the inner ones */
    int64_t rows;  /* indices in all */
    int64_t *place;
    size_t each;
    bool along;
} taking;

/* One index of each line, all inner elements: they are of one place, or each of its own. */
static void take_row(const taking *t, int64_t row)
{
    const int64_t o = row / t->m, stride = t->at.along.stride[0], each = (int64_t)t->each;
    const char *x = t->x + layout_offset(&t->at.outer, o) * each;
    char *to = t->out + row * t->in * each;
    if (!t->along) {
        layout_in(to, x + t->place[row % t->m] * stride * each, &t->at.inner, t->each);
        return;
    }
    for (int64_t c = 0; c < t->in; c++)
        memcpy(to + c * each,
               x + (t->place[row * t->in + c] * stride + layout_offset(&t->at.inner, c)) * each, t->each);
}

/* Of lines without inner axes, whose places are one after the other: by size, without a call for each. */
static void take_places(const taking *t, int64_t row, int64_t n)
{
    const int64_t *place = t->place + (t->along ? row : row % t->m), stride = t->at.along.stride[0],
                  each = (int64_t)t->each;
    const char *from = t->x + layout_offset(&t->at.outer, row / t->m) * each;
    char *to = t->out + row * each;
#define PLACES(type)                                                                                         \
    for (int64_t j = 0; j < n; j++) ((type *)to)[j] = ((const type *)from)[place[j] * stride]
    switch (t->each) {
    case 1: PLACES(uint8_t); break;
    case 2: PLACES(uint16_t); break;
    case 4: PLACES(uint32_t); break;
    case 8: PLACES(uint64_t); break;
    default: PLACES(pair);
    }
}

static void take_rows(const taking *t, int64_t from, int64_t to)
{
    for (int64_t row = from; row < to && t->in != 1; row++) take_row(t, row);
    while (from < to && t->in == 1) {
        const int64_t left = t->m - from % t->m, n = left < to - from ? left : to - from;
        take_places(t, from, n);
        from += n;
    }
}

static void take_some(const void *work, int t, int threads)
{
    const taking *all = work;
    take_rows(all, part_of(all->rows, t, threads), part_of(all->rows, t + 1, threads));
}

static const void *one_of(duet_dtype type)
{
    static const float f = 1, complex64[2] = { 1, 0 };
    static const double d = 1, complex128[2] = { 1, 0 };
    static const uint16_t half = 0x3c00, brain = 0x3f80;
    static const uint64_t whole = 1; /* its first byte too: machines that run this are little-endian */
    switch (type) {
    case DUET_F32: return &f;
    case DUET_F64: return &d;
    case DUET_F16: return &half;
    case DUET_BF16: return &brain;
    case DUET_C64: return complex64;
    case DUET_C128: return complex128;
    default: return &whole;
    }
}

static void one_hot_some(const void *work, int t, int threads)
{
    const taking *h = work;
    const int64_t each = (int64_t)h->each;
    for (int64_t i = part_of(h->rows, t, threads); i < part_of(h->rows, t + 1, threads); i++) {
        memset(h->out + i * h->in * each, 0, (size_t)(h->in * each));
        memcpy(h->out + (i * h->in + h->place[i]) * each, h->x, h->each);
    }
}

static void one_hot_all(const step *s, taking *h)
{
    h->x = one_of(s->out[0].at.type), h->rows = layout_count(&s->in[0].at), h->in = s->attr.one_hot.classes;
    by_threads(threads_for((double)(h->rows * h->in) * (double)h->each * SECONDS_PER_BYTE), one_hot_some, h);
}

duet_status run_take(const step *s, const frame *f)
{
    const bool hot = s->kernel == OP_one_hot;
    const int axis = s->attr.index.axis;
    const layout *x = &s->in[0].at;
    const operand *by = &s->in[hot ? 0 : 1];
    taking t = { .x = address(f, &s->in[0]),
                 .out = address(f, &s->out[0]),
                 .each = dtypes[s->out[0].at.type].bytes };
    t.along = s->kernel == OP_take_along_axis;
    TRY(indices_open(s, by, hot ? s->attr.one_hot.classes : x->size[axis], f, &t.place));
    if (hot) one_hot_all(s, &t);
    else if (layout_count(&s->out[0].at)) {
        t.at = axis_split_at(x, axis, 1), t.in = layout_count(&t.at.inner);
        t.m = t.along ? by->at.size[axis] : layout_count(&by->at);
        t.rows = layout_count(&t.at.outer) * t.m;
        by_threads(threads_for((double)(t.rows * t.in) * (10 * SECONDS_PER_ROUNDED)), take_some, &t);
    }
    scratch_give(t.place);
    return DUET_OK;
}
