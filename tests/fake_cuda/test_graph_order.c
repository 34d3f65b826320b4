/* test_graph_order.c - the order of the steps in CUDA graphs, on the fake CUDA, which runs the nodes of a
 * graph in a random order that their dependencies allow. Random recordings over matrices and views that
 * overlap are compared, bit for bit, with the same statements run one by one. */
#include "auto_replay.h"
#include "fake_cuda.h"
#include "quick.h"
#include "tap.h"
#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, SQUARES = 5, PARTS = 4, SMALL = 12, SMALLS = 12, LONG = 3 * 4096 + 5, MOST = 14, RUNS = 4 };

static uint64_t state;
static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}
static int below(int n) { return (int)(next() % (uint32_t)n); }
static void ok(duet_status s) { CHECK(s == DUET_OK, "status %d: %s", (int)s, duet_error()); }

/* ---- matrices ---- */

/* Squares and views of them, which overlap; small squares; lines; a long vector, whose sum needs scratch
 * memory; numbers. */
typedef struct world {
    duet_matrix *square[SQUARES + PARTS], *small[SMALLS], *line[3], *list, *number[2];
} world;

static duet_matrix *filled(int64_t rows, int64_t columns, uint64_t seed)
{
    duet_matrix *m = columns ? duet_new(DUET_F32, rows, columns) : duet_new(DUET_F32, rows);
    state = seed * 2654435761u;
    float *p = duet_overwrite(m);
    for (int64_t i = 0; i < duet_count(m); i++) p[i] = (float)((int)(next() >> 7 & 0xffff) - 0x8000) / 0x8000;
    return m;
}

static world new_world(uint64_t seed)
{
    world w;
    for (int i = 0; i < SQUARES; i++) w.square[i] = filled(SIDE, SIDE, seed + (uint64_t)i);
    duet_matrix *tall = filled(2 * SIDE, SIDE + 2, seed + 20);
    w.square[SQUARES] = duet_transposed(w.square[0]);
    w.square[SQUARES + 1] = duet_submatrix(tall, 0, 0, SIDE, SIDE);
    w.square[SQUARES + 2] = duet_submatrix(tall, SIDE / 2, 1, SIDE, SIDE);
    w.square[SQUARES + 3] = duet_submatrix(tall, SIDE, 2, SIDE, SIDE);
    duet_free(&tall);
    for (int i = 0; i < SMALLS; i++) w.small[i] = filled(SMALL, SMALL, seed + 60 + (uint64_t)i);
    for (int i = 0; i < 3; i++) w.line[i] = filled(SIDE, 0, seed + 30 + (uint64_t)i);
    w.list = filled(LONG, 0, seed + 40);
    for (int i = 0; i < 2; i++) w.number[i] = filled(1, 0, seed + 50 + (uint64_t)i);
    return w;
}

static void free_world(world *w)
{
    for (int i = 0; i < SQUARES + PARTS; i++) duet_free(&w->square[i]);
    for (int i = 0; i < SMALLS; i++) duet_free(&w->small[i]);
    for (int i = 0; i < 3; i++) duet_free(&w->line[i]);
    for (int i = 0; i < 2; i++) duet_free(&w->number[i]);
    duet_free(&w->list);
}

static bool same(const duet_matrix *a, const duet_matrix *b)
{
    duet_matrix *x = duet_new(DUET_F32, duet_count(a)), *y = duet_new(DUET_F32, duet_count(b));
    ok(duet_set(x, duet_reshape(a, duet_count(a))));
    ok(duet_set(y, duet_reshape(b, duet_count(b))));
    const float *p = duet_read(x), *q = duet_read(y);
    const bool equal = p && q && !memcmp(p, q, (size_t)duet_count(x) * sizeof *p);
    duet_free(&x);
    duet_free(&y);
    return equal;
}

static void compare(const world *a, const world *b, const char *what, int seed)
{
    bool equal = same(a->list, b->list);
    for (int i = 0; i < SQUARES + PARTS; i++) equal &= same(a->square[i], b->square[i]);
    for (int i = 0; i < SMALLS; i++) equal &= same(a->small[i], b->small[i]);
    for (int i = 0; i < 3; i++) equal &= same(a->line[i], b->line[i]);
    for (int i = 0; i < 2; i++) equal &= same(a->number[i], b->number[i]);
    CHECK(equal, "%s differ from statements run one by one, seed %d", what, seed);
}

/* ---- statements ---- */

typedef struct random_statement {
    int kind, to, also, x, y, z;
} random_statement;

#define SQUARE(i) w->square[(i) % (SQUARES + PARTS)]
#define SMALL_(i) w->small[(i) % SMALLS]
#define LINE(i)   w->line[(i) % 3]
#define NUMBER(i) w->number[(i) % 2]

