/* supported.c - which steps the kernels support. Nothing here needs CUDA, so the fake kernels of
 * the tests use it too. */
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

/* ---- the registry ---- */

static const struct {
    support_rule *unsupported;
    step_cost *cost;
} kernels[KERNELS_ALL] = {
#define KERNEL(number, unsupported, cost, launch) [number] = { unsupported, cost },
#include "kernels.def"
};

const char *kernels_unsupported(const step *s)
{
    support_rule *const unsupported = kernels[s->kernel].unsupported;
    if (unsupported) return unsupported(s);
    const char *why = float_unsupported(s);
    return why ? why : "there is no kernel for this operator";
}

double kernels_cost(const step *s, const costs *c)
{
    step_cost *const cost = kernels[s->kernel].cost;
    return (cost ? cost : cost_of_pass)(s, c);
}
