/* threads.c - what the number of threads depends on: the properties of the machine, and the threads
 * that BLAS has. */
#include "threads.h"
#include "blas_headers.h"
#include "clock.h"
#include "min_max.h"
#include "trace.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
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
_Thread_local int threads_tested __attribute__((tls_model(DUET_TLS)));

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
static void end_threads(void)
{
#if HAS_OMP_PAUSE && !defined(__clang__) /* clang's OpenMP does this itself */
    (void)omp_pause_resource_all(omp_pause_soft);
#endif
}

bool cpu_workers_block_signals;
_Thread_local bool threads_signals_blocked __attribute__((tls_model(DUET_TLS)));

void threads_signals(sigset_t *all)
{
    static const int raised[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    sigfillset(all);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) sigdelset(all, raised[i]);
}

void threads_block_signals(void)
{
    sigset_t all;
    threads_signals(&all);
    threads_signals_blocked = !pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void forget_test(void) { threads_tested = 0; }

static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(end_threads, NULL, forget_test);
}

/* ---- can as much memory be mapped, and as many threads be made? ---- */

void *cpu_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool cpu_has_room(size_t bytes)
{
    void *p = cpu_map(bytes);
    if (p) munmap(p, bytes);
    return p != NULL;
}

/* The stacks of threads must leave this for libraries. */
#define SPARE_BYTES ((size_t)64 << 20)

static void *wait_until_released(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Makes up to count threads, which exist at the same time, and ends them. Returns how many it made. They
 * have the size of stack that OpenMP's have, unless OMP_STACKSIZE is set, and handle no signals. */
static int make_threads(int count, pthread_t *made)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    sigset_t all, before;
    int n = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&lock);
    while (n < count && !pthread_create(&made[n], NULL, wait_until_released, &lock)) n++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n; i++) pthread_join(made[i], NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_destroy(&lock);
    return n;
}

static void nothing(const void *work, int t, int threads) {}

void threads_test(int threads)
{
    pthread_t *made = malloc((size_t)threads * sizeof *made);
    void *spare = cpu_map(SPARE_BYTES);
    const int possible = 1 + (made && spare ? make_threads(threads - 1, made) : 0);
    free(made);
    threads_tested = possible;
    if (possible < threads) {
        TRACE("the system has no memory or no right for %d threads; this thread uses %d", threads, possible);
        omp_set_num_threads(possible);
    }
    if (spare) munmap(spare, SPARE_BYTES); /* clang's OpenMP needs more than stacks */
    by_threads(possible, nothing, NULL);
}

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
