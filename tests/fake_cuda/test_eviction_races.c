/* test_eviction_races.c - what another thread does between two steps of a thread that frees buffers of matrices
 * for its own use, or just before. The fake CUDA stops one thread at a certain call, until the other one
 * has acted. */
#include "eviction.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "matrix.h"
#include "tap.h"
#include <semaphore.h>
#include <time.h>

enum { SIDE = 64, COUNT_OF = SIDE * SIDE, BYTES = 4 * COUNT_OF };

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

/* Limits device memory to what is in use now and `bytes` more. */
static void leave(size_t bytes)
{
    duet_memory_trim();
    ok(duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used + bytes));
}

static void leave_all(void) { ok(duet_memory_limit(DUET_GPU, 0)); }

static duet_matrix *new_matrix(void) { return duet_new(DUET_F32, SIDE, SIDE); }

static bool is_on_gpu(const duet_matrix *m) { return storage_has_buffer(m->storage, DEFAULT_GPU); }

static bool holds(const duet_matrix *m, float x)
{
    const float *p = duet_read_f32(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        if (p[i] != x) return CHECK(false, "element %d is %g, not %g", (int)i, (double)p[i], (double)x);
    return CHECK(p != NULL, "%s", duet_error());
}

/* ---- two threads ---- */

/* A thread at a call, and another one that acts meanwhile. */
typedef struct meeting {
    sem_t is_there, has_acted;
} meeting;

static meeting new_meeting(void)
{
    meeting m;
    sem_init(&m.is_there, 0, 0);
    sem_init(&m.has_acted, 0, 0);
    return m;
}

static bool wait_until(sem_t *s, double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(seconds * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return sem_timedwait(s, &t) == 0;
}

/* Called by the fake CUDA. The other thread may have to wait for a lock of this one. */
static void stop_here(void *arg)
{
    meeting *m = arg;
    sem_post(&m->is_there);
    (void)wait_until(&m->has_acted, 0.2);
}

static void wait_for_other(meeting *m)
{
    CHECK(wait_until(&m->is_there, 10), "the other thread has not made the call");
}

/* A thread that needs memory for one matrix, and keeps it. */
typedef struct taker {
    duet_matrix *m;
    void *p;
} taker;

static void *take(void *arg)
{
    taker *t = arg;
    t->p = duet_device_overwrite(t->m);
    return NULL;
}

/* ---- between two steps of freeing a buffer ---- */

/* Two matrices that only the GPU has. The first one is freed first. */
static void make_two(duet_matrix **m)
{
    for (int i = 0; i < 2; i++) m[i] = new_matrix();
    leave(2 * BYTES);
    for (int i = 0; i < 2; i++) ok(duet_set_on(DUET_GPU, m[i], i + 1.0));
}

/* Starts a thread that needs memory. Returns when it is at the call. */
static pthread_t start(taker *t, meeting *at, enum fake_point point)
{
    pthread_t running;
    *at = new_meeting();
    *t = (taker){ new_matrix(), NULL };
    fake_before(point, 1, stop_here, at);
    CHECK(!pthread_create(&running, NULL, take, t), "the thread could not be created");
    wait_for_other(at);
    return running;
}

static void end(pthread_t running, meeting *at)
{
    sem_post(&at->has_acted);
    pthread_join(running, NULL);
}

static void test_pointer(void)
{
    duet_matrix *m[2];
    meeting at;
    taker other;
    make_two(m);
    const pthread_t running = start(&other, &at, FAKE_FETCH);
    const void *p = duet_device_read(m[0]);
    end(running, &at);
    CHECK(p && p == m[0]->storage->buffer[DEFAULT_GPU], "%s", p ? "the buffer was freed" : duet_error());
    leave_all();
    for (int i = 0; i < 2; i++) holds(m[i], (float)(i + 1));
    duet_free(&m[0], &m[1], &other.m);
    tap_point("the user gets a pointer while the elements are copied to the host");
}

static void test_written(enum fake_point point)
{
    duet_matrix *m[2];
    meeting at;
    taker other;
    make_two(m);
    const pthread_t running = start(&other, &at, point);
    ok(duet_set_on(DUET_GPU, m[0], 5));
    end(running, &at);
    leave_all();
    holds(m[0], 5);
    holds(m[1], 2);
    duet_free(&m[0], &m[1], &other.m);
    tap_point(point == FAKE_WAIT ? "a statement writes the matrix just before the copy to the host"
                                 : "a statement writes the matrix during the copy to the host");
}

int main(void)
{
    test_pointer();
    test_written(FAKE_FETCH);
    test_written(FAKE_WAIT);
    return tap_end();
}
