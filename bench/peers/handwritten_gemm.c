/* handwritten_gemm.c - matrix products by direct calls of cuBLASLt, for handwritten.h: in full
 * precision, with 32 MiB of workspace, by the fastest algorithm. Duet chooses the algorithm in the
 * same way. The library is loaded at run time. */
#include "handwritten.h"
#include "measure.h"
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#define WORKSPACE  ((size_t)32 << 20)
#define HEURISTICS 8
#define RUNS       8 /* runs of each algorithm in a turn */
#define TURNS      3

#define CALLS(X)                                                                                             \
    X(cublasLtCreate)                                                                                        \
    X(cublasLtMatmulDescCreate)                                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                            \
    X(cublasLtMatmulPreferenceCreate)                                                                        \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                       \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                        \
    X(cublasLtMatmul)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                             \
    X(cublasLtMatrixLayoutDestroy)

static struct {
#define POINTER(f) __typeof__(&f) f;
    CALLS(POINTER)
    cublasLtHandle_t handle;
    void *workspace;
} lt;

struct handwritten_gemm {
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t heuristic[HEURISTICS];
    int count, best;
    const float *left, *right;
    float *out;
};

static bool find_calls(void *lib)
{
#define FIND(f)                                                                                              \
    if (!(*(void **)&lt.f = dlsym(lib, #f))) return false;
    CALLS(FIND)
    return true;
}

static const char *open_library(void)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12",
                                         "/usr/local/cuda/lib64/libcublasLt.so" };
    const char *named = getenv("DUET_CUBLASLT");
    void *lib = named && *named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (lt.handle) return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib || !find_calls(lib)) return "cuBLASLt was not found";
    if (cudaMalloc(&lt.workspace, WORKSPACE) != cudaSuccess) return "no memory for the workspace of cuBLASLt";
    return lt.cublasLtCreate(&lt.handle) == CUBLAS_STATUS_SUCCESS ? NULL : "cublasLtCreate failed";
}

#define OK(call)                                                                                             \
    if ((call) != CUBLAS_STATUS_SUCCESS) return false

/* cuBLASLt is column-major, so this describes C^T = B^T A^T. */
static bool describe(handwritten_gemm *p, int m, int n, int k)
{
    OK(lt.cublasLtMatmulDescCreate(&p->what, CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F));
    OK(lt.cublasLtMatrixLayoutCreate(&p->a, CUDA_R_32F, (uint64_t)n, (uint64_t)k, n));
    OK(lt.cublasLtMatrixLayoutCreate(&p->b, CUDA_R_32F, (uint64_t)k, (uint64_t)m, k));
    OK(lt.cublasLtMatrixLayoutCreate(&p->c, CUDA_R_32F, (uint64_t)n, (uint64_t)m, n));
    return true;
}

static bool get_heuristics(handwritten_gemm *p)
{
    const uint64_t most = WORKSPACE;
    cublasLtMatmulPreference_t preference;
    OK(lt.cublasLtMatmulPreferenceCreate(&preference));
    bool ok = !lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &most, sizeof most) &&
              !lt.cublasLtMatmulAlgoGetHeuristic(lt.handle, p->what, p->a, p->b, p->c, p->c, preference,
                                                 HEURISTICS, p->heuristic, &p->count);
    (void)lt.cublasLtMatmulPreferenceDestroy(preference);
    return ok && p->count;
}

static double seconds_of(handwritten_gemm *p, int which)
{
    const char *wrong = handwritten_wait();
    const double start = now();
    p->best = which;
    for (int i = 0; i < RUNS && !wrong; i++) wrong = handwritten_gemm_run(p);
    return wrong || handwritten_wait() ? INFINITY : now() - start;
}

/* The first turn is not timed: it loads the kernels. */
static bool choose(handwritten_gemm *p)
{
    double least = INFINITY;
    int best = 0;
    for (int turn = 0; turn <= TURNS; turn++)
        for (int i = 0; i < p->count; i++) {
            const double took = seconds_of(p, i);
            if (turn && took < least) {
                least = took;
                best = i;
            }
        }
    p->best = best;
    return isfinite(least);
}

const char *handwritten_gemm_make(handwritten_gemm **made, int m, int n, int k, const float *a,
                                  const float *b, float *c)
{
    const char *wrong = open_library();
    handwritten_gemm *p = wrong ? NULL : calloc(1, sizeof *p);
    *made = p;
    if (!p) return wrong ? wrong : "out of memory";
    p->left = a;
    p->right = b;
    p->out = c;
    if (describe(p, m, n, k) && get_heuristics(p) && choose(p)) return NULL;
    handwritten_gemm_free(made);
    return "cuBLASLt does not support the product";
}

const char *handwritten_gemm_run(handwritten_gemm *p)
{
    const float one = 1, zero = 0;
    return lt.cublasLtMatmul(lt.handle, p->what, &one, p->right, p->a, p->left, p->b, &zero, p->out, p->c,
                             p->out, p->c, &p->heuristic[p->best].algo, lt.workspace, WORKSPACE,
                             handwritten_stream())
               ? "cublasLtMatmul failed"
               : NULL;
}

void handwritten_gemm_free(handwritten_gemm **made)
{
    handwritten_gemm *p = *made;
    if (!p) return;
    if (p->what) (void)lt.cublasLtMatmulDescDestroy(p->what);
    if (p->a) (void)lt.cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) (void)lt.cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) (void)lt.cublasLtMatrixLayoutDestroy(p->c);
    free(p);
    *made = NULL;
}
