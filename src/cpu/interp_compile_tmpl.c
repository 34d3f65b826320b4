/* interp_compile_tmpl.c - how a program becomes a chain of handlers.
 *
 * A value that is needed again is kept in a bank of registers while one is free, else in memory; an input that several instructions read
 * is put into a bank by the first. An instruction that stores what it made is one handler. */
#include "interp_functions.h"
#include "interp_table.h"
#include "threads.h"

#define table NAME(tile_table)

typedef struct writer {
    code *c;
    const program *p;
    uint32_t singles, streams;
    const handlers
        *ends; /* of the last one written, if it leaves the accumulator and stores it nowhere yet */
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
    case FROM_INPUT:
        return (place){ w->singles >> s.index & 1 ? CLASS_S : CLASS_M, (uint8_t)(INPUTS + s.index) };
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
    write(w, &table.move[from.class][NEXT_END])->from[0] = from.value;
    w->ends = table.move[from.class];
}

/* Puts an operand into a bank. */
static void keep(writer *w, int bank, place from)
{
    write(w, &table.keep[bank - CLASS_B][from.class])->from[0] = from.value;
}

/* The accumulator within a type. */
static void wrap(writer *w, int type)
{
    write(w, &table.wrap[type][NEXT_END]);
    w->ends = table.wrap[type];
    w->c->seconds += SECONDS_PER_ROUNDED;
}

static const handlers *ends_of(int op, const place p[3])
{
    const int form = FORM(p[0].class, p[1].class, p[2].class);
    return form < table.row[op].forms && table.row[op].form[form][NEXT_END].tile ? table.row[op].form[form]
                                                                                 : NULL;
}

static bool needs_acc(int op, const place p[3])
{
    bool needs = op_infos[op].kind == KIND_REDUCE; /* which leaves it as it is */
    for (int k = 0; k < op_infos[op].arity; k++) needs |= p[k].class == CLASS_A;
    return needs;
}

/* Loads one operand, so that there is a form of the rest. */
static const handlers *load_one(writer *w, int op, place p[3])
{
    for (int k = 0; k < op_infos[op].arity; k++) {
        place other[3] = { p[0], p[1], p[2] };
        other[k].class = CLASS_A;
        const handlers *h = ends_of(op, other);
        if (!h) continue;
        load(w, p[k]), p[k].class = CLASS_A;
        return h;
    }
    return NULL;
}

/* Puts all operands into memory: of that form all rows are. */
static const handlers *spill(writer *w, int op, place p[3])
{
    const place kept = { CLASS_M, SPARES };
    save(w, table.move[CLASS_A], SPARES);
    for (int k = 0; k < op_infos[op].arity; k++) {
        if (p[k].class == CLASS_A) p[k] = kept;
        if (p[k].class == CLASS_M) continue;
        load(w, p[k]), save(w, table.move[CLASS_A], SPARES + 1 + k);
        p[k] = (place){ CLASS_M, (uint8_t)(SPARES + 1 + k) };
    }
    if (op_infos[op].kind == KIND_REDUCE) load(w, kept);
    return ends_of(op, p);
}

/* The handlers for these operands, or for them elsewhere. */
static const handlers *handlers_for(writer *w, int op, place p[3])
{
    const handlers *h = ends_of(op, p);
    if (!h && !needs_acc(op, p)) h = load_one(w, op, p);
    return h ? h : spill(w, op, p);
}

static void put_in_order(int op, place p[3])
{
    if (!(op_infos[op].flags & DUET_COMMUTES) || op_infos[op].kind != KIND_MAP || p[0].class <= p[1].class)
        return;
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

/* One element of memory twice is loaded once; not by reductions, which leave the accumulator as it is. */
static void share(writer *w, int op, place p[3])
{
    const int arity = op_infos[op].kind == KIND_MAP ? op_infos[op].arity : 0;
    const bool twice =
        arity > 1 && p[0].class == CLASS_M && p[1].class == CLASS_M && p[0].value == p[1].value;
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
    const handlers *h = handlers_for(w, i->op, p);
    ins *made = write(w, &h[NEXT_END]);
    for (int k = 0; k < 3; k++) made->from[k] = p[k].value;
    if (op_infos[i->op].kind == KIND_REDUCE) made->to = (uint8_t)(OUTPUTS + i->arg[2].index);
    else if (h[SAVE_END].tile) w->ends = h;
    w->c->seconds += table.row[i->op].seconds;
    w->c->places |= (op_infos[i->op].flags & OP_GIVES_INDEX) != 0;
}

static void save_slot(writer *w, int at)
{
    const int slot = w->p->code[at].arg[0].index;
    w->slot[slot] = w->kept[at];
    if (w->kept[at]) keep(w, w->kept[at], (place){ CLASS_A, 0 });
    else save(w, table.move[CLASS_A], SLOTS + slot);
}

static void store(writer *w, int output)
{
    const bool stream = w->streams >> output & 1;
    if (stream) w->ends = NULL;
    save(w, stream ? table.stream : table.move[CLASS_A], OUTPUTS + output);
}

/* The last instruction returns. */
static void close(writer *w)
{
    if (w->saved) end_in(&w->c->run[w->c->length - 1], &w->saved[LAST_END]);
    else write(w, &table.stop);
}

/* ---- what lives in banks ---- */

/* May this operator read a bank? */
static bool reads_banks(int op)
{
    const place two[3] = { { CLASS_A }, { CLASS_B } }, three[3] = { { CLASS_A }, { CLASS_A }, { CLASS_B } };
    if (op == OP_LOAD || op == OP_WRAP) return true;
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
    return reads_as(p, at, 0, kind, index) || reads_as(p, at, 1, kind, index) ||
           reads_as(p, at, 2, kind, index);
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
    c->length = 0, c->slots = p->slots, c->reductions = p->reductions, c->places = false,
    c->singles = singles, c->streams = streams != 0, c->seconds = 0;
    c->inputs = p->inputs, c->numbers = p->numbers, c->outputs = p->outputs;
    if (table.banked) fill_banks(&w);
    for (int i = 0; i < p->length; i++) {
        const int op = p->code[i].op;
        if (op == OP_STORE) store(&w, p->code[i].arg[0].index);
        else if (op == OP_SAVE) save_slot(&w, i);
        else if (op == OP_LOAD || op == OP_WRAP) load(&w, operand_of(&w, i, 0));
        else compute(&w, i);
        if (op == OP_WRAP) wrap(&w, p->code[i].arg[1].index);
    }
    close(&w);
}

/* Operands that a row has not are its first one. */
void tile_make_fused(code *c, int kernel, int inputs, uint32_t singles)
{
    const uint8_t y = inputs > 1, z = inputs > 2 ? 2 : 0;
    const handlers *h =
        &table.fused[kernel - KERNEL_PROGRAM][FORM(CLASS_M + (singles & 1), CLASS_M + (singles >> y & 1),
                                                   CLASS_M + (singles >> z & 1))];
    *c = (code){ .length = 1,
                 .inputs = (uint8_t)inputs,
                 .numbers = 2,
                 .outputs = 1,
                 .singles = singles,
                 .seconds = SECONDS_PER_FUNCTION };
    c->run[0] =
        (ins){ .tile = h->tile, .tail = h->tail, .from = { INPUTS, INPUTS + y, INPUTS + z }, .to = OUTPUTS };
}
