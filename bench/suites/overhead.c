/* overhead.c - duet-calls: what a call costs beside its work. On the CPU statements on 16 elements, in nanoseconds and instructions, and
 * their parts; on the GPU the host's time of a statement beside that of a bare cudaLaunchKernel.
 *
 * The parts: "build" makes the formula and drops it. On matrices of no elements a statement is built, checked and its plan found, and
 * nothing is bound or run: "find" is such a statement of a held formula, "build and find" one of a formula built each time.
 *
 * A replay is of three statements, beside these statements one by one; on the GPU also beside the same statements by automatic replay,
 * and beside a bare cudaGraphLaunch of the same graph. Automatic replay has learnt them before the clock starts, and is off elsewhere.
 *
 * A dense layer and the networks at batch 1 are in layer_overhead.c.
 *
 * The bare launch is of an empty kernel with as many bytes of parameters as Duet's may have: they are copied by the host. */
#include "bench.h"
#include "handwritten.h"
#include "layer_overhead.h"
#include <duet/duet.h>
#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char usage[] = "duet-calls [--quick] [--json FILE]\n";

#define ELEMENTS 16

static duet_matrix *x, *y, *z, *no_x, *no_y, *no_z; /* of ELEMENTS; of none */
static duet_place place;

/* ---- the formulas ---- */

static duet_expr axpy(duet_matrix *a, duet_matrix *b) { return duet_add(duet_mul(3.3f, a), b); }

/* Twenty operators over three inputs, whose values stay between 0.1 and 2. */
static duet_expr twenty(duet_matrix *a, duet_matrix *b, duet_matrix *c)
{
    duet_expr e = duet_mul(duet_add(a, b), 0.5f);
    for (int i = 0; i < 2; i++) {
        e = duet_maximum(duet_minimum(duet_add(duet_mul(e, c), a), 2.0f), 0.1f);
        e = duet_sqrt(duet_mul(duet_sub(e, duet_mul(0.25f, e)), 0.9f));
    }
    return duet_div(duet_add(e, b), 2.0f);
}

static duet_status three(void)
{
    duet_status s = duet_set(z, axpy(x, y));
    if (s == DUET_OK) s = duet_set(y, duet_mul(0.25f, z));
    return s == DUET_OK ? duet_set(z, duet_sub(z, y)) : s;
}

/* ---- blocks of calls. On the GPU the card is idle when the clock starts, and its own time is not in it ---- */

static bool is_idle(void) { return place == DUET_CPU || duet_synchronize() == DUET_OK; }

#define BLOCK(name, statement)                                                                               \
    static double name(void *state, int64_t calls)                                                           \
    {                                                                                                        \
        duet_expr held = state ? *(duet_expr *)state : (duet_expr){ 0 };                                     \
        duet_status s = is_idle() ? DUET_OK : DUET_DEVICE_ERROR;                                             \
        double took = 0;                                                                                     \
        (void)held;                                                                                          \
        DUET_ON(place)                                                                                       \
        {                                                                                                    \
            took = now();                                                                                    \
            for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = statement;                               \
            took = now() - took;                                                                             \
        }                                                                                                    \
        return s == DUET_OK && is_idle() ? took : NAN;                                                       \
    }
BLOCK(set_axpy, duet_set(y, axpy(x, y)))
BLOCK(set_twenty, duet_set(z, twenty(x, y, z)))
BLOCK(set_three, three())
BLOCK(set_held_axpy, duet_set(y, held))
BLOCK(set_held_twenty, duet_set(z, held))
BLOCK(build_axpy, duet_drop(axpy(x, y)))
BLOCK(build_twenty, duet_drop(twenty(x, y, z)))
BLOCK(find_axpy, duet_set(no_y, held))
BLOCK(find_twenty, duet_set(no_z, held))
BLOCK(build_and_find_axpy, duet_set(no_y, axpy(no_x, no_y)))
BLOCK(build_and_find_twenty, duet_set(no_z, twenty(no_x, no_y, no_z)))

#define LEARNT 20 /* turns, more than it takes until they are replayed */

