/* calibrate.c - measures what each kind of work costs on each device: runs steps of each kind, in
 * several sizes, for a few milliseconds. */
#include "calibrate.h"
#include "clock.h"
#include "compiler.h"
#include "device_use.h"
#include "pool.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET        1.5    /* seconds; no measurement begins later */
#define ROUND_SECONDS 0.4e-3 /* seconds for one round */
#define ROUNDS        3
/* seconds; a longer point is not measured but extrapolated from the one before */
#define LONG_POINT 40e-3
#define MAX_CALLS  500
/* if a point takes so many times its extrapolation, other processes disturbed it; */
#define UNEVEN  8
#define FALLING 0.25 /* the same if the next point takes less than this part of its time */
#define CHAIN   8    /* functions per element, so that memory is not the limit */

/* Enough for the largest pass, and for the second operand of the largest product. */
enum { OUT, X, Y, BLOCKS };
static const size_t block_bytes[BLOCKS] = { [OUT] = 40 << 20, [X] = 40 << 20, [Y] = 4 << 20 };

typedef struct calibrator {
    void *block[COSTED][BLOCKS];
    int queue;
    double end; /* nothing begins after this time */
    bool busy;  /* others use the machine: give up */
} calibrator;

/* ---- the work: a step of each kind ---- */

static void dense(operand *o, int slot, duet_dtype t, int rank, const int64_t *size)
{
    o->slot = slot;
    layout_dense(&o->at, t, rank, size);
}

/* y = s x + y: twelve bytes per element. */
static void pass_step(double bytes, step *s, program *p)
{
    const int64_t n = (int64_t)(bytes / 12);
    *p = (program){ .length = 2,
                    .inputs = 2,
                    .numbers = 1,
                    .outputs = 1,
                    .code = {
                        { OP_fma, DUET_F32, { { FROM_NUMBER, 0 }, { FROM_INPUT, 0 }, { FROM_INPUT, 1 } } },
                        { OP_STORE, DUET_F32, { { FROM_ACC, 0 } } } } };
    *s = (step){ .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 2, .nums = 1, .program = p, .bytes = bytes };
    dense(&s->out[0], OUT, DUET_F32, 1, &n);
    dense(&s->in[0], X, DUET_F32, 1, &n);
    s->in[1] = s->out[0];
}

static void function_step(duet_dtype t, double functions, step *s, program *p)
{
    const int64_t n = (int64_t)(functions / CHAIN);
    *p = (program){ .length = CHAIN + 1, .inputs = 1, .outputs = 1 };
    for (int i = 0; i < CHAIN; i++)
        p->code[i] = (instruction){ OP_sigmoid, (uint8_t)t, { { i ? FROM_ACC : FROM_INPUT, 0 } } };
    p->code[CHAIN] = (instruction){ OP_STORE, (uint8_t)t, { { FROM_ACC, 0 } } };
    *s = (step){ .kernel = KERNEL_PROGRAM, .outs = 1, .ins = 1, .program = p };
    dense(&s->out[0], OUT, t, 1, &n);
    dense(&s->in[0], X, t, 1, &n);
}

static void product_step(duet_dtype t, int64_t m, int64_t n, step *s)
{
    *s = (step){ .kernel = OP_matmul, .outs = 1, .ins = 2, .flops = 2.0 * (double)m * (double)n * (double)n };
    dense(&s->out[0], OUT, t, 2, (int64_t[]){ m, n });
    dense(&s->in[0], X, t, 2, (int64_t[]){ m, n });
    dense(&s->in[1], Y, t, 2, (int64_t[]){ n, n });
}

static void conv_step(double flops, step *s)
{
    enum { CHANNELS = 16, FILTERS = 32, SIDE = 16, TAP = 3 };
    const int64_t images = llround(flops / (2.0 * FILTERS * CHANNELS * TAP * TAP * SIDE * SIDE));
    static const conv_attributes same = {
        .stride = { 1, 1 }, .pad = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1
    };
    *s = (step){ .kernel = OP_conv2d, .outs = 1, .ins = 2, .attr.conv = same, .flops = flops };
    dense(&s->out[0], OUT, DUET_F32, 4, (int64_t[]){ images, FILTERS, SIDE, SIDE });
    dense(&s->in[0], X, DUET_F32, 4, (int64_t[]){ images, CHANNELS, SIDE, SIDE });
    dense(&s->in[1], Y, DUET_F32, 4, (int64_t[]){ FILTERS, CHANNELS, TAP, TAP });
}

static void make_step(enum cost kind, double work, step *s, program *p)
{
    const int64_t side = llround(cbrt(work / 2));
    switch ((int)kind) {
    case COST_pass: return pass_step(work, s, p);
    case COST_function: return function_step(DUET_F32, work, s, p);
    case COST_function_f64: return function_step(DUET_F64, work, s, p);
    case COST_product: return product_step(DUET_F32, side, side, s);
    case COST_product_f64: return product_step(DUET_F64, side, side, s);
    case COST_thin: return product_step(DUET_F32, (int64_t)work, 1000, s);
    default: return conv_step(work, s);
    }
}

/* ---- timing ---- */

