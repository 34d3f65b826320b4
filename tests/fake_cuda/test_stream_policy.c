/* test_stream_policy.c - when statements are streamed, on the fake CUDA, and their interplay with
 * recordings, automatic replay and other threads. */
#define _GNU_SOURCE
#include "auto_replay.h"
#include "calibrate.h"
#include "cost.h"
#include "eviction.h"
#include "stream.h"
#include "stream_policy.h"
#include "streams.h"
#include <pthread.h>

/* ---- recorded and repeated ---- */

/* Two statements that are streamed in b, with one between them that is not. */
static duet_status three(const matrix_set *w)
{
    duet_status s = layer(w);
    if (s == DUET_OK) s = duet_set(M(BIAS2), duet_add(M(BIAS2), 1));
    if (s == DUET_OK) s = duet_set(M(ROW), duet_mul(-1, M(ROW)));
    if (s == DUET_OK) return axpy(w);
    return s;
}

static duet_recording *record(const matrix_set *w)
{
    CHECK(duet_record_begin() == DUET_OK && on(DUET_GPU, three, w) == DUET_OK, "%s", duet_error());
    duet_recording *r = duet_record_end();
    CHECK(r, "%s", duet_error());
    return r;
}

static void test_record(void)
{
    matrix_set a, b;
    new_pair(&a, &b);
    CHECK(on(DUET_GPU, layer, &a) == DUET_OK, "%s", duet_error()); /* allocates the workspace of products */
    fill_all(&a, &b);
    leave(20000);
    duet_recording *r = record(&b);
    leave_all();
    CHECK(on(DUET_GPU, three, &a) == DUET_OK, "%s", duet_error());
    compare(&a, &b, "the recording");
    for (int i = 0; i < 6 && r; i++) {
        const duet_counts before = duet_stats();
        fill(&a, &b, X);
        fill(&a, &b, i % 2 ? Y : BIAS);
        CHECK(duet_replay(r) == DUET_OK && on(DUET_GPU, three, &a) == DUET_OK, "%s", duet_error());
        CHECK(duet_stats().streams == before.streams + 2 && duet_stats().graphs > before.graphs,
              "%d streams, %d graphs", (int)(duet_stats().streams - before.streams),
              (int)(duet_stats().graphs - before.graphs));
        compare(&a, &b, "a replay");
    }
    duet_recording_free(&r);
    free_matrix_set(&a);
    free_matrix_set(&b);
    tap_point("a recorded streamed statement runs between two graphs");
}

static void test_repeat(void)
{
    matrix_set a, b;
    auto_replay_set_max_seconds(1);
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
    CHECK(duet_stats().repeats > repeats, "nothing was replayed automatically");
    free_matrix_set(&a);
    free_matrix_set(&b);
    tap_point("a streamed statement ends the sequence of automatic replay");
}

/* ---- threads ------------------------------------------------------------------------------------------- */

enum { THREADS = 4, TURNS = 6 };
typedef struct worker {
    pthread_t thread;
    matrix_set own, same; /* shared weights and bias; a set with enough memory */
    const matrix_set *shared;
} worker;

static duet_status shared_layer(const matrix_set *w, const matrix_set *weights)
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

static void test_threads(const char *name, size_t bytes)
{
    worker k[THREADS];
    matrix_set shared, unused;
    new_pair(&shared, &unused);
    leave(bytes);
    const uint64_t before = streams() + duet_stats().evictions;
    for (int i = 0; i < THREADS; i++) {
        const matrix_set_sizes s = { 3000, 6, 7, 5, 2 };
        k[i] = (worker){ .own = new_matrix_set(&s), .same = new_matrix_set(&s), .shared = &shared };
        fill_all(&k[i].own, &k[i].same);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&k[i].thread, NULL, work, &k[i]), "the thread could not be created");
    for (int i = 0; i < THREADS; i++) pthread_join(k[i].thread, NULL);
    CHECK(streams() + duet_stats().evictions > before, "there was enough memory");
    leave_all();
    for (int i = 0; i < THREADS; i++) {
        compare(&k[i].own, &k[i].same, "all turns");
        free_matrix_set(&k[i].own);
        free_matrix_set(&k[i].same);
    }
    free_matrix_set(&shared);
    free_matrix_set(&unused);
    tap_point(name);
}

/* ---- the choice ---- */

static void line(costs *c, enum cost which, double start, double each)
{
    for (int i = 0; i < COST_POINTS; i++) c->seconds[which][i] = start + each * cost_infos[which].work[i];
}

/* Seconds for each byte of a pass on the CPU and on the device. */
#define MOVE_BYTE 1e-10
static void script_both(double cpu_byte, double gpu_byte)
{
    costs c[COSTED] = { 0 };
    costs_prepare();
    for (int k = 0; k < COST_up; k++) {
        line(&c[HOST], (enum cost)k, 1e-9, 1e-15);
        line(&c[DEFAULT_GPU], (enum cost)k, 1e-9, 1e-15);
    }
    line(&c[HOST], COST_pass, 1e-9, cpu_byte);
    line(&c[DEFAULT_GPU], COST_pass, 1e-9, gpu_byte);
    for (int k = COST_up; k < COSTS; k++) line(&c[DEFAULT_GPU], (enum cost)k, 1e-9, MOVE_BYTE);
    costs_use(c, "made up");
}

