/* einsum.h - the indices of an einsum of two operands, packed into attributes: a letter for each
 * axis of the operands and of the result. */
#ifndef EINSUM_H
#define EINSUM_H

#include "attributes.h"

#define EINSUM_AXES 8 /* axes of an operand, or of the result, at most */
enum einsum_part { EINSUM_A, EINSUM_B, EINSUM_OUT, EINSUM_PARTS };

/* Returns the letter of an axis, as a number from 1, or 0 if the axis does not exist. */
static inline int einsum_letter(const einsum_attributes *e, int part, int axis)
{
    const int at = part * EINSUM_AXES + axis;
    return axis < EINSUM_AXES ? e->letters[at / 6] >> 5 * (at % 6) & 31 : 0;
}

static inline void einsum_put(einsum_attributes *e, int part, int axis, int letter)
{
    const int at = part * EINSUM_AXES + axis;
    e->letters[at / 6] |= letter << 5 * (at % 6);
}

static inline int einsum_rank(const einsum_attributes *e, int part)
{
    int rank = 0;
    while (einsum_letter(e, part, rank)) rank++;
    return rank;
}

/* Returns the axis with this letter, or -1. */
static inline int einsum_axis(const einsum_attributes *e, int part, int letter)
{
    for (int axis = 0; einsum_letter(e, part, axis); axis++)
        if (einsum_letter(e, part, axis) == letter) return axis;
    return -1;
}

/* Returns the number of the operand that is the right factor of the matrix product. It has the last index
 * of the result. */
static inline int einsum_right(const einsum_attributes *e)
{
    const int rank = einsum_rank(e, EINSUM_OUT), last = rank ? einsum_letter(e, EINSUM_OUT, rank - 1) : 0;
    return last && einsum_axis(e, EINSUM_B, last) < 0 ? EINSUM_A : EINSUM_B;
}

#endif
