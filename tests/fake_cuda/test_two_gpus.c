/* test_two_gpus.c - two cards of the fake CUDA: random sequences of host accesses, views and statements on
 * the CPU and on either card, against a model of the elements and of the valid buffers; every copy is
 * counted. Then faults of one card. */
#include "fake_cuda.h"
#include "matrix.h"
#include "pool.h"
#include "quick.h"
#include "tap.h"
#include "test_rng.h"
#include "thread.h"

enum {
    SECOND_GPU = DEFAULT_GPU + 1,
    DEVICES,
    THIRD_GPU = DEVICES,
    SIDE = 6,
    COUNT_OF = SIDE * SIDE,
    MATRICES = 5
};

/* ---- the model ---- */

typedef struct model {
    duet_matrix *m, *row; /* row: a view of row 2 */
    float value[COUNT_OF];
    unsigned valid; /* bit d: the buffer on device d */
} model;

static model all[MATRICES];
static duet_counts expected; /* uploads, downloads and copies that the model expects */

/* Copies as core/matrix.c does: from the host if it is valid there, else from the other card. Without a
 * valid buffer it writes zeros. */
static void bring(model *x, int device)
{
    if (x->valid && !(x->valid >> device & 1)) {
        if (device == HOST) expected.downloads++;
        else if (x->valid & 1) expected.uploads++;
        else expected.copies++;
    }
    x->valid |= 1u << device;
}

static void wrote(model *x, int device) { x->valid = 1u << device; }

static bool agrees(const char *what)
{
    const duet_counts c = duet_stats();
    bool good = CHECK(c.uploads == expected.uploads, "%s: %d uploads, not %d", what, (int)c.uploads,
                      (int)expected.uploads);
    good &= CHECK(c.downloads == expected.downloads, "%s: %d downloads, not %d", what, (int)c.downloads,
                  (int)expected.downloads);
    good &= CHECK(c.copies == expected.copies, "%s: %d copies, not %d", what, (int)c.copies,
                  (int)expected.copies);
    for (model *x = all; x < all + MATRICES; x++)
        good &= CHECK(storage_valid(x->m->storage) == x->valid, "%s: matrix %d is valid on %x, not %x", what,
                      (int)(x - all), storage_valid(x->m->storage), x->valid);
    return good;
}

static void use(int device)
{
    if (device != HOST) CHECK(thread_use_gpu(device) == DUET_OK, "%s", duet_error());
}
static duet_place place_of(int device) { return device == HOST ? DUET_CPU : DUET_GPU; }

/* ---- the operations ---- */

static bool same(const model *x, const float *p)
{
    for (int i = 0; i < COUNT_OF; i++)
        if (!CHECK(p[i] == x->value[i], "matrix %d, element %d is %g, not %g", (int)(x - all), i, p[i],
                   x->value[i]))
            return false;
    return true;
}

static void host_read(model *x)
{
    const float *p = duet_read(x->m);
    bring(x, HOST);
    if (CHECK(p, "%s", duet_error())) same(x, p);
}

static void host_write(model *x, bool whole)
{
    float *p = whole ? duet_overwrite(x->m) : duet_update(x->m);
    if (!whole) bring(x, HOST);
    wrote(x, HOST);
    if (!CHECK(p, "%s", duet_error())) return;
    if (!whole) same(x, p);
    for (int i = whole ? 0 : draw(COUNT_OF); i < COUNT_OF; i++) p[i] = x->value[i] = (float)(draw(41) - 20);
}

static float clipped(float x)
{
    if (x < -50) return -50;
    if (x > 50) return 50;
    return x;
}

/* z = clip(x + 2 y), element by element. */
static void add(model *z, model *x, model *y, int device)
{
    use(device);
    bring(x, device);
    bring(y, device);
    wrote(z, device);
    const duet_status s =
        duet_set_on(place_of(device), z->m, duet_clip(duet_add(x->m, duet_mul(2, y->m)), -50, 50));
    CHECK(s == DUET_OK, "%s", duet_error());
    for (int i = 0; i < COUNT_OF; i++) z->value[i] = clipped(x->value[i] + 2 * y->value[i]);
}

static void multiply(model *z, model *x, model *y, int device)
{
    float product[COUNT_OF];
    use(device);
    bring(x, device);
    bring(y, device);
    wrote(z, device);
    const duet_status s = duet_set_on(place_of(device), z->m, duet_clip(duet_matmul(x->m, y->m), -50, 50));
    CHECK(s == DUET_OK, "%s", duet_error());
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            float sum = 0;
            for (int k = 0; k < SIDE; k++) sum += x->value[i * SIDE + k] * y->value[k * SIDE + j];
            product[i * SIDE + j] = clipped(sum);
        }
    memcpy(z->value, product, sizeof product);
}

