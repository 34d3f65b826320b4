/* test_crashed_kernel.c - a kernel of the user goes wrong on a real GPU. duet_recover restarts the GPU
 * in the same process, or says that CUDA does not allow that; then the CPU goes on, and a new process can
 * use the GPU. The kernel is PTX, which the driver compiles, so that the test needs no CUDA toolkit. Each
 * case runs in a child process. */
#include "tap.h"
#include <dlfcn.h>
#include <duet/duet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300, LONG = 300000, SECONDS_MOST = 120, WITHOUT_GPU = 77, TURNS = 3 };

/* ---- the kernels ---- */

static const char ptx[] = ".version 7.0\n"
                          ".target sm_80\n"
                          ".address_size 64\n"
                          ".visible .entry store(.param .u64 at)\n"
                          "{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    .reg .b32 %r<2>;\n"
                          "    ld.param.u64 %rd1, [at];\n"
                          "    mov.u32 %r1, 1;\n"
                          "    st.global.u32 [%rd1], %r1;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry stop(.param .u64 at)\n"
                          "{\n"
                          "    trap;\n"
                          "    ret;\n"
                          "}\n";

/* The functions of the driver that launch one. */
static struct {
    int (*load)(void **module, const void *image);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void *stream, void **parameters, void **more);
} driver;

static bool open_driver(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) return false;
    *(void **)&driver.load = dlsym(cuda, "cuModuleLoadData");
    *(void **)&driver.find = dlsym(cuda, "cuModuleGetFunction");
    *(void **)&driver.launch = dlsym(cuda, "cuLaunchKernel");
    return driver.load && driver.find && driver.launch;
}

/* The context of the library is current, because this thread has run a statement on the GPU. */
static void crash(const char *kernel, uint64_t at)
{
    void *module = NULL, *function = NULL, *parameters[] = { &at };
    void *stream = duet_stream();
    CHECK(stream != NULL, "%s", duet_error());
    CHECK(!driver.load(&module, ptx) && !driver.find(&function, module, kernel),
          "the kernel cannot be loaded");
    const int e = driver.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
    CHECK(e == 0, "the kernel cannot be launched: error %d", e);
}

/* ---- the matrices ---- */

