/* vmath_loop.c - the rows as loops that the compiler vectorises. Compiled for each type and
 * instruction set, with the flags of src/cpu and -DT_f32 -DTYPE=f32 -DISA=avx2 or the like. */
#include "vmath_loop.h"
#include "scalar_ops.h"

#define LOOP(name, formula, operands)                                                                        \
    static void loop_##name(void *out, const void *x_, const void *y_, const void *z_, size_t n)             \
    {                                                                                                        \
        T *restrict o = (T *)out;                                                                            \
        const T *restrict px = (const T *)x_, *restrict py = (const T *)y_, *restrict pz = (const T *)z_;    \
        for (size_t i = 0; i < n; i++) {                                                                     \
            operands;                                                                                        \
            o[i] = formula;                                                                                  \
        }                                                                                                    \
        (void)py, (void)pz;                                                                                  \
    }
#define DUET_MAP1(name, formula, ...) LOOP(name, formula, const T x = px[i])
#define DUET_MAP2(name, formula, ...) LOOP(name, formula, const T x = px[i]; const T y = py[i])
#define DUET_MAP3(name, formula, ...)                                                                        \
    LOOP(name, formula, const T x = px[i]; const T y = py[i]; const T z = pz[i])
#include <duet/ops.def>

vmath_loop *const LOOPS(TYPE, ISA)[OPS] = {
#define DUET_MAP1(name, ...) [OP_##name] = loop_##name,
#define DUET_MAP2            DUET_MAP1
#define DUET_MAP3            DUET_MAP1
#include <duet/ops.def>
};
