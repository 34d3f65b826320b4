/* emit_program.c - emits a pass as one program of the interpreter: orders its values, assigns slots
 * to those that are used again, and writes the instructions. */
#include "lower.h"
#include "matrix.h"
#include <stdlib.h>
#include <string.h>

typedef struct builder {
    lowering *l;
    int leader;
    bool alone;                /* emit only the leader; all its operands are in memory */
    int order[PROGRAM_LENGTH]; /* values, operands first */
    int count;
    struct {
        uint8_t slot;
        bool saved;
        /* the last position that reads it; `count`: it is stored at the end of the program */
        int last;
        int output; /* index of the output, or -1 */
    } at[PROGRAM_LENGTH];
    uint32_t slots_taken; /* one bit each */
    job *job;
    program *p;
} builder;

static bool is_inside(const builder *b, int v)
{
    if (b->alone) return v == b->leader;
    return b->l->pass[v] == b->leader;
}

static int position(const builder *b, int v)
{
    for (int i = 0; i < b->count; i++)
        if (b->order[i] == v) return i;
    return -1;
}

static bool reduces_at(const builder *b, int at) { return value_is_reduce(b->l->g, b->order[at]); }

/* ---- the order ---- */

/* Sort the operands by the registers that they need, most first; a stable insertion sort. */
static void order_operands(const builder *b, const value *u, int order[3])
{
    const int *registers = b->l->registers;
    for (int i = 1; i < u->args; i++)
        for (int j = i; j > 0 && registers[u->arg[order[j]]] > registers[u->arg[order[j - 1]]]; j--) {
            const int t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
}

/* The depth of the recursion is limited: a pass has at most PROGRAM_LENGTH values here. */
static void visit(builder *b, int v)
{
    if (!is_inside(b, v) || position(b, v) >= 0) return;
    const value *u = value_at(b->l->g, v);
    int order[3] = { 0, 1, 2 };
    order_operands(b, u, order);
    for (int k = 0; k < u->args; k++) visit(b, u->arg[order[k]]);
    b->order[b->count++] = v;
}

static bool uses(const value *u, int v)
{
    for (int k = 0; k < u->args; k++)
        if (u->arg[k] == v) return true;
    return false;
}

static int last_use(const builder *b, int at)
{
    for (int i = b->count - 1; i > at; i--)
        if (uses(value_at(b->l->g, b->order[i]), b->order[at])) return i;
    return at;
}

/* The output at `at` is stored over a destination. Does a later value read elements there? */
static bool is_read_later(const builder *b, int at)
{
    const graph *g = b->l->g;
    int dest = b->l->dest_of[b->order[at]];
    for (int i = at + 1; i < b->count && dest >= 0; i++) {
        const value *u = value_at(g, b->order[i]);
        for (int k = 0; k < u->args; k++) {
            const value *x = value_at(g, value_base(g, u->arg[k]));
            if (x->op == OP_LEAF && b->l->overlap[x->leaf * g->roots + dest] != APART) return true;
        }
    }
    return false;
}

static bool order_values(builder *b)
{
    int out[PASS_VALUES] = { b->leader }, outs = b->alone ? 1 : pass_outputs(b->l, b->leader, out);
    if (outs > PROGRAM_OUTPUTS || (!b->alone && b->l->members[b->leader] >= PROGRAM_LENGTH)) return false;
    for (int k = 0; k < outs; k++) visit(b, out[k]);
    for (int i = 0; i < b->count; i++) {
        b->at[i].last = last_use(b, i);
        b->at[i].output = -1;
    }
    for (int k = 0; k < outs; k++) {
        int i = position(b, out[k]);
        b->at[i].output = k;
        if (!reduces_at(b, i) && is_read_later(b, i)) b->at[i].last = b->count;
        b->job->out[b->job->outs++] = out[k];
    }
    return true;
}

/* ---- operands ---- */

static int input_index(builder *b, int v, bool bias)
{
    for (int i = 0; i < b->job->ins; i++)
        if (b->job->in[i] == v && b->job->bias[i] == bias) return i;
    if (b->job->ins == PROGRAM_INPUTS) return -1;
    b->job->in[b->job->ins] = v;
    b->job->bias[b->job->ins] = bias;
    return b->job->ins++;
}

static int number_index(builder *b, int v)
{
    int n = value_at(b->l->g, v)->number;
    for (int i = 0; i < b->job->nums; i++)
        if (b->job->num[i] == n) return i;
    if (b->job->nums == PROGRAM_NUMBERS) return -1;
    b->job->num[b->job->nums] = n;
    return b->job->nums++;
}

/* Up to which position does the accumulator hold the value at `at`? The next value that is not a
 * reduction reads it there and overwrites it. */
static int in_accumulator_until(const builder *b, int at)
{
    int i = at + 1;
    while (i < b->count && reduces_at(b, i)) i++;
    return i;
}

static bool source_of(builder *b, int at, int v, bool bias, source *s)
{
    int i;
    if (value_at(b->l->g, v)->op == OP_NUMBER) {
        i = number_index(b, v);
        *s = (source){ FROM_NUMBER, (uint8_t)i };
    } else if (is_inside(b, v)) {
        i = position(b, v);
        *s =
            at <= in_accumulator_until(b, i) ? (source){ FROM_ACC, 0 } : (source){ FROM_SLOT, b->at[i].slot };
    } else {
        i = input_index(b, v, bias);
        *s = (source){ FROM_INPUT, (uint8_t)i };
    }
    return i >= 0;
}

/* ---- slots ---- */

static void release_slots(builder *b, int at)
{
    for (int i = 0; i < at; i++)
        if (b->at[i].saved && b->at[i].last == at) {
            b->slots_taken &= ~(1u << b->at[i].slot);
            b->at[i].saved = false;
        }
}

static bool emit(builder *b, int op, int type, const source arg[3])
{
    if (b->p->length == PROGRAM_LENGTH) return false;
    instruction *c = &b->p->code[b->p->length++];
    *c = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
    memcpy(c->arg, arg, sizeof c->arg);
    return true;
}

static bool emit_move(builder *b, int op, int at, int kind, int index)
{
    return emit(b, op, value_at(b->l->g, b->order[at])->comp,
                (source[3]){ { (uint8_t)kind, (uint8_t)index } });
}

static bool save_to_slot(builder *b, int at)
{
    if (reduces_at(b, at) || b->at[at].last <= in_accumulator_until(b, at)) return true;
    int s = __builtin_ctz(~b->slots_taken);
    if (s >= PROGRAM_SLOTS) return false;
    b->slots_taken |= 1u << s;
    b->at[at].slot = (uint8_t)s;
    b->at[at].saved = true;
    if (s >= b->p->slots) b->p->slots = (uint8_t)(s + 1);
    return emit_move(b, OP_SAVE, at, FROM_SLOT, s);
}

static bool emit_store(builder *b, int at) { return emit_move(b, OP_STORE, at, FROM_ACC, b->at[at].output); }

/* ---- instructions ---- */

/* Emit the operator at a position, or nothing if the accumulator already has its result. A value
 * that is only stored wraps when it is stored. */
static bool emit_operator(builder *b, int at, const source arg[3])
{
    const value *u = value_at(b->l->g, b->order[at]);
    const bool wraps = value_wraps(b->l->g, b->order[at]) && b->at[at].last > at;
    const int op = u->op == OP_bias_add ? OP_add : u->op;
    source wrapped[3] = { u->op == OP_LOAD ? arg[0] : (source){ FROM_ACC, 0 }, { 0, u->type } };
    if (!(u->op == OP_LOAD && (wraps || arg[0].kind == FROM_ACC)) && !emit(b, op, u->comp, arg)) return false;
    return !wraps || emit(b, OP_WRAP, u->comp, wrapped);
}

static bool emit_value(builder *b, int at)
{
    const value *u = value_at(b->l->g, b->order[at]);
    bool reductions = reduces_at(b, at);
    source arg[3] = { { 0, 0 } };
    for (int k = 0; k < u->args; k++)
        if (!source_of(b, at, u->arg[k], u->op == OP_bias_add && k == 1, &arg[k])) return false;
    if (reductions) arg[2].index = (uint8_t)b->at[at].output;
    if (!emit_operator(b, at, arg)) return false;
    release_slots(b, at);
    if (!save_to_slot(b, at)) return false;
    return reductions || b->at[at].output < 0 || b->at[at].last == b->count || emit_store(b, at);
}

/* Store the outputs that could not be stored earlier: first the one in the accumulator. */
static bool store_late(builder *b)
{
    for (int in_accumulator = 1; in_accumulator >= 0; in_accumulator--)
        for (int i = 0; i < b->count; i++) {
            if (b->at[i].last < b->count || (in_accumulator_until(b, i) == b->count) != in_accumulator)
                continue;
            if (!in_accumulator && !emit_move(b, OP_LOAD, i, FROM_SLOT, b->at[i].slot)) return false;
            if (!emit_store(b, i)) return false;
        }
    return true;
}

static bool build(builder *b)
{
    if (!order_values(b)) return false;
    for (int i = 0; i < b->count; i++)
        if (!emit_value(b, i)) return false;
    b->p->inputs = (uint8_t)b->job->ins;
    b->p->numbers = (uint8_t)b->job->nums;
    b->p->outputs = (uint8_t)b->job->outs;
    b->p->reductions = reduces_at(b, b->count - 1);
    return store_late(b);
}

bool program_build(lowering *l, int v, bool alone, job *j)
{
    builder b = { .l = l, .leader = v, .alone = alone, .job = j, .p = calloc(1, sizeof *b.p) };
    *j = (job){ .kernel = KERNEL_PROGRAM, .program = b.p };
    if (!b.p) {
        l->failed = true;
        return false;
    }
    if (build(&b)) return true;
    free(b.p);
    j->program = NULL;
    return false;
}

bool program_copy(lowering *l, int dest, job *j)
{
    const uint8_t type = (uint8_t)l->dest[dest].to.type;
    program *p = calloc(1, sizeof *p);
    *j = (job){ .kernel = KERNEL_PROGRAM,
                .outs = 1,
                .out = { copy_to(dest) },
                .ins = 1,
                .in = { l->g->root[dest] },
                .program = p };
    if (!p) {
        l->failed = true;
        return false;
    }
    *p = (program){ .length = 2, .inputs = 1, .outputs = 1 };
    p->code[0] = (instruction){ OP_LOAD, type, { { FROM_INPUT, 0 } } };
    p->code[1] = (instruction){ OP_STORE, type, { { FROM_ACC, 0 } } };
    return true;
}