typedef struct task {
    const calibrator *r;
    int device;
    const step *s; /* or NULL: a copy of `bytes` from the host to the device (up), or back: */
    bool up;
    size_t bytes;
} task;

static duet_status run_once(const task *t)
{
    static const double number[1] = { 0.5 };
    const machine *m = device_machine(t->device);
    void *host = t->r->block[HOST][X], *own = t->r->block[t->device][X];
    if (t->s) return m->run(t->s, &(frame){ t->r->block[t->device], number, t->r->queue, t->device });
    if (t->up) return m->upload(t->device, own, host, t->bytes, t->r->queue);
    return m->download(t->device, host, own, t->bytes, t->r->queue);
}

static duet_status run_repeatedly(const task *t, int calls, double *seconds)
{
    const double start = clock_now();
    for (int i = 0; i < calls; i++) TRY(run_once(t));
    TRY(device_machine(t->device)->sync(t->device, t->r->queue));
    *seconds = (clock_now() - start) / calls;
    return DUET_OK;
}

/* The shortest of a few rounds, after one call to warm up. */
static duet_status seconds_of(const task *t, double *best)
{
    double took;
    TRY(run_repeatedly(t, 1, &took));
    TRY(run_repeatedly(t, 1, best));
    const int calls = *best * MAX_CALLS < ROUND_SECONDS ? MAX_CALLS : (int)(ROUND_SECONDS / *best) + 1;
    for (int i = 0; i < ROUNDS && *best < LONG_POINT; i++) {
        TRY(run_repeatedly(t, calls, &took));
        if (took < *best) *best = took;
    }
    return DUET_OK;
}

/* ---- curves ---- */

static duet_status measure_point(const calibrator *r, int device, enum cost kind, int i, double *seconds)
{
    const double work = cost_infos[kind].work[i];
    const bool copies = cost_is_of_copies(kind);
    program p;
    step s = { 0 };
    task t = { r, device, copies ? NULL : &s, kind == COST_up || kind == COST_up_pinned, (size_t)work };
    if (!copies) make_step(kind, work, &s, &p);
    const duet_status st = seconds_of(&t, seconds);
    if (!copies) device_machine(device)->forget(&s);
    return st;
}

static bool can_measure(int device, enum cost kind)
{
    program p;
    step s;
    if (cost_is_of_copies(kind)) return device != HOST;
    make_step(kind, cost_infos[kind].work[0], &s, &p);
    return !device_machine(device)->unsupported_reason(&s);
}

static bool is_disturbed(const double *y, const double *work, int i)
{
    return i && (y[i] > y[i - 1] * work[i] / work[i - 1] * UNEVEN || y[i] < y[i - 1] * FALLING);
}

/* Measure all points of a curve; if that fails, none is stored. */
static duet_status measure_curve(calibrator *r, int device, enum cost kind, costs *to)
{
    const cost_info *k = &cost_infos[kind];
    double y[COST_POINTS] = { 0 };
    if (!can_measure(device, kind)) return DUET_OK;
    for (int i = 0; i < k->points; i++) {
        const double least = i ? y[i - 1] : 0, grown = i ? least * k->work[i] / k->work[i - 1] : 0;
        if (r->busy || clock_now() > r->end) return DUET_OK;
        if (grown > LONG_POINT) y[i] = grown;
        else TRY(measure_point(r, device, kind, i, &y[i]));
        if (is_disturbed(y, k->work, i)) {
            r->busy = true;
            return DUET_OK;
        }
        y[i] = fmax(y[i], least);
    }
    memcpy(to->seconds[kind], y, sizeof y);
    return DUET_OK;
}

/* If this process may not pin memory, pinned copies do not occur. */
static duet_status measure_pinned(calibrator *r, int device, costs *to)
{
    const machine *m = device_machine(device);
    if (m->pin(device, r->block[HOST][X], block_bytes[X]) != DUET_OK) return DUET_OK;
    duet_status s = measure_curve(r, device, COST_up_pinned, to);
    if (s == DUET_OK) s = measure_curve(r, device, COST_down_pinned, to);
    m->unpin(device, r->block[HOST][X]);
    return s;
}

static duet_status measure_copies(calibrator *r, int device, costs *to)
{
    TRY(measure_curve(r, device, COST_up, to));
    TRY(measure_curve(r, device, COST_down, to));
    return measure_pinned(r, device, to);
}

/* The curves that most statements depend on come first. */
static duet_status measure_all(calibrator *r, costs to[COSTED])
{
    for (int d = 0; d < COSTED; d++) TRY(measure_curve(r, d, COST_pass, &to[d]));
    for (int d = 0; d < COSTED; d++)
        if (d != HOST) TRY(measure_copies(r, d, &to[d]));
    for (enum cost k = 0; k < COSTS; k++)
        for (int d = 0; d < COSTED && k != COST_pass && !cost_is_of_copies(k); d++)
            TRY(measure_curve(r, d, k, &to[d]));
    return DUET_OK;
}

/* ---- memory for the measurements: not from the pool, which would keep it ---- */

