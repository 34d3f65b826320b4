/* test_group_faults.c - faults of one rank of a group, on the fake CUDA: each call of CUDA fails once. Every
 * statement returns, with a text that names the rank. The destination has its old elements or the new ones,
 * or is marked as lost. */
#include "clock.h"
#include "fake_cuda.h"
#include "quick.h"
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- random numbers and files ---- */

static char file[] = "/tmp/duet-group-faults-XXXXXX";

static duet_status make_noise(const scene *s) { return duet_noise_normal(s->y, duet_mul(s->x, 0), 5); }
static duet_status make_numbers(const scene *s) { return duet_random_normal(s->y, 5, 0, 1); }
static duet_status save(const scene *s) { return duet_save_npy(file, s->y); }
static duet_status load(const scene *s) { return duet_load_npy_into(file, s->y); }

/* Is y as before, or what duet_random_normal makes? Elements may be lost. */
static bool has_either(const scene *s, const duet_matrix *made)
{
    const float *p = duet_read(s->y), *q = duet_read(made);
    bool is_old = true, is_new = true;
    for (int64_t i = 0; p && q && i < COUNT_OF; i++) {
        is_old &= p[i] == 7 + (float)(i % 5);
        is_new &= p[i] == q[i];
    }
    return !p || is_old || is_new;
}

static void each_call_of(duet_status run(const scene *s), const char *what, int card, int most)
{
    bool failed = true;
    int n = 1;
    duet_matrix *made = duet_new(DUET_F32, ROWS, COLUMNS);
    CHECK(duet_random_normal(made, 5, 0, 1) == DUET_OK && duet_save_npy(file, made) == DUET_OK, "%s",
          duet_error());
    for (; failed && n < most; n++) {
        scene s;
        if (!open_scene(&s, 1)) break;
        fake_fail_on(card, (uint64_t)n);
        const duet_status got = run(&s);
        failed = fake_failed();
        fake_fail_on(card, 0);
        CHECK(has_either(&s, made), "%s, call %d: mixed elements", what, n);
        if (!failed) CHECK(got == DUET_OK, "%s without a fault: %s", what, duet_error());
        duet_matrix *saved = duet_load_npy(file);
        CHECK(saved != NULL, "%s, call %d: %s", what, n, duet_error());
        duet_free(&saved);
        close_scene(&s);
    }
    printf("# %s: %d calls failed, each once, on card %d\n", what, n - 2, card);
    duet_free(&made);
}

int main(int argc, char **argv)
{
    const int most = trial_count(argc, argv, 60, 500);
    fake_devices(RANKS);
    each_call(0, most);
    each_call(1, most);
    tap_point("each call of CUDA fails once on one card");
    const int f = mkstemp(file);
    for (int card = 0; card < 2; card++) {
        each_call_of(make_numbers, "random numbers", card, most);
        each_call_of(make_noise, "noise", card, most);
        each_call_of(save, "saving", card, most);
        each_call_of(load, "loading", card, most);
    }
    CHECK(f >= 0 && !close(f) && !unlink(file), "the file is missing");
    tap_point("the same for random numbers and files");
    return tap_end();
}
