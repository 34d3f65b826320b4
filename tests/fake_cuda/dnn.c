/* dnn.c - the pretended cuDNN. It knows five algorithms; the more workspace one needs, the faster it says it is. */
#include "fake.h"
#include <cudnn.h>
#include <string.h>

struct cudnnContext {
    cudaStream_t stream;
};
struct cudnnTensorStruct {
    cudnnDataType_t type;
    int size[4];
};
struct cudnnFilterStruct {
    struct cudnnTensorStruct t;
};
struct cudnnConvolutionStruct {
    int pad[2], stride[2], dilation[2], groups;
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

#define DNN_ENTER()                                                                                                              \
    if (fake_vendor_fails()) return CUDNN_STATUS_EXECUTION_FAILED

size_t cudnnGetVersion(void) { return 90100; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED" : "a pretended status";
}

/* ---- handles and descriptors ---- */

static cudnnStatus_t create(void **p, size_t bytes)
{
    DNN_ENTER();
    *p = fake_alloc(bytes);
    fake_handles(*p != NULL);
    return *p ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
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
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d) { return create((void **)d, sizeof **d); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d) { return create((void **)d, sizeof **d); }
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d) { return create((void **)d, sizeof **d); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return destroy(d); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream)
{
    DNN_ENTER();
    h->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_sizes(struct cudnnTensorStruct *t, cudnnDataType_t type, const int size[4])
{
    DNN_ENTER();
    t->type = type;
    for (int i = 0; i < 4; i++)
        if ((t->size[i] = size[i]) <= 0) return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w)
{
    return format == CUDNN_TENSOR_NCHW ? set_sizes(d, type, (int[]){ n, c, h, w }) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format, int k,
                                         int c, int h, int w)
{
    return format == CUDNN_TENSOR_NCHW ? set_sizes(&d->t, type, (int[]){ k, c, h, w }) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t type)
{
    DNN_ENTER();
    if (u < 1 || v < 1 || pad_h < 0 || pad_w < 0 || dilation_h < 1 || dilation_w < 1) return CUDNN_STATUS_BAD_PARAM;
    *d = (struct cudnnConvolutionStruct){ { pad_h, pad_w },          { u, v }, { dilation_h, dilation_w }, 1,
                                          mode == CUDNN_CONVOLUTION, type,     CUDNN_DEFAULT_MATH };
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
    DNN_ENTER();
    d->groups = groups;
    return groups > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t type)
{
    DNN_ENTER();
    d->math = type;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- algorithms ---- */

static const struct known {
    cudnnConvolutionFwdAlgo_t algo;
    int units; /* of workspace */
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
} known[] = {
    { CUDNN_CONVOLUTION_FWD_ALGO_FFT, 16, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 2, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 2, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 4, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH },
    { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH },
};
#define KNOWN ((int)(sizeof known / sizeof *known))

/* Does it go with a convolution of that math? Whatever that says, it is tried by way of conversion, too. */
static bool goes_with(const struct known *k, cudnnMathType_t math)
{
    return k->math != CUDNN_TENSOR_OP_MATH || math == CUDNN_TENSOR_OP_MATH;
}

/* The most that an algorithm needs; false when it is not known. */
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
                                                      const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes)
{
    DNN_ENTER();
    return workspace_of(algo, conv->math, bytes) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

/* Those that fit first, then the others with their reason. */
static void list(cudnnMathType_t math, int requested, int *returned, cudnnConvolutionFwdAlgoPerf_t *perf, size_t room)
{
    *returned = 0;
    for (int fit = 1; fit >= 0; fit--)
        for (int i = 0; i < KNOWN && *returned < requested; i++) {
            size_t bytes = unit * (size_t)known[i].units;
            if ((bytes <= room) != fit || !goes_with(&known[i], math)) continue;
            perf[(*returned)++] =
                (cudnnConvolutionFwdAlgoPerf_t){ .algo = known[i].algo,
                                                 .memory = bytes,
                                                 .status = fit ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED,
                                                 .time = fit ? (float)(i + 1) : -1,
                                                 .determinism = known[i].determinism,
                                                 .mathType = known[i].math };
        }
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, const int requested, int *returned,
                                                     cudnnConvolutionFwdAlgoPerf_t *perf)
{
    DNN_ENTER();
    list(conv->math, requested, returned, perf, SIZE_MAX);
    return CUDNN_STATUS_SUCCESS;
}

static size_t bytes_of(const struct cudnnTensorStruct *t)
{
    size_t n = t->type == CUDNN_DATA_DOUBLE ? 8 : 4;
    for (int i = 0; i < 4; i++) n *= (size_t)t->size[i];
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
    return c->x_at.type == CUDNN_DATA_DOUBLE ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* A factor, as tensor cores take it. */
static double factor(const call *c, const void *p, int64_t i)
{
    return c->conv.math == CUDNN_TENSOR_OP_MATH ? fake_rounded(get(c, p, i), 11, -126) : get(c, p, i);
}

static double one_result(const call *c, const int *out)
{
    const int *x = c->x_at.size, *w = c->w_at.size;
    const int first = out[1] / (w[0] / c->conv.groups) * w[1]; /* the group's first channel */
    double sum = 0;
    for (int k = 0; k < w[1]; k++)
        for (int u = 0; u < w[2]; u++)
            for (int v = 0; v < w[3]; v++) {
                int64_t i = (int64_t)out[2] * c->conv.stride[0] - c->conv.pad[0] + (int64_t)u * c->conv.dilation[0];
                int64_t j = (int64_t)out[3] * c->conv.stride[1] - c->conv.pad[1] + (int64_t)v * c->conv.dilation[1];
                if (i < 0 || i >= x[2] || j < 0 || j >= x[3]) continue;
                int a = c->conv.flip ? w[2] - 1 - u : u, b = c->conv.flip ? w[3] - 1 - v : v;
                sum += factor(c, c->x, (((int64_t)out[0] * x[1] + first + k) * x[2] + i) * x[3] + j) *
                       factor(c, c->w, (((int64_t)out[1] * w[1] + k) * w[2] + a) * w[3] + b);
            }
    return sum;
}

/* ---- back: every product of a forward convolution is one of two of the operands, and goes to the third ---- */

typedef struct back_call {
    call c; /* y is read, and x or w written */
    bool to_images;
} back_call;

static void add_to(const call *c, void *p, int64_t i, double x)
{
    if (c->x_at.type == CUDNN_DATA_DOUBLE) ((double *)p)[i] += x;
    else ((float *)p)[i] += (float)x;
}

/* Element k of filter m at result (n, m, i, j). */
static void one_product_back(const back_call *b, int64_t n, int64_t m, int64_t i, int64_t j, int64_t k)
{
    const call *c = &b->c;
    const int *x = c->x_at.size, *w = c->w_at.size, *y = c->y_at.size;
    const int64_t v = k % w[3], u = k / w[3] % w[2], channel = m / (w[0] / c->conv.groups) * w[1] + k / (w[3] * w[2]);
    const int64_t p = i * c->conv.stride[0] - c->conv.pad[0] + u * c->conv.dilation[0];
    const int64_t q = j * c->conv.stride[1] - c->conv.pad[1] + v * c->conv.dilation[1];
    if (p < 0 || p >= x[2] || q < 0 || q >= x[3]) return;
    const int64_t at_x = ((n * x[1] + channel) * x[2] + p) * x[3] + q, at_w = m * w[1] * w[2] * w[3] + k;
    const double dy = factor(c, c->y, ((n * y[1] + m) * y[2] + i) * y[3] + j);
    if (b->to_images) add_to(c, (void *)(uintptr_t)c->x, at_x, dy * factor(c, c->w, at_w));
    else add_to(c, (void *)(uintptr_t)c->w, at_w, dy * factor(c, c->x, at_x));
}

static void run_back(void *args)
{
    const back_call *b = args;
    const int *w = b->c.w_at.size, *y = b->c.y_at.size;
    if (b->c.bytes) memset(b->c.workspace, 0xff, b->c.bytes);
    memset((void *)(uintptr_t)(b->to_images ? b->c.x : b->c.w), 0, bytes_of(b->to_images ? &b->c.x_at : &b->c.w_at));
    for (int64_t at = 0; at < (int64_t)y[0] * y[1] * y[2] * y[3]; at++)
        for (int64_t k = 0; k < w[1] * w[2] * w[3]; k++)
            one_product_back(b, at / (y[1] * y[2] * y[3]), at / (y[2] * y[3]) % y[1], at / y[3] % y[2], at % y[3], k);
}

static void run_call(void *args)
{
    const call *c = args;
    const int *s = c->y_at.size;
    int64_t n = (int64_t)s[0] * s[1] * s[2] * s[3];
    if (c->bytes) memset(c->workspace, 0xff, c->bytes);
    for (int64_t at = 0; at < n; at++) {
        int64_t rest = at;
        int out[4];
        for (int axis = 4; axis-- > 0; rest /= s[axis]) out[axis] = (int)(rest % s[axis]);
        double r = c->alpha * one_result(c, out);
        if (c->y_at.type == CUDNN_DATA_DOUBLE) ((double *)c->y)[at] = r;
        else ((float *)c->y)[at] = (float)r;
    }
}

/* Are the sizes those of a convolution, the math strict, and all of it device memory? */
static bool is_call(const call *c)
{
    const int *x = c->x_at.size, *w = c->w_at.size, *y = c->y_at.size;
    const bool tensor_cores = c->conv.math == CUDNN_TENSOR_OP_MATH && c->x_at.type == CUDNN_DATA_FLOAT;
    bool fits = x[1] == w[1] * c->conv.groups && w[0] % c->conv.groups == 0 && y[0] == x[0] && y[1] == w[0];
    for (int i = 0; i < 2; i++) {
        const int reach = (w[2 + i] - 1) * c->conv.dilation[i] + 1;
        fits &= y[2 + i] == (x[2 + i] + 2 * c->conv.pad[i] - reach) / c->conv.stride[i] + 1;
    }
    return fits && (c->conv.math == CUDNN_FMA_MATH || tensor_cores) && c->x_at.type == c->w_at.type &&
           c->x_at.type == c->y_at.type && c->x_at.type == c->conv.type && fake_owns(c->x, bytes_of(&c->x_at)) &&
           fake_owns(c->w, bytes_of(&c->w_at)) && fake_owns(c->y, bytes_of(&c->y_at)) &&
           (!c->bytes || fake_owns(c->workspace, c->bytes));
}

/* It tries them on the data, which spoils y, and waits for the device. */
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x_at, const void *x,
                                                     const cudnnFilterDescriptor_t w_at, const void *w,
                                                     const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y_at,
                                                     void *y, const int requested, int *returned,
                                                     cudnnConvolutionFwdAlgoPerf_t *perf, void *workspace, size_t bytes)
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

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_at, const void *x,
                                      const cudnnFilterDescriptor_t w_at, const void *w, const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y_at, void *y)
{
    call c = { *x_at, w_at->t, *y_at, *conv, x, w, y, workspace, bytes, 0, 0 };
    size_t needs;
    DNN_ENTER();
    c.alpha = number(&c, alpha), c.beta = number(&c, beta);
    if (!is_call(&c) || c.beta != 0) return CUDNN_STATUS_BAD_PARAM;
    if (!workspace_of(algo, conv->math, &needs)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (bytes < needs) return CUDNN_STATUS_BAD_PARAM;
    c.bytes = needs;
    pthread_mutex_lock(&fake_lock);
    fake_counted.convolutions++, fake_counted.rounded += conv->math == CUDNN_TENSOR_OP_MATH;
    fake_counted.algorithm = (int)algo;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(handle->stream, run_call, &c, sizeof c) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t queue_back(cudnnHandle_t handle, back_call *b, int algo, const void *alpha, const void *beta)
{
    call *c = &b->c;
    if (!is_call(c) || number(c, alpha) != 1 || number(c, beta) != 0 || c->conv.flip) return CUDNN_STATUS_BAD_PARAM;
    if (algo != 1) return CUDNN_STATUS_NOT_SUPPORTED;
    if (c->bytes < unit) return CUDNN_STATUS_BAD_PARAM;
    pthread_mutex_lock(&fake_lock);
    fake_counted.convolutions++, fake_counted.rounded += c->conv.math == CUDNN_TENSOR_OP_MATH;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(handle->stream, run_back, b, sizeof *b) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo,
                                                           size_t *bytes)
{
    DNN_ENTER();
    *bytes = unit;
    return algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t conv,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
    DNN_ENTER();
    *bytes = unit;
    return algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w_at,
                                           const void *w, const cudnnTensorDescriptor_t dy_at, const void *dy,
                                           const cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *workspace, size_t bytes, const void *beta, const cudnnTensorDescriptor_t dx_at,
                                           void *dx)
{
    back_call b = { { *dx_at, w_at->t, *dy_at, *conv, dx, w, (void *)(uintptr_t)dy, workspace, bytes, 1, 0 }, true };
    DNN_ENTER();
    return queue_back(handle, &b, (int)algo, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_at,
                                             const void *x, const cudnnTensorDescriptor_t dy_at, const void *dy,
                                             const cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *workspace, size_t bytes, const void *beta, const cudnnFilterDescriptor_t dw_at,
                                             void *dw)
{
    back_call b = { { *x_at, dw_at->t, *dy_at, *conv, x, dw, (void *)(uintptr_t)dy, workspace, bytes, 1, 0 }, false };
    DNN_ENTER();
    return queue_back(handle, &b, (int)algo, alpha, beta);
}
