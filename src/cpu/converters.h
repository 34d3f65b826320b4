/* converters.h - converts rows of elements between type T and any other real type. Template. */
#ifndef CONVERTERS_H
#define CONVERTERS_H

#include "template_prelude.h"

/* Converts n elements. `stride` applies to the side that is not of type T. The rows must not
 * overlap. */
typedef struct converter {
    void (*in)(T *to, const void *from, int64_t stride, int64_t n);
    void (*out)(void *to, const T *from, int64_t stride, int64_t n);
} converter;
extern const converter NAME(converters)[DUET_C64]; /* indexed by type */
#define converters NAME(converters)

#endif
