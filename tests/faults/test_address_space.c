/* test_address_space.c - statements in a process whose address space is limited to a little more than it
 * has, while OpenMP is asked for 16 threads. OpenMP ends a process that cannot make its threads, OpenBLAS
 * tries for ever to get memory, oneDNN and FFTW crash without it. A statement must return a status, and be
 * right if that is OK. Each runs in a child, which has done it once with one thread. */
#include "by_sanitizer.h"
#include "quick.h"
#include "tap.h"
#include <duet/duet.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 16, N = 1000, SMALL = 300, IMAGE = 64, SECONDS = 20 };
static const double rooms[] = {
    0, 0.1, 0.5, 1, 2, 4, 8, 14, 16, 32, 64, 128, 256, 512
}; /* MiB beyond what it has */

typedef struct operands {
    duet_matrix *x, *y, *small, *row, *images, *filters;
} operands;

static duet_expr map(const operands *o) { return duet_exp(duet_add(o->x, o->y)); }
static duet_expr scaled(const operands *o) { return duet_mul(o->x, 2); }
static duet_expr sum(const operands *o) { return duet_sum_axis(duet_exp(o->x), 0); }
static duet_expr scan(const operands *o) { return duet_cumsum(o->x, 0); }
static duet_expr sorted(const operands *o) { return duet_sort(o->x, 1); }
static duet_expr soft(const operands *o) { return duet_softmax(o->x); }
static duet_expr normal(const operands *o) { return duet_layer_norm(o->x, o->row, o->row, 1e-5); }
static duet_expr taken(const operands *o) { return duet_take(o->x, duet_argsort(o->row, 0), 0); }
static duet_expr counted(const operands *o) { return duet_histogram(o->x, -1, 1, 100); }
static duet_expr product(const operands *o) { return duet_matmul(o->x, o->y); }
static duet_expr einsum(const operands *o) { return duet_einsum(o->x, o->y, "ij,kj->ik"); }
static duet_expr convolution(const operands *o) { return duet_conv2d(o->images, o->filters); }
static duet_expr input_grad(const operands *o)
{
    return duet_conv2d_input_grad(duet_conv2d(o->images, o->filters), o->filters);
}
static duet_expr transform(const operands *o) { return duet_abs(duet_fft(o->x, N, 1)); }
static duet_expr smoothed(const operands *o)
{
    return duet_fftconvolve(o->small, o->small, DUET_OVERLAP_SAME);
}
static duet_expr solved(const operands *o) { return duet_solve(o->small, o->small); }
static duet_expr inverse(const operands *o) { return duet_inv(o->small); }
static duet_expr values(const operands *o) { return duet_svdvals(o->small); }
static duet_expr fitted(const operands *o) { return duet_lstsq(o->small, o->small); }

static const struct {
    const char *name;
    duet_expr (*formula)(const operands *);
} kinds[] = {
    { "map", map },
    { "scaling", scaled },
    { "sum", sum },
    { "scan", scan },
    { "sort", sorted },
    { "softmax", soft },
    { "layer norm", normal },
    { "take", taken },
    { "histogram", counted },
    { "product", product },
    { "einsum", einsum },
    { "convolution", convolution },
    { "gradient of images", input_grad },
    { "transform", transform },
    { "convolution by transforms", smoothed },
    { "solve", solved },
    { "inverse", inverse },
    { "singular values", values },
    { "least squares", fitted },
};

enum { LIST = sizeof kinds / sizeof *kinds };

static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%lu", &pages) != 1) pages = 0;
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Numbers from -1 to 1; a square matrix has a large diagonal, so that it is not singular. */
static duet_matrix *filled(duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *m = duet_new_shape(type, rank, size), *f = duet_new_shape(DUET_F32, rank, size);
    float *p = f ? duet_overwrite_f32(f) : NULL;
    if (!m || !p) return NULL;
    for (int64_t i = 0; i < duet_count(f); i++) p[i] = sinf((float)i);
    for (int64_t i = 0; rank == 2 && size[0] == SMALL && i < SMALL; i++) p[i * SMALL + i] += SMALL;
    const duet_status s = duet_set(m, duet_cast(f, type));
    duet_free(&f);
    return s == DUET_OK ? m : NULL;
}

static bool make(operands *o, duet_dtype type)
{
    o->x = filled(type, 2, (const int64_t[]){ N, N });
    o->y = filled(type, 2, (const int64_t[]){ N, N });
    o->small = filled(type, 2, (const int64_t[]){ SMALL, SMALL });
    o->row = filled(type, 1, (const int64_t[]){ N });
    o->images = filled(type, 4, (const int64_t[]){ 16, 8, IMAGE, IMAGE });
    o->filters = filled(type, 4, (const int64_t[]){ 8, 8, 3, 3 });
    return o->x && o->y && o->small && o->row && o->images && o->filters;
}

/* How a child ends. */
enum { DONE, REFUSED, NOT_STARTED = 10, WRONG_STATUS, WRONG_RESULT, DESTINATION_LOST };

/* Does m have elements near those of n, which is of the same type? The limit is lifted. */
static bool near(const duet_matrix *m, const duet_matrix *n)
{
    const void *p = duet_read(m), *q = duet_read(n);
    if (!p || !q) return false;
    for (int64_t i = 0; i < duet_count(m); i++) {
        double a, b;
        if (duet_type(m) == DUET_I64)
            a = (double)((const int64_t *)p)[i], b = (double)((const int64_t *)q)[i];
        else if (duet_type(m) == DUET_F64) a = ((const double *)p)[i], b = ((const double *)q)[i];
        else a = ((const float *)p)[i], b = ((const float *)q)[i];
        if (!(fabs(a - b) <= 1e-2 * (1 + fabs(b)))) return false;
    }
    return true;
}

