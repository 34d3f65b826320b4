/* time.c - how long a call takes: blocks of calls, Duet's and its peer's in turn, and the median. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Calls one after the other; on the GPU the clock stops when the last is done. */
static bool duet_block(const problem *p, int64_t calls)
{
    duet_status s = DUET_OK;
    DUET_ON(p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = p->bench->run(p);
    return s == DUET_OK && (p->place != DUET_GPU || duet_synchronize() == DUET_OK);
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

static bool bare_block(const problem *p, int64_t calls)
{
    const engine *e = p->place == DUET_GPU ? engine_gpu() : engine_cpu();
    float *at[TENSORS] = { 0 };
    bool ok = addresses(p, at);
    for (int64_t i = 0; i < calls && ok; i++) ok = p->bench->bare(p, e, at);
    return e->sync() && ok;
}

typedef struct runner {
    bool (*block)(const problem *p, int64_t calls);
    int64_t calls;
    double us[ROUNDS];
} runner;

/* Warms up for at least `warm` seconds, and finds how many calls make a block of `target` seconds. */
static bool calibrate(runner *r, const problem *p, double warm, double target)
{
    const double start = now();
    double took = 0;
    for (r->calls = 1;; r->calls *= took < target / 2 ? 2 : 1) {
        double t = now();
        if (!r->block(p, r->calls)) return false;
        took = now() - t;
        if (took >= target / 2 && now() - start >= warm) break;
    }
    r->calls = (int64_t)ceil((double)r->calls * target / took);
    return true;
}

static bool one_round(runner *r, const problem *p, int round)
{
    double t = now();
    bool ok = r->block(p, r->calls);
    r->us[round] = 1e6 * (now() - t) / (double)r->calls;
    return ok;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
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
    timing t = { .ok = true, .peer = peer_name(p) };
    const int runners = t.peer ? 2 : 1, rounds = quick ? 5 : ROUNDS;
    const double warm = quick ? 0.01 : 0.06, target = quick ? 0.005 : 0.02;
    runner r[2] = { { .block = duet_block }, { .block = bare_block } };
    double ratio[ROUNDS];

    for (int i = 0; i < runners && t.ok; i++) t.ok = calibrate(&r[i], p, warm, target);
    for (int n = 0; n < rounds && t.ok; n++) {
        for (int i = 0; i < runners && t.ok; i++) t.ok = one_round(&r[i], p, n);
        if (t.peer) ratio[n] = r[0].us[n] * peer_share(p) / r[1].us[n];
    }
    if (!t.ok) return t;
    t.us = median(r[0].us, rounds);
    if (t.peer) t.peer_us = median(r[1].us, rounds), t.ratio = median(ratio, rounds);
    return t;
}
