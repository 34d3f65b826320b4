/* program_trial.h - random programs of all operators, and the comparison of the interpreter with the
 * machine code that is made at run time: both give the same bits with every instruction set, and write
 * nothing else. */
#ifndef PROGRAM_TRIAL_H
#define PROGRAM_TRIAL_H

#include "cpu_kernels.h"
#include "formula.h"
#include "generated.h"
#include "isas.h"
#include "program_writer.h"
#include "x86_decode.h"

/* The operators of floating-point types, and of integers. */
typedef struct operators {
    int map[OPS], maps, fold[OPS], folds;
} operators;
static operators of[2];

static void list_operators(void)
{
    for (int op = 0; op < OPS; op++)
        for (int k = 0; k < 2; k++) {
            operators *o = &of[k];
            if (!(op_infos[op].flags & (k ? OP_INTEGERS : OP_FLOATS))) continue;
            if (op_infos[op].kind == KIND_MAP) o->map[o->maps++] = op;
            if (op_infos[op].kind == KIND_REDUCE) o->fold[o->folds++] = op;
        }
}

/* The type of an operand. Those of integer programs may be narrower, or not integers. */
static duet_dtype operand_type(duet_dtype type)
{
    static const duet_dtype others[] = { DUET_I8,  DUET_U8,  DUET_I16, DUET_U16,  DUET_I32,
                                         DUET_U32, DUET_I64, DUET_U64, DUET_BOOL, DUET_F32 };
    return has_integers(type) && chance(40) ? others[draw(10)] : type;
}

static int strange_elements(duet_dtype type, int floats) { return has_integers(type) ? 30 : floats; }

/* ---- random programs ---- */

/* Of floating-point types, one in four is any operator; most of those are functions with long code. */
static int any_map(duet_dtype type)
{
    static const int plain[] = { OP_add,  OP_sub,   OP_mul,     OP_div,       OP_fma,   OP_neg,     OP_abs,
                                 OP_sqrt, OP_where, OP_minimum, OP_maximum,   OP_less,  OP_equal,   OP_fma,
                                 OP_add,  OP_mul,   OP_sub,     OP_not_equal, OP_floor, OP_copysign };
    const operators *o = &of[has_integers(type)];
    if (has_integers(type) || chance(25)) return o->map[draw(o->maps)];
    return plain[draw((int)(sizeof plain / sizeof *plain))];
}

/* Ordinary numbers; sometimes zeros of both signs, infinities, NaN, and very large and small ones. */
static void add_rows(trial *t, duet_dtype type, int64_t n, int outs, int ins, int strange)
{
    layout l;
    for (int k = 0; k < outs; k++) {
        layout_dense(&l, operand_type(type), 1, &n);
        add_output(t, l);
    }
    for (int k = 0; k < ins; k++) {
        layout_dense(&l, operand_type(type), 1, &n);
        if (chance(15)) l.stride[0] = 0;
        if (chance(15)) t->s.in[t->s.ins++] = t->s.out[draw(outs)];
        else add_input(t, l, strange_elements(type, strange));
    }
}

static inline void make_maps(trial *t, duet_dtype type)
{
    const int outs = chance(70) ? 1 : 1 + draw(PROGRAM_OUTPUTS),
              ins = 1 + draw(chance(85) ? 4 : PROGRAM_INPUTS);
    add_rows(t, type, 1 + draw(chance(80) ? 90 : 700), outs, ins, chance(60) ? 0 : 5);
    for (int k = draw(chance(90) ? 5 : PROGRAM_NUMBERS); k-- >= 0;) add_number(t, any_number(type, 3));
    writer w = { .s = &t->s, .p = &t->code, .type = type };
    t->code =
        (program){ .inputs = t->s.ins, .numbers = t->s.nums, .slots = PROGRAM_SLOTS, .outputs = t->s.outs };
    for (int o = 0; o < outs; o++) {
        write_maps(&w, (chance(10) ? PROGRAM_LENGTH - 8 : 13) / outs, any_map);
        write_one(&w, OP_STORE, o);
    }
}

