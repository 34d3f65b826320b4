/* cudnn_algo.h - which of cuDNN's algorithms convolves a shape: chosen once a process. */
#ifndef ALGO_H
#define ALGO_H

#include "queue.h"

/* What a choice depends on; compared as bytes. */
typedef struct conv_shape {
    int32_t kernel, type, n, c, m, axes; /* along depth, height and width, or the last two of them: */
    int32_t image[3], window[3], stride[3], pad[3], dilation[3];
    int32_t groups, flip, math; /* math: a cudnnMathType_t */
} conv_shape;

typedef struct conv_descriptors {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
} conv_descriptors;

/* One of the three is the result. */
typedef struct conv_data {
    void *x, *w, *y;
} conv_data;

/* Back to images by an algorithm that goes back, or by those that go forward (core/turned.h). */
enum way { WAY_UNKNOWN, WAY_BACK, WAY_FORWARD };

/* The algorithms that will do, the fastest first. */
typedef struct algos {
    conv_shape key;
    enum way way; /* which is faster, once that is known */
    int count;
    struct {
        int algo; /* in the vendor's list of those that go forward, or back to the images, or to the filters */
        size_t workspace;
    } of[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    struct algos *next;
} algos;

/* The choice for a shape, made now if it never was: by trying each on the data, which overwrites y and waits for the card; under
 * DUET_REPRODUCIBLE=1 by cuDNN's own advice among those that repeat. Back there is one that repeats and sums products as they are. The caller holds q->lock and has opened q->dnn. */
duet_status gpu_algos(const conv_shape *key, const conv_descriptors *d, const conv_data *at, queue *q,
                      algos **found);

#endif
