/* test_interpreter_codes.c - programs in the codes of the GPU interpreter, run on the host element
 * by element and compared with their definition. No card is needed. */
#include "dtype.h"
#include "each_type.h"
#include "interpreter_codes.h"
#include "machine_reference.h"
#include "tap.h"
#include "test_rng.h"
#include <math.h>
#include <string.h>

bool codes_seen[2][INTERP_CODE + 1];

typedef struct trial {
    duet_dtype type;
    program p;
    double num[PROGRAM_NUMBERS], in[PROGRAM_INPUTS][CODES_ELEMENTS];
} trial;

static bool is_whole(duet_dtype t) { return !dtype_is_f32_or_f64(t); }

/* For integers, the bits. */
static double any_number(duet_dtype t, int strange)
{
    const int64_t whole = is_whole(t) ? whole_or_special(DUET_I64, strange) : 0;
    double bits;
    memcpy(&bits, &whole, sizeof bits);
    if (is_whole(t)) return bits;
    return number(t, strange);
}

static long double value_of(duet_dtype t, double x)
{
    int64_t whole;
    memcpy(&whole, &x, sizeof whole);
    if (!is_whole(t)) return x;
    if (t == DUET_U64) return (long double)(uint64_t)whole;
    return (long double)whole;
}

/* Most elements are moderate, so that few results become NaN. */
static void fill(trial *t)
{
    for (int k = 0; k < t->p.inputs; k++)
        for (int e = 0; e < CODES_ELEMENTS; e++) t->in[k][e] = any_number(t->type, e < 5 ? 0 : 10 * (e - 4));
    for (int k = 0; k < t->p.numbers; k++) t->num[k] = any_number(t->type, 15);
}

/* ---- the definition of a program ---- */

static void meaning(const trial *t, const program *p, int which, expected *want)
{
    static union {
        float f32[CODES_ELEMENTS];
        double f64[CODES_ELEMENTS];
    } memory[PROGRAM_INPUTS];
    step s = {
        .kernel = KERNEL_PROGRAM, .outs = p->outputs, .ins = p->inputs, .nums = p->numbers, .program = p
    };
    void *data[PROGRAM_INPUTS];
    for (int k = 0; k < PROGRAM_OUTPUTS; k++)
        layout_dense(&s.out[k].at, t->type, 1, (const int64_t[]){ CODES_ELEMENTS });
    for (int k = 0; k < p->numbers; k++) s.num[k] = (uint32_t)k;
    for (int k = 0; k < p->inputs; k++) {
        s.in[k] = (operand){ k, s.out[0].at };
        data[k] = &memory[k];
        for (int e = 0; e < CODES_ELEMENTS; e++)
            if (t->type == DUET_F32) memory[k].f32[e] = (float)t->in[k][e];
            else memory[k].f64[e] = t->in[k][e];
    }
    CHECK(reference(&s, &(frame){ .data = data, .num = t->num }, which, want),
          "machine_reference.c does not know programs");
}

static bool is_reduce(const instruction *i) { return op_infos[i->op].kind == KIND_REDUCE; }

/* The reduction of output `which`, or NULL. */
static const instruction *reduce_of(const program *p, int which)
{
    for (const instruction *i = p->code; i < p->code + p->length; i++)
        if (is_reduce(i) && i->arg[2].index == which) return i;
    return NULL;
}

/* The program that stores operand k of a reduction of p. Earlier reductions have no effect on it. */
static program operand_program(const program *p, const instruction *reduction, int k)
{
    program q = *p;
    q.reductions = false;
    q.outputs = 1;
    q.length = 0;
    for (const instruction *i = p->code; i < reduction; i++)
        if (!is_reduce(i)) q.code[q.length++] = *i;
    q.code[q.length++] = (instruction){ OP_LOAD, reduction->type, { reduction->arg[k] } };
    q.code[q.length++] = (instruction){ OP_STORE, reduction->type, { { 0 } } };
    return q;
}

/* Expected for one output: the stored value, or the operands of its reduction. */
typedef struct wanted {
    const instruction *reduction;
    expected value[2][CODES_ELEMENTS];
} wanted;

static void want_output(const trial *t, int which, wanted *w)
{
    w->reduction = reduce_of(&t->p, which);
    if (!w->reduction) meaning(t, &t->p, which, w->value[0]);
    for (int k = 0; w->reduction && k < op_infos[w->reduction->op].arity; k++) {
        const program q = operand_program(&t->p, w->reduction, k);
        meaning(t, &q, 0, w->value[k]);
    }
}

