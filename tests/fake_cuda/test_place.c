/* test_place.c - where statements run, on the pretended CUDA and with costs made up: what moves is weighed, what was missed is learnt; memory that
 * travels is pinned; and machines are measured. */
#include "cost.h"
#include "fake_cuda.h"
#include "measure.h"
#include "status.h"
#include "tap.h"
#include "thread.h"
#include <duet/duet.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- costs of straight lines ---- */

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

/* Curves begin at their first point: statements here are all larger. */
static void script(void)
{
    costs c[SIDES] = { 0 };
    for (int k = 0; k < COST_up; k++) line(&c[HOST], (enum cost)k, 1e-9, 1e-15), line(&c[DEVICE], (enum cost)k, 1e-9, 1e-15);
    line(&c[HOST], COST_pass, CPU_START, CPU_BYTE), line(&c[DEVICE], COST_pass, GPU_START, GPU_BYTE);
    for (int k = COST_up; k < COSTS; k++) line(&c[DEVICE], (enum cost)k, MOVE, MOVE_BYTE);
    costs_use(c, "made up");
}

static double cpu_takes(double bytes) { return CPU_START + CPU_BYTE * bytes; }
static double gpu_takes(double bytes) { return GPU_START + GPU_BYTE * bytes; }
static double move_takes(double bytes) { return MOVE + MOVE_BYTE * bytes; }

/* ---- matrices, and where statements went ---- */

static duet_matrix *new_filled(int64_t n, float value)
{
    duet_matrix *m = duet_new(DUET_F32, n);
    float *p = m ? duet_overwrite(m) : NULL;
    for (int64_t i = 0; p && i < n; i++) p[i] = value;
    return CHECK(p != NULL, "%s", duet_error()), m;
}

static void refill(duet_matrix *m, float value)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = value;
    CHECK(p != NULL, "%s", duet_error());
}

static void holds(const duet_matrix *m, float want, const char *what)
{
    const float *p = duet_read(m);
    int64_t wrong = 0;
    for (int64_t i = 0; p && i < duet_count(m); i++) wrong += !(p[i] == want);
    CHECK(p && !wrong, "%s: %d elements are not %g: %s", what, (int)wrong, (double)want, duet_error());
}

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

static void free_all(duet_matrix **a, duet_matrix **b, duet_matrix **c) { duet_free(a), duet_free(b), duet_free(c); }

/* ---- decisions ---- */

/* y = 2 x: reads and writes 8 bytes an element; moves 4. */
static bool first_on_gpu(int64_t n, bool on_device)
{
    duet_matrix *x = new_filled(n, 3), *y = duet_new(DUET_F32, n);
    if (on_device) CHECK(duet_device_update(x) != NULL, "%s", duet_error());
    const bool gpu = on_gpu(y, duet_mul(2, x));
    holds(y, 6, "y = 2 x");
    duet_free(&x), duet_free(&y);
    return gpu;
}

static void test_first(void)
{
    int changes[2] = { 0 };
    for (int device = 0; device < 2; device++)
        for (int64_t n = 1000, last = -1; n < 200000; n += n / 7) {
            const double bytes = 8.0 * (double)n, move = move_takes(4.0 * (double)n);
            const double gpu = gpu_takes(bytes) + (device ? 0 : move), cpu = cpu_takes(bytes) + (device ? move : 0);
            const bool want = gpu <= cpu, got = first_on_gpu(n, device);
            CHECK(got == want, "%d elements on the %s: on the %s", (int)n, device ? "device" : "host", got ? "gpu" : "cpu");
            changes[device] += last >= 0 && last != want, last = want;
        }
    CHECK(changes[0] == 1 && changes[1] == 0, "the sizes do not show it: %d, %d", changes[0], changes[1]);
    tap_point("a statement runs where its cost and that of the moves is least");
}

/* x stays, and is used again and again. */
static void repeat(int64_t n)
{
    const double bytes = 8.0 * (double)n, saved = cpu_takes(bytes) - gpu_takes(bytes), move = move_takes(4.0 * (double)n);
    duet_matrix *x = new_filled(n, 3), *y = duet_new(DUET_F32, n);
    int want = 0, got = 0;
    for (double missed = 0; move - missed > saved; want++) missed += saved;
    while (got < 10 * want + 100 && !on_gpu(y, duet_mul(2, x))) got++;
    CHECK(abs(got - want) <= 1, "%d elements: moved after %d statements, not %d", (int)n, got, want);
    const uint64_t before = moves();
    for (int i = 0; i < 50; i++) CHECK(on_gpu(y, duet_mul(2, x)), "it goes back");
    CHECK(moves() == before, "%d moves afterwards", (int)(moves() - before));
    holds(y, 6, "y = 2 x");
    duet_free(&x), duet_free(&y);
}

