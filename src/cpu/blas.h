/* blas.h - CBLAS in one element type; with PAIRS defined, in complex numbers whose parts are of it. A template. */
#ifndef BLAS_H
#define BLAS_H

#include "template_prelude.h"
#include <cblas.h>

#if defined T_f32 && defined PAIRS
#define BLAS(name) cblas_c##name
#elif defined PAIRS
#define BLAS(name) cblas_z##name
#elif defined T_f32
#define BLAS(name) cblas_s##name
#else
#define BLAS(name) cblas_d##name
#endif

#endif
