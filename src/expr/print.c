/* print.c - a formula as a line of C. */
#include "arena.h"
#include "status.h"
#include <stdlib.h>

static const char *const options[] = { [OP_conv2d] = ".stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_convolve2d] = ".stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_max_pool2d] = ".window = {%d, %d}, .stride = {%d, %d}, .pad = {%d, %d}",
                                       [OP_avg_pool2d] = ".window = {%d, %d}, .stride = {%d, %d}, .pad = {%d, %d}",
                                       [OPS_ALL] = NULL };

/* Which matrix of the formula, in order of appearance. */
static int letter(const formula *f, uint32_t i)
{
    int seen = 0;
    for (uint32_t j = 0; j <= i; j++) {
        if (f->nodes[j].op != OP_LEAF) continue;
        bool before = false;
        for (uint32_t k = 0; k < j && !before; k++)
            before = f->nodes[k].op == OP_LEAF && f->nodes[k].matrix == f->nodes[j].matrix;
        if (f->nodes[j].matrix == f->nodes[i].matrix) return seen;
        seen += !before;
    }
    return seen;
}

static void print_matrix(FILE *out, const formula *f, uint32_t i)
{
    int l = letter(f, i);
    if (l < 26) fprintf(out, "%c", 'A' + l);
    else fprintf(out, "A%d", l);
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

static void print_node(FILE *out, const formula *f, uint32_t i)
{
    const node *n = &f->nodes[i];
    if (n->op == OP_LEAF) print_matrix(out, f, i);
    else if (n->op == OP_NUMBER) fprintf(out, "%.17g", n->number);
    else {
        const char *form = op_infos[n->op].kind != KIND_FOLD || n->attr[0] < 0 ? "" : n->attr[1] ? "_keep" : "_axis";
        fprintf(out, "duet_%s%s(", op_infos[n->op].name, form);
        for (int k = 0; k < op_infos[n->op].arity; k++) {
            if (k) fputs(", ", out);
            print_node(out, f, i - n->back[k]);
        }
        print_tail(out, n);
    }
}

duet_status(duet_print_expr)(FILE *out, duet_expr e)
{
    formula f;
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_print_expr: no file");
    TRY(formula_of(e, "duet_print_expr", &f));
    print_node(out, &f, f.count - 1);
    return DUET_OK;
}
