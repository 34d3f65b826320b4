/* test_stream.c - statements that do not fit the device, on the pretended CUDA: two worlds of the same matrices, in one of which there is room
 * for all and in the other for some of the rows. All bits must agree; where products are in it, of small whole numbers.
 *
 *     test_stream [rounds] [seed] */
#include "common.h"
#include "cost.h"
#include "fake_cuda.h"
#include "plan.h"
#include "stream.h"
#include <pthread.h>

static rng dice;
static int below(int n) { return (int)rng_below(&dice, n); }

/* ---- worlds ---------------------------------------------------------------------------------------------------- */

enum {
    X,
    Y,
    Z,
    T,
    U,
    LINE,
    COLUMN,
    INDEX,
    IMAGES,
    POOLED,
    LONG,
    LONGER,
    ROW_MATRICES,
    W = ROW_MATRICES,
    W2,
    BIAS,
    BIAS2,
    ROW,
    FILTERS,
    BIAS3,
    MATRICES
};

typedef struct world {
    duet_matrix *m[MATRICES], *upper, *lower, *part, *columns;
} world;

typedef struct sizes_of_world {
    int64_t n, c, d, e, k;
} sizes_of_world;

static world new_world(const sizes_of_world *s)
{
    const int64_t n = s->n, c = s->c, d = s->d;
    world w = { .m = { [X] = duet_new(DUET_F32, n, c),
                       [Y] = duet_new(DUET_F32, n, c),
                       [Z] = duet_new(DUET_F32, n, c),
                       [T] = duet_new(DUET_F32, n, d),
                       [U] = duet_new(DUET_F32, n, s->e),
                       [LINE] = duet_new(DUET_F32, n),
                       [COLUMN] = duet_new(DUET_F32, n, 1),
                       [INDEX] = duet_new(DUET_I64, n),
                       [IMAGES] = duet_new(DUET_F32, n, 2, 4, 4),
                       [POOLED] = duet_new(DUET_F32, n, s->k, 2, 2),
                       [LONG] = duet_new(DUET_F32, n * c),
                       [LONGER] = duet_new(DUET_F32, 2 * n, c + 1),
                       [W] = duet_new(DUET_F32, c, d),
                       [W2] = duet_new(DUET_F32, d, s->e),
                       [BIAS] = duet_new(DUET_F32, d),
                       [BIAS2] = duet_new(DUET_F32, s->e),
                       [ROW] = duet_new(DUET_F32, c),
                       [FILTERS] = duet_new(DUET_F32, s->k, 2, 3, 3),
                       [BIAS3] = duet_new(DUET_F32, s->k) } };
    w.upper = duet_slice(w.m[LONGER], 0, n), w.lower = duet_slice(w.m[LONGER], n, n);
    w.part = duet_submatrix(w.m[LONGER], 1, 1, n, c), w.columns = duet_transposed(w.m[X]);
    return w;
}

static void free_world(world *w)
{
    duet_free(&w->upper), duet_free(&w->lower), duet_free(&w->part), duet_free(&w->columns);
    for (int i = 0; i < MATRICES; i++) duet_free(&w->m[i]);
}

/* Small whole numbers, of which products are exact. */
static void fill(const world *a, const world *b, int i)
{
    const int64_t count = duet_count(a->m[i]);
    void *p = duet_overwrite(a->m[i]), *q = duet_overwrite(b->m[i]);
    for (int64_t j = 0; j < count; j++)
        if (i == INDEX) ((int64_t *)p)[j] = below(7);
        else ((float *)p)[j] = (float)(below(9) - 4);
    memcpy(q, p, (size_t)count * (i == INDEX ? 8 : 4));
}

static bool compare(const world *a, const world *b, const char *what)
{
    bool same = true;
    for (int i = 0; i < MATRICES; i++) {
        const void *p = duet_read(a->m[i]), *q = duet_read(b->m[i]);
        same &= CHECK(p && q && same_bits(duet_type(a->m[i]), p, q, duet_count(a->m[i])), "matrix %d differs after %s: %s", i,
                      what, duet_error());
    }
    return same;
}

/* ---- statements that can be cut --------------------------------------------------------------------------------- */