/* ---- comparison ---- */

/* The operands of a reduction of two may be exchanged. */
static bool output_agrees(duet_dtype t, const wanted *w, const outcome *o, int k, int e)
{
    const expected x = w->value[0][e], y = w->value[1][e];
    const long double out = value_of(t, o->out[k]), other = value_of(t, o->other[k]);
    if (o->times[k] != 1) return false;
    if (!w->reduction) return agrees(t, out, x);
    if (o->reduction[k] != w->reduction->op) return false;
    if (op_infos[w->reduction->op].arity == 1) return agrees(t, out, x);
    return (agrees(t, out, x) && agrees(t, other, y)) || (agrees(t, out, y) && agrees(t, other, x));
}

static int operands_of(int op) { return op == OP_SAVE || op == OP_STORE ? 0 : op_infos[op].arity; }

/* Text such as "sub a n0" (accumulator, input, number or slot) or "store >0". */
static int instruction_text(char *to, const instruction *i)
{
    int n = sprintf(to, "%s", op_infos[i->op].name);
    for (int k = 0; k < operands_of(i->op); k++) {
        const source s = i->arg[k];
        if (s.kind == FROM_ACC) n += sprintf(to + n, " a");
        else n += sprintf(to + n, " %c%d", "ains"[s.kind], s.index);
    }
    if (operands_of(i->op) == 0) n += sprintf(to + n, " >%d", i->arg[0].index);
    if (is_reduce(i)) n += sprintf(to + n, " >%d", i->arg[2].index);
    return n + sprintf(to + n, "; ");
}

static const char *program_text(const program *p)
{
    static char text[64 * PROGRAM_LENGTH];
    int n = 0;
    for (int i = 0; i < p->length; i++) n += instruction_text(text + n, &p->code[i]);
    return text;
}

static bool check_element(const trial *t, const wanted *w, const outcome *o, int e, const char *how)
{
    if (o->why) return CHECK(false, "%s (%s): %s", how, program_text(&t->p), o->why);
    for (int k = 0; k < t->p.outputs; k++)
        if (!output_agrees(t->type, &w[k], o, k, e))
            return CHECK(false,
                         "%s (%s): output %d, %d times, element %d is %.17g and %.17g, not %.17Lg and %.17Lg",
                         how, program_text(&t->p), k, o->times[k], e, o->out[k], o->other[k],
                         w[k].value[0][e].value, w[k].value[1][e].value);
    return CHECK(true, " ");
}

static void check_codes(const trial *t, const interp_program *m, const wanted *w, int row, bool apart)
{
    outcome o[CODES_ELEMENTS];
    char how[80];
    snprintf(how, sizeof how, "%s, rows of %d, %s", dtypes[t->type].name, row, apart ? "apart" : "in pairs");
    codes_runner *const runners[] = {
        [DUET_F32] = codes_f32, [DUET_F64] = codes_f64, [DUET_I64] = codes_i64, [DUET_U64] = codes_u64
    };
    runners[t->type](m, row, apart, t->p.inputs, (double(*)[CODES_ELEMENTS])t->in, o);
    for (int e = 0; e < CODES_ELEMENTS; e++) {
        if (!t->p.reductions) {
            o[e].out[m->last] = o[e].left;
            o[e].times[m->last]++;
        }
        if (!check_element(t, w, &o[e], e, how)) return;
    }
}

/* An instruction takes at most two codes, in a program with reductions four; one additional row may
 * be needed. */
static bool may_be_refused(const program *p)
{
    return (p->reductions ? 4 : 2) * p->length > INTERP_LENGTH || p->inputs + p->slots + 1 > INTERP_ROWS;
}

/* At each of these two points, some functions are NaN, and so without an error. */
static bool is_exact(int op)
{
    return !(op_infos[op].flags & OP_FLOATS) || (reference_map(op, DUET_F64, 0.5, 0.25, 0.75).allowed == 0 &&
                                                 reference_map(op, DUET_F64, 1.5, 0.25, 0.75).allowed == 0);
}

/* For floating-point types: operators that are not exact, or exact only by a loop. */
static bool is_function(const instruction *i)
{
    const bool loops = i->op == OP_fmod || i->op == OP_remainder;
    return op_infos[i->op].kind == KIND_MAP && dtype_kind((duet_dtype)i->type) == TYPE_FLOAT &&
           (loops || !is_exact(i->op));
}

