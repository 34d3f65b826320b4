/* test_residency.c - transfers, allocations and waits in a forward pass, and the number of passes
 * of an expression, by the counters of duet_stats; on the fake CUDA or a real one. */
#include "common.h"
#include "modes.h"

enum { BATCH = 16, PIXELS = 30, HIDDEN = 40, CLASSES = 10, SIDE = 8, CALLS = 6 };

static rng gen;

static duet_matrix *drawn(int rank, const int64_t *size)
{
    return random_matrix(&gen, DUET_F32, rank, size, -1, 1);
}
#define DRAWN(...) drawn(RANK_OF(__VA_ARGS__), (const int64_t[]){ __VA_ARGS__ })

static bool judging; /* statements are compared with the oracle too */

static void set(duet_matrix *m, duet_expr e)
{
    const char *why = NULL;
    if (judging) why = oracle_refutes(m, e);
    else if ((duet_set)(m, e) != DUET_OK) why = duet_error();
    CHECK(!why, "%s", why);
}
#define SET(m, e) set(m, e)

/* ---- networks: step() is one call on the matrix `in`; the result is in `out` ---- */

typedef struct network {
    duet_matrix *in, *out, *w[4], *b[4], *o[6];
    void (*step)(struct network *);
} network;

static void dense_step(network *n)
{
    SET(n->o[0], duet_sigmoid(duet_bias_add(duet_matmul(n->in, n->w[0]), n->b[0])));
    SET(n->o[1], duet_sigmoid(duet_bias_add(duet_matmul(n->o[0], n->w[1]), n->b[1])));
    SET(n->out, duet_sigmoid(duet_bias_add(duet_matmul(n->o[1], n->w[2]), n->b[2])));
}

static network dense(void)
{
    network n = { .in = DRAWN(BATCH, PIXELS), .step = dense_step };
    n.w[0] = DRAWN(PIXELS, HIDDEN);
    n.w[1] = DRAWN(HIDDEN, HIDDEN);
    n.w[2] = DRAWN(HIDDEN, CLASSES);
    n.b[0] = DRAWN(HIDDEN);
    n.b[1] = DRAWN(HIDDEN);
    n.b[2] = DRAWN(CLASSES);
    n.o[0] = duet_new(DUET_F32, BATCH, HIDDEN);
    n.o[1] = duet_new(DUET_F32, BATCH, HIDDEN);
    n.out = duet_new(DUET_F32, BATCH, CLASSES);
    return n;
}

static void cnn_step(network *n)
{
    SET(n->o[0], duet_relu(duet_bias_add(duet_conv2d(n->in, n->w[0], .pad = { 1, 1 }), n->b[0])));
    SET(n->o[1], duet_max_pool2d(n->o[0], .window = { 2, 2 }));
    SET(n->o[2], duet_relu(duet_bias_add(duet_conv2d(n->o[1], n->w[1], .pad = { 1, 1 }), n->b[1])));
    SET(n->o[3], duet_max_pool2d(n->o[2], .window = { 2, 2 }));
    SET(n->o[5], duet_relu(duet_bias_add(duet_matmul(n->o[4], n->w[2]), n->b[2])));
    SET(n->out, duet_softmax(duet_bias_add(duet_matmul(n->o[5], n->w[3]), n->b[3])));
}

static network cnn(void)
{
    network n = { .in = DRAWN(BATCH, 3, SIDE, SIDE), .step = cnn_step };
    const int64_t half = SIDE / 2, quarter = SIDE / 4;
    n.w[0] = DRAWN(4, 3, 3, 3);
    n.w[1] = DRAWN(6, 4, 3, 3);
    n.w[2] = DRAWN(6 * quarter * quarter, HIDDEN);
    n.w[3] = DRAWN(HIDDEN, CLASSES);
    n.b[0] = DRAWN(4);
    n.b[1] = DRAWN(6);
    n.b[2] = DRAWN(HIDDEN);
    n.b[3] = DRAWN(CLASSES);
    n.o[0] = duet_new(DUET_F32, BATCH, 4, SIDE, SIDE);
    n.o[1] = duet_new(DUET_F32, BATCH, 4, half, half);
    n.o[2] = duet_new(DUET_F32, BATCH, 6, half, half);
    n.o[3] = duet_new(DUET_F32, BATCH, 6, quarter, quarter);
    n.o[4] = duet_reshaped(n.o[3], BATCH, 6 * quarter * quarter); /* the same elements, flattened */
    n.o[5] = duet_new(DUET_F32, BATCH, HIDDEN);
    n.out = duet_new(DUET_F32, BATCH, CLASSES);
    return n;
}

static void network_free(network *n)
{
    duet_free(&n->in);
    duet_free(&n->out);
    for (int i = 0; i < 4; i++) {
        duet_free(&n->w[i]);
        duet_free(&n->b[i]);
    }
    for (int i = 0; i < 6; i++) duet_free(&n->o[i]);
}

