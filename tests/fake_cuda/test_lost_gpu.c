/* test_lost_gpu.c - GPUs that are lost, and duet_recover, on the fake CUDA. A scenario over the library is
 * played once for each of its calls of CUDA: at that call the card is lost, or a kernel goes wrong, which
 * the next call that waits finds. No value may be wrong, matrices that are valid on the host can be
 * read, and after duet_recover the scenario succeeds. */
#include "deferred.h"
#include "device_use.h"
#include "eviction.h"
#include "fake_cuda.h"
#include "in_thread.h"
#include "linalg_stack.h"
#include "matrix.h"
#include "pool.h"
#include "quick.h"
#include "stream.h"
#include "stream_policy.h"
#include "tap.h"
#include "thread.h"
#include <string.h>
#include <unistd.h>

enum { N = 24, ROWS = 900, LINE = 9000, SECOND_GPU = DEFAULT_GPU + 1, PINNED = 300000 };

static bool strict; /* no failure is expected */
static int refused; /* calls that have failed */
static bool is_lost_seen(int gpu) { return device_absent(gpu) != NULL; }

/* ---- results ---- */

static bool well(duet_status s)
{
    if (s == DUET_OK) return true;
    const bool promised = s == DUET_DEVICE_ERROR || s == DUET_NO_DEVICE || s == DUET_UNKNOWN;
    const bool is_clear = (strstr(duet_error(), "lost") && strstr(duet_error(), "duet_recover()")) ||
                          strstr(duet_error(), "while it was recorded");
    refused++;
    CHECK(!strict && promised, "status %d: %s", (int)s, duet_error());
    CHECK(s != DUET_NO_DEVICE || is_clear, "%s", duet_error());
    return false;
}

/* Before a statement has succeeded, results are 0. All statements of the scenario give the same each time. */
static void has(const duet_matrix *m, bool written, float v)
{
    const float *p = duet_read(m);
    if (!p) {
        (void)well(duet_error_status());
        return;
    }
    for (int64_t i = 0; i < duet_count(m); i++)
        if (!CHECK(p[i] == v || (!written && p[i] == p[0] && p[i] == 0), "element %d is %g, not %g", (int)i,
                   (double)p[i], (double)v))
            return;
}

static duet_matrix *filled(float v, int rows, int columns)
{
    duet_matrix *m = duet_new(DUET_F32, rows, columns);
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    CHECK(p != NULL, "%s", duet_error());
    return m;
}

/* ---- the scenario ---- */

enum {
    SUM,
    SCALED,
    MAPPED,
    PRODUCT,
    SPLIT,
    SOLUTION,
    LIST,
    LIST2,
    PLAYED,
    PLAYED2,
    LOOP,
    LOOP2,
    LOOP3,
    EVICTED,
    EVICTED2,
    RESULTS
};

typedef struct world {
    duet_matrix *host, *kept; /* only the host writes these */
    duet_matrix *r[RESULTS], *two, *after_two, *many, *many_out, *many_more, *diagonal, *images, *filters,
        *seen, *line, *transform, *line_of_ones, *total;
    duet_recording *recording;
} world;

static void record(const world *w, duet_recording **made)
{
    DUET_ON(DUET_GPU)
    {
        bool good = well(duet_record_begin());
        if (good) {
            (void)well(duet_set(w->r[PLAYED], duet_mul(w->host, 4)));
            (void)well(duet_set(w->r[PLAYED2], duet_add(w->r[PLAYED], 1)));
            (void)well(duet_set(w->total, duet_sum(w->line_of_ones))); /* it needs scratch memory */
            *made = duet_record_end();
            if (!*made) (void)well(duet_error_status());
        }
    }
}

static world make_world(void)
{
    world w = { .host = filled(2, N, N),
                .kept = filled(3, N, N),
                .two = duet_new(DUET_F32, N, N),
                .after_two = duet_new(DUET_F32, N, N),
                .many = filled(2, ROWS, 8),
                .many_out = duet_new(DUET_F32, ROWS, 8),
                .many_more = duet_new(DUET_F32, ROWS, 8),
                .diagonal = duet_eye(DUET_F32, N),
                .images = duet_ones(DUET_F32, 1, 2, 6, 6),
                .filters = duet_ones(DUET_F32, 3, 2, 3, 3),
                .seen = duet_new(DUET_F32, 1, 3, 2, 2),
                .line = duet_ones(DUET_F32, 16),
                .transform = duet_new(DUET_C64, 16),
                .line_of_ones = filled(1, 1, LINE),
                .total = duet_new(DUET_F32, 1) };
    for (int i = 0; i < RESULTS; i++) w.r[i] = duet_new(DUET_F32, N, N);
    CHECK(duet_read(w.diagonal) && duet_read(w.images) && duet_read(w.filters) && duet_read(w.line), "%s",
          duet_error());
    return w;
}

