/* finish.c - see finish.h. */
#include "finish.h"
#include <stdlib.h>

/* x + bias, and the activation of that; a softmax is a step of its own. */
static program adding_of(const step *s)
{
    const uint8_t type = (uint8_t)s->out[0].at.type, act = (uint8_t)finish_infos[s->finish].act;
    program p = { .inputs = 2, .outputs = 1 };
    p.code[p.length++] = (instruction){ OP_add, type, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 } } };
    if (act != OP_LOAD && act != OP_softmax) p.code[p.length++] = (instruction){ act, type, { { FROM_ACC, 0 } } };
    p.code[p.length++] = (instruction){ .op = OP_STORE, .type = type };
    return p;
}

void finishing_make(finishing *p, const step *s, int64_t items, int64_t channels, int64_t inner)
{
    layout at, bias;
    const int64_t size[] = { items, channels, inner };
    layout_dense(&at, s->out[0].at.type, inner == 1 ? 2 : 3, size);
    bias = at;
    bias.stride[0] = 0, bias.stride[1] = s->in[2].at.stride[0], bias.stride[2] = 0;
    *p = (finishing){ .items = items, .adding = adding_of(s) };
    p->softmax = (step){ .kernel = OP_softmax, .outs = 1, .ins = 1, .out = { { 0, at } }, .in = { { 0, at } } };
    p->bias = (step){ .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 2, .out = { { 0, at } }, .in = { { 0, at }, { 1, bias } } };
    layout_collapse((layout *[]){ &p->bias.out[0].at, &p->bias.in[0].at, &p->bias.in[1].at }, 3);
}

duet_status finishing_run(finishing *p, const step *s, const frame *f, void *results)
{
    const kernels *k = kernels_of(s->out[0].at.type);
    void *const data[] = { results, address(f, &s->in[2]) };
    const frame own = { .data = data, .queue = f->queue };
    p->bias.program = &p->adding;
    TRY(k->program(&p->bias, &own));
    return finish_infos[s->finish].act == OP_softmax ? k->softmax(&p->softmax, &own) : DUET_OK;
}

void finishing_free(finishing *p) { program_forget(&p->bias); }

/* ---- kept between runs ---- */

static void make_finished(finished *k, const step *s, int64_t rows)
{
    const int64_t *size = s->out[0].at.size;
    finishing_make(&k->whole, s, rows, size[1], 1);
    finishing_make(&k->rest, s, size[0] % rows, size[1], 1);
}

/* Steps are the plan's, which lets their machine keep things. */
duet_status finished_keep(const step *s, int64_t rows, finished **k)
{
    *k = s->kept;
    if (*k && (*k)->whole.items == rows) return DUET_OK;
    finished_forget((step *)s);
    *k = ((step *)s)->kept = malloc(sizeof **k);
    if (!*k) return fail(DUET_NO_MEMORY, "no memory for what follows a product");
    make_finished(*k, s, rows);
    return DUET_OK;
}

void finished_forget(step *s)
{
    finished *k = s->kept;
    if (k) finishing_free(&k->whole), finishing_free(&k->rest);
    free(k);
    s->kept = NULL;
}
