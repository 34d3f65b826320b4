/* test_machine.c - conformance of machines: every kind of step, on sizes, strides and values that are hard. */
#include "machine_trial.h"
#include "quick.h"

/* Under AddressSanitizer too, a block that cannot be had is NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- element by element ---- */

static const struct {
    int rank;
    int64_t size[4];
} map_sizes[] = { { 1, { 0 } },       { 1, { 1 } },      { 1, { 7 } },       { 1, { 1031 } },      { 2, { 3, 600 } },
                  { 2, { 130, 10 } }, { 2, { 37, 41 } }, { 3, { 5, 9, 3 } }, { 3, { 3, 20, 64 } }, { 4, { 2, 3, 4, 5 } },
                  { 2, { 700, 1 } },  { 2, { 0, 5 } },   { 1, { 9000 } },    { 2, { 40, 513 } },   { 3, { 3, 33, 17 } } };
#define MAP_SIZES ((int)(sizeof map_sizes / sizeof *map_sizes))

static void map_operands(trial *t, duet_dtype type, int size, int outs, int ins, int strange)
{
    for (int k = 0; k < outs; k++) add_output(t, any_layout(type, map_sizes[size].rank, map_sizes[size].size, false));
    for (int k = 0; k < ins; k++) {
        if (chance(25)) t->s.in[t->s.ins++] = t->s.out[draw(outs)]; /* the output itself */
        else add_input(t, any_layout(type, map_sizes[size].rank, map_sizes[size].size, true), strange);
    }
    for (int k = 0; k < ins; k++) {
        const int slot = t->s.in[k].slot;
        for (int i = 0; i < t->buffer[slot].count && slot < outs; i++) put(&t->buffer[slot], i, number(type, strange));
    }
    collapse(t);
}

static source any_source(int kind, int n) { return (source){ (uint8_t)kind, (uint8_t)draw(n) }; }

/* A row by itself, its operands being inputs or numbers. */
static void test_row(int op, double lowest)
{
    for (int n = 0; n < 3 * MAP_SIZES; n++) {
        const duet_dtype type = n % 2 ? DUET_F64 : DUET_F32;
        const int arity = op_infos[op].arity;
        trial t = { .s.kernel = KERNEL_PROGRAM };
        map_operands(&t, type, n % MAP_SIZES, 1, arity, 10);
        if (lowest >= 0)
            for (int64_t i = 0; i < t.buffer[t.s.in[0].slot].count; i++)
                put(&t.buffer[t.s.in[0].slot], i, fabs(get(&t.buffer[t.s.in[0].slot], t.buffer[t.s.in[0].slot].before, i)));
        add_number(&t, number(type, 30));
        t.code = (program){ .length = 2, .inputs = (uint8_t)arity, .numbers = 1, .outputs = 1 };
        t.code.code[0] = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
        for (int k = 0; k < arity; k++) t.code.code[0].arg[k] = (source){ FROM_INPUT, (uint8_t)k };
        if (arity > 1 && chance(40)) t.code.code[0].arg[1] = (source){ FROM_NUMBER, 0 };
        t.code.code[1] = (instruction){ .op = OP_STORE, .type = (uint8_t)type };
        run_trial(&t);
    }
    tap_point(op_infos[op].name);
}

static const int exact_ops[] = { OP_neg,     OP_abs,   OP_sqrt, OP_relu,          OP_add, OP_sub,   OP_mul, OP_div, OP_minimum,
                                 OP_maximum, OP_equal, OP_less, OP_greater_equal, OP_fma, OP_where, OP_add, OP_mul, OP_sub };

typedef struct writer {
    const step *s;
    program *p;
    duet_dtype type;
    bool acc;
    uint32_t set;     /* slots */
    uint32_t written; /* inputs that an output was stored over */
} writer;

