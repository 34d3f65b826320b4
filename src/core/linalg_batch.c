/* linalg_batch.c - see linalg_batch.h. */
#include "linalg_batch.h"
#include "dtype.h"
#include "min_max.h"
#include <string.h>

enum { MATRIX_AXES = 2 };

/* The axes of one matrix or right-hand side. A vector as right-hand side belongs to all matrices. */
static int own_axes(const layout *l) { return l->rank < MATRIX_AXES ? l->rank : MATRIX_AXES; }

linalg_batch linalg_batch_of(const step *s)
{
    linalg_batch b = { .count = 1 };
    for (int k = 0; k < s->ins; k++) {
        const layout *l = &s->in[k].at;
        shape own = { .rank = l->rank - own_axes(l) };
        memcpy(own.size, l->size, sizeof own.size[0] * (size_t)own.rank);
        (void)shape_broadcast(&b.lead, &own, &b.lead); /* they do: the shape rule has checked it */
    }
    b.count = shape_count(&b.lead);
    return b;
}

int64_t linalg_sides(const step *s)
{
    const layout *l = &s->in[1].at;
    return s->ins > 1 && l->rank > 1 ? l->size[l->rank - 1] : 1;
}

/* The layout without `count` leading axes. */
static layout without_leading(const layout *l, int count)
{
    layout own = { .type = l->type, .rank = l->rank - count };
    memcpy(own.size, l->size + count, sizeof own.size[0] * (size_t)own.rank);
    memcpy(own.stride, l->stride + count, sizeof own.stride[0] * (size_t)own.rank);
    return own;
}

static int leading_of_input(const layout *l) { return l->rank - own_axes(l); }

step linalg_batch_step(const step *s, const linalg_batch *b)
{
    step one = *s;
    int slot = 0;
    for (int k = 0; k < s->outs; k++)
        one.out[k] = (operand){ slot++, without_leading(&s->out[k].at, b->lead.rank) };
    for (int k = 0; k < s->ins; k++)
        one.in[k] = (operand){ slot++, without_leading(&s->in[k].at, leading_of_input(&s->in[k].at)) };
    return one;
}

/* The index of the matrix along each leading axis. */
static void indices_of(const linalg_batch *b, int64_t matrix, int64_t index[DUET_RANK_MAX])
{
    for (int a = b->lead.rank; a-- > 0; matrix /= b->lead.size[a]) index[a] = matrix % b->lead.size[a];
}

/* The distance of a matrix from the first one, in bytes. `leading` axes of l broadcast to those of b. */
static int64_t offset_of(const linalg_batch *b, const int64_t *index, const layout *l, int leading)
{
    int64_t offset = 0;
    for (int a = 0; a < leading; a++)
        if (l->size[a] > 1) offset += index[b->lead.rank - leading + a] * l->stride[a];
    return offset * (int64_t)dtypes[l->type].bytes;
}

void linalg_batch_data(const step *s, const linalg_batch *b, int64_t matrix, void *const *data,
                       void *own[LINALG_OPERANDS])
{
    int64_t index[DUET_RANK_MAX];
    int slot = 0;
    indices_of(b, matrix, index);
    for (int k = 0; k < s->outs; k++)
        own[slot++] = (char *)data[s->out[k].slot] + offset_of(b, index, &s->out[k].at, b->lead.rank);
    for (int k = 0; k < s->ins; k++)
        own[slot++] =
            (char *)data[s->in[k].slot] + offset_of(b, index, &s->in[k].at, leading_of_input(&s->in[k].at));
}

duet_status linalg_batch_failed(const linalg_batch *b, int64_t matrix, duet_status status)
{
    enum { INDEX_TEXT = 22 };
    char text[DUET_RANK_MAX * INDEX_TEXT] = "";
    int64_t index[DUET_RANK_MAX];
    int n = 0;
    indices_of(b, matrix, index);
    for (int a = 0; a < b->lead.rank; a++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", a ? "," : "", (long long)index[a]);
    return fail_within(status, "matrix [%s] of the stack", text);
}
