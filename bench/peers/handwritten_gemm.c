/* handwritten_gemm.c - products by bare cuBLASLt, for those of handwritten.h: in full precision, by the fastest of its algorithms on 32 MiB of workspace,
 * as Duet chooses it. The library is opened at run time. */
#include "handwritten.h"
#include "measure.h"
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#define WORKSPACE ((size_t)32 << 20)
#define ADVICE    8
#define RUNS      8 /* of each algorithm, a turn */
#define TURNS     3

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
    void *room;
} lt;

struct hand_product {
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t advice[ADVICE];
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
    if (!lib || !find_calls(lib)) return "no cuBLASLt";
    if (cudaMalloc(&lt.room, WORKSPACE) != cudaSuccess) return "no memory for cuBLASLt to work in";
    return lt.cublasLtCreate(&lt.handle) == CUBLAS_STATUS_SUCCESS ? NULL : "cuBLASLt does not begin";
}

#define OK(call)                                                                                             \
    if ((call) != CUBLAS_STATUS_SUCCESS) return false

/* Row-major: C^T = B^T A^T. */
static bool describe(hand_product *p, int m, int n, int k)
{
    OK(lt.cublasLtMatmulDescCreate(&p->what, CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F));
    OK(lt.cublasLtMatrixLayoutCreate(&p->a, CUDA_R_32F, (uint64_t)n, (uint64_t)k, n));
    OK(lt.cublasLtMatrixLayoutCreate(&p->b, CUDA_R_32F, (uint64_t)k, (uint64_t)m, k));
    OK(lt.cublasLtMatrixLayoutCreate(&p->c, CUDA_R_32F, (uint64_t)n, (uint64_t)m, n));
    return true;
}

static bool take_advice(hand_product *p)
{
    const uint64_t most = WORKSPACE;
    cublasLtMatmulPreference_t wish;
    OK(lt.cublasLtMatmulPreferenceCreate(&wish));
    bool ok = !lt.cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                       sizeof most) &&
              !lt.cublasLtMatmulAlgoGetHeuristic(lt.handle, p->what, p->a, p->b, p->c, p->c, wish, ADVICE,
                                                 p->advice, &p->count);
    (void)lt.cublasLtMatmulPreferenceDestroy(wish);
    return ok && p->count;
}

static double seconds_of(hand_product *p, int which)
{
    const char *wrong = hand_wait();
    const double start = now();
    p->best = which;
    for (int i = 0; i < RUNS && !wrong; i++) wrong = hand_product_run(p);
    return wrong || hand_wait() ? INFINITY : now() - start;
}

/* The first turn is not counted: it loads the kernels. */
static bool choose(hand_product *p)
{
    double least = INFINITY;
    int best = 0;
    for (int turn = 0; turn <= TURNS; turn++)
        for (int i = 0; i < p->count; i++) {
            const double took = seconds_of(p, i);
            if (turn && took < least) least = took, best = i;
        }
    p->best = best;
    return isfinite(least);
}

const char *hand_product_make(hand_product **made, int m, int n, int k, const float *a, const float *b,
                              float *c)
{
    const char *wrong = open_library();
    hand_product *p = wrong ? NULL : calloc(1, sizeof *p);
    *made = p;
    if (!p) return wrong ? wrong : "no memory for a product";
    p->left = a, p->right = b, p->out = c;
    if (describe(p, m, n, k) && take_advice(p) && choose(p)) return NULL;
    return hand_product_free(made), "cuBLASLt refuses the product";
}

const char *hand_product_run(hand_product *p)
{
    const float one = 1, zero = 0;
    return lt.cublasLtMatmul(lt.handle, p->what, &one, p->right, p->a, p->left, p->b, &zero, p->out, p->c,
                             p->out, p->c, &p->advice[p->best].algo, lt.room, WORKSPACE, hand_stream())
               ? "cublasLtMatmul fails"
               : NULL;
}

void hand_product_free(hand_product **made)
{
    hand_product *p = *made;
    if (!p) return;
    if (p->what) (void)lt.cublasLtMatmulDescDestroy(p->what);
    if (p->a) (void)lt.cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) (void)lt.cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) (void)lt.cublasLtMatrixLayoutDestroy(p->c);
    free(p), *made = NULL;
}