static source any_value(const writer *w)
{
    for (;;) {
        const int kind = draw(4);
        source s = any_source(kind, kind == FROM_INPUT ? w->p->inputs : kind == FROM_NUMBER ? w->p->numbers : PROGRAM_SLOTS);
        if (kind == FROM_ACC && w->acc) return (source){ FROM_ACC, 0 };
        if (kind == FROM_SLOT && !(w->set >> s.index & 1)) continue;
        if (kind == FROM_INPUT && w->written >> s.index & 1) continue;
        if (kind != FROM_ACC) return s;
    }
}

static void write_one(writer *w, int op, int output)
{
    instruction *i = &w->p->code[w->p->length++];
    *i = (instruction){ .op = (uint8_t)op, .type = (uint8_t)w->type };
    if (op == OP_STORE) {
        i->arg[0].index = (uint8_t)output;
        for (int k = 0; k < w->s->ins; k++) w->written |= (uint32_t)(w->s->in[k].slot == w->s->out[output].slot) << k;
    } else if (op == OP_SAVE) i->arg[0] = any_source(FROM_SLOT, PROGRAM_SLOTS), w->set |= 1u << i->arg[0].index;
    else
        for (int k = 0; k < (op == OP_LOAD ? 1 : op_infos[op].arity); k++) i->arg[k] = any_value(w);
    w->acc = true;
}

/* Up to `longest` instructions. */
static void random_program(trial *t, duet_dtype type, int longest)
{
    const step *s = &t->s;
    writer w = { .s = s, .p = &t->code, .type = type };
    t->code = (program){ .inputs = s->ins, .numbers = s->nums, .slots = PROGRAM_SLOTS, .outputs = s->outs };
    for (int o = 0; o < s->outs; o++) {
        for (int n = draw(longest / s->outs - 1) + !w.acc; n-- > 0;) {
            if (w.acc && chance(20)) write_one(&w, OP_SAVE, 0);
            else if (chance(10)) write_one(&w, OP_LOAD, 0);
            else write_one(&w, exact_ops[draw((int)(sizeof exact_ops / sizeof *exact_ops))], 0);
        }
        write_one(&w, OP_STORE, o);
    }
}

static void test_programs(int trials)
{
    for (int n = 0; n < trials; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const duet_dtype type = n % 2 ? DUET_F64 : DUET_F32;
        const int outs = chance(70) ? 1 : 1 + draw(PROGRAM_OUTPUTS), ins = 1 + draw(chance(90) ? 4 : PROGRAM_INPUTS);
        map_operands(&t, type, draw(MAP_SIZES), outs, ins, draw(3) * 5);
        for (int k = 1 + draw(4); k-- > 0;) add_number(&t, number(type, 20));
        random_program(&t, type, chance(10) ? PROGRAM_LENGTH : 13 * outs);
        run_trial(&t);
    }
    tap_point("random programs");
}

/* Rows of n elements, and one element for all as the last input. */
static void even_operands(trial *t, duet_dtype type, int64_t n, int outs, int rows)
{
    layout dense, single;
    layout_dense(&dense, type, 1, &n), single = dense;
    single.stride[0] = 0;
    for (int k = 0; k < outs; k++) add_output(t, dense);
    for (int k = 0; k < rows; k++) {
        if (chance(20)) t->s.in[t->s.ins++] = t->s.out[draw(outs)];
        else add_input(t, dense, 3);
    }
    add_input(t, single, 0);
}

/* The elements at a row's end: nothing beyond them may be touched. */
static void test_ends(int64_t most)
{
    for (int64_t n = 1; n <= most; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const duet_dtype type = n / 2 % 2 ? DUET_F64 : DUET_F32;
        even_operands(&t, type, n, 1 + draw(PROGRAM_OUTPUTS), 1 + draw(3));
        for (int k = 0; k < 2; k++) add_number(&t, number(type, 0));
        random_program(&t, type, chance(30) ? 40 : 6 * t.s.outs);
        run_trial(&t);
    }
    tap_point("ends of rows");
}

