/* conv.h - the parameters of a convolution step, and the functions that compute it. */
#ifndef CONV_H
#define CONV_H

#include "cpu_kernels.h"

/* Arrays are indexed by height, width, depth. A 2-D image has depth 1. n: images, c: channels, m:
 * filters, d, h, w: size of an image, kd, kh, kw: of a filter, od, oh, ow: of a result. depth:
 * channels of a filter. */
typedef struct conv {
    int64_t n, c, d, h, w, m, depth, kd, kh, kw, od, oh, ow;
    int64_t stride[3], pad[3], dilation[3], extra[3], groups; /* extra: padding at the end only */
    int axes;
    bool flip;
} conv;

conv conv_of(const step *s);

/* The matrices that a convolution by im2col keeps at once take at most so many bytes, if one window does. */
extern size_t im2col_most_bytes;

/* The layout of an operand with an axis for depth. */
layout conv_volume(const layout *l);

/* Dense filters, reversed if the step says so. *p is the operand or a copy; free *copy with
 * scratch_give. */
duet_status conv_filters(const step *s, const frame *f, const void **p, void **copy);

/* How many images to compute before the epilogue, so that their results stay in the caches of
 * `threads` cores. At least 1. */
int64_t conv_batch(const conv *g, size_t element, int threads);

/* Run by oneDNN. `done` is false if oneDNN declines the step; nothing is then written. */
duet_status onednn_conv(const step *s, const frame *f, bool *done);
void onednn_forget(step *s);
duet_status onednn_conv_fused(const step *s, const frame *f, bool *done); /* steps with an epilogue */
void onednn_conv_fused_forget(step *s);
const char *onednn_version(void); /* or why oneDNN is absent */

run_function run_conv, run_im2col_f32, run_im2col_f64, run_input_grad_f32, run_input_grad_f64,
    run_filter_grad_f32, run_filter_grad_f64;

#endif