/* A matrix of the type and shape of e, with memory. */
static duet_matrix *like(duet_expr e)
{
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < duet_expr_rank(e); a++) size[a] = duet_expr_size(e, a);
    duet_matrix *m = duet_new_shape(duet_expr_type(e), duet_expr_rank(e), size);
    if (duet_drop(e) != DUET_OK || !m || duet_set(m, 5) != DUET_OK) return NULL;
    return m;
}

/* is_first: the process has not run such a statement before. Then FFTW is not loaded yet, and may not be for
 * lack of memory. */
static int child(int k, duet_dtype type, double room, bool is_first)
{
    operands o;
    const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
    omp_set_num_threads(1);
    if (!make(&o, type)) return NOT_STARTED;
    duet_matrix *m = is_first ? like(kinds[k].formula(&o)) : duet_eval(kinds[k].formula(&o));
    duet_matrix *before = m ? duet_copy(m) : NULL;
    if (!before) return NOT_STARTED;
    const struct rlimit limit = { address_space() + (rlim_t)(room * 0x1p20), RLIM_INFINITY };
    if (setrlimit(RLIMIT_AS, &limit)) return NOT_STARTED;
    omp_set_num_threads(THREADS);
    alarm(SECONDS);
    const duet_status s = duet_set(m, kinds[k].formula(&o));
    if (setrlimit(RLIMIT_AS, &none)) return NOT_STARTED;
    const bool not_loaded = is_first && s == DUET_UNSUPPORTED && strstr(duet_error(), "fftw");
    if (s != DUET_OK && s != DUET_NO_MEMORY && !not_loaded) return fputs(duet_error(), stderr), WRONG_STATUS;
    if (!duet_read(m)) return DESTINATION_LOST;
    duet_matrix *right = s == DUET_OK ? duet_eval(kinds[k].formula(&o)) : before;
    if (!right) return NOT_STARTED;
    if (!near(m, right)) return WRONG_RESULT;
    return s == DUET_OK ? DONE : REFUSED;
}

/* A list whose last statement is the first product of the process. If there is no memory for it,
 * the first one has changed nothing. */
static int list_child(duet_dtype type, double room)
{
    operands o;
    const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
    omp_set_num_threads(1);
    if (!make(&o, type)) return NOT_STARTED;
    duet_matrix *y = like(scaled(&o)), *z = like(product(&o)), *five = like(scaled(&o));
    duet_matrix *doubled = duet_eval(scaled(&o));
    if (!y || !z || !five || !doubled) return NOT_STARTED;
    const struct rlimit limit = { address_space() + (rlim_t)(room * 0x1p20), RLIM_INFINITY };
    if (setrlimit(RLIMIT_AS, &limit)) return NOT_STARTED;
    alarm(SECONDS);
    const duet_status s = duet_set_all({ y, scaled(&o) }, { z, product(&o) });
    if (setrlimit(RLIMIT_AS, &none)) return NOT_STARTED;
    if (s != DUET_OK && s != DUET_NO_MEMORY) return fputs(duet_error(), stderr), WRONG_STATUS;
    if (!duet_read(y) || !duet_read(z)) return DESTINATION_LOST;
    if (!near(y, s == DUET_OK ? doubled : five)) return WRONG_RESULT;
    return s == DUET_OK ? DONE : REFUSED;
}

static void test(int k, duet_dtype type, double room, bool is_first)
{
    int status = 0;
    fflush(stdout);
    const pid_t p = fork();
    if (!p) _exit(k < LIST ? child(k, type, room, is_first) : list_child(type, room));
    const bool ended = p > 0 && waitpid(p, &status, 0) == p;
    CHECK(ended && WIFEXITED(status) && WEXITSTATUS(status) <= REFUSED, "%s of %s, %s, %g MiB: %s %d",
          k < LIST ? kinds[k].name : "a list", type == DUET_F32 ? "f32" : "f64",
          is_first ? "the first" : "again", room, WIFEXITED(status) ? "exit" : "signal",
          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int main(int argc, char **argv)
{
    const int step = is_quick(argc, argv) ? 3 : 1;
    if (by_sanitizer || !address_space()) {
        puts("1..0 # SKIP the address space cannot be limited here");
        return 0;
    }
#ifdef __clang__
    puts("1..0 # SKIP clang's OpenMP can still end the process: docs/decisions.md");
    return 0;
#endif
    /* CUDA's libraries end the process if the address space is limited: docs/decisions.md. */
    setenv("DUET_BACKEND", "cpu", 1);
    for (int k = 0; k < LIST; k++) {
        for (int i = k % step; i < (int)(sizeof rooms / sizeof *rooms); i += step)
            for (int is_first = 0; is_first < 2; is_first++) {
                test(k, DUET_F32, rooms[i], is_first);
                test(k, DUET_F64, rooms[i], is_first);
            }
        tap_point(kinds[k].name);
    }
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        test(LIST, DUET_F32, rooms[i], true);
        test(LIST, DUET_F64, rooms[i], true);
    }
    tap_point("a list");
    return tap_end();
}
