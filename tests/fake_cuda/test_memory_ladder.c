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
    int batch; /* rows of activations and their gradients */
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

static loop forward_loop(int batch)
{
    loop l = { .name = "forward", .batch = batch };
    add_forward(&l);
    return l;
}

static loop training_loop(int batch)
{
    loop l = { .name = "training", .batch = batch };
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

static int rows_of(const loop *l, int matrix)
{
    const bool is_weight = (matrix >= WEIGHT && matrix < DELTA) || (matrix >= GRADIENT && matrix < WANTED);
    return is_weight ? SIDE : l->batch;
}

static int bytes_of(const loop *l, int matrix) { return rows_of(l, matrix) * SIDE * 4; }

static int all_bytes(const loop *l)
{
    int sum = 0;
    for (int i = 0; i < MATRICES; i++)
        if (uses(l, i)) sum += bytes_of(l, i);
    return sum;
}

/* Of the task that needs most. */
static int most_bytes(const loop *l)
{
    int most = 0;
    for (int i = 0; i < l->count; i++) {
        int sum = 0;
        for (int k = 0; k < l->tasks[i].n; k++) sum += bytes_of(l, l->tasks[i].of[k]);
        if (sum > most) most = sum;
    }
    return most;
}

static duet_matrix *filled_rows(int seed, int rows)
{
    uint32_t x = (uint32_t)seed * 2654435761u + 1;
    duet_matrix *m = duet_new(DUET_F32, rows, SIDE);
    float *p = duet_overwrite_f32(m);
    for (int i = 0; i < rows * SIDE; i++)
        p[i] = (float)((x = x * 1664525 + 1013904223) >> 8) * 0x1p-26f - 0.125f;
    return m;
}

static duet_matrix *filled(int seed) { return filled_rows(seed, SIDE); }

static void fill_all(const loop *l, duet_matrix *m[MATRICES])
{
    for (int i = 0; i < MATRICES; i++) m[i] = uses(l, i) ? filled_rows(i, rows_of(l, i)) : NULL;
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
    int present; /* bytes */
    bool costs;  /* weigh the distance by the copies, instead of the distance alone */
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

/* Returns the bytes that are copied. */
static int free_one(schedule *s, int now)
{
    const task *t = &s->l->tasks[now % s->l->count];
    int best = -1;
    for (int i = 0; i < MATRICES; i++)
        if (s->on_gpu[i] && !task_uses(t, i) && (best < 0 || priority(s, now, i) > priority(s, now, best)))
            best = i;
    const int bytes = bytes_of(s->l, best), copied_bytes = s->on_host[best] ? 0 : bytes;
    s->on_gpu[best] = false;
    s->on_host[best] = true;
    s->present -= bytes;
    return copied_bytes;
}

static int run_in_schedule(schedule *s, int now, int capacity)
{
    const task *t = &s->l->tasks[now % s->l->count];
    int sum = 0;
    for (int k = 0; k < t->n; k++) {
        const int bytes = bytes_of(s->l, t->of[k]);
        if (s->on_gpu[t->of[k]]) continue;
        while (s->present + bytes > capacity) sum += free_one(s, now);
        s->on_gpu[t->of[k]] = true;
        s->present += bytes;
        if (!task_overwrites(t, t->of[k])) sum += bytes;
    }
    s->on_host[t->of[0]] = false;
    return sum;
}

static uint64_t bytes_of_schedule(const loop *l, int capacity, bool costs, int from)
{
    schedule s = { .l = l, .costs = costs };
    uint64_t sum = 0;
    memset(s.on_host, true, sizeof s.on_host);
    for (int i = 0; i < l->count * TIMES; i++) {
        const int more = run_in_schedule(&s, i, capacity);
        if (i >= l->count * from) sum += (uint64_t)more;
    }
    return sum;
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
        CHECK(x && !memcmp(x, want[i], (size_t)bytes_of(l, i)), "%s, %g times the memory: matrix %d differs",
              l->name, factor, i);
    }
}

/* want: the elements after the loop without a limit. */
static void with_limit(const loop *l, float **want, double factor)
{
    duet_matrix *m[MATRICES];
    int capacity = (int)(all_bytes(l) / factor) / 4096 * 4096;
    if (capacity < most_bytes(l)) capacity = most_bytes(l);
    fill_all(l, m);
    leave((size_t)capacity);
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
    printf("# %s, batch %d, %g times the memory: %.3f times the bytes of Belady's schedule, %.3f with the "
           "first runs\n",
           l->name, l->batch, factor, (double)(end - warm) / (double)least,
           (double)(end - start) / (double)least_all);
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
        if (m[i]) want[i] = memcpy(malloc(BYTES), duet_read_f32(m[i]), (size_t)bytes_of(&l, i));
    free_all(m);
    const double factors[] = { 1.5, 2, 4, 8 };
    for (int i = 0; i < 4; i++) with_limit(&l, want, factors[i]);
    for (int i = 0; i < MATRICES; i++) free(want[i]);
}

static void test_loops(void)
{
    test_loop(forward_loop(SIDE));
    test_loop(forward_loop(SIDE / 4));
    tap_point("forward passes with too little memory");
    test_loop(training_loop(SIDE));
    test_loop(training_loop(SIDE / 4));
    tap_point("training with too little memory");
}

/* Activations that are created anew each time. The input and the weights are read in a circle: of n matrices
 * of which c fit, Belady's schedule copies (n - c) n / (n - 1) each time. */
static void test_created(void)
{
    enum { FIT = 8, COUNT_OF = LAYERS + 1 };
    duet_matrix *w[LAYERS], *x = filled(0);
    for (int i = 0; i < LAYERS; i++) w[i] = filled(i + 1);
    leave((FIT + 2) * BYTES);
    duet_counts before = duet_stats();
    DUET_ON(DUET_GPU)
    for (int k = 0; k < TIMES; k++) {
        if (k == WARM) before = duet_stats();
        duet_matrix *h = x;
        for (int i = 0; i < LAYERS; i++) {
            duet_matrix *next = duet_eval(duet_relu(duet_matmul(h, w[i])));
            CHECK(next != NULL, "%s", duet_error());
            if (h != x) duet_free(&h);
            h = next;
        }
        duet_free(&h);
    }
    const duet_counts after = duet_stats();
    const double least = (TIMES - WARM) * (double)(COUNT_OF - FIT) * COUNT_OF / (COUNT_OF - 1),
                 made = (double)(after.uploads + after.downloads - before.uploads - before.downloads);
    CHECK(made > 0 && made <= 1.2 * least, "%g copies, at least %g", made, least);
    printf("# activations that are created anew: %.3f times the copies of Belady's schedule\n", made / least);
    leave_all();
    duet_free(&x);
    for (int i = 0; i < LAYERS; i++) duet_free(&w[i]);
    tap_point("matrices that are created anew each time");
}

/* ---- single rungs ---- */

/* Starts on the GPU with the first `count` matrices; the host has them too. */
static void new_on_gpu(duet_matrix **m, int count)
{
    for (int i = 0; i < count; i++) {
        m[i] = duet_full(DUET_F32, (double)(i + 1), SIDE, SIDE);
        CHECK(m[i] && duet_read(m[i]), "%s", duet_error());
    }
}

/* Reads it on the GPU, without changing it. */
static void touch(duet_matrix *m, duet_matrix *to) { ok(duet_set_on(DUET_GPU, to, duet_add(m, 0))); }

static bool is_on_gpu(const duet_matrix *m) { return storage_has_buffer(m->storage, DEFAULT_GPU); }

static bool holds(const duet_matrix *m, float x)
{
    const float *p = duet_read_f32(m);
    for (int i = 0; p && i < SIDE * SIDE; i++)
        if (p[i] != x) return CHECK(false, "an element is %g, not %g", (double)p[i], (double)x);
    return CHECK(p != NULL, "%s", duet_error());
}

static void free_list(duet_matrix **m, int count)
{
    for (int i = 0; i < count; i++) duet_free(&m[i]);
}

/* Cached blocks are used first, then buffers that the host has too, in the order of their use. */
static void test_clean(void)
{
    duet_matrix *m[5];
    new_on_gpu(m, 5);
    leave(4 * BYTES);
    touch(m[0], m[4]);
    touch(m[1], m[4]);
    duet_matrix *gone = duet_new(DUET_F32, SIDE, SIDE);
    ok(duet_set_on(DUET_GPU, gone, 1));
    duet_free(&gone);
    const duet_counts before = duet_stats();
    touch(m[2], m[4]);
    CHECK(duet_stats().evictions == before.evictions, "a cached block was not used");
    touch(m[3], m[4]);
    const duet_counts after = duet_stats();
    CHECK(after.evictions == before.evictions + 1 && after.evicted_bytes == before.evicted_bytes + BYTES,
          "%d buffers were freed", (int)(after.evictions - before.evictions));
    CHECK(after.downloads == before.downloads, "a matrix that the host has was copied");
    CHECK(!is_on_gpu(m[0]) && is_on_gpu(m[1]) && is_on_gpu(m[2]), "not the one used first was freed");
    leave_all();
    for (int i = 0; i < 4; i++) holds(m[i], (float)(i + 1));
    free_list(m, 5);
    tap_point("cached blocks, then buffers that the host has too");
}

/* Of matrices that only the GPU has, the least recently used one is copied. */
static void test_spilled(void)
{
    duet_matrix *m[4];
    for (int i = 0; i < 4; i++) m[i] = duet_new(DUET_F32, SIDE, SIDE);
    leave(3 * BYTES);
    for (int i = 0; i < 3; i++) ok(duet_set_on(DUET_GPU, m[i], (double)i));
    ok(duet_set_on(DUET_GPU, m[0], duet_add(m[0], 10)));
    const duet_counts before = duet_stats();
    ok(duet_set_on(DUET_GPU, m[3], 3));
    const duet_counts after = duet_stats();
    CHECK(after.evictions == before.evictions + 1 && after.downloads == before.downloads + 1, "%d, %d",
          (int)(after.evictions - before.evictions), (int)(after.downloads - before.downloads));
    CHECK(!is_on_gpu(m[1]) && is_on_gpu(m[0]) && is_on_gpu(m[2]),
          "not the least recently used one was freed");
    leave_all();
    holds(m[0], 10);
    holds(m[1], 1);
    holds(m[2], 2);
    holds(m[3], 3);
    free_list(m, 4);
    tap_point("matrices that only the GPU has are copied, the least recently used first");
}

/* Freeing a buffer is no error: those of before stay. */
static void test_error_text(void)
{
    duet_matrix *m[3];
    char text[1024];
    for (int i = 0; i < 3; i++) m[i] = duet_new(DUET_F32, SIDE, SIDE);
    leave(2 * BYTES);
    CHECK(duet_set(m[0], duet_matmul(m[0], 1)) == DUET_BAD_SHAPE, "%s", duet_error());
    snprintf(text, sizeof text, "%s", duet_error());
    const uint64_t before = duet_stats().evictions;
    for (int i = 0; i < 3; i++) ok(duet_set_on(DUET_GPU, m[i], (double)i));
    CHECK(duet_stats().evictions == before + 1, "%d buffers were freed",
          (int)(duet_stats().evictions - before));
    CHECK(duet_error_status() == DUET_BAD_SHAPE && !strcmp(duet_error(), text), "status %d: %s",
          (int)duet_error_status(), duet_error());
    leave_all();
    free_list(m, 3);
    tap_point("the error text stays when a buffer is freed");
}

/* A buffer whose elements the host has overwritten costs nothing. */
static void test_stale(void)
{
    duet_matrix *m[4];
    new_on_gpu(m, 4);
    leave(3 * BYTES);
    touch(m[0], m[2]);
    touch(m[1], m[2]);
    float *p = duet_overwrite_f32(m[1]);
    for (int i = 0; i < SIDE * SIDE; i++) p[i] = 7;
    const duet_counts before = duet_stats();
    touch(m[3], m[2]);
    CHECK(!is_on_gpu(m[1]) && is_on_gpu(m[0]) && duet_stats().downloads == before.downloads,
          "not the stale buffer was freed");
    leave_all();
    holds(m[1], 7);
    free_list(m, 4);
    tap_point("stale buffers come first");
}

/* The operands of a statement are not freed for each other. */
static void test_operands(void)
{
    duet_matrix *m[8];
    new_on_gpu(m, 8);
    leave(4 * BYTES);
    for (int i = 0; i < 4; i++) ok(duet_set_on(DUET_GPU, m[i], duet_mul(m[i], 2)));
    ok(duet_set_on(DUET_GPU, m[4], duet_add(duet_mul(m[5], m[6]), m[7])));
    holds(m[4], 6 * 7 + 8);
    ok(duet_set_on(DUET_GPU, m[0], duet_add(duet_mul(m[1], m[2]), m[3])));
    holds(m[0], 4 * 6 + 8);
    const duet_status st = duet_set_on(DUET_GPU, m[0], duet_add(duet_mul(m[1], m[2]), duet_mul(m[3], m[4])));
    CHECK(st == DUET_NO_MEMORY &&
              strstr(duet_error(), "; the largest matrices on the GPU: f32[64,64] created at " __FILE__),
          "status %d: %s", (int)st, duet_error());
    holds(m[0], 4 * 6 + 8);
    ok(duet_set(m[0], duet_add(duet_mul(m[1], m[2]), duet_mul(m[3], m[4]))));
    holds(m[0], 4 * 6 + 8 * 50);
    leave_all();
    free_list(m, 8);
    tap_point("operands of the statement stay; what does not fit runs on the CPU or fails");
}

/* A pointer to GPU memory is valid until a statement uses its matrix. */
static void test_pointers(void)
{
    duet_matrix *m[5];
    new_on_gpu(m, 5);
    leave(3 * BYTES);
    const void *p = duet_device_read(m[0]);
    for (int k = 0; k < 3; k++)
        for (int i = 1; i < 4; i++) touch(m[i], m[4]);
    const uint64_t before = copied();
    CHECK(is_on_gpu(m[0]) && duet_device_read(m[0]) == p && copied() == before, "the buffer was freed");
    touch(m[0], m[4]);
    touch(m[1], m[4]);
    touch(m[2], m[4]);
    CHECK(!is_on_gpu(m[0]), "the buffer is kept although a statement has used its matrix");
    leave_all();
    free_list(m, 5);
    tap_point("buffers of which the user has a pointer are not freed");
}

static void test_forbidden(void)
{
    duet_matrix *m[3] = { duet_new(DUET_F32, SIDE, SIDE), duet_new(DUET_F32, SIDE, SIDE),
                          duet_new(DUET_F32, SIDE, SIDE) };
    leave(2 * BYTES);
    ok(duet_set_on(DUET_GPU, m[0], 1));
    ok(duet_set_on(DUET_GPU, m[1], 2));
    const uint64_t before = copied();
    DUET_FORBID_TRANSFERS
    CHECK(duet_set_on(DUET_GPU, m[2], 3) == DUET_NO_MEMORY && copied() == before, "%s", duet_error());
    ok(duet_set_on(DUET_GPU, m[2], 3));
    leave_all();
    for (int i = 0; i < 3; i++) holds(m[i], (float)(i + 1));
    free_list(m, 3);
    tap_point("where copies are forbidden, nothing is freed");
}

/* What is larger than all memory runs in parts, after other matrices have left. */
static void test_streamed(void)
{
    enum { MANY = 1 << 20 };
    duet_matrix *big = duet_full(DUET_F32, 3, MANY), *to = duet_new(DUET_F32, MANY), *m[4];
    CHECK(duet_read(big) != NULL, "%s", duet_error());
    for (int i = 0; i < 4; i++) m[i] = duet_new(DUET_F32, MANY / 8);
    leave(4 * MANY / 2);
    for (int i = 0; i < 4; i++) ok(duet_set_on(DUET_GPU, m[i], (double)i));
    const duet_counts before = duet_stats();
    ok(duet_set_on(DUET_GPU, to, duet_mul(big, 2)));
    const duet_counts after = duet_stats();
    CHECK(after.streams == before.streams + 1 && after.evictions > before.evictions,
          "%d streams, %d evictions", (int)(after.streams - before.streams),
          (int)(after.evictions - before.evictions));
    const float *p = duet_read_f32(to);
    for (int i = 0; p && i < MANY; i += 1001) CHECK(p[i] == 6, "element %d is %g", i, (double)p[i]);
    leave_all();
    for (int i = 0; i < 4; i++) CHECK(duet_read_f32(m[i])[5] == (float)i, "matrix %d is wrong", i);
    duet_free(&big, &to);
    free_list(m, 4);
    tap_point("what does not fit in an empty GPU runs in parts");
}

/* The memory of the device is exhausted, and no limit is set. */
static void test_exhausted(void)
{
    duet_matrix *m[6];
    for (int i = 0; i < 6; i++) m[i] = duet_new(DUET_F32, SIDE, SIDE);
    duet_memory_trim();
    fake_memory(fake_count().memory + 3 * BYTES);
    const duet_counts before = duet_stats();
    for (int i = 0; i < 6; i++) ok(duet_set_on(DUET_GPU, m[i], (double)i));
    for (int i = 0; i < 5; i++) ok(duet_set_on(DUET_GPU, m[i], duet_add(m[i], m[5])));
    CHECK(duet_stats().evictions > before.evictions + 4, "%d buffers were freed",
          (int)(duet_stats().evictions - before.evictions));
    fake_memory((size_t)1 << 30);
    for (int i = 0; i < 6; i++) holds(m[i], (float)(i < 5 ? i + 5 : i));
    leave_all();
    free_list(m, 6);
    tap_point("a device whose memory is exhausted");
}

/* A view keeps the storage, and its elements move with it. Zeros that nothing has written stay zeros. */
static void test_views(void)
{
    duet_matrix *m[4], *zeros = duet_new(DUET_F32, SIDE, SIDE);
    for (int i = 0; i < 4; i++) m[i] = duet_new(DUET_F32, SIDE, SIDE);
    leave(3 * BYTES);
    duet_matrix *row = duet_row(m[0], 2), *turned = duet_transposed(m[1]);
    touch(zeros, m[2]);
    ok(duet_set_on(DUET_GPU, m[0], 1));
    ok(duet_set_on(DUET_GPU, row, 5));
    ok(duet_set_on(DUET_GPU, turned, 2));
    ok(duet_set_on(DUET_GPU, m[2], 3));
    ok(duet_set_on(DUET_GPU, m[3], duet_add(m[2], turned)));
    ok(duet_set_on(DUET_GPU, row, duet_add(row, 1)));
    leave_all();
    const float *p = duet_read_f32(m[0]);
    CHECK(p && p[0] == 1 && p[2 * SIDE] == 6 && p[3 * SIDE] == 1, "%s", duet_error());
    holds(m[1], 2);
    holds(m[3], 5);
    holds(zeros, 0);
    duet_free(&row, &turned, &zeros);
    free_list(m, 4);
    tap_point("views, and zeros that nothing has written");
}

/* ---- recordings, automatic replay, lists ---- */

static void run_statement(duet_matrix **m, int i)
{
    switch (i) {
    case 0:
        return ok(duet_set_all({ m[1], duet_add(m[0], 1) }, { m[2], duet_sum_keep(m[1], 0) },
                               { m[1], duet_mul(m[1], 2) }));
    case 1: return ok(duet_set(m[3], duet_add(m[4], m[5])));
    case 2: return ok(duet_set(m[0], duet_sub(m[3], m[1])));
    default: return ok(duet_set(m[4], duet_add(m[4], 1)));
    }
}

static void run_list(duet_matrix **m)
{
    for (int i = 0; i < 4; i++) run_statement(m, i);
}

static void new_six(duet_matrix **m)
{
    for (int i = 0; i < 6; i++) m[i] = i == 2 ? duet_new(DUET_F32, 1, SIDE) : filled(i);
}

static void repeat(duet_matrix **m, duet_recording *r, int times)
{
    for (int k = 0; k < times; k++)
        if (r) ok(duet_replay(r));
        else run_list(m);
}

static void compare_six(duet_matrix **a, duet_matrix **b, const char *what)
{
    for (int i = 0; i < 6; i++) {
        const float *x = duet_read_f32(a[i]), *y = duet_read_f32(b[i]);
        CHECK(x && y && !memcmp(x, y, (size_t)duet_count(a[i]) * 4), "%s: matrix %d differs", what, i);
    }
}

/* The recording was made with enough memory, or with too little. */
static void test_recorded(void)
{
    for (int early = 0; early < 3; early++) {
        duet_matrix *a[6], *b[6];
        duet_recording *r = NULL;
        new_six(a);
        new_six(b);
        DUET_ON(DUET_GPU)
        {
            repeat(b, NULL, 1);
            if (early == 2) leave_all();
            for (int i = 0; i < 6; i++) CHECK(duet_update(b[i]) != NULL, "%s", duet_error());
            if (early != 1) leave(3 * BYTES + 4096);
            if (early < 2) {
                ok(duet_record_begin());
                run_list(b);
                r = duet_record_end();
                CHECK(r != NULL, "%s", duet_error());
            } else {
                run_list(b);
            }
            if (early == 1) {
                repeat(b, r, 3);
                leave(0);
                for (int i = 0; i < 6; i++) CHECK(duet_update(b[i]) != NULL, "%s", duet_error());
                leave(3 * BYTES + 4096);
            }
            repeat(b, r, early == 1 ? 7 : 10);
            leave_all();
            repeat(b, r, 5);
            repeat(a, NULL, 17);
        }
        compare_six(a, b, early == 2 ? "repeated" : early ? "recorded before" : "recorded");
        duet_recording_free(&r);
        free_list(a, 6);
        free_list(b, 6);
    }
    tap_point("recordings and automatic replay with too little memory");
}

/* Statements are launched as a graph until memory becomes scarce, also in the middle of those that are
 * deferred. */
static void test_graphs_end(void)
{
    duet_matrix *a[6], *b[6], *more[3];
    new_six(a);
    new_six(b);
    for (int i = 0; i < 3; i++) more[i] = filled(50 + i);
    DUET_ON(DUET_GPU)
    {
        const uint64_t before = duet_stats().graphs;
        repeat(b, NULL, 30);
        CHECK(duet_stats().graphs > before, "no graph was launched");
        ok(duet_memory_limit(DUET_GPU, used() + BYTES));
        const uint64_t freed = duet_stats().evictions;
        for (int k = 0; k < 8; k++) {
            for (int i = 0; i < 4; i++) {
                run_statement(b, i);
                if (k == 2 * i) ok(duet_set(more[0], duet_add(more[1], more[2])));
            }
            repeat(b, NULL, 1);
        }
        CHECK(duet_stats().evictions > freed, "no buffer was freed");
        leave_all();
        repeat(b, NULL, 30);
        repeat(a, NULL, 76);
    }
    compare_six(a, b, "after graphs");
    free_list(a, 6);
    free_list(b, 6);
    free_list(more, 3);
    tap_point("graphs end when memory becomes scarce");
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 12, OWN = 5, SHARED = 4 };

typedef struct worker {
    pthread_t thread;
    duet_matrix *m[OWN];
    duet_matrix *const *weights;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    DUET_ON(DUET_GPU)
    for (int k = 0; k < TURNS; k++) {
        for (int i = 1; i < OWN; i++)
            ok(duet_set(w->m[i], duet_relu(duet_matmul(w->m[i - 1], w->weights[i - 1]))));
        ok(duet_set(w->m[0], duet_add(w->m[0], duet_mul(0.125, w->m[OWN - 1]))));
    }
    return NULL;
}

static void new_worker(worker *w, int n, duet_matrix *const *weights)
{
    w->weights = weights;
    for (int i = 0; i < OWN; i++) w->m[i] = filled(100 * n + i);
}

static void run_workers(worker *w)
{
    for (int n = 0; n < THREADS; n++)
        CHECK(!pthread_create(&w[n].thread, NULL, work, &w[n]), "the thread could not be created");
    for (int n = 0; n < THREADS; n++) pthread_join(w[n].thread, NULL);
}

/* All threads use the same weights. There is memory for two statements at once, or no limit: then the queues
 * of the threads get their workspaces. */
static void test_threads(bool is_limited)
{
    duet_matrix *weights[SHARED];
    worker w[THREADS], alone;
    for (int i = 0; i < SHARED; i++) weights[i] = filled(1000 + i);
    for (int n = 0; n < THREADS; n++) new_worker(&w[n], n, weights);
    if (is_limited) leave(7 * BYTES);
    const uint64_t before = duet_stats().evictions;
    run_workers(w);
    CHECK((duet_stats().evictions > before) == is_limited, "buffers were freed, or none was");
    leave_all();
    for (int n = 0; n < THREADS; n++) {
        new_worker(&alone, n, weights);
        work(&alone);
        for (int i = 0; i < OWN; i++) {
            const float *x = duet_read_f32(alone.m[i]), *y = duet_read_f32(w[n].m[i]);
            CHECK(x && y && !memcmp(x, y, BYTES), "thread %d: matrix %d differs", n, i);
        }
        free_list(alone.m, OWN);
        free_list(w[n].m, OWN);
    }
    free_list(weights, SHARED);
    tap_point(is_limited ? "threads that share matrices, with too little memory"
                         : "threads with enough memory");
}

int main(void)
{
    test_clean();
    test_spilled();
    test_error_text();
    test_stale();
    test_operands();
    test_pointers();
    test_forbidden();
    test_streamed();
    test_exhausted();
    test_views();
    test_recorded();
    test_graphs_end();
    test_loops();
    test_created();
    for (int i = 0; i < 5; i++) test_threads(i > 0);
    return tap_end();
}