/* One call as a user makes it: upload of a batch, the pass, download of the result. Returns what it
 * counted. */
static duet_counts call(network *n)
{
    const duet_counts before = duet_stats();
    duet_counts after;
    random_fill(&gen, n->in, -1, 1);
    n->step(n);
    CHECK(duet_read(n->out) != NULL, "%s", duet_error());
    after = duet_stats();
    uint64_t *a = (uint64_t *)&after;
    const uint64_t *b = (const uint64_t *)&before;
    for (size_t i = 0; i < sizeof after / sizeof *a; i++) a[i] -= b[i];
    return after;
}

/* The same batch again, each statement compared with the oracle, gives the same result: nothing
 * stale was read. */
static void answers_hold(network *n)
{
    void *got = elements(n->out);
    judging = true;
    n->step(n);
    judging = false;
    void *again = elements(n->out);
    CHECK(got && again && same_bits(DUET_F32, got, again, BATCH * CLASSES),
          "the same batch gives another result");
    free(got);
    free(again);
}

static void forward(network n, const char *name)
{
    DUET_ON(DUET_GPU)
    {
        call(&n);
        for (int i = 0; i < CALLS; i++) {
            const duet_counts c = call(&n);
            CHECK(c.uploads == 1 && c.upload_bytes == (uint64_t)duet_count(n.in) * 4,
                  "%s: %d uploads of %d bytes; only the batch should be uploaded", name, (int)c.uploads,
                  (int)c.upload_bytes);
            CHECK(c.downloads == 1 && c.download_bytes == BATCH * CLASSES * 4,
                  "%s: %d downloads of %d bytes; only the result should be downloaded", name,
                  (int)c.downloads, (int)c.download_bytes);
            CHECK(c.synchronisations <= 1, "%s: the host waited %d times", name, (int)c.synchronisations);
            CHECK(c.pool_misses == 0, "%s: %d blocks from the system", name, (int)c.pool_misses);
            CHECK(c.plan_misses == 0, "%s: %d plans were not cached", name, (int)c.plan_misses);
        }
        answers_hold(&n);
    }
    network_free(&n);
    tap_point(name);
}

/* Valid GPU buffers stay valid: only the first statement of a chain uploads, and nothing is
 * downloaded unasked. */
static void chain(void)
{
    duet_matrix *x = DRAWN(100), *y = DRAWN(100);
    DUET_ON(DUET_GPU)
    {
        SET(y, duet_add(x, y));
        const duet_counts before = duet_stats();
        for (int i = 0; i < 50; i++) {
            SET(y, duet_mul(duet_add(x, y), 0.5));
            SET(x, duet_div(x, duet_norm(x)));
        }
        const duet_counts after = duet_stats();
        CHECK(after.uploads == before.uploads && after.downloads == before.downloads,
              "elements were copied between devices");
        CHECK(after.synchronisations == before.synchronisations, "the host waited");
        CHECK(after.pool_misses - before.pool_misses <= 4, "%d blocks from the system",
              (int)(after.pool_misses - before.pool_misses));
    }
    duet_free(&x);
    duet_free(&y);
    tap_point("a chain of statements with a norm stays on the GPU");
}

/* ---- passes -------------------------------------------------------------------------------------------- */

static duet_expr wiemann(duet_matrix *a, duet_matrix *b, duet_matrix *c)
{
    const duet_expr inner =
        duet_sub(duet_add(duet_sub(b, duet_add(a, duet_mul(3.75, c))), c), duet_mul(0.24, b));
    return duet_sub(duet_add(duet_div(inner, 27.51), a), duet_mul(0.25, b));
}

static void passes(duet_place where, int mode, int most)
{
    duet_matrix *a = DRAWN(1000), *b = DRAWN(1000), *c = DRAWN(1000);
    plan_fusion(mode);
    DUET_ON(where)
    {
        const duet_counts before = duet_stats();
        SET(a, wiemann(a, b, c));
        const int steps = (int)(duet_stats().steps - before.steps);
        CHECK(steps >= 1 && steps <= most, "%d steps on the %s, fusion %s", steps, place_name(where),
              mode_names[mode]);
        const char *why = oracle_refutes(a, wiemann(a, b, c));
        CHECK(!why, "%s", why);
    }
    plan_fusion(MODE_MACHINE);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
}

int main(void)
{
    duet_place place[2];
    const bool gpu = list_places(place) == 2;
    gen = rng_new(3);
    passes(DUET_CPU, MODE_MACHINE, 1);
    passes(DUET_CPU, MODE_ROWS, 7);
    if (gpu) passes(DUET_GPU, MODE_MACHINE, 1);
    tap_point("eight operators on three vectors run in one pass");
    if (gpu) {
        forward(dense(), "dense forward");
        forward(cnn(), "convolutional forward");
        chain();
    } else {
        printf("ok %d - forward passes # SKIP there is no GPU\n", ++tap_points);
    }
    return tap_end();
}
