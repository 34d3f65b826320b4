/* test_gpu_faults.c - failures of the GPU machine on the fake CUDA: every call fails once, memory
 * is short, the card is lost, replaced or absent. It also tests that the fake is strict. Tests that
 * need a new process run in a child. */
#include "fake_cuda.h"
#include "pool.h"
#include "reduce_order.h"
#include "tap.h"
#include "tensor.h"
#include "thread.h"
#include "vendor.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cudnn.h> /* names of algorithms */

enum { SECOND_GPU = DEFAULT_GPU + 1 };

static size_t keeps_nothing(int device, size_t bytes) { return 0; }
static const machine no_host = { .spare = keeps_nothing }; /* only the pool uses it */
const device_entry devices[DEVICES_MAX] = {
    [HOST] = { &no_host }, [DEFAULT_GPU] = { &gpu_machine }, [SECOND_GPU] = { &gpu_machine, 1 }
};

static bool ran(duet_status s, const char *what) { return CHECK(s == DUET_OK, "%s: %s", what, duet_error()); }

/* Runs a test in a child process in which nothing is open. Its failed checks count here. */
static void in_child(void (*test)(void), const char *name)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        tap_failures = 0;
        test();
        fflush(stdout);
        _exit(tap_failures > 0 || tap_checks == 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "%s: the child ended with %d", name, status);
    tap_point(name);
}

/* ---- an upload, a copied operand, a product, a convolution, a reduction with scratch memory, a
 * download ---- */

enum { SIDE = 6, LONG = 5000 };

typedef struct scene {
    tensor a, b, sum, line, out, image, filter, seen;
    step conv;
} scene;

static step product_step(const scene *w)
{
    return (step){ .kernel = OP_matmul,
                   .outs = 1,
                   .ins = 3,
                   .out = { { 0, w->out.at } },
                   .in = { { 1, w->a.at }, { 2, w->b.at }, { 3, w->sum.at } } };
}

static step reduce_step(const scene *w)
{
    static const program sum = { .length = 2,
                                 .inputs = 1,
                                 .outputs = 1,
                                 .reductions = true,
                                 .code = { { OP_LOAD, DUET_F32, { { FROM_INPUT, 0 } } },
                                           { OP_sum, DUET_F32, { { FROM_ACC, 0 } } } } };
    step s = { .kernel = KERNEL_PROGRAM,
               .outs = 1,
               .ins = 1,
               .inner = 1,
               .in = { { 1, w->line.at } },
               .program = &sum };
    s.out[0].at = w->line.at;
    s.out[0].at.stride[0] = 0;
    return s;
}

static duet_status play(scene *w, int queue)
{
    step s = product_step(w), reduction = reduce_step(w);
    void *const data[] = { tensor_data(&w->out), tensor_data(&w->a), tensor_data(&w->b),
                           tensor_data(&w->sum) };
    TRY(gpu_machine.run(&s, &(frame){ data, NULL, queue, DEFAULT_GPU }));
    void *const images[] = { tensor_data(&w->seen), tensor_data(&w->image), tensor_data(&w->filter) };
    TRY(gpu_machine.run(&w->conv, &(frame){ images, NULL, queue, DEFAULT_GPU }));
    TRY(gpu_machine.wait(DEFAULT_GPU, queue + 1, DEFAULT_GPU, queue));
    void *const lines[] = { tensor_data(&w->sum), tensor_data(&w->line) };
    TRY(gpu_machine.run(&reduction, &(frame){ lines, NULL, queue + 1, DEFAULT_GPU }));
    TRY(tensor_fetch(&w->out, queue));
    TRY(tensor_fetch(&w->seen, queue));
    return tensor_fetch(&w->sum, queue + 1);
}

