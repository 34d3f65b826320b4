/* blas.h - CBLAS functions for one element type. Template. PAIRS selects complex elements of two T. */
#ifndef BLAS_H
#define BLAS_H

#include "blas_headers.h" /* before the macros of template_prelude.h */

#include "template_prelude.h"
#include <stdbool.h>

#if defined T_f32 && defined PAIRS
#define BLAS(name) cblas_c##name
#define BLAS_NORM2 cblas_scnrm2
#define BLAS_SUM   cblas_scasum
#elif defined PAIRS
#define BLAS(name) cblas_z##name
#define BLAS_NORM2 cblas_dznrm2
#define BLAS_SUM   cblas_dzasum
#elif defined T_f32
#define BLAS(name) cblas_s##name
#define BLAS_NORM2 cblas_snrm2
#define BLAS_SUM   cblas_sasum
#else
#define BLAS(name) cblas_d##name
#define BLAS_NORM2 cblas_dnrm2
#define BLAS_SUM   cblas_dasum
#endif

static inline enum CBLAS_TRANSPOSE blas_op(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

#endif