/* One operator, each operand from anywhere: the accumulator, two rows, one element, a number, a slot. */
static void test_form(int op, duet_dtype type, int form)
{
    const source from[] = { { FROM_ACC, 0 },   { FROM_INPUT, 0 },  { FROM_INPUT, 1 },
                            { FROM_INPUT, 2 }, { FROM_NUMBER, 0 }, { FROM_SLOT, 3 } };
    const bool again = chance(50); /* what it read is read once more */
    trial t = { .s.kernel = KERNEL_PROGRAM };
    even_operands(&t, type, 1 + draw(400), 1, 2);
    add_number(&t, number(type, 0)), add_number(&t, number(type, 0));
    instruction code[] = { { OP_sub, 0, { { FROM_INPUT, 1 }, { FROM_NUMBER, 1 } } },
                           { OP_SAVE, 0, { { FROM_SLOT, 3 } } },
                           { OP_abs, 0, { { FROM_ACC, 0 } } },
                           { .op = (uint8_t)op },
                           { OP_sub, 0, { { FROM_ACC, 0 }, { FROM_SLOT, 3 } } },
                           { OP_add, 0, { { FROM_INPUT, 0 }, { FROM_ACC, 0 } } },
                           { OP_STORE, 0, { { 0 } } } };
    for (int k = 0; k < op_infos[op].arity; k++, form /= 6) code[3].arg[k] = from[form % 6];
    t.code = (program){ .inputs = 3, .numbers = 2, .slots = 4, .outputs = 1 };
    for (int i = 0; i < 7; i++) {
        if ((i == 4 || i == 5) && !again) continue;
        code[i].type = (uint8_t)type;
        t.code.code[t.code.length++] = code[i];
    }
    run_trial(&t);
}

static void test_forms(int every)
{
    static const int power[] = { 1, 6, 36, 216 };
    int n = 0;
    for (int k = 0; k < (int)(sizeof exact_ops / sizeof *exact_ops) - 3; k++)
        for (int form = 0; form < power[op_infos[exact_ops[k]].arity]; form++)
            if (n++ % every == 0) test_form(exact_ops[k], n / every % 2, form);
    tap_point("operands from anywhere");
}

/* Integers in any layout: of a double, many would be NaN. */
static void test_integers(void)
{
    for (int n = 0; n < 6 * MAP_SIZES; n++) {
        const int size = n % MAP_SIZES;
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const instruction load = { OP_LOAD, DUET_I64, { { n % 6 == 5 ? FROM_NUMBER : FROM_INPUT, 0 } } };
        add_output(&t, any_layout(DUET_I64, map_sizes[size].rank, map_sizes[size].size, false));
        add_input(&t, any_layout(DUET_I64, map_sizes[size].rank, map_sizes[size].size, true), 0);
        collapse(&t);
        add_number(&t, draw(2000001) - 1000000);
        t.code = (program){
            .length = 2, .inputs = 1, .numbers = 1, .outputs = 1, .code = { load, { OP_STORE, DUET_I64, { { 0 } } } }
        };
        run_trial(&t);
    }
    tap_point("integers");
}

static void test_fused(void)
{
    for (int kernel = KERNEL_PROGRAM + 1; kernel < KERNELS; kernel++)
        for (int n = 0; n < 3 * MAP_SIZES; n++) {
            trial t = { .s.kernel = kernel };
            map_operands(&t, n % 2 ? DUET_F64 : DUET_F32, n % MAP_SIZES, 1, 2, 5);
            add_number(&t, number(DUET_F32, 10)), add_number(&t, number(DUET_F32, 10));
            run_trial(&t);
        }
    tap_point("fused rows");
}

/* ---- reductions ---- */

static const int folds[] = {
#define DUET_FOLD1(name, ...) OP_##name,
#define DUET_FOLD2            DUET_FOLD1
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_PLACE1           DUET_FOLD1
#include <duet/ops.def>
};
#define FOLDS ((int)(sizeof folds / sizeof *folds))

