/* launch.h - what all launchers (C) and kernels (CUDA) share. Each family of kernels has a header of its
 * own, with the arguments of its kernels and the functions that return them. Arguments have no element
 * type: addresses are void, numbers double, and strides count elements. Each kernel takes one struct. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "kernels.h"
#include "supported.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The access patterns of kernels. A family has one kernel for each of its forms. */
enum form {
    FORM_FLAT,    /* products: an operand consists of aligned vectors */
    FORM_STRIDED, /* ... any strides */
    FORM_ROWS,    /* reductions: a warp's threads run along the reduced axis */
    FORM_COLUMNS, /* ... or along the outputs */
    FORM_SHORT,   /* ... at most 16 elements, four threads an output */
    FORM_NARROW,  /* ... at most 128 elements, eight threads an output, which run along the reduced axis */
    FORM_LOW,     /* ... or along the outputs */
    FORM_THIN,    /* ... one thread an output */
    FORM_ROW,     /* softmax: a row is held in shared memory */
    FORM_LAST,    /* ... a longer row, after its maximum and sum were computed */
    FORM_WINDOW,  /* pooling, any window */
    FORM_WINDOW2, /* ... 2 x 2 */
};

/* The kernel of a row, or NULL. One pair of functions a .cu file. */
#define KERNEL_TABLE(family)                                                                                 \
    const void *family##_kernel_f32(int row, int form);                                                      \
    const void *family##_kernel_f64(int row, int form);

/* The functions of a family in kernels.def: the bytes of workspace that a launch needs, and the
 * launch. */
typedef size_t workspace_size(const step *s);
typedef cudaError_t launcher(const step *s, const frame *f, const workspace *w, cudaStream_t q);
#define GPU_KERNEL(number, unsupported, cost, launch) launcher launch;
#define GPU_KERNEL_WORKSPACE(number, unsupported, cost, workspace, launch)                                   \
    workspace_size workspace;                                                                                \
    launcher launch;
#include "kernels.def"

/* Launches a kernel that has one argument. Does nothing for 0 blocks. */
cudaError_t launch(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                   cudaStream_t q);

/* The same for a kernel that waits for the previous one itself (take_turn in device.cuh), and may
 * start before that one ends. launch_clusters also groups thread blocks into clusters. */
cudaError_t launch_early(const void *kernel, int64_t blocks, int threads, size_t shared, void *args,
                         cudaStream_t q);
cudaError_t launch_clusters(const void *kernel, int64_t blocks, int cluster, int threads, size_t shared,
                            void *args, cudaStream_t q);

/* Returns a function of CUDA's driver, in its version of CUDA 12.0, or NULL. It is found at run time,
 * because the library is not linked with the driver. */
void *driver_function(const char *name);

/* Was the kernel compiled for compute capability 9 and later, which have this wait instruction and
 * clusters? */
bool can_wait(const void *kernel);

/* Properties of the current card, or values that hold for every card if the query fails. */
typedef struct card_facts {
    int blocks, shared; /* multiprocessors; bytes of shared memory per thread block */
    bool clusters;      /* card and kernels support clusters of thread blocks */
    bool pairs;         /* ... and the instructions of emulated.cuh */
} card_facts;
card_facts card(void);

/* Allows a kernel more shared memory than the default, if a launch needs it. `most` must be the
 * same for all launches of a kernel, because several threads may launch it at once. */
#define SHARED_ALWAYS (48 << 10)
#define SHARED_LEAST  (99 << 10) /* every card allows so much */
cudaError_t with_shared(const void *kernel, size_t bytes, size_t most);

/* May work queued before a launch still be writing an operand? */
bool may_be_written(const workspace *w, const void *p, const layout *at);

size_t round_256(size_t bytes); /* rounds up, for the next array in scratch memory */
static inline int64_t quotient_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

#ifdef __cplusplus
}
#endif
#endif
