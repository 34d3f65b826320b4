/* view.h - what views are made of. */
#ifndef VIEW_H
#define VIEW_H

#include "matrix.h"

/* A view of m whose first element is `ahead` elements after that of m. A view without elements
 * starts where m does. */
static inline duet_matrix *view_of(const duet_matrix *m, const layout *at, int64_t ahead)
{
    duet_matrix *view = matrix_share(m->storage, at, m->offset + (layout_count(at) ? ahead : 0));
    if (view) view->constant = m->constant;
    return view;
}

static inline char *view_text(const duet_matrix *m, char text[SHAPE_TEXT])
{
    return shape_text(text, m->at.type, m->at.rank, m->at.size);
}

/* Is m a matrix of such a rank? Errors: BAD_ARGUMENT, BAD_SHAPE */
duet_status view_check_rank(const char *who, const duet_matrix *m, int least, int most);

/* An axis below `rank`, negative ones counted from there. Errors: BAD_SHAPE */
duet_status view_check_axis(const char *who, const char *name, const duet_matrix *m, int rank, int *axis);

#endif
