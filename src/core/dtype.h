/* dtype.h - the element types, from their rows. */
#ifndef DTYPE_H
#define DTYPE_H

#include <duet/duet.h>

typedef struct dtype_info {
    const char *name; /* "f32" */
    size_t bytes;
    double roundoff, tiny;
} dtype_info;

/* Types below the first are floating point, below the second also i64: those that formulas are computed in. */
#define FLOAT_TYPES DUET_I64
#define OWN_TYPES   DUET_F16

extern const dtype_info dtypes[DUET_DTYPE_COUNT];

#endif
