/* simd_registers.h - V, a SIMD register of elements of type T, and global register variables.
 * Template.
 *
 * The build defines INTERP_BANKS where the compiler supports global register variables of this
 * size. The file then reserves sixteen registers in two banks of eight, b and c. Handlers of the
 * interpreter keep values there instead of in memory. Include this header first: gcc accepts such
 * variables only before the first function. */
#ifndef SIMD_REGISTERS_H
#define SIMD_REGISTERS_H

#include <stdint.h>

#if defined __AVX512F__
#define VECTOR_BYTES 64
#elif defined __AVX2__ && defined __FMA__
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#ifdef T_f32
typedef float V __attribute__((vector_size(VECTOR_BYTES)));
/* result of a comparison: -1 or 0 in each lane */
typedef int32_t lanes __attribute__((vector_size(VECTOR_BYTES)));
#else
#if defined T_f64
typedef double V __attribute__((vector_size(VECTOR_BYTES)));
#elif defined T_i64
typedef int64_t V __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef uint64_t V __attribute__((vector_size(VECTOR_BYTES)));
#endif
typedef int64_t lanes __attribute__((vector_size(VECTOR_BYTES)));
#endif

#ifdef INTERP_BANKS
register V bank_b0 __asm__("xmm16");
register V bank_b1 __asm__("xmm17");
register V bank_b2 __asm__("xmm18");
register V bank_b3 __asm__("xmm19");
register V bank_b4 __asm__("xmm20");
register V bank_b5 __asm__("xmm21");
register V bank_b6 __asm__("xmm22");
register V bank_b7 __asm__("xmm23");
register V bank_c0 __asm__("xmm24");
register V bank_c1 __asm__("xmm25");
register V bank_c2 __asm__("xmm26");
register V bank_c3 __asm__("xmm27");
register V bank_c4 __asm__("xmm28");
register V bank_c5 __asm__("xmm29");
register V bank_c6 __asm__("xmm30");
register V bank_c7 __asm__("xmm31");
#endif

#endif
