/* split_matrix.h - matrices on a group, and views of them. */
#ifndef SPLIT_MATRIX_H
#define SPLIT_MATRIX_H

#include "ranks.h"

/* A matrix of zeros with this distribution. NULL: out of memory */
duet_matrix *split_new(duet_group *g, duet_dtype type, const shape *whole, const distribution *at);

/* A matrix of zeros with the shape of m, which may be a view. If m is split along one axis, the matrix is
 * distributed like m, else replicated. NULL: out of memory */
duet_matrix *split_like(const duet_matrix *m, duet_dtype type);

/* How the elements of m, which may be a view, are distributed: writes at->axis, and ranks + 1 bounds to
 * at->bounds. false: they are not split along one axis of m */
bool split_distribution(const duet_matrix *m, distribution *at);

/* The elements of m that the rank with this index in its process has: a view of that part, with the layout of
 * m. Requires split_distribution. NULL: out of memory */
duet_matrix *split_local(const duet_matrix *m, int index);

/* Does each rank have a part of m: runs of its elements, all elements, or none? */
bool split_has_parts(const duet_matrix *m);

/* The elements of m that the rank with this index in its process has, in the order of m: a view of that part,
 * maybe with an additional first axis. Requires split_has_parts. NULL: out of memory */
duet_matrix *split_part(const duet_matrix *m, int index, part_runs *at);

/* Are all elements of m at one index of the split axis? Then *rank is the rank that has them. */
bool split_owner(const duet_matrix *m, int *rank);

/* These elements with an additional first axis, of one element on the rank that has them and of none on the
 * others. Requires split_owner. NULL: out of memory */
duet_matrix *split_owned(const duet_matrix *m, int index);

#endif