static void test_repeated(void)
{
    repeat(1200), repeat(1300), repeat(1500), repeat(2000), repeat(3000);
    tap_point("what is used again and again moves once it has been missed enough");
}

/* A batch from the host each time. */
static void test_fresh(void)
{
    duet_matrix *x = new_filled(1500, 1), *w = new_filled(1500, 1), *y = duet_new(DUET_F32, 1500);
    for (int i = 0; i < 100; i++) {
        refill(x, (float)i);
        CHECK(!on_gpu(y, duet_mul(2, x)), "call %d went to the gpu", i);
    }
    for (int i = 0; i < 100; i++) CHECK(duet_update(w) && !on_gpu(w, duet_mul(2, w)), "updated: call %d went to the gpu", i);
    free_all(&x, &w, &y);
    tap_point("what the user writes anew is not moved for earlier statements' sake");
}

static void test_in_place(void)
{
    duet_matrix *x = new_filled(2000, 1), *y = new_filled(2000, 0);
    int first = -1;
    for (int i = 0; i < 200; i++)
        if (on_gpu(y, duet_add(x, y)) && first < 0) first = i;
    const duet_counts c = duet_stats();
    CHECK(first > 0 && first < 20, "first on the gpu: %d", first);
    for (int i = 0; i < 50; i++) CHECK(on_gpu(y, duet_add(x, y)), "it goes back");
    CHECK(duet_stats().uploads == c.uploads && duet_stats().downloads == c.downloads, "it moves again");
    holds(y, 250, "y = x + y");
    duet_free(&x), duet_free(&y);
    tap_point("sums in place move with their operands");
}

/* The small statement alone would be faster on the CPU, but the large one, of the same matrix, is at home on the GPU. */
static void test_chain(void)
{
    duet_matrix *big = new_filled(100000, 1), *part = duet_slice(big, 0, 1000), *s = duet_new(DUET_F32, 1000);
    CHECK(part != NULL, "%s", duet_error());
    CHECK(on_gpu(big, duet_mul(1, duet_abs(big))), "the large one");
    const uint64_t before = moves();
    for (int i = 0; i < 100; i++) CHECK(on_gpu(s, duet_neg(part)) && on_gpu(big, duet_abs(big)), "statement %d went away", i);
    CHECK(moves() == before, "%d moves", (int)(moves() - before));
    holds(s, -1, "s");
    free_all(&part, &big, &s);
    tap_point("a chain of statements does not go to and fro");
}

/* Two views of one matrix move it once: the other way round the CPU would be faster. */
static void test_views(void)
{
    const int64_t half = 3000;
    duet_matrix *x = new_filled(2 * half, 1), *a = duet_slice(x, 0, half), *b = duet_slice(x, half, half),
                *y = duet_new(DUET_F32, half);
    const double bytes = 12.0 * (double)half, move = move_takes(8.0 * (double)half);
    CHECK(gpu_takes(bytes) + move < cpu_takes(bytes) && gpu_takes(bytes) + 2 * move > cpu_takes(bytes),
          "the sizes do not show it");
    CHECK(on_gpu(y, duet_add(a, b)), "moved twice");
    holds(y, 2, "y");
    free_all(&a, &b, &y), duet_free(&x);
    tap_point("what moves once is charged once");
}

static char *explained(duet_matrix *y, duet_matrix *x, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    const duet_expr e = duet_mul(2, x);
    CHECK(duet_explain(out, y, e) == DUET_OK, "%s", duet_error());
    CHECK(duet_drop(e) == DUET_OK, "drop");
    fclose(out);
    return text;
}

