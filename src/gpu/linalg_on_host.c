/* linalg_on_host.c - runs a step of linear algebra on the CPU: copies the operands to the host and the
 * results back. Used where cuSOLVER cannot work on matrices of the size, or has no result that is accurate
 * enough. */
#include "linalg_on_host.h"
#include "columns.h"
#include "thread.h"
#include "trace.h"

/* An operand as it is on the host, and a copy of it on the device: both in row-major order without
 * gaps. */
typedef struct dense {
    layout at;
    void *host, *device;
    size_t bytes;
} dense;

static duet_status dense_take(solver_workspace *b, const operand *x, dense *d)
{
    layout_dense(&d->at, x->at.type, x->at.rank, x->at.size);
    d->bytes = (size_t)layout_count(&d->at) * dtypes[x->at.type].bytes;
    TRY(gpu_workspace_take(b, ON_HOST, d->bytes, &d->host));
    return gpu_workspace_take(b, ON_CARD, d->bytes, &d->device);
}

static duet_status copy_to_host(solver_workspace *b, const operand *x, const dense *d)
{
    if (!d->bytes) return DUET_OK;
    TRY(gpu_apply(OP_LOAD, d->device, &d->at, &(part){ .p = b->f->data[x->slot], .at = &x->at }, 1, b->q));
    return CUDA(cudaMemcpyAsync, d->host, d->device, d->bytes, cudaMemcpyDeviceToHost, b->q->stream);
}

static duet_status copy_to_device(solver_workspace *b, const operand *x, const dense *d)
{
    if (!d->bytes) return DUET_OK;
    TRY(CUDA(cudaMemcpyAsync, d->device, d->host, d->bytes, cudaMemcpyHostToDevice, b->q->stream));
    return gpu_apply(OP_LOAD, b->f->data[x->slot], &x->at, &(part){ .p = d->device, .at = &d->at }, 1, b->q);
}

/* May the operands be copied to the CPU? They are part of a statement (core/transfers.h). */
static duet_status check_transfer(enum linalg_failed why)
{
    const thread *t = thread_get();
    const char *reason = why == LINALG_WORKSPACE ? "cuSOLVER cannot work on matrices as large as these"
                                                 : "the GPU has no result that is accurate enough";
    if (t->accesses || t->transfers == DUET_TRANSFERS_ALLOWED) return DUET_OK;
    if (t->transfers == DUET_TRANSFERS_FORBIDDEN)
        return fail(DUET_FORBIDDEN,
                    "the operands would be copied to the CPU, because %s; copies between devices are "
                    "forbidden here",
                    reason);
    trace_line("the operands are copied to the CPU, because %s", reason);
    return DUET_OK;
}

duet_status gpu_linear_on_host(solver_workspace *b, enum linalg_failed why, int64_t place)
{
    const machine *host = device_machine(HOST);
    const solver_workspace was = *b;
    step s = *b->s;
    dense in[STEP_INPUTS], out[STEP_OUTPUTS];
    void *data[STEP_INPUTS + STEP_OUTPUTS];
    int slot = 0;
    TRY(check_transfer(why));
    gpu_workspace_close(b);
    TRY(gpu_workspace_open(b, was.s, was.f, was.q));
    for (int k = 0; k < s.ins; k++) {
        TRY(dense_take(b, &was.s->in[k], &in[k]));
        TRY(copy_to_host(b, &was.s->in[k], &in[k]));
        s.in[k] = (operand){ slot, in[k].at };
        data[slot++] = in[k].host;
    }
    for (int k = 0; k < s.outs; k++) {
        TRY(dense_take(b, &was.s->out[k], &out[k]));
        s.out[k] = (operand){ slot, out[k].at };
        data[slot++] = out[k].host;
    }
    if (host->unsupported_reason(&s)) return linalg_failed(was.s, why, place);
    TRY(gpu_stream_wait(b->q->device, b->q->stream));
    COUNT(synchronisations);
    TRY(host->run(&s, &(frame){ .data = data, .num = was.f->num, .queue = was.f->queue, .device = HOST }));
    TRY(copy_to_device(b, &was.s->out[0], &out[0]));
    for (int k = 1; k < s.outs; k++) TRY(half_written(copy_to_device(b, &was.s->out[k], &out[k])));
    return DUET_OK;
}
