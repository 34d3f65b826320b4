/* test_machine_vectors.c - conformance of machines where operands of other types meet the vectors
 * of a program: ends of rows at any alignment, operands so large that a thread has several vectors,
 * several reductions in one pass along any axis, transposing moves. */
#include "machine_trial.h"
#include "quick.h"

static const duet_dtype computing[] = { DUET_F32, DUET_F64, DUET_I64, DUET_U64 };
#define REAL_TYPES DUET_C64 /* types below */

static bool is_whole(duet_dtype t) { return t == DUET_I64 || t == DUET_U64; }

/* Half of them have the computing type itself. */
static duet_dtype any_type(duet_dtype computed)
{
    if (chance(50)) return computed;
    return (duet_dtype)draw(REAL_TYPES);
}

static double any_number(duet_dtype computed)
{
    if (is_whole(computed)) return integer_number(whole_or_special(DUET_I64, 20));
    return number(computed, 20);
}

/* ---- element-wise programs ---- */

static const struct {
    int rank;
    int64_t size[4];
} plain[] = { { 1, { 0 } },         { 1, { 1 } },          { 1, { 7 } },      { 1, { 1031 } },
              { 2, { 3, 600 } },    { 2, { 130, 10 } },    { 2, { 37, 41 } }, { 3, { 5, 9, 3 } },
              { 3, { 3, 20, 64 } }, { 4, { 2, 3, 4, 5 } }, { 2, { 700, 1 } }, { 2, { 0, 5 } },
              { 1, { 4096 } },      { 2, { 40, 256 } },    { 2, { 90, 70 } } };
#define PLAINS ((int)(sizeof plain / sizeof *plain))

/* For floating-point types, operators that keep numbers small. */
static int any_op(duet_dtype computed)
{
    for (;;) {
        const int op = draw(OPS);
        if (!is_whole(computed)) return chance(50) ? OP_sub : OP_minimum;
        if (op_infos[op].kind == KIND_MAP && op_infos[op].flags & OP_INTEGERS) return op;
    }
}

/* An operator; for integers often followed by a wrap to a narrower type. */
static void write_map(writer *w, int op)
{
    write_one(w, op, 0);
    if (!is_whole(w->type) || chance(60)) return;
    instruction *i = &w->p->code[w->p->length++];
    duet_dtype t = DUET_I64;
    while (is_floating(t = (duet_dtype)draw(REAL_TYPES))) {}
    *i = (instruction){ OP_WRAP,
                        (uint8_t)w->type,
                        { chance(70) ? (source){ FROM_ACC, 0 } : any_value(w), { 0, (uint8_t)t } } };
}

/* The elements at the end of a row, at any alignment: nothing beyond them may be accessed. */
static void test_ends(int most)
{
    for (int64_t n = 1; n <= most; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const duet_dtype computed = computing[draw(4)], out = any_type(computed);
        add_dense(&t, true, out, 1, &n);
        for (int k = 0; k < 2; k++) add_dense(&t, false, any_type(computed), 1, &n);
        t.code = (program){ .length = 2, .inputs = 2, .outputs = 1 };
        t.code.code[0] = (instruction){ OP_sub, (uint8_t)computed, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 } } };
        t.code.code[1] = (instruction){ OP_STORE, (uint8_t)computed, { { 0 } } };
        run_trial(&t);
    }
    tap_point("ends of rows");
}

/* So many elements that a thread has several vectors; a column and one element repeat. */
static void large_trial(duet_dtype computed, duet_dtype type, int64_t rows, int64_t columns)
{
    const int64_t size[] = { rows, columns };
    trial t = { .s.kernel = KERNEL_PROGRAM };
    layout column, single;
    layout_dense(&column, type, 2, size);
    single = column;
    column.stride[0] = 1;
    column.stride[1] = 0;
    single.stride[0] = single.stride[1] = 0;
    add_dense(&t, true, type, 2, size);
    add_dense(&t, false, type, 2, size);
    add_input(&t, column, 0);
    add_input(&t, single, 0);
    t.s.in[t.s.ins++] = t.s.out[0];
    collapse(&t);
    add_number(&t, is_whole(computed) ? integer_number(3) : 0.75);
    const uint8_t c = (uint8_t)computed;
    t.code = (program){ .length = 5, .inputs = 4, .numbers = 1, .outputs = 1 };
    t.code.code[0] = (instruction){ OP_mul, c, { { FROM_INPUT, 0 }, { FROM_NUMBER, 0 } } };
    t.code.code[1] = (instruction){ OP_add, c, { { FROM_ACC, 0 }, { FROM_INPUT, 1 } } };
    t.code.code[2] = (instruction){ OP_maximum, c, { { FROM_ACC, 0 }, { FROM_INPUT, 2 } } };
    t.code.code[3] = (instruction){ OP_sub, c, { { FROM_ACC, 0 }, { FROM_INPUT, 3 } } };
    t.code.code[4] = (instruction){ OP_STORE, c, { { 0 } } };
    run_trial(&t);
}

