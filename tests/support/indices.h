/* indices.h - every index of a shape, one after the other. */
#ifndef INDICES_H
#define INDICES_H

#include <stdbool.h>
#include <stdint.h>

/* The next one in row-major order, the last axis first; false at the end, and then it is the first again. */
static inline bool step_on(int rank, const int64_t *size, int64_t *index)
{
    for (int a = rank; a-- > 0;) {
        if (++index[a] < size[a]) return true;
        index[a] = 0;
    }
    return false;
}

#endif
