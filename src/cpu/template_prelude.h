/* template_prelude.h - what every template of this folder begins with: the words of formulas for one element type, and names that carry the type
 * and the instruction set. The build defines T_f32 or T_f64, TYPE and ISA. */
#ifndef WORDS_H
#define WORDS_H

#include "scalar_ops.h"

/* The element type that T is. */
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
#define NAME(name)    PASTE(PASTE(name, TYPE), ISA) /* name_f32_avx2 */
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define INLINE        static inline __attribute__((always_inline, unused))

/* A number of a frame: of integers its bits are. */
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

/* A loop of few turns: made of vectors, as the compiler would, it takes longer to begin than to run. */
#define FOR_FEW(k, count) for (int k = 0, k##_end = (count); k < k##_end; k = one_more(k))
static inline int one_more(int k)
{
    __asm__ volatile(""); /* no vectors across it */
    return k + 1;
}

#endif
