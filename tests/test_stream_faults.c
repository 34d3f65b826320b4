/* test_stream_faults.c - streamed statements on the pretended CUDA, when things go wrong: every allocation fails once, and every call of CUDA
 * and of the vendors. Small whole numbers: every result is exact. */
#include "alone.h"
#include "fake_cuda.h"
#include "plan.h"
#include "scarce.h"
#include "stream.h"
#include "tap.h"
#include <string.h>

enum { ROWS = 700, COLUMNS = 4, WIDE = 5, ROOM = 14000 };

typedef struct scene {
    duet_matrix *x, *y, *z, *w, *b, *h;
    int refused;     /* calls */
    bool wrong;      /* a value, a status or a text that cannot be */
    bool allocation; /* is to fail, or a call */
    bool hit;        /* what was to fail once has failed */
} scene;

static bool wrong(scene *s, const char *what) { return printf("# %s: %s\n", what, duet_error()), s->wrong = true, false; }

static bool promised(scene *s, duet_status st)
{
    if (st == DUET_OK) return true;
    const bool known =
        st == DUET_NO_MEMORY || st == DUET_DEVICE_ERROR || st == DUET_NO_DEVICE || st == DUET_UNSUPPORTED || st == DUET_UNKNOWN;
    if (!known || !*duet_error()) wrong(s, "a refusal");
    return s->refused++, false;
}

static bool fill(scene *s, duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    return p || (s->refused++, false);
}

/* after: when it went well. before: what it was. Where it failed nothing has changed, or all of it is unknown. */
static void holds(scene *s, const duet_matrix *m, bool well, float before, float after)
{
    const float *p = duet_read(m);
    if (!p) {
        if (well && !s->hit) s->refused++;
        return;
    }
    for (int64_t i = 0; i < duet_count(m); i++)
        if (p[i] != (well ? after : before)) {
            printf("# %d is %g, not %g\n", (int)i, (double)p[i], (double)(well ? after : before)), wrong(s, "a value");
            return;
        }
}

static bool make(scene *s)
{
    duet_matrix **rows[] = { &s->x, &s->y, &s->z };
    bool there = true;
    for (int i = 0; i < 3; i++) there &= (*rows[i] = duet_new(DUET_F32, ROWS, COLUMNS)) != NULL;
    there &= (s->h = duet_new(DUET_F32, ROWS, WIDE)) && (s->w = duet_new(DUET_F32, COLUMNS, WIDE)) &&
             (s->b = duet_new(DUET_F32, WIDE));
    if (!there) return s->refused++, false;
    return fill(s, s->x, 1) && fill(s, s->y, 2) && fill(s, s->z, 3) && fill(s, s->w, 1) && fill(s, s->b, 2) && fill(s, s->h, 9);
}

/* y = 2 x + y = 4; h = relu(x w + b) = 6; { z = x + y = 5, y = z + 1 = 6 }. */
static void turn(scene *s)
{
    bool well = promised(s, duet_set(s->y, duet_add(duet_mul(2, s->x), s->y)));
    holds(s, s->y, well, 2, 4);
    if (!well && !fill(s, s->y, 4)) return;
    well = promised(s, duet_set(s->h, duet_relu(duet_bias_add(duet_matmul(s->x, s->w), s->b))));
    holds(s, s->h, well, 9, COLUMNS + 2);
    well = promised(s, duet_set_all({ s->z, duet_add(s->x, s->y) }, { s->y, duet_add(s->z, 1) }));
    holds(s, s->z, well, 3, 5), holds(s, s->y, well, 4, 6);
    holds(s, s->x, true, 1, 1);
}

static void *play(void *arg)
{
    scene *s = arg;
    if (make(s)) DUET_ON(DUET_GPU) turn(s);
    s->hit = s->allocation ? fail_in < 0 : fake_failed();
    fail_in = -1, fake_fail(0); /* what gives memory back and fails may keep it */
    duet_matrix **all[] = { &s->x, &s->y, &s->z, &s->w, &s->b, &s->h };
    for (int i = 0; i < 6; i++) duet_free(all[i]);
    return NULL;
}

static scene run(bool allocation)
{
    scene s = { .allocation = allocation };
    alone(play, &s);
    duet_memory_trim();
    return s;
}

static uint64_t streams(void) { return duet_stats().streams; }

/* Each in a thread of its own, without plans. */
static void each_once(bool allocation, const char *what)
{
    scene s = run(allocation);
    const uint64_t before = streams();
    s = run(allocation);
    CHECK(!s.refused && !s.wrong && streams() == before + 3, "without a failure: %d refused, %d streamed", s.refused,
          (int)(streams() - before));
    const fake_counts start = fake_count();
    const int64_t living = live;
    int64_t n = 0;
    int silent = 0;
    for (bool hit = true; hit && n < 5000; n++) {
        if (allocation) fail_in = n;
        else fake_fail((uint64_t)n + 1);
        s = run(allocation);
        hit = s.hit;
        silent += hit && !s.refused;
        const fake_counts now = fake_count();
        CHECK(!s.wrong, "%s %d: not as promised", what, (int)n);
        CHECK(hit || !s.refused, "%s %d: nothing failed, but %d were refused", what, (int)n, s.refused);
        CHECK(now.memory == start.memory, "%s %d: %zu bytes of the device, not %zu", what, (int)n, now.memory, start.memory);
        CHECK(homeless || live == living, "%s %d: %d blocks leaked", what, (int)n, (int)(live - living));
        s = run(allocation);
        CHECK(!s.refused && !s.wrong, "%s %d: the next is not right: %s", what, (int)n, duet_error());
    }
    char text[100];
    CHECK(n > 40 && n < 5000, "%d failures", (int)n);
    snprintf(text, sizeof text, "%s: %d failed once each, %d without anyone's notice", what, (int)n - 1, silent);
    tap_point(text);
}

int main(void)
{
    setenv("DUET_REPRODUCIBLE", "1", 1);
    stream_from(0), stream_staged_from(0);
    CHECK(duet_memory_limit(DUET_GPU, ROOM) == DUET_OK, "%s", duet_error());
    each_once(false, "calls of CUDA");
    each_once(true, "allocations");
    return tap_end();
}
