/* cudnn_algo.c - chooses the cuDNN algorithm for a convolution. */
#include "cudnn_algo.h"
#include "algo_key.h"
#include "clock.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_MOST ((size_t)1 << 30)
#define ALGOS          CUDNN_CONVOLUTION_FWD_ALGO_COUNT
#define TRIED          (2 * ALGOS) /* each with and without tensor cores */

/* Held during a measurement, and while a choice is added to a list. Lists are read without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static algos *bucket[DEVICES_MAX][KEY_BUCKETS];

/* Fourier and Winograd transforms are not used, because each result depends on all elements of a
 * tile. Their errors exceed the bound of a sum of products. A NaN or an infinity spreads to other
 * results or disappears; Winograd's algorithm did so on an H200. */
static bool is_welcome(cudnnConvolutionFwdAlgo_t a)
{
    switch ((int)a) {
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED: return false;
    default: return true;
    }
}

/* Returns the largest workspace of an algorithm that can be used, of those up to `most` bytes. */
static size_t largest_workspace(const vendor *v, const conv_descriptors *d, cudnnHandle_t dnn, size_t most)
{
    size_t largest = 0, bytes;
    for (int a = 0; a < ALGOS; a++) {
        if (!is_welcome((cudnnConvolutionFwdAlgo_t)a)) continue;
        if (v->cudnnGetConvolutionForwardWorkspaceSize(dnn, d->x, d->w, d->conv, d->y,
                                                       (cudnnConvolutionFwdAlgo_t)a, &bytes))
            continue;
        if (bytes <= most && bytes > largest) largest = bytes;
    }
    return largest;
}

/* Takes the largest workspace that an algorithm needs and for which there is memory. */
static duet_status take_workspace(const vendor *v, const conv_descriptors *d, queue *q, size_t *bytes,
                                  void **p)
{
    duet_status s = DUET_OK;
    *p = NULL;
    *bytes = largest_workspace(v, d, q->dnn, WORKSPACE_MOST);
    while (*bytes && (s = gpu_take_quietly(memory_take_workspace, *bytes, q, p)) == DUET_NO_MEMORY)
        *bytes = largest_workspace(v, d, q->dnn, *bytes - 1);
    return *bytes ? s : DUET_OK;
}

static duet_status measure(const vendor *v, const conv_descriptors *d, const conv_data *at, queue *q, int *n,
                           cudnnConvolutionFwdAlgoPerf_t perf[TRIED])
{
    size_t bytes;
    void *p;
    TRY(take_workspace(v, d, q, &bytes, &p));
    duet_status s = DNN(v, cudnnFindConvolutionForwardAlgorithmEx, q->dnn, d->x, at->x, d->w, at->w, d->conv,
                        d->y, at->y, TRIED, n, perf, p, bytes);
    if (p) pool_give(q->device, p, (uint64_t)1 << q->index);
    COUNT(synchronisations);
    TRACE("conv2d: waited while cuDNN tried %d algorithms with %zu bytes of workspace", *n, bytes);
    return s;
}

/* Does the math mode permit this math type? Tensor cores round the operands. */
static bool is_permitted(cudnnMathType_t math, cudnnMathType_t permitted)
{
    return math == CUDNN_DEFAULT_MATH || math == CUDNN_FMA_MATH || math == permitted;
}

static bool fits(const cudnnConvolutionFwdAlgoPerf_t *p, cudnnMathType_t permitted, bool repeats)
{
    return p->status == CUDNN_STATUS_SUCCESS && is_welcome(p->algo) && p->memory <= WORKSPACE_MOST &&
           is_permitted(p->mathType, permitted) && (!repeats || p->determinism == CUDNN_DETERMINISTIC);
}

/* Is the algorithm already in the list? It may occur twice, with and without tensor cores. cuDNN then
 * chooses one of them at each run, so the workspace must suffice for both. */
static bool has(algos *a, const cudnnConvolutionFwdAlgoPerf_t *p)
{
    for (int i = 0; i < a->count; i++)
        if (a->of[i].algo == (int)p->algo) {
            if (p->memory > a->of[i].workspace) a->of[i].workspace = p->memory;
            return true;
        }
    return false;
}

/* Algorithm 1 is used for both gradients. The others transform tiles or add in arbitrary order. */
static duet_status choose_back(algos *a, const conv_descriptors *d, queue *q)
{
    const vendor *v = vendor_open(LIBRARY_cudnn);
    const bool images = a->key.kernel == OP_conv2d_input_grad;
    a->count = 1;
    a->of[0].algo =
        images ? (int)CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 : (int)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
    size_t *bytes = &a->of[0].workspace;
    if (images)
        return DNN(v, cudnnGetConvolutionBackwardDataWorkspaceSize, q->dnn, d->w, d->y, d->conv, d->x,
                   CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, bytes);
    return DNN(v, cudnnGetConvolutionBackwardFilterWorkspaceSize, q->dnn, d->x, d->y, d->conv, d->w,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, bytes);
}

static duet_status choose(algos *a, cudnnMathType_t permitted, const conv_descriptors *d, const conv_data *at,
                          queue *q)
{
    const vendor *v = vendor_open(LIBRARY_cudnn);
    cudnnConvolutionFwdAlgoPerf_t perf[TRIED];
    bool repeats = reproducible();
    int n = 0;
    if (repeats)
        TRY(DNN(v, cudnnGetConvolutionForwardAlgorithm_v7, q->dnn, d->x, d->w, d->conv, d->y, TRIED, &n,
                perf));
    else TRY(measure(v, d, at, q, &n, perf));
    for (int i = 0; i < n; i++) {
        if (!fits(&perf[i], permitted, repeats) || has(a, &perf[i])) continue;
        a->of[a->count].algo = (int)perf[i].algo;
        a->of[a->count++].workspace = perf[i].memory;
    }
    if (!a->count)
        return fail(DUET_DEVICE_ERROR, "cuDNN has no algorithm of this precision for this convolution");
    return DUET_OK;
}

static algos *look(algos *const *place, const conv_shape *key)
{
    algos *a = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    while (a && memcmp(&a->key, key, sizeof *key)) a = a->next;
    return a;
}

static duet_status look_or_choose(algos **place, const conv_shape *key, const conv_descriptors *d,
                                  const conv_data *at, queue *q, algos **found)
{
    if ((*found = look(place, key))) return DUET_OK;
    algos *a = calloc(1, sizeof *a);
    if (!a) return fail(DUET_NO_MEMORY, "no host memory to store the algorithm of a convolution");
    a->key = *key;
    duet_status s =
        is_conv_grad(key->kernel) ? choose_back(a, d, q) : choose(a, (cudnnMathType_t)key->math, d, at, q);
    if (s != DUET_OK) {
        free(a);
        return s;
    }
    a->next = *place;
    __atomic_store_n(place, a, __ATOMIC_RELEASE);
    *found = a;
    return DUET_OK;
}

duet_status gpu_algos(const conv_shape *key, const conv_descriptors *d, const conv_data *at, queue *q,
                      algos **found)
{
    algos **place = &bucket[q->device][key_bucket(key, sizeof *key)];
    if (likely((*found = look(place, key)) != NULL)) return DUET_OK;
    pthread_mutex_lock(&lock);
    duet_status s = look_or_choose(place, key, d, at, q, found);
    pthread_mutex_unlock(&lock);
    return s;
}
