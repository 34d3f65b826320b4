/* index.c - the fake kernels that gather, scatter, scan and sort, one element after the other, each
 * located by all its indices. */
#include "dtype.h"
#include "fake.h"
#include "index_ops.h"
#include "kernels.h"
#include <math.h>
#include <string.h>

typedef struct spot {
    int64_t at[2 * DUET_RANK_MAX];
} spot;

static spot spot_of(const layout *l, int64_t i)
{
    spot s = { { 0 } };
    for (int a = l->rank; a-- > 0; i /= l->size[a]) s.at[a] = i % l->size[a];
    return s;
}

static char *at_spot(const void *p, const layout *l, const spot *s)
{
    int64_t n = 0;
    for (int a = 0; a < l->rank; a++) n += s->at[a] * l->stride[a];
    return (char *)p + n * (int64_t)dtypes[l->type].bytes;
}

static long double number(const char *p, duet_dtype type)
{
    switch (type) {
    case DUET_F32: return *(const float *)p;
    case DUET_F64: return *(const double *)p;
    case DUET_I64: return *(const int64_t *)p;
    case DUET_I32: return *(const int32_t *)p;
    case DUET_I16: return *(const int16_t *)p;
    case DUET_I8: return *(const int8_t *)p;
    case DUET_U64: return *(const uint64_t *)p;
    case DUET_U32: return *(const uint32_t *)p;
    case DUET_U16: return *(const uint16_t *)p;
    default: return *(const uint8_t *)p;
    }
}

static void report(const job *j, int k, const spot *s, int64_t n)
{
    const layout *at = &j->s.in[k].at;
    int64_t element = 0;
    for (int a = 0; a < at->rank; a++) element = element * at->size[a] + s->at[a];
    if (*j->claimed) return;
    *j->claimed = 1;
    *j->bad_index = (bad_index){ .kernel = j->s.kernel + 1,
                                 .index = index_at(at_spot(j->in[k], at, s), at->type, 0),
                                 .element = element,
                                 .size = n };
}

/* returns -1 for a bad index, and reports it */
static int64_t place(const job *j, int k, const spot *s, int64_t n)
{
    long double i = number(at_spot(j->in[k], &j->s.in[k].at, s), j->s.in[k].at.type);
    if (i < 0) i += n;
    if (i >= 0 && i < n) return (int64_t)i;
    report(j, k, s, n);
    return -1;
}

/* Axes `from` .. from + count - 1 of s. */
static spot middle(const spot *s, int from, int count)
{
    spot m = { { 0 } };
    memcpy(m.at, s->at + from, (size_t)count * sizeof m.at[0]);
    return m;
}

/* The position in x of a position in the result; returns false for a bad index. */
static bool source_of(const job *j, const spot *s, spot *x)
{
    const int axis = j->s.attr.index.axis, rank = j->s.in[0].at.rank, own = j->s.in[1].at.rank;
    const bool along = j->s.kernel == OP_take_along_axis;
    const spot by = along ? *s : middle(s, axis, own);
    *x = *s;
    for (int a = axis + 1; a < rank && !along; a++) x->at[a] = s->at[a + own - 1];
    return (x->at[axis] = place(j, 1, &by, j->s.in[0].at.size[axis])) >= 0;
}

static void take(const job *j)
{
    const layout *out = &j->s.out[0].at;
    for (int64_t i = 0; i < layout_count(out); i++) {
        const spot s = spot_of(out, i);
        spot x;
        char *to = at_spot(j->out[0], out, &s);
        memset(to, 0, dtypes[out->type].bytes);
        if (source_of(j, &s, &x)) memcpy(to, at_spot(j->in[0], &j->s.in[0].at, &x), dtypes[out->type].bytes);
    }
}

static void write_one(char *to, duet_dtype type)
{
    if (type == DUET_F32 || type == DUET_C64) *(float *)to = 1;
    else if (type == DUET_F64 || type == DUET_C128) *(double *)to = 1;
    else if (type == DUET_F16) *(uint16_t *)to = 15 << 10;
    else if (type == DUET_BF16) *(uint16_t *)to = 127 << 7;
    else *to = 1;
}

