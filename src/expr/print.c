/* print.c - a formula as a line of C. */
#include "arena.h"
#include "status.h"
#include <stdlib.h>

static const char *const options[] = { [OP_conv2d] = ".stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_convolve2d] = ".stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_max_pool2d] = ".window = {%d, %d}, .stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_avg_pool2d] = ".window = {%d, %d}, .stride = {%d, %d}, .pad = {%d, %d}",
                                       [OPS_ALL] = NULL };

static const char *const dtype_names[] = {
#define DUET_DTYPE(NAME, ...) #NAME,
#define DUET_INTEGER          DUET_DTYPE
#define DUET_HALF             DUET_DTYPE
#define DUET_NARROW           DUET_DTYPE
#define DUET_COMPLEX          DUET_DTYPE
#include <duet/dtype.def>
};

#define DEEPEST 200  /* below, and beyond so many parts, "..." stands for the rest: shared parts are printed at each use, */
#define LONGEST 4000 /* so that a small formula may have an endless text */

typedef struct printer {
    FILE *out;
    const node *nodes;
    names *names;
    int depth, parts;
} printer;

/* The place of m among the names, where it takes one if there is room. */
static int name_of(names *n, const duet_matrix *m)
{
    int i = 0;
    while (i < n->count && n->matrix[i] != m) i++;
    if (i == n->count && i < NAMES) n->matrix[n->count++] = m;
    return i;
}

void name_print(FILE *out, names *n, const duet_matrix *m)
{
    int i = name_of(n, m);
    if (i < 26) fprintf(out, "%c", 'A' + i);
    else fprintf(out, "A%d", i);
}

/* In as few digits as give the same number again. */
static void print_number(FILE *out, const node *n)
{
    const double x = n->number;
    if (n->type == DUET_I64) fprintf(out, "%lldL", (long long)n->integer);
    if (n->type == DUET_U64) fprintf(out, "%lluUL", (unsigned long long)n->integer);
    if (n->type != DUET_F64) return;
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    fputs(text, out);
}

static void print_tail(FILE *out, const node *n)
{
    if (n->op == OP_cast) fprintf(out, ", DUET_%s", dtype_names[n->type]);
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
    if (n->op == OP_LEAF) name_print(p->out, p->names, n->matrix);
    else if (n->op == OP_NUMBER) print_number(p->out, n);
    else if (p->depth > DEEPEST || p->parts > LONGEST) fputs("...", p->out);
    else print_operator(p, i);
    p->depth--;
}

void formula_print(FILE *out, const formula *f, uint32_t root, names *n)
{
    printer p = { .out = out, .nodes = f->nodes, .names = n };
    print_node(&p, root);
}

duet_status duet_print_expr(FILE *out, duet_expr e)
{
    formula f;
    names n = { .count = 0 };
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_print_expr: no file");
    TRY(formula_of(e, "duet_print_expr", &f));
    formula_print(out, &f, f.count - 1, &n);
    return DUET_OK;
}
