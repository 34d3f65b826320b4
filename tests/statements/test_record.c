/* test_record.c - compares replays with the same statements executed again, on two sets of the same
 * matrices. One executes a sequence of statements each time, the other replays it; between rounds
 * both are changed alike. All bits must be equal.
 *
 *     test_record [sequences] [seed] */
#include "common.h"
#include "in_thread.h"
#include "matrix.h"
#include "plan.h"
#include "pool.h"
#include "random_program.h"

enum { N = 24, LENGTH = 9, ROUNDS = 6 };

static rng gen;
static duet_place place[2];
static int places;

static int below(int n) { return (int)rng_below(&gen, n); }

/* ---- sets of matrices ---- */

typedef struct matrix_set {
    duet_matrix *m[MATRICES];
} matrix_set;

static matrix_set new_matrix_set(void)
{
    matrix_set w;
    new_matrices(w.m, N);
    return w;
}

/* The same numbers in both. */
static void fill(const matrix_set *a, const matrix_set *b, int k)
{
    random_fill(&gen, a->m[k], -1, 1);
    void *all = elements(a->m[k]);
    fill_from(b->m[k], all);
    free(all);
}

static void compare(const matrix_set *a, const matrix_set *b, const char *when)
{
    for (int k = 0; k < NUMBER + 1; k++) {
        void *x = elements(a->m[k]), *y = elements(b->m[k]);
        CHECK(x && y && same_bits(DUET_F32, x, y, duet_count(a->m[k])), "matrix %d differs %s", k, when);
        free(x);
        free(y);
    }
}

/* ---- statements ---------------------------------------------------------------------------------------- */

enum { LOTS = LINES, KINDS };

static line new_line(duet_place where)
{
    return (
        line){ below(KINDS), below(SQUARES), below(SQUARES), below(SQUARES), SQUARES + below(ROWS), where };
}

static duet_status perform(const matrix_set *w, const line *l)
{
    DUET_ON(l->where)
    {
        if (l->kind == LOTS) return duet_random_uniform(w->m[l->to], 7, -1, 1);
        return run_line(w->m, l);
    }
    return DUET_OK;
}

static bool perform_all(const matrix_set *w, const line *l, int n)
{
    for (int i = 0; i < n; i++) {
        const duet_status s = perform(w, &l[i]);
        if (!CHECK(s == DUET_OK, "kind %d: %s", l[i].kind, duet_error())) return false;
    }
    return true;
}

static duet_recording *record(const matrix_set *w, const line *l, int n)
{
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    perform_all(w, l, n);
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    return r;
}

/* ---- events between two rounds ---- */

static void touch(const matrix_set *w, int k, int how)
{
    duet_status s = DUET_OK;
    if (how == 0) CHECK(duet_read(w->m[k]), "%s", duet_error());
    if (how == 1) s = duet_set_on(DUET_CPU, w->m[k], duet_mul(w->m[k], 0.5));
    if (how == 2) s = duet_set_on(place[places - 1], w->m[k], duet_mul(w->m[k], 0.5));
    CHECK(s == DUET_OK, "%s", duet_error());
}

static void disturb(const matrix_set *a, const matrix_set *b)
{
    if (!below(4)) duet_memory_trim();
    for (int i = below(4); i > 0; i--) {
        const int k = below(MATRICES), how = below(4);
        if (how == 3) fill(a, b, k);
        else {
            touch(a, k, how);
            touch(b, k, how);
        }
    }
}

static duet_place any_place(int mix) { return mix < places ? place[mix] : place[below(places)]; }

/* mix: a place, or the number of places for statements on any of them. */
static void one_sequence(int mix)
{
    matrix_set a = new_matrix_set(), b = new_matrix_set();
    line l[LENGTH];
    const int n = 1 + below(LENGTH);
    for (int i = 0; i < n; i++) l[i] = new_line(any_place(mix));
    for (int k = 0; k <= NUMBER; k++) fill(&a, &b, k);
    duet_recording *r = perform_all(&a, l, n) ? record(&b, l, n) : NULL;
    compare(&a, &b, "after the recording");
    for (int round = 0; round < ROUNDS && r; round++) {
        disturb(&a, &b);
        perform_all(&a, l, n);
        const duet_status s = duet_replay(r);
        CHECK(s == DUET_OK, "%s", duet_error());
        compare(&a, &b, "after a replay");
    }
    duet_recording_free(&r);
    free_matrices(a.m);
    free_matrices(b.m);
}

