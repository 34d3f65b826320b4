/* test_memory_replay.c - recordings and automatic replay with little memory on the fake CUDA. Buffers of
 * their matrices are freed for others and allocated again, often at the same address, so that the graphs
 * stay valid. All elements are small integers, so every result is exact. */
#include "auto_replay.h"
#include "fake_cuda.h"
#include "filled.h"
#include "matrix.h"
#include "pool.h"
#include "thread.h"

enum { SIDE = 64, BYTES = SIDE * SIDE * 4 };

static void ok(duet_status s) { CHECK(s == DUET_OK, "status %d: %s", (int)s, duet_error()); }

static duet_matrix *square(float v)
{
    duet_matrix *m = duet_new(DUET_F32, SIDE, SIDE);
    refill(m, v);
    return m;
}

static size_t used(void) { return duet_memory_of(DUET_GPU).used; }

/* Limits device memory to what is in use now and `bytes` more. */
static void leave(size_t bytes)
{
    duet_memory_trim();
    ok(duet_memory_limit(DUET_GPU, used() + bytes));
}

static void leave_all(void) { ok(duet_memory_limit(DUET_GPU, 0)); }

static const void *buffer_of(const duet_matrix *m) { return m->storage->buffer[DEFAULT_GPU]; }

/* Reads it on the GPU, without changing it. */
static void touch(duet_matrix *m, duet_matrix *sum) { ok(duet_set(sum, duet_sum_keep(m, 0))); }

/* ---- automatic replay ---- */

enum { LOOP = 5, ROUNDS = 40 };

/* What a loop of LOOP statements uses. Statement `where` of them reads x. */
typedef struct circle {
    duet_matrix *m[LOOP], *x, *w, *sum;
    float want[LOOP]; /* the elements of m */
    int where;
} circle;

static circle new_circle(int where)
{
    circle c = { .x = square(3), .w = square(2), .sum = duet_new(DUET_F32, 1, SIDE), .where = where };
    for (int i = 0; i < LOOP; i++) c.m[i] = square(0);
    return c;
}

static void free_circle(circle *c)
{
    for (int i = 0; i < LOOP; i++) {
        holds(c->m[i], c->want[i], "a loop that is interrupted");
        duet_free(&c->m[i]);
    }
    duet_free(&c->x, &c->w, &c->sum);
}

/* Runs the first statements of the loop. */
static void go_on(circle *c, int statements)
{
    for (int i = 0; i < statements; i++) {
        const int from = i ? i - 1 : 0;
        if (i == c->where) ok(duet_set(c->m[i], duet_add(c->m[from], c->x)));
        else ok(duet_set(c->m[i], duet_add(c->m[from], 1)));
        c->want[i] = c->want[from] + (i == c->where ? 3 : 1);
    }
}

static void repeat(circle *c, int rounds)
{
    for (int k = 0; k < rounds; k++) go_on(c, LOOP);
}

/* The next statement that reads x needs a buffer for it. What the host has overwritten is freed first. */
static void free_block_of_x(const circle *c)
{
    refill(c->x, 3);
    touch(c->w, c->sum);
    refill(c->w, 2);
    CHECK(!buffer_of(c->x) && buffer_of(c->w), "another buffer was freed");
}

static void write_x_on_other_gpu(const circle *c)
{
    ok(thread_use_gpu(DEFAULT_GPU + 1));
    ok(duet_set(c->x, 3));
    ok(thread_use_gpu(DEFAULT_GPU));
}

/* To bring x when a statement is deferred that reads it, the statements before it are launched. The address
 * of x does not change. Then the loop goes on, or begins again. */
static void interrupt(void cause(const circle *c), int where, bool begins_again, int times)
{
    circle c = new_circle(where);
    DUET_ON(DUET_GPU)
    {
        touch(c.x, c.sum);
        const uint64_t graphs = duet_stats().graphs;
        repeat(&c, ROUNDS);
        CHECK(duet_stats().graphs > graphs, "no graph was launched");
        if (cause == free_block_of_x) leave(0);
        for (int k = 0; k < times; k++) {
            cause(&c);
            go_on(&c, begins_again ? where + 1 : LOOP);
            repeat(&c, begins_again);
        }
        leave_all();
        repeat(&c, ROUNDS);
    }
    free_circle(&c);
}

static void test_interrupted(void cause(const circle *c), const char *what)
{
    for (int where = 0; where < LOOP; where++)
        for (int begins_again = 0; begins_again < 2; begins_again++) {
            interrupt(cause, where, begins_again, 1);
            interrupt(cause, where, begins_again, ROUNDS);
        }
    tap_point(what);
}

/* ---- recordings ---- */

/* The recording has so many statements that its array moves while they are recorded. Memory may soon be
 * scarce, so each replay notes which matrices the statements use. */
static void test_long_recording(void)
{
    enum { STATEMENTS_OF_IT = 40, REPLAYS = 5 };
    duet_matrix *m = square(0), *more = square(1);
    DUET_ON(DUET_GPU)
    {
        ok(duet_record_begin());
        for (int i = 0; i < STATEMENTS_OF_IT; i++) ok(duet_set(m, duet_add(m, i % 2)));
        duet_recording *r = duet_record_end();
        CHECK(r != NULL, "%s", duet_error());
        leave(BYTES);
        ok(duet_set(more, duet_add(m, 1)));
        CHECK(pool_is_watched() && !pool_is_tight(), "memory is not watched");
        const uint64_t before = duet_stats().graphs;
        for (int k = 0; k < REPLAYS; k++) ok(duet_replay(r));
        CHECK(duet_stats().graphs == before + REPLAYS, "the recording was not launched as a graph");
        leave_all();
        duet_recording_free(&r);
    }
    holds(m, (REPLAYS + 1) * STATEMENTS_OF_IT / 2, "a long recording");
    holds(more, STATEMENTS_OF_IT / 2 + 1, "what was computed before the replays");
    duet_free(&m, &more);
    tap_point("a long recording while memory is watched");
}

/* The list is recorded. There is memory for each of its groups, but not for both. */
static void test_recorded_list(void)
{
    enum { REPLAYS = 3 };
    duet_matrix *x = square(0), *w = square(1), *y = square(0), *z = square(1), *turned = duet_transposed(x);
    DUET_ON(DUET_GPU)
    {
        leave(3 * BYTES);
        ok(duet_record_begin());
        ok(duet_set_all({ x, duet_add(x, w) }, { y, duet_add(turned, z) }));
        duet_recording *r = duet_record_end();
        CHECK(r != NULL, "%s", duet_error());
        for (int k = 0; k < REPLAYS; k++) ok(duet_replay(r));
        leave_all();
        duet_recording_free(&r);
    }
    holds(x, REPLAYS + 1, "the first statement of the list");
    holds(y, REPLAYS + 2, "the second statement of the list");
    duet_free(&x, &w, &y, &z, &turned);
    tap_point("a list that is recorded while it frees memory of its own");
}

int main(void)
{
    fake_devices(2);
    auto_replay_set_max_seconds(1);
    test_long_recording();
    test_recorded_list();
    test_interrupted(free_block_of_x, "a statement that is deferred frees the memory of another matrix");
    test_interrupted(write_x_on_other_gpu, "a statement that is deferred reads elements of another GPU");
    return tap_end();
}
