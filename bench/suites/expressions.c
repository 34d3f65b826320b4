/* expressions.c - duet-expressions: times random element-wise expressions on one CPU thread. Duet's
 * interpreter is compared with compiled loops, with Eigen, and with Duet computing each operator in
 * a pass of its own. expressions.py creates the expressions, compiles the loops and runs this
 * program. */
#include "black_scholes.h"
#include "data.h"
#include "json.h"
#include "measure.h"
#include "second_process.h"
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS  28 /* most steps of an expression */
#define INPUTS 5
#define CASES  512
#define LOOPS  4

static const char usage[] = "duet-expressions FILE LIBRARY ... [--quick] [--seed N] [--json FILE]\n"
                            "  expressions.py creates the files and runs this program\n";

/* ---- expressions: one row an operator ---- */

/* Columns: name; Duet's formula; the formula in double; the error of the result r, from the errors
 * e and f of the operands. A loop may add to a product without rounding it. This makes the error
 * smaller, so the bound still holds. */
#define OPERATORS(ROW)                                                                                       \
    ROW(add, duet_add(x, y), a + b, e + f)                                                                   \
    ROW(sub, duet_sub(x, y), a - b, e + f)                                                                   \
    ROW(mul, duet_mul(x, y), (a) * (b), fabs(a) * f + fabs(b) * e + e * f)                                   \
    ROW(div, duet_div(x, y), a / b, (e + fabs(r) * f) / fmax(fabs(b) - f, 0))                                \
    ROW(sqrt, duet_sqrt(x), sqrt(a), e / sqrt(fmax(a - e, 0)))                                               \
    ROW(min, duet_minimum(x, y), fmin(a, b), fmax(e, f))                                                     \
    ROW(max, duet_maximum(x, y), fmax(a, b), fmax(e, f))

enum {
#define ROW(name, ...) OP_##name,
    OPERATORS(ROW)
#undef ROW
        OP_COUNT
};
static const char *const names[] = {
#define ROW(name, ...) #name,
    OPERATORS(ROW)
#undef ROW
};

/* kind 'x': input number `index`; 't': the result of step `index`; 0: a number. */
typedef struct operand {
    char kind;
    int index;
    float number;
} operand;

typedef struct expression {
    bool in_place; /* the result overwrites input 0 */
    int inputs, steps;
    struct {
        int op;
        operand arg[2];
    } step[STEPS];
} expression;

static expression expressions[CASES];
static int count;

static bool parse_operand(operand *o)
{
    const char *word = strtok(NULL, " \n");
    if (!word) return false;
    if (*word == 'x' || *word == 't') o->kind = *word;
    else o->kind = 0;
    if (o->kind) o->index = atoi(word + 1);
    else o->number = strtof(word, NULL);
    return true;
}

static bool parse_step(expression *e, int k)
{
    const char *word = strtok(NULL, " \n");
    int op = 0;
    while (word && op < OP_COUNT && strcmp(word, names[op])) op++;
    if (!word || op == OP_COUNT) return false;
    e->step[k].op = op;
    return parse_operand(&e->step[k].arg[0]) && (op == OP_sqrt || parse_operand(&e->step[k].arg[1]));
}

static bool parse_line(expression *e, char *line)
{
    const char *place = strtok(line, " "), *inputs = strtok(NULL, " "), *steps = strtok(NULL, " ");
    if (!place || !inputs || !steps) return false;
    *e = (expression){ !strcmp(place, "in"), atoi(inputs), atoi(steps) };
    bool ok = e->inputs <= INPUTS && e->steps > 0 && e->steps <= STEPS;
    for (int k = 0; k < e->steps && ok; k++) ok = parse_step(e, k);
    return ok;
}

static bool parse_file(const char *path)
{
    char line[4096];
    FILE *in = fopen(path, "r");
    if (!in) {
        perror(path);
        return false;
    }
    bool ok = true;
    while (ok && count < CASES && fgets(line, sizeof line, in)) ok = parse_line(&expressions[count++], line);
    fclose(in);
    if (!ok) fprintf(stderr, "duet-expressions: %s:%d: this is not an expression\n", path, count);
    return ok && count;
}

