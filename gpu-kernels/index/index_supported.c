/* index_supported.c - which scans, gathers, scatters, sorts and histograms the kernels support. The
 * kernels count the elements of an axis, and lines, with 32 bits. */
#include "index_ops.h"
#include "supported.h"

#define LONGEST_AXIS (INT32_MAX / 2)

static const char *axis_unsupported(const step *s)
{
    REJECT(s->in[0].at.size[s->attr.index.axis] > LONGEST_AXIS, "the axis must have less than 2^30 elements");
    return index_unsupported(s);
}

const char *scan_unsupported(const step *s)
{
    const char *why = axis_unsupported(s);
    return why ? why : index_arithmetic_unsupported(s);
}

const char *take_unsupported(const step *s) { return axis_unsupported(s); }

const char *put_unsupported(const step *s)
{
    const char *why = axis_unsupported(s);
    if (why) return why;
    return layout_count(&s->in[1].at) > LONGEST_AXIS ? "there must be less than 2^30 indices" : NULL;
}

const char *scatter_unsupported(const step *s)
{
    const char *why = put_unsupported(s);
    return why ? why : index_arithmetic_unsupported(s);
}

static int64_t lines_along(const layout *l, int axis)
{
    return l->size[axis] ? layout_count(l) / l->size[axis] : 0;
}

const char *sort_unsupported(const step *s)
{
    const char *why = axis_unsupported(s);
    if (why) return why;
    return lines_along(&s->in[0].at, s->attr.index.axis) > INT32_MAX
               ? "there must be less than 2^31 lines along the axis"
               : NULL;
}

const char *csr_kernel_unsupported(const step *s)
{
    const duet_dtype t = s->out[0].at.type, index = s->in[1].at.type;
    REJECT(s->outs != 1 || s->ins < 2, "the step has the wrong number of operands");
    REJECT(t != DUET_F32 && t != DUET_F64 && t != DUET_C64 && t != DUET_C128,
           "the element type is not supported");
    REJECT(index != DUET_I32 && index != DUET_I64, "the pattern must be i32 or i64");
    for (int k = 0; k < s->ins; k++)
        REJECT(k != 1 && s->in[k].at.type != t, "the operands must have the same element type");
    return NULL;
}
