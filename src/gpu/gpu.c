/* gpu.c - the GPU machine: runs a step by the kernel of its registry entry. */
#include "gpu.h"
#include "clock.h"
#include "cuda_graph.h"
#include "foreign.h"
#include "graph_order.h"
#include "kernels.h"
#include "link.h"
#include "overlap.h"
#include "packed_cache.h"
#include "recover.h"
#include "run_joined.h"
#include "stack.h"
#include "step_kinds.h"

static const char *gpu_unsupported_reason(const step *s)
{
    const char *why = gpu_device_all_absent();
    if (why) return why;
    if (gpu_splits(s)) return NULL;
    return gpu_kernel_of(s->kernel)->unsupported(s);
}

static const char *gpu_algorithm(const step *s)
{
    const gpu_kernel *k = gpu_kernel_of(s->kernel);
    if (!k->algorithm) return NULL;
    return k->algorithm(s);
}

/* The GPUs are alike (device.c uses no others), so the costs of the default one are those of all. */
static double gpu_cost(const step *s) { return gpu_kernel_of(s->kernel)->cost(s, costs_now(DEFAULT_GPU)); }

/* A step may be planned for a kernel that needs aligned addresses. Whether they are is only known
 * here. */
static duet_status run_strictly(const step *s, const frame *f, queue *q)
{
    const char *why = gpu_kernel_of(s->kernel)->unsupported(s);
    if (why) return fail(DUET_UNSUPPORTED, "%s", why);
    return gpu_kernel_of(s->kernel)->run(s, f, q);
}

/* DUET_MATH_SPLIT permits split arithmetic but does not require it. If there is no memory for the
 * packed operands, the step runs in f32. */
static duet_status run_split(const step *s, const frame *f, queue *q)
{
    error_text before;
    if (!kernels_splits_here(s, f)) return run_strictly(s, f, q);
    error_keep(&before);
    const duet_status r = gpu_split(s, f, q);
    if (likely(r != DUET_NO_MEMORY) || reproducible() || gpu_kernel_of(s->kernel)->unsupported(s)) return r;
    error_put_back(&before);
    return gpu_kernel_of(s->kernel)->run(s, f, q);
}

static duet_status run_on_queue(const step *s, const frame *f, queue *q)
{
    if (gpu_splits(s)) return run_split(s, f, q);
    return gpu_kernel_of(s->kernel)->run(s, f, q);
}

/* During a capture no memory can be freed, so run_here must not try again. */
static __attribute__((noinline, cold)) duet_status capture(const step *s, const frame *f, queue *q)
{
    duet_status r = gpu_order_begin(q, s, f);
    if (r == DUET_OK) r = run_on_queue(s, f, q);
    if (r == DUET_OK) r = gpu_order_end(q);
    return r == DUET_NO_MEMORY ? error_becomes(DUET_UNSUPPORTED) : r;
}

static duet_status run_once(const step *s, const frame *f)
{
    queue *q;
    ON_DEVICE(f->device);
    TRY(gpu_queue_open(f->device, f->queue, &q));
    if (gpu_queue_captures(q)) return capture(s, f, q);
    if (s->kernel != KERNEL_COLLECTIVE) TRY(gpu_overlap_before(q, s, f));
    return run_on_queue(s, f, q);
}

static bool has_results(const step *s)
{
    for (int k = 0; k < s->outs; k++)
        if (layout_count(&s->out[k].at)) return true;
    return false;
}

/* Has the step nothing to do? A reduction has results even without elements to reduce; of a
 * factorisation, some outputs may be empty and others not. */
static bool is_empty(const step *s)
{
    if (unlikely(s->kernel == KERNEL_COLLECTIVE)) return false; /* other ranks may have results */
    if (unlikely(kernel_may_fail(s->kernel))) return !has_results(s);
    layout outer = s->out[0].at;
    outer.rank -= s->inner;
    return !layout_count(&outer);
}

/* Handles, streams and modules take memory that is not from the pool. If it is exhausted, the
 * pool's cached blocks are freed. */
static duet_status run_here(const step *s, const frame *f)
{
    if (is_empty(s)) return DUET_OK;
    duet_status r = run_once(s, f);
    if (likely(r != DUET_NO_MEMORY || !pool_memory(f->device).cached)) return r;
    duet_memory_trim();
    gpu_fourier_trim();
    return run_once(s, f);
}

static duet_status gpu_run(const step *s, const frame *f) { return stack_step_run(run_here, s, f); }

static duet_status gpu_prepare(const step *s, const frame *f)
{
    queue *q;
    if (!gpu_splits(s) || is_empty(s)) return DUET_OK;
    if (owned_by(f, s->in[0].slot) && !kernels_splits_here(s, f))
        return DUET_OK; /* temporaries have no address yet, and will be aligned */
    ON_DEVICE(f->device);
    TRY(gpu_queue_open(f->device, f->queue, &q));
    return gpu_split_prepare(s, f, q);
}

static size_t gpu_scratch(const step *s)
{
    if (s->kernel == KERNEL_COLLECTIVE) return gpu_collective_scratch(s);
    const bool launches =
        !gpu_splits(s) && !kernels_unsupported(s) && gpu_kernel_of(s->kernel)->run == gpu_launch;
    return launches ? kernels_scratch(s) : 0;
}

