/* threads.c - duet-threads: the dense network's forward pass by several host threads at once, each with a batch of its own, all with the same
 * weights. What all of them get done in a second, over what one thread does: statement by statement, by automatic replay, and by duet_replay. */
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
#define LEARNT       20 /* turns, more than it takes until automatic replay has learnt them */

enum mode { DIRECT, AUTOMATIC, REPLAYED, MODES };
static const char *const mode_names[MODES] = { "direct", "automatic", "replayed" };

typedef struct options {
    bool quick;
    duet_place place;
    int threads;
} options;

typedef struct crew crew;
typedef struct worker {
    pthread_t thread;
    crew *of;
    problem p;
    bool failed;
} worker;

/* All workers live as long as the program, each with a queue of its own; `size` of them take part in the job that all wait for at the gate.
 * calls: of each of these in a round. */
struct crew {
    const options *o;
    enum mode mode;
    int size;
    int64_t calls;
    int rounds;
    bool over;
    pthread_barrier_t gate, line;
    worker workers[THREADS_MOST];
    double began, us[ROUNDS]; /* of all calls of a round, each */
};

/* ---- problems that share what no statement writes, but for the batch ---- */

static const bench *dense(void)
{
    for (int i = 0; i < bench_count; i++)
        if (!strcmp(benches[i].name, "dense")) return &benches[i];
    return NULL;
}

static bool is_weight(const problem *p, int t) { return p->bench->tensors[t].role == IN && t; }

static bool open_workers(crew *c, int64_t batch)
{
    for (int i = 0; i < c->o->threads; i++) {
        problem *p = &c->workers[i].p;
        *p = (problem){ .bench = dense(), .n = batch, .seed = 1, .place = c->o->place };
        if (!problem_open(p)) return false;
        for (int t = 0; t < TENSORS && i && p->bench->tensors[t].role != END; t++)
            if (is_weight(p, t)) duet_free(&p->m[t]), p->m[t] = c->workers[0].p.m[t];
    }
    return true;
}

static void close_workers(crew *c)
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
    DUET_ON(p->place)(void) p->bench->run(p); /* a failure makes the recording fail */
    return duet_record_end();
}

static bool run_calls(const problem *p, duet_recording *r, int64_t calls)
{
    duet_status s = DUET_OK;
    DUET_ON(p->place)
    for (int64_t i = 0; i < calls && s == DUET_OK; i++) s = r ? duet_replay(r) : p->bench->run(p);
    return s == DUET_OK && duet_synchronize() == DUET_OK;
}

/* The slowest ends a round; the first worker has the clock. */
static bool run_round(worker *w, duet_recording *r, int round)
{
    crew *c = w->of;
    const bool first = w == c->workers;
    pthread_barrier_wait(&c->line);
    if (first) c->began = now();
    pthread_barrier_wait(&c->line);
    const bool ok = run_calls(&w->p, r, c->calls);
    pthread_barrier_wait(&c->line);
    if (first) c->us[round] = 1e6 * (now() - c->began) / (double)(c->calls * c->size);
    return ok;
}

static bool do_job(worker *w)
{
    const crew *c = w->of;
    bool ok = duet_auto_replay(c->mode == AUTOMATIC) == DUET_OK && run_calls(&w->p, NULL, LEARNT);
    duet_recording *r = ok && c->mode == REPLAYED ? record(&w->p) : NULL;
    ok = ok && (r || c->mode != REPLAYED) && run_calls(&w->p, r, LEARNT);
    for (int round = 0; round < c->rounds; round++)
        ok &= run_round(w, r, round); /* all of them meet at the line, come what may */
    if (!ok) fprintf(stderr, "duet-threads: %s\n", duet_error());
    duet_recording_free(&r);
    return ok;
}

static void *work(void *arg)
{
    worker *w = arg;
    crew *c = w->of;
    for (;;) {
        pthread_barrier_wait(&c->gate);
        if (c->over) return NULL;
        w->failed = w - c->workers < c->size && !do_job(w);
        pthread_barrier_wait(&c->gate);
    }
}

/* Microseconds a call, over all that so many workers do. */
static double run_crew(crew *c, int size)
{
    bool ok = true;
    c->size = size;
    if (pthread_barrier_init(&c->line, NULL, (unsigned)size)) return NAN;
    pthread_barrier_wait(&c->gate);
    pthread_barrier_wait(&c->gate);
    for (int i = 0; i < size; i++) ok &= !c->workers[i].failed;
    pthread_barrier_destroy(&c->line);
    return ok ? median(c->us, c->rounds) : NAN;
}

