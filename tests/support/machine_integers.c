/* machine_integers.c - the reference for programs of i64 and u64, and for programs that only move
 * elements: 128-bit integers, wrapped after each instruction. Operators are the oracles of their
 * rows. */
#include "element.h"
#include "int128_reference.h"
#include "machine_reference.h"
#include <stdlib.h>
#include <string.h>

static whole within(duet_dtype t, whole x)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    const whole all = (whole)1 << bits, rest = x & (all - 1);
    if (t == DUET_BOOL) return x != 0;
    if ((t == DUET_I8 || t == DUET_I16 || t == DUET_I32 || t == DUET_I64) && rest >= all / 2)
        return rest - all;
    return rest;
}

WRAPS static whole mapped(int op, whole x, whole y, whole z)
{
    switch (op) {
#define DUET_ANY1(name, formula, oracle, ...)                                                                \
    case OP_##name:                                                                                          \
        return oracle;
#define DUET_ANY2 DUET_ANY1
#define DUET_ANY3 DUET_ANY1
#define DUET_INT1 DUET_ANY1
#define DUET_INT2 DUET_ANY1
#include <duet/ops.def>
    default: abort();
    }
}

/* ---- programs ---- */

typedef struct state {
    whole acc, slot[PROGRAM_SLOTS], out[PROGRAM_OUTPUTS];
} state;

static whole number_of(duet_dtype t, double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return within(t, bits);
}

static whole value_of(const step *s, const frame *f, const state *st, source from, duet_dtype t,
                      const int64_t *index)
{
    const operand *o = &s->in[from.index];
    switch (from.kind) {
    case FROM_INPUT: return (whole)converted(o->at.type, t, exact_element(f, o, index));
    case FROM_NUMBER: return number_of(t, f->num[s->num[from.index]]);
    case FROM_SLOT: return st->slot[from.index];
    default: return st->acc;
    }
}

static void execute(const step *s, const frame *f, const instruction *i, state *st, const int64_t *index)
{
    whole arg[3] = { 0 };
    if (op_infos[i->op].kind == KIND_REDUCE) return;
    if (i->op == OP_SAVE) st->slot[i->arg[0].index] = st->acc;
    else if (i->op == OP_STORE) st->out[i->arg[0].index] = st->acc;
    else {
        for (int k = 0; k < op_infos[i->op].arity; k++)
            arg[k] = value_of(s, f, st, i->arg[k], i->type, index);
        if (i->op == OP_LOAD) st->acc = arg[0];
        else if (i->op == OP_WRAP) st->acc = within(i->type, within(i->arg[1].index, arg[0]));
        else st->acc = within(i->type, mapped(i->op, arg[0], arg[1], arg[2]));
    }
}

static bool elements_reference(const step *s, const frame *f, int which, expected *out)
{
    const layout *l = &s->out[which].at;
    for (int64_t n = 0; n < layout_count(l); n++) {
        int64_t index[DUET_RANK_MAX];
        state st = { 0 };
        unravel(l, n, index);
        for (int i = 0; i < s->program->length; i++) execute(s, f, &s->program->code[i], &st, index);
        out[n] = (expected){ converted(s->program->code[0].type, l->type, (long double)st.out[which]), 0 };
    }
    return true;
}

/* ---- programs that only move elements of any type: the input that was loaded before the store
 * ---- */

static bool moves(const program *p)
{
    bool moves = true;
    for (int i = 0; i < p->length; i++) moves &= p->code[i].op == OP_LOAD || p->code[i].op == OP_STORE;
    return moves && !p->reductions && p->code[0].type != DUET_I64 && p->code[0].type != DUET_U64;
}

static bool moves_reference(const step *s, const frame *f, int which, expected *out)
{
    const layout *l = &s->out[which].at;
    source from = { 0 };
    for (const instruction *i = s->program->code; i->op != OP_STORE || i->arg[0].index != which; i++)
        if (i->op == OP_LOAD) from = i->arg[0];
    for (int64_t n = 0; n < layout_count(l) && from.kind == FROM_INPUT; n++) {
        int64_t index[DUET_RANK_MAX];
        unravel(l, n, index);
        out[n] = (expected){ exact_element(f, &s->in[from.index], index), 0 };
    }
    return from.kind == FROM_INPUT;
}

