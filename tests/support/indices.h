/* indices.h - iterates over all indices of a shape. */
#ifndef INDICES_H
#define INDICES_H

#include <stdbool.h>
#include <stdint.h>

/* Advances to the next index in row-major order. Returns false at the end and starts again at the
 * first. */
static inline bool step_on(int rank, const int64_t *size, int64_t *index)
{
    for (int a = rank; a-- > 0;) {
        if (++index[a] < size[a]) return true;
        index[a] = 0;
    }
    return false;
}

#endif
