/* registry.c - whether a kernel supports a step, and what the step costs, by the rows of kernels.def.
 * Nothing here needs CUDA, so the fake CUDA of the tests uses it too. */
#include "supported.h"

static const struct {
    support_rule *unsupported;
    step_cost *cost;
} rules[KERNELS_ALL] = {
#define GPU_KERNEL(number, unsupported, cost, launch) [number] = { unsupported, cost },
#include "kernels.def"
};

const char *kernels_unsupported(const step *s)
{
    support_rule *const unsupported = rules[s->kernel].unsupported;
    if (unsupported) return unsupported(s);
    const char *why = float_unsupported(s);
    return why ? why : "there is no kernel for this operator";
}

double kernels_cost(const step *s, const costs *c)
{
    step_cost *const cost = rules[s->kernel].cost;
    return (cost ? cost : cost_of_pass)(s, c);
}