static void test_large(bool quick)
{
    static const duet_dtype pairs[][2] = { { DUET_F32, DUET_F16 }, { DUET_F32, DUET_BF16 },
                                           { DUET_F32, DUET_I64 }, { DUET_F64, DUET_F16 },
                                           { DUET_F64, DUET_F32 }, { DUET_I64, DUET_I8 },
                                           { DUET_I64, DUET_I32 }, { DUET_I64, DUET_I64 },
                                           { DUET_U64, DUET_U64 } };
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        large_trial(pairs[n][0], pairs[n][1], 61, 800);
        if (!quick) {
            large_trial(pairs[n][0], pairs[n][1], 811, 800);
            large_trial(pairs[n][0], pairs[n][1], 1300, 1700);
        }
    }
    tap_point("large operands");
}

/* ---- moves ---- */

static void move_trial(duet_dtype type, int which, int outs)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    for (int k = 0; k < outs; k++)
        add_output(&t, any_layout(type, plain[which].rank, plain[which].size, false));
    for (int k = 0; k < outs; k++)
        add_input(&t, any_layout(type, plain[which].rank, plain[which].size, true), 20);
    collapse(&t);
    t.code = (program){ .inputs = (uint8_t)outs, .outputs = (uint8_t)outs };
    for (int k = 0; k < outs; k++) {
        t.code.code[t.code.length++] =
            (instruction){ OP_LOAD, (uint8_t)type, { { FROM_INPUT, (uint8_t)draw(outs) } } };
        t.code.code[t.code.length++] = (instruction){ OP_STORE, (uint8_t)type, { { 0, (uint8_t)k } } };
    }
    run_trial(&t);
}

/* From columns to rows, both long. */
static void turn_trial(duet_dtype type, int64_t rows, int64_t columns)
{
    const int64_t size[] = { rows, columns };
    trial t = { .s.kernel = KERNEL_PROGRAM };
    layout turned;
    layout_dense(&turned, type, 2, size);
    turned.stride[0] = 1;
    turned.stride[1] = rows;
    add_dense(&t, true, type, 2, size);
    add_input(&t, turned, 0);
    t.code = (program){ .length = 2, .inputs = 1, .outputs = 1 };
    t.code.code[0] = (instruction){ OP_LOAD, (uint8_t)type, { { FROM_INPUT, 0 } } };
    t.code.code[1] = (instruction){ OP_STORE, (uint8_t)type, { { 0 } } };
    run_trial(&t);
}

static void test_moves(bool quick)
{
    const int64_t eight[] = { 2, 3, 2, 2, 3, 2, 2, 3 };
    for (int type = 0; type < DUET_DTYPE_COUNT; type++) {
        for (int which = 0; which < PLAINS; which++)
            for (int outs = 1; outs < 4; outs += 2) move_trial((duet_dtype)type, which, outs);
        turn_trial((duet_dtype)type, 70, 130);
        turn_trial((duet_dtype)type, 33, 65);
        if (!quick) turn_trial((duet_dtype)type, 1111, 640);
        /* the maximum number of axes, none of which can be merged */
        trial t = { .s.kernel = KERNEL_PROGRAM };
        layout l;
        layout_dense(&l, (duet_dtype)type, 8, eight);
        for (int a = 0; a < 8; a++) l.stride[a] = a ? l.stride[a - 1] * eight[a - 1] + 1 : 1;
        add_dense(&t, true, (duet_dtype)type, 8, eight);
        add_input(&t, l, 0);
        t.code = (program){ .length = 2, .inputs = 1, .outputs = 1 };
        t.code.code[0] = (instruction){ OP_LOAD, (uint8_t)type, { { FROM_INPUT, 0 } } };
        t.code.code[1] = (instruction){ OP_STORE, (uint8_t)type, { { 0 } } };
        run_trial(&t);
    }
    tap_point("copies of any layout");
}

