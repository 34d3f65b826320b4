/* map_tmpl.c - programs: the map rows of ops.def as loops, and instructions as loops between values.
 *
 * LOAD and SAVE cost nothing: the accumulator and the slots are names of values, and each loop writes a value that no name holds.
 * STORE makes the loop before it write the output. */
#include "pass.h"

#define DUET_MAP1(name, formula, ...) LOOPS1(name, formula)
#define DUET_MAP2(name, formula, ...) LOOPS2(name, formula)
#define DUET_MAP3(name, formula, ...) LOOPS3(name, formula)
#include <duet/ops.def>
LOOPS1(copy, x)

static const struct {
    loop_choice choice;
    double seconds;
} rows[OPS_ALL] = {
#define SECONDS(ulp)                                       ((ulp) > 0.5 ? SECONDS_PER_FUNCTION : SECONDS_PER_ROUNDED)
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) [OP_##name] = { PICK1(name), SECONDS(ulp) },
#define DUET_MAP2(name, formula, oracle, domain, ulp, ...) [OP_##name] = { PICK2(name), SECONDS(ulp) },
#define DUET_MAP3(name, formula, oracle, domain, ulp, ...) [OP_##name] = { PICK3(name), SECONDS(ulp) },
#include <duet/ops.def>
    [OP_LOAD] = { PICK1(copy), SECONDS_PER_ROUNDED },
};

/* Who holds what, at an instruction. */
typedef struct names {
    pass *p;
    uint8_t acc, slot[PROGRAM_SLOTS];
    uint8_t stored; /* bit k: output k was written */
    bool fresh;     /* the last loop made acc, and only acc names it or slots do */
} names;

static bool held(const names *n, int value)
{
    for (int k = 0; k < PROGRAM_SLOTS; k++)
        if (n->slot[k] == value) return true;
    return false;
}

static int free_buffer(names *n)
{
    int b = 0;
    while (held(n, BUFFERS + b)) b++;
    if (b >= n->p->buffers) n->p->buffers = (uint8_t)(b + 1);
    return BUFFERS + b;
}

/* An input whose memory an earlier STORE wrote must have been copied before. */
static void note_reading(names *n, int input)
{
    const step *s = n->p->s;
    const frame *f = n->p->f;
    for (int k = 0; k < s->outs; k++)
        if (n->stored >> k & 1 && address(f, &s->out[k]) == address(f, &s->in[input])) n->p->early |= 1u << input;
}

static uint8_t value_of(names *n, source from)
{
    switch (from.kind) {
    case FROM_INPUT: return (uint8_t)(INPUTS + from.index);
    case FROM_NUMBER: return (uint8_t)(NUMBERS + from.index);
    case FROM_SLOT: return n->slot[from.index];
    default: return n->acc;
    }
}

static void add_loop(names *n, int op, const uint8_t from[3], int to)
{
    pass *p = n->p;
    for (int k = 0; k < 3; k++)
        if (from[k] < NUMBERS) note_reading(n, from[k]);
    p->loop[p->loops++] = (loop){ rows[op].choice, NULL, (uint8_t)to, { from[0], from[1], from[2] } };
    p->seconds += rows[op].seconds;
}

static void store(names *n, int output)
{
    const uint8_t to = (uint8_t)(OUTPUTS + output), was = n->acc;
    if (n->fresh) {
        n->p->loop[n->p->loops - 1].to = to;
        for (int k = 0; k < PROGRAM_SLOTS; k++)
            if (n->slot[k] == was) n->slot[k] = to;
        n->acc = to, n->fresh = false;
    } else {
        add_loop(n, OP_LOAD, (uint8_t[3]){ was, was, was }, to);
    }
    n->stored |= (uint8_t)(1u << output);
}

static void compute(names *n, const instruction *i)
{
    uint8_t from[3] = { 0 };
    for (int k = 0; k < 3; k++) from[k] = k < op_infos[i->op].arity ? value_of(n, i->arg[k]) : from[0];
    int to = free_buffer(n);
    add_loop(n, i->op, from, to);
    n->acc = (uint8_t)to, n->fresh = true;
}

static void translate(pass *p, const program *code)
{
    names n = { .p = p };
    for (int k = 0; k < PROGRAM_SLOTS; k++) n.slot[k] = VALUES;
    for (const instruction *i = code->code; i < code->code + code->length; i++) {
        if (i->op == OP_STORE) store(&n, i->arg[0].index);
        else if (i->op == OP_SAVE) n.slot[i->arg[0].index] = n.acc;
        else if (i->op == OP_LOAD) n.acc = value_of(&n, i->arg[0]), n.fresh = false;
        else compute(&n, i);
    }
}

duet_status NAME(run_program)(const step *s, const frame *f)
{
    pass p;
    pass_open(&p, s, f);
    translate(&p, s->program);
    pass_run(&p);
    return DUET_OK;
}
