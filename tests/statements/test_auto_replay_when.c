/* test_auto_replay_when.c - which loops are replayed automatically, by the counters of duet_stats;
 * and how to turn that off. */
#include "auto_replay.h"
#include "common.h"
#include "deferred.h"
#include "in_thread.h"
#include "modes.h"

enum { N = 24, TURNS = 60, STATEMENTS_A_TURN = 3 };

typedef struct scene {
    duet_matrix *in, *w, *b, *h, *y, *z;
} scene;

static duet_matrix *filled(int64_t rows, float v)
{
    duet_matrix *m = rows ? duet_new(DUET_F32, rows, N) : duet_new(DUET_F32, N);
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v + 0.01f * (float)(i % 7);
    return m;
}

static scene new_scene(void)
{
    return (scene){ filled(N, 0.5f), filled(N, -0.1f), filled(0, 0.2f),
                    filled(N, 0),    filled(N, 0),     filled(N, 0) };
}

static void free_scene(scene *s)
{
    duet_free(&s->in);
    duet_free(&s->w);
    duet_free(&s->b);
    duet_free(&s->h);
    duet_free(&s->y);
    duet_free(&s->z);
}

static void ok(duet_status s) { CHECK(s == DUET_OK, "status %d: %s", (int)s, duet_error()); }

static duet_counts since(duet_counts before)
{
    duet_counts now = duet_stats();
    for (size_t i = 0; i < sizeof now / sizeof(uint64_t); i++)
        ((uint64_t *)&now)[i] -= ((uint64_t *)&before)[i];
    return now;
}

/* ---- loops; each turn has the statements of a small network, and other events ---- */

enum extra {
    NOTHING,
    FEED,
    FEED_AND_READ,
    READ_MIDDLE,
    NEW_NUMBER,
    NEW_MATRIX,
    WAIT_MIDDLE,
    HOST_MIDDLE,
    POINTER_MIDDLE
};

static void new_z(scene *s)
{
    duet_free(&s->z);
    s->z = duet_new(DUET_F32, N, N);
}

static void one_turn(scene *s, enum extra extra, int turn)
{
    float *p = extra == FEED || extra == FEED_AND_READ ? duet_overwrite(s->in) : NULL;
    for (int i = 0; p && i < N * N; i++) p[i] = 0.001f * (float)(i + turn);
    if (extra == NEW_MATRIX) new_z(s);
    ok(duet_set(s->h, duet_sigmoid(duet_bias_add(duet_matmul(s->in, s->w), s->b))));
    ok(duet_set(s->y, duet_relu(duet_bias_add(duet_matmul(s->h, s->w), s->b))));
    if (extra == READ_MIDDLE) CHECK(duet_read(s->y), "%s", duet_error());
    if (extra == WAIT_MIDDLE) ok(duet_synchronize());
    if (extra == POINTER_MIDDLE) CHECK(duet_device_read(s->y), "%s", duet_error());
    if (extra == HOST_MIDDLE) ok(duet_set_on(DUET_CPU, s->z, duet_add(s->w, 1)));
    ok(duet_set(s->z, duet_sub(duet_mul(s->h, extra == NEW_NUMBER ? turn + 0.3 : 0.5), s->y)));
    if (extra == FEED_AND_READ) CHECK(duet_read(s->z), "%s", duet_error());
}

static duet_counts loop(enum extra extra, duet_place where, int turns)
{
    scene s = new_scene();
    const duet_counts before = duet_stats();
    DUET_ON(where)
    for (int turn = 0; turn < turns; turn++) one_turn(&s, extra, turn);
    const duet_counts c = since(before);
    free_scene(&s);
    return c;
}

/* How many turns are observed first, and how many more may run without replay. */
enum { LEARNT = 12 };

typedef struct wanted {
    enum extra extra;
    int a_turn, graphs; /* statements replayed in a turn, in this number of graphs */
    const char *name;
} wanted;

static void *one_loop(void *arg)
{
    const wanted *w = arg;
    const duet_counts c = loop(w->extra, DUET_GPU, TURNS);
    const uint64_t least = (uint64_t)(w->a_turn * (TURNS - LEARNT)), most = (uint64_t)(w->a_turn * TURNS);
    CHECK(c.repeats >= least && c.repeats <= most, "%s: %d statements replayed, not %d to %d", w->name,
          (int)c.repeats, (int)least, (int)most);
    CHECK(c.graphs * (uint64_t)w->a_turn == c.repeats * (uint64_t)w->graphs, "%s: %d graphs", w->name,
          (int)c.graphs);
    return NULL;
}

