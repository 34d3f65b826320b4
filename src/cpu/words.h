/* words.h - what every template of this folder begins with: the words of formulas for one element type, and names that carry the type
 * and the instruction set. The build defines T_f32 or T_f64, TYPE and ISA. */
#ifndef WORDS_H
#define WORDS_H

#include "formula.h"

#define PASTE_(a, b)  a##_##b
#define PASTE(a, b)   PASTE_(a, b)
#define NAME(name)    PASTE(PASTE(name, TYPE), ISA) /* name_f32_avx2 */
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define INLINE        static inline __attribute__((always_inline, unused))

/* A loop of few turns: made of vectors, as the compiler would, it takes longer to begin than to run. */
#define FOR_FEW(k, count) for (int k = 0, k##_end = (count); k < k##_end; k = one_more(k))
static inline int one_more(int k)
{
    __asm__ volatile(""); /* no vectors across it */
    return k + 1;
}

#endif