/* The domain of a program that folds: the axes that stay, then those that are reduced. */
typedef struct domain {
    int kept, inner;
    int64_t size[6];
} domain;

enum arrangement { ANYHOW, IN_ORDER, KEPT_LAST, ARRANGEMENTS }; /* of an input in memory */

static layout input_layout(duet_dtype type, const domain *d, enum arrangement how)
{
    layout l;
    const int rank = d->kept + d->inner;
    if (how == ANYHOW) return any_layout(type, rank, d->size, true);
    layout_dense(&l, type, rank, d->size);
    int64_t stride = 1;
    for (int a = d->kept; a-- > 0 && how == KEPT_LAST;) l.stride[a] = stride, stride *= d->size[a];
    for (int a = rank; a-- > d->kept && how == KEPT_LAST;) l.stride[a] = stride, stride *= d->size[a];
    return l;
}

/* Values by which a wrong order shows: products stay in range, places meet equals. */
static double telling(int op, duet_dtype type, double x)
{
    if (op == OP_prod) return copysign(exp2(draw(2001) * 1e-3 - 1), x);
    if ((op == OP_argmin || op == OP_argmax) && chance(80)) return isfinite(x) ? draw(5) - 2.0 : x;
    return type == DUET_F32 ? (double)(float)x : x;
}

static void fold_operands(trial *t, duet_dtype type, const domain *d, const int *ops, int outs, int ins, enum arrangement how,
                          int strange)
{
    const layout still = { .rank = d->inner };
    for (int k = 0; k < outs; k++) {
        add_output(t, any_layout(op_infos[ops[k]].flags & OP_GIVES_INDEX ? DUET_I64 : type, d->kept, d->size, false));
        add_axes(&t->s.out[k].at, &still);
        memcpy(t->s.out[k].at.size + d->kept, d->size + d->kept, (size_t)d->inner * sizeof *d->size);
    }
    for (int k = 0; k < ins; k++) {
        add_input(t, input_layout(type, d, how), strange);
        buffer *b = &t->buffer[t->s.in[k].slot];
        for (int64_t i = 0; i < b->count; i++) put(b, i, telling(ops[0], type, get(b, b->before, i)));
    }
    t->s.inner = (uint8_t)d->inner;
}

/* Operators that keep numbers from becoming NaN or too large at once. */
static const int tame_ops[] = { OP_neg, OP_abs, OP_relu, OP_add, OP_sub, OP_minimum, OP_maximum, OP_less, OP_where, OP_fma };

static void write_front(writer *w, int length)
{
    while (length-- > 0) {
        if (w->acc && chance(20)) write_one(w, OP_SAVE, 0);
        else write_one(w, tame_ops[draw((int)(sizeof tame_ops / sizeof *tame_ops))], 0);
    }
}

static void write_fold(writer *w, int op, int output)
{
    const bool acc = w->acc;
    write_one(w, op, 0);
    w->acc = acc;
    w->p->code[w->p->length - 1].arg[2].index = (uint8_t)output;
}

/* The folds of ops, in front of each a formula of up to `front` instructions. */
static void fold_program(trial *t, duet_dtype type, const int *ops, int front)
{
    const step *s = &t->s;
    writer w = { .s = s, .p = &t->code, .type = type };
    t->code = (program){ .inputs = s->ins, .numbers = s->nums, .slots = PROGRAM_SLOTS, .outputs = s->outs, .folds = true };
    for (int o = 0; o < s->outs; o++) {
        write_front(&w, front ? draw(front) : 0);
        write_fold(&w, ops[o], o);
    }
}

/* Nothing has no place. */
static bool has_answer(int op, const domain *d)
{
    bool empty = false;
    for (int a = d->kept; a < d->kept + d->inner; a++) empty |= d->size[a] == 0;
    return !empty || !(op_infos[op].flags & OP_GIVES_INDEX);
}

