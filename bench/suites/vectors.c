/* vectors.c - duet-vectors: measures formulas on long vectors as a fraction of the bandwidth of a
 * copy in the same run. The tests are in vector_tests.c. On the GPU they are compared with
 * handwritten kernels, also inside a CUDA graph. */
#include "data.h"
#include "handwritten.h"
#include "json.h"
#include "measure.h"
#include "roofline.h"
#include "vector_tests.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "duet-vectors [options]\n"
    "  --backend cpu|gpu|both  device; both (the default) uses the GPU if there is one\n"
    "  --test NAME[,NAME]      run only these of add, axpby, wiemann3, normalise, ops2 .. ops64, sigmoid, "
    "black_scholes,\n"
    "                          sum, norm, argmax, softmax, graph\n"
    "  --sizes N[,N]           sizes instead of those of each test\n"
    "  --quick                 few sizes and short measurements\n"
    "  --seed N                seed of the input data; the default is the time of day\n"
    "  --json FILE             write the results to FILE\n";

static duet_dtype result_type(const test *t) { return t->terms || !t->one_number ? DUET_F32 : DUET_I64; }
static int64_t elements(const problem *p) { return p->n * (p->test->width ? p->test->width : 1); }
static duet_matrix *written(const problem *p, int k)
{
    if (p->test->into == OUT_OF_PLACE) return p->out[k];
    return p->in[p->test->into];
}

/* ---- matrices ---- */

static duet_matrix *make(const problem *p, bool out)
{
    const int64_t size[] = { p->n, p->test->width };
    if (out && p->test->one_number) return duet_new_shape(result_type(p->test), 0, size);
    return duet_new_shape(DUET_F32, p->test->width ? 2 : 1, size);
}

static bool fill(const problem *p, int k)
{
    float *v = duet_overwrite(p->in[k]);
    if (!v) return false;
#pragma omp parallel for
    for (int64_t i = 0; i < elements(p); i++) v[i] = data_value(p->test, k, i);
    return true;
}

/* Sets all bits: NaN, or the index -1. */
static bool poison(duet_matrix *m)
{
    void *v = duet_overwrite(m);
    if (v) memset(v, 0xFF, (size_t)duet_count(m) * (duet_type(m) == DUET_F32 ? 4 : 8));
    return v;
}

static void problem_close(problem *p)
{
    for (int k = 0; k < INPUTS; k++) duet_free(&p->in[k]);
    for (int k = 0; k < OUTPUTS; k++) duet_free(&p->out[k]);
}

static bool problem_open(problem *p)
{
    bool ok = true;
    for (int k = 0; k < p->test->inputs && ok; k++) ok = (p->in[k] = make(p, false)) && fill(p, k);
    for (int k = 0; k < p->test->outputs && ok; k++) ok = (p->out[k] = make(p, true)) && poison(p->out[k]);
    return ok;
}

/* ---- the comparison with the reference, and sums over the result that peers must get too ---- */

typedef struct check_result {
    bool ok;
    double error, bound, norm, probe, first_us;
    int64_t launches;
} check_result;

/* Computes a row of softmax in double. */
static void softmax_row(const problem *p, int64_t row, double *want)
{
    const int width = p->test->width;
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < width; j++) {
        want[j] = data_value(p->test, 0, row * width + j);
        most = fmax(most, want[j]);
    }
    for (int j = 0; j < width; j++) sum += want[j] = exp(want[j] - most);
    for (int j = 0; j < width; j++) want[j] /= sum;
}

static double softmax_error(const problem *p, const float *got)
{
    double wrong = 0, right = 0;
    const int width = p->test->width;
#pragma omp parallel for reduction(+ : wrong, right)
    for (int64_t r = 0; r < 64; r++) {
        double want[1000] = { 0 };
        const int64_t row = (int64_t)((double)r / 63 * (double)(p->n - 1));
        softmax_row(p, row, want);
        for (int j = 0; j < width; j++) {
            wrong += pow(got[row * width + j] - want[j], 2);
            right += want[j] * want[j];
        }
    }
    return sqrt(wrong / right);
}

