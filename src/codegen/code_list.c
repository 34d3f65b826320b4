/* code_list.c - makes the list of operations of a program. */
#include "code_list.h"
#include "dtype.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(CODE_LENGTH < INT16_MAX, "places fit");

typedef struct builder {
    code_list *l;
    const program *p;
    duet_dtype type;
    const formula_table *formulas;
    bool failed, operands; /* operands: store those of reductions, and leave out the reductions */
    int acc, slot[PROGRAM_SLOTS];
    int state[PROGRAM_OUTPUTS][3]; /* of each reduction, after the last update */
} builder;

static const uint8_t arities[CODE_OPERATIONS] = {
#define OPERATION(name, arity) [FORMULA_##name] = arity,
    OPERATIONS(OPERATION)
#undef OPERATION
        [CODE_READ] = 1,
    [CODE_STORE] = 1,
    [CODE_UPDATE] = 1,
    [CODE_FMS] = 3,
    [CODE_FNMA] = 3,
    [CODE_FNMS] = 3,
    [CODE_WRAP] = 1,
    [CODE_GUARD] = 2,
};

const formula_table *code_formulas(duet_dtype type)
{
    if (type == DUET_F32) return &formulas_f32;
    if (type == DUET_F64) return &formulas_f64;
    if (type == DUET_I64) return &formulas_i64;
    return type == DUET_U64 ? &formulas_u64 : NULL;
}

/* ---- nodes ---- */

static bool has_effect(const code_node *n)
{
    return n->operation == CODE_STORE || n->operation == CODE_UPDATE;
}

static bool same(const code_node *a, const code_node *b)
{
    return a->operation == b->operation && a->index == b->index && a->bits == b->bits &&
           !memcmp(a->arg, b->arg, sizeof a->arg);
}

static unsigned hash(const code_list *l, const code_node *n)
{
    uint64_t h = n->operation + 64 * (uint64_t)n->index + n->bits * 0x9e3779b97f4a7c15u;
    for (int k = 0; k < 3; k++) h = (h + (uint64_t)(uint16_t)n->arg[k]) * 0xff51afd7ed558ccdu;
    return (unsigned)(h >> 40) & (l->entries - 1);
}

static bool reserve(builder *b)
{
    code_list *l = b->l;
    if (l->length < l->capacity) return true;
    const int capacity = l->capacity ? 2 * l->capacity : 128;
    code_node *more = l->length < CODE_LENGTH ? realloc(l->node, (size_t)capacity * sizeof *more) : NULL;
    if (!more) {
        b->failed = true;
        return false;
    }
    l->node = more;
    l->capacity = capacity;
    return true;
}

/* Returns the place of a node. */
static int place(builder *b, code_node n)
{
    code_list *l = b->l;
    unsigned at = hash(l, &n);
    for (; !has_effect(&n) && l->table[at] >= 0; at = (at + 1) & (l->entries - 1))
        if (same(&l->node[l->table[at]], &n)) return l->table[at];
    if (!reserve(b)) return 0;
    if (!has_effect(&n)) l->table[at] = (int16_t)l->length;
    l->node[l->length] = n;
    return l->length++;
}

static code_node node_of(int operation, int a, int c, int d)
{
    return (code_node){ .operation = (uint8_t)operation,
                        .arity = arities[operation],
                        .arg = { (int16_t)a, (int16_t)c, (int16_t)d } };
}

static int operation(builder *b, int operation, int x, int y, int z)
{
    return place(b, node_of(operation, x, y, z));
}

static int indexed(builder *b, int operation, int index, int x, int y)
{
    code_node n = node_of(operation, x, y, 0);
    n.index = (uint16_t)index;
    return place(b, n);
}

static int constant(builder *b, uint64_t bits)
{
    code_node n = node_of(FORMULA_CONSTANT, 0, 0, 0);
    n.bits = bits;
    return place(b, n);
}

static bool is(const builder *b, int at, int operation) { return b->l->node[at].operation == operation; }

