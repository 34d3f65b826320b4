/* conv_none.c - conv.h for builds without oneDNN: declines every step. */
#include "conv.h"

duet_status onednn_conv(const step *s, const frame *f, bool *done)
{
    *done = false;
    return DUET_OK;
}

void onednn_forget(step *s) {}

duet_status onednn_conv_fused(const step *s, const frame *f, bool *done) { return onednn_conv(s, f, done); }

void onednn_conv_fused_forget(step *s) {}

const char *onednn_version(void) { return "absent: built without it; convolution by im2col and OpenBLAS"; }
