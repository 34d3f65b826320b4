/* tile_tmpl.c - the handlers of the expression machine, their table, and how a program becomes a chain of them. */
#include "registers.h"
/* first */
#include "threads.h"
#include "tile.h"
#include "tile_loops.h"
#include "vector.h"

#define TILE (8 * LANES)
#ifdef TILE_BANKS
#define BANKED true
#else
#define BANKED false
#endif

#if defined __clang__
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALL return /* where the compiler makes it a call, it goes no deeper than one tile's instructions */
#endif

/* The forms that there are of rows with one, two and three operands. Others are made of these: complete(). */
#define FORMS1(DO, ...) DO(__VA_ARGS__, A, N, N) DO(__VA_ARGS__, M, N, N) DO(__VA_ARGS__, S, N, N) BANKS1(DO, __VA_ARGS__)
#define FORMS2(DO, ...)                                                                                                          \
    DO(__VA_ARGS__, A, A, N)                                                                                                     \
    DO(__VA_ARGS__, A, M, N)                                                                                                     \
    DO(__VA_ARGS__, A, S, N)                                                                                                     \
    DO(__VA_ARGS__, M, A, N)                                                                                                     \
    DO(__VA_ARGS__, S, A, N)                                                                                                     \
    DO(__VA_ARGS__, M, M, N)                                                                                                     \
    DO(__VA_ARGS__, M, S, N)                                                                                                     \
    DO(__VA_ARGS__, S, M, N)                                                                                                     \
    BANKS2(DO, __VA_ARGS__)
#define FORMS3(DO, ...)                                                                                                          \
    DO(__VA_ARGS__, A, A, A)                                                                                                     \
    DO(__VA_ARGS__, A, M, A)                                                                                                     \
    DO(__VA_ARGS__, A, S, A)                                                                                                     \
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
    DO(__VA_ARGS__, M, S, S)                                                                                                     \
    BANKS3(DO, __VA_ARGS__)
#ifdef TILE_BANKS
#define BANKS1(DO, ...) DO(__VA_ARGS__, B, N, N) DO(__VA_ARGS__, C, N, N)
#define BANKS2(DO, ...)                                                                                                          \
    DO(__VA_ARGS__, A, B, N)                                                                                                     \
    DO(__VA_ARGS__, A, C, N)                                                                                                     \
    DO(__VA_ARGS__, B, A, N)                                                                                                     \
    DO(__VA_ARGS__, C, A, N)
#define BANKS3(DO, ...)                                                                                                          \
    DO(__VA_ARGS__, A, B, A)                                                                                                     \
    DO(__VA_ARGS__, A, C, A)                                                                                                     \
    DO(__VA_ARGS__, A, A, B)                                                                                                     \
    DO(__VA_ARGS__, A, A, C)                                                                                                     \
    DO(__VA_ARGS__, A, B, B)                                                                                                     \
    DO(__VA_ARGS__, A, B, C)                                                                                                     \
    DO(__VA_ARGS__, A, B, M)                                                                                                     \
    DO(__VA_ARGS__, A, B, S)                                                                                                     \
    DO(__VA_ARGS__, A, C, B)                                                                                                     \
    DO(__VA_ARGS__, A, C, C)                                                                                                     \
    DO(__VA_ARGS__, A, C, M)                                                                                                     \
    DO(__VA_ARGS__, A, C, S)                                                                                                     \
    DO(__VA_ARGS__, A, M, B)                                                                                                     \
    DO(__VA_ARGS__, A, M, C)                                                                                                     \
    DO(__VA_ARGS__, A, S, B)                                                                                                     \
    DO(__VA_ARGS__, A, S, C)                                                                                                     \
    DO(__VA_ARGS__, B, B, A)                                                                                                     \
    DO(__VA_ARGS__, B, C, A)                                                                                                     \
    DO(__VA_ARGS__, B, M, A)                                                                                                     \
    DO(__VA_ARGS__, B, S, A)                                                                                                     \
    DO(__VA_ARGS__, C, C, A)                                                                                                     \
    DO(__VA_ARGS__, C, M, A)                                                                                                     \
    DO(__VA_ARGS__, C, S, A)