typedef duet_status statement_of(const world *w);
#define M(i) w->m[i]
static duet_status axpy(const world *w) { return duet_set(M(Y), duet_add(duet_mul(0.5, M(X)), M(Y))); }
static duet_status vectors(const world *w) { return duet_set(M(LONG), duet_sub(duet_mul(3, M(LONG)), 1)); }
static duet_status chain(const world *w)
{
    return duet_set(M(Z), duet_tanh(duet_sub(duet_mul(M(X), M(Y)), duet_mul(M(ROW), M(COLUMN)))));
}
static duet_status spread(const world *w) { return duet_set(M(Z), duet_exp(M(ROW))); }
static duet_status layer(const world *w) { return duet_set(M(T), duet_sigmoid(duet_bias_add(duet_matmul(M(X), M(W)), M(BIAS)))); }
static duet_status dense(const world *w)
{
    const duet_expr h = duet_relu(duet_bias_add(duet_matmul(M(X), M(W)), M(BIAS)));
    return duet_set(M(U), duet_softmax(duet_bias_add(duet_matmul(h, M(W2)), M(BIAS2))));
}
static duet_status onto(const world *w)
{
    return duet_set(M(T), duet_add(duet_mul(2, duet_matmul(M(X), M(W))), duet_mul(0.5, M(T))));
}
static duet_status times_vector(const world *w) { return duet_set(M(LINE), duet_matmul(M(X), M(ROW))); }
static duet_status softmax(const world *w) { return duet_set(M(Z), duet_softmax(M(X))); }
static duet_status rows(const world *w) { return duet_set(M(LINE), duet_sum_axis(duet_mul(M(X), M(Y)), 1)); }
static duet_status rows_kept(const world *w) { return duet_set(M(Z), duet_sub(M(X), duet_mean_keep(M(X), 1))); }
static duet_status indices(const world *w) { return duet_set(M(INDEX), duet_argmax_axis(M(X), 1)); }
static duet_status pooled(const world *w)
{
    const duet_expr y = duet_bias_add(duet_conv2d(M(IMAGES), M(FILTERS), .pad = { 1, 1 }), M(BIAS3));
    return duet_set(M(POOLED), duet_max_pool2d(duet_relu(y), .window = { 2, 2 }));
}
static duet_status together(const world *w)
{
    return duet_set_all({ M(Y), duet_add(M(X), M(Y)) }, { M(LINE), duet_sum_axis(M(Y), 1) }, { M(Z), duet_mul(M(Y), M(ROW)) });
}
static duet_status twice(const world *w) { return duet_set_all({ M(Y), duet_mul(2, M(X)) }, { M(Y), duet_add(M(Y), M(Z)) }); }
static duet_status halves(const world *w) { return duet_set(w->upper, duet_add(w->upper, duet_mul(2, w->lower))); }
static duet_status narrow(const world *w) { return duet_set(M(Z), duet_sub(w->part, M(Y))); }
static duet_status copied(const world *w) { return duet_set(M(Z), M(X)); }

typedef struct kind {
    const char *name;
    statement_of *run;
} kind;
#define CASE(f)                                                                                                                  \
    {                                                                                                                            \
#f, f                                                                                                                    \
    }
static const kind kinds[] = { CASE(axpy),   CASE(vectors),      CASE(chain),   CASE(spread), CASE(layer),     CASE(dense),
                              CASE(onto),   CASE(times_vector), CASE(softmax), CASE(rows),   CASE(rows_kept), CASE(indices),
                              CASE(pooled), CASE(together),     CASE(twice),   CASE(halves), CASE(narrow),    CASE(copied) };
#define KINDS (int)(sizeof kinds / sizeof *kinds)

/* ---- and that cannot -------------------------------------------------------------------------------------------- */

static duet_status columns(const world *w) { return duet_set(M(ROW), duet_mean_axis(M(X), 0)); }
static duet_status whole_norm(const world *w) { return duet_set(M(Z), duet_div(M(X), duet_norm(M(X)))); }
static duet_status turned(const world *w) { return duet_set(w->columns, duet_mul(2, w->columns)); }
static duet_status from_turned(const world *w) { return duet_set(M(Z), duet_transpose(w->columns)); }
static duet_status shifted(const world *w)
{
    return duet_set(w->upper, duet_add(w->lower, duet_slice(M(LONGER), 1, duet_size(w->lower, 0))));
}
static const kind others[] = { CASE(columns), CASE(whole_norm), CASE(turned), CASE(from_turned) };

/* ---- little room ------------------------------------------------------------------------------------------------ */

static size_t used(void) { return duet_memory_of(DUET_GPU).used; }