/* Writes one row of z. The other rows keep their elements, so z has to be copied first. */
static void negate_row(model *z, model *x, int device)
{
    use(device);
    bring(x, device);
    bring(z, device);
    wrote(z, device);
    CHECK(duet_set_on(place_of(device), z->row, duet_neg(x->row)) == DUET_OK, "%s", duet_error());
    for (int j = 0; j < SIDE; j++) z->value[2 * SIDE + j] = -x->value[2 * SIDE + j];
}

/* Repeats the statements often enough for automatic replay to start. */
static void repeat(model *x, model *y, model *z, bool on_both)
{
    for (int i = 0; i < 12 + draw(30); i++) {
        add(z, x, y, DEFAULT_GPU);
        add(y, z, x, DEFAULT_GPU);
        if (on_both) add(x, z, y, SECOND_GPU);
        if (draw(8) == 0) host_read(z);
    }
}

static void device_pointer(model *x, int device)
{
    use(device);
    bring(x, device);
    CHECK(duet_device_read(x->m), "%s", duet_error());
}

static void take_turn(void)
{
    model *x = &all[draw(MATRICES)], *y = &all[draw(MATRICES)], *z = &all[draw(MATRICES)];
    const int device = draw(DEVICES);
    switch (draw(12)) {
    case 0: return host_read(x);
    case 1: return host_write(x, true);
    case 2: return host_write(x, false);
    case 3:
    case 4: return multiply(z, x, y, device);
    case 5:
    case 6: return negate_row(z, x, device);
    case 7: return device_pointer(x, DEFAULT_GPU + draw(DEVICES - 1));
    case 8:
        if (draw(6) == 0 && x != y && y != z && x != z) repeat(x, y, z, draw(2));
        return;
    default: return add(z, x, y, device);
    }
}

static void make_all(void)
{
    for (model *x = all; x < all + MATRICES; x++) {
        *x = (model){ .m = duet_new(DUET_F32, SIDE, SIDE) };
        x->row = duet_row(x->m, 2);
    }
}

static void free_models(void)
{
    for (model *x = all; x < all + MATRICES; x++) {
        if (x->m) host_read(x);
        duet_free(&x->row);
        duet_free(&x->m);
    }
}

static void walk(int turns)
{
    for (int w = 0; w < 8; w++) {
        seed = 88172645463325252u + (uint64_t)w;
        make_all();
        expected = duet_stats();
        for (int i = 0; i < turns && !tap_failures; i++) {
            take_turn();
            char what[40];
            snprintf(what, sizeof what, "walk %d, turn %d", w, i);
            agrees(what);
        }
        free_models();
    }
    const duet_counts c = duet_stats();
    CHECK(c.copies == fake_count().copies && c.copies > 100, "duet_stats counts %d copies, CUDA made %d",
          (int)c.copies, (int)fake_count().copies);
    CHECK(c.graphs > 0, "nothing was replayed");
    printf("# %d uploads, %d downloads, %d copies, %d graphs\n", (int)c.uploads, (int)c.downloads,
           (int)c.copies, (int)c.graphs);
    tap_point("a random sequence of accesses on the host and two GPUs");
}

/* ---- memory ---- */

static void memory_is_apart(void)
{
    duet_matrix *x = duet_new(DUET_F32, 1000), *y = duet_new(DUET_F32, 1000);
    duet_memory_trim();
    const size_t before[] = { pool_memory(DEFAULT_GPU).used, pool_memory(SECOND_GPU).used };
    use(SECOND_GPU);
    CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "%s", duet_error());
    CHECK(pool_memory(DEFAULT_GPU).used == before[0], "memory of the default GPU was used");
    CHECK(pool_memory(SECOND_GPU).used >= before[1] + 8000 && duet_memory_of(DUET_GPU).used >= 8000,
          "%zu bytes are used on the second GPU", pool_memory(SECOND_GPU).used);
    CHECK(duet_memory_limit(DUET_GPU, pool_memory(SECOND_GPU).used) == DUET_OK, "%s", duet_error());
    duet_matrix *z = duet_new(DUET_F32, 100000);
    CHECK(duet_set_on(DUET_GPU, z, 1) == DUET_NO_MEMORY, "the limit of the second GPU had no effect");
    use(DEFAULT_GPU);
    CHECK(duet_set_on(DUET_GPU, z, 1) == DUET_OK, "%s", duet_error());
    use(SECOND_GPU);
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    CHECK(pool_memory(SECOND_GPU).used == before[1], "memory was not released");
    use(DEFAULT_GPU);
    tap_point("each GPU has its own memory and limit");
}

/* ---- streams ---- */

