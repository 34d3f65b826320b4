/* test_ptx.c - writes PTX for each element-wise operator, for random programs, and in builds with CUDA for
 * each reduction, with operands of random types and layouts. Checks the text (ptx_check.h), except that of
 * reductions. If ptxas is installed, it must accept all texts. test_compiled.c tests results, on a GPU. */
#include "program_trial.h"
#include "ptx_check.h"
#ifdef HAS_KERNEL_TEXTS
#include "compiled_kernels.h"
#include "conv_kernels.h"
#include "emulated.h"
#include "joined.h"
#include "kernel_text.h"
#include "reduce_kernels.h"
#endif
#include "quick.h"
#include <unistd.h>

static char path[] = "/tmp/duet_ptx_XXXXXX";

static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64, DUET_U64 };

static bool has_assembler(void) { return system("ptxas --version >/dev/null 2>&1") == 0; }

/* The first text of ptxas about the module, or NULL if there is none. target: its directives, or NULL for
 * compute capability 8.0. */
static const char *refusal(const ptx_text *t, const char *target)
{
    static char command[256], text[256];
    FILE *f = fopen(path, "w");
    if (!f || fwrite(t->at, 1, t->length, f) != t->length || fclose(f)) return "the file was not written";
    const char *card = target ? strstr(target, "sm_") : "sm_80";
    snprintf(command, sizeof command, "ptxas -arch=%s %s -o /dev/null 2>&1", card, path);
    f = popen(command, "r");
    if (!f) return "ptxas did not start";
    const bool some = fgets(text, sizeof text, f);
    return pclose(f) || some ? text : NULL;
}

/* Returns whether there is PTX, which must be right. */
static bool try(int op, duet_dtype of_type, bool assembles)
{
    const uint8_t type = (uint8_t)of_type;
    const int second = dtype_is_integer(of_type) ? OP_add : OP_fma;
    program p = { .length = 3, .inputs = 3, .outputs = 1, .numbers = 2 };
    p.code[0] =
        (instruction){ (uint8_t)op, type, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 }, { FROM_INPUT, 2 } } };
    p.code[1] =
        (instruction){ (uint8_t)second, type, { { FROM_ACC }, { FROM_NUMBER, 1 }, { FROM_INPUT, 1 } } };
    p.code[2] = (instruction){ .op = OP_STORE, .type = type };
    code_list l;
    ptx_text t = { 0 };
    const bool listed = code_list_make(&l, &p, of_type);
    CHECK(listed, "%s has no list", op_infos[op].name);
    const ptx_request r = any_ptx_request(&l, &p, of_type);
    const bool written = listed && ptx_write(&t, &r);
    int line = 0;
    const char *fault = written ? ptx_fault(t.at, &line) : NULL;
    CHECK(!fault, "%s of %s, line %d: %s", op_infos[op].name, dtypes[type].name, line, fault ? fault : "");
    CHECK(written == !calls_functions(&l, of_type), "%s of %s: %s", op_infos[op].name, dtypes[type].name,
          written ? "PTX that calls functions" : "no PTX");
    const char *why = written && assembles ? refusal(&t, r.waits ? "sm_90" : NULL) : NULL;
    CHECK(!why, "%s of %s: %s", op_infos[op].name, dtypes[type].name, why);
    free(t.at);
    code_list_free(&l);
    return written;
}

/* The same for a reduction of a formula. */
static bool try_reduction(int op, duet_dtype of_type, bool assembles)
{
    bool written = false;
#ifdef HAS_KERNEL_TEXTS
    const uint8_t type = (uint8_t)of_type;
    const int before = has_integers(of_type) ? OP_add : OP_fma;
    program p = { .length = 2, .inputs = 3, .outputs = 1, .numbers = 2, .reductions = true };
    p.code[0] =
        (instruction){ (uint8_t)before, type, { { FROM_INPUT, 0 }, { FROM_NUMBER, 1 }, { FROM_INPUT, 1 } } };
    p.code[1] = (instruction){ (uint8_t)op, type, { { FROM_ACC }, { FROM_INPUT, 2 } } };
    code_list l;
    ptx_text t = { 0 };
    char name[64];
    const bool listed = code_list_make_operands(&l, &p, of_type);
    ptx_request r = any_ptx_request(&l, &p, of_type);
    r.form = (uint8_t)(PTX_ROWS + draw(PTX_JOINED - PTX_ROWS));
    r.head = sizeof(reduce_args);
    r.width = r.form != PTX_ROWS ? 1 : of_type == DUET_F32 ? 4 : 2;
    r.outputs = op_infos[op].arity;
    r.out_type[0] = r.out_type[1] = type;
    r.out_walks = r.waits = false;
    const ptx_template s = compiled_reduce_template(&r, &p, name);
    written = listed && s.text && ptx_fill_template(&t, &r, &s);
    kernel_text_free(&s);
    const char *why = written && assembles ? refusal(&t, NULL) : NULL;
    CHECK(!why, "%s of %s: %s", name, dtypes[type].name, why);
    CHECK(written, "%s of %s was not written", name, dtypes[type].name);
    free(t.at);
    code_list_free(&l);
#endif
    return written;
}

