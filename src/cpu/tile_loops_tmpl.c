/* tile_loops_tmpl.c - functions over a tile, and over a register. */
#include "ops.h"
#include "registers.h"
#include "tile_loops.h"

enum { LANES = VECTOR_BYTES / sizeof(T), TILE = 8 * LANES };

#if VECTOR_BYTES > 16
#define SIMD _Pragma("omp simd")
#else
#define SIMD /* a tail has two or four elements */
#endif
#define LOOP(name, formula, count, simd)                                                                                         \
    __attribute__((unused)) static void name(T *at)                                                                              \
    {                                                                                                                            \
        simd for (int i = 0; i < count; i++)                                                                                     \
        {                                                                                                                        \
            const T x = at[i], y = at[TILE + i], z = at[2 * TILE + i];                                                           \
            (void)x, (void)y, (void)z;                                                                                           \
            at[i] = formula;                                                                                                     \
        }                                                                                                                        \
    }
#define DUET_MAP1(name, formula, ...)                                                                                            \
    LOOP(tile_##name, formula, TILE, _Pragma("omp simd")) LOOP(tail_##name, formula, LANES, SIMD)
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>

/* Angles are moderate, but for a few: a loop over moderate ones alone is shorter, and gives the same bits. */
static BITS any_immoderate(const T *x, int count)
{
    BITS any = 0;
    for (int i = 0; i < count; i++) any |= AS_BITS(FN(immoderate)(x[i]));
    return any;
}
#define ANGLE(name)                                                                                                              \
    LOOP(moderate_tile_##name, FN(name##_moderate)(x), TILE, _Pragma("omp simd"))                                                \
    LOOP(moderate_tail_##name, FN(name##_moderate)(x), LANES, SIMD)                                                              \
    static void angle_tile_##name(T *at) { (any_immoderate(at, TILE) ? tile_##name : moderate_tile_##name)(at); }                \
    static void angle_tail_##name(T *at) { (any_immoderate(at, LANES) ? tail_##name : moderate_tail_##name)(at); }
ANGLE(sin)
ANGLE(cos)
ANGLE(tan)

const loops tile_loops[OPS] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...)                                                                       \
    [OP_##name] = { BY_LOOP(ulp) ? tile_##name : NULL, BY_LOOP(ulp) ? tail_##name : NULL },
#define DUET_MAP2 DUET_MAP1
#define DUET_MAP3 DUET_MAP1
#include <duet/ops.def>
    [OP_sin] = { angle_tile_sin, angle_tail_sin },
    [OP_cos] = { angle_tile_cos, angle_tail_cos },
    [OP_tan] = { angle_tile_tan, angle_tail_tan },
};