/* Of the device's memory so much is left beside what is there. */
static void leave(size_t bytes)
{
    duet_memory_trim();
    CHECK(duet_memory_limit(DUET_GPU, used() + bytes) == DUET_OK, "%s", duet_error());
}
static void leave_all(void) { CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error()); }

static uint64_t streams(void) { return duet_stats().streams; }

static sizes_of_world some_sizes(void)
{
    return (sizes_of_world){ 500 + below(900), 1 + below(9), 1 + below(9), 1 + below(9), 1 + below(4) };
}

static void fill_all(const world *a, const world *b)
{
    for (int i = 0; i < MATRICES; i++) fill(a, b, i);
}

static duet_status on(duet_place place, statement_of *run, const world *w)
{
    DUET_ON(place) return run(w);
    return DUET_OK;
}

static int done[KINDS], refused[KINDS];

/* In b as much room as a third of what the statement has, or so. */
static void one_round(int round)
{
    const sizes_of_world s = some_sizes();
    world a = new_world(&s), b = new_world(&s);
    fill_all(&a, &b);
    for (int i = 0; i < 12; i++) {
        const int k = below(KINDS);
        const uint64_t before = streams();
        const duet_status want = on(below(2) ? DUET_GPU : DUET_CPU, kinds[k].run, &a);
        leave((size_t)(9000 + below(6 * (int)(s.n * s.c))));
        const duet_status got = on(DUET_GPU, kinds[k].run, &b);
        leave_all();
        CHECK(want == DUET_OK && (got == DUET_OK || got == DUET_NO_MEMORY), "round %d, %s: %s", round, kinds[k].name,
              duet_error());
        if (got != DUET_OK)
            CHECK(on(DUET_GPU, kinds[k].run, &b) == DUET_OK, "round %d, %s: it was changed: %s", round, kinds[k].name,
                  duet_error());
        done[k] += streams() > before, refused[k] += got != DUET_OK;
        if (!compare(&a, &b, kinds[k].name)) break;
        fill(&a, &b, below(ROW_MATRICES));
    }
    free_world(&a), free_world(&b);
}

static void test_rounds(int count)
{
    for (int i = 0; i < count; i++) one_round(i);
    for (int k = 0; k < KINDS; k++)
        CHECK(done[k] > refused[k], "%s was streamed %d times, and refused %d times", kinds[k].name, done[k], refused[k]);
    tap_point("what does not fit goes through part by part, with the bits that it has when it fits");
}

/* ---- what cannot be cut ----------------------------------------------------------------------------------------- */

static void test_others(void)
{
    for (int k = 0; k < (int)(sizeof others / sizeof *others); k++) {
        const sizes_of_world s = { 200, 8, 8, 8, 2 };
        world a = new_world(&s), b = new_world(&s);
        fill_all(&a, &b);
        const uint64_t before = streams();
        leave(3000);
        const duet_status got = on(DUET_GPU, others[k].run, &b);
        leave_all();
        CHECK(got == DUET_NO_MEMORY && streams() == before, "%s: status %d", others[k].name, (int)got);
        compare(&a, &b, others[k].name);
        CHECK(on(DUET_GPU, others[k].run, &a) == DUET_OK && on(DUET_GPU, others[k].run, &b) == DUET_OK, "%s", duet_error());
        compare(&a, &b, others[k].name);
        leave(3000);
        CHECK(on(DUET_AUTO, others[k].run, &b) == DUET_OK, "%s: %s", others[k].name, duet_error());
        leave_all();
        CHECK(on(DUET_AUTO, others[k].run, &a) == DUET_OK, "%s: %s", others[k].name, duet_error());
        compare(&a, &b, others[k].name);
        free_world(&a), free_world(&b);
    }
    tap_point("what cannot be cut fails for want of memory, or goes to the CPU, and leaves all as it was");
}

/* ---- recorded, and repeated ------------------------------------------------------------------------------------- */

/* Two that are streamed in b, and one between them that is not. */
static duet_status three(const world *w)
{
    duet_status s = layer(w);
    if (s == DUET_OK) s = duet_set(M(BIAS2), duet_add(M(BIAS2), 1));
    if (s == DUET_OK) s = duet_set(M(ROW), duet_mul(-1, M(ROW)));
    return s == DUET_OK ? axpy(w) : s;
}

static void new_pair(world *a, world *b)
{
    const sizes_of_world s = { 900, 6, 7, 5, 2 };
    *a = new_world(&s), *b = new_world(&s);
    fill_all(a, b);
}