static void streams_are_apart(void)
{
    use(SECOND_GPU);
    void *second = duet_stream();
    CHECK(duet_synchronize() == DUET_OK, "%s", duet_error());
    use(DEFAULT_GPU);
    void *first = duet_stream();
    CHECK(first && second && first != second, "the streams %p and %p are invalid or equal", first, second);
    CHECK(duet_auto_replay(1) == DUET_OK, "%s", duet_error());
    CHECK(thread_use_gpu(HOST) == DUET_NO_DEVICE && thread_use_gpu(THIRD_GPU + 1) == DUET_NO_DEVICE,
          "a device that is not a GPU was accepted");
    tap_point("each GPU has its own streams");
}

/* ---- recordings ---- */

static void recordings(void)
{
    duet_matrix *x = duet_new(DUET_F32, 100), *y = duet_new(DUET_F32, 100);
    CHECK(duet_set_on(DUET_CPU, x, 1) == DUET_OK, "%s", duet_error());
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    use(DEFAULT_GPU);
    CHECK(duet_set_on(DUET_GPU, y, duet_add(x, 1)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, y, duet_mul(y, 2)) == DUET_OK, "%s", duet_error());
    use(SECOND_GPU);
    CHECK(duet_set_on(DUET_GPU, x, duet_sub(y, 3)) == DUET_OK, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, x, duet_div(x, 1)) == DUET_OK, "%s", duet_error());
    duet_recording *r = duet_record_end();
    use(DEFAULT_GPU);
    const duet_counts before = duet_stats();
    for (int i = 0; i < 5; i++) CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
    const duet_counts after = duet_stats();
    CHECK(after.graphs - before.graphs == 10, "%d graphs were launched", (int)(after.graphs - before.graphs));
    /* The end of the recording has brought x to the first card. */
    CHECK(after.copies - before.copies == 9, "%d copies were made", (int)(after.copies - before.copies));
    const float *p = duet_read(x);
    CHECK(p && p[99] == 1, "x is %g", p ? p[99] : 0); /* 2 (x + 1) - 3 = 1 for x = 1 */
    duet_recording_free(&r);
    duet_free(&x);
    duet_free(&y);
    tap_point("a recording has a graph on each GPU");
}

/* ---- faults ---- */

/* Runs on one card, then on the other. Returns false at the first failure. */
static bool scenario(duet_matrix *m[2])
{
    const int device[] = { DEFAULT_GPU, SECOND_GPU, SECOND_GPU, DEFAULT_GPU, SECOND_GPU };
    for (int i = 0; i < 2; i++)
        if (!(m[i] = duet_new(DUET_F32, 40, 40))) return false;
    float *p = duet_overwrite(m[0]);
    if (!p) return false;
    for (int i = 0; i < 1600; i++) p[i] = 1;
    for (int i = 0; i < 5; i++) {
        if (thread_use_gpu(device[i]) != DUET_OK) return false;
        if (duet_set_on(DUET_GPU, m[1], duet_add(m[0], 1)) != DUET_OK) return false;
        if (duet_set_on(DUET_GPU, m[0], duet_sub(m[1], duet_mean(m[1]))) != DUET_OK) return false;
        if (duet_set_on(DUET_GPU, m[0], duet_add(m[0], 1)) != DUET_OK) return false;
    }
    const float *x = duet_read(m[0]), *y = duet_read(m[1]);
    return x && y && CHECK(x[1599] == 1 && y[0] == 2, "%g and %g", x[1599], y[0]);
}

static bool fails_at(int card, uint64_t n)
{
    duet_matrix *m[2] = { NULL };
    fake_fail_on(card, n);
    const bool done = scenario(m), failed = fake_failed();
    fake_fail(0);
    CHECK(done || failed, "the statement fails without an injected failure: %s", duet_error());
    CHECK(done || *duet_error(), "failure %d has no text", (int)n);
    for (int i = 0; i < 2; i++) duet_free(&m[i]);
    use(DEFAULT_GPU);
    CHECK(scenario(m), "after failure %d of GPU %d: %s", (int)n, card, duet_error());
    for (int i = 0; i < 2; i++) duet_free(&m[i]);
    use(DEFAULT_GPU);
    return failed;
}

static void every_call_fails(void)
{
    uint64_t n[2] = { 1, 1 };
    for (int card = 0; card < 2; card++)
        while (!tap_failures && fails_at(card, n[card])) n[card]++;
    CHECK(n[0] > 20 && n[1] > 20, "%d and %d calls", (int)n[0], (int)n[1]);
    printf("# %d calls of the first card and %d of the second failed, each once\n", (int)n[0] - 1,
           (int)n[1] - 1);
    duet_memory_trim();
    CHECK(pool_memory(DEFAULT_GPU).cached == 0 && pool_memory(SECOND_GPU).cached == 0,
          "memory was not released");
    tap_point("every CUDA call fails once on each card");
}