static duet_status set_scene(scene *w, int queue)
{
    static const int64_t square[] = { SIDE, SIDE }, line[] = { LONG }, image[] = { 1, 2, SIDE, SIDE },
                         filter[] = { 3, 2, 3, 3 }, seen[] = { 1, 3, SIDE, SIDE };
    *w = (scene){ 0 };
    TRY(tensor_new(&w->a, DUET_F32, 2, square, GAPS, queue));
    TRY(tensor_new(&w->b, DUET_F32, 2, square, COLUMNS, queue));
    TRY(tensor_new(&w->sum, DUET_F32, 2, square, ROWS, queue));
    TRY(tensor_new(&w->out, DUET_F32, 2, square, ROWS, queue));
    TRY(tensor_new(&w->line, DUET_F32, 1, line, ROWS, queue));
    TRY(tensor_new(&w->image, DUET_F32, 4, image, GAPS, queue));
    TRY(tensor_new(&w->filter, DUET_F32, 4, filter, ROWS, queue));
    TRY(tensor_new(&w->seen, DUET_F32, 4, seen, ROWS, queue));
    w->conv =
        (step){ .kernel = OP_conv2d,
                .outs = 1,
                .ins = 2,
                .out = { { 0, w->seen.at } },
                .in = { { 1, w->image.at }, { 2, w->filter.at } },
                .attr.conv = { .stride = { 1, 1 }, .pad = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 } };
    return DUET_OK;
}

static void clear_scene(scene *w)
{
    tensor *all[] = { &w->a, &w->b, &w->sum, &w->line, &w->out, &w->image, &w->filter, &w->seen };
    gpu_machine.forget(&w->conv);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_free(all[i]);
}

static double product_at(const scene *w, const double *addend, int64_t i, int64_t j)
{
    double s = addend[i * SIDE + j];
    for (int64_t k = 0; k < SIDE; k++) s += *tensor_at(&w->a, i, k, 0, 0) * *tensor_at(&w->b, k, j, 0, 0);
    return s;
}

static double seen_at(const scene *w, int64_t m, int64_t i, int64_t j)
{
    double s = 0;
    for (int64_t c = 0; c < 2; c++)
        for (int64_t u = 0; u < 3; u++)
            for (int64_t v = 0; v < 3; v++) {
                int64_t y = i + u - 1, x = j + v - 1;
                if (y >= 0 && y < SIDE && x >= 0 && x < SIDE)
                    s += *tensor_at(&w->image, 0, c, y, x) * *tensor_at(&w->filter, m, c, u, v);
            }
    return s;
}

static bool near(double got, double want) { return fabs(got - want) <= 1e-3 + 1e-5 * fabs(want); }

/* State before the scene, which must be restored after it. */
typedef struct before {
    double addend[SIDE * SIDE], total;
} before;

static before look_before(const scene *w)
{
    before b = { .total = 0 };
    memcpy(b.addend, w->sum.value, sizeof b.addend);
    for (int64_t i = 0; i < LONG; i++) b.total += *tensor_at(&w->line, i, 0, 0, 0);
    return b;
}

static void compare(const scene *w, const before *b, const char *name)
{
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t j = 0; j < SIDE; j++) {
            CHECK(near(*tensor_at(&w->out, i, j, 0, 0), product_at(w, b->addend, i, j)),
                  "%s: element [%d,%d] of the product is wrong", name, (int)i, (int)j);
            for (int64_t m = 0; m < 3; m++)
                CHECK(near(*tensor_at(&w->seen, 0, m, i, j), seen_at(w, m, i, j)),
                      "%s: element [%d,%d,%d] of the image is wrong", name, (int)m, (int)i, (int)j);
        }
    CHECK(near(w->sum.value[0], b->total), "%s: sum %g, want %g", name, w->sum.value[0], b->total);
}

static duet_status play_and_compare(scene *w, int queue, const char *name)
{
    const before b = look_before(w);
    TRY(play(w, queue));
    compare(w, &b, name);
    return DUET_OK;
}

/* ---- every call fails once ---- */

static uint64_t failing; /* number of the call */

