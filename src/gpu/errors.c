/* errors.c - converts errors of the vendor libraries to a status. */
#include "device.h"
#include "vendor.h"

/* After the loss of a GPU, vendor libraries return their own error codes, so CUDA is asked. */

duet_status blas_failed(const vendor *v, const char *call, cublasStatus_t e)
{
    if (gpu_device_was_lost(call)) return DUET_DEVICE_ERROR;
    return fail(e == CUBLAS_STATUS_ALLOC_FAILED ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: %s", call,
                v->cublasLtGetStatusString(e));
}

/* cuFFT has no error texts. */
duet_status fft_failed(const vendor *v, const char *call, cufftResult e)
{
    if (gpu_device_was_lost(call)) return DUET_DEVICE_ERROR;
    return fail(e == CUFFT_ALLOC_FAILED ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: cufftResult %d", call,
                (int)e);
}

duet_status dnn_failed(const vendor *v, const char *call, cudnnStatus_t e)
{
    const bool is_memory = e == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                           e == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    if (gpu_device_was_lost(call)) return DUET_DEVICE_ERROR;
    return fail(is_memory ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: %s", call, v->cudnnGetErrorString(e));
}
