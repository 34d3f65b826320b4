/* print.c - a formula as a line of C. */
#include "arena.h"
#include "status.h"

static const char *const options[] = { [OP_conv2d] = ".stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_convolve2d] = ".stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_max_pool2d] = ".window = {%d, %d}, .stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_avg_pool2d] = ".window = {%d, %d}, .stride = {%d, %d}, .pad = {%d, %d}",
                                       [OPS_ALL] = NULL };

#define LETTERS 64   /* matrices that get a name of their own; later ones are called A64 */
#define DEEPEST 200  /* below, and beyond so many parts, "..." stands for the rest: shared parts are printed at each use, */
#define LONGEST 4000 /* so that a small formula may have an endless text */

typedef struct printer {
    FILE *out;
    const node *nodes;
    const duet_matrix *named[LETTERS]; /* in order of appearance */
    int count, depth, parts;
} printer;

static int name_of(printer *p, const duet_matrix *m)
{
    int i = 0;
    while (i < p->count && p->named[i] != m) i++;
    if (i == p->count && i < LETTERS) p->named[p->count++] = m;
    return i;
}

static void print_matrix(printer *p, const node *n)
{
    int i = name_of(p, n->matrix);
    if (i < 26) fprintf(p->out, "%c", 'A' + i);
    else fprintf(p->out, "A%d", i);
}

static void print_tail(FILE *out, const node *n)
{
    if (op_infos[n->op].kind == KIND_FOLD && n->attr[0] >= 0) fprintf(out, ", %d", n->attr[0]);
    if (options[n->op]) {
        fputs(", ", out);
        fprintf(out, options[n->op], n->attr[0], n->attr[1], n->attr[2], n->attr[3], n->attr[4], n->attr[5]);
    }
    fputc(')', out);
}

static void print_node(printer *p, uint32_t i);

static void print_operator(printer *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    const char *form = op_infos[n->op].kind != KIND_FOLD || n->attr[0] < 0 ? "" : n->attr[1] ? "_keep" : "_axis";
    fprintf(p->out, "duet_%s%s(", op_infos[n->op].name, form);
    for (int k = 0; k < op_infos[n->op].arity; k++) {
        if (k) fputs(", ", p->out);
        print_node(p, i - n->back[k]);
    }
    print_tail(p->out, n);
}

static void print_node(printer *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    p->depth++, p->parts++;
    if (n->op == OP_LEAF) print_matrix(p, n);
    else if (n->op == OP_NUMBER) fprintf(p->out, "%.17g", n->number);
    else if (p->depth > DEEPEST || p->parts > LONGEST) fputs("...", p->out);
    else print_operator(p, i);
    p->depth--;
}

duet_status duet_print_expr(FILE *out, duet_expr e)
{
    formula f;
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_print_expr: no file");
    TRY(formula_of(e, "duet_print_expr", &f));
    printer p = { .out = out, .nodes = f.nodes };
    print_node(&p, f.count - 1);
    return DUET_OK;
}