/* ---- input data. Some expressions overwrite input 0, which is then filled again ---- */

static float *input[INPUTS], *result;
static int64_t capacity;
static uint32_t seed = 1;

static float value(int k, int64_t i)
{
    return 1.25f + 0.75f * noise(seed * 64 + (uint32_t)k, i);
} /* 0.5 to 2 */

static void fill_input(int k, int64_t n)
{
    for (int64_t i = 0; i < n; i++) input[k][i] = value(k, i);
}

static bool make_data(int64_t n)
{
    capacity = n;
    for (int k = 0; k <= INPUTS; k++) {
        void *p;
        if (posix_memalign(&p, 4096, (size_t)n * sizeof(float) + 64)) {
            fputs("duet-expressions: out of memory\n", stderr);
            return false;
        }
        *(k < INPUTS ? &input[k] : &result) = p;
    }
    for (int k = 0; k < INPUTS; k++) fill_input(k, n);
    memset(result, 0, (size_t)n * sizeof(float));
    return true;
}

/* Restores input 0, which some expressions overwrite, and fills the result with NaN. */
static void make_fresh(int64_t n)
{
    fill_input(0, n);
    memset(result, 0xFF, (size_t)n * sizeof(float));
}

static float *destination(const expression *e) { return e->in_place ? input[0] : result; }

/* ---- the reference in double, with the error that f32 arithmetic may have, however the compiler
 *      contracts it ---- */

typedef struct exact {
    double value, error;
} exact;

static exact step_exact(int op, exact x, exact y)
{
    const double a = x.value, b = y.value, e = x.error, f = y.error;
    double r = 0, error = 0;
    switch (op) {
#define ROW(name, duet, formula, bound)                                                                      \
    case OP_##name:                                                                                          \
        r = formula;                                                                                         \
        error = bound;                                                                                       \
        break;
        OPERATORS(ROW)
#undef ROW
    }
    return (exact){ r, error + 0x1p-24 * (fabs(r) + error) };
}

static exact reference(const expression *e, int64_t i)
{
    exact t[STEPS], arg[2] = { { 0, 0 }, { 0, 0 } };
    for (int k = 0; k < e->steps; k++) {
        for (int j = 0; j < 2; j++) {
            const operand *o = &e->step[k].arg[j];
            if (o->kind == 'x') arg[j] = (exact){ value(o->index, i), 0 };
            else if (o->kind == 't') arg[j] = t[o->index];
            else arg[j] = (exact){ o->number, 0 };
        }
        t[k] = step_exact(e->step[k].op, arg[0], arg[1]);
    }
    return t[e->steps - 1];
}

/* Checks about 8192 elements, among them the first and the last hundred. Eigen computes square
 * roots by Newton's method, which is not correctly rounded, so it may have twice the error. */
static bool is_correct(const expression *e, int64_t n, const char *who)
{
    const float *d = destination(e);
    const double slack = strcmp(who, "Eigen") ? 1 : 2;
    int64_t stride = n / 8192 | 1;
    for (int64_t i = 0, step = 1; i < n; i += step) {
        const bool near_end = i < 100 || i + stride >= n - 100;
        if (near_end) step = 1;
        else step = stride;
        exact want = reference(e, i);
        if (fabs(d[i] - want.value) <= slack * want.error) continue;
        fprintf(stderr,
                "duet-expressions: %s, expression %d: element %lld of %lld is %.9g instead of %.9g +- %.2g\n",
                who, (int)(e - expressions), (long long)i, (long long)n, d[i], want.value, want.error);
        return false;
    }
    return true;
}

/* ---- Duet, in this process and in the second one ---- */

static duet_expr operand_expr(const operand *o, duet_matrix *const m[], const duet_expr t[])
{
    if (o->kind == 'x') return duet_of_matrix(m[o->index]);
    if (o->kind == 't') return t[o->index];
    return duet_of_number(o->number);
}

static duet_expr build(const expression *e, duet_matrix *const m[])
{
    duet_expr t[STEPS], x, y;
    for (int k = 0; k < e->steps; k++) {
        x = operand_expr(&e->step[k].arg[0], m, t);
        if (e->step[k].op != OP_sqrt) y = operand_expr(&e->step[k].arg[1], m, t);
        switch (e->step[k].op) {
#define ROW(name, duet, formula, bound)                                                                      \
    case OP_##name: t[k] = duet; break;
            OPERATORS(ROW)
#undef ROW
        }
    }
    return t[e->steps - 1];
}