static void test_explain(void)
{
    char text[2000] = "";
    duet_matrix *x = new_filled(2000, 1), *y = duet_new(DUET_F32, 2000);
    for (int i = 0; i < 100; i++) explained(y, x, text, sizeof text);
    CHECK(strstr(text, "on the cpu: 1 step") && strstr(text, "; 17 us expected\n"), "%s", text);
    CHECK(strstr(text, "gpu: would take 1 step, 10.2 us expected, and 20.8 us to move what it reads\n"), "%s", text);
    CHECK(!on_gpu(y, duet_mul(2, x)), "looking at a statement has moved it");
    CHECK(strstr(explained(y, x, text, sizeof text), "to move what it reads, of which 6.84 us have been missed before"), "%s",
          text);
    duet_free(&x), duet_free(&y);
    tap_point("explain shows both machines, and learns nothing");
}

static void test_groups(void)
{
    duet_matrix *x = new_filled(2000, 1), *y = duet_new(DUET_F32, 2000), *z = duet_new(DUET_F32, 2000);
    int calls = 0;
    for (uint64_t before = duet_stats().launches; calls < 50 && duet_stats().launches == before; calls++)
        CHECK(duet_set_all({ y, duet_mul(2, x) }, { z, duet_mul(3, x) }) == DUET_OK, "%s", duet_error());
    CHECK(calls > 1 && calls < 10, "%d calls", calls);
    holds(y, 2, "y"), holds(z, 3, "z");
    free_all(&x, &y, &z);
    tap_point("several statements at once learn too");
}

static void test_random(void)
{
    duet_matrix *small = duet_new(DUET_F32, 1000), *large = duet_new(DUET_F32, 100000);
    const uint64_t before = duet_stats().launches;
    CHECK(duet_random_uniform(small, 1, 0, 1) == DUET_OK && duet_stats().launches == before, "few numbers: %s", duet_error());
    CHECK(duet_random_uniform(large, 1, 0, 1) == DUET_OK && duet_stats().launches > before, "many: %s", duet_error());
    duet_free(&small), duet_free(&large);
    tap_point("random numbers are drawn where that is least");
}

/* ---- pinned memory ---- */

enum { LARGE = 100000 }; /* elements, of 4 bytes */

static size_t pinned(void) { return duet_memory_of(DUET_CPU).pinned; }

/* What the host writes next must not be what an upload under way reads. */
static void travel(duet_matrix *x, duet_matrix *y, int times)
{
    for (int i = 0; i < times; i++) {
        refill(x, (float)i);
        CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "%s", duet_error());
        refill(x, -7);
        holds(y, (float)i + 1, "y = x + 1");
    }
}

static void test_pins(void)
{
    duet_matrix *x = duet_new(DUET_F32, LARGE), *y = duet_new(DUET_F32, LARGE), *small = new_filled(1000, 1);
    travel(x, y, 1);
    CHECK(fake_count().pinned == 0 && pinned() == 0, "pinned at once");
    travel(x, y, 5);
    CHECK(fake_count().pinned == 2 && pinned() >= 2 * 4 * LARGE, "%d blocks, %zu bytes", fake_count().pinned, pinned());
    duet_free(&x);
    x = duet_new(DUET_F32, LARGE); /* the same block again */
    travel(x, y, 5);
    CHECK(fake_count().pinned == 2, "%d blocks", fake_count().pinned);
    for (int i = 0; i < 5; i++) CHECK(duet_update(small) && duet_device_read(small), "%s", duet_error());
    CHECK(fake_count().pinned == 2, "a small one is pinned");
    free_all(&x, &y, &small);
    duet_memory_trim();
    CHECK(fake_count().pinned == 0 && pinned() == 0, "%d blocks, %zu bytes stay pinned", fake_count().pinned, pinned());
    tap_point("what travels twice is pinned until its memory goes back");
}

static void test_wrapped(void)
{
    float *own = aligned_alloc(4096, 4 * (LARGE / 1024 + 1) * 1024);
    duet_matrix *x = duet_wrap(own, DUET_F32, LARGE), *y = duet_new(DUET_F32, LARGE);
    for (int i = 0; i < 5; i++) {
        refill(x, (float)i);
        CHECK(duet_device_update(x) && duet_read(x), "%s", duet_error());
    }
    CHECK(fake_count().pinned == 0, "%d blocks are pinned", fake_count().pinned);
    duet_free(&x), duet_free(&y);
    free(own);
    tap_point("the caller's memory is not pinned");
}

