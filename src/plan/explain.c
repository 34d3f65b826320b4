/* explain.c - prints a plan: its steps, their cost, the matrices to be copied, and the time on the other
 * device. */
#include "c_locale.h"
#include "dtype.h"
#include "matrix.h"
#include "partition.h"
#include "plan_operands.h"
#include "status.h"

typedef struct printer {
    FILE *out;
    const plan *p;
    const statement *s;
    names names;
} printer;

static const duet_matrix *leaf_matrix(const printer *a, int i)
{
    return a->s->f->nodes[a->p->leaves[i].node].matrix;
}

static void print_base(printer *a, int slot)
{
    const int dests = a->p->dests, leaves = a->p->n_leaves;
    if (slot < dests && dests == 1) fputs("result", a->out);
    else if (slot < dests) fprintf(a->out, "result %d", slot + 1);
    else if (slot < dests + leaves) name_print(a->out, &a->names, leaf_matrix(a, slot - dests));
    else fprintf(a->out, "temporary %d", slot - dests - leaves + 1);
}

/* The type of the elements of a matrix; that of the operand if it is in a temporary, whose type is not
 * known here. */
static duet_dtype type_at(const printer *a, int base, const operand *o)
{
    const int dests = a->p->dests;
    if (base >= dests + a->p->n_leaves) return o->at.type;
    return (base < dests ? a->s->to[base].m : leaf_matrix(a, base - dests))->at.type;
}

/* "imaginary half of A from element 3" */
static void print_slot(printer *a, const operand *o)
{
    const int all = plan_operands(a->p), base = plan_base_slot(a->p, o->slot);
    const duet_dtype type = type_at(a, base, o);
    const int64_t bytes = o->slot < all ? 0 : a->p->derived[o->slot - all].bytes,
                  size = (int64_t)dtypes[type].bytes, first = bytes / size - (bytes % size < 0);
    if (dtype_is_complex(type) && !dtype_is_complex(o->at.type))
        fputs(bytes == first * size ? "real half of " : "imaginary half of ", a->out);
    print_base(a, base);
    if (first) fprintf(a->out, " from element %lld", (long long)first);
}

static void print_operand(printer *a, const operand *o)
{
    char text[SHAPE_TEXT];
    print_slot(a, o);
    fprintf(a->out, " %s", shape_text(text, o->at.type, o->at.rank, o->at.size));
    if (!layout_is_dense(&o->at)) fputs(" strided", a->out);
}

static const char *plural(int n) { return n == 1 ? "" : "s"; }

static void print_count(FILE *out, int n, const char *what) { fprintf(out, ", %d %s%s", n, what, plural(n)); }

static bool is_operator(const instruction *c) { return c->op < OPS && op_infos[c->op].kind == KIND_MAP; }
static bool is_reduction(const instruction *c) { return c->op < OPS && op_infos[c->op].kind == KIND_REDUCE; }

/* The names of the instructions of one kind, separated by commas. */
static void print_names(FILE *out, const program *p, bool (*wanted)(const instruction *))
{
    const char *before = " [";
    for (int i = 0; i < p->length; i++)
        if (wanted(&p->code[i])) {
            fprintf(out, "%s%s", before, op_infos[p->code[i].op].name);
            before = ", ";
        }
    if (*before == ',') fputc(']', out);
}

static int instructions(const program *p, bool (*wanted)(const instruction *))
{
    int n = 0;
    for (int i = 0; i < p->length; i++) n += wanted(&p->code[i]);
    return n;
}

/* What a program without operators does, or NULL. */
static const char *moves_as(const step *s)
{
    const program *p = s->program;
    if (s->kernel != KERNEL_PROGRAM || instructions(p, is_operator) || instructions(p, is_reduction))
        return NULL;
    if (s->ins == 0) return "fill";
    if (p->numbers) return NULL; /* some outputs are filled */
    for (int k = 0; k < s->ins; k++)
        if (s->in[k].at.type != s->out[0].at.type) return "conversion";
    return "copy";
}

/* "program: 2 operators [sub, exp], 2 inputs, 1 number, 2 outputs [sum, mean]" */
static void print_program(FILE *out, const program *p, const layout *first)
{
    const uint8_t type = p->code[0].type;
    const int operators = instructions(p, is_operator);
    fprintf(out, ": %d operator%s", operators, plural(operators));
    print_names(out, p, is_operator);
    if (type != first->type) fprintf(out, " in %s", dtypes[type].name);
    print_count(out, p->inputs, "input");
    if (p->numbers) print_count(out, p->numbers, "number");
    print_count(out, p->outputs, "output");
    print_names(out, p, is_reduction);
}

static bool joins_next(const plan *p, int i) { return p->steps[i].joins && p->machine->joins(&p->steps[i]); }

static void print_step(printer *a, int i)
{
    FILE *out = a->out;
    const step *s = &a->p->steps[i];
    const char *moves = moves_as(s);
    fprintf(out, "  %d. %s%s", i + 1, s->again ? "again: " : "",
            moves ? moves : kernel_name(s->kernel, s->epilogue));
    if (s->kernel == KERNEL_PROGRAM && !moves) print_program(out, s->program, &s->out[0].at);
    for (int k = 0; k < s->outs; k++) {
        fputs(k ? ", " : "; ", out);
        print_operand(a, &s->out[k]);
    }
    for (int k = 0; k < s->ins; k++) {
        fputs(k ? ", " : " <- ", out);
        print_operand(a, &s->in[k]);
    }
    const char *algorithm = a->p->machine->algorithm(s);
    if (algorithm) fprintf(out, "; %s", algorithm);
    if (s->overlaps) fprintf(out, "; the next steps run meanwhile");
    if (joins_next(a->p, i) && !(i > 0 && joins_next(a->p, i - 1)))
        fprintf(out, "; with machine code, also computes step %d", i + 2);
    if (s->nums && s->kernel != KERNEL_PROGRAM) print_count(out, s->nums, "number");
    fprintf(out, "; %.3g bytes, %.3g flops, %.3g us expected\n", s->bytes, s->flops,
            a->p->machine->cost(s) * 1e6);
}

