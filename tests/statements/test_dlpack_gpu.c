/* test_dlpack_gpu.c - memory of a GPU that Duet shares with another library: duet_wrap_device, and DLPack in
 * both directions, with the order of streams. The other library is this test: gpu_memory.h. Without a GPU the
 * test is skipped.
 *
 * -DFAKE_CUDA: with the fake CUDA, which runs work as late as possible. */
#include "dlpack_tensor.h"
#include "gpu_memory.h"
#include "matrix.h"
#include "quick.h"
#include "random_matrix.h"
#include <pthread.h>

static rng r;
static gpu_stream theirs;  /* the stream of the other library */
static int32_t our_device; /* CUDA's number of the GPU */

enum { N = 1000, BYTES = N * (int)sizeof(float) };

static float *their_memory(float start)
{
    void *p = NULL;
    float on_host[N];
    for (int i = 0; i < N; i++) on_host[i] = start + (float)i;
    CHECK(gpu_alloc_memory(&p, BYTES) && gpu_put(p, on_host, BYTES, theirs), "no memory of the GPU");
    return p;
}

/* Waits for their stream only. */
static bool memory_is(const void *p, float start, float factor, const char *what)
{
    float on_host[N];
    bool good = CHECK(gpu_get(on_host, p, BYTES, theirs), "%s cannot be read", what);
    for (int i = 0; i < N && good; i++)
        good = CHECK(on_host[i] == factor * (start + (float)i), "%s: element %d is %g, not %g", what, i,
                     (double)on_host[i], (double)(factor * (start + (float)i)));
    return good;
}

static bool matrix_is(duet_matrix *m, float start, float factor, const char *what)
{
    const float *p = duet_read(m);
    bool good = CHECK(p != NULL, "%s: %s", what, duet_error());
    for (int i = 0; i < N && good; i++)
        good = CHECK(p[i] == factor * (start + (float)i), "%s: element %d is %g, not %g", what, i,
                     (double)p[i], (double)(factor * (start + (float)i)));
    return good;
}

static duet_matrix *own_matrix(float start)
{
    duet_matrix *m = duet_new(DUET_F32, N);
    float *p = duet_overwrite(m);
    for (int i = 0; p && i < N; i++) p[i] = start + (float)i;
    return m;
}

/* ---- duet_wrap_device ---- */

static void test_wrap(void)
{
    float *p = their_memory(1);
    duet_matrix *m = duet_wrap_device(p, DUET_F32, N);
    CHECK(m && duet_device_read(m) == p, "%s", duet_error());
    matrix_is(m, 1, 1, "the wrapped memory");
    CHECK(duet_set_on(DUET_GPU, m, duet_mul(2, m)) == DUET_OK && duet_synchronize() == DUET_OK, "%s",
          duet_error());
    CHECK(duet_device_read(m) == p, "the buffer was replaced");
    memory_is(p, 1, 2, "a statement on the GPU");
    CHECK(duet_set_on(DUET_CPU, m, duet_mul(2, m)) == DUET_OK, "%s", duet_error());
    memory_is(p, 1, 2, "a statement on the CPU leaves the memory");
    CHECK(duet_device_read(m) == p && duet_synchronize() == DUET_OK, "%s", duet_error());
    memory_is(p, 1, 4, "until it is asked for");
    duet_matrix *half = duet_slice(m, 0, N / 2);
    duet_free(&m);
    CHECK(duet_set_on(DUET_GPU, half, duet_mul(1, half)) == DUET_OK, "%s", duet_error());
    duet_free(&half);
    memory_is(p, 1, 4, "the memory after the matrix was freed");
    CHECK(gpu_free_memory(p), "the library has freed the memory");
    tap_point("duet_wrap_device uses the memory where it is, and never frees it");
}

