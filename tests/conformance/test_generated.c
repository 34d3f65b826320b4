/* test_generated.c - machine code that is made at run time: random programs of all operators give
 * the bits of the interpreter, with every instruction set.
 *     test_generated [how many programs] [seed] */
#include "cpu_kernels.h"
#include "formula.h"
#include "generated.h"
#include "isas.h"
#include "machine_trial.h"
#include "quick.h"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The operators of floating-point types, and of integers. */
typedef struct operators {
    int map[OPS], maps, fold[OPS], folds;
} operators;
static operators of[2];

static bool has_integers(duet_dtype type) { return type == DUET_I64 || type == DUET_U64; }

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

/* Integers include divisors 0 and -1, and shifts by more than the width. */
static double any_number(duet_dtype type, int strange)
{
    if (!has_integers(type)) return number(type, strange);
    return integer_number(chance(50) ? draw(70) - 3 : whole_or_special(type, 30));
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

static void write_wrap(writer *w)
{
    static const uint8_t narrow[] = { DUET_I8, DUET_U8, DUET_I16, DUET_U16, DUET_I32, DUET_U32, DUET_BOOL };
    instruction *i = &w->p->code[w->p->length++];
    *i = (instruction){ .op = OP_WRAP, .type = (uint8_t)w->type, .arg = { { FROM_ACC, 0 } } };
    i->arg[1].index = narrow[draw(7)];
}

static void write_maps(writer *w, int length)
{
    for (int n = draw(length) + !w->acc; n-- > 0;) {
        if (w->acc && chance(20)) write_one(w, OP_SAVE, 0);
        else if (chance(5)) write_one(w, OP_LOAD, 0);
        else if (w->acc && has_integers(w->type) && chance(15)) write_wrap(w);
        else write_one(w, any_map(w->type), 0);
    }
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

static void make_maps(trial *t, duet_dtype type)
{
    const int outs = chance(70) ? 1 : 1 + draw(PROGRAM_OUTPUTS),
              ins = 1 + draw(chance(85) ? 4 : PROGRAM_INPUTS);
    add_rows(t, type, 1 + draw(chance(80) ? 90 : 700), outs, ins, chance(60) ? 0 : 5);
    for (int k = draw(chance(90) ? 5 : PROGRAM_NUMBERS); k-- >= 0;) add_number(t, any_number(type, 3));
    writer w = { .s = &t->s, .p = &t->code, .type = type };
    t->code =
        (program){ .inputs = t->s.ins, .numbers = t->s.nums, .slots = PROGRAM_SLOTS, .outputs = t->s.outs };
    for (int o = 0; o < outs; o++) {
        write_maps(&w, (chance(10) ? PROGRAM_LENGTH - 8 : 13) / outs);
        write_one(&w, OP_STORE, o);
    }
}

/* Reductions over the last axis, whose lanes are those of adjacent elements, or of adjacent results. */
static void make_reductions(trial *t, duet_dtype type)
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
        write_maps(&w, 8);
        write_one(&w, ops[o], 0);
        w.acc = true;
        t->code.code[t->code.length - 1].arg[2].index = (uint8_t)o;
    }
}

/* Matrices that are exchanged, rotated and added in place: all inputs are outputs. */
static void make_exchanges(trial *t, duet_dtype type)
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

static void run_both(trial *t)
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

/* least: how many of 100 must have code */
static void test_random(const char *title, void make(trial *, duet_dtype), int trials, unsigned least)
{
    for (int k = 0; k < 2; k++) programs[k] = with_code[k] = 0;
    for (int n = 0; n < trials; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        static const duet_dtype types[] = { DUET_F32, DUET_I64, DUET_F64, DUET_U64 };
        make(&t, types[n % 4]);
        run_both(&t);
    }
    for (int k = 0; k < 2; k++) {
        const unsigned long long all = programs[k], some = with_code[k];
        printf("# %s of %s: %llu of %llu programs had code\n", title, k ? "integers" : "floats", some, all);
        /* Reductions of inputs as they are have no code. */
        if (is_x86 && formulas_f32.constants)
            CHECK(all && some * 100 >= all * least, "%llu of %llu programs had code", some, all);
    }
    tap_point(title);
}

