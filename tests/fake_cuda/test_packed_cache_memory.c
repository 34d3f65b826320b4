/* test_packed_cache_memory.c - memory of the cache of packed operands of DUET_MATH_SPLIT on the
 * fake CUDA. An operand is packed once as long as it is used; threads share it; it is freed with
 * its matrix and when other work needs memory. When any call or allocation fails, nothing is stale
 * or leaks. All elements are small integers, so every result is exact. */
#include "failing_alloc.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "packed_cache_scene.h"

/* ---- contents of the cache ---- */

static void counted(uint64_t packs, fake_counts before, const char *what)
{
    const fake_counts now = fake_count();
    CHECK(now.packs - before.packs == packs, "%s: packed %d times", what, (int)(now.packs - before.packs));
}

static void test_kept(void)
{
    scene s = new_scene(true, false);
    DUET_ON(DUET_GPU)
    {
        fake_counts before = fake_count();
        for (int i = 0; i < 5; i++) ok(multiply(&s));
        counted(1, before, "five times");
        duet_recording *r = record_product(&s);
        for (int i = 0; i < 5; i++) ok(duet_replay(r));
        CHECK(duet_synchronize() == DUET_OK, "%s", duet_error());
        counted(1, before, "and replayed");
        refill(s.x, 2);
        ok(duet_replay(r));
        counted(1, before, "another operand");
        refill(s.w, 2);
        ok(duet_replay(r));
        ok(multiply(&s));
        counted(2, before, "another weight");
        holds(s.y, 4 * N, "y");
        ok(duet_set_math(DUET_MATH_SPLIT, s.y, duet_matmul(duet_add(s.x, 1), s.w)));
        counted(2, before, "a temporary");
        duet_recording_free(&r);
    }
    free_scene(&s);
    tap_point("an operand is packed once");
}

/* Nothing is packed for few rows, recorded or not. */
static void test_few_rows(void)
{
    scene s = new_scene(true, false);
    duet_matrix *x = duet_slice(s.x, 0, 2), *y = duet_slice(s.y, 0, 2);
    DUET_ON(DUET_GPU)
    DUET_MATH(DUET_MATH_SPLIT)
    {
        const fake_counts before = fake_count();
        ok(duet_set(y, duet_matmul(x, s.w)));
        ok(duet_record_begin());
        ok(duet_set(y, duet_matmul(x, s.w)));
        duet_recording *r = duet_record_end();
        refill(s.w, 2);
        ok(duet_replay(r));
        holds(y, 2 * N, "y");
        counted(0, before, "few rows");
        CHECK(fake_count().splits >= before.splits + 2, "products of few rows were not split");
        duet_recording_free(&r);
    }
    duet_free(&x);
    duet_free(&y);
    free_scene(&s);
    tap_point("operands of products with few rows are not packed");
}

/* The same address with other elements. */
static void test_freed(void)
{
    duet_matrix *x = square(1), *y = square(0);
    DUET_ON(DUET_GPU)
    for (int i = 0; i < 20; i++) {
        duet_matrix *w = square((float)i);
        ok(duet_set_math(DUET_MATH_SPLIT, y, duet_matmul(x, w)));
        if (i % 3 == 0) duet_memory_trim();
        duet_free(&w);
        holds(y, N * (float)i, "after others at the same address");
    }
    duet_free(&x);
    duet_free(&y);
    tap_point("operands that are freed and created again");
}

static duet_matrix *shared_w;

static void *multiply_shared(void *arg)
{
    duet_matrix *x = square(0), *y = square(0);
    DUET_ON(DUET_GPU)
    for (int turn = 0; turn < TURNS; turn++) {
        refill(x, (float)turn);
        ok(duet_set_math(DUET_MATH_SPLIT, y, duet_matmul(x, shared_w)));
        holds(y, N * *(float *)arg * (float)turn, "a shared weight");
    }
    duet_free(&x);
    duet_free(&y);
    return NULL;
}

static void *multiply_once(void *mode)
{
    duet_matrix *x = square(1), *y = square(0);
    DUET_ON(DUET_GPU) ok(duet_set_math(*(duet_math_mode *)mode, y, duet_matmul(x, shared_w)));
    holds(y, 3 * N, "behind another thread");
    duet_free(&x);
    duet_free(&y);
    return NULL;
}

/* Both queues have the weight. One packs it, and that work has not run when the other needs the
 * result. */
static void test_order(void)
{
    duet_math_mode strict = DUET_MATH_STRICT, split = DUET_MATH_SPLIT;
    scene s = new_scene(true, false);
    shared_w = s.w;
    refill(s.w, 3);
    multiply_once(&strict);
    run_in_thread(multiply_once, &strict);
    DUET_ON(DUET_GPU) ok(multiply(&s));
    run_in_thread(multiply_once, &split);
    free_scene(&s);
}

