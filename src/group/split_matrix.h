/* split_matrix.h - matrices on a group, and views of them. */
#ifndef SPLIT_MATRIX_H
#define SPLIT_MATRIX_H

#include "ranks.h"

/* A matrix of zeros with this distribution. NULL: out of memory */
duet_matrix *split_new(duet_group *g, duet_dtype type, const shape *whole, const distribution *at);

/* How the elements of m, which may be a view, are distributed: writes at->axis, and ranks + 1 bounds to
 * at->bounds. false: they are not split along one axis of m */
bool split_distribution(const duet_matrix *m, distribution *at);

/* The elements of m that the rank with this index in its process has: a view of that part, with the layout of
 * m. Requires split_distribution. NULL: out of memory */
duet_matrix *split_local(const duet_matrix *m, int index);

/* Are all elements of m at one index of the split axis? Then *rank is the rank that has them. */
bool split_owner(const duet_matrix *m, int *rank);

/* These elements with an additional first axis, of one element on the rank that has them and of none on the
 * others. Requires split_owner. NULL: out of memory */
duet_matrix *split_owned(const duet_matrix *m, int index);

#endif
