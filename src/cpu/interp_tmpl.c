/* interp_tmpl.c - the handlers of the expression machine, their table, and running them. */
#include "simd_registers.h"
/* first */
#include "interp_functions.h"
#include "interp_table.h"
#include "threads.h"
#include "vector.h"

#define TILE (8 * LANES)

#if defined __clang__
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALL                                                                                            \
    return /* where the compiler makes it a call, it goes no deeper than one tile's instructions */
#endif

/* The forms that there are of rows with one, two and three operands. Others are made of these: interp_compile_tmpl.c. */
#define FORMS1(DO, ...)                                                                                      \
    DO(__VA_ARGS__, A, N, N) DO(__VA_ARGS__, M, N, N) DO(__VA_ARGS__, S, N, N) BANKS1(DO, __VA_ARGS__)
#define FORMS2(DO, ...)                                                                                      \
    DO(__VA_ARGS__, A, A, N)                                                                                 \
    DO(__VA_ARGS__, A, M, N)                                                                                 \
    DO(__VA_ARGS__, A, S, N)                                                                                 \
    DO(__VA_ARGS__, M, A, N)                                                                                 \
    DO(__VA_ARGS__, S, A, N)                                                                                 \
    DO(__VA_ARGS__, M, M, N)                                                                                 \
    DO(__VA_ARGS__, M, S, N)                                                                                 \
    DO(__VA_ARGS__, S, M, N)                                                                                 \
    BANKS2(DO, __VA_ARGS__)
#define FORMS3(DO, ...)                                                                                      \
    DO(__VA_ARGS__, A, A, A)                                                                                 \
    DO(__VA_ARGS__, A, M, A)                                                                                 \
    DO(__VA_ARGS__, A, S, A)                                                                                 \
    DO(__VA_ARGS__, A, A, M)                                                                                 \
    DO(__VA_ARGS__, A, A, S)                                                                                 \
    DO(__VA_ARGS__, A, M, M)                                                                                 \
    DO(__VA_ARGS__, A, M, S)                                                                                 \
    DO(__VA_ARGS__, A, S, M)                                                                                 \
    DO(__VA_ARGS__, A, S, S)                                                                                 \
    DO(__VA_ARGS__, M, A, M)                                                                                 \
    DO(__VA_ARGS__, M, A, S)                                                                                 \
    DO(__VA_ARGS__, M, M, A)                                                                                 \
    DO(__VA_ARGS__, M, S, A)                                                                                 \
    DO(__VA_ARGS__, M, M, M)                                                                                 \
    DO(__VA_ARGS__, M, M, S)                                                                                 \
    DO(__VA_ARGS__, M, S, M)                                                                                 \
    DO(__VA_ARGS__, M, S, S)                                                                                 \
    BANKS3(DO, __VA_ARGS__)
#ifdef TILE_BANKS
#define BANKS1(DO, ...) DO(__VA_ARGS__, B, N, N) DO(__VA_ARGS__, C, N, N)
#define BANKS2(DO, ...)                                                                                      \
    DO(__VA_ARGS__, A, B, N)                                                                                 \
    DO(__VA_ARGS__, A, C, N)                                                                                 \
    DO(__VA_ARGS__, B, A, N)                                                                                 \
    DO(__VA_ARGS__, C, A, N)
