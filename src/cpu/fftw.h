/* fftw.h - FFTW's functions as a table for each precision, opened on first use. */
#ifndef FFTW_H
#define FFTW_H

#include <fftw3.h>
#include <stdbool.h>

/* The functions of one precision. Arrays are void *, so both precisions have the same types. */
typedef struct fftw {
    const char *missing; /* NULL, or why the library is missing */
    const char *path, *version;
    void *(*plan_guru64_dft)(int, const fftw_iodim64 *, int, const fftw_iodim64 *, void *, void *, int sign,
                             unsigned flags);
    void *(*plan_guru64_dft_r2c)(int, const fftw_iodim64 *, int, const fftw_iodim64 *, void *, void *,
                                 unsigned flags);
    void *(*plan_guru64_dft_c2r)(int, const fftw_iodim64 *, int, const fftw_iodim64 *, void *, void *,
                                 unsigned flags);
    void (*execute_dft)(void *plan, void *, void *);
    void (*execute_dft_r2c)(void *plan, void *, void *);
    void (*execute_dft_c2r)(void *plan, void *, void *);
    void (*destroy_plan)(void *plan);
    /* Functions that a library may lack. Without the first three it uses one thread. */
    int (*init_threads)(void);
    void (*plan_with_nthreads)(int threads);
    int (*planner_nthreads)(void);
    void (*make_planner_thread_safe)(void);
} fftw;

const fftw *fftw_open(bool f64);

#endif