/* One row, of the first input, or of the first two, as they are. */
static void plain_fold(int op, duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const int arity = op_infos[op].arity;
    if (!has_answer(op, d)) return;
    fold_operands(&t, type, d, &op, 1, arity, how, chance(20) ? 2 : 0);
    t.code = (program){ .length = 1, .inputs = (uint8_t)arity, .outputs = 1, .folds = true };
    t.code.code[0] = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
    for (int k = 0; k < arity; k++) t.code.code[0].arg[k] = (source){ FROM_INPUT, (uint8_t)k };
    collapse(&t);
    run_trial(&t);
}

static void front_fold(const int *ops, int outs, duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const int ins = 1 + draw(3);
    for (int k = 0; k < outs; k++)
        if (!has_answer(ops[k], d)) return;
    fold_operands(&t, type, d, ops, outs, ins, how, chance(20) ? 2 : 0);
    add_number(&t, number(type, 0)), add_number(&t, number(type, 10));
    fold_program(&t, type, ops, 6);
    collapse(&t);
    run_trial(&t);
}

static const int64_t fold_lengths[] = {
    0, 1, 2, 17, 127, 128, 129, 300, 4095, 4096, 4097, 3 * 4096 + 5, 9 * 4096, 70 * 4096 + 17
};
#define FOLD_LENGTHS ((int)(sizeof fold_lengths / sizeof *fold_lengths))

static const domain fold_domains[] = {
    { 1, 1, { 5, 21 } },        { 1, 1, { 40, 4097 } },   { 2, 1, { 7, 3, 200 } },     { 1, 1, { 1000, 10 } },
    { 1, 1, { 130, 129 } },     { 1, 2, { 6, 9, 33 } },   { 2, 2, { 3, 5, 7, 40 } },   { 1, 1, { 3, 0 } },
    { 2, 1, { 3, 0, 4 } },      { 1, 2, { 2, 130, 70 } }, { 0, 2, { 65, 70 } },        { 0, 3, { 20, 30, 17 } },
    { 1, 1, { 300, 1 } },       { 1, 1, { 37, 128 } },    { 3, 1, { 2, 3, 300, 20 } }, { 1, 1, { 2, 3 * 4096 + 5 } },
    { 2, 2, { 2, 20, 3, 50 } }, { 1, 1, { 77, 17 } },
};
#define FOLD_DOMAINS ((int)(sizeof fold_domains / sizeof *fold_domains))

static void test_fold_row(int op, bool quick)
{
    for (int n = 0; n < FOLD_LENGTHS - 2 * quick; n++)
        for (int type = 0; type < 2; type++) {
            const domain whole = { 0, 1, { fold_lengths[n] } }, one = { 1, 1, { 1, fold_lengths[n] } };
            plain_fold(op, type, n % 2 ? &whole : &one, IN_ORDER), front_fold(&op, 1, type, &whole, ANYHOW);
        }
    for (int n = 0; n < FOLD_DOMAINS; n++)
        for (int how = 0; how < ARRANGEMENTS; how++)
            plain_fold(op, (n + how) % 2, &fold_domains[n], how), front_fold(&op, 1, (n + how + 1) % 2, &fold_domains[n], how);
    tap_point(op_infos[op].name);
}

static void test_folds_together(int trials)
{
    for (int n = 0; n < trials; n++) {
        int ops[STEP_OUTPUTS];
        const int outs = 2 + draw(STEP_OUTPUTS - 1);
        for (int k = 0; k < outs; k++) ops[k] = folds[draw(FOLDS)];
        front_fold(ops, outs, n % 2, &fold_domains[draw(FOLD_DOMAINS)], draw(ARRANGEMENTS));
    }
    tap_point("several reductions in one pass");
}