static bool start(crew *c)
{
    if (pthread_barrier_init(&c->gate, NULL, (unsigned)c->o->threads + 1)) return false;
    for (int i = 0; i < c->o->threads; i++) {
        c->workers[i].of = c;
        if (pthread_create(&c->workers[i].thread, NULL, work, &c->workers[i])) return false;
    }
    return true;
}

static void epilogue(crew *c)
{
    c->over = true;
    pthread_barrier_wait(&c->gate);
    for (int i = 0; i < c->o->threads; i++) pthread_join(c->workers[i].thread, NULL);
}

/* ---- the report ---- */

static bool check_all(const crew *c)
{
    for (int i = 0; i < c->o->threads; i++) {
        const linalg_failed v = check(&c->workers[i].p);
        if (!v.ok)
            return fprintf(stderr, "duet-threads: thread %d is off by %g, bound %g: %s\n", i, v.error,
                           v.bound, duet_error()),
                   false;
    }
    return true;
}

/* The outputs that the rounds left are those of the first worker, which were checked. */
static bool all_agree(const crew *c)
{
    const int out = dense()->output;
    const int64_t n = duet_count(c->workers[0].p.m[out]);
    const float *want = duet_read(c->workers[0].p.m[out]);
    for (int i = 1; i < c->o->threads && want; i++) {
        const float *got = duet_read(c->workers[i].p.m[out]);
        for (int64_t k = 0; k < n; k++)
            if (!got || !(fabsf(got[k] - want[k]) <= 1e-5f))
                return fprintf(stderr, "duet-threads: thread %d has other results\n", i), false;
    }
    return want;
}

static void report(json *j, const crew *c, int64_t batch, double one, double all)
{
    printf("dense %5lld %-9s 1 thread %9.2f us, %d threads %9.2f us a call: %.2f times the throughput\n",
           (long long)batch, mode_names[c->mode], one, c->o->threads, all, one / all);
    fflush(stdout);
    json_begin(j, NULL, '{');
    json_text(j, "bench", "threads"), json_text(j, "case", "dense"),
        json_text(j, "mode", mode_names[c->mode]);
    json_integer(j, "batch", batch), json_integer(j, "threads", c->o->threads);
    json_number(j, "one_us", one), json_number(j, "all_us", all), json_number(j, "ratio", one / all);
    json_end(j, '}');
}

/* A round takes some 20 ms for one thread. */
static bool run_mode(crew *c, json *j, int64_t batch)
{
    c->rounds = 3, c->calls = 3;
    const double takes = run_crew(c, 1), target = c->o->quick ? 2e3 : 2e4;
    c->rounds = c->o->quick ? 3 : ROUNDS, c->calls = (int64_t)fmax(2, target / takes);
    const double one = run_crew(c, 1), all = run_crew(c, c->o->threads);
    if (!isfinite(takes) || !isfinite(one) || !isfinite(all) || !all_agree(c)) return false;
    return report(j, c, batch, one, all), true;
}

static bool run_batch(crew *c, json *j, int64_t batch)
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
    static crew c;
    json j;
    c.o = &o;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick")) o.quick = true;
        else if (!strcmp(argv[i], "--backend") && i + 1 < argc)
            o.place = strcmp(argv[++i], "cpu") ? DUET_GPU : DUET_CPU;
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc) o.threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--json") && i + 1 < argc) path = argv[++i];
        else return fputs(usage, stderr), 2;
    if (o.threads < 1 || o.threads > THREADS_MOST) return fputs(usage, stderr), 2;
    if (o.place == DUET_GPU && !has_gpu())
        return printf("duet-threads: nothing to measure: %s\n", duet_error()), 0;
    if (!json_open(&j, path)) return 1;
    json_begin(&j, "results", '[');
    const bool started = start(&c), ok = started && run_batch(&c, &j, 1) && run_batch(&c, &j, 1000);
    if (started) epilogue(&c);
    json_end(&j, ']');
    if (!ok) fprintf(stderr, "duet-threads: %s\n", duet_error());
    return json_close(&j) && ok ? 0 : 1;
}