static void loops(void)
{
    static wanted all[] = { { NOTHING, 3, 1, "statements alone" },
                            { FEED, 3, 1, "the host feeds each turn" },
                            { FEED_AND_READ, 3, 1, "the host feeds and reads" },
                            { READ_MIDDLE, 3, 1, "the host reads half-way" },
                            { WAIT_MIDDLE, 3, 1, "the host waits half-way" },
                            { POINTER_MIDDLE, 3, 1, "a device pointer half-way" },
                            { HOST_MIDDLE, 3, 1, "a statement on the CPU between" },
                            { NEW_NUMBER, 2, 1, "another number each turn" },
                            { NEW_MATRIX, 0, 0, "another matrix each turn" } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        run_in_thread(one_loop, &all[i]);
        tap_point(all[i].name);
    }
}

/* ---- statements that are not replayed ---- */

static duet_counts counted[2];

static void *count_loop(void *automatic)
{
    const int on = *(int *)automatic;
    ok(duet_auto_replay(on));
    loop(FEED_AND_READ, DUET_GPU, 3);
    counted[on] = loop(FEED_AND_READ, DUET_GPU, TURNS);
    return NULL;
}

static void same_moves(void)
{
    for (int on = 0; on < 2; on++) run_in_thread(count_loop, &on);
    const duet_counts a = counted[0], b = counted[1];
    CHECK(a.uploads == b.uploads && a.upload_bytes == b.upload_bytes, "%d uploads, not %d", (int)b.uploads,
          (int)a.uploads);
    CHECK(a.downloads == b.downloads && a.synchronisations == b.synchronisations, "%d downloads, not %d",
          (int)b.downloads, (int)a.downloads);
    CHECK(a.launches == b.launches && a.steps == b.steps, "%d launches and %d steps, not %d and %d",
          (int)b.launches, (int)b.steps, (int)a.launches, (int)a.steps);
    CHECK(a.repeats == 0 && b.repeats > 0, "statements were replayed while it is off, or not while it is on");
    tap_point("copies, launches and waits of a replayed loop");
}

static void *on_cpu(void *none)
{
    const duet_counts c = loop(FEED_AND_READ, DUET_CPU, TURNS);
    CHECK(c.repeats == 0 && c.graphs == 0, "graphs were launched on the CPU");
    return none;
}

static void *costly(void *none)
{
    duet_matrix *x = duet_new(DUET_F32, 8000000), *y = duet_new(DUET_F32, 8000000);
    const duet_counts before = duet_stats();
    for (int i = 0; i < 10; i++) {
        ok(duet_set_on(DUET_GPU, y, duet_add(x, 1)));
        ok(duet_set_on(DUET_GPU, x, duet_mul(y, 0.5)));
    }
    CHECK(since(before).repeats == 0, "statements of millions of elements are deferred");
    duet_free(&x);
    duet_free(&y);
    return none;
}

static void *single(void *none)
{
    scene s = new_scene();
    const duet_counts before = duet_stats();
    for (int i = 0; i < TURNS; i++) {
        ok(duet_set_on(DUET_GPU, s.y, duet_add(s.in, 1)));
        CHECK(duet_read(s.y), "%s", duet_error());
    }
    CHECK(since(before).repeats == 0, "a sequence of a single launch is deferred");
    free_scene(&s);
    return none;
}

static void not_worth(void)
{
    run_in_thread(on_cpu, NULL);
    run_in_thread(single, NULL);
    run_in_thread(costly, NULL);
    tap_point("loops that replay would not make faster");
}

/* ---- a loop that recurs; nested loops ---- */

static void *comes_back(void *none)
{
    scene s = new_scene();
    DUET_ON(DUET_GPU)
    {
        for (int turn = 0; turn < TURNS; turn++) one_turn(&s, NOTHING, turn);
        ok(duet_set(s.b, duet_mul(s.b, 0.5)));
        const duet_counts before = duet_stats();
        for (int turn = 0; turn < 4; turn++) one_turn(&s, NOTHING, turn);
        ok(duet_synchronize());
        CHECK(since(before).repeats >= 3 * STATEMENTS_A_TURN,
              "only %d statements of a loop that runs again were replayed", (int)since(before).repeats);
    }
    free_scene(&s);
    return none;
}