static double number_error(const problem *p, const void *got)
{
    const double want = p->test->prepare(p);
    const double is = result_type(p->test) == DUET_F32 ? *(const float *)got : (double)*(const int64_t *)got;
    return fabs(is - want) / fmax(fabs(want), 1);
}

/* Returns the relative error over all outputs. Of long vectors it checks elements at equal
 * distances. */
static double vector_error(const problem *p, const float *const got[])
{
    double wrong = 0, right = 0;
    const test *t = p->test;
    const double prepared = t->prepare ? t->prepare(p) : 0;
    const int64_t stride = p->n / 4000000 | 1;
#pragma omp parallel for reduction(+ : wrong, right)
    for (int64_t i = 0; i < p->n; i += stride) {
        double x[INPUTS] = { 0 }, want[OUTPUTS];
        for (int k = 0; k < t->inputs; k++) x[k] = data_value(t, k, i);
        t->exact(p, x, prepared, want);
        for (int k = 0; k < t->outputs; k++) {
            wrong += pow(got[k][i] - want[k], 2);
            right += want[k] * want[k];
        }
    }
    return sqrt(wrong / right);
}

/* Computes the norm of the first output and its dot product with the noise of stream 0. */
static void summarise(const problem *p, const float *got, check_result *v)
{
    double norm = 0, probe = 0;
#pragma omp parallel for reduction(+ : norm, probe)
    for (int64_t i = 0; i < elements(p); i++) {
        norm += (double)got[i] * got[i];
        probe += (double)got[i] * noise(0, i);
    }
    v->norm = sqrt(norm);
    v->probe = probe;
}

static bool compare_results(const problem *p, check_result *v)
{
    const test *t = p->test;
    const void *got[OUTPUTS] = { NULL };
    for (int k = 0; k < t->outputs; k++)
        if (!(got[k] = duet_read(written(p, k)))) return false;
    if (t->one_number)
        v->norm = result_type(t) == DUET_F32 ? *(const float *)got[0] : (double)*(const int64_t *)got[0];
    else summarise(p, got[0], v);
    if (t->one_number) v->error = number_error(p, got[0]);
    else if (t->width) v->error = softmax_error(p, got[0]);
    else v->error = vector_error(p, (const float *const *)got);
    if (t->terms) v->bound = 0x1p-24 * (8 + 4 * sqrt(t->terms));
    else v->bound = 0;
    return v->ok = v->error <= v->bound && isfinite(v->norm);
}

static duet_status run_once(const problem *p)
{
    duet_status s = DUET_OK;
    DUET_ON(p->place) s = p->test->run(p);
    return s;
}

/* Checks and times the first call, with inputs already on the device; then checks a second call and
 * counts its launches. */
static check_result check(const problem *p)
{
    check_result v = { .error = NAN, .norm = NAN };
    if (p->place == DUET_GPU)
        for (int k = 0; k < p->test->inputs; k++)
            if (!duet_device_read(p->in[k])) return v;
    const double start = now();
    if (run_once(p) || duet_synchronize()) return v;
    v.first_us = 1e6 * (now() - start);
    if (!compare_results(p, &v)) return v;
    if (p->test->into != OUT_OF_PLACE && !fill(p, p->test->into)) {
        v.ok = false;
        return v;
    }
    const uint64_t before = duet_stats().launches;
    if (run_once(p) || duet_synchronize()) {
        v.ok = false;
        return v;
    }
    v.launches = (int64_t)(duet_stats().launches - before);
    compare_results(p, &v);
    return v;
}

/* ---- times of Duet, of a copy of the same number of elements, and of a handwritten kernel ---- */

