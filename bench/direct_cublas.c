/* direct_cublas.c - the peers on the GPU: cuBLAS called directly, and the runtime's copy from device to device, both on Duet's own
 * stream. The libraries are opened at run time, so that this file compiles without CUDA. */
#include "bench.h"
#include <dlfcn.h>
#include <stddef.h>

typedef struct cublas {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*sgemm)(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
                 int ldb, const float *beta, float *c, int ldc);
    void *handle;
} cublas;
static cublas blas;

static int (*copy_async)(void *to, const void *from, size_t bytes, int kind, void *stream);
static int (*stream_wait)(void *stream);

static void *open_first(const char *const *names)
{
    void *lib = NULL;
    while (*names && !lib) lib = dlopen(*names++, RTLD_NOW | RTLD_LOCAL);
    return lib;
}

/* Function pointers by way of memory: ISO C has no cast for them. */
static bool find(void *lib, const char *name, void *function)
{
    void *found = lib ? dlsym(lib, name) : NULL;
    *(void **)function = found;
    return found;
}

static bool open_cublas(void)
{
    void *lib = open_first((const char *const[]){ "libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                                  "/usr/local/cuda/lib64/libcublas.so", NULL });
    return find(lib, "cublasCreate_v2", &blas.create) && find(lib, "cublasSetStream_v2", &blas.set_stream) &&
           find(lib, "cublasSgemm_v2", &blas.sgemm) && blas.create(&blas.handle) == 0 &&
           blas.set_stream(blas.handle, duet_stream()) == 0;
}

static bool open_runtime(void)
{
    void *lib = open_first((const char *const[]){ "libcudart.so.13", "libcudart.so.12", "libcudart.so",
                                                  "/usr/local/cuda/lib64/libcudart.so", NULL });
    return find(lib, "cudaMemcpyAsync", &copy_async) && find(lib, "cudaStreamSynchronize", &stream_wait);
}

/* Row-major: C^T = B^T A^T. */
static bool cublas_gemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;
    return blas.sgemm(blas.handle, 0, 0, (int)n, (int)m, (int)k, &one, b, (int)n, a, (int)k, &zero, c, (int)n) == 0;
}

static bool device_copy(int64_t n, float s, const float *x, float *y)
{
    return copy_async(y, x, (size_t)n * sizeof *x, 3 /* device to device */, duet_stream()) == 0;
}

static bool wait(void) { return stream_wait ? stream_wait(duet_stream()) == 0 : duet_synchronize() == DUET_OK; }

/* axpy moves three numbers an element, a copy two. */
const engine *engine_gpu(void)
{
    static engine e = { .axpy_share = 2.0 / 3, .gemm = cublas_gemm, .axpy = device_copy, .sync = wait };
    static bool tried;
    if (!tried && duet_stream()) {
        e.axpy_name = open_runtime() ? "device copy" : NULL;
        e.gemm_name = open_cublas() ? "bare cuBLAS" : NULL;
        tried = true;
    }
    return e.axpy_name || e.gemm_name ? &e : NULL;
}

bool gpu_facts(char name[128], char driver[32])
{
    int (*init)(unsigned), (*get)(int *, int), (*name_of)(char *, int, int), (*version)(int *);
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int device, v;
    if (!find(lib, "cuInit", &init) || !find(lib, "cuDeviceGet", &get) || !find(lib, "cuDeviceGetName", &name_of) ||
        !find(lib, "cuDriverGetVersion", &version) || init(0) || get(&device, 0) || name_of(name, 128, device) || version(&v))
        return false;
    snprintf(driver, 32, "%d.%d", v / 1000, v % 1000 / 10);
    return true;
}