static void one_hot(const job *j)
{
    const layout *out = &j->s.out[0].at;
    for (int64_t i = 0; i < layout_count(out); i++) {
        const spot s = spot_of(out, i);
        char *to = at_spot(j->out[0], out, &s);
        memset(to, 0, dtypes[out->type].bytes);
        if (place(j, 0, &s, out->size[out->rank - 1]) == s.at[out->rank - 1]) write_one(to, out->type);
    }
}

#define ONTO(T, U)                                                                                           \
    do {                                                                                                     \
        T a, b;                                                                                              \
        memcpy(&a, to, sizeof a), memcpy(&b, by, sizeof b);                                                  \
        if (kernel == OP_scatter_add) a = (T)((U)a + (U)b);                                                  \
        else if (kernel == OP_scatter_mul) a = (T)((U)a * (U)b);                                             \
        else if (a == a && (b != b || b > a || (b == a && signbit((double)a)))) a = b;                       \
        memcpy(to, &a, sizeof a);                                                                            \
    } while (0)

static void onto(int kernel, duet_dtype type, char *to, const char *by)
{
    if (kernel == OP_put) memcpy(to, by, dtypes[type].bytes);
    else if (type == DUET_F32) ONTO(float, float);
    else if (type == DUET_F64) ONTO(double, double);
    else ONTO(int64_t, uint64_t);
}

static void scatter(const job *j)
{
    const layout *out = &j->s.out[0].at, *z = &j->s.in[2].at;
    for (int64_t i = 0; i < layout_count(out); i++) {
        const spot s = spot_of(out, i);
        memcpy(at_spot(j->out[0], out, &s), at_spot(j->in[0], &j->s.in[0].at, &s), dtypes[out->type].bytes);
    }
    for (int64_t i = 0; i < layout_count(z); i++) {
        const spot s = spot_of(z, i);
        spot x;
        if (source_of(j, &s, &x))
            onto(j->s.kernel, out->type, at_spot(j->out[0], out, &x), at_spot(j->in[2], z, &s));
    }
}

/* ---- along lines: element i of the line through s ---- */

static char *on_line(const void *p, const layout *l, spot s, int axis, int64_t i)
{
    s.at[axis] = i;
    return at_spot(p, l, &s);
}

/* A kernel may sum in parts, which may be added in any order. The elements of each part are used. */
#define SCAN(T, none)                                                                                        \
    static T join_##T(T a, T b, bool times) { return times ? a * b : a + b; }                                \
    static void scan_##T(const job *j, const spot *s, int axis)                                              \
    {                                                                                                        \
        const bool times = j->s.kernel == OP_cumprod;                                                        \
        const T nil = times ? 1 : none;                                                                      \
        T part[4] = { nil, nil, nil, nil };                                                                  \
        for (int64_t i = 0; i < j->s.out[0].at.size[axis]; i++) {                                            \
            for (int k = 0; k < 3; k++)                                                                      \
                if (i % (16 << 4 * k) == 0)                                                                  \
                    part[k + 1] = join_##T(part[k + 1], part[k], times), part[k] = nil;                      \
            part[0] = join_##T(part[0], *(T *)on_line(j->in[0], &j->s.in[0].at, *s, axis, i), times);        \
            T sum = part[0];                                                                                 \
            for (int k = 1; k < 4; k++) sum = join_##T(part[k], sum, times);                                 \
            *(T *)on_line(j->out[0], &j->s.out[0].at, *s, axis, i) = sum;                                    \
        }                                                                                                    \
    }
SCAN(float, -0.0f)
SCAN(double, -0.0)
SCAN(uint64_t, 0)

static void scan(const job *j, const spot *s, int axis)
{
    const duet_dtype t = j->s.out[0].at.type;
    if (t == DUET_F32) scan_float(j, s, axis);
    else if (t == DUET_F64) scan_double(j, s, axis);
    else scan_uint64_t(j, s, axis);
}

