/* gpu.c - the GPU machine: which of its parts runs a step. */
#include "gpu.h"
#include "dtype.h"
#include "kernels.h"
#include "steps.h"

static const char *gpu_refuses(const step *s)
{
    const char *why = device_absent();
    if (why) return why;
    switch (s->kernel) {
    case OP_matmul: return matmul_refuses(s);
    case OP_conv2d:
    case OP_convolve2d: return conv_refuses(s);
    default: return kernels_refuse(s);
    }
}

/* A roofline: seconds to start a step, bytes and operations a second. */
#define LAUNCH_SECONDS 4e-6
#define BANDWIDTH      3e12
static const double rate[DUET_DTYPE_COUNT] = { [DUET_F32] = 40e12, [DUET_F64] = 30e12 };

static double gpu_cost(const step *s)
{
    double memory = s->bytes / BANDWIDTH, arithmetic = s->flops / rate[s->out[0].at.type];
    return LAUNCH_SECONDS + (memory > arithmetic ? memory : arithmetic);
}

duet_status launch(const step *s, const frame *f, queue *q)
{
    size_t bytes = kernels_scratch(s);
    void *scratch = NULL;
    if (bytes) TRY(pool_take(DEVICE, bytes, q->index, &scratch));
    duet_status r = CUDA(launch_step, s, f, scratch, q->stream);
    give_block(scratch, q);
    if (r == DUET_OK) COUNT(launches);
    return r;
}

void give_block(void *block, const queue *q)
{
    if (block) pool_give(DEVICE, block, (uint64_t)1 << q->index);
}

duet_status copy(void *out, const layout *out_at, const void *in, const layout *in_at, queue *q)
{
    uint8_t type = (uint8_t)out_at->type;
    const program p = { .length = 2,
                        .inputs = 1,
                        .outputs = 1,
                        .code = { { .op = OP_LOAD, .type = type, .arg = { { FROM_INPUT, 0 } } },
                                  { .op = OP_STORE, .type = type, .arg = { { FROM_ACC, 0 } } } } };
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 1, .out = { { 0, *out_at } }, .in = { { 1, *in_at } }, .program = &p };
    layout_collapse((layout *const[]){ &s.out[0].at, &s.in[0].at }, 2);
    return launch(&s, &(frame){ .data = (void *const[]){ out, (void *)in }, .queue = q->index }, q);
}

duet_status densely(const operand *x, const frame *f, queue *q, const void **p, void **block)
{
    *block = NULL, *p = f->data[x->slot];
    if (layout_is_dense(&x->at)) return DUET_OK;
    layout dense;
    layout_dense(&dense, x->at.type, x->at.rank, x->at.size);
    TRY(pool_take(DEVICE, (size_t)layout_count(&dense) * dtypes[dense.type].bytes, q->index, block));
    duet_status s = copy(*block, &dense, *p, &x->at, q);
    *p = *block;
    if (s != DUET_OK) give_block(*block, q), *block = NULL;
    return s;
}

static duet_status gpu_run(const step *s, const frame *f)
{
    queue *q;
    if (!layout_count(&s->out[0].at)) return DUET_OK;
    ON_DEVICE();
    TRY(queue_open(f->queue, &q));
    switch (s->kernel) {
    case OP_matmul: return matmul_run(s, f, q);
    case OP_conv2d:
    case OP_convolve2d: return conv_run(s, f, q);
    default: return launch(s, f, q);
    }
}

static void gpu_forget(step *s)
{
    if (s->kept) conv_forget(s);
}

static void library_info(FILE *out, const char *name, enum library l, int major, int minor, int patch)
{
    const vendor *v = vendor_open(l);
    if (v->missing[l]) fprintf(out, "         %s missing: %s\n", name, v->missing[l]);
    else fprintf(out, "         %s %d.%d.%d (%s)\n", name, major, minor, patch, v->place[l]);
}

static void gpu_info(FILE *out)
{
    const char *why = device_absent();
    int version[3] = { 0 };
    if (why) fprintf(out, "gpu      none: %s\n", why);
    else device_info(out);
    const vendor *v = vendor_open(LIBRARY_cublas);
    for (int i = 0; !v->missing[LIBRARY_cublas] && i < 3; i++) v->cublasGetProperty((libraryPropertyType)i, &version[i]);
    library_info(out, "cuBLAS", LIBRARY_cublas, version[0], version[1], version[2]);
    int dnn = vendor_open(LIBRARY_cudnn)->missing[LIBRARY_cudnn] ? 0 : (int)v->cudnnGetVersion();
    library_info(out, "cuDNN", LIBRARY_cudnn, dnn / 10000, dnn / 100 % 100, dnn % 100);
}

const machine gpu_machine = {
    .name = "gpu",
    .place = DUET_GPU,
    .side = DEVICE,
    .absent = device_absent,
    .info = gpu_info,
    .alloc = device_alloc,
    .free = device_free,
    .clear = queue_clear,
    .upload = queue_upload,
    .download = queue_download,
    .refuses = gpu_refuses,
    .cost = gpu_cost,
    .run = gpu_run,
    .forget = gpu_forget,
    .sync = queue_sync,
    .wait = queue_wait,
    .stream = queue_stream,
};
