/* template_prelude.h - the header that every template of this folder includes first.
 *
 * It defines the macros of core/scalar_ops.h for one element type, and names with the type and the
 * instruction set as suffix. The build defines T_f32, T_f64, T_i64 or T_u64, TYPE and ISA. */
#ifndef TEMPLATE_PRELUDE_H
#define TEMPLATE_PRELUDE_H

#include "scalar_ops.h"

/* the enumerator of type T */
#if defined T_f32
#define OWN_TYPE DUET_F32
#elif defined T_f64
#define OWN_TYPE DUET_F64
#elif defined T_i64
#define OWN_TYPE DUET_I64
#else
#define OWN_TYPE DUET_U64
#endif

#define PASTE_(a, b)  a##_##b
#define PASTE(a, b)   PASTE_(a, b)
#define NAME(name)    PASTE(PASTE(name, TYPE), ISA) /* such as name_f32_avx2 */
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define INLINE        static inline __attribute__((always_inline, unused))

/* A number of a frame. Integers are passed as the bits of a double. */
INLINE T number_of(double x)
{
#ifdef FORMULA_INTEGERS
    T bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#else
    return (T)x;
#endif
}

/* A loop of few iterations. Vectorised by the compiler, it would spend more time in its prologue
 * than in its body. */
#define FOR_FEW(k, count) for (int k = 0, k##_end = (count); k < k##_end; k = one_more(k))
static inline int one_more(int k)
{
    __asm__ volatile(""); /* prevents vectorisation */
    return k + 1;
}

#endif
