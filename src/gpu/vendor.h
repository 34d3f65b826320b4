/* vendor.h - the vendor libraries as a table of functions. vendor.c opens the real ones; the fake
 * CUDA has its own table. */
#ifndef VENDOR_H
#define VENDOR_H

#include "cudss_api.h"
#include "nccl_api.h"
#include "status.h"
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <cusparse.h>

/* Headers of cuSOLVER from version 12 on declare eigenvalues of matrices that are not symmetric. */
#if CUSOLVER_VER_MAJOR >= 12
#define HAS_XGEEV
#endif

enum library {
#define LIBRARY(name, ...) LIBRARY_##name,
#include "vendor.def"
    LIBRARIES
};

/* One pointer for each row, with the type in the vendor's header. */
typedef struct vendor {
    /* NULL if the library is there with all its functions; otherwise the reason */
    const char *missing[LIBRARIES];
    const char *place[LIBRARIES]; /* the file that was opened */
#define VENDOR(lib, f) VENDOR_(f) /* some names are macros */
#define VENDOR_(f)     __typeof__(&f) f;
#include "vendor.def"
#undef VENDOR_
} vendor;

/* Returns the table after trying to open library l. Never NULL. */
const vendor *vendor_open(enum library l);

/* Converts the result of a vendor call to a status, with the name of the call in the text. */
#define BLAS(v, f, ...) blas_status((v), #f, (v)->f(__VA_ARGS__))
#define DNN(v, f, ...)  dnn_status((v), #f, (v)->f(__VA_ARGS__))
#define FFT(v, f, ...)  fft_status((v), #f, (v)->f(__VA_ARGS__))
duet_status blas_failed(const vendor *v, const char *call, cublasStatus_t e) __attribute__((cold));
duet_status dnn_failed(const vendor *v, const char *call, cudnnStatus_t e) __attribute__((cold));
duet_status fft_failed(const vendor *v, const char *call, cufftResult e) __attribute__((cold));

static inline duet_status blas_status(const vendor *v, const char *call, cublasStatus_t e)
{
    if (likely(e == CUBLAS_STATUS_SUCCESS)) return DUET_OK;
    return blas_failed(v, call, e);
}

static inline duet_status dnn_status(const vendor *v, const char *call, cudnnStatus_t e)
{
    if (likely(e == CUDNN_STATUS_SUCCESS)) return DUET_OK;
    return dnn_failed(v, call, e);
}

static inline duet_status fft_status(const vendor *v, const char *call, cufftResult e)
{
    if (likely(e == CUFFT_SUCCESS)) return DUET_OK;
    return fft_failed(v, call, e);
}

/* CUDA's name for the type f32, f64, c64 or c128. */
static inline cudaDataType_t vendor_type(duet_dtype t)
{
    switch (t) {
    case DUET_F32: return CUDA_R_32F;
    case DUET_F64: return CUDA_R_64F;
    case DUET_C64: return CUDA_C_32F;
    default: return CUDA_C_64F;
    }
}

static inline cublasOperation_t blas_op(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

#endif
