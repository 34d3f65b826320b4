/* test_eviction_races.c - what another thread does while a thread frees buffers of matrices for its own
 * use, or just before. The fake CUDA stops one thread at a certain call, until the other one
 * has acted. */
#include "eviction.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "matrix.h"
#include "stream.h"
#include "stream_policy.h"
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
    meeting *at; /* or NULL: it begins at once */
} taker;

static void *take(void *arg)
{
    taker *t = arg;
    if (t->at) wait_for_other(t->at);
    t->p = duet_device_overwrite(t->m);
    if (t->at) sem_post(&t->at->has_acted);
    return NULL;
}

static void need_memory(taker *t)
{
    *t = (taker){ new_matrix(), NULL, NULL };
    run_in_thread(take, t);
}

/* ---- writers on the host ---- */

static void *open_on_host(const duet_matrix *m)
{
    void *p = NULL;
    ok(matrix_open(m, HOST, OVERWRITE, thread_get()->queue, &p));
    return p;
}

static void write_half(const duet_matrix *m, float *p, int half, float x)
{
    for (int64_t i = half * duet_count(m) / 2; i < (half + 1) * duet_count(m) / 2; i++) p[i] = x;
}

/* Only the GPU has the elements of before, or the host has them too. */
static void test_host_writer(bool has_host)
{
    duet_matrix *y = new_matrix();
    taker other;
    ok(duet_set_on(DUET_GPU, y, 1));
    if (has_host) CHECK(duet_read(y) != NULL, "%s", duet_error());
    leave(0);
    float *p = open_on_host(y);
    write_half(y, p, 0, 2);
    need_memory(&other);
    CHECK(!other.p && is_on_gpu(y), "the buffer was freed while the host writes the matrix");
    write_half(y, p, 1, 2);
    matrix_wrote(y, HOST, thread_get()->queue);
    duet_free(&other.m);
    need_memory(&other);
    CHECK(other.p && !is_on_gpu(y), "%s", duet_error());
    leave_all();
    holds(y, 2);
    duet_free(&y, &other.m);
    tap_point(has_host ? "the host writes a matrix that it has, too" : "the host writes a matrix of the GPU");
}

/* A write of all elements, or of two rows, fails. */
static void test_failed_writer(bool of_rows)
{
    duet_matrix *y = new_matrix(), *rows[] = { duet_row(y, 0), duet_row(y, 3) };
    taker other;
    ok(duet_set_on(DUET_GPU, y, 1));
    CHECK(duet_read(y) != NULL, "%s", duet_error());
    leave(0);
    for (int i = 0; i < 2; i++) {
        const duet_matrix *m = of_rows ? rows[i] : y;
        write_half(m, open_on_host(m), 0, 2);
    }
    need_memory(&other);
    for (int i = 0; i < 2; i++) {
        matrix_write_failed(of_rows ? rows[i] : y, HOST);
        if (!of_rows) break;
    }
    for (int i = 0; i < 2; i++) matrix_end_write(of_rows ? rows[i] : y);
    holds(y, 1);
    duet_free(&other.m);
    ok(duet_set_on(DUET_GPU, y, duet_add(y, 1)));
    need_memory(&other);
    CHECK(other.p && !is_on_gpu(y), "%s", duet_error());
    leave_all();
    holds(y, 2);
    duet_free(&y, &rows[0], &rows[1], &other.m);
    tap_point(of_rows ? "a write of parts on the host fails" : "a write on the host fails");
}

/* A statement on the CPU fails after it has opened its destination. */
static void test_failed_statement(void)
{
    static const int64_t bad[] = { SIDE };
    duet_matrix *y = duet_new(DUET_F32, 1, SIDE), *x = new_matrix(),
                *index = duet_from_array(bad, DUET_I64, 1);
    duet_matrix *more = duet_new(DUET_F32, 1, SIDE);
    ok(duet_set_on(DUET_GPU, y, 1));
    leave(0);
    CHECK(duet_set_on(DUET_CPU, y, duet_take(x, index, 0)) == DUET_BAD_ARGUMENT, "%s", duet_error());
    ok(duet_set_on(DUET_GPU, more, 2));
    CHECK(!is_on_gpu(y), "the buffer is kept after a statement that failed");
    leave_all();
    holds(y, 1);
    duet_free(&y, &x, &index, &more);
    tap_point("a statement on the CPU that fails keeps no buffer");
}

static void *write_on_gpu(void *m)
{
    ok(duet_set_on(DUET_GPU, m, 1));
    return NULL;
}

