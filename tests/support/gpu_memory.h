/* gpu_memory.h - memory and streams of a GPU as another library would use them: of the fake CUDA with
 * -DFAKE_CUDA, else of a real GPU, by CUDA's driver, which needs no CUDA toolkit. The thread must have used
 * the GPU by a function of Duet before. */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *gpu_stream;

#ifdef FAKE_CUDA
#include "fake_cuda.h"
int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cudaStreamCreateWithFlags(gpu_stream *stream, unsigned flags);
int cudaStreamSynchronize(gpu_stream stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, gpu_stream stream);
enum { TO_GPU = 1, TO_HOST = 2, ON_GPU = 3, NON_BLOCKING = 1 };

static inline bool gpu_open(void) { return true; }
static inline bool gpu_alloc_memory(void **p, size_t bytes) { return cudaMalloc(p, bytes) == 0; }
static inline bool gpu_free_memory(void *p) { return cudaFree(p) == 0; }
static inline bool gpu_new_stream(gpu_stream *s) { return cudaStreamCreateWithFlags(s, NON_BLOCKING) == 0; }
static inline bool gpu_wait_for(gpu_stream s) { return cudaStreamSynchronize(s) == 0; }
static inline bool gpu_copy(void *to, const void *from, size_t bytes, gpu_stream s)
{
    return cudaMemcpyAsync(to, from, bytes, ON_GPU, s) == 0;
}
static inline bool gpu_put(void *to, const void *from, size_t bytes, gpu_stream s)
{
    return cudaMemcpyAsync(to, from, bytes, TO_GPU, s) == 0 && gpu_wait_for(s);
}
static inline bool gpu_get(void *to, const void *from, size_t bytes, gpu_stream s)
{
    return cudaMemcpyAsync(to, from, bytes, TO_HOST, s) == 0 && gpu_wait_for(s);
}
static inline bool gpu_be_slow(gpu_stream s)
{
    return s != NULL;
} /* all work of the fake is as late as possible */
#else
#include <dlfcn.h>

static struct {
    int (*alloc)(void **p, size_t bytes);
    int (*free)(void *p);
    int (*stream)(gpu_stream *s, unsigned flags);
    int (*wait)(gpu_stream s);
    int (*copy)(void *to, const void *from, size_t bytes, gpu_stream s);
    int (*put)(void *to, const void *from, size_t bytes, gpu_stream s);
    int (*get)(void *to, const void *from, size_t bytes, gpu_stream s);
    void *ballast;
} gpu_driver;

enum { BALLAST = 256 << 20, SLOW_COPIES = 20 }; /* some milliseconds */

static inline bool gpu_open(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) return false;
    *(void **)&gpu_driver.alloc = dlsym(cuda, "cuMemAlloc_v2");
    *(void **)&gpu_driver.free = dlsym(cuda, "cuMemFree_v2");
    *(void **)&gpu_driver.stream = dlsym(cuda, "cuStreamCreate");
    *(void **)&gpu_driver.wait = dlsym(cuda, "cuStreamSynchronize");
    *(void **)&gpu_driver.copy = dlsym(cuda, "cuMemcpyDtoDAsync_v2");
    *(void **)&gpu_driver.put = dlsym(cuda, "cuMemcpyHtoDAsync_v2");
    *(void **)&gpu_driver.get = dlsym(cuda, "cuMemcpyDtoHAsync_v2");
    return gpu_driver.alloc && gpu_driver.get && !gpu_driver.alloc(&gpu_driver.ballast, BALLAST);
}
static inline bool gpu_alloc_memory(void **p, size_t bytes) { return gpu_driver.alloc(p, bytes) == 0; }
static inline bool gpu_free_memory(void *p) { return gpu_driver.free(p) == 0; }
static inline bool gpu_new_stream(gpu_stream *s) { return gpu_driver.stream(s, 1) == 0; }
static inline bool gpu_wait_for(gpu_stream s) { return gpu_driver.wait(s) == 0; }
static inline bool gpu_copy(void *to, const void *from, size_t bytes, gpu_stream s)
{
    return gpu_driver.copy(to, from, bytes, s) == 0;
}
static inline bool gpu_put(void *to, const void *from, size_t bytes, gpu_stream s)
{
    return gpu_driver.put(to, from, bytes, s) == 0 && gpu_wait_for(s);
}
static inline bool gpu_get(void *to, const void *from, size_t bytes, gpu_stream s)
{
    return gpu_driver.get(to, from, bytes, s) == 0 && gpu_wait_for(s);
}
/* Work that takes long: what comes after it in the stream is late. */
static inline bool gpu_be_slow(gpu_stream s)
{
    bool good = true;
    char *p = gpu_driver.ballast;
    for (int i = 0; i < SLOW_COPIES; i++) good &= gpu_copy(p, p + BALLAST / 2, BALLAST / 2, s);
    return good;
}
#endif

#endif