/* One call of the scenario fails: it says so, or has another way; afterwards all is right, and nothing stays. */
static void fail_at_call(uint64_t n, bool *hit)
{
    duet_matrix *x = duet_new(DUET_F32, LARGE), *y = duet_new(DUET_F32, LARGE);
    CHECK(duet_synchronize() == DUET_OK, "%s", duet_error());
    fake_fail(n);
    for (int i = 0; i < 3; i++) {
        float *p = duet_overwrite(x);
        for (int k = 0; p && k < LARGE; k++) p[k] = (float)i;
        const duet_status s = p ? duet_set_on(DUET_GPU, y, duet_add(x, 1)) : DUET_OK;
        const float *q = p && s == DUET_OK ? duet_read(y) : NULL;
        CHECK(q ? q[0] == (float)i + 1 && q[LARGE - 1] == (float)i + 1 : fake_failed() && *duet_error(), "call %d: round %d: %s",
              (int)n, i, duet_error());
    }
    *hit = fake_failed();
    fake_fail(0);
    travel(x, y, 3);
    duet_free(&x), duet_free(&y);
    duet_memory_trim();
    CHECK(fake_count().pinned == 0 && pinned() == 0, "call %d: %d blocks, %zu bytes stay pinned", (int)n, fake_count().pinned,
          pinned());
}

static void test_pin_faults(void)
{
    uint64_t n = 0;
    for (bool hit = true; hit && n < 1000;) fail_at_call(++n, &hit);
    CHECK(n > 10 && n < 1000, "%d calls", (int)n);
    tap_point("each call fails once where memory is pinned");
}

/* ---- small copies go by a ring ---- */

extern size_t gpu_staged_most; /* src/gpu/stage.h */

enum { MANY = 30 }; /* more than the ring has slots */

/* Uploads pile up, since nothing waits; the host writes its next numbers at once. */
static void pile(int64_t n, float base)
{
    duet_matrix *x[MANY], *y = duet_new(DUET_F32, n);
    for (int i = 0; i < MANY; i++) {
        x[i] = new_filled(n, base + (float)i);
        CHECK(duet_device_read(x[i]) != NULL, "%s", duet_error());
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(duet_set_on(DUET_GPU, y, duet_add(x[i], 1)) == DUET_OK, "%s", duet_error());
        refill(x[i], -1);
        holds(y, base + (float)i + 1, "what was piled up");
        duet_free(&x[i]);
    }
    duet_free(&y);
}

static void test_ring(void)
{
    static const int64_t sizes[] = { 1, 1000, 16383, 16384, 16385 }; /* the last is beyond a slot */
    for (int on = 1; on >= 0; on--) {
        const size_t before = gpu_staged_most;
        gpu_staged_most = on ? before : 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) pile(sizes[i], 10.0f * (float)i);
        gpu_staged_most = before;
    }
    CHECK(fake_count().rings == 1, "%d rings", fake_count().rings);
    tap_point("small copies go by a ring, or without");
}

/* ---- the machines are measured ---- */

/* Libraries are, from the first product and convolution on. */
static void open_all(void)
{
    duet_matrix *a = duet_new(DUET_F32, 20, 20), *image = duet_new(DUET_F32, 1, 1, 20, 20),
                *seen = duet_new(DUET_F32, 1, 1, 20, 20), *filter = duet_new(DUET_F32, 1, 1, 3, 3);
    CHECK(duet_set_on(DUET_GPU, a, duet_matmul(a, a)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, seen, duet_conv2d(image, filter, .pad = { 1, 1 })) == DUET_OK, "%s", duet_error());
    free_all(&a, &image, &filter), duet_free(&seen);
    duet_memory_trim();
}

