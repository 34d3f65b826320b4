/* group.h - matrices on several GPUs, or in several processes. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_GROUP_H
#define DUET_GROUP_H

/* An ordered set of devices. Its members are called ranks and are numbered from 0. All ranks are in one
 * process (duet_group_local), or each rank is in a process of its own (duet_group_mpi of libduet-mpi). */
typedef struct duet_group duet_group;

/* Make and free a group.
 *     duet_group_local   makes a group of the first `ranks` GPUs of this process. Without a GPU, or inside
 *                        DUET_ON(DUET_CPU), ranks are parts of the CPU, each with an equal share of the
 *                        threads. 0: all GPUs, or one part of the CPU
 *     duet_group_free    sets *g to NULL. NULL is accepted. The group ends when the last matrix on it and the
 *                        last recording of its statements have been freed
 * Owner     the caller, until duet_group_free
 * Errors    NULL: BAD_ARGUMENT: ranks is negative or larger than 64. NO_DEVICE: there are fewer GPUs, a GPU
 *           cannot be used, or NCCL is missing. DEVICE_ERROR, RANK_FAILED: NCCL cannot connect the GPUs.
 *           NO_MEMORY */
DUET_API DUET_MUST duet_group *duet_group_local(int ranks);
DUET_API void duet_group_free(duet_group **g);

/* Describe a group.
 *     duet_group_ranks     the number of ranks
 *     duet_group_rank      the first rank in this process
 *     duet_group_near      the number of ranks in this process
 *     duet_group_info      prints the devices in this process, and how the ranks are connected
 * Errors    0 if g is NULL; nothing is printed */
DUET_API int duet_group_ranks(const duet_group *g);
DUET_API int duet_group_rank(const duet_group *g);
DUET_API int duet_group_near(const duet_group *g);
DUET_API void duet_group_info(FILE *out, const duet_group *g);

/* Sets how long a statement waits for the other ranks before it fails with RANK_FAILED. The default is
 * DUET_GROUP_TIMEOUT (docs/environment.md), or 60 seconds. After such a failure the group can no longer be
 * used.
 * Units     seconds
 * Errors    BAD_ARGUMENT: g is NULL, or seconds is not positive */
DUET_API duet_status duet_group_timeout(duet_group *g, double seconds);

/* Make a matrix of zeros on a group. Formulas, statements and views use it like any other matrix. The planner
 * inserts the communication that a statement needs, and duet_explain prints it.
 *     duet_new_split        splits the matrix along `axis`. Each rank has one part; parts are in the order of
 *                           the ranks. Of n elements along the axis each rank has n / ranks, and each of the
 *                           first n % ranks has one more. If n / ranks is at least 262144, each part begins
 *                           at a multiple of 4096 instead. duet_split_part returns the parts
 *     duet_new_replicated   each rank has all elements
 * In a group of several processes, every process calls the same functions in the same order. Functions that
 * access elements on the host, such as duet_read, gather a split matrix first, so all processes must call
 * them. All processes write the same elements with duet_update and duet_overwrite.
 * Shapes    as duet_new; axis is from 0 to rank - 1
 * Owner     the caller, until duet_free
 * Errors    NULL: BAD_ARGUMENT: g is NULL, or axis is out of range. RANK_FAILED: the group can no longer be
 *           used. As duet_new */
DUET_API DUET_MUST duet_matrix *duet_new_split_shape(duet_group *g, duet_dtype type, int axis, int rank,
                                                     const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_new_replicated_shape(duet_group *g, duet_dtype type, int rank,
                                                          const int64_t *size);

/* Describe how a matrix is distributed over its group.
 *     duet_group_of    returns its group, or NULL for an ordinary matrix
 *     duet_split_axis  returns the axis along which it is split. -1: the matrix is replicated or ordinary, or
 *                      it is a view whose elements are not split along one axis
 *     duet_split_part  sets *first to the index along that axis where the part of a rank begins, and *count
 *                      to its size along the axis. For a replicated matrix: 0, and the number of elements
 * Errors    of duet_split_part: BAD_ARGUMENT: an argument is NULL, m is ordinary or a view whose elements are
 *           not split along one axis, or there is no such rank; NO_MEMORY */
DUET_API duet_group *duet_group_of(const duet_matrix *m);
DUET_API int duet_split_axis(const duet_matrix *m);
DUET_API duet_status duet_split_part(const duet_matrix *m, int rank, int64_t *first, int64_t *count);

#endif
