/* test_nomem.c - every allocation fails once, and on the fake CUDA every call of CUDA and the
 * vendor libraries: the documented status, nothing written, nothing leaked, and the next call
 * succeeds. Each failure happens in a process of its own, in which nothing is cached.
 * -DPRETEND_CUDA: with the fake CUDA. */
#include "failing_alloc.h"
#include "generated.h"
#include "in_thread.h"
#include "modes.h"
#include "tap.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#else
static void fake_fail(uint64_t n) {}
static bool fake_failed(void) { return false; }
#endif

/* ---- the scenario: statements of all kinds over small integers, whose results are exact ---- */

enum { N = 4, MATRICES = 11 };
typedef struct scene {
    duet_place place;
    duet_matrix *x, *y, *z, *b, *s, *view, *image, *filter, *seen, *one, *c;
    duet_status failed; /* the first status that was not OK */
    bool wrong;         /* a value or status was impossible */
} scene;

static bool is_promised(duet_status s)
{
#ifdef FAKE_CUDA
    if (s == DUET_DEVICE_ERROR || s == DUET_NO_DEVICE || s == DUET_UNSUPPORTED || s == DUET_UNKNOWN)
        return true;
#endif
    return s == DUET_NO_MEMORY;
}

static bool failed(scene *w, duet_status s, const char *what)
{
    if (s == DUET_OK) return false;
    if (!is_promised(s) || !*duet_error()) {
        printf("# %s: status %d: %s\n", what, (int)s, duet_error());
        w->wrong = true;
    }
    w->failed = s;
    return true;
}

static bool fill(scene *w, duet_matrix *m, float v)
{
    float *p = m ? duet_overwrite(m) : NULL;
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    if (p) return true;
    failed(w, DUET_NO_MEMORY, "fill");
    return false;
}

static bool holds(scene *w, const duet_matrix *m, float v, const char *what)
{
    const float *p = duet_read(m);
    if (!p) {
        failed(w, DUET_NO_MEMORY, what);
        return false;
    }
    for (int64_t i = 0; i < duet_count(m); i++)
        if (p[i] != v) {
            printf("# %s [%d] is %g, not %g\n", what, (int)i, (double)p[i], (double)v);
            w->wrong = true;
            return false;
        }
    return true;
}

/* One statement: right, or failed as documented with the destination unchanged (or, after a device
 * error, undefined). */
