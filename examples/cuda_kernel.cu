/* cuda_kernel.cu - runs its own CUDA kernel and a product of cuBLAS between statements of Duet, on the same
 * stream. The program exits with 77 if there is no GPU. */
#include <cublas_v2.h>
#include <duet/duet.h>

__global__ static void swish(const float *x, float *y, int64_t n)
{
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1 + expf(-x[i]));
}

static bool run_kernel(cudaStream_t stream, const duet_matrix *x, duet_matrix *y)
{
    const int64_t n = duet_count(x);
    const float *from = (const float *)duet_device_read(x);
    float *to = (float *)duet_device_overwrite(y);
    if (!from || !to) return false;
    swish<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(from, to, n);
    return cudaGetLastError() == cudaSuccess;
}

/* Sets c to a b. Matrices are row-major, so cuBLAS sees them transposed: it computes c^T = b^T a^T. */
static bool run_cublas(cudaStream_t stream, const duet_matrix *a, const duet_matrix *b, duet_matrix *c)
{
    const int m = (int)duet_size(c, 0), n = (int)duet_size(c, 1), k = (int)duet_size(a, 1);
    const float one = 1, zero = 0;
    const float *pa = (const float *)duet_device_read(a), *pb = (const float *)duet_device_read(b);
    float *pc = (float *)duet_device_overwrite(c);
    cublasHandle_t handle = NULL;
    if (!pa || !pb || !pc || cublasCreate(&handle)) return false;
    const bool done = !cublasSetStream(handle, stream) && !cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m,
                                                                       k, &one, pb, n, pa, k, &zero, pc, n);
    return !cublasDestroy(handle) && done;
}

int main()
{
    const int m = 300, k = 200, n = 100;
    duet_matrix *x = duet_new(DUET_F32, m, k), *y = duet_new(DUET_F32, m, k), *w = duet_new(DUET_F32, k, n);
    duet_matrix *z = duet_new(DUET_F32, m, n);
    const cudaStream_t stream = (cudaStream_t)duet_stream();
    const bool no_gpu = !stream && duet_error_status() == DUET_NO_DEVICE;
    double error = 1;

    if (no_gpu) puts("there is no GPU");
    else if (!stream || duet_random_normal(x, 1, 0, 1) || duet_random_normal(w, 2, 0, 1) ||
             !run_kernel(stream, x, y) || !run_cublas(stream, y, w, z) ||
             duet_item(duet_norm(duet_sub(z, duet_matmul(duet_silu(x), w))), DUET_F64, &error))
        fprintf(stderr, "%s\n", duet_error());
    else printf("distance to the result of Duet: %.2g\n", error);

    duet_free(&x), duet_free(&y), duet_free(&w), duet_free(&z);
    if (duet_live(stderr)) return 1;
    return no_gpu ? 77 : !(error < 1e-2);
}
