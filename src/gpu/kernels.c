/* kernels.c - the registry of the GPU machine. It has an entry for each kernel number whose steps a
 * vendor library may run. All other kernel numbers run Duet's own kernels
 * (gpu-kernels/common/kernels.def). To add an entry, define it and add a line to `registered`. */
#include "kernels.h"
#include "fourier.h"
#include "step_kinds.h"

/* ---- matrix products and convolutions: our kernels take some, vendors the others ---- */

enum by { BY_KERNELS, BY_CUBLASLT, BY_CUDNN, BY_CUDNN_PADDED };

static const char *algorithm_of(const step *s, enum by by)
{
    static const char *const texts[][MATH_MODES] = {
        [BY_KERNELS] = { [DUET_MATH_STRICT] = "strict by Duet's kernels",
                         [DUET_MATH_SPLIT] = "strict by Duet's kernels, without emulation",
                         [DUET_MATH_TF32] = "strict by Duet's kernels, which are as fast",
                         [DUET_MATH_BF16] = "strict by Duet's kernels, which are as fast" },
        [BY_CUBLASLT] = { [DUET_MATH_STRICT] = "strict by cuBLASLt",
                          [DUET_MATH_SPLIT] = "strict by cuBLASLt: no kernel emulates f32",
                          [DUET_MATH_TF32] = "tf32 by cuBLASLt",
                          [DUET_MATH_BF16] = "bf16 by cuBLASLt" },
        [BY_CUDNN] = { [DUET_MATH_STRICT] = "strict by cuDNN",
                       [DUET_MATH_SPLIT] = "strict by cuDNN: no kernel emulates f32",
                       [DUET_MATH_TF32] = "tf32 by cuDNN",
                       [DUET_MATH_BF16] = "tf32 by cuDNN" },
        [BY_CUDNN_PADDED] = { [DUET_MATH_STRICT] = "strict by cuDNN, of a padded copy",
                              [DUET_MATH_SPLIT] = "strict by cuDNN, of a padded copy: no kernel emulates f32",
                              [DUET_MATH_TF32] = "tf32 by cuDNN, of a padded copy",
                              [DUET_MATH_BF16] = "tf32 by cuDNN, of a padded copy" },
    };
    if (s->math == DUET_MATH_SPLIT && kernels_splits(s)) return "by Duet's kernels, with emulated f32";
    return texts[kernels_unsupported(s) ? by : BY_KERNELS][s->math];
}

static const char *product_algorithm(const step *s)
{
    return is_int_gemm(s) ? "by Duet's kernels, as a reduction modulo 2^64" : algorithm_of(s, BY_CUBLASLT);
}

static const char *conv_algorithm(const step *s)
{
    return algorithm_of(s, conv_is_unequal(s) ? BY_CUDNN_PADDED : BY_CUDNN);
}

static const char *matmul_unsupported(const step *s)
{
    if (is_int_gemm(s)) return gpu_int_gemm_unsupported(s);
    return kernels_unsupported(s) ? gpu_matmul_unsupported(s) : NULL;
}

static duet_status run_matmul(const step *s, const frame *f, queue *q)
{
    if (is_int_gemm(s)) return gpu_int_gemm(s, f, q);
    return kernels_unsupported(s) ? gpu_matmul(s, f, q) : gpu_launch(s, f, q);
}

static const char *batched_unsupported(const step *s)
{
    return is_int_gemm(s) ? gpu_int_gemm_unsupported(s) : gpu_batched_unsupported(s);
}

static duet_status run_batched(const step *s, const frame *f, queue *q)
{
    return is_int_gemm(s) ? gpu_int_gemm(s, f, q) : gpu_batched(s, f, q);
}

static const char *conv_unsupported(const step *s)
{
    return kernels_unsupported(s) ? gpu_conv_unsupported(s) : NULL;
}