/* Starting with nothing open, the n-th call fails; a second attempt must succeed. */
static void fail_cold(void)
{
    scene w = { 0 };
    /* a small workspace, because there are many children */
    ran(duet_memory_limit(DUET_GPU, 16 << 20), "limit");
    fake_fail(failing);
    if (gpu_machine.absent(DEFAULT_GPU)) { /* a process looks for a GPU once, so this failure is permanent */
        CHECK(fake_failed() && gpu_machine.run(&w.conv, &(frame){ .device = DEFAULT_GPU }) != DUET_OK,
              "a machine without GPU did not fail");
        return;
    }
    duet_status s = set_scene(&w, 0);
    if (s == DUET_OK) s = play_and_compare(&w, 0, "one failure");
    CHECK(s == DUET_OK || (fake_failed() && *duet_error()),
          "status %d without a failed call or without an error text: %s", s, duet_error());
    CHECK(fake_failed() || s == DUET_OK, "no call failed, but the statement did: %s", duet_error());
    bool was_last = !fake_failed();
    fake_fail(0);
    clear_scene(&w);
    for (int queue = 0; queue <= 2; queue += 2) {
        if (ran(set_scene(&w, queue), "afterwards"))
            ran(play_and_compare(&w, queue, "afterwards"), "afterwards");
        clear_scene(&w);
    }
    CHECK(fake_count().handles == 7, "there are %d handles, not those of two queues", fake_count().handles);
    size_t used = duet_memory_of(DUET_GPU).used;
    CHECK(used == 2 << 20, "%zu bytes are used, not two workspaces of a sixteenth of the limit", used);
    duet_memory_trim();
    if (was_last) _exit(77);
}

static void test_cold_failures(void)
{
    int status = 0;
    for (failing = 1; failing < 1000 && !(WIFEXITED(status) && WEXITSTATUS(status) == 77); failing++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            tap_failures = 0;
            fail_cold();
            fflush(stdout);
            _exit(tap_failures > 0);
        }
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77),
              "call %d: status %x", (int)failing, status);
    }
    printf("# %d calls from nothing\n", (int)failing - 2);
    CHECK(failing < 1000, "there are more than 1000 calls that can fail");
    tap_point("every CUDA call fails once before libraries are loaded");
}

/* With everything open; in addition nothing may leak. */
static void test_warm_failures(void)
{
    scene w;
    uint64_t n;
    ran(set_scene(&w, 0), "scene");
    ran(play(&w, 0), "play");
    clear_scene(&w);
    duet_memory_trim();
    fake_counts start = fake_count();
    size_t used = duet_memory_of(DUET_GPU).used;
    for (n = 1; n < 1000; n++) {
        ran(set_scene(&w, 0), "scene");
        fake_fail(n);
        duet_status s = play_and_compare(&w, 0, "one failure");
        bool hit = fake_failed();
        fake_fail(0);
        CHECK(hit ? s == DUET_OK || *duet_error() : s == DUET_OK, "call %d: status %d, %s", (int)n, s,
              duet_error());
        ran(gpu_machine.sync(DEFAULT_GPU, 0), "sync without a GPU did not fail");
        ran(gpu_machine.sync(DEFAULT_GPU, 1), "sync without a GPU did not fail");
        clear_scene(&w);
        duet_memory_trim();
        fake_counts now = fake_count();
        CHECK(now.memory == start.memory, "call %d leaks %zd bytes", (int)n,
              (ssize_t)(now.memory - start.memory));
        CHECK(now.handles == start.handles, "call %d leaks %d handles", (int)n, now.handles - start.handles);
        CHECK(duet_memory_of(DUET_GPU).used == used, "call %d leaves %zu bytes in use, not %zu", (int)n,
              duet_memory_of(DUET_GPU).used, used);
        if (!hit) break;
    }
    printf("# %d calls\n", (int)n - 1);
    CHECK(n > 20 && n < 1000, "%d calls", (int)n);
    tap_point("every CUDA call fails once after libraries are loaded");
}

/* ---- lost, other and absent cards ---- */

static void lost(void)
{
    scene w;
    ran(set_scene(&w, 0), "scene");
    ran(play(&w, 0), "play");
    fake_lost();
    CHECK(play(&w, 0) == DUET_DEVICE_ERROR && strstr(duet_error(), "cudaErrorIllegalAddress"), "%s",
          duet_error());
    CHECK(gpu_machine.absent(DEFAULT_GPU) && strstr(gpu_machine.absent(DEFAULT_GPU), "lost"),
          "absent says: %s", gpu_machine.absent(DEFAULT_GPU));
    CHECK(play(&w, 0) == DUET_NO_DEVICE && strstr(duet_error(), "lost"), "%s", duet_error());
    CHECK(gpu_machine.sync(DEFAULT_GPU, 0) == DUET_NO_DEVICE, "sync without a GPU did not fail");
    CHECK(!gpu_machine.stream(DEFAULT_GPU, 5), "stream without a GPU did not fail");
    CHECK(!gpu_machine.unsupported_reason(&w.conv),
          "a step is not supported, although the GPU may be recovered");
    clear_scene(&w); /* memory of the lost card is not freed; nothing may crash */
}