/* a b + c, where signs of operands are part of the operation. */
static int fma_of(builder *b, int x, int y, int z)
{
    bool minus = false, less = false;
    if (b->failed) return 0;
    for (int k = 0; k < 2; k++) {
        int *factor = k ? &y : &x;
        if (!is(b, *factor, FORMULA_NEG)) continue;
        *factor = b->l->node[*factor].arg[0];
        minus = !minus;
    }
    if (is(b, z, FORMULA_NEG)) {
        z = b->l->node[z].arg[0];
        less = true;
    }
    return operation(b, minus ? less ? CODE_FNMS : CODE_FNMA : less ? CODE_FMS : FORMULA_FMA, x, y, z);
}

/* ---- formulas ---- */

/* Appends the operations of a formula; returns the place of its result k. */
static int inlined(builder *b, const formula *f, const int *argument, int k)
{
    int at[512];
    if (f->length > 512) b->failed = true;
    for (int i = 0; i < f->length && !b->failed; i++) {
        const formula_node *n = &f->node[i];
        const int arity = arities[n->operation];
        const int x = arity > 0 ? at[n->arg[0]] : 0, y = arity > 1 ? at[n->arg[1]] : 0,
                  z = arity > 2 ? at[n->arg[2]] : 0;
        switch (n->operation) {
        case FORMULA_ARGUMENT: at[i] = argument[n->arg[0]]; break;
        case FORMULA_CONSTANT: at[i] = constant(b, b->formulas->constants[n->arg[0]]); break;
        case FORMULA_FMA: at[i] = fma_of(b, x, y, z); break;
        case FORMULA_LEFT:
        case FORMULA_RIGHT: at[i] = indexed(b, n->operation, n->arg[1], x, 0); break;
        default: at[i] = operation(b, n->operation, x, y, z);
        }
    }
    return b->failed ? 0 : at[f->result[k]];
}

static int map(builder *b, int op, const int argument[3])
{
    const formula *whole = &b->formulas->of[op], *moderate = &b->formulas->moderate[op];
    if (moderate->length) {
        const int y = inlined(b, moderate, argument, 0);
        return indexed(b, CODE_GUARD, op, argument[0], y);
    }
    if (whole->length) return inlined(b, whole, argument, 0);
    code_node n = node_of(CODE_CALL, argument[0], argument[1], argument[2]);
    n.index = (uint16_t)op;
    n.arity = (uint8_t)op_infos[op].arity;
    return place(b, n);
}

/* ---- reductions ---- */

static int state_of(builder *b, int output, int part)
{
    int *s = &b->state[output][part];
    if (*s < 0) *s = indexed(b, CODE_STATE, output, 0, part);
    return *s;
}

/* The first of equal elements wins, and the first NaN. The index is -1 before the first element. */
static void reduce_to_index(builder *b, int op, int output, int x)
{
    const int a = state_of(b, output, 0), at = state_of(b, output, 1), row = operation(b, CODE_ROW, 0, 0, 0);
    const int arguments[2] = { x, a };
    int better = inlined(b, &b->formulas->of[op], arguments, 0);
    if (b->type == DUET_F32 || b->type == DUET_F64) {
        better = operation(b, FORMULA_EITHER, operation(b, FORMULA_NE, x, x, 0), better, 0);
        better = operation(b, FORMULA_BOTH, operation(b, FORMULA_EQ, a, a, 0), better, 0);
    }
    const int absent = b->type == DUET_U64 ? operation(b, FORMULA_GT, at, constant(b, INT64_MAX), 0)
                                           : operation(b, FORMULA_LT, at, constant(b, 0), 0);
    const int wins = operation(b, FORMULA_EITHER, absent, better, 0);
    b->state[output][0] = operation(b, FORMULA_SELECT, wins, x, a);
    b->state[output][1] = operation(b, FORMULA_SELECT, wins, row, at);
}

static void store_operands(builder *b, int op, const int x[])
{
    for (int k = 0; k < op_infos[op].arity; k++) indexed(b, CODE_STORE, k, x[k], 0);
}