static bool has_functions(const program *p)
{
    for (const instruction *i = p->code; i < p->code + p->length; i++)
        if (is_function(i)) return true;
    return false;
}

/* Returns whether the interpreter supports the program. */
static bool run_trial(const trial *t)
{
    static const int rows[] = { 1, 3, 32, 64, CODES_ROW };
    interp_program m, asked;
    wanted w[PROGRAM_OUTPUTS];
    const int row = rows[chance(5) ? 4 : draw(4)];
    const char *why = interp_encode(&m, &t->p, t->num);
    CHECK(!why == !interp_encode(&asked, &t->p, NULL), "%s: whether it is supported depends on its numbers",
          program_text(&t->p));
    if (why) {
        CHECK(may_be_refused(&t->p), "%s: %s", program_text(&t->p), why);
        return false;
    }
    if (!CHECK(m.rows <= INTERP_ROWS && m.steps <= INTERP_LENGTH,
               "%s: a program that is too long is supported", program_text(&t->p)))
        return true;
    CHECK(m.heavy == has_functions(&t->p), "%s: whether it has functions is wrong", program_text(&t->p));
    for (int k = 0; k < t->p.outputs; k++) want_output(t, k, &w[k]);
    for (int apart = 0; apart < 2; apart++) check_codes(t, &m, w, row, apart);
    return true;
}

/* ---- one operator with operands from anywhere ---- */

enum { ANYWHERE = 6 };
static const source anywhere[ANYWHERE] = { { FROM_ACC, 0 },    { FROM_INPUT, 0 },  { FROM_INPUT, 1 },
                                           { FROM_NUMBER, 0 }, { FROM_NUMBER, 1 }, { FROM_SLOT, 1 } };

/* Draws from the domain: the bound of a function holds only there. */
static void fill_domain(trial *t, double low, double high)
{
    for (int k = 0; k < 2; k++)
        for (int e = 0; e < CODES_ELEMENTS; e++) t->in[k][e] = low + (high - low) * draw(1000) / 1000;
    for (int k = 0; k < 2; k++) t->num[k] = low + (high - low) * draw(1000) / 1000;
}

static void add(program *p, int op, source x, source y, source z)
{
    p->code[p->length++] = (instruction){ (uint8_t)op, 0, { x, y, z } };
}

/* For an exact operator, its result and its operands are used once more. */
static void form_trial(int op, duet_dtype type, int form, double low, double high)
{
    const bool exact = is_exact(op);
    trial t = { .type = type, .p = { .inputs = 2, .numbers = 2, .slots = 2, .outputs = 1 } };
    const source none = { 0, 0 }, acc = { FROM_ACC, 0 }, slot = { FROM_SLOT, 1 },
                 of[3] = { anywhere[form % ANYWHERE], anywhere[form / ANYWHERE % ANYWHERE],
                           anywhere[form / 36] };
    if (exact) fill(&t);
    else fill_domain(&t, low, high);
    add(&t.p, OP_minimum, (source){ FROM_INPUT, 1 }, (source){ FROM_NUMBER, 1 }, none);
    add(&t.p, OP_SAVE, (source){ 0, 1 }, none, none);
    add(&t.p, OP_maximum, acc, (source){ FROM_INPUT, 0 }, none);
    add(&t.p, op, of[0], of[1], of[2]);
    if (exact && chance(50)) add(&t.p, OP_sub, chance(50) ? acc : slot, chance(50) ? acc : slot, none);
    if (exact && chance(50)) add(&t.p, OP_add, acc, (source){ FROM_INPUT, 1 }, none);
    add(&t.p, OP_STORE, none, none, none);
    for (int i = 0; i < t.p.length; i++) t.p.code[i].type = (uint8_t)type;
    CHECK(run_trial(&t), "%s of arity %d is not supported", op_infos[op].name, op_infos[op].arity);
}

/* The domain is that of the first operand; here the others use the same. */
static void test_row(int op, double low, double high)
{
    static const int forms[] = { 1, ANYWHERE, ANYWHERE * ANYWHERE, ANYWHERE * ANYWHERE * ANYWHERE };
    for (int form = 0; form < forms[op_infos[op].arity]; form++)
        FOR_FLOAT_TYPES (type)
            for (int again = 0; again < 3; again++) form_trial(op, (duet_dtype)type, form, low, high);
}

