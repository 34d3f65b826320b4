/* dtype.c - the element types, from their rows. */
#include "dtype.h"

const dtype_info dtypes[DUET_DTYPE_COUNT] = {
#define DUET_DTYPE(NAME, name, type, bits, roundoff, tiny) { #name, sizeof(type), roundoff, tiny },
#define DUET_INTEGER(NAME, name, type)                     { #name, sizeof(type), 0, 0 },
#define DUET_HALF(NAME, name, roundoff, tiny)              { #name, 2, roundoff, tiny },
#define DUET_NARROW(NAME, name, type)                      { #name, sizeof(type), 0, 0 },
#define DUET_COMPLEX(NAME, name, part)                     { #name, 2 * sizeof(PART_##part), 0, 0 },
#define PART_F32                                           float
#define PART_F64                                           double
#include <duet/dtype.def>
};
