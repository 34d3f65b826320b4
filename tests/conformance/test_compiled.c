/* test_compiled.c - kernels that the driver compiles for one program: random programs of all operators, also
 * before reductions, of operands with any layouts and alignments, give the bits of the interpreter on the GPU
 * and of the CPU.
 *     test_compiled [how many programs] [seed] */
#include "program_writer.h"
#include "quick.h"

static uint64_t programs, compiled;

/* Programs of integers with division or powers have no compiled kernel. */
static bool is_tried(int op, duet_dtype type)
{
    static const int without[] = { OP_pow, OP_floor_divide, OP_remainder, OP_fmod };
    if (op_infos[op].kind != KIND_MAP) return false;
    if (!has_integers(type)) return op_infos[op].flags & OP_FLOATS;
    bool tried = op_infos[op].flags & OP_INTEGERS;
    for (int k = 0; k < 4; k++) tried &= op != without[k];
    return tried;
}

static int any_of_all(duet_dtype type)
{
    for (;;) {
        const int op = draw(OPS);
        if (is_tried(op, type)) return op;
    }
}

/* One in three is any operator; most of those are functions with long code. */
static int any_map(duet_dtype type)
{
    static const int plain[] = { OP_add,   OP_sub,     OP_mul,     OP_div,  OP_fma,   OP_neg,  OP_abs,
                                 OP_where, OP_minimum, OP_maximum, OP_less, OP_equal, OP_sqrt, OP_copysign };
    if (has_integers(type) || chance(33)) return any_of_all(type);
    return plain[draw((int)(sizeof plain / sizeof *plain))];
}

static layout dense_of(duet_dtype type, int rank, const int64_t *size)
{
    layout l;
    layout_dense(&l, type, rank, size);
    return l;
}

/* Mostly the program's own type, else any from which a kernel can be compiled, or to which one can write. */
static duet_dtype operand_type(duet_dtype type, bool out)
{
    static const duet_dtype others[] = { DUET_F32,  DUET_BOOL, DUET_I8,  DUET_I16, DUET_I32,
                                         DUET_U8,   DUET_U16,  DUET_U32, DUET_F64, DUET_F16,
                                         DUET_BF16, DUET_I64,  DUET_U64 };
    static const duet_dtype of_integers[] = { DUET_I64, DUET_U64, DUET_F16 };
    if (chance(has_integers(type) ? 50 : 70)) return type;
    if (out && has_integers(type) && chance(30)) return of_integers[draw(3)];
    return others[draw(!out ? 13 : type == DUET_F32 ? 11 : 9)];
}

static void make_program(trial *t, duet_dtype type, bool large)
{
    int64_t size[DUET_RANK_MAX];
    const int outs = chance(80) ? 1 : 1 + draw(3), ins = 1 + draw(chance(85) ? 4 : PROGRAM_INPUTS - 1),
              rank = 1 + draw(4);
    for (int a = 0; a < rank; a++) size[a] = 1 + draw(rank == 1 ? 3000 : rank == 2 ? 60 : 9);
    if (large) size[0] = (rank == 1 ? 66000 : rank == 2 ? 1400 : rank == 3 ? 700 : 170) + draw(3000);
    if (large && rank > 1) size[rank - 1] += 40;
    const bool dense = chance(70);
    for (int k = 0; k < outs; k++) {
        const duet_dtype to = operand_type(type, true);
        add_output(t, dense ? dense_of(to, rank, size) : any_layout(to, rank, size, false));
    }
    for (int k = 0; k < ins; k++) {
        const duet_dtype from = operand_type(type, false);
        if (chance(15)) t->s.in[t->s.ins++] = t->s.out[draw(outs)];
        else
            add_input(t, chance(50) ? dense_of(from, rank, size) : any_layout(from, rank, size, true),
                      has_integers(type) ? 30
                      : chance(60)       ? 0
                                         : 5);
    }
    for (int k = draw(6); k-- >= 0;) add_number(t, any_number(type, 3));
    writer w = { .s = &t->s, .p = &t->code, .type = type };
    t->code =
        (program){ .inputs = t->s.ins, .numbers = t->s.nums, .slots = PROGRAM_SLOTS, .outputs = t->s.outs };
    for (int o = 0; o < outs; o++) {
        write_maps(&w, (chance(10) ? 60 : 12) / outs, any_map);
        write_one(&w, OP_STORE, o);
    }
    layout *all[STEP_OUTPUTS + STEP_INPUTS];
    int n = 0;
    for (int k = 0; k < t->s.outs; k++) all[n++] = &t->s.out[k].at;
    for (int k = 0; k < t->s.ins; k++) all[n++] = &t->s.in[k].at;
    layout_collapse(all, n);
}

/* ---- reductions ---- */

/* Draws sizes of the axes that stay, and of those that are reduced: few elements, less than a block, several
 * blocks, or so many that several thread blocks share a row. */
