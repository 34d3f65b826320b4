/* shape.c - computes sizes and strides of operands, and the offsets of their elements. */
#include "shape.h"
#include "dtype.h"
#include "min_max.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static int64_t product(int rank, const int64_t *size)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++)
        if (size[a] == 0) return 0;
    for (int a = 0; a < rank; a++) n *= size[a];
    return n;
}

int64_t shape_count(const shape *s) { return product(s->rank, s->size); }

int64_t layout_count(const layout *l) { return product(l->rank, l->size); }

bool shape_equal(const shape *a, const shape *b)
{
    return a->rank == b->rank && !memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size);
}

/* A size of 0 counts as 1 here, so that the strides of an empty matrix do not overflow either. */
static bool overflows(duet_dtype type, int rank, const int64_t *size)
{
    ptrdiff_t bytes = (ptrdiff_t)dtypes[type].bytes;
    for (int a = 0; a < rank; a++)
        if (__builtin_mul_overflow(bytes, larger(size[a], 1), &bytes)) return true;
    return bytes > PTRDIFF_MAX / 2;
}

duet_status shape_check(const char *who, duet_dtype type, int rank, const int64_t *size)
{
    char text[SHAPE_TEXT];
    if ((unsigned)type >= DUET_DTYPE_COUNT)
        return fail(DUET_BAD_TYPE, "%s: type (%d) is not an element type", who, (int)type);
    if (rank < 0 || rank > DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "%s: the number of axes (%d) must be from 0 to %d", who, rank,
                    DUET_RANK_MAX);
    if (rank > 0 && !size) return fail(DUET_BAD_ARGUMENT, "%s: size must not be NULL", who);
    for (int a = 0; a < rank; a++)
        if (size[a] < 0)
            return fail(DUET_BAD_SHAPE, "%s(%s): the sizes must not be negative", who,
                        shape_text(text, type, rank, size));
    if (overflows(type, rank, size))
        return fail(DUET_BAD_SHAPE, "%s(%s): the number of bytes overflows", who,
                    shape_text(text, type, rank, size));
    return DUET_OK;
}

