/* fuzz_encoder.c - the fuzz target of the code generators. The input determines a valid program, its
 * operands and some of their elements. With every instruction set of the processor, the machine code must
 * give the bits of the interpreter, and access no memory beyond the operands. It must also decode
 * (x86_decode.h). The PTX of programs without reductions must pass ptx_check.h. */
#include "fuzz.h"
#include "program_trial.h"
#include "ptx_check.h"

/* Dense operands and single elements, of any types that are not complex. */
static void add_operands(trial *t, duet_dtype type, int outs, int ins)
{
    const int64_t n = 1 + draw(chance(80) ? 90 : 600);
    for (int k = 0; k < outs + ins; k++) {
        layout l;
        layout_dense(&l, chance(30) ? (duet_dtype)draw(DUET_BOOL + 1) : type, 1, &n);
        if (k >= outs && chance(30)) l.stride[0] = 0;
        if (k < outs) add_output(t, l);
        else add_input(t, l, 20);
    }
}

static void write_any(writer *w)
{
    const operators *known = &of[has_integers(w->type)];
    if (w->acc && chance(25)) write_one(w, OP_SAVE, 0);
    else if (w->acc && has_integers(w->type) && chance(15)) write_wrap(w);
    else write_one(w, known->map[draw(known->maps)], 0);
}

/* Programs of all operators, as long as a program can be. */
static void make_any(trial *t, duet_dtype type)
{
    const int outs = 1 + draw(PROGRAM_OUTPUTS), length = draw(PROGRAM_LENGTH / outs - 1);
    add_operands(t, type, outs, 1 + draw(PROGRAM_INPUTS));
    for (int k = draw(PROGRAM_NUMBERS); k >= 0; k--) add_number(t, any_number(type, 20));
    t->code =
        (program){ .inputs = t->s.ins, .numbers = t->s.nums, .slots = PROGRAM_SLOTS, .outputs = t->s.outs };
    writer w = { .s = &t->s, .p = &t->code, .type = type };
    for (int o = 0; o < outs; o++) {
        for (int k = w.acc ? 0 : -1; k < length; k++) write_any(&w);
        write_one(&w, OP_STORE, o);
    }
}

/* Sets the elements of about half of the operands to the bytes of the input, from the end on. */
static void put_bytes(trial *t, const uint8_t *bytes, size_t size)
{
    for (int k = 0; k < t->buffers && size > 0; k++) {
        buffer *b = &t->buffer[k];
        const size_t n = (size_t)b->count * dtypes[b->type].bytes;
        if (chance(50)) continue;
        for (size_t i = 0; i < n; i++)
            b->before[i] =
                (char)(bytes[size - 1 - (i + (size_t)k) % size] & (b->type == DUET_BOOL ? 1 : 255));
    }
}

/* ---- access beyond operands ---- */

enum { PAGE = 4096, GUARDED = 16 * PAGE };
static char *guarded; /* an area for each buffer, between pages that cannot be accessed */

static void make_guarded(void)
{
    guarded = mmap(NULL, PAGE + BUFFERS * (GUARDED + PAGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(guarded != MAP_FAILED, "there is no memory");
    guarded += PAGE;
    for (int k = 0; k < BUFFERS; k++)
        expect(!mprotect(guarded + k * (GUARDED + PAGE), GUARDED, PROT_READ | PROT_WRITE),
               "pages have no access");
}

/* How many elements the operands in a buffer have, with those between them. */
static int64_t span_of(const trial *t, int buffer)
{
    int64_t most = 0;
    for (int k = 0; k < t->s.ins + t->s.outs; k++) {
        const bool in = k < t->s.ins;
        const operand *o = in ? &t->s.in[k] : &t->s.out[k - t->s.ins];
        const layout l = in ? o->at : kept_axes(t, &o->at);
        int64_t low, high;
        layout_span(&l, &low, &high);
        if (o->slot == buffer && high > most) most = high;
    }
    return most;
}

/* Copies a buffer's operands to the end or the start of its guarded area. Returns their address; NULL:
 * they do not fit. */
static void *copy_guarded(const trial *t, int k, bool at_end)
{
    const buffer *b = &t->buffer[k];
    const size_t each = dtypes[b->type].bytes, bytes = (size_t)span_of(t, k) * each;
    if (bytes > GUARDED) return NULL;
    char *to = guarded + k * (GUARDED + PAGE) + (at_end ? GUARDED - bytes : 0);
    memcpy(to, b->before + (size_t)b->start * each, bytes);
    return to;
}

/* Runs the step on guarded operands. An access beyond them ends the process. */
static void run_guarded(trial *t)
{
    void *data[BUFFERS];
    const bool at_end = chance(75);
    const frame f = { .data = data, .num = t->num, .device = HOST };
    for (int isa = 0; isa < ISAS; isa++)
        for (int made = 0; made < 2; made++) {
            for (int k = 0; k < t->buffers; k++)
                if (!(data[k] = copy_guarded(t, k, at_end))) return;
            use_isa(isa);
            generated_mode = made ? GENERATED_AT_ONCE : GENERATED_NEVER;
            expect(device_machine(HOST)->run(&t->s, &f) == DUET_OK, "a step failed");
            device_machine(HOST)->forget(&t->s);
        }
}

/* ---- inputs ---- */

/* The seed of the numbers that are drawn after the end of the input. */
static uint64_t hash(const uint8_t *bytes, size_t size)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
    return h ? h : 1;
}

static void prepare(void)
{
    static bool prepared;
    if (prepared) return;
    prepared = true;
    list_operators();
    make_guarded();
    omp_set_num_threads(1);
    cpu_serial_seconds = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void (*const make[])(trial *, duet_dtype) = { make_any,        make_maps,      make_polynomial,
                                                         make_reductions, make_exchanges, make_conditions };
    static const duet_dtype types[] = { DUET_F32, DUET_I64, DUET_F64, DUET_U64 };
    prepare();
    seed = hash(bytes, size);
    drawn_bytes = bytes;
    drawn_end = bytes + size;
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const duet_dtype type = types[draw(4)];
    bool waits;
    make[draw((int)(sizeof make / sizeof *make))](&t, type);
    put_bytes(&t, bytes, size);
    check_machine_code(&t.code, type);
    if (!t.code.reductions) free(check_ptx(&t.code, type, &waits));
    t.s.program = &t.code;
    run_guarded(&t);
    run_both(&t);
    drawn_bytes = drawn_end;
    fflush(stdout);
    expect(tap_failures == 0, "generated code is wrong");
    return 0;
}
