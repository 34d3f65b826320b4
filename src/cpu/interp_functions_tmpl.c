/* interp_functions_tmpl.c - the loops of interp_functions.h, for a tile and for one register. */
#include "interp_functions.h"
#include "ops.h"
#include "simd_registers.h"

enum { LANES = VECTOR_BYTES / sizeof(T), TILE = 8 * LANES };

#if VECTOR_BYTES > 16
#define SIMD _Pragma("omp simd")
#else
#define SIMD /* a tail has two or four elements: too few for a vector loop */
#endif
#define LOOP(name, formula, count, simd)                                                                     \
    __attribute__((unused)) static void name(T *at)                                                          \
    {                                                                                                        \
        simd for (int i = 0; i < count; i++)                                                                 \
        {                                                                                                    \
            const T x = at[i];                                                                               \
            const T y __attribute__((unused)) = at[TILE + i], z __attribute__((unused)) = at[2 * TILE + i];  \
            at[i] = formula;                                                                                 \
        }                                                                                                    \
    }
#define ROW1(name, formula, ulp, flags)                                                                      \
    LOOP(tile_##name, formula, TILE, _Pragma("omp simd")) LOOP(tail_##name, formula, LANES, SIMD)
#define ROW2 ROW1
#define ROW3 ROW1
#include "typed_ops.def"

#ifdef FORMULA_INTEGERS
#define MODERATES(ROW)
#define QUOTIENTS(ROW)
#else
/* The bits of the largest |x|. NaN counts as larger than all numbers. */
static inline __attribute__((always_inline)) BITS greatest(const T *x, int count)
{
    BITS most = 0;
    for (int i = 0; i < count; i++) {
        const BITS b = AS_BITS(ABS(x[i]));
        most = b > most ? b : most;
    }
    return most;
}

/* Most operands are small enough for a shorter formula (name##_moderate) with the same bits. The
 * loop uses it if no |x| exceeds `reach`. */
#define CHOOSE(part, name, reach, count, simd)                                                               \
    LOOP(moderate_##part##_##name, FN(name##_moderate)(x), count, simd)                                      \
    static void choose_##part##_##name(T *at)                                                                \
    {                                                                                                        \
        (greatest(at, count) <= AS_BITS(FN(reach)()) ? moderate_##part##_##name : part##_##name)(at);        \
    }
#define MODERATE(name, reach)                                                                                \
    CHOOSE(tile, name, reach, TILE, _Pragma("omp simd")) CHOOSE(tail, name, reach, LANES, SIMD)
#define MODERATES(ROW)                                                                                       \
    ROW(exp, exp_reach)                                                                                      \
    ROW(sigmoid, sigmoid_reach) ROW(sin, angle_reach) ROW(cos, angle_reach) ROW(tan, angle_reach)
MODERATES(MODERATE)

/* For fmod and remainder the moderate formula avoids an inner loop. It holds if no quotient is too
 * large. */
static inline __attribute__((always_inline)) BITS least(const T *x, int count)
{
    BITS least = ~(BITS)0;
    for (int i = 0; i < count; i++) {
        const BITS b = AS_BITS(ABS(x[i]));
        least = b < least ? b : least;
    }
    return least;
}
#define CHOOSE_QUOTIENT(part, name, count, simd)                                                             \
    LOOP(moderate_##part##_##name, FN(name##_moderate)(x, y), count, simd)                                   \
    static void choose_##part##_##name(T *at)                                                                \
    {                                                                                                        \
        const T x = AS_T(greatest(at, count)), y = AS_T(least(at + TILE, count));                            \
        (FN(fmod_moderates)(x, y) == K(1) ? moderate_##part##_##name : part##_##name)(at);                   \
    }
#define QUOTIENT(name)                                                                                       \
    CHOOSE_QUOTIENT(tile, name, TILE, _Pragma("omp simd")) CHOOSE_QUOTIENT(tail, name, LANES, SIMD)
#define QUOTIENTS(ROW) ROW(fmod) ROW(remainder)
QUOTIENTS(QUOTIENT)
#endif

const interp_function interp_functions[OPS] = {
#define ROW1(name, formula, ulp, flags)                                                                      \
    [OP_##name] = { BY_LOOP(ulp) ? tile_##name : NULL, BY_LOOP(ulp) ? tail_##name : NULL },
#define ROW2 ROW1
#define ROW3 ROW1
#include "typed_ops.def"
#define CHOSEN(name, reach) [OP_##name] = { choose_tile_##name, choose_tail_##name },
    MODERATES(CHOSEN)
#define CHOSEN_QUOTIENT(name) [OP_##name] = { choose_tile_##name, choose_tail_##name },
        QUOTIENTS(CHOSEN_QUOTIENT)
};
