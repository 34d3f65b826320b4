/* converters.h - rows of elements of any real type, made T's and back, by the functions of core/convert.h. A template. */
#ifndef CONVERTERS_H
#define CONVERTERS_H

#include "template_prelude.h"

/* n elements, `stride` apart on the side that is not of type T; to and from do not overlap. */
typedef struct converter {
    void (*in)(T *to, const void *from, int64_t stride, int64_t n);
    void (*out)(void *to, const T *from, int64_t stride, int64_t n);
} converter;
extern const converter NAME(converters)[DUET_C64]; /* by type */
#define converters NAME(converters)

#endif
