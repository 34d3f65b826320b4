/* test_core.c - unit tests of src/core on the machines of fake_machines.h: matrices, the pool,
 * threads, error texts. */
#include "fake_machines.h"
#include "in_thread.h"
#include "matrix.h"
#include "pool.h"
#include "queue_sync.h"
#include "trace.h"

/* ---- matrices ---- */

static const int64_t four[] = { 4 };

/* How much a call added to a counter. */
#define ADDED(field) (duet_stats().field - before.field)

static void test_few_waits(void)
{
    duet_matrix *m = duet_new_shape(DUET_F32, 1, four);
    duet_counts before = duet_stats();
    void *p;
    CHECK(duet_overwrite(m) && !ADDED(uploads) && !ADDED(synchronisations), "duet_overwrite copied elements");
    CHECK(!matrix_open(m, DEFAULT_GPU, UPDATE, 5, &p) && ADDED(uploads) == 1,
          "the number of uploads is not 1");
    matrix_wrote(m, DEFAULT_GPU, 5);
    CHECK(!matrix_open(m, DEFAULT_GPU, UPDATE, 6, &p), "another queue cannot write the matrix");
    matrix_wrote(m, DEFAULT_GPU, 6);
    CHECK(!matrix_open(m, HOST, READ, 7, &p) && ADDED(downloads) == 1 && ADDED(synchronisations) == 1,
          "a third queue cannot read the matrix with one download");
    CHECK(duet_read(m) && ADDED(synchronisations) == 1, "duet_read waits again");
    CHECK(duet_update(m) && ADDED(synchronisations) == 1,
          "duet_update waits for an upload that a later download has waited for");
    CHECK(!matrix_open(m, DEFAULT_GPU, READ, 6, &p) && ADDED(uploads) == 2, "the number of uploads is not 2");
    CHECK(duet_read(m) && ADDED(downloads) == 1 && ADDED(synchronisations) == 1,
          "duet_read copies although both buffers are valid");
    CHECK(duet_overwrite(m) && ADDED(synchronisations) == 2,
          "duet_overwrite does not wait for the second upload");
    CHECK(duet_overwrite(m) && ADDED(synchronisations) == 2,
          "duet_overwrite waits twice for the second upload");
    CHECK(!matrix_open(m, DEFAULT_GPU, UPDATE, 6, &p) && ADDED(uploads) == 3,
          "opening the matrix for writing does not upload");
    CHECK(duet_overwrite(m) && ADDED(synchronisations) == 3,
          "duet_overwrite does not wait for the upload of a matrix that was not written");
    duet_free(&m);

    duet_matrix *z = duet_new_shape(DUET_F64, 1, four);
    CHECK(!matrix_open(z, DEFAULT_GPU, READ, 1, &p) && ADDED(uploads) == 3,
          "the zeros of a new matrix were uploaded");
    CHECK(!matrix_open(z, DEFAULT_GPU, READ, 2, &p), "another queue cannot read the zeros");
    const double *x = duet_read(z);
    CHECK(x && x[0] == 0 && x[3] == 0 && ADDED(downloads) == 2, "the zeros on the host are wrong");
    duet_free(&z);
    tap_point("the minimum number of waits and copies");
}

static void test_empty(void)
{
    const int64_t size[] = { 3, 0 };
    duet_counts before = duet_stats();
    duet_matrix *m = duet_new_shape(DUET_F32, 2, size), *t = duet_transposed(m), *r = duet_slice(m, 3, 0);
    CHECK(m && t && r && duet_count(m) == 0, "%s", duet_error());
    CHECK(duet_read(m) && duet_device_update(t) && duet_read(t) && duet_overwrite(r) && duet_device_read(m),
          "%s", duet_error());
    CHECK(!ADDED(upload_bytes) && !ADDED(download_bytes), "bytes of an empty matrix were copied");
    CHECK(matrix_overlap(m, t) == APART, "empty matrices overlap");
    CHECK(!duet_row(t, 0) && !duet_column(m, 0), "a row or column of an empty matrix was made");
    duet_free(&m);
    duet_free(&t);
    duet_free(&r);
    tap_point("empty matrices");
}