/* The current expression: its matrices, which wrap the input data, and its persistent formula. */
static struct {
    int what;
    int64_t size;
    duet_matrix *in[INPUTS], *out;
    duet_expr formula;
} current = { .what = -1 };

static void release_current(void)
{
    if (current.what < 0) return;
    duet_drop(current.formula);
    for (int k = 0; k < INPUTS; k++) duet_free(&current.in[k]);
    duet_free(&current.out);
    current.what = -1;
}

static bool make_current(int what, int64_t size)
{
    if (current.what == what && current.size == size) return true;
    release_current();
    const expression *e = &expressions[what];
    for (int k = 0; k < INPUTS; k++) current.in[k] = duet_wrap(input[k], DUET_F32, size);
    current.out = duet_wrap(destination(e), DUET_F32, size);
    duet_matrix *in[INPUTS];
    memcpy(in, current.in, sizeof in);
    if (e->in_place) in[0] = current.out;
    current.formula = duet_hold(build(e, in));
    current.what = what;
    current.size = size;
    return duet_expr_status(current.formula) == DUET_OK;
}

/* Runs j.calls calls and returns the seconds. With variant 1 it restores the input data before and
 * checks the result. */
static double duet_work(job j)
{
    const expression *e = &expressions[j.what];
    if (!make_current((int)j.what, j.size)) return NAN;
    if (j.variant) make_fresh(j.size);
    duet_status s = DUET_OK;
    const double start = now();
    DUET_ON(DUET_CPU)
    for (int64_t i = 0; i < j.calls && s == DUET_OK; i++) s = duet_set(current.out, current.formula);
    const double took = now() - start;
    if (s != DUET_OK) {
        fprintf(stderr, "duet-expressions: expression %d: %s\n", (int)j.what, duet_error());
        return NAN;
    }
    if (j.variant && (!duet_read(current.out) || !is_correct(e, j.size, "Duet"))) return NAN;
    return took;
}

/* ---- the compiled loops ---- */

typedef void loop(long n, float *d, const float *, const float *, const float *, const float *,
                  const float *);
typedef struct library {
    const char *name;
    void *const *loops;
} library;

static double loop_work(const library *l, job j)
{
    const expression *e = &expressions[j.what];
    loop *f;
    memcpy(&f, &l->loops[j.what], sizeof f);
    if (j.variant) make_fresh(j.size);
    const double start = now();
    for (int64_t i = 0; i < j.calls; i++)
        f(j.size, destination(e), input[0], input[1], input[2], input[3], input[4]);
    const double took = now() - start;
    if (j.variant && !is_correct(e, j.size, l->name)) return NAN;
    return took;
}

/* ---- contenders ---- */

enum { MACHINE, NODES, FIRST_LOOP };
static second_process nodes;
static library libraries[LOOPS];
static int loops;
static void *vector_library;
static job at; /* the job that the contenders run */

static double machine_block(void *state, int64_t calls)
{
    return duet_work((job){ at.what, at.size, at.variant, calls });
}
static double nodes_block(void *state, int64_t calls)
{
    return second_process_call(&nodes, (job){ at.what, at.size, at.variant, calls });
}
static double loop_block(void *state, int64_t calls)
{
    return loop_work(state, (job){ at.what, at.size, at.variant, calls });
}

static contender contenders[FIRST_LOOP + LOOPS] = { { "Duet's interpreter", machine_block },
                                                    { "Duet, one pass per operator", nodes_block } };

/* Returns the printed name of a library of loops: "gcc, 256 bit" for loops-256.so. */
static const char *loops_name(const char *path)
{
    if (strstr(path, "256")) return "gcc, 256 bit";
    if (strstr(path, "512")) return "gcc, 512 bit";
    if (strstr(path, "eigen")) return "Eigen";
    return path;
}

