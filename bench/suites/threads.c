/* threads.c - duet-threads: measures the throughput of several host threads that run the forward
 * pass of the dense network, each with its own batch, all with the same weights. It is compared
 * with the throughput of one thread: statement by statement, with automatic replay, and with
 * duet_replay. */
#include "bench.h"
#include "environment.h"
#include "json.h"
#include "measure.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "duet-threads [--quick] [--backend cpu|gpu] [--threads N] [--json FILE]\n";

#define THREADS_MOST 64
#define WARMUP_CALLS 20 /* calls; enough for automatic replay to recognise them */

enum mode { DIRECT, AUTOMATIC, REPLAYED, MODES };
static const char *const mode_names[MODES] = { "direct", "automatic", "replayed" };

typedef struct options {
    bool quick;
    duet_place place;
    int threads;
} options;

typedef struct team team;
typedef struct worker {
    pthread_t thread;
    team *of;
    problem p;
    bool failed;
} worker;

/* All worker threads live as long as the program, each with its own queue. At job_barrier they all
 * wait for a job, in which the first `size` of them take part; round_barrier separates the rounds
 * of a job. calls: calls of each worker in a round. */
struct team {
    const options *o;
    enum mode mode;
    int size;
    int64_t calls;
    int rounds;
    bool finished;
    pthread_barrier_t job_barrier, round_barrier;
    worker workers[THREADS_MOST];
    double began, us[ROUNDS]; /* time of a round divided by the calls of all workers */
};

/* ---- the problems of the workers: they share the weights ---- */

static const bench *dense(void)
{
    for (int i = 0; i < bench_count; i++)
        if (!strcmp(benches[i].name, "dense")) return &benches[i];
    return NULL;
}

static bool is_weight(const problem *p, int t) { return p->bench->tensors[t].role == IN && t; }

static bool open_workers(team *c, int64_t batch)
{
    for (int i = 0; i < c->o->threads; i++) {
        problem *p = &c->workers[i].p;
        *p = (problem){ .bench = dense(), .n = batch, .seed = 1, .place = c->o->place };
        if (!problem_open(p)) return false;
        for (int t = 0; t < TENSORS && i && p->bench->tensors[t].role != END; t++)
            if (is_weight(p, t)) {
                duet_free(&p->m[t]);
                p->m[t] = c->workers[0].p.m[t];
            }
    }
    return true;
}

static void close_workers(team *c)
{
    for (int i = c->o->threads; i-- > 0;) {
        problem *p = &c->workers[i].p;
        for (int t = 0; t < TENSORS && i && p->bench && p->bench->tensors[t].role != END; t++)
            if (p->m[t] == c->workers[0].p.m[t]) p->m[t] = NULL;
        problem_close(p);
    }
}

/* ---- rounds ---- */

static duet_recording *record(const problem *p)
{
    if (duet_record_begin() != DUET_OK) return NULL;
    DUET_ON(p->place)(void) p->bench->run(p); /* if it fails, so does the recording */
    return duet_record_end();
}