bool shape_broadcast(const shape *a, const shape *b, shape *out)
{
    shape r = { .rank = (int)larger(a->rank, b->rank) };
    for (int i = 1; i <= r.rank; i++) { /* from the last axis */
        int64_t x = i <= a->rank ? a->size[a->rank - i] : 1, y = i <= b->rank ? b->size[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        r.size[r.rank - i] = x == 1 ? y : x;
    }
    *out = r;
    return true;
}

char *shape_text(char text[SHAPE_TEXT], duet_dtype type, int rank, const int64_t *size)
{
    const char *name = (unsigned)type < DUET_DTYPE_COUNT ? dtypes[type].name : "?";
    int n = snprintf(text, SHAPE_TEXT, "%s[", name);
    for (int a = 0; a < rank && a < DUET_RANK_MAX; a++)
        n += snprintf(text + n, SHAPE_TEXT - (size_t)n, a ? ",%lld" : "%lld", (long long)size[a]);
    snprintf(text + n, SHAPE_TEXT - (size_t)n, "]");
    return text;
}

void layout_dense(layout *l, duet_dtype type, int rank, const int64_t *size)
{
    int64_t stride = 1;
    l->type = type;
    l->rank = rank;
    memset(l->size, 0, sizeof l->size); /* of constant size, so not a call */
    memset(l->stride, 0, sizeof l->stride);
    for (int a = rank; a-- > 0;) {
        l->size[a] = size[a];
        l->stride[a] = stride;
        stride *= larger(size[a], 1);
    }
}

layout layout_as_matrix(const layout *l)
{
    if (l->rank == 2) return *l;
    return (layout){ .type = l->type,
                     .rank = 2,
                     .size = { l->rank ? l->size[0] : 1, 1 },
                     .stride = { l->rank ? l->stride[0] : 1, 1 } };
}

layout layout_transposed(layout l)
{
    const int64_t size = l.size[0], stride = l.stride[0];
    l.size[0] = l.size[1];
    l.size[1] = size;
    l.stride[0] = l.stride[1];
    l.stride[1] = stride;
    return l;
}

bool layout_is_dense(const layout *l)
{
    int64_t stride = 1;
    if (layout_count(l) == 0) return true;
    for (int a = l->rank; a-- > 0; stride *= l->size[a])
        if (l->size[a] != 1 && l->stride[a] != stride) return false;
    return true;
}

void layout_insert(layout *l, int a, int64_t size, int64_t stride)
{
    const size_t behind = (size_t)(l->rank++ - a);
    memmove(l->size + a + 1, l->size + a, behind * sizeof *l->size);
    memmove(l->stride + a + 1, l->stride + a, behind * sizeof *l->stride);
    l->size[a] = size;
    l->stride[a] = stride;
}

void layout_drop(layout *l, int a)
{
    const size_t behind = (size_t)(--l->rank - a);
    memmove(l->size + a, l->size + a + 1, behind * sizeof *l->size);
    memmove(l->stride + a, l->stride + a + 1, behind * sizeof *l->stride);
}

bool layout_merges(const layout *l, int a, int count)
{
    int64_t next = 0; /* the stride that the axis in front must have; 0: any */
    for (int i = a + count; i-- > a;) {
        if (l->size[i] == 0) return true;
        if (l->size[i] == 1) continue;
        if (next && l->stride[i] != next) return false;
        if ((next = l->size[i] * l->stride[i]) == 0) return false;
    }
    return true;
}

void layout_merge(layout *l, int a, int count)
{
    int64_t size = 1, stride = 1;
    for (int i = a; i < a + count; i++) {
        size *= l->size[i];
        if (l->size[i] != 1) stride = l->stride[i];
    }
    for (int i = 0; i < count; i++) layout_drop(l, a);
    layout_insert(l, a, size, stride);
}

/* Does a stride, in ascending order, not step over all elements that the axes before it reach? Then elements
 * may occur several times. In dense matrices and their views each stride steps over them. */
bool layout_repeats(const layout *l)
{
    int64_t stride[DUET_RANK_MAX], size[DUET_RANK_MAX], reach = 0;
    int n = 0;
    if (layout_count(l) == 0) return false;
    for (int a = l->rank - 1; a >= 0; a--) {
        const int64_t own = l->stride[a] < 0 ? -l->stride[a] : l->stride[a];
        int i = n;
        if (l->size[a] <= 1) continue;
        for (; i > 0 && stride[i - 1] > own; i--) {
            stride[i] = stride[i - 1];
            size[i] = size[i - 1];
        }
        stride[i] = own;
        size[i] = l->size[a];
        n++;
    }
    for (int i = 0; i < n; i++) {
        if (stride[i] <= reach) return true;
        reach += (size[i] - 1) * stride[i];
    }
    return false;
}

layout layout_broadcast(const layout *l, const shape *to)
{
    layout r = { .type = l->type, .rank = to->rank };
    for (int i = 1; i <= to->rank; i++) { /* from the last axis */
        int64_t size = to->size[to->rank - i];
        r.size[to->rank - i] = size;
        if (i <= l->rank && l->size[l->rank - i] == size) r.stride[to->rank - i] = l->stride[l->rank - i];
    }
    return r;
}

void layout_swap_axes(layout *l, int a, int b)
{
    const int64_t size = l->size[a], stride = l->stride[a];
    l->size[a] = l->size[b];
    l->stride[a] = l->stride[b];
    l->size[b] = size;
    l->stride[b] = stride;
}

void layout_order(layout *const l[], int n)
{
    const layout *first = l[0];
    for (int end = 1; end < first->rank; end++)
        for (int a = end; a > 0 && llabs(first->stride[a - 1]) < llabs(first->stride[a]); a--)
            for (int k = 0; k < n; k++) layout_swap_axes(l[k], a - 1, a);
}

/* Can axis a be merged into axis r before it, in every layout? */
static bool walks_on(layout *const l[], int n, int r, int a)
{
    for (int k = 0; k < n; k++)
        if (l[k]->stride[r] != l[k]->size[a] * l[k]->stride[a]) return false;
    return true;
}

static void set_axis(layout *const l[], int n, int r, int64_t size, int a)
{
    for (int k = 0; k < n; k++) {
        l[k]->size[r] = size;
        l[k]->stride[r] = a < 0 ? 1 : l[k]->stride[a];
    }
}

/* The same layout may occur in l more than once. So axis r <= a is written only after axis a was read,
 * and with values that do not depend on its old ones. */
void layout_collapse(layout *const l[], int n)
{
    if (n == 0) return;
    int rank = 0;
    const int64_t all = layout_count(l[0]);
    for (int a = 0; a < l[0]->rank && all > 0; a++) {
        int64_t size = l[0]->size[a];
        if (size == 1) continue;
        if (rank > 0 && walks_on(l, n, rank - 1, a)) set_axis(l, n, rank - 1, l[0]->size[rank - 1] * size, a);
        else set_axis(l, n, rank++, size, a);
    }
    if (rank == 0) set_axis(l, n, rank++, all, -1); /* one axis of one element, or of none */
    for (int k = 0; k < n; k++) l[k]->rank = rank;
}

void layout_span(const layout *l, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    if (layout_count(l) == 0) return;
    *high = 1;
    for (int a = 0; a < l->rank; a++) {
        int64_t reach = (l->size[a] - 1) * l->stride[a];
        *(reach < 0 ? low : high) += reach;
    }
}

/* Computes the strides for the sizes of `to`. `from` must be collapsed. false: an axis of `to` would
 * need more than one axis of `from`. */
static bool find_strides(const layout *from, layout *to)
{
    int f = from->rank - 1;
    int64_t left = from->size[f], stride = from->stride[f];
    for (int a = to->rank; a-- > 0; stride *= to->size[a]) {
        if (left == 1 && f > 0 && to->size[a] > 1) {
            left = from->size[--f];
            stride = from->stride[f];
        }
        if (left % to->size[a]) return false;
        to->stride[a] = stride;
        left /= to->size[a];
    }
    return true;
}

bool layout_reshape(layout *l, const shape *to)
{
    layout from = *l, r;
    layout_dense(&r, l->type, to->rank, to->size);
    if (layout_count(l)) {
        layout_collapse((layout *[]){ &from }, 1);
        if (!find_strides(&from, &r)) return false;
    }
    *l = r;
    return true;
}
