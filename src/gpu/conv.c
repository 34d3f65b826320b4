/* conv.c - convolutions and their gradients, by cuDNN. */
#include "clock.h"
#include "cudnn_algo.h"
#include "dgrad_as_conv.h"
#include "dtype.h"
#include "scratch.h"
#include "step_kinds.h"
#include "trace.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a step caches between runs. */
typedef struct conv_cache {
    conv_descriptors d;
    conv_shape key;
    algos *algos;
    /* for a gradient of images: the convolution that computes the same (core/dgrad_as_conv.h), or
     * NULL */
    struct conv_cache *as_conv;
} conv_cache;

/* The option `more` of an axis: padding at its end in addition to that on both sides. */
static int32_t more_of(const step *s, int axis, int axes)
{
    return s->attr.conv.pad_end[spatial_axis(axis, axes)];
}

/* The layout of the images with this additional padding. */
static layout padded(const step *s)
{
    const layout *x = &conv_operands_of(s).x->at;
    int64_t size[DUET_RANK_MAX];
    layout l;
    for (int a = 0; a < x->rank; a++) size[a] = x->size[a] + (a < 2 ? 0 : more_of(s, a - 2, x->rank - 2));
    layout_dense(&l, x->type, x->rank, size);
    return l;
}

const char *gpu_conv_unsupported(const step *s)
{
    const layout *all[] = { &s->in[0].at, &s->in[1].at, &s->out[0].at };
    if (s->epilogue) return "cuDNN is called without an epilogue";
    for (int i = 0; i < 3; i++) {
        for (int axis = 0; axis < all[i]->rank; axis++)
            if (all[i]->size[axis] > INT_MAX) return "cuDNN takes sizes below 2^31";
        if (layout_count(all[i]) > INT_MAX) return "cuDNN takes tensors of less than 2^31 elements";
    }
    const layout images = padded(s);
    if (layout_count(&images) > INT_MAX)
        return "with padding on one side, cuDNN takes tensors of less than 2^31 elements";
    return vendor_open(LIBRARY_cudnn)->missing[LIBRARY_cudnn];
}

/* CUDNN_FMA_MATH never rounds f32 for tensor cores. CUDNN_TENSOR_OP_MATH rounds to TF32, which BF16
 * permits too; cuDNN's alternative is f16, which has too small a range. */
static cudnnMathType_t math_of(const step *s)
{
    return s->math == DUET_MATH_TF32 || s->math == DUET_MATH_BF16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
}

static conv_shape shape_of(const step *s)
{
    const conv_operands o = conv_operands_of(s);
    const conv_attributes *a = &s->attr.conv;
    conv_shape k = { .kernel = is_conv_grad(s->kernel) ? s->kernel : OP_conv2d,
                     .type = (int32_t)s->in[0].at.type,
                     .n = (int32_t)o.x->at.size[0],
                     .c = (int32_t)o.x->at.size[1],
                     .m = (int32_t)o.w->at.size[0],
                     .axes = o.x->at.rank - 2,
                     .groups = a->groups,
                     .flip = a->flip,
                     .math = (int32_t)math_of(s) };
    for (int i = 0; i < k.axes; i++) {
        const int axis = spatial_axis(i, k.axes);
        k.image[i] = (int32_t)o.x->at.size[2 + i];
        k.window[i] = (int32_t)o.w->at.size[2 + i];
        k.stride[i] = a->stride[axis];
        k.pad[i] = a->pad[axis];
        k.dilation[i] = a->dilation[axis];
        k.image[i] += more_of(s, i, k.axes); /* cuDNN gets copies of the images with this padding */
    }
    return k;
}

static duet_status create(const vendor *v, conv_descriptors *d)
{
    TRY(DNN(v, cudnnCreateTensorDescriptor, &d->x));
    TRY(DNN(v, cudnnCreateTensorDescriptor, &d->y));
    TRY(DNN(v, cudnnCreateFilterDescriptor, &d->w));
    return DNN(v, cudnnCreateConvolutionDescriptor, &d->conv);
}

