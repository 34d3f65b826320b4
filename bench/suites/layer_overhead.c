/* layer_overhead.c - the overhead of a dense layer and of two networks; see layer_overhead.h.
 *
 * The bare calls of a layer are what a CUDA programmer would call with the same kernels. Up to 128
 * rows Duet computes the whole layer in a kernel of its own. An empty kernel with the same launch
 * attribute and the same number of argument bytes represents it. Above 128 rows the bare calls are
 * cublasLtMatmul with the fastest algorithm, and one launch for the pass that follows it. */
#include "layer_overhead.h"
#include "bench.h"
#include "handwritten.h"
#include "overhead_report.h"
#include <math.h>
#include <string.h>

/* ---- one dense layer ---- */

enum { INPUTS = 784, OUTPUTS = 1000, OWN_ROWS = 128 };
#define QUEUED   200    /* calls in a block: few enough that the host never waits for a full queue */
#define ABOVE_NS 1500.0 /* host time that a layer may take in addition to its bare calls */

typedef struct layer {
    int64_t batch;
    duet_matrix *x, *w, *b, *o;
    handwritten_gemm *product; /* NULL: a kernel of Duet */
    int launches;
} layer;

static duet_status set_layer(const layer *l)
{
    return duet_set(l->o, duet_sigmoid(duet_bias_add(duet_matmul(l->x, l->w), l->b)));
}

static double layer_block(void *state, int64_t calls)
{
    duet_status s = duet_synchronize();
    double took = 0;
    DUET_ON(DUET_GPU)
    {
        took = now();
        for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = set_layer(state);
        took = now() - took;
    }
    if (s == DUET_OK && duet_synchronize() == DUET_OK) return took;
    return NAN;
}

static const char *bare_layer(const layer *l)
{
    const char *wrong = l->product ? handwritten_gemm_run(l->product) : NULL;
    for (int i = l->product ? 1 : 0; i < l->launches && !wrong; i++)
        wrong = handwritten_launch_early(l->product ? 256 : 128);
    return wrong;
}

static double bare_block(void *state, int64_t calls)
{
    const char *wrong = handwritten_wait();
    const double start = now();
    for (int64_t i = 0; i < calls && !wrong; i++) wrong = bare_layer(state);
    const double took = now() - start;
    if (wrong || handwritten_wait()) return NAN;
    return took;
}

static bool fill(duet_matrix *m)
{
    float *v = duet_overwrite(m);
    for (int64_t i = 0; v && i < duet_count(m); i++) v[i] = noise(1, i) / 16;
    return v;
}

static bool count_launches(layer *l)
{
    uint64_t before = 0;
    for (int i = 0; i < 2; i++) { /* the first call may also launch kernels to compare algorithms */
        before = duet_stats().launches;
        if (!isfinite(layer_block(l, 1))) return false;
    }
    l->launches = (int)(duet_stats().launches - before);
    return l->launches > 0;
}

static bool open_layer(layer *l)
{
    l->x = duet_new(DUET_F32, l->batch, INPUTS);
    l->w = duet_new(DUET_F32, INPUTS, OUTPUTS);
    l->b = duet_new(DUET_F32, OUTPUTS);
    l->o = duet_new(DUET_F32, l->batch, OUTPUTS);
    if (!l->o || !l->b || !l->w || !l->x || !fill(l->x) || !fill(l->w) || !fill(l->b) || !count_launches(l))
        return false;
    if (l->batch <= OWN_ROWS) return true;
    const float *x = duet_device_read(l->x), *w = duet_device_read(l->w);
    float *o = duet_device_overwrite(l->o);
    const char *wrong = o && x && w
                            ? handwritten_gemm_make(&l->product, (int)l->batch, OUTPUTS, INPUTS, x, w, o)
                            : duet_error();
    if (wrong) fprintf(stderr, "duet-calls: %s\n", wrong);
    return !wrong;
}

static void close_layer(layer *l)
{
    handwritten_gemm_free(&l->product);
    duet_free(&l->x);
    duet_free(&l->w);
    duet_free(&l->b);
    duet_free(&l->o);
}

