/* encode.c - translates programs into the codes of the GPU interpreter: one code for one operator
 * or for a pair of operators. */
#include "dtype.h"
#include "interpreter.h"
#include <string.h>

typedef struct encoder {
    interp_program *m;
    const program *p;
    const double *num;
    duet_dtype type; /* the type of the program */
    bool paired;     /* the last instruction is a pair without its second step */
    const char *why; /* why the encoding failed */
    interp_instruction nowhere;
    /* number of rows; the spare row; the row of a slot, or ROW_NONE while it has none */
    uint8_t rows, spare, of_slot[PROGRAM_SLOTS];
    /* the last instruction that reads an input; PROGRAM_LENGTH once a slot has its row */
    int8_t last_read[PROGRAM_INPUTS];
    int8_t at; /* number of the instruction being encoded */
} encoder;

/* An operand: a row, or the bits of a number. */
typedef struct operand_code {
    uint8_t row;
    uint64_t bits;
} operand_code;

static bool is_integer(const encoder *e) { return e->type == DUET_I64 || e->type == DUET_U64; }

/* Numbers of integer programs are bits already. */
static uint64_t bits_of(const encoder *e, double x)
{
    uint64_t b = 0;
    float narrow = (float)x;
    if (e->type == DUET_F32) memcpy(&b, &narrow, sizeof narrow);
    else memcpy(&b, &x, sizeof x);
    return b;
}

bool op_wraps_to(int type)
{
    return type < DUET_DTYPE_COUNT && (type == DUET_BOOL || dtype_is_integer((duet_dtype)type));
}

static uint64_t wrap_of(int type)
{
    if (type == DUET_BOOL) return WRAP_BOOL;
    return 64 - 8 * dtypes[type].bytes + (dtypes[type].kind == TYPE_SIGNED ? WRAP_SIGNED : 0);
}

static void find_last_reads(encoder *e)
{
    for (int i = 0; i < e->p->length; i++)
        for (int k = 0; k < 3; k++) {
            const source s = e->p->code[i].arg[k];
            if (s.kind == FROM_INPUT) e->last_read[s.index] = (int8_t)i;
        }
}

/* Returns a row for a new value: the row of an input that no later instruction reads, unless its
 * elements take part in a reduction; otherwise a new row. */
static uint8_t free_row(encoder *e)
{
    for (uint8_t k = 0; k < e->p->inputs && !e->p->reductions; k++)
        if (e->last_read[k] < e->at) {
            e->last_read[k] = PROGRAM_LENGTH;
            return k;
        }
    return e->rows++;
}

static uint8_t slot_row(encoder *e, int slot)
{
    if (e->of_slot[slot] == ROW_NONE) e->of_slot[slot] = free_row(e);
    return e->of_slot[slot];
}

static uint8_t spare_row(encoder *e)
{
    if (e->spare == ROW_NONE) e->spare = free_row(e);
    return e->spare;
}

static operand_code operand_of(encoder *e, source s)
{
    switch (s.kind) {
    case FROM_INPUT: return (operand_code){ s.index, 0 };
    case FROM_SLOT: return (operand_code){ slot_row(e, s.index), 0 };
    case FROM_NUMBER: return (operand_code){ ROW_NUMBER, e->num ? bits_of(e, e->num[s.index]) : 0 };
    default:
        return (operand_code){ spare_row(e),
                               0 }; /* the accumulator a second time: encode_map has saved it in this row */
    }
}

static interp_instruction *emit(encoder *e, int code)
{
    if (e->m->steps == INTERP_LENGTH) {
        e->why = "the program has too many instructions";
        return &e->nowhere;
    }
    interp_instruction *i = &e->m->code[e->m->length++];
    e->m->steps++;
    *i = (interp_instruction){ .code = (uint16_t)code, .x = ROW_NONE, .y = ROW_NONE };
    e->paired = false;
    return i;
}

/* x: row of the operand, or ROW_NONE; s: its number */
static void emit_step(encoder *e, enum interp_step step, uint8_t x, uint64_t s)
{
    if (e->paired && e->m->steps < INTERP_LENGTH) {
        e->m->steps++;
        interp_instruction *i = &e->m->code[e->m->length - 1];
        i->code = (uint16_t)(i->code + step);
        i->y = x;
        i->r = s;
        e->paired = false;
    } else {
        interp_instruction *i = emit(e, CODE_PAIR(step, STEP_NONE));
        i->x = x;
        i->s = s;
        e->paired = true;
    }
}

