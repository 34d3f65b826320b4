/* test_calibrate.c - tests the measurement of costs on the fake CUDA: it runs before the first choice,
 * once, and without effects that users could see. */
#include "calibrate.h"
#include "cost.h"
#include "fake_cuda.h"
#include "filled.h"
#include "status.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Opens the vendor libraries, as the first product and convolution do. */
static void open_all(void)
{
    duet_matrix *a = duet_new(DUET_F32, 20, 20), *image = duet_new(DUET_F32, 1, 1, 20, 20),
                *seen = duet_new(DUET_F32, 1, 1, 20, 20), *filter = duet_new(DUET_F32, 1, 1, 3, 3);
    CHECK(duet_set_on(DUET_GPU, a, duet_matmul(a, a)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, seen, duet_conv2d(image, filter, .pad = { 1, 1 })) == DUET_OK, "%s",
          duet_error());
    free_all(&a, &image, &filter);
    duet_free(&seen);
    duet_memory_trim();
}

#define SECONDS 3

static void test_measure(void)
{
    costs c[COSTED];
    bool busy;
    open_all();
    const fake_counts before = fake_count();
    const time_t start = time(NULL);
    const duet_status s = costs_measure(c, SECONDS, &busy);
    const bool late = time(NULL) - start >= SECONDS; /* on a machine that is busy with other work */
    CHECK(s == DUET_OK && costs_sound(&c[HOST], HOST) && costs_sound(&c[DEFAULT_GPU], DEFAULT_GPU), "%s",
          duet_error());
    CHECK(busy || late ||
              memcmp(c[HOST].seconds[COST_pass], device_machine(HOST)->costs->seconds[COST_pass],
                     sizeof c[HOST].seconds[0]),
          "nothing was measured");
    duet_memory_trim(); /* memory that steps used */
    CHECK(fake_count().memory == before.memory && fake_count().pinned == before.pinned,
          "memory was not released");
    uint64_t calls = fake_count().calls - before.calls;
    for (uint64_t n = 1; n < calls; n += 1 + n) {
        const fake_counts open = fake_count();
        fake_fail(n);
        const duet_status failed = costs_measure(c, 0.02, &busy);
        CHECK(failed == DUET_OK || (fake_failed() && *duet_error()), "call %d: %s", (int)n, duet_error());
        CHECK(costs_sound(&c[HOST], HOST) && costs_sound(&c[DEFAULT_GPU], DEFAULT_GPU),
              "call %d: the measured costs are invalid", (int)n);
        fake_fail(0);
        duet_memory_trim();
        CHECK(fake_count().memory <= open.memory + (40 << 20) && fake_count().pinned == open.pinned,
              "call %d: memory was not released", (int)n);
    }
    CHECK(duet_memory_limit(DUET_GPU, 64 << 20) == DUET_OK && costs_measure(c, 0.02, &busy) == DUET_NO_MEMORY,
          "measuring within a memory limit failed");
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "the memory limit could not be removed");
    tap_point("calibration measures the machines, and failed calls leak nothing");
}

static char folder[] = "/tmp/duet-test-XXXXXX";
static char path[CALIBRATION_PATH]; /* of the file in that folder */

static const char *name_in(const char *of) { return strrchr(of, '/') + 1; }

/* Executed in a child process, whose first choice this is. */
static void choose_first(const char *want)
{
    char text[4000] = "", own[CALIBRATION_PATH];
    duet_matrix *x = new_filled(100, 1), *y = duet_new(DUET_F32, 100);
    FILE *out = fmemopen(text, sizeof text, "w");
    fail(DUET_OK, "before");
    const duet_counts before = duet_stats();
    CHECK(duet_set_on(DUET_CPU, y, duet_mul(2, x)) == DUET_OK && duet_stats().uploads == 0, "%s",
          duet_error());
    CHECK(!strcmp(costs_origin(), "as shipped"), "a statement on a chosen device measured costs: %s",
          costs_origin());
    CHECK(duet_set(y, duet_mul(2, x)) == DUET_OK, "%s", duet_error());
    holds(y, 2, "y");
    CHECK(duet_stats().uploads - before.uploads <= 1 && !strcmp(duet_error(), "before"),
          "a failed measurement changed the error text, or costs an upload: %s", duet_error());
    duet_info(out);
    fclose(out);
    CHECK(strstr(text, want) && strstr(text, "costs    "), "'%s' is not in: %s", want, text);
    CHECK(calibration_path(own) && !strcmp(name_in(own), name_in(path)),
          "the child's calibration file is another one: %s", own);
}

/* Other processes disturb one thread less. The file is for this number of threads, which clang's OpenMP
 * forgets in a child. */
static void set_threads(void) { omp_set_num_threads(1); }

static void in_child(const char *calibrate, const char *want)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        tap_failures = tap_checks = 0;
        set_threads();
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

static ino_t inode(void)
{
    struct stat st;
    if (stat(path, &st)) return 0;
    return st.st_ino;
}

static void test_kept(ino_t first)
{
    in_child(NULL, "measured on this machine, kept in /tmp/duet-test-");
    CHECK(inode() == first, "the calibration file was written again");
    in_child("DUET_CALIBRATE=1", "measured in this process, and ");
    CHECK(inode(), "the calibration file is missing");
}

static void test_prepare(void)
{
    char command[100];
    CHECK(mkdtemp(folder) != NULL, "the folder could not be made");
    setenv("XDG_CACHE_HOME", folder, 1);
    CHECK(calibration_path(path), "there is no path for the calibration file");
    in_child("DUET_CALIBRATE=0", "as shipped: DUET_CALIBRATE=0");
    in_child("DUET_REPRODUCIBLE=1", "as shipped: DUET_REPRODUCIBLE=1");
    CHECK(!inode(), "a calibration file was written although nothing was measured");
    for (int i = 0; i < 10 && !inode(); i++)
        in_child(NULL, "measured in this process, and "); /* disturbed measurements are not stored */
    const ino_t first = inode();
    if (!first) printf("# other work keeps this machine too busy for anything to be kept\n");
    else test_kept(first);
    in_child("XDG_CACHE_HOME=/dev/null", "measured in this process, and not kept: ");
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(!system(command), "%s", command);
    tap_point("the first placement measures costs or reads them from the file");
}

int main(void)
{
    setenv("DUET_CALIBRATE", "0", 1);
    set_threads();
    test_prepare(); /* before anything is open, because the test forks */
    test_measure();
    return tap_end();
}
