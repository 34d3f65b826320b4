/* interp_compile_tmpl.c - compiles a program into a chain of handlers (interp.h). Template.
 *
 * A value that is used again stays in a bank of registers if one is free, otherwise in memory. An
 * input that several instructions read is loaded into a bank by the first of them. One handler
 * computes a value and stores it. */
#include "interp_functions.h"
#include "interp_table.h"
#include "simd_registers.h"
#include "threads.h"

#define handler_table NAME(interp_table)

typedef struct compiler {
    interp_code *c;
    const program *p;
    uint32_t scalars, streams;
    /* Variants of the last handler emitted. `pending`: if it leaves a value in the accumulator that
     * is not stored yet. `stored`: if it stores the accumulator. */
    const handler *pending, *stored;
    /* Register banks are numbered by their operand class; 0 means none. */
    uint8_t slot[PROGRAM_SLOTS];           /* bank that holds the slot now */
    uint8_t busy[PROGRAM_LENGTH];          /* bit mask of the banks in use at each instruction */
    uint8_t save_bank[PROGRAM_LENGTH];     /* bank into which an OP_SAVE stores */
    uint8_t input_bank[PROGRAM_LENGTH][3]; /* bank that holds the operand, an input */
    bool first[PROGRAM_LENGTH][3];         /* whether to load that bank first */
} compiler;

/* An operand: its class, and its index in the table of addresses. */
typedef struct operand_ref {
    uint8_t class, value;
} operand_ref;

static operand_ref reference_to(const compiler *w, source s)
{
    switch (s.kind) {
    case FROM_INPUT:
        return (operand_ref){ w->scalars >> s.index & 1 ? CLASS_S : CLASS_M, (uint8_t)(INPUTS + s.index) };
    case FROM_NUMBER: return (operand_ref){ CLASS_S, (uint8_t)(NUMBERS + s.index) };
    case FROM_SLOT:
        if (w->slot[s.index]) return (operand_ref){ w->slot[s.index], 0 };
        return (operand_ref){ CLASS_M, (uint8_t)(SLOTS + s.index) };
    default: return (operand_ref){ CLASS_A, 0 };
    }
}

static interp_ins *emit(compiler *w, const handler *h)
{
    interp_ins *i = &w->c->run[w->c->length++];
    *i = (interp_ins){ .tile = h->tile, .tail = h->tail };
    w->pending = w->stored = NULL;
    return i;
}

static void set_variant(interp_ins *i, const handler *h)
{
    i->tile = h->tile;
    i->tail = h->tail;
}

/* Stores the accumulator. The handler that computed it does so if it has such a variant. */
static void emit_save(compiler *w, const handler *move, int to)
{
    const handler *h = w->pending ? w->pending : move;
    interp_ins *i = w->pending ? &w->c->run[w->c->length - 1] : emit(w, &h[STORE_CONTINUE]);
    set_variant(i, &h[STORE_CONTINUE]);
    i->to = (uint8_t)to;
    w->pending = NULL;
    w->stored = h;
    if (to >= SLOTS && to - SLOTS >= w->c->slots) w->c->slots = (uint8_t)(to - SLOTS + 1);
}

static void emit_load(compiler *w, operand_ref from)
{
    if (from.class == CLASS_A) return;
    emit(w, &handler_table.move[from.class][CONTINUE])->from[0] = from.value;
    w->pending = handler_table.move[from.class];
}

/* Loads an operand into a bank. */
static void emit_keep(compiler *w, int bank, operand_ref from)
{
    emit(w, &handler_table.keep[bank - CLASS_B][from.class])->from[0] = from.value;
}

/* Wraps the accumulator to an integer type. */
static void emit_wrap(compiler *w, int type)
{
    emit(w, &handler_table.wrap[type][CONTINUE]);
    w->pending = handler_table.wrap[type];
    w->c->seconds += SECONDS_PER_ROUNDED;
}

static const handler *find_variants(int op, const operand_ref p[3])
{
    const int form = FORM(p[0].class, p[1].class, p[2].class);
    const interp_row *row = &handler_table.row[op];
    return form < row->forms && row->form[form][CONTINUE].tile ? row->form[form] : NULL;
}

static bool needs_acc(int op, const operand_ref p[3])
{
    bool needs = op_infos[op].kind == KIND_REDUCE; /* a reduction preserves the accumulator */
    for (int k = 0; k < op_infos[op].arity; k++) needs |= p[k].class == CLASS_A;
    return needs;
}

