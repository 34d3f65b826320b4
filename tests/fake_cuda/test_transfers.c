/* test_transfers.c - DUET_TRANSFERS on the fake CUDA: statements that would copy a matrix between devices
 * fail and change nothing, or print a line; calls that ask for elements still copy. */
#include "fake_cuda.h"
#include "matrix.h"
#include "stream.h"
#include "stream_policy.h"
#include "tap.h"
#include "test_rng.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 6, COUNT_OF = SIDE * SIDE, MATRICES = 4 };

static duet_matrix *filled(float first)
{
    duet_matrix *m = duet_new(DUET_F32, SIDE, SIDE);
    float *p = duet_overwrite_f32(m);
    for (int i = 0; i < COUNT_OF; i++) p[i] = first + (float)i;
    return m;
}

static uint64_t copies(void)
{
    const duet_counts c = duet_stats();
    return c.uploads + c.downloads + c.copies;
}

static bool mentions(const char *const parts[])
{
    for (; *parts; parts++)
        if (!CHECK(strstr(duet_error(), *parts), "\"%s\" has no \"%s\"", duet_error(), *parts)) return false;
    return true;
}

static void test_refused(void)
{
    duet_matrix *x = filled(1), *y = filled(100);
    char line[20];
    DUET_FORBID_TRANSFERS
    {
        const uint64_t before = copies();
        snprintf(line, sizeof line, ".c:%d", __LINE__ + 1);
        CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_FORBIDDEN, "the upload was allowed");
        mentions((const char *[]){ "test_transfers", line, "duet_set_on", "y", "f32[6,6]",
                                   "from the CPU to the GPU", "144 bytes", NULL });
        CHECK(copies() == before, "a copy was made");
        CHECK(duet_read_f32(y)[3] == 103, "the destination changed");
        CHECK(duet_set_on(DUET_CPU, y, duet_add(x, 1)) == DUET_OK && copies() == before, "%s", duet_error());
        CHECK(duet_set_on(DUET_GPU, y, DUET(2)) == DUET_OK, "%s", duet_error());
    }
    CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "after the block: %s", duet_error());
    DUET_FORBID_TRANSFERS
    {
        CHECK(duet_set_on(DUET_CPU, x, duet_mul(y, 2)) == DUET_FORBIDDEN, "the download was allowed");
        mentions((const char *[]){ "from the GPU to the CPU", "f32[6,6]", NULL });
        CHECK(duet_set_on(DUET_GPU, x, duet_mul(y, 2)) == DUET_OK, "%s", duet_error());
        CHECK(duet_read_f32(x)[2] == 8, "duet_read: %s", duet_error());
        float sum;
        CHECK(duet_item(duet_sum(y), &sum) == DUET_OK, "duet_item: %s", duet_error());
    }
    duet_free(&x, &y);
    tap_point("statements that would copy fail");
}

/* A part of a matrix cannot be written on a device that lacks the rest. */
static void test_part(void)
{
    duet_matrix *x = filled(1), *row = duet_row(x, 2);
    DUET_FORBID_TRANSFERS
    {
        CHECK(duet_set_on(DUET_GPU, row, DUET(7)) == DUET_FORBIDDEN, "a row: %s", duet_error());
        CHECK(duet_set_on(DUET_GPU, x, DUET(7)) == DUET_OK, "all of it: %s", duet_error());
    }
    duet_free(&row, &x);
    tap_point("parts of matrices");
}

static void test_blocks(void)
{
    duet_matrix *x = filled(1), *y = filled(2);
    DUET_FORBID_TRANSFERS
    {
        DUET_TRANSFERS(DUET_TRANSFERS_ALLOWED)
        CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "an inner block: %s", duet_error());
        DUET_TRANSFERS((duet_transfers)9)
        {
            CHECK(strstr(duet_error(), "mode (9)"), "%s", duet_error());
            CHECK(duet_set_on(DUET_CPU, x, duet_add(y, 1)) == DUET_FORBIDDEN, "a bad mode has an effect");
        }
    }
    CHECK(thread_get()->transfers == DUET_TRANSFERS_ALLOWED, "the blocks did not close");
    duet_free(&x, &y);
    tap_point("blocks");
}

static void test_reported(void)
{
    duet_matrix *x = filled(1), *y = filled(2);
    char text[1000] = "";
    int ends[2];
    const int kept = dup(STDERR_FILENO);
    CHECK(!pipe(ends) && dup2(ends[1], STDERR_FILENO) >= 0, "no pipe");
    DUET_TRANSFERS(DUET_TRANSFERS_REPORTED)
    CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "%s", duet_error());
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(ends[1]);
    CHECK(read(ends[0], text, sizeof text - 1) > 0, "nothing was printed");
    CHECK(strstr(text, "f32[6,6] is copied from the CPU to the GPU (144 bytes)") &&
              strstr(text, "test_transfers"),
          "%s", text);
    close(ends[0]);
    close(kept);
    duet_free(&x, &y);
    tap_point("a line for each copy");
}

