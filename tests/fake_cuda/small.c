/* small.c - the fake kernels of linalg_small.h: the same algorithms, by one thread. */
#include "fake.h"
#include "linalg_small.h"
#include <complex.h>
#include <math.h>
#include <string.h>

#define QUALIFIERS static inline
#define LANE       0
#define LANES      1
#define SYNC()     ((void)0)

#define PARTS        1
#define RE(x)        (x)
#define IM(x)        0
#define CONJ(x)      (x)
#define MAKE(re, im) (re)
#define LARGEST      112
#define LEAST        (-96)
#define E            float
#define R            float
#define NAME(f)      f##_f32
#define SIZE(x)      fabsf(x)
#include "small_matrix_ops.h"
#undef LARGEST
#undef LEAST
#undef E
#undef R
#undef NAME
#undef SIZE
#define LARGEST 1008
#define LEAST   (-960)
#define E       double
#define R       double
#define NAME(f) f##_f64
#define SIZE(x) fabs(x)
#include "small_matrix_ops.h"
#undef PARTS
#undef RE
#undef IM
#undef CONJ
#undef MAKE
#undef E
#undef NAME
#undef SIZE

static inline double _Complex make_c128(double re, double im)
{
    double _Complex z;
    memcpy(&z, (const double[]){ re, im }, sizeof z);
    return z;
}
static inline float _Complex make_c64(float re, float im)
{
    float _Complex z;
    memcpy(&z, (const float[]){ re, im }, sizeof z);
    return z;
}
#define PARTS   2
#define E       double _Complex
#define NAME(f) f##_c128
#define SIZE(x) (fabs(creal(x)) + fabs(cimag(x)))
#define RE(x)   creal(x)
#define IM(x)   cimag(x)
#define CONJ(x) conj(x)
#define MAKE    make_c128
#include "small_matrix_ops.h"
#undef LARGEST
#undef LEAST
#undef E
#undef R
#undef NAME
#undef SIZE
#undef RE
#undef IM
#undef CONJ
#undef MAKE
#define LARGEST 112
#define LEAST   (-96)
#define E       float _Complex
#define R       float
#define NAME(f) f##_c64
#define SIZE(x) (fabsf(crealf(x)) + fabsf(cimagf(x)))
#define RE(x)   crealf(x)
#define IM(x)   cimagf(x)
#define CONJ(x) conjf(x)
#define MAKE    make_c64
#include "small_matrix_ops.h"

static void run(void *args)
{
    static void (*const matrix[2][2])(const small_args *how, int64_t m,
                                      void *memory) = { { small_matrix_f32, small_matrix_c64 },
                                                        { small_matrix_f64, small_matrix_c128 } };
    const small_args *a = args;
    void *memory = fake_alloc(small_bytes(a));
    for (int64_t m = 0; m < a->count; m++) matrix[a->wide][a->pairs](a, m, memory);
    fake_free(memory);
}

cudaError_t small_launch(const small_args *a, cudaStream_t q)
{
    const size_t each = (a->wide ? 8 : 4) * (a->pairs ? 2 : 1), count = (size_t)a->count, n = (size_t)a->n,
                 sides = (size_t)a->sides;
    ENTER(cudaErrorUnknown);
    bool fits = fake_owns(a->a, count * n * n * each) && fake_owns(a->left, count * sizeof *a->left) &&
                small_bytes(a) <= SMALL_BYTES_MOST && a->n <= SMALL_MOST;
    if (a->what == SMALL_SOLVE || a->what == SMALL_TRIANGULAR)
        fits &= fake_owns(a->b, count * n * sides * each) && fake_owns(a->out, count * n * sides * each);
    if (a->what == SMALL_INV || a->what == SMALL_CHOLESKY) fits &= fake_owns(a->out, count * n * n * each);
    if (!fits) return fake_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&fake_lock);
    fake_counted.launches++;
    pthread_mutex_unlock(&fake_lock);
    return fake_queue(q, run, a, sizeof *a);
}