/* Of three outputs in four the squares over- or underflow, or are all 0. */
static void scale_outputs(trial *t, double by)
{
    const double scales[] = { 1, by, 1 / by, 0 };
    const operand *o = &t->s.in[0];
    buffer *b = &t->buffer[o->slot];
    const layout kept = kept_axes(t, &o->at), inner = axes_of(&o->at, kept.rank, o->at.rank);
    for (int64_t n = 0; n < layout_count(&kept); n++)
        for (int64_t i = 0; i < layout_count(&inner); i++) {
            int64_t index[DUET_RANK_MAX];
            unravel(&kept, n, index), unravel(&inner, i, index + kept.rank);
            const int64_t at = b->start + place(&o->at, index);
            put(b, at, get(b, b->before, at) * scales[(n + 1) % 4]);
        }
}

/* norm(x), norm(-x + 0 y) and the greatest element. */
static void norm_trial(duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const int ops[] = { OP_norm, OP_norm, OP_max };
    const uint8_t of = (uint8_t)type;
    fold_operands(&t, type, d, ops, 3, 2, how, chance(20) ? 1 : 0);
    scale_outputs(&t, type == DUET_F32 ? 1e30 : 1e200);
    add_number(&t, 0);
    t.code = (program){ .length = 5, .inputs = 2, .numbers = 1, .outputs = 3, .folds = true };
    t.code.code[0] = (instruction){ OP_norm, of, { { FROM_INPUT, 0 }, { 0 }, { 0, 0 } } };
    t.code.code[1] = (instruction){ OP_mul, of, { { FROM_INPUT, 1 }, { FROM_NUMBER, 0 } } };
    t.code.code[2] = (instruction){ OP_sub, of, { { FROM_ACC, 0 }, { FROM_INPUT, 0 } } };
    t.code.code[3] = (instruction){ OP_norm, of, { { FROM_ACC, 0 }, { 0 }, { 0, 1 } } };
    t.code.code[4] = (instruction){ OP_max, of, { { FROM_INPUT, 0 }, { 0 }, { 0, 2 } } };
    collapse(&t);
    run_trial(&t);
}

static void test_scaled_norms(void)
{
    for (int type = 0; type < 2; type++) {
        for (int n = 0; n < FOLD_LENGTHS - 2; n++) norm_trial(type, &(domain){ 1, 1, { 6, fold_lengths[n] } }, IN_ORDER + n % 2);
        for (int n = 0; n < FOLD_DOMAINS; n++) norm_trial(type, &fold_domains[n], IN_ORDER + n % 2);
    }
    tap_point("norms whose squares over- or underflow");
}

static void test_folds(bool quick)
{
    for (int k = 0; k < FOLDS; k++) test_fold_row(folds[k], quick);
    test_folds_together(quick ? 30 : 300);
    test_scaled_norms();
}

static void test_softmax(bool quick)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 },  { 2, 3, 10 },   { 1, 5, 700 }, { 3, 0, 4 },
                                        { 40, 2, 7 }, { 1, 2, 4097 }, { 1, 1, 9000 } };
    for (int op = 0; op < 2; op++)
        for (int type = 0; type < 2; type++)
            for (int n = 0; n < 7 - 2 * quick; n++)
                for (int own = 0; own < 2; own++) {
                    trial t = { .s.kernel = op ? OP_log_softmax : OP_softmax };
                    const int skip = draw(3); /* rank 1 to 3 */
                    add_dense(&t, true, type, 3 - skip, sizes[n] + skip);
                    if (own) t.s.in[t.s.ins++] = t.s.out[0];
                    else add_input(&t, any_layout(type, 3 - skip, sizes[n] + skip, true), chance(20) ? 3 : 0);
                    run_trial(&t);
                }
    tap_point("softmax and log_softmax");
}

/* ---- images ---- */

static int64_t out_size(int64_t in, int64_t window, int stride, int pad) { return (in + 2 * pad - window) / stride + 1; }

