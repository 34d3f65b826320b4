/* layer_norm_supported.c - which steps of layer_norm the kernels support. */
#include "dtype.h"
#include "layer_norm.h"
#include "supported.h"

/* Long rows are reduced in the order of memory. This is slow where the elements of a row are far apart. */
const char *layer_norm_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    const operand *x = &s->in[0];
    const bool is_long = norm_length(s) > NORM_BYTES / (int64_t)dtypes[x->at.type].bytes;
    REJECT(is_long && x->at.stride[x->at.rank - 1] != 1, "long rows must be contiguous");
    return norm_unsupported(s);
}
