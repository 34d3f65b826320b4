/* test_placement.c - where statements run, on the fake CUDA with made-up costs: transfers are
 * weighed, and accumulated costs of missing buffers are learnt. */
#include "calibrate.h"
#include "cost.h"
#include "deferred.h"
#include "fake_cuda.h"
#include "filled.h"
#include "status.h"
#include "thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- linear costs ---- */

static void line(costs *c, enum cost kind, double start, double each)
{
    for (int i = 0; i < COST_POINTS; i++) c->seconds[kind][i] = start + each * cost_infos[kind].work[i];
}

#define CPU_START 1e-6
#define CPU_BYTE  1e-9
#define GPU_START 10e-6
#define GPU_BYTE  1e-11
#define MOVE      20e-6
#define MOVE_BYTE 1e-10

/* Curves start at their first point; all statements here are larger. */
static void script(void)
{
    costs c[COSTED] = { 0 };
    for (int k = 0; k < COST_up; k++) {
        line(&c[HOST], (enum cost)k, 1e-9, 1e-15);
        line(&c[DEFAULT_GPU], (enum cost)k, 1e-9, 1e-15);
    }
    line(&c[HOST], COST_pass, CPU_START, CPU_BYTE);
    line(&c[DEFAULT_GPU], COST_pass, GPU_START, GPU_BYTE);
    for (int k = COST_up; k < COSTS; k++) line(&c[DEFAULT_GPU], (enum cost)k, MOVE, MOVE_BYTE);
    costs_use(c, "made up");
}

static double cpu_takes(double bytes) { return CPU_START + CPU_BYTE * bytes; }
static double gpu_takes(double bytes) { return GPU_START + GPU_BYTE * bytes; }
static double move_takes(double bytes) { return MOVE + MOVE_BYTE * bytes; }

/* ---- matrices, and where statements ran ---- */

static bool on_gpu(duet_matrix *m, duet_expr e)
{
    const uint64_t before = duet_stats().launches;
    const duet_status s = duet_set(m, e);
    CHECK(s == DUET_OK, "%s", duet_error());
    return duet_stats().launches != before;
}

static uint64_t moves(void)
{
    const duet_counts c = duet_stats();
    return c.uploads + c.downloads;
}

/* ---- decisions ---- */

/* y = 2 x reads and writes 8 bytes for each element and transfers 4. */
static bool first_on_gpu(int64_t n, bool on_device)
{
    duet_matrix *x = new_filled(n, 3), *y = duet_new(DUET_F32, n);
    if (on_device) CHECK(duet_device_update(x) != NULL, "%s", duet_error());
    const bool gpu = on_gpu(y, duet_mul(2, x));
    holds(y, 6, "y = 2 x");
    duet_free(&x);
    duet_free(&y);
    return gpu;
}

static void test_first(void)
{
    int changes[2] = { 0 };
    for (int device = 0; device < 2; device++)
        for (int64_t n = 1000, last = -1; n < 200000; n += n / 7) {
            const double bytes = 8.0 * (double)n, move = move_takes(4.0 * (double)n);
            const double gpu = gpu_takes(bytes) + (device ? 0 : move),
                         cpu = cpu_takes(bytes) + (device ? move : 0);
            const bool want = gpu <= cpu, got = first_on_gpu(n, device);
            CHECK(got == want, "%d elements on the %s: on the %s", (int)n, device ? "device" : "host",
                  got ? "GPU" : "CPU");
            changes[device] += last >= 0 && last != want;
            last = want;
        }
    CHECK(changes[0] == 1 && changes[1] == 0, "these sizes cannot show a change of the device: %d, %d",
          changes[0], changes[1]);
    tap_point("a statement runs where its cost and that of the copies is least");
}

/* x stays on the device and is used repeatedly. */
static void repeat(int64_t n)
{
    const double bytes = 8.0 * (double)n, saved = cpu_takes(bytes) - gpu_takes(bytes),
                 move = move_takes(4.0 * (double)n);
    duet_matrix *x = new_filled(n, 3), *y = duet_new(DUET_F32, n);
    int want = 0, got = 0;
    for (double missed = 0; move - missed > saved; want++) missed += saved;
    while (got < 10 * want + 100 && !on_gpu(y, duet_mul(2, x))) got++;
    CHECK(abs(got - want) <= 1, "%d elements: moved after %d statements, not %d", (int)n, got, want);
    const uint64_t before = moves();
    for (int i = 0; i < 50; i++) CHECK(on_gpu(y, duet_mul(2, x)), "the statement is not on the GPU again");
    CHECK(moves() == before, "%d copies were made after the move", (int)(moves() - before));
    holds(y, 6, "y = 2 x");
    duet_free(&x);
    duet_free(&y);
}

