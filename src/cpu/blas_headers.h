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
#include <stdbool.h>
#include <stddef.h>

/* Writes the name, the version and the threads of the library, for duet_info. */
void blas_describe(char *text, size_t size);
/* True if the library keeps threads of its own, which are not OpenMP's. */
bool blas_has_own_threads(void);

#endif
