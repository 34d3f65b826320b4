/* single_step.c - runs a statement of one step: it makes a plan with that step, checks and places
 * it, and runs or records it. */
#include "single_step.h"
#include "deferred.h"
#include "matrix.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdio.h>
#include <string.h>

/* The plan and its statement, which point to each other's parts: the struct must not be moved. */
typedef struct single {
    plan p;
    step s;
    leaf leaves[SINGLE_STEP_INPUTS];
    bound numbers[STEP_NUMBERS];
    node nodes[SINGLE_STEP_INPUTS];
    target to[STEP_OUTPUTS];
    formula f;
    statement said;
} single;

void single_step_layouts(direct *d)
{
    step *s = &d->s;
    for (int k = 0; k < s->outs; k++) s->out[k] = (operand){ k, d->out[k]->at };
    for (int k = 0; k < s->ins; k++) s->in[k] = (operand){ s->outs + k, d->in[k]->at };
}

char *single_step_text(const direct *d, char text[SINGLE_STEP_TEXT])
{
    int n = 0;
    *text = 0;
    for (int k = 0; k < d->s.outs + d->s.ins; k++) {
        char one[SHAPE_TEXT];
        const layout *at = k < d->s.outs ? &d->out[k]->at : &d->in[k - d->s.outs]->at;
        n += snprintf(text + n, SINGLE_STEP_TEXT - (size_t)n, "%s%s%s%s", k ? ", " : "",
                      d->name[k] ? d->name[k] : "", d->name[k] ? ": " : "",
                      shape_text(one, at->type, at->rank, at->size));
    }
    return text;
}

static void make(single *x, const direct *d)
{
    const int outs = d->s.outs, ins = d->s.ins;
    *x = (single){ .s = d->s };
    x->p = (plan){
        .status = DUET_OK, .steps = &x->s, .count = 1, .dests = outs, .leaves = x->leaves, .n_leaves = ins
    };
    x->p.numbers = x->numbers;
    x->p.n_numbers = d->s.nums;
    x->p.may_fail = kernel_may_fail(d->s.kernel);
    for (int k = 0; k < d->s.nums; k++) {
        x->numbers[k] = (bound){ .node = -1, .constant = d->num[x->s.num[k]] };
        x->s.num[k] = (uint32_t)k;
    }
    for (int k = 0; k < outs; k++) x->to[k] = (target){ d->out[k], 0 };
    for (int k = 0; k < ins; k++) {
        x->leaves[k] = (leaf){ (uint32_t)k, d->in[k]->at };
        x->nodes[k].op = OP_LEAF;
        x->nodes[k].matrix = d->in[k];
        x->nodes[k].matrix_serial = d->in[k]->serial;
        x->nodes[k].before = k > 0;
    }
    x->f = (formula){ .nodes = x->nodes, .count = (uint32_t)ins };
    x->said = (statement){ x->to, outs, &x->f, fusion_now(), DUET_MATH_STRICT };
}

static duet_status run_on(single *x, int device)
{
    x->p.device = device;
    x->p.machine = device_machine(device);
    TRACE("run on the %s: %s", x->p.machine->name, kernel_name(x->s.kernel, EPILOGUE_NONE));
    if (thread_get()->recording) return record_single(&x->p, &x->said);
    return plan_run(&x->p, &x->said);
}

/* With the place AUTO, the CPU runs steps for which the GPU has no memory, or that found it lost. */
static duet_status run_placed(single *x, duet_place place, int device)
{
    thread *t = thread_get();
    error_text before;
    if (device != HOST) TRY(deferred_flush());
    const unsigned failures = deferred_failures();
    const duet_status st = run_on(x, device);
    if (likely(st == DUET_OK) || (st != DUET_NO_MEMORY && st != DUET_NO_DEVICE)) return st;
    if (failures != deferred_failures() || place != DUET_AUTO || device == HOST) return st;
    error_keep(&before);
    TRACE("run on the CPU instead: %s", t->text);
    const duet_status there = run_on(x, HOST);
    if (there != DUET_NO_MEMORY && there != DUET_UNSUPPORTED) return there;
    error_put_back(&before);
    return st;
}

static __attribute__((cold)) duet_status name_statement(duet_status st, const direct *d)
{
    char text[SINGLE_STEP_TEXT];
    return fail_within(st, "%s(%s)", d->who, single_step_text(d, text));
}

static bool is_empty(const direct *d)
{
    for (int k = 0; k < d->s.outs; k++)
        if (d->out[k]->count) return false;
    return true;
}

/* Prints the plan instead of running it. */
static __attribute__((cold)) duet_status explain(const direct *d, int device)
{
    const machine *on = device_machine(device);
    char text[SINGLE_STEP_TEXT];
    const char *algorithm = on->algorithm(&d->s);
    FILE *out = thread_get()->explaining;
    fprintf(out, "%s(%s) on the %s: 1 step%s%s\n", d->who, single_step_text(d, text), on->name,
            algorithm ? "; " : "", algorithm ? algorithm : "");
    for (int k = 0; k < d->s.ins; k++) {
        const size_t bytes = matrix_to_move(d->in[k], device);
        if (bytes) fprintf(out, "  copy operand %d to the %s: %zu bytes\n", k + 1, on->name, bytes);
    }
    return DUET_OK;
}

duet_status single_step_run(const direct *d)
{
    single x;
    int device;
    const duet_place place = place_now(DUET_AUTO);
    make(&x, d);
    duet_status done = step_place(&x.said, &x.p, place, &device);
    if (done == DUET_OK && thread_get()->explaining) return explain(d, device);
    if (done == DUET_OK && !is_empty(d)) done = run_placed(&x, place, device);
    if (done == DUET_OK) return done;
    return name_statement(done, d);
}