#define REFUSED(call, part)                                                                                  \
    do {                                                                                                     \
        bool null_ = !(call);                                                                                \
        CHECK(null_ &&strstr(duet_error(), part), "%s: \"%s\" has no \"%s\"", #call, duet_error(), part);    \
    } while (0)

static void test_bad_arguments(void)
{
    const int64_t size[] = { 2, 3 }, bad[] = { 2, -3 }, five[] = { 5 }, six[] = { 6 };
    double memory[2];
    duet_matrix *m = duet_new_shape(DUET_F32, 2, size), *freed, *v = duet_new_shape(DUET_F32, 1, four),
                *t = duet_transposed(m);
    freed = duet_new_shape(DUET_F32, 2, size);
    duet_matrix *gone = freed;
    duet_free(&freed);

    REFUSED(duet_new_shape(DUET_F32, 2, bad), "duet_new(f32[2,-3]): the sizes must not be negative");
    CHECK(duet_error_status() == DUET_BAD_SHAPE, "the status is %d", duet_error_status());
    duet_error_at("here.c:1");
    CHECK(duet_error_status() == DUET_BAD_SHAPE, "duet_error_at changed the status");
    (void)fail(DUET_IO_ERROR, "another error");
    CHECK(duet_error_status() == DUET_IO_ERROR, "the status is not that of the last error");
    REFUSED(duet_new_shape(DUET_F32, 9, size), "the number of axes (9)");
    REFUSED(duet_new_shape(DUET_DTYPE_COUNT, 2, size), "type");
    REFUSED(duet_new_shape(DUET_F32, 2, NULL), "NULL");
    REFUSED(duet_wrap_shape(NULL, DUET_F64, 0, NULL), "NULL");
    REFUSED(duet_wrap_shape((char *)memory + 4, DUET_F64, 0, NULL), "must be aligned");
    REFUSED(duet_slice(m, 1, 2), "duet_slice(m: f32[2,3]): 2 elements from index 1");
    REFUSED(duet_slice(m, -1, 1), "duet_slice");
    REFUSED(duet_slice(m, 1, INT64_MAX), "duet_slice");
    REFUSED(duet_row(m, 2), "duet_row");
    REFUSED(duet_column(m, 3), "duet_column");
    REFUSED(duet_column(v, 0), "duet_column(m: f32[4]): m must have 2 axes");
    REFUSED(duet_submatrix(m, 0, 2, 2, 2), "axis 1");
    REFUSED(duet_reshaped_shape(m, 1, five),
            "duet_reshaped(m: f32[2,3]): to become f32[5], m must have the same number of elements");
    REFUSED(duet_reshaped_shape(t, 1, six), "m must be copied (24 bytes)");
    for (int i = 0; i < 2; i++) {
        duet_matrix *x = i ? gone : NULL;
        const char *why = i ? "was freed" : "must not be NULL";
        REFUSED(duet_read(x), why);
        REFUSED(duet_update(x), why);
        REFUSED(duet_overwrite(x), why);
        REFUSED(duet_device_read(x), why);
        REFUSED(duet_slice(x, 0, 1), why);
        REFUSED(duet_row(x, 0), why);
        REFUSED(duet_column(x, 0), why);
        REFUSED(duet_submatrix(x, 0, 0, 1, 1), why);
        REFUSED(duet_transposed(x), why);
        REFUSED(duet_reshaped_shape(x, 1, six), why);
        CHECK(duet_rank(x) == 0 && duet_count(x) == 0 && duet_size(x, 0) == 0 && duet_stride(x, 0) == 0 &&
                  duet_type(x) == 0,
              "the properties of a bad matrix are not 0");
        CHECK(matrix_check("who", x) == DUET_BAD_ARGUMENT, "matrix_check accepts a bad matrix");
    }
    CHECK(duet_size(m, 2) == 0 && duet_size(m, -1) == 0 && duet_size(m, 1) == 3 && duet_stride(m, 0) == 3,
          "the size of an axis is wrong");
    duet_free(NULL);
    duet_free(&freed);
    duet_matrix *again = gone;
    duet_free(&again);
    CHECK(!again && strstr(duet_error(), "already freed"), "%s", duet_error());

    fakes.absent = "no such thing here";
    REFUSED(duet_device_read(m), "duet_device_read: no such thing here");
    REFUSED(duet_device_overwrite(m), "no such thing here");
    CHECK(duet_read(m) != NULL, "duet_read failed");
    fakes.absent = NULL;
    duet_free(&m);
    duet_free(&v);
    duet_free(&t);
    tap_point("invalid arguments");
}

/* ---- the pool ---- */

static duet_memory of_gpu(void) { return duet_memory_of(DUET_GPU); }

static void test_pool_sizes(void)
{
    for (size_t n = 0; n < 1u << 22; n += 1 + n / 37) {
        void *p;
        size_t used = duet_memory_of(DUET_CPU).used;
        if (!CHECK(!pool_take(HOST, n, 0, &p), "%s", duet_error())) break;
        size_t got = duet_memory_of(DUET_CPU).used - used;
        CHECK(got >= n && (got - n <= n / 8 || got - n <= 64), "%zu bytes take %zu", n, got);
        CHECK((uintptr_t)p % 64 == 0, "%p is not aligned", p);
        memset(p, 1, n);
        pool_give(HOST, p, 0);
        CHECK(duet_memory_of(DUET_CPU).used == used, "%zu bytes were not released", n);
    }
    void *a = NULL, *b = NULL;
    CHECK(!pool_take(HOST, 0, 0, &a) && !pool_take(HOST, 0, 0, &b) && a != b && a && b,
          "two blocks of 0 bytes are equal");
    pool_give(HOST, a, 0);
    pool_give(HOST, b, 0);
    pool_give(HOST, NULL, 0);
    size_t cached = duet_memory_of(DUET_CPU).cached;
    pool_give(HOST, a, 0);
    pool_give(HOST, &a, 0);
    CHECK(duet_memory_of(DUET_CPU).cached == cached, "the pool accepted a block that it does not own");
    CHECK(pool_take(HOST, SIZE_MAX, 0, &a) == DUET_NO_MEMORY &&
              pool_take(HOST, SIZE_MAX / 2, 0, &a) == DUET_NO_MEMORY,
          "allocating too much did not fail");
    duet_memory_trim();
    tap_point("block sizes");
}

static void test_pool_queues(void)
{
    void *a = NULL, *b = NULL, *p = NULL;
    uint64_t waits = fakes.made[WAIT];
    CHECK(!pool_take(DEFAULT_GPU, 1000, 1, &a) && !pool_take(DEFAULT_GPU, 1000, 2, &b), "%s", duet_error());
    pool_give(DEFAULT_GPU, a, 1u << 1);
    pool_give(DEFAULT_GPU, b, 1u << 2);
    CHECK(!pool_take(DEFAULT_GPU, 1000, 1, &p) && p == a && fakes.made[WAIT] == waits,
          "the queue did not get its own block");
    pool_give(DEFAULT_GPU, p, 1u << 1);
    CHECK(!pool_take(DEFAULT_GPU, 1000, 3, &p) && p == b && fakes.made[WAIT] == waits + 1,
          "the queue did not get the oldest block, or did not wait for its queue");
    pool_give(DEFAULT_GPU, p, 0);
    CHECK(!pool_take(DEFAULT_GPU, 1000, 4, &b) && b == a && fakes.made[WAIT] == waits + 2,
          "the queue did not get the other block");
    CHECK(!pool_take(DEFAULT_GPU, 1000, 5, &b) && b == p && fakes.made[WAIT] == waits + 3,
          "the queue did not wait for a queue that had waited for the block");
    pool_give(DEFAULT_GPU, b, 1u << 5 | 1u << 6 | 1u << 7);
    fakes.fail_in[WAIT] = 2;
    size_t cached = of_gpu().cached;
    CHECK(pool_take(DEFAULT_GPU, 1000, 5, &p) == DUET_DEVICE_ERROR && of_gpu().cached == cached,
          "a failed wait removed the block from the cache");
    CHECK(!pool_take(DEFAULT_GPU, 1000, 5, &p) && p == b && fakes.made[WAIT] == waits + 6,
          "the queue did not wait again after the failed wait");
    pool_give(DEFAULT_GPU, p, 0);
    pool_give(DEFAULT_GPU, a, 1u << 4);
    duet_counts before = duet_stats();
    duet_memory_trim();
    CHECK(ADDED(synchronisations) == 2 && fakes.live[DEFAULT_GPU] == 0,
          "the block was freed without waiting for queues 4 and 5");
    tap_point("blocks and queues");
}

static void test_pool_limit(void)
{
    void *p[4];
    duet_counts before = duet_stats();
    CHECK(!duet_memory_limit(DUET_GPU, 3000) && of_gpu().limit == 3000, "%s", duet_error());
    for (int i = 0; i < 2; i++) CHECK(!pool_take(DEFAULT_GPU, 1024, 0, &p[i]), "%s", duet_error());
    CHECK(of_gpu().used == 2048 && of_gpu().cached == 0, "the used bytes are wrong");
    CHECK(pool_take(DEFAULT_GPU, 1024, 0, &p[2]) == DUET_NO_MEMORY,
          "an allocation above the limit did not fail");
    for (const char *const *part =
             (const char *[]){ "1024", "used 2048", "cached 0", "limit 3000", "GPU", NULL };
         *part; part++)
        CHECK(strstr(duet_error(), *part), "\"%s\" has no \"%s\"", duet_error(), *part);
    pool_give(DEFAULT_GPU, p[0], 1);
    CHECK(of_gpu().used == 1024 && of_gpu().cached == 1024, "the cached bytes are wrong");
    CHECK(!pool_take(DEFAULT_GPU, 1500, 0, &p[2]) && of_gpu().cached == 0,
          "cached blocks were not freed for a new one");
    CHECK(fakes.live[DEFAULT_GPU] == of_gpu().used, "cached blocks are still allocated");
    pool_give(DEFAULT_GPU, p[1], 0);
    pool_give(DEFAULT_GPU, p[2], 0);
    CHECK(!duet_memory_limit(DUET_GPU, 1500) && of_gpu().cached <= 1500,
          "a lower limit did not free cached blocks");
    CHECK(!duet_memory_limit(DUET_GPU, 0) && of_gpu().limit == 0, "the limit was not removed");
    CHECK(of_gpu().peak >= 2560, "the peak is %zu", of_gpu().peak);
    CHECK(duet_memory_limit(DUET_AUTO, 1) == DUET_BAD_ARGUMENT && duet_memory_of(DUET_AUTO).peak == 0,
          "DUET_AUTO was accepted");
    CHECK(duet_memory_limit((duet_place)7, 1) == DUET_BAD_ARGUMENT, "place 7 was accepted");

    CHECK(!pool_take(DEFAULT_GPU, 100, 0, &p[0]), "%s", duet_error());
    pool_give(DEFAULT_GPU, p[0], 0);
    fakes.fail_in[ALLOC] = 1;
    CHECK(!pool_take(DEFAULT_GPU, 5000, 0, &p[0]) && of_gpu().cached == 0,
          "an allocation failed although cached blocks could be freed");
    fakes.fail_in[ALLOC] = 1;
    fakes.stubborn = true;
    CHECK(pool_take(DEFAULT_GPU, 9000, 0, &p[1]) == DUET_NO_MEMORY &&
              strstr(duet_error(), "the system could not allocate"),
          "%s", duet_error());
    pool_give(DEFAULT_GPU, p[0], 0);
    duet_memory_trim();
    CHECK(of_gpu().used == 0 && of_gpu().cached == 0 && fakes.live[DEFAULT_GPU] == 0,
          "memory was not released");
    CHECK(ADDED(pool_hits) == 0 && ADDED(pool_misses) == 7, "there were %d misses", (int)ADDED(pool_misses));
    tap_point("the memory limit");
}

/* One block at a time, each larger than the one before. */
static void test_pool_growth(void)
{
    const int both[] = { HOST, DEFAULT_GPU };
    for (int d = 0; d < 2; d++) {
        const duet_place place = d ? DUET_GPU : DUET_CPU;
        const size_t freely = (size_t)(d ? 256 : 32) << 20;
        for (double bytes = 1 << 20; bytes < 200 << 20; bytes *= 1.09) {
            void *p = NULL;
            CHECK(!pool_take(both[d], (size_t)bytes, 0, &p), "%s", duet_error());
            const duet_memory m = duet_memory_of(place);
            CHECK(m.cached <= 2 * m.used || m.cached <= freely, "%zu bytes are used, %zu are cached", m.used,
                  m.cached);
            pool_give(both[d], p, 1);
        }
        CHECK(duet_memory_of(place).cached >= 200 << 20, "hardly anything is cached");
    }
    duet_memory_trim();
    CHECK(fakes.live[DEFAULT_GPU] == 0 && of_gpu().cached == 0, "memory was not released");
    tap_point("the pool keeps a small multiple of what is in use");
}

/* Sizes that come again are kept, even if only one of them is in use at a time. */
static void test_pool_cycle(void)
{
    enum { SIZES = 12, ROUNDS = 10 };
    for (int round = 0; round < ROUNDS; round++) {
        const duet_counts before = duet_stats();
        for (int i = 0; i < SIZES; i++) {
            void *p = NULL;
            CHECK(!pool_take(HOST, ((size_t)16 << 20) + ((size_t)i << 21), 0, &p), "%s", duet_error());
            pool_give(HOST, p, 0);
        }
        if (round == ROUNDS - 1) CHECK(ADDED(pool_misses) == 0, "%d misses", (int)ADDED(pool_misses));
    }
    duet_memory_trim();
    tap_point("the pool keeps sizes that come again");
}

/* More headers than a slab, more blocks than buckets; failed allocations leave no trace. */
static void test_many(void)
{
    enum { MANY = 3000 };
    static duet_matrix *m[MANY];
    int refusals = 0;
    for (int i = 0; i < MANY; i++) {
        if (can_refuse() && i % 5 == 0) refuse_in = 1 + i % 3;
        else refuse_in = 0;
        m[i] = duet_new_shape(DUET_F64, 1, four);
        double *p = m[i] ? duet_overwrite(m[i]) : NULL;
        refusals += can_refuse() && !p;
        refuse_in = 0;
        if (!p) duet_free(&m[i]);
        if (p) p[0] = i;
    }
    for (int i = 0; i < MANY; i++)
        if (m[i]) CHECK(((const double *)duet_read(m[i]))[0] == i, "matrix %d was not made", i);
    for (int i = 0; i < MANY; i++) duet_free(&m[i]);
    CHECK(duet_memory_of(DUET_CPU).used == 0, "%zu bytes are used", duet_memory_of(DUET_CPU).used);
    CHECK(!can_refuse() || refusals > 100, "%d allocations failed", refusals);
    duet_memory_trim();
    tap_point("many matrices");
}

/* ---- threads ---- */

#define CROWD 8

static pthread_barrier_t gate;
static duet_matrix *shared[2];
static bool well[CROWD];
static int queue_of[CROWD];

/* All threads read one matrix that is valid on the host only, and one that is valid on the device
 * only, on both sides. */
static void *reader(void *arg)
{
    int i = *(int *)arg;
    queue_of[i] = thread_get()->queue;
    pthread_barrier_wait(&gate);
    bool ok = true;
    for (int k = 0; k < 2; k++) {
        const float *d = duet_device_read(shared[(i + k) % 2]), *h = duet_read(shared[(i + k) % 2]);
        ok &= d && h && h[3] == 3;
    }
    pthread_barrier_wait(&gate); /* before any thread frees its queue */
    well[i] = ok;
    return NULL;
}

/* Each thread makes, uses and frees its own matrices. */
static void *worker(void *arg)
{
    int i = *(int *)arg;
    bool ok = true;
    pthread_barrier_wait(&gate);
    for (int n = 0; n < 300; n++) {
        const int64_t size[] = { 1 + (i * 31 + n * 7) % 200 };
        duet_matrix *m = duet_new_shape(DUET_F32, 1, size), *v = duet_slice(m, 0, 1);
        float *p = duet_overwrite(m);
        for (int64_t k = 0; k < size[0]; k++) p[k] = (float)(i + n + k);
        ok &= duet_device_update(m) != NULL;
        duet_free(&m);
        const float *r = duet_read(v);
        ok &= r && r[0] == (float)(i + n);
        if (n % 50 == 0) duet_memory_trim();
        duet_free(&v);
    }
    well[i] = ok;
    return NULL;
}

static void crowd(void *(*what)(void *))
{
    pthread_t who[CROWD];
    int number[CROWD];
    pthread_barrier_init(&gate, NULL, CROWD);
    for (int i = 0; i < CROWD; i++) {
        number[i] = i;
        well[i] = false;
        pthread_create(&who[i], NULL, what, &number[i]);
    }
    for (int i = 0; i < CROWD; i++) pthread_join(who[i], NULL);
    for (int i = 0; i < CROWD; i++) CHECK(well[i], "thread %d has wrong results", i);
    pthread_barrier_destroy(&gate);
}

static void test_readers(void)
{
    duet_counts before = duet_stats();
    for (int n = 0; n < 20; n++) {
        for (int k = 0; k < 2; k++) {
            shared[k] = duet_new_shape(DUET_F32, 1, four);
            float *p = duet_overwrite(shared[k]);
            for (int i = 0; i < 4; i++) p[i] = (float)i;
        }
        (void)duet_device_update(shared[1]);
        crowd(reader);
        for (int i = 0; i < CROWD; i++)
            for (int j = 0; j <= i; j++)
                CHECK(queue_of[i] != (j == i ? thread_get()->queue : queue_of[j]),
                      "threads %d and %d have the same queue", i, j);
        duet_free(&shared[0]);
        duet_free(&shared[1]);
    }
    CHECK(ADDED(uploads) == 40 && ADDED(downloads) == 20,
          "%d uploads and %d downloads, not one of each matrix", (int)ADDED(uploads), (int)ADDED(downloads));
    tap_point("many threads read");
}

static void test_workers(void)
{
    crowd(worker);
    duet_memory_trim();
    CHECK(duet_memory_of(DUET_CPU).used == 0 && of_gpu().used == 0, "memory was not released");
    CHECK(fakes.live[HOST] == 0 && fakes.live[DEFAULT_GPU] == 0, "blocks were not freed");
    CHECK(!fakes.wrong, "%s", fakes.wrong);
    tap_point("many threads create, move and free matrices");
}

static int left;
static void leave(void *arg)
{
    left += *(int *)arg;
    COUNT(launches); /* counting still works */
    free(arg);
}

static void *visitor(void *arg)
{
    thread *t = thread_get();
    *(int *)arg = t->queue;
    t->slot[SLOT_PLANS] = calloc(1, sizeof(int));
    *(int *)t->slot[SLOT_PLANS] = 7;
    t->leave[SLOT_PLANS] = leave;
    t->leave[SLOT_ARENA] = leave; /* with nothing in the room */
    COUNT_N(launches, 41);
    fail(DUET_SPENT, "of that thread");
    return NULL;
}

static void test_thread_ends(void)
{
    int queue[2];
    duet_counts before = duet_stats();
    fail(DUET_SPENT, "of this thread");
    for (int i = 0; i < 2; i++) run_in_thread(visitor, &queue[i]);
    CHECK(left == 14, "%d queues are free", left);
    CHECK(ADDED(launches) == 84, "the counters of an ended thread are lost: %d", (int)ADDED(launches));
    CHECK(queue[0] == queue[1] && queue[0] != thread_get()->queue, "queues %d and %d were not used again",
          queue[0], queue[1]);
    CHECK(!strcmp(duet_error(), "of this thread"), "%s", duet_error());
    tap_point("threads end");
}

/* A thread whose state cannot be allocated. */
static void *without_memory(void *arg)
{
    refuse_in = 1;
    thread *t = thread_get();
    refuse_in = 0;
    fail(DUET_NO_MEMORY, "still a text");
    *(bool *)arg = t && t == thread_get() && !strcmp(duet_error(), "still a text") && t->place == DUET_AUTO;
    return NULL;
}

static void test_no_thread(void)
{
    bool ok = false;
    if (!can_refuse()) return;
    run_in_thread(without_memory, &ok);
    CHECK(ok, "a thread without memory does not fail properly");
    tap_point("a thread that cannot allocate its state");
}

static void test_scopes(void)
{
    thread *t = thread_get();
    CHECK(t->place == DUET_AUTO, "the place is not auto; is DUET_BACKEND set?");
    DUET_ON(DUET_GPU)
    {
        CHECK(t->place == DUET_GPU, "the outer block has no effect");
        for (int i = 0; i < 2; i++) DUET_ON(DUET_CPU)
            {
                CHECK(t->place == DUET_CPU, "the inner block has no effect");
                if (i == 0) continue; /* leaves the block */
                CHECK(t->place == DUET_CPU, "the inner block has no effect");
            }
        CHECK(t->place == DUET_GPU, "the outer block has no effect after the inner one");
        DUET_ON((duet_place)9) CHECK(t->place == DUET_GPU, "a block with a bad place changed the place");
    }
    CHECK(t->place == DUET_AUTO, "the place was not restored");
    duet_scope_close(NULL);
    tap_point("DUET_ON");
}

static void test_texts(void)
{
    CHECK(fail(DUET_SPENT, "%s and %d", "a", 1) == DUET_SPENT && !strcmp(duet_error(), "a and 1"), "%s",
          duet_error());
    CHECK(fail_at(DUET_SPENT, "main.c:12") == DUET_SPENT && !strcmp(duet_error(), "main.c:12: a and 1"), "%s",
          duet_error());
    fail_at(DUET_SPENT, "other.c:3");
    CHECK(!strcmp(duet_error(), "main.c:12: a and 1"), "%s", duet_error());
    fail(DUET_SPENT, "%s", "C:/x/y.c:7: b");
    fail_at(DUET_SPENT, "other.c:3");
    CHECK(!strcmp(duet_error(), "C:/x/y.c:7: b"), "%s", duet_error());
    fail(DUET_SPENT, "duet_add(f32[2], f32[3]): c");
    fail_at(DUET_SPENT, "my file.c:3");
    fail_at(DUET_SPENT, "my file.c:3");
    CHECK(!strcmp(duet_error(), "my file.c:3: duet_add(f32[2], f32[3]): c"), "%s", duet_error());
    fail(DUET_SPENT, "%s!", duet_error());
    fail_at(DUET_SPENT, NULL);
    CHECK(!strcmp(duet_error(), "my file.c:3: duet_add(f32[2], f32[3]): c!"), "%s", duet_error());
    fail(DUET_SPENT, "%02000d", 1);
    fail_at(DUET_SPENT, "main.c:1");
    CHECK(strlen(duet_error()) == sizeof thread_get()->text - 1, "a long text is not truncated");
    CHECK(!strcmp(duet_status_text(DUET_OK), "success") && strstr(duet_status_text(DUET_NO_MEMORY), "memory"),
          "the text of a status is wrong");
    CHECK(duet_status_text((duet_status)-1) && duet_status_text(DUET_STATUS_COUNT),
          "a bad status has no text");
    for (int s = 0; s < DUET_STATUS_COUNT; s++)
        CHECK(*duet_status_text((duet_status)s), "status %d has no text", s);
    tap_point("status texts");
}

static void test_rows(void)
{
    for (int i = 0; i < OPS_ALL; i++)
        CHECK(op_infos[i].name && op_infos[i].doc && op_infos[i].arity <= 3,
              "the properties of row %d are wrong", i);
    CHECK(op_infos[OP_fma].arity == 3 && op_infos[OP_fma].kind == KIND_MAP &&
              op_infos[OP_fma].flags & DUET_COMMUTES,
          "the properties of fma are wrong");
    CHECK(op_infos[OP_dot].arity == 2 && op_infos[OP_dot].kind == KIND_REDUCE,
          "the properties of dot are wrong");
    CHECK(op_infos[OP_conv2d].arity == 2 && op_infos[OP_conv2d].kind == KIND_DEF,
          "the properties of conv2d are wrong");
    CHECK(!strcmp(op_infos[OP_LEAF].name, "leaf") && !strcmp(op_infos[OP_STORE].name, "store") &&
              op_infos[OP_HOLE].arity == 0,
          "the name of an operator is wrong");
    tap_point("rows of ops.def");
}

static void test_marks(void)
{
    uint64_t mark = queue_sync_mark(DEFAULT_GPU, 9), ticket = queue_sync_begin(DEFAULT_GPU, 9);
    CHECK(!queue_sync_passed(DEFAULT_GPU, 9, mark), "work counts as done before a wait");
    uint64_t later = queue_sync_mark(DEFAULT_GPU, 9);
    queue_sync_end(DEFAULT_GPU, 9, ticket);
    CHECK(queue_sync_passed(DEFAULT_GPU, 9, mark) && !queue_sync_passed(DEFAULT_GPU, 9, later),
          "a wait does not cover the work queued before it");
    CHECK(!queue_wait(DEFAULT_GPU, 9, "of a test") && queue_sync_passed(DEFAULT_GPU, 9, later),
          "the next wait does not cover the remaining work");
    fakes.fail_in[SYNC] = 1;
    later = queue_sync_mark(DEFAULT_GPU, 9);
    CHECK(queue_wait(DEFAULT_GPU, 9, "of a test") && !queue_sync_passed(DEFAULT_GPU, 9, later),
          "a failed wait covers work");
    tap_point("marks of the arena");
}

int main(void)
{
    test_scopes();
    test_texts();
    test_rows();
    test_marks();
    test_few_waits();
    test_empty();
    test_bad_arguments();
    duet_memory_trim();
    test_pool_sizes();
    test_pool_queues();
    test_pool_limit();
    test_pool_growth();
    test_pool_cycle();
    test_many();
    test_readers();
    test_workers();
    test_thread_ends();
    test_no_thread();
    CHECK(!fakes.wrong, "%s", fakes.wrong);
    tap_point("the fake machines report no violation");
    fake_machines_finish();
    return tap_end();
}
