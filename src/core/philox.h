/* philox.h - random numbers from Philox, as formulas in the macros of scalar_ops.h. All machines
 * compile them.
 *
 * Define T_f32 or T_f64 as for scalar_ops.h, one of them in a source file. docs/semantics.md says
 * in words which numbers belong to which element.
 *
 * Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel random numbers: as easy as 1, 2,
 * 3, SC 2011. */
#ifndef PHILOX_H
#define PHILOX_H

#include "random_step.h"
#include "scalar_ops.h"

/* The type that holds a 32-bit word. Its upper bits are undefined until it is cast. Wider types
 * suit AVX-512. */
#ifndef PHILOX_WORD
#define PHILOX_WORD uint32_t
#endif

/* inlined, because loops that call them can be vectorised only then */
#define PHILOX      FN_DECL __attribute__((always_inline))
#define PHILOX_EACH (16 / (int)sizeof(T)) /* elements of type T made from one block */

typedef struct philox_block {
    PHILOX_WORD w[4];
} philox_block;

PHILOX philox_block philox_round(philox_block c, uint32_t k0, uint32_t k1)
{
    const uint64_t p = (uint64_t)0xd2511f53u * (uint32_t)c.w[0], q = (uint64_t)0xcd9e8d57u * (uint32_t)c.w[2];
    philox_block d;
    d.w[0] = (PHILOX_WORD)(q >> 32) ^ c.w[1] ^ k0;
    d.w[1] = (PHILOX_WORD)q;
    d.w[2] = (PHILOX_WORD)(p >> 32) ^ c.w[3] ^ k1;
    d.w[3] = (PHILOX_WORD)p;
    return d;
}

#define PHILOX_ROUND(i) c = philox_round(c, k0 + i * 0x9e3779b9u, k1 + i * 0xbb67ae85u)
PHILOX philox_block philox(philox_block c, uint32_t k0, uint32_t k1)
{
    PHILOX_ROUND(0u);
    PHILOX_ROUND(1u);
    PHILOX_ROUND(2u);
    PHILOX_ROUND(3u);
    PHILOX_ROUND(4u);
    PHILOX_ROUND(5u);
    PHILOX_ROUND(6u);
    PHILOX_ROUND(7u);
    PHILOX_ROUND(8u);
    PHILOX_ROUND(9u);
    return c;
}

/* Block low + 2^32 * high of the stream of a distribution. */
PHILOX philox_block philox_drawn(const random_params *l, uint32_t distribution, PHILOX_WORD low,
                                 uint32_t high, uint32_t stream)
{
    philox_block c;
    c.w[0] = low;
    c.w[1] = high;
    c.w[2] = stream;
    c.w[3] = distribution;
    return philox(c, l->key[0], l->key[1]);
}

/* Half j of a block. FN(part) is the part of the size of T, for a constant j; FN(part_at) takes any
 * j. */
PHILOX uint64_t philox_half(philox_block b, int j)
{
    return (uint32_t)b.w[2 * j] | (uint64_t)(uint32_t)b.w[2 * j + 1] << 32;
}

PHILOX uint32_t philox_word_at(philox_block b, int j)
{
    const PHILOX_WORD first = j & 1 ? b.w[1] : b.w[0], second = j & 1 ? b.w[3] : b.w[2];
    return (uint32_t)(j & 2 ? second : first);
}

#ifdef T_f32
PHILOX BITS FN(part)(philox_block b, int j) { return (uint32_t)b.w[j]; }
PHILOX BITS FN(part_at)(philox_block b, int j) { return philox_word_at(b, j); }
#else
PHILOX BITS FN(part)(philox_block b, int j) { return philox_half(b, j); }
PHILOX BITS FN(part_at)(philox_block b, int j) { return j & 1 ? philox_half(b, 1) : philox_half(b, 0); }
#endif

/* ---- bits as numbers ---- */

#ifdef T_f32
/* unit: in [0, 1), 24 bits. middle: the midpoints of 2^32 equal parts of [0, 1], rounded, never 0.
 * turn: the same in [-1/2, 1/2]. */