#else
#define BANKS1(...)
#define BANKS2(...)
#define BANKS3(...)
#endif
#define FORMS_FUSED(DO, ...)                                                                                                     \
    DO(__VA_ARGS__, M, M, M)                                                                                                     \
    DO(__VA_ARGS__, S, M, M)                                                                                                     \
    DO(__VA_ARGS__, M, S, M)                                                                                                     \
    DO(__VA_ARGS__, S, S, M)                                                                                                     \
    DO(__VA_ARGS__, M, M, S)                                                                                                     \
    DO(__VA_ARGS__, S, M, S)                                                                                                     \
    DO(__VA_ARGS__, M, S, S)                                                                                                     \
    DO(__VA_ARGS__, S, S, S)

enum { OP_move }; /* LOAD and STORE: a row like others here, if no function */

/* ---- a tile of eight registers ---- */

#define SET(name) tile_##name
#define SIZE      tile
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
#include "tile_set.h"

/* ---- their table ---- */

typedef struct handlers {
    void (*tile)(void), (*tail)(void);
} handlers;

enum { NEXT_END, SAVE_END, LAST_END, ENDS };
enum { CLASS_A, CLASS_B, CLASS_C, CLASS_M, CLASS_S, CLASS_N = 0, CLASSES = 5 };
#define FORM(x, y, z) ((x) + CLASSES * (y) + CLASSES * CLASSES * (z))

/* Rows that commute have their first two operands in the order of the classes; functions do not read banks. */
#define IN_LOOP              (1 << 8) /* beside the row's flags */
#define BANK(X)              (CLASS_##X == CLASS_B || CLASS_##X == CLASS_C)
#define DROPPED(flags, X, Y) (((flags)&DUET_COMMUTES && CLASS_##X > CLASS_##Y) || ((flags)&IN_LOOP && (BANK(X) || BANK(Y))))
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
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, ...)                                                                \
    static ends name##_ends[] = { FORMS2(ENTRY, name, (flags) | (BY_LOOP(ulp) ? IN_LOOP : 0)) };
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, ...)                                                                \
    static ends name##_ends[] = { FORMS3(ENTRY, name, (flags) | (BY_LOOP(ulp) ? IN_LOOP : 0)) };
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

#ifdef TILE_BANKS
static const handlers keep_ends[][CLASSES] = {
    { [CLASS_A] = BOTH(keep_BA), [CLASS_M] = BOTH(keep_BM), [CLASS_S] = BOTH(keep_BS) },
    { [CLASS_A] = BOTH(keep_CA), [CLASS_M] = BOTH(keep_CM), [CLASS_S] = BOTH(keep_CS) },
};
#endif

static const handlers stream_ends[ENDS] = { BOTH(stream_next), BOTH(stream_next), BOTH(stream_last) }, stop = BOTH(stop);

#define FUSED_ENTRY(name, X, Y, Z) [FORM(CLASS_##X, CLASS_##Y, CLASS_##Z)] = BOTH(fused_##name##_##X##Y##Z),
static const handlers fused_rows[KERNELS - KERNEL_PROGRAM][FORM(CLASS_S, CLASS_S, CLASS_S) + 1] = {
#define DUET_FUSED(name, ...) [KERNEL_##name - KERNEL_PROGRAM] = { FORMS_FUSED(FUSED_ENTRY, name) },
#include "fused.def"
};

/* ---- translation ---- */