static void free_world(world *w)
{
    for (int i = 0; i < RESULTS; i++) duet_free(&w->r[i]);
    duet_free(&w->host, &w->kept, &w->two, &w->after_two, &w->many, &w->many_out, &w->many_more, &w->diagonal,
              &w->images, &w->filters, &w->seen, &w->line, &w->transform, &w->line_of_ones, &w->total);
    duet_recording_free(&w->recording);
}

static void statements(const world *w)
{
    bool good = well(duet_set(w->r[SCALED], duet_add(duet_mul(w->host, 2), 1)));
    good &= well(duet_set(w->r[SUM], duet_sum(w->r[SCALED])));
    has(w->r[SUM], good, 5 * N * N);
    good = well(duet_set(w->r[MAPPED], duet_exp(duet_sub(w->r[SCALED], 5))));
    has(w->r[MAPPED], good, 1);
}

static void vendors(const world *w)
{
    has(w->r[PRODUCT], well(duet_set(w->r[PRODUCT], duet_matmul(w->host, w->host))), 4 * N);
    has(w->seen, well(duet_set(w->seen, duet_conv2d(w->images, w->filters, .dilation = { 2, 2 }))), 18);
    has(w->r[SOLUTION], well(duet_set(w->r[SOLUTION], duet_solve(w->diagonal, w->host))), 2);
    const bool good = well(duet_set(w->transform, duet_fft(w->line, 16, 0)));
    const float *p = duet_read(w->transform);
    if (!p) (void)well(duet_error_status());
    else CHECK(!good || (p[0] == 16 && p[1] == 0), "the transform is %g, %g", (double)p[0], (double)p[1]);
    bool split = false;
    DUET_MATH(DUET_MATH_SPLIT)
    split = well(duet_set(w->r[SPLIT], duet_matmul(w->host, w->kept)));
    has(w->r[SPLIT], split, 6 * N);
}

static void lists(const world *w)
{
    const bool good =
        well(duet_set_all({ w->r[LIST], duet_add(w->host, 1) }, { w->r[LIST2], duet_mul(w->r[LIST], 2) }));
    has(w->r[LIST2], good, 6);
    has(w->r[LIST], good, 3);
}

static void recordings(world *w)
{
    duet_recording *own = NULL;
    if (!w->recording) record(w, &w->recording);
    for (int i = 0; i < 2 && w->recording; i++) {
        has(w->r[PLAYED2], well(duet_replay(w->recording)), 9);
        has(w->r[PLAYED], false, 8);
        has(w->total, false, LINE);
    }
    record(w, &own);
    if (own) has(w->r[PLAYED2], well(duet_replay(own)), 9);
    duet_recording_free(&own);
}

static void repeated(const world *w)
{
    bool good = true;
    for (int i = 0; i < 14; i++) {
        good &= well(duet_set(w->r[LOOP], duet_add(w->host, 1)));
        good &= well(duet_set(w->r[LOOP2], duet_mul(w->r[LOOP], 2)));
        good &= well(duet_set(w->r[LOOP3], duet_add(w->r[LOOP], w->r[LOOP2])));
    }
    has(w->r[LOOP3], good, 9);
    has(w->r[LOOP2], false, 6);
}

static void streamed(const world *w)
{
    const size_t used = duet_memory_of(DUET_GPU).used;
    CHECK(duet_memory_limit(DUET_GPU, used + 30000) == DUET_OK, "%s", duet_error());
    evict_matrices(false); /* otherwise the statement would have enough memory */
    const duet_status s = duet_set(w->many_out, duet_mul(w->many, 3));
    evict_matrices(true);
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
    has(w->many_out, well(s), 6);
}