#define BANKS3(DO, ...)                                                                                      \
    DO(__VA_ARGS__, A, B, A)                                                                                 \
    DO(__VA_ARGS__, A, C, A)                                                                                 \
    DO(__VA_ARGS__, A, A, B)                                                                                 \
    DO(__VA_ARGS__, A, A, C)                                                                                 \
    DO(__VA_ARGS__, A, B, B)                                                                                 \
    DO(__VA_ARGS__, A, B, C)                                                                                 \
    DO(__VA_ARGS__, A, B, M)                                                                                 \
    DO(__VA_ARGS__, A, B, S)                                                                                 \
    DO(__VA_ARGS__, A, C, B)                                                                                 \
    DO(__VA_ARGS__, A, C, C)                                                                                 \
    DO(__VA_ARGS__, A, C, M)                                                                                 \
    DO(__VA_ARGS__, A, C, S)                                                                                 \
    DO(__VA_ARGS__, A, M, B)                                                                                 \
    DO(__VA_ARGS__, A, M, C)                                                                                 \
    DO(__VA_ARGS__, A, S, B)                                                                                 \
    DO(__VA_ARGS__, A, S, C)                                                                                 \
    DO(__VA_ARGS__, B, B, A)                                                                                 \
    DO(__VA_ARGS__, B, C, A)                                                                                 \
    DO(__VA_ARGS__, B, M, A)                                                                                 \
    DO(__VA_ARGS__, B, S, A)                                                                                 \
    DO(__VA_ARGS__, C, C, A)                                                                                 \
    DO(__VA_ARGS__, C, M, A)                                                                                 \
    DO(__VA_ARGS__, C, S, A)
#else
#define BANKS1(...)
#define BANKS2(...)
#define BANKS3(...)
#endif
#define FORMS_FUSED(DO, ...)                                                                                 \
    DO(__VA_ARGS__, M, M, M)                                                                                 \
    DO(__VA_ARGS__, S, M, M)                                                                                 \
    DO(__VA_ARGS__, M, S, M)                                                                                 \
    DO(__VA_ARGS__, S, S, M)                                                                                 \
    DO(__VA_ARGS__, M, M, S)                                                                                 \
    DO(__VA_ARGS__, S, M, S)                                                                                 \
    DO(__VA_ARGS__, M, S, S)                                                                                 \
    DO(__VA_ARGS__, S, S, S)

/* LOAD and STORE, and WRAP to a type: rows like others here, if no functions. */
enum {
    OP_move,
#define DUET_INTEGER(NAME, name, type) OP_wrap_##name,
#define DUET_NARROW                    DUET_INTEGER
#define DUET_DTYPE(...)
#include <duet/dtype.def>
};

/* ---- a tile of eight registers ---- */

#define SET(name) tile_##name
#define SIZE      tile
#define ARGS      const ins *pc, T *const *at, int64_t off, V a0, V a1, V a2, V a3, V a4, V a5, V a6, V a7
typedef void tile_handler(ARGS);
#define NEXT          TAIL_CALL((tile_handler *)pc[1].tile)(pc + 1, at, off, a0, a1, a2, a3, a4, a5, a6, a7);
#define EACH(DO, ...) EACH_(DO, __VA_ARGS__)
#define EACH_(DO, ...)                                                                                       \
    DO(0, __VA_ARGS__)                                                                                       \
    DO(1, __VA_ARGS__)                                                                                       \
    DO(2, __VA_ARGS__)                                                                                       \
    DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__) DO(7, __VA_ARGS__)
#define GET(p, r)    (*(const V_anywhere *)((p) + (r)*LANES))
#define PUT(p, r, v) (*(V_anywhere *)((p) + (r)*LANES) = (v))
#ifdef __SSE2__
#define STREAMABLE(p)   ((uintptr_t)(p) % VECTOR_BYTES == 0)
#define STREAM(p, r, v) MM(stream)((scalar *)(p) + (r)*LANES, (F)(v))
#else
#define STREAMABLE(p) false
#define STREAM        PUT
#endif
#include "interp_handlers.h"

/* ---- a tail of one register, under a mask ---- */

#undef SET
#undef SIZE
#undef ARGS
#undef NEXT
#undef EACH_
#undef GET
#undef PUT
#undef STREAMABLE
#undef STREAM
#define SET(name) tail_##name
#define SIZE      tail
#define ARGS      const ins *pc, T *const *at, int64_t off, mask m, V a0
typedef void tail_handler(ARGS);
#define NEXT            TAIL_CALL((tail_handler *)pc[1].tail)(pc + 1, at, off, m, a0);
#define EACH_(DO, ...)  DO(0, __VA_ARGS__)
#define GET(p, r)       load_some(p, m)
#define PUT(p, r, v)    store_some(p, m, v)
#define STREAMABLE(p)   false
#define STREAM(p, r, v) PUT(p, r, v)
#include "interp_handlers.h"

