/* operators_document.c - writes docs/operators.md: the element types, the kernels and the error of each
 * operator. It plans each operator on small operands, on the CPU and on the fake CUDA, and reads the plans.
 *
 *     operators_document          write the document
 *     operators_document FILE     test that FILE is up to date */
#include "dtype.h"
#include "every_guess.h"
#include "tap.h"
#include <stdlib.h>
#include <string.h>

enum { TYPES = DUET_DTYPE_COUNT, TEXT = 400 };

/* ---- what is said of one row ---- */

typedef struct found {
    uint32_t types[2]; /* that there is a plan of, on each machine, a bit each */
    char how[2][TEXT]; /* what runs there, each once */
} found;

static const duet_place places[] = { DUET_CPU, DUET_GPU };

/* By what a step runs, as explain writes it: "  1. matmul; C f32[4, 4] <- ...; strict by cuBLASLt; 100 bytes,
 * ...", or a statement that is one, "duet_lu(...) on the CPU: 1 step; by LAPACK". */
static const char *step_words(char *line)
{
    const char *kernel = strstr(line, ". "), *operands = strstr(line, " <- ");
    char *way = strstr(operands ? operands : line, "; ");
    static const char *const programs[] = { "program", "copy", "conversion", "fill" };
    for (int i = 0; kernel && i < 4; i++)
        if (!strncmp(kernel + 2, programs[i], strlen(programs[i]))) return "interpreter";
    if (!way || (way[2] >= '0' && way[2] <= '9')) return "own kernel";
    way[2 + strcspn(way + 2, ";,")] = 0;
    if (!strcmp(way + 2, "strict")) return "oneDNN or BLAS";
    const char *by = strstr(way, "by ");
    if (!by) return way + 2;
    if (strcmp(by + 3, "Duet's kernels")) return by + 3;
    return "own kernel";
}

static bool has_word(const char *list, const char *word)
{
    for (const char *p = list; (p = strstr(p, word)); p++)
        if ((p == list || p[-1] == ' ') && strchr(",", p[strlen(word)])) return true;
    return false;
}

static void add_word(char *list, const char *word)
{
    if (has_word(list, word)) return;
    const size_t n = strlen(list);
    snprintf(list + n, TEXT - n, "%s%s", n ? ", " : "", word);
}

static void read_plan(char *text, char *how)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const bool is_step = !strncmp(line, "  ", 2) && line[2] >= '1' && line[2] <= '9';
        if (strstr(line, "written by the host")) add_word(how, "the host");
        else if (is_step || (*line != ' ' && strstr(line, "PU: 1 step"))) add_word(how, step_words(line));
    }
}

/* ---- asking ---- */

/* Is there a plan? What it says; text is the caller's to free. */
static bool asked(const call *c, const guess *g, duet_dtype t, duet_place place, char **text)
{
    duet_matrix *m[MATRICES] = { 0 };
    size_t bytes;
    FILE *out = open_memstream(text, &bytes);
    duet_status s = DUET_NO_MEMORY;
    if (guess_take(m, c, g, t)) DUET_ON(place) DUET_EXPLAIN(out) s = call_run(c, m);
    guess_give(m);
    fclose(out);
    return s == DUET_OK;
}

/* Of complex operands some results may be real. */
static void ask_each(const call *c, guess g, duet_dtype t, int place, found *f)
{
    const uint32_t ways = dtype_is_complex(t) && c->operands ? 1u << c->results : 1;
    bool is_one = false;
    for (g.parts = 0; g.parts < ways && !is_one; g.parts++) {
        char *text;
        is_one = asked(c, &g, t, places[place], &text);
        if (is_one) {
            f->types[place] |= 1u << t;
            read_plan(text, f->how[place]);
        }
        free(text);
    }
}

static void ask_all(const call *c, const guess *g, found *f)
{
    for (int k = 0; k < LENGTH(places); k++)
        for (int t = 0; t < TYPES; t++) ask_each(c, *g, (duet_dtype)t, k, f);
}