/* A statement that runs in parts on the GPU, because its operands do not fit there. */
static void test_streamed(void)
{
    enum { ROWS = 4000 };
    duet_matrix *x = duet_new(DUET_F32, ROWS, SIDE), *y = duet_new(DUET_F32, ROWS, SIDE);
    CHECK(!duet_set_on(DUET_CPU, x, 3) && !duet_set_on(DUET_CPU, y, 5), "%s", duet_error());
    CHECK(!duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used + 60000), "%s", duet_error());
    const uint64_t streams = duet_stats().streams;
    DUET_FORBID_TRANSFERS
    {
        const uint64_t before = copies();
        CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_FORBIDDEN, "the statement ran in parts: %s",
              duet_error());
        CHECK(copies() == before && duet_read_f32(y)[7] == 5, "it copied, or changed the destination");
    }
    CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK && duet_stats().streams == streams + 1,
          "the statement did not run in parts: %s", duet_error());
    CHECK(!duet_memory_limit(DUET_GPU, 0), "%s", duet_error());
    duet_free(&x, &y);
    tap_point("statements in parts");
}

static void test_replayed(void)
{
    duet_matrix *x = filled(1), *y = filled(2);
    duet_recording *r = NULL;
    if (duet_record_begin() == DUET_OK) {
        CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "%s", duet_error());
        r = duet_record_end();
    }
    CHECK(r && duet_replay(r) == DUET_OK, "%s", duet_error());
    DUET_FORBID_TRANSFERS
    {
        CHECK(duet_replay(r) == DUET_OK, "the operands are there: %s", duet_error());
        duet_update_f32(x)[0] = 50;
        CHECK(duet_replay(r) == DUET_FORBIDDEN &&
                  mentions((const char *[]){ "f32[6,6]", "to the GPU", NULL }),
              "%s", duet_error());
        CHECK(duet_read_f32(y)[0] == 2, "the destination changed to %g", duet_read_f32(y)[0]);
    }
    CHECK(duet_replay(r) == DUET_OK && duet_read_f32(y)[0] == 51, "%s", duet_error());
    duet_recording_free(&r);
    duet_free(&x, &y);
    tap_point("recordings");
}

/* Random statements on random devices: each copies nothing, and succeeds or changes nothing. */
static void test_random(void)
{
    duet_matrix *m[MATRICES];
    float want[MATRICES];
    int refused = 0;
    for (int k = 0; k < MATRICES; k++) {
        m[k] = filled(0);
        CHECK(!duet_set_on(DUET_CPU, m[k], k), "%s", duet_error());
        want[k] = (float)k;
    }
    for (int i = 0; i < 3000; i++) {
        const int to = draw(MATRICES), a = draw(MATRICES), b = draw(MATRICES);
        const duet_place place = draw(2) ? DUET_GPU : DUET_CPU;
        duet_status s = DUET_OK;
        DUET_FORBID_TRANSFERS
        {
            const uint64_t before = copies();
            s = duet_set_on(place, m[to], duet_sub(m[a], duet_mul(m[b], 0.5)));
            CHECK(copies() == before, "statement %d copied", i);
        }
        CHECK(s == DUET_OK || s == DUET_FORBIDDEN, "%s", duet_error());
        if (s == DUET_OK) want[to] = want[a] - want[b] * 0.5f;
        refused += s != DUET_OK;
        if (chance(30)) CHECK(duet_read_f32(m[a])[draw(COUNT_OF)] == want[a], "statement %d", i);
        if (chance(30))
            CHECK(!duet_set_on(draw(2) ? DUET_GPU : DUET_CPU, m[b], want[b] = (float)draw(9)), "set");
    }
    CHECK(refused > 300 && refused < 2700, "%d of 3000 statements were refused", refused);
    for (int k = 0; k < MATRICES; k++) duet_free(&m[k]);
    tap_point("random statements");
}

/* In a new process, because the variable is read once. */
static void test_variable(void)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (!child) {
        setenv("DUET_TRANSFERS", "error", 1);
        duet_matrix *x = filled(1);
        const duet_status s = duet_set_on(DUET_GPU, x, duet_add(x, 1));
        _exit(s != DUET_FORBIDDEN);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
    tap_point("DUET_TRANSFERS=error");
}

int main(void)
{
    test_variable();
    stream_staged_from(SIZE_MAX);
    stream_from(0);
    test_refused();
    test_part();
    test_blocks();
    test_reported();
    test_streamed();
    test_replayed();
    test_random();
    return tap_end();
}