static void emit_load(encoder *e, operand_code x, int type)
{
    if (x.row == ROW_NUMBER) emit(e, CODE_LOADS)->s = x.bits;
    else if (e->m->length == 0 && e->m->first == ROW_NONE) e->m->first = x.row;
    else if (!dtype_is_f32_or_f64(type)) emit(e, CODE_LOAD)->x = x.row;
    else emit_step(e, STEP_LOAD, x.row, 0);
}

/* Emits a step that has one form for a row and one for a number. */
static bool emit_either(encoder *e, enum interp_step with_row, enum interp_step with_number, operand_code x)
{
    const bool number = x.row == ROW_NUMBER;
    if (number && with_number == STEP_NONE) return false;
    emit_step(e, number ? with_number : with_row, number ? ROW_NONE : x.row, x.bits);
    return true;
}

/* Lets the previous instruction save its result if it can: that needs no dispatch of its own. */
static bool may_save(const interp_instruction *i)
{
    return !i->saves && i->code != CODE_SAVE && i->code != CODE_STORE && i->code != CODE_REDUCE;
}

static void emit_save(encoder *e, uint8_t row)
{
    interp_instruction *before = e->m->length ? &e->m->code[e->m->length - 1] : NULL;
    if (before && may_save(before)) {
        before->saves = true;
        before->to = row;
        e->paired = false;
    } else emit(e, CODE_SAVE)->x = row;
}

static bool is_number(source s) { return s.kind == FROM_NUMBER; }

/* Chooses the operand to start with when no operand is in the accumulator: one that leaves a single
 * step. */
static int first_operand(const instruction *i)
{
    if (i->op == OP_fma) return is_number(i->arg[2]) ? is_number(i->arg[0]) : 2;
    return op_infos[i->op].arity > 1 && op_infos[i->op].flags & DUET_COMMUTES && is_number(i->arg[0]);
}

/* Returns the operand that is in the accumulator when i runs. Other operands that are also there
 * are saved to rows. */
static int settle_accumulator(encoder *e, const instruction *i)
{
    int at = -1, times = 0;
    for (int k = op_infos[i->op].arity; k-- > 0;)
        if (i->arg[k].kind == FROM_ACC) {
            at = k;
            times++;
        }
    if (times > 1) emit_save(e, spare_row(e));
    if (times > 0) return at;
    at = first_operand(i);
    emit_load(e, operand_of(e, i->arg[at]), i->type);
    return at;
}

static void emit_rows(encoder *e, int code, uint8_t x, uint8_t y)
{
    interp_instruction *i = emit(e, code);
    i->x = x;
    i->y = y;
}

static bool as_step(encoder *e, int op, int at, operand_code x, operand_code y)
{
    const bool row_x = x.row != ROW_NUMBER, row_y = y.row != ROW_NUMBER;
    switch (op) {
    case OP_add: return emit_either(e, STEP_ADD, STEP_ADDS, x);
    case OP_mul: return emit_either(e, STEP_MUL, STEP_MULS, x);
    case OP_sub:
        if (at) return emit_either(e, STEP_RSUB, STEP_RSUBS, x);
        return emit_either(e, STEP_SUB, STEP_NONE, x);
    case OP_neg:
        emit_step(e, is_integer(e) ? STEP_RSUBS : STEP_MULS, ROW_NONE, is_integer(e) ? 0 : bits_of(e, -1));
        return true;
    case OP_fma: break;
    default: return false;
    }
    if (!row_x && !row_y) return false;
    if (row_x && row_y) emit_rows(e, at == 2 ? CODE_ADDMUL : CODE_MULADD, x.row, y.row);
    else if (at == 2) emit_step(e, STEP_AXPY, row_x ? x.row : y.row, row_x ? y.bits : x.bits);
    else if (row_x) emit_step(e, STEP_HORNER, x.row, y.bits);
    else emit_step(e, STEP_SCALE, y.row, x.bits);
    return true;
}

