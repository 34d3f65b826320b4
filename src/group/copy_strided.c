/* copy_strided.c - copies elements between layouts of equal sizes on the host. */
#include "copy_strided.h"
#include "dtype.h"
#include <string.h>

static void copy_axes(char *to, const layout *to_at, const char *from, const layout *from_at, int axis,
                      size_t size)
{
    if (axis == to_at->rank) {
        memcpy(to, from, size);
        return;
    }
    for (int64_t i = 0; i < to_at->size[axis]; i++)
        copy_axes(to + i * to_at->stride[axis] * (int64_t)size, to_at,
                  from + i * from_at->stride[axis] * (int64_t)size, from_at, axis + 1, size);
}

void copy_strided(void *to, const layout *to_at, const void *from, const layout *from_at)
{
    copy_axes(to, to_at, from, from_at, 0, dtypes[to_at->type].bytes);
}
