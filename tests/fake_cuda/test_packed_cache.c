/* test_packed_cache.c - the cache of packed operands of DUET_MATH_SPLIT on the fake CUDA: it is
 * never stale, however a matrix is written and whatever reads it next. All elements are small
 * integers, so every result is exact. */
#include "auto_replay.h"
#include "deferred.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "packed_cache_scene.h"
#include "plan.h"
#include <cuda_runtime_api.h>

/* ---- ways to set all elements of a matrix to v ---- */

static void by_gpu(scene *s, duet_matrix *m, float v) { ok(duet_set_on(DUET_GPU, m, v)); }
static void by_cpu(scene *s, duet_matrix *m, float v) { ok(duet_set_on(DUET_CPU, m, v)); }
static void by_host(scene *s, duet_matrix *m, float v) { refill(m, v); }

static void by_update(scene *s, duet_matrix *m, float v)
{
    float *p = duet_update(m);
    CHECK(p, "%s", duet_error());
    for (int i = 0; p && i < N * N; i++) p[i] += v - p[i];
}

/* A pointer is valid until the next call with the matrix, so earlier reads through it do not count. */
static void by_host_late(scene *s, duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    ok(duet_set_on(DUET_GPU, s->other, duet_matmul(s->other, s->other)));
    for (int i = 0; p && i < N * N; i++) p[i] = v;
}

static void by_random(scene *s, duet_matrix *m, float v)
{
    DUET_ON(DUET_GPU) ok(duet_random_integers(m, 3, (int64_t)v, (int64_t)v + 1));
}

static void by_halves(scene *s, duet_matrix *m, float v)
{
    for (int i = 0; i < 2; i++) ok(duet_set_on(i ? DUET_GPU : DUET_CPU, s->half[i], v));
}

static void by_half_on_host(scene *s, duet_matrix *m, float v)
{
    for (int i = 0; i < 2; i++) {
        float *p = duet_overwrite(s->half[i]);
        for (int k = 0; p && k < N * N / 2; k++) p[k] = v;
    }
}

static void by_transposed(scene *s, duet_matrix *m, float v)
{
    ok(duet_set_on(DUET_GPU, s->turned, duet_mul(v, duet_cast(duet_equal(s->turned, s->turned), DUET_F32))));
}
static void by_adding(scene *s, duet_matrix *m, float v)
{
    DUET_ON(DUET_GPU) ok(duet_iadd(m, duet_sub(v, m)));
}
static void by_two(scene *s, duet_matrix *m, float v)
{
    DUET_ON(DUET_GPU) ok(duet_set_all({ m, DUET(v + 1) }, { m, duet_sub(m, 1) }));
}

static void by_device(scene *s, duet_matrix *m, float v)
{
    static float from[N * N];
    void *p = duet_device_update(m), *q = duet_stream();
    for (int i = 0; i < N * N; i++) from[i] = v;
    CHECK(p && q && cudaMemcpyAsync(p, from, sizeof from, cudaMemcpyHostToDevice, q) == cudaSuccess, "%s",
          duet_error());
    ok(duet_synchronize());
    ok(duet_auto_replay(1));
}

static void by_replay(scene *s, duet_matrix *m, float v)
{
    refill(s->other, v);
    ok(duet_replay(s->writes));
}

typedef struct errand {
    duet_matrix *m;
    float v;
} errand;

static void *run_errand(void *arg)
{
    const errand *e = arg;
    ok(duet_set_on(DUET_GPU, e->m, e->v));
    return NULL;
}

static void by_thread(scene *s, duet_matrix *m, float v) { run_in_thread(run_errand, &(errand){ m, v }); }

/* The statement fails half-way: the matrix has undefined contents until it is written again. */
static void by_failure(scene *s, duet_matrix *m, float v)
{
    fake_fail(2);
    const duet_status st = duet_set_on(DUET_GPU, m, -v);
    fake_fail(0);
    CHECK(st != DUET_OK, "nothing failed");
    by_gpu(s, m, v);
}

static const struct writer {
    const char *name;
    void (*write)(scene *s, duet_matrix *m, float v);
} writers[] = {
    { "the GPU", by_gpu },
    { "the CPU", by_cpu },
    { "the host", by_host },
    { "an update", by_update },
    { "a late store", by_host_late },
    { "random numbers", by_random },
    { "views", by_halves },
    { "views on the host", by_half_on_host },
    { "a transposed view", by_transposed },
    { "itself", by_adding },
    { "two statements", by_two },
    { "a pointer to the device", by_device },
    { "a replay", by_replay },
    { "another thread", by_thread },
    { "a failure", by_failure },
};
#define WRITERS ((int)(sizeof writers / sizeof *writers))

/* ---- readers ---- */

/* A loop that is learnt as y = x w, y = y - 1 repeats, with writes in between. */
static void repeat(scene *s, duet_matrix *written, const struct writer *by)
{
    for (int turn = 0; turn < TURNS; turn++) {
        const float v = (float)(1 + turn % 5 * 17);
        if (turn % 3 == 0) by->write(s, written, v);
        ok(multiply(s));
        ok(duet_isub(s->y, 1));
        holds(s->y, N * (float)(1 + turn / 3 * 3 % 5 * 17) - 1, by->name);
    }
}

