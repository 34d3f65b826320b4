/* interp_tmpl.c - the interpreter: its handlers, their table, and interp_run(). Template. */
#include "simd_registers.h"
/* must be first */
#include "interp_functions.h"
#include "interp_table.h"
#include "threads.h"
#include "vector.h"

#define TILE (8 * LANES)

/* gcc makes a jump of the call. A plain call nests no deeper than the handlers of one tile. */
#if defined __clang__
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALL return
#endif

/* The forms with handlers, for operators with one, two and three operands. interp_compile_tmpl.c
 * moves operands so that one of these fits. */
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
#ifdef INTERP_BANKS
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

/* Handlers for LOAD, SAVE and STORE ("move") and for WRAP are generated like those of operators. */
enum {
    OP_move,
#define DUET_INTEGER(NAME, name, type) OP_wrap_##name,
#define DUET_NARROW                    DUET_INTEGER
#define DUET_DTYPE(...)
#include <duet/dtype.def>
};

/* ---- handlers of two sizes ---- */

/* interp_handlers.h is included with SIZE defined as `tile` and as `tail`. These macros have the meaning
 * for that size: do(r, ...) for each register r, the memory of register r, the next handler, and so on. */
#define SIZED_(name, size) name##_##size
#define SIZED(name, size)  SIZED_(name, size)
#define HANDLER(name)      SIZED(SIZE, name)
#define ARGS               SIZED(ARGS, SIZE)
#define NEXT               SIZED(NEXT, SIZE)
#define EACH(DO, ...)      SIZED(EACH, SIZE)(DO, __VA_ARGS__)
#define GET(p, r)          SIZED(GET, SIZE)(p, r)
#define PUT(p, r, v)       SIZED(PUT, SIZE)(p, r, v)
#define STREAMABLE(p)      SIZED(STREAMABLE, SIZE)(p)
#define STREAM(p, r, v)    SIZED(STREAM, SIZE)(p, r, v)

/* A tile: eight registers. */
#define ARGS_tile                                                                                            \
    const interp_ins *pc, T *const *at, int64_t off, V a0, V a1, V a2, V a3, V a4, V a5, V a6, V a7
typedef void tile_handler(ARGS_tile);
#define NEXT_tile TAIL_CALL((tile_handler *)pc[1].tile)(pc + 1, at, off, a0, a1, a2, a3, a4, a5, a6, a7);
#define EACH_tile(DO, ...)                                                                                   \
    DO(0, __VA_ARGS__)                                                                                       \
    DO(1, __VA_ARGS__)                                                                                       \
    DO(2, __VA_ARGS__)                                                                                       \
    DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__) DO(7, __VA_ARGS__)
#define GET_tile(p, r)    (*(const V_unaligned *)((p) + (r)*LANES))
#define PUT_tile(p, r, v) (*(V_unaligned *)((p) + (r)*LANES) = (v))
#ifdef __SSE2__
#define STREAMABLE_tile(p)   ((uintptr_t)(p) % VECTOR_BYTES == 0)
#define STREAM_tile(p, r, v) MM(stream)((scalar *)(p) + (r)*LANES, (F)(v))
#else
#define STREAMABLE_tile(p) false
#define STREAM_tile        PUT_tile
#endif

/* A tail: one register under a mask. */
#define ARGS_tail const interp_ins *pc, T *const *at, int64_t off, mask m, V a0
typedef void tail_handler(ARGS_tail);
#define NEXT_tail          TAIL_CALL((tail_handler *)pc[1].tail)(pc + 1, at, off, m, a0);
#define EACH_tail(DO, ...) DO(0, __VA_ARGS__)
#define GET_tail(p, r)     load_some(p, m)
#define PUT_tail(p, r, v)  store_some(p, m, v)
#define STREAMABLE_tail(p) false
#define STREAM_tail        PUT_tail

#define SIZE tile
#include "interp_handlers.h"
#define SIZE tail
#include "interp_handlers.h"

/* ---- the table of handlers ---- */

/* Commutative operators have forms in ascending order of the first two classes only. Functions
 * neither read banks nor have variants that store. */
