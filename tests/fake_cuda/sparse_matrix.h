/* sparse_matrix.h - the descriptors of the fake cuSPARSE. */
#ifndef SPARSE_MATRIX_H
#define SPARSE_MATRIX_H

#include <complex.h>
#include <cusparse.h>
#include <stdbool.h>

#define SPARSE_ROOM 512 /* workspace of every call */

typedef struct sparse_handle {
    int context;
    cudaStream_t stream;
} sparse_handle;

typedef struct sparse_matrix {
    int64_t rows, columns, count;
    const void *offsets, *column;
    void *values;
    bool wide, upper, unit;
    cudaDataType type;
} sparse_matrix;

typedef struct dense_matrix {
    int64_t rows, columns, down, across; /* in elements */
    char *values;
    cudaDataType type;
} dense_matrix;

static inline size_t element_bytes(cudaDataType t)
{
    if (t == CUDA_C_64F) return 16;
    return t == CUDA_R_32F ? 4 : 8;
}

static inline int64_t index_of(const sparse_matrix *a, const void *list, int64_t i)
{
    return a->wide ? ((const int64_t *)list)[i] : ((const int32_t *)list)[i];
}

static inline char *element(const dense_matrix *m, int64_t i, int64_t j)
{
    return m->values + (i * m->down + j * m->across) * (int64_t)element_bytes(m->type);
}

static inline double complex read_number(cudaDataType type, const void *p)
{
    const float *f = p;
    const double *d = p;
    if (type == CUDA_R_32F) return f[0];
    if (type == CUDA_R_64F) return d[0];
    return type == CUDA_C_32F ? f[0] + f[1] * I : d[0] + d[1] * I;
}

static inline void write_number(cudaDataType type, void *p, double complex x)
{
    float *f = p;
    double *d = p;
    if (type == CUDA_R_32F) f[0] = (float)creal(x);
    else if (type == CUDA_R_64F) d[0] = creal(x);
    else if (type == CUDA_C_32F) {
        f[0] = (float)creal(x);
        f[1] = (float)cimag(x);
    } else {
        d[0] = creal(x);
        d[1] = cimag(x);
    }
}

#endif