static void reduce(builder *b, int op, int output, int x, int y)
{
    const formula *f = &b->formulas->of[op];
    if (op_infos[op].flags & OP_GIVES_INDEX) {
        reduce_to_index(b, op, output, x);
        return;
    }
    int argument[5] = { x, y }, after[3];
    for (int k = 0; k < f->results; k++) argument[2 + k] = state_of(b, output, k);
    for (int k = 0; k < f->results; k++) after[k] = inlined(b, f, argument, k);
    for (int k = 0; k < f->results; k++) b->state[output][k] = after[k];
}

/* ---- programs ---- */

static int source_of(builder *b, source s)
{
    switch (s.kind) {
    case FROM_INPUT: return indexed(b, CODE_INPUT, s.index, 0, 0);
    case FROM_NUMBER: return indexed(b, CODE_NUMBER, s.index, 0, 0);
    case FROM_SLOT: return b->slot[s.index];
    default: return b->acc;
    }
}

/* x as an element of an integer type, and back. */
static int wrapped(builder *b, int x, int type)
{
    if (type == DUET_BOOL) {
        const int zero = constant(b, 0);
        return operation(b, FORMULA_SELECT, operation(b, FORMULA_BIT_NE, x, zero, 0), constant(b, 1), zero);
    }
    return dtypes[type].bytes == 8 ? x : indexed(b, CODE_WRAP, type, x, 0);
}

static void instruction_of(builder *b, const instruction *i)
{
    int x[3] = { 0 };
    if (i->op == OP_SAVE) {
        b->slot[i->arg[0].index] = b->acc;
        return;
    }
    if (i->op == OP_STORE) {
        indexed(b, CODE_STORE, i->arg[0].index, b->acc, 0);
        return;
    }
    if (i->op == OP_LOAD || i->op == OP_WRAP) {
        b->acc = source_of(b, i->arg[0]);
        if (i->op == OP_WRAP) b->acc = wrapped(b, b->acc, i->arg[1].index);
        return;
    }
    for (int k = 0; k < op_infos[i->op].arity; k++) x[k] = source_of(b, i->arg[k]);
    if (op_infos[i->op].kind != KIND_REDUCE) b->acc = map(b, i->op, x);
    else if (b->operands) store_operands(b, i->op, x);
    else reduce(b, i->op, i->arg[2].index, x[0], x[1]);
}

static void store_states(builder *b)
{
    for (int output = 0; output < b->p->outputs; output++)
        for (int part = 0; part < 3; part++)
            if (b->state[output][part] >= 0) indexed(b, CODE_UPDATE, output, b->state[output][part], part);
}

/* Leaves out nodes without a use. */
static void sweep(code_list *l)
{
    int16_t *to = l->table; /* not used any more */
    int length = 0;
    for (int i = 0; i < l->length; i++) to[i] = has_effect(&l->node[i]);
    for (int i = l->length; i-- > 0;)
        for (int k = 0; to[i] && k < l->node[i].arity; k++) to[l->node[i].arg[k]] = 1;
    for (int i = 0; i < l->length; i++) {
        if (!to[i]) continue;
        code_node n = l->node[i];
        for (int k = 0; k < n.arity; k++) n.arg[k] = to[n.arg[k]];
        to[i] = (int16_t)length;
        l->node[length++] = n;
    }
    l->length = length;
}

/* How many low bits of operand k a node needs, of which `bits` low bits are needed. */
static int operand_bits(const code_node *n, int k, int bits)
{
    switch (n->operation) {
    case FORMULA_ADD:
    case FORMULA_SUB:
    case FORMULA_MUL:
    case FORMULA_NEG:
    case FORMULA_BIT_AND:
    case FORMULA_BIT_OR:
    case FORMULA_BIT_XOR:
    case FORMULA_BIT_NOT: return bits;
    case FORMULA_LEFT_BY: return k == 0 ? bits : 64;
    case FORMULA_SELECT: return k > 0 ? bits : 64;
    case CODE_WRAP: {
        const int kept = 8 * (int)dtypes[n->index].bytes;
        return kept < bits ? kept : bits;
    }
    default: return 64;
    }
}

