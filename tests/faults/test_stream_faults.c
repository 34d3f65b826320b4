/* test_stream_faults.c - failures of streamed statements on the fake CUDA: every allocation and
 * every call of CUDA and the vendor libraries fails once. All elements are small integers, so every
 * result is exact. */
#include "eviction.h"
#include "fault_scenario.h"
#include "stream.h"
#include "stream_policy.h"

enum { ROWS = 700, COLUMNS = 4, WIDE = 5, ROOM = 14000 };

typedef struct scene {
    duet_matrix *x, *y, *z, *w, *b, *h;
} scene;

static bool make(scene *s)
{
    duet_matrix **rows[] = { &s->x, &s->y, &s->z };
    bool there = true;
    for (int i = 0; i < 3; i++) there &= (*rows[i] = duet_new(DUET_F32, ROWS, COLUMNS)) != NULL;
    there &= (s->h = duet_new(DUET_F32, ROWS, WIDE)) && (s->w = duet_new(DUET_F32, COLUMNS, WIDE)) &&
             (s->b = duet_new(DUET_F32, WIDE));
    if (!there) {
        met.refused++;
        return false;
    }
    return fill(s->x, 1) && fill(s->y, 2) && fill(s->z, 3) && fill(s->w, 1) && fill(s->b, 2) && fill(s->h, 9);
}

/* y = 2 x + y = 4; h = relu(x w + b) = 6; { z = x + y = 5, y = z + 1 = 6 }. */
static void turn(const scene *s)
{
    bool well = went(duet_set(s->y, duet_add(duet_mul(2, s->x), s->y)));
    holds(s->y, well, 2, 4);
    if (!well && !fill(s->y, 4)) return;
    well = went(duet_set(s->h, duet_relu(duet_bias_add(duet_matmul(s->x, s->w), s->b))));
    holds(s->h, well, 9, COLUMNS + 2);
    well = went(duet_set_all({ s->z, duet_add(s->x, s->y) }, { s->y, duet_add(s->z, 1) }));
    holds(s->z, well, 3, 5);
    holds(s->y, well, 4, 6);
    holds(s->x, true, 1, 1);
}

static void *play(void *arg)
{
    scene s = { 0 };
    if (make(&s)) DUET_ON(place) turn(&s);
    fault_scenario_over();
    duet_matrix **all[] = { &s.x, &s.y, &s.z, &s.w, &s.b, &s.h };
    for (int i = 0; i < 6; i++) duet_free(all[i]);
    return NULL;
}

static uint64_t streamed(void) { return duet_stats().streams; }

static void test(bool allocation, const char *what) { each_once(play, allocation, what, streamed, 3); }

int main(void)
{
    setenv("DUET_REPRODUCIBLE", "1", 1);
    stream_from(0);
    evict_matrices(false); /* otherwise nothing is streamed that fits alone */
    stream_staged_from(0);
    CHECK(duet_memory_limit(DUET_GPU, ROOM) == DUET_OK, "%s", duet_error());
    test(false, "calls of CUDA");
    test(true, "allocations");
    leave_the_choice();
    test(false, "calls of CUDA, where the place is free");
    test(true, "allocations, where the place is free");
    return tap_end();
}
