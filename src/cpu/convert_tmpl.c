/* convert_tmpl.c - rows of elements of any real type, made T's and back: loops that the compiler turns into vectors. */
#include "convert.h"
#include "converters.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

#define NAME_OF_(verb, type, name) verb##_##type##name
#define NAME_OF(verb, type, name)  NAME_OF_(verb, type, name) /* name: _f32 and so on */
#define READ(name)                 NAME_OF(read, TYPE, name)
#define WRITE(name)                NAME_OF(write, TYPE, name)

/* What instructions do of a row: how many elements. */
static inline int64_t none_in(T *to, const void *from, int64_t n) { return (void)to, (void)from, (void)n, 0; }
static inline int64_t none_out(void *to, const T *from, int64_t n)
{
    return (void)to, (void)from, (void)n, 0;
}

#if defined __F16C__ && defined T_f32
enum { WIDE = 8, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
static inline int64_t halves_in(T *to, const stored_f16 *from, int64_t n)
{
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    return i;
}

static inline int64_t halves_out(stored_f16 *to, const T *from, int64_t n)
{
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), NEAREST));
    return i;
}
#else
#define halves_in  none_in
#define halves_out none_out
#endif

#define CONVERTER(name, many_in, many_out)                                                                   \
    static void in##name(T *restrict to, const void *from, int64_t stride, int64_t n)                        \
    {                                                                                                        \
        const stored##name *restrict x = from;                                                               \
        if (stride == 1)                                                                                     \
            for (int64_t i = many_in(to, x, n); i < n; i++) to[i] = READ(name)(x[i]);                        \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) to[i] = READ(name)(x[i * stride]);                               \
    }                                                                                                        \
    static void out##name(void *to, const T *restrict from, int64_t stride, int64_t n)                       \
    {                                                                                                        \
        stored##name *restrict y = to;                                                                       \
        if (stride == 1)                                                                                     \
            for (int64_t i = many_out(y, from, n); i < n; i++) y[i] = WRITE(name)(from[i]);                  \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) y[i * stride] = WRITE(name)(from[i]);                            \
    }

#define MANY_F16(way)               halves_##way
#define MANY_BF16(way)              none_##way
#define DUET_HALF(NAME, name, ...)  CONVERTER(_##name, MANY_##NAME(in), MANY_##NAME(out))
#define DUET_DTYPE(NAME, name, ...) CONVERTER(_##name, none_in, none_out)
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
