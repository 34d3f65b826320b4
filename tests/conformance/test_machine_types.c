/* test_machine_types.c - conformance of machines: programs of every computing type over operands of
 * every type, and programs that only move elements. */
#include "each_type.h"
#include "machine_trial.h"
#include "quick.h"

static const duet_dtype computing[] = { DUET_F32, DUET_F64, DUET_I64, DUET_U64 };
static const int64_t sizes[][3] = { { 0 },         { 1 },      { 7 },         { 1031 },      { 3, 600 },
                                    { 130, 10 },   { 37, 41 }, { 5, 9, 3 },   { 3, 20, 64 }, { 40, 513 },
                                    { 3, 33, 17 }, { 9000 },   { 700, 1, 3 }, { 33, 1, 70 } };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static int rank_of(int size)
{
    int rank = 1;
    while (rank < 3 && sizes[size][rank]) rank++;
    return rank;
}

static bool is_whole(duet_dtype t) { return !is_floating(t); }
static duet_dtype any_type(duet_dtype usual) { return chance(25) ? usual : (duet_dtype)draw(DUET_C64); }
static double any_number(duet_dtype t)
{
    if (is_whole(t)) return integer_number(chance(50) ? draw(100) - 50 : (int64_t)whole_number(DUET_I64));
    return number(t, 20);
}

/* ---- programs ---- */

/* The map operators of the type that are exact. */
static int any_op(duet_dtype t, enum op_kind kind)
{
    static const int inexact[] = { OP_div, OP_sqrt };
    for (;;) {
        const int op = draw(OPS);
        if (op_infos[op].kind != kind || !(op_infos[op].flags & (is_whole(t) ? OP_INTEGERS : OP_FLOATS)))
            continue;
        if (op == OP_pow && !is_whole(t)) continue;
        if (is_whole(t) || kind == KIND_REDUCE || op_infos[op].flags & OP_INTEGERS || op == OP_fma) return op;
        if (op == inexact[0] || op == inexact[1]) return op; /* correctly rounded */
    }
}

static void operands(trial *t, duet_dtype type, int size, int outs, int ins)
{
    for (int k = 0; k < outs; k++)
        add_output(t, any_layout(any_type(type), rank_of(size), sizes[size], false));
    for (int k = 0; k < ins; k++) {
        if (chance(20)) t->s.in[t->s.ins++] = t->s.out[draw(outs)]; /* the output itself */
        else add_input(t, any_layout(any_type(type), rank_of(size), sizes[size], true), 10);
    }
    for (int k = 0; k < ins; k++) {
        buffer *b = &t->buffer[t->s.in[k].slot];
        for (int64_t i = 0; i < b->count && t->s.in[k].slot < outs; i++) put(b, i, number(b->type, 10));
    }
    collapse(t);
}

static void write_wrap(writer *w)
{
    static const duet_dtype types[] = { DUET_I8,  DUET_I16, DUET_I32, DUET_I64, DUET_U8,
                                        DUET_U16, DUET_U32, DUET_U64, DUET_BOOL };
    instruction *i = &w->p->code[w->p->length++];
    *i = (instruction){ OP_WRAP, (uint8_t)w->type, { any_value(w), { 0, (uint8_t)types[draw(9)] } } };
    if (w->acc && chance(60)) i->arg[0] = (source){ FROM_ACC, 0 };
    w->acc = true;
}

static void random_program(trial *t, duet_dtype type, int longest)
{
    const step *s = &t->s;
    writer w = { .s = s, .p = &t->code, .type = type };
    t->code = (program){ .inputs = s->ins, .numbers = s->nums, .slots = PROGRAM_SLOTS, .outputs = s->outs };
    for (int o = 0; o < s->outs; o++) {
        for (int n = draw(longest / s->outs) + !w.acc; n-- > 0;) {
            if (w.acc && chance(20)) write_one(&w, OP_SAVE, 0);
            else if (chance(15)) write_one(&w, OP_LOAD, 0);
            else if (is_whole(type) && chance(25)) write_wrap(&w);
            else write_one(&w, any_op(type, KIND_MAP), 0);
        }
        write_one(&w, OP_STORE, o);
    }
}

