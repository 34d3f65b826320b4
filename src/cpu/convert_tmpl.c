/* convert_tmpl.c - converts rows of elements between type T and any other real type. Template.
 *
 * The loops call the scalar conversions of core/convert.h, and the compiler vectorises them. F16C
 * instructions convert f16 where they exist. */
#include "convert.h"
#include "converters.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

#define NAME_OF_(verb, type, name) verb##_##type##name
#define NAME_OF(verb, type, name)  NAME_OF_(verb, type, name) /* name includes its underscore: _f32 */
#define READ(name)                 NAME_OF(read, TYPE, name)
#define WRITE(name)                NAME_OF(write, TYPE, name)

/* Convert the first elements of a row by instructions, and return how many. These convert none. */
static inline int64_t convert_none_in(T *to, const void *from, int64_t n) { return 0; }
static inline int64_t convert_none_out(void *to, const T *from, int64_t n) { return 0; }

#if defined __F16C__ && defined T_f32
enum { LANES_F16 = 8, ROUND_NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
static inline int64_t convert_halves_in(T *to, const stored_f16 *from, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES_F16 <= n; i += LANES_F16)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    return i;
}

static inline int64_t convert_halves_out(stored_f16 *to, const T *from, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES_F16 <= n; i += LANES_F16)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), ROUND_NEAREST));
    return i;
}
#else
#define convert_halves_in  convert_none_in
#define convert_halves_out convert_none_out
#endif

#define CONVERTER(name, vectors_in, vectors_out)                                                             \
    static void in##name(T *restrict to, const void *from, int64_t stride, int64_t n)                        \
    {                                                                                                        \
        const stored##name *restrict x = from;                                                               \
        if (stride == 1)                                                                                     \
            for (int64_t i = vectors_in(to, x, n); i < n; i++) to[i] = READ(name)(x[i]);                     \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) to[i] = READ(name)(x[i * stride]);                               \
    }                                                                                                        \
    static void out##name(void *to, const T *restrict from, int64_t stride, int64_t n)                       \
    {                                                                                                        \
        stored##name *restrict y = to;                                                                       \
        if (stride == 1)                                                                                     \
            for (int64_t i = vectors_out(y, from, n); i < n; i++) y[i] = WRITE(name)(from[i]);               \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) y[i * stride] = WRITE(name)(from[i]);                            \
    }

#define VECTORS_F16(direction)      convert_halves_##direction
#define VECTORS_BF16(direction)     convert_none_##direction
#define DUET_HALF(NAME, name, ...)  CONVERTER(_##name, VECTORS_##NAME(in), VECTORS_##NAME(out))
#define DUET_DTYPE(NAME, name, ...) CONVERTER(_##name, convert_none_in, convert_none_out)
#define DUET_INTEGER                DUET_DTYPE
#define DUET_NARROW                 DUET_DTYPE
#include <duet/dtype.def>

const converter converters[DUET_C64] = {
#define DUET_DTYPE(NAME, name, ...) [DUET_##NAME] = { in_##name, out_##name },
#define DUET_INTEGER                DUET_DTYPE
#define DUET_HALF                   DUET_DTYPE
#define DUET_NARROW                 DUET_DTYPE
#include <duet/dtype.def>
};
