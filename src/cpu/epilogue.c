/* epilogue.c - the steps of an epilogue (epilogue.h), run by the kernels of this folder. */
#include "epilogue.h"
#include <stdlib.h>
#include <string.h>

enum { RESULTS, OUT, BIAS, SLOTS };

/* ---- the element-wise step ---- */

/* The program x or x + bias, followed by the activation unless that is softmax. */
static program elementwise_program(const step *s, bool has_bias)
{
    const uint8_t type = (uint8_t)s->out[0].at.type, act = (uint8_t)epilogue_infos[s->epilogue].act;
    const bool acts = act != OP_LOAD && act != OP_softmax;
    program p = { .inputs = has_bias ? 1 : 2, .outputs = 1 };
    if (has_bias) p.code[p.length++] = (instruction){ OP_LOAD, type, { { FROM_INPUT, 0 } } };
    else p.code[p.length++] = (instruction){ OP_add, type, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 } } };
    if (acts) p.code[p.length++] = (instruction){ act, type, { { FROM_ACC, 0 } } };
    p.code[p.length++] = (instruction){ .op = OP_STORE, .type = type };
    return p;
}

static layout bias_layout(const layout *bias, const layout *at)
{
    layout l = *at;
    for (int a = 0; a < l.rank; a++) l.stride[a] = a == 1 ? bias->stride[0] : 0;
    return l;
}

static void add_elementwise(epilogue_steps *p, const step *s, const epilogue_input *r, operand from,
                            operand to)
{
    step *e = &p->step[p->steps++];
    p->program = elementwise_program(s, r->has_bias);
    *e = (step){
        .kernel = KERNEL_PROGRAM, .outs = 1, .ins = p->program.inputs, .out = { to }, .in = { from }
    };
    e->in[1] = (operand){ BIAS, bias_layout(&s->in[2].at, &from.at) };
    layout_collapse((layout *[]){ &e->out[0].at, &e->in[0].at, &e->in[1].at }, 3);
}

/* ---- pooling and softmax ---- */

static void add_pool(epilogue_steps *p, const step *s, operand from, operand to)
{
    step *e = &p->step[p->steps++];
    *e = (step){ .kernel = OP_max_pool2d, .outs = 1, .ins = 1, .out = { to }, .in = { from } };
    e->attr.pool = s->attr.conv.pool;
}

/* May relu follow max pooling? It commutes with the maximum, also for NaN. It does not if a window
 * may lie in the padding only. */
static bool pool_before_relu(const step *s, const epilogue_input *r)
{
    const int32_t *pad = s->attr.conv.pool.pad;
    return r->has_bias && epilogue_infos[s->epilogue].act == OP_relu && !pad[0] && !pad[1];
}

static void make_pooled(epilogue_steps *p, const step *s, const epilogue_input *r, operand from, operand to)
{
    const bool relu_last = pool_before_relu(s, r);
    if (!relu_last) add_elementwise(p, s, r, from, from);
    add_pool(p, s, from, to);
    if (relu_last) add_elementwise(p, s, r, to, to);
}

void epilogue_make(epilogue_steps *p, const step *s, const epilogue_input *r)
{
    int64_t size[DUET_RANK_MAX];
    operand from = { RESULTS, r->at }, to = { OUT, r->at };
    memcpy(size, s->out[0].at.size, sizeof size);
    size[0] = r->at.size[0];
    layout_dense(&to.at, r->at.type, r->at.rank, size);
    *p = (epilogue_steps){ .items = size[0] };
    if (epilogue_infos[s->epilogue].pooled) make_pooled(p, s, r, from, to);
    else add_elementwise(p, s, r, from, r->separate ? to : from);
    if (epilogue_infos[s->epilogue].act != OP_softmax) return;
    p->step[p->steps++] =
        (step){ .kernel = OP_softmax, .outs = 1, .ins = 1, .out = { from }, .in = { from } };
}

/* ---- running ---- */

static duet_status run_step(const step *s, const frame *f)
{
    const isa_functions *k = isa_functions_of(s->out[0].at.type);
    if (s->kernel == KERNEL_PROGRAM) return k->program(s, f);
    if (s->kernel == OP_softmax) return k->softmax(s, f);
    return k->pool2d(s, f);
}

duet_status epilogue_run(epilogue_steps *p, const step *s, const frame *f, void *from, void *out)
{
    void *const data[SLOTS] = { from, out, address(f, &s->in[2]) };
    const frame own = { .data = data, .queue = f->queue };
    for (int i = 0; i < p->steps; i++) {
        p->step[i].program = &p->program;
        TRY(run_step(&p->step[i], &own));
    }
    return DUET_OK;
}

void epilogue_free(epilogue_steps *p)
{
    for (int i = 0; i < p->steps; i++) program_forget(&p->step[i]);
}

/* ---- epilogues of matrix products, stored between runs ---- */

static void make_for_rows(epilogue_steps *p, const step *s, int64_t rows)
{
    epilogue_input r = { .has_bias = false };
    layout_dense(&r.at, s->out[0].at.type, 2, (int64_t[]){ rows, s->out[0].at.size[1] });
    epilogue_make(p, s, &r);
}

/* The step's field is for the backend, although the step is const. */
duet_status epilogue_cache_get(const step *s, int64_t rows, epilogue_cache **k)
{
    *k = s->cached;
    if (*k && (*k)->full.items == rows) return DUET_OK;
    epilogue_cache_free((step *)s);
    *k = ((step *)s)->cached = malloc(sizeof **k);
    if (!*k) return fail(DUET_NO_MEMORY, "no host memory to describe the epilogue of a product");
    make_for_rows(&(*k)->full, s, rows);
    make_for_rows(&(*k)->remainder, s, s->out[0].at.size[0] % rows);
    return DUET_OK;
}

void epilogue_cache_free(step *s)
{
    epilogue_cache *k = s->cached;
    if (k) {
        epilogue_free(&k->full);
        epilogue_free(&k->remainder);
    }
    free(k);
    s->cached = NULL;
}
