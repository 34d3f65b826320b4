/* vmath_loop.h - every element-wise row of ops.def as a loop, compiled for one element type and
 * instruction set. */
#ifndef VMATH_LOOP_H
#define VMATH_LOOP_H

#include "ops.h"

typedef void vmath_loop(void *out, const void *x, const void *y, const void *z,
                        size_t n); /* n is a multiple of 4 */

/* Indexed by operator; NULL where there is none. portable: no flags; vector: vmath.h over a vector
 * type, for rows that use it. */
extern vmath_loop *const loops_f32_portable[OPS], *const loops_f64_portable[OPS];
extern vmath_loop *const loops_f32_vector[OPS], *const loops_f64_vector[OPS];
#ifdef __x86_64__
extern vmath_loop *const loops_f32_avx2[OPS], *const loops_f64_avx2[OPS];
extern vmath_loop *const loops_f32_avx512[OPS], *const loops_f64_avx512[OPS];
#endif

#define LOOPS_(type, isa) loops_##type##_##isa
#define LOOPS(type, isa)  LOOPS_(type, isa)

#endif
