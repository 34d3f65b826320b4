/* test_machine_reductions.c - conformance of machines: reductions, alone and several in one pass,
 * of formulas in any layout. */
#include "layer_norm.h"
#include "program_writer.h"
#include "quick.h"

static const int reductions[] = {
#define DUET_FOLD1(name, ...) OP_##name,
#define DUET_FOLD2            DUET_FOLD1
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_PLACE1           DUET_FOLD1
#include <duet/ops.def>
};
#define FOLDS ((int)(sizeof reductions / sizeof *reductions))

/* The domain of a program with reductions: the axes that stay, then those that are reduced. */
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
    for (int a = d->kept; a-- > 0 && how == KEPT_LAST;) {
        l.stride[a] = stride;
        stride *= d->size[a];
    }
    for (int a = rank; a-- > d->kept && how == KEPT_LAST;) {
        l.stride[a] = stride;
        stride *= d->size[a];
    }
    return l;
}

/* Values that reveal a wrong order: products stay in range, argmin and argmax meet equal elements. */
static double telling(int op, duet_dtype type, double x)
{
    if (op == OP_prod) return copysign(exp2(draw(2001) * 1e-3 - 1), x);
    if ((op == OP_argmin || op == OP_argmax) && chance(80)) return isfinite(x) ? draw(5) - 2.0 : x;
    if (type == DUET_F32) return (double)(float)x;
    return x;
}