#ifdef HAS_KERNEL_TEXTS
/* The kernels of joined.h; `head` is the bytes of their own argument. */
static const struct joined_kernels {
    int file, first, count, width, head;
    duet_dtype type;
} joined_kernels[] = {
    { JOINED_GEMV, 0, 8, 1, sizeof(product_args), DUET_F32 },
    { JOINED_SMALL_MN, 0, 11, 1, sizeof(product_args), DUET_F32 },
    { JOINED_SMALL_MN, 0, 11, 1, sizeof(product_args), DUET_F64 },
    { JOINED_TALL, 0, 16, 1, sizeof(product_args), DUET_F32 },
    { JOINED_TALL, 0, 16, 1, sizeof(product_args), DUET_F64 },
    { JOINED_SPLIT_K, 0, 8, 1, sizeof(product_args), DUET_F32 },
    { JOINED_EMULATED, 0, 3, 4, sizeof(emulated_args), DUET_F32 },
    { JOINED_EMULATED_FEW, 0, 4, 1, sizeof(emulated_gemm_small_args), DUET_F32 },
    { JOINED_WINOGRAD_1D, 0, 3, 4, sizeof(conv2d_args), DUET_F32 },
    { JOINED_WINOGRAD_1D, 3, 3, 2, sizeof(conv2d_args), DUET_F32 },
    { JOINED_WINOGRAD_2D, 0, 2, 4, sizeof(conv2d_args), DUET_F32 },
    { JOINED_WINOGRAD_2D, 2, 2, 2, sizeof(conv2d_args), DUET_F32 },
    { JOINED_EMULATED_CONV, 0, 14, 4, sizeof(emulated_conv_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_GEMV), 0, 2, 1, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_GEMV), 2, 2, 4, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_GEMV), 4, 2, 1, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_GEMV), 6, 2, 4, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_SMALL_MN), 0, 11, 1, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_SMALL_MN), 0, 11, 1, sizeof(product_args), DUET_F64 },
    { JOINED_OPERAND(JOINED_TALL), 0, 8, 1, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_TALL), 0, 8, 1, sizeof(product_args), DUET_F64 },
    { JOINED_OPERAND(JOINED_TALL), 8, 8, 4, sizeof(product_args), DUET_F32 },
    { JOINED_OPERAND(JOINED_TALL), 8, 8, 2, sizeof(product_args), DUET_F64 },
};

/* A product's kernel, with a formula of three operands. One is the product, unless the formula computes an
 * operand of the product. */
static void try_joined(const struct joined_kernels *from, int number, bool assembles)
{
    const uint8_t type = (uint8_t)from->type;
    program p = { .length = 4, .inputs = 3, .outputs = 1, .numbers = 1 };
    p.code[0] = (instruction){ OP_tanh, type, { { FROM_INPUT, 1 } } };
    p.code[1] = (instruction){ OP_fma, type, { { FROM_ACC }, { FROM_NUMBER, 0 }, { FROM_INPUT, 0 } } };
    p.code[2] = (instruction){ OP_add, type, { { FROM_ACC }, { FROM_INPUT, 2 } } };
    p.code[3] = (instruction){ .op = OP_STORE, .type = type };
    code_list l;
    ptx_text t = { 0 };
    char name[64];
    const bool listed = code_list_make(&l, &p, from->type);
    ptx_request r = any_ptx_request(&l, &p, from->type);
    r.form = PTX_JOINED;
    r.kernel = JOINED_KERNEL(from->file, number);
    r.head = (uint16_t)from->head;
    r.width = (uint8_t)from->width;
    if (from->file < JOINED_FILES) r.access[1] = PTX_GIVEN;
    r.out_type[0] = type;
    r.out_walks = false;
    const ptx_template s = joined_template(&r, name);
    const bool written = listed && s.text && ptx_fill_template(&t, &r, &s);
    kernel_text_free(&s);
    CHECK(written, "%s of %s was not written", name, dtypes[type].name);
    const char *why = written && assembles ? refusal(&t, s.target) : NULL;
    CHECK(!why, "%s of %s: %s", name, dtypes[type].name, why);
    free(t.at);
    code_list_free(&l);
}