/* Polynomials: few values at a time, and up to as many numbers as a program may have. */
static void make_polynomial(trial *t, duet_dtype type)
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

/* ---- stores past the caches ---- */

/* Results of more than 32 MB: aligned, misaligned alike, and misaligned differently. */
static void test_streaming(void)
{
    enum { N = 4100000, SPARE = 16 };
    double *memory[2], *x = malloc(N * sizeof *x);
    for (int k = 0; k < 2; k++) memory[k] = aligned_alloc(64, (N + SPARE) * sizeof *memory[k]);
    if (!CHECK(memory[0] && memory[1] && x, "no memory")) return;
    for (int i = 0; i < N; i++) x[i] = i % 1000;
    const int64_t n = N;
    program p = { .length = 4, .inputs = 1, .outputs = 2 };
    p.code[0] = (instruction){ OP_add, DUET_F64, { { FROM_INPUT, 0 }, { FROM_INPUT, 0 } } };
    p.code[1] = (instruction){ OP_STORE, DUET_F64, { { 0, 0 } } };
    p.code[2] = (instruction){ OP_neg, DUET_F64, { { FROM_ACC, 0 } } };
    p.code[3] = (instruction){ OP_STORE, DUET_F64, { { 0, 1 } } };
    generated_mode = GENERATED_AT_ONCE;
    for (int isa = 1; isa < ISAS; isa++)
        for (int turn = 0; turn < 3; turn++) {
            const int shift[2] = { turn == 1 ? 3 : 0, turn == 2 ? 5 : turn == 1 ? 3 : 0 };
            use_isa(isa);
            step s = { .kernel = KERNEL_PROGRAM, .ins = 1, .outs = 2, .program = &p };
            layout_dense(&s.out[0].at, DUET_F64, 1, &n);
            s.out[1] = (operand){ 1, s.out[0].at };
            s.in[0] = (operand){ 2, s.out[0].at };
            void *data[] = { memory[0] + shift[0], memory[1] + shift[1], x };
            for (int k = 0; k < 2; k++) memset(memory[k], 0xff, (N + SPARE) * sizeof *memory[k]);
            const frame f = { .data = data };
            CHECK(device_machine(HOST)->run(&s, &f) == DUET_OK, "%s", duet_error());
            int64_t wrong = 0, outside = 0;
            for (int k = 0; k < 2; k++)
                for (int64_t i = 0; i < N + SPARE; i++) {
                    const int64_t at = i - shift[k];
                    if (at < 0 || at >= N) outside += !isnan(memory[k][i]);
                    else wrong += memory[k][i] != (k ? -2 : 2) * x[at];
                }
            CHECK(wrong == 0 && outside == 0, "%s, turn %d: %lld wrong elements, %lld outside",
                  isa_names[isa], turn, (long long)wrong, (long long)outside);
            device_machine(HOST)->forget(&s);
        }
    for (int k = 0; k < 2; k++) free(memory[k]);
    free(x);
    tap_point("stores past the caches");
}