/* ---- reductions ---- */

static const struct {
    int kept, inner;
    int64_t size[4];
} domains[] = {
    { 1, 1, { 5, 21 } },    { 1, 1, { 40, 300 } },  { 1, 1, { 1, 4097 } },     { 1, 1, { 2, 3 * 4096 + 5 } },
    { 1, 1, { 1000, 10 } }, { 1, 2, { 6, 9, 33 } }, { 2, 2, { 3, 5, 7, 40 } }, { 1, 1, { 130, 129 } },
    { 1, 1, { 300, 1 } },   { 0, 2, { 65, 70 } },   { 2, 1, { 3, 0, 4 } },     { 0, 1, { 9 * 4096 } },
    { 1, 1, { 3, 0 } }
};
#define DOMAINS ((int)(sizeof domains / sizeof *domains))

static int any_reduce(duet_dtype computed, bool empty)
{
    for (;;) {
        const int op = draw(OPS), flags = op_infos[op].flags;
        if (op_infos[op].kind != KIND_REDUCE ||
            (empty && (flags & OP_GIVES_INDEX || op == OP_min || op == OP_max)))
            continue;
        if (is_whole(computed) ? flags & OP_INTEGERS : flags & OP_FLOATS) return op;
    }
}

/* The remaining axes of an input may be the fast ones. */
static layout input_layout(duet_dtype type, int d)
{
    const int rank = domains[d].kept + domains[d].inner;
    layout l;
    if (chance(30)) return any_layout(type, rank, domains[d].size, true);
    layout_dense(&l, type, rank, domains[d].size);
    if (chance(50)) return l;
    int64_t stride = 1;
    for (int a = domains[d].kept; a-- > 0;) {
        l.stride[a] = stride;
        stride *= domains[d].size[a];
    }
    for (int a = rank; a-- > domains[d].kept;) {
        l.stride[a] = stride;
        stride *= domains[d].size[a];
    }
    return l;
}

static void reduce_trial(duet_dtype computed, int d, int outs)
{
    trial t = { .s.kernel = KERNEL_PROGRAM, .s.inner = (uint8_t)domains[d].inner };
    writer w = { .s = &t.s, .p = &t.code, .type = computed };
    const layout still = { .rank = domains[d].inner };
    int ops[STEP_OUTPUTS], ins = 1 + draw(3);
    bool empty = false;
    for (int a = domains[d].kept; a < domains[d].kept + domains[d].inner; a++)
        empty |= domains[d].size[a] == 0;
    for (int k = 0; k < outs; k++) {
        ops[k] = any_reduce(computed, empty);
        const bool index = op_infos[ops[k]].flags & OP_GIVES_INDEX;
        add_output(&t, any_layout(index ? DUET_I64 : any_type(computed), domains[d].kept, domains[d].size,
                                  false));
        add_axes(&t.s.out[k].at, &still);
        memcpy(t.s.out[k].at.size + domains[d].kept, domains[d].size + domains[d].kept,
               (size_t)domains[d].inner * sizeof *domains[d].size);
    }
    for (int k = 0; k < ins; k++) add_input(&t, input_layout(any_type(computed), d), chance(20) ? 2 : 0);
    add_number(&t, any_number(computed));
    t.code = (program){
        .inputs = t.s.ins, .numbers = 1, .slots = PROGRAM_SLOTS, .outputs = (uint8_t)outs, .reductions = true
    };
    for (int k = 0; k < outs; k++) {
        for (int n = chance(40) ? 0 : draw(3); n-- > 0;) write_map(&w, any_op(computed));
        const bool acc = w.acc;
        write_one(&w, ops[k], 0);
        w.acc = acc;
        t.code.code[t.code.length - 1].arg[2].index = (uint8_t)k;
    }
    collapse(&t);
    run_trial(&t);
}

static void test_reduces(int rounds)
{
    for (int n = 0; n < rounds; n++)
        for (int c = 0; c < 4; c++)
            for (int d = 0; d < DOMAINS; d++)
                reduce_trial(computing[c], d, chance(70) ? 1 : 1 + draw(STEP_OUTPUTS));
    tap_point("reductions");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    test_ends(quick ? 60 : 300);
    test_large(quick);
    test_moves(quick);
    test_reduces(quick ? 2 : 12);
    return tap_end();
}