static double auto_block(void *none, int64_t calls)
{
    double took = NAN;
    (void)none;
    if (duet_auto_replay(1) == DUET_OK && isfinite(set_three(NULL, LEARNT))) took = set_three(NULL, calls);
    return duet_auto_replay(0) == DUET_OK ? took : NAN;
}

static double replay_block(void *state, int64_t calls)
{
    duet_status s = is_idle() ? DUET_OK : DUET_DEVICE_ERROR;
    const double start = now();
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = duet_replay(state);
    const double took = now() - start;
    return s == DUET_OK && is_idle() ? took : NAN;
}

static double graph_block(void *state, int64_t calls)
{
    const char *wrong = hand_wait();
    const double start = now();
    for (int64_t k = 0; k < calls && !wrong; k++) wrong = hand_graph_run(state);
    const double took = now() - start;
    return wrong || hand_wait() ? NAN : took;
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
    const char *wrong = hand_wait();
    const double start = now();
    for (int64_t k = 0; k < calls && !wrong; k++) wrong = hand_launch(*(const size_t *)state);
    const double took = now() - start;
    return wrong || hand_wait() ? NAN : took;
}

/* ---- instructions, where the kernel lets us count ---- */

static double instructions_of(contender *c)
{
    struct perf_event_attr what = { .type = PERF_TYPE_HARDWARE,
                                    .size = sizeof what,
                                    .config = PERF_COUNT_HW_INSTRUCTIONS,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1,
                                    .disabled = 1 };
    const int64_t calls = c->most ? c->most : 10000;
    uint64_t before, after;
    int counter = (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
    if (counter < 0) return NAN;
    ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
    bool ok = read(counter, &before, sizeof before) == sizeof before && isfinite(c->block(c->state, calls));
    ok = ok && read(counter, &after, sizeof after) == sizeof after && after > before;
    close(counter);
    return ok ? (double)(after - before) / (double)calls : NAN;
}

/* ---- results: are they right? ---- */

static void fill(duet_matrix *m, float from)
{
    float *v = duet_overwrite(m);
    for (int i = 0; v && i < ELEMENTS; i++) v[i] = from + 0.05f * (float)i;
}

static void fill_all(void) { fill(x, 0.2f), fill(y, 0.3f), fill(z, 0.4f); }

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
        if (!(fabs(v[i] - w) <= 0x1p-20 * fabs(w)))
            return fprintf(stderr, "duet-calls: element %d is %g, not %g\n", i, v[i], w), false;
    }
    return v;
}

static double axpy_exact(double a, double b, double c) { return (double)3.3f * a + b; }

static bool are_right(void)
{
    fill_all();
    if (!isfinite(set_twenty(NULL, 1)) || !is_near(z, twenty_exact)) return false;
    fill_all();
    return isfinite(set_axpy(NULL, 1)) && is_near(y, axpy_exact);
}

/* What three() leaves, twice over. */
static double thrice_exact(double a, double b, double c)
{
    const double once = (double)3.3f * a + b;
    return ((double)3.3f * a + once * 0.25) * 0.75;
}

/* Of three(), where `place` says; NULL, and the text says why. It has run once then. */
static duet_recording *recorded(void)
{
    duet_status s = DUET_OK;
    if (duet_record_begin() != DUET_OK) return NULL;
    DUET_ON(place) s = three();
    duet_recording *r = duet_record_end();
    return s == DUET_OK ? r : NULL;
}

static bool replays_right(duet_recording **r)
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

/* ---- the report ---- */

static void put_figure(json *j, const char *machine, const char *what, double ns, double instructions,
                       double limit)
{
    json_begin(j, NULL, '{');
    json_text(j, "bench", "calls"), json_text(j, "machine", machine), json_text(j, "what", what);
    json_number(j, limit > 0 && limit < 10 ? "ratio" : "ns", ns);
    if (limit > 0) json_number(j, "limit", limit);
    else json_number(j, "instructions", instructions);
    json_end(j, '}');
}

void report_figure(json *j, const char *machine, const char *what, double figure, double limit)
{
    printf("%-4s %-46s %9.2f %s limit %.4g%s\n", machine, what, figure, limit < 10 ? "  " : "ns", limit,
           figure <= limit ? "" : "  MISSED");
    put_figure(j, machine, what, figure, NAN, limit);
    fflush(stdout);
}