/* Square matrices again, of a size for which vendor libraries are used. */
static void ask_large(const call *c, guess g, found *f)
{
    for (int k = 0; k < c->operands + c->results; k++) {
        if (g.shape[k]) return;
        g.shape[k] = LARGE;
    }
    ask_all(c, &g, f);
}

/* Of the ways to choose which matrices are of indices, that by which most types are possible. */
static void find(const call *c, found *most)
{
    const int matrices = c->operands + c->results;
    *most = (found){ 0 };
    for (guess g = { 0 }; g.indices < 1u << matrices;
         g.indices += 2) { /* the first matrix is of the type in question */
        found f = { 0 };
        duet_dtype of;
        if (!guess_sizes(&g, c, &of)) continue;
        ask_all(c, &g, &f);
        ask_large(c, g, &f);
        if ((f.types[0] & most->types[0]) == most->types[0] && f.types[0] != most->types[0])
            *most = f; /* more, and all of those before */
    }
}

/* ---- the tables ---- */

static void print_types(FILE *out, uint32_t types)
{
    static const struct {
        const char *name;
        uint32_t types;
    } sets[] = {
#define BIT(type) 1u << DUET_##type
        { "all", (1u << TYPES) - 1 },
        { "real", ((1u << TYPES) - 1) & ~(BIT(C64) | BIT(C128)) },
        { "floats", BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64) },
        { "integers", BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64) | BIT(U8) | BIT(U16) | BIT(U32) | BIT(U64) },
        { "complex", BIT(C64) | BIT(C128) },
    };
    const char *before = "";
    for (int i = 0; i < LENGTH(sets); i++)
        if ((types & sets[i].types) == sets[i].types) {
            fprintf(out, "%s%s", before, sets[i].name);
            before = ", ";
            types &= ~sets[i].types;
        }
    for (int t = 0; t < TYPES; t++)
        if (types >> t & 1) {
            fprintf(out, "%s%s", before, dtypes[t].name);
            before = ", ";
        }
}

/* What tests allow to a row that has no formula of its own to count terms of. */
static const char *tested(const char *name)
{
    static const struct {
        const char *bound, *names;
    } of[] = { { "norm", " fftn ifftn rfftn irfftn fftconvolve fftcorrelate " },
               { "gamma(n)", " cumsum cumprod scatter_add " },
               { "gamma(n + 1)", " einsum " },
               { "gamma(terms + 1)", " csr_matmul csr_sddmm " },
               { "gamma(windows)", " max_pool2d_grad " },
               { "gamma(windows + 3)", " max_pool1d_grad max_pool3d_grad avg_pool1d_grad avg_pool3d_grad " },
               { "gamma(window + 3)", " avg_pool1d avg_pool3d " },
               { "gamma(products + 1)", " conv1d convolve1d conv1d_input_grad conv1d_filter_grad "
                                        "conv_transpose1d conv3d convolve3d conv3d_input_grad "
                                        "conv3d_filter_grad conv_transpose3d convolve correlate "
                                        "convolve_multi correlate_multi convolve_deep correlate_deep " },
               { "residual",
                 " inv det logdet cholesky eigvalsh svdvals eigvals expm solve solve_triangular lstsq "
                 "csr_solve csr_solve_triangular " } };
    char word[80];
    snprintf(word, sizeof word, " %s ", name);
    for (int i = 0; i < LENGTH(of); i++)
        if (strstr(of[i].names, word)) return of[i].bound;
    return "exact";
}

/* The names of the operands of a function. */
static const char *const *operand_names(const char *function)
{
    static const struct {
        const char *function, *operand[3];
    } named[] = {
#define DUET_OPERANDS(function, x, y, z) { #function, { x, y, z } },
#include <duet/operands.def>
        { NULL, { "x", "y", "z" } },
    };
    int i = 0;
    while (named[i].function && strcmp(named[i].function, function)) i++;
    return named[i].operand;
}