static void script(double cpu_byte) { script_both(cpu_byte, MOVE_BYTE); }

typedef enum where { ON_CPU, ON_GPU, STREAMED } where;

static where look(duet_status s)
{
    static duet_counts last;
    const duet_counts c = duet_stats();
    where w = ON_CPU;
    if (c.streams > last.streams) w = STREAMED;
    else if (c.launches > last.launches) w = ON_GPU;
    CHECK(s == DUET_OK, "%s", duet_error());
    last = c;
    return w;
}

static where twice_x(const matrix_set *w) { return look(duet_set(M(Z), duet_mul(2, M(X)))); }

static void test_when(void)
{
    matrix_set a, b;
    new_pair(&a, &b);
    (void)look(DUET_OK);
    leave(9000);
    script(1e-7);
    CHECK(twice_x(&b) == STREAMED, "a statement that is slow on the CPU was not streamed");
    script(1e-11);
    CHECK(twice_x(&b) == ON_CPU, "a statement that is fast on the CPU did not run there");
    leave_all();
    free_matrix_set(&a);
    free_matrix_set(&b);
    tap_point("operands that do not fit are streamed if that is faster than the CPU");

    new_pair(&a, &b);
    script(1e-7);
    CHECK(twice_x(&b) == ON_GPU,
          "a statement that fits, and whose result the host does not read, did not run on the GPU");
    where w = ON_GPU;
    for (int i = 0; i < 5; i++) {
        CHECK(duet_read(b.m[Z]), "%s", duet_error());
        fill(&a, &b, X);
        w = twice_x(&b);
    }
    free_matrix_set(&a);
    free_matrix_set(&b);
    CHECK(w == ON_GPU, "a statement on small matrices was streamed");
    const matrix_set_sizes large = { 100000, 8, 1, 1, 1 };
    a = new_matrix_set(&large);
    b = new_matrix_set(&large);
    fill_all(&a, &b);
    for (int i = 0; i < 5; i++) {
        w = twice_x(&b);
        CHECK(duet_read(b.m[Z]), "%s", duet_error());
        fill(&a, &b, X);
    }
    CHECK(w == STREAMED, "a statement whose matrices are copied each time was not streamed: %d", (int)w);
    CHECK(twice_x(&b) == STREAMED && twice_x(&b) == ON_GPU && twice_x(&b) == ON_GPU,
          "results that the host does not read did not stay on the GPU");
    CHECK(on(DUET_CPU, copied, &a) == DUET_OK && duet_set(a.m[Z], duet_mul(2, a.m[Z])) == DUET_OK, "%s",
          duet_error());
    compare(&a, &b, "all that");
    free_matrix_set(&a);
    free_matrix_set(&b);
    costs_use(NULL, "as shipped");
    tap_point("operands that fit are streamed while the host uses them in between");
}

/* Parts would take longer than the CPU each time. Once transferred, the statement is fastest on the
 * device. */
static void test_once_moved(void)
{
    const matrix_set_sizes large = { 100000, 8, 1, 1, 1 };
    matrix_set a = new_matrix_set(&large), b = new_matrix_set(&large);
    fill_all(&a, &b);
    script(1e-7);
    for (int i = 0; i < 5; i++) {
        (void)twice_x(&b);
        CHECK(duet_read(b.m[Z]), "%s", duet_error());
        fill(&a, &b, X);
    }
    script_both(3e-11, 1e-12);
    CHECK(twice_x(&b) == ON_CPU, "the single statement did not run on the CPU");
    where w = ON_CPU;
    for (int i = 0; i < 40 && w == ON_CPU; i++) w = twice_x(&b);
    CHECK(w == ON_GPU && twice_x(&b) == ON_GPU, "the repeated statement did not move to the GPU: %d", (int)w);
    free_matrix_set(&a);
    free_matrix_set(&b);
    costs_use(NULL, "as shipped");
    tap_point("frequently used operands are copied instead of streamed");
}

/* Parts round as the math mode allows. */
static void test_mode(void)
{
    duet_matrix *x = duet_new(DUET_F32, 20000, 64), *w = duet_new(DUET_F32, 64, 32),
                *y = duet_new(DUET_F32, 20000, 32);
    CHECK(duet_overwrite(x) && duet_overwrite(w), "%s", duet_error());
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    leave(1 << 20);
    DUET_ON(DUET_GPU) DUET_MATH(DUET_MATH_SPLIT)
    {
        duet_expr e = duet_matmul(x, w);
        CHECK(out && duet_explain(out, y, e) == DUET_OK && duet_drop(e) == DUET_OK, "%s", duet_error());
    }
    if (out) fclose(out);
    CHECK(text && strstr(text, "streamed in") && strstr(text, "with emulated f32"), "%s", text);
    leave_all();
    free(text);
    duet_free(&x);
    duet_free(&w);
    duet_free(&y);
    tap_point("parts are computed in the math mode of the statement");
}

int main(void)
{
    gen = rng_new(1);
    stream_from(0);
    stream_staged_from(0);
    evict_matrices(false); /* otherwise nothing is streamed that fits alone */
    test_record();
    test_repeat();
    test_threads("several threads stream at once and share operands", 200000);
    evict_matrices(true);
    test_threads("several threads free buffers of others and share operands", 1000000); /* with workspaces */
    evict_matrices(false);
    test_when();
    test_once_moved();
    test_mode();
    return tap_end();
}
