/* test_memory_ladder_faults.c - failures while buffers of other matrices are freed on the fake CUDA: every
 * allocation and every call of CUDA fails once. All elements are small integers, so every result is exact. */
#include "fault_scenario.h"

enum { ELEMENTS = 4096, BYTES = 4 * ELEMENTS, ROOM = 3 * BYTES, MATRICES = 6 };

enum { A, B, C, D, E, F };

static bool make(duet_matrix *m[MATRICES])
{
    for (int i = 0; i < MATRICES; i++)
        if (!(m[i] = duet_new(DUET_F32, ELEMENTS))) {
            met.refused++;
            return false;
        }
    for (int i = 0; i < MATRICES; i++)
        if (!fill(m[i], (float)(i + 1))) return false;
    return true;
}

/* One of the results, which was `before`, is now `after`. Elements that were lost are written again. */
static bool ends(duet_status st, duet_matrix *to, float before, float after)
{
    const bool well = went(st);
    holds(to, well, before, after);
    return well || fill(to, after);
}

/* A = 1 and so on at first. Each statement needs at most three matrices, which is all that fits. */
static void turn(duet_matrix **m)
{
    if (!ends(duet_set(m[A], duet_add(m[A], m[B])), m[A], 1, 3)) return;
    if (!ends(duet_set(m[C], duet_add(m[C], m[D])), m[C], 3, 7)) return;
    if (!ends(duet_set(m[E], duet_add(m[A], m[C])), m[E], 5, 10)) return;
    bool well = went(duet_set(m[A], duet_mul(2, m[A]))); /* it stays on the GPU */
    if (!well && !fill(m[A], 6)) return;
    well = went(duet_set(m[B], duet_mul(2, m[B])));
    if (!well && !fill(m[B], 4)) return;
    well = went(duet_set(m[D], duet_mul(2, m[D])));
    if (!well && !fill(m[D], 8)) return;
    if (!ends(duet_set(m[F], duet_sub(m[E], m[C])), m[F], 6, 3)) return;
    holds(m[A], true, 6, 6);
    holds(m[B], true, 4, 4);
    holds(m[D], true, 8, 8);
    well = went(duet_set_all({ m[A], duet_mul(2, m[B]) }, { m[B], duet_add(m[A], 1) }));
    holds(m[A], well, 6, 8);
    holds(m[B], well, 4, 9);
    holds(m[C], true, 7, 7);
}

static void *play(void *arg)
{
    duet_matrix *m[MATRICES] = { NULL };
    if (make(m)) DUET_ON(place) turn(m);
    fault_scenario_over();
    for (int i = 0; i < MATRICES; i++) duet_free(&m[i]);
    return NULL;
}

static uint64_t evictions(void) { return duet_stats().evictions; }

static void test(bool allocation, const char *what) { each_once(play, allocation, what, evictions, 4); }

int main(void)
{
    CHECK(duet_memory_limit(DUET_GPU, ROOM + 4096) == DUET_OK, "%s", duet_error());
    test(false, "calls of CUDA");
    test(true, "allocations");
    leave_the_choice();
    test(false, "calls of CUDA, where the place is free");
    test(true, "allocations, where the place is free");
    return tap_end();
}