static void refuse_wrap(void *p, duet_dtype type, duet_status want, const char *text)
{
    duet_matrix *m = (duet_wrap_device_shape)(p, type, 1, (const int64_t[]){ 4 });
    CHECK(!m && duet_error_status() == want && strstr(duet_error(), text) &&
              strstr(duet_error(), "duet_wrap_device"),
          "\"%s\": status %d: %s", text, (int)duet_error_status(), duet_error());
    duet_free(&m);
}

static void test_wrap_errors(void)
{
    static float on_host[8];
    float *p = their_memory(0);
    refuse_wrap(NULL, DUET_F32, DUET_BAD_ARGUMENT, "must not be NULL");
    refuse_wrap(on_host, DUET_F32, DUET_BAD_ARGUMENT, "memory of a GPU");
    refuse_wrap((char *)p + 2, DUET_F32, DUET_BAD_ARGUMENT, "aligned");
    refuse_wrap(p + 1, DUET_C64, DUET_BAD_ARGUMENT, "aligned to 8 bytes");
    refuse_wrap(p, (duet_dtype)99, DUET_BAD_TYPE, "type (99)");
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("pointers that are not memory of a GPU are refused");
}

static void test_wrap_strided(void)
{
    float *p = their_memory(0);
    const int64_t size[] = { 3, 4 }, columns[] = { 1, 3 }, back[] = { -8, -2 }, zero[] = { 0, 1 },
                  windows[] = { 2, 1 };
    duet_matrix *m = duet_wrap_device_strided(p, DUET_F32, 2, size, columns), *n = duet_new(DUET_F32, 3, 4);
    CHECK(m && duet_set_on(DUET_GPU, n, m) == DUET_OK, "%s", duet_error());
    const float *q = duet_read(n);
    for (int i = 0; q && i < 12; i++) CHECK(q[i] == (float)(i / 4 + i % 4 * 3), "columns: element %d", i);
    duet_free(&m);
    m = duet_wrap_device_strided(p + 50, DUET_F32, 2, size, back);
    CHECK(m && duet_set_on(DUET_GPU, n, m) == DUET_OK, "%s", duet_error());
    q = duet_read(n);
    for (int i = 0; q && i < 12; i++)
        CHECK(q[i] == (float)(50 - i / 4 * 8 - i % 4 * 2), "backwards: element %d", i);
    duet_free(&m);
    m = duet_wrap_device_strided(p + 10, DUET_F32, 2, size, zero);
    CHECK(m && duet_set_on(DUET_GPU, n, m) == DUET_OK && duet_set_on(DUET_GPU, m, 1) == DUET_BAD_ARGUMENT,
          "%s", duet_error());
    q = duet_read(n);
    for (int i = 0; q && i < 12; i++) CHECK(q[i] == (float)(10 + i % 4), "repeated: element %d", i);
    duet_free(&m);
    m = duet_wrap_device_strided(p, DUET_F32, 2, size, windows);
    CHECK(m && duet_set_on(DUET_GPU, n, m) == DUET_OK && duet_set_on(DUET_GPU, m, 1) == DUET_BAD_ARGUMENT,
          "%s", duet_error());
    q = duet_read(n);
    for (int i = 0; q && i < 12; i++) CHECK(q[i] == (float)(i / 4 * 2 + i % 4), "overlapping: element %d", i);
    duet_free(&m, &n);
    memory_is(p, 0, 1, "the memory");
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("duet_wrap_device_strided");
}

/* ---- exports ---- */

static intptr_t their_number(void) { return (intptr_t)theirs; }

/* The consumer copies on its stream, which must wait for the statement. */
static void test_export_order(int trials)
{
    float *to = their_memory(0);
    duet_matrix *x = own_matrix(0), *y = duet_new(DUET_F32, N);
    for (int i = 1; i <= trials; i++) {
        const duet_dlpack_options o = { .place = DUET_GPU, .stream = their_number() };
        CHECK(duet_set_on(DUET_GPU, y, duet_mul(i, x)) == DUET_OK, "%s", duet_error());
        struct DLManagedTensorVersioned *t = duet_to_dlpack(y, &o);
        if (!CHECK(t && t->dl_tensor.device.device_type == kDLCUDA && t->flags == 1, "%s", duet_error()))
            break;
        CHECK(gpu_copy(to, t->dl_tensor.data, BYTES, theirs), "the consumer cannot read the memory");
        if (!memory_is(to, 0, (float)i, "the exported elements")) i = trials;
        t->deleter(t);
    }
    duet_free(&x, &y);
    CHECK(gpu_free_memory(to), "the memory");
    tap_point("the consumer's stream waits for the work of this thread");
}

