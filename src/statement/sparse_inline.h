/* sparse_inline.h - loops over sparse matrices that are compiled for each element type and each width of
 * the indices. A loop is an INLINE function with the parameters `type` and `wide`; FOR_TYPES calls it with
 * constants. */
#ifndef SPARSE_INLINE_H
#define SPARSE_INLINE_H

#include "dtype.h"
#include "sparse.h"
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#define FOR_WIDTHS(f, type, wide, ...) ((wide) ? f(type, true, __VA_ARGS__) : f(type, false, __VA_ARGS__))
#define FOR_TYPES(f, type, wide, ...)                                                                        \
    ((type) == DUET_F32   ? FOR_WIDTHS(f, DUET_F32, wide, __VA_ARGS__)                                       \
     : (type) == DUET_F64 ? FOR_WIDTHS(f, DUET_F64, wide, __VA_ARGS__)                                       \
     : (type) == DUET_C64 ? FOR_WIDTHS(f, DUET_C64, wide, __VA_ARGS__)                                       \
                          : FOR_WIDTHS(f, DUET_C128, wide, __VA_ARGS__))

INLINE int64_t index_in(const void *list, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)list)[i] : ((const int32_t *)list)[i];
}
INLINE void put_index(void *list, bool wide, int64_t i, int64_t value)
{
    if (wide) ((int64_t *)list)[i] = value;
    else ((int32_t *)list)[i] = (int32_t)value;
}
INLINE const void *columns_of(const csr *c, bool wide)
{
    return (const char *)c->pattern + (size_t)(c->rows + 1) * (wide ? sizeof(int64_t) : sizeof(int32_t));
}
INLINE void *new_columns(const sparse_lists *l, bool wide)
{
    return (char *)l->pattern + (size_t)(l->s->rows + 1) * (wide ? sizeof(int64_t) : sizeof(int32_t));
}

INLINE size_t element_size(duet_dtype type)
{
    if (type == DUET_C128) return 16;
    return type == DUET_F32 ? 4 : 8;
}
INLINE void *element_at(const void *list, duet_dtype type, int64_t i)
{
    return (char *)(uintptr_t)list + (size_t)i * element_size(type);
}
INLINE void copy_element(duet_dtype type, void *to, const void *from)
{
    memcpy(to, from, element_size(type));
}

/* to = x y, or to += x y */
#define PRODUCT_OF(T)                                                                                        \
    {                                                                                                        \
        const T *u = x, *v = y;                                                                              \
        T *out = to, re, im = 0;                                                                             \
        if (type == DUET_F32 || type == DUET_F64) re = u[0] * v[0];                                          \
        else {                                                                                               \
            re = u[0] * v[0] - u[1] * v[1];                                                                  \
            im = u[0] * v[1] + u[1] * v[0];                                                                  \
        }                                                                                                    \
        out[0] = adds ? out[0] + re : re;                                                                    \
        if (type == DUET_C64 || type == DUET_C128) out[1] = adds ? out[1] + im : im;                         \
    }
INLINE void multiply_element(duet_dtype type, void *to, const void *x, const void *y, bool adds)
{
    if (type == DUET_F32 || type == DUET_C64) PRODUCT_OF(float)
    else PRODUCT_OF(double)
}

#endif