/* Buffers of other matrices are freed. Some of them are valid only there. */
static void evicted(const world *w)
{
    bool good = well(duet_set(w->r[EVICTED], duet_add(w->host, 1)));
    good &= well(duet_set(w->r[EVICTED2], duet_mul(w->host, 3)));
    CHECK(duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used) == DUET_OK, "%s", duet_error());
    const duet_status s = duet_set(w->many_more, duet_mul(w->many, 4));
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
    has(w->many_more, well(s), 8);
    has(w->r[EVICTED], good, 3);
    has(w->r[EVICTED2], good, 6);
}

static void two_cards(const world *w)
{
    bool good = well(thread_use_gpu(SECOND_GPU));
    good = good && well(duet_set(w->two, duet_add(w->host, 5)));
    (void)thread_use_gpu(DEFAULT_GPU);
    thread_get()->gpu = DEFAULT_GPU;
    good = good && well(duet_set(w->after_two, duet_mul(w->two, 2)));
    has(w->after_two, good, 14);
    has(w->two, good, 7);
}

static void play(world *w, bool expects)
{
    strict = expects;
    DUET_ON(DUET_GPU)
    {
        statements(w);
        vendors(w);
        lists(w);
        recordings(w);
        repeated(w);
        streamed(w);
        evicted(w);
        two_cards(w);
    }
    if (!duet_device_read(w->host)) (void)well(duet_error_status());
}

/* ---- after the loss ---- */

/* A loss that no call has found yet is found now. */
static void look_for_losses(void)
{
    duet_matrix *m = duet_new(DUET_F32, N, N);
    for (int gpu = DEFAULT_GPU; gpu <= SECOND_GPU; gpu++) {
        thread_get()->gpu = gpu;
        (void)well(duet_set_on(DUET_GPU, m, 1));
        (void)well(duet_synchronize());
        CHECK(!fake_is_lost(gpu - 1) || is_lost_seen(gpu), "card %d is not marked as lost", gpu - 1);
    }
    thread_get()->gpu = DEFAULT_GPU;
    duet_free(&m);
}

/* What only the host has written can be read, and statements run on the CPU. */
static void goes_on(const world *w)
{
    duet_matrix *m = duet_new(DUET_F32, N, N);
    has(w->host, true, 2);
    has(w->kept, true, 3);
    CHECK(duet_read(w->host) && duet_read(w->kept), "%s", duet_error());
    if (is_lost_seen(DEFAULT_GPU)) {
        CHECK(duet_set(m, duet_add(w->host, w->kept)) == DUET_OK, "%s", duet_error());
        has(m, true, 5);
        CHECK(duet_set_on(DUET_GPU, m, w->host) == DUET_NO_DEVICE && strstr(duet_error(), "duet_recover()"),
              "%s", duet_error());
        has(m, true, 5);
    }
    for (int i = 0; i < RESULTS; i++)
        if (!duet_read(w->r[i])) CHECK(duet_error_status() == DUET_UNKNOWN, "%s", duet_error());
    duet_free(&m);
}

static void recover(void)
{
    const bool any = is_lost_seen(DEFAULT_GPU) || is_lost_seen(SECOND_GPU);
    const uint64_t resets = fake_count().resets, calls = fake_count().calls;
    CHECK(duet_recover() == DUET_OK, "%s", duet_error());
    CHECK((fake_count().resets > resets) == any && (any || fake_count().calls == calls),
          "%d resets, %d calls", (int)(fake_count().resets - resets), (int)(fake_count().calls - calls));
    CHECK(!is_lost_seen(DEFAULT_GPU) && !is_lost_seen(SECOND_GPU), "a card is still lost");
}

/* Elements that were lost are not found again. */
static void are_lost_or_right(const world *w, const bool *valid_on_host)
{
    for (int i = 0; i < RESULTS; i++) {
        const void *p = duet_read(w->r[i]);
        CHECK(!valid_on_host[i] || p, "a matrix that was valid on the host is lost: %s", duet_error());
        CHECK(p || duet_error_status() == DUET_UNKNOWN, "status %d", (int)duet_error_status());
    }
}

static void lose_and_recover(world *w)
{
    bool valid[RESULTS];
    look_for_losses();
    goes_on(w);
    for (int i = 0; i < RESULTS; i++) valid[i] = storage_valid_on(w->r[i]->storage, HOST);
    strict = true;
    recover();
    are_lost_or_right(w, valid);
}

/* ---- every call ---- */

