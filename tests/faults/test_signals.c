/* test_signals.c - signals, and the end of the process, while statements run in vendor libraries. A timer
 * raises SIGPROF, whose handler needs a lot of stack. Results must have the same bits as without it, and the heap
 * must stay intact. Then the process ends while another thread runs the same statements. */
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))
enum { N = 200, THIN = 5, DEEP = 1000, ENDINGS = 10 };
static const double seconds = 1;

typedef struct operands {
    duet_matrix *x, *row, *thin, *deep, *images, *filters;
} operands;

#define FORMULA(name, f)                                                                                     \
    static duet_expr name(const operands *o) { return f; }
FORMULA(product, duet_matmul(o->x, o->x))
FORMULA(turned, duet_matmul(duet_transpose(o->x), o->x))
FORMULA(long_sums, duet_matmul(o->thin, o->deep))
FORMULA(layer, duet_relu(duet_bias_add(duet_matmul(o->x, o->x), o->row)))
FORMULA(convolution, duet_conv2d(o->images, o->filters))
FORMULA(input_grad, duet_conv2d_input_grad(duet_conv2d(o->images, o->filters), o->filters))
FORMULA(transform, duet_abs(duet_fft(o->x, N, 1)))
FORMULA(solution, duet_solve(o->x, o->x))
FORMULA(values, duet_svdvals(o->x))
FORMULA(sums, duet_sum_axis(duet_exp(duet_mul(o->x, o->x)), 1))

static const struct {
    const char *name;
    duet_expr (*formula)(const operands *o);
} kinds[] = { { "product", product },         { "transposed product", turned },
              { "long sums", long_sums },     { "layer", layer },
              { "convolution", convolution }, { "gradient of images", input_grad },
              { "transform", transform },     { "solution of a system", solution },
              { "singular values", values },  { "sums of a formula", sums } };

static duet_matrix *filled(duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(DUET_F64, rank, size), *result;
    double *p = duet_overwrite_f64(m);
    for (int64_t i = 0; i < duet_count(m); i++) p[i] = sin(0.7 * (double)i) / 4;
    for (int64_t i = 0; rank == 2 && size[0] == N && size[1] == N && i < N; i++) p[i * N + i] += N;
    result = duet_eval(duet_cast(m, type));
    duet_free(&m);
    return result;
}

static operands make(duet_dtype type)
{
    return (operands){ .x = filled(type, 2, (const int64_t[]){ N, N }),
                       .row = filled(type, 1, (const int64_t[]){ N }),
                       .thin = filled(type, 2, (const int64_t[]){ THIN, DEEP }),
                       .deep = filled(type, 2, (const int64_t[]){ DEEP, N }),
                       .images = filled(type, 4, (const int64_t[]){ 4, 8, 20, 20 }),
                       .filters = filled(type, 4, (const int64_t[]){ 8, 8, 3, 3 }) };
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void handle(int signal)
{
    volatile char stack[4000];
    for (size_t i = 0; i < sizeof stack; i++) stack[i] = (char)i;
    handled++;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { SAME, NOT_STARTED = 10, FAILED, OTHER_BITS, NO_SIGNALS };

static int child(int k, duet_dtype type)
{
    const operands o = make(type);
    const struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
    const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
    duet_matrix *right = duet_eval(kinds[k].formula(&o)), *m = right ? duet_copy(right) : NULL;
    int result = SAME;
    if (!m || sigaction(SIGPROF, &action, NULL) || setitimer(ITIMER_PROF, &often, NULL)) return NOT_STARTED;
    const size_t bytes = (size_t)duet_count(m) * (type == DUET_F32 ? sizeof(float) : sizeof(double));
    for (const double end = now() + seconds;
         result == SAME && (now() < end || (handled < 3 && now() < end + 9));) {
        if (duet_set(m, kinds[k].formula(&o)) != DUET_OK) result = FAILED;
        else if (memcmp(duet_read(m), duet_read(right), bytes)) result = OTHER_BITS;
        free(malloc(100000)); /* glibc checks its heap */
    }
    setitimer(ITIMER_PROF, &never, NULL);
    if (result == SAME && handled < 3) result = NO_SIGNALS;
    return result;
}

/* ---- the end of the process ---- */

static int has_run; /* atomic */

static void *run_forever(void *kind)
{
    const operands o = make(DUET_F32);
    duet_matrix *m = duet_eval(kinds[(intptr_t)kind].formula(&o));
    __atomic_store_n(&has_run, 1, __ATOMIC_RELEASE);
    while (m && duet_set(m, kinds[(intptr_t)kind].formula(&o)) == DUET_OK) continue;
    for (;;) pause();
    return NULL;
}

static int ending(int k, int i)
{
    pthread_t other;
    if (pthread_create(&other, NULL, run_forever, (void *)(intptr_t)k)) return NOT_STARTED;
    while (!__atomic_load_n(&has_run, __ATOMIC_ACQUIRE)) usleep(1000);
    usleep(700 * (unsigned)i);
    exit(SAME);
}

/* ---- */

static int status_of(pid_t p)
{
    int status = 0;
    if (p < 0 || waitpid(p, &status, 0) != p) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_kind(int k)
{
    const duet_dtype types[] = { DUET_F32, DUET_F64 };
    for (int t = 0; t < LENGTH(types); t++) {
        fflush(stdout);
        const pid_t p = fork();
        if (!p) _exit(child(k, types[t]));
        const int s = status_of(p);
        CHECK(s == SAME, "%s of %s with signals: the child ended with %d", kinds[k].name, t ? "f64" : "f32",
              s);
    }
    for (int i = 0; i < ENDINGS; i++) {
        fflush(stdout);
        const pid_t p = fork();
        if (!p) _exit(ending(k, i));
        const int s = status_of(p);
        CHECK(s == SAME, "%s at the end of the process: the child ended with %d", kinds[k].name, s);
    }
    tap_point(kinds[k].name);
}

int main(void)
{
    setenv("DUET_BACKEND", "cpu", 1); /* CUDA cannot be used after fork */
    for (int k = 0; k < LENGTH(kinds); k++) test_kind(k);
    return tap_end();
}
