/* blas.h - CBLAS in one element type. A template. */
#ifndef BLAS_H
#define BLAS_H

#include "words.h"
#include <cblas.h>

#ifdef T_f32
#define BLAS(name) cblas_s##name
#else
#define BLAS(name) cblas_d##name
#endif

#endif