static void reduce_operands(trial *t, duet_dtype type, const domain *d, const int *ops, int outs, int ins,
                            enum arrangement how, int strange)
{
    const layout still = { .rank = d->inner };
    for (int k = 0; k < outs; k++) {
        add_output(t, any_layout(op_infos[ops[k]].flags & OP_GIVES_INDEX ? DUET_I64 : type, d->kept, d->size,
                                 false));
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

/* Operators whose results rarely become NaN or too large. */
static const int tame_ops[] = { OP_neg,     OP_abs,     OP_relu, OP_add,   OP_sub,
                                OP_minimum, OP_maximum, OP_less, OP_where, OP_fma };

static void write_front(writer *w, int length)
{
    while (length-- > 0) {
        if (w->acc && chance(20)) write_one(w, OP_SAVE, 0);
        else write_one(w, tame_ops[draw((int)(sizeof tame_ops / sizeof *tame_ops))], 0);
    }
}

/* The reductions of ops, each after a formula of up to `front` instructions. */
static void reduce_program(trial *t, duet_dtype type, const int *ops, int front)
{
    const step *s = &t->s;
    writer w = { .s = s, .p = &t->code, .type = type };
    t->code = (program){
        .inputs = s->ins, .numbers = s->nums, .slots = PROGRAM_SLOTS, .outputs = s->outs, .reductions = true
    };
    for (int o = 0; o < s->outs; o++) {
        write_front(&w, front ? draw(front) : 0);
        write_reduce(&w, ops[o], o);
    }
}

/* argmin and argmax of no elements are undefined. */
static bool has_answer(int op, const domain *d)
{
    bool empty = false;
    for (int a = d->kept; a < d->kept + d->inner; a++) empty |= d->size[a] == 0;
    return !empty || !(op_infos[op].flags & OP_GIVES_INDEX);
}

/* One row, of the first input, or of the first two. */
static void plain_reduce(int op, duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const int arity = op_infos[op].arity;
    if (!has_answer(op, d)) return;
    reduce_operands(&t, type, d, &op, 1, arity, how, chance(20) ? 2 : 0);
    t.code = (program){ .length = 1, .inputs = (uint8_t)arity, .outputs = 1, .reductions = true };
    t.code.code[0] = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
    for (int k = 0; k < arity; k++) t.code.code[0].arg[k] = (source){ FROM_INPUT, (uint8_t)k };
    collapse(&t);
    run_trial(&t);
}

static void front_reduce(const int *ops, int outs, duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const int ins = 1 + draw(3);
    for (int k = 0; k < outs; k++)
        if (!has_answer(ops[k], d)) return;
    reduce_operands(&t, type, d, ops, outs, ins, how, chance(20) ? 2 : 0);
    add_number(&t, number(type, 0));
    add_number(&t, number(type, 10));
    reduce_program(&t, type, ops, 6);
    collapse(&t);
    run_trial(&t);
}

static const int64_t reduce_lengths[] = { 0,   1,    2,    17,   127,          128,      129,
                                          300, 4095, 4096, 4097, 3 * 4096 + 5, 9 * 4096, 70 * 4096 + 17 };
#define REDUCE_LENGTHS ((int)(sizeof reduce_lengths / sizeof *reduce_lengths))

static const domain reduce_domains[] = {
    { 1, 1, { 5, 21 } },           { 1, 1, { 40, 4097 } },     { 2, 1, { 7, 3, 200 } },
    { 1, 1, { 1000, 10 } },        { 1, 1, { 130, 129 } },     { 1, 2, { 6, 9, 33 } },
    { 2, 2, { 3, 5, 7, 40 } },     { 1, 1, { 3, 0 } },         { 2, 1, { 3, 0, 4 } },
    { 1, 2, { 2, 130, 70 } },      { 0, 2, { 65, 70 } },       { 0, 3, { 20, 30, 17 } },
    { 1, 1, { 300, 1 } },          { 1, 1, { 37, 128 } },      { 3, 1, { 2, 3, 300, 20 } },
    { 1, 1, { 2, 3 * 4096 + 5 } }, { 2, 2, { 2, 20, 3, 50 } }, { 1, 1, { 77, 17 } },
    { 1, 1, { 19, 1000 } },        { 2, 1, { 2, 5, 4096 } },
};
#define REDUCE_DOMAINS ((int)(sizeof reduce_domains / sizeof *reduce_domains))

static void test_reduce_row(int op, bool quick)
{
    for (int n = 0; n < REDUCE_LENGTHS - 2 * quick; n++)
        for (int type = 0; type < 2; type++) {
            const domain whole = { 0, 1, { reduce_lengths[n] } }, one = { 1, 1, { 1, reduce_lengths[n] } };
            plain_reduce(op, type, n % 2 ? &whole : &one, IN_ORDER);
            front_reduce(&op, 1, type, &whole, ANYHOW);
        }
    for (int n = 0; n < REDUCE_DOMAINS; n++)
        for (int how = 0; how < ARRANGEMENTS; how++) {
            plain_reduce(op, (n + how) % 2, &reduce_domains[n], how);
            front_reduce(&op, 1, (n + how + 1) % 2, &reduce_domains[n], how);
        }
    tap_point(op_infos[op].name);
}

static void test_reduces_together(int trials)
{
    for (int n = 0; n < trials; n++) {
        int ops[STEP_OUTPUTS];
        const int outs = 2 + draw(STEP_OUTPUTS - 1);
        for (int k = 0; k < outs; k++) ops[k] = reductions[draw(FOLDS)];
        front_reduce(ops, outs, n % 2, &reduce_domains[draw(REDUCE_DOMAINS)], draw(ARRANGEMENTS));
    }
    tap_point("several reductions in one pass");
}

/* In three of four outputs the sums overflow, underflow, or are all 0. */
static void scale_outputs(trial *t, double by)
{
    const double scales[] = { 1, by, 1 / by, 0 };
    const operand *o = &t->s.in[0];
    buffer *b = &t->buffer[o->slot];
    const layout kept = kept_axes(t, &o->at), inner = axes_of(&o->at, kept.rank, o->at.rank);
    for (int64_t n = 0; n < layout_count(&kept); n++)
        for (int64_t i = 0; i < layout_count(&inner); i++) {
            int64_t index[DUET_RANK_MAX];
            unravel(&kept, n, index);
            unravel(&inner, i, index + kept.rank);
            const int64_t at = b->start + place(&o->at, index);
            put(b, at, get(b, b->before, at) * scales[(n + 1) % 4]);
        }
}

/* op(x), op(-x + 0 y) and the maximum. */
static void scaled_trial(int op, duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    const int ops[] = { op, op, OP_max };
    const uint8_t of = (uint8_t)type, row = (uint8_t)op;
    const double squares = type == DUET_F32 ? 1e30 : 1e200, sums = type == DUET_F32 ? 3e37 : 1.5e307;
    reduce_operands(&t, type, d, ops, 3, 2, how, chance(20) ? 1 : 0);
    scale_outputs(&t, op == OP_mean || (op == OP_var && chance(50)) ? sums : squares);
    add_number(&t, 0);
    t.code = (program){ .length = 5, .inputs = 2, .numbers = 1, .outputs = 3, .reductions = true };
    t.code.code[0] = (instruction){ row, of, { { FROM_INPUT, 0 }, { 0 }, { 0, 0 } } };
    t.code.code[1] = (instruction){ OP_mul, of, { { FROM_INPUT, 1 }, { FROM_NUMBER, 0 } } };
    t.code.code[2] = (instruction){ OP_sub, of, { { FROM_ACC, 0 }, { FROM_INPUT, 0 } } };
    t.code.code[3] = (instruction){ row, of, { { FROM_ACC, 0 }, { 0 }, { 0, 1 } } };
    t.code.code[4] = (instruction){ OP_max, of, { { FROM_INPUT, 0 }, { 0 }, { 0, 2 } } };
    collapse(&t);
    run_trial(&t);
}

/* The same without a program in front. */
static void plain_scaled_trial(int op, duet_dtype type, const domain *d, enum arrangement how)
{
    trial t = { .s.kernel = KERNEL_PROGRAM };
    reduce_operands(&t, type, d, &op, 1, 1, how, 0);
    scale_outputs(&t, type == DUET_F32 ? 3e37 : 1.5e307);
    t.code = (program){ .length = 1, .inputs = 1, .outputs = 1, .reductions = true };
    t.code.code[0] = (instruction){ (uint8_t)op, (uint8_t)type, { { FROM_INPUT, 0 } } };
    collapse(&t);
    run_trial(&t);
}

static void test_scaled(void)
{
    static const int ops[] = { OP_norm, OP_mean, OP_var };
    for (int k = 0; k < 3; k++)
        for (int type = 0; type < 2; type++) {
            for (int n = 0; n < REDUCE_LENGTHS - 2; n++)
                scaled_trial(ops[k], type, &(domain){ 1, 1, { 6, reduce_lengths[n] } }, IN_ORDER + n % 2);
            for (int n = 0; n < REDUCE_DOMAINS; n++) {
                scaled_trial(ops[k], type, &reduce_domains[n], IN_ORDER + n % 2);
                plain_scaled_trial(ops[k], type, &reduce_domains[n], n % ARRANGEMENTS);
            }
        }
    tap_point("norms, means and variances whose sums overflow or underflow");
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

/* Gain and bias absent, operands with any layout, or numbers. */
static void norm_trial_of(int type, int rank, const int64_t *size, int gain, int bias, bool own)
{
    trial t = { .s.kernel = KERNEL_LAYER_NORM, .s.inner = 1, .s.attr.layer_norm.source = { gain, bias } };
    add_dense(&t, true, type, rank, size);
    if (own) t.s.in[t.s.ins++] = t.s.out[0];
    else add_input(&t, any_layout(type, rank, size, true), 0);
    add_number(&t, 0.125);
    for (int k = 0; k < 2; k++) {
        if (t.s.attr.layer_norm.source[k] == NORM_OPERAND)
            add_input(&t, any_layout(type, rank, size, true), 0);
        if (t.s.attr.layer_norm.source[k] == NORM_NUMBER) add_number(&t, 1.5 - k);
    }
    run_trial(&t);
}

static void test_norm(bool quick)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 },    { 2, 3, 10 },    { 1, 5, 700 },  { 3, 0, 4 },
                                        { 40, 2, 7 },   { 1, 130, 64 },  { 1, 3, 1025 }, { 2, 2, 65 },
                                        { 1, 2, 4097 }, { 1, 1, 9000 },  { 2, 1, 5 },    { 1, 7, 128 },
                                        { 1, 2, 1024 }, { 1, 2, 16400 }, { 1, 1, 20001 } };
    for (int type = 0; type < 2; type++)
        for (int n = 0; n < 15 - 5 * quick; n++)
            for (int trims = 0; trims < 5; trims++) {
                const int skip = draw(3); /* rank 1 to 3 */
                norm_trial_of(type, 3 - skip, sizes[n] + skip, trims ? 1 + trims / 2 % 2 : NORM_ABSENT,
                              trims ? 1 + trims % 2 : NORM_ABSENT, chance(30));
            }
    tap_point("layer_norm");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    for (int k = 0; k < FOLDS; k++) test_reduce_row(reductions[k], quick);
    test_reduces_together(quick ? 30 : 300);
    test_scaled();
    test_softmax(quick);
    test_norm(quick);
    return tap_end();
}
