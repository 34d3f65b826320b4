/* each_part.h - statements without a formula: each rank runs them on its own part of a matrix. */
#ifndef EACH_PART_H
#define EACH_PART_H

#include "ranks.h"

/* What a rank does, on its device. part: its elements of the matrix, perhaps none. at: their numbers in the
 * matrix. If the caller records, the statements of this function are recorded. */
typedef duet_status part_work(void *context, duet_matrix *part, const part_runs *at);

/* Runs `work` for all ranks. m: a matrix on a group, or a view of one with split_has_parts. word: equal on
 * all ranks that run the same statement.
 * Errors    the error of the rank that failed; RANK_FAILED in other processes. Elements of m may be lost */
duet_status each_part(duet_matrix *m, part_work *work, void *context, uint64_t word);

#endif