static void test_joined(bool assembles, bool quick)
{
    for (size_t i = 0; i < sizeof joined_kernels / sizeof *joined_kernels; i++)
        for (int k = 0; k < joined_kernels[i].count; k++)
            if (!quick || k == 0 || chance(20))
                try_joined(&joined_kernels[i], joined_kernels[i].first + k, assembles);
    tap_point("products with formulas");
}
#endif

static uint32_t class_of(duet_dtype type) { return has_integers(type) ? OP_INTEGERS : OP_FLOATS; }

static bool is_reduction(int op, duet_dtype type)
{
    return op_infos[op].kind == KIND_REDUCE && op_infos[op].flags & class_of(type);
}

/* ptxas, which may need a second, reads one program of 16. */
static void try_programs(int count, bool assembles)
{
    int written = 0;
    list_operators();
    for (int n = 0; n < count; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        bool waits = false;
        const duet_dtype type = types[n % 4];
        (chance(80) || has_integers(type) ? make_maps : make_polynomial)(&t, type);
        const int before = tap_failures;
        char *text = check_ptx(&t.code, type, &waits);
        const ptx_text whole = { text, text ? strlen(text) : 0, 0, false };
        const char *why = text && assembles && n % 64 < 4 ? refusal(&whole, waits ? "sm_90" : NULL) : NULL;
        CHECK(!why, "ptxas: %s", why);
        if (tap_failures != before) printf("# %s\n", program_text(&t));
        written += text != NULL;
        free(text);
        trial_free(&t);
    }
    CHECK(written >= count / 2, "only %d of %d kernels were written", written, count);
    printf("# %d of %d kernels were written\n", written, count);
    tap_point("PTX of random programs");
}

/* There is no PTX for these conversions of results. */
static void test_refused(void)
{
    static const duet_dtype pairs[][2] = { { DUET_F32, DUET_I64 },  { DUET_F32, DUET_U64 },
                                           { DUET_F64, DUET_I64 },  { DUET_F64, DUET_U64 },
                                           { DUET_F64, DUET_F16 },  { DUET_F64, DUET_BF16 },
                                           { DUET_I64, DUET_BF16 }, { DUET_U64, DUET_BF16 } };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        const duet_dtype type = pairs[k][0];
        program p = { .length = 2, .inputs = 1, .outputs = 1 };
        p.code[0] = (instruction){ OP_neg, (uint8_t)type, { { FROM_INPUT, 0 } } };
        p.code[1] = (instruction){ .op = OP_STORE, .type = (uint8_t)type };
        code_list l;
        ptx_text t = { 0 };
        CHECK(code_list_make(&l, &p, type), "no list");
        ptx_request r = any_ptx_request(&l, &p, type);
        r.out_type[0] = (uint8_t)pairs[k][1];
        CHECK(!ptx_write(&t, &r), "%s of a program of %s", dtypes[pairs[k][1]].name, dtypes[type].name);
        free(t.at);
        code_list_free(&l);
    }
    tap_point("conversions without PTX");
}

static bool is_map(int op, duet_dtype type)
{
    return op_infos[op].kind == KIND_MAP && op_infos[op].flags & class_of(type);
}

int main(int argc, char **argv)
{
    const int turns = trial_count(argc, argv, 1, 10), file = mkstemp(path);
    if (!formulas_f32.constants) {
        printf("1..0 # SKIP the build has no formulas\n");
        return 0;
    }
    const bool assembles = has_assembler();
    int tried = 0, written = 0, reductions = 0;
    for (int turn = 0; turn < turns && CHECK(file >= 0, "no file in /tmp"); turn++)
        for (int op = 0; op < OPS; op++)
            for (int k = 0; k < 4; k++) {
                if (is_reduction(op, types[k])) reductions += try_reduction(op, types[k], assembles);
                if (!is_map(op, types[k])) continue;
                tried++;
                written += try(op, types[k], assembles);
            }
    CHECK(written >= tried * 8 / 10, "only %d of %d kernels were written", written, tried);
    printf("# %d of %d kernels, and %d of reductions, were written%s\n", written, tried, reductions,
           assembles ? " and assembled" : "; there is no ptxas");
    tap_point("PTX of every operator");
    test_refused();
#ifdef HAS_KERNEL_TEXTS
    test_joined(assembles, turns == 1);
#endif
    try_programs(turns * 100, assembles);
    if (file >= 0) close(file);
    unlink(path);
    return tap_end();
}