/* Loads one operand into the accumulator so that a handler exists for the new form. */
static const handler *load_one(compiler *w, int op, operand_ref p[3])
{
    for (int k = 0; k < op_infos[op].arity; k++) {
        operand_ref other[3] = { p[0], p[1], p[2] };
        other[k].class = CLASS_A;
        const handler *h = find_variants(op, other);
        if (!h) continue;
        emit_load(w, p[k]);
        p[k].class = CLASS_A;
        return h;
    }
    return NULL;
}

/* Stores all operands in memory. Every operator has a handler for that form. */
static const handler *spill(compiler *w, int op, operand_ref p[3])
{
    const operand_ref spilled = { CLASS_M, SPARES };
    emit_save(w, handler_table.move[CLASS_A], SPARES);
    for (int k = 0; k < op_infos[op].arity; k++) {
        if (p[k].class == CLASS_A) p[k] = spilled;
        if (p[k].class == CLASS_M) continue;
        emit_load(w, p[k]);
        emit_save(w, handler_table.move[CLASS_A], SPARES + 1 + k);
        p[k] = (operand_ref){ CLASS_M, (uint8_t)(SPARES + 1 + k) };
    }
    if (op_infos[op].kind == KIND_REDUCE) emit_load(w, spilled);
    return find_variants(op, p);
}

/* Chooses a handler for the operands. It moves operands if none exists for the present form. */
static const handler *choose_handler(compiler *w, int op, operand_ref p[3])
{
    const handler *h = find_variants(op, p);
    if (!h && !needs_acc(op, p)) h = load_one(w, op, p);
    if (h) return h;
    return spill(w, op, p);
}

static void order_operands(int op, operand_ref p[3])
{
    if (!(op_infos[op].flags & DUET_COMMUTES) || op_infos[op].kind != KIND_MAP || p[0].class <= p[1].class)
        return;
    const operand_ref first = p[0];
    p[0] = p[1];
    p[1] = first;
}

/* Returns operand k of instruction `at`. Loads the bank of an input first if this is its first use. */
static operand_ref operand_of(compiler *w, int at, int k)
{
    const source s = w->p->code[at].arg[k];
    const uint8_t bank = w->input_bank[at][k];
    if (!bank) return reference_to(w, s);
    if (w->first[at][k]) emit_keep(w, bank, reference_to(w, s));
    return (operand_ref){ bank, 0 };
}

/* Loads an operand only once if the operator reads the same memory twice. Not for reductions, which
 * must preserve the accumulator. */
static void load_repeated(compiler *w, int op, operand_ref p[3])
{
    const int arity = op_infos[op].kind == KIND_MAP ? op_infos[op].arity : 0;
    const bool twice =
        arity > 1 && p[0].class == CLASS_M && p[1].class == CLASS_M && p[0].value == p[1].value;
    if (!twice || (arity > 2 && p[2].class == CLASS_A)) return;
    emit_load(w, p[0]);
    p[0].class = p[1].class = CLASS_A;
}

static void emit_operator(compiler *w, int at)
{
    const instruction *i = &w->p->code[at];
    operand_ref p[3] = { { 0 } };
    for (int k = 0; k < 3 && k < op_infos[i->op].arity; k++) p[k] = operand_of(w, at, k);
    load_repeated(w, i->op, p);
    order_operands(i->op, p);
    const handler *h = choose_handler(w, i->op, p);
    interp_ins *ins = emit(w, &h[CONTINUE]);
    for (int k = 0; k < 3; k++) ins->from[k] = p[k].value;
    if (op_infos[i->op].kind == KIND_REDUCE) ins->to = (uint8_t)(OUTPUTS + i->arg[2].index);
    else if (h[STORE_CONTINUE].tile) w->pending = h;
    w->c->seconds += handler_table.row[i->op].seconds;
    w->c->counts_rows |= (op_infos[i->op].flags & OP_GIVES_INDEX) != 0;
}

static void emit_slot(compiler *w, int at)
{
    const int slot = w->p->code[at].arg[0].index;
    w->slot[slot] = w->save_bank[at];
    if (w->save_bank[at]) emit_keep(w, w->save_bank[at], (operand_ref){ CLASS_A, 0 });
    else emit_save(w, handler_table.move[CLASS_A], SLOTS + slot);
}

static void emit_store(compiler *w, int output)
{
    const bool stream = w->streams >> output & 1;
    if (stream) w->pending = NULL;
    emit_save(w, stream ? handler_table.stream : handler_table.move[CLASS_A], OUTPUTS + output);
}