static bool step_to(scene *w, duet_matrix *m, duet_expr e, float before, float want, const char *what)
{
    const duet_status s = duet_set_on(w->place, m, e);
    if (!failed(w, s, what)) return holds(w, m, want, what);
    scene then = *w;
    if (duet_read(m)) holds(&then, m, before, what);
    else if (s == DUET_NO_MEMORY) {
        printf("# %s: unknown after NO_MEMORY: %s\n", what, duet_error());
        then.wrong = true;
    }
    w->wrong |= then.wrong;
    return false;
}
#define STEP(m, e, before, want)                                                                             \
    if (!step_to(w, m, e, before, want, #e)) return

/* Unchanged, or undefined. */
static void kept(scene *w, const duet_matrix *m, float before, const char *what)
{
    scene then = *w;
    if (duet_read(m)) holds(&then, m, before, what);
    w->wrong |= then.wrong;
}

/* Several statements at once, in more than one step. */
static void group(scene *w)
{
    duet_status s = DUET_OK;
    DUET_ON(w->place)
    s = duet_set_all({ w->s, duet_sum(duet_mul(w->x, 8)) }, { w->y, duet_mul(w->y, 2) },
                     { w->z, duet_add(w->y, w->s) });
    if (failed(w, s, "a group")) {
        kept(w, w->s, 4, "s");
        kept(w, w->y, 2, "y");
        kept(w, w->z, 10, "z");
    } else (void)(holds(w, w->s, 32, "s") && holds(w, w->y, 4, "y") && holds(w, w->z, 36, "z"));
}

/* A replay that fails has executed the statements before; if it is a graph, all destinations are
 * undefined. */
static bool replay(scene *w, duet_recording *r, float y, float z)
{
    return !failed(w, duet_replay(r), "a replay") && holds(w, w->y, y, "y, replayed") &&
           holds(w, w->z, z, "z, replayed");
}

static void recording(scene *w)
{
    if (failed(w, duet_record_begin(), "the beginning of a recording")) return;
    const bool good =
        !failed(w, duet_set_on(w->place, w->y, duet_add(w->y, 1)), "y, recorded") &&
        !failed(w, duet_set_on(w->place, w->z, duet_matmul(w->y, duet_mul(w->y, 2))), "z, recorded");
    duet_recording *r = duet_record_end();
    if (good && !r) failed(w, DUET_NO_MEMORY, "the end of a recording");
    if (r && !good) {
        puts("# a recording in which a statement failed");
        w->wrong = true;
    }
    if (r && replay(w, r, 6, 288)) (void)replay(w, r, 7, 392);
    duet_recording_free(&r);
}

static void build(scene *w)
{
    w->x = duet_new(DUET_F32, N, N);
    w->y = duet_new(DUET_F32, N, N);
    w->z = duet_new(DUET_F32, N, N);
    w->b = duet_new(DUET_F32, N);
    w->s = duet_new(DUET_F32);
    w->image = duet_new(DUET_F32, 1, 1, N, N);
    w->filter = duet_new(DUET_F32, 1, 1, 3, 3);
    w->seen = duet_new(DUET_F32, 1, 1, N - 2, N - 2);
    w->one = duet_new(DUET_F32, 1);
    w->c = duet_new(DUET_C64, N, N);
    if (w->z) w->view = duet_transposed(w->z);
    else w->view = NULL;
}

static void statements(scene *w)
{
    duet_matrix *all[] = { w->x, w->y, w->z, w->b, w->s, w->image, w->filter, w->seen, w->one };
    for (int i = 0; i < MATRICES - 2; i++)
        if (!fill(w, all[i], i == 1 ? 2 : 1)) return;
    if (!w->view || !w->c) {
        failed(w, DUET_NO_MEMORY, "a view");
        return;
    }
    duet_matrix *x = w->x, *y = w->y, *z = w->z;
    STEP(z, duet_add(duet_mul(3, x), y), 1, 5);
    STEP(z, duet_add(duet_matmul(x, y), z), 5, 13);
    STEP(z, duet_relu(duet_bias_add(duet_matmul(x, y), w->b)), 13, 9);
    STEP(w->s, duet_norm(x), 1, 4);
    STEP(w->s, duet_add(w->s, duet_sum(duet_cross(w->filter, w->filter))), 4, 4);
    STEP(x, duet_div(x, duet_norm(x)), 1, 0.25);
    STEP(x, duet_mul(duet_exp(duet_sub(x, x)), duet_softmax(y)), 0.25, 0.25);
    STEP(w->view, duet_mul(z, 2), 9, 18);
    STEP(z, duet_matmul(z, duet_matmul(y, z)), 18, 18 * 18 * 2 * N * N);
    STEP(w->seen, duet_conv2d(w->image, w->filter), 1, 9);
    STEP(w->seen,
         duet_max_pool2d(duet_relu(duet_bias_add(duet_conv2d(w->image, w->filter, .pad = { 1, 1 }), w->one)),
                         .window = { 2, 2 }),
         9, 10);
    STEP(z, duet_softmax(duet_bias_add(duet_matmul(x, y), w->b)), 18 * 18 * 2 * N * N, 0.25);
    STEP(z, duet_add(duet_take_along_axis(z, duet_argsort(z, 0), 0), 1), 0.25, 1.25);
    STEP(z, duet_scatter_add(z, duet_argsort(w->b, 0), z, 0), 1.25, 2.5);
    STEP(z, duet_sub(duet_sort(z, 1), 2.25), 2.5, 0.25);
    STEP(z, duet_mul(z, 18 * 18 * 2 * N * N * 4), 0.25, 18 * 18 * 2 * N * N);
    STEP(w->c, duet_complex(y, y), 0, 2); /* both parts of each element are equal */
    STEP(w->c, duet_mul(w->c, duet_prod_axis(duet_div(w->c, duet_complex(2, y)), 0)), 2, 2);
    STEP(w->c, duet_matmul(w->c, duet_cast(y, DUET_C64)), 2, 16);
    STEP(w->c, duet_div(w->c, duet_complex(2, duet_sub(y, y))), 16, 8);
    STEP(w->c,
         duet_complex(duet_add(duet_real(duet_matmul(w->c, w->c)), 32),
                      duet_sum(duet_abs(duet_complex(y, 0)))),
         8, 32);
    STEP(z, duet_imag(duet_add(w->c, duet_sum(w->c))), 18 * 18 * 2 * N * N, 32 * (N * N + 1));
    STEP(z, duet_mul(duet_sub(z, 32 * (N * N + 1) - 1), 18 * 18 * 2 * N * N), 32 * (N * N + 1),
         18 * 18 * 2 * N * N);
    STEP(w->image, duet_max_pool2d_grad(w->image, w->image, .window = { 1, 1 }), 1, 1);
    STEP(w->image, duet_avg_pool2d_grad(w->image, .window = { 1, 1 }), 1, 1);
    STEP(w->s, duet_sum(duet_conv2d_filter_grad(w->image, w->image)), 4, N * N);
    STEP(w->s, duet_sum(duet_conv2d_input_grad(w->image, w->filter)), N * N, N * N * 9);
    STEP(w->s, duet_div(w->s, N * 9), N * N * 9, 4);
    STEP(w->image, duet_max_pool2d(w->image, .window = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1 }), 1, 1);

    const duet_expr shared = duet_add(y, 1), p = duet_mul(shared, 2),
                    q = duet_sub(shared, 2); /* the records of p are not contiguous */
    const bool good = step_to(w, z, p, 18 * 18 * 2 * N * N, 6, "p");
    (void)(duet_drop(p), duet_drop(q), duet_drop(shared));
    if (!good) return;

    const duet_expr held = duet_hold(duet_add(y, z));
    bool right = true;
    for (int i = 0; i < 2 && right; i++) right = step_to(w, z, held, i ? 8 : 6, i ? 10 : 8, "held");
    (void)duet_drop(held);
    if (right) group(w);
    if (!w->failed) recording(w);
}

static void *play(void *arg)
{
    scene *w = arg;
    build(w);
    statements(w);
    duet_matrix **all[] = { &w->x,     &w->y,      &w->z,    &w->b,   &w->s, &w->view,
                            &w->image, &w->filter, &w->seen, &w->one, &w->c };
    for (int i = 0; i < MATRICES; i++) duet_free(all[i]);
    return NULL;
}

static scene run(duet_place place)
{
    scene w = { .place = place };
    run_in_thread(play, &w);
    duet_memory_trim();
    generated_clear();
    return w;
}

/* ---- one failure in each process ---- */

typedef struct outcome {
    /* the failure happened; something violated the documentation; the runs after it were right */
    bool hit, wrong, clean;
    int64_t leaked; /* live blocks at the end */
    size_t used;    /* bytes that the pools still count as used */
} outcome;

enum what { NOTHING, ALLOCATION, CUDA_CALL };

static outcome fail_once(enum what what, int64_t n, duet_place place)
{
    outcome o = { 0 };
    if (what == ALLOCATION) fail_in = n;
    if (what == CUDA_CALL) fake_fail((uint64_t)n + 1);
    const scene first = run(place);
    if (what == ALLOCATION) o.hit = fail_in < 0;
    else o.hit = what == CUDA_CALL && fake_failed();
    fail_in = -1;
    fake_fail(0);
    o.wrong = first.wrong || (first.failed && !o.hit);

    scene then = run(place);
    if (then.failed == DUET_NO_DEVICE)
        then = run(DUET_CPU); /* the failure happened during the search for a GPU: there is none */
    o.clean = !then.failed && !then.wrong;
    if (thread_state_missing) o.leaked = 0;
    else o.leaked = live;
    o.used = duet_memory_of(DUET_CPU).used + duet_memory_of(DUET_GPU).used;
    return o;
}

static outcome in_child(enum what what, int64_t n, duet_place place)
{
    outcome o = { .wrong = true };
    int ends[2];
    if (pipe(ends)) return o;
    fflush(stdout);
    const pid_t child = fork();
    if (!child) {
        const outcome mine = fail_once(what, n, place);
        fflush(stdout);
        _exit(write(ends[1], &mine, sizeof mine) != sizeof mine);
    }
    close(ends[1]);
    if (read(ends[0], &o, sizeof o) != sizeof o) printf("# the child of failure %lld ended\n", (long long)n);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return o;
}

static void each_once(enum what what, duet_place place, int mode, const char *name)
{
    plan_fusion(mode);
    const outcome calm = in_child(NOTHING, 0, place);
    CHECK(!calm.wrong && calm.clean, "without a failed allocation: wrong results %d, clean afterwards %d",
          calm.wrong, calm.clean);
    int64_t n = 0;
    for (const int by = getenv("DUET_TEST_QUICK") ? 7 : 1;; n += by) {
        const outcome o = in_child(what, n, place);
        CHECK(!o.wrong, "failure %lld: a status, an error text or a destination is wrong", (long long)n);
        CHECK(o.clean, "failure %lld: the next run is wrong", (long long)n);
        CHECK(o.leaked <= calm.leaked, "failure %lld: %lld blocks leaked", (long long)n,
              (long long)(o.leaked - calm.leaked));
        CHECK(o.used <= calm.used, "failure %lld: %zu bytes stay in use", (long long)n, o.used - calm.used);
        if (!o.hit || n > 3000) break;
    }
    char text[100];
    CHECK(n > 10, "only %lld allocations could fail", (long long)n);
    snprintf(text, sizeof text, "%s, fusion %s: %lld failed once each", name, mode_names[mode], (long long)n);
    tap_point(text);
}

/* ---- what a pass over the elements caches ---- */

typedef struct unkept {
    int64_t n; /* the allocation that fails */
    bool hit, right;
    duet_status status;
} unkept;

/* A statement for which everything exists except its plan and the cache of its machine. */
static void *new_statement(void *arg)
{
    unkept *u = arg;
    scene w = { .place = DUET_CPU };
    duet_matrix *x = duet_new(DUET_F32, N, N), *y = duet_new(DUET_F32, N, N);
    u->right = fill(&w, x, 2) && fill(&w, y, 1) && !duet_set_on(DUET_CPU, y, duet_add(duet_mul(3, x), y));
    fail_in = u->n;
    u->status = duet_set_on(DUET_CPU, y, duet_mul(x, duet_sub(y, duet_abs(x))));
    u->hit = fail_in < 0;
    fail_in = -1;
    u->right &= holds(&w, y, u->status ? 7 : 10, "y");
    u->right &= !duet_set_on(DUET_CPU, y, duet_mul(x, duet_sub(y, duet_abs(x)))) &&
                holds(&w, y, u->status ? 10 : 16, "y again");
    duet_free(&x);
    duet_free(&y);
    return NULL;
}

static unkept new_statement_failing(int64_t n)
{
    unkept u = { .n = n };
    run_in_thread(new_statement, &u);
    return u;
}

/* The last allocation is that of the machine, which caches the pass. Plans write destinations
 * before their last pass and rely on its success. */
static void passes_unkept(int mode)
{
    char text[100];
    unkept u = { 0 }, last;
    int64_t n = 0;
    plan_fusion(mode);
    do {
        last = u;
        u = new_statement_failing(n++);
        CHECK(u.right, "failure %d: a status, an error text or a destination is wrong", (int)n - 1);
    } while (u.hit);
    CHECK(n > 1 && last.hit && !last.status, "failure %d while a plan is added to the cache: status %d",
          (int)n - 2, (int)last.status);
    snprintf(text, sizeof text, "a pass that cannot be kept, fusion %s", mode_names[mode]);
    tap_point(text);
}

int main(void)
{
    passes_unkept(MODE_MACHINE);
    passes_unkept(MODE_ROWS);
    passes_unkept(MODE_NONE);
    each_once(ALLOCATION, DUET_CPU, MODE_MACHINE, "allocations, on the CPU");
    each_once(ALLOCATION, DUET_CPU, MODE_NONE, "allocations, on the CPU");
#ifdef FAKE_CUDA
    each_once(ALLOCATION, DUET_GPU, MODE_MACHINE, "allocations, on the GPU");
    each_once(CUDA_CALL, DUET_GPU, MODE_MACHINE, "CUDA calls");
    each_once(CUDA_CALL, DUET_GPU, MODE_NONE, "CUDA calls");
#endif
    return tap_end();
}