static void test_pools(int trials)
{
    for (int n = 0; n < trials; n++) {
        const int type = n % 2, window[2] = { 1 + draw(3), 1 + draw(3) }, stride[2] = { 1 + draw(3), 1 + draw(3) },
                  pad[2] = { draw(4), draw(4) };
        const int64_t in[4] = { draw(3), 1 + draw(3), 3 + draw(9), 3 + draw(40) };
        const int64_t out[4] = { in[0], in[1], out_size(in[2], window[0], stride[0], pad[0]),
                                 out_size(in[3], window[1], stride[1], pad[1]) };
        trial t = { .s.kernel = chance(50) ? OP_max_pool2d : OP_avg_pool2d,
                    .s.attr = { window[0], window[1], stride[0], stride[1], pad[0], pad[1] } };
        add_dense(&t, true, type, 4, out);
        add_input(&t, any_layout(type, 4, in, true), chance(30) ? 5 : 0);
        run_trial(&t);
    }
    tap_point("pooling");
}

static void test_conv(int trials)
{
    for (int n = 0; n < trials; n++) {
        const int type = n % 3 == 2, stride[2] = { 1 + draw(2), 1 + draw(2) }, pad[2] = { draw(3), draw(3) };
        const int64_t filters[4] = { 1 + draw(chance(20) ? 40 : 5), chance(5) ? 0 : 1 + draw(chance(20) ? 20 : 4), 1 + draw(3),
                                     1 + draw(3) };
        const int64_t in[4] = { draw(5), filters[1], 3 + draw(9), 3 + draw(12) };
        const int64_t out[4] = { in[0], filters[0], out_size(in[2], filters[2], stride[0], pad[0]),
                                 out_size(in[3], filters[3], stride[1], pad[1]) };
        trial t = { .s.kernel = OP_conv2d, .vendor = true, .s.attr = { stride[0], stride[1], pad[0], pad[1], draw(2) } };
        add_dense(&t, true, type, 4, out);
        add_input(&t, any_layout(type, 4, in, chance(20)), 0);
        add_input(&t, any_layout(type, 4, filters, chance(20)), 0);
        run_trial(&t);
    }
    tap_point("convolution");
}

/* ---- products ---- */

static double factor(void) { return chance(60) ? (draw(2001) - 1000) * 3e-3 : draw(3) - 1; }

static void matmul_trial(duet_dtype type, int64_t m, int64_t n, int64_t k, int addend)
{
    trial t = { .s.kernel = OP_matmul, .vendor = true };
    add_dense(&t, true, type, 2, (int64_t[]){ m, n });
    add_input(&t, any_layout(type, 2, (int64_t[]){ m, k }, chance(20)), 0);
    add_input(&t, any_layout(type, 2, (int64_t[]){ k, n }, chance(20)), 0);
    if (addend || chance(50)) add_number(&t, factor());
    if (addend == 1) t.s.in[t.s.ins++] = t.s.out[0];
    if (addend == 2) add_input(&t, any_layout(type, 2, (int64_t[]){ m, n }, true), 0);
    if (addend) add_number(&t, factor());
    run_trial(&t);
}

static void test_matmul(int trials)
{
    static const int64_t few[] = { 0, 1, 1, 2, 5, 17, 40 };
    for (int n = 0; n < trials; n++) matmul_trial(n % 2, few[draw(7)], few[draw(7)], few[draw(7)], n % 3);
    tap_point("products");
    for (int addend = 0; addend < 3; addend++)
        matmul_trial(addend % 2, 130, 70, 300, addend), matmul_trial(addend % 2, 300, 1, 200, addend);
    tap_point("larger products");
}

