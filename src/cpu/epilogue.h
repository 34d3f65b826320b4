/* epilogue.h - what the results of a product or a convolution go through before the step ends, a part of them at a time, while it is in
 * a cache. */
#ifndef EPILOGUE_H
#define EPILOGUE_H

#include "cpu_kernels.h"

/* Passes over so many rows or images: element by element, then along rows or over windows. They keep what passes keep, so only one
 * thread may run them. */
typedef struct finishing {
    int64_t items;
    program each;
    step step[2];
    int steps;
} finishing;

/* Results as a finished step's vendor leaves them: of a product rows, of a convolution images. */
typedef struct results {
    layout at;
    bool biased; /* the bias is in them */
    bool
        apart; /* they lie elsewhere than the step's output, which is dense; else they are changed in place */
} results;

void finishing_make(finishing *p, const step *s, const results *r);
duet_status finishing_run(finishing *p, const step *s, const frame *f, void *from, void *out);
void finishing_free(finishing *p);

/* What a finished product keeps: rows are taken so many at a time, and what is left. */
typedef struct finished {
    finishing whole, rest;
} finished;

duet_status finished_keep(const step *s, int64_t rows, finished **k);
void finished_forget(step *s);

#endif