static void test_repeated(void)
{
    repeat(1200);
    repeat(1300);
    repeat(1500);
    repeat(2000);
    repeat(3000);
    tap_point("a matrix is copied when its accrued cost reaches the cost of the copy");
}

/* A new batch from the host each time. */
static void test_fresh(void)
{
    duet_matrix *x = new_filled(1500, 1), *w = new_filled(1500, 1), *y = duet_new(DUET_F32, 1500);
    for (int i = 0; i < 100; i++) {
        refill(x, (float)i);
        CHECK(!on_gpu(y, duet_mul(2, x)), "call %d ran on the GPU", i);
    }
    for (int i = 0; i < 100; i++)
        CHECK(duet_update(w) && !on_gpu(w, duet_mul(2, w)), "call %d after an update ran on the GPU", i);
    free_all(&x, &w, &y);
    tap_point("a matrix that the user overwrites loses its accrued cost");
}

/* A small statement reads what a large one has computed on the device. On the CPU it would be
 * faster but for that download, which recurs. v needs to be transferred only once, which keeps the
 * statement on the device. */
static void test_follows(void)
{
    enum { LARGE = 10000, FEW = 300 };
    duet_matrix *x = new_filled(LARGE, 3), *y = duet_new(DUET_F32, LARGE), *part = duet_slice(y, 0, FEW),
                *v = new_filled(FEW, 1), *z = duet_new(DUET_F32, FEW);
    CHECK(part && cpu_takes(12 * FEW) + move_takes(4 * LARGE) < gpu_takes(12 * FEW) + move_takes(4 * FEW),
          "these sizes cannot show a change of the device");
    int last = -1;
    for (int i = 0; i < 50; i++) {
        CHECK(on_gpu(y, duet_mul(2, x)), "the statement with the large matrix ran on the CPU, call %d", i);
        if (!on_gpu(z, duet_add(part, v))) last = i;
    }
    CHECK(last >= 0 && last < 4, "the last call on the CPU was %d", last);
    const uint64_t before = moves();
    CHECK(on_gpu(y, duet_mul(2, x)) && on_gpu(z, duet_add(part, v)) && moves() == before,
          "the matrix was copied again, or the statement ran on the CPU");
    holds(z, 7, "z");
    free_all(&part, &x, &y);
    free_all(&v, &z, &z);
    tap_point("frequent downloads count as a reason to copy the other operands");
}

static char *explained(duet_matrix *y, duet_matrix *x, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    const duet_expr e = duet_mul(2, x);
    CHECK(duet_explain(out, y, e) == DUET_OK, "%s", duet_error());
    CHECK(duet_drop(e) == DUET_OK, "duet_drop failed");
    fclose(out);
    return text;
}

/* The statement alone is faster on the GPU, but not with the download of its result. */
static void test_read_back(void)
{
    enum { SIZE = 2000 };
    char text[2000] = "";
    duet_matrix *x = new_filled(SIZE, 3), *y = duet_new(DUET_F32, SIZE);
    CHECK(gpu_takes(8 * SIZE) < cpu_takes(8 * SIZE) &&
              cpu_takes(8 * SIZE) < gpu_takes(8 * SIZE) + move_takes(4 * SIZE),
          "these sizes cannot show a change of the device");
    CHECK(duet_device_update(x) != NULL, "%s", duet_error());
    for (int i = 0; i < 20; i++)
        CHECK(on_gpu(y, duet_mul(2, x)), "call %d ran on the CPU although the host does not read the result",
              i);
    int last = -1;
    for (int i = 0; i < 20; i++) {
        holds(y, 6, "y");
        if (on_gpu(y, duet_mul(2, x))) last = i;
    }
    CHECK(last < 5, "the host reads each result, but call %d still ran on the GPU", last);
    holds(y, 6, "y");
    CHECK(strstr(explained(y, x, text, sizeof text), "and 20.8 us to copy the result back to the host\n"),
          "%s", text);
    (void)on_gpu(y, duet_mul(2, x)); /* the result of the previous statement was read */
    for (int i = 0; i < 20; i++)
        CHECK(on_gpu(y, duet_mul(2, x)),
              "call %d ran on the CPU although the host no longer reads the result", i);
    holds(y, 6, "y");
    duet_free(&x);
    duet_free(&y);
    tap_point("results that the user reads are charged with their download");
}

