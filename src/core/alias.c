/* alias.c - decides how two matrices share elements. */
#include "matrix.h"
#include <stdlib.h>

static bool same_walk(const duet_matrix *a, const duet_matrix *b)
{
    if (a->offset != b->offset || a->at.rank != b->at.rank) return false;
    for (int i = 0; i < a->at.rank; i++)
        if (a->at.size[i] != b->at.size[i] || (a->at.size[i] != 1 && a->at.stride[i] != b->at.stride[i]))
            return false;
    return true;
}

/* Computes the range of the offsets of m modulo `modulus`. Returns false if the range wraps around. The
 * offsets of a block of columns modulo the row stride do not wrap. */
static bool within(const duet_matrix *m, int64_t modulus, int64_t *low, int64_t *high)
{
    layout rest = m->at;
    for (int a = 0; a < rest.rank; a++)
        if (rest.stride[a] % modulus == 0) rest.size[a] = 1;
    layout_span(&rest, low, high);
    int64_t first = (m->offset + *low) % modulus;
    *high += first - *low;
    *low = first;
    return *high <= modulus;
}

/* Are the ranges of the offsets of a and b modulo `stride` disjoint? Strides may be negative. */
static bool apart(const duet_matrix *a, const duet_matrix *b, int64_t stride)
{
    int64_t low[2], high[2];
    const int64_t modulus = llabs(stride);
    return modulus && within(a, modulus, &low[0], &high[0]) && within(b, modulus, &low[1], &high[1]) &&
           (high[0] <= low[1] || high[1] <= low[0]);
}

enum overlap matrix_overlap(const duet_matrix *a, const duet_matrix *b)
{
    if (a->storage != b->storage || a->count == 0 || b->count == 0) return APART;
    if (same_walk(a, b)) return SAME;
    if (apart(a, b, INT64_MAX)) return APART;
    for (int i = 0; i < a->at.rank; i++)
        if (a->at.size[i] > 1 && apart(a, b, a->at.stride[i])) return APART;
    for (int i = 0; i < b->at.rank; i++)
        if (b->at.size[i] > 1 && apart(a, b, b->at.stride[i])) return APART;
    return TANGLED;
}
