/* dnn.c - the fake cuDNN. It has five algorithms. The more workspace an algorithm needs, the faster
 * it claims to be. */
#include "fake.h"
#include <cudnn.h>
#include <string.h>
#include <unistd.h>

struct cudnnContext {
    cudaStream_t stream;
};
struct cudnnTensorStruct {
    cudnnDataType_t type;
    int axes, size[5]; /* images are volumes with one plane */
};
struct cudnnFilterStruct {
    struct cudnnTensorStruct t;
};
struct cudnnConvolutionStruct {
    int axes, pad[3], stride[3], dilation[3], groups; /* depth, height, width */
    bool flip;
    cudnnDataType_t type;
    cudnnMathType_t math;
};

static size_t unit = 1024;

void fake_workspace(size_t bytes)
{
    pthread_mutex_lock(&fake_lock);
    unit = bytes;
    pthread_mutex_unlock(&fake_lock);
}

static bool slow_forward, slow_back;

void fake_slowly(bool forward, bool back)
{
    slow_forward = forward;
    slow_back = back;
}

static void dawdle(bool slowly)
{
    if (slowly) usleep(30000); /* longer than another process may occupy a core */
}

#define DNN_ENTER()                                                                                          \
    if (fake_vendor_fails()) return CUDNN_STATUS_EXECUTION_FAILED

size_t cudnnGetVersion(void) { return 90100; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_EXECUTION_FAILED) return "CUDNN_STATUS_EXECUTION_FAILED";
    return "a fake status";
}

/* ---- handles and descriptors ---- */

static cudnnStatus_t create(void **p, size_t bytes)
{
    DNN_ENTER();
    *p = fake_alloc(bytes);
    fake_handles(*p != NULL);
    if (*p) return CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_INTERNAL_ERROR;
}

