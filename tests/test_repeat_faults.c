/* test_repeat_faults.c - automatic replay on the pretended CUDA, when things go wrong: in a loop that is learnt, replayed and broken off,
 * every allocation fails once, and every call of CUDA and of the vendors. Small whole numbers: every result is exact. */
#include "alone.h"
#include "fake_cuda.h"
#include "held.h"
#include "plan.h"
#include "scarce.h"
#include "tap.h"
#include <string.h>

enum { N = 6, TURNS = 24, ODD_TURN = 17 };

typedef struct scene {
    duet_matrix *x, *w, *h, *y, *z;
    int failures;    /* statements and pointers that were refused */
    bool wrong;      /* a value, a status or a text that cannot be */
    bool allocation; /* is to fail, or a call */
    bool hit;        /* what was to fail once has failed by the end of the loop */
    bool settled;    /* the turn after the failure was right, and so on */
} scene;

static void *wrong(scene *s, const char *what) { return printf("# %s: %s\n", what, duet_error()), s->wrong = true, NULL; }

static bool refused(scene *s, duet_status st)
{
    if (st == DUET_OK) return false;
    const bool promised =
        st == DUET_NO_MEMORY || st == DUET_DEVICE_ERROR || st == DUET_NO_DEVICE || st == DUET_UNSUPPORTED || st == DUET_UNKNOWN;
    if (!promised || !*duet_error()) wrong(s, "a refusal");
    return s->failures++, true;
}

static bool fill(scene *s, duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    return p || (s->failures++, false);
}

static bool holds(scene *s, const duet_matrix *m, float v)
{
    const float *p = duet_read(m);
    if (!p) return s->failures++, false;
    for (int64_t i = 0; i < duet_count(m); i++)
        if (p[i] != v) return printf("# %d is %g, not %g\n", (int)i, (double)p[i], (double)v), wrong(s, "a value"), false;
    return true;
}

/* h = 2 x, y = h w = 2 N t, z = y - h: 2 t (N - 1). In one turn another statement comes between. */
static bool one_turn(scene *s, int turn, bool all)
{
    const float t = (float)turn;
    if (!fill(s, s->x, t)) return false;
    if (refused(s, duet_set(s->h, duet_mul(2, s->x)))) return false;
    if (!all) return true;
    if (turn == ODD_TURN && refused(s, duet_set(s->z, duet_add(s->h, s->h)))) return false;
    if (turn == ODD_TURN && !holds(s, s->z, 4 * t)) return false;
    if (refused(s, duet_set(s->y, duet_matmul(s->h, s->w)))) return false;
    if (refused(s, duet_set(s->z, duet_sub(s->y, s->h)))) return false;
    return holds(s, s->z, 2 * t * (N - 1)) && (turn % 3 || holds(s, s->h, 2 * t));
}

static void *play(void *arg)
{
    scene *s = arg;
    bool was_right = true;
    duet_matrix **all[] = { &s->x, &s->w, &s->h, &s->y, &s->z };
    bool there = true;
    for (int i = 0; i < 5; i++) there &= (*all[i] = duet_new(DUET_F32, N, N)) != NULL;
    s->settled = true;
    DUET_ON(DUET_GPU)
    for (int turn = 0; there && turn < TURNS; turn++) {
        const bool right = (turn || fill(s, s->w, 1)) && one_turn(s, turn, true);
        if (!turn && !right) there = false;
        s->settled &= right || was_right; /* one turn is spoilt, at most */
        was_right = right;
    }
    if (!there) s->failures++;
    s->hit = s->allocation ? fail_in < 0 : fake_failed();
    fail_in = -1, fake_fail(0); /* what gives memory back and fails may keep it */
    for (int i = 0; i < 5; i++) duet_free(all[i]);
    return NULL;
}

static scene run(bool allocation)
{
    scene s = { .allocation = allocation };
    alone(play, &s);
    duet_memory_trim();
    return s;
}

static uint64_t repeats(void) { return duet_stats().repeats; }

