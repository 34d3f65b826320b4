/* time.c - measures the time of a call: blocks of Duet, of its peer and of the lower bound in
 * turns, and medians. */
#include "bench.h"
#include "measure.h"
#include <math.h>

/* Waits for the last call and returns the seconds since start; NAN after a failure. */
static double seconds_since(const problem *p, duet_status s, double start)
{
    if (s == DUET_OK && p->place == DUET_GPU) s = duet_synchronize();
    if (s == DUET_OK) return now() - start;
    return NAN;
}

/* Runs the statements of the problem `calls` times and returns the seconds, or NAN. */
static double run_calls(const problem *p, int64_t calls)
{
    const double start = now();
    duet_status s = DUET_OK;
    DUET_ON(p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = p->bench->run(p);
    return seconds_since(p, s, start);
}

static double direct_block(void *state, int64_t calls)
{
    if (duet_auto_replay(0) == DUET_OK) return run_calls(state, calls);
    return NAN;
}

#define WARMUP_CALLS 40 /* calls; enough for automatic replay to recognise them */

static double automatic_block(void *state, int64_t calls)
{
    if (duet_auto_replay(1) == DUET_OK && isfinite(run_calls(state, WARMUP_CALLS)))
        return run_calls(state, calls);
    return NAN;
}

typedef struct replayed {
    const problem *p;
    duet_recording *r;
} replayed;

static double replay_block(void *state, int64_t calls)
{
    const replayed *x = state;
    const double start = now();
    duet_status s = DUET_OK;
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = duet_replay(x->r);
    return seconds_since(x->p, s, start);
}

static duet_recording *record(const problem *p)
{
    if (duet_record_begin() != DUET_OK) return NULL;
    DUET_ON(p->place)(void) p->bench->run(p); /* if it fails, so does the recording */
    return duet_record_end();
}

/* Gets the addresses of the matrices on the device. They are valid until the next call that uses a
 * matrix, so each block gets them again. */
static bool addresses(const problem *p, float *at[TENSORS])
{
    bool gpu = p->place == DUET_GPU;
    for (int t = 0; t < TENSORS && p->m[t]; t++) {
        bool out = p->bench->tensors[t].role == OUT || t == p->bench->output;
        if (out) at[t] = gpu ? duet_device_update(p->m[t]) : duet_update(p->m[t]);
        else at[t] = (float *)(uintptr_t)(gpu ? duet_device_read(p->m[t]) : duet_read(p->m[t]));
        if (!at[t]) return false;
    }
    return true;
}

static const engine *engine_of(const problem *p)
{
    if (p->place == DUET_GPU) return engine_gpu();
    return engine_cpu();
}

static double bare_block(void *state, int64_t calls)
{
    const problem *p = state;
    const double start = now();
    const engine *e = engine_of(p);
    float *at[TENSORS] = { 0 };
    bool ok = addresses(p, at);
    for (int64_t i = 0; i < calls && ok; i++) ok = p->bench->bare(p, e, at);
    if (e->sync() && ok) return now() - start;
    return NAN;
}

static const char *peer_name(const problem *p)
{
    const engine *e = engine_of(p);
    if (!e || !p->bench->bare) return NULL;
    if (of_vectors(p->bench)) return e->axpy_name;
    return e->gemm_name;
}

/* Contenders, in this order: without replay, by duet_replay, with automatic replay, the peer, the
 * lower bound. Some may be missing. */
enum { DIRECT, REPLAYED, AUTOMATIC, PEER, LOWER_BOUND, ALL };

static void store_times(const problem *p, contender *const of[ALL], timing *t)
{
    t->us = median_us(of[DIRECT]);
    t->replay_us = median_us(of[REPLAYED]);
    if (of[AUTOMATIC]) t->auto_us = median_us(of[AUTOMATIC]);
    else t->auto_us = t->us;
    if (of[PEER]) {
        t->peer_us = median_us(of[PEER]);
        t->ratio = median_ratio(of[DIRECT], of[PEER]) * (of_vectors(p->bench) ? engine_of(p)->axpy_share : 1);
    }
    if (of[LOWER_BOUND]) {
        t->lower_bound_us = median_us(of[LOWER_BOUND]);
        t->lower_bound_ratio = median_ratio(of[DIRECT], of[LOWER_BOUND]);
    }
}

timing time_problem(const problem *p, bool quick)
{
    timing t = { .peer = peer_name(p) };
    lower_bound least;
    replayed x = { p, record(p) };
    const bool has_lower_bound = lower_bound_open(p, &least);
    void *self = (void *)(uintptr_t)p;
    const contender all[ALL] = { { "direct", direct_block, self },
                                 { "replayed", replay_block, &x },
                                 { "automatic", automatic_block, self },
                                 { "peer", bare_block, self },
                                 { "lower bound", least.block, &least, least.max_calls } };
    const bool available[ALL] = { true, true, p->place == DUET_GPU, t.peer, has_lower_bound };
    contender c[ALL], *of[ALL] = { 0 };
    int count = 0;
    for (int i = 0; i < ALL; i++)
        if (available[i]) {
            of[i] = &c[count];
            c[count++] = all[i];
        }
    if (has_lower_bound) t.lower_bound = least.name;
    else t.lower_bound = NULL;
    t.ok = x.r && measure(c, count, quick ? effort_quick : effort_full);
    if (t.ok) store_times(p, of, &t);
    duet_recording_free(&x.r);
    lower_bound_close(&least);
    return t;
}
