/* test_group_faults.c - faults of one rank of a group, on the fake CUDA: each call of CUDA fails once. Every
 * statement returns, with a text that names the rank. The destination has its old elements or the new ones,
 * or is marked as lost. */
#include "clock.h"
#include "fake_cuda.h"
#include "quick.h"
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <string.h>

enum { RANKS = 3, ROWS = 30, COLUMNS = 4, COUNT_OF = ROWS * COLUMNS };

typedef struct scene {
    duet_group *g;
    duet_matrix *x, *y, *w;
} scene;

static void set_elements(duet_matrix *m, float first)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = first + (float)(i % 5);
}

static bool open_scene(scene *s, double seconds)
{
    s->g = duet_group_local(RANKS);
    if (!CHECK(s->g != NULL, "%s", duet_error())) return false;
    s->x = duet_new_split(s->g, DUET_F32, 0, ROWS, COLUMNS);
    s->y = duet_new_split(s->g, DUET_F32, 0, ROWS, COLUMNS);
    s->w = duet_new_replicated(s->g, DUET_F32, COLUMNS, COLUMNS);
    CHECK(duet_group_timeout(s->g, seconds) == DUET_OK, "%s", duet_error());
    set_elements(s->x, 1);
    set_elements(s->y, 7);
    CHECK(duet_set(s->w, duet_matmul(duet_transpose(s->x), s->x)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set(s->y, duet_add(s->y, 0)) == DUET_OK, "%s", duet_error());
    return true;
}

static void close_scene(scene *s)
{
    duet_free(&s->x, &s->y, &s->w);
    duet_group_free(&s->g);
}

static duet_status statement(const scene *s)
{
    return duet_set(s->y, duet_matmul(s->x, duet_matmul(duet_transpose(s->x), s->x)));
}

/* -1: all are lost; 0: as before, 1: new, 2: anything else */
static int state_of(const scene *s)
{
    const float *p = duet_read(s->y);
    if (!p) return -1;
    bool old = true;
    for (int64_t i = 0; i < COUNT_OF; i++) old &= p[i] == 7 + (float)(i % 5);
    if (old) return 0;
    for (int64_t i = 0; i < COUNT_OF; i++)
        if (!(p[i] > 20)) return 2; /* sums of 30 products */
    return 1;
}

static void check_outcome(const scene *s, duet_status got, uint64_t n, double seconds)
{
    char text[400];
    snprintf(text, sizeof text, "%s", got == DUET_OK ? "" : duet_error());
    CHECK(seconds < 5, "call %d: %g seconds", (int)n, seconds);
    if (got != DUET_OK) CHECK(strstr(text, "rank ") != NULL, "call %d: no rank in: %s", (int)n, text);
    const int state = state_of(s);
    CHECK(state < 2, "call %d (%s): mixed elements", (int)n, text);
    if (got == DUET_OK) CHECK(state == 1 || state == -1, "call %d: success, and state %d", (int)n, state);
}

static void each_call(int card, int most)
{
    bool failed = true;
    uint64_t n = 1;
    for (; failed && n < (uint64_t)most; n++) {
        scene s;
        if (!open_scene(&s, 1)) return;
        const double start = clock_now();
        fake_fail_on(card, n);
        const duet_status got = statement(&s);
        failed = fake_failed();
        fake_fail_on(card, 0);
        check_outcome(&s, got, n, clock_now() - start);
        if (!failed) CHECK(got == DUET_OK && state_of(&s) == 1, "without a fault: %s", duet_error());
        close_scene(&s);
    }
    printf("# %d calls failed, each once, on card %d\n", (int)n - 2, card);
}

int main(int argc, char **argv)
{
    const int most = trial_count(argc, argv, 60, 500);
    fake_devices(RANKS);
    each_call(0, most);
    each_call(1, most);
    tap_point("each call of CUDA fails once on one card");
    return tap_end();
}
