/* blas_headers.h - the header of the BLAS library that the build found, and properties
 * of that library. Duet calls standard functions of CBLAS only, except in blas_library.c. */
#ifndef BLAS_HEADERS_H
#define BLAS_HEADERS_H

#ifdef BLAS_MKL
#define MKL_Complex8  float _Complex
#define MKL_Complex16 double _Complex
#include <mkl.h>
#else
#include <cblas.h>
#endif
#include "compiler.h"
#include <duet/duet.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes the name, the version and the threads of the library, for duet_info. */
void blas_describe(char *text, size_t size);
/* True if the library keeps threads of its own, which are not OpenMP's. */
bool blas_has_own_threads(void);
/* True if, on this processor, the library has kernels for f32 products of up to 100^3 multiplications that
 * neither copy the operands nor start threads. */
bool blas_has_small_kernels(void);

/* To be called before functions of BLAS and LAPACK. OpenBLAS never returns if it gets no memory; this
 * gives it what it needs, with fewer threads if need be. Errors: NO_MEMORY */
#ifdef BLAS_OPENBLAS
extern _Thread_local int blas_prepared __attribute__((tls_model(DUET_TLS))); /* for so many threads */
int blas_threads(void);                                                      /* that the next call may use */
duet_status blas_prepare_for(int threads) __attribute__((cold));

static inline duet_status blas_prepare(void)
{
    const int threads = blas_threads();
    return likely(threads <= blas_prepared) ? DUET_OK : blas_prepare_for(threads);
}
#else
static inline duet_status blas_prepare(void) { return DUET_OK; }
#endif

#endif
