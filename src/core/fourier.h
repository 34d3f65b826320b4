/* fourier.h - Fourier transforms of steps. Vendor libraries compute the transforms. The work
 * around them (copies, padding, scaling, products) is done by programs that any machine runs. */
#ifndef FOURIER_H
#define FOURIER_H

#include "backend.h"

/* A transform of a dense array of sizes in[] to one of sizes out[]. Elements are complex, but the
 * input of FOURIER_REAL and the output of FOURIER_REAL_INVERSE are real. */
typedef struct transform {
    enum fourier_kind kind;
    bool f64;
    int rank, last;
    uint32_t axes;
    int64_t in[DUET_RANK_MAX], out[DUET_RANK_MAX];
    double scale; /* of the results: 1, or for an inverse 1 / number of terms */
} transform;

transform transform_of(const step *s);
duet_dtype transform_reads(const transform *t);
duet_dtype transform_writes(const transform *t);
size_t transform_bytes(const transform *t, bool out); /* of its input or output */
double transform_flops(const transform *t);
double fourier_flops(const step *s); /* of all transforms of a step */

/* The functions that a machine provides for Fourier transforms. give accepts NULL. */
typedef struct fourier_ops {
    duet_status (*run)(const step *s, const frame *f, void *with);
    duet_status (*clear)(void *p, size_t bytes, void *with);
    duet_status (*take)(size_t bytes, void *with, void **p);
    void (*give)(void *p, void *with);
    /* The vendor's transform, unscaled. in and out do not overlap; in may be overwritten. which:
     * index among those of a step. */
    duet_status (*transform)(const transform *t, int which, void *in, void *out, void *with);
    void *with;
} fourier_ops;

/* Copies elements between layouts of equal sizes and one type, or between a real layout and the
 * real parts of a complex one. */
duet_status fourier_move(const fourier_ops *b, void *to, const layout *to_at, const void *from,
                         const layout *from_at);

/* Copies an operand to the dense array that the transform reads: truncated or padded with zeros,
 * complex if needed, and multiplied by the scale of an inverse transform: after the transform a sum could
 * overflow although the result does not. */
duet_status fourier_copy_in(const fourier_ops *b, const transform *t, void *to, const void *x,
                            const layout *at);
/* true if the operand already is such an array */
bool fourier_is_brought(const transform *t, const layout *at);

duet_status fourier_zero(const fourier_ops *b, void *p, const layout *at); /* real elements */

/* Runs steps of fftshift and of fftconvolve. fftconvolve has two transforms: forward and inverse. */
duet_status fourier_shift(const fourier_ops *b, const step *s, const frame *f);
duet_status fourier_convolve(const fourier_ops *b, const step *s, const frame *f);
void fourier_convolve_transforms(const step *s, transform transforms[2]);

const char *fourier_unsupported(const step *s); /* NULL, or the reason why no machine supports the step */

#endif
