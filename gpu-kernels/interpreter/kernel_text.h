/* kernel_text.h - templates of kernels, which the library contains as compressed files. */
#ifndef KERNEL_TEXT_H
#define KERNEL_TEXT_H

#include "ptx_write.h"

/* Sets s->text and s->length to a text between `packed` and `end`. The caller frees it. Without memory,
 * s->text is NULL. */
void kernel_text_open(ptx_template *s, const char *packed, const char *end);
void kernel_text_free(const ptx_template *s);

#endif