static void test_rows(void)
{
#define FIRST_TWO(low, high, ...)                     low, high
#define DUET_MAP1(name, formula, oracle, domain, ...) test_row(OP_##name, FIRST_TWO domain);
#define DUET_MAP2                                     DUET_MAP1
#define DUET_MAP3                                     DUET_MAP1
#include <duet/ops.def>
    tap_point("operators with operands of every source");
}

/* ---- random programs ---- */

/* Rows that are steps, or any exact row. */
static int any_map(duet_dtype t)
{
    static const int steps[] = { OP_add, OP_sub, OP_mul, OP_fma };
    if (chance(60)) return steps[draw(is_whole(t) ? 3 : 4)];
    if (is_whole(t) && chance(20)) return OP_WRAP;
    for (;;) {
        const int op = draw(OPS);
        if (op_infos[op].kind == KIND_MAP && op_infos[op].flags & (is_whole(t) ? OP_INTEGERS : OP_FLOATS) &&
            is_exact(op))
            return op;
    }
}

typedef struct writer {
    trial *t;
    bool acc;     /* the accumulator has been written */
    int often;    /* percentage of operands that are the accumulator */
    uint32_t set; /* slots that have been written */
} writer;

static source any_value(const writer *w)
{
    const program *p = &w->t->p;
    if (w->acc && chance(w->often)) return (source){ FROM_ACC, 0 };
    for (;;) {
        const source s = { FROM_SLOT, (uint8_t)draw(p->slots) };
        if (chance(20)) return (source){ FROM_NUMBER, (uint8_t)draw(p->numbers) };
        if (chance(50)) return (source){ FROM_INPUT, (uint8_t)draw(p->inputs) };
        if (w->set >> s.index & 1) return s;
    }
}

static instruction *write_one(writer *w, int op)
{
    instruction *i = &w->t->p.code[w->t->p.length++];
    *i = (instruction){ .op = (uint8_t)op, .type = (uint8_t)w->t->type };
    for (int k = 0; k < operands_of(op); k++) i->arg[k] = any_value(w);
    if (op == OP_WRAP)
        i->arg[1].index = (uint8_t)(chance(20) ? DUET_BOOL : DUET_I8 + draw(DUET_U64 - DUET_I8 + 1));
    return i;
}

static void write_save(writer *w)
{
    const source slot = { FROM_SLOT, (uint8_t)draw(w->t->p.slots) };
    write_one(w, OP_SAVE)->arg[0] = slot;
    w->set |= 1u << slot.index;
}

static void write_any(writer *w)
{
    if (w->acc && chance(15)) write_save(w);
    else {
        write_one(w, chance(8) ? OP_LOAD : any_map(w->t->type));
        w->acc = true;
    }
}

static int any_reduce(duet_dtype t)
{
    for (;;) {
        const int op = draw(OPS);
        if (op_infos[op].kind == KIND_REDUCE && op_infos[op].flags & (is_whole(t) ? OP_INTEGERS : OP_FLOATS))
            return op;
    }
}

/* Stores the accumulator, or reduces any operands; neither writes the accumulator. */
static void write_output(writer *w, int output)
{
    if (w->t->p.reductions) write_one(w, any_reduce(w->t->type))->arg[2] = (source){ 0, (uint8_t)output };
    else write_one(w, OP_STORE)->arg[0].index = (uint8_t)output;
}

/* Up to `longest` instructions. */
static void write_program(trial *t, bool reductions, int longest)
{
    writer w = { .t = t, .often = 30 + 10 * draw(6) };
    const int outs = chance(50) ? 1 : 1 + draw(PROGRAM_OUTPUTS), turn = draw(outs);
    t->p = (program){ .inputs = (uint8_t)(1 + draw(chance(90) ? 4 : PROGRAM_INPUTS)),
                      .numbers = (uint8_t)(1 + draw(4)),
                      .slots = (uint8_t)(1 + draw(chance(95) ? 6 : PROGRAM_SLOTS)),
                      .outputs = (uint8_t)outs,
                      .reductions = reductions };
    for (int o = 0; o < outs; o++) {
        for (int n = draw(longest / outs) + (!w.acc && !reductions); n-- > 1;) write_any(&w);
        if (!w.acc && !reductions) {
            write_one(&w, OP_LOAD);
            w.acc = true;
        }
        write_output(&w, (o + turn) % outs);
    }
}

