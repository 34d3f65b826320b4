/* epilogue.c - see epilogue.h. */
#include "epilogue.h"
#include <stdlib.h>
#include <string.h>

enum { RESULTS, OUT, BIAS, SLOTS };

/* ---- element by element ---- */

/* x, or x + bias, and the activation of that unless it takes rows. */
static program each_of(const step *s, bool biased)
{
    const uint8_t type = (uint8_t)s->out[0].at.type, act = (uint8_t)epilogue_infos[s->epilogue].act;
    const bool acts = act != OP_LOAD && act != OP_softmax;
    program p = { .inputs = biased ? 1 : 2, .outputs = 1 };
    if (biased) p.code[p.length++] = (instruction){ OP_LOAD, type, { { FROM_INPUT, 0 } } };
    else p.code[p.length++] = (instruction){ OP_add, type, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 } } };
    if (acts) p.code[p.length++] = (instruction){ act, type, { { FROM_ACC, 0 } } };
    p.code[p.length++] = (instruction){ .op = OP_STORE, .type = type };
    return p;
}

static layout over_channels(const layout *bias, const layout *at)
{
    layout l = *at;
    for (int a = 0; a < l.rank; a++) l.stride[a] = a == 1 ? bias->stride[0] : 0;
    return l;
}

static void add_each(finishing *p, const step *s, const results *r, operand from, operand to)
{
    step *e = &p->step[p->steps++];
    p->each = each_of(s, r->biased);
    *e = (step){ .kernel = KERNEL_PROGRAM, .outs = 1, .ins = p->each.inputs, .out = { to }, .in = { from } };
    e->in[1] = (operand){ BIAS, over_channels(&s->in[2].at, &from.at) };
    layout_collapse((layout *[]){ &e->out[0].at, &e->in[0].at, &e->in[1].at }, 3);
}

/* ---- then ---- */

static void add_pool(finishing *p, const step *s, operand from, operand to)
{
    step *e = &p->step[p->steps++];
    *e = (step){ .kernel = OP_max_pool2d, .outs = 1, .ins = 1, .out = { to }, .in = { from } };
    e->attr.pool = s->attr.conv.pool;
}

/* The greatest of some numbers after relu is that number before it, NaN too; but where a window has nothing of the image. */
static bool relu_may_wait(const step *s, const results *r)
{
    const int32_t *pad = s->attr.conv.pool.pad;
    return r->biased && epilogue_infos[s->epilogue].act == OP_relu && !pad[0] && !pad[1];
}

static void make_pooled(finishing *p, const step *s, const results *r, operand from, operand to)
{
    const bool waits = relu_may_wait(s, r);
    if (!waits) add_each(p, s, r, from, from);
    add_pool(p, s, from, to);
    if (waits) add_each(p, s, r, to, to);
}

void finishing_make(finishing *p, const step *s, const results *r)
{
    int64_t size[DUET_RANK_MAX];
    operand from = { RESULTS, r->at }, to = { OUT, r->at };
    memcpy(size, s->out[0].at.size, sizeof size);
    size[0] = r->at.size[0];
    layout_dense(&to.at, r->at.type, r->at.rank, size);
    *p = (finishing){ .items = size[0] };
    if (epilogue_infos[s->epilogue].pooled) make_pooled(p, s, r, from, to);
    else add_each(p, s, r, from, r->apart ? to : from);
    if (epilogue_infos[s->epilogue].act != OP_softmax) return;
    p->step[p->steps++] =
        (step){ .kernel = OP_softmax, .outs = 1, .ins = 1, .out = { from }, .in = { from } };
}

/* ---- running ---- */

static duet_status run_one(const step *s, const frame *f)
{
    const kernels *k = kernels_of(s->out[0].at.type);
    return (s->kernel == KERNEL_PROGRAM ? k->program
            : s->kernel == OP_softmax   ? k->softmax
                                        : k->pool2d)(s, f);
}

duet_status finishing_run(finishing *p, const step *s, const frame *f, void *from, void *out)
{
    void *const data[SLOTS] = { from, out, address(f, &s->in[2]) };
    const frame own = { .data = data, .queue = f->queue };
    for (int i = 0; i < p->steps; i++) {
        p->step[i].program = &p->each;
        TRY(run_one(&p->step[i], &own));
    }
    return DUET_OK;
}

void finishing_free(finishing *p)
{
    for (int i = 0; i < p->steps; i++) program_forget(&p->step[i]);
}

/* ---- of products, kept between runs ---- */

static void make_rows(finishing *p, const step *s, int64_t rows)
{
    results r = { .biased = false };
    layout_dense(&r.at, s->out[0].at.type, 2, (int64_t[]){ rows, s->out[0].at.size[1] });
    finishing_make(p, s, &r);
}

/* Steps are the plan's, which lets their machine keep things. */
duet_status finished_keep(const step *s, int64_t rows, finished **k)
{
    *k = s->kept;
    if (*k && (*k)->whole.items == rows) return DUET_OK;
    finished_forget((step *)s);
    *k = ((step *)s)->kept = malloc(sizeof **k);
    if (!*k) return fail(DUET_NO_MEMORY, "no memory for what follows a product");
    make_rows(&(*k)->whole, s, rows);
    make_rows(&(*k)->rest, s, s->out[0].at.size[0] % rows);
    return DUET_OK;
}

void finished_forget(step *s)
{
    finished *k = s->kept;
    if (k) finishing_free(&k->whole), finishing_free(&k->rest);
    free(k);
    s->kept = NULL;
}