static void *hangs_back(void *none)
{
    scene s = new_scene();
    DUET_ON(DUET_GPU)
    for (int turn = 0; turn < TURNS; turn++) one_turn(&s, FEED_AND_READ, turn);
    const duet_counts before = duet_stats();
    auto_replay_set_max_seconds(0);
    DUET_ON(DUET_GPU)
    for (int turn = 0; turn < TURNS; turn++) one_turn(&s, FEED_AND_READ, turn);
    auto_replay_set_max_seconds(1);
    CHECK(since(before).repeats <= 12 * STATEMENTS_A_TURN,
          "%d statements are deferred although that costs more time than it saves",
          (int)since(before).repeats);
    free_scene(&s);
    return none;
}

/* ---- what interrupts a sequence ---- */

static void holds(const duet_matrix *m, float v, const char *what)
{
    const float *p = duet_read(m);
    if (CHECK(p, "%s", duet_error())) CHECK(*p == v, "%s is %g, not %g", what, (double)*p, (double)v);
}

/* h = w + w, or w * w; y = h + 1. Without call sites statements differ only in their formulas. */
static void one_half(scene *s, bool product)
{
    ok((duet_set)(s->h, product ? duet_mul(s->w, s->w) : duet_add(s->w, s->w)));
}

static void *other_things(void *none)
{
    scene s = new_scene();
    duet_recording *r = NULL;
    DUET_ON(DUET_GPU)
    {
        ok(duet_set(s.w, 3));
        ok(duet_set(s.h, 0));
        ok(duet_record_begin());
        ok(duet_set(s.z, duet_mul(s.h, 10)));
        r = duet_record_end();
        for (int turn = 0; turn < TURNS; turn++) {
            one_half(&s, false);
            ok((duet_set)(s.y, duet_add(s.h, 1)));
        }
        ok(duet_set(s.w, 4));
        one_half(&s, false);
        CHECK(deferred_queues_now() != 0, "no statement is deferred");
        if (CHECK(r, "%s", duet_error())) ok(duet_replay(r));
        holds(s.z, 80, "z, of a recording");
        one_half(&s, true);
        ok((duet_set)(s.y, duet_add(s.h, 1)));
        holds(s.y, 17, "y, by another formula");
    }
    duet_recording_free(&r);
    free_scene(&s);
    return none;
}

/* ---- off and on ---- */

static void *streams(void *none)
{
    CHECK(duet_stream(), "%s", duet_error());
    CHECK(loop(NOTHING, DUET_GPU, TURNS).repeats == 0,
          "statements are deferred although the caller has the stream");
    ok(duet_auto_replay(1));
    CHECK(duet_stream(), "%s", duet_error());
    CHECK(loop(NOTHING, DUET_GPU, TURNS).repeats > 0, "duet_auto_replay(1) does not turn it on");
    ok(duet_auto_replay(0));
    CHECK(loop(NOTHING, DUET_GPU, TURNS).repeats == 0, "duet_auto_replay(0) does not turn it off");
    CHECK(duet_auto_replay(2) == DUET_BAD_ARGUMENT &&
              strstr(duet_error(), "duet_auto_replay: on (2) must be 0 or 1"),
          "%s", duet_error());
    return none;
}

/* A process reads the environment once. */
static int by_environment(void)
{
    setenv("DUET_AUTO_REPLAY", "0", 1);
    const bool off = loop(NOTHING, DUET_GPU, TURNS).repeats == 0;
    ok(duet_auto_replay(1));
    if (off && loop(NOTHING, DUET_GPU, TURNS).repeats > 0) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    duet_place place[2];
    if (argc > 1 && !strcmp(argv[1], "--off")) {
        auto_replay_set_max_seconds(1);
        return by_environment();
    }
    char self[4096];
    snprintf(self, sizeof self, "'%s' --off", argv[0]);
    if (list_places(place) < 2) {
        printf("ok %d - automatic replay # SKIP there is no GPU\n", ++tap_points);
        return tap_end();
    }
    auto_replay_set_max_seconds(1);
    loops();
    same_moves();
    not_worth();
    run_in_thread(comes_back, NULL);
    tap_point("a loop that starts again is replayed immediately");
    run_in_thread(hangs_back, NULL);
    tap_point("a loop whose replay is slower is not replayed");
    run_in_thread(other_things, NULL);
    tap_point("a replay, and another formula for the same matrices");
    run_in_thread(streams, NULL);
    tap_point("duet_stream, duet_auto_replay");
    CHECK(system(self) == 0, "DUET_AUTO_REPLAY=0 has no effect");
    tap_point("DUET_AUTO_REPLAY");
    return tap_end();
}