/* "(x, indices)" of an operator; statements have their parameters in the headers. */
static void print_operands(FILE *out, const call *c)
{
    if (!c->make) return;
    for (int k = 0; k < c->operands; k++) fprintf(out, "%s%s", k ? ", " : "(", operand_names(c->name)[k]);
    fputc(')', out);
}

/* "gamma(filters.c * filters.h)", for terms that the row writes as B.c * B.h. */
static void print_terms(FILE *out, const call *c)
{
    fputs("gamma(", out);
    for (const char *p = c->terms; *p; p++) {
        const bool is_field = p[1] == '.' && (p == c->terms || p[-1] == ' ' || p[-1] == '(');
        if (is_field && (*p == 'A' || *p == 'B')) fputs(operand_names(c->name)[*p - 'A'], out);
        else if (is_field && *p == 'o') p++;
        else fputc(*p, out);
    }
    fputc(')', out);
}

static void print_bound(FILE *out, const call *c)
{
    const bool counted = c->terms && (strchr(c->terms, '.') || !strcmp(c->terms, "n") ||
                                      (*c->terms >= '0' && *c->terms <= '9'));
    if (c->ulp == 0 || (c->terms && (!strcmp(c->terms, "0") || !strcmp(c->terms, "1")))) fputs("exact", out);
    else if (c->ulp > 0) fprintf(out, "%g ulp", c->ulp);
    else if (counted) print_terms(out, c);
    else fputs(c->terms ? c->terms : tested(c->name), out);
}

/* "yes", "0" if the result is constant wherever it has a derivative, or why there is none. Rows without a
 * derivative give truth values or integers. */
static void print_gradient(FILE *out, const char *name)
{
    static const struct {
        const char *name, *reason, *of[3];
    } rows[] = {
#define DUET_D1(name, x)        { #name, NULL, { #x, "NONE", "NONE" } },
#define DUET_D2(name, x, y)     { #name, NULL, { #x, #y, "NONE" } },
#define DUET_D3(name, x, y, z)  { #name, NULL, { #x, #y, #z } },
#define DUET_NO_D(name, reason) { #name, reason, { NULL } },
#include "derivatives.def"
    };
    int i = 0;
    while (i < LENGTH(rows) && strcmp(rows[i].name, name)) i++;
    if (i == LENGTH(rows)) return;
    if (rows[i].reason) {
        fprintf(out, "none: %s", rows[i].reason);
        return;
    }
    int zeros = 0;
    for (int k = 0; k < 3; k++) zeros += !strcmp(rows[i].of[k], "NONE");
    fputs(zeros < 3 ? "yes" : "0", out);
}

static void print_row(FILE *out, const call *c, const char *gradient)
{
    found f;
    find(c, &f);
    fprintf(out, "| %s", c->name);
    print_operands(out, c);
    fputs(" | ", out);
    for (const char *p = c->doc; *p; p++) fputs(*p == '|' ? "\\|" : (char[]){ *p, 0 }, out);
    fputs(" | ", out);
    print_types(out, f.types[0]);
    fprintf(out, " | %s | %s", f.how[0], f.how[1]);
    if (f.types[0] & ~f.types[1]) {
        fputs(*f.how[1] ? "; not " : "not ", out);
        print_types(out, f.types[0] & ~f.types[1]);
    }
    fputs(" | ", out);
    print_bound(out, c);
    fputs(" | ", out);
    if (gradient) fputs(gradient, out);
    else print_gradient(out, c->name);
    fputs(" |\n", out);
}

/* gradient: of all rows, or NULL. */
static void print_table(FILE *out, const char *title, const call *rows, int count, const char *gradient)
{
    fprintf(out,
            "\n## %s\n\n| duet_ function | result | types | CPU | GPU | error | gradient |\n"
            "|---|---|---|---|---|---|---|\n",
            title);
    for (int i = 0; i < count; i++) print_row(out, &rows[i], gradient);
}

