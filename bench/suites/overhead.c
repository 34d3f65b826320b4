/* overhead.c - duet-calls: measures the overhead of a call, the time that it takes in addition to
 * its computation.
 *
 * On the CPU it measures statements on 16 elements, in nanoseconds and instructions, and their
 * parts. On the GPU it compares the host time of a statement with that of cudaLaunchKernel.
 *
 * "Into a new matrix" is duet_eval and duet_free, compared with duet_set, "the whole statement".
 *
 * The parts: "build" makes a formula and drops it. A statement on empty matrices is built, checked,
 * and its plan found in the cache, but nothing runs. "find" is such a statement with a persistent
 * formula, "build and find" one with a formula that is built each time.
 *
 * A replay of three statements is compared with these statements one by one. On the GPU it is also
 * compared with automatic replay of the same statements, and with cudaGraphLaunch of the same
 * graph. Automatic replay has recognised them before the measurement starts; elsewhere it is off.
 *
 * layer_overhead.c measures a dense layer and networks at batch 1.
 *
 * A bare launch is that of an empty kernel. It has as many bytes of parameters as Duet's kernels
 * may have, because the host copies them. */
#include "bench.h"
#include "handwritten.h"
#include "layer_overhead.h"
#include "overhead_report.h"
#include <duet/duet.h>
#include <math.h>
#include <string.h>

static const char usage[] = "duet-calls [--quick] [--json FILE]\n";

#define ELEMENTS         16
#define NEW_MATRIX_LIMIT 1.5 /* the time of duet_eval and duet_free, as a multiple of that of duet_set */

static duet_matrix *x, *y, *z, *no_x, *no_y, *no_z; /* with ELEMENTS elements; empty */
static duet_place place;

/* ---- the formulas ---- */

static duet_expr axpy(duet_matrix *a, duet_matrix *b) { return duet_add(duet_mul(3.3f, a), b); }

/* Twenty operators over three inputs; the values stay between 0.1 and 2. */
static duet_expr twenty(duet_matrix *a, duet_matrix *b, duet_matrix *c)
{
    duet_expr e = duet_mul(duet_add(a, b), 0.5f);
    for (int i = 0; i < 2; i++) {
        e = duet_maximum(duet_minimum(duet_add(duet_mul(e, c), a), 2.0f), 0.1f);
        e = duet_sqrt(duet_mul(duet_sub(e, duet_mul(0.25f, e)), 0.9f));
    }
    return duet_div(duet_add(e, b), 2.0f);
}

/* Evaluates axpy into a new matrix, and frees it. */
static duet_status eval_axpy(void)
{
    duet_matrix *m = duet_eval(axpy(x, y));
    if (!m) return duet_error_status();
    duet_free(&m);
    return DUET_OK;
}

static duet_status three(void)
{
    duet_status s = duet_set(z, axpy(x, y));
    if (s == DUET_OK) s = duet_set(y, duet_mul(0.25f, z));
    if (s == DUET_OK) return duet_set(z, duet_sub(z, y));
    return s;
}

/* ---- blocks of calls. The GPU is idle when the clock starts, and its own time is not measured
 *      ---- */

static bool is_idle(void) { return place == DUET_CPU || duet_synchronize() == DUET_OK; }

#define BLOCK(name, statement)                                                                               \
    static double name(void *state, int64_t calls)                                                           \
    {                                                                                                        \
        duet_expr persistent = state ? *(duet_expr *)state : (duet_expr){ 0 };                               \
        duet_status s = is_idle() ? DUET_OK : DUET_DEVICE_ERROR;                                             \
        double took = 0;                                                                                     \
        (void)persistent;                                                                                    \
        DUET_ON(place)                                                                                       \
        {                                                                                                    \
            took = now();                                                                                    \
            for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = statement;                               \
            took = now() - took;                                                                             \
        }                                                                                                    \
        return s == DUET_OK && is_idle() ? took : NAN;                                                       \
    }
BLOCK(set_axpy, duet_set(y, axpy(x, y)))
BLOCK(new_axpy, eval_axpy())
BLOCK(set_twenty, duet_set(z, twenty(x, y, z)))
BLOCK(set_three, three())
BLOCK(set_persistent_axpy, duet_set(y, persistent))
BLOCK(set_persistent_twenty, duet_set(z, persistent))
BLOCK(build_axpy, duet_drop(axpy(x, y)))
BLOCK(build_twenty, duet_drop(twenty(x, y, z)))
BLOCK(find_axpy, duet_set(no_y, persistent))
BLOCK(find_twenty, duet_set(no_z, persistent))
BLOCK(build_and_find_axpy, duet_set(no_y, axpy(no_x, no_y)))
BLOCK(build_and_find_twenty, duet_set(no_z, twenty(no_x, no_y, no_z)))

#define WARMUP_CALLS 20 /* repetitions; enough for automatic replay to recognise the sequence */