/* ---- reductions: their order does not matter ---- */

/* Modulo 2^128; the lower 64 bits matter. */
static whole product_of(whole x, whole y) { return (whole)((unsigned __int128)x * (unsigned __int128)y); }
static whole sum_of(whole x, whole y) { return (whole)((unsigned __int128)x + (unsigned __int128)y); }

static whole taken(const char *reduction, whole a, whole x, whole y, bool first)
{
    if (!strcmp(reduction, "sum")) return sum_of(a, x);
    if (!strcmp(reduction, "prod")) return first ? x : product_of(a, x);
    if (!strcmp(reduction, "dot")) return sum_of(a, product_of(x, y));
    if (!strcmp(reduction, "min")) return first || x < a ? x : a;
    if (!strcmp(reduction, "max")) return first || x > a ? x : a;
    if (!strcmp(reduction, "any")) return a | (x != 0);
    if (!strcmp(reduction, "all")) return (first || a) & (x != 0);
    abort();
}

static whole reduce_of(const instruction *reduction, const whole *x, const whole *y, int64_t n)
{
    const char *name = op_infos[reduction->op].name;
    const bool place = op_infos[reduction->op].flags & OP_GIVES_INDEX;
    whole a = !strcmp(name, "prod") || !strcmp(name, "all");
    int64_t best = 0;
    for (int64_t i = 0; i < n && !place; i++) a = within(reduction->type, taken(name, a, x[i], y[i], i == 0));
    for (int64_t i = 1; i < n && place; i++)
        if (reduction->op == OP_argmin ? x[i] < x[best] : x[i] > x[best]) best = i;
    if (place) return best;
    return a;
}

static void operands_of(const step *s, const frame *f, const instruction *reduction, const int64_t *index,
                        whole *x, whole *y)
{
    state st = { 0 };
    for (const instruction *i = s->program->code; i < reduction; i++) execute(s, f, i, &st, index);
    *x = value_of(s, f, &st, reduction->arg[0], reduction->type, index);
    if (op_infos[reduction->op].arity > 1)
        *y = value_of(s, f, &st, reduction->arg[1], reduction->type, index);
    else *y = 0;
}

static bool reduces_reference(const step *s, const frame *f, int which, expected *out)
{
    const instruction *reduction = s->program->code;
    while (op_infos[reduction->op].kind != KIND_REDUCE || reduction->arg[2].index != which) reduction++;
    const layout *l = &s->out[which].at;
    const int kept = l->rank - s->inner;
    const layout outer = axes(l, 0, kept), inner = axes(l, kept, l->rank);
    const int64_t n = layout_count(&inner);
    whole *x = malloc(sizeof *x * (size_t)(n + 1)), *y = malloc(sizeof *y * (size_t)(n + 1));
    const duet_dtype made = op_infos[reduction->op].flags & OP_GIVES_INDEX ? DUET_I64 : reduction->type;
    for (int64_t o = 0; x && y && o < layout_count(&outer); o++) {
        int64_t index[DUET_RANK_MAX];
        unravel(&outer, o, index);
        for (int64_t i = 0; i < n; i++) {
            unravel(&inner, i, index + kept);
            operands_of(s, f, reduction, index, &x[i], &y[i]);
        }
        out[o] = (expected){ converted(made, l->type, (long double)reduce_of(reduction, x, y, n)), 0 };
    }
    free(x);
    free(y);
    return true;
}

bool integers_reference(const step *s, const frame *f, int which, expected *out)
{
    if (moves(s->program)) return moves_reference(s, f, which, out);
    if (s->program->reductions) return reduces_reference(s, f, which, out);
    return elements_reference(s, f, which, out);
}
