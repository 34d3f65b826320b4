/* supported.c - rules that say which steps the kernels support: those that several kernels share. */
#include "supported.h"

duet_dtype step_type(const step *s)
{
    return s->kernel == KERNEL_PROGRAM ? (duet_dtype)s->program->code[0].type : s->out[0].at.type;
}

static const char *differing_types(const step *s)
{
    for (int k = 0; k < s->ins; k++)
        REJECT(s->in[k].at.type != s->out[0].at.type, "the operands must have the same element type");
    return NULL;
}

const char *float_unsupported(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    REJECT(s->outs != 1, "the kernel has one output");
    REJECT(type != DUET_F32 && type != DUET_F64, "the elements must be f32 or f64");
    return differing_types(s);
}

const char *arithmetic_unsupported(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    REJECT(s->outs != 1, "the kernel has one output");
    REJECT(type != DUET_F32 && type != DUET_F64 && type != DUET_I64, "the element type is not supported");
    return differing_types(s);
}
