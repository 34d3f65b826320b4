/* blas_library.c - what differs between BLAS libraries: their names, versions and threads. */
#include "blas_headers.h"
#include <stdio.h>

#if defined BLAS_OPENBLAS
enum { NO_THREADS, OWN_THREADS, OPENMP_THREADS }; /* openblas_get_parallel returns one of these */

bool blas_has_own_threads(void) { return openblas_get_parallel() == OWN_THREADS; }

void blas_describe(char *text, size_t size)
{
    static const char *const threads[] = { "no threads", "threads of its own", "OpenMP's threads" };
    snprintf(text, size, "%s, %s", openblas_get_config(), threads[openblas_get_parallel()]);
}
#else
bool blas_has_own_threads(void) { return false; }
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
