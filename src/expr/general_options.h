/* general_options.h - operators whose options may need several operators: pooling with unequal padding,
 * dilation and so on, convolutions that crop, and einsums of any text. Each function has the parameters of
 * make_operator behind its own. Private to src/expr. */
#ifndef GENERAL_OPTIONS_H
#define GENERAL_OPTIONS_H

#include "arena.h"

/* Pooling along 1 to 3 axes. options: a duet_pool1, duet_pool or duet_pool3, as words. */
duet_expr make_pooling(int axes, enum op op, const char *function, int arity, const duet_expr e[],
                       const int32_t *options, const char *site);

/* A convolution along 1 to 3 axes. options: a duet_conv1, duet_conv or duet_conv3, as words. */
duet_expr make_convolution(int axes, enum op op, const char *function, int arity, const duet_expr e[],
                           const int32_t *options, const char *site);

/* words: what einsum_read made of the text. */
duet_expr make_einsum(const char *text, enum op op, const char *function, int arity, const duet_expr e[],
                      const int32_t *words, const char *site);

#endif