static void second_card(void)
{
    scene w;
    int current = -1;
    setenv("DUET_DEVICE", "1", 1);
    fake_devices(2);
    ran(set_scene(&w, 0), "scene");
    ran(play_and_compare(&w, 0, "second GPU"), "play");
    clear_scene(&w);
    CHECK(cudaGetDevice(&current) == cudaSuccess && current == 0, "the caller's device is %d", current);
    void *p = NULL;
    CHECK(cudaMalloc(&p, 4) == cudaSuccess, "cudaMalloc on the first GPU failed");
    CHECK(gpu_machine.clear(DEFAULT_GPU, p, 4, 0) == DUET_DEVICE_ERROR,
          "clearing memory of another GPU did not fail");
}

static void no_card(void)
{
    fake_devices(0);
    CHECK(gpu_machine.absent(DEFAULT_GPU) && strstr(gpu_machine.absent(DEFAULT_GPU), "no device"), "%s",
          gpu_machine.absent(DEFAULT_GPU));
    void *p;
    CHECK(gpu_machine.alloc(DEFAULT_GPU, 4, &p) == DUET_NO_DEVICE && !p, "alloc without a GPU did not fail");
}

static void old_card(void)
{
    fake_capability(0, 75);
    CHECK(gpu_machine.absent(DEFAULT_GPU) && strstr(gpu_machine.absent(DEFAULT_GPU), "7.5"), "%s",
          gpu_machine.absent(DEFAULT_GPU));
}

static void two_old_cards(void)
{
    fake_devices(2);
    fake_capability(1, 75);
    old_card();
    CHECK(gpu_machine.absent(SECOND_GPU) && strstr(gpu_machine.absent(SECOND_GPU), "7.5"), "%s",
          gpu_machine.absent(SECOND_GPU));
}

static void two_kinds_of_cards(void)
{
    fake_devices(2);
    fake_capability(1, 100);
    CHECK(!gpu_machine.absent(DEFAULT_GPU), "%s", gpu_machine.absent(DEFAULT_GPU));
    CHECK(gpu_machine.absent(SECOND_GPU) && strstr(gpu_machine.absent(SECOND_GPU), "another kind"), "%s",
          gpu_machine.absent(SECOND_GPU));
}

static void card_not_there(void)
{
    setenv("DUET_DEVICE", "7", 1);
    CHECK(gpu_machine.absent(DEFAULT_GPU) && strstr(gpu_machine.absent(DEFAULT_GPU), "DUET_DEVICE=7"), "%s",
          gpu_machine.absent(DEFAULT_GPU));
}

static void card_misnamed(void)
{
    setenv("DUET_DEVICE", "0x", 1);
    CHECK(gpu_machine.absent(DEFAULT_GPU) && strstr(gpu_machine.absent(DEFAULT_GPU), "DUET_DEVICE=0x"), "%s",
          gpu_machine.absent(DEFAULT_GPU));
}

/* ---- little memory ---- */

static void short_of_memory(void)
{
    scene w;
    static const struct {
        size_t limit;
        int algorithm;
    } cases[] = { { 8 << 20, CUDNN_CONVOLUTION_FWD_ALGO_GEMM },
                  { 3 << 20, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM },
                  { 1 << 20, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM } };
    fake_workspace(1 << 20);
    ran(duet_memory_limit(DUET_GPU, 8 << 20), "limit");
    for (int i = 0; i < 3; i++) {
        ran(duet_memory_limit(DUET_GPU, cases[i].limit), "limit");
        ran(set_scene(&w, 0), "scene");
        (void)fail(DUET_OK, "before");
        ran(play_and_compare(&w, 0, "short"), "play");
        CHECK(!strcmp(duet_error(), "before"), "an algorithm that fits did not restore the error text: %s",
              duet_error());
        CHECK(fake_count().algorithm == cases[i].algorithm, "limit %zu: algorithm %d", cases[i].limit,
              fake_count().algorithm);
        clear_scene(&w);
        duet_memory m = duet_memory_of(DUET_GPU);
        CHECK(m.used + m.cached <= cases[i].limit && m.peak <= 8 << 20, "limit %zu: used %zu, peak %zu",
              cases[i].limit, m.used, m.peak);
    }
    CHECK(fake_count().searches == 1, "%d searches for one shape", (int)fake_count().searches);
}

