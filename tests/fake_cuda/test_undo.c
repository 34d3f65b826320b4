/* test_undo.c - what is left of lists and recordings that fail, and of elements that were lost
 * before. With the fake CUDA. */
#include "auto_replay.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "matrix.h"
#include "pool.h"
#include "tap.h"
#include "thread.h"
#include "undo.h"
#include <string.h>

enum { N = 4 };

static bool fill(duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    return CHECK(p != NULL, "%s", duet_error());
}

/* Is every element v? */
static bool is_all(const duet_matrix *m, float v)
{
    const float *p = duet_read(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        if (p[i] != v) {
            printf("# element %d is %g, not %g\n", (int)i, (double)p[i], (double)v);
            return false;
        }
    if (!p) printf("# %s\n", duet_error());
    return p;
}

static bool is_lost(const duet_matrix *m) { return !duet_read(m) && duet_error_status() == DUET_UNKNOWN; }

/* An error that is returned is the error of the thread. */
static bool fails(duet_status s, duet_status want)
{
    return CHECK(s == want && duet_error_status() == s, "status %d (%d of the thread), not %d: %s", (int)s,
                 (int)duet_error_status(), (int)want, duet_error());
}

static bool works(duet_status s) { return CHECK(s == DUET_OK, "%s", duet_error()); }

/* A matrix of N + 1 rows, its first and its last N rows, which overlap, and indices out of bounds. */
typedef struct scene {
    duet_matrix *m, *top, *low, *row[N + 1], *x, *index;
} scene;

static scene make(void)
{
    static const int64_t bad[] = { 0, N, 1, 2 };
    scene s = { .m = duet_new(DUET_F32, N + 1, N), .x = duet_new(DUET_F32, N, N) };
    s.top = duet_submatrix(s.m, 0, 0, N, N);
    s.low = duet_submatrix(s.m, 1, 0, N, N);
    for (int i = 0; i <= N; i++) s.row[i] = duet_row(s.m, i);
    s.index = duet_from_array(bad, DUET_I64, N);
    fill(s.m, 1);
    fill(s.x, 5);
    return s;
}

static void clear(scene *s)
{
    for (int i = 0; i <= N; i++) duet_free(&s->row[i]);
    duet_free(&s->m, &s->top, &s->low, &s->x, &s->index);
}

/* The first statement runs, then the second one finds a bad index. */
static duet_status bad_list(const scene *s)
{
    duet_assignment a[] = { { s->top, duet_mul(s->low, 2) },
                            { s->low, duet_add(duet_take(s->x, s->index, 0), s->top) } };
    return (duet_set_all)(a, 2);
}

/* ---- lost elements ---- */

static void lost_before(void)
{
    scene s = make();
    matrix_lost(s.row[0]);
    duet_assignment over[] = { { s.top, DUET(2.0) }, { s.low, duet_add(duet_take(s.x, s.index, 0), s.top) } };
    DUET_ON(DUET_CPU) fails((duet_set_all)(over, 2), DUET_BAD_ARGUMENT);
    CHECK(is_lost(s.row[0]) && is_all(s.low, 1), "a list that failed has changed a matrix");
    matrix_lost(s.m);
    duet_assignment all[] = { { s.m, DUET(2.0) }, { s.low, duet_add(duet_take(s.x, s.index, 0), s.top) } };
    DUET_ON(DUET_CPU) fails((duet_set_all)(all, 2), DUET_BAD_ARGUMENT);
    CHECK(is_lost(s.row[0]) && is_lost(s.low), "lost elements have come back");
    clear(&s);
    tap_point("undo: elements that were lost are lost, others have their values");
}

static int parts_of(const duet_matrix *m)
{
    struct lost_part *parts;
    int count = 0;
    works(matrix_lost_parts(m, &parts));
    for (const struct lost_part *l = parts; l; l = *(struct lost_part *const *)l) count++;
    matrix_free_lost_parts(&parts);
    return count;
}

static void written_in_pieces(void)
{
    scene s = make();
    matrix_lost(s.top);
    for (int i = 0; i < 5; i++) {
        matrix_lost(s.row[1]);
        matrix_lost(s.top);
    }
    CHECK(parts_of(s.m) == 1, "a part that was lost again counts again");
    works((duet_set)(s.row[0], DUET(7.0)));
    works((duet_set)(s.row[2], DUET(8.0)));
    CHECK(is_all(s.row[0], 7) && is_all(s.row[2], 8) && is_all(s.row[N], 1), "a row");
    CHECK(is_lost(s.row[1]) && is_lost(s.row[3]) && is_lost(s.m), "rows that were not written");
    CHECK(strstr(duet_error(), "write them"), "%s", duet_error());
    works((duet_set)(s.row[1], DUET(9.0)));
    works((duet_set)(s.row[3], DUET(9.0)));
    CHECK(duet_read(s.m) && !storage_lost(s.m->storage), "%s", duet_error());

    matrix_lost(s.m);
    for (int i = 0; i <= N; i++) works((duet_set)(s.row[i], DUET(3.0)));
    CHECK(is_all(s.m, 3), "all rows of a lost matrix were written");
    clear(&s);
    tap_point("lost elements that are written in pieces");
}

/* ---- recordings ---- */

static duet_matrix *diagonal(float v)
{
    duet_matrix *m = duet_new(DUET_F32, N, N);
    fill(m, 0);
    float *p = duet_update(m);
    for (int i = 0; i < N && p; i++) p[i * (N + 1)] = v;
    return m;
}

/* A list whose first statement cannot be in a graph, then statements on another GPU. */
static duet_recording *record_list(const scene *s, const duet_matrix *square, duet_matrix *y)
{
    works(duet_record_begin());
    duet_assignment a[] = { { s->top, duet_solve(DUET(square), DUET(s->x)) },
                            { s->low, duet_mul(s->top, 2) } };
    works((duet_set_all)(a, 2));
    works(thread_use_gpu(DEFAULT_GPU + 1));
    works((duet_set)(y, duet_add(y, 1)));
    works((duet_set)(y, duet_mul(y, 2)));
    works(thread_use_gpu(DEFAULT_GPU));
    return duet_record_end();
}

/* The n-th call on the other GPU fails. Returns whether the list was complete by then. */
static bool fails_later(uint64_t n)
{
    scene s = make();
    duet_matrix *square = diagonal(1), *y = duet_new(DUET_F32, N, N);
    duet_recording *r = record_list(&s, square, y);
    CHECK(r != NULL, "%s", duet_error());
    for (int i = 0; i < 2; i++) works(duet_replay(r));
    fill(s.m, 1);
    fill(s.x, 7);
    fake_fail_on(1, n);
    const duet_status st = duet_replay(r);
    fake_fail_on(-1, 0);
    const bool is_later = st != DUET_OK && !strstr(duet_error(), "statement 1");
    if (is_later) CHECK(is_all(s.row[0], 7) && is_all(s.low, 14), "a list that was complete was undone");
    duet_recording_free(&r);
    duet_free(&square, &y);
    clear(&s);
    return is_later;
}

static void complete_list(void)
{
    int later = 0;
    DUET_ON(DUET_GPU) for (uint64_t n = 1; n < 40; n++) later += fails_later(n);
    CHECK(later > 0, "no call failed");
    tap_point("replay: a list that is complete stays when a later statement fails");
}

static void before_the_graph(void)
{
    scene s = make();
    duet_matrix *y = duet_new(DUET_F32, N, N), *z = duet_new(DUET_F32, N, N);
    works(duet_record_begin());
    DUET_ON(DUET_GPU)
    {
        works((duet_set)(y, duet_mul(s.x, 2)));
        works((duet_set)(z, duet_add(s.top, 1)));
    }
    duet_recording *r = duet_record_end();
    for (int i = 0; i < 3; i++) works(duet_replay(r));
    fill(s.x, 6);
    matrix_lost(s.row[1]);
    fails(duet_replay(r), DUET_UNKNOWN);
    CHECK(strstr(duet_error(), "statement 2"), "%s", duet_error());
    CHECK(is_all(y, 12) && is_all(z, 2), "the statement before the one that failed has not run");
    duet_recording_free(&r);
    duet_free(&y, &z);
    clear(&s);
    tap_point("replay: statements before the one that fails have run, also where a graph could not start");
}

/* ---- GPU memory and graphs ---- */

/* The list needs 20 MiB. There is no memory for a copy of the first destination, of 4 MiB, at the
 * same time. */
static void little_memory(void)
{
    const int64_t columns = 1 << 18;
    duet_matrix *m = duet_new(DUET_F32, 6, columns), *a = duet_slice(m, 0, 4), *b = duet_slice(m, 1, 4);
    DUET_ON(DUET_GPU)
    {
        works((duet_set)(m, DUET(0.0)));
        duet_memory_trim();
        works(duet_memory_limit(DUET_GPU, pool_memory(DEFAULT_GPU).used + ((size_t)22 << 20)));
        duet_assignment l[] = { { a, duet_add(b, 3) }, { b, duet_sort(a, 1) } };
        works((duet_set_all)(l, 2));
        works(duet_memory_limit(DUET_GPU, 0));
    }
    const float *p = duet_read(b);
    CHECK(p && *p == 3 && p[1] == 3, "%s", duet_error());
    duet_free(&m, &a, &b);
    tap_point("undo: copies go to the host if the GPU needs the memory");
}

/* The copy of the elements, and perhaps those that it replaces, have left the GPU since. */
static void moved_away(bool forbidden)
{
    duet_matrix *m = duet_new(DUET_F32, N), *more[2] = { duet_new(DUET_F32, N), duet_new(DUET_F32, N) };
    undo_log undo = { .last = NULL };
    works(duet_set_on(DUET_GPU, m, 1));
    works(undo_save(&undo, m, DEFAULT_GPU));
    works(duet_set_on(DUET_GPU, m, 2));
    duet_memory_trim();
    works(duet_memory_limit(DUET_GPU, pool_memory(DEFAULT_GPU).used));
    for (int i = 0; i < 2; i++) CHECK(duet_device_overwrite(more[i]) != NULL, "%s", duet_error());
    if (forbidden) works(duet_memory_limit(DUET_GPU, 0));
    duet_status st = DUET_OK;
    DUET_TRANSFERS(forbidden ? DUET_TRANSFERS_FORBIDDEN : DUET_TRANSFERS_ALLOWED)
    st = undo_all(&undo, DUET_BAD_ARGUMENT);
    CHECK(st == DUET_BAD_ARGUMENT, "status %d: %s", (int)st, duet_error());
    works(duet_memory_limit(DUET_GPU, 0));
    CHECK(is_all(m, 1), "the elements were not restored");
    duet_free(&m, &more[0], &more[1]);
    tap_point(forbidden ? "undo: a copy has left the GPU, and copies are forbidden"
                        : "undo: a copy has left the GPU, which has no memory");
}

/* A loop with a list of statements that overlap. */
static void *loop(void *unused)
{
    duet_matrix *x = duet_new(DUET_F32, N + 1, N), *y = duet_new(DUET_F32, N + 1, N),
                *upper = duet_submatrix(y, 0, 0, N, N);
    scene s = make();
    fill(y, 1);
    const uint64_t before = fake_count().graphs;
    DUET_ON(DUET_GPU)
    for (int t = 1; t < 40; t++) {
        fill(x, (float)t);
        works(duet_set(y, duet_mul(2, x)));
        duet_assignment l[] = { { s.top, duet_add(upper, 1) }, { s.low, duet_mul(s.top, 2) } };
        works((duet_set_all)(l, 2));
        works(duet_set(y, duet_add(y, x)));
        CHECK(is_all(y, 3 * (float)t), "turn %d", t);
    }
    CHECK(fake_count().graphs - before > 20, "only %d graphs", (int)(fake_count().graphs - before));
    duet_free(&x, &y, &upper);
    clear(&s);
    return NULL;
}

/* ---- errors ---- */

/* The second statement has no result. Some call fails when the first one is undone. */
static void status_of_the_thread(void)
{
    bool failed = true;
    int device_errors = 0;
    for (uint64_t n = 1; failed && n < 300; n++) {
        scene s = make();
        duet_matrix *zeros = diagonal(0);
        DUET_ON(DUET_GPU)
        {
            duet_assignment a[] = { { s.top, duet_mul(s.low, 2) },
                                    { s.low, duet_add(duet_solve(DUET(zeros), DUET(s.x)), s.top) } };
            fake_fail(n);
            const duet_status st = (duet_set_all)(a, 2);
            failed = fake_failed();
            fake_fail(0);
            fails(st, st == DUET_OK ? DUET_SINGULAR : st);
            device_errors += st == DUET_DEVICE_ERROR && strstr(duet_error(), "singular");
        }
        duet_free(&zeros);
        clear(&s);
    }
    CHECK(device_errors > 0, "no call failed while the list was undone");
    tap_point("the status of the thread is the one that was returned");
}

int main(void)
{
    fake_devices(2);
    scene s = make();
    DUET_ON(DUET_CPU) fails(bad_list(&s), DUET_BAD_ARGUMENT);
    CHECK(is_all(s.m, 1), "a list that failed has changed a matrix");
    clear(&s);
    tap_point("undo: a list with a bad index");
    lost_before();
    written_in_pieces();
    complete_list();
    before_the_graph();
    little_memory();
    moved_away(true);
    moved_away(false);
    auto_replay_set_max_seconds(1);
    run_in_thread(loop, NULL);
    tap_point("automatic replay of a loop with a list of statements that overlap");
    status_of_the_thread();
    return tap_end();
}
