/* random_kernels.h - the kernels that draw random numbers. */
#ifndef RANDOM_KERNELS_H
#define RANDOM_KERNELS_H

#include "fast_divide.h"
#include "launch.h"
#include "random_step.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RANDOM_THREADS 256
#define BUCKET_MEAN    128 /* of a permutation: the greatest average size of a bucket */
#define BUCKET_THREADS 128
#define BUCKET_KEPT    512 /* elements of a bucket that fit into shared memory */
#define SCAN_THREADS   1024

/* Random numbers, one Philox block per thread. For a permutation, indices are put into buckets by
 * the upper bits of their keys, in any order, and then ranked within the bucket. `ends` has the
 * sizes of the buckets, then their starts, then their ends. */
enum random_form {
    FORM_DRAW,                  /* any distribution; FORM_DRAW + proposal for a truncated normal one */
    FORM_COUNT = FORM_DRAW + 3, /* permutations: counts the indices of each bucket, */
    FORM_SCAN,                  /* computes the starts of buckets, */
    FORM_SPREAD,                /* puts indices into buckets, */
    FORM_RANK,                  /* and ranks them */
};

typedef struct random_args {
    void *out;
    int64_t n;
    random_params draw;
    int32_t rank;
    bool vectors; /* out is contiguous, and the elements of whole blocks are aligned to 16 bytes */
    divider64 size[DUET_RANK_MAX];
    int64_t stride[DUET_RANK_MAX];
    divider64 run_blocks; /* if draw.run is not 0: the largest number of blocks that a run needs */
    uint32_t *indices, *ends;
    int32_t bucket_bits;
} random_args;

KERNEL_TABLE(random)
const void *random_kernel_i64(int row, int form);

#ifdef __cplusplus
}
#endif

#endif