static duet_status describe_images(const vendor *v, conv_descriptors *d, const conv_shape *s,
                                   cudnnDataType_t type, cudnnConvolutionMode_t mode, const int64_t *out)
{
    TRY(DNN(v, cudnnSetTensor4dDescriptor, d->x, CUDNN_TENSOR_NCHW, type, s->n, s->c, s->image[0],
            s->image[1]));
    TRY(DNN(v, cudnnSetTensor4dDescriptor, d->y, CUDNN_TENSOR_NCHW, type, s->n, s->m, (int)out[2],
            (int)out[3]));
    TRY(DNN(v, cudnnSetFilter4dDescriptor, d->w, type, CUDNN_TENSOR_NCHW, s->m, s->c / s->groups,
            s->window[0], s->window[1]));
    return DNN(v, cudnnSetConvolution2dDescriptor, d->conv, s->pad[0], s->pad[1], s->stride[0], s->stride[1],
               s->dilation[0], s->dilation[1], mode, type);
}

/* Describes a dense volume. */
static duet_status describe_volume(const vendor *v, cudnnTensorDescriptor_t d, cudnnDataType_t type,
                                   const int size[5])
{
    int stride[5] = { 0, 0, 0, 0, 1 };
    for (int i = 4; i-- > 0;) stride[i] = stride[i + 1] * size[i + 1];
    return DNN(v, cudnnSetTensorNdDescriptor, d, type, 5, size, stride);
}

static duet_status describe_volumes(const vendor *v, conv_descriptors *d, const conv_shape *s,
                                    cudnnDataType_t type, cudnnConvolutionMode_t mode, const int64_t *out)
{
    const int x[] = { s->n, s->c, s->image[0], s->image[1], s->image[2] };
    const int y[] = { s->n, s->m, (int)out[2], (int)out[3], (int)out[4] };
    const int w[] = { s->m, s->c / s->groups, s->window[0], s->window[1], s->window[2] };
    TRY(describe_volume(v, d->x, type, x));
    TRY(describe_volume(v, d->y, type, y));
    TRY(DNN(v, cudnnSetFilterNdDescriptor, d->w, type, CUDNN_TENSOR_NCHW, 5, w));
    return DNN(v, cudnnSetConvolutionNdDescriptor, d->conv, 3, s->pad, s->stride, s->dilation, mode, type);
}

static duet_status describe(const vendor *v, conv_descriptors *d, const conv_shape *s, const int64_t *out)
{
    cudnnDataType_t type = s->type == DUET_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = s->flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    TRY(create(v, d));
    TRY((s->axes == 2 ? describe_images : describe_volumes)(v, d, s, type, mode, out));
    if (s->groups > 1) TRY(DNN(v, cudnnSetConvolutionGroupCount, d->conv, s->groups));
    return DNN(v, cudnnSetConvolutionMathType, d->conv, (cudnnMathType_t)s->math);
}

static void discard(void *made)
{
    conv_cache *k = made;
    const vendor *v = vendor_open(LIBRARY_cudnn);
    if (k->as_conv) discard(k->as_conv);
    if (k->d.x) v->cudnnDestroyTensorDescriptor(k->d.x);
    if (k->d.y) v->cudnnDestroyTensorDescriptor(k->d.y);
    if (k->d.w) v->cudnnDestroyFilterDescriptor(k->d.w);
    if (k->d.conv) v->cudnnDestroyConvolutionDescriptor(k->d.conv);
    free(k);
}

void gpu_conv_forget(step *s)
{
    discard(s->cached);
    s->cached = NULL;
}

static duet_status make_cache(const step *s, const queue *q, void **made);

/* Makes the cache of the convolution that computes the same as this gradient. On failure it returns
 * NULL, and the gradient is computed directly. */
static conv_cache *make_as_conv(const step *s, const queue *q)
{
    int64_t last;
    void *made;
    error_text before;
    error_keep(&before);
    const step t = dgrad_as_conv(s, &last);
    if (make_cache(&t, q, &made) == DUET_OK) return made;
    error_put_back(&before);
    return NULL;
}

static duet_status make_cache(const step *s, const queue *q, void **made)
{
    const vendor *v = vendor_open(LIBRARY_cudnn);
    conv_cache *k = *made = calloc(1, sizeof *k);
    if (!k) return fail(DUET_NO_MEMORY, "no host memory to describe a convolution");
    k->key = shape_of(s);
    duet_status r = describe(v, &k->d, &k->key, conv_operands_of(s).y->at.size);
    if (r == DUET_OK && conv_has_dgrad_as_conv(s)) k->as_conv = make_as_conv(s, q);
    if (r != DUET_OK) discard(k);
    return r;
}

