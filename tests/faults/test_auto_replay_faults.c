/* test_auto_replay_faults.c - failures during automatic replay on the fake CUDA. In a loop that is
 * learnt, replayed and interrupted, every allocation and every call of CUDA and of the vendor
 * libraries fails once. All elements are small integers, so every result is exact. */
#include "auto_replay.h"
#include "deferred.h"
#include "fault_scenario.h"
#include "plan.h"
#include <string.h>

enum { N = 6, TURNS = 24, ODD_TURN = 17, MATRICES = 5 };

typedef struct scene {
    duet_matrix *x, *w, *h, *y, *z;
} scene;

static bool make(scene *s)
{
    duet_matrix **all[MATRICES] = { &s->x, &s->w, &s->h, &s->y, &s->z };
    bool there = true;
    for (int i = 0; i < MATRICES; i++) there &= (*all[i] = duet_new(DUET_F32, N, N)) != NULL;
    return there;
}

static void clear(scene *s)
{
    duet_matrix **all[MATRICES] = { &s->x, &s->w, &s->h, &s->y, &s->z };
    for (int i = 0; i < MATRICES; i++) duet_free(all[i]);
}

static bool is_all(const duet_matrix *m, float v)
{
    const float *p = duet_read(m);
    if (p) return all_are(p, m, v);
    met.refused++;
    return false;
}

/* h = 2 x, y = h w = 2 N t, z = y - h: 2 t (N - 1). In one turn another statement comes between.
 * The last turn may have only some of the statements. */
static bool one_turn(const scene *s, int turn, int statements)
{
    const float t = (float)turn;
    if (!fill(s->x, t)) return false;
    if (!went(duet_set(s->h, duet_mul(2, s->x)))) return false;
    if (statements == 1) return true;
    if (turn == ODD_TURN && !went(duet_set(s->z, duet_add(s->h, s->h)))) return false;
    if (turn == ODD_TURN && !is_all(s->z, 4 * t)) return false;
    if (!went(duet_set(s->y, duet_matmul(s->h, s->w)))) return false;
    if (statements == 2) return true;
    if (!went(duet_set(s->z, duet_sub(s->y, s->h)))) return false;
    return is_all(s->z, 2 * t * (N - 1)) && (turn % 3 || is_all(s->h, 2 * t));
}

static void *play(void *arg)
{
    scene s = { 0 };
    bool was_right = true, there = make(&s);
    DUET_ON(place)
    for (int turn = 0; there && turn < TURNS; turn++) {
        const bool right = (turn || fill(s.w, 1)) && one_turn(&s, turn, 3);
        if (!turn && !right) there = false;
        met.unsettled |= !right && !was_right; /* at most one turn is affected */
        was_right = right;
    }
    met.refused += !there;
    fault_scenario_over();
    clear(&s);
    return NULL;
}

static uint64_t replayed(void) { return duet_stats().repeats; }

static void test(bool allocation, const char *what)
{
    each_once(play, allocation, what, replayed, 3 * (TURNS - 10));
}

/* ---- the error text ---- */

/* A loop whose last turn stops after its first statement, h = 2 x; then the device refuses that. If
 * the host has written h meanwhile, its contents stay. */
static void *late_error(void *overwritten)
{
    scene s = { 0 };
    duet_status st = DUET_OK;
    met = (fault_scenario){ 0 };
    CHECK(make(&s) && fill(s.w, 1), "%s", duet_error());
    DUET_ON(DUET_GPU)
    {
        for (int turn = 0; turn < TURNS - 1; turn++) one_turn(&s, turn == ODD_TURN ? 0 : turn, 3);
        CHECK(!met.refused && one_turn(&s, 1, 1), "%s", duet_error());
        CHECK(deferred_queues_now() != 0, "no statement is deferred");
        if (overwritten) fill(s.h, 7);
        fake_fail(2); /* the current device is queried first */
        st = duet_synchronize();
    }
    fake_fail(0);
    CHECK(st == DUET_DEVICE_ERROR && strstr(duet_error(), "a deferred statement") &&
              strstr(duet_error(), "test_auto_replay_faults.c:"),
          "status %d: %s", (int)st, duet_error());
    if (overwritten) CHECK(is_all(s.h, 7), "%s", duet_error());
    else CHECK(!duet_read(s.h) && strstr(duet_error(), "lost"), "%s", duet_error());
    CHECK(is_all(s.x, 1), "%s", duet_error());
    clear(&s);
    return NULL;
}

/* A loop whose last turn ends after one or three deferred statements, or is complete. There is no memory to
 * launch them: the call that launches them fails, and they have not run. The host wrote z last, so the GPU did
 * not have its elements. */
static void *no_memory(void *turn_ends)
{
    scene s = { 0 };
    duet_status st = DUET_OK;
    const int statements = *(const char *)turn_ends - '0', last = TURNS - 2;
    met = (fault_scenario){ 0 };
    CHECK(make(&s) && fill(s.w, 1), "%s", duet_error());
    DUET_ON(DUET_GPU)
    {
        for (int turn = 0; turn < TURNS - 1; turn++) one_turn(&s, turn == ODD_TURN ? 0 : turn, 3);
        CHECK(!met.refused && fill(s.z, 9), "%s", duet_error());
        fake_no_launches(true);
        const bool well = one_turn(&s, 1, statements);
        CHECK(well == (statements < 3), "%s", duet_error());
        st = duet_error_status();
        if (well) {
            CHECK(deferred_queues_now() != 0, "no statement is deferred");
            st = duet_synchronize();
        }
    }
    fake_no_launches(false);
    CHECK(st == DUET_NO_MEMORY && strstr(duet_error(), "a deferred statement"), "status %d: %s", (int)st,
          duet_error());
    CHECK(is_all(s.h, 2 * (float)last) && is_all(s.y, 2 * N * (float)last) && is_all(s.z, 9) &&
              is_all(s.x, 1),
          "%s", duet_error());
    CHECK(one_turn(&s, 3, 3), "%s", duet_error());
    clear(&s);
    return NULL;
}

int main(void)
{
    auto_replay_set_max_seconds(1);
    setenv("DUET_REPRODUCIBLE", "1", 1);
    test(false, "calls of CUDA");
    test(true, "allocations");
    run_in_thread(late_error, NULL);
    tap_point("an error of a deferred statement names that statement");
    run_in_thread(late_error, "");
    tap_point("a deferred statement that fails leaves later writes of the host intact");
    for (const char *n = "123"; *n; n++) run_in_thread(no_memory, (void *)(uintptr_t)n);
    tap_point("deferred statements for which there is no memory have not run");
    leave_the_choice();
    test(false, "calls of CUDA, where the place is free");
    test(true, "allocations, where the place is free");
    return tap_end();
}
