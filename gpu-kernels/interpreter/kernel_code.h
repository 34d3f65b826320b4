/* kernel_code.h - the code of one compiled kernel: made from a program by the driver, launched and freed. */
#ifndef KERNEL_CODE_H
#define KERNEL_CODE_H

#include "compiled_kernels.h"
#include <cuda.h>
#include <cuda_runtime_api.h>

typedef struct kernel_code {
    CUmodule module;
    CUfunction function;
} kernel_code;

/* Writes PTX for a program, and lets the driver compile it for the device. Returns false if one of them
 * cannot. form.list is not used. */
bool kernel_code_make(kernel_code *c, int device, const ptx_request *form, const program *p);

/* Frees the code. Its device must be current, and not run it. */
bool kernel_code_free(const kernel_code *c);

/* Returns false if the driver refuses the launch. args: the kernel's argument */
bool kernel_code_launch(const kernel_code *k, int device, const compiled_source *s, void *args,
                        cudaStream_t q);

/* Exchanges this thread's capture mode with *mode. In mode relaxed, calls of CUDA that free memory or wait
 * succeed while other threads capture. */
bool kernel_code_exchange_mode(enum cudaStreamCaptureMode *mode);

#endif