/* Makes the chain return. */
static void emit_return(compiler *w)
{
    if (w->stored) set_variant(&w->c->run[w->c->length - 1], &w->stored[STORE_RETURN]);
    else emit(w, &handler_table.stop);
}

/* ---- allocation of register banks ---- */

/* Does the operator have handlers that read a bank? */
static bool reads_banks(int op)
{
    const operand_ref two[3] = { { CLASS_A }, { CLASS_B } },
                      three[3] = { { CLASS_A }, { CLASS_A }, { CLASS_B } };
    if (op == OP_LOAD || op == OP_WRAP) return true;
    if (op_infos[op].kind != KIND_MAP) return false;
    return op_infos[op].arity == 1 || find_variants(op, op_infos[op].arity == 2 ? two : three);
}

/* Does operand k of instruction `at` read this source? */
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

/* Reserves a bank that is free for instructions from .. to. Returns 0 if there is none. */
static uint8_t take_bank(compiler *w, int from, int to)
{
    uint8_t taken = 0;
    for (int i = from; i <= to; i++) taken |= w->busy[i];
    if (taken == 3) return 0;
    for (int i = from; i <= to; i++) w->busy[i] |= taken & 1 ? 2 : 1;
    return taken & 1 ? CLASS_C : CLASS_B;
}

/* Assigns a bank to a slot, from the OP_SAVE at `at` to its last use before the next OP_SAVE. */
static void bank_slot(compiler *w, int at)
{
    const int slot = w->p->code[at].arg[0].index;
    int last = at;
    for (int i = at + 1; i < w->p->length; i++) {
        if (w->p->code[i].op == OP_SAVE && w->p->code[i].arg[0].index == slot) break;
        if (!reads(w->p, i, FROM_SLOT, slot)) continue;
        if (!reads_banks(w->p->code[i].op)) return;
        last = i;
    }
    w->save_bank[at] = take_bank(w, at, last);
}

/* Assigns a bank to an input, from its first use at `at` as far as a bank is free. Returns the last
 * instruction that reads it from the bank. */
static int bank_input(compiler *w, int at, int input)
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
            w->input_bank[i][k] = bank;
            w->first[i][k] = first;
            first = false;
        }
    return last;
}

/* Functions are calls, which overwrite both banks. */
static void fill_banks(compiler *w)
{
    const program *p = w->p;
    for (int i = 0; i < p->length; i++)
        if (op_infos[p->code[i].op].kind == KIND_MAP && interp_functions[p->code[i].op].tile) w->busy[i] = 3;
    for (int i = 0; i < p->length; i++)
        if (p->code[i].op == OP_SAVE) bank_slot(w, i);
    for (int input = 0; input < p->inputs; input++)
        for (int i = 0; i < p->length && !(w->scalars >> input & 1); i++)
            if (reads(p, i, FROM_INPUT, input)) i = bank_input(w, i, input);
}

void interp_compile(interp_code *c, const program *p, uint32_t scalars, uint32_t streams)
{
    compiler w = { .c = c, .p = p, .scalars = scalars, .streams = streams };
    c->length = 0;
    c->slots = p->slots;
    c->reductions = p->reductions;
    c->counts_rows = false;
    c->large = false;
    c->scalars = scalars;
    c->streams = streams;
    c->generated = NULL;
    c->seconds = 0;
    c->inputs = p->inputs;
    c->numbers = p->numbers;
    c->outputs = p->outputs;
    if (handler_table.banked) fill_banks(&w);
    for (int i = 0; i < p->length; i++) {
        const int op = p->code[i].op;
        if (op == OP_STORE) emit_store(&w, p->code[i].arg[0].index);
        else if (op == OP_SAVE) emit_slot(&w, i);
        else if (op == OP_LOAD || op == OP_WRAP) emit_load(&w, operand_of(&w, i, 0));
        else emit_operator(&w, i);
        if (op == OP_WRAP) emit_wrap(&w, p->code[i].arg[1].index);
    }
    emit_return(&w);
}

void interp_generate(interp_code *c, const program *p, generated_use *u, double seconds, int bits)
{
#if VECTOR_BYTES >= 32
    const generated_form form = { .scalars = c->scalars,
                                  .streams = c->streams,
                                  .type = OWN_TYPE,
                                  .wide = VECTOR_BYTES == 64,
                                  .inputs = INPUTS,
                                  .numbers = NUMBERS,
                                  .outputs = OUTPUTS,
                                  .row = ROW,
                                  .part = INTERP_PART,
                                  .bits = (uint8_t)bits,
                                  .functions = interp_functions };
    c->generated = generated_for(u, p, &form, seconds);
#endif
}