static void test_programs(duet_dtype type, int trials)
{
    char name[40];
    for (int n = 0; n < trials; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        operands(&t, type, draw(SIZES), chance(70) ? 1 : 1 + draw(PROGRAM_OUTPUTS), 1 + draw(4));
        for (int k = 1 + draw(3); k-- > 0;) add_number(&t, any_number(type));
        random_program(&t, type, chance(10) ? 60 : 8);
        run_trial(&t);
    }
    snprintf(name, sizeof name, "programs of %s", dtypes[type].name);
    tap_point(name);
}

/* Every type to every type, through each computing type. */
static void test_casts(void)
{
    for (int c = 0; c < 4; c++)
        FOR_REAL_TYPES (from)
            FOR_REAL_TYPES (to) {
                trial t = { .s.kernel = KERNEL_PROGRAM };
                const uint8_t type = (uint8_t)computing[c];
                const int64_t size = 1 + draw(700);
                add_output(&t, any_layout((duet_dtype)to, 1, &size, false));
                add_input(&t, any_layout((duet_dtype)from, 1, &size, chance(10)), 20);
                buffer *b = &t.buffer[t.s.in[0].slot];
                for (int64_t i = 0; i < b->count && is_floating(b->type); i += 2)
                    put(b, i, ldexpl(get(b, b->before, i), draw(80) - 40));
                collapse(&t);
                t.code = (program){ .length = 2, .inputs = 1, .outputs = 1 };
                t.code.code[0] = (instruction){ OP_LOAD, type, { { FROM_INPUT, 0 } } };
                t.code.code[1] = (instruction){ OP_STORE, type, { { 0 } } };
                run_trial(&t);
            }
    tap_point("casts");
}

/* ---- reductions ---- */

static void reduce_trial(int op, duet_dtype type, const int64_t *size, int rank, int inner, bool front)
{
    trial t = { .s.kernel = KERNEL_PROGRAM, .s.inner = (uint8_t)inner };
    const layout still = { .rank = inner };
    const bool place = op_infos[op].flags & OP_GIVES_INDEX;
    add_output(&t, any_layout(place ? DUET_I64 : any_type(type), rank - inner, size, false));
    add_axes(&t.s.out[0].at, &still);
    memcpy(t.s.out[0].at.size + rank - inner, size + rank - inner, (size_t)inner * sizeof *size);
    for (int k = 0; k < 2; k++) {
        add_input(&t, any_layout(any_type(type), rank, size, true), chance(20) ? 2 : 0);
        buffer *b = &t.buffer[t.s.in[k].slot];
        for (int64_t i = 0; i < b->count && chance(50); i++) put(b, i, draw(9) - 4.0);
    }
    add_number(&t, any_number(type));
    t.code = (program){ .length = 1, .inputs = 2, .numbers = 1, .outputs = 1, .reductions = true };
    t.code.code[0] = (instruction){ OP_minimum, (uint8_t)type, { { FROM_INPUT, 0 }, { FROM_NUMBER, 0 } } };
    if (front) t.code.length++;
    t.code.code[t.code.length - 1] = (instruction){
        (uint8_t)op, (uint8_t)type, { { front ? FROM_ACC : FROM_INPUT, 0 }, { FROM_INPUT, 1 } }
    };
    if (op_infos[op].arity == 1) t.code.code[t.code.length - 1].arg[1] = (source){ 0 };
    collapse(&t);
    run_trial(&t);
}

static void test_reduces(duet_dtype type, int trials)
{
    static const struct {
        int rank, inner;
        int64_t size[3];
    } domains[] = { { 1, 1, { 1 } },        { 1, 1, { 5 } },         { 1, 1, { 9001 } },
                    { 2, 1, { 70, 40 } },   { 2, 1, { 3, 5000 } },   { 2, 1, { 300, 7 } },
                    { 3, 2, { 4, 30, 9 } }, { 3, 1, { 2, 40, 130 } } };
    char name[40];
    for (int n = 0; n < trials; n++) {
        const int d = draw((int)(sizeof domains / sizeof *domains));
        reduce_trial(any_op(type, KIND_REDUCE), type, domains[d].size, domains[d].rank, domains[d].inner,
                     chance(50));
    }
    if (is_whole(type)) { /* of no elements */
        const int64_t none[] = { 3, 0 };
        const int ops[] = { OP_sum, OP_prod, OP_dot };
        for (int k = 0; k < 3; k++) reduce_trial(ops[k], type, none, 2, 1, false);
    }
    snprintf(name, sizeof name, "reductions of %s", dtypes[type].name);
    tap_point(name);
}