static void test_measure(void)
{
    costs c[SIDES];
    bool busy;
    open_all();
    const fake_counts before = fake_count();
    const duet_status s = costs_measure(c, 3, &busy);
    CHECK(s == DUET_OK && costs_sound(&c[HOST], HOST) && costs_sound(&c[DEVICE], DEVICE), "%s", duet_error());
    CHECK(busy || memcmp(c[HOST].seconds[COST_pass], machines[HOST]->costs->seconds[COST_pass], sizeof c[HOST].seconds[0]),
          "nothing was measured");
    duet_memory_trim(); /* what steps were lent */
    CHECK(fake_count().memory == before.memory && fake_count().pinned == before.pinned, "memory stays");
    uint64_t calls = fake_count().calls - before.calls;
    for (uint64_t n = 1; n < calls; n += 1 + n / 3) {
        const fake_counts start = fake_count();
        fake_fail(n);
        const duet_status failed = costs_measure(c, 0.02, &busy);
        CHECK(failed == DUET_OK || (fake_failed() && *duet_error()), "call %d: %s", (int)n, duet_error());
        CHECK(costs_sound(&c[HOST], HOST) && costs_sound(&c[DEVICE], DEVICE), "call %d: costs that cannot be", (int)n);
        fake_fail(0), duet_memory_trim();
        CHECK(fake_count().memory <= start.memory + (40 << 20) && fake_count().pinned == start.pinned, "call %d: memory stays",
              (int)n);
    }
    CHECK(duet_memory_limit(DUET_GPU, 64 << 20) == DUET_OK && costs_measure(c, 0.02, &busy) == DUET_NO_MEMORY, "past the limit");
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "limit");
    tap_point("machines are measured, and a call that fails leaves nothing behind");
}

static char folder[] = "/tmp/duet-test-XXXXXX";

/* In a child, whose first choice this is. */
static void choose_first(const char *want)
{
    char text[4000] = "", path[KEPT_PATH];
    duet_matrix *x = new_filled(100, 1), *y = duet_new(DUET_F32, 100);
    FILE *out = fmemopen(text, sizeof text, "w");
    fail(DUET_OK, "before");
    const duet_counts before = duet_stats();
    CHECK(duet_set_on(DUET_CPU, y, duet_mul(2, x)) == DUET_OK && duet_stats().uploads == 0, "%s", duet_error());
    CHECK(!strcmp(costs_origin(), "as shipped"), "a forced place needs no costs: %s", costs_origin());
    on_gpu(y, duet_mul(2, x));
    holds(y, 2, "y");
    CHECK(duet_stats().uploads - before.uploads <= 1 && !strcmp(duet_error(), "before"), "it shows: %s", duet_error());
    duet_info(out), fclose(out);
    CHECK(strstr(text, want) && strstr(text, "costs    "), "'%s' is not in: %s", want, text);
    CHECK(kept_path(path), "no path");
}

static void in_child(const char *calibrate, const char *want)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        tap_failures = tap_checks = 0;
        unsetenv("DUET_CALIBRATE");
        if (calibrate && strchr(calibrate, '=')) putenv((char *)(uintptr_t)calibrate);
        choose_first(want);
        fflush(stdout);
        _exit(tap_failures > 0 || tap_checks == 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "%s: the child ended with %d", want, status);
}

static ino_t file_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

static void test_prepare(void)
{
    char path[KEPT_PATH], command[100];
    setenv("XDG_CACHE_HOME", folder, 1);
    CHECK(mkdtemp(folder) != NULL, "no folder");
    setenv("XDG_CACHE_HOME", folder, 1);
    in_child("DUET_CALIBRATE=0", "as shipped: DUET_CALIBRATE=0");
    in_child("DUET_REPRODUCIBLE=1", "as shipped: DUET_REPRODUCIBLE=1");
    CHECK(kept_path(path) && !file_of(path), "a file for nothing");
    for (int i = 0; i < 10 && !file_of(path); i++)
        in_child(NULL, "measured in this process, and "); /* not kept when others disturb it */
    const ino_t first = file_of(path);
    in_child(NULL, "measured on this machine, kept in /tmp/duet-test-");
    CHECK(first && file_of(path) == first, "it was written again");
    for (int i = 0; i < 10 && file_of(path) == first; i++) in_child("DUET_CALIBRATE=1", "measured in this process, and ");
    CHECK(file_of(path) && file_of(path) != first, "it was not written anew");
    in_child("XDG_CACHE_HOME=/dev/null", "measured in this process, and not kept: ");
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(!system(command), "%s", command);
    tap_point("the first choice measures, or finds what was kept");
}

int main(void)
{
    setenv("DUET_CALIBRATE", "0", 1);
    omp_set_num_threads(1);
    test_prepare(); /* before anything is open: children are made */
    costs_prepare();
    script();
    test_first();
    test_repeated();
    test_fresh();
    test_in_place();
    test_chain();
    test_views();
    test_explain();
    test_groups();
    test_random();
    test_pins();
    test_wrapped();
    test_ring();
    test_pin_faults();
    test_measure();
    return tap_end();
}