static struct {
    void (*arm)(uint64_t n);
    uint64_t n;
    bool is_warm, hit;
} how;

static void *turn(void *unused)
{
    world w = make_world();
    if (how.is_warm) play(&w, true);
    how.arm(how.n);
    refused = 0;
    play(&w, false);
    how.hit = fake_failed();
    if (!how.hit) how.arm(0);
    CHECK(how.hit || !refused, "no card was lost, but %d calls failed", refused);
    lose_and_recover(&w);
    how.arm(0);
    play(&w, true);
    play(&w, true);
    free_world(&w);
    return unused;
}

static void no_leaks(const fake_counts *start)
{
    duet_memory_trim();
    const fake_counts now = fake_count();
    CHECK(now.graphs_alive == start->graphs_alive, "call %d: %d graphs, not %d", (int)how.n, now.graphs_alive,
          start->graphs_alive);
    CHECK(now.handles == start->handles, "call %d: %d handles, not %d", (int)how.n, now.handles,
          start->handles);
    CHECK(now.memory == start->memory, "call %d: %zu bytes, not %zu", (int)how.n, now.memory, start->memory);
    CHECK(now.rings <= start->rings && now.pinned == start->pinned, "call %d: %d and %d pinned blocks",
          (int)how.n, now.rings, now.pinned);
    CHECK(deferred_queues_now() == 0, "statements are left");
    CHECK(duet_live(NULL) == 0, "matrices are left");
}

static void each_call(void arm(uint64_t n), bool is_warm, int stride, const char *what)
{
    char text[100];
    how.arm = arm;
    how.is_warm = is_warm;
    for (int i = 0; i < 2; i++) { /* at first, no memory of earlier threads is left */
        how.n = i ? 1000000 : 1;
        run_in_thread(turn, NULL);
    }
    CHECK(!how.hit, "the scenario has too many calls");
    duet_memory_trim();
    const fake_counts start = fake_count();
    int turns = 0;
    how.hit = true;
    for (how.n = 1; how.hit && tap_failures < 20; how.n += (uint64_t)stride, turns++) {
        run_in_thread(turn, NULL);
        no_leaks(&start);
    }
    CHECK(turns * stride > 200, "%d calls", turns * stride);
    snprintf(text, sizeof text, "%s, %d times", what, turns - 1);
    tap_point(text);
}

/* ---- others ---- */

static void *uses_all(void *unused)
{
    world w = make_world();
    const fake_counts a = fake_count();
    const duet_counts c = duet_stats();
    play(&w, true);
    play(&w, true);
    const fake_counts b = fake_count();
    const duet_counts d = duet_stats();
    CHECK(
        b.products > a.products && b.convolutions > a.convolutions && b.transforms > a.transforms &&
            b.solutions > a.solutions && b.splits > a.splits && b.graphs > a.graphs && b.copies > a.copies,
        "the scenario does not use every library: %d products, %d convolutions, %d transforms, %d solutions, "
        "%d split, %d graphs, %d copies",
        (int)(b.products - a.products), (int)(b.convolutions - a.convolutions),
        (int)(b.transforms - a.transforms), (int)(b.solutions - a.solutions), (int)(b.splits - a.splits),
        (int)(b.graphs - a.graphs), (int)(b.copies - a.copies));
    CHECK(d.repeats > c.repeats && d.streams > c.streams && d.replays > c.replays &&
              d.evictions > c.evictions,
          "the scenario does not use every kind of statement");
    free_world(&w);
    return unused;
}