static bool is_all(const duet_matrix *m, float v)
{
    const float *p = duet_read(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        if (!CHECK(p[i] == v, "element %d is %g, not %g", (int)i, (double)p[i], (double)v)) return false;
    return p;
}

static duet_matrix *filled(float v, int64_t n)
{
    duet_matrix *m = n == N ? duet_new(DUET_F32, N, N) : duet_new(DUET_F32, n);
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
    CHECK(p != NULL, "%s", duet_error());
    return m;
}

typedef struct scene {
    duet_matrix *x, *y, *z, *large, *large_too, *images, *filters, *seen, *line, *transform, *diagonal,
        *solution, *played;
    duet_recording *recording;
} scene;

static scene make_scene(void)
{
    scene s = { .x = filled(2, N),
                .y = duet_new(DUET_F32, N, N),
                .z = duet_new(DUET_F32, N, N),
                .large = filled(3, LONG),
                .large_too = duet_new(DUET_F32, LONG),
                .images = duet_ones(DUET_F32, 1, 2, 6, 6),
                .filters = duet_ones(DUET_F32, 3, 2, 3, 3),
                .seen = duet_new(DUET_F32, 1, 3, 2, 2),
                .line = duet_ones(DUET_F32, 64),
                .transform = duet_new(DUET_C64, 64),
                .diagonal = duet_eye(DUET_F32, N),
                .solution = duet_new(DUET_F32, N, N),
                .played = duet_new(DUET_F32, N, N) };
    CHECK(duet_read(s.images) && duet_read(s.filters) && duet_read(s.line) && duet_read(s.diagonal), "%s",
          duet_error());
    return s;
}

static void free_scene(scene *s)
{
    duet_free(&s->x, &s->y, &s->z, &s->large, &s->large_too, &s->images, &s->filters, &s->seen, &s->line,
              &s->transform, &s->diagonal, &s->solution, &s->played);
    duet_recording_free(&s->recording);
}

static void went(duet_status s, const char *what) { CHECK(s == DUET_OK, "%s: %s", what, duet_error()); }

/* Kernels of the library and of every vendor library, a recording, automatic replay and copies. */
static void compute(scene *s)
{
    went(duet_set(s->y, duet_add(duet_mul(s->x, 2), 1)), "a statement");
    went(duet_set(s->z, duet_matmul(s->x, s->x)), "a product");
    went(duet_set(s->solution, duet_solve(s->diagonal, s->x)), "a solution");
    if (duet_set(s->seen, duet_conv2d(s->images, s->filters, .dilation = { 2, 2 })) == DUET_OK)
        is_all(s->seen, 18);
    else CHECK(duet_error_status() == DUET_UNSUPPORTED, "a convolution: %s", duet_error());
    if (duet_set(s->transform, duet_fft(s->line, 64, 0)) == DUET_OK) {
        const float *p = duet_read(s->transform);
        CHECK(p && p[0] == 64 && p[1] == 0, "a transform");
    } else CHECK(duet_error_status() == DUET_UNSUPPORTED, "a transform: %s", duet_error());
    CHECK(is_all(s->y, 5) && is_all(s->z, 4 * N) && is_all(s->solution, 2), "%s", duet_error());
    if (!s->recording) {
        went(duet_record_begin(), "duet_record_begin");
        went(duet_set(s->played, duet_add(s->x, 5)), "a recorded statement");
        went(duet_iadd(s->played, 1), "a recorded statement");
        s->recording = duet_record_end();
        CHECK(s->recording != NULL, "%s", duet_error());
    }
    for (int i = 0; i < 3; i++) went(duet_replay(s->recording), "duet_replay");
    is_all(s->played, 8);
    for (int i = 0; i < 20; i++) {
        went(duet_set(s->y, duet_add(s->x, 1)), "a repeated statement");
        went(duet_set(s->z, duet_mul(s->y, 2)), "a repeated statement");
    }
    is_all(s->z, 6);
    for (int i = 0; i < 4; i++) {
        float *p = duet_update(s->large);
        if (p) p[i] = 3;
        went(duet_set(s->large_too, duet_add(s->large, 1)), "a large statement");
        is_all(s->large_too, 4);
    }
}

/* ---- the cases ---- */

/* Statements before the kernel may have run or not. None may return old or wrong elements. */
static void check_still_lost(const scene *s, const duet_matrix *lost)
{
    duet_matrix *m = duet_new(DUET_F32, N, N);
    CHECK(duet_set_on(DUET_GPU, m, s->x) == DUET_NO_DEVICE && strstr(duet_error(), "was lost"), "%s",
          duet_error());
    CHECK(is_all(s->x, 2) && is_all(s->large, 3), "a matrix that is valid on the host: %s", duet_error());
    CHECK(!duet_read(lost) && duet_error_status() == DUET_UNKNOWN, "a matrix that only the GPU had: %s",
          duet_error());
    went(duet_set_on(DUET_AUTO, m, duet_add(s->x, 1)), "a statement for any device");
    CHECK(is_all(m, 3), "%s", duet_error());
    duet_free(&m);
}

static void check_lost(const scene *s, const duet_matrix *lost)
{
    CHECK(duet_synchronize() == DUET_DEVICE_ERROR && strstr(duet_error(), "lost") &&
              strstr(duet_error(), "duet_recover()"),
          "%s", duet_error());
    printf("# as expected: %s\n", duet_error());
    check_still_lost(s, lost);
}

static void check_recovered(scene *s, const duet_matrix *lost)
{
    CHECK(!duet_read(lost) && duet_error_status() == DUET_UNKNOWN, "lost elements have come back");
    DUET_ON(DUET_GPU) compute(s);
    CHECK(duet_recover() == DUET_OK, "%s", duet_error());
}

/* CUDA gives this process no context again, and the library says so. */
static void check_refused(const scene *s, const duet_matrix *lost)
{
    CHECK(duet_error_status() == DUET_DEVICE_ERROR && strstr(duet_error(), "a new one may") &&
              strstr(duet_error(), "cudaErrorDevicesUnavailable") && !strstr(duet_error(), "duet_recover()"),
          "%s", duet_error());
    printf("# as expected: %s\n", duet_error());
    check_still_lost(s, lost);
    CHECK(duet_recover() == DUET_DEVICE_ERROR, "a second recovery: %s", duet_error());
}

/* Returns whether the GPU can be used again. */
static bool lose_and_recover(scene *s, const char *kernel, uint64_t at, bool is_offset)
{
    duet_matrix *lost = duet_new(DUET_F32, N, N);
    DUET_ON(DUET_GPU)
    {
        compute(s);
        went(duet_set(lost, duet_add(s->x, 9)), "a statement");
    }
    if (is_offset) at += (uint64_t)(uintptr_t)duet_device_read(s->x);
    crash(kernel, at);
    check_lost(s, lost);
    const bool recovered = duet_recover() == DUET_OK;
    if (recovered) check_recovered(s, lost);
    else check_refused(s, lost);
    duet_free(&lost);
    return recovered;
}

static bool has_gpu(void)
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    const bool has = duet_set_on(DUET_GPU, m, 1) == DUET_OK;
    if (!has) printf("# as expected: %s\n", duet_error());
    duet_free(&m);
    return has && open_driver();
}

static void play(const char *kernel, uint64_t at, bool is_offset)
{
    scene s = make_scene();
    bool usable = true;
    for (int i = 0; i < TURNS && usable && !tap_failures; i++)
        usable = lose_and_recover(&s, kernel, at, is_offset);
    free_scene(&s);
    duet_memory_trim();
    CHECK(duet_live(NULL) == 0, "matrices are left");
}

/* Returns whether there is a GPU. CUDA is first used in the child. The alarm ends a child that hangs. */
static bool in_child(const char *name, const char *kernel, uint64_t at, bool is_offset)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_MOST);
        if (!has_gpu()) _exit(WITHOUT_GPU);
        play(kernel, at, is_offset);
        fflush(stdout);
        exit(tap_failures > 0 || tap_checks == 0); /* handlers of CUDA run too */
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == WITHOUT_GPU) return false;
    CHECK(status == 0, "%s: the child ended with %x", name, status);
    tap_point(name);
    return true;
}

int main(void)
{
    if (!in_child("an illegal address", "store", 16, false)) {
        puts("1..0 # SKIP there is no GPU");
        return 0;
    }
    const bool misaligned = in_child("a misaligned address", "store", 1, true);
    const bool trapped = in_child("a trap", "stop", 0, false);
    CHECK(misaligned && trapped, "no GPU in a new process");
    return tap_end();
}
