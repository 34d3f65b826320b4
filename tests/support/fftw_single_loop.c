/* fftw_single_loop.c - a library with the FFTW interface that supports less than FFTW, like those
 * of other vendors: no threads, and plans with at most one loop around a transform. FFTW does the
 * work. */
#include <dlfcn.h>
#include <fftw3.h>
#include <stdlib.h>

static void *real_of(const char *library, const char *name)
{
    void *h = dlopen(library, RTLD_NOW | RTLD_LOCAL), *f = h ? dlsym(h, name) : NULL;
    if (!f) abort();
    return f;
}

#define FORWARD(X, library)                                                                                  \
    X(plan)                                                                                                  \
    X(plan_guru64_dft)                                                                                       \
    (int rank, const X(iodim64) * dim, int loops, const X(iodim64) * loop, X(complex) * in,                  \
     X(complex) * out, int sign, unsigned flags)                                                             \
    {                                                                                                        \
        __typeof__(&X(plan_guru64_dft)) f = real_of(library, NAME(X(plan_guru64_dft)));                      \
        return loops > 1 ? NULL : f(rank, dim, loops, loop, in, out, sign, flags);                           \
    }                                                                                                        \
    X(plan)                                                                                                  \
    X(plan_guru64_dft_r2c)                                                                                   \
    (int rank, const X(iodim64) * dim, int loops, const X(iodim64) * loop, X(number) * in, X(complex) * out, \
     unsigned flags)                                                                                         \
    {                                                                                                        \
        __typeof__(&X(plan_guru64_dft_r2c)) f = real_of(library, NAME(X(plan_guru64_dft_r2c)));              \
        return loops > 1 ? NULL : f(rank, dim, loops, loop, in, out, flags);                                 \
    }                                                                                                        \
    X(plan)                                                                                                  \
    X(plan_guru64_dft_c2r)                                                                                   \
    (int rank, const X(iodim64) * dim, int loops, const X(iodim64) * loop, X(complex) * in, X(number) * out, \
     unsigned flags)                                                                                         \
    {                                                                                                        \
        __typeof__(&X(plan_guru64_dft_c2r)) f = real_of(library, NAME(X(plan_guru64_dft_c2r)));              \
        return loops > 1 ? NULL : f(rank, dim, loops, loop, in, out, flags);                                 \
    }                                                                                                        \
    void X(execute_dft)(X(plan) p, X(complex) * in, X(complex) * out)                                        \
    {                                                                                                        \
        __typeof__(&X(execute_dft)) f = real_of(library, NAME(X(execute_dft)));                              \
        f(p, in, out);                                                                                       \
    }                                                                                                        \
    void X(execute_dft_r2c)(X(plan) p, X(number) * in, X(complex) * out)                                     \
    {                                                                                                        \
        __typeof__(&X(execute_dft_r2c)) f = real_of(library, NAME(X(execute_dft_r2c)));                      \
        f(p, in, out);                                                                                       \
    }                                                                                                        \
    void X(execute_dft_c2r)(X(plan) p, X(complex) * in, X(number) * out)                                     \
    {                                                                                                        \
        __typeof__(&X(execute_dft_c2r)) f = real_of(library, NAME(X(execute_dft_c2r)));                      \
        f(p, in, out);                                                                                       \
    }                                                                                                        \
    void X(destroy_plan)(X(plan) p)                                                                          \
    {                                                                                                        \
        __typeof__(&X(destroy_plan)) f = real_of(library, NAME(X(destroy_plan)));                            \
        f(p);                                                                                                \
    }

#define NAME(x)  NAME_(x)
#define NAME_(x) #x
#define F64(x)   fftw_##x
#define F32(x)   fftwf_##x
typedef float fftwf_number;
typedef double fftw_number;
FORWARD(F64, "libfftw3.so.3")
FORWARD(F32, "libfftw3f.so.3")
