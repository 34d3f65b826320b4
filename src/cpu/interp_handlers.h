/* interp_handlers.h - the handlers of all operators. Template, included by interp_tmpl.c.
 *
 * The parameter SIZE is `tile` (handlers of eight registers) or `tail` (handlers of one register
 * under a mask). The macros ARGS, NEXT, EACH, GET, PUT, STREAM and STREAMABLE of interp_tmpl.c
 * depend on it.
 *
 * The name of a handler contains its form: one letter for each of the operands x, y and z. A is the
 * accumulator, B and C are the banks of simd_registers.h, M is memory, S a scalar, N none. It ends
 * with its variant: next (calls the next handler), save (stores the accumulator and calls the next
 * handler) or last (stores the accumulator and returns). */

#define DECLARE_A(k)
#define DECLARE_B(k)
#define DECLARE_C(k)
#define DECLARE_N(k)
#define DECLARE_M(k) const T *const m##k = at[pc->from[k]] + off;
#define DECLARE_S(k) const V s##k = spread(*at[pc->from[k]]);
#define GET_A(k, r)  a##r
#define GET_B(k, r)  bank_b##r
#define GET_C(k, r)  bank_c##r
#define GET_N(k, r)  a##r
#define GET_M(k, r)  GET(m##k, r)
#define GET_S(k, r)  s##k

#define SAVE_ONE(r, ...) PUT(to, r, a##r);
#define SAVE_ALL                                                                                             \
    {                                                                                                        \
        T *const to = at[pc->to] + off;                                                                      \
        EACH(SAVE_ONE)                                                                                       \
    }
#define END_next NEXT
#define END_save SAVE_ALL NEXT
#define END_last SAVE_ALL

/* ---- element-wise operators ---- */

#define APPLY(r, name, X, Y, Z) a##r = vec_##name(GET_##X(0, r), GET_##Y(1, r), GET_##Z(2, r));

/* A function: writes the operands to memory, and calls a loop compiled from the scalar formula. */
#define SPILL(r, k, X) *(V *)(scratch + k * TILE + r * LANES) = GET_##X(k, r);
#define SPILL_N(...)
#define SPILL_A        EACH
#define SPILL_B        EACH
#define SPILL_C        EACH
#define SPILL_M        EACH
#define SPILL_S        EACH
#define RELOAD(r, ...) a##r = *(const V *)(scratch + r * LANES);
#define CALL(name, X, Y, Z)                                                                                  \
    T *const scratch = at[SCRATCH];                                                                          \
    SPILL_##X(SPILL, 0, X) SPILL_##Y(SPILL, 1, Y) SPILL_##Z(SPILL, 2, Z) interp_functions[OP_##name].SIZE(   \
        scratch);                                                                                            \
    EACH(RELOAD)

#define HANDLE(name, ulp, X, Y, Z, end)                                                                      \
    __attribute__((unused)) static void HANDLER(name##_##X##Y##Z##_##end)(ARGS)                              \
    {                                                                                                        \
        DECLARE_##X(0) DECLARE_##Y(1) DECLARE_##Z(2) if (BY_LOOP(ulp)) { CALL(name, X, Y, Z) }               \
        else { EACH(APPLY, name, X, Y, Z) } END_##end }
#define HANDLE_ALL(name, ulp, X, Y, Z)                                                                       \
    HANDLE(name, ulp, X, Y, Z, next) HANDLE(name, ulp, X, Y, Z, save) HANDLE(name, ulp, X, Y, Z, last)

#define ROW1(name, formula, ulp, flags) FORMS1(HANDLE_ALL, name, ulp)
#define ROW2(name, formula, ulp, flags) FORMS2(HANDLE_ALL, name, ulp)
#define ROW3(name, formula, ulp, flags) FORMS3(HANDLE_ALL, name, ulp)
#include "typed_ops.def"
FORMS1(HANDLE_ALL, move, 0.0)

#ifdef FORMULA_INTEGERS
#define DUET_INTEGER(NAME, name, type) HANDLE_ALL(wrap_##name, 0.0, A, N, N)
#define DUET_NARROW                    DUET_INTEGER
#define DUET_DTYPE(...)
#include <duet/dtype.def>
#endif

/* ---- loads of the banks ---- */

#ifdef INTERP_BANKS
#define KEEP_B(r, X) bank_b##r = GET_##X(0, r);
#define KEEP_C(r, X) bank_c##r = GET_##X(0, r);
#define KEEP(bank, X)                                                                                        \
    static void HANDLER(keep_##bank##X)(ARGS) { DECLARE_##X(0) EACH(KEEP_##bank, X) NEXT }
KEEP(B, A)
KEEP(B, M)
KEEP(B, S)
KEEP(C, A)
KEEP(C, M)
KEEP(C, S)
#endif

/* ---- reductions: they preserve the accumulator ---- */

#define UPDATE(r, name, X, Y)                                                                                \
    {                                                                                                        \
        V p[parts];                                                                                          \
        for (int k = 0; k < parts; k++) p[k] = GET(state + k * INTERP_PART, r);                              \
        vec_##name(p, row, GET_##X(0, r), GET_##Y(1, r));                                                    \
        for (int k = 0; k < parts; k++) PUT(state + k * INTERP_PART, r, p[k]);                               \
    }
#define REDUCE(name, parts_, needs_row, X, Y)                                                                \
    static void HANDLER(name##_##X##Y)(ARGS)                                                                 \
    {                                                                                                        \
        enum { parts = parts_ };                                                                             \
        T *const state = at[pc->to] + off;                                                                   \
        const V row = spread(needs_row ? *at[ROW] : 0);                                                      \
        DECLARE_##X(0) DECLARE_##Y(1) EACH(UPDATE, name, X, Y) NEXT                                          \
    }
#define REDUCE_ROW1(name, ...) REDUCE(name, 1, 0, A, N) REDUCE(name, 1, 0, M, N)
#define REDUCE_ROW2(name, ...)                                                                               \
    REDUCE(name, 1, 0, A, A) REDUCE(name, 1, 0, A, M) REDUCE(name, 1, 0, M, A) REDUCE(name, 1, 0, M, M)
#define MOMENT_ROW1(name, ...) REDUCE(name, 3, 0, A, N) REDUCE(name, 3, 0, M, N)
#define PLACE_ROW1(name, ...)  REDUCE(name, 2, 1, A, N) REDUCE(name, 2, 1, M, N)
#include "typed_ops.def"

/* ---- streaming stores, and the end of a chain ---- */

#define STREAM_ONE(r, ...) STREAM(to, r, a##r);
#define STREAM_ALL                                                                                           \
    T *const to = at[pc->to] + off;                                                                          \
    if (STREAMABLE(to)) {                                                                                    \
        EACH(STREAM_ONE)                                                                                     \
    } else {                                                                                                 \
        EACH(SAVE_ONE)                                                                                       \
    }
static void HANDLER(stream_next)(ARGS) { STREAM_ALL NEXT }
static void HANDLER(stream_last)(ARGS) { STREAM_ALL }
static void HANDLER(stop)(ARGS) {}

#undef SIZE
