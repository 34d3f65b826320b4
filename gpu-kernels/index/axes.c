/* axes.c - a layout as the kernels of this folder take it. */
#include "index_kernels.h"

axes axes_of(const layout *l)
{
    axes a = { .rank = l->rank };
    for (int d = 0; d < l->rank; d++) {
        a.size[d] = divide_by64(l->size[d]);
        a.stride[d] = l->stride[d];
    }
    return a;
}