/* The deleter runs while the consumer's stream still reads; afterwards others get memory of that size. */
static void test_export_end(int trials)
{
    float *to = their_memory(0);
    for (int i = 1; i <= trials; i++) {
        const duet_dlpack_options o = { .place = DUET_GPU, .stream = their_number() };
        duet_matrix *x = own_matrix((float)i), *y = duet_new(DUET_F32, N);
        CHECK(duet_set_on(DUET_GPU, y, duet_mul(2, x)) == DUET_OK, "%s", duet_error());
        struct DLManagedTensorVersioned *t = duet_to_dlpack(y, &o);
        if (!CHECK(t != NULL, "%s", duet_error())) break;
        duet_free(&y);
        for (int k = 0; k < 3; k++) {
            duet_matrix *other = duet_new(DUET_F32, N);
            CHECK(duet_set_on(DUET_GPU, other, duet_add(x, 5)) == DUET_OK, "%s", duet_error());
            duet_free(&other);
        }
        CHECK(gpu_be_slow(theirs) && gpu_copy(to, t->dl_tensor.data, BYTES, theirs),
              "the consumer cannot read");
        t->deleter(t);
        for (int k = 0; k < 3; k++) {
            duet_matrix *other = duet_new(DUET_F32, N);
            CHECK(duet_set_on(DUET_GPU, other, duet_add(x, 7)) == DUET_OK, "%s", duet_error());
            CHECK(duet_synchronize() == DUET_OK, "%s", duet_error());
            duet_free(&other);
        }
        memory_is(to, (float)i, 2, "what the consumer reads after the deleter");
        duet_free(&x);
    }
    CHECK(gpu_free_memory(to), "the memory");
    tap_point("exported memory is not used for others while the consumer's work runs");
}

static void test_export_write(void)
{
    float *from = their_memory(100);
    duet_matrix *x = own_matrix(0);
    const duet_dlpack_options o = { .place = DUET_GPU, .writable = 1, .stream = their_number() };
    struct DLManagedTensorVersioned *t = duet_to_dlpack(x, &o);
    CHECK(t && t->flags == 0, "%s", duet_error());
    matrix_is(x, 0, 1, "a copy on the host, before the consumer writes");
    CHECK(t && gpu_be_slow(theirs) && gpu_copy(t->dl_tensor.data, from, BYTES, theirs),
          "the consumer cannot write");
    duet_matrix *back =
        t ? duet_from_dlpack(t, their_number()) : NULL; /* they give it back, on their stream */
    CHECK(back && back->storage == x->storage, "%s", duet_error());
    matrix_is(back, 100, 1, "what the consumer has written");
    matrix_is(x, 100, 1, "the original");
    CHECK(duet_set_on(DUET_GPU, x, duet_mul(2, x)) == DUET_OK, "%s", duet_error());
    matrix_is(back, 100, 2, "the round trip is a view");
    duet_free(&x, &back);
    CHECK(gpu_free_memory(from), "the memory");
    tap_point("the consumer writes, and gives the tensor back");
}