static void check_after(const char *what, int64_t n, int64_t living, fake_counts start)
{
    const fake_counts now = fake_count();
    CHECK(now.graphs_alive == start.graphs_alive, "%s %d: %d graphs live", what, (int)n, now.graphs_alive);
    CHECK(now.handles == start.handles, "%s %d: %d handles live, not %d", what, (int)n, now.handles, start.handles);
    CHECK(now.memory == start.memory, "%s %d: %zu bytes of the device, not %zu", what, (int)n, now.memory, start.memory);
    CHECK(homeless || live == living, "%s %d: %d blocks leaked", what, (int)n, (int)(live - living));
}

/* Each in a thread of its own, where nothing has been learnt. */
static void each_once(bool allocation, const char *what)
{
    scene s = run(allocation);
    const uint64_t before = repeats();
    s = run(allocation);
    CHECK(!s.failures && !s.wrong && repeats() >= before + 3 * (TURNS - 10), "without a failure: %d refused, %d replayed",
          s.failures, (int)(repeats() - before));
    const fake_counts start = fake_count();
    const int64_t living = live;
    int64_t n = 0;
    int silent = 0;
    for (bool hit = true; hit && n < 3000; n++) {
        if (allocation) fail_in = n;
        else fake_fail((uint64_t)n + 1);
        s = run(allocation);
        hit = s.hit;
        silent += hit && !s.failures;
        CHECK(!s.wrong, "%s %d: not as promised", what, (int)n);
        CHECK(hit || !s.failures, "%s %d: nothing failed, but %d were refused", what, (int)n, s.failures);
        CHECK(s.settled, "%s %d: the turn after is wrong, too: %s", what, (int)n, duet_error());
        check_after(what, n, living, start);
        s = run(allocation);
        CHECK(!s.failures && !s.wrong, "%s %d: the next loop is not right: %s", what, (int)n, duet_error());
    }
    char text[100];
    CHECK(n > 40 && n < 3000, "%d failures", (int)n);
    snprintf(text, sizeof text, "%s: %d failed once each, %d without anyone's notice", what, (int)n - 1, silent);
    tap_point(text);
}

/* ---- what the error says ---- */

/* A loop whose last turn breaks off after its first statement, h = 2 x; then the device refuses it. Where the host has written h meanwhile
 * that stays. */
static void *late_error(void *overwritten)
{
    scene s = { 0 };
    duet_matrix **all[] = { &s.x, &s.w, &s.h, &s.y, &s.z };
    duet_status st = DUET_OK;
    for (int i = 0; i < 5; i++) *all[i] = duet_new(DUET_F32, N, N), fill(&s, *all[i], 1);
    DUET_ON(DUET_GPU)
    {
        for (int turn = 0; turn < TURNS - 1; turn++) one_turn(&s, turn == ODD_TURN ? 0 : turn, true);
        CHECK(!s.failures && one_turn(&s, 1, false), "%s", duet_error());
        CHECK(held_now() != 0, "nothing is held back");
        if (overwritten) fill(&s, s.h, 7);
        fake_fail(2); /* the device is asked for first */
        st = duet_synchronize();
    }
    fake_fail(0);
    CHECK(st == DUET_DEVICE_ERROR && strstr(duet_error(), "a statement that was held back") &&
              strstr(duet_error(), "test_repeat_faults.c:"),
          "status %d: %s", (int)st, duet_error());
    if (overwritten) CHECK(holds(&s, s.h, 7), "%s", duet_error());
    else CHECK(!duet_read(s.h) && strstr(duet_error(), "lost"), "%s", duet_error());
    CHECK(holds(&s, s.x, 1), "%s", duet_error());
    for (int i = 0; i < 5; i++) duet_free(all[i]);
    return NULL;
}

int main(void)
{
    repeat_patience(1);
    setenv("DUET_REPRODUCIBLE", "1", 1);
    each_once(false, "calls of CUDA");
    each_once(true, "allocations");
    alone(late_error, NULL);
    tap_point("an error that comes late names its statement");
    alone(late_error, "");
    tap_point("and does not touch what the host has written since");
    return tap_end();
}