/* Results stay within -2 and 2. */
static duet_expr bounded(duet_expr e) { return duet_clip(e, -2, 2); }

static duet_status run(const world *w, const random_statement *s)
{
    duet_matrix *to = SQUARE(s->to), *x = SQUARE(s->x), *y = SQUARE(s->y), *z = SQUARE(s->z);
    switch (s->kind) {
    case 0: return duet_set(to, bounded(duet_sub(duet_mul(0.75, x), duet_mul(y, z))));
    case 1: return duet_set(to, bounded(duet_matmul(x, y)));
    case 2: return duet_set(to, bounded(duet_matmul(duet_transpose(x), y)));
    case 3: return duet_set(to, duet_relu(duet_bias_add(duet_mul(0.25, duet_matmul(x, y)), LINE(s->z))));
    case 4: return duet_set(LINE(s->to), bounded(duet_sum_axis(x, 0)));
    case 5: return duet_set(NUMBER(s->to), bounded(duet_sum(duet_mul(w->list, NUMBER(s->x)))));
    case 6: return duet_set(w->list, bounded(duet_add(duet_mul(0.5, w->list), NUMBER(s->x))));
    case 7: return duet_set(to, duet_softmax(x));
    case 8: return duet_set(to, duet_cumsum(duet_mul(0.1, x), 0));
    case 9: return duet_set(to, duet_sort(x, 1));
    case 10:
        return duet_set_all({ SQUARE(s->to), bounded(duet_add(x, y)) },
                            { SQUARE(s->also), bounded(duet_matmul(y, z)) },
                            { LINE(s->to), bounded(duet_sum_axis(duet_mul(x, z), 1)) });
    case 11: return duet_set(to, x);
    case 12: return duet_set(to, bounded(duet_mul(duet_matmul(x, y), duet_matmul(y, z))));
    case 13:
    case 14: return duet_set(SMALL_(s->to), bounded(duet_matmul(SMALL_(s->x), SMALL_(s->y))));
    case 15: /* with handles and workspaces of a library */
        return duet_set(to, bounded(duet_real(duet_fft(duet_complex(x, y), SIDE, 0))));
    case 16: /* zeros, since there is nothing to add */
        return duet_set(LINE(s->to), duet_sum_axis(duet_range(x, 1, SIDE, SIDE, 1), 1));
    default:
        return duet_set(to,
                        bounded(duet_reshape(duet_matmul(duet_reshape(x, 4, 8, 8), duet_reshape(y, 4, 8, 8)),
                                             SIDE, SIDE)));
    }
}

enum { KINDS = 18 };

static void choose(random_statement *s)
{
    *s = (random_statement){ below(KINDS), below(64), below(64), below(64), below(64), below(64) };
}

static void run_all(const world *w, const random_statement *s, int count)
{
    for (int i = 0; i < count; i++) ok(run(w, &s[i]));
}

/* ---- tests ---- */

static void test_recording(int seed)
{
    random_statement s[MOST];
    state = (uint64_t)seed * 7919 + 1;
    const int count = 2 + below(MOST - 1);
    for (int i = 0; i < count; i++) choose(&s[i]);
    world a = new_world((uint64_t)seed), b = new_world((uint64_t)seed);
    ok(duet_auto_replay(0));
    run_all(&a, s, count);
    ok(duet_record_begin());
    run_all(&b, s, count);
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    compare(&a, &b, "statements while they are recorded", seed);
    for (int k = 0; k < RUNS; k++) {
        run_all(&a, s, count);
        ok(duet_replay(r));
    }
    compare(&a, &b, "replays", seed);
    duet_recording_free(&r);
    free_world(&a);
    free_world(&b);
}

static void test_repeated(int seed)
{
    random_statement s[MOST];
    state = (uint64_t)seed * 7919 + 2;
    const int count = 2 + below(5);
    for (int i = 0; i < count; i++) choose(&s[i]);
    world a = new_world((uint64_t)seed), b = new_world((uint64_t)seed);
    for (int k = 0; k < 12; k++) {
        ok(duet_auto_replay(0));
        run_all(&a, s, count);
    }
    ok(duet_auto_replay(1));
    for (int k = 0; k < 12; k++) run_all(&b, s, count);
    ok(duet_auto_replay(0));
    compare(&a, &b, "statements that repeat", seed);
    free_world(&a);
    free_world(&b);
}

