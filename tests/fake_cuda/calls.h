/* calls.h - calls of the fake cuSOLVER, and column-major matrices. All computations are complex;
 * real matrices are a special case. */
#ifndef CALLS_H
#define CALLS_H

#include "fake.h"
#include "vendor.h"
#include <complex.h>
#include <math.h>
#include <string.h>

typedef double _Complex number;

typedef struct handle {
    cudaStream_t stream;
    void *room;
} handle;

static inline cusolverStatus_t said(bool ok)
{
    if (ok) return CUSOLVER_STATUS_SUCCESS;
    return CUSOLVER_STATUS_EXECUTION_FAILED;
}

typedef struct call {
    bool wide, pairs, flag[3];
    int64_t m, n, k, lda, ldb, ldc;
    void *a, *b, *c, *w, *room, *host;
    size_t bytes, host_bytes;
    int64_t *pivot;
    int *info;
} call;

static inline bool is_wide(cudaDataType_t t) { return t == CUDA_R_64F || t == CUDA_C_64F; }
static inline bool is_pairs(cudaDataType_t t) { return t == CUDA_C_32F || t == CUDA_C_64F; }
static inline cudaDataType_t part_of_type(cudaDataType_t t) { return is_wide(t) ? CUDA_R_64F : CUDA_R_32F; }

/* Exact for all signs of zeros. */
static inline number pair(double re, double im)
{
    number x;
    memcpy(&x, (const double[]){ re, im }, sizeof x);
    return x;
}

static inline double get_value(const call *c, const void *p, int64_t i)
{
    if (c->wide) return ((const double *)p)[i];
    return (double)((const float *)p)[i];
}
static inline void put_value(const call *c, void *p, int64_t i, double x)
{
    if (c->wide) ((double *)p)[i] = x;
    else ((float *)p)[i] = (float)x;
}
static inline number get(const call *c, const void *p, int64_t i)
{
    if (c->pairs) return pair(get_value(c, p, 2 * i), get_value(c, p, 2 * i + 1));
    return get_value(c, p, i);
}
static inline void put(const call *c, void *p, int64_t i, number x)
{
    put_value(c, p, c->pairs ? 2 * i : i, creal(x));
    if (c->pairs) put_value(c, p, 2 * i + 1, cimag(x));
}

/* Division by a real number, exactly. */
static inline number over(number x, number y)
{
    if (cimag(y) == 0) return pair(creal(x) / creal(y), cimag(x) / creal(y));
    return x / y;
}
#define A(i, j)        get(c, c->a, (i) + (j)*c->lda)
#define SET_A(i, j, x) put(c, c->a, (i) + (j)*c->lda, x)
#define B(i, j)        get(c, c->b, (i) + (j)*c->ldb)
#define SET_B(i, j, x) put(c, c->b, (i) + (j)*c->ldb, x)

/* Is a column-major matrix in device memory? */
static inline bool owns(const call *c, const void *p, int64_t rows, int64_t cols, int64_t ld)
{
    const size_t each = (c->wide ? 8 : 4) * (c->pairs ? 2 : 1);
    return ld >= (rows > 1 ? rows : 1) &&
           (!rows || !cols || fake_owns(p, (size_t)(ld * (cols - 1) + rows) * each));
}

static inline bool owns_values(const call *c, const void *p, int64_t n)
{
    return !n || fake_owns(p, (size_t)n * (c->wide ? 8 : 4));
}

enum { ROOM = 768, HOST_ROOM = 96 };

/* Queues a call. The workspace is overwritten, as a real solver may do. */
static inline bool queue_call(void *h, void (*run)(void *), call *c, bool fits)
{
    if (fake_vendor_fails() || !fits || !fake_owns(c->info, sizeof *c->info)) return false;
    if (c->bytes && !fake_owns(c->room, c->bytes)) return false;
    if (c->host_bytes) memset(c->host, 0xff, c->host_bytes);
    pthread_mutex_lock(&fake_lock);
    fake_counted.solutions++;
    pthread_mutex_unlock(&fake_lock);
    return !fake_queue(((handle *)h)->stream, run, c, sizeof *c);
}

/* A Hermitian matrix has a real diagonal; the result for other matrices is undefined. */
static inline bool has_real_diagonal(const call *c)
{
    bool real = true;
    for (int64_t i = 0; i < c->n; i++) real &= cimag(A(i, i)) == 0;
    return real;
}

static inline void spoil(const call *c)
{
    if (c->bytes) memset(c->room, 0xff, c->bytes);
}

#endif