/* Returns the median over the rounds of the difference of both times, in nanoseconds. */
static double above(const contender *c, const contender *bare)
{
    double d[ROUNDS];
    for (int r = 0; r < c->rounds; r++) d[r] = 1e3 * (c->us[r] - bare->us[r]);
    return median(d, c->rounds);
}

static bool run_layer(json *j, int64_t batch, effort how)
{
    char name[3][64];
    layer l = { .batch = batch };
    contender c[] = { { name[0], layer_block, &l, QUEUED }, { name[1], bare_block, &l, QUEUED } };
    bool ok = open_layer(&l);
    snprintf(name[0], sizeof name[0], "dense layer of %d", (int)batch);
    snprintf(name[1], sizeof name[1], "dense layer of %d, bare: %s%d launches", (int)batch,
             l.product ? "cublasLtMatmul, " : "", l.launches - (l.product ? 1 : 0));
    snprintf(name[2], sizeof name[2], "dense layer of %d, above the bare calls", (int)batch);
    ok = ok && measure(c, 2, how);
    if (ok) {
        report_contenders(j, "gpu", c, 2);
        report_figure(j, "gpu", name[2], above(&c[0], &c[1]), ABOVE_NS);
    }
    close_layer(&l);
    return ok;
}

bool layer_overhead_dense(json *j, effort how)
{
    how.rounds = ROUNDS;
    return run_layer(j, 1, how) && run_layer(j, 100, how) && run_layer(j, 1000, how);
}

/* ---- networks: the total time of a call, not only that of the host ---- */

#define WARMUP_CALLS   40   /* calls; enough for automatic replay to recognise them */
#define AUTOMATIC_MOST 1.15 /* limit of its time, relative to that of the recording */

static double run_network(void *state, int64_t calls)
{
    const problem *p = state;
    duet_status s = duet_synchronize();
    const double start = now();
    DUET_ON(DUET_GPU)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = p->bench->run(p);
    if (s == DUET_OK && duet_synchronize() == DUET_OK) return now() - start;
    return NAN;
}

static double run_automatic(void *state, int64_t calls)
{
    double took = NAN;
    if (duet_auto_replay(1) == DUET_OK && isfinite(run_network(state, WARMUP_CALLS)))
        took = run_network(state, calls);
    if (duet_auto_replay(0) == DUET_OK) return took;
    return NAN;
}

static double run_recorded(void *state, int64_t calls)
{
    duet_status s = duet_synchronize();
    const double start = now();
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = duet_replay(state);
    if (s == DUET_OK && duet_synchronize() == DUET_OK) return now() - start;
    return NAN;
}

static duet_recording *record(const problem *p)
{
    if (duet_record_begin() != DUET_OK) return NULL;
    DUET_ON(DUET_GPU)(void) p->bench->run(p); /* if it fails, so does the recording */
    return duet_record_end();
}

static bool time_network(json *j, problem *p, effort how)
{
    char name[4][64];
    static const char *const variants[] = { "as written", "automatically", "recorded",
                                            "automatic over recorded" };
    duet_recording *r = record(p);
    contender c[] = { { name[0], run_network, p },
                      { name[1], run_automatic, p },
                      { name[2], run_recorded, r } };
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s, batch 1, %s", p->bench->name, variants[i]);
    const bool ok = r && duet_auto_replay(0) == DUET_OK && measure(c, 3, how);
    if (ok) {
        report_contenders(j, "gpu", c, 3);
        report_figure(j, "gpu", name[3], median_ratio(&c[1], &c[2]), AUTOMATIC_MOST);
    }
    duet_recording_free(&r);
    return ok;
}

bool layer_overhead_networks(json *j, effort how)
{
    bool ok = true;
    for (int b = 0; b < bench_count && ok; b++) {
        problem p = { .bench = &benches[b], .n = 1, .seed = 1, .place = DUET_GPU };
        if (strcmp(p.bench->name, "dense") && strcmp(p.bench->name, "cnn")) continue;
        ok = problem_open(&p) && check(&p).ok && time_network(j, &p, how);
        problem_close(&p);
    }
    return ok;
}
