/* test_auto_replay_faults.c - failures during automatic replay on the fake CUDA. In a loop that is
 * learnt, replayed and interrupted, every allocation and every call of CUDA and of the vendor
 * libraries fails once. All elements are small integers, so every result is exact. */
#include "auto_replay.h"
#include "deferred.h"
#include "fault_scenario.h"
#include "matrix.h"
#include "plan.h"
#include "thread.h"
#include <semaphore.h>
#include <string.h>

enum { N = 6, TURNS = 24, ODD_TURN = 17, MATRICES = 7 };

typedef struct scene {
    duet_matrix *x, *w, *h, *y, *z, *u, *v;
} scene;

static bool make(scene *s)
{
    duet_matrix **all[MATRICES] = { &s->x, &s->w, &s->h, &s->y, &s->z, &s->u, &s->v };
    bool there = true;
    for (int i = 0; i < MATRICES; i++) there &= (*all[i] = duet_new(DUET_F32, N, N)) != NULL;
    return there;
}

static void clear(scene *s)
{
    duet_matrix **all[MATRICES] = { &s->x, &s->w, &s->h, &s->y, &s->z, &s->u, &s->v };
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

/* A loop whose last turn ends after one or three deferred statements, or is complete. There is no
 * memory to launch them: the call that launches them fails, and they have not run. The host wrote z
 * last, so the GPU did not have its elements. */
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

/* The device fails when it launches a statement that overwrites h. The host has the elements that h had
 * before. */
static void *restored(void *unused)
{
    scene s = { 0 };
    CHECK(make(&s) && fill(s.w, 1), "%s", duet_error());
    DUET_ON(DUET_GPU)
    {
        for (int turn = 0; turn < TURNS - 1; turn++) one_turn(&s, turn == ODD_TURN ? 0 : turn, 3);
        CHECK(fill(s.h, 9) && one_turn(&s, 1, 1) && deferred_queues_now() != 0, "%s", duet_error());
        fake_fail(2); /* the current device is queried first */
        CHECK(duet_synchronize() == DUET_DEVICE_ERROR, "%s", duet_error());
        fake_fail(0);
    }
    CHECK(is_all(s.h, 9), "%s", duet_error());
    clear(&s);
    return NULL;
}

/* ---- failures that nobody reports ---- */

/* Repeats h = 2 x + z, y = h w until both are deferred. */
static void defer_two(const scene *s)
{
    for (int turn = 1; turn < TURNS; turn++) {
        fill(s->x, (float)turn);
        CHECK(!duet_set(s->h, duet_add(duet_mul(2, s->x), s->z)) && !duet_set(s->y, duet_matmul(s->h, s->w)),
              "%s", duet_error());
        if (turn == TURNS - 1) break;
        CHECK(!duet_set(s->v, duet_sub(s->y, s->h)), "%s", duet_error());
        CHECK(is_all(s->v, 2 * (float)turn * (N - 1)), "turn %d", turn);
    }
    CHECK(deferred_queues_now() != 0, "no statement is deferred");
}

static bool is_lost(const duet_matrix *m) { return !duet_read(m) && duet_error_status() == DUET_UNKNOWN; }

/* Frees an operand, which launches the statements. */
static void *free_operand(void *arg)
{
    scene *s = arg;
    DUET_ON(DUET_GPU)
    {
        defer_two(s);
        fake_no_launches(true);
        duet_free(&s->z);
        fake_no_launches(false);
        CHECK(deferred_queues_now() == 0 && is_lost(s->h) && is_lost(s->y), "old elements are read");
        CHECK(is_all(s->w, 1) && is_all(s->x, TURNS - 1), "other elements are lost");
    }
    return NULL;
}

/* Ends with deferred statements, for which there is no memory. */
static void *end_early(void *arg)
{
    DUET_ON(DUET_GPU) defer_two(arg);
    fake_no_launches(true);
    return NULL;
}

/* Two threads that share a queue, as the 65th thread does with another one. */
static int shared_queue;
static sem_t is_deferred, is_done;

/* Repeats h = factor x, and two statements that read it. The last turn has only the first
 * statement. */
static duet_status repeat_shared(const scene *s, int factor, duet_matrix *a, duet_matrix *b, bool last)
{
    duet_status st = DUET_OK;
    for (int turn = 0; turn < (last ? 1 : TURNS); turn++) {
        st = duet_set(s->h, duet_mul(factor, s->x));
        if (last) break;
        CHECK(!st && !duet_set(a, duet_matmul(s->h, s->w)) && !duet_set(b, duet_sub(a, s->h)), "%s",
              duet_error());
        CHECK(is_all(b, (float)(factor * (N - 1))), "turn %d", turn);
    }
    return st;
}

static void *first_thread(void *arg)
{
    const scene *s = arg;
    thread_get()->queue = shared_queue;
    DUET_ON(DUET_GPU)
    {
        repeat_shared(s, 2, s->y, s->z, false);
        fill(s->h, 9);
        CHECK(!repeat_shared(s, 2, NULL, NULL, true) && deferred_queues_now() != 0, "%s", duet_error());
    }
    sem_post(&is_deferred);
    sem_wait(&is_done);
    return NULL;
}

/* Writes h, too, when there is no memory to launch what the other thread has deferred. */
static void *second_thread(void *arg)
{
    const scene *s = arg;
    pthread_t first;
    shared_queue = thread_get()->queue;
    DUET_ON(DUET_GPU)
    {
        repeat_shared(s, 3, s->u, s->v, false);
        CHECK(!pthread_create(&first, NULL, first_thread, arg), "no thread");
        sem_wait(&is_deferred);
        fake_no_launches(true);
        const duet_status st = repeat_shared(s, 3, NULL, NULL, true);
        fake_no_launches(false);
        if (st == DUET_OK) CHECK(is_all(s->h, 3), "a later statement has lost its result");
        else CHECK(st == DUET_NO_MEMORY && is_lost(s->h), "old elements are read");
    }
    sem_post(&is_done);
    pthread_join(first, NULL);
    return NULL;
}

/* Row 1 is lost before a statement writes row 0; and before one writes both rows. */
static void *lost_before(void *both)
{
    scene s;
    CHECK(make(&s) && fill(s.x, 1) && fill(s.h, 4), "%s", duet_error());
    duet_matrix *to = duet_submatrix(s.h, 0, 0, both ? 2 : 1, N),
                *from = duet_submatrix(s.x, 0, 0, both ? 2 : 1, N), *row = duet_row(s.h, 1),
                *first = duet_row(s.h, 0), *y = duet_copy(from), *z = duet_copy(from);
    DUET_ON(DUET_GPU)
    {
        for (int turn = 0; turn < TURNS; turn++) {
            if (turn == TURNS - 1) matrix_lost(row);
            CHECK(!duet_set(to, duet_mul(from, 2)), "%s", duet_error());
            if (turn == TURNS - 1) break;
            CHECK(!duet_set(y, duet_mul(to, 2)) && !duet_set(z, duet_sub(y, to)) && is_all(z, 2), "%s",
                  duet_error());
            fill(s.x, turn == TURNS - 2 ? 5 : 1);
        }
        CHECK(both || deferred_queues_now() != 0, "the statement is not deferred");
        fake_no_launches(true);
        const duet_status launched = duet_synchronize();
        fake_no_launches(false);
        CHECK(launched == (both ? DUET_OK : DUET_NO_MEMORY), "%s", duet_error());
        CHECK(is_all(first, both ? 10 : 2) && is_lost(row) == !both, "rows");
    }
    duet_free(&to, &from, &row, &first, &y, &z);
    clear(&s);
    return NULL;
}

static void with_scene(void *play_it(void *))
{
    scene s;
    CHECK(make(&s) && fill(s.w, 1) && fill(s.z, 0) && fill(s.x, 1), "%s", duet_error());
    run_in_thread(play_it, &s);
    fake_no_launches(false);
    if (play_it == end_early) CHECK(is_lost(s.h) && is_lost(s.y), "old elements are read");
    clear(&s);
}

static void unreported(void)
{
    with_scene(free_operand);
    tap_point("statements that duet_free launches without memory have lost their results");
    with_scene(end_early);
    tap_point("statements that a thread leaves behind without memory have lost their results");
    sem_init(&is_deferred, 0, 0);
    sem_init(&is_done, 0, 0);
    with_scene(second_thread);
    tap_point("a statement keeps its result when what another thread deferred fails");
    run_in_thread(lost_before, NULL);
    run_in_thread(lost_before, "");
    tap_point("a deferred statement that fails loses nothing beside elements that were lost");
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
    run_in_thread(restored, NULL);
    tap_point("after a device error, elements that another device holds are restored");
    unreported();
    leave_the_choice();
    test(false, "calls of CUDA, where the place is free");
    test(true, "allocations, where the place is free");
    return tap_end();
}