/* 0 * NaN is NaN, in the product and in the addend. */
static void test_zero_factors(void)
{
    for (int n = 0; n < 8; n++) {
        trial t = { .s.kernel = OP_matmul, .vendor = true };
        add_dense(&t, true, n % 2, 2, (int64_t[]){ 3, 4 });
        for (int k = 0; k < 3; k++) add_dense(&t, false, n % 2, 2, (int64_t[]){ k == 1 ? 4 : 3, 4 });
        add_number(&t, n & 2 ? 0 : 2), add_number(&t, n & 4 ? 0 : 2);
        buffer *a = &t.buffer[t.s.in[0].slot], *c = &t.buffer[t.s.in[2].slot];
        put(a, a->start + 4, NAN), put(c, c->start + 1, NAN), put(c, c->start + 11, INFINITY);
        run_trial(&t);
    }
    tap_point("products by zero");
}

/* ---- the rest of a machine ---- */

static void test_memory(const machine *m)
{
    enum { N = 5000 };
    char from[N], to[N];
    void *p, *large;
    for (int i = 0; i < N; i++) from[i] = (char)draw(256);
    if (!CHECK(m->alloc(N, &p) == DUET_OK && m->alloc((size_t)9 << 20, &large) == DUET_OK, "%s: alloc: %s", m->name,
               duet_error()))
        return;
    CHECK((uintptr_t)p % 64 == 0 && (uintptr_t)large % 64 == 0, "%s: alignment", m->name);
    CHECK(m->upload(p, from, N, 0) == DUET_OK && m->clear((char *)p + 10, 100, 0) == DUET_OK, "%s: %s", m->name, duet_error());
    CHECK(m->wait(1, 0) == DUET_OK && m->download(to, p, N, 1) == DUET_OK, "%s: %s", m->name, duet_error());
    memset(from + 10, 0, 100);
    CHECK(!memcmp(from, to, N), "%s: bytes came back other than they went", m->name);
    CHECK(m->sync(0) == DUET_OK && m->sync(1) == DUET_OK, "%s: sync", m->name);
    m->free(p), m->free(large);
    CHECK(m->alloc((size_t)1 << 60, &p) == DUET_NO_MEMORY && *duet_error(), "%s: an exabyte", m->name);
    tap_point("memory");
}

static void test_refusals(const machine *m)
{
    trial t = { .s.kernel = OP_matmul };
    const int64_t much = (int64_t)1 << 31;
    layout_dense(&t.s.out[0].at, DUET_F32, 2, (int64_t[]){ much, 1 }),
        layout_dense(&t.s.in[0].at, DUET_F32, 2, (int64_t[]){ much, 1 });
    layout_dense(&t.s.in[1].at, DUET_F32, 2, (int64_t[]){ 1, 1 });
    t.s.outs = 1, t.s.ins = 2;
    CHECK(m->refuses(&t.s), "%s takes a product larger than an int counts", m->name);
    t.s.kernel = OP_transpose;
    CHECK(m->refuses(&t.s), "%s takes a transpose", m->name);
    t.s.kernel = KERNEL_axdbpy, t.s.in[1].at.type = DUET_F64;
    CHECK(m->refuses(&t.s), "%s takes operands of two types", m->name);
    t.s.bytes = 1e9, t.s.flops = 1e9;
    CHECK(m->cost(&t.s) > 1e-6 && m->cost(&t.s) < 10, "%s: a cost of %g s", m->name, m->cost(&t.s));
    tap_point("refusals");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    for (int side = 0; side < SIDES; side++)
        if (machines[side] && !machines[side]->absent()) test_memory(machines[side]), test_refusals(machines[side]);
#define DUET_MAP1(name, ...) test_row(OP_##name, OP_##name == OP_pow ? 0 : -1);
#define DUET_MAP2            DUET_MAP1
#define DUET_MAP3            DUET_MAP1
#include <duet/ops.def>
    test_programs(quick ? 60 : 600);
    test_ends(quick ? 40 : 300);
    test_forms(quick ? 10 : 1);
    test_integers();
    test_fused();
    test_folds(quick);
    test_softmax(quick);
    test_pools(quick ? 40 : 200);
    test_conv(quick ? 20 : 120);
    test_matmul(quick ? 60 : 400);
    test_zero_factors();
    return tap_end();
}
