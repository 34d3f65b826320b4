/* refuse.h - what kernels_refuse asks of each family, and what else can be said of a step without CUDA. */
#ifndef REFUSE_H
#define REFUSE_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

bool pool2d_fits(const step *s);
bool product_fits(const step *s);
bool product_is_skinny(const step *s); /* few columns */
bool product_is_thin(const step *s);   /* a row or two */
bool product_has_few_rows(const step *s);
#define CONV_CHANNELS        128 /* of images that conv2d takes, at most: its filters stay in shared memory */
#define CONV_SQUARE_CHANNELS 5   /* and by squares, at least (conv2d_square.cu); */
#define CONV_SQUARE_OUTPUTS  9   /* then as many outputs */

duet_dtype step_type(const step *s); /* the element type that it computes in, or moves */

#ifdef __cplusplus
}
#endif
#endif
