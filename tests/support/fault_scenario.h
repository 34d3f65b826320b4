/* fault_scenario.h - runs a scenario on the fake CUDA once for each allocation, or each call of
 * CUDA and of the vendor libraries, and makes that one fail. Link as failing_alloc.h says. */
#ifndef FAULT_SCENARIO_H
#define FAULT_SCENARIO_H

#include "failing_alloc.h"
#include "fake_cuda.h"
#include "generated.h"
#include "in_thread.h"
#include "prefer_gpu.h"
#include <duet/duet.h>
#include <string.h>

typedef struct fault_scenario {
    int refused;     /* statements and pointers that returned an error */
    bool wrong;      /* a value, status or text was impossible */
    bool unsettled;  /* more than one turn was affected */
    bool allocation; /* an allocation is to fail; otherwise a call */
    bool hit;        /* the failure has happened */
} fault_scenario;
static fault_scenario met;          /* results of this run */
static duet_place place = DUET_GPU; /* where the statements of the scenario run */

/* From here on the library chooses where statements run: on the GPU wherever they can. */
static void leave_the_choice(void)
{
    prefer_gpu();
    place = DUET_AUTO;
}

static bool wrong(const char *what)
{
    printf("# %s: %s\n", what, duet_error());
    met.wrong = true;
    return false;
}

static bool went(duet_status st)
{
    if (st == DUET_OK) return true;
    const bool promised = st == DUET_NO_MEMORY || st == DUET_DEVICE_ERROR || st == DUET_NO_DEVICE ||
                          st == DUET_UNSUPPORTED || st == DUET_UNKNOWN;
    if (!promised || !*duet_error()) wrong("a refusal");
    met.refused++;
    return false;
}

static bool fill(duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    return p || (met.refused++, false);
}

/* Does each element of m, read at p, equal v? */
static bool all_are(const float *p, const duet_matrix *m, float v)
{
    for (int64_t i = 0; i < duet_count(m); i++)
        if (p[i] != v) {
            printf("# %d is %g, not %g\n", (int)i, (double)p[i], (double)v);
            return wrong("a value");
        }
    return true;
}

/* After success each element is `after`. After a failure nothing has changed. Only after a device
 * error, which no failed allocation causes, the contents may be undefined. */
static inline void holds(const duet_matrix *m, bool well, float before, float after)
{
    const float *p = duet_read(m);
    if (!p && met.allocation && strstr(duet_error(), "lost")) wrong("elements are lost for lack of memory");
    if (p) all_are(p, m, well ? after : before);
    else met.refused += well && !met.hit;
}

/* The scenario calls it before it frees its matrices, because a failing release may keep memory. */
static void fault_scenario_over(void)
{
    if (met.allocation) met.hit = fail_in < 0;
    else met.hit = fake_failed();
    fail_in = -1;
    fake_fail(0);
}

/* Runs the scenario in a new thread, in which nothing is cached. */
static fault_scenario fault_scenario_run(void *play(void *), bool allocation)
{
    met = (fault_scenario){ .allocation = allocation };
    run_in_thread(play, NULL);
    duet_memory_trim();
    generated_clear();
    return met;
}

static void check_left(const char *what, int n, int64_t living, fake_counts start)
{
    const fake_counts now = fake_count();
    CHECK(now.graphs_alive == start.graphs_alive, "%s %d: %d graphs were not destroyed", what, n,
          now.graphs_alive);
    CHECK(now.handles == start.handles, "%s %d: there are %d handles, not %d", what, n, now.handles,
          start.handles);
    CHECK(now.memory == start.memory, "%s %d: %zu bytes of GPU memory are allocated, not %zu", what, n,
          now.memory, start.memory);
    CHECK(thread_state_missing || live == living, "%s %d: %d blocks leaked", what, n, (int)(live - living));
}

/* Counts the events that the scenario is about and that must occur. */
typedef uint64_t happened(void);
static inline uint64_t nothing_special(void) { return 0; }

/* Runs the scenario twice, because the second run reuses what the first one cached. */
static void goes_well(void *play(void *), bool allocation, happened *count, int least)
{
    fault_scenario_run(play, allocation);
    const uint64_t before = count();
    const fault_scenario m = fault_scenario_run(play, allocation);
    const int times = (int)(count() - before);
    CHECK(!m.refused && !m.wrong && times >= least,
          "without a failed call: %d statements failed, after %d calls", m.refused, times);
}

static void each_once(void *play(void *), bool allocation, const char *what, happened *count, int least)
{
    goes_well(play, allocation, count, least);
    const fake_counts start = fake_count();
    const int64_t living = live;
    int n = 0, silent = 0;
    for (bool hit = true; hit && n < 5000; n++) {
        if (allocation) fail_in = n;
        else fake_fail((uint64_t)n + 1);
        const fault_scenario m = fault_scenario_run(play, allocation);
        hit = m.hit;
        silent += hit && !m.refused;
        CHECK(!m.wrong, "%s %d: a status, an error text or a destination is wrong", what, n);
        CHECK(hit || !m.refused, "%s %d: no call failed, but %d statements failed", what, n, m.refused);
        CHECK(!m.unsettled, "%s %d: the next round is wrong too: %s", what, n, duet_error());
        check_left(what, n, living, start);
        const fault_scenario after = fault_scenario_run(play, allocation);
        CHECK(!after.refused && !after.wrong, "%s %d: the next statement is wrong: %s", what, n,
              duet_error());
    }
    char text[100];
    CHECK(n > 40 && n < 5000, "%d failures", n);
    snprintf(text, sizeof text, "%s: %d failed once each, %d without anyone's notice", what, n - 1, silent);
    tap_point(text);
}

static inline int mishaps_of(void *play(void *), happened *count, int least)
{
    each_once(play, true, "allocations", count, least);
    each_once(play, false, "calls", count, least);
    leave_the_choice();
    each_once(play, true, "allocations, where the place is free", count, least);
    return tap_end();
}

#endif