static void test_export_places(void)
{
    duet_matrix *x = own_matrix(3), *y = duet_new(DUET_F32, N), *none = duet_new(DUET_F32, 0);
    CHECK(duet_dlpack_device(x).device_type == kDLCPU && duet_dlpack_device(y).device_type == kDLCPU,
          "the host");
    CHECK(duet_set_on(DUET_GPU, y, duet_mul(1, x)) == DUET_OK, "%s", duet_error());
    const DLDevice on = duet_dlpack_device(y);
    CHECK(on.device_type == kDLCUDA && on.device_id == our_device, "the GPU");
    CHECK(duet_dlpack_device(x).device_type == kDLCPU, "on both: the host");
    for (int k = 0; k < 3; k++) {
        const duet_dlpack_options o = { .place = (duet_place)k, .copy = k == 0, .stream = their_number() };
        struct DLManagedTensorVersioned *t = duet_to_dlpack(y, &o);
        const bool on_gpu = t && t->dl_tensor.device.device_type == kDLCUDA;
        CHECK(t && on_gpu == (k != DUET_CPU), "place %d: %s", k, duet_error());
        if (on_gpu) memory_is(t->dl_tensor.data, 3, 1, "the tensor");
        if (t) t->deleter(t);
    }
    const intptr_t streams[] = { 0, 1, 2, -1 };
    for (int k = 0; k < 4; k++) {
        const duet_dlpack_options o = { .place = DUET_GPU, .stream = streams[k] };
        struct DLManagedTensorVersioned *t = duet_to_dlpack(y, &o);
        CHECK(t != NULL, "stream %d: %s", (int)streams[k], duet_error());
        duet_matrix *m = t ? duet_from_dlpack(t, streams[k]) : NULL;
        matrix_is(m, 3, 1, "a default stream");
        duet_free(&m);
    }
    DUET_FORBID_TRANSFERS
    {
        const duet_dlpack_options o = { .place = DUET_CPU, .copy = 1 };
        struct DLManagedTensorVersioned *t = duet_to_dlpack(y, &o);
        CHECK(t != NULL, "%s", duet_error());
        if (t) t->deleter(t);
    }
    const duet_dlpack_options o = { .place = DUET_GPU };
    struct DLManagedTensorVersioned *t = duet_to_dlpack(none, &o);
    CHECK(t && !t->dl_tensor.data, "no elements: %s", duet_error());
    if (t) t->deleter(t);
    duet_free(&x, &y, &none);
    tap_point("places, and the streams that have numbers");
}

/* ---- imports ---- */

static void on_gpu(foreign *f, void *p)
{
    foreign_init(f, p, DUET_F32, 1, (const int64_t[]){ N }, NULL);
    f->versioned.dl_tensor.device = f->legacy.dl_tensor.device = (DLDevice){ kDLCUDA, our_device };
}

static void test_import_order(int trials)
{
    float *p = their_memory(0), *from = their_memory(50);
    duet_matrix *y = duet_new(DUET_F32, N);
    for (int i = 1; i <= trials; i++) {
        foreign f;
        const float *written = i % 2 ? from : p;
        on_gpu(&f, i % 2 ? p : from);
        CHECK(gpu_be_slow(theirs) && gpu_copy(f.memory, written, BYTES, theirs), "the producer cannot write");
        duet_matrix *m = duet_from_dlpack(&f.versioned, their_number());
        CHECK(m && duet_set_on(DUET_GPU, y, duet_mul(i, m)) == DUET_OK, "%s", duet_error());
        if (!matrix_is(y, 50, (float)i, "the imported elements")) i = trials;
        duet_free(&m);
        CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    }
    duet_free(&y);
    CHECK(gpu_free_memory(p) && gpu_free_memory(from), "the memory");
    tap_point("work on an imported tensor waits for the producer's stream");
}

static void *use_elsewhere(void *m)
{
    duet_matrix *y = duet_new(DUET_F32, N);
    CHECK(duet_set_on(DUET_GPU, y, duet_mul(3, (duet_matrix *)m)) == DUET_OK, "%s", duet_error());
    matrix_is(y, 50, 3, "another thread");
    duet_free(&y);
    return NULL;
}

