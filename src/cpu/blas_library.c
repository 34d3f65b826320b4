/* blas_library.c - what differs between BLAS libraries: their names, versions and threads. */
#include "blas_headers.h"
#include "cpu.h"
#include "status.h"
#include "trace.h"
#include <omp.h>
#include <stdio.h>
#include <strings.h>
#include <sys/mman.h>

#if defined BLAS_OPENBLAS
enum { NO_THREADS, OWN_THREADS, OPENMP_THREADS }; /* openblas_get_parallel returns one of these */

bool blas_has_own_threads(void) { return openblas_get_parallel() == OWN_THREADS; }

#define VERSION_WITH_SMALL_KERNELS 321 /* 0.3.21; older ones were not measured */

bool blas_has_small_kernels(void)
{
    static const char *const cores[] = { "SkylakeX", "Cooperlake", "SapphireRapids" };
    int major, minor, patch;
    if (sscanf(openblas_get_config(), "OpenBLAS %d.%d.%d", &major, &minor, &patch) != 3) return false;
    if (major * 10000 + minor * 100 + patch < VERSION_WITH_SMALL_KERNELS) return false;
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (!strcasecmp(openblas_get_corename(), cores[i])) return true;
    return false;
}

/* OpenBLAS maps a block of memory for each thread that calls it, and for each thread that works for that
 * one. It keeps the blocks. If the system refuses one, it tries again forever. */
#define BLOCK_BYTES ((size_t)128 << 20)

_Thread_local int blas_prepared __attribute__((tls_model(DUET_TLS)));

/* Maps up to count blocks, which exist at the same time, and unmaps them. Returns how many there were. */
static int map_blocks(int count)
{
    void *first = NULL; /* each block holds the address of the one before */
    int n = 0;
    for (; n < count; n++) {
        void **p = cpu_map(BLOCK_BYTES);
        if (!p) break;
        *p = first;
        first = p;
    }
    while (first) {
        void *next = *(void **)first;
        munmap(first, BLOCK_BYTES);
        first = next;
    }
    return n;
}

/* Makes OpenBLAS map its blocks now, before something else takes the memory. */
static void take_blocks(int threads)
{
    double x = 0;
    if (threads > 1 && openblas_get_num_threads() != threads) openblas_set_num_threads(threads);
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, 1, 1, 1, &x, 1, 0, &x, 1);
}

/* Several threads need one block each as callers, and one each as workers of one caller. */
static int blocks_for(int threads) { return threads > 1 ? 2 * threads : threads; }

duet_status blas_prepare_for(int threads)
{
    const int before = blas_prepared, more = blocks_for(threads) - blocks_for(before);
    const bool own = blas_has_own_threads();
    if (map_blocks(more) < more) {
        TRACE("the system has no memory for %d threads of OpenBLAS", threads);
        if (own || (!before && map_blocks(1) < 1))
            return fail(DUET_NO_MEMORY, "OpenBLAS needs blocks of %zu bytes, and the system has none",
                        BLOCK_BYTES);
        omp_set_num_threads(threads = 1);
    }
    blas_prepared = threads > before ? threads : before;
    if (!own) take_blocks(threads);
    return DUET_OK;
}

int blas_threads(void)
{
    if (blas_has_own_threads()) return openblas_get_num_threads();
    return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void blas_describe(char *text, size_t size)
{
    static const char *const threads[] = { "no threads", "threads of its own", "OpenMP's threads" };
    snprintf(text, size, "%s, %s", openblas_get_config(), threads[openblas_get_parallel()]);
}
#else
bool blas_has_own_threads(void) { return false; }
bool blas_has_small_kernels(void) { return false; }
#endif

#ifdef BLAS_MKL
void blas_describe(char *text, size_t size) { mkl_get_version_string(text, (int)size); }
#endif

#ifdef BLAS_BLIS
char *bli_info_get_version_str(void); /* the cblas.h may be that of another library */

void blas_describe(char *text, size_t size)
{
    snprintf(text, size, "BLIS %s; set BLIS_NUM_THREADS to use several threads", bli_info_get_version_str());
}
#endif

#ifdef BLAS_FLEXIBLAS
void blas_describe(char *text, size_t size)
{
    snprintf(text, size, "FlexiBLAS; the variable FLEXIBLAS selects the library");
}
#endif