typedef struct writer {
    code *c;
    const program *p;
    uint32_t singles, streams;
    const handlers *ends;  /* of the last one written, if it leaves the accumulator and stores it nowhere yet */
    const handlers *saved; /* of the last one written, if it stores the accumulator */
    /* Banks are classes; 0 is none. */
    uint8_t slot[PROGRAM_SLOTS];        /* the bank that it is in now */
    uint8_t busy[PROGRAM_LENGTH];       /* banks that hold something at an instruction: bits */
    uint8_t kept[PROGRAM_LENGTH];       /* the bank that the instruction, a SAVE, leaves its value in */
    uint8_t fetched[PROGRAM_LENGTH][3]; /* the bank that an operand, an input, is read from; */
    bool first[PROGRAM_LENGTH][3];      /* and is put in before that */
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
    case FROM_SLOT:
        if (w->slot[s.index]) return (place){ w->slot[s.index], 0 };
        return (place){ CLASS_M, (uint8_t)(SLOTS + s.index) };
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

/* Puts an operand into a bank. */
static void keep(writer *w, int bank, place from)
{
#ifdef TILE_BANKS
    const handlers *h = &keep_ends[bank - CLASS_B][from.class];
    write(w, h)->from[0] = from.value;
#else
    (void)w, (void)bank, (void)from;
#endif
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
        if (p[k].class == CLASS_M) continue;
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

/* An operand, which may be an input that is first put into a bank. */
static place operand_of(writer *w, int at, int k)
{
    const source s = w->p->code[at].arg[k];
    const uint8_t bank = w->fetched[at][k];
    if (!bank) return place_of(w, s);
    if (w->first[at][k]) keep(w, bank, place_of(w, s));
    return (place){ bank, 0 };
}

/* One element of memory twice is loaded once; not by folds, which leave the accumulator as it is. */
static void share(writer *w, int op, place p[3])
{
    const int arity = op_infos[op].kind == KIND_MAP ? op_infos[op].arity : 0;
    const bool twice = arity > 1 && p[0].class == CLASS_M && p[1].class == CLASS_M && p[0].value == p[1].value;
    if (!twice || (arity > 2 && p[2].class == CLASS_A)) return;
    load(w, p[0]);
    p[0].class = p[1].class = CLASS_A;
}

static void compute(writer *w, int at)
{
    const instruction *i = &w->p->code[at];
    place p[3] = { { 0 } };
    for (int k = 0; k < 3 && k < op_infos[i->op].arity; k++) p[k] = operand_of(w, at, k);
    share(w, i->op, p);
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

static void save_slot(writer *w, int at)
{
    const int slot = w->p->code[at].arg[0].index;
    w->slot[slot] = w->kept[at];
    if (w->kept[at]) keep(w, w->kept[at], (place){ CLASS_A, 0 });
    else save(w, move_ends[CLASS_A], SLOTS + slot);
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

/* ---- what lives in banks ---- */

/* May this operator read a bank? */
static bool reads_banks(int op)
{
    const place two[3] = { { CLASS_A }, { CLASS_B } }, three[3] = { { CLASS_A }, { CLASS_A }, { CLASS_B } };
    if (op == OP_LOAD) return true;
    if (op_infos[op].kind != KIND_MAP) return false;
    return op_infos[op].arity == 1 || ends_of(op, op_infos[op].arity == 2 ? two : three);
}

/* Does instruction `at` read it, as operand k? */
static bool reads_as(const program *p, int at, int k, int kind, int index)
{
    const instruction *i = &p->code[at];
    if (k >= op_infos[i->op].arity || i->op == OP_SAVE || i->op == OP_STORE) return false;
    return i->arg[k].kind == kind && i->arg[k].index == index;
}

static bool reads(const program *p, int at, int kind, int index)
{
    return reads_as(p, at, 0, kind, index) || reads_as(p, at, 1, kind, index) || reads_as(p, at, 2, kind, index);
}

/* Takes a bank that is free from `from` to `to`, or 0. */
static uint8_t take_bank(writer *w, int from, int to)
{
    uint8_t taken = 0;
    for (int i = from; i <= to; i++) taken |= w->busy[i];
    if (taken == 3) return 0;
    for (int i = from; i <= to; i++) w->busy[i] |= taken & 1 ? 2 : 1;
    return taken & 1 ? CLASS_C : CLASS_B;
}

/* A slot, from the SAVE at `at` to the last reading before the next one. */
static void bank_slot(writer *w, int at)
{
    const int slot = w->p->code[at].arg[0].index;
    int last = at;
    for (int i = at + 1; i < w->p->length; i++) {
        if (w->p->code[i].op == OP_SAVE && w->p->code[i].arg[0].index == slot) break;
        if (!reads(w->p, i, FROM_SLOT, slot)) continue;
        if (!reads_banks(w->p->code[i].op)) return;
        last = i;
    }
    w->kept[at] = take_bank(w, at, last);
}

/* An input that is read by several instructions: from `at`, the first, as far as a bank is free. */
static int bank_input(writer *w, int at, int input)
{
    const program *p = w->p;
    int last = at;
    for (int i = at; i < p->length && w->busy[i] != 3; i++)
        if (reads(p, i, FROM_INPUT, input)) {
            if (!reads_banks(p->code[i].op)) break;
            last = i;
        }
    const uint8_t bank = last > at ? take_bank(w, at, last) : 0;
    bool first = true;
    for (int i = at; i <= last && bank; i++)
        for (int k = 0; k < 3; k++) {
            if (!reads_as(p, i, k, FROM_INPUT, input)) continue;
            w->fetched[i][k] = bank, w->first[i][k] = first;
            first = false;
        }
    return last;
}

/* Functions leave nothing in them. */
static void fill_banks(writer *w)
{
    const program *p = w->p;
    for (int i = 0; i < p->length; i++)
        if (op_infos[p->code[i].op].kind == KIND_MAP && tile_loops[p->code[i].op].tile) w->busy[i] = 3;
    for (int i = 0; i < p->length; i++)
        if (p->code[i].op == OP_SAVE) bank_slot(w, i);
    for (int input = 0; input < p->inputs; input++)
        for (int i = 0; i < p->length && !(w->singles >> input & 1); i++)
            if (reads(p, i, FROM_INPUT, input)) i = bank_input(w, i, input);
}

void tile_make(code *c, const program *p, uint32_t singles, uint32_t streams)
{
    writer w = { .c = c, .p = p, .singles = singles, .streams = streams };
    c->length = 0, c->slots = p->slots, c->folds = p->folds, c->places = false, c->singles = singles, c->streams = streams != 0,
    c->seconds = 0;
    c->inputs = p->inputs, c->numbers = p->numbers, c->outputs = p->outputs;
    if (BANKED) fill_banks(&w);
    for (int i = 0; i < p->length; i++) {
        const int op = p->code[i].op;
        if (op == OP_STORE) store(&w, p->code[i].arg[0].index);
        else if (op == OP_SAVE) save_slot(&w, i);
        else if (op == OP_LOAD) load(&w, operand_of(&w, i, 0));
        else compute(&w, i);
    }
    close(&w);
}

void tile_make_fused(code *c, int kernel, int inputs, uint32_t singles)
{
    const handlers *h = &fused_rows[kernel - KERNEL_PROGRAM]
                                   [FORM(CLASS_M + (singles & 1), CLASS_M + (singles >> 1 & 1), CLASS_M + (singles >> 2 & 1))];
    const uint8_t y = inputs > 1, z = inputs > 2 ? 2 : 0;
    *c = (code){
        .length = 1, .inputs = (uint8_t)inputs, .numbers = 2, .outputs = 1, .singles = singles, .seconds = SECONDS_PER_FUNCTION
    };
    c->run[0] = (ins){ .tile = h->tile, .tail = h->tail, .from = { INPUTS, INPUTS + y, INPUTS + z }, .to = OUTPUTS };
}

/* ---- running ---- */

static void slots_on(const code *c, T *value[VALUES], int64_t by)
{
    FEW (k, c->slots) value[SLOTS + k] -= by;
}

/* The memory of the machine's own values: addresses less the offset at which the handlers read them. */
static void place_slots(const code *c, T *value[VALUES], T *room)
{
    value[SCRATCH] = room;
    FEW (k, c->slots) value[SLOTS + k] = room + (3 + k) * TILE;
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
    for (int k = 0; k < c->outputs; k++) out[k] = value[OUTPUTS + k], value[OUTPUTS + k] = room + k * TILE - from;
    run_tile(c, value, from);
    for (int k = 0; k < c->inputs; k++) value[INPUTS + k] = in[k];
    for (int k = 0; k < c->outputs; k++) {
        value[OUTPUTS + k] = out[k];
        unpad(out[k] + from, room + k * TILE, n - from);
    }
}

#define PADDING 100 /* what the copies cost, in handlers of one register */

/* Is a tail of n elements slower register by register than as a tile with its copies? */
static bool worth_padding(const code *c, int64_t n) { return !c->folds && (n + LANES - 1) / LANES * (c->length + 2) > PADDING; }

/* May elements be computed twice? No output is an input. */
static bool may_repeat(const code *c, T *const value[VALUES])
{
    bool may = !c->folds;
    for (int o = 0; o < c->outputs; o++)
        for (int i = 0; i < c->inputs; i++) may &= value[OUTPUTS + o] != value[INPUTS + i];
    return may;
}

static void run_row(const code *c, T *value[VALUES], int64_t n, T *room)
{
    int64_t i = 0;
    place_slots(c, value, room);
    for (; i + TILE <= n; i += TILE, slots_on(c, value, TILE)) run_tile(c, value, i);
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
    if (c->places) *value[ROW] += 1;
}

static __attribute__((noinline)) void run_rows(const code *c, T *value[VALUES], int64_t rows, int64_t n, const int64_t down[ROW])
{
    T room[(VALUES - SLOTS + 2 + PROGRAM_INPUTS + PROGRAM_OUTPUTS) * TILE] __attribute__((aligned(64)));
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

void tile_run(const code *c, T *value[VALUES], int64_t rows, int64_t n, const int64_t down[ROW])
{
    if (rows == 1 && n < TILE && !c->streams && !worth_padding(c, n)) run_short(c, value, n);
    else run_rows(c, value, rows, n, down);
}