static void sequences(int count)
{
    char text[64];
    for (int mix = 0; mix < places + (places > 1); mix++) {
        const uint64_t before = duet_stats().graphs;
        for (int i = 0; i < count; i++) one_sequence(mix);
        CHECK(mix == 0 || duet_stats().graphs > before, "no graph was launched");
        snprintf(text, sizeof text, "replay is as if written out, on %s",
                 mix < places ? place_name(place[mix]) : "both in turn");
        tap_point(text);
    }
}

/* ---- the cost of a replay ---- */

enum { DENSE = 3 };

static duet_recording *record_dense(const matrix_set *w, duet_place where)
{
    const line l[DENSE] = { { LAYER, 2, 0, 1, SQUARES, where },
                            { LAYER, 3, 2, 1, SQUARES, where },
                            { CHAIN, 4, 3, 2, SQUARES, where } };
    return record(w, l, DENSE);
}

static matrix_set filled_matrix_set(void)
{
    matrix_set a = new_matrix_set(), b = new_matrix_set();
    for (int k = 0; k <= NUMBER; k++) fill(&a, &b, k);
    free_matrices(b.m);
    return a;
}

static duet_counts since(duet_counts before)
{
    duet_counts now = duet_stats();
    for (size_t i = 0; i < sizeof now / sizeof(uint64_t); i++)
        ((uint64_t *)&now)[i] -= ((uint64_t *)&before)[i];
    return now;
}

static void one_cost(duet_place where)
{
    const bool gpu = where == DUET_GPU;
    matrix_set w = filled_matrix_set();
    duet_recording *r = record_dense(&w, where);
    for (int i = 0; i < 3 && r; i++) {
        random_fill(&gen, w.m[0], -1, 1);
        random_fill(&gen, w.m[2], -1, 1); /* the second is written before it is read */
        if (i == 2) matrix_lost(w.m[3]);  /* and so is this one */
        const duet_counts before = duet_stats();
        CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
        const duet_counts c = since(before);
        CHECK(c.replays == 1 && c.graphs == gpu, "%d replays, %d graphs", (int)c.replays, (int)c.graphs);
        CHECK(c.plan_hits + c.plan_misses == 0, "a replay looked for plans");
        /* In DUET_MATH_SPLIT the card examines what the host wrote, which needs memory. */
        CHECK(!gpu || math_now() == DUET_MATH_SPLIT || c.pool_hits + c.pool_misses == 0,
              "a replay allocated memory");
        CHECK(c.uploads == gpu && c.downloads == 0 && c.synchronisations == 0, "%d uploads, %d downloads",
              (int)c.uploads, (int)c.downloads);
        CHECK(c.launches >= (gpu ? DENSE : 0) && c.steps >= DENSE, "%d launches, %d steps", (int)c.launches,
              (int)c.steps);
    }
    duet_recording_free(&r);
    CHECK(!r, "duet_recording_free did not set the pointer to NULL");
    free_matrices(w.m);
}

static void costs(void)
{
    for (int i = 0; i < places; i++) one_cost(place[i]);
    tap_point("a replay does not plan, allocate or wait; on the GPU it is one graph");
}

/* ---- matrices whose buffers have moved ---- */

/* Leaves its elements valid on the host only; its next device buffer has another address. */
static void move(const duet_matrix *m)
{
    storage *b = m->storage;
    void **p = &b->buffer[DEFAULT_GPU], *old = *p;
    CHECK(duet_read(m) && pool_take(DEFAULT_GPU, b->bytes, 0, p) == DUET_OK, "%s", duet_error());
    CHECK(*p != old, "the buffer has the same address as before");
    pool_give(DEFAULT_GPU, old, b->first.users);
    b->state = 1 << HOST;
}

