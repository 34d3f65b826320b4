/* print_formula.c - writes a formula as a line of C. */
#include "arena.h"
#include "backend.h"
#include "c_locale.h"
#include "einsum.h"
#include "fp_environment.h"
#include "reduce_order.h"
#include "status.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Functions that print the options of each kind. They omit options that have their default value,
 * except strides and padding. */
static void print_plain(FILE *out, const node_attributes *a) {}
static inline void print_axis(FILE *out, const node_attributes *a) { fprintf(out, ", %d", a->index.axis); }

/* Prints "{1, 2}", or "1" for one axis. */
static void print_axes(FILE *out, const char *name, const int32_t *a, int axes)
{
    fprintf(out, ", .%s = %s%d", name, axes > 1 ? "{" : "", a[0]);
    for (int k = 1; k < axes; k++) fprintf(out, ", %d", a[k]);
    if (axes > 1) fputc('}', out);
}

static bool are_all(const int32_t *a, int axes, int32_t x)
{
    while (axes > 0 && a[axes - 1] == x) axes--;
    return axes == 0;
}

/* size: the name of the last option; NULL: there is none. */
static void print_convolution(FILE *out, const int32_t *a, int axes, const char *size)
{
    const int32_t *dilation = a + 2 * axes, *groups = a + 3 * axes, *more = groups + 1 + (size ? axes : 0);
    print_axes(out, "stride", a, axes);
    print_axes(out, "pad", a + axes, axes);
    if (!are_all(dilation, axes, 1)) print_axes(out, "dilation", dilation, axes);
    if (*groups != 1) print_axes(out, "groups", groups, 1);
    if (size && !are_all(groups + 1, axes, 0)) print_axes(out, size, groups + 1, axes);
    if (!are_all(more, axes, 0)) print_axes(out, "more", more, axes);
}

static void print_pooling(FILE *out, const int32_t *a, int axes, bool sized)
{
    print_axes(out, "window", a, axes);
    print_axes(out, "stride", a + axes, axes);
    print_axes(out, "pad", a + 2 * axes, axes);
    if (sized && !are_all(a + 3 * axes, axes, 0)) print_axes(out, "size", a + 3 * axes, axes);
}

#define PRINT_AXES(n, axes)                                                                                  \
    static void print_conv##n(FILE *out, const node_attributes *a)                                           \
    {                                                                                                        \
        print_convolution(out, a->word, axes, NULL);                                                         \
    }                                                                                                        \
    static void print_conv##n##_grad(FILE *out, const node_attributes *a)                                    \
    {                                                                                                        \
        print_convolution(out, a->word, axes, "size");                                                       \
    }                                                                                                        \
    static void print_conv##n##_transposed(FILE *out, const node_attributes *a)                              \
    {                                                                                                        \
        print_convolution(out, a->word, axes, "output_pad");                                                 \
    }                                                                                                        \
    static void print_pool##n(FILE *out, const node_attributes *a)                                           \
    {                                                                                                        \
        print_pooling(out, a->word, axes, false);                                                            \
    }                                                                                                        \
    static void print_pool##n##_grad(FILE *out, const node_attributes *a)                                    \
    {                                                                                                        \
        print_pooling(out, a->word, axes, true);                                                             \
    }                                                                                                        \
    static void print_scale##n(FILE *out, const node_attributes *a)                                          \
    {                                                                                                        \
        for (int k = 0; k < (axes); k++) fprintf(out, ", %d", a->word[k]);                                   \
    }
PRINT_AXES(1, 1)
PRINT_AXES(, 2)
PRINT_AXES(3, 3)

static const char *const dtype_names[] = {
#define DUET_DTYPE(NAME, ...) #NAME,
#define DUET_INTEGER          DUET_DTYPE
#define DUET_HALF             DUET_DTYPE
#define DUET_NARROW           DUET_DTYPE
#define DUET_COMPLEX          DUET_DTYPE
#include <duet/dtype.def>
};

static void print_type(FILE *out, const node_attributes *a)
{
    fprintf(out, ", DUET_%s", dtype_names[a->cast.type]);
}

