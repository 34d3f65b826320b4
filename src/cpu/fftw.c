/* fftw.c - opens FFTW at run time, or the library in DUET_FFT, which needs the same interface (such
 * as MKL). */
#define _GNU_SOURCE /* for dladdr */
#include "fftw.h"
#include "compiler.h"
#include "cpu.h"
#include "environment.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

static fftw table[2];
static char text[2][512];

/* Libraries with OpenMP threads, like Duet's own, are tried first. */
static const char *const names[2][3] = { { "libfftw3f_omp.so.3", "libfftw3f_threads.so.3", "libfftw3f.so.3" },
                                         { "libfftw3_omp.so.3", "libfftw3_threads.so.3", "libfftw3.so.3" } };

static const struct function {
    size_t offset;
    const char *name; /* without the prefix fftw_ or fftwf_ */
    bool needed;
} functions[] = {
#define FUNCTION(f, needed)                                                                                  \
    {                                                                                                        \
        offsetof(fftw, f), #f, needed                                                                        \
    }
    FUNCTION(plan_guru64_dft, true),
    FUNCTION(plan_guru64_dft_r2c, true),
    FUNCTION(plan_guru64_dft_c2r, true),
    FUNCTION(execute_dft, true),
    FUNCTION(execute_dft_r2c, true),
    FUNCTION(execute_dft_c2r, true),
    FUNCTION(destroy_plan, true),
    FUNCTION(init_threads, false),
    FUNCTION(plan_with_nthreads, false),
    FUNCTION(planner_nthreads, false),
    FUNCTION(make_planner_thread_safe, false),
};

static const char *precision_letter(bool f64) { return f64 ? "" : "f"; }

static void *open_at(bool f64, const char *path)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) snprintf(text[f64], sizeof text[f64], "%s", dlerror());
    return h;
}

static void *open_library(bool f64)
{
    const char *chosen = environment_trusted("DUET_FFT");
    void *h = NULL;
    if (chosen && *chosen) return open_at(f64, chosen);
    for (int i = 0; i < 3 && !h; i++) h = open_at(f64, names[f64][i]);
    return h;
}

static void *symbol(void *h, bool f64, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "fftw%s_%s", precision_letter(f64), name);
    return dlsym(h, full);
}

static bool find_functions(fftw *l, void *h, bool f64)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = *(void **)((char *)l + functions[i].offset) = symbol(h, f64, functions[i].name);
        if (f || !functions[i].needed) continue;
        snprintf(text[f64], sizeof text[f64], "%s lacks fftw%s_%s", l->path ? l->path : "the file found",
                 precision_letter(f64), functions[i].name);
        return false;
    }
    return true;
}

static void find_path(fftw *l, void *h, bool f64)
{
    Dl_info info;
    void *f = symbol(h, f64, "destroy_plan");
    l->path = f && dladdr(f, &info) && info.dli_fname ? info.dli_fname : NULL;
    l->version = symbol(h, f64, "version");
}

/* The program may use FFTW too, and plan at the same time. FFTW then needs its lock. */
static void start_threads(fftw *l)
{
    if (!l->init_threads || !l->plan_with_nthreads || !l->init_threads()) l->plan_with_nthreads = NULL;
    else if (l->make_planner_thread_safe) l->make_planner_thread_safe();
}

static void open_one(bool f64)
{
    fftw *l = &table[f64];
    void *h = open_library(f64);
    if (h) find_path(l, h, f64);
    if (h && find_functions(l, h, f64)) start_threads(l);
    else l->missing = text[f64];
}

/* If there is no memory to load the library, the next call tries again. */
#define LIBRARY_ROOM ((size_t)16 << 20)

const fftw *fftw_open(bool f64)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool settled[2];
    if (likely(__atomic_load_n(&settled[f64], __ATOMIC_ACQUIRE))) return &table[f64];
    pthread_mutex_lock(&lock);
    if (!settled[f64]) {
        const bool has_room = cpu_has_room(LIBRARY_ROOM);
        table[f64].missing = NULL;
        open_one(f64);
        __atomic_store_n(&settled[f64], has_room || !table[f64].missing, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return &table[f64];
}