/* Reductions over the last axis, whose lanes are those of adjacent elements, or of adjacent results. */
static inline void make_reductions(trial *t, duet_dtype type)
{
    const int outs = chance(70) ? 1 : 1 + draw(PROGRAM_OUTPUTS), ins = 1 + draw(4);
    const int64_t size[2] = { 1 + draw(chance(70) ? 5 : 140), 1 + draw(chance(70) ? 300 : 3000) };
    int ops[PROGRAM_OUTPUTS];
    const operators *known = &of[has_integers(type)];
    for (int k = 0; k < outs; k++) {
        ops[k] = known->fold[draw(known->folds)];
        layout l = { .rank = 2 };
        l.type = op_infos[ops[k]].flags & OP_GIVES_INDEX ? DUET_I64 : operand_type(type);
        l.size[0] = size[0];
        l.size[1] = size[1];
        l.stride[0] = 1;
        add_output(t, l);
    }
    const bool by_rows = chance(70);
    for (int k = 0; k < ins; k++) {
        layout l;
        layout_dense(&l, operand_type(type), 2, size);
        if (!by_rows) {
            l.stride[0] = 1;
            l.stride[1] = size[0];
        }
        if (chance(10)) l.stride[1] = 0;
        if (chance(10)) l.stride[0] = 0;
        add_input(t, l, strange_elements(type, chance(80) ? 0 : 2));
    }
    add_number(t, any_number(type, 0));
    t->s.inner = 1;
    writer w = { .s = &t->s, .p = &t->code, .type = type };
    t->code = (program){ .inputs = t->s.ins,
                         .numbers = t->s.nums,
                         .slots = PROGRAM_SLOTS,
                         .outputs = t->s.outs,
                         .reductions = true };
    for (int o = 0; o < outs; o++) {
        write_maps(&w, 8, any_map);
        write_reduce(&w, ops[o], o);
    }
}

/* Matrices that are exchanged, rotated and added in place: all inputs are outputs. */
static inline void make_exchanges(trial *t, duet_dtype type)
{
    const int count = 2 + draw(PROGRAM_OUTPUTS - 1);
    layout dense;
    const int64_t n = 1 + draw(200);
    layout_dense(&dense, type, 1, &n);
    for (int k = 0; k < count; k++) add_output(t, dense);
    for (int k = 0; k < count; k++) t->s.in[t->s.ins++] = t->s.out[k];
    for (int k = 0; k < draw(3); k++) add_input(t, dense, 0);
    program *p = &t->code;
    *p = (program){ .inputs = t->s.ins, .slots = t->s.ins, .outputs = t->s.outs };
    for (uint8_t k = 0; k < t->s.ins; k++) {
        p->code[p->length++] = (instruction){ OP_LOAD, (uint8_t)type, { { FROM_INPUT, k } } };
        p->code[p->length++] = (instruction){ OP_SAVE, (uint8_t)type, { { FROM_SLOT, k } } };
    }
    const int first = draw(count);
    for (int k = 0; k < count; k++) {
        const source a = any_source(FROM_SLOT, t->s.ins), b = any_source(FROM_SLOT, t->s.ins);
        p->code[p->length++] = (instruction){ chance(60) ? OP_LOAD : OP_sub, (uint8_t)type, { a, b } };
        p->code[p->length++] =
            (instruction){ OP_STORE, (uint8_t)type, { { 0, (uint8_t)((first + k) % count) } } };
    }
}

/* Conditions that are used twice: as many at the same time as there are inputs. */
static inline void make_conditions(trial *t, duet_dtype type)
{
    const uint8_t count = (uint8_t)(2 + draw(PROGRAM_INPUTS - 1));
    add_rows(t, type, 1 + draw(200), 1, count, 20);
    program *p = &t->code;
    *p = (program){ .inputs = count, .outputs = 1 };
    p->code[p->length++] = (instruction){ OP_LOAD, (uint8_t)type, { { FROM_INPUT, 0 } } };
    for (int k = 0; k < 2 * count; k++) {
        const source x = { FROM_INPUT, (uint8_t)(k % count) }, acc = { FROM_ACC, 0 },
                     y = any_source(FROM_INPUT, count);
        p->code[p->length++] =
            (instruction){ OP_where, (uint8_t)type, { x, k & 1 ? acc : y, k & 1 ? y : acc } };
    }
    p->code[p->length++] = (instruction){ .op = OP_STORE, .type = (uint8_t)type };
}

