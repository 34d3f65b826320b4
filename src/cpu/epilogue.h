/* epilogue.h - the operators that follow a matrix product or a convolution in the same step: bias,
 * activation, pooling.
 *
 * It runs on a part of the results at a time, while they are in a cache. */
#ifndef EPILOGUE_H
#define EPILOGUE_H

#include "cpu_kernels.h"

/* The steps of an epilogue for `items` rows or images. They store plans, so only one thread may run
 * them. */
typedef struct epilogue_steps {
    int64_t items;
    program program;
    step step[2];
    int steps;
} epilogue_steps;

/* The results of the product (rows) or convolution (images) before the epilogue. */
typedef struct epilogue_input {
    layout at;
    bool has_bias; /* whether the bias was added */
    bool separate; /* whether they are in another buffer than the output, which is dense */
} epilogue_input;

void epilogue_make(epilogue_steps *p, const step *s, const epilogue_input *r);
duet_status epilogue_run(epilogue_steps *p, const step *s, const frame *f, void *from, void *out);
void epilogue_free(epilogue_steps *p);

/* What the step of a product stores: epilogues for a full block of rows, and for the remainder. */
typedef struct epilogue_cache {
    epilogue_steps full, remainder;
} epilogue_cache;

duet_status epilogue_cache_get(const step *s, int64_t rows, epilogue_cache **k);
void epilogue_cache_free(step *s);

#endif