static cudnnStatus_t destroy(void *p)
{
    if (!p) return CUDNN_STATUS_BAD_PARAM;
    fake_free(p);
    fake_handles(-1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *h) { return create((void **)h, sizeof **h); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t h) { return destroy(h); }
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d)
{
    return create((void **)d, sizeof **d);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d)
{
    return create((void **)d, sizeof **d);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d)
{
    return create((void **)d, sizeof **d);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return destroy(d); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream)
{
    DNN_ENTER();
    h->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_sizes(struct cudnnTensorStruct *t, cudnnDataType_t type, int axes, const int size[5])
{
    DNN_ENTER();
    t->type = type;
    t->axes = axes;
    for (int i = 0; i < 5; i++)
        if ((t->size[i] = size[i]) <= 0) return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
}

/* Supports dense volumes only. */
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int axes,
                                         const int *size, const int *stride)
{
    if (axes != 5 || stride[4] != 1) return CUDNN_STATUS_BAD_PARAM;
    for (int i = 0; i < 4; i++)
        if (stride[i] != stride[i + 1] * size[i + 1]) return CUDNN_STATUS_BAD_PARAM;
    return set_sizes(d, type, 3, size);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int axes, const int *size)
{
    return format == CUDNN_TENSOR_NCHW && axes == 5 ? set_sizes(&d->t, type, 3, size)
                                                    : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int axes, const int *pad,
                                              const int *stride, const int *dilation,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t type)
{
    DNN_ENTER();
    if (axes != 3) return CUDNN_STATUS_BAD_PARAM;
    *d = (struct cudnnConvolutionStruct){
        .axes = 3, .groups = 1, .flip = mode == CUDNN_CONVOLUTION, .type = type, .math = CUDNN_DEFAULT_MATH
    };
    for (int i = 0; i < 3; i++) {
        if (pad[i] < 0 || stride[i] < 1 || dilation[i] < 1) return CUDNN_STATUS_BAD_PARAM;
        d->pad[i] = pad[i];
        d->stride[i] = stride[i];
        d->dilation[i] = dilation[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    return format == CUDNN_TENSOR_NCHW ? set_sizes(d, type, 2, (int[]){ n, c, 1, h, w })
                                       : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    return format == CUDNN_TENSOR_NCHW ? set_sizes(&d->t, type, 2, (int[]){ k, c, 1, h, w })
                                       : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int u,
                                              int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t type)
{
    DNN_ENTER();
    if (u < 1 || v < 1 || pad_h < 0 || pad_w < 0 || dilation_h < 1 || dilation_w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    *d = (struct cudnnConvolutionStruct){ .axes = 2,
                                          .pad = { 0, pad_h, pad_w },
                                          .stride = { 1, u, v },
                                          .dilation = { 1, dilation_h, dilation_w },
                                          .groups = 1,
                                          .flip = mode == CUDNN_CONVOLUTION,
                                          .type = type,
                                          .math = CUDNN_DEFAULT_MATH };
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
    DNN_ENTER();
    d->groups = groups;
    if (groups > 0) return CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t type)
{
    DNN_ENTER();
    d->math = type;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- algorithms of convolutions ---- */

static const struct known {
    cudnnConvolutionFwdAlgo_t algo;
    int units; /* units of workspace */
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
} known[] = {
    { CUDNN_CONVOLUTION_FWD_ALGO_FFT, 16, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1, CUDNN_DETERMINISTIC,
      CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 2, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 2, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 4, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH },
};
#define KNOWN ((int)(sizeof known / sizeof *known))

/* Does the algorithm support a convolution with this math type? Conversion to a narrower type is
 * always allowed. */
static bool goes_with(const struct known *k, cudnnMathType_t math)
{
    return k->math != CUDNN_TENSOR_OP_MATH || math == CUDNN_TENSOR_OP_MATH;
}

/* The workspace that an algorithm needs; returns false for an unknown algorithm. */
static bool workspace_of(cudnnConvolutionFwdAlgo_t algo, cudnnMathType_t math, size_t *bytes)
{
    bool is_known = false;
    *bytes = 0;
    for (int i = 0; i < KNOWN; i++) {
        if (known[i].algo != algo || !goes_with(&known[i], math)) continue;
        if (unit * (size_t)known[i].units > *bytes) *bytes = unit * (size_t)known[i].units;
        is_known = true;
    }
    return is_known;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
    DNN_ENTER();
    if (workspace_of(algo, conv->math, bytes)) return CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

/* Lists the supported algorithms first, then the others with their status. */
static void list(cudnnMathType_t math, int requested, int *returned, cudnnConvolutionFwdAlgoPerf_t *perf,
                 size_t room)
{
    *returned = 0;
    for (int fit = 1; fit >= 0; fit--)
        for (int i = 0; i < KNOWN && *returned < requested; i++) {
            size_t bytes = unit * (size_t)known[i].units;
            if ((bytes <= room) != fit || !goes_with(&known[i], math)) continue;
            perf[(*returned)++] =
                (cudnnConvolutionFwdAlgoPerf_t){ .algo = known[i].algo,
                                                 .memory = bytes,
                                                 .status = fit ? CUDNN_STATUS_SUCCESS
                                                               : CUDNN_STATUS_EXECUTION_FAILED,
                                                 .time = fit ? (float)(i + 1) : -1,
                                                 .determinism = known[i].determinism,
                                                 .mathType = known[i].math };
        }
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int *returned, cudnnConvolutionFwdAlgoPerf_t *perf)
{
    DNN_ENTER();
    list(conv->math, requested, returned, perf, SIZE_MAX);
    return CUDNN_STATUS_SUCCESS;
}

static size_t bytes_of(const struct cudnnTensorStruct *t)
{
    size_t n = t->type == CUDNN_DATA_DOUBLE ? 8 : 4;
    for (int i = 0; i < 5; i++) n *= (size_t)t->size[i];
    return n;
}

/* ---- convolution ---- */

typedef struct call {
    struct cudnnTensorStruct x_at, w_at, y_at;
    struct cudnnConvolutionStruct conv;
    const void *x, *w;
    void *y, *workspace;
    size_t bytes;
    double alpha, beta;
} call;

static double get(const call *c, const void *p, int64_t i)
{
    if (c->x_at.type == CUDNN_DATA_DOUBLE) return ((const double *)p)[i];
    return (double)((const float *)p)[i];
}

/* A factor of a product, rounded as tensor cores do. */
static double factor(const call *c, const void *p, int64_t i)
{
    if (c->conv.math == CUDNN_TENSOR_OP_MATH) return fake_rounded(get(c, p, i), 11, -126);
    return get(c, p, i);
}

/* The position in the image of element `at` of the window of result `out`; returns false if it is
 * outside. */
static bool inside(const call *c, const int *out, const int *at, int64_t *place)
{
    for (int a = 0; a < 3; a++) {
        place[a] =
            (int64_t)out[a] * c->conv.stride[a] - c->conv.pad[a] + (int64_t)at[a] * c->conv.dilation[a];
        if (place[a] < 0 || place[a] >= c->x_at.size[2 + a]) return false;
    }
    return true;
}

static int64_t place_in(const int *size, int64_t n, int64_t c, const int64_t *at)
{
    return (((n * size[1] + c) * size[2] + at[0]) * size[3] + at[1]) * size[4] + at[2];
}

static double one_result(const call *c, const int *out)
{
    const int *x = c->x_at.size, *w = c->w_at.size, window = w[2] * w[3] * w[4];
    const int first = out[1] / (w[0] / c->conv.groups) * w[1]; /* first channel of the group */
    double sum = 0;
    for (int64_t k = 0; k < (int64_t)w[1] * window; k++) {
        const int at[] = { (int)(k / (w[3] * w[4]) % w[2]), (int)(k / w[4] % w[3]), (int)(k % w[4]) };
        const int64_t channel = k / window, turned = channel * window + window - 1 - k % window;
        int64_t place[3];
        if (!inside(c, out + 2, at, place)) continue;
        sum += factor(c, c->x, place_in(x, out[0], first + channel, place)) *
               factor(c, c->w, (int64_t)out[1] * w[1] * window + (c->conv.flip ? turned : k));
    }
    return sum;
}

/* ---- gradients: every product of a convolution belongs to two of the operands and adds to the
 * third ---- */

typedef struct back_call {
    call c; /* y is read, and x or w written */
    bool to_images;
} back_call;

static void add_to(const call *c, void *p, int64_t i, double x)
{
    if (c->x_at.type == CUDNN_DATA_DOUBLE) ((double *)p)[i] += x;
    else ((float *)p)[i] += (float)x;
}

/* Element k of filter m at result `out` of n m d h w. */
static void one_product_back(const back_call *b, const int *out, int64_t k)
{
    const call *c = &b->c;
    const int *x = c->x_at.size, *w = c->w_at.size, *y = c->y_at.size, window = w[2] * w[3] * w[4];
    const int at[] = { (int)(k / (w[3] * w[4]) % w[2]), (int)(k / w[4] % w[3]), (int)(k % w[4]) };
    const int64_t channel = out[1] / (w[0] / c->conv.groups) * w[1] + k / window,
                  result[] = { out[2], out[3], out[4] };
    int64_t place[3];
    if (!inside(c, out + 2, at, place)) return;
    const int64_t at_x = place_in(x, out[0], channel, place), at_w = (int64_t)out[1] * w[1] * window + k;
    const double dy = factor(c, c->y, place_in(y, out[0], out[1], result));
    if (b->to_images) add_to(c, (void *)(uintptr_t)c->x, at_x, dy * factor(c, c->w, at_w));
    else add_to(c, (void *)(uintptr_t)c->w, at_w, dy * factor(c, c->x, at_x));
}

/* Computes the indices of element i. */
static void unravel(const int *size, int64_t i, int index[5])
{
    for (int a = 5; a-- > 0; i /= size[a]) index[a] = (int)(i % size[a]);
}

static int64_t elements_of(const int *size)
{
    return (int64_t)size[0] * size[1] * size[2] * size[3] * size[4];
}

static void run_back(void *args)
{
    const back_call *b = args;
    const int *w = b->c.w_at.size, *y = b->c.y_at.size;
    if (b->c.bytes) memset(b->c.workspace, 0xff, b->c.bytes);
    memset((void *)(uintptr_t)(b->to_images ? b->c.x : b->c.w), 0,
           bytes_of(b->to_images ? &b->c.x_at : &b->c.w_at));
    for (int64_t at = 0; at < elements_of(y); at++) {
        int out[5];
        unravel(y, at, out);
        for (int64_t k = 0; k < w[1] * w[2] * w[3] * w[4]; k++) one_product_back(b, out, k);
    }
}

static void run_call(void *args)
{
    const call *c = args;
    const int *s = c->y_at.size;
    const int64_t n = elements_of(s);
    if (c->bytes) memset(c->workspace, 0xff, c->bytes);
    for (int64_t at = 0; at < n; at++) {
        int out[5];
        unravel(s, at, out);
        double r = c->alpha * one_result(c, out);
        if (c->y_at.type == CUDNN_DATA_DOUBLE) ((double *)c->y)[at] = r;
        else ((float *)c->y)[at] = (float)r;
    }
}

/* Are the sizes those of a convolution, the math type strict, and all operands in device memory? */
static bool is_call(const call *c)
{
    const int *x = c->x_at.size, *w = c->w_at.size, *y = c->y_at.size;
    const bool tensor_cores = c->conv.math == CUDNN_TENSOR_OP_MATH && c->x_at.type == CUDNN_DATA_FLOAT;
    bool fits = x[1] == w[1] * c->conv.groups && w[0] % c->conv.groups == 0 && y[0] == x[0] && y[1] == w[0];
    fits &= c->x_at.axes == c->conv.axes && c->w_at.axes == c->conv.axes && c->y_at.axes == c->conv.axes;
    for (int i = 0; i < 3; i++) {
        const int reach = (w[2 + i] - 1) * c->conv.dilation[i] + 1;
        fits &= y[2 + i] == (x[2 + i] + 2 * c->conv.pad[i] - reach) / c->conv.stride[i] + 1;
    }
    return fits && (c->conv.math == CUDNN_FMA_MATH || tensor_cores) && c->x_at.type == c->w_at.type &&
           c->x_at.type == c->y_at.type && c->x_at.type == c->conv.type &&
           fake_owns(c->x, bytes_of(&c->x_at)) && fake_owns(c->w, bytes_of(&c->w_at)) &&
           fake_owns(c->y, bytes_of(&c->y_at)) && (!c->bytes || fake_owns(c->workspace, c->bytes));
}

/* Runs the algorithms on the data, which overwrites y, and waits for the device. */
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x_at,
                                                     const void *x, const cudnnFilterDescriptor_t w_at,
                                                     const void *w, const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y_at, void *y,
                                                     const int requested, int *returned,
                                                     cudnnConvolutionFwdAlgoPerf_t *perf, void *workspace,
                                                     size_t bytes)
{
    call c = { *x_at, w_at->t, *y_at, *conv, x, w, y, workspace, bytes, 1, 0 };
    DNN_ENTER();
    if (!is_call(&c)) return CUDNN_STATUS_BAD_PARAM;
    fake_drain(handle->stream);
    list(conv->math, requested, returned, perf, bytes);
    pthread_mutex_lock(&fake_lock);
    fake_counted.searches++;
    memset(y, 0xff, bytes_of(y_at));
    pthread_mutex_unlock(&fake_lock);
    return CUDNN_STATUS_SUCCESS;
}

static double number(const call *c, const void *p) { return get(c, p, 0); }

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x_at, const void *x,
                                      const cudnnFilterDescriptor_t w_at, const void *w,
                                      const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
                                      void *workspace, size_t bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y_at, void *y)
{
    call c = { *x_at, w_at->t, *y_at, *conv, x, w, y, workspace, bytes, 0, 0 };
    size_t needs;
    DNN_ENTER();
    dawdle(slow_forward);
    c.alpha = number(&c, alpha);
    c.beta = number(&c, beta);
    if (!is_call(&c) || c.beta != 0) return CUDNN_STATUS_BAD_PARAM;
    if (!workspace_of(algo, conv->math, &needs)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (bytes < needs) return CUDNN_STATUS_BAD_PARAM;
    c.bytes = needs;
    pthread_mutex_lock(&fake_lock);
    fake_counted.convolutions++;
    fake_counted.rounded += conv->math == CUDNN_TENSOR_OP_MATH;
    fake_counted.algorithm = (int)algo;
    pthread_mutex_unlock(&fake_lock);
    if (fake_queue(handle->stream, run_call, &c, sizeof c)) return CUDNN_STATUS_EXECUTION_FAILED;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t queue_back(cudnnHandle_t handle, back_call *b, int algo, const void *alpha,
                                const void *beta)
{
    call *c = &b->c;
    if (!is_call(c) || number(c, alpha) != 1 || number(c, beta) != 0 || c->conv.flip)
        return CUDNN_STATUS_BAD_PARAM;
    if (algo != 1) return CUDNN_STATUS_NOT_SUPPORTED;
    if (c->bytes < unit) return CUDNN_STATUS_BAD_PARAM;
    pthread_mutex_lock(&fake_lock);
    fake_counted.convolutions++;
    fake_counted.rounded += c->conv.math == CUDNN_TENSOR_OP_MATH;
    pthread_mutex_unlock(&fake_lock);
    if (fake_queue(handle->stream, run_back, b, sizeof *b)) return CUDNN_STATUS_EXECUTION_FAILED;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle,
                                                           const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
    DNN_ENTER();
    *bytes = unit;
    if (algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) return CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
    DNN_ENTER();
    *bytes = unit;
    if (algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) return CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w_at, const void *w,
                                           const cudnnTensorDescriptor_t dy_at, const void *dy,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workspace, size_t bytes,
                                           const void *beta, const cudnnTensorDescriptor_t dx_at, void *dx)
{
    back_call b = { { *dx_at, w_at->t, *dy_at, *conv, dx, w, (void *)(uintptr_t)dy, workspace, bytes, 1, 0 },
                    true };
    DNN_ENTER();
    dawdle(slow_back);
    pthread_mutex_lock(&fake_lock);
    fake_counted.backward++;
    pthread_mutex_unlock(&fake_lock);
    return queue_back(handle, &b, (int)algo, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_at, const void *x,
                                             const cudnnTensorDescriptor_t dy_at, const void *dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                             size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw_at, void *dw)
{
    back_call b = { { *x_at, dw_at->t, *dy_at, *conv, x, dw, (void *)(uintptr_t)dy, workspace, bytes, 1, 0 },
                    false };
    DNN_ENTER();
    return queue_back(handle, &b, (int)algo, alpha, beta);
}