static void test_import_threads(int trials)
{
    float *p = their_memory(0), *from = their_memory(50), *zero = their_memory(0);
    for (int i = 0; i < trials; i++) {
        pthread_t t[2];
        foreign f;
        on_gpu(&f, p);
        f.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
        CHECK(gpu_copy(p, zero, BYTES, theirs) && gpu_wait_for(theirs), "the producer");
        CHECK(gpu_be_slow(theirs) && gpu_copy(p, from, BYTES, theirs), "the producer cannot write");
        duet_matrix *m = duet_from_dlpack(&f.versioned, their_number());
        for (int k = 0; k < 2; k++) pthread_create(&t[k], NULL, use_elsewhere, m);
        for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
        CHECK(duet_set_on(DUET_GPU, m, 1) == DUET_BAD_ARGUMENT && strstr(duet_error(), "must not be written"),
              "%s", duet_error());
        duet_free(&m);
        CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    }
    CHECK(gpu_free_memory(p) && gpu_free_memory(from) && gpu_free_memory(zero), "the memory");
    tap_point("so does the work of other threads");
}

/* In the deleter, all work of the library is done. */
static void look(foreign *f) { memory_is(f->memory, 50, *(float *)f->arg, "the memory in the deleter"); }

static void test_import_end(int trials)
{
    float factor = 0;
    duet_matrix *x = own_matrix(50);
    float *p = their_memory(0);
    for (int i = 1; i <= trials; i++) {
        foreign f;
        on_gpu(&f, p);
        f.at_deletion = look;
        f.arg = &factor;
        factor = (float)i;
        duet_matrix *m = i % 2 ? duet_from_dlpack(&f.versioned, DUET_DLPACK_NO_SYNC)
                               : duet_from_dlpack_legacy(&f.legacy, DUET_DLPACK_NO_SYNC);
        CHECK(m && duet_set_on(DUET_GPU, m, duet_mul(i, x)) == DUET_OK, "%s", duet_error());
        if (i % 3 == 0) matrix_is(m, 50, factor, "the written tensor");
        duet_free(&m);
        CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    }
    duet_free(&x);
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("the deleter is called when all work on the memory is done");
}

static void refuse_import(foreign *f, duet_status want, const char *text)
{
    duet_matrix *m = duet_from_dlpack(&f->versioned, DUET_DLPACK_NO_SYNC);
    CHECK(!m && duet_error_status() == want && strstr(duet_error(), text), "\"%s\": status %d: %s", text,
          (int)duet_error_status(), duet_error());
    CHECK(f->deleted == 0, "deleted %d times", f->deleted);
    duet_free(&m);
}

static void test_import_errors(void)
{
    static float on_host[N];
    float *p = their_memory(1);
    foreign f;
    on_gpu(&f, p);
    f.versioned.dl_tensor.device.device_id = 99;
    refuse_import(&f, DUET_NO_DEVICE, "device 99");
    on_gpu(&f, on_host);
    refuse_import(&f, DUET_BAD_ARGUMENT, "memory of a GPU");
    on_gpu(&f, p), f.versioned.dl_tensor.byte_offset = 2;
    refuse_import(&f, DUET_BAD_ARGUMENT, "aligned");
    on_gpu(&f, p), f.versioned.dl_tensor.data = NULL;
    refuse_import(&f, DUET_BAD_ARGUMENT, "data");
    on_gpu(&f, p), f.shape[0] = 4, f.versioned.dl_tensor.dtype = (DLDataType){ kDLComplex, 64, 1 };
    f.versioned.dl_tensor.byte_offset = 4;
    refuse_import(&f, DUET_BAD_ARGUMENT, "aligned to 8 bytes");
    on_gpu(&f, p), f.versioned.dl_tensor.device.device_type = kDLROCM;
    refuse_import(&f, DUET_UNSUPPORTED, "ROCm");
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("tensors that are not memory of the GPU are refused");
}

/* ---- little memory ---- */