static duet_status run_conv(const step *s, const frame *f, queue *q)
{
    return kernels_unsupported(s) ? gpu_conv(s, f, q) : gpu_launch(s, f, q);
}

static void conv_forget(step *s)
{
    if (s->cached) gpu_conv_forget(s);
}

/* ---- entries ---- */

static const char *fft_algorithm(const step *s)
{
    (void)s;
    return "by cuFFT";
}

static const char *linalg_algorithm(const step *s)
{
    (void)s;
    return "by cuSOLVER, and the host waits for the result";
}

static const char *triangle_algorithm(const step *s)
{
    (void)s;
    return "by cuSPARSE, and the host waits for the result";
}

static const char *direct_algorithm(const step *s)
{
    (void)s;
    return "by cuDSS, and the host waits for the result";
}

static const char *program_algorithm(const step *s)
{
    return kernels_generated(s->program) ? "machine code" : NULL;
}

static const gpu_kernel own_kernel = { kernels_unsupported, gpu_launch, kernels_cost };
static const gpu_kernel program_kernel = { kernels_unsupported, gpu_launch, kernels_cost, program_algorithm };
static const gpu_kernel matmul_kernel = { matmul_unsupported, run_matmul, gpu_matmul_cost,
                                          product_algorithm };
static const gpu_kernel batched_kernel = { batched_unsupported, run_batched, cost_of_batched,
                                           product_algorithm };
static const gpu_kernel conv_kernel = { conv_unsupported, run_conv, cost_of_conv, conv_algorithm,
                                        conv_forget };
static const gpu_kernel fft_kernel = { gpu_fourier_unsupported, gpu_fourier, cost_of_transform, fft_algorithm,
                                       gpu_fourier_forget };
static const gpu_kernel fft_shift_kernel = { fourier_unsupported, gpu_fourier_shift, cost_of_pass };
static const gpu_kernel linalg_kernel = { gpu_linear_unsupported, gpu_linear, gpu_linear_cost,
                                          linalg_algorithm };

static const gpu_kernel collective_kernel = { gpu_collective_unsupported, gpu_collective, gpu_collective_cost,
                                              gpu_collective_algorithm };
static const gpu_kernel sparse_kernel = { kernels_unsupported, gpu_sparse, cost_of_pass,
                                          gpu_sparse_algorithm };
static const gpu_kernel sparse_triangle_kernel = { gpu_sparse_triangle_unsupported, gpu_sparse_triangle,
                                                   gpu_sparse_triangle_cost, triangle_algorithm };
static const gpu_kernel sparse_solve_kernel = { gpu_sparse_solve_unsupported, gpu_sparse_solve,
                                                gpu_sparse_solve_cost, direct_algorithm };

/* ---- the registry: one line a kernel ---- */

// clang-format off
static const gpu_kernel *const registered[KERNELS_ALL] = {
    [KERNEL_PROGRAM] = &program_kernel,
    [KERNEL_COLLECTIVE] = &collective_kernel,
    [OP_matmul] = &matmul_kernel,
    [KERNEL_BATCHED] = &batched_kernel,
    [OP_conv2d] = &conv_kernel,
    [OP_conv2d_input_grad] = &conv_kernel,
    [OP_conv2d_filter_grad] = &conv_kernel,
    [OP_fftn] = &fft_kernel,
    [OP_fftconvolve] = &fft_kernel,
    [OP_fftshift] = &fft_shift_kernel,
    [OP_csr_matmul] = &sparse_kernel,
    [OP_csr_sddmm] = &sparse_kernel,
    [OP_csr_solve] = &sparse_solve_kernel,
    [OP_csr_solve_triangular] = &sparse_triangle_kernel,
#define SOLVER(number) [number] = &linalg_kernel,
#include "solvers.def"
};
// clang-format on

const gpu_kernel *gpu_kernel_of(int kernel) { return registered[kernel] ? registered[kernel] : &own_kernel; }
