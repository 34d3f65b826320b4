/* pool_formulas.h - the options of pooling with all defaults filled in, along each axis. Private to
 * src/expr. */
#ifndef POOL_FORMULAS_H
#define POOL_FORMULAS_H

#include "view_formulas.h"
#include <stdbool.h>

enum { POOL_AXES = 3 };

/* Windows along an axis of n elements: window i < count has the elements first + i stride + u dilation, of
 * which those from 0 to n - 1 exist. padded: elements of x with its padding, from -first on. */
typedef struct pool_windows {
    int64_t n, first, window, stride, dilation, count, padded;
} pool_windows;

typedef struct pool_options {
    int axes;
    int32_t window[POOL_AXES], stride[POOL_AXES], pad[POOL_AXES], more[POOL_AXES], dilation[POOL_AXES], ceil,
        exclude_pad, ties;
} pool_options;

pool_options read_pool_options(int axes, const int32_t *words);

/* The windows along each axis of x, of which negative padding has removed elements. Errors: BAD_SHAPE */
duet_status pool_windows_of(const pool_options *o, const shape *x, pool_windows w[POOL_AXES]);

/* x without the elements that negative padding removes. */
duet_expr pool_cropped(const pool_options *o, duet_expr x, const char *site);

/* x with constants around it, so that all elements of all windows exist. */
duet_expr pool_padded(duet_expr x, int axes, const pool_windows w[], double value, const char *site);

/* Less than or equal to all numbers of a type. */
double least_of(duet_dtype type);

#endif