/* The axes of a transform, its last one last, and their lengths. */
static void print_fourier(FILE *out, const node_attributes *a)
{
    const fourier_attributes *fourier = &a->fourier;
    int32_t axis[DUET_RANK_MAX], count = 0;
    for (int i = 0; i < DUET_RANK_MAX; i++)
        if (fourier->axes >> i & 1 && i != fourier->last) axis[count++] = i;
    axis[count++] = fourier->last;
    fprintf(out, ", .axes = %d, .axis = {", count);
    for (int k = 0; k < count; k++) fprintf(out, "%s%d", k ? ", " : "", axis[k]);
    for (int k = 0; k < count && fourier->length[axis[0]]; k++)
        fprintf(out, "%s%d", k ? ", " : "}, .n = {", fourier->length[axis[k]]);
    fputc('}', out);
}

static void print_overlap(FILE *out, const node_attributes *a)
{
    fprintf(out, ", (duet_overlap)%d", a->overlap.part);
}

static void print_classes(FILE *out, const node_attributes *a)
{
    fprintf(out, ", %d, DUET_%s", a->one_hot.classes, dtype_names[a->one_hot.type]);
}
static void print_top(FILE *out, const node_attributes *a)
{
    fprintf(out, ", %d, %d", a->index.k, a->index.axis);
}

static void print_bins(FILE *out, const node_attributes *a)
{
    double low, high;
    memcpy(&low, a->histogram.low, sizeof low);
    memcpy(&high, a->histogram.high, sizeof high);
    fprintf(out, ", %.17g, %.17g, %d", low, high, a->histogram.bins);
}

static void print_solver(FILE *out, const node_attributes *a)
{
    if (a->solver.refine) fprintf(out, ", .refine = %d", a->solver.refine);
}

static void print_triangle(FILE *out, const node_attributes *a)
{
    fprintf(out, ", .lower = %d, .unit = %d, .transposed = %d", a->triangle.lower, a->triangle.unit,
            a->triangle.transposed);
}

static void print_csr(FILE *out, const node_attributes *a)
{
    fprintf(out, ", %lld, %d", (long long)pair_of_words(a->csr.columns), a->csr.transposed);
}

static void print_turned(FILE *out, const node_attributes *a) { fprintf(out, ", %d", a->turned); }

static void print_order(FILE *out, const node_attributes *a) {} /* print_tail does it: it has the rank */
static void print_sizes(FILE *out, const node_attributes *a) {}

static void print_range(FILE *out, const node_attributes *a)
{
    const int64_t start = pair_of_words(a->range.start), by = pair_of_words(a->range.step),
                  last = start + (pair_of_words(a->range.count) - 1) * by;
    fprintf(out, ", %d, %lld, ", a->range.axis, (long long)start);
    if (by < 0 && last == 0) fputs("DUET_OPEN", out);
    else fprintf(out, "%lld", (long long)(last + (by < 0 ? -1 : 1)));
    fprintf(out, ", %lld", (long long)by);
}

static void print_window(FILE *out, const node_attributes *a)
{
    fprintf(out, ", %d, %lld, %lld, %lld", a->range.axis, (long long)pair_of_words(a->range.count),
            (long long)pair_of_words(a->range.start), (long long)pair_of_words(a->range.step));
}

static void print_offset(FILE *out, const node_attributes *a)
{
    fprintf(out, ", %lld", (long long)pair_of_words(a->offset));
}

static void print_indices(FILE *out, const node_attributes *a)
{
    static const char *const before[EINSUM_PARTS] = { ", \"", ",", "->" };
    for (int part = 0; part < EINSUM_PARTS; part++) {
        fputs(before[part], out);
        for (int i = 0, letter; (letter = einsum_letter(&a->einsum, part, i)); i++)
            fputc('a' + letter - 1, out);
    }
    fputc('"', out);
}

static void print_options(FILE *out, const node *n)
{
    switch (n->op) {
#define DUET_DEF1(name, options, ...)                                                                        \
    case OP_##name:                                                                                          \
        print_##options(out, &n->attr);                                                                      \
        break;
#define DUET_DEF2  DUET_DEF1
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF1
#define DUET_CALL3 DUET_DEF1
#include <duet/ops.def>
    default: break;
    }
}