/* ---- programs that only move elements ---- */

static void test_moves(void)
{
    for (int type = 0; type < DUET_DTYPE_COUNT; type++)
        for (int n = 0; n < 3 * SIZES; n++) {
            trial t = { .s.kernel = KERNEL_PROGRAM };
            const uint8_t of = (uint8_t)type;
            for (int k = 0; k < 2; k++)
                add_output(&t, any_layout((duet_dtype)type, rank_of(n % SIZES), sizes[n % SIZES], false));
            for (int k = 0; k < 2; k++)
                add_input(&t, any_layout((duet_dtype)type, rank_of(n % SIZES), sizes[n % SIZES], true), 0);
            collapse(&t);
            t.code = (program){ .length = 4, .inputs = 2, .outputs = 2 };
            for (int k = 0; k < 2; k++) {
                t.code.code[2 * k] = (instruction){ OP_LOAD, of, { { FROM_INPUT, (uint8_t)k } } };
                t.code.code[2 * k + 1] = (instruction){ OP_STORE, of, { { 0, (uint8_t)(1 - k) } } };
            }
            run_trial(&t);
        }
    tap_point("copies of every type");
}

/* ---- unsupported steps ---- */

static const char *refusal(const machine *m, int op, duet_dtype program_type, duet_dtype in, duet_dtype out,
                           int narrow)
{
    static program p;
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 1, .program = &p };
    const uint8_t of = (uint8_t)program_type;
    const int64_t size = 4;
    p = (program){ .length = 2, .inputs = 1, .outputs = 1 };
    p.code[0] = (instruction){ (uint8_t)op, of, { { FROM_INPUT, 0 }, { 0, (uint8_t)narrow } } };
    p.code[1] = (instruction){ .op = OP_STORE, .type = of };
    layout_dense(&s.in[0].at, in, 1, &size);
    layout_dense(&s.out[0].at, out, 1, &size);
    return m->unsupported_reason(&s);
}

static void test_refusals(const machine *m)
{
    CHECK(refusal(m, OP_neg, DUET_F16, DUET_F16, DUET_F16, 0), "%s supports computing in f16", m->name);
    CHECK(refusal(m, OP_neg, DUET_C64, DUET_C64, DUET_C64, 0), "%s supports computing in c64", m->name);
    CHECK(refusal(m, OP_neg, DUET_F32, DUET_C64, DUET_F32, 0), "%s supports operands of c64", m->name);
    CHECK(refusal(m, OP_LOAD, DUET_F16, DUET_F16, DUET_F32, 0), "%s supports programs that convert in f16",
          m->name);
    CHECK(refusal(m, OP_exp, DUET_I64, DUET_I64, DUET_I64, 0), "%s supports exp of integers", m->name);
    CHECK(refusal(m, OP_bitwise_not, DUET_F32, DUET_F32, DUET_F32, 0), "%s supports bitwise operators of f32",
          m->name);
    CHECK(refusal(m, OP_WRAP, DUET_F32, DUET_F32, DUET_F32, DUET_I8), "%s supports wrapping f32", m->name);
    CHECK(refusal(m, OP_WRAP, DUET_I64, DUET_I64, DUET_I64, DUET_F16), "%s supports wrapping to f16",
          m->name);
    CHECK(!refusal(m, OP_WRAP, DUET_I64, DUET_I8, DUET_I8, DUET_I8) || m->place != DUET_CPU,
          "%s does not support wrapping integers", m->name);
    tap_point("invalid and unsupported arguments");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    for (int d = 0; d < DEFAULT_GPU + 1; d++)
        if (!device_absent(d)) test_refusals(device_machine(d));
    test_casts();
    for (int c = 0; c < 4; c++) {
        test_programs(computing[c], quick ? 60 : 500);
        test_reduces(computing[c], quick ? 40 : 200);
    }
    test_moves();
    return tap_end();
}