/* Wrapped and exported buffers stay where they are while those of others are freed for new ones. */
static void test_pressure(void)
{
    enum { OTHERS = 12 };
    float *p = their_memory(1);
    duet_matrix *m = duet_wrap_device(p, DUET_F32, N), *x = own_matrix(2), *y = duet_new(DUET_F32, N),
                *other[OTHERS];
    const duet_dlpack_options o = { .place = DUET_GPU, .stream = their_number() };
    struct DLManagedTensorVersioned *t = duet_to_dlpack(x, &o);
    const void *exported = t ? t->dl_tensor.data : NULL;
    const uint64_t before = duet_stats().evictions;
    CHECK(m && t, "%s", duet_error());
    CHECK(duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used + 4 * 8192) == DUET_OK, "%s",
          duet_error());
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < OTHERS; i++) {
            if (turn == 0) other[i] = own_matrix((float)i);
            CHECK(duet_set_on(DUET_GPU, other[i], duet_mul(1, other[i])) == DUET_OK, "%s", duet_error());
            if (i == 1)
                CHECK(duet_set_on(DUET_GPU, y, x) == DUET_OK, "%s", duet_error()); /* ends other loans */
        }
    CHECK(duet_stats().evictions > before, "no buffer was freed");
    CHECK(duet_device_read(m) == p && duet_device_read(x) == exported, "a buffer was replaced");
    memory_is(p, 1, 1, "the wrapped memory");
    memory_is(exported, 2, 1, "the exported memory");
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
    for (int i = 0; i < OTHERS; i++) duet_free(&other[i]);
    if (t) t->deleter(t);
    duet_free(&m, &x, &y);
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("with little memory, buffers of others and exported ones stay");
}

/* ---- repeated statements and recordings ---- */

static void test_replay(void)
{
    float *p = their_memory(1);
    duet_matrix *m = duet_wrap_device(p, DUET_F32, N), *y = duet_new(DUET_F32, N);
    duet_recording *rec = NULL;
    DUET_ON(DUET_GPU)
    {
        CHECK(duet_record_begin() == DUET_OK && duet_set(y, duet_mul(2, m)) == DUET_OK &&
                  duet_set(m, duet_mul(0.5, y)) == DUET_OK,
              "%s", duet_error());
        rec = duet_record_end();
        for (int i = 0; i < 5; i++) CHECK(rec && duet_replay(rec) == DUET_OK, "%s", duet_error());
        for (int i = 0; i < 40; i++) /* repeated until they are replayed automatically */
            CHECK(duet_set(y, duet_mul(2, m)) == DUET_OK && duet_set(m, duet_mul(0.5, y)) == DUET_OK, "%s",
                  duet_error());
    }
    CHECK(duet_synchronize() == DUET_OK && duet_device_read(m) == p, "%s", duet_error());
    memory_is(p, 1, 1, "the memory after replays");
    matrix_is(y, 1, 2, "the result of replays");
    duet_recording_free(&rec);
    duet_free(&m, &y);
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("recordings and automatic replay use wrapped memory");
}

/* ---- a second GPU ---- */

#ifdef FAKE_CUDA
int cudaSetDevice(int device);
int cudaGetDevice(int *device);