/* The elements of w on one card stay as they are when they are copied to the other card: the operand packed
 * on the first card is used again. */
static void packed_operands_are_apart(void)
{
    duet_matrix *w = duet_new(DUET_F32, SIDE, SIDE),
                *y[] = { duet_new(DUET_F32, SIDE, SIDE), duet_new(DUET_F32, SIDE, SIDE) };
    CHECK(duet_set_on(DUET_CPU, w, 2) == DUET_OK, "%s", duet_error());
    for (int i = 0; i < 6; i++) {
        const int device = i == 0 || i > 3 ? DEFAULT_GPU : SECOND_GPU;
        use(device);
        CHECK(duet_device_read(w) && duet_set_on(DUET_GPU, y[i % 2], 1) == DUET_OK, "%s", duet_error());
        const int64_t before = duet_stats().launches;
        DUET_ON(DUET_GPU)
        CHECK(duet_set_math(DUET_MATH_SPLIT, y[i % 2], duet_matmul(w, w)) == DUET_OK, "%s", duet_error());
        const int launches = (int)(duet_stats().launches - before), packs = i < 2;
        CHECK(launches == 1 + packs, "product %d: %d launches, not %d", i, launches, 1 + packs);
    }
    use(DEFAULT_GPU);
    for (int i = 0; i < 2; i++) {
        const float *p = duet_read(y[i]);
        CHECK(p && p[0] == 4 * SIDE, "%s", duet_error());
        duet_free(&y[i]);
    }
    duet_free(&w);
    tap_point("an operand packed on one card stays valid when the other card reads the matrix");
}

/* The other card, and matrices that are valid elsewhere, stay usable. */
static void lost_card(void)
{
    duet_matrix *both = duet_new(DUET_F32, 10), *there = duet_new(DUET_F32, 10),
                *here = duet_new(DUET_F32, 10), *copied = duet_new(DUET_F32, 10),
                *empty = duet_new(DUET_F32, 0), *pinned = duet_new(DUET_F32, 300000);
    CHECK(duet_set_on(DUET_CPU, both, 3) == DUET_OK, "%s", duet_error());
    use(THIRD_GPU);
    CHECK(duet_set_on(DUET_GPU, copied, 3) == DUET_OK, "%s", duet_error());
    use(SECOND_GPU);
    CHECK(duet_set_on(DUET_GPU, empty, 3) == DUET_OK, "%s", duet_error());
    CHECK(duet_device_read(copied), "%s", duet_error());
    for (int i = 0; i < 5; i++) CHECK(duet_overwrite(pinned) && duet_device_read(pinned), "%s", duet_error());
    CHECK(fake_count().pinned > 0, "no memory is pinned");
    CHECK(duet_set_on(DUET_GPU, there, duet_add(both, 1)) == DUET_OK, "%s", duet_error());
    fake_lost_card(1);
    CHECK(!duet_read(there), "elements of a lost GPU were read");
    CHECK(device_absent(SECOND_GPU) && strstr(device_absent(SECOND_GPU), "lost"),
          "the GPU is not marked as lost");
    CHECK(!device_absent(DEFAULT_GPU), "the default GPU is absent: %s", device_absent(DEFAULT_GPU));
    CHECK(duet_set_on(DUET_GPU, here, 1) == DUET_NO_DEVICE, "a statement on a lost GPU did not fail");
    use(DEFAULT_GPU);
    CHECK(thread_use_gpu(SECOND_GPU) == DUET_NO_DEVICE, "a lost GPU was accepted");
    CHECK(duet_set_on(DUET_GPU, here, duet_add(both, 1)) == DUET_OK, "%s", duet_error());
    const float *p = duet_read(here), *q = duet_read(both);
    CHECK(p && q && p[9] == 4 && q[9] == 3, "wrong elements");
    CHECK(duet_set_on(DUET_GPU, here, there) != DUET_OK, "a lost matrix was read");
    CHECK(duet_set_on(DUET_GPU, there, 5) == DUET_OK && (p = duet_read(there)) && p[9] == 5, "%s",
          duet_error());
    CHECK((p = duet_read(copied)) && p[9] == 3, "%s", duet_error());
    duet_matrix **every[] = { &both, &there, &here, &copied, &empty, &pinned };
    for (int i = 0; i < 6; i++) duet_free(every[i]);
    duet_memory_trim();
    CHECK(fake_count().pinned == 0, "%d blocks are still pinned", fake_count().pinned);
    tap_point("after one card is lost the other one still works");
}

int main(int argc, char **argv)
{
    fake_devices(3);
    walk(is_quick(argc, argv) ? 150 : 600);
    memory_is_apart();
    streams_are_apart();
    recordings();
    every_call_fails();
    packed_operands_are_apart();
    lost_card();
    return tap_end();
}