static void test_in_place(void)
{
    duet_matrix *x = new_filled(2000, 1), *y = new_filled(2000, 0);
    int first = -1;
    for (int i = 0; i < 200; i++)
        if (on_gpu(y, duet_add(x, y)) && first < 0) first = i;
    const duet_counts c = duet_stats();
    CHECK(first > 0 && first < 20, "the first call on the GPU was %d", first);
    for (int i = 0; i < 50; i++) CHECK(on_gpu(y, duet_add(x, y)), "the statement is not on the GPU again");
    CHECK(duet_stats().uploads == c.uploads && duet_stats().downloads == c.downloads,
          "the matrix was copied again, or the statement ran on the CPU");
    holds(y, 250, "y = x + y");
    duet_free(&x);
    duet_free(&y);
    tap_point("in-place sums move with their operands");
}

/* The small statement alone would be faster on the CPU, but the large one, which uses the same
 * matrix, runs on the GPU. */
static void test_chain(void)
{
    duet_matrix *big = new_filled(100000, 1), *part = duet_slice(big, 0, 1000), *s = duet_new(DUET_F32, 1000);
    CHECK(part != NULL, "%s", duet_error());
    CHECK(on_gpu(big, duet_mul(1, duet_abs(big))), "the statement with the large matrix ran on the CPU");
    const uint64_t before = moves();
    for (int i = 0; i < 100; i++)
        CHECK(on_gpu(s, duet_neg(part)) && on_gpu(big, duet_abs(big)), "statement %d did not run on the GPU",
              i);
    CHECK(moves() == before, "%d copies were made", (int)(moves() - before));
    holds(s, -1, "s");
    free_all(&part, &big, &s);
    tap_point("a chain of statements does not alternate between devices");
}

/* Two views of one matrix are transferred once; otherwise the CPU would be faster. */
static void test_views(void)
{
    const int64_t half = 3000;
    duet_matrix *x = new_filled(2 * half, 1), *a = duet_slice(x, 0, half), *b = duet_slice(x, half, half),
                *y = duet_new(DUET_F32, half);
    const double bytes = 12.0 * (double)half, move = move_takes(8.0 * (double)half);
    CHECK(gpu_takes(bytes) + move < cpu_takes(bytes) && gpu_takes(bytes) + 2 * move > cpu_takes(bytes),
          "these sizes cannot show a change of the device");
    CHECK(on_gpu(y, duet_add(a, b)), "the statement did not run on the GPU, which needs one copy only");
    holds(y, 2, "y");
    free_all(&a, &b, &y);
    duet_free(&x);
    tap_point("a copy is charged once");
}

static void test_explain(void)
{
    char text[2000] = "";
    duet_matrix *x = new_filled(2000, 1), *y = duet_new(DUET_F32, 2000);
    for (int i = 0; i < 100; i++) explained(y, x, text, sizeof text);
    CHECK(strstr(text, "on the CPU: 1 step") && strstr(text, "; 17 us expected\n"), "%s", text);
    CHECK(strstr(text, "GPU: would take 1 step, 10.2 us expected, and 20.8 us to copy its operands\n"), "%s",
          text);
    CHECK(!on_gpu(y, duet_mul(2, x)), "duet_explain changed the device of a statement");
    CHECK(strstr(explained(y, x, text, sizeof text),
                 "to copy its operands; without these copies, earlier statements have already lost 6.84 us"),
          "%s", text);
    duet_free(&x);
    duet_free(&y);
    tap_point("duet_explain shows both devices and accrues no cost");
}

static void test_groups(void)
{
    duet_matrix *x = new_filled(2000, 1), *y = duet_new(DUET_F32, 2000), *z = duet_new(DUET_F32, 2000);
    int calls = 0;
    for (uint64_t before = duet_stats().launches; calls < 50 && duet_stats().launches == before; calls++)
        CHECK(duet_set_all({ y, duet_mul(2, x) }, { z, duet_mul(3, x) }) == DUET_OK, "%s", duet_error());
    CHECK(calls > 1 && calls < 10, "%d calls", calls);
    holds(y, 2, "y");
    holds(z, 3, "z");
    free_all(&x, &y, &z);
    tap_point("duet_set_all accrues costs too");
}

static void test_random(void)
{
    duet_matrix *small = duet_new(DUET_F32, 1000), *large = duet_new(DUET_F32, 100000);
    const uint64_t before = duet_stats().launches;
    CHECK(duet_random_uniform(small, 1, 0, 1) == DUET_OK && duet_stats().launches == before,
          "few random numbers were not drawn on the CPU: %s", duet_error());
    CHECK(duet_random_uniform(large, 1, 0, 1) == DUET_OK && duet_stats().launches > before,
          "many random numbers were not drawn on the GPU: %s", duet_error());
    duet_free(&small);
    duet_free(&large);
    tap_point("random numbers are generated on the cheaper device");
}