/* Takes the workspace of the fastest algorithm for which there is memory. */
static duet_status take_workspace(const algos *a, const queue *q, int *chosen, void **p)
{
    duet_status s = DUET_NO_MEMORY;
    *p = NULL;
    *chosen = 0;
    for (int i = 0; i < a->count && s == DUET_NO_MEMORY; i++) {
        if (i && a->of[i].workspace >= a->of[*chosen].workspace) continue;
        *chosen = i;
        s = a->of[i].workspace ? gpu_take_quietly(scratch_acquire_workspace, a->of[i].workspace, q, p)
                               : DUET_OK;
    }
    if (s != DUET_NO_MEMORY) return s;
    return scratch_acquire_workspace(q->device, a->of[*chosen].workspace, q->index, p);
}

static duet_status call(const conv_cache *k, int algo, void *work, size_t bytes, const conv_data *at,
                        queue *q)
{
    static const float one = 1, zero = 0;
    static const double one_f64 = 1, zero_f64 = 0;
    const vendor *v = vendor_open(LIBRARY_cudnn);
    const conv_descriptors *d = &k->d;
    const bool f64 = k->key.type == DUET_F64;
    const void *a = f64 ? (const void *)&one_f64 : &one, *b = f64 ? (const void *)&zero_f64 : &zero;
    switch (k->key.kernel) {
    case OP_conv2d_input_grad:
        return DNN(v, cudnnConvolutionBackwardData, q->dnn, a, d->w, at->w, d->y, at->y, d->conv,
                   (cudnnConvolutionBwdDataAlgo_t)algo, work, bytes, b, d->x, at->x);
    case OP_conv2d_filter_grad:
        return DNN(v, cudnnConvolutionBackwardFilter, q->dnn, a, d->x, at->x, d->y, at->y, d->conv,
                   (cudnnConvolutionBwdFilterAlgo_t)algo, work, bytes, b, d->w, at->w);
    default:
        return DNN(v, cudnnConvolutionForward, q->dnn, a, d->x, at->x, d->w, at->w, d->conv,
                   (cudnnConvolutionFwdAlgo_t)algo, work, bytes, b, d->y, at->y);
    }
}

static duet_status convolve(const conv_cache *k, const algos *a, const conv_data *at, queue *q)
{
    void *p;
    int i;
    TRY(take_workspace(a, q, &i, &p));
    duet_status s = call(k, a->of[i].algo, p, a->of[i].workspace, at, q);
    gpu_give(p, q);
    if (s == DUET_OK) COUNT(launches);
    return s;
}

/* Sets *k to the cache of the step, and makes it first if necessary. The caller holds q->lock. */
static duet_status cache_of(const step *s, queue *q, conv_cache **k)
{
    const vendor *v;
    void *made;
    TRY(gpu_queue_dnn(q, &v));
    TRY(step_cached(s, q, make_cache, discard, &made));
    *k = made;
    return DUET_OK;
}

/* Chooses the algorithms if this has not been done. `at` is the data for trial runs, or NULL for
 * gradients. Sets *first if it chose. */
static duet_status find_algos(conv_cache *k, const conv_data *at, queue *q, bool *first)
{
    algos *a;
    *first = !__atomic_load_n(&k->algos, __ATOMIC_ACQUIRE);
    if (!*first) return DUET_OK;
    TRY(gpu_algos(&k->key, &k->d, at, q, &a));
    __atomic_store_n(&k->algos, a, __ATOMIC_RELEASE);
    return DUET_OK;
}

static duet_status on_dense(const step *s, const conv_data *at, queue *q)
{
    conv_cache *k;
    bool first;
    TRY(cache_of(s, q, &k));
    TRY(find_algos(k, at, q, &first));
    const duet_status r = convolve(k, k->algos, at, q);
    if (!first) return r;
    return half_written(r);
}

/* Assigns the step's in[0], in[1] and out[0] to the roles of a convolution: images, filters, results. */
static conv_data data_of(const step *s, void *a, void *b, void *out)
{
    if (s->kernel == OP_conv2d_input_grad) return (conv_data){ out, b, a };
    if (s->kernel == OP_conv2d_filter_grad) return (conv_data){ a, out, b };
    return (conv_data){ a, b, out };
}