/* One card of two. What the other one holds stays there. */
static void *one_of_two(void *unused)
{
    duet_matrix *here = duet_new(DUET_F32, N, N), *there = duet_new(DUET_F32, N, N), *host = filled(2, N, N);
    strict = true;
    CHECK(duet_set_on(DUET_GPU, here, duet_add(host, 1)) == DUET_OK, "%s", duet_error());
    CHECK(thread_use_gpu(SECOND_GPU) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, there, duet_add(host, 2)) == DUET_OK, "%s", duet_error());
    CHECK(duet_synchronize() == DUET_OK, "%s", duet_error());
    fake_lost_card(SECOND_GPU - 1);
    CHECK(duet_synchronize() == DUET_DEVICE_ERROR && strstr(duet_error(), "duet_recover()"), "%s",
          duet_error());
    recover();
    CHECK(fake_count().resets == 1, "%d resets", (int)fake_count().resets);
    CHECK(storage_valid(here->storage) == 1u << DEFAULT_GPU, "the other card was dropped");
    has(here, true, 3);
    CHECK(!duet_read(there) && duet_error_status() == DUET_UNKNOWN, "%s", duet_error());
    duet_matrix *row = duet_row(there, 3); /* its elements can be written in parts */
    CHECK(duet_set_on(DUET_GPU, row, 9) == DUET_OK, "%s", duet_error());
    has(row, true, 9);
    CHECK(!duet_read(there), "the other rows are not lost");
    CHECK(duet_set_on(DUET_GPU, there, duet_add(host, 2)) == DUET_OK, "%s", duet_error());
    has(there, true, 4);
    thread_get()->gpu = DEFAULT_GPU;
    duet_free(&row, &here, &there, &host);
    return unused;
}

static void *pinned(void *unused)
{
    duet_matrix *m = duet_new(DUET_F32, PINNED), *out = duet_new(DUET_F32, PINNED);
    strict = true;
    for (int turns = 0; turns < 2; turns++) {
        for (int i = 0; i < 4; i++) {
            float *p = duet_overwrite(m);
            for (int k = 0; p && k < PINNED; k++) p[k] = (float)i;
            CHECK(duet_set_on(DUET_GPU, out, duet_add(m, 1)) == DUET_OK, "%s", duet_error());
            has(out, true, (float)i + 1);
        }
        CHECK(fake_count().pinned >= 2 && duet_memory_of(DUET_CPU).pinned > 0, "%d blocks are pinned",
              fake_count().pinned);
        fake_lost_card(0);
        CHECK(duet_device_update(out) && duet_synchronize() == DUET_DEVICE_ERROR, "%s", duet_error());
        recover();
        CHECK(fake_count().pinned == 0 && duet_memory_of(DUET_CPU).pinned == 0 &&
                  !storage_is_pinned(m->storage),
              "%d blocks are pinned", fake_count().pinned);
        has(m, true, 3);
    }
    duet_free(&m, &out);
    return unused;
}

/* CUDA may refuse. Then the CPU goes on. */
static void *no_reset(void *unused)
{
    world w = make_world();
    play(&w, true);
    fake_lost_card(0);
    CHECK(duet_synchronize() == DUET_DEVICE_ERROR, "%s", duet_error());
    fake_no_reset(true);
    for (int i = 0; i < 3; i++) {
        CHECK(duet_recover() == DUET_DEVICE_ERROR && strstr(duet_error(), "duet_recover") &&
                  strstr(duet_error(), "this process cannot use the GPU again"),
              "%s", duet_error());
        CHECK(duet_set(w.r[SCALED], duet_add(w.host, w.kept)) == DUET_OK, "%s", duet_error());
        has(w.r[SCALED], true, 5);
        CHECK(duet_set_on(DUET_GPU, w.r[SUM], 1) == DUET_NO_DEVICE && strstr(duet_error(), "lost"), "%s",
              duet_error());
    }
    fake_no_reset(false);
    recover();
    play(&w, true);
    free_world(&w);
    return unused;
}

/* Each call of the recovery fails once. A second attempt succeeds. */
static void *recovery_fails(void *unused)
{
    world w = make_world();
    int n = 0;
    play(&w, true);
    for (bool hit = true; hit; n++) {
        fake_lost_card(0);
        CHECK(duet_synchronize() == DUET_DEVICE_ERROR, "%s", duet_error());
        fake_fail((uint64_t)n + 1);
        const duet_status s = duet_recover();
        hit = fake_failed();
        fake_fail(0);
        CHECK(s == DUET_OK || (hit && s == DUET_DEVICE_ERROR && is_lost_seen(DEFAULT_GPU)), "call %d: %s",
              n + 1, duet_error());
        if (s != DUET_OK) recover();
        play(&w, true);
    }
    printf("# %d calls of a recovery\n", n - 1);
    CHECK(n > 8 && n < 200, "%d calls", n);
    free_world(&w);
    return unused;
}

/* While one thread records, another one loses the card and recovers it. */
static void *lose_once(void *unused)
{
    fake_lost_card(0);
    CHECK(duet_set_on(DUET_GPU, (duet_matrix *)unused, 1) == DUET_DEVICE_ERROR, "%s", duet_error());
    CHECK(duet_recover() == DUET_OK, "%s", duet_error());
    return NULL;
}

