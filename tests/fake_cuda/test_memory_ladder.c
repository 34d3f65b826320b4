/* test_memory_ladder.c - little memory on the fake CUDA: buffers of other matrices are freed for a
 * statement, and the values stay the same. Loops copy at most 1.2 times the bytes of Belady's schedule,
 * which knows all later uses. */
#include "eviction.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "matrix.h"
#include "tap.h"
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, BYTES = SIDE * SIDE * 4 };

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

static size_t used(void) { return duet_memory_of(DUET_GPU).used; }

/* Limits device memory to what is in use now and `bytes` more. */
static void leave(size_t bytes)
{
    duet_memory_trim();
    ok(duet_memory_limit(DUET_GPU, used() + bytes));
}

static void leave_all(void) { ok(duet_memory_limit(DUET_GPU, 0)); }

static uint64_t copied(void)
{
    const duet_counts c = duet_stats();
    return c.upload_bytes + c.download_bytes;
}

/* ---- loops ---- */

/* What a loop uses: activations, weights, gradients of both, and the wanted result. */
enum {
    LAYERS = 10,
    ACTIVATION = 0,
    WEIGHT = LAYERS + 1,
    DELTA = WEIGHT + LAYERS,
    GRADIENT = DELTA + LAYERS + 1,
    WANTED = GRADIENT + LAYERS,
    MATRICES
};

typedef enum operation { FORWARD, LOSS, WEIGHT_GRADIENT, BACKWARD, UPDATE_WEIGHT } operation;

/* The first is written. */
typedef struct task {
    operation what;
    int n, of[4];
} task;

typedef struct loop {
    const char *name;
    int count;
    task tasks[5 * LAYERS];
} loop;

static void add(loop *l, operation what, int n, int a, int b, int c, int d)
{
    l->tasks[l->count++] = (task){ what, n, { a, b, c, d } };
}

static void add_forward(loop *l)
{
    for (int i = 0; i < LAYERS; i++) add(l, FORWARD, 3, ACTIVATION + i + 1, ACTIVATION + i, WEIGHT + i, 0);
}

static loop forward_loop(void)
{
    loop l = { .name = "forward" };
    add_forward(&l);
    return l;
}

static loop training_loop(void)
{
    loop l = { .name = "training" };
    add_forward(&l);
    add(&l, LOSS, 3, DELTA + LAYERS, ACTIVATION + LAYERS, WANTED, 0);
    for (int i = LAYERS; i-- > 0;) {
        add(&l, WEIGHT_GRADIENT, 3, GRADIENT + i, ACTIVATION + i, DELTA + i + 1, 0);
        if (i) add(&l, BACKWARD, 4, DELTA + i, DELTA + i + 1, WEIGHT + i, ACTIVATION + i);
        add(&l, UPDATE_WEIGHT, 2, WEIGHT + i, GRADIENT + i, 0, 0);
    }
    return l;
}

static duet_status run_task(const task *t, duet_matrix **m)
{
    duet_matrix *to = m[t->of[0]], *a = m[t->of[1]], *b = m[t->of[2]], *c = m[t->of[3]];
    switch (t->what) {
    case FORWARD: return duet_set(to, duet_relu(duet_matmul(a, b)));
    case LOSS: return duet_set(to, duet_sub(a, b));
    case WEIGHT_GRADIENT: return duet_set(to, duet_matmul(duet_transpose(a), b));
    case BACKWARD: return duet_set(to, duet_where(duet_greater(c, 0), duet_matmul(a, duet_transpose(b)), 0));
    default: return duet_set(to, duet_sub(to, duet_mul(0.01, a)));
    }
}

static bool uses(const loop *l, int matrix)
{
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < l->tasks[i].n; k++)
            if (l->tasks[i].of[k] == matrix) return true;
    return false;
}

static int matrices_of(const loop *l)
{
    int n = 0;
    for (int i = 0; i < MATRICES; i++) n += uses(l, i);
    return n;
}

static duet_matrix *filled(int seed)
{
    uint32_t x = (uint32_t)seed * 2654435761u + 1;
    duet_matrix *m = duet_new(DUET_F32, SIDE, SIDE);
    float *p = duet_overwrite_f32(m);
    for (int i = 0; i < SIDE * SIDE; i++)
        p[i] = (float)((x = x * 1664525 + 1013904223) >> 8) * 0x1p-26f - 0.125f;
    return m;
}

static void fill_all(const loop *l, duet_matrix *m[MATRICES])
{
    for (int i = 0; i < MATRICES; i++) m[i] = uses(l, i) ? filled(i) : NULL;
}

static void free_all(duet_matrix *m[MATRICES])
{
    for (int i = 0; i < MATRICES; i++) duet_free(&m[i]);
}

static void run_loop(const loop *l, duet_matrix **m, int times)
{
    DUET_ON(DUET_GPU)
    for (int k = 0; k < times; k++)
        for (int i = 0; i < l->count; i++) ok(run_task(&l->tasks[i], m));
}

/* ---- Belady's schedule ---- */

enum { TIMES = 25, WARM = 5 }; /* runs of a loop; those before the bytes are counted */

typedef struct schedule {
    const loop *l;
    bool on_gpu[MATRICES], on_host[MATRICES];
    int present;
    bool costs; /* weigh the distance by the copies, instead of the distance alone */
} schedule;

static bool task_uses(const task *t, int matrix)
{
    for (int k = 0; k < t->n; k++)
        if (t->of[k] == matrix) return true;
    return false;
}

