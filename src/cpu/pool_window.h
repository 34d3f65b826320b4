/* pool_window.h - windows that slide along an axis and may extend beyond its ends. */
#ifndef POOL_WINDOW_H
#define POOL_WINDOW_H

#include <stdint.h>

/* The windows from .. to - 1 (of `out`) whose element v is within the axis of size `in`. Element v
 * of window j is element j * stride - pad + v. */
static inline void windows_inside(int64_t in, int64_t out, int64_t stride, int64_t pad, int64_t v,
                                  int64_t *from, int64_t *to)
{
    const int64_t low = pad - v, high = in + pad - v; /* low <= j * stride < high */
    *from = low <= 0 ? 0 : (low + stride - 1) / stride;
    *to = high <= 0 ? 0 : (high + stride - 1) / stride;
    if (*to > out) *to = out;
    if (*from > *to) *from = *to;
}

#endif
