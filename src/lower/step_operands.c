/* step_operands.c - what the layouts of all kinds of steps are made with. */
#include "step.h"

int step_operands(step *s, layout *all[STEP_OPERANDS])
{
    for (int k = 0; k < s->outs; k++) all[k] = &s->out[k].at;
    for (int k = 0; k < s->ins; k++) all[s->outs + k] = &s->in[k].at;
    return s->outs + s->ins;
}

layout layout_of_axes(const layout *l, uint32_t which)
{
    layout r = { .type = l->type };
    for (int a = 0; a < l->rank; a++)
        if (which >> a & 1) {
            r.size[r.rank] = l->size[a];
            r.stride[r.rank++] = l->stride[a];
        }
    return r;
}

void axes_append(layout *l, const layout *more)
{
    for (int a = 0; a < more->rank; a++) {
        l->size[l->rank] = more->size[a];
        l->stride[l->rank++] = more->stride[a];
    }
}
