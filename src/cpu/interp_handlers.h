/* interp_handlers.h - the handlers of all rows: included twice by interp_tmpl.c, for tiles and for tails.
 *
 * Wanted: SET(name) (a name of this set's), ARGS (a handler's parameters), NEXT (the call that ends one), EACH(do, ...) (do(r, ...) for
 * each register r), GET(p, r), PUT(p, r, v), STREAM(p, r, v) (the memory that register r stands for), STREAMABLE(p), SIZE (tile or tail).
 *
 * A form is three letters, where the operands x, y, z come from: A the accumulator, B and C the banks of simd_registers.h, M memory,
 * S a single element, N there is none.
 * A handler ends in one of three ways: next, save (stores the accumulator, and then the next) and last (stores it, and returns). */

#define OPEN_A(k)
#define OPEN_B(k)
#define OPEN_C(k)
#define OPEN_N(k)
#define OPEN_M(k)   const T *const m##k = at[pc->from[k]] + off;
#define OPEN_S(k)   const V s##k = spread(*at[pc->from[k]]);
#define GET_A(k, r) a##r
#define GET_B(k, r) bank_b##r
#define GET_C(k, r) bank_c##r
#define GET_N(k, r) a##r
#define GET_M(k, r) GET(m##k, r)
#define GET_S(k, r) s##k

#define SAVE_ONE(r, ...) PUT(to, r, a##r);
#define SAVE_ALL                                                                                             \
    {                                                                                                        \
        T *const to = at[pc->to] + off;                                                                      \
        EACH(SAVE_ONE)                                                                                       \
    }
#define END_next NEXT
#define END_save SAVE_ALL NEXT
#define END_last SAVE_ALL

/* ---- rows of kind map ---- */

#define APPLY(r, name, X, Y, Z) a##r = vec_##name(GET_##X(0, r), GET_##Y(1, r), GET_##Z(2, r));

/* A function: the operands go to memory, and a loop over all of them is compiled from the scalar formula. */
#define LEND(r, k, X) *(V *)(scratch + k * TILE + r * LANES) = GET_##X(k, r);
#define LEND_N(...)
#define LEND_A        EACH
#define LEND_B        EACH
#define LEND_C        EACH
#define LEND_M        EACH
#define LEND_S        EACH
#define FETCH(r, ...) a##r = *(const V *)(scratch + r * LANES);
#define CALL(name, X, Y, Z)                                                                                  \
    T *const scratch = at[SCRATCH];                                                                          \
    LEND_##X(LEND, 0, X) LEND_##Y(LEND, 1, Y) LEND_##Z(LEND, 2, Z) tile_loops[OP_##name].SIZE(scratch);      \
    EACH(FETCH)

#define HANDLE(name, ulp, X, Y, Z, end)                                                                      \
    __attribute__((unused)) static void SET(name##_##X##Y##Z##_##end)(ARGS)                                  \
    {                                                                                                        \
        OPEN_##X(0) OPEN_##Y(1) OPEN_##Z(2) if (BY_LOOP(ulp)) { CALL(name, X, Y, Z) }                        \
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

/* ---- the banks ---- */

#ifdef TILE_BANKS
#define KEEP_B(r, X) bank_b##r = GET_##X(0, r);
#define KEEP_C(r, X) bank_c##r = GET_##X(0, r);
#define KEEP(bank, X)                                                                                        \
    static void SET(keep_##bank##X)(ARGS) { OPEN_##X(0) EACH(KEEP_##bank, X) NEXT }
KEEP(B, A)
KEEP(B, M)
KEEP(B, S)
KEEP(C, A)
KEEP(C, M)
KEEP(C, S)
#endif

/* ---- rows of kind reduction: the accumulator stays ---- */

#define TAKE(r, name, X, Y)                                                                                  \
    {                                                                                                        \
        V p0 = GET(lane, r), p1 = row, p2 = row;                                                             \
        if (parts > 1) p1 = GET(lane + TILE_PART, r);                                                        \
        if (parts > 2) p2 = GET(lane + 2 * TILE_PART, r);                                                    \
        vec_##name(&p0, &p1, &p2, row, GET_##X(0, r), GET_##Y(1, r));                                        \
        PUT(lane, r, p0);                                                                                    \
        if (parts > 1) PUT(lane + TILE_PART, r, p1);                                                         \
        if (parts > 2) PUT(lane + 2 * TILE_PART, r, p2);                                                     \
    }
#define REDUCE(name, parts_, places, X, Y)                                                                   \
    static void SET(name##_##X##Y)(ARGS)                                                                     \
    {                                                                                                        \
        enum { parts = parts_ };                                                                             \
        T *const lane = at[pc->to] + off;                                                                    \
        const V row = spread(places ? *at[ROW] : 0);                                                         \
        OPEN_##X(0) OPEN_##Y(1) EACH(TAKE, name, X, Y) NEXT                                                  \
    }
#define REDUCE_ROW1(name, ...) REDUCE(name, 1, 0, A, N) REDUCE(name, 1, 0, M, N)
#define REDUCE_ROW2(name, ...)                                                                               \
    REDUCE(name, 1, 0, A, A) REDUCE(name, 1, 0, A, M) REDUCE(name, 1, 0, M, A) REDUCE(name, 1, 0, M, M)
#define MOMENT_ROW1(name, ...) REDUCE(name, 3, 0, A, N) REDUCE(name, 3, 0, M, N)
#define PLACE_ROW1(name, ...)  REDUCE(name, 2, 1, A, N) REDUCE(name, 2, 1, M, N)
#include "typed_ops.def"

/* ---- fused rows ---- */

#define APPLY_FUSED(r, name, X, Y, Z)                                                                        \
    a##r = vec_fused_##name(GET_##X(0, r), GET_##Y(1, r), GET_##Z(2, r), s, t);
#define HANDLE_FUSED(name, X, Y, Z)                                                                          \
    static void SET(fused_##name##_##X##Y##Z)(ARGS)                                                          \
    {                                                                                                        \
        const V s = spread(*at[NUMBERS]), t = spread(*at[NUMBERS + 1]);                                      \
        OPEN_##X(0) OPEN_##Y(1) OPEN_##Z(2) EACH(APPLY_FUSED, name, X, Y, Z) SAVE_ALL                        \
    }
#ifndef FORMULA_INTEGERS
#define DUET_FUSED(name, ...) FORMS_FUSED(HANDLE_FUSED, name)
#include "fused.def"
#endif

/* ---- stores past the caches, and the end ---- */

#define STREAM_ONE(r, ...) STREAM(to, r, a##r);
#define STREAM_ALL                                                                                           \
    T *const to = at[pc->to] + off;                                                                          \
    if (STREAMABLE(to)) {                                                                                    \
        EACH(STREAM_ONE)                                                                                     \
    } else {                                                                                                 \
        EACH(SAVE_ONE)                                                                                       \
    }
static void SET(stream_next)(ARGS) { STREAM_ALL NEXT }
static void SET(stream_last)(ARGS) { STREAM_ALL }
static void SET(stop)(ARGS) {}
