/* launch.c - the pretended kernels: what gpu-kernels/kernels.h promises, run later on the host by launch_tmpl.c. */
#include "dtype.h"
#include "fake.h"
#include "fold.h"
#include "kernels.h"
#include "lottery.h"

/* One operator at most, and nothing set aside: [LOAD] [operator] STORE. */
static const char *refuse_program(const program *p)
{
    int operators = 0, loads = 0, stores = 0;
    for (int i = 0; i < p->length; i++) {
        const instruction *c = &p->code[i];
        operators += c->op < OPS, loads += c->op == OP_LOAD, stores += c->op == OP_STORE;
        for (int k = 0; c->op < OPS && k < op_infos[c->op].arity; k++)
            if (c->arg[k].kind == FROM_SLOT || (c->arg[k].kind == FROM_ACC && !loads)) return "an operand that was not loaded";
    }
    if (operators > 1) return "a program of more than one operator";
    bool fits = loads <= 1 && operators + loads > 0 && stores == 1 && p->length == loads + operators + stores;
    return fits && p->code[p->length - 1].op == OP_STORE && (!loads || p->code[0].op == OP_LOAD) ? NULL
                                                                                                 : "not LOAD, operator, STORE";
}

static const char *refuse_types(const step *s)
{
    if (s->outs != 1) return "more than one output";
    for (int i = 0; i < s->ins; i++)
        if (s->in[i].at.type != s->out[0].at.type) return "operands of different element types";
    return NULL;
}

const char *kernels_refuse(const step *s)
{
    if (s->kernel == KERNEL_RANDOM) return lottery_refuses(s);
    const char *why = refuse_types(s);
    if (why || s->kernel == KERNEL_PROGRAM) return why ? why : refuse_program(s->program);
    if (s->kernel > KERNEL_PROGRAM && s->kernel < KERNELS) return s->ins > 3 || s->nums > 2 ? "too many operands" : NULL;
    if (s->kernel < OPS && op_infos[s->kernel].kind == KIND_FOLD) return NULL;
    switch (s->kernel) {
    case OP_softmax:
    case OP_log_softmax:
    case OP_max_pool2d:
    case OP_avg_pool2d: return NULL;
    default: return "no kernel for this operator";
    }
}

/* Like real kernels, long folds need room for the results of blocks, and permutations to sort. */
size_t kernels_scratch(const step *s)
{
    if (s->kernel == KERNEL_RANDOM) return s->attr[0] == LAW_PERMUTATION ? (size_t)s->out[0].at.size[0] * 32 : 0;
    if (s->kernel >= OPS || op_infos[s->kernel].kind != KIND_FOLD) return 0;
    int64_t n = layout_count(&s->in[0].at);
    return n > FOLD_BLOCK ? (size_t)(n / FOLD_BLOCK + 1) * dtypes[s->in[0].at.type].bytes : 0;
}

static void run_job(void *args)
{
    job *j = args;
    j->s.program = &j->p;
    j->s.out[0].at.type == DUET_F32 ? fake_run_f32(j) : fake_run_f64(j);
}

/* The address of an operand, when all that its layout reaches is device memory. */
static bool resolve(const operand *x, const frame *f, void **p)
{
    int64_t low, high;
    size_t each = dtypes[x->at.type].bytes;
    layout_span(&x->at, &low, &high);
    *p = f->data[x->slot];
    return high == low || fake_owns((char *)*p + low * (int64_t)each, (size_t)(high - low) * each);
}

cudaError_t launch_step(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    ENTER(cudaErrorUnknown);
    job j = { .s = *s, .scratch = scratch, .scratch_bytes = kernels_scratch(s) };
    if (kernels_refuse(s) || s->kept) return fake_error(cudaErrorInvalidValue);
    for (int i = 0; i < s->outs; i++)
        if (!resolve(&s->out[i], f, &j.out[i])) return fake_error(cudaErrorInvalidValue);
    for (int i = 0; i < s->ins; i++)
        if (!resolve(&s->in[i], f, &j.in[i])) return fake_error(cudaErrorInvalidValue);
    if (j.scratch_bytes && ((uintptr_t)scratch % 256 || !fake_owns(scratch, j.scratch_bytes)))
        return fake_error(cudaErrorInvalidValue);
    for (int i = 0; i < s->nums; i++) j.num[i] = f->num[s->num[i]];
    if (s->program) j.p = *s->program;
    pthread_mutex_lock(&fake_lock);
    fake_counted.launches++;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(q, run_job, &j, sizeof j);
}
