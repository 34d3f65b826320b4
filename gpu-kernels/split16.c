/* split16.c - products and convolutions by parts of half precision. */
#include "kernels.h"

bool kernels_splits(const step *s) { return (void)s, false; }

size_t kernels_packed_bytes(const step *s) { return (void)s, 0; }

cudaError_t kernels_pack(const step *s, const frame *f, void *packed, const workspace *w, cudaStream_t q)
{
    (void)s, (void)f, (void)packed, (void)w, (void)q;
    return cudaErrorNotSupported;
}

cudaError_t kernels_magnitude(const step *s, const frame *f, float *at, const workspace *w, cudaStream_t q)
{
    (void)s, (void)f, (void)at, (void)w, (void)q;
    return cudaErrorNotSupported;
}