typedef struct trial {
    const problem *p;
    float *in[INPUTS], *out[OUTPUTS]; /* addresses of the matrices, for handwritten kernels */
    float *from, *to;                 /* source and destination of the copy */
    int64_t copied;

    handwritten_graph *graph;
} trial;

static double duet_block(void *state, int64_t calls)
{
    const trial *t = state;
    const double start = now();
    duet_status s = DUET_OK;
    DUET_ON(t->p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = t->p->test->run(t->p);
    if (s == DUET_OK && (t->p->place == DUET_CPU || duet_synchronize() == DUET_OK)) return now() - start;
    return NAN;
}

static double copy_block(void *state, int64_t calls)
{
    const trial *t = state;
    const double start = now();
    const char *wrong = NULL;
    for (int64_t i = 0; i < calls && !wrong; i++)
        if (t->p->place == DUET_GPU) wrong = handwritten_copy(t->to, t->from, t->copied);
        else copy_on_host(t->to, t->from, t->copied);
    if (t->p->place == DUET_GPU && !wrong) wrong = handwritten_wait();
    if (wrong) fprintf(stderr, "duet-vectors: copy: %s\n", wrong);
    if (wrong) return NAN;
    return now() - start;
}

static double handwritten_block(void *state, int64_t calls)
{
    const trial *t = state;
    const double start = now();
    const char *wrong = NULL;
    for (int64_t i = 0; i < calls && !wrong; i++) wrong = t->p->test->handwritten(t->p, t->in, t->out);
    if (!wrong) wrong = handwritten_wait();
    if (wrong) fprintf(stderr, "duet-vectors: handwritten %s: %s\n", t->p->test->name, wrong);
    if (wrong) return NAN;
    return now() - start;
}

/* Gets the addresses of the matrices. They stay valid because all statements run on the same
 * device. */
static bool find_addresses(trial *t)
{
    const bool gpu = t->p->place == DUET_GPU;
    bool ok = true;
    for (int k = 0; k < t->p->test->inputs; k++)
        ok &= (t->in[k] = gpu ? duet_device_update(t->p->in[k]) : duet_update(t->p->in[k])) != NULL;
    for (int k = 0; k < t->p->test->outputs; k++)
        ok &= (t->out[k] = gpu ? duet_device_update(t->p->out[k]) : duet_update(t->p->out[k])) != NULL;
    return ok;
}

/* Source and destination of the copy, at least as long as the vectors of the test. */
static duet_matrix *copy_from, *copy_to;

static bool find_copy(trial *t)
{
    if (!copy_from || duet_count(copy_from) < elements(t->p)) {
        duet_free(&copy_from);
        duet_free(&copy_to);
        copy_from = duet_new(DUET_F32, elements(t->p));
        copy_to = duet_new(DUET_F32, elements(t->p));
    }
    const bool gpu = t->p->place == DUET_GPU;
    if (gpu) t->from = duet_device_update(copy_from);
    else t->from = duet_update(copy_from);
    if (gpu) t->to = duet_device_update(copy_to);
    else t->to = duet_update(copy_to);
    t->copied = elements(t->p);
    return t->from && t->to;
}

/* Checks the result of the handwritten kernel in the same way as Duet's. */
static bool handwritten_is_correct(trial *t)
{
    check_result v = { .error = NAN, .norm = NAN };
    const problem *p = t->p;
    if (p->test->into != OUT_OF_PLACE && !fill(p, p->test->into)) return false;
    for (int k = 0; k < p->test->outputs; k++)
        if (p->test->into == OUT_OF_PLACE && !poison(p->out[k])) return false;
    if (!find_addresses(t)) return false;
    const char *wrong = p->test->handwritten(p, t->in, t->out);
    if (wrong || (wrong = handwritten_wait())) {
        fprintf(stderr, "duet-vectors: handwritten %s: %s\n", p->test->name, wrong);
        return false;
    }
    if (!compare_results(p, &v)) {
        fprintf(stderr, "duet-vectors: handwritten %s: the relative error is %.2g\n", p->test->name, v.error);
        return false;
    }
    return find_addresses(t);
}

/* Calls Duet for so long that the driver can compile the kernel of a formula in the background. Peers compile
 * theirs before they are timed, too. */
static bool settle(trial *t)
{
    const double start = now();
    bool ok = true;
    while (ok && now() - start < 0.4) ok = isfinite(duet_block(t, 20));
    return ok;
}

typedef struct timing {
    bool ok;
    double us, share, copy_us, handwritten_us,
        handwritten_ratio; /* share: fraction of the bandwidth of the copy */
} timing;

static timing time_problem(const problem *p, effort how)
{
    trial t = { .p = p };
    timing r = { .handwritten_us = NAN, .handwritten_ratio = NAN };
    contender c[3] = { { "Duet", duet_block, &t },
                       { "copy", copy_block, &t },
                       { "handwritten", handwritten_block, &t } };
    const bool hand = p->place == DUET_GPU && p->test->handwritten && handwritten_is_correct(&t);
    if (p->place == DUET_GPU && !settle(&t)) return r;
    if (!find_addresses(&t) || !find_copy(&t) || !measure(c, hand ? 3 : 2, how)) return r;
    const double moved =
        (p->test->reads + p->test->writes) / 2; /* in units of a copy, which reads and writes an element */
    r.ok = true;
    r.us = median_us(&c[0]);
    r.copy_us = median_us(&c[1]);
    r.share = moved / median_ratio(&c[0], &c[1]);
    if (hand) {
        r.handwritten_us = median_us(&c[2]);
        r.handwritten_ratio = median_ratio(&c[0], &c[2]);
    }
    return r;
}

/* ---- the report ---- */

static void report_head(void)
{
    printf("%-14s %11s %-4s %12s %10s %9s %9s %8s %9s %9s\n", "test", "elements", "on", "us", "GB/s",
           "% of copy", "/ handwr.", "launches", "first us", "error");
}

static void report(json *j, const problem *p, const check_result *v, const timing *t)
{
    const double bytes = 4 * (p->test->reads + p->test->writes) * (double)elements(p);
    const char *place = p->place == DUET_GPU ? "gpu" : "cpu";
    printf("%-14s %11lld %-4s ", p->test->name, (long long)elements(p), place);
    if (t->ok) printf("%12.2f %10.1f %9.1f ", t->us, bytes / t->us / 1e3, 100 * t->share);
    else printf("%12s %10s %9s ", "-", "-", "-");
    if (isfinite(t->handwritten_ratio)) printf("%9.3f ", t->handwritten_ratio);
    else printf("%9s ", "-");
    printf("%8lld %9.0f %9.1e%s%s\n", (long long)v->launches, v->first_us, v->error, v->ok ? "" : "  WRONG",
           p->place == DUET_GPU && p->test->launches && v->launches > p->test->launches ? "  MORE LAUNCHES"
                                                                                        : "");
    fflush(stdout);
    json_begin(j, NULL, '{');
    json_text(j, "bench", p->test->name);
    json_integer(j, "size", p->n);
    json_text(j, "machine", place);
    json_truth(j, "ok", v->ok);
    json_number(j, "us", t->ok ? t->us : NAN);
    json_number(j, "rate", t->ok ? bytes / t->us / 1e3 : NAN);
    json_number(j, "share", t->ok ? t->share : NAN);
    json_number(j, "copy_us", t->ok ? t->copy_us : NAN);
    json_number(j, "hand_us", t->handwritten_us);
    json_number(j, "hand_ratio", t->handwritten_ratio);
    json_number(j, "first_us", v->first_us);
    json_integer(j, "launches", v->launches);
    json_number(j, "error", v->error);
    json_number(j, "bound", v->bound);
    json_number(j, "norm", v->norm);
    json_number(j, "probe", v->probe);
    json_end(j, '}');
}

static bool run_case(json *j, const test *which, int64_t n, duet_place place, effort how)
{
    problem p = { .test = which, .n = n, .place = place };
    check_result v = { .error = NAN, .norm = NAN };
    timing t = { 0 };
    if (problem_open(&p)) v = check(&p);
    if (v.ok) t = time_problem(&p, how);
    if (!t.ok) fprintf(stderr, "duet-vectors: %s %lld: %s\n", which->name, (long long)n, duet_error());
    report(j, &p, &v, &t);
    problem_close(&p);
    return v.ok && t.ok;
}

/* ---- inside a CUDA graph: eight operators on 1024 elements, compared with the handwritten kernel
 *      ---- */

#define RECORDED 20

static bool record_duet(void *state) { return run_once(((trial *)state)->p) == DUET_OK; }
static bool record_handwritten(void *state)
{
    trial *t = state;
    return !t->p->test->handwritten(t->p, t->in, t->out);
}

static double graph_block(void *state, int64_t calls)
{
    const trial *t = state;
    const double start = now();
    const char *wrong = NULL;
    for (int64_t i = 0; i < calls && !wrong; i++) wrong = handwritten_graph_run(t->graph);
    if (!wrong) wrong = handwritten_wait();
    if (wrong) fprintf(stderr, "duet-vectors: graph: %s\n", wrong);
    if (wrong) return NAN;
    return now() - start;
}

static bool time_graphs(json *j, trial t[2], effort how)
{
    check_result v = { .error = NAN, .norm = NAN };
    contender c[2] = { { "Duet", graph_block, &t[0] }, { "handwritten", graph_block, &t[1] } };
    for (int k = 0; k < 2; k++) {
        if (!poison(t->p->out[0]) || !find_addresses(&t[k]) || !isfinite(graph_block(&t[k], 1))) return false;
        if (!compare_results(t->p, &v)) {
            fprintf(stderr, "duet-vectors: CUDA graph of %s: the relative error is %.2g\n", c[k].name,
                    v.error);
            return false;
        }
    }
    if (!find_addresses(&t[0]) || !measure(c, 2, how)) return false;
    const double us[2] = { median_us(&c[0]) / RECORDED, median_us(&c[1]) / RECORDED };
    printf(
        "in a CUDA graph: 8 operators on 1024 elements: %.3f us, handwritten %.3f us, difference %.3f us\n",
        us[0], us[1], us[0] - us[1]);
    json_begin(j, NULL, '{');
    json_text(j, "bench", "graph8");
    json_integer(j, "size", 1024);
    json_text(j, "machine", "gpu");
    json_number(j, "us", us[0]);
    json_number(j, "hand_us", us[1]);
    json_end(j, '}');
    return true;
}

/* Also finds out whether a CUDA graph can record Duet's calls. If not, it reports the reason. */
static bool run_graphs(json *j, effort how)
{
    const test *eight = vector_tests;
    while (strcmp(eight->name, "ops8")) eight++;
    problem p = { .test = eight, .n = 1024, .place = DUET_GPU };
    trial t[2] = { { .p = &p }, { .p = &p } };
    bool ok = problem_open(&p) && check(&p).ok && find_addresses(&t[0]) && find_addresses(&t[1]) &&
              run_once(&p) == DUET_OK;
    const char *wrong = ok ? handwritten_graph_make(&t[0].graph, RECORDED, record_duet, &t[0]) : duet_error();
    if (ok && wrong) printf("in a CUDA graph: capture failed: %s %s\n", wrong, duet_error());
    if (ok && !wrong) wrong = handwritten_graph_make(&t[1].graph, RECORDED, record_handwritten, &t[1]);
    ok = ok && !wrong && time_graphs(j, t, how);
    for (int k = 0; k < 2; k++) handwritten_graph_free(&t[k].graph);
    problem_close(&p);
    return ok;
}

/* ---- the run ---- */

typedef struct options {
    bool cpu, gpu, gpu_required, quick;
    const char *tests, *sizes, *json;
} options;

/* Whether the comma-separated list contains name. Without a list, every name counts. */
static bool listed(const char *list, const char *name)
{
    for (size_t n = strlen(name); list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && !strncmp(list, name, n)) return true;
    return !list;
}

static bool set_backend(options *o, const char *s)
{
    o->cpu = strcmp(s, "gpu") != 0;
    o->gpu = strcmp(s, "cpu") != 0;
    o->gpu_required = !o->cpu;
    return !strcmp(s, "cpu") || !strcmp(s, "gpu") || !strcmp(s, "both");
}

static bool parse(options *o, char **argv)
{
    *o = (options){ .cpu = true, .gpu = true };
    data_seed = (uint32_t)time(NULL) & 0xFFFFFF;
    while (*++argv) {
        const char *name = *argv;
        if (!strcmp(name, "--quick")) {
            o->quick = true;
            continue;
        }
        if (!*++argv) return false;
        if (!strcmp(name, "--seed")) data_seed = (uint32_t)strtoul(*argv, NULL, 0);
        else if (!strcmp(name, "--backend") && !set_backend(o, *argv)) return false;
        else if (!strcmp(name, "--test")) o->tests = *argv;
        else if (!strcmp(name, "--sizes")) o->sizes = *argv;
        else if (!strcmp(name, "--json")) o->json = *argv;
        else if (strcmp(name, "--backend") != 0) return false;
    }
    return true;
}

/* Fills in the sizes to run: those of the options, else those of the test. Returns how many; 0 if
 * one is invalid. */
static int sizes_of(const options *o, const test *t, int64_t sizes[SIZES])
{
    int count = 0;
    char *end = (char *)(uintptr_t)o->sizes;
    const int64_t *own = o->quick ? t->quick : t->sizes;
    while (!o->sizes && count < SIZES && own[count]) {
        sizes[count] = own[count];
        count++;
    }
    while (o->sizes && count < SIZES && *end) {
        const double x = strtod(end, &end); /* strtod, because 1e6 is a valid size */
        if (!(x >= 1 && x <= 1e9) || (*end && *end++ != ',')) return 0;
        sizes[count++] = (int64_t)x;
    }
    return count;
}

static bool run_test(json *j, const options *o, const test *t, effort how)
{
    int64_t sizes[SIZES];
    const int count = sizes_of(o, t, sizes);
    bool ok = count > 0;
    for (int i = 0; i < count; i++)
        for (duet_place place = DUET_CPU; place <= DUET_GPU; place++)
            if (place == DUET_GPU ? o->gpu : o->cpu) ok &= run_case(j, t, sizes[i], place, how);
    return ok;
}

static bool find_gpu(options *o)
{
    const char *why = duet_stream() ? handwritten_open(duet_stream()) : duet_error();
    if (!why || !o->gpu) return true;
    fprintf(stderr, "duet-vectors: no GPU: %s\n", why);
    o->gpu = false;
    return !o->gpu_required;
}

int main(int argc, char **argv)
{
    options o;
    json j;
    if (!parse(&o, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (!find_gpu(&o) || !json_open(&j, o.json)) return 1;
    json_integer(&j, "seed", data_seed);
    json_begin(&j, "results", '[');
    report_head();
    bool ok = true, any = false;
    const effort how = o.quick ? effort_quick : (effort){ 0.02, 0.01, ROUNDS };
    for (int i = 0; i < vector_test_count; i++)
        if (listed(o.tests, vector_tests[i].name)) {
            any = true;
            ok &= run_test(&j, &o, &vector_tests[i], how);
        }
    if (o.gpu && listed(o.tests, "graph")) {
        any = true;
        ok &= run_graphs(&j, how);
    }
    json_end(&j, ']');
    duet_free(&copy_from);
    duet_free(&copy_to);
    if (json_close(&j) && ok && any) return 0;
    return 1;
}
