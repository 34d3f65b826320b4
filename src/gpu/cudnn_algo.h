/* cudnn_algo.h - the choice of a cuDNN algorithm for a convolution, made once in a process. */
#ifndef ALGO_H
#define ALGO_H

#include "queue.h"

/* What the choice depends on; compared as bytes. */
typedef struct conv_shape {
    int32_t kernel, type, n, c, m, axes; /* along depth, height and width, or the last two: */
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

/* Computes the gradient of images directly, or as a convolution (core/dgrad_as_conv.h). */
enum dgrad_algo { DGRAD_UNKNOWN, DGRAD_BACK, DGRAD_FORWARD };

/* The accepted algorithms, fastest first. */
typedef struct algos {
    conv_shape key;
    enum dgrad_algo dgrad; /* which is faster, once measured */
    int count;
    struct {
        /* number in cuDNN's enumeration for convolutions, gradients of images or gradients of
         * filters */
        int algo;
        size_t workspace;
    } of[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    struct algos *next;
} algos;

/* Returns the choice for a shape. The first call runs each algorithm on the data, which overwrites
 * y and waits for the card. With DUET_REPRODUCIBLE=1 it takes cuDNN's proposal among the
 * deterministic algorithms. For gradients one algorithm is deterministic and sums products in f32.
 * The caller holds q->lock and has opened q->dnn. */
duet_status gpu_algos(const conv_shape *key, const conv_descriptors *d, const conv_data *at, queue *q,
                      algos **found);

#endif
