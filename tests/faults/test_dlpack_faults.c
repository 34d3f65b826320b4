/* test_dlpack_faults.c - exchanges by DLPack, and wrapped memory, while every allocation and every call of
 * the fake CUDA fails once. Each deleter is called once if its tensor was taken, and never if it was not; no
 * matrix is left; the memory of others is not freed. */
#define FAKE_CUDA
#include "dlpack_tensor.h"
#include "failing_alloc.h"
#include "gpu_memory.h"
#include "in_thread.h"

enum { N = 64 };

static double on_host[N];
static float *on_gpu;
static int refused; /* calls that failed */

/* Counts a failure, which must have a text. */
static bool went(bool ok)
{
    if (ok) return true;
    refused++;
    CHECK(*duet_error() != 0, "a failure without a text");
    return false;
}

static void use(duet_matrix *m, duet_place place, bool writable)
{
    duet_matrix *y = duet_new_shape(duet_type(m), 1, (const int64_t[]){ N });
    if (went(y)) went(duet_set_on(place, y, duet_add(m, 1)) == DUET_OK);
    if (writable) went(duet_set_on(place, m, 2) == DUET_OK);
    duet_free(&y);
}

static duet_matrix *some_matrix(duet_place place)
{
    duet_matrix *m = duet_new(DUET_F32, N);
    if (went(m) && went(duet_set_on(place, m, 3) == DUET_OK)) return m;
    duet_free(&m);
    return NULL;
}

static void round_trip(duet_dlpack_options o)
{
    duet_matrix *m = some_matrix(o.place);
    struct DLManagedTensorVersioned *t = m ? duet_to_dlpack(m, &o) : NULL;
    if (m) went(t);
    duet_free(&m);
    if (!t) return;
    m = duet_from_dlpack(t, o.stream);
    if (went(m)) use(m, o.place, o.writable || o.copy);
    else t->deleter(t);
    duet_free(&m);
}

static void round_trip_legacy(duet_place place)
{
    const duet_dlpack_options o = { .place = place };
    duet_matrix *m = some_matrix(place);
    DLManagedTensor *t = m ? duet_to_dlpack_legacy(m, &o) : NULL;
    if (m) went(t);
    duet_free(&m);
    if (t) t->deleter(t);
}

static void import(duet_place place, bool legacy, intptr_t stream)
{
    foreign f;
    const bool gpu = place == DUET_GPU;
    foreign_init(&f, gpu ? (void *)on_gpu : on_host, gpu ? DUET_F32 : DUET_F64, 1, (const int64_t[]){ N },
                 NULL);
    if (gpu) f.versioned.dl_tensor.device = f.legacy.dl_tensor.device = (DLDevice){ kDLCUDA, 0 };
    duet_matrix *m =
        legacy ? duet_from_dlpack_legacy(&f.legacy, stream) : duet_from_dlpack(&f.versioned, stream);
    const bool taken = went(m);
    if (taken) use(m, place, true);
    duet_matrix *v = taken ? duet_flipped(m, 0) : NULL;
    if (taken) went(v);
    duet_free(&m);
    if (v) use(v, DUET_CPU, true);
    duet_free(&v);
    CHECK(f.deleted == taken, "deleted %d times, %staken", f.deleted, taken ? "" : "not ");
}

static void wrap(void)
{
    const int64_t size[] = { 4, 4 }, columns[] = { 1, 4 };
    duet_matrix *made[] = { duet_wrap_device(on_gpu, DUET_F32, N), duet_wrap_const(on_host, DUET_F64, N),
                            duet_wrap_device_strided(on_gpu, DUET_F32, 2, size, columns),
                            duet_wrap_const_strided(on_host, DUET_F64, 2, size, columns) };
    for (int k = 0; k < 4; k++) {
        if (went(made[k]) && k == 0) use(made[k], DUET_GPU, true);
        duet_free(&made[k]);
    }
}

static void no_text(void *ctx, const char *kind, const char *message)
{
    refused++;
    CHECK(*kind && *message, "a failure without a text");
}

static void allocate(DLDeviceType type)
{
    int64_t size = N;
    DLTensor like = { NULL, { type, 0 }, 1, { kDLFloat, 32, 1 }, &size, NULL, 0 };
    struct DLManagedTensorVersioned *t;
    void *stream;
    if (duet_dlpack_exchange()->managed_tensor_allocator(&like, &t, NULL, no_text) == 0) t->deleter(t);
    went(duet_dlpack_exchange()->current_work_stream(type, 0, &stream) == 0);
}