static void print_copies(printer *a)
{
    for (int i = 0; i < a->p->n_leaves; i++) {
        size_t bytes = matrix_to_move(leaf_matrix(a, i), a->p->device);
        if (!bytes) continue;
        fputs("  copy ", a->out);
        print_base(a, a->p->dests + i);
        fprintf(a->out, " to the %s: %zu bytes\n", a->p->machine->name, bytes);
    }
}

/* "3.4 us expected, and 25 us to copy its operands; without these copies, earlier statements have
 * already lost 20 us" */
static void print_time(FILE *out, const statement *s, const plan *p)
{
    const cost_estimate o = plan_estimate(s, p);
    fprintf(out, "%.3g us expected", o.steps * 1e6);
    if (p->stream) {
        fputs(" per chunk", out);
        return;
    }
    if (o.copies > 0) fprintf(out, ", and %.3g us to copy its operands", o.copies * 1e6);
    if (o.accrued > 0)
        fprintf(out, "; without these copies, earlier statements have already lost %.3g us", o.accrued * 1e6);
    if (o.back > 0) fprintf(out, ", and %.3g us to copy the result back to the host", o.back * 1e6);
}

/* The steps printed after this are those of one chunk. */
static void print_stream(FILE *out, const streaming *w)
{
    const int64_t parts = stream_parts(w);
    fprintf(out, "  streamed in %lld chunks of %lld rows", (long long)parts, (long long)w->rows);
    if (w->remainder) fprintf(out, ", the first one of %lld", (long long)(w->length % w->rows));
    fputs("; the steps of one chunk:\n", out);
}

static void print_others(FILE *out, const statement *s, const plan *p)
{
    const int others[] = { HOST, thread_get()->gpu };
    for (int i = 0; i < 2; i++) {
        const machine *m = device_machine(others[i]);
        if (others[i] == p->device) continue;
        const char *absent = device_absent(others[i]);
        if (absent) {
            fprintf(out, "  %s: %s\n", device_name(others[i]), absent);
            continue;
        }
        const plan *q = plan_find(s, others[i]);
        if (q && q->status != DUET_OK) fprintf(out, "  %s: %s\n", m->name, q->why);
        else if (q) {
            fprintf(out, "  %s: would take %d step%s, ", m->name, q->count, plural(q->count));
            print_time(out, s, q);
            fputc('\n', out);
        }
    }
}

static const char *const fusion_texts[] = {
    [FUSION_MACHINE] = "any operators", [FUSION_ROWS] = "fixed patterns only", [FUSION_NONE] = "none"
};

/* The gradients that are 0 because a formula does not name the matrix. */
static void print_notes(FILE *out, const statement *s)
{
    uint32_t i = 0;
    for (int k = 0; k < s->count; k++) {
        bool absent = false;
        for (; i <= s->to[k].node; i++)
            absent |= s->f->nodes[i].op < OPS && s->f->nodes[i].flags & NODE_ABSENT;
        if (!absent) continue;
        fputs("  note: ", out);
        if (s->count > 1) fprintf(out, "in statement %d, ", k + 1);
        fputs("a gradient is 0, because its formula does not name the matrix\n", out);
    }
}

/* The peak of the memory of a statement: all temporaries are allocated while it runs. */
static void print_memory(FILE *out, const plan *p, const statement *s)
{
    size_t matrices = 0, temporaries = 0;
    int again = 0;
    for (int i = 0; i < matrices_count(s, p); i++) {
        int first = 0;
        while (matrices_at(s, p, first)->storage != matrices_at(s, p, i)->storage) first++;
        if (first == i) matrices += matrices_at(s, p, i)->storage->bytes;
    }
    for (int i = 0; i < p->temps; i++) {
        temporaries += p->temp[i];
        fprintf(out, "  temporary %d: %zu bytes\n", i + 1, p->temp[i]);
    }
    for (int i = 0; i < p->count; i++) again += p->steps[i].again;
    if (!p->temps) return;
    fprintf(out, "  memory: %zu bytes of matrices, %zu bytes of temporaries", matrices, temporaries);
    if (again)
        fprintf(out, "; %d step%s compute%s values again", again, plural(again), again == 1 ? "s" : "");
    fputc('\n', out);
}

static void print_all(FILE *out, const plan *p, const statement *s)
{
    printer a = { .out = out, .p = p, .s = s };
    for (int k = 0; k < s->count && !thread_get()->explains_rank; k++) {
        formula_print(out, s->f, s->to[k].node, &a.names);
        fputc('\n', out);
    }
    fprintf(out, "  on the %s: %d step%s, %d temporar%s, fusion: %s; ", p->machine->name, p->count,
            plural(p->count), p->temps, p->temps == 1 ? "y" : "ies", fusion_texts[s->fusion]);
    print_time(out, s, p);
    fputc('\n', out);
    if (p->stream) print_stream(out, p->stream);
    else print_copies(&a);
    for (int i = 0; i < p->count; i++) print_step(&a, i);
    print_memory(out, p, s);
    print_notes(out, s);
    if (*p->why) fprintf(out, "  %s\n", p->why);
    print_others(out, s, p);
}

void plan_print(FILE *out, const plan *p, const statement *s)
{
    const plain_numbers plain = plain_numbers_begin();
    print_all(out, p, s);
    plain_numbers_end(plain);
}