static bool open_library(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        fprintf(stderr, "duet-expressions: %s\n", dlerror());
        return false;
    }
    if (strstr(path, "vector.so")) {
        vector_library = lib;
        return true;
    }
    void *const *table = dlsym(lib, "loops");
    const int *have = dlsym(lib, "loop_count");
    if (!table || !have || *have != count || loops == LOOPS) {
        fprintf(stderr, "duet-expressions: %s does not belong to these expressions\n", path);
        return false;
    }
    libraries[loops] = (library){ loops_name(path), table };
    contenders[FIRST_LOOP + loops] = (contender){ libraries[loops].name, loop_block, &libraries[loops] };
    loops++;
    return true;
}

/* Runs each contender once on restored data and checks the result. */
static bool all_correct(int what, int64_t size)
{
    bool ok = true;
    at = (job){ what, size, 1, 1 };
    for (int i = 0; i < FIRST_LOOP + loops; i++) ok &= isfinite(contenders[i].block(contenders[i].state, 1));
    at.variant = 0;
    return ok;
}

/* ---- one size: the ratios to the fastest compiled loop, for all expressions of a kind ---- */

typedef struct table {
    int64_t size;
    bool in_place;
    int count;
    double ratio[FIRST_LOOP + LOOPS + 1][CASES]; /* the last row: Duet without the overhead of a call */
    double us[CASES], call_us[CASES];
} table;

static double best_loop(void)
{
    double best = INFINITY;
    for (int i = FIRST_LOOP; i < FIRST_LOOP + loops; i++)
        if (strstr(contenders[i].name, "gcc")) best = fmin(best, median_us(&contenders[i]));
    return best;
}

/* Returns the time on one element: the overhead of a call. */
static double call_cost(int what, effort how)
{
    at = (job){ what, 1, 0, 1 };
    if (measure(contenders, 1, how)) return median_us(contenders);
    return NAN;
}

static bool time_expression(table *t, int what, effort how)
{
    const int last = FIRST_LOOP + loops, k = t->count++;
    t->call_us[k] = call_cost(what, how);
    if (!all_correct(what, t->size)) return false;
    at = (job){ what, t->size, 0, 1 };
    if (!measure(contenders, last, how)) return false;
    for (int i = 0; i < last; i++) t->ratio[i][k] = median_us(&contenders[i]) / best_loop();
    t->us[k] = median_us(&contenders[MACHINE]);
    if (t->us[k] > t->call_us[k]) t->ratio[last][k] = (t->us[k] - t->call_us[k]) / best_loop();
    else t->ratio[last][k] = NAN; /* NAN: the difference is below the measurement error */
    return true;
}

static void report_table(json *j, const table *t)
{
    char text[24];
    const int rows = FIRST_LOOP + loops + 1;
    for (int i = 0; i < rows; i++) {
        const char *name = i < rows - 1 ? contenders[i].name : "Duet's interpreter, without overhead";
        printf("%8s %-9s %-36s %8.3f %8.3f\n", short_count(text, t->size),
               t->in_place ? "an input" : "separate", name, geomean(t->ratio[i], t->count),
               greatest(t->ratio[i], t->count));
        json_begin(j, NULL, '{');
        json_text(j, "bench", "expressions");
        json_integer(j, "size", t->size);
        json_truth(j, "in_place", t->in_place);
        json_text(j, "contender", name);
        json_number(j, "geomean", geomean(t->ratio[i], t->count));
        json_number(j, "greatest", greatest(t->ratio[i], t->count));
        json_begin(j, "ratios", '[');
        for (int k = 0; k < t->count; k++) json_number(j, NULL, t->ratio[i][k]);
        json_end(j, ']');
        json_end(j, '}');
    }
    fflush(stdout);
}

static bool run_size(json *j, int64_t size, bool in_place, effort how)
{
    static table t;
    t = (table){ .size = size, .in_place = in_place };
    for (int what = 0; what < count; what++)
        if (expressions[what].in_place == in_place && !time_expression(&t, what, how)) return false;
    report_table(j, &t);
    return true;
}

/* ---- sigmoid and Black-Scholes, against loops with -Ofast ---- */

/* Fills an input with scaled data: prices and strikes of 50 to 200, times of 0.5 to 2; for sigmoid
 * about -40 to 40. */