static void test_threads(void)
{
    pthread_t t[4];
    shared_w = square(0);
    for (int round = 0; round < 6; round++) {
        float v = (float)(round + 1);
        refill(shared_w, v);
        for (int i = 0; i < 4; i++)
            CHECK(!pthread_create(&t[i], NULL, multiply_shared, &v), "the thread could not be created");
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    }
    duet_free(&shared_w);
    test_order();
    tap_point("threads share packed operands");
}

/* ---- memory -------------------------------------------------------------------------------------------- */

enum { WEIGHTS = 12, SIDE = 64, BYTES = SIDE * SIDE * 4 };

static size_t used(void) { return duet_memory_of(DUET_GPU).used; }

static void multiply_all(duet_matrix *x, duet_matrix *const w[WEIGHTS], duet_matrix *y, bool right)
{
    for (int i = 0; i < WEIGHTS; i++) {
        ok(duet_set_math(DUET_MATH_SPLIT, y, duet_matmul(x, w[i])));
        if (right) holds(y, SIDE * (float)i, "under pressure");
    }
}

/* The first strict product allocates the workspace of cuBLASLt. */
static void test_memory(void)
{
    enum { LIMIT = 4 << 20 };
    duet_matrix *w[WEIGHTS], *x = duet_new(DUET_F32, SIDE, SIDE), *y = duet_new(DUET_F32, SIDE, SIDE);
    refill(x, 1);
    for (int i = 0; i < WEIGHTS; i++) refill(w[i] = duet_new(DUET_F32, SIDE, SIDE), (float)i);
    DUET_ON(DUET_GPU)
    {
        ok(duet_memory_limit(DUET_GPU, LIMIT));
        ok(duet_set(y, duet_matmul(x, w[0])));
        multiply_all(x, w, y, true);
        const size_t with = used();
        duet_memory_trim();
        const size_t matrices = used();
        CHECK(with >= matrices + WEIGHTS * 2 * BYTES, "%zu bytes of %zu are still used", matrices, with);
        const size_t limits[] = { LIMIT, matrices + 4 * BYTES, matrices + 2 * BYTES, matrices + 1000 };
        for (int i = 0; i < 4; i++) {
            ok(duet_memory_limit(DUET_GPU, limits[i]));
            multiply_all(x, w, y, true);
            CHECK(used() <= matrices + limits[i] / 4, "%zu bytes are used, %zu of matrices, the limit is %zu",
                  used(), matrices, limits[i]);
        }
        ok(duet_memory_limit(DUET_GPU, 0));
    }
    for (int i = 0; i < WEIGHTS; i++) duet_free(&w[i]);
    duet_free(&x);
    duet_free(&y);
    tap_point("packed operands are evicted when memory is short");
}

/* A graph contains addresses of packed operands, which therefore stay allocated with it. */
static void test_pressed_recording(void)
{
    scene s = new_scene(true, false);
    duet_matrix *rivals[WEIGHTS], *x = duet_new(DUET_F32, SIDE, SIDE), *y = duet_new(DUET_F32, SIDE, SIDE);
    for (int i = 0; i < WEIGHTS; i++) refill(rivals[i] = duet_new(DUET_F32, SIDE, SIDE), (float)i);
    refill(x, 1);
    DUET_ON(DUET_GPU)
    {
        duet_recording *r = record_product(&s);
        const uint64_t graphs = fake_count().graphs;
        ok(duet_memory_limit(DUET_GPU, used() + 40 * BYTES));
        for (int turn = 0; turn < 6; turn++) {
            multiply_all(x, rivals, y, true);
            duet_memory_trim();
            refill(s.w, (float)turn);
            ok(duet_replay(r));
            holds(s.y, N * (float)turn, "replayed among rivals");
        }
        CHECK(fake_count().graphs >= graphs + 6, "no graphs were launched");
        const size_t before = used();
        duet_free(&s.w);
        duet_free(&s.half[0]);
        duet_free(&s.half[1]);
        duet_free(&s.turned);
        CHECK(duet_replay(r) == DUET_FREED, "%s", duet_error());
        duet_recording_free(&r);
        CHECK(used() + 2 * 4 * N * N < before, "%zu bytes of %zu were not released", used(), before);
        ok(duet_memory_limit(DUET_GPU, 0));
    }
    for (int i = 0; i < WEIGHTS; i++) duet_free(&rivals[i]);
    duet_free(&x);
    duet_free(&y);
    free_scene(&s);
    tap_point("packed operands of a graph stay allocated");
}

/* ---- failures ------------------------------------------------------------------------------------------ */