static bool task_overwrites(const task *t, int matrix)
{
    return t->of[0] == matrix && t->what != UPDATE_WEIGHT;
}

/* The number of tasks until the next use, and whether that use reads. */
static int next_use_of(const schedule *s, int now, int matrix, bool *reads)
{
    for (int i = now + 1; i < s->l->count * TIMES; i++) {
        const task *t = &s->l->tasks[i % s->l->count];
        if (!task_uses(t, matrix)) continue;
        *reads = !task_overwrites(t, matrix);
        return i - now;
    }
    *reads = false;
    return s->l->count * TIMES;
}

static double priority(const schedule *s, int now, int matrix)
{
    bool reads;
    const int distance = next_use_of(s, now, matrix, &reads), copies = !s->on_host[matrix] + reads;
    return s->costs ? distance / (copies + 1e-9) : distance - 0.1 * copies;
}

/* Returns the matrices that are copied. */
static int free_one(schedule *s, int now)
{
    const task *t = &s->l->tasks[now % s->l->count];
    int best = -1;
    for (int i = 0; i < MATRICES; i++)
        if (s->on_gpu[i] && !task_uses(t, i) && (best < 0 || priority(s, now, i) > priority(s, now, best)))
            best = i;
    const int copies = !s->on_host[best];
    s->on_gpu[best] = false;
    s->on_host[best] = true;
    s->present--;
    return copies;
}

static int run_in_schedule(schedule *s, int now, int capacity)
{
    const task *t = &s->l->tasks[now % s->l->count];
    int copies = 0;
    for (int k = 0; k < t->n; k++) {
        if (s->on_gpu[t->of[k]]) continue;
        while (s->present == capacity) copies += free_one(s, now);
        s->on_gpu[t->of[k]] = true;
        s->present++;
        copies += !task_overwrites(t, t->of[k]);
    }
    s->on_host[t->of[0]] = false;
    return copies;
}

static uint64_t bytes_of_schedule(const loop *l, int capacity, bool costs, int from)
{
    schedule s = { .l = l, .costs = costs };
    uint64_t copies = 0;
    memset(s.on_host, true, sizeof s.on_host);
    for (int i = 0; i < l->count * TIMES; i++) {
        const int more = run_in_schedule(&s, i, capacity);
        if (i >= l->count * from) copies += (uint64_t)more;
    }
    return copies * BYTES;
}

/* The better one of two schedules. */
static uint64_t belady(const loop *l, int capacity, int from)
{
    const uint64_t a = bytes_of_schedule(l, capacity, false, from),
                   b = bytes_of_schedule(l, capacity, true, from);
    return a < b ? a : b;
}

/* ---- loops with too little memory ---- */

static void compare(const loop *l, float **want, duet_matrix **m, double factor)
{
    for (int i = 0; i < MATRICES; i++) {
        if (!m[i]) continue;
        const float *x = duet_read_f32(m[i]);
        CHECK(x && !memcmp(x, want[i], BYTES), "%s, %g times the memory: matrix %d differs", l->name, factor,
              i);
    }
}

/* want: the elements after the loop without a limit. */
static void with_limit(const loop *l, float **want, double factor)
{
    duet_matrix *m[MATRICES];
    int capacity = (int)(matrices_of(l) / factor);
    if (capacity < 4) capacity = 4;
    fill_all(l, m);
    leave((size_t)capacity * BYTES);
    const duet_counts before = duet_stats();
    const uint64_t start = copied();
    run_loop(l, m, WARM);
    const uint64_t warm = copied();
    run_loop(l, m, TIMES - WARM);
    const uint64_t end = copied(), least = belady(l, capacity, WARM), least_all = belady(l, capacity, 0);
    const duet_counts after = duet_stats();
    CHECK(after.temporaries == before.temporaries && after.streams == before.streams,
          "%s: %d temporaries, %d streamed statements", l->name,
          (int)(after.temporaries - before.temporaries), (int)(after.streams - before.streams));
    CHECK(after.evictions > before.evictions, "%s, %g times the memory: no buffer was freed", l->name,
          factor);
    CHECK((double)(end - warm) <= 1.2 * (double)least, "%s, %g times the memory: %.2f times the least bytes",
          l->name, factor, (double)(end - warm) / (double)least);
    printf("# %s, %g times the memory: %.3f times the bytes of Belady's schedule, %.3f with the first runs\n",
           l->name, factor, (double)(end - warm) / (double)least, (double)(end - start) / (double)least_all);
    leave_all();
    compare(l, want, m, factor);
    free_all(m);
}

static void test_loop(loop l)
{
    duet_matrix *m[MATRICES];
    float *want[MATRICES] = { NULL };
    fill_all(&l, m);
    run_loop(&l, m, TIMES);
    for (int i = 0; i < MATRICES; i++)
        if (m[i]) want[i] = memcpy(malloc(BYTES), duet_read_f32(m[i]), BYTES);
    free_all(m);
    const double factors[] = { 1.5, 2, 4, 8 };
    for (int i = 0; i < 4; i++) with_limit(&l, want, factors[i]);
    for (int i = 0; i < MATRICES; i++) free(want[i]);
}

static void test_loops(void)
{
    test_loop(forward_loop());
    tap_point("forward passes with too little memory");
    test_loop(training_loop());
    tap_point("training with too little memory");
}

int main(void)
{
    test_loops();
    return tap_end();
}