/* Polynomials: few values at a time, and up to as many numbers as a program may have. */
static inline void make_polynomial(trial *t, duet_dtype type)
{
    const int numbers = 1 + draw(PROGRAM_NUMBERS);
    add_rows(t, type, 1 + draw(200), 1, 1, 0);
    for (int k = 0; k < numbers; k++) add_number(t, any_number(type, 0));
    program *p = &t->code;
    *p = (program){ .inputs = 1, .numbers = t->s.nums, .outputs = 1 };
    p->code[p->length++] = (instruction){ OP_LOAD, (uint8_t)type, { { FROM_NUMBER, 0 } } };
    for (uint8_t k = 1; k < numbers; k++) {
        const source x = { FROM_INPUT, 0 }, acc = { FROM_ACC, 0 }, number = { FROM_NUMBER, k };
        const bool integers = has_integers(type);
        if (integers) p->code[p->length++] = (instruction){ OP_mul, (uint8_t)type, { acc, x } };
        p->code[p->length++] = integers ? (instruction){ OP_add, (uint8_t)type, { acc, number } }
                                        : (instruction){ OP_fma, (uint8_t)type, { acc, x, number } };
    }
    p->code[p->length++] = (instruction){ .op = OP_STORE, .type = (uint8_t)type };
}

/* ---- comparison ---- */

static char *program_text(const trial *t)
{
    static char text[16 * PROGRAM_LENGTH + 8 * SHAPE_TEXT];
    int n = snprintf(text, sizeof text, "%s:", sizes_text(t));
    for (int i = 0; i < t->code.length && n < (int)sizeof text; i++) {
        const instruction *c = &t->code.code[i];
        n += snprintf(text + n, sizeof text - (size_t)n, " %s", op_infos[c->op].name);
        for (int k = 0; k < 3 && n < (int)sizeof text; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%c%d", "axns"[c->arg[k].kind],
                          c -> arg[k].index);
    }
    return text;
}

#ifdef __x86_64__
enum { is_x86 = 1 };
#else
enum { is_x86 = 0 };
#endif
/* How many ran that should have code, and for how many there was code. [1]: of integers. */
static uint64_t programs[2], with_code[2];

static bool has_code(const step *s)
{
    const program_cache *c = s->cached;
    return c && c->generated.item && !c->generated.refused;
}

/* Integer functions for which the interpreter is faster (x86_calls.c). */
static bool may_lack_code(const program *p)
{
    bool may = false;
    for (int i = 0; i < p->length; i++) {
        const int op = p->code[i].op;
        const bool divides = op == OP_floor_divide || op == OP_remainder || op == OP_fmod;
        may |= has_integers(p->code[i].type) && (op == OP_pow || (divides && p->code[i].type == DUET_U64));
    }
    return may;
}

/* The machine code for both instruction sets, with any choice of scalars and streaming stores, decodes. */
static inline void check_machine_code(const program *p, duet_dtype type)
{
    const machine_code_choice c = { .scalars = (uint32_t)draw(1 << PROGRAM_INPUTS),
                                    .streams = (uint32_t)draw(1 << PROGRAM_OUTPUTS),
                                    .bits = 8 << draw(4) };
    for (int wide = 0; wide < 2; wide++) {
        const char *fault = machine_code_fault(p, type, wide, c);
        CHECK(!fault, "code for %s: %s", wide ? "AVX-512" : "AVX2", fault);
    }
}

static inline void run_both(trial *t)
{
    const machine *m = device_machine(HOST);
    t->s.program = &t->code;
    mark_outputs(t);
    bool first = true;
    for (int isa = 0; isa < ISAS; isa++) {
        const char *name = use_isa(isa);
        if (isa && strcmp(name, isa_names[isa])) continue; /* this processor has no such instructions */
        for (int made = 0; made < (isa ? 2 : 1); made++) {
            generated_mode = made ? GENERATED_AT_ONCE : GENERATED_NEVER;
            const duet_status r = run_once(t, m);
            CHECK(r == DUET_OK, "%s: %s", program_text(t), duet_error());
            char how[40];
            snprintf(how, sizeof how, "%s%s", name, made ? ", generated" : "");
            const int before = tap_failures;
            check_rest(t, how, first);
            if (tap_failures != before) printf("# %s\n", program_text(t));
            if (made && !may_lack_code(&t->code)) {
                const bool integers = has_integers(t->code.code[0].type);
                programs[integers]++;
                with_code[integers] += has_code(&t->s);
            }
            m->forget(&t->s);
            first = false;
        }
    }
    trial_free(t);
}

#endif