/* Tests all pairs of a writer and then a reader. */
static void check_writer(const struct writer *by, bool weight, bool wrapped)
{
    scene s = new_scene(weight, wrapped);
    duet_matrix *written = weight ? s.w : s.x;
    DUET_ON(DUET_GPU)
    {
        duet_recording *r = record_product(&s);
        for (int turn = 0; turn < 8; turn++) {
            const float v = (float)(turn % 2 ? 1000 - turn : 1 + turn);
            by->write(&s, written, v);
            if (turn < 4) ok(multiply(&s));
            else ok(duet_replay(r));
            holds(s.y, N * v, by->name);
            ok(turn % 2 ? duet_replay(r) : multiply(&s));
            holds(s.y, N * v, by->name);
        }
        duet_recording_free(&r);
        repeat(&s, written, by);
    }
    free_scene(&s);
}

static void test_writers(bool weight)
{
    const uint64_t before = fake_count().splits;
    for (int i = 0; i < WRITERS; i++)
        for (int wrapped = 0; wrapped < 1 + weight; wrapped++) check_writer(&writers[i], weight, wrapped);
    CHECK(fake_count().splits > before + 100, "no product was split");
    tap_point(weight ? "a packed weight is current after every kind of write"
                     : "the other operand is current after every kind of write");
}

/* ---- inside recordings ---- */

/* The numbers of the matrices in one turn: w, and the expected y. */
typedef struct numbers {
    float w, y, z;
} numbers;

static void say_before(scene *s)
{
    ok(multiply(s));
    ok(duet_iadd(s->w, 1));
}
static void mean_before(numbers *n)
{
    n->y = N * n->w;
    n->w += 1;
}
static void say_after(scene *s)
{
    ok(duet_iadd(s->w, 1));
    ok(multiply(s));
}
static void mean_after(numbers *n)
{
    n->w += 1;
    n->y = N * n->w;
}
static void say_between(scene *s)
{
    ok(duet_iadd(s->w, 1));
    ok(multiply(s));
    ok(duet_iadd(s->w, 2));
    ok(duet_set_math(DUET_MATH_SPLIT, s->other, duet_matmul(s->w, s->w)));
}
static void mean_between(numbers *n)
{
    n->y = N * (n->w + 1);
    n->w += 3;
    n->z = N * n->w * n->w;
}
static void say_half(scene *s)
{
    ok(multiply(s));
    ok(duet_set(s->half[0], duet_add(s->half[0], 1)));
    ok(duet_set(s->half[1], duet_add(s->half[1], 1)));
}
static void say_all(scene *s)
{
    DUET_MATH(DUET_MATH_SPLIT)
    ok(duet_set_all({ s->w, duet_add(s->w, 1) }, { s->y, duet_matmul(s->x, s->w) }));
}

static const struct story {
    const char *name;
    void (*say)(scene *s);
    void (*mean)(numbers *n);
} stories[] = {
    { "read, then written", say_before, mean_before },
    { "written, then read", say_after, mean_after },
    { "written twice", say_between, mean_between },
    { "written by halves", say_half, mean_before },
    { "at once", say_all, mean_after },
};

static void tell(const struct story *t, bool recorded)
{
    scene s = new_scene(true, false);
    numbers n = { 1, 0, 0 };
    duet_recording *r = NULL;
    DUET_ON(DUET_GPU)
    {
        if (recorded) {
            ok(duet_record_begin());
            t->say(&s);
            r = duet_record_end();
            t->mean(&n);
            holds(s.y, n.y, t->name);
        }
        for (int turn = 0; turn < TURNS; turn++) {
            if (turn % 5 == 4) {
                n.w = (float)(turn % 2);
                refill(s.w, n.w);
            }
            if (turn % 7 == 6) {
                ok(multiply(&s));
                holds(s.y, N * n.w, t->name);
            }
            if (r) ok(duet_replay(r));
            else t->say(&s);
            t->mean(&n);
            if (turn % 2 || turn < 10) {
                holds(s.y, n.y, t->name);
                holds(s.w, n.w, t->name);
            }
            if (n.z > 0) holds(s.other, n.z, t->name);
        }
    }
    duet_recording_free(&r);
    free_scene(&s);
}

static void test_stories(void)
{
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        tell(&stories[i], true);
        tell(&stories[i], false);
    }
    tap_point("recordings and loops that write packed weights");
}

/* ---- deferred work that other threads interrupt ---- */

static void *refill_errand(void *arg)
{
    const errand *e = arg;
    refill(e->m, e->v);
    return NULL;
}

/* The loop computes a weight until another thread writes it. Deferred work is launched then, and
 * the rest of the loop runs with the new weight, packed again. */
static void come_between(void *come(void *))
{
    scene s = new_scene(true, false);
    refill(s.other, 0);
    DUET_ON(DUET_GPU)
    DUET_MATH(DUET_MATH_SPLIT)
    for (int turn = 0; turn < TURNS; turn++) {
        const bool broken = turn == 16 || turn == 20;
        ok(duet_set(s.w, duet_sigmoid(s.other)));
        if (broken) {
            CHECK(deferred_queues_now() != 0, "no statement is deferred");
            run_in_thread(come, &(errand){ s.w, 3000 });
        }
        ok(multiply(&s));
        ok(duet_isub(s.y, 1));
        holds(s.y, N * (broken ? 3000 : 0.5f) - 1, "a product by a weight that others wrote");
    }
    free_scene(&s);
}

static void test_between(void)
{
    auto_replay_set_max_seconds(1);
    come_between(run_errand);
    come_between(refill_errand);
    tap_point("packed operands are stale after other threads write");
}

int main(void)
{
    test_writers(true);
    test_writers(false);
    test_stories();
    test_between();
    return tap_end();
}
