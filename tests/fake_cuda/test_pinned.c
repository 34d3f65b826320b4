/* test_pinned.c - copies between host and device on the fake CUDA: memory that is copied twice is
 * pinned, small copies use a ring buffer, and each call fails once. */
#include "fake_cuda.h"
#include "filled.h"
#include <stdlib.h>

/* ---- pinned memory ---- */

enum { LARGE = 100000 }; /* elements of 4 bytes */

static size_t pinned(void) { return duet_memory_of(DUET_CPU).pinned; }

/* Later writes by the host must not change an upload in progress. */
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
    CHECK(fake_count().pinned == 0 && pinned() == 0, "a matrix was pinned at its first copy");
    travel(x, y, 5);
    CHECK(fake_count().pinned == 2 && pinned() >= 2 * 4 * LARGE,
          "%d blocks with %zu bytes are pinned, not two", fake_count().pinned, pinned());
    duet_free(&x);
    x = duet_new(DUET_F32, LARGE); /* the same block again */
    travel(x, y, 5);
    CHECK(fake_count().pinned == 2, "%d blocks are pinned, not two", fake_count().pinned);
    for (int i = 0; i < 5; i++) CHECK(duet_update(small) && duet_device_read(small), "%s", duet_error());
    CHECK(fake_count().pinned == 2, "a small matrix was pinned");
    free_all(&x, &y, &small);
    duet_memory_trim();
    CHECK(fake_count().pinned == 0 && pinned() == 0, "%d blocks with %zu bytes are still pinned",
          fake_count().pinned, pinned());
    tap_point("memory is pinned at its second copy until it is released");
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
    duet_free(&x);
    duet_free(&y);
    free(own);
    tap_point("the caller's memory is not pinned");
}

/* One call of the scenario fails. The library reports it or finds another way; afterwards all
 * results are right and nothing leaks. */
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
        CHECK(q ? q[0] == (float)i + 1 && q[LARGE - 1] == (float)i + 1 : fake_failed() && *duet_error(),
              "call %d: round %d: %s", (int)n, i, duet_error());
    }
    *hit = fake_failed();
    fake_fail(0);
    travel(x, y, 3);
    duet_free(&x);
    duet_free(&y);
    duet_memory_trim();
    CHECK(fake_count().pinned == 0 && pinned() == 0, "call %d: %d blocks with %zu bytes are still pinned",
          (int)n, fake_count().pinned, pinned());
}

static void test_pin_faults(void)
{
    uint64_t n = 0;
    for (bool hit = true; hit && n < 1000;) fail_at_call(++n, &hit);
    CHECK(n > 10 && n < 1000, "%d calls", (int)n);
    tap_point("every CUDA call fails once while memory is pinned");
}

/* ---- small copies use a ring buffer ---- */

extern size_t gpu_staged_most; /* src/gpu/pinned_ring.h */

enum { MANY = 30 }; /* more than the ring has slots */

/* Uploads accumulate, because nothing waits; the host writes its next numbers at once. */
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
    static const int64_t sizes[] = { 1, 1000, 16383, 16384, 16385 }; /* the last size exceeds a slot */
    for (int on = 1; on >= 0; on--) {
        const size_t before = gpu_staged_most;
        if (on) gpu_staged_most = before;
        else gpu_staged_most = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) pile(sizes[i], 10.0f * (float)i);
        gpu_staged_most = before;
    }
    CHECK(fake_count().rings <= 2, "one queue has %d blocks of pinned memory, not its report and a ring",
          fake_count().rings);
    tap_point("small copies with and without the pinned ring");
}

int main(void)
{
    test_ring();
    test_pins();
    test_wrapped();
    test_pin_faults();
    return tap_end();
}
