/* test_auto_replay_threads.c - automatic replay in several threads at once. Threads share matrices
 * that they only read and pass on what they compute, also in the middle of deferred work. All
 * elements are small integers, so every result is exact.
 *
 *     test_auto_replay_threads [rounds] */
#include "auto_replay.h"
#include "common.h"
#include "deferred.h"
#include "plan.h"
#include <pthread.h>
#include <semaphore.h>

enum { N = 8, THREADS = 4, TURNS = 30 };

static void ok(duet_status s) { CHECK(s == DUET_OK, "status %d: %s", (int)s, duet_error()); }

static duet_matrix *filled(float v)
{
    duet_matrix *m = duet_new(DUET_F32, N, N);
    float *p = duet_overwrite(m);
    for (int i = 0; p && i < N * N; i++) p[i] = v;
    return m;
}

static void fill(duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    if (!CHECK(p, "%s", duet_error())) return;
    for (int i = 0; i < N * N; i++) p[i] = v;
}

static void holds(const duet_matrix *m, float v, const char *what)
{
    const float *p = duet_read(m);
    if (!CHECK(p, "%s: %s", what, duet_error())) return;
    for (int i = 0; i < N * N; i++)
        if (!CHECK(p[i] == v, "%s[%d] is %g, not %g", what, i, (double)p[i], (double)v)) return;
}

static void in_threads(void *run(void *), int count)
{
    pthread_t t[THREADS];
    for (int i = 0; i < count; i++) pthread_create(&t[i], NULL, run, (void *)(intptr_t)i);
    for (int i = 0; i < count; i++) pthread_join(t[i], NULL);
}

/* ---- weights that all threads read, and that are uploaded when the first thread needs them ---- */

static duet_matrix *weights, *bias;

static void *network(void *number)
{
    duet_matrix *in = filled(0), *h = filled(0), *y = filled(0), *z = filled(0);
    DUET_ON(DUET_GPU)
    for (int turn = 0; turn < TURNS; turn++) {
        const float t = (float)(turn + (int)(intptr_t)number);
        fill(in, t);
        ok(duet_set(h, duet_add(duet_matmul(in, weights), bias)));
        ok(duet_set(y, duet_relu(duet_sub(h, duet_mul(2, in)))));
        ok(duet_set(z, duet_add(duet_matmul(y, weights), bias)));
        holds(z, N * (N * t + 3 - 2 * t) + 3, "z");
        if (turn % 4 == 0) CHECK(duet_read(weights) && duet_read(bias), "%s", duet_error());
    }
    duet_free(&in);
    duet_free(&h);
    duet_free(&y);
    duet_free(&z);
    return NULL;
}

static void share(int rounds)
{
    const uint64_t before = duet_stats().repeats;
    for (int i = 0; i < rounds; i++) {
        weights = filled(1);
        bias = filled(3);
        in_threads(network, THREADS);
        holds(weights, 1, "weights");
        duet_free(&weights);
        duet_free(&bias);
    }
    CHECK(duet_stats().repeats - before > (uint64_t)(rounds * THREADS * TURNS), "%d statements replayed",
          (int)(duet_stats().repeats - before));
    tap_point("threads share operands");
}

/* ---- each thread adds one to the result of the one before it and continues with its own matrices
 * ---- */

static sem_t made[THREADS + 1], taken[THREADS + 1];
static duet_matrix *link[THREADS + 1];

static void *stage(void *number)
{
    const int i = (int)(intptr_t)number;
    duet_matrix *own = filled(0), *sum = filled(0);
    float total = 0;
    DUET_ON(DUET_GPU)
    for (int turn = 0; turn < TURNS; turn++) {
        sem_wait(&made[i]);
        ok(duet_set(own, duet_add(link[i], 1)));
        if (turn) sem_wait(&taken[i + 1]);
        ok(duet_set(link[i + 1], duet_mul(own, 1.0)));
        sem_post(&taken[i]);
        sem_post(&made[i + 1]); /* the next thread may need what this one defers */
        ok(duet_set(sum, duet_add(sum, own)));
        ok(duet_set(sum, duet_sub(sum, 1)));
        total += (float)(turn + i);
    }
    holds(sum, total, "the sum of a stage");
    duet_free(&own);
    duet_free(&sum);
    return NULL;
}

static void *spring(void *none)
{
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn) sem_wait(&taken[0]);
        fill(link[0], (float)turn);
        sem_post(&made[0]);
    }
    return none;
}

