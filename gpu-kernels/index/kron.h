/* kron.h - the arguments of the kernel of the Kronecker product, and where it is found. */
#ifndef KRON_H
#define KRON_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KRON_THREADS 256
typedef struct kron_args {
    const void *in[2];
    void *out; /* dense */
    int64_t count;
    int32_t rank;
    divider64 out_size[DUET_RANK_MAX], y_size[DUET_RANK_MAX];
    int64_t stride[2][DUET_RANK_MAX];
} kron_args;

const void *kron_kernel(duet_dtype type); /* f32, f64 or i64 */
launcher kron_launch;

#ifdef __cplusplus
}
#endif
#endif
