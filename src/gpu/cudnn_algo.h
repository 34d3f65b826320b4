/* cudnn_algo.h - chooses the cuDNN algorithm of a convolution, once for each shape in a process. */
#ifndef CUDNN_ALGO_H
#define CUDNN_ALGO_H

#include "queue.h"

/* Everything on which the choice depends. Keys are compared byte by byte. The arrays are along depth,
 * height and width, or along height and width. */
typedef struct conv_shape {
    int32_t kernel, type, n, c, m, axes;
    int32_t image[3], window[3], stride[3], pad[3], dilation[3];
    int32_t groups, flip, math; /* math: a cudnnMathType_t */
} conv_shape;

typedef struct conv_descriptors {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
} conv_descriptors;

/* Addresses of the images, the filters and the results. For a gradient the result is x or w. */
typedef struct conv_data {
    void *x, *w, *y;
} conv_data;

/* How to compute a gradient of images: by cuDNN's algorithms for it (BACK), or as a convolution
 * (FORWARD, core/dgrad_as_conv.h). */
enum dgrad_algo { DGRAD_UNKNOWN, DGRAD_BACK, DGRAD_FORWARD };

/* The algorithms that can be used, fastest first. */
typedef struct algos {
    conv_shape key;
    enum dgrad_algo dgrad; /* the faster one, or UNKNOWN before it is measured */
    int count;
    struct {
        int algo; /* a value of cuDNN's enumeration for this kind of convolution */
        size_t workspace;
    } of[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    struct algos *next;
} algos;

/* Returns the choice for a shape.
 *     Convolutions   the first call runs each algorithm on the data. This overwrites y and waits for
 *                    the GPU. With DUET_REPRODUCIBLE=1 it uses cuDNN's proposals instead, but only
 *                    deterministic algorithms.
 *     Gradients      only one algorithm is deterministic and sums products in f32. It is used without
 *                    a measurement.
 * The caller holds q->lock and has opened q->dnn. */
duet_status gpu_algos(const conv_shape *key, const conv_descriptors *d, const conv_data *at, queue *q,
                      algos **found);

#endif
