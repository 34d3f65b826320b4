/* cpu.c - the CPU machine: its properties and memory, the choice of an instruction set, and the
 * functions that run steps. */
#include "cpu.h"
#include "blas_headers.h"
#include "clock.h"
#include "conv.h"
#include "dtype.h"
#include "fft.h"
#include "lapack.h"
#include "min_max.h"
#include "move_program.h"
#include "thread.h"
#include "threads.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A BLAS with threads of its own lets them spin for tens of milliseconds after a product, which
 * slows OpenMP's threads. For this time no OpenMP threads are started. */
#define BLAS_AWAKE_SECONDS 50e-3
double cpu_serial_seconds = 20e-6;
bool cpu_blas_apart;
enum { OWN_LEAST = 1 << 18, OWN_MOST = 1 << 22 };
int64_t cpu_own_bytes = 1 << 20;
static double last_product;

static __attribute__((constructor)) void know_cache(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes > 0) cpu_own_bytes = clamp(bytes, OWN_LEAST, OWN_MOST); /* may be shared with other threads */
#endif
}

static __attribute__((constructor)) void know_blas(void) { cpu_blas_apart = blas_has_own_threads(); }

/* After a parallel region, gcc's OpenMP keeps the threads of the thread that forks. A child process
 * does not have them, and would wait for them forever. So they are ended before fork, as OpenBLAS
 * does with its own; parent and child start new ones when they need them. */
#if HAS_OMP_PAUSE && !defined(__clang__) /* clang's OpenMP does this itself */
static void end_threads(void) { (void)omp_pause_resource_all(omp_pause_soft); }

static __attribute__((constructor)) void watch_forks(void) { (void)pthread_atfork(end_threads, NULL, NULL); }
#endif

bool cpu_blas_awake(void)
{
    double last;
    __atomic_load(&last_product, &last, __ATOMIC_RELAXED);
    return clock_now() - last < BLAS_AWAKE_SECONDS;
}

void cpu_blas_used(void)
{
    if (!cpu_blas_apart) return;
    double at = clock_now();
    __atomic_store(&last_product, &at, __ATOMIC_RELAXED);
}

/* ---- the functions, by instruction set and element type ---- */

#ifdef __x86_64__
#define EACH_ISA(row, type) row(type, portable) row(type, avx2) row(type, avx512)
#else
#define EACH_ISA(row, type) row(type, portable)
#endif
enum isa { ISA_portable, ISA_avx2, ISA_avx512, ISAS };
static const char *const isa_names[ISAS] = { "portable", "avx2", "avx512" };

#define DECLARE(type, isa)                                                                                   \
    run_function run_program_##type##_##isa, run_reduce_##type##_##isa, run_softmax_##type##_##isa,          \
        run_norm_##type##_##isa, run_pool2d_##type##_##isa;
#define DECLARE_INTEGER(type, isa) run_function run_program_##type##_##isa, run_reduce_##type##_##isa;
#define DECLARE_RANDOM(type, isa)  run_function run_random_##type##_##isa;
#define DUET_DTYPE(NAME, name, ...)                                                                          \
    EACH_ISA(DECLARE, name)                                                                                  \
    EACH_ISA(DECLARE_RANDOM, name)                                                                           \
    run_function run_matmul_##name, run_batched_##name, run_linear_##name, run_pool_grad_##name;
#define DUET_INTEGER(NAME, name, ...) EACH_ISA(DECLARE_RANDOM, name)
#define DUET_COMPLEX(NAME, name, ...) run_function run_linear_##name;
#include <duet/dtype.def>
run_function run_int_gemm;
EACH_ISA(DECLARE_INTEGER, i64)
EACH_ISA(DECLARE_INTEGER, u64)