/* Cached plans use the present costs. */
static void test_new_costs(void)
{
    duet_matrix *x = new_filled(100000, 1), *y = duet_new(DUET_F32, 100000);
    CHECK(on_gpu(y, duet_neg(x)), "the first statement ran on the CPU");
    costs dear[COSTED] = { *costs_now(HOST), *costs_now(DEFAULT_GPU) };
    line(&dear[DEFAULT_GPU], COST_pass, 1, GPU_BYTE);
    costs_use(dear, "made up, and dear");
    CHECK(!on_gpu(y, duet_neg(x)), "the statement ran on the GPU although that is slow");
    script();
    CHECK(on_gpu(y, duet_neg(x)), "the statement ran on the CPU although the GPU is fast again");
    holds(y, -1, "y");
    duet_free(&x);
    duet_free(&y);
    tap_point("cached plans use the current costs");
}

static void *use_shared(void *shared)
{
    const char *wrong = NULL;
    duet_matrix *x = shared, *y = duet_new(DUET_F32, duet_count(x));
    for (int i = 0; i < 40 && !wrong; i++)
        if (duet_set(y, duet_mul(i, x)) != DUET_OK) wrong = "a statement failed";
    const float *p = wrong ? NULL : duet_read(y);
    if (!p || p[0] != 78 || p[duet_count(y) - 1] != 78) wrong = "a wrong value";
    duet_free(&y);
    return (void *)(uintptr_t)wrong;
}

static void test_threads(void)
{
    enum { THREADS = 6 };
    pthread_t t[THREADS];
    void *wrong[THREADS];
    duet_matrix *x = new_filled(1500, 2);
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, use_shared, x);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], &wrong[i]);
    for (int i = 0; i < THREADS; i++) CHECK(!wrong[i], "thread %d: %s", i, (const char *)wrong[i]);
    duet_free(&x);
    tap_point("threads that share a matrix");
}

/* ---- the GPU was chosen but has no memory. Only the device has x, and each statement computes y =
 * 6 ---- */

enum { ROOMY = 50000 };
static duet_matrix *room_x, *room_y, *room_z;

static duet_status doubled(void) { return duet_set(room_y, duet_mul(2, room_x)); }
static duet_status in_place(void) { return duet_iadd(room_y, duet_sub(room_x, 4)); }
static duet_status drawn(void) { return duet_random_integers(room_y, 1, 6, 7); }
static duet_status together(void)
{
    return duet_set_all({ room_z, duet_mul(3, room_x) }, { room_y, duet_sub(room_z, room_x) });
}
static duet_status recorded(void)
{
    duet_status s = duet_record_begin(), done = doubled();
    duet_recording *r = duet_record_end();
    CHECK(!r == !!done, "status %d, and a recording: %d", (int)done, r != NULL);
    if (r) {
        refill(room_y, 1);
        s = duet_replay(r);
    }
    duet_recording_free(&r);
    if (r || s != DUET_OK) return s;
    return done;
}

static const struct {
    const char *name;
    duet_status (*run)(void);
} crowded[] = { { "y = 2 x", doubled },
                { "y += x - 4", in_place },
                { "drawn", drawn },
                { "at once", together },
                { "recorded", recorded } };

static void new_room(void)
{
    room_x = duet_new(DUET_F32, ROOMY);
    room_y = new_filled(ROOMY, 7);
    room_z = duet_new(DUET_F32, ROOMY);
    CHECK(duet_set_on(DUET_GPU, room_x, 3) == DUET_OK && duet_synchronize() == DUET_OK, "%s", duet_error());
    duet_memory_trim();
}

static void no_more(duet_place place)
{
    CHECK(duet_memory_limit(place, duet_memory_of(place).used) == DUET_OK, "%s", duet_error());
}

static void free_room(void)
{
    CHECK(!duet_memory_limit(DUET_CPU, 0) && !duet_memory_limit(DUET_GPU, 0), "%s", duet_error());
    free_all(&room_x, &room_y, &room_z);
}