/* Below the deepest level, and after the longest number of parts, "..." stands for the rest. Shared
 * parts are printed at each use, so that a small formula could have an endless text. */
#define DEEPEST 200
#define LONGEST 4000

typedef struct printer {
    FILE *out;
    const node *nodes;
    names *names;
    int depth, parts;
} printer;

/* The index of m among the names; m is added if there is space. */
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

/* Prints the fewest digits from which C reads the same number. */
static void print_finite(FILE *out, double x)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    fputs(x == 0 && signbit(x) ? "-0.0" : text, out);
}

static void print_double(FILE *out, double x)
{
    if (isnan(x)) fputs("NAN", out);
    else if (isinf(x)) fputs(x < 0 ? "-INFINITY" : "INFINITY", out);
    else print_finite(out, x);
}

static void print_number(FILE *out, const node *n)
{
    if (n->type == DUET_U64) fprintf(out, "%lluUL", (unsigned long long)n->integer);
    else if (n->type != DUET_I64) print_double(out, n->number);
    else if (n->integer == INT64_MIN) fputs("INT64_MIN", out); /* C has no constant with these digits */
    else fprintf(out, "%lldL", (long long)n->integer);
}

static bool is_reduce_of_axes(const node *n)
{
    return op_infos[n->op].kind == KIND_REDUCE && n->attr.reduce.axes != REDUCE_ALL_AXES;
}
static bool is_one_axis(const node *n)
{
    return n->attr.reduce.axes && !(n->attr.reduce.axes & (n->attr.reduce.axes - 1));
}

static const char *form_of(const node *n)
{
    if (!is_reduce_of_axes(n)) return "";
    if (is_one_axis(n)) return n->attr.reduce.keep ? "_keep" : "_axis";
    return n->attr.reduce.keep ? "_axes_keep" : "_axes";
}

static void print_tail(FILE *out, const node *n)
{
    for (int a = 0; is_reduce_of_axes(n) && a < DUET_RANK_MAX; a++)
        if (n->attr.reduce.axes >> a & 1) fprintf(out, ", %d", a);
    const bool has_sizes =
        (n->op == OP_reshape || n->op == OP_broadcast) && !(n->flags & (NODE_STOP | NODE_CHECKPOINT));
    for (int a = 0; has_sizes && a < n->rank; a++) fprintf(out, ", %lld", (long long)n->size[a]);
    for (int a = 0; n->op == OP_permute && a < n->rank; a++) fprintf(out, ", %d", n->attr.order[a]);
    print_options(out, n);
    fputc(')', out);
}

static void print_node(printer *p, uint32_t i);

static const char *operator_name(const node *n)
{
    if (n->flags & NODE_STOP) return "stop_gradient";
    return n->flags & NODE_CHECKPOINT ? "checkpoint" : op_infos[n->op].name;
}

static void print_operator(printer *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    fprintf(p->out, "duet_%s%s(", operator_name(n), form_of(n));
    for (int k = 0; k < op_infos[n->op].arity; k++) {
        if (k) fputs(", ", p->out);
        print_node(p, i - n->back[k]);
    }
    print_tail(p->out, n);
}

static void print_node(printer *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    p->depth++;
    p->parts++;
    if (n->op == OP_LEAF) name_print(p->out, p->names, n->matrix);
    else if (n->op == OP_NUMBER) print_number(p->out, n);
    else if (p->depth > DEEPEST || p->parts > LONGEST) fputs("...", p->out);
    else print_operator(p, i);
    p->depth--;
}

void formula_print(FILE *out, const formula *f, uint32_t root, names *n)
{
    printer p = { .out = out, .nodes = f->nodes, .names = n };
    const plain_numbers plain = plain_numbers_begin();
    print_node(&p, root);
    plain_numbers_end(plain);
}

duet_status(duet_print_expr)(FILE *out, duet_expr e)
{
    formula f;
    names n = { .count = 0 };
    if (!out) return fail(DUET_BAD_ARGUMENT, "duet_print_expr: out must not be NULL");
    IN_DEFAULT_FP_ENVIRONMENT;
    TRY(formula_of(e, "duet_print_expr", &f));
    formula_print(out, &f, f.count - 1, &n);
    return DUET_OK;
}
