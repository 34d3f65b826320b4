/* program.c - a region as one program. */
#include "lower.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(2 * REGION_VALUES + 1 <= PROGRAM_LENGTH, "each value is computed and perhaps saved; the last is stored");

typedef struct builder {
    const lowering *l;
    int region;
    bool alone;                /* the region's value by itself, all its operands finished */
    int order[PROGRAM_LENGTH]; /* values, operands first */
    int count;
    uint8_t slot[PROGRAM_LENGTH]; /* of the value at a position of order */
    bool saved[PROGRAM_LENGTH];
    uint32_t slots_taken; /* bits */
    job *job;
    program *p;
} builder;

static bool inside(const builder *b, int v)
{
    if (v == b->region || b->alone) return v == b->region && value_is_map(b->l->g, v);
    return value_is_map(b->l->g, v) && b->l->region[v] == b->region;
}

static int position(const builder *b, int v)
{
    for (int i = 0; i < b->count; i++)
        if (b->order[i] == v) return i;
    return -1;
}

/* A region has at most REGION_VALUES values: so deep this goes, and no deeper. */
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

/* ---- operands ---- */

static int input_of(builder *b, int v, bool bias)
{
    for (int i = 0; i < b->job->ins; i++)
        if (b->job->in[i] == v && b->job->bias[i] == bias) return i;
    if (b->job->ins == PROGRAM_INPUTS) return -1;
    b->job->in[b->job->ins] = v, b->job->bias[b->job->ins] = bias;
    return b->job->ins++;
}

static int number_of(builder *b, int v)
{
    int n = value_at(b->l->g, v)->number;
    for (int i = 0; i < b->job->nums; i++)
        if (b->job->num[i] == n) return i;
    if (b->job->nums == PROGRAM_NUMBERS) return -1;
    b->job->num[b->job->nums] = n;
    return b->job->nums++;
}

static bool source_of(builder *b, int at, int v, bool bias, source *s)
{
    int i;
    if (value_at(b->l->g, v)->op == OP_NUMBER) {
        i = number_of(b, v);
        *s = (source){ FROM_NUMBER, (uint8_t)i };
    } else if (inside(b, v)) {
        i = position(b, v);
        *s = i == at - 1 ? (source){ FROM_ACC, 0 } : (source){ FROM_SLOT, b->slot[i] };
    } else {
        i = input_of(b, v, bias);
        *s = (source){ FROM_INPUT, (uint8_t)i };
    }
    return i >= 0;
}

/* ---- slots ---- */

static bool uses(const value *u, int v)
{
    for (int k = 0; k < u->args; k++)
        if (u->arg[k] == v) return true;
    return false;
}

/* The last position that reads the value at `at`. */
static int last_use(const builder *b, int at)
{
    for (int i = b->count - 1; i > at; i--)
        if (uses(value_at(b->l->g, b->order[i]), b->order[at])) return i;
    return at;
}

static void release(builder *b, int at)
{
    for (int i = 0; i < at; i++)
        if (b->saved[i] && last_use(b, i) == at) b->slots_taken &= ~(1u << b->slot[i]), b->saved[i] = false;
}

static instruction *emit(builder *b, int op, int type)
{
    instruction *c = &b->p->code[b->p->length++];
    *c = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
    return c;
}

static bool save(builder *b, int at)
{
    if (last_use(b, at) <= at + 1) return true;
    int s = __builtin_ctz(~b->slots_taken);
    if (s >= PROGRAM_SLOTS) return false;
    b->slots_taken |= 1u << s, b->slot[at] = (uint8_t)s, b->saved[at] = true;
    if (s >= b->p->slots) b->p->slots = (uint8_t)(s + 1);
    emit(b, OP_SAVE, value_at(b->l->g, b->order[at])->type)->arg[0] = (source){ FROM_SLOT, (uint8_t)s };
    return true;
}

static bool compute(builder *b, int at)
{
    const value *u = value_at(b->l->g, b->order[at]);
    instruction *c = emit(b, u->op == OP_bias_add ? OP_add : u->op, u->type);
    for (int k = 0; k < u->args; k++)
        if (!source_of(b, at, u->arg[k], u->op == OP_bias_add && k == 1, &c->arg[k])) return false;
    release(b, at);
    return save(b, at);
}

static bool fill(builder *b)
{
    visit(b, b->region);
    for (int i = 0; i < b->count; i++)
        if (!compute(b, i)) return false;
    emit(b, OP_STORE, value_at(b->l->g, b->region)->type)->arg[0] = (source){ FROM_ACC, 0 };
    b->p->inputs = (uint8_t)b->job->ins, b->p->numbers = (uint8_t)b->job->nums, b->p->outputs = 1;
    return true;
}

bool program_build(lowering *l, int v, bool alone, job *j)
{
    builder b = { .l = l, .region = v, .alone = alone, .job = j, .p = calloc(1, sizeof *b.p) };
    *j = (job){ .kernel = KERNEL_PROGRAM, .out = v, .program = b.p };
    if (!b.p) return l->failed = true, false;
    if (fill(&b)) return true;
    free(b.p);
    j->program = NULL;
    return false;
}

bool program_load(lowering *l, int v, int out, job *j)
{
    program *p = calloc(1, sizeof *p);
    *j = (job){ .kernel = KERNEL_PROGRAM, .out = out, .program = p };
    if (!p) return l->failed = true, false;
    bool number = value_at(l->g, v)->op == OP_NUMBER;
    source from = { number ? FROM_NUMBER : FROM_INPUT, 0 };
    duet_dtype type = out == TO_DESTINATION ? l->to.type : (duet_dtype)value_at(l->g, v)->type;
    instruction load = { OP_LOAD, (uint8_t)type, { from } }, store = { OP_STORE, (uint8_t)type, { { FROM_ACC, 0 } } };
    *p = (program){ .length = 2, .inputs = !number, .numbers = number, .outputs = 1, .code = { load, store } };
    if (number) j->nums = 1, j->num[0] = value_at(l->g, v)->number;
    else j->ins = 1, j->in[0] = v;
    return true;
}
