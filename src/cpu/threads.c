/* threads.c - what the number of threads depends on: the properties of the machine, and the threads
 * that BLAS has. */
#include "threads.h"
#include "blas_headers.h"
#include "clock.h"
#include "min_max.h"
#include <pthread.h>
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