#define KERNELS_float(type, isa)                                                                             \
    [ISA_##isa] = { run_program_##type##_##isa,                                                              \
                    run_reduce_##type##_##isa,                                                               \
                    run_softmax_##type##_##isa,                                                              \
                    run_norm_##type##_##isa,                                                                 \
                    run_pool2d_##type##_##isa,                                                               \
                    run_matmul_##type,                                                                       \
                    run_conv,                                                                                \
                    run_pool_grad_##type,                                                                    \
                    run_random_##type##_##isa,                                                               \
                    run_linear_##type,                                                                       \
                    run_batched_##type },
#define KERNELS_i64(type, isa)                                                                               \
    [ISA_##isa] = { .program = run_program_i64_##isa,                                                        \
                    .reduction = run_reduce_i64_##isa,                                                       \
                    .random = run_random_i64_##isa,                                                          \
                    .matmul = run_int_gemm,                                                                  \
                    .batched = run_int_gemm },
#define KERNELS_u64(type, isa)                                                                               \
    [ISA_##isa] = { .program = run_program_u64_##isa, .reduction = run_reduce_u64_##isa },
#define KERNELS_moves(type, isa)   [ISA_##isa] = { .program = run_move_program },
#define KERNELS_complex(type, isa) [ISA_##isa] = { .program = run_move_program, .linear = run_linear_##type },
static const kernels table[DUET_DTYPE_COUNT][ISAS] = {
#define DUET_DTYPE(NAME, name, ...)   [DUET_##NAME] = { EACH_ISA(KERNELS_float, name) },
#define DUET_HALF(NAME, ...)          [DUET_##NAME] = { EACH_ISA(KERNELS_moves, ) },
#define DUET_NARROW                   DUET_HALF
#define DUET_COMPLEX(NAME, name, ...) [DUET_##NAME] = { EACH_ISA(KERNELS_complex, name) },
#include <duet/dtype.def>
    [DUET_I64] = { EACH_ISA(KERNELS_i64, ) },
    [DUET_U64] = { EACH_ISA(KERNELS_u64, ) },
};

/* ---- the instruction set ---- */

static int isa_used = -1; /* -1: not chosen yet; every thread makes the same choice */

#ifdef __x86_64__
/* clang 14 has no name for this feature. */
static bool has_f16c(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static enum isa isa_best(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return ISA_portable;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    return wide ? ISA_avx512 : ISA_avx2;
#else
    return ISA_portable;
#endif
}

static __attribute__((cold)) int isa_choose(void)
{
    const char *wanted = getenv("DUET_ISA");
    enum isa best = isa_best();
    for (enum isa i = 0; wanted && i < best; i++)
        if (!strcmp(wanted, isa_names[i])) best = i;
    __atomic_store_n(&isa_used, (int)best, __ATOMIC_RELAXED);
    return (int)best;
}

static enum isa isa(void)
{
    int used = __atomic_load_n(&isa_used, __ATOMIC_RELAXED);
    if (unlikely(used < 0)) used = isa_choose();
    return (enum isa)used;
}

const char *cpu_isa(void) { return isa_names[isa()]; }

const char *cpu_choose_isa(void)
{
    isa_choose();
    return cpu_isa();
}

const kernels *kernels_of(duet_dtype type) { return &table[type][isa()]; }

/* ---- steps ---- */

static const char *unsupported_reason(const step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    if (!k) return "the CPU has no kernel of this name";
    return k->unsupported(s);
}

static const char *algorithm(const step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    if (k && k->algorithm) return k->algorithm(s);
    return NULL;
}

/* Runs a step with fewer threads than OpenMP has. */
static __attribute__((noinline)) duet_status run_with(int threads, const cpu_kernel *k, const step *s,
                                                      const frame *f)
{
    const int available = omp_get_max_threads();
    if (threads < available) omp_set_num_threads(threads);
    const duet_status r = k->run(s, f);
    if (threads < available) omp_set_num_threads(available);
    return r;
}

static duet_status run(const step *s, const frame *f)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    const int threads = thread_get()->threads;
    if (!k) return fail(DUET_UNSUPPORTED, "the CPU has no kernel %d", s->kernel);
    return likely(!threads) ? k->run(s, f) : run_with(threads, k, s, f);
}

static void forget(step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    if (k && k->forget) k->forget(s);
}

/* ---- memory ---- */

#define LARGE      ((size_t)4 << 20)
#define PAGE       ((size_t)2 << 20)
#define MIDDLING   ((size_t)64 << 10)
#define SMALL_PAGE ((size_t)4 << 10)

/* Large blocks are aligned to huge pages, and request them. Medium blocks share no page with
 * others, so that each can be pinned. */
static size_t alignment_for(size_t bytes)
{
    if (bytes >= LARGE) return PAGE;
    return bytes >= MIDDLING ? SMALL_PAGE : 64;
}

static duet_status allocate(int device, size_t bytes, void **p)
{
    if (posix_memalign(p, alignment_for(bytes), bytes ? bytes : 1))
        return fail(DUET_NO_MEMORY, "the system has no %zu bytes", bytes);
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE) (void)madvise(*p, bytes / PAGE * PAGE, MADV_HUGEPAGE);
#endif
    return DUET_OK;
}

static void release(int device, void *p) { free(p); }

static duet_status clear(int device, void *p, size_t bytes, int queue)
{
    memset(p, 0, bytes);
    return DUET_OK;
}

static duet_status copy(int device, void *to, const void *from, size_t bytes, int queue)
{
    memcpy(to, from, bytes);
    return DUET_OK;
}

static size_t available(int device) { return SIZE_MAX; }

/* Host memory needs no pinning for copies within the host. */
static duet_status pin(int device, void *host, size_t bytes) { return DUET_OK; }
static void unpin(int device, void *host) {}

/* ---- machine ---- */

static const char *absent(int device) { return NULL; }
static duet_status sync_queue(int device, int queue) { return DUET_OK; }
static duet_status wait_queue(int device, int queue, int from, int other) { return DUET_OK; }
static void *stream(int device, int queue) { return NULL; }

/* The CPU caches nothing besides the buffers of matrices. */
static void drop(int device, struct storage *b) {}
static size_t spare(int device, size_t bytes) { return 0; }
static duet_status prepare(const step *s, const frame *f) { return DUET_OK; }

static duet_status record(int device, int queue)
{
    return fail(DUET_UNSUPPORTED, "the cpu has nothing to record into");
}
static duet_status recorded(int device, int queue, void **graph)
{
    *graph = NULL;
    return record(device, queue);
}
static duet_status replay(int device, void *graph, int queue) { return record(device, queue); }
static void discard(int device, void *graph) {}

static void info(FILE *out)
{
    fprintf(out, "cpu      instruction set %s, %d threads by OpenMP\n", cpu_isa(), omp_get_max_threads());
    char blas[256];
    blas_describe(blas, sizeof blas);
    fprintf(out, "         %s\n", blas);
    fprintf(out, "         oneDNN %s\n", onednn_version());
    fprintf(out, "         LAPACKE %s\n", linear_version());
    fft_info(out);
}

const machine cpu_machine = {
    .name = "cpu",
    .place = DUET_CPU,
    .absent = absent,
    .info = info,
    .identify = cpu_identify,
    .costs = &cpu_costs,
    .alloc = allocate,
    .free = release,
    .clear = clear,
    .available = available,
    .upload = copy,
    .download = copy,
    .fetch = copy,
    .pin = pin,
    .unpin = unpin,
    .unsupported_reason = unsupported_reason,
    .algorithm = algorithm,
    .cost = cpu_cost,
    .run = run,
    .forget = forget,
    .sync = sync_queue,
    .wait = wait_queue,
    .stream = stream,
    .drop = drop,
    .spare = spare,
    .prepare = prepare,
    .record = record,
    .recorded = recorded,
    .replay = replay,
    .discard = discard,
};