/* Another thread has written the result on the GPU before. Its buffer is in the way in the middle of the
 * parts. */
static void test_streamed_writer(void)
{
    enum { ROWS = 64 * SIDE };
    duet_matrix *big = duet_new(DUET_F32, ROWS, SIDE), *y = duet_new(DUET_F32, ROWS, SIDE);
    meeting at = new_meeting();
    taker other = { duet_new(DUET_F32, ROWS, SIDE), NULL, &at };
    pthread_t running;
    float *p = duet_overwrite_f32(big);
    for (int i = 0; i < ROWS * SIDE; i++) p[i] = 3;
    run_in_thread(write_on_gpu, y);
    stream_from(0);
    stream_staged_from(0);
    fake_pinned(false);
    leave(ROWS * SIDE * 4 / 4 * 3);
    CHECK(!pthread_create(&running, NULL, take, &other), "the thread could not be created");
    const uint64_t before = duet_stats().streams;
    fake_before(FAKE_FETCH, 8, stop_here, &at);
    ok(duet_set_on(DUET_GPU, y, duet_mul(big, 2)));
    CHECK(duet_stats().streams == before + 1, "%d statements were streamed",
          (int)(duet_stats().streams - before));
    pthread_join(running, NULL);
    leave_all();
    holds(y, 6);
    duet_free(&big, &y, &other.m);
    stream_from((size_t)1 << 20);
    tap_point("a streamed statement writes a matrix of the GPU");
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
    *t = (taker){ new_matrix(), NULL, NULL };
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

/* ---- lists ---- */

typedef struct list {
    duet_matrix *x, *w, *y, *turned, *z;
    duet_recording *recording; /* or NULL */
    meeting at;
} list;

static void *write_operands(void *arg)
{
    const list *l = arg;
    ok(duet_set_on(DUET_GPU, l->x, 1));
    ok(duet_set_on(DUET_GPU, l->w, 2));
    ok(duet_set_on(DUET_GPU, l->y, 3));
    return NULL;
}

static void *write_last(void *arg)
{
    const list *l = arg;
    ok(duet_set_on(DUET_GPU, l->z, 7));
    return NULL;
}

/* The second statement cannot be planned together with the first one. */
static duet_status set_list(const list *l)
{
    return duet_set_all({ l->x, duet_add(l->x, l->w) }, { l->y, duet_add(l->turned, l->z) });
}

/* Another thread that replays it does not use its graph, which belongs to the queue of this one. */
static void record_list(list *l)
{
    DUET_ON(DUET_GPU)
    {
        ok(duet_record_begin());
        ok(set_list(l));
        l->recording = duet_record_end();
    }
}

static void *run_list(void *arg)
{
    list *l = arg;
    write_operands(l);
    run_in_thread(write_last, l);
    leave(0);
    fake_before(FAKE_LAUNCH, 1, stop_here, &l->at);
    DUET_ON(DUET_GPU) ok(l->recording ? duet_replay(l->recording) : set_list(l));
    return NULL;
}

/* The last operand of a list was used by another thread before. */
static void test_list(bool is_recorded)
{
    list l = {
        .x = new_matrix(), .w = new_matrix(), .y = new_matrix(), .z = new_matrix(), .at = new_meeting()
    };
    taker other = { new_matrix(), NULL, &l.at };
    pthread_t running;
    l.turned = duet_transposed(l.x);
    write_operands(&l);
    write_last(&l);
    if (is_recorded) record_list(&l);
    CHECK(!pthread_create(&running, NULL, run_list, &l), "the thread could not be created");
    take(&other);
    pthread_join(running, NULL);
    CHECK(!other.p, "a buffer of the list was freed");
    leave_all();
    holds(l.x, 3);
    holds(l.y, 10);
    holds(l.z, 7);
    duet_recording_free(&l.recording);
    duet_free(&l.x, &l.w, &l.y, &l.turned, &l.z, &other.m);
    tap_point(is_recorded ? "no buffer of a recorded list is freed for other threads"
                          : "no buffer of a list is freed for other threads");
}

int main(void)
{
    test_host_writer(false);
    test_host_writer(true);
    test_failed_writer(false);
    test_failed_writer(true);
    test_failed_statement();
    test_streamed_writer();
    test_pointer();
    test_written(FAKE_FETCH);
    test_written(FAKE_WAIT);
    test_list(false);
    test_list(true);
    return tap_end();
}