/* Reductions of 17 MB, whose rows are computed one by one: a sum, and the index of the largest. */
static void test_large_reductions(void)
{
    enum { N = 2200000 };
    const int64_t n = N;
    double *x = malloc(N * sizeof *x);
    uint64_t result[2][2] = { { 0 } }; /* bits */
    if (!CHECK(x != NULL, "no memory")) return;
    for (int i = 0; i < N; i++) x[i] = draw(1 << 30) * 0.1;
    program p = { .length = 3, .inputs = 1, .outputs = 2, .reductions = true };
    p.code[0] = (instruction){ OP_mul, DUET_F64, { { FROM_INPUT, 0 }, { FROM_INPUT, 0 } } };
    p.code[1] = (instruction){ OP_sum, DUET_F64, { { FROM_ACC, 0 } } };
    p.code[2] = (instruction){ OP_argmax, DUET_F64, { { FROM_ACC, 0 }, { 0, 0 }, { 0, 1 } } };
    for (int isa = 1; isa < ISAS; isa++) {
        use_isa(isa);
        for (int made = 0; made < 2; made++) {
            generated_mode = made ? GENERATED_AT_ONCE : GENERATED_NEVER;
            step s = { .kernel = KERNEL_PROGRAM, .ins = 1, .outs = 2, .inner = 1, .program = &p };
            layout_dense(&s.in[0].at, DUET_F64, 1, &n);
            s.in[0].slot = 2;
            for (int k = 0; k < 2; k++) {
                s.out[k] = (operand){ k, s.in[0].at };
                s.out[k].at.stride[0] = 0;
            }
            s.out[1].at.type = DUET_I64;
            void *data[] = { &result[made][0], &result[made][1], x };
            const frame f = { .data = data };
            CHECK(device_machine(HOST)->run(&s, &f) == DUET_OK, "%s", duet_error());
            device_machine(HOST)->forget(&s);
        }
        for (int k = 0; k < 2; k++)
            CHECK(result[0][k] == result[1][k], "%s: %llx, with code %llx", isa_names[isa],
                  (unsigned long long)result[0][k], (unsigned long long)result[1][k]);
    }
    free(x);
    tap_point("large reductions");
}

/* ---- refused memory, and fork ---- */

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* Computes x + 1 for x = 0 .. 99. *code: whether machine code ran. */
static bool adds(bool *code)
{
    float x[100], y[100];
    const int64_t n = 100;
    const double num[1] = { 1 };
    program p = { .length = 2, .inputs = 1, .numbers = 1, .outputs = 1 };
    p.code[0] = (instruction){ OP_add, DUET_F32, { { FROM_INPUT, 0 }, { FROM_NUMBER, 0 } } };
    p.code[1] = (instruction){ .op = OP_STORE };
    step s = { .kernel = KERNEL_PROGRAM, .ins = 1, .outs = 1, .nums = 1, .program = &p };
    layout_dense(&s.out[0].at, DUET_F32, 1, &n);
    s.in[0] = (operand){ 1, s.out[0].at };
    void *data[] = { y, x };
    const frame f = { .data = data, .num = num };
    for (int i = 0; i < 100; i++) x[i] = (float)i;
    bool right = device_machine(HOST)->run(&s, &f) == DUET_OK;
    for (int i = 0; i < 100; i++) right &= y[i] == x[i] + 1;
    *code = has_code(&s);
    device_machine(HOST)->forget(&s);
    return right;
}

/* Runs a test in a child process. Returns its exit status, or 100 if a signal ended it. */
static int in_child(int test(void))
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(test());
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* The system lets no page become executable. 2: it has no such setting. */
static int refused(void)
{
    bool code;
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)) return 2;
    return adds(&code) && !code ? 0 : 1;
}

static int made(void)
{
    bool code;
    return adds(&code) && code ? 0 : 1;
}

static void test_processes(void)
{
    bool code;
    generated_mode = GENERATED_AT_ONCE;
    const char *isa = use_isa(ISAS - 1);
    if (strcmp(isa, "portable") == 0 || !formulas_f32.constants) {
        tap_point("refused memory # SKIP no machine code for this processor");
        return;
    }
    const int alone = in_child(refused); /* before this process has the code */
    CHECK(alone == 0 || alone == 2, "without memory for code the child ended with %d", alone);
    CHECK(adds(&code) && code, "wrong sums, or no code");
    CHECK(in_child(made) == 0, "wrong sums, or no code, after a fork");
    generated_mode = GENERATED_NEVER;
    CHECK(adds(&code) && !code, "wrong sums, or code although it is off");
    tap_point("refused memory, and a fork");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 400, 20000);
    if (argc > 2) seed += (uint64_t)atoi(argv[2]) * 0x9e3779b97f4a7c15u;
    list_operators();
    test_processes();
    test_random("element-wise programs", make_maps, trials, 100);
    test_random("exchanged matrices", make_exchanges, trials / 4, 100);
    test_random("polynomials", make_polynomial, trials / 4, 100);
    test_random("reductions", make_reductions, trials / 2, 90);
    test_streaming();
    test_large_reductions();
    return tap_end();
}