static void reduced_sizes(int64_t size[], int kept, int inner)
{
    const int64_t n = chance(20)   ? 1 + draw(18)
                      : chance(50) ? 20 + draw(400)
                      : chance(60) ? 3900 + draw(9000)
                                   : 33000 + draw(90000);
    for (int a = 0; a < kept; a++) size[a] = 1 + draw(n > 3000 ? 5 : kept == 1 ? n < 20 ? 3000 : 90 : 12);
    size[kept] = n;
    if (inner == 2) {
        size[kept] = 1 + draw(12);
        size[kept + 1] = n / size[kept] + 1;
    }
}

/* A dense layout by rows or by columns, or any layout. */
static layout reduced_layout(duet_dtype type, int kept, int rank, const int64_t size[])
{
    layout l = dense_of(type, rank, size);
    if (chance(30)) return any_layout(type, rank, size, true);
    if (chance(50)) return l;
    int64_t stride = 1;
    for (int k = 0; k < 2; k++)
        for (int a = k ? rank : kept; a-- > (k ? kept : 0);) {
            l.stride[a] = stride;
            stride *= size[a];
        }
    return l;
}

static int any_reduction(duet_dtype type)
{
    for (;;) {
        const int op = draw(OPS);
        if (op_infos[op].kind == KIND_REDUCE &&
            op_infos[op].flags & (has_integers(type) ? OP_INTEGERS : OP_FLOATS))
            return op;
    }
}

static void make_reduction(trial *t, duet_dtype type)
{
    const int kept = draw(3), inner = 1 + draw(2), ins = 1 + draw(4), outs = chance(80) ? 1 : 2;
    int64_t size[DUET_RANK_MAX];
    int op[2];
    const layout still = { .rank = inner };
    reduced_sizes(size, kept, inner);
    for (int k = 0; k < outs; k++) {
        op[k] = any_reduction(type);
        const duet_dtype to = op_infos[op[k]].flags & OP_GIVES_INDEX ? DUET_I64 : type;
        add_output(t, chance(60) ? dense_of(to, kept, size) : any_layout(to, kept, size, false));
        add_axes(&t->s.out[k].at, &still);
        memcpy(t->s.out[k].at.size + kept, size + kept, (size_t)inner * sizeof *size);
    }
    for (int k = 0; k < ins; k++)
        add_input(t, reduced_layout(operand_type(type, false), kept, kept + inner, size),
                  has_integers(type) ? 30
                  : chance(60)       ? 0
                                     : 5);
    for (int k = draw(4); k-- >= 0;) add_number(t, any_number(type, 3));
    t->s.inner = (uint8_t)inner;
    writer w = { .s = &t->s, .p = &t->code, .type = type };
    t->code = (program){ .inputs = t->s.ins,
                         .numbers = t->s.nums,
                         .slots = PROGRAM_SLOTS,
                         .outputs = t->s.outs,
                         .reductions = true };
    for (int k = 0; k < outs; k++) {
        write_maps(&w, chance(10) ? 40 : 10, any_map);
        write_reduce(&w, op[k], k);
    }
}

/* ---- tests ---- */

static void run_all(trial *t)
{
    static const struct {
        const char *name;
        int device, mode;
    } ways[] = { { "CPU", HOST, GENERATED_NEVER },
                 { "GPU, interpreted", DEFAULT_GPU, GENERATED_NEVER },
                 { "GPU, compiled", DEFAULT_GPU, GENERATED_AT_ONCE } };
    t->s.program = &t->code;
    mark_outputs(t);
    if (device_machine(DEFAULT_GPU)->unsupported_reason(&t->s)) {
        trial_free(t);
        return;
    }
    for (int v = 0; v < 3; v++) {
        const machine *m = device_machine(ways[v].device);
        generated_mode = ways[v].mode;
        const duet_status r = run_once(t, m);
        CHECK(r == DUET_OK, "%s: %s", sizes_text(t), duet_error());
        check_rest(t, ways[v].name, v == 0);
        m->forget(&t->s);
    }
    const char *how = device_machine(DEFAULT_GPU)->algorithm(&t->s);
    programs++;
    compiled += how && !strcmp(how, "machine code");
    trial_free(t);
}

enum { SMALL, LARGE, REDUCTIONS };

static void test_random(const char *title, int trials, int kind)
{
    programs = compiled = 0;
    for (int n = 0; n < trials; n++) {
        static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64, DUET_U64 };
        const duet_dtype type = types[n % 4];
        trial t = { .s.kernel = KERNEL_PROGRAM };
        if (kind == REDUCTIONS) make_reduction(&t, type);
        else make_program(&t, type, kind == LARGE);
        run_all(&t);
    }
    printf("# %s: %llu of %llu programs were compiled\n", title, (unsigned long long)compiled,
           (unsigned long long)programs);
    CHECK(compiled * 10 >= programs * 8, "only %llu of %llu programs were compiled",
          (unsigned long long)compiled, (unsigned long long)programs);
    tap_point(title);
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 150, 1500);
    if (argc > 2) seed += (uint64_t)atoi(argv[2]) * 0x9e3779b97f4a7c15u;
    if (device_absent(DEFAULT_GPU)) {
        printf("1..0 # SKIP no GPU\n");
        return 0;
    }
    test_random("small arrays", trials, SMALL);
    test_random("large arrays", trials / 5, LARGE);
    test_random("reductions", trials / 3, REDUCTIONS);
    return tap_end();
}
