/* dispatch.c - the way of each step to its family. */
#include "dtype.h"
#include "index_kernels.h"
#include "launch.h"

int kernels_oldest(void) { return OLDEST_CARD; }

static bool is_fused(int kernel) { return kernel > KERNEL_PROGRAM && kernel < KERNELS; }

static bool is_reduce(const step *s) { return s->kernel == KERNEL_PROGRAM && s->program->reductions; }

size_t kernels_scratch(const step *s)
{
    if (s->kernel == KERNEL_RANDOM) return random_scratch(s);
    if (s->kernel == OP_softmax || s->kernel == OP_log_softmax) return softmax_scratch(s);
    if (s->kernel == KERNEL_LAYER_NORM) return norm_scratch(s);
    if (order_family(s->kernel)) return order_scratch(s);
    if (s->kernel == OP_conv2d_filter_grad) return filter_grad_scratch(s);
    return is_reduce(s) ? reduce_scratch(s) : 0;
}

cudaError_t launch_step(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    if (w->packed) return pair_launch(s, f, w, q);
    if (s->kernel == KERNEL_RANDOM) return random_launch(s, f, w->scratch, q);
    if (order_family(s->kernel)) return order_launch(s, f, w->scratch, q);
    if (is_reduce(s)) return reduce_launch(s, f, w, q);
    if (s->kernel == KERNEL_PROGRAM) return machine_launch(s, f, q);
    if (is_fused(s->kernel)) return fused_launch(s, f, q);
    switch (s->kernel) {
    case OP_softmax:
    case OP_log_softmax: return softmax_launch(s, f, w, q);
    case KERNEL_LAYER_NORM: return norm_launch(s, f, w, q);
    case OP_max_pool2d:
    case OP_avg_pool2d: return pool2d_launch(s, f, q);
    case OP_max_pool2d_grad:
    case OP_avg_pool2d_grad:
    case OP_upsample2d: return pool_back_launch(s, f, q);
    case OP_matmul: return product_launch(s, f, w, q);
    case OP_conv2d: return conv2d_launch(s, f, w, q);
    case OP_conv2d_input_grad: return conv2d_back_launch(s, f, w, q);
    case OP_conv2d_filter_grad: return filter_grad_launch(s, f, w, q);
    default: return cudaErrorNotSupported;
    }
}

bool can_wait(const void *kernel)
{
    static _Thread_local int device = -1;
    static _Thread_local bool can;
    struct cudaFuncAttributes compiled;
    int now;
    if (cudaGetDevice(&now) != cudaSuccess) return false;
    if (now == device) return can;
    if (cudaFuncGetAttributes(&compiled, kernel) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    device = now;
    return can = compiled.ptxVersion >= 90;
}

/* Facts of a card other than that of the process do not come up: it keeps to one. */
static bool ask(card_facts *f)
{
    int device, clusters, major, minor, count;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&f->blocks, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&f->shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    f->clusters = clusters && can_wait(split_kernels(&count)->kernel[0]);
    f->pairs = f->clusters && major == 9 && minor == 0;
    return true;
}

card_facts card(void)
{
    static card_facts known;
    card_facts f = { __atomic_load_n(&known.blocks, __ATOMIC_ACQUIRE), known.shared, known.clusters,
                     known.pairs };
    if (f.blocks) return f;
    if (!ask(&f)) return (card_facts){ 1, SHARED_LEAST, false, false };
    known.shared = f.shared;
    known.clusters = f.clusters;
    known.pairs = f.pairs;
    __atomic_store_n(&known.blocks, f.blocks, __ATOMIC_RELEASE);
    return f;
}

cudaError_t with_shared(const void *kernel, size_t bytes, size_t most)
{
    if (bytes <= SHARED_ALWAYS) return cudaSuccess;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
}

static cudaError_t launch_as(bool early, const void *kernel, int64_t blocks, int cluster, int threads,
                             size_t shared, void *args, cudaStream_t q)
{
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    if (blocks == 0) return cudaSuccess;
    const dim3 grid = { (unsigned)blocks, 1, 1 }, block = { (unsigned)threads, 1, 1 };
    if (!early || !can_wait(kernel)) return cudaLaunchKernel(kernel, grid, block, &args, shared, q);
    cudaLaunchAttribute of[] = { { .id = cudaLaunchAttributeProgrammaticStreamSerialization },
                                 { .id = cudaLaunchAttributeClusterDimension } };
    of[0].val.programmaticStreamSerializationAllowed = 1;
    of[1].val.clusterDim.x = (unsigned)cluster;
    of[1].val.clusterDim.y = of[1].val.clusterDim.z = 1;
    return cudaLaunchKernelExC(&(cudaLaunchConfig_t){ grid, block, shared, q, of, cluster > 1 ? 2 : 1 },
                               kernel, &args);
}

cudaError_t launch(const void *kernel, int64_t blocks, int threads, size_t shared, void *args, cudaStream_t q)
{
    return launch_as(false, kernel, blocks, 1, threads, shared, args, q);
}

cudaError_t launch_early(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                         cudaStream_t q)
{
    return launch_as(true, kernel, blocks, 1, threads, shared, args, q);
}

cudaError_t launch_clusters(const void *kernel, int64_t blocks, int cluster, int threads, size_t shared,
                            void *args, cudaStream_t q)
{
    return launch_as(true, kernel, blocks, cluster, threads, shared, args, q);
}

bool may_be_written(const workspace *w, const void *p, const layout *at)
{
    int64_t low, high;
    layout_span(at, &low, &high);
    const char *first = (const char *)p + low * (int64_t)dtypes[at->type].bytes,
               *end = (const char *)p + high * (int64_t)dtypes[at->type].bytes;
    return first < w->written.end && end > w->written.first;
}

size_t round_256(size_t bytes) { return (bytes + 255) / 256 * 256; }
