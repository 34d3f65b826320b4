/* vmath_vector.c - core/vmath.h compiled over a vector type: 16 bytes, one element type (-DT_f32 -DTYPE=f32).
 * */
#include "vmath_loop.h"
#include <math.h>
#include <string.h>

#ifdef T_f32
#define E        float
#define FMA1     fmaf
#define SQRT1    sqrtf
#define TYPED(n) n##_f32
typedef uint32_t vector_bits __attribute__((vector_size(16)));
#else
#define E        double
#define FMA1     fma
#define SQRT1    sqrt
#define TYPED(n) n##_f64
typedef uint64_t vector_bits __attribute__((vector_size(16)));
#endif
typedef E vector __attribute__((vector_size(16)));

#define T            vector
#define BITS         vector_bits
#define K(c)         ((E)(c) - (vector){ 0 })
#define INF          K(INFINITY)
#define AS_BITS(x)   ((vector_bits)(x))
#define AS_T(b)      ((vector)(b))
#define SEL(c, a, b) AS_T(((vector_bits)(c)&AS_BITS(a)) | (~(vector_bits)(c)&AS_BITS(b)))
#define ABS(x)       AS_T(AS_BITS(x) & ~AS_BITS(K(-0.0)))
#define FMA(a, b, c) fma_each(a, b, c)
#define SQRT(x)      sqrt_each(x)
#define INVERSE(x)   (K(1) / (x))
#define RINT(x)      FN(rint)(x)
#define FLOOR(x)     FN(floor)(x)
#define SELDOM(c)
#define AGAIN(c) while (any_of((vector_bits)(c)))
#define FN(f)    TYPED(f)
#define FN_DECL  static inline

static inline vector fma_each(vector a, vector b, vector c)
{
    vector r;
    for (size_t i = 0; i < sizeof r / sizeof r[0]; i++) r[i] = FMA1(a[i], b[i], c[i]);
    return r;
}

static inline vector sqrt_each(vector x)
{
    vector r;
    for (size_t i = 0; i < sizeof r / sizeof r[0]; i++) r[i] = SQRT1(x[i]);
    return r;
}

static inline int any_of(vector_bits c)
{
    int any = 0;
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) any |= c[i] != 0;
    return any;
}

#include "vmath.h"

#define LOOP(name, value)                                                                                    \
    static void loop_##name(void *out, const void *x_, const void *y_, const void *z, size_t n)              \
    {                                                                                                        \
        for (size_t i = 0; i < n * sizeof(E); i += sizeof(vector)) {                                         \
            vector x, y, r;                                                                                  \
            memcpy(&x, (const char *)x_ + i, sizeof x);                                                      \
            memcpy(&y, (const char *)y_ + i, sizeof y);                                                      \
            r = value;                                                                                       \
            memcpy((char *)out + i, &r, sizeof r);                                                           \
        }                                                                                                    \
    }
#define DUET_MAP1(name, formula, ...) LOOP(name, formula)
#include <duet/ops.def>
LOOP(pow, FN(pow)(x, y))
LOOP(atan2, FN(atan2)(x, y))

vmath_loop *const LOOPS(TYPE, vector)[OPS] = {
#define DUET_MAP1(name, ...) [OP_##name] = loop_##name,
#include <duet/ops.def>
    [OP_pow] = loop_pow,
    [OP_atan2] = loop_atan2,
};