static double auto_block(void *none, int64_t calls)
{
    double took = NAN;
    if (duet_auto_replay(1) == DUET_OK && isfinite(set_three(NULL, WARMUP_CALLS)))
        took = set_three(NULL, calls);
    if (duet_auto_replay(0) == DUET_OK) return took;
    return NAN;
}

static double replay_block(void *state, int64_t calls)
{
    duet_status s = is_idle() ? DUET_OK : DUET_DEVICE_ERROR;
    const double start = now();
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = duet_replay(state);
    const double took = now() - start;
    if (s == DUET_OK && is_idle()) return took;
    return NAN;
}

static double graph_block(void *state, int64_t calls)
{
    const char *wrong = handwritten_wait();
    const double start = now();
    for (int64_t k = 0; k < calls && !wrong; k++) wrong = handwritten_graph_run(state);
    const double took = now() - start;
    if (wrong || handwritten_wait()) return NAN;
    return took;
}

static double loop_block(void *state, int64_t calls)
{
    static float from[ELEMENTS], to[ELEMENTS];
    const double start = now();
    for (int64_t k = 0; k < calls; k++) {
        for (int i = 0; i < ELEMENTS; i++) to[i] = 3.3f * from[i] + to[i];
        __asm__ volatile("" : : "r"(from), "r"(to) : "memory");
    }
    return now() - start;
}

static double launch_block(void *state, int64_t calls)
{
    const char *wrong = handwritten_wait();
    const double start = now();
    for (int64_t k = 0; k < calls && !wrong; k++) wrong = handwritten_launch(*(const size_t *)state);
    const double took = now() - start;
    if (wrong || handwritten_wait()) return NAN;
    return took;
}

/* ---- results are checked before they are timed ---- */

static void fill(duet_matrix *m, float from)
{
    float *v = duet_overwrite(m);
    for (int i = 0; v && i < ELEMENTS; i++) v[i] = from + 0.05f * (float)i;
}

static void fill_all(void)
{
    fill(x, 0.2f);
    fill(y, 0.3f);
    fill(z, 0.4f);
}

static double twenty_exact(double a, double b, double c)
{
    double e = (a + b) * 0.5;
    for (int i = 0; i < 2; i++) {
        e = fmax(fmin(e * c + a, 2), (double)0.1f);
        e = sqrt((e - 0.25 * e) * (double)0.9f);
    }
    return (e + b) / 2;
}

static bool is_near(duet_matrix *m, double (*want)(double a, double b, double c))
{
    const float *v = duet_read(m);
    for (int i = 0; v && i < ELEMENTS; i++) {
        double w = want((double)(0.2f + 0.05f * (float)i), (double)(0.3f + 0.05f * (float)i),
                        (double)(0.4f + 0.05f * (float)i));
        if (!(fabs(v[i] - w) <= 0x1p-20 * fabs(w))) {
            fprintf(stderr, "duet-calls: element %d is %g, not %g\n", i, v[i], w);
            return false;
        }
    }
    return v;
}

static double axpy_exact(double a, double b, double c) { return (double)3.3f * a + b; }

static bool are_correct(void)
{
    fill_all();
    if (!isfinite(set_twenty(NULL, 1)) || !is_near(z, twenty_exact)) return false;
    fill_all();
    return isfinite(set_axpy(NULL, 1)) && is_near(y, axpy_exact);
}

/* The result of running three() twice. */
static double thrice_exact(double a, double b, double c)
{
    const double once = (double)3.3f * a + b;
    return ((double)3.3f * a + once * 0.25) * 0.75;
}

/* Records three() on `place`, which runs it once. Returns NULL on failure; duet_error() says why. */
static duet_recording *recorded(void)
{
    duet_status s = DUET_OK;
    if (duet_record_begin() != DUET_OK) return NULL;
    DUET_ON(place) s = three();
    duet_recording *r = duet_record_end();
    if (s == DUET_OK) return r;
    return NULL;
}

static bool replays_correctly(duet_recording **r)
{
    fill_all();
    *r = recorded();
    return *r && isfinite(replay_block(*r, 1)) && is_near(z, thrice_exact);
}

static bool three_on_gpu(void *none)
{
    duet_status s = DUET_OK;
    DUET_ON(DUET_GPU) s = three();
    return !none && s == DUET_OK;
}

/* ---- the two processors ---- */

