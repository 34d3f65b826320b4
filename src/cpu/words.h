/* words.h - what every template of this folder begins with: the words of formulas for one element type, and names that carry the type
 * and the instruction set. The build defines T_f32 or T_f64, TYPE and ISA. */
#ifndef WORDS_H
#define WORDS_H

#define FN_DECL static inline
#include "formula.h"

#define PASTE_(a, b)     a##_##b
#define PASTE(a, b)      PASTE_(a, b)
#define OF_TYPE(name)    PASTE(name, TYPE)                  /* name_f32 */
#define NAME(name)       PASTE(PASTE(name, TYPE), ISA)      /* name_f32_avx2 */
#define SMALLER(a, b)    ((a) < (b) ? (a) : (b))
#define INLINE           static inline __attribute__((always_inline, unused))

#endif
