/* dtype.c - the element types, from their rows. */
#include "dtype.h"

const dtype_info dtypes[DUET_DTYPE_COUNT] = {
#define DUET_DTYPE(NAME, name, type, bits, roundoff, tiny) { #name, sizeof(type), roundoff, tiny },
#include <duet/dtype.def>
};