static double half(uint16_t b, duet_dtype type)
{
    uint32_t bits =
        type == DUET_BF16 ? (uint32_t)b << 16 : (uint32_t)(b & 0x7fff) << 13 | (uint32_t)(b & 0x8000) << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    if (type == DUET_BF16) return f;
    if ((b & 0x7c00) != 0x7c00) return f * 0x1p112f;
    if (b & 0x3ff) return NAN;
    return b & 0x8000 ? -INFINITY : INFINITY;
}

static long double value(const char *p, duet_dtype type)
{
    if (type == DUET_F16 || type == DUET_BF16) return half(*(const uint16_t *)p, type);
    return number(p, type);
}

typedef struct item {
    long double x;
    int64_t index;
} item;

/* Must b, which is after a, come before a? */
static bool passes(const item *b, const item *a, bool falls)
{
    if (a->x != a->x || b->x != b->x) return falls ? a->x == a->x : b->x == b->x;
    if (falls) return b->x > a->x;
    return b->x < a->x;
}

/* Merge sort; room: space for as many elements. */
static void sort_items(item *x, int64_t n, item *room, bool falls)
{
    const int64_t half = n / 2;
    if (n < 2) return;
    sort_items(x, half, room, falls);
    sort_items(x + half, n - half, room, falls);
    memcpy(room, x, (size_t)n * sizeof *x);
    for (int64_t i = 0, a = 0, b = half; i < n; i++)
        x[i] = b < n && (a == half || passes(&room[b], &room[a], falls)) ? room[b++] : room[a++];
}

static void sort(const job *j, const spot *s, int axis)
{
    const layout *x = &j->s.in[0].at, *out = &j->s.out[0].at;
    const int64_t n = x->size[axis];
    const bool is_top = j->s.kernel == OP_top_k || j->s.kernel == OP_top_k_indices,
               falls = is_top && !j->s.attr.index.smallest;
    item *items = fake_alloc((size_t)(2 * n + 1) * sizeof *items);
    for (int64_t i = 0; i < n; i++) items[i] = (item){ value(on_line(j->in[0], x, *s, axis, i), x->type), i };
    sort_items(items, n, items + n, falls);
    for (int64_t i = 0; i < out->size[axis]; i++) {
        char *to = on_line(j->out[0], out, *s, axis, i);
        if (j->s.kernel == OP_argsort || j->s.kernel == OP_top_k_indices) *(int64_t *)to = items[i].index;
        else memcpy(to, on_line(j->in[0], x, *s, axis, items[i].index), dtypes[x->type].bytes);
    }
    fake_free(items);
}

static void lines(const job *j, void each(const job *j, const spot *s, int axis))
{
    layout first = j->s.out[0].at;
    const int axis = j->s.attr.index.axis;
    if (!first.size[axis]) return;
    first.size[axis] = 1;
    for (int64_t i = 0; i < layout_count(&first); i++) {
        const spot s = spot_of(&first, i);
        each(j, &s, axis);
    }
}

static void histogram(const job *j)
{
    const layout *x = &j->s.in[0].at;
    const int n = j->s.attr.histogram.bins;
    const double low = j->s.attr.histogram.low, high = j->s.attr.histogram.high;
    const double width = (high - low) / n;
    int64_t *out = j->out[0];
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < layout_count(x); i++) {
        const spot s = spot_of(x, i);
        const double v = (double)value(at_spot(j->in[0], x, &s), x->type);
        int k = n - 1;
        if (!(v >= low && v <= high)) continue;
        while (k > 0 && v < low + k * width) k--;
        out[k]++;
    }
}

void fake_run_order(const job *j)
{
    switch (j->s.kernel) {
    case OP_cumsum:
    case OP_cumprod: lines(j, scan); break;
    case OP_take:
    case OP_take_along_axis: take(j); break;
    case OP_one_hot: one_hot(j); break;
    case OP_histogram: histogram(j); break;
    case OP_put:
    case OP_scatter_add:
    case OP_scatter_mul:
    case OP_scatter_max: scatter(j); break;
    default: lines(j, sort);
    }
}