void code_list_drop_wraps(code_list *l, int bits)
{
    int16_t *need = l->table, *to = l->table; /* not used any more */
    for (int i = 0; i < l->length; i++) need[i] = 0;
    for (int i = l->length; i-- > 0;) {
        const code_node *n = &l->node[i];
        if (n->operation == CODE_STORE) need[i] = (int16_t)bits;
        for (int k = 0; k < n->arity; k++) {
            const int of = n->operation == CODE_STORE ? bits : operand_bits(n, k, need[i]);
            if (of > need[n->arg[k]]) need[n->arg[k]] = (int16_t)of;
        }
    }
    for (int i = 0; i < l->length; i++) {
        code_node *n = &l->node[i];
        for (int k = 0; k < n->arity; k++) n->arg[k] = to[n->arg[k]];
        const bool drop = n->operation == CODE_WRAP && need[i] <= 8 * (int)dtypes[n->index].bytes;
        to[i] = drop ? n->arg[0] : (int16_t)i;
    }
    sweep(l);
}

/* An output may be an input. So no input is read after a store: if one would be, all stores move to
 * the end, and inputs that are stored as they are, as where two matrices are exchanged, are read
 * before. */
static void order_stores(builder *b)
{
    code_list *l = b->l;
    int16_t *to = l->table;
    int first = l->length, last = 0, length = 0, stores = 0;
    for (int i = 0; i < l->length; i++) {
        const code_node *n = &l->node[i];
        if (n->operation == CODE_STORE && i < first) first = i;
        for (int k = 0; k < n->arity; k++)
            if (l->node[n->arg[k]].operation == CODE_INPUT) last = i;
    }
    if (last <= first) return;
    code_node store[PROGRAM_OUTPUTS];
    for (int i = 0; i < l->length; i++) {
        code_node n = l->node[i];
        for (int k = 0; k < n.arity; k++) n.arg[k] = to[n.arg[k]];
        to[i] = (int16_t)length;
        if (n.operation == CODE_STORE) store[stores++] = n;
        else l->node[length++] = n;
    }
    l->length = length;
    for (int k = 0; k < stores && reserve(b); k++)
        if (l->node[store[k].arg[0]].operation == CODE_INPUT) {
            const int16_t from = store[k].arg[0];
            l->node[l->length] = node_of(CODE_READ, from, 0, 0);
            for (int j = k; j < stores; j++)
                if (store[j].arg[0] == from) store[j].arg[0] = (int16_t)l->length;
            l->length++;
        }
    for (int k = 0; k < stores && reserve(b); k++) l->node[l->length++] = store[k];
}

/* The most nodes that a program can have; one instruction of a reduction to an index has 16. */
static int most_nodes(const program *p, const formula_table *formulas)
{
    int most = 64;
    for (int i = 0; i < p->length; i++) {
        const int op = p->code[i].op;
        most += 20 + (op < OPS ? formulas->of[op].length + formulas->moderate[op].length : 0);
    }
    return most;
}

static bool make(code_list *l, const program *p, duet_dtype type, bool operands)
{
    builder b = { .l = l, .p = p, .type = type, .formulas = code_formulas(type), .operands = operands };
    *l = (code_list){ .entries = 256 };
    const int most = most_nodes(p, b.formulas);
    if (most > CODE_LENGTH) return false;
    while (l->entries < 2 * (unsigned)most) l->entries *= 2;
    l->table = malloc(l->entries * sizeof *l->table);
    if (!l->table) return false;
    memset(l->table, 0xff, l->entries * sizeof *l->table);
    memset(b.state, 0xff, sizeof b.state);
    for (int i = 0; i < p->length && !b.failed; i++) instruction_of(&b, &p->code[i]);
    store_states(&b);
    if (!b.failed) {
        sweep(l);
        order_stores(&b);
    }
    return !b.failed;
}

bool code_list_make(code_list *l, const program *p, duet_dtype type) { return make(l, p, type, false); }

bool code_list_make_operands(code_list *l, const program *p, duet_dtype type)
{
    return make(l, p, type, true);
}

void code_list_free(code_list *l)
{
    free(l->node);
    free(l->table);
    *l = (code_list){ 0 };
}
