/* sparse_calls.h - calls of cuSPARSE, and the matrices that they take. */
#ifndef SPARSE_CALLS_H
#define SPARSE_CALLS_H

#include "csr.h"
#include "queue.h"

duet_status gpu_sparse_failed(const vendor *v, const char *call, cusparseStatus_t e) __attribute__((cold));

static inline duet_status gpu_sparse_status(const vendor *v, const char *call, cusparseStatus_t e)
{
    return likely(e == CUSPARSE_STATUS_SUCCESS) ? DUET_OK : gpu_sparse_failed(v, call, e);
}
#define SPARSE(v, f, ...) gpu_sparse_status((v), #f, (v)->f(__VA_ARGS__))

/* Makes the handle of the queue and its stream. The caller holds q->lock. */
duet_status gpu_sparse_open(const vendor *v, queue *q);
duet_status gpu_sparse_describe(const vendor *v, const csr *c, const void *values, cudaDataType_t type,
                                cusparseSpMatDescr_t *matrix);

#endif