static const char head[] =
    "# The operators\n\n"
    "`tests/sources/operators_document.c` writes this document from the plans of the library, and a test\n"
    "checks that it is up to date. Do not edit it. To write it again:\n\n"
    "    build/tests/operators_document > docs/operators.md\n\n"
    "- **types**: the types that all operands can have, except indices and conditions. *floats* are f16,\n"
    "  bf16, f32 and f64; *integers* are i8 to i64 and u8 to u64; *real* is every type but the complex "
    "ones.\n"
    "  `semantics.md` says how operands of several types promote.\n"
    "- **CPU**, **GPU**: what computes the operator, for small and for large operands. *interpreter*: the\n"
    "  interpreter, which computes neighbouring operators in one pass. *own kernel*: a kernel of Duet for\n"
    "  this operator. Other names are vendor libraries. The interpreter converts types that a kernel does\n"
    "  not compute in.\n"
    "- **error**: the error that the tests of both machines allow.\n"
    "  - *ulp*: units in the last place; 0.5 ulp is correctly rounded.\n"
    "  - *gamma(n)*: n u / (1 - n u) times the sum of the magnitudes of the terms, where u is the unit\n"
    "    roundoff.\n"
    "  - *as its formula*: the errors of the operators that it is composed of.\n"
    "  - *norm*: 8 u log2(2 N) of the result's 2-norm, or 32 u log2(2 N) if N has prime factors above 13.\n"
    "  - *residual*: the test ratios of LAPACK are below 30.\n"
    "  - *its distribution*: statistical tests.\n"
    "- **gradient**: whether `duet_grad` passes through the operator. *0*: the derivative is 0 wherever\n"
    "  there is one. Operators that give truth values or integers have none, and nothing passes through\n"
    "  them. `semantics.md` has the derivatives at special points.\n\n"
    "Results are bit-identical on the CPU and the GPU, except those of vendor libraries.\n";

static void write_all(FILE *out)
{
    fputs(head, out);
    print_table(out, "Element-wise operators", maps, LENGTH(maps), NULL);
    print_table(out, "Composed operators", composed, LENGTH(composed), "as its formula");
    print_table(out, "Reductions", reductions, LENGTH(reductions), NULL);
    print_table(out, "Shapes, products, images, transforms, sorting, linear algebra", defs, LENGTH(defs),
                NULL);
    print_table(out, "Losses, normalisations, gradients", networks, LENGTH(networks), "as its formula");
    print_table(out, "Factorisations (statements)", factors, LENGTH(factors), "");
    print_table(out, "Other statements", statements, LENGTH(statements), "");
}

/* The first line that differs, or none. */
static void compare(char *is, char *should)
{
    char *rest_is, *rest;
    int line = 1;
    char *a = strtok_r(is, "\n", &rest_is), *b = strtok_r(should, "\n", &rest);
    for (; a && b && !strcmp(a, b); line++) {
        a = strtok_r(NULL, "\n", &rest_is);
        b = strtok_r(NULL, "\n", &rest);
    }
    CHECK(!a && !b, "line %d, empty ones apart, is \"%s\" and should be \"%s\"", line, a ? a : "",
          b ? b : "");
}

static char *read_whole(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "r");
    if (f && getdelim(&text, &room, EOF, f) < 0) text = NULL;
    if (f) fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        write_all(stdout);
        return 0;
    }
    char *should, *is = read_whole(argv[1]);
    size_t bytes;
    FILE *out = open_memstream(&should, &bytes);
    write_all(out);
    fclose(out);
    if (CHECK(is != NULL, "%s cannot be read", argv[1])) compare(is, should);
    free(is);
    free(should);
    tap_point("docs/operators.md is up to date");
    return tap_end();
}
