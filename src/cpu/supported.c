/* supported.c - the element types of a step, for the rules that say which steps a kernel supports. */
#include "cpu_kernels.h"
#include "dtype.h"

duet_dtype step_computes_in(const step *s)
{
    if (kernel_may_fail(s->kernel)) return s->in[0].at.type;
    return s->kernel == KERNEL_PROGRAM ? s->program->code[0].type : s->out[0].at.type;
}

bool step_has_one_type(const step *s)
{
    bool one = true;
    for (int k = 0; k < s->outs; k++) one &= s->out[k].at.type == s->out[0].at.type;
    for (int k = 0; k < s->ins; k++) one &= s->in[k].at.type == s->out[0].at.type;
    return one;
}

const char *float_step_unsupported(const step *s)
{
    if (!step_has_one_type(s)) return "the operands must have the same element type";
    return !dtype_is_f32_or_f64(s->out[0].at.type) ? "the element type is not supported" : NULL;
}

bool always_sure(const step *s) { return true; }
