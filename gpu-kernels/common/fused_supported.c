/* fused_supported.c - which fused rows the kernels support. */
#include "supported.h"

#define FUSED_INPUTS 3

const char *fused_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    return s->ins > FUSED_INPUTS || s->nums > 2 ? "a fused kernel has too many operands" : NULL;
}