static void test_programs(bool reductions, int trials)
{
    int longest = 0, refused = 0;
    for (int n = 0; n < trials; n++) {
        static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64, DUET_U64 };
        trial t = { .type = types[n % 4] };
        write_program(&t, reductions, chance(15) ? PROGRAM_LENGTH : 16);
        fill(&t);
        const bool taken = run_trial(&t);
        if (taken && t.p.length > longest) longest = t.p.length;
        refused += !taken;
    }
    CHECK(longest > 80 && refused < trials / 10,
          "%d of %d are not supported, the longest supported one has %d steps", refused, trials, longest);
    tap_point(reductions ? "random programs with reductions" : "random programs");
}

/* ---- integers ---- */

/* Random bits, including signaling NaNs, which arithmetic would change. */
static double some_bits(void)
{
    uint64_t b = (uint64_t)draw(1 << 30) << 40 ^ (uint64_t)draw(1 << 30) << 20 ^ (uint64_t)draw(1 << 30);
    double x;
    if (chance(30)) b = b >> 16 | 0x7ff0ull << 48;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* Output k is input of[k]. */
static void check_bits(const trial *t, const interp_program *m, const int *of, bool apart)
{
    outcome o[CODES_ELEMENTS];
    codes_f64(m, 3, apart, t->p.inputs, (double(*)[CODES_ELEMENTS])t->in, o);
    for (int e = 0; e < CODES_ELEMENTS; e++) {
        o[e].out[m->last] = o[e].left;
        CHECK(!o[e].why, "%s: %s", program_text(&t->p), o[e].why);
        for (int k = 0; k < t->p.outputs; k++)
            CHECK(!memcmp(&o[e].out[k], &t->in[of[k]][e], sizeof(double)),
                  "%s (%d): the bits of output %d differ", program_text(&t->p), apart, k);
    }
}

static void move_integers(void)
{
    const int outs = 1 + draw(PROGRAM_OUTPUTS), ins = 1 + draw(4);
    trial t = { .type = DUET_I64, .p = { .inputs = (uint8_t)ins, .outputs = (uint8_t)outs } };
    interp_program m;
    int of[PROGRAM_OUTPUTS];
    for (int k = 0; k < ins; k++)
        for (int e = 0; e < CODES_ELEMENTS; e++) t.in[k][e] = some_bits();
    for (int k = 0; k < outs; k++) {
        of[k] = draw(ins);
        t.p.code[t.p.length++] = (instruction){ OP_LOAD, DUET_I64, { { FROM_INPUT, (uint8_t)of[k] } } };
        t.p.code[t.p.length++] = (instruction){ OP_STORE, DUET_I64, { { 0, (uint8_t)k } } };
    }
    const char *why = interp_encode(&m, &t.p, t.num);
    if (!CHECK(!why, "%s: %s", program_text(&t.p), why)) return;
    for (int apart = 0; apart < 2; apart++) check_bits(&t, &m, of, apart);
}

static void test_integers(void)
{
    for (int n = 0; n < 300; n++) move_integers();
    tap_point("integers");
}

/* ---- coverage of all codes ---- */

static void test_seen(void)
{
    for (int code = CODE_PAIR(STEP_LOAD, STEP_NONE); code < CODE_LOADS; code++)
        CHECK(codes_seen[0][code], "the pair of steps %d and %d was not tested", code / STEPS, code % STEPS);
    for (int code = CODE_LOADS; code < CODE_LINEAR; code++) {
        CHECK(codes_seen[0][code], "code %d was not tested", code);
        CHECK(codes_seen[1][code] || code >= CODE_MULADD,
              "code %d was not tested with operands of other layouts", code);
    }
    for (int apart = 0; apart < 2; apart++)
        CHECK(codes_seen[apart][CODE_WRAP], "no program that wraps integers was tested");
    for (int op = 0; op < OPS; op++)
        for (int place = 0; op_infos[op].kind == KIND_MAP && place < op_infos[op].arity; place++)
            if (op != OP_add && op != OP_sub && op != OP_mul && op != OP_neg && op != OP_fma)
                CHECK(codes_seen[0][CODE_ROWS + 3 * op + place],
                      "%s with the accumulator as operand %d was not tested", op_infos[op].name, place);
    tap_point("every instruction code was executed");
}

int main(void)
{
    test_rows();
    test_programs(false, 30000);
    test_programs(true, 12000);
    test_integers();
    test_seen();
    return tap_end();
}
