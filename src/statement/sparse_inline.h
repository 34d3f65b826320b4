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

/* A copy of an element, which the compiler keeps in registers. */
typedef union number {
    float f[2];
    double d[2];
    uint32_t single[2];
    uint64_t twice[2];
} number;
INLINE number number_at(duet_dtype type, const void *list, int64_t i)
{
    number x = { .d = { 0 } };
    copy_element(type, &x, element_at(list, type, i));
    return x;
}

/* The number -0. A sum of it and x has the bits of x. */
INLINE number minus_zero(duet_dtype type)
{
    if (type == DUET_F32 || type == DUET_C64) return (number){ .f = { -0.0F, -0.0F } };
    return (number){ .d = { -0.0, -0.0 } };
}

/* Element i, or -0 if not `taken`; without a branch. */
INLINE number number_if(duet_dtype type, const void *list, int64_t i, bool taken)
{
    const number none = minus_zero(type);
    const uint64_t mask = -(uint64_t)taken;
    number x = number_at(type, list, i);
    for (int k = 0; k < 2; k++)
        if (type == DUET_F32 || type == DUET_C64)
            x.single[k] = (x.single[k] & (uint32_t)mask) | (none.single[k] & (uint32_t)~mask);
        else x.twice[k] = (x.twice[k] & mask) | (none.twice[k] & ~mask);
    return x;
}

/* to = x + y */
INLINE void add_elements(duet_dtype type, void *to, const void *x, const void *y)
{
    const int numbers = type == DUET_C64 || type == DUET_C128 ? 2 : 1;
    for (int k = 0; k < numbers; k++) {
        if (type == DUET_F32 || type == DUET_C64)
            ((float *)to)[k] = ((const float *)x)[k] + ((const float *)y)[k];
        else ((double *)to)[k] = ((const double *)x)[k] + ((const double *)y)[k];
    }
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

/* Copies n indices to a list of another width, adding `more`. */
INLINE void copy_indices(void *to, bool to_wide, const void *from, bool wide, int64_t n, int64_t more)
{
#define COPY_INDICES(a, b)                                                                                   \
    for (int64_t i = 0; i < n; i++) put_index(to, b, i, index_in(from, a, i) + more)
    if (wide && to_wide) COPY_INDICES(true, true);
    else if (wide) COPY_INDICES(true, false);
    else if (to_wide) COPY_INDICES(false, true);
    else COPY_INDICES(false, false);
#undef COPY_INDICES
}
INLINE void *index_place(const void *list, bool wide, int64_t i)
{
    return (char *)(uintptr_t)list + i * (wide ? 8 : 4);
}

#endif