/* Does the operator need the kernels with mathematical functions? Integer operators never do. */
static bool is_heavy(int op, duet_dtype type)
{
    static const bool heavy[OPS] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) [OP_##name] = (ulp) > 0.5,
#define DUET_MAP2                                          DUET_MAP1
#define DUET_MAP3                                          DUET_MAP1
#include <duet/ops.def>
    };
    return heavy[op] && dtype_kind(type) == TYPE_FLOAT;
}

static void encode_map(encoder *e, const instruction *i)
{
    const int at = settle_accumulator(e, i), arity = op_infos[i->op].arity;
    operand_code other[2] = { { ROW_NONE, 0 }, { ROW_NONE, 0 } };
    for (int k = 0, n = 0; k < arity; k++)
        if (k != at) other[n++] = operand_of(e, i->arg[k]);
    if (as_step(e, i->op, at, other[0], other[1])) return;
    interp_instruction *c = emit(e, CODE_ROWS + 3 * i->op + at);
    c->x = other[0].row;
    c->s = other[0].bits;
    c->y = other[1].row;
    c->r = other[1].bits;
    e->m->heavy |= is_heavy(i->op, (duet_dtype)i->type);
}

/* Does an instruction from i on read the present value of the accumulator? */
static bool accumulator_lives(const encoder *e, const instruction *i)
{
    for (; i < e->p->code + e->p->length; i++) {
        if (i->op == OP_SAVE || i->op == OP_STORE) return true;
        for (int k = 0; k < op_infos[i->op].arity; k++)
            if (i->arg[k].kind == FROM_ACC) return true;
        if (op_infos[i->op].kind != KIND_REDUCE) return false;
    }
    return false;
}

static bool reads_accumulator(const instruction *i)
{
    return i->arg[0].kind == FROM_ACC || (op_infos[i->op].arity > 1 && i->arg[1].kind == FROM_ACC);
}

static void encode_reduce(encoder *e, const instruction *i)
{
    const bool set_aside = !reads_accumulator(i) && i > e->p->code && accumulator_lives(e, i + 1);
    if (set_aside) emit_save(e, spare_row(e));
    const int at = settle_accumulator(e, i);
    operand_code other = { ROW_NONE, 0 };
    if (op_infos[i->op].arity > 1) other = operand_of(e, i->arg[1 - at]);
    interp_instruction *c = emit(e, CODE_REDUCE);
    c->x = other.row;
    c->s = other.bits;
    c->to = i->arg[2].index;
    c->reduction = i->op;
    if (set_aside) emit_step(e, STEP_LOAD, spare_row(e), 0);
}

static void encode_wrap(encoder *e, const instruction *i)
{
    settle_accumulator(e, i);
    emit(e, CODE_WRAP)->s = wrap_of(i->arg[1].index);
}

static void encode_one(encoder *e, const instruction *i)
{
    switch (i->op) {
    case OP_LOAD:
        if (i->arg[0].kind != FROM_ACC) emit_load(e, operand_of(e, i->arg[0]), i->type);
        return;
    case OP_SAVE: emit_save(e, slot_row(e, i->arg[0].index)); return;
    case OP_STORE: emit(e, CODE_STORE)->to = i->arg[0].index; return;
    case OP_WRAP: encode_wrap(e, i); return;
    default: break;
    }
    if (i->op < OPS && op_infos[i->op].kind == KIND_MAP) encode_map(e, i);
    else if (i->op < OPS && op_infos[i->op].kind == KIND_REDUCE) encode_reduce(e, i);
    else e->why = "the operator is not element-wise";
}

const char *interp_encode(interp_program *m, const program *p, const double *num)
{
    encoder e = {
        .m = m, .p = p, .num = num, .type = (duet_dtype)p->code[0].type, .rows = p->inputs, .spare = ROW_NONE
    };
    memset(e.of_slot, ROW_NONE, sizeof e.of_slot);
    find_last_reads(&e);
    m->length = m->steps = 0;
    m->first = ROW_NONE;
    m->last = 0;
    m->heavy = false;
    for (; e.at < p->length && !e.why; e.at++) encode_one(&e, &p->code[e.at]);
    m->rows = e.rows ? e.rows : 1;
    if (!e.why && m->rows > INTERP_ROWS) e.why = "the program has too many inputs and temporaries";
    if (e.why || p->reductions) return e.why;
    if (!m->length || m->code[m->length - 1].code != CODE_STORE)
        return "the program does not end with a STORE";
    m->last = m->code[--m->length].to;
    return NULL;
}