static void *scene(void *arg)
{
    for (int k = 1; k <= 2; k++) {
        round_trip((duet_dlpack_options){ .place = (duet_place)k });
        round_trip(
            (duet_dlpack_options){ .place = (duet_place)k, .writable = 1, .stream = DUET_DLPACK_NO_SYNC });
        round_trip((duet_dlpack_options){ .place = (duet_place)k, .copy = 1, .stream = 1 });
        round_trip_legacy((duet_place)k);
        import((duet_place)k, false, DUET_DLPACK_LEGACY);
        import((duet_place)k, true, DUET_DLPACK_NO_SYNC);
    }
    wrap();
    allocate(kDLCPU);
    allocate(kDLCUDA);
    return arg;
}

/* Their memory is not freed, whatever happens. */
static void look(int64_t n)
{
    float copy[N];
    gpu_stream s = NULL;
    CHECK(gpu_new_stream(&s) && gpu_get(copy, on_gpu, sizeof copy, s), "failure %d: their memory was freed",
          (int)n);
    CHECK(duet_live(NULL) == 0, "failure %d: %d matrices are left", (int)n, (int)duet_live(NULL));
}

static void every_allocation(bool for_good)
{
    const int before = refused;
    for (int64_t n = 0;; n++) {
        fail_in = n;
        fail_for_good = for_good;
        scene(NULL);
        const bool reached = fail_in < 0;
        fail_in = -1;
        fail_for_good = false;
        look(n);
        if (!reached) break;
    }
    CHECK(refused > before, "no allocation made a call fail");
    tap_point(for_good ? "from each allocation on, all fail" : "each allocation fails once");
}

static void every_call(void)
{
    const int before = refused;
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        fake_fail(n);
        scene(NULL);
        reached = fake_failed();
        fake_fail(0);
        (void)!duet_synchronize();
        look((int64_t)n);
    }
    CHECK(refused > before, "no call of CUDA made a call fail");
    tap_point("each call of CUDA fails once");
}

/* What is allocated for exchanges is freed: repetitions leave as much as before. */
static void no_leaks(void)
{
    for (int i = 0; i < 20; i++) scene(NULL);
    const int64_t before = live;
    for (int i = 0; i < 50; i++) scene(NULL);
    CHECK(live <= before, "%d blocks more", (int)(live - before));
    tap_point("exchanges leave no memory behind");
}

/* The GPU is lost while others have its memory, and is started again. */
static void lost(void)
{
    foreign f;
    duet_matrix *x = some_matrix(DUET_GPU);
    const duet_dlpack_options o = { .place = DUET_GPU, .writable = 1 };
    struct DLManagedTensorVersioned *t = duet_to_dlpack(x, &o);
    duet_matrix *w = duet_wrap_device(on_gpu, DUET_F32, N);
    foreign_init(&f, on_gpu, DUET_F32, 1, (const int64_t[]){ N }, NULL);
    f.versioned.dl_tensor.device = (DLDevice){ kDLCUDA, 0 };
    duet_matrix *m = duet_from_dlpack(&f.versioned, DUET_DLPACK_NO_SYNC);
    CHECK(x && t && w && m, "%s", duet_error());
    fake_lost();
    CHECK(duet_synchronize() == DUET_DEVICE_ERROR && duet_recover() == DUET_OK, "%s", duet_error());
    CHECK(!duet_read(w) && duet_error_status() == DUET_UNKNOWN, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, w, 5) == DUET_OK && duet_read(w) && ((const float *)duet_read(w))[9] == 5,
          "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, m, 6) == DUET_OK && duet_set_on(DUET_GPU, x, 7) == DUET_OK, "%s",
          duet_error());
    duet_free(&m, &w, &x);
    CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    if (t) t->deleter(t);
    CHECK(duet_live(NULL) == 0 && duet_synchronize() == DUET_OK, "%s", duet_error());
    scene(NULL);
    tap_point("the GPU is lost: wrapped memory is gone with it, and the matrices can be written again");
}

static void *first(void *arg)
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    void *p = NULL;
    CHECK(duet_device_read(m) && gpu_alloc_memory(&p, N * sizeof(float)), "%s", duet_error());
    on_gpu = p;
    duet_free(&m);
    return arg;
}

int main(void)
{
    run_in_thread(first, NULL);
    scene(NULL);
    CHECK(refused == 0, "%s", duet_error());
    tap_point("the exchanges");
    no_leaks();
    every_call();
    every_allocation(false);
    every_allocation(true);
    void *p = NULL;
    CHECK(gpu_free_memory(on_gpu) && gpu_alloc_memory(&p, N * sizeof(float)), "their memory");
    on_gpu = p;
    lost();
    return tap_end();
}