static void test_no_room(void)
{
    for (size_t i = 0; i < sizeof crowded / sizeof *crowded; i++) {
        const char *name = crowded[i].name;
        new_room();
        no_more(DUET_GPU);
        DUET_ON(DUET_GPU)
        {
            /* where x is not an operand, its buffer is freed */
            const duet_status alone = crowded[i].run();
            CHECK(alone == (crowded[i].run == drawn ? DUET_OK : DUET_NO_MEMORY),
                  "%s, only on the GPU: status %d", name, (int)alone);
            holds(room_y, alone == DUET_OK ? 6 : 7, name);
        }
        CHECK(crowded[i].run() == DUET_OK, "%s: %s", name, duet_error());
        holds(room_y, 6, name);
        holds(room_x, 3, name);
        free_room();
        new_room();
        no_more(DUET_GPU);
        no_more(DUET_CPU);
        const duet_status st = crowded[i].run();
        CHECK(st == (crowded[i].run == drawn ? DUET_OK : DUET_NO_MEMORY),
              "%s, without memory anywhere: status %d", name, (int)st);
        if (st != DUET_OK && crowded[i].run != recorded)
            CHECK(strstr(duet_error(), "on the GPU"), "%s: %s", name, duet_error());
        holds(room_y, st == DUET_OK ? 6 : 7, name);
        free_room();
    }
    tap_point("with place AUTO, the CPU runs what the GPU has no memory for");
}

/* The device itself is full, and no limit is set. *hit: the n-th call of CUDA has failed meanwhile. */
static duet_status run_full(uint64_t n, bool *hit)
{
    new_room();
    fake_memory(fake_count().memory + 2 * ROOMY);
    fake_fail(n);
    const duet_status st = together();
    *hit = fake_failed();
    fake_fail(0);
    fake_memory((size_t)1 << 36);
    if (st == DUET_OK || st == DUET_NO_MEMORY) holds(room_y, st == DUET_OK ? 6 : 7, "y");
    free_room();
    return st;
}

static void test_full(void)
{
    bool hit = false;
    CHECK(run_full(0, &hit) == DUET_OK, "%s", duet_error());
    for (uint64_t n = 1; n == 1 || hit; n++) {
        const duet_status st = run_full(n, &hit);
        CHECK(st == DUET_OK || (hit && st == DUET_DEVICE_ERROR), "call %d: status %d: %s", (int)n, (int)st,
              duet_error());
    }
    tap_point("with place AUTO, the CPU runs when the memory limit of the GPU is reached");
}

/* ---- deferred work of other threads ---- */

static int other_queue;

static void *use_room(void *unused)
{
    duet_matrix *own = duet_new(DUET_F32, duet_size(room_y, 0));
    other_queue = thread_get()->queue;
    DUET_ON(DUET_GPU) CHECK(duet_set(own, duet_add(room_y, 1)) == DUET_OK, "%s", duet_error());
    duet_free(&own);
    return unused;
}

static duet_status launch_nothing(deferred_work *h, bool reported)
{
    return fail(DUET_NO_MEMORY, "what was held back finds no memory");
}
static bool uses_all(const deferred_work *h, const struct storage *b) { return true; }

static void hold(deferred_work *h)
{
    deferred_lock(other_queue);
    deferred_set(other_queue, h);
    deferred_unlock(other_queue);
}

/* Another thread has read y and defers work for which there is no memory. A statement that writes y
 * gets the error and does not run on the CPU instead. */
static void test_held(void)
{
    duet_status (*const run[])(void) = { doubled, drawn };
    for (int i = 0; i < 2; i++) {
        deferred_work h = { launch_nothing, uses_all };
        new_room();
        pthread_t t;
        CHECK(!pthread_create(&t, NULL, use_room, NULL) && !pthread_join(t, NULL),
              "the thread could not be created");
        hold(&h);
        const duet_status st = run[i]();
        CHECK(st == DUET_NO_MEMORY && strstr(duet_error(), "held back"), "%d: status %d: %s", i, (int)st,
              duet_error());
        CHECK(deferred_queues_now() == 0, "the statement is still deferred");
        CHECK(run[i]() == DUET_OK, "%s", duet_error());
        free_room();
    }
    tap_point("a failure of another thread's deferred statement is reported");
}

int main(void)
{
    duet_auto_replay(0); /* launches show where a statement ran */
    setenv("DUET_CALIBRATE", "0", 1);
    costs_prepare();
    script();
    test_first();
    test_repeated();
    test_fresh();
    test_follows();
    test_read_back();
    test_in_place();
    test_chain();
    test_views();
    test_explain();
    test_groups();
    test_random();
    test_new_costs();
    test_threads();
    for (int replayed = 0; replayed < 2; replayed++) {
        duet_auto_replay(replayed);
        test_no_room();
        test_full();
        test_held();
    }
    return tap_end();
}
