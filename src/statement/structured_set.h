/* structured_set.h - assignments to matrices with a structure, or to views of them. */
#ifndef STRUCTURED_SET_H
#define STRUCTURED_SET_H

#include "expr.h"

/* Has every result of the formula with root n the structure of m? */
bool structure_is_kept(const duet_matrix *m, const node *n);

/* For statements that cannot check elements. Errors: UNSUPPORTED */
duet_status structure_must_be_kept(const char *who, const duet_matrix *m, const node *n);

/* Assigns e to m, where structure_is_kept is false. Does not spend e. Errors: BAD_ARGUMENT: an element would
 * break the structure; UNSUPPORTED: a recording is made; as duet_set */
duet_status structured_assign(const char *who, duet_place place, duet_matrix *m, duet_expr e);

/* Prints how structured_assign would do that. */
void structure_explain(FILE *out, const duet_matrix *m, duet_expr e);

#endif