/* ---- additional padding at the end of an axis ----
 * cuDNN has no such option, so the images are copied with this padding. */

/* The part of a padded copy that holds the elements of x. */
static layout like_x(const layout *copy, const layout *x)
{
    layout l = *copy;
    memcpy(l.size, x->size, sizeof l.size);
    return l;
}

static size_t bytes_of(const layout *l) { return (size_t)layout_count(l) * dtypes[l->type].bytes; }

static duet_status clear_and_copy(void *to, const layout *at, const void *from, const layout *x, queue *q)
{
    const layout there = like_x(at, x);
    TRY(CUDA(cudaMemsetAsync, to, 0, bytes_of(at), gpu_queue_cuda_stream(q)));
    return gpu_apply(OP_LOAD, to, &there, &(part){ .p = from, .at = x }, 1, q);
}

/* Sets *p to a padded copy of the images, in *block, which the caller releases. */
static duet_status with_padding(const step *s, const frame *f, queue *q, const void **p, void **block)
{
    const operand *x = conv_operands_of(s).x;
    const layout at = padded(s);
    TRY(scratch_acquire(q->device, bytes_of(&at), q->index, block));
    *p = *block;
    gpu_queue_wrote_anything(q);
    const duet_status r = clear_and_copy(*block, &at, f->data[x->slot], &x->at, q);
    if (r != DUET_OK) {
        gpu_give(*block, q);
        *block = NULL;
    }
    return r;
}

static duet_status without_padding(const step *s, const frame *f, queue *q, const void *from)
{
    const operand *x = conv_operands_of(s).x;
    const layout at = padded(s), there = like_x(&at, &x->at);
    return half_written(
        gpu_apply(OP_LOAD, f->data[x->slot], &x->at, &(part){ .p = from, .at = &there }, 1, q));
}

/* ---- steps ---- */

