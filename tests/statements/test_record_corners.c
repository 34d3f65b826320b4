/* test_record_corners.c - tests difficult cases of recordings. */
#include "common.h"
#include "in_thread.h"
#include "matrix.h"
#include <semaphore.h>

enum { N = 64 };

static duet_matrix *filled(float v, int64_t n)
{
    duet_matrix *m = duet_new(DUET_F32, n, n);
    float *p = duet_overwrite(m);
    for (int64_t i = 0; i < n * n; i++) p[i] = v;
    return m;
}

static void ok(duet_status s) { CHECK(s == DUET_OK, "status %d: %s", (int)s, duet_error()); }

static void holds(const duet_matrix *m, float v, const char *what)
{
    const float *p = duet_read(m);
    if (!CHECK(p, "%s: %s", what, duet_error())) return;
    for (int64_t i = 0; i < duet_count(m); i++)
        if (!CHECK(p[i] == v, "%s[%d] is %g, not %g", what, (int)i, (double)p[i], (double)v)) return;
}

/* A temporary of the caller is freed before the recording ends: replay returns FREED, but
 * duet_record_end must work. */
static void freed_before_end(duet_place where)
{
    duet_matrix *x = filled(1, N), *t = filled(0, N), *y = filled(0, N);
    ok(duet_record_begin());
    ok(duet_set_on(where, t, duet_add(x, 1)));
    ok(duet_set_on(where, y, duet_mul(t, 3)));
    duet_free(&t);
    duet_recording *r = duet_record_end();
    holds(y, 6, "y");
    if (r) CHECK(duet_replay(r) == DUET_FREED, "%s", duet_error());
    duet_recording_free(&r);
    duet_free(&x);
    duet_free(&y);
    tap_point("a matrix freed before the recording ends");
}

/* ---- a thread reads what another one has set while that one records other matrices ---- */

enum { TURNS = 150, LINES = 100 };
static duet_matrix *handed, *given;
static sem_t ready, taken;

static void *record_again_and_again(void *none)
{
    duet_matrix *x = filled(1, N), *y = filled(0, N);
    for (int i = 0; i < TURNS; i++) {
        ok(duet_set_on(DUET_GPU, handed, duet_add(given, i)));
        ok(duet_record_begin());
        for (int k = 0; k < LINES; k++) ok(duet_set_on(DUET_GPU, y, duet_add(x, k)));
        sem_post(&ready);
        duet_recording *r = duet_record_end();
        CHECK(r, "%s", duet_error());
        if (r) ok(duet_replay(r));
        duet_recording_free(&r);
        holds(y, LINES, "y of who records");
        sem_wait(&taken);
    }
    duet_free(&x);
    duet_free(&y);
    return none;
}

static void others_work_meanwhile(bool write)
{
    pthread_t t;
    duet_matrix *z = filled(0, N);
    handed = filled(0, N);
    given = filled(1, N);
    sem_init(&ready, 0, 0);
    sem_init(&taken, 0, 0);
    pthread_create(&t, NULL, record_again_and_again, NULL);
    for (int i = 0; i < TURNS; i++) {
        sem_wait(&ready);
        if (write) {
            float *p = duet_overwrite(given); /* it has been uploaded and is no longer used */
            CHECK(p, "the other thread cannot overwrite the matrix: %s", duet_error());
            for (int k = 0; p && k < N * N; k++) p[k] = 1;
        } else {
            ok(duet_set_on(DUET_GPU, z, duet_mul(handed, 3)));
            holds(z, 3 * (1 + (float)i), "z of the other thread");
        }
        sem_post(&taken);
    }
    pthread_join(t, NULL);
    duet_free(&handed);
    duet_free(&given);
    duet_free(&z);
    tap_point("statements of another thread are not recorded");
}

/* ---- an empty destination, and another one with undefined elements ---- */

static void empty_view_of_lost(duet_place where)
{
    duet_matrix *m = filled(1, N), *x = filled(1, N), *y = filled(0, N),
                *none = duet_submatrix(m, 0, 0, 0, N), *of = duet_submatrix(x, 0, 0, 0, N);
    ok(duet_record_begin());
    ok(duet_set_on(where, none, duet_add(of, 1)));
    ok(duet_set_on(where, y, duet_add(x, 1)));
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    matrix_lost(m);
    ok(duet_set_on(where, none, duet_add(of, 1)));
    ok(duet_replay(r));
    duet_recording_free(&r);
    duet_free(&none);
    duet_free(&of);
    duet_free(&m);
    duet_free(&x);
    duet_free(&y);
    tap_point("an empty destination of a lost matrix");
}