static duet_recording *record(const world *w)
{
    CHECK(duet_record_begin() == DUET_OK && on(DUET_GPU, three, w) == DUET_OK, "%s", duet_error());
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    return r;
}

static void test_record(void)
{
    world a, b;
    new_pair(&a, &b);
    leave(20000);
    duet_recording *r = record(&b);
    leave_all();
    CHECK(on(DUET_GPU, three, &a) == DUET_OK, "%s", duet_error());
    compare(&a, &b, "the recording");
    for (int i = 0; i < 6 && r; i++) {
        const duet_counts before = duet_stats();
        fill(&a, &b, X), fill(&a, &b, i % 2 ? Y : BIAS);
        CHECK(duet_replay(r) == DUET_OK && on(DUET_GPU, three, &a) == DUET_OK, "%s", duet_error());
        CHECK(duet_stats().streams == before.streams + 2 && duet_stats().graphs > before.graphs, "%d streams, %d graphs",
              (int)(duet_stats().streams - before.streams), (int)(duet_stats().graphs - before.graphs));
        compare(&a, &b, "a replay");
    }
    duet_recording_free(&r);
    free_world(&a), free_world(&b);
    tap_point("recorded, what is streamed stands between graphs");
}

static void test_repeat(void)
{
    world a, b;
    repeat_patience(1);
    new_pair(&a, &b);
    const uint64_t streams_before = streams(), repeats = duet_stats().repeats;
    for (int i = 0; i < 30; i++) {
        fill(&a, &b, X);
        leave(20000);
        CHECK(on(DUET_GPU, three, &b) == DUET_OK, "%s", duet_error());
        leave_all();
        CHECK(on(DUET_CPU, three, &a) == DUET_OK, "%s", duet_error());
        compare(&a, &b, "a turn");
    }
    CHECK(streams() == streams_before + 60, "%d streams", (int)(streams() - streams_before));
    CHECK(duet_stats().repeats > repeats, "nothing was repeated");
    free_world(&a), free_world(&b);
    tap_point("in a loop that is learnt, what is streamed cuts what is held back");
}

/* ---- threads ------------------------------------------------------------------------------------------------------ */

enum { THREADS = 4, TURNS = 6 };
typedef struct worker {
    pthread_t thread;
    world own, same; /* shared weights and bias; a world where there is room */
    const world *shared;
} worker;

static duet_status shared_layer(const world *w, const world *weights)
{
    return duet_set(M(T), duet_tanh(duet_bias_add(duet_matmul(M(X), weights->m[W]), weights->m[BIAS])));
}

static void *work(void *arg)
{
    worker *k = arg;
    for (int i = 0; i < TURNS; i++) {
        DUET_ON(DUET_GPU)
        {
            CHECK(shared_layer(&k->own, k->shared) == DUET_OK, "%s", duet_error());
            CHECK(axpy(&k->own) == DUET_OK, "%s", duet_error());
        }
        DUET_ON(DUET_CPU)
        {
            CHECK(shared_layer(&k->same, k->shared) == DUET_OK, "%s", duet_error());
            CHECK(axpy(&k->same) == DUET_OK, "%s", duet_error());
        }
    }
    return NULL;
}

static void test_threads(void)
{
    worker k[THREADS];
    world shared, unused;
    new_pair(&shared, &unused);
    CHECK(on(DUET_GPU, columns, &shared) == DUET_OK, "%s", duet_error());
    leave(200000);
    const uint64_t before = streams();
    for (int i = 0; i < THREADS; i++) {
        const sizes_of_world s = { 3000, 6, 7, 5, 2 };
        k[i] = (worker){ .own = new_world(&s), .same = new_world(&s), .shared = &shared };
        fill_all(&k[i].own, &k[i].same);
    }
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&k[i].thread, NULL, work, &k[i]), "no thread");
    for (int i = 0; i < THREADS; i++) pthread_join(k[i].thread, NULL);
    CHECK(streams() > before, "nothing was streamed");
    leave_all();
    for (int i = 0; i < THREADS; i++) compare(&k[i].own, &k[i].same, "all turns"), free_world(&k[i].own), free_world(&k[i].same);
    free_world(&shared), free_world(&unused);
    tap_point("several threads stream at once, and share what they read");
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