#define IS_FUNCTION (1 << 8) /* a flag in addition to those of the row */
#define BANK(X)     (CLASS_##X == CLASS_B || CLASS_##X == CLASS_C)
#define HAS_NONE(flags, X, Y)                                                                                \
    (((flags)&DUET_COMMUTES && CLASS_##X > CLASS_##Y) || ((flags)&IS_FUNCTION && (BANK(X) || BANK(Y))))
#define BOTH(handler)                                                                                        \
    {                                                                                                        \
        (void (*)(void)) tile_##handler, (void (*)(void))tail_##handler                                      \
    }
#define UNLESS(drop, handler)                                                                                \
    {                                                                                                        \
        (drop) ? NULL : (void (*)(void))tile_##handler, (drop) ? NULL : (void (*)(void))tail_##handler       \
    }
#define HAS_NO_STORE(flags, X, Y) (HAS_NONE(flags, X, Y) || (flags)&IS_FUNCTION)
#define ENTRY(name, flags, X, Y, Z)                                                                          \
    [FORM(CLASS_##X, CLASS_##Y, CLASS_##Z)] = { UNLESS(HAS_NONE(flags, X, Y), name##_##X##Y##Z##_next),      \
                                                UNLESS(HAS_NO_STORE(flags, X, Y), name##_##X##Y##Z##_save),  \
                                                UNLESS(HAS_NO_STORE(flags, X, Y),                            \
                                                       name##_##X##Y##Z##_last) },

#define ROW1(name, formula, ulp, flags)                                                                      \
    static variants name##_forms[] = { FORMS1(ENTRY, name, BY_LOOP(ulp) ? IS_FUNCTION : 0) };
#define ROW2(name, formula, ulp, flags)                                                                      \
    static variants name##_forms[] = { FORMS2(ENTRY, name, (flags) | (BY_LOOP(ulp) ? IS_FUNCTION : 0)) };
#define ROW3(name, formula, ulp, flags)                                                                      \
    static variants name##_forms[] = { FORMS3(ENTRY, name, (flags) | (BY_LOOP(ulp) ? IS_FUNCTION : 0)) };
#define REDUCE_ROW1(name, ...)                                                                               \
    static variants name##_forms[] = { [FORM(CLASS_A, 0, 0)] = { BOTH(name##_AN) },                          \
                                       [FORM(CLASS_M, 0, 0)] = { BOTH(name##_MN) } };
#define REDUCE_ROW2(name, ...)                                                                               \
    static variants name##_forms[] = { [FORM(CLASS_A, CLASS_A, 0)] = { BOTH(name##_AA) },                    \
                                       [FORM(CLASS_A, CLASS_M, 0)] = { BOTH(name##_AM) },                    \
                                       [FORM(CLASS_M, CLASS_A, 0)] = { BOTH(name##_MA) },                    \
                                       [FORM(CLASS_M, CLASS_M, 0)] = { BOTH(name##_MM) } };
#define MOMENT_ROW1 REDUCE_ROW1
#define PLACE_ROW1  REDUCE_ROW1
#include "typed_ops.def"
static variants move_forms[] = { FORMS1(ENTRY, move, 0) };

#ifdef INTERP_BANKS
#define KEEP_HANDLERS(bank)                                                                                  \
    {                                                                                                        \
        [CLASS_A] = BOTH(keep_##bank##A), [CLASS_M] = BOTH(keep_##bank##M), [CLASS_S] = BOTH(keep_##bank##S) \
    }
#define IS_BANKED true
#else
#define KEEP_HANDLERS(bank)                                                                                  \
    {                                                                                                        \
        {                                                                                                    \
            NULL                                                                                             \
        }                                                                                                    \
    }
#define IS_BANKED false
#endif

const interp_table NAME(interp_table) = {
#define ROW_OF(name, seconds)                                                                                \
    .row[OP_##name] = { name##_forms, sizeof name##_forms / sizeof *name##_forms, seconds },
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
#endif
    .move = move_forms,
    .stream = { BOTH(stream_next), BOTH(stream_next), BOTH(stream_last) },
    .stop = BOTH(stop),
    .keep = { KEEP_HANDLERS(B), KEEP_HANDLERS(C) },
    .banked = IS_BANKED,
};

/* ---- interp_run ---- */

static void advance_slots(const interp_code *c, T *value[VALUES], int64_t by)
{
    FOR_FEW (k, c->slots) value[SLOTS + k] -= by;
}

/* Sets the addresses of the interpreter's own values. Handlers add the offset of the tile, so
 * advance_slots() subtracts it again. */
static void set_slots(const interp_code *c, T *value[VALUES], T *memory)
{
    value[SCRATCH] = memory;
    FOR_FEW (k, c->slots) value[SLOTS + k] = memory + (3 + k) * TILE;
}

static void run_tail(const interp_code *c, T *value[VALUES], int64_t from, int64_t n)
{
    const V none = { 0 };
    for (; from < n; from += LANES, advance_slots(c, value, LANES))
        ((tail_handler *)c->run[0].tail)(c->run, value, from, first_lanes(SMALLER(n - from, LANES)), none);
}

/* Copies n elements into a tile and fills it up with zeros. unpad() copies back. */
static void pad(T *tile, const T *from, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(V *)(tile + i) = *(const V_unaligned *)(from + i);
    if (i < n) {
        *(V *)(tile + i) = load_some(from + i, first_lanes(n - i));
        i += LANES;
    }
    for (; i < TILE; i += LANES) *(V *)(tile + i) = (V){ 0 };
}

static void unpad(T *to, const T *tile, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(V_unaligned *)(to + i) = *(const V *)(tile + i);
    if (i < n) store_some(to + i, first_lanes(n - i), *(const V *)(tile + i));
}

static void run_tile(const interp_code *c, T *const value[VALUES], int64_t at)
{
    const V none = { 0 };
    ((tile_handler *)c->run[0].tile)(c->run, value, at, none, none, none, none, none, none, none, none);
}

/* Runs the remainder of a row as one tile, on copies of the operands. */
static void run_padded(const interp_code *c, T *value[VALUES], int64_t from, int64_t n, T *memory)
{
    T *in[PROGRAM_INPUTS], *out[PROGRAM_OUTPUTS];
    for (int k = 0; k < c->inputs; k++) {
        in[k] = value[INPUTS + k];
        if (c->scalars >> k & 1) continue;
        pad(memory, in[k] + from, n - from);
        value[INPUTS + k] = memory - from;
        memory += TILE;
    }
    for (int k = 0; k < c->outputs; k++) {
        out[k] = value[OUTPUTS + k];
        value[OUTPUTS + k] = memory + k * TILE - from;
    }
    run_tile(c, value, from);
    for (int k = 0; k < c->inputs; k++) value[INPUTS + k] = in[k];
    for (int k = 0; k < c->outputs; k++) {
        value[OUTPUTS + k] = out[k];
        unpad(out[k] + from, memory + k * TILE, n - from);
    }
}

#define PADDING_COST 100 /* cost of the copies, in handlers of one register */

/* Is a padded tile faster than n elements register by register? */
static bool worth_padding(const interp_code *c, int64_t n)
{
    return !c->reductions && (n + LANES - 1) / LANES * (c->length + 2) > PADDING_COST;
}

/* May elements be computed twice? Not if an output is also an input. */
static bool may_recompute(const interp_code *c, T *const value[VALUES])
{
    bool may = !c->reductions;
    for (int o = 0; o < c->outputs; o++)
        for (int i = 0; i < c->inputs; i++) may &= value[OUTPUTS + o] != value[INPUTS + i];
    return may;
}

#define CACHE_BYTES 32e6 /* operands of this size do not stay in the caches */

static bool exceeds_caches(const interp_code *c, int64_t n)
{
    return (double)n * sizeof(T) * (c->inputs + c->outputs) >= CACHE_BYTES;
}

/* Prefetches the cache lines of a tile in turn from all operands, as a compiled loop would access
 * them. This is faster than one operand after the other. */
static void prefetch_tile(const interp_code *c, T *const value[VALUES], int64_t at)
{
    for (int i = 0; i < TILE; i += 64 / (int)sizeof(T))
        FOR_FEW (k, c->inputs)
            if (!(c->scalars >> k & 1)) __builtin_prefetch(value[INPUTS + k] + at + i);
}

static void run_row(const interp_code *c, T *value[VALUES], int64_t n, T *memory)
{
    int64_t i = 0;
    const bool large = exceeds_caches(c, n);
    set_slots(c, value, memory);
    for (; i + TILE <= n; i += TILE, advance_slots(c, value, TILE)) {
        if (large) prefetch_tile(c, value, i);
        run_tile(c, value, i);
    }
    if (i == n) return;
    if (n >= TILE && may_recompute(c, value)) {
        advance_slots(c, value, n - TILE - i);
        run_tile(c, value, n - TILE);
    } else if (worth_padding(c, n - i)) run_padded(c, value, i, n, memory + (VALUES - SLOTS + 2) * TILE);
    else run_tail(c, value, i, n);
}

/* Advances all addresses by `times` rows. */
static void advance_rows(const interp_code *c, T *value[VALUES], const int64_t row_step[ROW], int64_t times)
{
    for (int k = 0; k < c->inputs; k++) value[INPUTS + k] += times * row_step[INPUTS + k];
    for (int k = 0; k < c->outputs; k++) value[OUTPUTS + k] += times * row_step[OUTPUTS + k];
}

/* Runs one row shorter than a tile. The set-up of run_rows() would take longer than the elements. */
static void run_short(const interp_code *c, T *value[VALUES], int64_t n)
{
    T memory[(VALUES - SLOTS + 2) * TILE] __attribute__((aligned(64)));
    set_slots(c, value, memory);
    run_tail(c, value, 0, n);
    value[SCRATCH] = NULL; /* was in this stack frame */
    if (c->counts_rows) *value[ROW] += 1;
}

static __attribute__((noinline)) void run_rows(const interp_code *c, T *value[VALUES], int64_t rows,
                                               int64_t n, const int64_t row_step[ROW])
{
    T memory[(VALUES - SLOTS + 2 + PROGRAM_INPUTS + PROGRAM_OUTPUTS) * TILE] __attribute__((aligned(64)));
    for (int64_t r = 0; r < rows; r++) {
        if (r > 0) advance_rows(c, value, row_step, 1);
        run_row(c, value, n, memory);
        if (c->counts_rows) *value[ROW] += 1;
    }
    if (rows > 1) advance_rows(c, value, row_step, 1 - rows);
    value[SCRATCH] = NULL; /* was in this stack frame */
#ifdef __SSE2__
    if (c->streams) _mm_sfence();
#endif
}

/* ---- machine code ---- */

/* Elements before the first aligned one of output k. */
static int64_t elements_before(T *const value[VALUES], int k)
{
    return (int64_t)(-(uintptr_t)value[OUTPUTS + k] % VECTOR_BYTES / sizeof(T));
}

/* The first output with streaming stores, which exists. */
static int first_stream(const interp_code *c) { return __builtin_ctz(c->streams); }

/* Are the outputs with streaming stores aligned at the same elements, in all rows? Code needs this. */
static bool is_alignable(const interp_code *c, T *const value[VALUES], int64_t rows,
                         const int64_t row_step[ROW])
{
    if (!c->streams) return true;
    const int first = first_stream(c);
    for (int k = first; k < c->outputs; k++) {
        if (!(c->streams >> k & 1)) continue;
        if ((uintptr_t)value[OUTPUTS + k] % sizeof(T)) return false;
        if (elements_before(value, k) != elements_before(value, first)) return false;
        if (rows > 1 && (row_step[OUTPUTS + k] - row_step[OUTPUTS + first]) % LANES) return false;
    }
    return true;
}

static void move_row(const interp_code *c, T *value[VALUES], int64_t by)
{
    for (int k = 0; k < c->inputs; k++)
        if (!(c->scalars >> k & 1)) value[INPUTS + k] += by;
    for (int k = 0; k < c->outputs; k++) value[OUTPUTS + k] += by;
}

/* Fewer elements than a register holds precede the first aligned one. They are written under a mask. */
static void run_generated_row(const interp_code *c, T *value[VALUES], int64_t n)
{
    const int64_t before = c->streams ? SMALLER(elements_before(value, first_stream(c)), n) : 0;
    if (before) {
        c->generated((void *const *)value, before, 1, NULL);
        move_row(c, value, before);
    }
    if (n > before) c->generated((void *const *)value, n - before, 1, NULL);
    if (before) move_row(c, value, -before);
}

/* Reduces all rows into the same lanes. Code goes over all its rows once for each group of lanes. Large
 * inputs are read faster in memory order, so they are processed one row at a time. */
static void reduce_into_lanes(const interp_code *c, T *value[VALUES], int64_t rows, int64_t n,
                              const int64_t row_step[ROW])
{
    const int64_t part = c->large ? 1 : rows;
    for (int64_t r = 0; r < rows; r += part) {
        if (r > 0) advance_rows(c, value, row_step, part);
        c->generated((void *const *)value, n, part, row_step);
        if (c->counts_rows) *value[ROW] += (T)part;
    }
    if (rows > part) advance_rows(c, value, row_step, part - rows);
}

static __attribute__((noinline)) void run_generated(const interp_code *c, T *value[VALUES], int64_t rows,
                                                    int64_t n, const int64_t row_step[ROW])
{
    static const int64_t none[ROW];
    if (rows <= 0) return;
    if (c->reductions && (!row_step || !row_step[OUTPUTS])) { /* all rows into the same lanes */
        reduce_into_lanes(c, value, rows, n, row_step ? row_step : none);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        if (r > 0) advance_rows(c, value, row_step, 1);
        if (c->reductions) c->generated((void *const *)value, n, 1, row_step);
        else run_generated_row(c, value, n);
        if (c->counts_rows) *value[ROW] += 1;
    }
    if (rows > 1) advance_rows(c, value, row_step, 1 - rows);
#ifdef __SSE2__
    if (c->streams) _mm_sfence();
#endif
}

void interp_run(const interp_code *c, T *value[VALUES], int64_t rows, int64_t n, const int64_t row_step[ROW])
{
    if (c->generated && is_alignable(c, value, rows, row_step)) run_generated(c, value, rows, n, row_step);
    else if (rows == 1 && n < TILE && !c->streams && !worth_padding(c, n)) run_short(c, value, n);
    else run_rows(c, value, rows, n, row_step);
}
