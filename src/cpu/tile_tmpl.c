/* tile_tmpl.c - the handlers of the expression machine, their table, and how a program becomes a chain of them. */
#include "threads.h"
#include "tile.h"
#include "vector.h"

#define TILE (8 * LANES)

#if defined __clang__
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALL return /* where the compiler makes it a call, it goes no deeper than one tile's instructions */
#endif

#define BY_LOOP(ulp) ((ulp) > 0.5)

/* The forms that there are of rows with one, two and three operands. Others are made of these: complete(). */
#define FORMS1(DO, ...) DO(__VA_ARGS__, A, N, N) DO(__VA_ARGS__, M, N, N) DO(__VA_ARGS__, S, N, N)
#define FORMS2(DO, ...)                                                                                                          \
    DO(__VA_ARGS__, A, A, N)                                                                                                     \
    DO(__VA_ARGS__, A, M, N)                                                                                                     \
    DO(__VA_ARGS__, A, S, N)                                                                                                     \
    DO(__VA_ARGS__, M, A, N)                                                                                                     \
    DO(__VA_ARGS__, S, A, N)                                                                                                     \
    DO(__VA_ARGS__, M, M, N)                                                                                                     \
    DO(__VA_ARGS__, M, S, N)                                                                                                     \
    DO(__VA_ARGS__, S, M, N)
#define FORMS3(DO, ...)                                                                                                          \
    DO(__VA_ARGS__, A, A, M)                                                                                                     \
    DO(__VA_ARGS__, A, A, S)                                                                                                     \
    DO(__VA_ARGS__, A, M, M)                                                                                                     \
    DO(__VA_ARGS__, A, M, S)                                                                                                     \
    DO(__VA_ARGS__, A, S, M)                                                                                                     \
    DO(__VA_ARGS__, A, S, S)                                                                                                     \
    DO(__VA_ARGS__, M, A, M)                                                                                                     \
    DO(__VA_ARGS__, M, A, S)                                                                                                     \
    DO(__VA_ARGS__, M, M, A)                                                                                                     \
    DO(__VA_ARGS__, M, S, A)                                                                                                     \
    DO(__VA_ARGS__, M, M, M)                                                                                                     \
    DO(__VA_ARGS__, M, M, S)                                                                                                     \
    DO(__VA_ARGS__, M, S, M)                                                                                                     \
    DO(__VA_ARGS__, M, S, S)
#define FORMS_FUSED(DO, ...)                                                                                                     \
    DO(__VA_ARGS__, M, M, M)                                                                                                     \
    DO(__VA_ARGS__, S, M, M)                                                                                                     \
    DO(__VA_ARGS__, M, S, M)                                                                                                     \
    DO(__VA_ARGS__, S, S, M)                                                                                                     \
    DO(__VA_ARGS__, M, M, S)                                                                                                     \
    DO(__VA_ARGS__, S, M, S)                                                                                                     \
    DO(__VA_ARGS__, M, S, S)                                                                                                     \
    DO(__VA_ARGS__, S, S, S)

/* ---- a tile of eight registers ---- */

#define SET(name) tile_##name
#define COUNT     TILE
#define SIMD      _Pragma("omp simd")
#define ARGS      const ins *pc, T *const *at, int64_t off, V a0, V a1, V a2, V a3, V a4, V a5, V a6, V a7
typedef void tile_handler(ARGS);
#define NEXT          TAIL_CALL((tile_handler *)pc[1].tile)(pc + 1, at, off, a0, a1, a2, a3, a4, a5, a6, a7);
#define EACH(DO, ...) EACH_(DO, __VA_ARGS__)
#define EACH_(DO, ...)                                                                                                           \
    DO(0, __VA_ARGS__)                                                                                                           \
    DO(1, __VA_ARGS__)                                                                                                           \
    DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__) DO(7, __VA_ARGS__)
#define GET(p, r)    (*(const V_anywhere *)((p) + (r)*LANES))
#define PUT(p, r, v) (*(V_anywhere *)((p) + (r)*LANES) = (v))
#ifdef __SSE2__
#define STREAMABLE(p)   ((uintptr_t)(p) % VECTOR_BYTES == 0)
#define STREAM(p, r, v) MM(stream)((p) + (r)*LANES, v)
#else
#define STREAMABLE(p) false
#define STREAM        PUT
#endif
#include "tile_set.h"

/* ---- a tail of one register, under a mask ---- */