static void *within_recording(void *unused)
{
    duet_matrix *x = filled(2, N, N), *y = duet_new(DUET_F32, N, N), *z = duet_new(DUET_F32, N, N),
                *other = duet_new(DUET_F32, N, N);
    strict = true;
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "%s", duet_error());
    run_in_thread(lose_once, other);
    CHECK(duet_set_on(DUET_GPU, z, duet_add(x, 2)) == DUET_OK, "%s", duet_error());
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    for (int i = 0; i < 3; i++) {
        CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
        has(y, true, 3);
        has(z, true, 4);
    }
    duet_recording_free(&r);
    duet_free(&x, &y, &z, &other);
    return unused;
}

/* ---- statements on the CPU during a recovery ---- */

enum { RECORDED = 40 };

typedef struct on_cpu {
    duet_matrix *x, *y, *turned, *z;
    duet_recording *recording;
    bool ready, passed;
} on_cpu;

static on_cpu new_on_cpu(void)
{
    on_cpu c = { .x = filled(2, N, N), .y = filled(0, N, N), .z = filled(0, N, N) };
    c.turned = duet_transposed(c.y);
    return c;
}

static void free_on_cpu(on_cpu *c)
{
    has(c->y, true, 3);
    has(c->z, true, 6);
    duet_recording_free(&c->recording);
    duet_free(&c->x, &c->y, &c->turned, &c->z);
}

static void wait_for(const bool *it)
{
    for (int i = 0; i < 5000 && !__atomic_load_n(it, __ATOMIC_ACQUIRE); i++) usleep(1000);
}

static void set_flag(bool *it) { __atomic_store_n(it, true, __ATOMIC_RELEASE); }

static void wait_for_recovery(on_cpu *c)
{
    set_flag(&c->ready);
    wait_for(&devices_recovering);
}

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

/* The groups of the list cannot be planned together. */
static void run_list(const on_cpu *c)
{
    ok(duet_set_all({ c->y, duet_add(c->x, 1) }, { c->z, duet_mul(c->turned, 2) }));
}

static void set_one(const on_cpu *c) { ok(duet_set(c->y, duet_add(c->x, 1))); }
static void draw(const on_cpu *c) { ok(duet_random_integers(c->z, 1, 6, 7)); } /* a statement of one step */

static void *runs_list(void *arg)
{
    on_cpu *c = arg;
    wait_for_recovery(c);
    DUET_ON(DUET_CPU) run_list(c);
    set_flag(&c->passed);
    return NULL;
}

static void *replays(void *arg)
{
    on_cpu *c = arg;
    wait_for_recovery(c);
    ok(duet_replay(c->recording));
    set_flag(&c->passed);
    return NULL;
}

static void record_many(on_cpu *c, void first(const on_cpu *c))
{
    DUET_ON(DUET_CPU)
    {
        ok(duet_record_begin());
        wait_for_recovery(c);
        first(c);
        set_flag(&c->passed);
        for (int i = 0; i < RECORDED; i++) {
            set_one(c);
            draw(c);
        }
        c->recording = duet_record_end();
    }
}

static void *records(void *arg)
{
    record_many(arg, set_one);
    return NULL;
}

static void *records_step(void *arg)
{
    record_many(arg, draw);
    return NULL;
}

/* Does another thread get on while this one recovers GPUs? */
static bool passes(void *run(void *), on_cpu *c, bool expected)
{
    pthread_t t;
    c->ready = c->passed = false;
    CHECK(!pthread_create(&t, NULL, run, c), "no thread");
    wait_for(&c->ready);
    ok(device_recovery_begin());
    if (expected) wait_for(&c->passed);
    else usleep(50000);
    const bool did = __atomic_load_n(&c->passed, __ATOMIC_ACQUIRE);
    device_recovery_end();
    pthread_join(t, NULL);
    return did;
}

/* A recovery looks at the entries of all recordings, so none may be added meanwhile. */
static void *recording_waits(void *unused)
{
    void *(*const run[])(void *) = { records, records_step };
    for (int i = 0; i < 2; i++) {
        on_cpu c = new_on_cpu();
        CHECK(!passes(run[i], &c, false), "a statement was recorded during a recovery");
        ok(duet_replay(c.recording));
        free_on_cpu(&c);
    }
    return unused;
}