static void free_blocks(calibrator *r)
{
    for (int s = 0; s < COSTED; s++)
        for (int b = 0; b < BLOCKS; b++)
            if (r->block[s][b]) device_machine(s)->free(s, r->block[s][b]);
}

/* Varied numbers: some cards compute faster on zeros. */
static void fill(float *x)
{
    uint32_t state = 1;
    for (size_t i = 0; i < block_bytes[X] / sizeof *x; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static duet_status fill_device(const calibrator *r, int device)
{
    const machine *m = device_machine(device);
    for (int b = 0; b < BLOCKS; b++)
        TRY(m->upload(device, r->block[device][b], r->block[HOST][X], block_bytes[b], r->queue));
    return m->sync(device, r->queue);
}

static duet_status allocate_blocks(calibrator *r)
{
    for (int d = 0; d < COSTED; d++)
        for (int b = 0; b < BLOCKS; b++) TRY(device_machine(d)->alloc(d, block_bytes[b], &r->block[d][b]));
    fill(r->block[HOST][X]);
    for (int b = 0; b < BLOCKS; b++)
        if (b != X) memcpy(r->block[HOST][b], r->block[HOST][X], block_bytes[b]);
    for (int d = 0; d < COSTED; d++)
        if (d != HOST) TRY(fill_device(r, d));
    return DUET_OK;
}

static duet_status check_limit(int device, size_t bytes)
{
    const duet_memory m = pool_memory(device);
    if (!m.limit || m.used + m.cached + bytes <= m.limit) return DUET_OK;
    return fail(DUET_NO_MEMORY, "the memory limit is too small");
}

duet_status costs_measure(costs measured[COSTED], double seconds, bool *busy)
{
    calibrator r = { .queue = thread_get()->queue, .end = clock_now() + seconds };
    for (int d = 0; d < COSTED; d++) measured[d] = *device_machine(d)->costs;
    *busy = false;
    USE_GPUS; /* the blocks are not in the pool */
    for (int d = 0; d < COSTED; d++)
        if (d != HOST) TRY(check_limit(d, block_bytes[OUT] + block_bytes[X] + block_bytes[Y]));
    duet_status st = allocate_blocks(&r);
    if (st == DUET_OK) st = measure_all(&r, measured);
    *busy = r.busy;
    for (int d = 0; d < COSTED; d++)
        if (d != HOST) (void)device_machine(d)->sync(d, r.queue);
    free_blocks(&r);
    return st;
}

/* ---- once per process ---- */

/* The user must not notice the measurement: restore the counters and the error text. */
static duet_status measure_silently(costs measured[COSTED], bool *busy, char *why, size_t size)
{
    thread *t = thread_get();
    const duet_counts counted = t->counted;
    error_text before;
    error_keep(&before);
    const duet_status s = costs_measure(measured, BUDGET, busy);
    snprintf(why, size, "%.*s", (int)size - 1, s == DUET_OK ? "" : t->text);
    error_put_back(&before);
    for (size_t i = 0; i < sizeof counted / sizeof(uint64_t); i++)
        __atomic_store_n((uint64_t *)&t->counted + i, ((const uint64_t *)&counted)[i], __ATOMIC_RELAXED);
    return s;
}

/* Returns NULL, or why the costs are not stored. */
static const char *store(const char *path, const costs measured[COSTED], bool busy)
{
    if (busy) return "the machine was busy";
    if (!path) return "there is no folder for it";
    return calibration_write(path, measured);
}

static void measure_and_store(const char *path)
{
    costs measured[COSTED];
    char why[600], origin[COST_ORIGIN];
    const double start = clock_now();
    bool busy;
    if (measure_silently(measured, &busy, why, sizeof why) != DUET_OK) {
        snprintf(origin, sizeof origin, "as shipped, since they could not be measured: %s", why);
        costs_use(NULL, origin);
        return;
    }
    const char *problem = store(path, measured, busy);
    if (problem) snprintf(origin, sizeof origin, "measured in this process, and not kept: %s", problem);
    else snprintf(origin, sizeof origin, "measured in this process, and kept in %s", path);
    costs_use(measured, origin);
    TRACE("costs measured in %.2f s", clock_now() - start);
}

static bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && !strcmp(text, value);
}

static void prepare(void)
{
    costs stored[COSTED];
    char path[CALIBRATION_PATH], origin[COST_ORIGIN];
    const bool has_path = calibration_path(path), repeats = reproducible();
    if (repeats || is_set("DUET_CALIBRATE", "0"))
        return costs_use(NULL, repeats ? "as shipped: DUET_REPRODUCIBLE=1" : "as shipped: DUET_CALIBRATE=0");
    if (is_set("DUET_CALIBRATE", "1") || !has_path || !calibration_read(path, stored))
        return measure_and_store(has_path ? path : NULL);
    snprintf(origin, sizeof origin, "measured on this machine, kept in %s", path);
    costs_use(stored, origin);
}

void costs_prepare(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool prepared;
    if (likely(__atomic_load_n(&prepared, __ATOMIC_ACQUIRE))) return;
    pthread_mutex_lock(&lock);
    if (!prepared) prepare();
    __atomic_store_n(&prepared, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}
