/* conv_none.c - the library built without oneDNN. */
#include "conv.h"

duet_status onednn_conv(const step *s, const frame *f, bool *done)
{
    (void)s, (void)f;
    *done = false;
    return DUET_OK;
}

void onednn_forget(step *s) { (void)s; }

duet_status onednn_finished(const step *s, const frame *f, bool *done) { return onednn_conv(s, f, done); }

void onednn_finished_forget(step *s) { (void)s; }

const char *onednn_version(void) { return "absent: built without it; convolution by im2col and OpenBLAS"; }
