/* time.c - how long a call takes: blocks of calls, Duet's and its peer's in turn, and the median. */
#include "bench.h"
#include "measure.h"
#include <math.h>

/* Seconds since then, the last call done; NAN when one failed. */
static double epilogue(const problem *p, duet_status s, double start)
{
    if (s == DUET_OK && p->place == DUET_GPU) s = duet_synchronize();
    return s == DUET_OK ? now() - start : NAN;
}

/* Calls one after the other, as they are written. */
static double calls_of(const problem *p, int64_t calls)
{
    const double start = now();
    duet_status s = DUET_OK;
    DUET_ON(p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = p->bench->run(p);
    return epilogue(p, s, start);
}

static double direct_block(void *state, int64_t calls)
{
    return duet_auto_replay(0) == DUET_OK ? calls_of(state, calls) : NAN;
}

#define LEARNT 40 /* calls, more than it takes until they are replayed */

static double automatic_block(void *state, int64_t calls)
{
    return duet_auto_replay(1) == DUET_OK && isfinite(calls_of(state, LEARNT)) ? calls_of(state, calls) : NAN;
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
    return epilogue(x->p, s, start);
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

static const engine *engine_of(const problem *p)
{
    return p->place == DUET_GPU ? engine_gpu() : engine_cpu();
}

static double bare_block(void *state, int64_t calls)
{
    const problem *p = state;
    const double start = now();
    const engine *e = engine_of(p);
    float *at[TENSORS] = { 0 };
    bool ok = addresses(p, at);
    for (int64_t i = 0; i < calls && ok; i++) ok = p->bench->bare(p, e, at);
    return e->sync() && ok ? now() - start : NAN;
}

static const char *peer_name(const problem *p)
{
    const engine *e = engine_of(p);
    if (!e || !p->bench->bare) return NULL;
    return of_vectors(p->bench) ? e->axpy_name : e->gemm_name;
}

/* Direct, replayed, by automatic replay, the peer, the floor: those that there are, in this order. */
enum { DIRECT, REPLAYED, AUTOMATIC, PEER, FLOOR, ALL };

static void read_off(const problem *p, contender *const by[ALL], timing *t)
{
    t->us = median_us(by[DIRECT]), t->replay_us = median_us(by[REPLAYED]);
    t->auto_us = by[AUTOMATIC] ? median_us(by[AUTOMATIC]) : t->us;
    if (by[PEER])
        t->peer_us = median_us(by[PEER]),
        t->ratio = median_ratio(by[DIRECT], by[PEER]) * (of_vectors(p->bench) ? engine_of(p)->axpy_share : 1);
    if (by[FLOOR]) t->floor_us = median_us(by[FLOOR]), t->floor_ratio = median_ratio(by[DIRECT], by[FLOOR]);
}

timing time_problem(const problem *p, bool quick)
{
    timing t = { .peer = peer_name(p) };
    floor_work least;
    replayed x = { p, record(p) };
    const bool has_floor = floor_open(p, &least);
    void *self = (void *)(uintptr_t)p;
    const contender all[ALL] = { { "direct", direct_block, self },
                                 { "replayed", replay_block, &x },
                                 { "automatic", automatic_block, self },
                                 { "peer", bare_block, self },
                                 { "floor", least.block, &least, least.most } };
    const bool there[ALL] = { true, true, p->place == DUET_GPU, t.peer, has_floor };
    contender c[ALL], *by[ALL] = { 0 };
    int count = 0;
    for (int i = 0; i < ALL; i++)
        if (there[i]) by[i] = &c[count], c[count++] = all[i];
    t.floor = has_floor ? least.name : NULL;
    t.ok = x.r && measure(c, count, quick ? effort_quick : effort_full);
    if (t.ok) read_off(p, by, &t);
    duet_recording_free(&x.r), floor_close(&least);
    return t;
}