static void fill_scaled(int k, int64_t n, float scale, float shift)
{
    for (int64_t i = 0; i < n; i++) input[k][i] = scale * (value(k, i) + shift);
}

typedef struct function {
    const char *name;
    int inputs;
    float scale[3], shift[3];
    duet_expr (*formula)(duet_matrix *const in[]);
    double (*exact)(const double *x);
    double bound; /* of the absolute error, relative to the largest value */
} function;

static duet_expr sigmoid_formula(duet_matrix *const in[]) { return duet_sigmoid(in[0]); }
static double sigmoid_exact(const double *x) { return 1 / (1 + exp(-x[0])); }
static duet_expr call_formula(duet_matrix *const in[]) { return black_scholes(in[0], in[1], in[2], NULL); }
static double call_exact(const double *x) { return black_scholes_reference(x[0], x[1], x[2], NULL); }

static const function functions[] = {
    { "sigmoid", 1, { 8 }, { -1.25f }, sigmoid_formula, sigmoid_exact, 0x1p-21 },
    { "black_scholes", 3, { 100, 100, 1 }, { 0 }, call_formula, call_exact, 0x1p-20 },
};

typedef struct trial {
    const function *f;
    int64_t n;
    duet_matrix *in[3], *out;
    duet_expr formula;
    void *loop;
} trial;

static double function_block(void *state, int64_t calls)
{
    trial *t = state;
    duet_status s = DUET_OK;
    const double start = now();
    DUET_ON(DUET_CPU)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = duet_set(t->out, t->formula);
    if (s == DUET_OK) return now() - start;
    return NAN;
}

static double fast_loop_block(void *state, int64_t calls)
{
    trial *t = state;
    void (*one)(long, float *, const float *, const float *, const float *);
    memcpy(&one, &t->loop, sizeof one);
    const double start = now();
    for (int64_t i = 0; i < calls; i++) one(t->n, result, input[0], input[1], input[2]);
    return now() - start;
}

/* Returns the largest error, relative to the largest value. */
static double function_error(const trial *t)
{
    double error = 0, most = 0, x[3];
    for (int64_t i = 0; i < t->n; i += t->n / 65536 | 1) {
        for (int k = 0; k < t->f->inputs; k++) x[k] = input[k][i];
        double want = t->f->exact(x), off = fabs(result[i] - want);
        most = fmax(most, fabs(want));
        if (!(off <= error)) error = off;
    }
    return error / most;
}

static bool time_function(json *j, trial *t, effort how)
{
    char text[24];
    contender c[] = { { "Duet", function_block, t }, { "gcc -Ofast", fast_loop_block, t } };
    double error[2];
    for (int i = 0; i < 2; i++) {
        memset(result, 0xFF, (size_t)t->n * sizeof(float));
        if (!isfinite(c[i].block(t, 1))) {
            fprintf(stderr, "duet-expressions: %s: %s\n", t->f->name, duet_error());
            return false;
        }
        error[i] = function_error(t);
    }
    if (!(error[0] <= t->f->bound)) {
        fprintf(stderr, "duet-expressions: %s: the relative error is %.2g\n", t->f->name, error[0]);
        return false;
    }
    if (!measure(c, 2, how)) return false;
    double us[2] = { median_us(&c[0]), median_us(&c[1]) }, ratio = median_ratio(&c[0], &c[1]);
    printf("%8s %-14s %12.3f us, gcc -Ofast %12.3f us, ratio %.3f; errors %.1e, %.1e\n",
           short_count(text, t->n), t->f->name, us[0], us[1], ratio, error[0], error[1]);
    json_begin(j, NULL, '{');
    json_text(j, "bench", t->f->name);
    json_integer(j, "size", t->n);
    json_text(j, "peer", "gcc -Ofast");
    json_number(j, "us", us[0]);
    json_number(j, "peer_us", us[1]);
    json_number(j, "ratio", ratio);
    json_number(j, "error", error[0]);
    json_number(j, "peer_error", error[1]);
    json_end(j, '}');
    return true;
}