/* A recovery waits for other threads that use GPUs. Such statements do not. */
static void *cpu_goes_on(void *unused)
{
    on_cpu c = new_on_cpu();
    CHECK(passes(runs_list, &c, true), "a list of the CPU waits for the GPU");
    DUET_ON(DUET_CPU)
    {
        ok(duet_record_begin());
        run_list(&c);
        c.recording = duet_record_end();
    }
    CHECK(passes(replays, &c, true), "a recording of the CPU waits for the GPU");
    free_on_cpu(&c);
    return unused;
}

/* ---- threads ---- */

static bool stop;

/* Statements of other threads fail or are right, and never wait for long. */
static void *computes(void *unused)
{
    duet_matrix *x = filled(2, N, N), *y = duet_new(DUET_F32, N, N), *z = duet_new(DUET_F32, N, N);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const duet_status a = duet_set_on(DUET_GPU, y, duet_add(x, 1));
        const duet_status b = a ? a : duet_set_on(DUET_GPU, z, duet_matmul(y, x));
        const float *p = duet_read(z);
        CHECK(b == DUET_OK || b == DUET_DEVICE_ERROR || b == DUET_NO_DEVICE || b == DUET_UNKNOWN,
              "status %d: %s", (int)b, duet_error());
        CHECK(b || !p || (p[0] == 6 * N && p[N * N - 1] == 6 * N), "wrong elements");
        p = duet_read(x);
        CHECK(p && p[5] == 2, "an operand on the host: %s", duet_error());
        duet_matrix *more = duet_eval(duet_add(x, 1));
        CHECK(more || duet_error_status(), "%s", duet_error());
        duet_free(&more);
    }
    duet_free(&x, &y, &z);
    return unused;
}

static void threads(int turns)
{
    enum { THREADS = 3 };
    pthread_t t[THREADS];
    duet_matrix *m = duet_new(DUET_F32, N, N);
    stop = false;
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&t[i], NULL, computes, NULL), "no thread");
    for (int i = 0; i < turns; i++) {
        usleep(2000);
        if (i % 2) fake_lost_card(0);
        else fake_crash_at(1 + (uint64_t)i % 7);
        usleep(1000);
        fake_crash_at(0);
        bool found = false;
        for (int k = 0; k < 3; k++) found |= duet_set_on(DUET_GPU, m, 1) || duet_synchronize();
        CHECK(found || i % 2 == 0, "the loss was not found");
        CHECK(duet_recover() == DUET_OK, "%s", duet_error());
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    CHECK(duet_recover() == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, m, 4) == DUET_OK, "%s", duet_error());
    strict = true;
    has(m, true, 4);
    duet_free(&m);
    tap_point("other threads compute while a card is lost and recovered");
}

int main(int argc, char **argv)
{
    const int stride = is_quick(argc, argv) ? 7 : 1;
    fake_devices(2);
    gpu_single_most = 0; /* so that cuSOLVER is called */
    stream_from(1000);
    stream_staged_from(1000);
    recover();
    tap_point("without a loss duet_recover does nothing");
    run_in_thread(uses_all, NULL);
    tap_point("the scenario");
    run_in_thread(one_of_two, NULL);
    tap_point("one of two cards is lost and recovered");
    run_in_thread(pinned, NULL);
    tap_point("pinned memory");
    run_in_thread(no_reset, NULL);
    tap_point("CUDA cannot restart the card");
    run_in_thread(recovery_fails, NULL);
    tap_point("each call of a recovery fails once");
    run_in_thread(within_recording, NULL);
    tap_point("a card is recovered between two recorded statements");
    run_in_thread(recording_waits, NULL);
    tap_point("no statement is recorded while a card is recovered");
    run_in_thread(cpu_goes_on, NULL);
    tap_point("lists and recordings of the CPU run while a card is recovered");
    threads(60 / stride);
    each_call(fake_lose_at, false, stride, "the card is lost at each call");
    each_call(fake_lose_at, true, stride, "the card is lost at each call, with everything open");
    each_call(fake_crash_at, false, stride, "a kernel goes wrong at each call");
    each_call(fake_crash_at, true, stride, "a kernel goes wrong at each call, with everything open");
    return tap_end();
}
