/* joined.h - products and convolutions that apply a program to their results before they store them, and
 * products that compute an operand by a program instead of reading it. nvcc compiles their kernels to PTX
 * with a placeholder for the formula (formula.cuh); the driver compiles it for one program, as
 * compiled_kernels.h says. Needs compute capability 9.0. Below, "product" also means a convolution. */
#ifndef JOINED_H
#define JOINED_H

#include "compiled_kernels.h"

/* The files with such kernels. Kernels of a file are numbered: kernel `number` has the code
 * JOINED_KERNEL(file, number) in ptx_request.kernel. */
enum joined_file {
    JOINED_GEMV,     /* rows of a - 1, plus 2 if wide, plus 4 for columns of b */
    JOINED_SMALL_MN, /* columns / 2 - 1; 8 to 10: of any strides */
    JOINED_TALL,     /* columns / 2 - 1, plus 8 for vectors */
    JOINED_SPLIT_K,  /* the row of gemm_split_k.def times 2, plus 1 if wide */
    JOINED_EMULATED, /* as emulated_kernels() and emulated_gemm_small_kernels() */
    JOINED_EMULATED_FEW,
    JOINED_WINOGRAD_1D,   /* 0, 1 or 2 for 2, 4 or 8 outputs of a thread, plus 3 if pooled */
    JOINED_WINOGRAD_2D,   /* 1 for 32 outputs of a warp, plus 2 if pooled */
    JOINED_EMULATED_CONV, /* 4 for 8 slots or 8 for 16, plus 2 for 16 lines, plus 1 if pooled; 12 and 13: two
                             shifts, and 8 or 16 lines */
    JOINED_FILES
};
/* The kernels of a file with an operand that a program computes: gemv's b, and a of the other two. They read
 * each element of it once. */
#define JOINED_OPERAND(file)        ((file) + JOINED_FILES)
#define JOINED_NUMBERS              64 /* kernels of a file, at most */
#define JOINED_KERNEL(file, number) ((uint16_t)((file)*JOINED_NUMBERS + (number)))

/* The program that follows a product, or that computes its operand. */
typedef struct joined {
    const step *program; /* its step */
    bool first; /* it computes input `given` of the product; if not, its input `given` is the product */
    int given;
    const frame *f;
    const workspace *w;
    bool done; /* the joined kernel was launched */
} joined;

/* A launch of a product: of `kernel` if it runs without a program. */
typedef struct product_launch_args {
    const void *kernel;
    enum joined_file file;
    int number;                 /* of the kernel in the file */
    int width;                  /* elements of its widest placeholder: 1, 2 or 4 */
    int operand, operand_width; /* the input that a program may compute, or -1; its widest placeholder */
    int64_t blocks;
    int cluster, threads;
    size_t shared, shared_most; /* as with_shared() takes them */
    void *args;                 /* `bytes` bytes; its output is where the program writes */
    size_t bytes;
} product_launch_args;

/* Launches a product. With a program (j is not NULL), launches the joined kernel if it is ready, and
 * otherwise nothing. */
cudaError_t product_start(const product_launch_args *l, joined *j, cudaStream_t q);

/* Returns where the joined kernel writes: `out`, or the output of the program that follows. Both are
 * dense. */
static inline void *joined_out(const joined *j, void *out)
{
    return j && !j->first ? j->f->data[j->program->out[0].slot] : out;
}

/* Launch a product or a convolution, with the program unless j is NULL. */
cudaError_t product_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q);
cudaError_t conv2d_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q);
cudaError_t emulated_conv_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q);
cudaError_t emulated_join(const step *s, joined *j, const frame *f, const workspace *w, cudaStream_t q);

#endif