static duet_status on_operands(const step *s, const conv_data *at, queue *q)
{
    gpu_queue_wrote_anything(q); /* the range that cuDNN writes is unknown */
    pthread_mutex_lock(&q->lock);
    const duet_status r = on_dense(s, at, q);
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* Computes the gradient of images. With additional padding, cuDNN computes that of padded images. */
static duet_status to_images(const step *s, const frame *f, queue *q, void *a, void *b)
{
    const layout at = padded(s);
    void *out = f->data[s->out[0].slot], *block;
    if (!conv_is_unequal(s)) return on_operands(s, &(conv_data){ out, b, a }, q);
    TRY(scratch_acquire(q->device, bytes_of(&at), q->index, &block));
    duet_status r = on_operands(s, &(conv_data){ block, b, a }, q);
    if (r == DUET_OK) r = without_padding(s, f, q, block);
    gpu_give(block, q);
    return r;
}

static duet_status one_algorithm(const step *s, const frame *f, queue *q)
{
    const operand *a = &s->in[0], *b = &s->in[1];
    const bool back = s->kernel == OP_conv2d_input_grad;
    void *out = f->data[s->out[0].slot], *a_block = NULL, *b_block = NULL;
    const void *a_at, *b_at = NULL;
    gpu_queue_wrote_anything(q);
    if (!layout_count(&a->at) || !layout_count(&b->at)) /* every sum is empty or covers only padding */
        return CUDA(cudaMemsetAsync, out, 0,
                    (size_t)layout_count(&s->out[0].at) * dtypes[s->out[0].at.type].bytes,
                    gpu_queue_cuda_stream(q));
    TRY(conv_is_unequal(s) && !back ? with_padding(s, f, q, &a_at, &a_block)
                                    : gpu_densely(a, f, q, &a_at, &a_block));
    duet_status r = gpu_densely(b, f, q, &b_at, &b_block);
    void *const x = (void *)(uintptr_t)a_at, *const y = (void *)(uintptr_t)b_at;
    const conv_data at = data_of(s, x, y, out);
    if (r == DUET_OK) r = back ? to_images(s, f, q, x, y) : on_operands(s, &at, q);
    gpu_give(a_block, q);
    gpu_give(b_block, q);
    return r;
}

/* ---- gradients of images: directly, or as a convolution with rotated filters ---- */

#define RUNS  4 /* runs that are timed together */
#define TURNS 2

static duet_status forward(const step *s, const conv_cache *k, const frame *f, queue *q)
{
    int64_t last;
    step t = dgrad_as_conv(s, &last);
    const int64_t each = (int64_t)dtypes[s->in[1].at.type].bytes;
    void *data[] = { f->data[s->out[0].slot], f->data[s->in[0].slot],
                     (char *)f->data[s->in[1].slot] + last * each };
    t.out[0].slot = 0;
    t.in[0].slot = 1;
    t.in[1].slot = 2;
    t.cached = k->as_conv;
    return one_algorithm(&t, &(frame){ .data = data, .queue = f->queue, .device = f->device }, q);
}

static duet_status go(const step *s, const conv_cache *k, const frame *f, queue *q, enum dgrad_algo algo)
{
    if (algo == DGRAD_FORWARD) return forward(s, k, f, q);
    return one_algorithm(s, f, q);
}

static bool wait_for(queue *q)
{
    COUNT(synchronisations);
    return CUDA(cudaStreamSynchronize, q->stream) == DUET_OK;
}

/* Returns the seconds of a run, or infinity if it fails. */
static double time_of(const step *s, const conv_cache *k, const frame *f, queue *q, enum dgrad_algo algo)
{
    bool ran = wait_for(q);
    const double start = clock_now();
    for (int i = 0; i < RUNS && ran; i++) ran = go(s, k, f, q, algo) == DUET_OK;
    ran &= wait_for(q);
    if (!ran) return INFINITY;
    return (clock_now() - start) / RUNS;
}

/* Times both algorithms. The first turn does not count, because it chooses cuDNN's algorithms and
 * loads kernels. If one fails, nothing is decided, and the next run tries again. */
static enum dgrad_algo faster(const step *s, const conv_cache *k, const frame *f, queue *q)
{
    double best[] = { [DGRAD_BACK] = INFINITY, [DGRAD_FORWARD] = INFINITY };
    error_text before;
    error_keep(&before);
    for (int turn = 0; turn <= TURNS; turn++)
        for (enum dgrad_algo algo = DGRAD_BACK; algo <= DGRAD_FORWARD; algo++) {
            const double t = time_of(s, k, f, q, algo);
            if (turn && t < best[algo]) best[algo] = t;
        }
    error_put_back(&before);
    TRACE("conv2d_input_grad: %g us back, %g us forward", best[DGRAD_BACK] * 1e6, best[DGRAD_FORWARD] * 1e6);
    if (isinf(best[DGRAD_BACK]) || isinf(best[DGRAD_FORWARD])) return DGRAD_UNKNOWN;
    return best[DGRAD_FORWARD] < best[DGRAD_BACK] ? DGRAD_FORWARD : DGRAD_BACK;
}

/* Sets *k to the cache of a gradient, with its algorithms. */
static duet_status cache_with_algos(const step *s, queue *q, conv_cache **k)
{
    bool first;
    pthread_mutex_lock(&q->lock);
    duet_status r = cache_of(s, q, k);
    if (r == DUET_OK) r = find_algos(*k, NULL, q, &first);
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* Computes the gradient of images by the faster algorithm. If it is not known yet, the first run
 * times both, unless DUET_REPRODUCIBLE=1 forbids that or a graph is being captured. */
static duet_status input_grad(const step *s, const frame *f, queue *q)
{
    conv_cache *k;
    TRY(cache_with_algos(s, q, &k));
    if (!k->as_conv) return one_algorithm(s, f, q);
    enum dgrad_algo algo = __atomic_load_n(&k->algos->dgrad, __ATOMIC_RELAXED);
    if (algo != DGRAD_UNKNOWN) return go(s, k, f, q, algo);
    if (reproducible() || gpu_queue_cuda_stream(q) != q->stream) return one_algorithm(s, f, q);
    algo = faster(s, k, f, q);
    __atomic_store_n(&k->algos->dgrad, algo, __ATOMIC_RELAXED);
    return half_written(go(s, k, f, q, algo));
}

duet_status gpu_conv(const step *s, const frame *f, queue *q)
{
    const bool is_empty = !layout_count(&s->in[0].at) || !layout_count(&s->in[1].at);
    if (conv_has_dgrad_as_conv(s) && !is_empty) return input_grad(s, f, q);
    return one_algorithm(s, f, q);
}
