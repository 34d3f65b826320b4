/* test_generated.c - machine code that is made at run time: random programs of all operators give
 * the bits of the interpreter, with every instruction set. A decoder checks the code too (x86_decode.h).
 *     test_generated [how many programs] [seed] */
#include "program_trial.h"
#include "quick.h"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* least: how many of 100 must have code */
static void test_random(const char *title, void make(trial *, duet_dtype), int trials, unsigned least)
{
    for (int k = 0; k < 2; k++) programs[k] = with_code[k] = 0;
    for (int n = 0; n < trials; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        static const duet_dtype types[] = { DUET_F32, DUET_I64, DUET_F64, DUET_U64 };
        make(&t, types[n % 4]);
        check_machine_code(&t.code, types[n % 4]);
        run_both(&t);
    }
    for (int k = 0; k < 2; k++) {
        const unsigned long long all = programs[k], some = with_code[k];
        printf("# %s of %s: %llu of %llu programs had code\n", title, k ? "integers" : "floats", some, all);
        /* Reductions of plain inputs have no machine code, nor have those of AVX2 whose state needs more
         * registers than there are. */
        if (is_x86 && formulas_f32.constants)
            CHECK(all && some * 100 >= all * least, "%llu of %llu programs had code", some, all);
    }
    tap_point(title);
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
    test_random("conditions", make_conditions, trials / 4, 100);
    test_random("polynomials", make_polynomial, trials / 4, 100);
    test_random("reductions", make_reductions, trials / 2, 90);
    test_streaming();
    test_large_reductions();
    return tap_end();
}
