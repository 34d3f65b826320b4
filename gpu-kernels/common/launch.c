/* launch.c - what all launchers share: launches kernels, and asks for the properties of the card. */
#include "dtype.h"
#include "gemm_kernels.h"

void *driver_function(const char *name)
{
    void *f;
    enum cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) == cudaSuccess) return f;
    (void)cudaGetLastError();
    return NULL;
}

bool can_wait(const void *kernel)
{
    enum { UNKNOWN, NO, YES };
    static _Thread_local uint8_t of_device[DEVICES_MAX];
    struct cudaFuncAttributes compiled;
    int device;
    if (cudaGetDevice(&device) != cudaSuccess) return false;
    const bool remembers = device < DEVICES_MAX;
    if (remembers && of_device[device] != UNKNOWN) return of_device[device] == YES;
    if (cudaFuncGetAttributes(&compiled, kernel) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    const bool can = compiled.ptxVersion >= 90;
    if (remembers) of_device[device] = can ? YES : NO;
    return can;
}

/* Facts of the current device. src/gpu/device.c accepts further GPUs only if they are of the same kind
 * as the default one, so the answer for the first device asked holds for all. */
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
