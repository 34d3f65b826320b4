/* dtype.h - the element types, from their rows. */
#ifndef DTYPE_H
#define DTYPE_H

#include <duet/duet.h>

typedef struct dtype_info {
    const char *name; /* "f32" */
    size_t bytes;
    double roundoff, tiny;
} dtype_info;

/* Types below this one are floating point: those that operators compute in. */
#define FLOAT_TYPES DUET_I64

extern const dtype_info dtypes[DUET_DTYPE_COUNT];

#endif