/* The device itself is full: only cudaMalloc reports it. */
static void full_device(void)
{
    scene w;
    void *p;
    fake_memory(1 << 20);
    ran(set_scene(&w, 0), "scene");
    ran(play_and_compare(&w, 0, "full"), "play");
    clear_scene(&w);
    CHECK(gpu_machine.alloc(DEFAULT_GPU, 2 << 20, &p) == DUET_NO_MEMORY && strstr(duet_error(), "cudaMalloc"),
          "%s", duet_error());
    CHECK(cudaPeekAtLastError() == cudaSuccess, "CUDA's last error was not cleared");
    ran(gpu_machine.alloc(DEFAULT_GPU, 16, &p), "a smaller block");
    gpu_machine.free(DEFAULT_GPU, p);
    CHECK(pool_take(DEFAULT_GPU, 2 << 20, 0, &p) == DUET_NO_MEMORY, "%s", duet_error());
}

static void reproducible(void)
{
    scene w;
    setenv("DUET_REPRODUCIBLE", "1", 1);
    ran(set_scene(&w, 0), "scene");
    ran(play_and_compare(&w, 0, "reproducible"), "play");
    clear_scene(&w);
    CHECK(fake_count().searches == 0, "algorithms were timed with DUET_REPRODUCIBLE=1");
    CHECK(fake_count().algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
          "algorithm %d is not the first deterministic one", fake_count().algorithm);
}

static void without_vendors(void)
{
    scene w;
    ran(set_scene(&w, 0), "scene");
    step product = product_step(&w), reduction = reduce_step(&w);
    fake_without("cublasLt", "libcublasLt.so.13: not today");
    CHECK(gpu_machine.unsupported_reason(&product) &&
              strstr(gpu_machine.unsupported_reason(&product), "not today"),
          "%s", gpu_machine.unsupported_reason(&product));
    CHECK(!gpu_machine.unsupported_reason(&w.conv) && !gpu_machine.unsupported_reason(&reduction),
          "without one library, steps of others are not supported");
    fake_without("cublasLt", NULL);
    fake_without("cudnn", "libcudnn.so.9: not today");
    CHECK(gpu_machine.unsupported_reason(&w.conv) && !gpu_machine.unsupported_reason(&product) &&
              !gpu_machine.unsupported_reason(&reduction),
          "without cuDNN, not only convolutions are unsupported");
    char text[2000] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    gpu_machine.info(out);
    fclose(out);
    CHECK(strstr(text, "Pretended GPU") && strstr(text, "cuBLASLt 13") &&
              strstr(text, "cuDNN missing: libcudnn.so.9: not today"),
          "%s", text);
}

static void vendor_statuses(void)
{
    const vendor *v = vendor_open(LIBRARY_cudnn);
    CHECK(dnn_failed(v, "cudnnCreate", CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) ==
                  DUET_NO_MEMORY &&
              dnn_failed(v, "cudnnCreate", CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) ==
                  DUET_NO_MEMORY &&
              dnn_failed(v, "cudnnCreate", CUDNN_STATUS_EXECUTION_FAILED) == DUET_DEVICE_ERROR,
          "a status of cuDNN is converted to a wrong status");
}

/* ---- threads, and the strictness of the fake ---- */

static pthread_mutex_t comparing = PTHREAD_MUTEX_INITIALIZER; /* checks are counted without a lock */

static void *thread_play(void *arg)
{
    int queue = (int)(intptr_t)arg;
    duet_status s = DUET_OK;
    for (int i = 0; i < 5 && s == DUET_OK; i++) {
        scene w;
        if ((s = set_scene(&w, queue)) == DUET_OK) {
            const before b = look_before(&w);
            s = play(&w, queue);
            pthread_mutex_lock(&comparing);
            if (ran(s, "threads")) compare(&w, &b, "threads");
            pthread_mutex_unlock(&comparing);
        }
        clear_scene(&w);
    }
    if (s == DUET_OK) return NULL;
    return "failed";
}

static void test_threads(void)
{
    pthread_t t[8];
    void *why[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, thread_play, (void *)(intptr_t)(i % 4 * 2));
    for (int i = 0; i < 8; i++) pthread_join(t[i], &why[i]);
    for (int i = 0; i < 8; i++) CHECK(!why[i], "thread %d %s", i, (const char *)why[i]);
    tap_point("eight threads on four queues");
}

