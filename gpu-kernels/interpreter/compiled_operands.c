/* compiled_operands.c - describes the operands of compiled kernels (compiled_operands.h). */
#include "compiled_operands.h"
#include <string.h>

static int ptx_access_of(enum how how, bool vectors)
{
    switch (how) {
    case HOW_VECTORS: return PTX_DENSE;
    case HOW_SCALARS: return vectors ? PTX_LOOSE : PTX_DENSE;
    case HOW_SINGLE: return PTX_SINGLE;
    case HOW_WALK: return PTX_WALK;
    case HOW_ROUND: return vectors ? PTX_ROUND : PTX_ANY;
    case HOW_CYCLE: return vectors ? PTX_CYCLE : PTX_ANY;
    case HOW_RUNS: return vectors ? PTX_RUNS : PTX_ANY;
    default: return PTX_ANY;
    }
}

void compiled_form(ptx_request *f, const operands *o, const interp_head *h, interp_path paths[])
{
    f->out_walks = !h->out_dense;
    f->outputs = (uint8_t)o->outs;
    f->inputs = h->inputs;
    bool walks = f->out_walks;
    for (int k = 0; k < o->outs; k++) f->out_type[k] = (uint8_t)o->of[k].type;
    for (int k = 0; k < h->inputs; k++) {
        const enum how how = operand_how(o, o->outs + k, h->n, h->lead, &paths[k]);
        f->access[k] = (uint8_t)ptx_access_of(how, f->width > 1);
        f->in_type[k] = (uint8_t)o->of[o->outs + k].type;
        walks |= f->access[k] == PTX_WALK;
    }
    if (walks) f->rank = (uint8_t)o->of[0].rank;
}

static char *put_bytes(char *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return to + bytes;
}

static void set_words(const ptx_request *f, const operands *o, const interp_path paths[],
                      const ptx_places *at, char *to)
{
    int32_t stride[DUET_RANK_MAX];
    for (int x = 0; x < f->rank; x++) {
        const divider32 size = divide_by32(o->of[0].size[x]);
        memcpy(to + at->sizes + 12 * x, &size, sizeof size);
    }
    for (int k = 0; k < o->count - o->outs; k++) {
        if (f->access[k] == PTX_WALK) {
            operand_strides(&o->of[o->outs + k], stride);
            memcpy(to + at->in_words[k], stride, f->rank * sizeof *stride);
        } else if (f->access[k] > PTX_SINGLE) {
            char *words = put_bytes(to + at->in_words[k], &paths[k].run, sizeof paths[k].run);
            words = put_bytes(words, &paths[k].size, sizeof paths[k].size);
            memcpy(words, &paths[k].stride, sizeof paths[k].stride);
        }
    }
    for (int k = 0; k < o->outs && f->out_walks; k++) {
        operand_strides(&o->of[k], stride);
        memcpy(to + at->out_strides[k], stride, f->rank * sizeof *stride);
    }
}

void compiled_args(const ptx_request *f, const operands *o, const interp_head *h, const double *num,
                   const interp_path paths[], void *argument)
{
    const ptx_places at = ptx_places_of(f);
    const int64_t lead = f->width == 1 ? 0 : h->lead;
    char *to = argument;
    memcpy(to + at.n, &h->n, sizeof h->n);
    memcpy(to + at.lead, &lead, sizeof lead);
    memcpy(to + at.out[0], h->out, (size_t)o->outs * sizeof *h->out);
    if (h->inputs) memcpy(to + at.in[0], h->in, h->inputs * sizeof *h->in);
    for (int k = 0; k < f->numbers; k++) {
        const float narrow = (float)num[k];
        if (f->type != DUET_F32) memcpy(to + at.numbers + 8 * k, &num[k], 8);
        else memcpy(to + at.numbers + 4 * k, &narrow, 4);
    }
    set_words(f, o, paths, &at, to);
}
