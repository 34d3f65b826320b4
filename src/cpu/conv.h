/* conv.h - the convolution of a step, or of one that goes back, in plain numbers, and who computes it. */
#ifndef CONV_H
#define CONV_H

#include "cpu_kernels.h"

/* Along height, width, and depth, which images have one of. depth: the channels of a filter. */
typedef struct conv {
    int64_t n, c, d, h, w, m, depth, kd, kh, kw, od, oh, ow;
    int64_t stride[3], pad[3], dilation[3], more[3], groups; /* more: of padding, at the ends */
    int axes;
    bool flip;
} conv;

conv conv_of(const step *s);

/* An operand's layout with an axis of depth. */
layout conv_volume(const layout *l);

/* The filters dense, turned if the step says so: the operand itself, or a copy that the caller gives back by scratch_give. */
duet_status conv_filters(const step *s, const frame *f, const void **p, void **copy);

/* How many images' results stay in the caches of so many threads, with room for others; 1 at least. */
int64_t conv_images_at_once(const conv *g, size_t element, int threads);

/* oneDNN, where the build found it. done: false when it declines this step, which is then untouched. */
duet_status onednn_conv(const step *s, const frame *f, bool *done);
void onednn_forget(step *s);
duet_status onednn_finished(const step *s, const frame *f, bool *done); /* of steps with a epilogue */
void onednn_finished_forget(step *s);
const char *onednn_version(void); /* or why there is none */

run_function run_conv, run_im2col_f32, run_im2col_f64, run_input_grad_f32, run_input_grad_f64,
    run_filter_grad_f32, run_filter_grad_f64;

#endif