static bool run_function(json *j, const function *f, int64_t n, effort how)
{
    trial t = {
        .f = f, .n = n, .loop = dlsym(vector_library, f->name), .out = duet_wrap(result, DUET_F32, n)
    };
    for (int k = 0; k < f->inputs; k++) {
        fill_scaled(k, n, f->scale[k], f->shift[k]);
        t.in[k] = duet_wrap(input[k], DUET_F32, n);
    }
    t.formula = duet_hold(f->formula(t.in));
    bool ok = t.loop && time_function(j, &t, how);
    duet_drop(t.formula);
    for (int k = 0; k < 3; k++) duet_free(&t.in[k]);
    duet_free(&t.out);
    return ok;
}

static bool run_functions(json *j, const int64_t *sizes, effort how)
{
    bool ok = true;
    release_current(); /* its matrices wrap the same data */
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (int i = 0; sizes[i] && ok; i++) ok = run_function(j, &functions[f], sizes[i], how);
    for (int k = 0; k < INPUTS; k++) fill_input(k, capacity);
    return ok;
}

/* ---- the run ---- */

static const int64_t sizes_full[] = { 256, 1 << 10, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26, 0 };
static const int64_t sizes_quick[] = { 256, 1 << 12, 1 << 20, 0 };
static const int64_t odd_sizes[] = { 1, 17, 45, 100, 129, 1300, 4099, 0 };

static bool is_large_machine(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE) > 32e9;
}

/* Checks odd sizes, whose last vectors are incomplete, without timing them. */
static bool check_odd_sizes(void)
{
    for (int what = 0; what < count; what++)
        for (int i = 0; odd_sizes[i]; i++)
            if (!all_correct(what, odd_sizes[i])) return false;
    printf("results are correct at sizes 1 to 4099: %d expressions, %d contenders\n", count,
           FIRST_LOOP + loops);
    return true;
}

static bool run_all(json *j, const int64_t *sizes, effort how)
{
    printf("times divided by that of the fastest compiled loop; the destination is a separate matrix or an "
           "input\n%8s %-9s %-36s "
           "%8s %8s\n",
           "elements", "to", "contender", "geomean", "maximum");
    for (int i = 0; sizes[i]; i++)
        for (int in_place = 0; in_place < 2; in_place++)
            if (!run_size(j, sizes[i], in_place, how)) return false;
    return !vector_library || run_functions(j, sizes, how);
}

typedef struct options {
    bool quick;
    const char *json, *file, *library[LOOPS + 1];
    int libraries;
} options;

static bool parse(options *o, char **argv)
{
    while (*++argv)
        if (!strcmp(*argv, "--quick")) o->quick = true;
        else if (!strcmp(*argv, "--json") && argv[1]) o->json = *++argv;
        else if (!strcmp(*argv, "--seed") && argv[1]) seed = (uint32_t)strtoul(*++argv, NULL, 0);
        else if (!o->file) o->file = *argv;
        else if (o->libraries <= LOOPS) o->library[o->libraries++] = *argv;
        else return false;
    return o->file;
}

int main(int argc, char **argv)
{
    options o = { 0 };
    json j;
    int64_t sizes[8] = { 0 };
    omp_set_num_threads(1);
    if (!parse(&o, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    memcpy(sizes, o.quick ? sizes_quick : sizes_full, o.quick ? sizeof sizes_quick : sizeof sizes_full);
    if (!o.quick && !is_large_machine()) sizes[6] = 0;
    int64_t most = 0;
    for (int i = 0; sizes[i]; i++) most = sizes[i];
    if (!parse_file(o.file) || !make_data(most)) return 1;
    second_process_serve(duet_work);

    for (int i = 0; i < o.libraries; i++)
        if (!open_library(o.library[i])) return 1;
    nodes = second_process_open(argv, "DUET_FUSION", "none");
    bool ok = json_open(&j, o.json);
    if (ok) {
        json_integer(&j, "seed", seed);
        json_begin(&j, "results", '[');
    }
    effort how = o.quick ? (effort){ 0.0003, 0.0003, 5 } : (effort){ 0.002, 0.002, ROUNDS };
    ok = ok && check_odd_sizes() && run_all(&j, sizes, how);
    json_end(&j, ']');
    release_current();
    second_process_close(&nodes);
    if (json_close(&j) && ok) return 0;
    return 1;
}
