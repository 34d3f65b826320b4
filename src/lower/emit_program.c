/* emit_program.c - a pass as one program. */
#include "lower.h"
#include "matrix.h"
#include <stdlib.h>
#include <string.h>

typedef struct builder {
    const lowering *l;
    int leader;
    bool alone;                /* the leader by itself, all its operands finished */
    int order[PROGRAM_LENGTH]; /* values, operands first */
    int count;
    struct {
        uint8_t slot;
        bool saved;
        int last;   /* the last position that reads it; count: the end of the program */
        int output; /* or -1 */
    } at[PROGRAM_LENGTH];
    uint32_t slots_taken; /* bits */
    job *job;
    program *p;
} builder;

static bool inside(const builder *b, int v) { return b->alone ? v == b->leader : b->l->pass[v] == b->leader; }

static int position(const builder *b, int v)
{
    for (int i = 0; i < b->count; i++)
        if (b->order[i] == v) return i;
    return -1;
}

static bool reduces_at(const builder *b, int at) { return value_is_reduce(b->l->g, b->order[at]); }

/* ---- the order ---- */

/* A pass has at most PROGRAM_LENGTH values here: so deep this goes, and no deeper. */
static void visit(builder *b, int v)
{
    if (!inside(b, v) || position(b, v) >= 0) return;
    const value *u = value_at(b->l->g, v);
    int turn[3] = { 0, 1, 2 };
    for (int i = 1; i < u->args; i++)
        for (int j = i; j > 0 && b->l->need[u->arg[turn[j]]] > b->l->need[u->arg[turn[j - 1]]]; j--) {
            int t = turn[j];
            turn[j] = turn[j - 1], turn[j - 1] = t;
        }
    for (int k = 0; k < u->args; k++) visit(b, u->arg[turn[k]]);
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

/* Does a value after position `at` read what the output at `at` is stored over? */
static bool read_later(const builder *b, int at)
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

static bool arrange(builder *b)
{
    int out[PASS_VALUES] = { b->leader }, outs = b->alone ? 1 : pass_outputs(b->l, b->leader, out);
    if (outs > PROGRAM_OUTPUTS || (!b->alone && b->l->members[b->leader] >= PROGRAM_LENGTH)) return false;
    for (int k = 0; k < outs; k++) visit(b, out[k]);
    for (int i = 0; i < b->count; i++) b->at[i].last = last_use(b, i), b->at[i].output = -1;
    for (int k = 0; k < outs; k++) {
        int i = position(b, out[k]);
        b->at[i].output = k;
        if (!reduces_at(b, i) && read_later(b, i)) b->at[i].last = b->count;
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
    b->job->in[b->job->ins] = v, b->job->bias[b->job->ins] = bias;
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

/* Until which position the accumulator holds the value at `at`: the next that is no reduction reads it there, and no later one. */
static int held_until(const builder *b, int at)
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
    } else if (inside(b, v)) {
        i = position(b, v);
        *s = at <= held_until(b, i) ? (source){ FROM_ACC, 0 } : (source){ FROM_SLOT, b->at[i].slot };
    } else {
        i = input_index(b, v, bias);
        *s = (source){ FROM_INPUT, (uint8_t)i };
    }
    return i >= 0;
}

/* ---- slots ---- */

static void release(builder *b, int at)
{
    for (int i = 0; i < at; i++)
        if (b->at[i].saved && b->at[i].last == at)
            b->slots_taken &= ~(1u << b->at[i].slot), b->at[i].saved = false;
}

static bool emit(builder *b, int op, int type, const source arg[3])
{
    if (b->p->length == PROGRAM_LENGTH) return false;
    instruction *c = &b->p->code[b->p->length++];
    *c = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
    memcpy(c->arg, arg, sizeof c->arg);
    return true;
}

static bool move(builder *b, int op, int at, int kind, int index)
{
    return emit(b, op, value_at(b->l->g, b->order[at])->comp,
                (source[3]){ { (uint8_t)kind, (uint8_t)index } });
}

static bool save(builder *b, int at)
{
    if (reduces_at(b, at) || b->at[at].last <= held_until(b, at)) return true;
    int s = __builtin_ctz(~b->slots_taken);
    if (s >= PROGRAM_SLOTS) return false;
    b->slots_taken |= 1u << s, b->at[at].slot = (uint8_t)s, b->at[at].saved = true;
    if (s >= b->p->slots) b->p->slots = (uint8_t)(s + 1);
    return move(b, OP_SAVE, at, FROM_SLOT, s);
}

static bool store(builder *b, int at) { return move(b, OP_STORE, at, FROM_ACC, b->at[at].output); }

/* ---- instructions ---- */

/* The operator at a position; or nothing, where the accumulator has its result. What is stored alone wraps as it is stored. */
static bool operate(builder *b, int at, const source arg[3])
{
    const value *u = value_at(b->l->g, b->order[at]);
    const bool wraps = value_wraps(b->l->g, b->order[at]) && b->at[at].last > at;
    const int op = u->op == OP_bias_add ? OP_add : u->op;
    source wrapped[3] = { u->op == OP_LOAD ? arg[0] : (source){ FROM_ACC, 0 }, { 0, u->type } };
    if (!(u->op == OP_LOAD && (wraps || arg[0].kind == FROM_ACC)) && !emit(b, op, u->comp, arg)) return false;
    return !wraps || emit(b, OP_WRAP, u->comp, wrapped);
}

static bool compute(builder *b, int at)
{
    const value *u = value_at(b->l->g, b->order[at]);
    bool reductions = reduces_at(b, at);
    source arg[3] = { { 0, 0 } };
    for (int k = 0; k < u->args; k++)
        if (!source_of(b, at, u->arg[k], u->op == OP_bias_add && k == 1, &arg[k])) return false;
    if (reductions) arg[2].index = (uint8_t)b->at[at].output;
    if (!operate(b, at, arg)) return false;
    release(b, at);
    if (!save(b, at)) return false;
    return reductions || b->at[at].output < 0 || b->at[at].last == b->count || store(b, at);
}

/* What had to wait: first what the accumulator holds. */
static bool store_late(builder *b)
{
    for (int held = 1; held >= 0; held--)
        for (int i = 0; i < b->count; i++) {
            if (b->at[i].last < b->count || (held_until(b, i) == b->count) != held) continue;
            if (!held && !move(b, OP_LOAD, i, FROM_SLOT, b->at[i].slot)) return false;
            if (!store(b, i)) return false;
        }
    return true;
}

static bool fill(builder *b)
{
    if (!arrange(b)) return false;
    for (int i = 0; i < b->count; i++)
        if (!compute(b, i)) return false;
    b->p->inputs = (uint8_t)b->job->ins, b->p->numbers = (uint8_t)b->job->nums,
    b->p->outputs = (uint8_t)b->job->outs;
    b->p->reductions = reduces_at(b, b->count - 1);
    return store_late(b);
}

bool program_build(lowering *l, int v, bool alone, job *j)
{
    builder b = { .l = l, .leader = v, .alone = alone, .job = j, .p = calloc(1, sizeof *b.p) };
    *j = (job){ .kernel = KERNEL_PROGRAM, .program = b.p };
    if (!b.p) return l->failed = true, false;
    if (fill(&b)) return true;
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
    if (!p) return l->failed = true, false;
    *p = (program){ .length = 2, .inputs = 1, .outputs = 1 };
    p->code[0] = (instruction){ OP_LOAD, type, { { FROM_INPUT, 0 } } },
    p->code[1] = (instruction){ OP_STORE, type, { { FROM_ACC, 0 } } };
    return true;
}
