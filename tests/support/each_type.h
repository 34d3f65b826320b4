/* each_type.h - loops over the element types of one kind. */
#ifndef EACH_TYPE_H
#define EACH_TYPE_H

#include "dtype.h"

/* Do the machines generate random numbers of this type? Others are converted. */
static inline bool is_drawn(duet_dtype t) { return dtype_is_f32_or_f64(t) || t == DUET_I64; }

#define FOR_TYPES(t, accepted)                                                                               \
    for (duet_dtype t = 0; t < DUET_DTYPE_COUNT; t++)                                                        \
        if (!(accepted)) continue;                                                                           \
        else
#define FOR_FLOAT_TYPES(t) FOR_TYPES (t, dtype_is_f32_or_f64(t))
#define FOR_REAL_TYPES(t)  FOR_TYPES (t, !dtype_is_complex(t))
#define FOR_DRAWN_TYPES(t) FOR_TYPES (t, is_drawn(t))

#endif