void report_contenders(json *j, const char *machine, contender *c, int count)
{
    for (int i = 0; i < count; i++) {
        const double ns = 1e3 * median_us(&c[i]), instructions = instructions_of(&c[i]);
        printf("%-4s %-46s %9.1f ns", machine, c[i].name, ns);
        if (isfinite(instructions)) printf(" %9.0f instructions", instructions);
        putchar('\n');
        put_figure(j, machine, c[i].name, ns, instructions, 0);
    }
    fflush(stdout);
}

static bool run_cpu(json *j, effort how)
{
    place = DUET_CPU;
    duet_expr held_axpy = duet_hold(axpy(x, y)), held_twenty = duet_hold(twenty(x, y, z));
    duet_expr empty_axpy = duet_hold(axpy(no_x, no_y)), empty_twenty = duet_hold(twenty(no_x, no_y, no_z));
    contender c[] = {
        { "axpy, the whole statement", set_axpy },
        { "axpy, held formula", set_held_axpy, &held_axpy },
        { "axpy, build", build_axpy },
        { "axpy, find", find_axpy, &empty_axpy },
        { "axpy, build and find", build_and_find_axpy },
        { "20 operators, the whole statement", set_twenty },
        { "20 operators, held formula", set_held_twenty, &held_twenty },
        { "20 operators, build", build_twenty },
        { "20 operators, find", find_twenty, &empty_twenty },
        { "20 operators, build and find", build_and_find_twenty },
        { "three statements", set_three },
        { "three statements, replayed", replay_block },
        { "axpy, compiled loop", loop_block },
    };
    const int count = sizeof c / sizeof *c;
    duet_recording *r = NULL;
    bool ok = are_right() && replays_right(&r);
    c[count - 2].state = r;
    ok = ok && (fill_all(), measure(c, count, how));
    if (ok) report_contenders(j, "cpu", c, count);
    duet_drop(held_axpy), duet_drop(held_twenty), duet_drop(empty_axpy), duet_drop(empty_twenty);
    duet_recording_free(&r);
    return ok;
}

/* Few calls a block: the card must never have so much to do that the host waits for it. */
#define QUEUED 200

static bool run_gpu(json *j, effort how)
{
    place = DUET_GPU;
    duet_recording *r = NULL;
    hand_graph *graph = NULL;
    if (!layers_networks(j, how) || !are_right() || !replays_right(&r)) return false;
    const char *wrong = hand_open(duet_stream());
    if (duet_auto_replay(0) != DUET_OK) return false;
    if (!wrong) wrong = hand_graph_make(&graph, 1, three_on_gpu, NULL);
    if (wrong) return duet_recording_free(&r), printf("gpu  left out: %s\n", wrong), true;
    static const size_t bytes[] = { 64, 1024, 2048, 4000 };
    duet_expr held_axpy = duet_hold(axpy(x, y)), held_twenty = duet_hold(twenty(x, y, z));
    contender c[] = {
        { "axpy, the whole statement", set_axpy, NULL, QUEUED },
        { "axpy, held formula", set_held_axpy, &held_axpy, QUEUED },
        { "20 operators, the whole statement", set_twenty, NULL, QUEUED },
        { "20 operators, held formula", set_held_twenty, &held_twenty, QUEUED },
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
    ok = ok && layers_dense(j, how);
    duet_drop(held_axpy), duet_drop(held_twenty);
    duet_recording_free(&r), hand_graph_free(&graph);
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
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) path = argv[++i];
        else return fputs(usage, stderr), 2;

    json j;
    effort how = quick ? (effort){ 0.002, 0.002, 7 } : (effort){ 0.02, 0.02, ROUNDS };
    bool ok = json_open(&j, path) && make_matrices();
    json_begin(&j, "results", '[');
    ok = ok && run_cpu(&j, how);
    if (ok && !gpu_is_there()) printf("gpu  left out: %s\n", duet_error());
    else ok = ok && run_gpu(&j, how);
    json_end(&j, ']');
    if (!ok) fprintf(stderr, "duet-calls: %s\n", duet_error());
    free_matrices();
    return json_close(&j) && ok ? 0 : 1;
}