#undef SET
#undef COUNT
#undef ARGS
#undef NEXT
#undef EACH_
#undef GET
#undef PUT
#undef STREAMABLE
#undef STREAM
#define SET(name) tail_##name
#define COUNT     LANES
#if VECTOR_BYTES == 16
#undef SIMD
#define SIMD /* two or four elements */
#endif
#define ARGS const ins *pc, T *const *at, int64_t off, mask m, V a0
typedef void tail_handler(ARGS);
#define NEXT            TAIL_CALL((tail_handler *)pc[1].tail)(pc + 1, at, off, m, a0);
#define EACH_(DO, ...)  DO(0, __VA_ARGS__)
#define GET(p, r)       load_some(p, m)
#define PUT(p, r, v)    store_some(p, m, v)
#define STREAMABLE(p)   false
#define STREAM(p, r, v) PUT(p, r, v)
#include "tile_set.h"

/* ---- their table ---- */

typedef struct handlers {
    void (*tile)(void), (*tail)(void);
} handlers;

enum { NEXT_END, SAVE_END, LAST_END, ENDS };
enum { CLASS_A, CLASS_M, CLASS_S, CLASS_N = 0, CLASSES = 3 };
#define FORM(x, y, z) ((x) + CLASSES * (y) + CLASSES * CLASSES * (z))

/* Rows that commute have their operands in the order of A, M, S. */
#define DROPPED(flags, X, Y) ((flags)&DUET_COMMUTES && CLASS_##X > CLASS_##Y)
#define BOTH(handler)                                                                                                            \
    {                                                                                                                            \
        (void (*)(void)) tile_##handler, (void (*)(void))tail_##handler                                                          \
    }
#define PICK(drop, handler)                                                                                                      \
    {                                                                                                                            \
        (drop) ? NULL : (void (*)(void))tile_##handler, (drop) ? NULL : (void (*)(void))tail_##handler                           \
    }