static void *sink(void *none)
{
    for (int turn = 0; turn < TURNS; turn++) {
        sem_wait(&made[THREADS]);
        holds(link[THREADS], (float)(turn + THREADS), "the end of the chain");
        sem_post(&taken[THREADS]);
    }
    return none;
}

static void hand_on(int rounds)
{
    for (int r = 0; r < rounds; r++) {
        pthread_t first, last;
        for (int i = 0; i <= THREADS; i++) {
            link[i] = filled(0);
            sem_init(&made[i], 0, 0);
            sem_init(&taken[i], 0, 0);
        }
        pthread_create(&first, NULL, spring, NULL);
        pthread_create(&last, NULL, sink, NULL);
        in_threads(stage, THREADS);
        pthread_join(first, NULL);
        pthread_join(last, NULL);
        for (int i = 0; i <= THREADS; i++) duet_free(&link[i]);
    }
    tap_point("threads read each other's results");
}

/* ---- deferred work when its thread ends, and when another thread frees what it uses ---- */

static duet_matrix *x, *y;
static sem_t held, freed;
static int queue; /* of the thread with deferred work */

/* The last turn stops after its first statement. */
static void *break_off(void *waits)
{
    duet_matrix *z = filled(0);
    DUET_ON(DUET_GPU)
    for (int turn = 0; turn < TURNS; turn++) {
        ok(duet_set(y, duet_add(x, 1)));
        if (turn == TURNS - 1) break;
        ok(duet_set(z, duet_mul(y, 2)));
        holds(z, 12, "z");
    }
    CHECK(deferred_queues_now() != 0, "no statement is deferred");
    queue = thread_get()->queue;
    if (waits) {
        sem_post(&held);
        sem_wait(&freed);
    }
    duet_free(&z);
    return NULL;
}

static void end_half_way(void)
{
    pthread_t t;
    x = filled(5);
    y = filled(0);
    pthread_create(&t, NULL, break_off, NULL);
    pthread_join(t, NULL);
    CHECK(deferred_queues_now() == 0, "statements of an ended thread are still deferred");
    holds(y, 6, "y");
    duet_free(&x);
    duet_free(&y);
    tap_point("a thread ends within a period");
}

/* What this thread does while another one has deferred y = x + 1 and waits. */
static void meanwhile(void (*act)(void), const char *name)
{
    pthread_t t;
    x = filled(5);
    y = filled(0);
    sem_init(&held, 0, 0);
    sem_init(&freed, 0, 0);
    pthread_create(&t, NULL, break_off, &x);
    sem_wait(&held);
    act();
    CHECK(deferred_queues_now() == 0, "the statement is still deferred");
    holds(y, 6, "y");
    sem_post(&freed);
    pthread_join(t, NULL);
    duet_free(&x);
    duet_free(&y);
    tap_point(name);
}

static void free_x(void) { duet_free(&x); }
static void upload_x(void)
{
    fill(x, 7);
    ok(duet_set_on(DUET_GPU, x, duet_mul(x, 2)));
}
static void write_x(void) { ok(duet_set_on(DUET_GPU, x, 9)); }
/* Like a 65th thread, it uses the queue of the first. */
static void *behind(void *none)
{
    thread_get()->queue = queue;
    ok(duet_set_on(DUET_GPU, x, duet_mul(y, 2)));
    holds(x, 12, "x");
    return none;
}

static void read_y_behind(void)
{
    pthread_t t;
    pthread_create(&t, NULL, behind, NULL);
    pthread_join(t, NULL);
}

static void read_y(void) { ok(duet_set_on(DUET_GPU, x, duet_mul(y, 1.0))); }

int main(int argc, char **argv)
{
    duet_place place[2];
    auto_replay_set_max_seconds(1e3);
    setenv("DUET_REPRODUCIBLE", "1", 1);
    if (list_places(place) < 2) {
        printf("ok %d - automatic replay # SKIP there is no GPU\n", ++tap_points);
        return tap_end();
    }
    const int rounds = trial_count(argc, argv, 3, 20);
    share(rounds);
    hand_on(rounds);
    end_half_way();
    meanwhile(free_x, "a matrix is freed half-way");
    meanwhile(upload_x, "a matrix is written by the host half-way");
    meanwhile(write_x, "a matrix is written by another thread half-way");
    meanwhile(read_y, "a matrix is read by another thread half-way");
    meanwhile(read_y_behind, "a matrix is read by another thread of the same queue half-way");
    return tap_end();
}
