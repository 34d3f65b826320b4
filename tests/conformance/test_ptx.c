/* test_ptx.c - writes PTX for each element-wise operator, and in builds with CUDA for each reduction, with
 * operands of random types and layouts. Checks that ptxas accepts it if ptxas is installed. test_compiled.c
 * tests results, on a GPU. */
#include "code_list.h"
#include "ptx_write.h"
#ifdef HAS_KERNEL_TEXTS
#include "compiled_kernels.h"
#endif
#include "quick.h"
#include "tap.h"
#include "test_rng.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/duet_ptx_XXXXXX";

static bool has_assembler(void) { return system("ptxas --version >/dev/null 2>&1") == 0; }

/* The first text of ptxas about the module, or NULL if there is none. */
static const char *refusal(const ptx_text *t, bool waits)
{
    static char command[256], text[256];
    FILE *f = fopen(path, "w");
    if (!f || fwrite(t->at, 1, t->length, f) != t->length || fclose(f)) return "the file was not written";
    snprintf(command, sizeof command, "ptxas -arch=sm_%d %s -o /dev/null 2>&1", waits ? 90 : 80, path);
    f = popen(command, "r");
    if (!f) return "ptxas did not start";
    const bool some = fgets(text, sizeof text, f);
    return pclose(f) || some ? text : NULL;
}

static ptx_request any_request(const code_list *l, bool f64)
{
    static const duet_dtype out[] = { DUET_F32, DUET_F64, DUET_BOOL, DUET_I8,  DUET_I16, DUET_I32,
                                      DUET_U8,  DUET_U16, DUET_U32,  DUET_F16, DUET_BF16 };
    const bool vectors = chance(70);
    ptx_request r = { .list = l,
                      .threads = vectors ? 128 : 64,
                      .f64 = f64,
                      .width = vectors ? f64 ? 2 : 4 : 1,
                      .waits = chance(50),
                      .rank = (uint8_t)(1 + draw(DUET_RANK_MAX)),
                      .out_walks = chance(25),
                      .inputs = 3,
                      .outputs = 1,
                      .numbers = 2 };
    for (int k = 0; k < 3; k++) {
        r.access[k] = (uint8_t)draw(PTX_WALK + 1);
        r.in_type[k] = (uint8_t)draw(DUET_BOOL + 1);
    }
    r.out_type[0] = (uint8_t)out[draw(f64 ? 9 : 11)];
    return r;
}

/* Returns whether there is PTX, which must be right. */
static bool try(int op, bool f64, bool assembles)
{
    const uint8_t type = f64 ? DUET_F64 : DUET_F32;
    program p = { .length = 3, .inputs = 3, .outputs = 1, .numbers = 2 };
    p.code[0] =
        (instruction){ (uint8_t)op, type, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 }, { FROM_INPUT, 2 } } };
    p.code[1] = (instruction){ OP_fma, type, { { FROM_ACC }, { FROM_NUMBER, 1 }, { FROM_INPUT, 1 } } };
    p.code[2] = (instruction){ .op = OP_STORE, .type = type };
    code_list l;
    ptx_text t = { 0 };
    const bool listed = code_list_make(&l, &p, (duet_dtype)type);
    CHECK(listed, "%s has no list", op_infos[op].name);
    const ptx_request r = any_request(&l, f64);
    const bool written = listed && ptx_write(&t, &r);
    const char *why = written && assembles ? refusal(&t, r.waits) : NULL;
    CHECK(!why, "%s of %s: %s", op_infos[op].name, f64 ? "f64" : "f32", why);
    free(t.at);
    code_list_free(&l);
    return written;
}

/* The same for a reduction of a formula. */
static bool try_reduction(int op, bool f64, bool assembles)
{
    bool written = false;
#ifdef HAS_KERNEL_TEXTS
    const uint8_t type = f64 ? DUET_F64 : DUET_F32;
    program p = { .length = 2, .inputs = 3, .outputs = 1, .numbers = 2, .reductions = true };
    p.code[0] = (instruction){ OP_fma, type, { { FROM_INPUT, 0 }, { FROM_NUMBER, 1 }, { FROM_INPUT, 1 } } };
    p.code[1] = (instruction){ (uint8_t)op, type, { { FROM_ACC }, { FROM_INPUT, 2 } } };
    code_list l;
    ptx_text t = { 0 };
    char name[64];
    const bool listed = code_list_make_operands(&l, &p, (duet_dtype)type);
    ptx_request r = any_request(&l, f64);
    r.form = (uint8_t)(PTX_ROWS + draw(PTX_FORMS - PTX_ROWS));
    r.width = r.form != PTX_ROWS ? 1 : f64 ? 2 : 4;
    r.outputs = op_infos[op].arity;
    r.out_type[0] = r.out_type[1] = type;
    r.out_walks = r.waits = false;
    const ptx_skeleton s = compiled_reduce_skeleton(f64, r.form, &p, name);
    written = listed && ptx_write_reduction(&t, &r, &s);
    const char *why = written && assembles ? refusal(&t, false) : NULL;
    CHECK(!why, "%s of %s: %s", name, f64 ? "f64" : "f32", why);
    CHECK(written, "%s of %s was not written", name, f64 ? "f64" : "f32");
    free(t.at);
    code_list_free(&l);
#endif
    return written;
}

static bool is_reduction(int op)
{
    return op_infos[op].kind == KIND_REDUCE && op_infos[op].flags & OP_FLOATS;
}

static bool is_map(int op) { return op_infos[op].kind == KIND_MAP && op_infos[op].flags & OP_FLOATS; }

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
            for (int f64 = 0; f64 < 2; f64++) {
                if (is_reduction(op)) reductions += try_reduction(op, f64, assembles);
                if (!is_map(op)) continue;
                tried++;
                written += try(op, f64, assembles);
            }
    if (file >= 0) close(file);
    unlink(path);
    CHECK(written >= tried * 9 / 10, "only %d of %d kernels were written", written, tried);
    printf("# %d of %d kernels, and %d of reductions, were written%s\n", written, tried, reductions,
           assembles ? " and assembled" : "; there is no ptxas");
    tap_point("PTX of every operator");
    return tap_end();
}