/* ---- several statements at once, of which a later group fails at the replay ---- */

static void half_of_several(duet_place where)
{
    duet_matrix *a = filled(1, N), *b = filled(2, N), *c = filled(3, N), *d = filled(4, N),
                *part = duet_submatrix(a, 1, 0, N - 1, N), *upper = duet_submatrix(a, 0, 0, N - 1, N);
    duet_status s = DUET_OK;
    for (int turn = 0; turn < 2; turn++) {
        duet_recording *r = NULL;
        ok(duet_set_on(where, a, duet_add(b, 0)));
        if (turn) ok(duet_record_begin());
        DUET_ON(where) s = duet_set_all({ part, duet_mul(upper, 2) }, { c, duet_add(d, 1) });
        ok(s);
        if (turn) {
            r = duet_record_end();
            CHECK(r, "%s", duet_error());
        }
        ok(duet_set_on(where, a, duet_add(b, 0)));
        ok(duet_set_on(where, c, duet_add(b, 1)));
        matrix_lost(d); /* which the second statement reads */
        DUET_ON(where)
        s = turn ? duet_replay(r) : duet_set_all({ part, duet_mul(upper, 2) }, { c, duet_add(d, 1) });
        CHECK(s != DUET_OK, "a %s that reads lost elements succeeded", turn ? "replay" : "set_all");
        holds(a, 2, "the destination of the first statement");
        holds(c, 3, "the destination of the statement that failed");
        ok(duet_set_on(where, d, duet_add(b, 2)));
        duet_recording_free(&r);
    }
    duet_free(&part);
    duet_free(&upper);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&d);
    tap_point("duet_set_all in which a later statement fails");
}

/* ---- statements that do not change their matrix ---- */

static void onto_itself(duet_place where)
{
    duet_matrix *y = filled(1, N), *z = filled(0, N), *upper = duet_submatrix(y, 0, 0, N / 2, N);
    ok(duet_record_begin());
    ok(duet_set_on(where, y, DUET(y)));
    ok(duet_set_on(where, z, duet_add(y, 1)));
    ok(duet_set_on(where, upper, DUET(upper)));
    DUET_ON(where) ok(duet_set_all({ y, DUET(y) }, { z, duet_add(z, y) }));
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    holds(z, 3, "z");
    for (int i = 2; i < 5; i++) {
        float *p = duet_overwrite(y);
        for (int k = 0; k < N * N; k++) p[k] = (float)i;
        ok(duet_replay(r));
        holds(z, 2 * (float)i + 1, "z, replayed");
        holds(y, (float)i, "y, replayed");
    }
    duet_recording_free(&r);
    duet_free(&upper);
    duet_free(&y);
    duet_free(&z);
    tap_point("a matrix set to itself");
}

/* ---- writes of the host ---- */

static void magic_square(duet_place where)
{
    duet_matrix *m = filled(0, N), *corner = duet_submatrix(m, 1, 1, 3, 3),
                *wide = duet_submatrix(m, 0, 0, 2, 3);
    ok(duet_record_begin());
    DUET_ON(where) ok(duet_magic(corner));
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    for (int i = 0; i < 2; i++) {
        ok(duet_set(m, 0));
        if (r) ok(duet_replay(r));
        const float *p = duet_read(m);
        CHECK(p[0] == 0 && p[N + 1] == 8 && p[N + 2] == 1 && p[N + 3] == 6, "%g %g %g", (double)p[N + 1],
              (double)p[N + 2], (double)p[N + 3]);
    }
    duet_recording_free(&r);
    ok(duet_record_begin());
    CHECK(duet_magic(wide) == DUET_BAD_SHAPE, "%s", duet_error());
    r = duet_record_end();
    CHECK(!r, "a recording with a failed statement was returned");
    duet_recording_free(&r);
    duet_free(&corner);
    duet_free(&wide);
    duet_free(&m);
    tap_point("a magic square");
}

int main(void)
{
    duet_place place[2];
    const int places = list_places(place);
    for (int i = 0; i < places; i++) {
        freed_before_end(place[i]);
        empty_view_of_lost(place[i]);
        half_of_several(place[i]);
        onto_itself(place[i]);
        magic_square(place[i]);
    }
    if (places > 1) {
        others_work_meanwhile(false);
        others_work_meanwhile(true);
    }
    return tap_end();
}