typedef struct hope {
    int failures;
    bool allocation; /* an allocation is to fail, otherwise a call */
    bool wrong;
    bool there; /* the matrices exist */
    bool hit;   /* the failure has happened */
} hope;

static bool went(hope *h, duet_status st)
{
    h->failures += st != DUET_OK;
    return st == DUET_OK;
}

static bool fill(hope *h, duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    for (int i = 0; p && i < N * N; i++) p[i] = v;
    h->failures += !p;
    return p != NULL;
}

static void is(hope *h, const duet_matrix *m, float v)
{
    const float *p = duet_read(m);
    h->failures += !p;
    for (int i = 0; p && i < N * N; i++) h->wrong |= p[i] != v;
}

/* y = x w with w written on the host and on the card, directly and recorded; the cache is emptied
 * now and then. */
static void pass(hope *h, scene *s, duet_recording **r, int turn)
{
    const float v = (float)(turn % 4 + 1);
    if (!(turn % 2 ? fill(h, s->w, v) : went(h, duet_set(s->w, v)))) return;
    if (went(h, multiply(s))) is(h, s->y, N * v);
    if (!*r && went(h, duet_record_begin())) {
        const bool good =
            went(h, multiply(s)) && went(h, duet_set(s->w, duet_add(s->w, 1))) && went(h, multiply(s));
        *r = duet_record_end();
        h->failures += !*r;
        if (good) is(h, s->y, N * (v + 1));
    } else if (*r && went(h, duet_replay(*r))) {
        is(h, s->y, N * (v + 1));
    }
    if (turn == 4) duet_memory_trim();
}

static void *passes(void *arg)
{
    hope *h = arg;
    scene s = { .x = duet_new(DUET_F32, N, N), .w = duet_new(DUET_F32, N, N), .y = duet_new(DUET_F32, N, N) };
    duet_recording *r = NULL;
    h->there = s.x && s.w && s.y && fill(h, s.x, 1);
    DUET_ON(DUET_GPU)
    for (int turn = 0; h->there && turn < 8; turn++) pass(h, &s, &r, turn);
    if (h->allocation) h->hit = fail_in < 0;
    else h->hit = fake_failed();
    fake_fail(0);
    fail_in = -1;
    if (h->there) { /* everything works again */
        hope after = { 0 };
        DUET_ON(DUET_GPU)
        for (int turn = 0; turn < 3; turn++) pass(&after, &s, &r, turn);
        h->wrong |= after.wrong || after.failures;
    }
    duet_recording_free(&r);
    free_scene(&s);
    return NULL;
}

static bool one_failure(bool allocation, int n, const char *what)
{
    hope h = { .allocation = allocation };
    const int64_t living = live;
    const size_t memory = duet_memory_of(DUET_GPU).used;
    if (allocation) fail_in = n;
    else if (n >= 0) fake_fail((uint64_t)n + 1);
    run_in_thread(passes, &h);
    const bool hit = n >= 0 && h.hit;
    duet_memory_trim();
    if (n < 0) return false;
    CHECK(!h.wrong, "%s %d: a result is wrong, or all statements fail: %s", what, n, duet_error());
    CHECK(hit || !h.failures, "%s %d: no call failed, but %d statements failed: %s", what, n, h.failures,
          duet_error());
    CHECK(thread_state_missing || live == living, "%s %d: %d blocks leaked", what, n, (int)(live - living));
    CHECK(duet_memory_of(DUET_GPU).used == memory, "%s %d: %zu bytes of GPU memory are used, not %zu", what,
          n, duet_memory_of(DUET_GPU).used, memory);
    return hit;
}

static void each_once(bool allocation, const char *what, int least)
{
    int n = 0;
    for (int i = 0; i < 2; i++) one_failure(allocation, -1, what); /* creates what exists once per process */
    const fake_counts start = fake_count();
    while (n < 3000 && one_failure(allocation, n, what)) n++;
    const fake_counts now = fake_count();
    CHECK(n >= least && n < 3000, "%d failures", n);
    CHECK(now.graphs_alive == start.graphs_alive && now.handles == start.handles,
          "%d graphs and %d handles were not destroyed", now.graphs_alive - start.graphs_alive,
          now.handles - start.handles);
    /* A block that CUDA failed to free belongs to CUDA. */
    CHECK(!allocation || now.memory == start.memory, "%zu bytes of GPU memory are allocated, not %zu",
          now.memory, start.memory);
    tap_point(what);
}

int main(void)
{
    test_kept();
    test_few_rows();
    test_freed();
    test_threads();
    test_memory();
    test_pressed_recording();
    each_once(false, "calls of CUDA fail once each", 40);
    each_once(true, "allocations fail once each", 40);
    return tap_end();
}
