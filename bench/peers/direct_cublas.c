/* direct_cublas.c - the peers on the GPU: direct calls of cuBLAS, and the driver's copy in GPU
 * memory. They run on a stream of their own, because Duet launches work less aggressively on a
 * stream that it has given to the user. The libraries are loaded at run time, so this file compiles
 * without CUDA. */
#include "bench.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

/* Functions of the CUDA driver, which exists on every machine with a GPU. They and cuBLAS return 0
 * on success. */
typedef struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *v);
    int (*device)(int *device, int ordinal);
    int (*name)(char *name, int size, int device);
    int (*context)(void **context, int device);
    int (*set_context)(void *context);
    int (*new_stream)(void **stream, unsigned flags);
    int (*context_device)(int *device);
    int (*copy)(uintptr_t to, uintptr_t from, size_t bytes, void *stream);
    int (*wait)(void *stream);
} driver;

typedef struct cublas {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*sgemm)(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a,
                 int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
    void *handle;
} cublas;

static driver cuda;
static cublas blas;
static void *stream; /* NULL until engine_gpu creates it */

/* Stores the address of a function in *function. ISO C has no cast from void * to a function
 * pointer. */
static bool find(void *lib, const char *name, void *function)
{
    void *found = lib ? dlsym(lib, name) : NULL;
    *(void **)function = found;
    return found;
}

static bool open_driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return find(lib, "cuInit", &cuda.init) && find(lib, "cuDriverGetVersion", &cuda.version) &&
           find(lib, "cuDeviceGet", &cuda.device) && find(lib, "cuDeviceGetName", &cuda.name) &&
           find(lib, "cuDevicePrimaryCtxRetain", &cuda.context) &&
           find(lib, "cuCtxSetCurrent", &cuda.set_context) && find(lib, "cuStreamCreate", &cuda.new_stream) &&
           find(lib, "cuCtxGetDevice", &cuda.context_device) && find(lib, "cuMemcpyAsync", &cuda.copy) &&
           find(lib, "cuStreamSynchronize", &cuda.wait) && cuda.init(0) == 0;
}

static bool open_cublas(void)
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                         "/usr/local/cuda/lib64/libcublas.so" };
    void *lib = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return find(lib, "cublasCreate_v2", &blas.create) && find(lib, "cublasSetStream_v2", &blas.set_stream) &&
           find(lib, "cublasSgemm_v2", &blas.sgemm) && blas.create(&blas.handle) == 0 &&
           blas.set_stream(blas.handle, stream) == 0;
}

/* cuBLAS is column-major, so this computes C^T = B^T A^T. */
static bool cublas_gemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;
    return blas.sgemm(blas.handle, 0, 0, (int)n, (int)m, (int)k, &one, b, (int)n, a, (int)k, &zero, c,
                      (int)n) == 0;
}

static bool device_copy(int64_t n, float s, const float *x, float *y)
{
    return cuda.copy((uintptr_t)y, (uintptr_t)x, (size_t)n * sizeof *x, stream) == 0;
}

static bool stream_wait(void) { return cuda.wait(stream) == 0; }

/* Creates the stream in the primary context, which the CUDA runtime uses too, of the GPU that
 * DUET_DEVICE selects. */
static bool make_stream(void)
{
    const char *text = getenv("DUET_DEVICE");
    int device;
    void *context;
    return open_driver() && cuda.device(&device, text ? atoi(text) : 0) == 0 &&
           cuda.context(&context, device) == 0 && cuda.set_context(context) == 0 &&
           cuda.new_stream(&stream, 1) == 0; /* 1: does not synchronise with the null stream */
}

/* axpy moves three numbers per element, a copy two. */
const engine *engine_gpu(void)
{
    static engine e = {
        .axpy_share = 2.0 / 3, .gemm = cublas_gemm, .axpy = device_copy, .sync = stream_wait
    };
    static bool tried;
    if (!tried) {
        const bool ready = make_stream();
        tried = true;
        if (ready) e.axpy_name = "device copy";
        else e.axpy_name = NULL;
        if (ready && open_cublas()) e.gemm_name = "bare cuBLAS";
        else e.gemm_name = NULL;
    }
    if (e.axpy_name || e.gemm_name) return &e;
    return NULL;
}

bool gpu_describe(char name[128], char version[32])
{
    int device = 0, v = 0;
    if (!open_driver() || cuda.version(&v)) return false;
    if ((!stream || cuda.context_device(&device)) && cuda.device(&device, 0)) return false;
    snprintf(version, 32, "%d.%d", v / 1000, v % 1000 / 10);
    return cuda.name(name, 128, device) == 0;
}