PHILOX T FN(unit)(BITS w) { return (T)(int32_t)(w >> 8) * K(0x1p-24); }
PHILOX T FN(middle)(BITS w) { return FMA((T)w, K(0x1p-32), K(0x1p-33)); }
PHILOX T FN(turn)(BITS w) { return (T)(int32_t)w * K(0x1p-32); }
#else
/* w + 2^32 v - less, rounded once, for w, v < 2^32. Every instruction set has the conversions that
 * this uses. */
PHILOX T FN(from_halves)(uint64_t w, uint64_t v, T less)
{
    return (AS_T(v | AS_BITS(K(0x1p84))) - (K(0x1p84) + less)) + AS_T(w | AS_BITS(K(0x1p52)));
}

/* unit: in [0, 1), 53 bits. middle: the midpoints of 2^64 equal parts of [0, 1], rounded, never 0.
 * turn: the same in [-1/2, 1/2]. */
PHILOX T FN(unit)(BITS w) { return FN(from_halves)(w >> 11 & 0xffffffff, w >> 43, K(0x1p52)) * K(0x1p-53); }
PHILOX T FN(middle)(BITS w)
{
    return FMA(FN(from_halves)(w & 0xffffffff, w >> 32, K(0x1p52)), K(0x1p-64), K(0x1p-65));
}
PHILOX T FN(turn)(BITS w)
{
    const uint64_t v = (w >> 32) ^ 0x80000000;
    return FN(from_halves)(w & 0xffffffff, v, K(0x1p63) + K(0x1p52)) * K(0x1p-64);
}
#endif

/* ---- uniform, normal ---- */

PHILOX T FN(uniform)(BITS w, T low, T range, T last)
{
    const T x = FMA(FN(unit)(w), range, low);
    return SEL(x > last, last, x);
}

/* Box-Muller: two normal numbers of deviation 1 from two words. */
PHILOX TYPED(pair) FN(box_muller)(BITS a, BITS b)
{
    const T r = SQRT(K(-2) * FN(log)(FN(middle)(a))), t = FN(turn)(b);
    TYPED(pair) z;
    z.hi = r * FN(cos_turns)(t);
    z.lo = r * FN(sin_turns)(t);
    return z;
}

/* ---- truncated normal: C. Robert, Simulation of truncated normal variables, Statistics and
 * Computing 5, 1995 ---- */

/* The parameters of a truncated normal distribution, as T. */
typedef struct truncation {
    T low, high, origin, scale, c0, c1, c2;
} truncation;

PHILOX truncation FN(truncation_of)(const random_params *l)
{
    truncation t;
    t.low = (T)l->number[0];
    t.high = (T)l->number[1];
    t.origin = (T)l->number[2];
    t.scale = (T)l->number[3];
    t.c0 = (T)l->number[4];
    t.c1 = (T)l->number[5];
    t.c2 = (T)l->number[6];
    return t;
}

/* A proposal, from a normal number z or a word w. It is NaN if word v rejects it. `excess` is half
 * the square of what remains of the exponent of the normal distribution:
 *   exponential   e = -log(w) / lambda deviations beyond the nearer bound, which is a deviations
 *                 from the mean:
 *                 excess (e - c1)^2 / 2; c0 = 1 / lambda, c1 = lambda - a
 *   uniform       t = c0 u deviations beyond a bound: excess (t (t + c1) + c2) / 2; c0 is the
 *                 width of the window, c1 = 2 a; c2 = a^2 if the mean is inside the window, else 0 */
PHILOX T FN(propose)(int how, truncation k, T z, BITS w, BITS v)
{
    T by, excess;
    if (how == PROPOSE_NORMAL) {
        by = z;
        excess = K(0);
    } else if (how == PROPOSE_EXPONENTIAL) {
        by = -FN(log)(FN(middle)(w)) * k.c0;
        excess = K(0.5) * ((by - k.c1) * (by - k.c1));
    } else {
        by = FN(unit)(w) * k.c0;
        excess = K(0.5) * FMA(by, by + k.c1, k.c2);
    }
    const T x = FMA(by, k.scale, k.origin), limit = how == PROPOSE_NORMAL ? K(0) : -FN(log)(FN(middle)(v));
    return SEL((x >= k.low) & (x <= k.high) & (excess <= limit), x, K(NAN));
}

