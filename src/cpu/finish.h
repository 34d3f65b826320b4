/* finish.h - what the results of a product or a convolution go through before the step ends: the bias, then the activation, in place,
 * over a part of them while it is in a cache. */
#ifndef FINISH_H
#define FINISH_H

#include "table.h"

/* The passes over so many rows, or images, at a time. They keep what passes keep. */
typedef struct finishing {
    int64_t items;
    program adding; /* with the activation, if it is element by element */
    step bias, softmax;
} finishing;

/* For a finished step whose results are `items` rows or images of `channels` times `inner` elements, one after the other. */
void finishing_make(finishing *p, const step *s, int64_t items, int64_t channels, int64_t inner);
duet_status finishing_run(finishing *p, const step *s, const frame *f, void *results);
void finishing_free(finishing *p);

/* What a finished product keeps: rows are taken so many at a time, and what is left. */
typedef struct finished {
    finishing whole, rest;
} finished;

duet_status finished_keep(const step *s, int64_t rows, finished **k); /* of a matmul; items of k->rest may be 0 */
void finished_forget(step *s);

#endif