static void moved_matrices(void)
{
    matrix_set a = filled_matrix_set(), b = new_matrix_set();
    for (int k = 0; k <= NUMBER; k++) fill(&a, &b, k);
    const line all[] = { { ADD_TO, 0, 0, 0, SQUARES, DUET_GPU }, { PRODUCT, 1, 1, 0, 0, DUET_GPU } };
    perform_all(&a, all, 2);
    duet_recording *r = record(&b, all, 2);
    for (int i = 0; i < 4 && r; i++) {
        const uint64_t before = duet_stats().graphs;
        if (i < 2) move(b.m[i]);
        perform_all(&a, all, 2);
        CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
        compare(&a, &b, "after a move");
        CHECK(duet_stats().graphs - before == (i >= 2), "replay %d: the number of graphs is wrong", i);
    }
    duet_recording_free(&r);
    free_matrices(a.m);
    free_matrices(b.m);
    tap_point("recorded matrices that were copied to another device");
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static void *replay_there(void *r)
{
    CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
    CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
    return NULL;
}

static void other_threads(void)
{
    for (int i = 0; i < places; i++) {
        matrix_set a = filled_matrix_set(), b = new_matrix_set();
        for (int k = 0; k <= NUMBER; k++) fill(&a, &b, k);
        const line all[] = { { ADD_TO, 0, 0, 0, SQUARES, place[i] }, { PRODUCT, 1, 1, 0, 0, place[i] } };
        duet_recording *r = record(&b, all, 2);
        perform_all(&a, all, 2);
        for (int turn = 0; turn < 2 && r; turn++) {
            run_in_thread(replay_there, r);
            CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
            for (int k = 0; k < 3; k++) perform_all(&a, all, 2);
            compare(&a, &b, "after replays by two threads");
        }
        duet_recording_free(&r);
        free_matrices(a.m);
        free_matrices(b.m);
    }
    tap_point("threads replay in turn");
}

static void *forgotten(void *none)
{
    matrix_set w = filled_matrix_set();
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    CHECK(duet_set(w.m[0], duet_matmul(w.m[1], w.m[2])) == DUET_OK, "%s", duet_error());
    free_matrices(w.m);
    return none;
}

/* ---- errors ---- */

static void refused(duet_status got, duet_status want, const char *text)
{
    CHECK(got == want && strstr(duet_error(), text), "status %d, not %d: %s", (int)got, (int)want,
          duet_error());
}

static void order_of_calls(void)
{
    refused(duet_replay(NULL), DUET_BAD_ARGUMENT, "duet_replay: the recording must not be NULL");
    CHECK(!duet_record_end() && strstr(duet_error(), "duet_record_end: this thread is not recording"), "%s",
          duet_error());
    matrix_set w = filled_matrix_set();
    duet_recording *r = record_dense(&w, DUET_AUTO), *none = NULL;
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    refused(duet_record_begin(), DUET_BAD_ARGUMENT, "duet_record_begin: this thread is already recording");
    refused(duet_replay(r), DUET_BAD_ARGUMENT, "duet_replay: this thread is recording");
    duet_recording *empty = duet_record_end();
    FILE *plans = fopen("/dev/null", "w");
    DUET_EXPLAIN(plans)
    refused(duet_replay(r), DUET_UNSUPPORTED, "duet_replay: a recording cannot run inside DUET_EXPLAIN");
    fclose(plans);
    CHECK(empty && duet_replay(empty) == DUET_OK, "%s", duet_error());
    duet_recording_free(&r);
    duet_recording_free(&empty);
    duet_recording_free(&none);
    duet_recording_free(NULL);
    free_matrices(w.m);
    run_in_thread(forgotten, NULL);
    tap_point("recording functions called in the wrong order");
}

static void failing_statement(void)
{
    matrix_set w = filled_matrix_set();
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    refused(duet_set(w.m[SQUARES], duet_add(w.m[0], w.m[1])), DUET_BAD_SHAPE, "duet_set");
    CHECK(!duet_record_end() && strstr(duet_error(), "a statement failed"), "%s", duet_error());
    free_matrices(w.m);
    tap_point("a recording in which a statement failed");
}

static void freed_matrices(void)
{
    for (int i = 0; i < places; i++)
        for (int which = 0; which < 2; which++) {
            matrix_set w = filled_matrix_set();
            duet_recording *r = record_dense(&w, place[i]);
            duet_free(&w.m[which ? 4 : 1]); /* a destination, or a leaf */
            void *before = elements(w.m[2]);
            random_fill(&gen, w.m[0], -1, 1);
            refused(duet_replay(r), DUET_FREED,
                    which ? "statement 3 of a recording" : "statement 1 of a recording");
            CHECK(strstr(duet_error(), "random_program.h:"), "no source line: %s", duet_error());
            void *after = elements(w.m[2]);
            CHECK(same_bits(DUET_F32, before, after, N * N), "a statement before the failed one has run");
            free(before);
            free(after);
            duet_recording_free(&r);
            free_matrices(w.m);
        }
    tap_point("freed matrices");
}

int main(int argc, char **argv)
{
    setenv("DUET_REPRODUCIBLE", "1", 1);
    gen = rng_new(argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    places = list_places(place);
    sequences(trial_count(argc, argv, 40, 150));
    costs();
    if (places > 1) moved_matrices();
    other_threads();
    order_of_calls();
    failing_statement();
    freed_matrices();
    return tap_end();
}
