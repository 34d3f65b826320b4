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

static duet_matrix *filled(float v, int rows, int columns)
{
    duet_matrix *m = duet_new(DUET_F32, rows, columns);
    refill(m, v);
    return m;
}

static duet_matrix *square(float v) { return filled(v, SIDE, SIDE); }

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

enum { LOOP = 5, ROUNDS = 30, INTERRUPTIONS = 12 }; /* so many make a sequence worthless */

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
            interrupt(cause, where, begins_again, INTERRUPTIONS);
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

/* ---- packed operands ---- */

/* DEEP: the rows and columns of w. PACKING: what it takes to pack w, which is less than w has. */
enum { DEEP = 256, PACKING = 65536, TURNS = 6 };

/* y = x w, z += y, where the packed w is in the cache, and a graph uses it. */
typedef struct product {
    duet_matrix *x, *w, *y, *z, *sum;
    size_t used; /* bytes, without the product */
} product;

static product new_product(void)
{
    duet_memory_trim();
    const size_t before = used();
    product p = { .x = filled(1, SIDE, DEEP),
                  .w = filled(1, DEEP, DEEP),
                  .y = filled(0, SIDE, DEEP),
                  .z = filled(0, SIDE, DEEP),
                  .sum = filled(0, 1, DEEP),
                  .used = before };
    touch(p.x, p.sum);
    return p;
}

/* Nothing of it is left in the cache of packed operands. */
static void free_product(product *p)
{
    leave_all();
    duet_free(&p->x, &p->w, &p->y, &p->z, &p->sum);
    CHECK(used() == p->used, "%zu bytes are used, not %zu", used(), p->used);
}

static void multiply(const product *p)
{
    ok(duet_set_math(DUET_MATH_SPLIT, p->y, duet_matmul(p->x, p->w)));
    ok(duet_iadd(p->z, p->y));
}

static duet_recording *record_product(const product *p)
{
    ok(duet_record_begin());
    multiply(p);
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    ok(duet_replay(r));
    leave(PACKING);
    return r;
}

/* What the host has overwritten is freed first. So w loses its block to another matrix, and then the block is
 * free again. */
static void take_block_of_w(const product *p, float v)
{
    duet_matrix *other = filled(1, DEEP, DEEP);
    const void *at = buffer_of(p->w);
    refill(p->w, v);
    touch(other, p->sum);
    CHECK(!buffer_of(p->w) && buffer_of(other) == at, "another buffer was freed");
    duet_free(&other);
}

static void test_recorded_product(void)
{
    product p = new_product();
    duet_recording *r = record_product(&p);
    const void *at = buffer_of(p.w);
    const uint64_t before = duet_stats().graphs;
    holds(p.z, 2 * DEEP, "a recorded product");
    for (int k = 0; k < TURNS; k++) {
        take_block_of_w(&p, (float)k);
        touch(p.w, p.sum);
        CHECK(buffer_of(p.w) == at, "the address has changed");
        ok(duet_replay(r));
        holds(p.z, DEEP * (float)(2 + k * (k + 1) / 2), "a recorded product");
    }
    CHECK(duet_stats().graphs == before + TURNS, "%d graphs", (int)(duet_stats().graphs - before));
    duet_recording_free(&r);
    free_product(&p);
    tap_point("a recording packs an operand again whose buffer was freed");
}

/* The same with statements that are deferred. */
static void test_repeated_product(void)
{
    product p = new_product();
    uint64_t before = 0;
    for (int k = 0; k < ROUNDS + TURNS; k++) {
        if (k == ROUNDS) {
            before = duet_stats().graphs;
            leave(PACKING);
        }
        if (k >= ROUNDS) take_block_of_w(&p, (float)(k - ROUNDS));
        multiply(&p);
        const int packed = k < ROUNDS ? k + 1 : ROUNDS + (k - ROUNDS) * (k - ROUNDS + 1) / 2;
        holds(p.z, (float)(DEEP * packed), "a product that repeats");
    }
    CHECK(duet_stats().graphs > before, "no graph was launched");
    ok(duet_auto_replay(0)); /* forgets the graph */
    ok(duet_auto_replay(1));
    free_product(&p);
    tap_point("automatic replay packs an operand again whose buffer was freed");
}

