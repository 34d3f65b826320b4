/* einsum.h - the indices of an einsum of two operands, packed into attributes: a letter for each axis of the operands and of the result. */
#ifndef EINSUM_H
#define EINSUM_H

#include <stdint.h>

#define EINSUM_AXES  8 /* of each */
#define EINSUM_WORDS 4
enum einsum_part { EINSUM_A, EINSUM_B, EINSUM_OUT, EINSUM_PARTS };

/* The letter of an axis, from 1; 0: there is no such axis. */
static inline int einsum_letter(const int32_t *attr, int part, int axis)
{
    const int at = part * EINSUM_AXES + axis;
    return axis < EINSUM_AXES ? attr[at / 6] >> 5 * (at % 6) & 31 : 0;
}

static inline void einsum_put(int32_t *attr, int part, int axis, int letter)
{
    const int at = part * EINSUM_AXES + axis;
    attr[at / 6] |= letter << 5 * (at % 6);
}

static inline int einsum_rank(const int32_t *attr, int part)
{
    int rank = 0;
    while (einsum_letter(attr, part, rank)) rank++;
    return rank;
}

/* The axis with this letter; -1: none. */
static inline int einsum_axis(const int32_t *attr, int part, int letter)
{
    for (int axis = 0; einsum_letter(attr, part, axis); axis++)
        if (einsum_letter(attr, part, axis) == letter) return axis;
    return -1;
}

/* A product has matrices on the left and on the right: of the operands, the right one has the last index of the result. */
static inline int einsum_right(const int32_t *attr)
{
    const int rank = einsum_rank(attr, EINSUM_OUT),
              last = rank ? einsum_letter(attr, EINSUM_OUT, rank - 1) : 0;
    return last && einsum_axis(attr, EINSUM_B, last) < 0 ? EINSUM_A : EINSUM_B;
}

#endif