static bool run_calls(const problem *p, duet_recording *r, int64_t calls)
{
    duet_status s = DUET_OK;
    DUET_ON(p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = r ? duet_replay(r) : p->bench->run(p);
    return s == DUET_OK && duet_synchronize() == DUET_OK;
}

/* A round ends when the slowest worker is done. The first worker measures the time. */
static bool run_round(worker *w, duet_recording *r, int round)
{
    team *c = w->of;
    const bool first = w == c->workers;
    pthread_barrier_wait(&c->round_barrier);
    if (first) c->began = now();
    pthread_barrier_wait(&c->round_barrier);
    const bool ok = run_calls(&w->p, r, c->calls);
    pthread_barrier_wait(&c->round_barrier);
    if (first) c->us[round] = 1e6 * (now() - c->began) / (double)(c->calls * c->size);
    return ok;
}

static bool do_job(worker *w)
{
    const team *c = w->of;
    bool ok = duet_auto_replay(c->mode == AUTOMATIC) == DUET_OK && run_calls(&w->p, NULL, WARMUP_CALLS);
    duet_recording *r = ok && c->mode == REPLAYED ? record(&w->p) : NULL;
    ok = ok && (r || c->mode != REPLAYED) && run_calls(&w->p, r, WARMUP_CALLS);
    for (int round = 0; round < c->rounds; round++)
        ok &= run_round(w, r, round); /* also after a failure, because the others wait at the barrier */
    if (!ok) fprintf(stderr, "duet-threads: %s\n", duet_error());
    duet_recording_free(&r);
    return ok;
}

static void *work(void *arg)
{
    worker *w = arg;
    team *c = w->of;
    for (;;) {
        pthread_barrier_wait(&c->job_barrier);
        if (c->finished) return NULL;
        w->failed = w - c->workers < c->size && !do_job(w);
        pthread_barrier_wait(&c->job_barrier);
    }
}

/* Returns the microseconds per call of `size` workers together. */
static double run_team(team *c, int size)
{
    bool ok = true;
    c->size = size;
    if (pthread_barrier_init(&c->round_barrier, NULL, (unsigned)size)) return NAN;
    pthread_barrier_wait(&c->job_barrier);
    pthread_barrier_wait(&c->job_barrier);
    for (int i = 0; i < size; i++) ok &= !c->workers[i].failed;
    pthread_barrier_destroy(&c->round_barrier);
    if (ok) return median(c->us, c->rounds);
    return NAN;
}

static bool start(team *c)
{
    if (pthread_barrier_init(&c->job_barrier, NULL, (unsigned)c->o->threads + 1)) return false;
    for (int i = 0; i < c->o->threads; i++) {
        c->workers[i].of = c;
        if (pthread_create(&c->workers[i].thread, NULL, work, &c->workers[i])) return false;
    }
    return true;
}

static void stop(team *c)
{
    c->finished = true;
    pthread_barrier_wait(&c->job_barrier);
    for (int i = 0; i < c->o->threads; i++) pthread_join(c->workers[i].thread, NULL);
}

/* ---- the report ---- */

static bool check_all(const team *c)
{
    for (int i = 0; i < c->o->threads; i++) {
        const check_result v = check(&c->workers[i].p);
        if (!v.ok) {
            fprintf(stderr, "duet-threads: thread %d: the relative error is %g, allowed are %g: %s\n", i,
                    v.error, v.bound, duet_error());
            return false;
        }
    }
    return true;
}

/* Compares the outputs after the rounds with that of the first worker, which was checked before. */
static bool all_agree(const team *c)
{
    const int out = dense()->output;
    const int64_t n = duet_count(c->workers[0].p.m[out]);
    const float *want = duet_read(c->workers[0].p.m[out]);
    for (int i = 1; i < c->o->threads && want; i++) {
        const float *got = duet_read(c->workers[i].p.m[out]);
        for (int64_t k = 0; k < n; k++)
            if (!got || !(fabsf(got[k] - want[k]) <= 1e-5f)) {
                fprintf(stderr, "duet-threads: the results of thread %d differ\n", i);
                return false;
            }
    }
    return want;
}

static void report(json *j, const team *c, int64_t batch, double one, double all)
{
    printf("dense %5lld %-9s 1 thread %9.2f us, %d threads %9.2f us a call: %.2f times the throughput\n",
           (long long)batch, mode_names[c->mode], one, c->o->threads, all, one / all);
    fflush(stdout);
    json_begin(j, NULL, '{');
    json_text(j, "bench", "threads");
    json_text(j, "case", "dense");
    json_text(j, "mode", mode_names[c->mode]);
    json_integer(j, "batch", batch);
    json_integer(j, "threads", c->o->threads);
    json_number(j, "one_us", one);
    json_number(j, "all_us", all);
    json_number(j, "ratio", one / all);
    json_end(j, '}');
}

/* The number of calls is chosen so that a round of one thread takes about 20 ms. */
static bool run_mode(team *c, json *j, int64_t batch)
{
    c->rounds = 3;
    c->calls = 3;
    const double takes = run_team(c, 1), target = c->o->quick ? 2e3 : 2e4;
    if (c->o->quick) c->rounds = 3;
    else c->rounds = ROUNDS;
    c->calls = (int64_t)fmax(2, target / takes);
    const double one = run_team(c, 1), all = run_team(c, c->o->threads);
    if (!isfinite(takes) || !isfinite(one) || !isfinite(all) || !all_agree(c)) return false;
    report(j, c, batch, one, all);
    return true;
}

static bool run_batch(team *c, json *j, int64_t batch)
{
    bool ok = open_workers(c, batch) && check_all(c);
    for (c->mode = 0; c->mode < MODES && ok; c->mode++) ok = run_mode(c, j, batch);
    close_workers(c);
    duet_memory_trim();
    return ok;
}

int main(int argc, char **argv)
{
    options o = { .place = DUET_GPU, .threads = 16 };
    const char *path = NULL;
    static team c;
    json j;
    c.o = &o;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick")) o.quick = true;
        else if (!strcmp(argv[i], "--backend") && i + 1 < argc)
            o.place = strcmp(argv[++i], "cpu") ? DUET_GPU : DUET_CPU;
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc) o.threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) {
            path = argv[++i];
        } else {
            fputs(usage, stderr);
            return 2;
        }
    if (o.threads < 1 || o.threads > THREADS_MOST) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.place == DUET_GPU && !has_gpu()) {
        printf("duet-threads: not measured: %s\n", duet_error());
        return 0;
    }
    if (!json_open(&j, path)) return 1;
    json_begin(&j, "results", '[');
    const bool started = start(&c), ok = started && run_batch(&c, &j, 1) && run_batch(&c, &j, 1000);
    if (started) stop(&c);
    json_end(&j, ']');
    if (!ok) fprintf(stderr, "duet-threads: %s\n", duet_error());
    if (json_close(&j) && ok) return 0;
    return 1;
}