/* Statements each of which reads what the one before has written. */
static void test_chain(void)
{
    world w = new_world(1);
    ok(duet_record_begin());
    for (int i = 0; i + 1 < SQUARES; i++)
        ok(duet_set(w.square[i + 1], duet_matmul(duet_mul(0.1, w.square[i]), w.square[i])));
    duet_recording *r = duet_record_end();
    const fake_counts before = fake_count();
    for (int k = 0; k < RUNS; k++) ok(duet_replay(r));
    const fake_counts after = fake_count();
    CHECK(after.graphs == before.graphs + RUNS && after.choices == before.choices, "%d graphs, %d choices",
          (int)(after.graphs - before.graphs), (int)(after.choices - before.choices));
    duet_recording_free(&r);
    free_world(&w);
    tap_point("a chain of statements has no branches");
}

/* Replays a recording of these statements once; returns how often several nodes could run next. */
static int choices_of(duet_status of(const world *w))
{
    world w = new_world(1), direct = new_world(1);
    ok(of(&direct));
    ok(duet_record_begin());
    ok(of(&w));
    duet_recording *r = duet_record_end();
    const fake_counts before = fake_count();
    ok(duet_replay(r));
    const fake_counts after = fake_count();
    CHECK(after.graphs == before.graphs + 1, "no graph was launched");
    compare(&direct, &w, "branches", 1);
    duet_recording_free(&r);
    free_world(&direct);
    free_world(&w);
    return (int)(after.choices - before.choices);
}

/* Statements that use different matrices. */
static duet_status independent(const world *w)
{
    duet_status s = DUET_OK;
    for (int i = 1; i < SMALLS && s == DUET_OK; i++)
        s = duet_set(w->small[i], duet_matmul(w->small[0], w->small[0]));
    if (s == DUET_OK) s = duet_set(w->line[0], duet_sum_axis(w->square[0], 0));
    if (s == DUET_OK) s = duet_set(w->number[0], duet_sum(w->list));
    return s;
}

static void test_branches(void)
{
    const int n = choices_of(independent);
    CHECK(n >= SMALLS, "%d choices among independent statements", n);
    tap_point("independent statements become branches");
}

/* The statements of one duet_set_all are written to temporaries until no step can fail. A graph runs as a
 * whole. */
static void test_direct_results(void)
{
    world w = new_world(1);
    duet_matrix *stack = duet_ones(DUET_F32, 3, SIDE, SIDE), *products = duet_new(DUET_F32, 3, SIDE, SIDE);
    const uint64_t start = duet_stats().launches;
    ok(duet_record_begin());
    ok(duet_set_all({ w.square[1], duet_matmul(w.square[0], w.square[0]) },
                    { w.square[2], duet_relu(duet_matmul(w.square[0], w.square[3])) },
                    { products, duet_matmul(duet_add(stack, w.square[1]), stack) }));
    duet_recording *r = duet_record_end();
    const uint64_t direct = duet_stats().launches;
    ok(duet_replay(r));
    const uint64_t replayed = duet_stats().launches;
    CHECK(direct - start > replayed - direct, "%d launches, %d of the graph", (int)(direct - start),
          (int)(replayed - direct));
    duet_recording_free(&r);
    duet_free(&stack, &products);
    free_world(&w);
    tap_point("a graph does not copy results");
}

/* More statements than graph_order.c puts into order. */
static void test_many(void)
{
    enum { LENGTH = 1500 };
    world a = new_world(7), b = new_world(7);
    random_statement *s = calloc(LENGTH, sizeof *s);
    for (int i = 0; i < LENGTH; i++) {
        choose(&s[i]);
        if (s[i].kind == 5 || s[i].kind == 6) s[i].kind = 0; /* faster */
    }
    run_all(&a, s, LENGTH);
    ok(duet_record_begin());
    run_all(&b, s, LENGTH);
    duet_recording *r = duet_record_end();
    const uint64_t graphs = fake_count().graphs;
    ok(duet_replay(r));
    CHECK(fake_count().graphs == graphs + 1, "no graph was launched");
    run_all(&a, s, LENGTH);
    compare(&a, &b, "many statements", 7);
    duet_recording_free(&r);
    free_world(&a);
    free_world(&b);
    free(s);
    tap_point("a recording of many statements");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    auto_replay_set_max_seconds(1);
    DUET_ON(DUET_GPU)
    {
        ok(duet_auto_replay(0));
        test_chain();
        test_branches();
        test_direct_results();
        const uint64_t choices = fake_count().choices;
        for (int i = 0; i < (quick ? 60 : 400); i++) test_recording(i);
        CHECK(fake_count().choices > choices, "no graph has branches");
        tap_point("random recordings");
        for (int i = 0; i < (quick ? 20 : 100); i++) test_repeated(i);
        tap_point("random statements that repeat");
        test_many();
    }
    return tap_end();
}