/* Memory of the second card, which a thread uses that works there, and one that works on the first. */
static void test_second(void)
{
    enum { SECOND_GPU = DEFAULT_GPU + 1 };
    foreign f;
    gpu_stream there;
    void *p = NULL;
    float on_host[N];
    int current = -1;
    for (int i = 0; i < N; i++) on_host[i] = (float)i;
    CHECK(!cudaSetDevice(1) && gpu_new_stream(&there) && gpu_alloc_memory(&p, BYTES) &&
              gpu_put(p, on_host, BYTES, there) && !cudaSetDevice(0),
          "no memory of the second card");
    duet_matrix *x = own_matrix(1), *m = duet_wrap_device(p, DUET_F32, N);
    CHECK(m && storage_valid(m->storage) == 1u << SECOND_GPU, "%s", duet_error());
    CHECK(duet_dlpack_device(m).device_id == 1, "device %d", (int)duet_dlpack_device(m).device_id);
    CHECK(duet_set_on(DUET_GPU, x, duet_mul(2, m)) == DUET_OK, "%s", duet_error()); /* on the first card */
    matrix_is(x, 0, 2, "the elements of the second card");
    CHECK(thread_use_gpu(SECOND_GPU) == DUET_OK && duet_device_read(m) == p, "%s", duet_error());
    CHECK(duet_set_on(DUET_GPU, m, duet_mul(3, m)) == DUET_OK, "%s", duet_error());
    struct DLManagedTensorVersioned *t = duet_to_dlpack(m, NULL);
    CHECK(t && t->dl_tensor.data == p && t->dl_tensor.device.device_id == 1, "%s", duet_error());
    if (t) t->deleter(t);
    CHECK(thread_use_gpu(DEFAULT_GPU) == DUET_OK, "%s", duet_error());
    duet_free(&m, &x);
    foreign_init(&f, p, DUET_F32, 1, (const int64_t[]){ N }, NULL);
    f.versioned.dl_tensor.device = (DLDevice){ kDLCUDA, 0 };
    m = duet_from_dlpack(&f.versioned, DUET_DLPACK_NO_SYNC);
    CHECK(!m && duet_error_status() == DUET_BAD_ARGUMENT && strstr(duet_error(), "device 1, not on 0"), "%s",
          duet_error());
    f.versioned.dl_tensor.device.device_id = 1;
    m = duet_from_dlpack(&f.versioned, (intptr_t)there);
    matrix_is(m, 0, 3, "a tensor of the second card");
    duet_free(&m);
    CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    CHECK(!cudaGetDevice(&current) && current == 0, "the caller's card is now %d", current);
    CHECK(gpu_free_memory(p), "the memory");
    tap_point("memory of a second GPU");
}
#else
static void test_second(void) {}
#endif

/* ---- the exchange table ---- */

static void no_error(void *ctx, const char *kind, const char *message)
{
    CHECK(false, "%s: %s", kind, message);
}

static void test_table(void)
{
    const struct DLPackExchangeAPI *x = duet_dlpack_exchange();
    int64_t sizes[] = { N };
    DLTensor like = { NULL, { kDLCUDA, our_device }, 1, { kDLFloat, 32, 1 }, sizes, NULL, 0 };
    struct DLManagedTensorVersioned *t = NULL;
    void *stream = NULL;
    CHECK(x->managed_tensor_allocator(&like, &t, NULL, no_error) == 0 && t, "%s", duet_error());
    CHECK(x->current_work_stream(kDLCUDA, our_device, &stream) == 0 && stream == duet_stream(), "%s",
          duet_error());
    CHECK(x->current_work_stream(kDLCUDA, 99, &stream) == -1, "device 99");
    float *from = their_memory(8);
    CHECK(t && gpu_copy(t->dl_tensor.data, from, BYTES, theirs), "the consumer cannot write");
    duet_matrix *m = t ? duet_from_dlpack(t, their_number()) : NULL;
    matrix_is(m, 8, 1, "an allocated tensor");
    duet_free(&m);
    CHECK(gpu_free_memory(from), "the memory");
    tap_point("the exchange table on a GPU");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 10, 30);
    r = rng_new(1);
#ifdef FAKE_CUDA
    fake_devices(2);
#endif
    duet_matrix *m = duet_new(DUET_F32, 1);
    if (!duet_device_read(m) || !gpu_open()) {
        puts("1..0 # SKIP there is no GPU");
        duet_free(&m);
        return 0;
    }
    our_device = 0;
    CHECK(duet_set_on(DUET_GPU, m, 1) == DUET_OK, "%s", duet_error());
    our_device = duet_dlpack_device(m).device_id;
    duet_free(&m);
    CHECK(gpu_new_stream(&theirs), "no stream");
    test_wrap();
    test_wrap_errors();
    test_wrap_strided();
    test_export_order(trials);
    test_export_end(trials);
    test_export_write();
    test_export_places();
    test_import_order(trials);
    test_import_threads(trials);
    test_import_end(trials);
    test_import_errors();
    test_pressure();
    test_replay();
    test_second();
    test_table();
    return tap_end();
}