/* The number to use after all attempts were rejected. */
PHILOX T FN(truncation_last)(truncation k) { return FN(minimum)(FN(maximum)(k.origin, k.low), k.high); }

/* The proposal from part j of blocks b and c, the two streams of an attempt. */
PHILOX T FN(propose_part)(int how, truncation k, philox_block b, philox_block c, int j)
{
    T z = K(0);
    if (how == PROPOSE_NORMAL) {
        const TYPED(pair) p = FN(box_muller)(FN(part)(b, j & ~1), FN(part)(b, j | 1));
        z = j & 1 ? p.lo : p.hi;
    }
    return FN(propose)(how, k, z, FN(part)(b, j), FN(part)(c, j));
}

/* ---- integers ---- */

/* The upper half of x * y; *lower becomes the lower half. */
PHILOX uint64_t philox_multiply(uint64_t x, uint64_t y, uint64_t *lower)
{
    const uint64_t m = 0xffffffff, a = (x & m) * (y & m), b = (x >> 32) * (y & m), c = (x & m) * (y >> 32);
    const uint64_t middle = (a >> 32) + (b & m) + c; /* below 2^64 */
    *lower = middle << 32 | (a & m);
    return (x >> 32) * (y >> 32) + (b >> 32) + (middle >> 32);
}

/* D. Lemire, Fast random integer generation in an interval, ACM TOMACS 29, 2019. Rejected if *lower
 * < integer[2]. */
PHILOX int64_t philox_scaled(const random_params *l, uint64_t x, uint64_t *lower)
{
    return (int64_t)(l->integer[0] + philox_multiply(x, l->integer[1], lower));
}

FN_DECL int64_t philox_integer(const random_params *l, uint64_t i)
{
    int64_t x = 0;
    uint64_t lower = 0;
    for (uint32_t attempt = 0; attempt < RANDOM_ATTEMPTS; attempt++) {
        const philox_block b =
            philox_drawn(l, DISTRIBUTION_INTEGERS, (uint32_t)(i >> 1), (uint32_t)(i >> 33), attempt);
        x = philox_scaled(l, i & 1 ? philox_half(b, 1) : philox_half(b, 0), &lower);
        if (lower >= l->integer[2]) break;
    }
    return x;
}

/* The first word decides; if it equals the upper half of p, the second word does. */
FN_DECL int64_t philox_coin(const random_params *l, uint64_t i)
{
    uint32_t w[2];
    for (uint32_t k = 0; k < 2; k++) {
        const philox_block b =
            philox_drawn(l, DISTRIBUTION_BERNOULLI, (uint32_t)(i >> 2), (uint32_t)(i >> 34), k);
        w[k] = philox_word_at(b, (int)(i & 3));
    }
    return w[0] < l->integer[0] || (w[0] == l->integer[0] && w[1] < l->integer[1]);
}

/* The sort key of element i of a permutation. */
FN_DECL uint64_t philox_sort_key(const random_params *l, uint64_t i)
{
    const philox_block b =
        philox_drawn(l, DISTRIBUTION_PERMUTATION, (uint32_t)(i >> 1), (uint32_t)(i >> 33), 0);
    if (i & 1) return philox_half(b, 1);
    return philox_half(b, 0);
}

/* Element i of a Sobol sequence: coordinate i mod d of a point. Rounded down, so that it is less than 1. */
PHILOX T FN(sobol_number)(uint64_t bits)
{
    return sizeof(T) == 4 ? (T)(uint32_t)(bits >> 40) * K(0x1p-24) : (T)(bits >> 11) * K(0x1p-53);
}

PHILOX T FN(sobol)(const random_params *l, uint64_t i)
{
    const uint64_t d = l->integer[1], point = l->integer[0] + i / d;
    const uint64_t *row = l->table + i % d;
    uint64_t bits = *row;
    for (uint64_t gray = point ^ point >> 1; gray; gray >>= 1) {
        row += d;
        if (gray & 1) bits ^= *row;
    }
    return FN(sobol_number)(bits);
}

#endif