/* Is the step a product by cuBLASLt that needs nothing that gpu_make_sure has not taken? */
static bool is_sure_gemm(const step *s)
{
    return s->kernel == OP_matmul && !is_int_gemm(s) && kernels_unsupported(s) && gpu_matmul_is_sure(s);
}

/* A bad index does not stop a step on the GPU. */
static bool gpu_is_sure(const step *s)
{
    const bool is_product = (s->kernel == OP_matmul && !is_int_gemm(s)) || is_conv(s->kernel);
    if (gpu_splits(s)) return false;
    if (kernels_unsupported(s)) return is_sure_gemm(s);
    return gpu_kernel_of(s->kernel)->run == gpu_launch || (is_product && !kernels_scratch(s));
}

static duet_status gpu_make_sure(const step *s, int device)
{
    queue *q;
    TRY(stack_prepare());
    if (gpu_splits(s) || is_empty(s) || !is_sure_gemm(s)) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, thread_get()->queue, &q));
    return gpu_matmul_make_sure(s, q);
}

static void gpu_forget(step *s)
{
    const gpu_kernel *k = gpu_kernel_of(s->kernel);
    if (k->forget) k->forget(s);
}

static void library_info(FILE *out, const char *name, enum library l, int major, int minor, int patch)
{
    const vendor *v = vendor_open(l);
    if (v->missing[l]) fprintf(out, "         %s missing: %s\n", name, v->missing[l]);
    else fprintf(out, "         %s %d.%d.%d (%s)\n", name, major, minor, patch, v->place[l]);
}

static void gpu_info(FILE *out)
{
    const char *why = gpu_device_absent(DEFAULT_GPU);
    int version[3] = { 0 };
    if (why) fprintf(out, "gpu      none: %s\n", why);
    else gpu_device_info(out);
    const vendor *v = vendor_open(LIBRARY_cublasLt);
    for (int i = 0; !v->missing[LIBRARY_cublasLt] && i < 3; i++)
        v->cublasLtGetProperty((libraryPropertyType)i, &version[i]);
    library_info(out, "cuBLASLt", LIBRARY_cublasLt, version[0], version[1], version[2]);
    int dnn = vendor_open(LIBRARY_cudnn)->missing[LIBRARY_cudnn] ? 0 : (int)v->cudnnGetVersion();
    library_info(out, "cuSOLVER", LIBRARY_cusolver, CUSOLVER_VER_MAJOR, 0, 0);
    library_info(out, "cuSPARSE", LIBRARY_cusparse, CUSPARSE_VER_MAJOR, 0, 0);
    library_info(out, "cuDSS", LIBRARY_cudss, CUDSS_MAJOR, 0, 0);
    int nccl = 0;
    if (!vendor_open(LIBRARY_nccl)->missing[LIBRARY_nccl]) (void)v->ncclGetVersion(&nccl);
    library_info(out, "NCCL", LIBRARY_nccl, nccl / 10000, nccl / 100 % 100, nccl % 100);
    library_info(out, "cuDNN", LIBRARY_cudnn, dnn / 10000, dnn / 100 % 100, dnn % 100);
    int fft = 0;
    v = vendor_open(LIBRARY_cufft);
    if (!v->missing[LIBRARY_cufft]) (void)v->cufftGetVersion(&fft);
    library_info(out, "cuFFT", LIBRARY_cufft, fft / 1000, fft / 100 % 10, fft % 100);
}

const machine gpu_machine = {
    .name = "GPU",
    .place = DUET_GPU,
    .absent = gpu_device_absent,
    .info = gpu_info,
    .identify = gpu_device_name,
    .costs = &gpu_costs,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .clear = gpu_queue_clear,
    .available = gpu_available,
    .total = gpu_device_bytes,
    .upload = gpu_queue_upload,
    .download = gpu_queue_download,
    .fetch = gpu_queue_fetch,
    .copy = gpu_queue_copy,
    .pin = gpu_pin,
    .unpin = gpu_unpin,
    .unsupported_reason = gpu_unsupported_reason,
    .scratch = gpu_scratch,
    .is_sure = gpu_is_sure,
    .make_sure = gpu_make_sure,
    .algorithm = gpu_algorithm,
    .cost = gpu_cost,
    .run = gpu_run,
    .joins = gpu_joins,
    .run_joined = gpu_run_joined,
    .forget = gpu_forget,
    .sync = gpu_queue_sync,
    .report = gpu_queue_report,
    .wait = gpu_queue_wait,
    .stream = gpu_queue_stream,
    .locate = gpu_foreign_locate,
    .number = gpu_device_ordinal,
    .follow = gpu_foreign_follow,
    .lead = gpu_foreign_lead,
    .drain = gpu_foreign_drain,
    .drop = packed_drop,
    .spare = packed_spare,
    .prepare = gpu_prepare,
    .record = gpu_graph_record,
    .recorded = gpu_graph_recorded,
    .replay = gpu_graph_replay,
    .outdated = gpu_graph_outdated,
    .discard = gpu_graph_discard,
    .lost = gpu_device_lost,
    .abandon = gpu_abandon,
    .recover = gpu_recover,
    .link_name = gpu_link_name,
    .connect = gpu_connect,
    .disconnect = gpu_disconnect,
    .link_check = gpu_link_check,
    .link_info = gpu_link_info,
    .join = gpu_join,
};
