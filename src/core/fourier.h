/* fourier.h - Fourier transforms as the machines see them, and the work around those of the vendors: copies, zeros, scaling, products, as programs
 * that either machine runs. */
#ifndef FOURIER_H
#define FOURIER_H

#include "backend.h"

/* From an array without gaps of sizes in[], of complex elements or, of a REAL one, real, to one of sizes out[]. */
typedef struct transform {
    enum fourier_kind kind;
    bool f64;
    int rank, last;
    uint32_t axes;
    int64_t in[DUET_RANK_MAX], out[DUET_RANK_MAX];
    double scale; /* of the results: 1, or of an inverse one over the number of terms */
} transform;

transform transform_of(const step *s);
duet_dtype transform_reads(const transform *t);
duet_dtype transform_writes(const transform *t);
size_t transform_bytes(const transform *t, bool out); /* of what it reads, or writes */
double transform_flops(const transform *t);
double fourier_flops(const step *s); /* of the transforms of a step */

/* What a machine has for this. give takes NULL. */
typedef struct fourier_ops {
    duet_status (*run)(const step *s, const frame *f, void *with);
    duet_status (*clear)(void *p, size_t bytes, void *with);
    duet_status (*take)(size_t bytes, void *with, void **p);
    void (*give)(void *p, void *with);
    /* The transform by a vendor, unscaled. in and out are apart; in may be spoilt. which: one of a step's, from 0 on. */
    duet_status (*transform)(const transform *t, int which, void *in, void *out, void *with);
    void *with;
} fourier_ops;

/* Moves elements between layouts of equal sizes and one type, or the real parts of one that is complex. */
duet_status fourier_move(const fourier_ops *b, void *to, const layout *to_at, const void *from,
                         const layout *from_at);

/* An operand as the transform reads it, without gaps: cut, or with zeros behind it, and complex if it was real. */
duet_status fourier_copy_in(const fourier_ops *b, const transform *t, void *to, const void *x,
                            const layout *at);
bool fourier_is_brought(const transform *t, const layout *at); /* it is so already */

duet_status fourier_scale(const fourier_ops *b, const transform *t, void *out);
duet_status fourier_zero(const fourier_ops *b, void *p, const layout *at); /* of real elements */

/* Steps of fftshift and of fftconvolve. Of the latter the vendor's transforms are two: there, and back. */
duet_status fourier_shift(const fourier_ops *b, const step *s, const frame *f);
duet_status fourier_convolve(const fourier_ops *b, const step *s, const frame *f);
void fourier_convolve_ways(const step *s, transform way[2]);

static inline bool is_fourier(int kernel)
{
    return kernel == OP_fftn || kernel == OP_fftconvolve || kernel == OP_fftshift;
}
const char *fourier_refuses(const step *s); /* of what no machine takes; NULL: it is well */

#endif
