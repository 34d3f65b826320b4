/* errors.c - converts errors of the vendor libraries to a status. */
#include "device.h"
#include "vendor.h"

/* After the loss of a GPU, vendor libraries return their own error codes. CUDA's last error then
 * tells whether the GPU was lost. */
static void ask_cuda(const char *call)
{
    cudaError_t e = cudaPeekAtLastError();
    if (e != cudaSuccess) (void)cuda_failed(call, e);
}

duet_status blas_failed(const vendor *v, const char *call, cublasStatus_t e)
{
    ask_cuda(call);
    return fail(e == CUBLAS_STATUS_ALLOC_FAILED ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: %s", call,
                v->cublasLtGetStatusString(e));
}

/* cuFFT has no error texts. */
duet_status fft_failed(const vendor *v, const char *call, cufftResult e)
{
    ask_cuda(call);
    return fail(e == CUFFT_ALLOC_FAILED ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: cufftResult %d", call,
                (int)e);
}

duet_status dnn_failed(const vendor *v, const char *call, cudnnStatus_t e)
{
    const bool is_memory = e == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                           e == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    ask_cuda(call);
    return fail(is_memory ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: %s", call, v->cudnnGetErrorString(e));
}
