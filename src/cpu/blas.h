/* blas.h - CBLAS functions for one element type. Template. PAIRS selects complex elements of two T. */
#ifndef BLAS_H
#define BLAS_H

#include "blas_headers.h" /* before the macros of template_prelude.h */

#include "template_prelude.h"
#include <stdbool.h>

#if defined T_f32 && defined PAIRS
#define BLAS(name) cblas_c##name
#elif defined PAIRS
#define BLAS(name) cblas_z##name
#elif defined T_f32
#define BLAS(name) cblas_s##name
#else
#define BLAS(name) cblas_d##name
#endif

static inline enum CBLAS_TRANSPOSE blas_op(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

#endif
