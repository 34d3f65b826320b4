/* linalg_stack.c - see linalg_stack.h. */
#include "linalg_stack.h"
#include "scratch.h"

/* Results in scratch memory, and the addresses of all operands. */
typedef struct stack {
    step s;
    void *data[LINALG_OPERANDS];
    int taken; /* results that have memory */
} stack;

static duet_status stack_open(stack *k, const step *s, const frame *f, const queue *q)
{
    *k = (stack){ .s = *s };
    for (int i = 0; i < s->ins; i++) {
        k->data[s->outs + i] = f->data[s->in[i].slot];
        k->s.in[i].slot = s->outs + i;
    }
    for (int i = 0; i < s->outs; i++) {
        const layout *at = &s->out[i].at;
        const size_t bytes = (size_t)layout_count(at) * dtypes[at->type].bytes;
        layout_dense(&k->s.out[i].at, at->type, at->rank, at->size);
        k->s.out[i].slot = i;
        TRY(scratch_acquire_workspace(q->device, bytes ? bytes : 1, q->index, &k->data[i]));
        k->taken++;
    }
    return DUET_OK;
}

static void stack_close(stack *k, const queue *q)
{
    while (k->taken > 0) scratch_release(q->device, k->data[--k->taken], q->index);
}

static duet_status stack_write(const stack *k, const step *s, const frame *f, queue *q)
{
    for (int i = 0; i < s->outs; i++) {
        const part x = { .p = k->data[i], .at = &k->s.out[i].at };
        if (!layout_count(x.at)) continue;
        const duet_status r = gpu_apply(OP_LOAD, f->data[s->out[i].slot], &s->out[i].at, &x, 1, q);
        if (r != DUET_OK) return i ? half_written(r) : r;
    }
    return DUET_OK;
}

duet_status gpu_linear_stack(const step *s, const frame *f, queue *q, const linalg_batch *b,
                             duet_status one(const step *s, const frame *f, queue *q))
{
    stack k;
    duet_status r = stack_open(&k, s, f, q);
    const step matrix = linalg_batch_step(&k.s, b);
    for (int64_t i = 0; i < b->count && r == DUET_OK; i++) {
        void *own[LINALG_OPERANDS];
        frame of = *f;
        linalg_batch_data(&k.s, b, i, k.data, own);
        of.data = own;
        r = one(&matrix, &of, q);
        if (r == DUET_SINGULAR || r == DUET_NOT_FINITE || r == DUET_NO_CONVERGENCE)
            r = linalg_batch_failed(b, i, r);
    }
    if (r == DUET_OK) r = stack_write(&k, s, f, q);
    stack_close(&k, q);
    return r;
}