static void test_words(void)
{
    world a, b;
    new_pair(&a, &b);
    leave(9000);
    DUET_ON(DUET_GPU)
    {
        const duet_expr e = duet_add(duet_mul(0.5, a.m[X]), a.m[Y]);
        const char *text = plan_of(a.m[Y], e);
        CHECK(strstr(text, "streamed in ") && strstr(text, " chunks of ") && strstr(text, " rows"), "%s", text);
        CHECK(duet_drop(e) == DUET_OK, "%s", duet_error());
    }
    leave_all();
    free_world(&a), free_world(&b);
    tap_point("explain says so");
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static void line(costs *c, enum cost which, double start, double each)
{
    for (int i = 0; i < COST_POINTS; i++) c->seconds[which][i] = start + each * cost_infos[which].work[i];
}

/* Seconds a byte of a pass on the CPU; on the device it takes a tenth of what a byte takes to get there. */
#define MOVE_BYTE 1e-10
static void script(double cpu_byte)
{
    costs c[SIDES] = { 0 };
    for (int k = 0; k < COST_up; k++) line(&c[HOST], (enum cost)k, 1e-9, 1e-15), line(&c[DEVICE], (enum cost)k, 1e-9, 1e-15);
    line(&c[HOST], COST_pass, 1e-9, cpu_byte), line(&c[DEVICE], COST_pass, 1e-9, MOVE_BYTE);
    for (int k = COST_up; k < COSTS; k++) line(&c[DEVICE], (enum cost)k, 1e-9, MOVE_BYTE);
    costs_use(c, "made up");
}

typedef enum where { ON_CPU, ON_GPU, STREAMED } where;

static where look(duet_status s)
{
    static duet_counts last;
    const duet_counts c = duet_stats();
    const where w = c.streams > last.streams ? STREAMED : c.launches > last.launches ? ON_GPU : ON_CPU;
    CHECK(s == DUET_OK, "%s", duet_error());
    return last = c, w;
}

static where twice_x(const world *w) { return look(duet_set(M(Z), duet_mul(2, M(X)))); }

static void test_when(void)
{
    world a, b;
    new_pair(&a, &b);
    (void)look(DUET_OK);
    leave(9000);
    script(1e-8);
    CHECK(twice_x(&b) == STREAMED, "slow on the CPU, and not streamed");
    script(1e-11);
    CHECK(twice_x(&b) == ON_CPU, "fast on the CPU, and not there");
    leave_all();
    free_world(&a), free_world(&b);
    tap_point("what does not fit is streamed where that is sooner than the CPU");

    new_pair(&a, &b);
    script(1e-8);
    CHECK(twice_x(&b) == ON_GPU, "it fits, and nobody reads it");
    where w = ON_GPU;
    for (int i = 0; i < 5; i++) {
        CHECK(duet_read(b.m[Z]), "%s", duet_error());
        fill(&a, &b, X);
        w = twice_x(&b);
    }
    free_world(&a), free_world(&b);
    CHECK(w == ON_GPU, "small matrices are not pinned, and stay whole");
    const sizes_of_world large = { 20000, 8, 1, 1, 1 };
    a = new_world(&large), b = new_world(&large);
    fill_all(&a, &b);
    for (int i = 0; i < 5; i++) {
        w = twice_x(&b);
        CHECK(duet_read(b.m[Z]), "%s", duet_error());
        fill(&a, &b, X);
    }
    CHECK(w == STREAMED, "what goes to and fro each time is not streamed: %d", (int)w);
    CHECK(twice_x(&b) == STREAMED && twice_x(&b) == ON_GPU && twice_x(&b) == ON_GPU, "what nobody looks at does not stay");
    CHECK(on(DUET_CPU, copied, &a) == DUET_OK && duet_set(a.m[Z], duet_mul(2, a.m[Z])) == DUET_OK, "%s", duet_error());
    compare(&a, &b, "all that");
    free_world(&a), free_world(&b);
    costs_use(NULL, "as shipped");
    tap_point("what fits is streamed where it comes and goes each time, until nobody looks at it");
}

int main(int argc, char **argv)
{
    const int rounds_n = argc > 1 && *argv[1] != '-' ? atoi(argv[1]) : is_quick(argc, argv) ? 20 : 150;
    dice = rng_new(argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    stream_from(0);
    test_rounds(rounds_n);
    test_others();
    test_record();
    test_repeat();
    test_threads();
    test_words();
    test_when();
    (void)shifted;
    return tap_end();
}