/* ---- their table ---- */

/* Rows that commute have their first two operands in the order of the classes; functions neither read banks nor store what they made. */
#define IN_LOOP (1 << 8) /* beside the row's flags */
#define BANK(X) (CLASS_##X == CLASS_B || CLASS_##X == CLASS_C)
#define DROPPED(flags, X, Y)                                                                                 \
    (((flags)&DUET_COMMUTES && CLASS_##X > CLASS_##Y) || ((flags)&IN_LOOP && (BANK(X) || BANK(Y))))
#define BOTH(handler)                                                                                        \
    {                                                                                                        \
        (void (*)(void)) tile_##handler, (void (*)(void))tail_##handler                                      \
    }
#define PICK(drop, handler)                                                                                  \
    {                                                                                                        \
        (drop) ? NULL : (void (*)(void))tile_##handler, (drop) ? NULL : (void (*)(void))tail_##handler       \
    }
#define NOT_STORED(flags, X, Y) (DROPPED(flags, X, Y) || (flags)&IN_LOOP)
#define ENTRY(name, flags, X, Y, Z)                                                                          \
    [FORM(CLASS_##X, CLASS_##Y, CLASS_##Z)] = { PICK(DROPPED(flags, X, Y), name##_##X##Y##Z##_next),         \
                                                PICK(NOT_STORED(flags, X, Y), name##_##X##Y##Z##_save),      \
                                                PICK(NOT_STORED(flags, X, Y), name##_##X##Y##Z##_last) },

#define ROW1(name, formula, ulp, flags)                                                                      \
    static ends name##_ends[] = { FORMS1(ENTRY, name, BY_LOOP(ulp) ? IN_LOOP : 0) };
#define ROW2(name, formula, ulp, flags)                                                                      \
    static ends name##_ends[] = { FORMS2(ENTRY, name, (flags) | (BY_LOOP(ulp) ? IN_LOOP : 0)) };
#define ROW3(name, formula, ulp, flags)                                                                      \
    static ends name##_ends[] = { FORMS3(ENTRY, name, (flags) | (BY_LOOP(ulp) ? IN_LOOP : 0)) };
#define REDUCE_ROW1(name, ...)                                                                               \
    static ends name##_ends[] = { [FORM(CLASS_A, 0, 0)] = { BOTH(name##_AN) },                               \
                                  [FORM(CLASS_M, 0, 0)] = { BOTH(name##_MN) } };
#define REDUCE_ROW2(name, ...)                                                                               \
    static ends name##_ends[] = { [FORM(CLASS_A, CLASS_A, 0)] = { BOTH(name##_AA) },                         \
                                  [FORM(CLASS_A, CLASS_M, 0)] = { BOTH(name##_AM) },                         \
                                  [FORM(CLASS_M, CLASS_A, 0)] = { BOTH(name##_MA) },                         \
                                  [FORM(CLASS_M, CLASS_M, 0)] = { BOTH(name##_MM) } };
#define MOMENT_ROW1 REDUCE_ROW1
#define PLACE_ROW1  REDUCE_ROW1
#include "typed_ops.def"
static ends move_ends[] = { FORMS1(ENTRY, move, 0) };

#ifdef TILE_BANKS
#define KEEP_ENDS(bank)                                                                                      \
    {                                                                                                        \
        [CLASS_A] = BOTH(keep_##bank##A), [CLASS_M] = BOTH(keep_##bank##M), [CLASS_S] = BOTH(keep_##bank##S) \
    }
#define IS_BANKED true
#else
#define KEEP_ENDS(bank)                                                                                      \
    {                                                                                                        \
        {                                                                                                    \
            NULL                                                                                             \
        }                                                                                                    \
    }
#define IS_BANKED false
#endif
#define FUSED_ENTRY(name, X, Y, Z) [FORM(CLASS_##X, CLASS_##Y, CLASS_##Z)] = BOTH(fused_##name##_##X##Y##Z),

const tile_table NAME(tile_table) = {
#define ROW_OF(name, seconds)                                                                                \
    .row[OP_##name] = { name##_ends, sizeof name##_ends / sizeof *name##_ends, seconds },
#define SECONDS(ulp)                    (BY_LOOP(ulp) ? SECONDS_PER_FUNCTION : SECONDS_PER_ROUNDED)
#define ROW1(name, formula, ulp, flags) ROW_OF(name, SECONDS(ulp))
#define ROW2                            ROW1
#define ROW3                            ROW1
#define REDUCE_ROW1(name, ...)          ROW_OF(name, SECONDS_PER_ROUNDED)
#define REDUCE_ROW2                     REDUCE_ROW1
#define MOMENT_ROW1(name, ...)          ROW_OF(name, 4 * SECONDS_PER_ROUNDED)
#define PLACE_ROW1                      MOMENT_ROW1
#include "typed_ops.def"
#ifdef FORMULA_INTEGERS
#define DUET_INTEGER(NAME, name, type)                                                                       \
    .wrap[DUET_##NAME] = { BOTH(wrap_##name##_ANN_next), BOTH(wrap_##name##_ANN_save),                       \
                           BOTH(wrap_##name##_ANN_last) },
#define DUET_NARROW DUET_INTEGER
#define DUET_DTYPE(...)
#include <duet/dtype.def>
#else
#define DUET_FUSED(name, ...) .fused[KERNEL_##name - KERNEL_PROGRAM] = { FORMS_FUSED(FUSED_ENTRY, name) },
#include "fused.def"
#endif
    .move = move_ends,
    .stream = { BOTH(stream_next), BOTH(stream_next), BOTH(stream_last) },
    .stop = BOTH(stop),
    .keep = { KEEP_ENDS(B), KEEP_ENDS(C) },
    .banked = IS_BANKED,
};

/* ---- running ---- */

static void slots_on(const code *c, T *value[VALUES], int64_t by)
{
    FOR_FEW (k, c->slots) value[SLOTS + k] -= by;
}

/* The memory of the machine's own values: addresses less the offset at which the handlers read them. */
static void place_slots(const code *c, T *value[VALUES], T *room)
{
    value[SCRATCH] = room;
    FOR_FEW (k, c->slots) value[SLOTS + k] = room + (3 + k) * TILE;
}

static void run_tail(const code *c, T *value[VALUES], int64_t from, int64_t n)
{
    const V none = { 0 };
    for (; from < n; from += LANES, slots_on(c, value, LANES))
        ((tail_handler *)c->run[0].tail)(c->run, value, from, first_lanes(SMALLER(n - from, LANES)), none);
}

/* n elements into a tile, the rest of which is zero; and back. */
static void pad(T *tile, const T *from, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(V *)(tile + i) = *(const V_anywhere *)(from + i);
    if (i < n) *(V *)(tile + i) = load_some(from + i, first_lanes(n - i)), i += LANES;
    for (; i < TILE; i += LANES) *(V *)(tile + i) = (V){ 0 };
}

static void unpad(T *to, const T *tile, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(V_anywhere *)(to + i) = *(const V *)(tile + i);
    if (i < n) store_some(to + i, first_lanes(n - i), *(const V *)(tile + i));
}

static void run_tile(const code *c, T *const value[VALUES], int64_t at)
{
    const V none = { 0 };
    ((tile_handler *)c->run[0].tile)(c->run, value, at, none, none, none, none, none, none, none, none);
}

/* What is left of a row as one tile, from copies of its operands. */
static void run_padded(const code *c, T *value[VALUES], int64_t from, int64_t n, T *room)
{
    T *in[PROGRAM_INPUTS], *out[PROGRAM_OUTPUTS];
    for (int k = 0; k < c->inputs; k++) {
        in[k] = value[INPUTS + k];
        if (c->singles >> k & 1) continue;
        pad(room, in[k] + from, n - from);
        value[INPUTS + k] = room - from, room += TILE;
    }
    for (int k = 0; k < c->outputs; k++)
        out[k] = value[OUTPUTS + k], value[OUTPUTS + k] = room + k * TILE - from;
    run_tile(c, value, from);
    for (int k = 0; k < c->inputs; k++) value[INPUTS + k] = in[k];
    for (int k = 0; k < c->outputs; k++) {
        value[OUTPUTS + k] = out[k];
        unpad(out[k] + from, room + k * TILE, n - from);
    }
}

#define PADDING 100 /* what the copies cost, in handlers of one register */

/* Is a tail of n elements slower register by register than as a tile with its copies? */
static bool worth_padding(const code *c, int64_t n)
{
    return !c->reductions && (n + LANES - 1) / LANES * (c->length + 2) > PADDING;
}

/* May elements be computed twice? No output is an input. */
static bool may_repeat(const code *c, T *const value[VALUES])
{
    bool may = !c->reductions;
    for (int o = 0; o < c->outputs; o++)
        for (int i = 0; i < c->inputs; i++) may &= value[OUTPUTS + o] != value[INPUTS + i];
    return may;
}

#define FAR_BYTES 32e6 /* so much does not come from the caches */

static bool is_far(const code *c, int64_t n)
{
    return (double)n * sizeof(T) * (c->inputs + c->outputs) >= FAR_BYTES;
}

/* Asks for the lines of a tile in turn, as a loop over all operands would: memory gives them sooner than one operand after the other. */
static void fetch_tile(const code *c, T *const value[VALUES], int64_t at)
{
    for (int i = 0; i < TILE; i += 64 / (int)sizeof(T))
        FOR_FEW (k, c->inputs)
            if (!(c->singles >> k & 1)) __builtin_prefetch(value[INPUTS + k] + at + i);
}

static void run_row(const code *c, T *value[VALUES], int64_t n, T *room)
{
    int64_t i = 0;
    const bool far = is_far(c, n);
    place_slots(c, value, room);
    for (; i + TILE <= n; i += TILE, slots_on(c, value, TILE)) {
        if (far) fetch_tile(c, value, i);
        run_tile(c, value, i);
    }
    if (i == n) return;
    if (n >= TILE && may_repeat(c, value)) slots_on(c, value, n - TILE - i), run_tile(c, value, n - TILE);
    else if (worth_padding(c, n - i)) run_padded(c, value, i, n, room + (VALUES - SLOTS + 2) * TILE);
    else run_tail(c, value, i, n);
}

/* Every address `times` rows on. */
static void go_down(const code *c, T *value[VALUES], const int64_t down[ROW], int64_t times)
{
    for (int k = 0; k < c->inputs; k++) value[INPUTS + k] += times * down[INPUTS + k];
    for (int k = 0; k < c->outputs; k++) value[OUTPUTS + k] += times * down[OUTPUTS + k];
}

/* A row shorter than a tile: what is to be set up for any others would take longer than its elements. */
static void run_short(const code *c, T *value[VALUES], int64_t n)
{
    T room[(VALUES - SLOTS + 2) * TILE] __attribute__((aligned(64)));
    place_slots(c, value, room);
    run_tail(c, value, 0, n);
    value[SCRATCH] = NULL; /* it was in this frame */
    if (c->places) *value[ROW] += 1;
}

static __attribute__((noinline)) void run_rows(const code *c, T *value[VALUES], int64_t rows, int64_t n,
                                               const int64_t down[ROW])
{
    T room[(VALUES - SLOTS + 2 + PROGRAM_INPUTS + PROGRAM_OUTPUTS) * TILE] __attribute__((aligned(64)));
    for (int64_t r = 0; r < rows; r++) {
        if (r > 0) go_down(c, value, down, 1);
        run_row(c, value, n, room);
        if (c->places) *value[ROW] += 1;
    }
    if (rows > 1) go_down(c, value, down, 1 - rows);
    value[SCRATCH] = NULL; /* it was in this frame */
#ifdef __SSE2__
    if (c->streams) _mm_sfence();
#endif
}

void tile_run(const code *c, T *value[VALUES], int64_t rows, int64_t n, const int64_t down[ROW])
{
    if (rows == 1 && n < TILE && !c->streams && !worth_padding(c, n)) run_short(c, value, n);
    else run_rows(c, value, rows, n, down);
}