/* An allocator may place host memory directly after a device block. */
static void behind_a_block(const tensor *a)
{
    cudaStream_t s;
    CHECK(!cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "the stream could not be made");
    CHECK(!cudaMemcpyAsync(a->device, (float *)a->device + a->room, 0, cudaMemcpyHostToDevice, s),
          "an upload from beyond a block was accepted");
    CHECK(!cudaStreamSynchronize(s), "the stream reports no error");
}

/* If the fake accepted these calls, the other tests would prove little. */
static void test_pretence(void)
{
    float host[64] = { 0 }, back[64];
    tensor a, b;
    ran(tensor_new(&a, DUET_F32, 1, (int64_t[]){ 64 }, ROWS, 10), "new");
    ran(tensor_new(&b, DUET_F32, 1, (int64_t[]){ 64 }, ROWS, 11), "new");
    CHECK(gpu_machine.upload(DEFAULT_GPU, host, back, sizeof host, 10) == DUET_DEVICE_ERROR,
          "an upload to host memory did not fail");
    CHECK(gpu_machine.upload(DEFAULT_GPU, a.device, b.device, sizeof host, 10) == DUET_DEVICE_ERROR,
          "an upload from device memory did not fail");
    CHECK(gpu_machine.download(DEFAULT_GPU, a.device, b.device, sizeof host, 10) == DUET_DEVICE_ERROR,
          "a download to device memory did not fail");
    behind_a_block(&a);
    CHECK(gpu_machine.upload(DEFAULT_GPU, a.device, host, sizeof host + 4, 10) == DUET_DEVICE_ERROR,
          "an upload beyond the end did not fail");
    step s = {
        .kernel = OP_sum, .outs = 1, .ins = 1, .in = { { 1, a.at } }, .attr.reduce.axes = REDUCE_ALL_AXES
    };
    layout_dense(&s.out[0].at, DUET_F32, 0, NULL);
    CHECK(gpu_machine.run(&s, &(frame){ (void *const[]){ b.device, host }, NULL, 10, DEFAULT_GPU }) ==
              DUET_DEVICE_ERROR,
          "a kernel on host memory did not fail");

    ran(gpu_machine.upload(DEFAULT_GPU, a.device, host, sizeof host, 10), "upload");
    ran(gpu_machine.download(DEFAULT_GPU, back, a.device, sizeof back, 12),
        "download by a queue that did not wait");
    CHECK(back[5] != back[5], "a copy ran before its stream was synchronised: %g, not NaN", back[5]);
    ran(gpu_machine.wait(DEFAULT_GPU, 12, DEFAULT_GPU, 10), "wait");
    ran(gpu_machine.download(DEFAULT_GPU, back, a.device, sizeof back, 12), "download");
    CHECK(back[5] == 0, "the copy does not see the upload");

    fake_pinned(true);
    ran(gpu_machine.upload(DEFAULT_GPU, a.device, host, sizeof host, 10), "upload");
    host[5] = 7;
    ran(gpu_machine.download(DEFAULT_GPU, back, a.device, sizeof back, 10), "download");
    CHECK(back[5] == 7, "pinned memory was not read when the copy ran");
    fake_pinned(false);
    tensor_free(&a);
    tensor_free(&b);
    tap_point("the fake CUDA detects invalid calls");
}

int main(void)
{
    test_cold_failures();
    in_child(lost, "a lost GPU");
    in_child(second_card, "the second GPU");
    in_child(no_card, "no GPU");
    in_child(old_card, "a GPU that is too old");
    in_child(two_old_cards, "two GPUs that are too old");
    in_child(two_kinds_of_cards, "a second GPU of another kind");
    in_child(card_not_there, "DUET_DEVICE with a GPU that does not exist");
    in_child(card_misnamed, "DUET_DEVICE that is not a number");
    in_child(short_of_memory, "a limit");
    in_child(full_device, "a full device");
    in_child(reproducible, "reproducible");
    in_child(without_vendors, "without vendors");
    in_child(vendor_statuses, "statuses of vendor libraries");
    test_warm_failures();
    test_threads();
    test_pretence();
    return tap_end();
}
