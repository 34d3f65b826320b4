/* explain.c - a plan in words: why that choice. */
#include "dtype.h"
#include "plan.h"
#include "status.h"

static void print_slot(FILE *out, const plan *p, int slot)
{
    if (slot == SLOT_DESTINATION) fputs("result", out);
    else if (slot <= p->n_leaves) fprintf(out, "leaf%d", slot);
    else fprintf(out, "temp%d", slot - p->n_leaves);
}

static void print_operand(FILE *out, const plan *p, const operand *o)
{
    char text[SHAPE_TEXT];
    print_slot(out, p, o->slot);
    fprintf(out, " %s", shape_text(text, o->at.type, o->at.rank, o->at.size));
    if (!layout_is_dense(&o->at)) fputs(" strided", out);
}

static void print_program(FILE *out, const program *p)
{
    fprintf(out, " {");
    for (int i = 0; i < p->length; i++) {
        const instruction *c = &p->code[i];
        if (c->op != OP_SAVE && c->op != OP_STORE) fprintf(out, " %s", op_infos[c->op].name);
    }
    fputs(" }", out);
}

static void print_step(FILE *out, const plan *p, int i)
{
    const step *s = &p->steps[i];
    fprintf(out, "  %d. %s", i + 1, kernel_name(s->kernel));
    if (s->kernel == KERNEL_PROGRAM) print_program(out, s->program);
    fputs(": ", out);
    print_operand(out, p, &s->out[0]);
    fputs(" <-", out);
    for (int k = 0; k < s->ins; k++) {
        fputs(k ? ", " : " ", out);
        print_operand(out, p, &s->in[k]);
    }
    if (s->nums) fprintf(out, ", %d numbers", s->nums);
    fprintf(out, "; %.3g bytes, %.3g flops, %.3g us expected\n", s->bytes, s->flops, p->machine->cost(s) * 1e6);
}

static void print_moves(FILE *out, const plan *p, const statement *s)
{
    for (int i = 0; i < p->n_leaves; i++) {
        size_t bytes = matrix_to_move(s->f->nodes[p->leaves[i].node].matrix, p->machine->side);
        if (bytes) fprintf(out, "  move leaf%d to the %s: %zu bytes\n", i + 1, p->machine->name, bytes);
    }
}

static void print_others(FILE *out, const statement *s, const plan *p)
{
    for (int side = 0; side < SIDES; side++) {
        const machine *m = machines[side];
        if (m == p->machine) continue;
        const char *absent = m->absent();
        if (absent) {
            fprintf(out, "  %s: %s\n", m->name, absent);
            continue;
        }
        const plan *q = plan_find(s, m);
        if (q && q->status != DUET_OK) fprintf(out, "  %s: %s\n", m->name, q->why);
        else if (q)
            fprintf(out, "  %s: would take %d steps, %.3g us expected without moves\n", m->name, q->count, q->seconds * 1e6);
    }
}

duet_status plan_print(FILE *out, const plan *p, const statement *s)
{
    fprintf(out, "\n  on the %s: %d steps, %d temporaries, %.3g us expected without moves; fusion by %s\n", p->machine->name,
            p->count, p->temps, p->seconds * 1e6,
            s->fusion == FUSION_MACHINE ? "machine"
            : s->fusion == FUSION_ROWS  ? "rows"
                                        : "nothing");
    print_moves(out, p, s);
    for (int i = 0; i < p->count; i++) print_step(out, p, i);
    for (int i = 0; i < p->temps; i++) fprintf(out, "  temp%d: %zu bytes\n", i + 1, p->temp[i]);
    if (*p->why) fprintf(out, "  %s\n", p->why);
    print_others(out, s, p);
    return DUET_OK;
}
