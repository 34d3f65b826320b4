/* bucket_policy.h - size limits of arrays that share a collective step (buckets.h). Tests change them before
 * they run statements. They must be equal on all ranks. */
#ifndef BUCKET_POLICY_H
#define BUCKET_POLICY_H

typedef struct bucket_limits {
    double array[2], all[2]; /* bytes of an array that may wait, and of all that wait: on CPUs, on GPUs */
} bucket_limits;
bucket_limits *bucket_limits_now(void);

#endif