static bool run_cpu(json *j, effort how)
{
    place = DUET_CPU;
    duet_expr persistent_axpy = duet_hold(axpy(x, y)), persistent_twenty = duet_hold(twenty(x, y, z));
    duet_expr empty_axpy = duet_hold(axpy(no_x, no_y)), empty_twenty = duet_hold(twenty(no_x, no_y, no_z));
    contender c[] = {
        { "axpy, the whole statement", set_axpy },
        { "axpy, into a new matrix", new_axpy },
        { "axpy, persistent formula", set_persistent_axpy, &persistent_axpy },
        { "axpy, build", build_axpy },
        { "axpy, find", find_axpy, &empty_axpy },
        { "axpy, build and find", build_and_find_axpy },
        { "20 operators, the whole statement", set_twenty },
        { "20 operators, persistent formula", set_persistent_twenty, &persistent_twenty },
        { "20 operators, build", build_twenty },
        { "20 operators, find", find_twenty, &empty_twenty },
        { "20 operators, build and find", build_and_find_twenty },
        { "three statements", set_three },
        { "three statements, replayed", replay_block },
        { "axpy, compiled loop", loop_block },
    };
    const int count = sizeof c / sizeof *c;
    duet_recording *r = NULL;
    bool ok = are_correct() && replays_correctly(&r);
    c[count - 2].state = r;
    fill_all();
    ok = ok && measure(c, count, how);
    if (ok) report_contenders(j, "cpu", c, count);
    if (ok)
        report_figure(j, "cpu", "axpy, into a new matrix / the whole statement",
                      median_us(&c[1]) / median_us(&c[0]), NEW_MATRIX_LIMIT);
    duet_drop(persistent_axpy);
    duet_drop(persistent_twenty);
    duet_drop(empty_axpy);
    duet_drop(empty_twenty);
    duet_recording_free(&r);
    return ok;
}

/* Calls in a block: few enough that the host never waits for a full queue. */
#define QUEUED 200

static bool run_gpu(json *j, effort how)
{
    place = DUET_GPU;
    duet_recording *r = NULL;
    handwritten_graph *graph = NULL;
    if (!layer_overhead_networks(j, how) || !are_correct() || !replays_correctly(&r)) return false;
    const char *wrong = handwritten_open(duet_stream());
    if (duet_auto_replay(0) != DUET_OK) return false;
    if (!wrong) wrong = handwritten_graph_make(&graph, 1, three_on_gpu, NULL);
    if (wrong) {
        duet_recording_free(&r);
        printf("gpu  not measured: %s\n", wrong);
        return true;
    }
    static const size_t bytes[] = { 64, 1024, 2048, 4000 };
    duet_expr persistent_axpy = duet_hold(axpy(x, y)), persistent_twenty = duet_hold(twenty(x, y, z));
    contender c[] = {
        { "axpy, the whole statement", set_axpy, NULL, QUEUED },
        { "axpy, persistent formula", set_persistent_axpy, &persistent_axpy, QUEUED },
        { "20 operators, the whole statement", set_twenty, NULL, QUEUED },
        { "20 operators, persistent formula", set_persistent_twenty, &persistent_twenty, QUEUED },
        { "bare launch, 64 bytes", launch_block, (void *)(uintptr_t)&bytes[0], QUEUED },
        { "bare launch, 1024 bytes", launch_block, (void *)(uintptr_t)&bytes[1], QUEUED },
        { "bare launch, 2048 bytes", launch_block, (void *)(uintptr_t)&bytes[2], QUEUED },
        { "bare launch, 4000 bytes", launch_block, (void *)(uintptr_t)&bytes[3], QUEUED },
        { "three statements", set_three, NULL, QUEUED },
        { "three statements, automatically", auto_block, NULL, QUEUED },
        { "three statements, replayed", replay_block, r, QUEUED },
        { "three statements, bare graph", graph_block, graph, QUEUED },
    };
    const int count = sizeof c / sizeof *c;
    how.rounds = ROUNDS;
    fill_all();
    bool ok = measure(c, count, how);
    if (ok) report_contenders(j, "gpu", c, count);
    ok = ok && layer_overhead_dense(j, how);
    duet_drop(persistent_axpy);
    duet_drop(persistent_twenty);
    duet_recording_free(&r);
    handwritten_graph_free(&graph);
    return ok;
}

static bool make_matrices(void)
{
    duet_matrix **full[] = { &x, &y, &z }, **empty[] = { &no_x, &no_y, &no_z };
    for (int i = 0; i < 3; i++)
        if (!(*full[i] = duet_new(DUET_F32, ELEMENTS)) || !(*empty[i] = duet_new(DUET_F32, 0))) return false;
    return true;
}

static void free_matrices(void)
{
    duet_matrix **all[] = { &x, &y, &z, &no_x, &no_y, &no_z };
    for (int i = 0; i < 6; i++) duet_free(all[i]);
}

int main(int argc, char **argv)
{
    bool quick = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick")) quick = true;
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) {
            path = argv[++i];
        } else {
            fputs(usage, stderr);
            return 2;
        }

    json j;
    effort how = quick ? (effort){ 0.002, 0.002, 7 } : (effort){ 0.02, 0.02, ROUNDS };
    bool ok = json_open(&j, path) && make_matrices();
    json_begin(&j, "results", '[');
    ok = ok && run_cpu(&j, how);
    if (ok && !gpu_is_available()) printf("gpu  not measured: %s\n", duet_error());
    else ok = ok && run_gpu(&j, how);
    json_end(&j, ']');
    if (!ok) fprintf(stderr, "duet-calls: %s\n", duet_error());
    free_matrices();
    if (json_close(&j) && ok) return 0;
    return 1;
}
