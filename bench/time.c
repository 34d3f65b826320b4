/* time.c - how long a call takes: blocks of calls, Duet's and its peer's in turn, and the median. */
#include "bench.h"
#include "measure.h"
#include <math.h>

/* Calls one after the other; on the GPU the clock stops when the last is done. */
static double duet_block(void *state, int64_t calls)
{
    const problem *p = state;
    const double start = now();
    duet_status s = DUET_OK;
    DUET_ON(p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = p->bench->run(p);
    bool ok = s == DUET_OK && (p->place != DUET_GPU || duet_synchronize() == DUET_OK);
    return ok ? now() - start : NAN;
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
    bool ok = s == DUET_OK && (x->p->place != DUET_GPU || duet_synchronize() == DUET_OK);
    return ok ? now() - start : NAN;
}

static duet_recording *record(const problem *p)
{
    if (duet_record_begin() != DUET_OK) return NULL;
    DUET_ON(p->place)(void) p->bench->run(p); /* a failure makes the recording fail */
    return duet_record_end();
}

/* Where the matrices are on the machine of the problem: good until one is next named in a call, so asked for each block. */
static bool addresses(const problem *p, float *at[TENSORS])
{
    bool gpu = p->place == DUET_GPU;
    for (int t = 0; t < TENSORS && p->m[t]; t++) {
        bool out = p->bench->tensors[t].role == OUT || t == p->bench->output;
        at[t] = out ? gpu ? duet_device_update(p->m[t]) : duet_update(p->m[t])
                    : (float *)(uintptr_t)(gpu ? duet_device_read(p->m[t]) : duet_read(p->m[t]));
        if (!at[t]) return false;
    }
    return true;
}

static double bare_block(void *state, int64_t calls)
{
    const problem *p = state;
    const double start = now();
    const engine *e = p->place == DUET_GPU ? engine_gpu() : engine_cpu();
    float *at[TENSORS] = { 0 };
    bool ok = addresses(p, at);
    for (int64_t i = 0; i < calls && ok; i++) ok = p->bench->bare(p, e, at);
    return e->sync() && ok ? now() - start : NAN;
}

static const char *peer_name(const problem *p)
{
    const engine *e = p->place == DUET_GPU ? engine_gpu() : engine_cpu();
    if (!e || !p->bench->bare) return NULL;
    return of_vectors(p->bench) ? e->axpy_name : e->gemm_name;
}

static double peer_share(const problem *p)
{
    const engine *e = p->place == DUET_GPU ? engine_gpu() : engine_cpu();
    return of_vectors(p->bench) ? e->axpy_share : 1;
}

timing time_problem(const problem *p, bool quick)
{
    timing t = { .peer = peer_name(p) };
    replayed x = { p, record(p) };
    contender c[3] = { { .block = duet_block, .state = (void *)(uintptr_t)p },
                       { .block = replay_block, .state = &x },
                       { .block = bare_block, .state = (void *)(uintptr_t)p } };
    t.ok = x.r && measure(c, t.peer ? 3 : 2, quick ? effort_quick : effort_full);
    duet_recording_free(&x.r);
    if (!t.ok) return t;
    t.us = median_us(&c[0]), t.replay_us = median_us(&c[1]);
    if (t.peer) t.peer_us = median_us(&c[2]), t.ratio = median_ratio(&c[0], &c[2]) * peer_share(p);
    return t;
}