#define ENTRY(name, flags, X, Y, Z)                                                                                              \
    [FORM(CLASS_##X, CLASS_##Y, CLASS_##Z)] = { PICK(DROPPED(flags, X, Y), name##_##X##Y##Z##_next),                             \
                                                PICK(DROPPED(flags, X, Y), name##_##X##Y##Z##_save),                             \
                                                PICK(DROPPED(flags, X, Y), name##_##X##Y##Z##_last) },

typedef const handlers ends[ENDS];

#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, ...) static ends name##_ends[] = { FORMS1(ENTRY, name, 0) };
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, ...) static ends name##_ends[] = { FORMS2(ENTRY, name, flags) };
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, ...) static ends name##_ends[] = { FORMS3(ENTRY, name, flags) };
#define DUET_FOLD1(name, ...)                                                                                                    \
    static ends name##_ends[] = { [FORM(CLASS_A, 0, 0)] = { BOTH(name##_AN) }, [FORM(CLASS_M, 0, 0)] = { BOTH(name##_MN) } };
#define DUET_FOLD2(name, ...)                                                                                                    \
    static ends name##_ends[] = { [FORM(CLASS_A, CLASS_A, 0)] = { BOTH(name##_AA) },                                             \
                                  [FORM(CLASS_A, CLASS_M, 0)] = { BOTH(name##_AM) },                                             \
                                  [FORM(CLASS_M, CLASS_A, 0)] = { BOTH(name##_MA) },                                             \
                                  [FORM(CLASS_M, CLASS_M, 0)] = { BOTH(name##_MM) } };
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1  DUET_FOLD1
#include <duet/ops.def>
static ends move_ends[] = { FORMS1(ENTRY, move, 0) };

static const struct {
    ends *form;
    int forms;
    double seconds;
} table[OPS_ALL] = {
#define ROW_OF(name, seconds)                              [OP_##name] = { name##_ends, sizeof name##_ends / sizeof *name##_ends, seconds },
#define SECONDS(ulp)                                       (BY_LOOP(ulp) ? SECONDS_PER_FUNCTION : SECONDS_PER_ROUNDED)
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) ROW_OF(name, SECONDS(ulp))
#define DUET_MAP2                                          DUET_MAP1
#define DUET_MAP3                                          DUET_MAP1
#define DUET_FOLD1(name, ...)                              ROW_OF(name, SECONDS_PER_ROUNDED)
#define DUET_FOLD2                                         DUET_FOLD1
#define DUET_MOMENT1(name, ...)                            ROW_OF(name, 4 * SECONDS_PER_ROUNDED)
#define DUET_PLACE1                                        DUET_MOMENT1
#include <duet/ops.def>
};

static const handlers stream_ends[ENDS] = { BOTH(stream_next), BOTH(stream_next), BOTH(stream_last) }, stop = BOTH(stop);

#define FUSED_ENTRY(name, X, Y, Z) [FORM(CLASS_##X, CLASS_##Y, CLASS_##Z)] = BOTH(fused_##name##_##X##Y##Z),
static const handlers fused_rows[KERNELS - KERNEL_PROGRAM][FORM(2, 2, 2) + 1] = {
#define DUET_FUSED(name, ...) [KERNEL_##name - KERNEL_PROGRAM] = { FORMS_FUSED(FUSED_ENTRY, name) },
#include "fused.def"
};

/* ---- translation ---- */

typedef struct writer {
    code *c;
    uint32_t singles, streams;
    const handlers *ends;  /* of the last instruction, if it leaves the accumulator and stores it nowhere yet */
    const handlers *saved; /* of the last instruction, if it stores the accumulator */
} writer;

/* An operand: its class, and the value. */
typedef struct place {
    uint8_t class, value;
} place;

static place place_of(const writer *w, source s)
{
    switch (s.kind) {
    case FROM_INPUT: return (place){ w->singles >> s.index & 1 ? CLASS_S : CLASS_M, (uint8_t)(INPUTS + s.index) };
    case FROM_NUMBER: return (place){ CLASS_S, (uint8_t)(NUMBERS + s.index) };
    case FROM_SLOT: return (place){ CLASS_M, (uint8_t)(SLOTS + s.index) };
    default: return (place){ CLASS_A, 0 };
    }
}

static ins *write(writer *w, const handlers *h)
{
    ins *i = &w->c->run[w->c->length++];
    *i = (ins){ .tile = h->tile, .tail = h->tail };
    w->ends = w->saved = NULL;
    return i;
}

static void end_in(ins *i, const handlers *h) { i->tile = h->tile, i->tail = h->tail; }

/* Stores the accumulator, by the instruction that made it if that can. */
static void save(writer *w, const handlers *move, int to)
{
    const handlers *h = w->ends ? w->ends : move;
    ins *i = w->ends ? &w->c->run[w->c->length - 1] : write(w, &h[SAVE_END]);
    end_in(i, &h[SAVE_END]);
    i->to = (uint8_t)to;
    w->ends = NULL, w->saved = h;
    if (to >= SLOTS && to - SLOTS >= w->c->slots) w->c->slots = (uint8_t)(to - SLOTS + 1);
}

static void load(writer *w, place from)
{
    if (from.class == CLASS_A) return;
    write(w, &move_ends[from.class][NEXT_END])->from[0] = from.value;
    w->ends = move_ends[from.class];
}

static const handlers *ends_of(int op, const place p[3])
{
    const int form = FORM(p[0].class, p[1].class, p[2].class);
    return form < table[op].forms && table[op].form[form][NEXT_END].tile ? table[op].form[form] : NULL;
}

/* Makes operands of a form that there is: one is loaded first, or all are put into memory. */
static const handlers *complete(writer *w, int op, place p[3])
{
    const int n = op_infos[op].arity;
    const bool fold = op_infos[op].kind == KIND_FOLD;
    bool acc = fold;
    for (int k = 0; k < n; k++) acc |= p[k].class == CLASS_A;
    for (int k = 0; k < n && !acc; k++) {
        place other[3] = { p[0], p[1], p[2] };
        other[k].class = CLASS_A;
        const handlers *h = ends_of(op, other);
        if (!h) continue;
        load(w, p[k]), p[k].class = CLASS_A;
        return h;
    }
    const place kept = { CLASS_M, SPARES };
    save(w, move_ends[CLASS_A], SPARES);
    for (int k = 0; k < n; k++) {
        if (p[k].class == CLASS_A) p[k] = kept;
        if (p[k].class != CLASS_S) continue;
        load(w, p[k]), save(w, move_ends[CLASS_A], SPARES + 1 + k);
        p[k] = (place){ CLASS_M, (uint8_t)(SPARES + 1 + k) };
    }
    if (fold) load(w, kept);
    return ends_of(op, p);
}

static void put_in_order(int op, place p[3])
{
    if (!(op_infos[op].flags & DUET_COMMUTES) || op_infos[op].kind != KIND_MAP || p[0].class <= p[1].class) return;
    const place first = p[0];
    p[0] = p[1], p[1] = first;
}

static void compute(writer *w, const instruction *i)
{
    place p[3] = { { 0 } };
    for (int k = 0; k < 3 && k < op_infos[i->op].arity; k++) p[k] = place_of(w, i->arg[k]);
    put_in_order(i->op, p);
    const handlers *h = ends_of(i->op, p);
    if (!h) h = complete(w, i->op, p);
    ins *made = write(w, &h[NEXT_END]);
    for (int k = 0; k < 3; k++) made->from[k] = p[k].value;
    if (op_infos[i->op].kind == KIND_FOLD) made->to = (uint8_t)(OUTPUTS + i->arg[2].index);
    else w->ends = h;
    w->c->seconds += table[i->op].seconds;
    w->c->places |= (op_infos[i->op].flags & OP_GIVES_INDEX) != 0;
}

static void store(writer *w, int output)
{
    const bool stream = w->streams >> output & 1;
    if (stream) w->ends = NULL;
    save(w, stream ? stream_ends : move_ends[CLASS_A], OUTPUTS + output);
}

/* The last instruction returns. */
static void close(writer *w)
{
    if (w->saved) end_in(&w->c->run[w->c->length - 1], &w->saved[LAST_END]);
    else write(w, &stop);
}

void tile_make(code *c, const program *p, uint32_t singles, uint32_t streams)
{
    writer w = { .c = c, .singles = singles, .streams = streams };
    c->length = 0, c->slots = p->slots, c->folds = p->folds, c->places = c->ahead = false, c->streams = streams != 0,
    c->seconds = 0;
    c->inputs = p->inputs, c->numbers = p->numbers, c->outputs = p->outputs;
    for (const instruction *i = p->code; i < p->code + p->length; i++) {
        if (i->op == OP_STORE) store(&w, i->arg[0].index);
        else if (i->op == OP_SAVE) save(&w, move_ends[CLASS_A], SLOTS + i->arg[0].index);
        else if (i->op == OP_LOAD) load(&w, place_of(&w, i->arg[0]));
        else compute(&w, i);
    }
    close(&w);
}

void tile_make_fused(code *c, int kernel, int inputs, uint32_t singles)
{
    const handlers *h =
        &fused_rows[kernel - KERNEL_PROGRAM][FORM(1 + (singles & 1), 1 + (singles >> 1 & 1), 1 + (singles >> 2 & 1))];
    const uint8_t y = inputs > 1, z = inputs > 2 ? 2 : 0;
    *c = (code){ .length = 1, .inputs = (uint8_t)inputs, .numbers = 2, .outputs = 1, .seconds = SECONDS_PER_FUNCTION };
    c->run[0] = (ins){ .tile = h->tile, .tail = h->tail, .from = { INPUTS, INPUTS + y, INPUTS + z }, .to = OUTPUTS };
}

/* ---- running ---- */

static void slots_on(const code *c, T *value[VALUES], int64_t by)
{
    for (int k = 0; k < c->slots; k++) value[SLOTS + k] -= by;
}

/* The memory of the machine's own values: addresses less the offset at which the handlers read them. */
static void place_slots(const code *c, T *value[VALUES], T *room)
{
    value[SCRATCH] = room;
    for (int k = 0; k < c->slots; k++) value[SLOTS + k] = room + (3 + k) * TILE;
}

static void run_tail(const code *c, T *value[VALUES], int64_t from, int64_t n)
{
    const V none = { 0 };
    for (; from < n; from += LANES, slots_on(c, value, LANES))
        ((tail_handler *)c->run[0].tail)(c->run, value, from, first_lanes(SMALLER(n - from, LANES)), none);
}

#define AHEAD 2048 /* bytes: how far before its use memory is fetched */

static void fetch_ahead(const code *c, T *const value[VALUES], int64_t from)
{
    for (int k = 0; k < c->inputs; k++)
        for (size_t byte = 0; byte < TILE * sizeof(T); byte += 64)
            __builtin_prefetch((const char *)(value[INPUTS + k] + from) + AHEAD + byte);
}

static void run_row(const code *c, T *value[VALUES], int64_t n, T *room)
{
    const V none = { 0 };
    int64_t i = 0;
    place_slots(c, value, room);
    for (; i + TILE <= n; i += TILE, slots_on(c, value, TILE)) {
        if (c->ahead) fetch_ahead(c, value, i);
        ((tile_handler *)c->run[0].tile)(c->run, value, i, none, none, none, none, none, none, none, none);
    }
    run_tail(c, value, i, n);
}

/* Every address `times` rows on. */
static void go_down(const code *c, T *value[VALUES], const int64_t down[ROW], int64_t times)
{
    for (int k = 0; k < c->inputs; k++) value[INPUTS + k] += times * down[INPUTS + k];
    for (int k = 0; k < c->outputs; k++) value[OUTPUTS + k] += times * down[OUTPUTS + k];
}

void tile_run(const code *c, T *value[VALUES], int64_t rows, int64_t n, const int64_t down[ROW])
{
    T room[(VALUES - SLOTS + 2) * TILE] __attribute__((aligned(64)));
    for (int64_t r = 0; r < rows; r++) {
        if (r > 0) go_down(c, value, down, 1);
        run_row(c, value, n, room);
        if (c->places) *value[ROW] += 1;
    }
    if (rows > 1) go_down(c, value, down, 1 - rows);
#ifdef __SSE2__
    if (c->streams) _mm_sfence();
#endif
}
