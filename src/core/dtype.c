/* dtype.c - the element types, from their rows. */
#include "dtype.h"

const dtype_info dtypes[DUET_DTYPE_COUNT] = {
#define DUET_DTYPE(NAME, name, type, bits, roundoff, tiny) { #name, sizeof(type), roundoff, tiny },
#define DUET_INTEGER(NAME, name, type)                     { #name, sizeof(type), 0, 0 },
#include <duet/dtype.def>
};