/* The buffer of w was freed before. */
static void test_freed_product(bool graph_first)
{
    product p = new_product();
    duet_recording *r = record_product(&p);
    take_block_of_w(&p, 2);
    if (graph_first) duet_recording_free(&r);
    duet_free(&p.w);
    duet_recording_free(&r);
    free_product(&p);
    tap_point(graph_first ? "a graph ends, then a matrix without a buffer that it used"
                          : "a matrix without a buffer ends, then a graph that used it");
}

/* The buffer of w was freed, and then the GPU is lost. */
static void test_lost_product(void)
{
    product p = new_product();
    duet_recording *r = record_product(&p);
    holds(p.z, 2 * DEEP, "a recorded product");
    take_block_of_w(&p, 2);
    fake_lost_card(0);
    CHECK(duet_synchronize() == DUET_DEVICE_ERROR, "%s", duet_error());
    leave_all();
    ok(duet_recover());
    for (int k = 0; k < TURNS; k++) ok(duet_replay(r));
    holds(p.z, 2 * DEEP + TURNS * 2 * DEEP, "a product after the loss of the GPU");
    duet_recording_free(&r);
    duet_free(&p.w, &p.x, &p.y, &p.z, &p.sum);
    tap_point("the GPU is lost while the cache has an operand without a buffer");
}

/* ---- graphs that would be faster if captured again ---- */

static void test_outdated_recording(void)
{
    enum { REPLAYS = 3 };
    duet_matrix *m = square(0);
    ok(duet_record_begin());
    for (int i = 0; i < LOOP; i++) ok(duet_set(m, duet_add(m, 1)));
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    for (int turn = 0; turn < 3; turn++) {
        const uint64_t before = duet_stats().graphs;
        fake_outdate();
        for (int k = 0; k <= REPLAYS; k++) ok(duet_replay(r));
        const int graphs = (int)(duet_stats().graphs - before);
        CHECK(graphs == REPLAYS, "%d of %d replays were graphs", graphs, REPLAYS + 1);
    }
    holds(m, LOOP * (1 + 3 * (REPLAYS + 1)), "a recording whose graph was outdated");
    duet_recording_free(&r);
    duet_free(&m);
    tap_point("a recording captures its graph again");
}

static int graphs_of_rounds(circle *c)
{
    const uint64_t before = duet_stats().graphs;
    repeat(c, ROUNDS);
    return (int)(duet_stats().graphs - before);
}

static void test_outdated_repetition(void)
{
    circle c = new_circle(LOOP);
    (void)graphs_of_rounds(&c);
    const int always = graphs_of_rounds(&c);
    fake_outdate();
    const int again = graphs_of_rounds(&c), later = graphs_of_rounds(&c);
    CHECK(always == ROUNDS && later == ROUNDS, "%d and %d of %d rounds were graphs", always, later, ROUNDS);
    CHECK(again > 0 && again < ROUNDS, "%d of %d rounds were graphs", again, ROUNDS);
    free_circle(&c);
    tap_point("automatic replay captures a graph again");
}

int main(void)
{
    fake_devices(2);
    auto_replay_set_max_seconds(1);
    test_long_recording();
    test_recorded_list();
    test_interrupted(free_block_of_x, "a statement that is deferred frees the memory of another matrix");
    test_interrupted(write_x_on_other_gpu, "a statement that is deferred reads elements of another GPU");
    DUET_ON(DUET_GPU)
    {
        test_outdated_recording();
        test_outdated_repetition();
        test_recorded_product();
        test_repeated_product();
        test_freed_product(false);
        test_freed_product(true);
        test_lost_product();
    }
    return tap_end();
}
