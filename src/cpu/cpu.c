/* cpu.c - the CPU machine: its properties and memory, and the functions that run steps. */
#include "cpu.h"
#include "blas_headers.h"
#include "conv.h"
#include "fft.h"
#include "host_work.h"
#include "lapack.h"
#include "stack.h"
#include "thread.h"
#include "threads.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- steps ---- */

static const char *unsupported_reason(const step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    if (!k) return "the CPU has no kernel of this name";
    return k->unsupported(s);
}

static bool is_sure(const step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    return k && k->is_sure && k->is_sure(s);
}

static size_t scratch(const step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    return k && k->scratch ? k->scratch(s) : 0;
}

static duet_status make_sure(const step *s, int device)
{
    TRY(stack_prepare());
    return s->kernel == OP_matmul ? blas_prepare() : DUET_OK;
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

static duet_status run_by(const thread *t, const cpu_kernel *k, const step *s, const frame *f)
{
    return likely(!t->threads) ? k->run(s, f) : run_with(t->threads, k, s, f);
}

/* The caller's floating-point environment differs, so the threads of OpenMP may have inherited it. Kernels
 * set theirs, but the threads of a library have the environment of the thread that started them. */
static __attribute__((noinline, cold)) duet_status run_foreign(const thread *t, const cpu_kernel *k,
                                                               const step *s, const frame *f)
{
    static _Thread_local fp_scope before;
    static _Thread_local bool entered; /* false in a thread that started since */
    const int threads = threads_here();
    if (!k->calls_library || threads == 1) return run_by(t, k, s, f);
#pragma omp parallel num_threads(threads)
    {
        fp_enter(&before);
        entered = true;
    }
    const duet_status status = run_by(t, k, s, f);
#pragma omp parallel num_threads(threads)
    {
        if (entered) fp_leave(&before);
        entered = false;
    }
    return status;
}

static duet_status run_anywhere(const thread *t, const cpu_kernel *k, const step *s, const frame *f)
{
    return likely(!t->foreign_fp) ? run_by(t, k, s, f) : run_foreign(t, k, s, f);
}

/* ---- the end of the process ----
 *
 * When the process ends, libraries free their kernels and memory while other threads may still use them. So
 * the end waits for calls that have begun, and later ones fail. */

#define ENDING_STEPS 10000 /* of 1 ms: after that the process ends in any case */

static bool is_ending; /* atomic */

/* clang's OpenMP aborts at the end if another thread is in a parallel region, whatever that computes. */
#ifdef __clang__
enum { ALL_STEPS_USE_LIBRARY = 1 };
#else
enum { ALL_STEPS_USE_LIBRARY = 0 };
#endif

/* The first pause is long enough for other threads to see the flag, or for this one to see theirs. */
static void wait_for_libraries(void)
{
    const bool is_first = !__atomic_exchange_n(&is_ending, true, __ATOMIC_SEQ_CST);
    for (int i = 0; i < ENDING_STEPS && ((is_first && i == 0) || thread_any_in_library()); i++) usleep(1000);
}

/* Functions are called in reverse order at the end, and a library may register some when it is first used.
 * So the function above is registered again after the first call of each kernel. */
static __attribute__((noinline, cold)) void watch_end(bool *watched)
{
    if (!atexit(wait_for_libraries)) __atomic_store_n(watched, true, __ATOMIC_RELAXED);
}

static void count_calls(thread *t, int by)
{
    __atomic_store_n(&t->in_library, __atomic_load_n(&t->in_library, __ATOMIC_RELAXED) + (uint32_t)by,
                     __ATOMIC_RELAXED);
}

static duet_status run_library(thread *t, const cpu_kernel *k, const step *s, const frame *f)
{
    static bool watched[KERNELS_ALL][DUET_DTYPE_COUNT]; /* atomic */
    bool *w = &watched[s->kernel][s->out[0].at.type];
    count_calls(t, 1);
    duet_status r;
    if (unlikely(__atomic_load_n(&is_ending, __ATOMIC_RELAXED)))
        r = fail(DUET_UNSUPPORTED, "the process is ending");
    else r = run_anywhere(t, k, s, f);
    if (unlikely(!__atomic_load_n(w, __ATOMIC_RELAXED))) watch_end(w);
    count_calls(t, -1);
    return r;
}

/* Libraries use one thread below this. */
#define FLOPS_ALONE 1e4

static duet_status run_here(const step *s, const frame *f)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    thread *t = thread_get();
    if (!k) return fail(DUET_UNSUPPORTED, "the CPU has no kernel %d", s->kernel);
    if (k->calls_library && !(s->flops < FLOPS_ALONE)) threads_prepare();
    if (k->calls_library || ALL_STEPS_USE_LIBRARY) return run_library(t, k, s, f);
    return run_anywhere(t, k, s, f);
}

static duet_status run(const step *s, const frame *f) { return stack_step_run(run_here, s, f); }

static void forget(step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    if (k && k->forget) k->forget(s);
}

/* ---- work of the host ---- */

int cpu_threads(double seconds)
{
    const int threads = threads_for(seconds), most = thread_get()->threads;
    return most && most < threads ? most : threads;
}

typedef struct shared_work {
    int threads;
    share_function *share;
    const void *work;
} shared_work;

static duet_status share_here(void *of)
{
    const shared_work *w = of;
    by_threads(w->threads, w->share, w->work);
    return DUET_OK;
}

/* The end of the process waits for the work, as for calls in run_library, if parallel regions need that. */
static duet_status share_watched(void *of)
{
    static bool watched; /* atomic */
    thread *t = thread_get();
    if (!ALL_STEPS_USE_LIBRARY) return share_here(of);
    count_calls(t, 1);
    const bool ending = __atomic_load_n(&is_ending, __ATOMIC_RELAXED);
    if (!ending) (void)share_here(of);
    if (unlikely(!__atomic_load_n(&watched, __ATOMIC_RELAXED))) watch_end(&watched);
    count_calls(t, -1);
    return ending ? DUET_UNSUPPORTED : DUET_OK;
}

/* One thread does all of the work if several cannot be used. */
void cpu_share(int threads, share_function *f, const void *work)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    if (threads > 1) {
        shared_work w = { threads, f, work };
        error_text before;
        error_keep(&before);
        if (stack_run(thread_get(), share_watched, &w) == DUET_OK) return;
        error_put_back(&before);
    }
    f(work, 0, 1);
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
    return fail(DUET_UNSUPPORTED, "the CPU cannot record steps");
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
    .name = "CPU",
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
    .scratch = scratch,
    .is_sure = is_sure,
    .make_sure = make_sure,
    .algorithm = algorithm,
    .cost = cpu_cost,
    .run = run,
    .forget = forget,
    .sync = sync_queue,
    .report = sync_queue,
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
